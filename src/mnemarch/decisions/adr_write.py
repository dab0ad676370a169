"""Decision records written as Markdown: as they were read, or anew where their fields say something else by now."""

from __future__ import annotations

from mnemarch.decisions.adr_choice import chosen_in, items_in
from mnemarch.decisions.adr_head import Source, beyond_status, head_blocks, is_held, is_in_status, status_text
from mnemarch.decisions.adr_links import begins_with_relation, line_for
from mnemarch.decisions.adr_outline import closed, demoted, headings, trimmed
from mnemarch.decisions.adr_parts import FIELD_ROLES, head_of, parts_of, sections_of, texts_of
from mnemarch.decisions.adr_read import read_adr
from mnemarch.errors import InvalidInput
from mnemarch.model.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from mnemarch.decisions.adr_parts import Part
    from mnemarch.decisions.adr_record import AdrRecord

FORMS = ("nygard", "madr", "other")
_IN_HEAD = ("title", "date", "deciders")
_BELOW = ("status", "context", "drivers", "options", "decision", "chosen", "because", "consequences")
_NAMES = {
    "status": "Status",
    "context": "Context",
    "drivers": "Decision Drivers",
    "options": "Considered Options",
    "decision": "Decision",
    "consequences": "Consequences",
    "more": "More Information",
}
_MADR_NAMES = {**_NAMES, "context": "Context and Problem Statement", "decision": "Decision Outcome"}
_RUN_IN_NAMES = {"context": "Context", "decision": "Decision", "consequences": "Given up"}
# Without these headings the form would not be known again.
_NYGARD_ALWAYS = frozenset({"status", "context", "decision", "consequences"})
_MADR_ALWAYS = frozenset({"context", "decision"})


def write_adr(record: AdrRecord, form: str = "") -> str:
    """The record as Markdown, in its own form or in another; what that form has no place for goes to extra sections."""
    wanted = form or record.form
    if wanted not in FORMS:
        raise InvalidInput(f"There is no form {wanted!r} of decision records.", hint=f"Use one of {', '.join(FORMS)}.")
    written = _as_written(record) if wanted == record.form else ""
    if wanted == record.form and says(written, record):
        return written
    if written and wanted != "other":
        edited = _with_links(_edited, record, wanted)
        if says(edited, record):
            return edited
    return _with_links(_composed, record, wanted)


def _as_written(record: AdrRecord) -> str:
    pieces = [record.preamble, *(f"{heading}\n{body}" for heading, body in record.sections)]
    return "".join(map(_ended, pieces[:-1])) + pieces[-1]


def says(text: str, record: AdrRecord) -> bool:
    """Whether a text says what the fields say; the number may be told by the file name alone."""
    told = read_adr(text)
    return (
        told.number in {None, record.number}
        and set(told.links) == set(record.links)
        and all(getattr(told, name) == getattr(record, name) for name in _IN_HEAD + _BELOW)
    )


def _with_links(write: Callable[[Source], str], record: AdrRecord, form: str) -> str:
    """The text, written once more if nothing in it tells some of the links."""
    head, parts = head_of(record.preamble), tuple(parts_of(sections_of(record)))
    told = head.parts | texts_of(parts)
    text = write(Source(record=record, form=form, head=head, parts=parts, told=told, links=()))
    known = set(read_adr(text).links)
    missing = tuple(link for link in record.links if link not in known)
    if not missing:
        return text
    return write(Source(record=record, form=form, head=head, parts=parts, told=told, links=missing))


def _edited(source: Source) -> str:
    """The text with only those parts written anew that the fields have changed."""
    record, names = source.record, _MADR_NAMES if source.form == "madr" else _NAMES
    before = read_adr(_as_written(record))
    led = {part.role for part in source.parts if part.leads}
    in_section = source.form == "nygard" or "status" in led
    texts = dict(_field_texts(source))
    if in_section:
        same = before.status == record.status and before.links == record.links
        texts["status"] = source.told.get("status", "") if same else status_text(source)
    is_head_new = _is_head_changed(record, before, in_section="status" in led)
    texts["more"] = _more_text(source, has_status=not in_section, with_remarks=is_head_new)
    new = {role: text for role, text in texts.items() if text != source.told.get(role, "")}
    pieces = ["\n\n".join(head_blocks(source)) if is_head_new else record.preamble]
    fresh = {0} if is_head_new else set()
    if "status" in new and "status" not in led:
        fresh.add(len(pieces))
        pieces.append(_section(2, "Status", new["status"]))
    for part in source.parts:
        if part.role not in new:
            pieces.append(f"{part.section.heading}\n{part.section.body}")
        elif part.leads:
            fresh.add(len(pieces))
            pieces.append(f"{part.section.heading}\n\n{demoted(closed(new[part.role]), part.section.level)}")
    for role in names:
        if new.get(role) and role not in led and role != "status":
            fresh.add(len(pieces))
            pieces.append(_section(2, names[role], new[role]))
    return _spaced(pieces, fresh)


def _spaced(pieces: Sequence[str], fresh: set[int]) -> str:
    """The pieces in a row, with a blank line around those that are fresh."""
    text: list[str] = []
    for index, piece in enumerate(pieces):
        if index in fresh:
            text = [trimmed("".join(text)), "\n\n", trimmed(piece), "\n\n"]
        else:
            text.append(_ended(piece))
    return trimmed("".join(text)) + "\n"


def _is_head_changed(record: AdrRecord, before: AdrRecord, *, in_section: bool) -> bool:
    names = _IN_HEAD if in_section else (*_IN_HEAD, "status", "links")
    return before.number not in {None, record.number} or any(
        getattr(before, name) != getattr(record, name) for name in names
    )


def _composed(source: Source) -> str:
    """The whole text anew, in the order of the form."""
    texts = dict(_field_texts(source))
    if source.form == "other" and any(_has_headings(texts[role]) for role in _RUN_IN_NAMES):
        return _composed(replace(source, form="nygard"))  # a bold word can't hold what has headings
    blocks = head_blocks(source)
    names, always = (_MADR_NAMES, _MADR_ALWAYS) if source.form == "madr" else (_NAMES, _NYGARD_ALWAYS)
    if source.form == "nygard":
        texts["status"] = status_text(source)
    elif source.form == "other":
        blocks += [_run_in(name, text) for role, name in _RUN_IN_NAMES.items() if (text := texts.pop(role))]
        always = frozenset()
    for role, name in names.items():
        if texts.get(role) or role in always:
            text = texts.get(role, "")
            is_nested = source.form == "madr" and role == "consequences" and not _has_headings(text)
            blocks.append(_section(3 if is_nested else 2, name, text))
    blocks += _carried(source.parts)
    in_section = source.form == "nygard"
    if more := _more_text(source, has_status=not in_section, with_remarks=not in_section):
        blocks.append(_section(2, "More Information", more))
    return _joined(blocks)


def _field_texts(source: Source) -> Iterator[tuple[str, str]]:
    """The text of each part that fields hold."""
    record, told = source.record, source.told
    yield "context", trimmed(record.context)
    for role, items in (("drivers", record.drivers), ("options", record.options)):
        written = told.get(role, "")
        is_told = items_in(written) == items or (role == "options" and _tells_options(record))
        yield role, written if is_told else _listed(items)
    yield "decision", trimmed(_decision_text(record))
    yield "consequences", trimmed(record.consequences)


def _tells_options(record: AdrRecord) -> bool:
    return bool(record.options) and read_adr(_as_written(record)).options == record.options


def _decision_text(record: AdrRecord) -> str:
    if not record.chosen or chosen_in(record.decision) == (record.chosen, record.because):
        return record.decision
    chosen = f'Chosen option: "{" ".join(record.chosen.split())}"'
    if record.because:
        chosen += f", because {record.because}"
    if chosen[-1] not in ".!?…":
        chosen += "."
    return f"{chosen}\n\n{record.decision}"


def _more_text(source: Source, *, has_status: bool, with_remarks: bool) -> str:
    """More information: what was there, and what the form has no other place for."""
    blocks = [source.told.get("more", "")]
    if with_remarks and has_status:
        history, remarks = beyond_status(source)
        blocks += [*history, remarks]
    if source.form == "madr" and has_status:
        links = [link for link in source.links if not is_in_status(source.record, link)]
        blocks.append(_listed(map(line_for, links)))
    if source.form == "other":
        blocks.append(_listed(line for line in map(line_for, source.links) if not begins_with_relation(line)))
    if source.form != "madr" and source.form != source.record.form:
        kept = "".join(entry.text for entry in source.head.entries if entry.values and not is_held(entry.key))
        blocks.append(f"```yaml\n{kept}```" if kept else "")
    return "\n\n".join(filter(None, blocks))


def _carried(parts: Sequence[Part]) -> list[str]:
    """The sections that no field holds, each with what stands below it."""
    groups: list[list[Part]] = []
    for part in parts:
        if part.role in FIELD_ROLES or part.role == "more":
            continue
        if part.leads or not groups:
            groups.append([part])
        else:
            groups[-1].append(part)
    return [_section(2, group[0].section.name, "".join(_texts(group))) for group in groups]


def _texts(group: Sequence[Part]) -> Iterator[str]:
    yield _ended(group[0].section.body)
    for part in group[1:]:
        yield f"{part.section.heading}\n{_ended(part.section.body)}"


def _listed(items: Iterable[str]) -> str:
    return "\n".join(f"* {' '.join(item.split())}" for item in items)


def _has_headings(text: str) -> bool:
    return bool(headings(text.split("\n")))


def _section(level: int, name: str, text: str) -> str:
    return f"{'#' * level} {name}\n\n{demoted(closed(trimmed(text)), level)}".rstrip()


def _run_in(name: str, text: str) -> str:
    return f"**{name}.** {closed(text)}" if text[0].isalnum() else f"**{name}.**\n\n{closed(text)}"


def _joined(blocks: Iterable[str]) -> str:
    return "\n\n".join(filter(None, blocks)) + "\n"


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"
