"""Decision records. Takes: a folder of Markdown records, or a seat. Gives: decisions, or files. Never: invents one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from mnemarch.errors import Conflict, InvalidInput, NotAllowed, NotFound
from mnemarch.files import read_small, write_whole
from mnemarch.interfaces.adr.record import (
    Record,
    file_name,
    is_as_exported,
    is_name_of_record,
    new_record,
    number_of,
    read_record,
    record_in,
    reference,
    titled,
    with_status,
)
from mnemarch.model.caller import Level
from mnemarch.model.decision import Decision, version_key_of
from mnemarch.model.outcome import Verdict
from mnemarch.model.unit import Unit
from mnemarch.model.value import Frozen
from mnemarch.seat import Seat
from mnemarch.text.secrets import redacted

_PAGE = 1_000
_FILE_BYTES_MAX = 1_048_576
_TAG, _FILE = "adr", "file:"


class AdrOutcome(Frozen):
    """The outcome of one file."""

    name: str
    decision_id: str | None
    note: str


class _Known:
    """The imported records, by file name: the text that was read last, and the newest decision made from it.

    A file's text is stored as evidence, tagged with the file's name. A decision belongs to a file if it cites that
    evidence and has the same text.
    """

    def __init__(self, seat: Seat) -> None:
        self.text: dict[str, str] = {}
        self.evidence: dict[str, str] = {}
        self.made: dict[str, Decision] = {}
        # The file's text from which the decision was made.
        self.made_of: dict[str, str] = {}
        # The file names of the readings that recall may hand out.
        self.shown: dict[str, str] = {}
        readings: dict[str, tuple[str, str]] = {}
        for unit in _units(seat, "evidence"):
            name = _name_in(unit)
            if name and (unit.live or str(unit.archive_reason).startswith(f"rejected: {name}: ")):
                readings[unit.id] = name, unit.content
                self.text[name], self.evidence[name] = unit.content, unit.id
                self.shown |= {unit.id: name} if unit.live else {}
        decisions = [Decision(unit) for unit in _units(seat, "decision") if version_key_of(unit) is not None]
        self.latest = {one.root_id: one for one in decisions}
        self.active = {one.root_id: one for one in decisions if one.is_active}
        for one in decisions:
            for name, text in (readings[id] for id in one.evidence if id in readings):
                if read_record(text, name).text == one.text:
                    self.made[name], self.made_of[name] = one, text

    def owner(self, decision: Decision) -> str | None:
        """The name of the file from which a decision was made, or None."""
        return next((name for name, one in self.made.items() if one.id == decision.id), None)

    def in_force(self, name: str, record: Record) -> Decision | None:
        """The decision in force for a file: its own, or a later version decided here; never another file's."""
        made = self.made.get(name)
        one = self.active.get(record.mark if made is None else made.root_id)
        is_ours = one is not None and (self.owner(one) is None or (made is not None and one.id == made.id))
        return one if is_ours else None


def _units(seat: Seat, kind: str) -> list[Unit]:
    """All units of a kind, the oldest first."""
    units: list[Unit] = []
    while page := seat.units(kind=kind, limit=_PAGE, after=units[-1].id if units else None):
        units += page
    return sorted(units, key=lambda unit: unit.id)


def _name_in(unit: Unit) -> str:
    """The file name in the tags of a unit, or "". Anybody can tag evidence below project level, so that is ignored."""
    tags = unit.attributes.get("tags")
    if not isinstance(tags, list | tuple) or _TAG not in tags or unit.level < Level.PROJECT:
        return ""
    named = [tag.removeprefix(_FILE) for tag in tags if isinstance(tag, str) and tag.startswith(_FILE)]
    name = "".join(named[:1]).replace("\\", "/").rpartition("/")[2]
    return name if name.isprintable() and not name.startswith(".") and is_name_of_record(name) else ""


def superseded(records: Mapping[str, Record]) -> dict[str, set[str]]:
    """The records that each record supersedes. Either of the two may state it."""
    numbers = {str(records[name].number): name for name in sorted(records, reverse=True)}
    older: dict[str, set[str]] = {
        name: set() for name in sorted(records, key=lambda name: (records[name].number or 0, name))
    }
    for name, record in records.items():
        for relation, target in record.links:
            other = target if target in records else numbers.get(target)
            if other is not None and other != name:
                new, old = (name, other) if relation == "supersedes" else (other, name)
                older[new].add(old)
    return older


# Importing


def import_folder(
    seat: Seat, folder: str, progress: Callable[[int], None] | None = None, *, override: str | None = None
) -> list[AdrOutcome]:
    """Import every record of a folder. A repeated import applies only the changes in the files.

    `override` is a person's reason to commit decisions that the guardian blocks. Failed records are tried again at the
    next import.
    """
    texts, unread = _texts_in(folder)
    # The memory redacts secrets, so the comparison needs redacted texts.
    clean = {name: redacted(text)[0] for name, text in texts.items()}
    files = {name: (text, record) for name, text in clean.items() if (record := record_in(text, name)) is not None}
    work = _Import(seat, files, override)
    for number, name in enumerate(work.order, start=1):
        work.take(name)
        if progress is not None:
            progress(number)
    for name in work.order:
        work.end(name)
    work.hide_what_does_not_hold()
    return [*unread, *work.outcomes(), *work.gone({*texts, *(one.name for one in unread)})]


def holds_records(folder: str) -> bool:
    return os.path.isdir(folder) and any(record_in(text, name) for name, text in _texts_in(folder)[0].items())


def _texts_in(folder: str) -> tuple[dict[str, str], list[AdrOutcome]]:
    """The texts of the files in a folder that may be records, and an outcome for each unreadable file."""
    if not os.path.isdir(folder):
        raise InvalidInput(f"{folder!r} is not a folder.", hint="Name a folder of Markdown files.")
    texts, unread = {}, []
    for name in filter(is_name_of_record, sorted(os.listdir(folder))):
        path = os.path.join(folder, name)
        try:
            texts[name] = read_small(path, _FILE_BYTES_MAX).decode()
        except (OSError, ValueError) as error:
            unread.append(AdrOutcome(name, None, f"not read: {error}"))
    return texts, unread


class _Import:
    """One import. It decides the records, superseded ones first, and then retires those that are not in force."""

    def __init__(self, seat: Seat, files: Mapping[str, tuple[str, Record]], override: str | None) -> None:
        self._seat, self._files, self._override = seat, files, override
        self._known = _Known(seat)
        self._before = set(self._known.text)
        self._older = superseded({name: record for name, (_, record) in files.items()})
        self._newer = {
            name: [new for new, olds in self._older.items() if name in olds and files[new][1].was_decided]
            for name in files
        }
        try:
            self.order = list(TopologicalSorter(self._older).static_order())
        except CycleError as error:
            circle = ", ".join(error.args[1])
            raise InvalidInput(
                f"These records supersede each other in a circle: {circle}.", hint="Correct one of them."
            ) from None
        self._notes: dict[str, str] = {}
        self._refused: set[str] = set()

    def outcomes(self) -> Iterator[AdrOutcome]:
        for name, note in sorted(self._notes.items()):
            made = self._known.made.get(name) or self._known.latest.get(self._files[name][1].mark)
            yield AdrOutcome(name, made.id if made is not None else None, note)

    def gone(self, names: set[str]) -> Iterator[AdrOutcome]:
        """Outcomes for decisions in force whose files are gone; none if no known file is in the folder."""
        here = {self._known.made[name].id for name in self._files if name in self._known.made}
        for name in sorted(self._before - names) if self._before & names else ():
            one = self._known.made.get(name)
            if one is not None and one.id not in here and self._known.active.get(one.root_id) == one:
                yield AdrOutcome(name, one.id, "no longer in the folder, but still in force")

    def _holds(self, name: str) -> tuple[bool, str]:
        """Whether a record is in force in this folder, and the reason if it is not."""
        record, newer = self._files[name][1], self._newer[name]
        if newer and record.was_decided:
            return False, f"superseded by {', '.join(newer)}"
        return record.holds, record.status

    def take(self, name: str) -> None:
        """Store a file's text as evidence, and decide its record if it is new or changed."""
        (text, record), known = self._files[name], self._known
        is_new = known.text.get(name) != text
        if record.mark in known.latest and is_as_exported(text) and name not in known.text:
            self._notes[name] = "unchanged"
            return
        try:
            self._notes[name], is_to_decide, base = self._choice(name, is_new=is_new)
            if is_new or (is_to_decide and known.evidence[name] not in known.shown):
                # With a tag for the reading before, a former text that comes back is no duplicate.
                tags = [_TAG, _FILE + name, *(f"after:{id}" for file, id in known.evidence.items() if file == name)]
                kept = self._seat.decisions.add_evidence(text, tags=tags, level=Level.PROJECT)
                known.text[name], known.evidence[name], known.shown[kept.id] = text, kept.id, name
            if is_to_decide:
                self._decide(name, base)
        except (Conflict, InvalidInput, NotFound) as error:
            self._refuse(name, error.message)

    def _choice(self, name: str, *, is_new: bool) -> tuple[str, bool, Decision | None]:
        """The note for a file, whether to decide its record, and the decision that it would revise."""
        record, made = self._files[name][1], self._known.made.get(name)
        current = self._known.in_force(name, record)
        holds, why = self._holds(name)
        if not holds and (made is not None or not self._newer[name]):
            return f"{why}: not in force{', kept as evidence' if made is None else ''}", False, None
        if made is None and current is None:
            befores = [(old, self._known.in_force(old, self._files[old][1])) for old in sorted(self._older[name])]
            old, base = next((one for one in befores if one[1] is not None), ("", None))
            note = f"the next version of {old}" if base else "decided"
            return note if holds else f"{why}: not in force", True, base
        is_same = made is not None and read_record(self._known.made_of[name], name).content == record.content
        if is_same and current is not None and current == made:
            return "unchanged", False, None
        if is_same and not is_new:
            return "unchanged; it was decided otherwise since", False, None
        return "revised" if current is not None else "decided anew", True, current

    def _decide(self, name: str, base: Decision | None) -> None:
        (text, record), known, desk = self._files[name], self._known, self._seat.decisions
        revises = None if base is None else base.id
        evidence = [known.evidence[name]]
        try:
            strength, domain = (record.strength, record.domain) if base is None else (None, None)
            proposal = desk.propose(
                record.text,
                reason=record.reason,
                evidence=evidence,
                revises=revises,
                strength=strength,
                domain=domain,
            )
            desk.check(proposal)
            is_blocked = proposal.guardian.type is Verdict.BLOCK or bool(proposal.conflicts)
            made = desk.commit(proposal, override=self._override if is_blocked else None)
            assert isinstance(made, Decision), "who may not decide was refused above"
        except NotAllowed as error:
            self._refuse(name, error.message)
            return
        first = known.owner(made)
        known.made[name], known.made_of[name], known.active[made.root_id] = made, text, made
        if first not in (None, name):
            self._notes[name] = f"says what {first} says"

    def end(self, name: str) -> None:
        """Reject a file's decision if the folder says that it is not in force, unless a next version replaced it."""
        current, made = self._known.in_force(name, self._files[name][1]), self._known.made.get(name)
        holds, why = self._holds(name)
        if holds or current is None or self._refused.intersection([name, *self._newer[name]]):
            return
        if made is not None and current != made:
            self._notes[name] = f"{why}; the newer decision made here still holds"
            return
        try:
            self._seat.reject(current.id, f"{name}: {why}")
            del self._known.active[current.root_id]
        except (Conflict, InvalidInput, NotAllowed, NotFound) as error:
            self._refuse(name, error.message)

    def hide_what_does_not_hold(self) -> None:
        """Reject the readings on which no decision in force rests. Recall would hand them out as knowledge."""
        cited = {id for one in self._known.active.values() for id in one.evidence}
        for id, name in self._known.shown.items():
            if id in cited or name not in self._files or name in self._refused:
                continue
            holds, why = self._holds(name)
            try:
                self._seat.reject(id, f"{name}: {'it was changed since' if holds else why or 'not in force'}")
            except (Conflict, InvalidInput, NotAllowed, NotFound) as error:
                self._refuse(name, error.message)

    def _refuse(self, name: str, message: str) -> None:
        self._refused.add(name)
        self._notes[name] = f"not done: {message}"


# Exporting


def export_folder(seat: Seat, folder: str) -> list[AdrOutcome]:
    """Write every imported file as it was read last, with its current status, and a new record for each decision of the
    project that is in force and has no file.

    A file that was changed since its import stays as it is. Each file is written whole or not at all.
    """
    return sorted(_Export(seat, folder).outcomes(), key=lambda outcome: outcome.name)


class _Export:
    def __init__(self, seat: Seat, folder: str) -> None:
        self._folder, self._known = folder, _Known(seat)
        if not os.path.lexists(folder):
            os.makedirs(folder)
        self._there, self._unread = _texts_in(folder)
        own = {name: read_record(text, name) for name, text in self._known.text.items()}
        there = {name: read_record(text, name) for name, text in self._there.items()}
        self._superseded = {old for olds in superseded(own).values() for old in olds}
        # A renamed file is not written again under its old name.
        contents = {record.content for name, record in there.items() if name not in own}
        self._renamed = {name for name, record in own.items() if name not in there and record.content in contents}
        numbers = [record.number for record in (*own.values(), *there.values())] + [number_of(name) for name in there]
        number = max((each for each in numbers if each is not None), default=0)
        # The files of decisions without an imported record, by the id of the first version.
        self._native = {record.mark: name for name, record in there.items() if record.mark and name not in own}
        for one in self._known.active.values():
            is_native = self._known.owner(one) is None and one.unit.level >= Level.PROJECT
            if is_native and one.root_id not in self._native:
                number += 1
                self._native[one.root_id] = file_name(number, titled(one.text.strip()))

    def outcomes(self) -> Iterator[AdrOutcome]:
        for name, text in self._known.text.items():
            made = self._known.made.get(name)
            if name not in self._renamed:
                yield self._put(name, made.id if made is not None else None, self._with_status(name, text), text)
        for root, name in self._native.items():
            if root in self._known.latest:
                one = self._known.latest[root]
                before = [file for file, made in self._known.made.items() if made.root_id == root]
                text = new_record(one, number_of(name) or 0, list(map(self._link, before[-1:])))
                yield self._put(name, one.id, text)

    def _with_status(self, name: str, text: str) -> str | None:
        """The text of an imported file with its current status; None if the status can't be changed in place."""
        one = self._known.made.get(name)
        is_active = one is not None and self._known.active.get(one.root_id) == one
        if one is None or is_active is read_record(text, name).holds or name in self._superseded:
            return text
        return with_status(text, "accepted" if is_active else "deprecated", self._link_to_next(one))

    def _link_to_next(self, decision: Decision) -> str:
        """A link to the record of the version that replaced this one, or ""."""
        one = self._known.active.get(decision.root_id)
        if one is None or one == decision:
            return ""
        owner, native = self._known.owner(one), self._native.get(one.root_id)
        if owner is None and native is not None:
            return reference(number_of(native), titled(one.text.strip()), native)
        return self._link(owner) if owner is not None else ""

    def _link(self, name: str) -> str:
        record = read_record(self._known.text[name], name)
        return reference(record.number, record.title, name)

    def _put(self, name: str, decision_id: str | None, text: str | None, imported: str | None = None) -> AdrOutcome:
        old, path = self._there.get(name), os.path.join(self._folder, name)
        if name in {one.name for one in self._unread}:
            return AdrOutcome(name, decision_id, "left as it is: what is there can't be read")
        if text is None:
            return AdrOutcome(name, decision_id, "left as it is: its status can't be changed in place")
        if old == text:
            return AdrOutcome(name, decision_id, "unchanged")
        if old not in {None, imported} and not (imported is None and is_as_exported(old or "")):
            return AdrOutcome(name, decision_id, "left as it is: it was changed there since; import it first")
        write_whole(path, text)
        return AdrOutcome(name, decision_id, "written")
