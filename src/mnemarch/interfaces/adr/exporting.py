"""Exports a memory's decisions to a folder of Markdown decision records."""

from __future__ import annotations

import os
import re
from unicodedata import category, normalize

from mnemarch.errors import InvalidInput, StoreUnavailable
from mnemarch.files import write_whole
from mnemarch.interfaces.adr.importing import AdrOutcome, KnownFile, KnownFiles, superseded
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mnemarch.model.decision import Decision
    from mnemarch.seat import Seat

# Some encrypted file systems stop at 143 bytes.
_SLUG_BYTES_MAX = 120
_KOREAN = {"accepted": "승인됨", "deprecated": "폐기됨", "superseded": "대체됨"}
_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
# What stands before the status on its line.
_BEFORE_STATUS = {"section": re.compile(r"[ \t]*(?:[*+-][ \t]+)?"), "front": re.compile(r"[^:]*:[ \t]*")}
_BEFORE_STATUS["head"] = re.compile(r"[^:：]*[:：][*_]*[ \t]*")


def export_folder(seat: Seat, folder: str) -> list[AdrOutcome]:
    """Write every imported file as it was read last, with its status as the memory knows it, and a record for each
    decision of the project that is in force and has no file.

    A file that somebody changed since is left as it is. Each file is written whole or stays as it was.
    """
    return sorted(_Export(seat, folder).outcomes(), key=lambda outcome: outcome.name)


class _Export:
    def __init__(self, seat: Seat, folder: str) -> None:
        self._folder, self._there, self._known = folder, _texts_in(folder), KnownFiles(seat)
        records = {name: read_record(text, name) for name, text in self._there.items()}
        files = self._known.by_name
        own = {name: known.record for name, known in files.items()}
        self._superseded = {old for olds in superseded(own).values() for old in olds}
        numbers = [record.number for record in (*records.values(), *own.values())] + [
            number_of(name) for name in self._there
        ]
        numbers += [int(target) for record in own.values() for _, target in record.links if target.isdigit()]
        number = max((each for each in numbers if each is not None), default=0)
        # The file of each decision that has none of its own, by the id of its first version.
        self._native = {record.mark: name for name, record in records.items() if record.mark and name not in files}
        for one in self._known.decisions.values():
            is_native = one.is_active and one.id not in self._known.owner and one.unit.level >= Level.PROJECT
            if is_native and one.root_id not in self._native:
                number += 1
                self._native[one.root_id] = file_name(number, titled(one.text.strip()))

    def outcomes(self) -> Iterator[AdrOutcome]:
        renamed = {text: name for name, text in self._there.items() if name not in self._known.by_name}
        for known in self._known.by_name.values():
            name = known.name if known.name in self._there else renamed.get(known.text, known.name)
            decision_id = known.decision.id if known.decision is not None else None
            yield self._put(name, decision_id, self._with_status(known), known.taken_over)
        latest = {one.root_id: one for one in self._known.decisions.values()}
        for root, name in self._native.items():
            if root in latest:
                yield self._put(name, latest[root].id, self._record_of(latest[root], name))

    def _with_status(self, known: KnownFile) -> str | None:
        """The text of an imported file with its status as the memory knows it; None if it can't be put there."""
        one, text = known.decision, known.taken_over
        holds = read_record(text).force is Force.HOLDS
        if one is None or one.is_active is holds or known.name in self._superseded:
            return text
        return with_status(text, "accepted" if one.is_active else "deprecated", self._link_to_next(known))

    def _link_to_next(self, known: KnownFile) -> str:
        """A link to the record that took the place of this one."""
        assert known.decision is not None
        one = self._known.active.get(known.decision.root_id)
        if one is None or one is known.decision:
            return ""
        owner = self._known.owner.get(one.id)
        if owner is not None:
            return self._link(owner)
        name = self._native.get(one.root_id)
        return reference(number_of(name), titled(one.text.strip()), name) if name else ""

    @staticmethod
    def _link(known: KnownFile) -> str:
        return reference(known.record.number, known.record.title, known.name)

    def _record_of(self, one: Decision, name: str) -> str:
        """A record of its own for a decision; if an earlier version was made of a file, it supersedes that."""
        files = self._known.by_name.values()
        before = {file.decision.id: file for file in files if file.decision and file.decision.root_id == one.root_id}
        links = [self._link(before[max(before)])] if before else []
        return new_record(one, number_of(name) or 0, "accepted" if one.is_active else "deprecated", links)

    def _put(self, name: str, decision_id: str | None, text: str | None, imported: str | None = None) -> AdrOutcome:
        old, path = self._there.get(name), os.path.join(self._folder, name)
        if text is None:
            return AdrOutcome(name, decision_id, "left as it is: its status can't be changed in place")
        if old == text:
            return AdrOutcome(name, decision_id, "unchanged")
        if old not in {None, imported} and not (imported is None and is_as_exported(old or "")):
            return AdrOutcome(name, decision_id, "left as it is: it was changed there since; import it first")
        try:
            write_whole(path, text)
        except OSError as error:
            raise _unwritable(path, error) from None
        return AdrOutcome(name, decision_id, "written")


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


def _unwritable(path: str, error: OSError) -> StoreUnavailable:
    return StoreUnavailable(
        f"{path!r} can't be written: {error.strerror}.",
        hint="Check the disk and the folder's rights, then export again; no file was left half written.",
    )


# The text of a record


def file_name(number: int, title: str) -> str:
    """0012-kebab-case-of-title.md, in whatever script the title is written."""
    plain = normalize("NFC", normalize("NFKC", title).lower())
    letters = "".join(each if each.isalnum() or category(each)[0] == "M" else " " for each in plain)
    slug = "-".join(letters.split()).encode()[:_SLUG_BYTES_MAX].decode(errors="ignore").strip("-")
    return f"{number:04}-{slug or 'decision'}.md"


def reference(number: int | None, title: str, name: str) -> str:
    """A Markdown link to a record."""
    label = re.sub(r"[][\\]", "", title if number is None else f"{number}. {title}")
    return f"[{label}]({name.replace(' ', '%20')})"


def new_record(decision: Decision, number: int, status: str, supersedes: Sequence[str] = ()) -> str:
    """A decision as a record in the form of Nygard, from which the same decision can be read.

    A remark holds the id of the decision's first version and a digest of the file.
    """
    text = decision.text.strip()
    first, _, rest = text.partition("\n")
    title, rest = titled(first), rest.strip()
    is_joined_again = rest and f"{title}\n\n{rest}" == text and titled(rest) != title
    remark = f"<!-- mnemarch: {decision.root_id} -->"
    blocks = [f"# {number}. {title}", remark, f"Date: {decision.unit.occurred_at:%Y-%m-%d}"]
    blocks += ["## Status", status.capitalize(), *(f"Supersedes {link}" for link in supersedes)]
    blocks += ["## Context", _quoted_if_needed(decision.reason.summary)]
    blocks += ["## Decision", _quoted_if_needed(rest if is_joined_again else text)]
    blocks += ["## Consequences", _quoted_if_needed(decision.reason.tradeoff or "")]
    record = "\n\n".join(filter(None, blocks)) + "\n"
    return record.replace(remark, f"<!-- mnemarch: {decision.root_id} {digest_of(record)} -->", 1)


def _quoted_if_needed(text: str) -> str:
    """A text that would break the outline of a record, say by a heading, becomes a quotation."""
    record = read_record(f"# T\n\n## Context\n\n{text}\n\n## Decision\n\nend\n")
    if not text or (record.context, record.decision) == (text.rstrip(), "end"):
        return text
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def with_status(text: str, status: str, by: str = "") -> str | None:
    """The text with another status, or superseded by the record that `by` links to; every other line stays.

    None if the status can't be changed in place.
    """
    record, status = read_record(text), "superseded" if by else status
    lines = _LINE.findall(text.removeprefix("\ufeff"))
    if not 0 <= record.status_at < len(lines):
        return None
    line, ending = lines[record.status_at]
    words = f"superseded by {by}" if by else status
    if record.status_in == "title":
        line += (ending or "\n") * 2 + f"Status: {words.capitalize() if not by else words}"
    else:
        before = _BEFORE_STATUS[record.status_in].match(line)
        start = before[0] if before else ""
        if re.search("[가-힣]", line[len(start) :]):
            words = f"{by}에 의해 {_KOREAN[status]}" if by else _KOREAN[status]
        elif line[len(start) :][:1].isupper():
            words = words[0].upper() + words[1:]
        line = start + (f'"{words}"' if record.status_in == "front" and by else words)
    lines[record.status_at] = (line, ending)
    new = text[: text.startswith("\ufeff")] + "".join(each + end for each, end in lines)
    back = read_record(new)
    return new if (back.status, back.content) == (status, record.content) else None
