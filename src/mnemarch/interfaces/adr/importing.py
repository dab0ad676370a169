"""What a memory knows of decision records, and the import of a folder of them."""

from __future__ import annotations

import os
from graphlib import CycleError, TopologicalSorter

from mnemarch.errors import Conflict, InvalidInput, NotAllowed, NotFound
from mnemarch.interfaces.adr.record import Force, Record, is_as_exported, is_name_of_record, read_record, record_in
from mnemarch.model.caller import Level
from mnemarch.model.decision import Decision, version_key_of
from mnemarch.model.outcome import Verdict
from mnemarch.model.value import Frozen
from mnemarch.text.secrets import redacted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mnemarch.model.unit import Unit
    from mnemarch.seat import Seat

_PAGE = 1_000
_FILE_BYTES_MAX = 1_048_576
_TAG, _FILE, _AFTER = "adr", "file:", "after:"


class AdrOutcome(Frozen):
    """What became of one file."""

    name: str
    decision_id: str | None
    note: str


# What a memory knows


class KnownFile:
    """A file as it was read last, by event `at`, and the latest decision that was made of it, from `decided_text`.

    `ended`: since that decision the file said that it is not in force.
    """

    def __init__(self, name: str = "", decision: Decision | None = None) -> None:
        self.name = name
        self.text = self.decided_text = ""
        self.at = decision.id if decision is not None else ""
        self.decision = decision
        self.ended = False

    @property
    def record(self) -> Record:
        return read_record(self.text, self.name)

    def is_decided_by(self, record: Record) -> bool:
        """Whether the latest decision says what a record says."""
        if self.decision is None or self.decided_text:
            return read_record(self.decided_text, self.name).content == record.content
        reasons = [(one.summary, one.tradeoff) for one in (self.decision.reason, record.reason)]
        return self.decision.text == record.text and reasons[0] == reasons[1]

    @property
    def taken_over(self) -> str:
        """The text as far as the memory does what it says: what was refused is not taken over."""
        is_open = self.decision is not None and self.decision.is_active and self.decided_text != ""
        is_done = self.record.force is Force.HOLDS and self.is_decided_by(self.record)
        return self.decided_text if is_open and not is_done else self.text


class KnownFiles:
    """Decisions and the files that they were made of, as one seat sees them.

    Each reading of a file is evidence with the file's name; a later one also names the event before it, which tells a
    renamed file. A decision is made of a file that it cites if it says what the file says.
    """

    def __init__(self, seat: Seat) -> None:
        readings = {unit.id: unit for unit in _units(seat, "evidence") if unit.live and _name_in(unit)}
        units = sorted(_units(seat, "decision"), key=lambda unit: unit.id)
        self.decisions = {unit.id: Decision(unit) for unit in units if version_key_of(unit) is not None}
        self.active = {one.root_id: one for one in self.decisions.values() if one.is_active}
        self.by_name: dict[str, KnownFile] = {}
        # By the ids of readings and decisions.
        self.owner: dict[str, KnownFile] = {}
        for id in sorted({*readings, *self.decisions}):
            if id in readings:
                self._follow_reading(readings[id])
            else:
                self._follow_decision(self.decisions[id], readings)

    def _follow_reading(self, unit: Unit) -> None:
        name, after = _name_in(unit), _tagged(unit, _AFTER)
        known = self.owner.get(after) or self.by_name.get(name) or KnownFile(name, self.decisions.get(after))
        self.by_name.pop(known.name, None)
        if known.decision is not None:
            self.owner.setdefault(known.decision.id, known)
        known.name, known.text, known.at = name, unit.content, unit.id
        known.ended = known.ended or known.record.force is not Force.HOLDS
        self.by_name[name] = self.owner[unit.id] = known

    def _follow_decision(self, decision: Decision, readings: Mapping[str, Unit]) -> None:
        for id in decision.evidence:
            known = self.owner.get(id) if id in readings else None
            if known is not None and read_record(readings[id].content, known.name).text == decision.text:
                known.decision, known.decided_text, known.ended = decision, readings[id].content, False
                self.owner[decision.id] = known

    def current(self, known: KnownFile) -> Decision | None:
        """What is in force of the decision of a file: its own, or what was decided here since; not another file's."""
        one = self.active.get(known.decision.root_id) if known.decision is not None else None
        return one if one is not None and self.owner.get(one.id) in (None, known) else None

    def matched(self, files: Mapping[str, tuple[str, Record]]) -> dict[str, KnownFile]:
        """What is known of each file: by its name, or its mark; else, of files that are gone, by its content or its
        title; else, of decisions that have no file, by its words."""
        matches = {name: self.by_name[name] for name in files if name in self.by_name}
        gone = [known for name, known in self.by_name.items() if name not in files]
        loose = [KnownFile("", one) for one in self.active.values() if one.id not in self.owner]
        decided = [(known.decision, known) for known in loose if known.decision is not None]
        ways: list[tuple[Callable[[Record], str], dict[str, KnownFile]]] = [
            (lambda record: record.mark, {one.root_id: known for one, known in decided}),
            (lambda record: record.content, {known.record.content: known for known in gone}),
            (lambda record: record.title, {known.record.title: known for known in gone}),
            (lambda record: record.text, {one.text: known for one, known in decided}),
        ]
        for key, by_key in ways:
            for name, (_, record) in files.items():
                known = by_key.get(key(record))
                if name not in matches and known is not None and known not in matches.values():
                    matches[name] = known
        return {name: matches.get(name) or KnownFile(name) for name in files}


def _units(seat: Seat, kind: str) -> Iterator[Unit]:
    after: str | None = None
    while page := seat.units(kind=kind, limit=_PAGE, after=after):
        yield from page
        after = page[-1].id


def _name_in(unit: Unit) -> str:
    """The name of the file that a unit of evidence holds. Anybody can tag evidence, below the project with what they
    like."""
    tags = unit.attributes.get("tags")
    if not isinstance(tags, list | tuple) or _TAG not in tags or unit.level < Level.PROJECT:
        return ""
    name = _tagged(unit, _FILE).replace("\\", "/").rpartition("/")[2]
    return name if name.isprintable() and not name.startswith(".") and is_name_of_record(name) else ""


def _tagged(unit: Unit, prefix: str) -> str:
    tags = [tag for tag in unit.attributes["tags"] if isinstance(tag, str)]
    return next((tag.removeprefix(prefix) for tag in tags if tag.startswith(prefix)), "")


# Who takes the place of whom


def superseded(records: Mapping[str, Record]) -> dict[str, set[str]]:
    """For each record those that it supersedes, whichever side says it."""
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
    """Take over every record of a folder. Importing it again changes only what the files say anew.

    What the guardian blocks is done if a person says why (`override`); what was not done is tried again next time.
    """
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        hint = "Give a folder of Markdown files."
        raise InvalidInput(f"{folder!r} can't be read: {error.strerror}.", hint=hint) from None
    files, unread = _records_in(folder, names)
    work = _Import(seat, files, override)
    for number, name in enumerate(work.order, start=1):
        work.decide(name)
        if progress is not None:
            progress(number)
    for name in work.order:
        work.end(name)
    return [*unread, *work.outcomes(), *work.gone(names)]


def _records_in(folder: str, names: Sequence[str]) -> tuple[dict[str, tuple[str, Record]], list[AdrOutcome]]:
    """The text and the record of each file of a folder, and what could not be read."""
    files: dict[str, tuple[str, Record]] = {}
    unread = []
    for name in names:
        path = os.path.join(folder, name)
        if not is_name_of_record(name) or not os.path.isfile(path):
            continue
        try:
            if os.path.getsize(path) > _FILE_BYTES_MAX:
                raise ValueError(f"it has more than {_FILE_BYTES_MAX} bytes")
            with open(path, encoding="utf-8", newline="") as file:
                text, _ = redacted(file.read())  # As the memory would keep it.
        except (OSError, ValueError) as error:
            unread.append(AdrOutcome(name, None, f"not read: {error}"))
            continue
        record = record_in(text, name)
        if record is not None:
            files[name] = (text, record)
    return files, unread


class _Import:
    """An import at work: first it decides, each record after those that it supersedes, then it takes out of force."""

    def __init__(self, seat: Seat, files: Mapping[str, tuple[str, Record]], override: str | None) -> None:
        self._seat, self._files, self._override = seat, files, override
        self._known = KnownFiles(seat)
        self._states = self._known.matched(files)
        self._known_before = {known.name for known in self._states.values() if known.at}
        self._older = superseded({name: record for name, (_, record) in files.items()})
        self._newer: dict[str, list[str]] = {name: [] for name in files}
        for new, olds in self._older.items():
            for old in olds if files[new][1].force is not Force.NEVER else ():
                self._newer[old].append(new)
        try:
            self.order = list(TopologicalSorter(self._older).static_order())
        except CycleError as error:
            circle = ", ".join(error.args[1])
            raise InvalidInput(
                f"These records supersede each other in a circle: {circle}.", hint="Correct one of them."
            ) from None
        self._notes: dict[str, str] = {}
        self._undone: set[str] = set()

    def outcomes(self) -> Iterator[AdrOutcome]:
        for name, note in sorted(self._notes.items()):
            decision = self._states[name].decision
            yield AdrOutcome(name, decision.id if decision is not None else None, note)

    def gone(self, names: Sequence[str]) -> Iterator[AdrOutcome]:
        """What is in force of files that are no longer there. A folder of which nothing is known is another one."""
        for name, known in sorted(self._known.by_name.items()) if self._known_before else ():
            if name not in names and known not in self._states.values() and known.decision and known.decision.is_active:
                yield AdrOutcome(name, known.decision.id, "no longer in the folder; still in force")

    def _force(self, name: str) -> tuple[Force, str]:
        """Whether a record is in force in this folder, and why not."""
        record = self._files[name][1]
        if record.force is Force.NEVER or not self._newer[name]:
            return record.force, record.status
        return Force.ENDED, f"superseded by {', '.join(self._newer[name])}"

    def decide(self, name: str) -> None:
        """Keep what a file says as evidence, and decide it if that is new."""
        (text, record), known = self._files[name], self._states[name]
        if known.decision is not None and is_as_exported(text) and not known.ended:
            self._notes[name] = "unchanged"
            return
        try:
            if (known.name, known.text) != (name, text):
                self._keep(name, text)
        except InvalidInput as error:
            self._refuse(name, error.message)
            return
        note, is_to_decide, base = self._choice(name)
        self._notes[name] = note
        if not is_to_decide:
            return
        desk, revises = self._seat.decisions, None if base is None else base.id
        try:
            proposal = desk.propose(record.text, reason=record.reason, evidence=[known.at], revises=revises)
            desk.check(proposal)
            is_blocked = proposal.guardian.type is Verdict.BLOCK or bool(proposal.conflicts)
            made = desk.commit(proposal, override=self._override if is_blocked else None)
            assert isinstance(made, Decision), "who may not decide was refused above"
        except (Conflict, InvalidInput, NotAllowed, NotFound) as error:
            self._refuse(name, error.message)
            return
        known.decision = self._known.active[made.root_id] = made
        owner = self._known.owner.setdefault(made.id, known)
        if owner is not known:
            self._notes[name] = f"says what {owner.name} says"

    def _choice(self, name: str) -> tuple[str, bool, Decision | None]:
        """What to say of a file, whether its record is to be decided, and what it is the next version of."""
        record, known, current = self._files[name][1], self._states[name], self._known.current(self._states[name])
        force, why = self._force(name)
        if known.decision is None and (force is Force.HOLDS or self._newer[name]):
            before = [(old, self._known.current(self._states[old])) for old in sorted(self._older[name])]
            old, base = next((one for one in before if one[1] is not None), ("", None))
            note = f"the next version of {old}" if base else "decided"
            return note if force is Force.HOLDS else f"{why}: {force}", force is not Force.NEVER, base
        if force is not Force.HOLDS:
            return f"{why}: {force}{', kept as evidence' if known.decision is None else ''}", False, None
        is_same = known.is_decided_by(record)
        if is_same and current is not None and current is known.decision:
            return "unchanged", False, None
        if is_same and not known.ended:
            return "unchanged, and decided otherwise since", False, None
        return "revised" if current is not None else "decided anew", True, current

    def end(self, name: str) -> None:
        """Take a record out of force that the folder says is not; a next version did so by itself."""
        known, current = self._states[name], self._known.current(self._states[name])
        force, why = self._force(name)
        if (
            force is Force.HOLDS
            or current is None
            or name in self._undone
            or self._undone.intersection(self._newer[name])
        ):
            return
        if current is not known.decision:
            self._notes[name] = f"{why}; what was decided here since still holds"
            return
        try:
            self._seat.reject(current.id, f"{name}: {why}")
            del self._known.active[current.root_id]
        except (Conflict, InvalidInput, NotAllowed, NotFound) as error:
            self._refuse(name, error.message)

    def _refuse(self, name: str, message: str) -> None:
        self._undone.add(name)
        self._notes[name] = f"not done: {message}"

    def _keep(self, name: str, text: str) -> None:
        known = self._states[name]
        tags = [_TAG, _FILE + name, *([_AFTER + known.at] if known.at else [])]
        known.at = self._seat.decisions.add_evidence(text, tags=tags, level=Level.PROJECT).id
        known.name, known.text = name, text
