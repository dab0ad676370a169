"""What a memory knows of decision records: the files as they were read last, and the decisions made of them."""

from __future__ import annotations

from contextlib import suppress
from graphlib import CycleError, TopologicalSorter

from mnemarch.interfaces.adr.phrases import ENDED
from mnemarch.interfaces.adr.record import Force, is_name_of_record, read_record
from mnemarch.model.caller import Level
from mnemarch.model.decision import Decision, version_key_of
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from mnemarch.interfaces.adr.record import Record
    from mnemarch.model.unit import Unit
    from mnemarch.seat import Seat

    # `source relation target`, by the names of two files.
    Bond = tuple[str, str, str]

_PAGE = 1_000
_TAG, _FILE, _AFTER = "adr", "file:", "after:"
# A relation as the other side says it.
PASSIVE = {
    "supersedes": "superseded_by",
    "refines": "refined_by",
    "depends_on": "required_by",
    "constrains": "constrained_by",
    "validates": "validated_by",
}
_ACTIVE = {passive: active for active, passive in PASSIVE.items()}


@value
class RecordFile:
    """A file with a record, in a folder or as evidence. A reading that decided nothing names the event before it."""

    name: str
    text: str
    record: Record
    id: str = ""
    after: str | None = None


class Known:
    """A file as it was read last, by event `at`, and the latest decision that was made of it.

    A decision that has no file has no name and no text here.
    """

    def __init__(self, name: str = "", decision: Decision | None = None) -> None:
        self.name = name
        self.text = ""
        self.at = ""
        self.decision = decision

    @property
    def record(self) -> Record:
        return read_record(self.text, self.name)


class ImportedRecords:
    """Decisions and the files that they were made from, as one seat sees them.

    A decision was made from a file that it cites if it says what the file says. Other evidence of a file counts only
    if it is a reading, which is kept when nothing was left to do: the decision of any other may have been refused.
    """

    def __init__(self, seat: Seat) -> None:
        self.read = {file.id: file for unit in _units(seat, "evidence") if unit.live and (file := _file_in(unit))}
        ordered = sorted(_units(seat, "decision"), key=lambda unit: unit.id)
        self.decisions = {unit.id: Decision(unit) for unit in ordered if version_key_of(unit) is not None}
        self.next = {one.unit.supersedes: one for one in self.decisions.values() if one.unit.supersedes}
        self.files: dict[str, Known] = {}
        self.file_of: dict[str, Known] = {}
        self.made_from: dict[str, RecordFile] = {}
        turns: list[Decision | RecordFile] = [*self.decisions.values()]
        turns += [file for file in self.read.values() if file.after is not None]
        for turn in sorted(turns, key=lambda turn: turn.id):
            if isinstance(turn, Decision):
                self._follow_decision(turn)
            else:
                self._follow_reading(turn)

    def _follow_decision(self, decision: Decision) -> None:
        cited = (self.read[each] for each in decision.evidence if each in self.read)
        file = next((one for one in cited if one.record.text == decision.text), None)
        if file is None:
            return
        known = self.file_of.get(decision.unit.supersedes or "")
        if known is None or known.decision is None or file.id not in known.decision.evidence:
            known = self.files.setdefault(file.name, Known(file.name))
            known.text, known.at = file.text, decision.id
        known.decision = decision
        self.made_from[decision.id] = file
        self.file_of[decision.id] = known

    def _follow_reading(self, file: RecordFile) -> None:
        known = self.file_of.get(file.after or "")
        if known is None:
            decision = self.decisions.get(file.after or "")
            known = Known(decision=decision) if decision else self.files.get(file.name) or Known()
        if self.files.get(known.name) is known:
            del self.files[known.name]
        known.name, known.text, known.at = file.name, file.text, file.id
        if known.decision is not None:
            self.made_from.setdefault(known.decision.id, file)
            self.file_of[known.decision.id] = known
        self.files[known.name] = self.file_of[file.id] = known

    def matched(self, files: Mapping[str, RecordFile]) -> dict[str, Known]:
        """What is known of each file: by its name; else, of files that are gone and decisions that have none, by its
        mark, its content, its title or its text."""
        matches = {name: self.files[name] for name in files if name in self.files}
        gone = [known for name, known in self.files.items() if name not in files]
        gone.sort(key=lambda one: one.decision is not None and one.decision.is_active)
        owned = self.file_of.keys() | {known.record.mark for known in self.files.values()}
        loose = [(Known(decision=one), one) for one in self.decisions.values() if one.id not in owned]
        keys: list[Callable[[Record], Any]] = [
            lambda record: record.mark,
            lambda record: record.body and record.content,
            lambda record: record.title.casefold(),
            lambda record: record.decision and record.body,
        ]
        ways = [(_grouped((key(one.record), one) for one in gone), key) for key in keys]
        ways.insert(1, (_grouped((one.id, known) for known, one in loose), keys[0]))
        ways.append((_grouped((one.text, known) for known, one in loose), lambda record: record.text))
        taken = set(matches.values())
        for groups, key in ways:
            for name, file in files.items():
                free = [one for one in groups.get(key(file.record), ()) if one not in taken]
                if free and name not in matches:
                    matches[name] = free[-1]
                    taken.add(free[-1])
        return matches

    def in_force(self, known: Known, owned: set[str]) -> Decision | None:
        """The decision of a record that is in force, or what was decided here in its place.

        `owned` are the decisions of other records.
        """
        one = known.decision
        while one is not None and not one.is_active:
            one = self.next.get(one.id)
            if one is not None and (one.id in self.file_of or one.id in owned):
                return None
        return one

    def says(self, decision: Decision, record: Record) -> bool:
        """Whether a decision says what a record says."""
        if decision.id in self.made_from:
            return self.made_from[decision.id].record.content == record.content
        if (decision.text, decision.reason) == (record.text, record.reason):
            return True
        reason = decision.reason
        decided = (decision.text, reason.summary, reason.tradeoff or "")
        written = (record.text, record.context, record.consequences)
        return [_unquoted(text) for text in decided] == [_unquoted(text) for text in written]


def _unquoted(text: str) -> str:
    return " ".join(text.replace(">", " ").split())


def _grouped(keyed: Iterable[tuple[Any, Known]]) -> dict[Any, list[Known]]:
    groups: dict[Any, list[Known]] = {}
    for key, known in keyed:
        if key:
            groups.setdefault(key, []).append(known)
    return groups


def _file_in(unit: Unit) -> RecordFile | None:
    """The file that a unit of evidence holds. Anybody can tag evidence, below the project with what they like."""
    tags = unit.attributes.get("tags")
    if not isinstance(tags, list | tuple) or _TAG not in tags or unit.level < Level.PROJECT:
        return None
    name = (_tagged(tags, _FILE) or "").replace("\\", "/").rpartition("/")[2]
    if not name.isprintable() or name[:1] in {"", "."} or not is_name_of_record(name):
        return None
    record = read_record(unit.content, name)
    return RecordFile(name=name, text=unit.content, record=record, id=unit.id, after=_tagged(tags, _AFTER))


def tags_for(name: str, after: str | None = None) -> list[str]:
    """How the evidence is tagged that holds a file of this name, or a reading of it."""
    return [_TAG, _FILE + name] if after is None else [_TAG, _FILE + name, _AFTER + after]


def _tagged(tags: Iterable[object], prefix: str) -> str | None:
    return next((tag.removeprefix(prefix) for tag in tags if isinstance(tag, str) and tag.startswith(prefix)), None)


def _units(seat: Seat, kind: str) -> Iterator[Unit]:
    after: str | None = None
    while page := seat.units(kind=kind, limit=_PAGE, after=after):
        yield from page
        after = page[-1].id


# Who takes the place of whom


@value
class Place:
    """Where a record stands among the others: whom it supersedes, and who supersedes it."""

    force: Force
    why: str
    older: tuple[str, ...]
    newer: tuple[str, ...]


def bonds(records: Mapping[str, Record]) -> set[Bond]:
    """The relations that the records state, whichever side says it."""
    numbers = {str(records[name].number): name for name in sorted(records, reverse=True)}
    stated = set()
    for name, record in records.items():
        for link in record.links:
            target = link.target.replace("\\", "/").rpartition("/")[2]
            other = target if target in records else numbers.get(target)
            if other is not None and other != name:
                active = _ACTIVE.get(link.relation)
                stated.add((other, active, name) if active else (name, link.relation, other))
    return stated


def places(records: Mapping[str, Record]) -> dict[str, Place]:
    """The place of every record, each after those it supersedes, otherwise by number.

    Records that supersede each other in a circle, or one of such a circle, are not in force.
    """
    older: dict[str, set[str]] = {name: set() for name in records}
    newer: dict[str, set[str]] = {name: set() for name in records}
    for source, relation, target in bonds(records):
        if relation == "supersedes":
            older[source].add(target)
            newer[target].add(source)

    def by_number(name: str) -> tuple[bool, int, str]:
        return records[name].number is None, records[name].number or 0, name

    sorter = TopologicalSorter(older)
    with suppress(CycleError):
        sorter.prepare()
    order: list[str] = []
    while ready := sorted(sorter.get_ready(), key=by_number):
        order += ready
        sorter.done(*ready)
    decided = {name for name in order if records[name].force is not Force.NEVER}
    placed: dict[str, Place] = {}
    for name in order:
        after = tuple(sorted(newer[name] & decided))
        force, why = records[name].force, records[name].status
        if force is not Force.NEVER and after:
            force, why = Force.ENDED, f"superseded by {', '.join(after)}"
        elif force is Force.ENDED and why not in ENDED - {"superseded"}:
            why = "superseded by a record that is not here, or not in force"
        placed[name] = Place(force=force, why=why, older=tuple(sorted(older[name], key=by_number)), newer=after)
    for name in sorted(records.keys() - placed.keys()):
        why = "superseded in a circle: which came last can't be told"
        placed[name] = Place(force=Force.NEVER, why=why, older=(), newer=())
    return placed
