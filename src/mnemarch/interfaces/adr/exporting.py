"""Exports a memory's decisions to a folder of Markdown decision records."""

from __future__ import annotations

import os
import re
from unicodedata import category, normalize

from mnemarch.errors import InvalidInput, StoreUnavailable
from mnemarch.files import write_whole
from mnemarch.interfaces.adr.imported import PASSIVE, ImportedRecords, places
from mnemarch.interfaces.adr.importing import AdrOutcome
from mnemarch.interfaces.adr.phrases import is_only_status, line_of
from mnemarch.interfaces.adr.record import (
    Force,
    digest_of,
    is_as_exported,
    is_name_of_record,
    number_of,
    read_record,
    titled,
)
from mnemarch.model.caller import Level
from mnemarch.model.decision import RelationType
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mnemarch.interfaces.adr.imported import Bond
    from mnemarch.interfaces.adr.record import Record
    from mnemarch.model.decision import Decision
    from mnemarch.seat import Seat

    # A relation such as "superseded_by", and a Markdown link to the other record.
    Mention = tuple[str, str]

# Some encrypted file systems stop at 143 bytes.
_SLUG_BYTES_MAX = 120
_KOREAN = {"accepted": "승인됨", "deprecated": "폐기됨"}
_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_BULLET = re.compile(r"[ \t]*(?:[*+-][ \t]+)?")
_KEY = re.compile(r"[^:：]*[:：][*_]*[ \t]*")


@value
class _Draft:
    """A record to be written. `text` is what was imported; a decision that was made here has none."""

    name: str
    number: int
    form: str
    text: str
    decision: Decision

    @property
    def record(self) -> Record:
        return read_record(self.text or new_record(self.decision, self.number, self.form, "accepted"), self.name)

    @property
    def link(self) -> str:
        record = self.record
        label = record.title if record.number is None else f"{record.number}. {record.title}"
        return reference(label, self.name)

    def written(self, force: Force, mentions: Sequence[Mention]) -> str | None:
        """The record with its status as the memory knows it; None if that can't be put into its text."""
        is_active, by = self.decision.is_active, [link for relation, link in mentions if relation == "superseded_by"]
        if not self.text:
            status = "accepted" if is_active else "deprecated"
            return new_record(self.decision, self.number, self.form, status, mentions)
        if is_active and self.record.force is not Force.HOLDS:
            return with_status(self.text, "accepted")
        if not is_active and force is Force.HOLDS:
            return with_status(self.text, "superseded" if by else "deprecated", ", ".join(by))
        return self.text


def export_folder(seat: Seat, folder: str, form: str = "") -> list[AdrOutcome]:
    """Write every decision that this seat sees as a record; what was imported keeps its text, but for its status.

    A file that somebody changed since is left as it is. Each file is written whole or stays as it was.
    """
    imported, there = ImportedRecords(seat), _texts_in(folder)
    drafts = _drafts(imported, form or "nygard", there)
    named = {draft.name: draft for draft in drafts.values()}
    forces = {name: place.force for name, place in places({name: one.record for name, one in named.items()}).items()}
    mentions: dict[str, list[Mention]] = {name: [] for name in named}
    for source, relation, target in sorted({*_followed(imported, drafts), *_related(seat, imported, drafts)}):
        mentions[source].append((relation, named[target].link))
        mentions[target].append((PASSIVE[relation], named[source].link))
    outcomes = []
    for known in imported.files.values():
        if known.decision is None:
            is_ours = there.get(known.name, known.text) == known.text
            outcomes.append(_put(folder, known.name, known.text, None, is_ours=is_ours))
    for name, draft in named.items():
        old, new = there.get(name), draft.written(forces[name], mentions[name])
        if new is None:
            note = "left as it is: its status can't be changed in place"
            outcomes.append(AdrOutcome(name, draft.decision.id, note))
        else:
            is_ours = old in {None, new, draft.text} or (not draft.text and is_as_exported(old or ""))
            outcomes.append(_put(folder, name, new, draft.decision.id, is_ours=is_ours))
    return sorted(outcomes, key=lambda outcome: outcome.name)


def _texts_in(folder: str) -> dict[str, str]:
    """The records of the folder that is exported to, which is made if it is not there."""
    texts = {}
    try:
        os.makedirs(folder, exist_ok=True)
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            if is_name_of_record(name) and os.path.isfile(path):
                with open(path, encoding="utf-8", errors="replace", newline="") as file:
                    texts[name] = file.read()
    except (FileExistsError, NotADirectoryError):
        raise InvalidInput(f"{folder!r} is no folder.", hint="Name a folder to write the records to.") from None
    except OSError as error:
        raise _unwritable(folder, error) from None
    return texts


def _put(folder: str, name: str, text: str, decision_id: str | None, *, is_ours: bool) -> AdrOutcome:
    if not is_ours:
        return AdrOutcome(name, decision_id, "left as it is: it was changed there since; import it first")
    path = os.path.join(folder, name)
    try:
        write_whole(path, text)
    except OSError as error:
        raise _unwritable(path, error) from None
    return AdrOutcome(name, decision_id, "written")


def _unwritable(path: str, error: OSError) -> StoreUnavailable:
    return StoreUnavailable(
        f"{path!r} can't be written: {error.strerror}.",
        hint="Check the disk and the folder's rights, then export again; no file was left half written.",
    )


def _drafts(imported: ImportedRecords, form: str, there: Mapping[str, str]) -> dict[str, _Draft]:
    """By decision: the latest that was made from each file, and all that were made here.

    A file that was exported or renamed keeps the name that it has in the folder.
    """
    latest = {known.decision.id: known for known in imported.files.values() if known.decision is not None}
    renamed = {text: name for name, text in there.items() if name not in imported.files}
    records = {name: read_record(text, name) for name, text in there.items()}
    marked = {record.mark: name for name, record in records.items() if record.mark}
    numbers = [record.number for record in (*records.values(), *(file.record for file in imported.read.values()))]
    numbers += map(number_of, (*there, *(file.name for file in imported.read.values())))
    number = max((each for each in numbers if each is not None), default=0)
    drafts = {}
    for one in imported.decisions.values():
        known, following = latest.get(one.id), latest.get(imported.next[one.id].id) if one.id in imported.next else None
        if known is not None:
            name = known.name if known.name in there else renamed.get(known.text, known.name)
            drafts[one.id] = _Draft(name=name, number=0, form="", text=known.text, decision=one)
            continue
        # The record of the next version may be the same, edited, and no other that took its place.
        first_line = one.text.strip().partition("\n")[0]
        is_edited = following is not None and (following.record.mark == one.id or following.record.title == first_line)
        if one.id in marked and not is_edited:
            name = marked[one.id]
            own_number = records[name].number or number_of(name) or 0
            drafts[one.id] = _Draft(name=name, number=own_number, form=form, text="", decision=one)
        elif one.is_active or (one.id not in imported.made_from and not is_edited):
            number += 1
            name = file_name(number, titled(first_line))
            drafts[one.id] = _Draft(name=name, number=number, form=form, text="", decision=one)
    return drafts


def _followed(imported: ImportedRecords, drafts: Mapping[str, _Draft]) -> Iterator[Bond]:
    """Which record is the next version of which."""
    for one in imported.decisions.values():
        new, old = drafts.get(one.id), drafts.get(one.unit.supersedes or "")
        if new is not None and old is not None and new.name != old.name:
            yield new.name, "supersedes", old.name


def _related(seat: Seat, imported: ImportedRecords, drafts: Mapping[str, _Draft]) -> Iterator[Bond]:
    """Which record bears on which: the latest of a decision stands for it."""
    latest = {one.root_id: drafts[one.id] for one in imported.decisions.values() if one.id in drafts}
    active = [one.id for one in imported.decisions.values() if one.is_active]
    for relation in (relation for each in active for relation in seat.decisions.relations(each)):
        source, target = latest.get(relation.source), latest.get(relation.target)
        # A record that supersedes another ends it, and this one may go on.
        goes_on = relation.type is RelationType.SUPERSEDES and target is not None and target.decision.is_active
        if source is not None and target is not None and not goes_on:
            yield source.name, str(relation.type).lower(), target.name


# The text of a record


def file_name(number: int, title: str) -> str:
    """0012-kebab-case-of-title.md, in whatever script the title is written."""
    plain = normalize("NFC", normalize("NFKC", title).lower())
    letters = "".join(each if each.isalnum() or category(each)[0] == "M" else " " for each in plain)
    slug = "-".join(letters.split()).encode()[:_SLUG_BYTES_MAX].decode(errors="ignore").strip("-")
    return f"{number:04}-{slug or 'decision'}.md"


def reference(label: str, name: str) -> str:
    """A Markdown link to a record."""
    target = f"<{name}>" if re.search(r"[ ()]", name) else name
    escaped = re.sub(r"[][\\]", r"\\\g<0>", label)
    return f"[{escaped}]({target})"


def new_record(decision: Decision, number: int, form: str, status: str, mentions: Sequence[Mention] = ()) -> str:
    """A decision as a record of that form, from which the same decision can be read.

    A remark holds the decision's id, the level where it holds if that is below the project, and a digest of the file.
    """
    title, body = _title_and_body(decision.text.strip())
    replaced_by = [link for relation, link in mentions if relation == "superseded_by"]
    others = [f"{name.replace('_', ' ').capitalize()} {link}" for name, link in mentions if name != "superseded_by"]
    status = f"superseded by {', '.join(replaced_by)}" if replaced_by else status
    level = decision.unit.level
    mark = decision.id if level >= Level.PROJECT else f"{decision.id} {level}"
    remark = f"<!-- mnemarch: {mark} -->"
    date = f"{decision.unit.occurred_at:%Y-%m-%d}"
    context, cost = _quoted_if_needed(decision.reason.summary), _quoted_if_needed(decision.reason.tradeoff or "")
    if form == "madr":
        front = [f"status: {_yaml(status)}", f"date: {date}", f"decision-makers: {decision.unit.author}"]
        blocks = ["\n".join(["---", *front, "---"]), f"# {title}", remark]
        blocks += ["## Context and Problem Statement", context, "## Decision Outcome", body]
        blocks += ["### Consequences", cost] if cost else []
        blocks += ["## More Information", "\n".join(f"* {line}" for line in others)] if others else []
    else:
        blocks = [f"# {number}. {title}", remark, f"Date: {date}", "## Status", _capital(status), *others]
        blocks += ["## Context", context, "## Decision", body, "## Consequences", cost]
    text = "\n\n".join(filter(None, blocks)) + "\n"
    return text.replace(remark, f"<!-- mnemarch: {mark} {digest_of(text)} -->", 1)


def _title_and_body(text: str) -> tuple[str, str]:
    """The first line as the title and the rest below it, or all of it where a reader could not join the two again."""
    first, _, rest = text.partition("\n")
    title, rest = titled(first), rest.strip()
    is_joined_again = f"{title}\n\n{rest}" == text and titled(rest.partition("\n")[0]) != title
    return title, _quoted_if_needed(rest if rest and is_joined_again else text)


def _quoted_if_needed(text: str) -> str:
    """A text that would break the outline of a record, say by a heading, becomes a quotation."""
    record = read_record(f"# T\n\n## Context\n\n{text}\n\n## Decision\n\nend\n")
    if not text or (record.context, record.decision) == (text.rstrip(), "end"):
        return text
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def with_status(text: str, status: str, by: str = "") -> str | None:
    """The text with another status, superseded by the record that `by` links to; every other line stays.

    None if the status can't be changed in place.
    """
    record = read_record(text)
    lines = _LINE.findall(text.removeprefix("\ufeff"))
    if not 0 <= record.status_at < len(lines):
        return None
    line, ending = lines[record.status_at]
    start = "" if record.status_in == "title" else _start_of(line, _BULLET if record.status_in == "section" else _KEY)
    old, words = line[len(start) :], f"superseded by {by}" if by else status
    if record.status_in != "title" and re.search("[가-힣]", old):
        words = f"{by}에 의해 대체됨" if by else _KOREAN.get(status, status)
    if record.status_in == "title":
        line += (ending or "\n") * 2 + f"Status: {_capital(words)}"
    elif record.status_in == "front":
        line = start + _yaml(words)
    elif record.status_in == "head" or record.status == "superseded" or is_only_status(line_of(0, line)):
        line = start + (_capital(words) if old[:1].isupper() else words)
    else:  # A status with a remark or a date stays as history.
        line += ending + (start if start.strip() else ending) + _capital(words)
    lines[record.status_at] = (line, ending)
    new = text[: text.startswith("\ufeff")] + "".join(each + end for each, end in lines)
    back = read_record(new)
    is_linked = not by or any(link.relation == "superseded_by" for link in back.links)
    return new if back.status == status and is_linked and back.content == record.content else None


def _start_of(line: str, pattern: re.Pattern[str]) -> str:
    start = pattern.match(line)
    return start[0] if start else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _yaml(text: str) -> str:
    """A value of front matter, in quotes where YAML would read something else."""
    if text[0] in "[{\"'&*!|>%@`#" or ": " in text or " #" in text:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return text
