"""What a record decides: as a decision's text and reason, and a decision as a record."""

from __future__ import annotations

from functools import cache

from mnemarch.decisions.adr_parts import FIELD_ROLES, parts_of, sections_of
from mnemarch.decisions.adr_read import read_adr, title_in
from mnemarch.decisions.adr_record import AdrRecord
from mnemarch.decisions.adr_words import plain_name
from mnemarch.decisions.adr_write import write_adr
from mnemarch.lazy import Lazy
from mnemarch.model.caller import Level
from mnemarch.model.decision import SUMMARY_CHARS_MAX, Reason
from mnemarch.model.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

    from mnemarch.model.decision import Decision

    Matter = tuple[object, ...]
else:
    re = Lazy("re")

_TITLE_CHARS_MAX = 120
_SUCCESSION = frozenset({"supersedes", "superseded_by"})


def text_of(record: AdrRecord) -> str:
    """The decision in words: the title and what was decided, said once where the one begins the other."""
    body = record.decision
    first, _, _ = body.partition("\n")
    if _titled(first) == record.title:
        return body or "(untitled)"
    return f"{record.title}\n\n{body}".strip()


def reason_of(record: AdrRecord) -> Reason:
    """Why, and what it costs, as far as a reason has room; the record itself is the evidence."""
    told = (" ".join(text.split()) for text in (record.because, record.context, record.title, "imported"))
    return Reason("other", _cut(next(filter(None, told)), SUMMARY_CHARS_MAX), _cut(record.consequences) or None)


def record_of(decision: Decision, number: int | None, form: str) -> AdrRecord:
    """A decision as a record of that form, from which the same decision can be read."""
    text = decision.text.strip()
    title, _, rest = text.partition("\n")
    record = AdrRecord(
        form=form,
        number=number,
        title=_titled(title),
        status="accepted" if decision.is_active else "",
        date=f"{decision.unit.occurred_at:%Y-%m-%d}",
        deciders=(str(decision.unit.author),) if form == "madr" else (),
        context=decision.reason.summary,
        decision=rest.strip(),
        consequences=decision.reason.tradeoff or "",
    )
    is_read_back = record.decision and text_of(read_adr(write_adr(record))) == text
    return record if is_read_back else replace(record, decision=text)


def matter_of(record: AdrRecord) -> Matter:
    """What two records have in common that decide the same, whatever their form, number, status, links and names."""
    own = [
        (plain_name(part.section.name), part.section.body.strip())
        for part in parts_of(sections_of(record))
        if part.role not in FIELD_ROLES and part.role not in {"more", "links"}
    ]
    fields = (record.title, record.context, record.decision, record.consequences, record.drivers, record.options)
    return (*fields, *own)


def said_in(record: AdrRecord) -> Matter:
    """What a record decides, and whether it holds: what a reader of it would act upon."""
    replaced = {(link.relation, link.target) for link in record.links if link.relation in _SUCCESSION}
    return matter_of(record), record.status, frozenset(replaced)


def marked(text: str, decision_id: str, level: Level = Level.PROJECT) -> str:
    """The text of a record with a remark below its title, by which the decision is known again, and where it holds."""
    mark = decision_id if level >= Level.PROJECT else f"{decision_id} {level}"
    return _title_line().sub(lambda found: f"{found[0]}\n\n<!-- mnemarch: {mark} -->", text, count=1)


def mark_in(record: AdrRecord) -> str | None:
    """The id of the decision that a record was written from, if it tells."""
    found = _mark().search(record.preamble)
    return found[1] if found else None


def level_in(record: AdrRecord) -> str:
    """The level of the decision that a record was written from, if that was no project's."""
    found = _mark().search(record.preamble)
    return found[2] or "" if found else ""


def _titled(line: str) -> str:
    """The title that a decision with this first line gets."""
    return _cut(title_in(" ".join(line.lstrip("#").split())), _TITLE_CHARS_MAX)


def _cut(text: str, chars_max: int = SUMMARY_CHARS_MAX) -> str:
    return text if len(text) <= chars_max else text[: chars_max - 1] + "…"


@cache
def _title_line() -> re.Pattern[str]:
    return re.compile(r"^# .*$", re.MULTILINE)


@cache
def _mark() -> re.Pattern[str]:
    return re.compile(r"<!-- mnemarch: ([0-9A-Za-z-]{1,64})(?: (task|worktree))? -->")
