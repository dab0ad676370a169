"""What a memory knows of decision records: the files as they were taken over last, and the decisions made of them."""

from __future__ import annotations

import os
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter

from mnemarch.interfaces.adr.phrases import ENDED, IN_FORCE
from mnemarch.interfaces.adr.record import is_name_of_record, read_record
from mnemarch.interfaces.adr.writing import FORMS, new_record
from mnemarch.model.caller import Level
from mnemarch.model.closed import Names
from mnemarch.model.decision import Decision, RelationType, version_key_of
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

    from mnemarch.interfaces.adr.record import Record
    from mnemarch.model.unit import Unit
    from mnemarch.seat import Seat

_PAGE = 1_000
_TAG, _FILE, _AFTER = "adr", "file:", "after:"
_TYPES = {
    "supersedes": RelationType.SUPERSEDES,
    "depends_on": RelationType.DEPENDS_ON,
    "constrains": RelationType.CONSTRAINS,
    "validates": RelationType.VALIDATES,
    **dict.fromkeys(["refines", "amends", "extends", "clarifies", "partially_supersedes"], RelationType.REFINES),
}
_PASSIVE = {
    "superseded_by": "supersedes",
    "required_by": "depends_on",
    "constrained_by": "constrains",
    "validated_by": "validates",
    **dict.fromkeys(["refined_by", "amended_by", "extended_by", "clarified_by", "partially_superseded_by"], "refines"),
}


@value
class AdrOutcome:
    """What became of one file."""

    name: str
    decision_id: str | None
    note: str


@value
class RecordFile:
    """A file with a record, in a folder or as evidence. A reading that decided nothing names what came before it."""

    name: str
    text: str
    record: Record
    id: str = ""
    after: str | None = None


class Known:
    """A file that was taken over: as it was read last, by event `at`, and the latest decision that was made of it.

    A decision that no file is known of has no name and no text here.
    """

    def __init__(self, name: str = "", decision: Decision | None = None) -> None:
        self.name = name
        self.text = ""
        self.at = ""
        self.decision = decision

    @property
    def record(self) -> Record:
        return read_record(self.text, self.name)


def tags_for(name: str, after: str | None = None) -> list[str]:
    """How the evidence is tagged that holds a file of this name, or a reading of it."""
    return [_TAG, _FILE + name] if after is None else [_TAG, _FILE + name, _AFTER + after]


class ImportedRecords:
    """Decisions and the files that they were made from, as one seat sees them.

    A decision was made from a file that it cites if it says what the file says. A file was taken over when that was
    decided, or when a reading was kept because nothing was left to do. Other evidence of a file says nothing: its
    decision may have been refused.
    """

    def __init__(self, evidence: Iterable[Unit], decisions: Iterable[Unit]) -> None:
        live = [unit for unit in evidence if unit.live]
        self.evidence = {unit.id for unit in live}
        self.read = {file.id: file for unit in live if (file := _file_in(unit)) is not None}
        ordered = sorted(decisions, key=lambda unit: unit.id)
        self.decisions = {unit.id: Decision(unit) for unit in ordered if version_key_of(unit) is not None}
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
        before = self.file_of.get(decision.unit.supersedes or "")
        is_same = before is not None and before.decision is not None and file.id in before.decision.evidence
        known = before if before is not None and is_same else self.files.get(file.name) or Known(file.name)
        known.decision = decision
        # Who decides the same for a reason of their own read no file.
        if not known.at or decision.reason == file.record.reason:
            known.text, known.at = file.text, decision.id
        self.made_from[decision.id] = file
        self.files[known.name] = self.file_of[decision.id] = known

    def _follow_reading(self, file: RecordFile) -> None:
        after = file.after or ""
        known = self.file_of.get(after)
        if known is None:
            decision = self.decisions.get(after)
            known = Known(decision=decision) if decision else self.files.get(file.name) or Known()
        if self.files.get(known.name) is known:
            del self.files[known.name]
        known.name, known.text, known.at = file.name, file.text, file.id
        if known.decision is not None:
            self.made_from.setdefault(known.decision.id, file)
            self.file_of[known.decision.id] = known
        self.files[known.name] = self.file_of[file.id] = known

    def text_of(self, known: Known) -> str:
        """The text of a file as it was read last; while its decision is in force, as it still said that."""
        made = None if known.decision is None else self.made_from.get(known.decision.id)
        if made is not None and known.decision is not None and known.decision.is_active:
            return known.text if known.record.content == made.record.content else made.text
        return known.text

    def matched(self, files: Mapping[str, RecordFile]) -> dict[str, Known]:
        """What is known of each file: by its name, by its mark or, of what no other file here stands for, by what the
        two have in common."""
        matches: dict[str, Known] = {}
        taken: set[Known] = set()
        for groups, key in self._ways(files):
            for name, file in files.items():
                free = [one for one in groups.get(key(file), ()) if one not in taken]
                if free and name not in matches:
                    matches[name] = free[-1]
                    taken.add(free[-1])
        return matches

    def _ways(
        self, files: Mapping[str, RecordFile]
    ) -> Iterator[tuple[Mapping[Hashable, list[Known]], Callable[[RecordFile], Hashable]]]:
        yield {name: [known] for name, known in self.files.items()}, lambda file: file.name
        loose = [Known(decision=one) for one in self.decisions.values() if one.id not in self.file_of]
        marks = _grouped(loose, lambda one: one.decision and one.decision.id)
        for known in self.files.values():
            if known.record.mark:
                marks[known.record.mark] = [known] if known.name not in files else []
        yield marks, lambda file: file.record.mark
        gone = [known for name, known in self.files.items() if name not in files]
        keys: tuple[Callable[[RecordFile | Known], Hashable], ...] = (
            lambda one: one.text,
            lambda one: one.record.content,
            lambda one: one.record.title.casefold(),
            lambda one: one.record.decision and one.record.content[1:],
        )
        for key in keys:
            yield _grouped(gone, key), key
        yield _grouped(loose, lambda one: one.decision and one.decision.text), lambda file: file.record.text
        bare = [one for one in loose if one.decision and not self.evidence.intersection(one.decision.evidence)]
        first_lines = _grouped(bare, lambda one: one.decision and one.decision.text.partition("\n")[0].casefold())
        yield first_lines, lambda file: file.record.title.casefold()

    def held(self, matches: Mapping[str, Known]) -> dict[str, Decision]:
        """What is in force of each record: the latest version, unless one after its own is another record's."""
        owner = {known.decision.id: name for name, known in matches.items() if known.decision is not None}
        held: dict[str, Decision] = {}
        versions: dict[str, list[Decision]] = {}
        for one in sorted(self.decisions.values(), key=lambda one: one.version, reverse=True):
            versions.setdefault(one.root_id, []).append(one)
        for latest, *earlier in versions.values():
            source = next((one for one in (latest, *earlier) if one.id in owner or one.id in self.file_of), None)
            if latest.is_active and source is not None and source.id in owner:
                held[owner[source.id]] = latest
        return held

    def says(self, decision: Decision, record: Record) -> bool:
        """Whether a decision says what a record says."""
        made = self.made_from.get(decision.id)
        if made is not None:
            return made.record.content == record.content
        if (decision.text, decision.reason) == (record.text, record.reason):
            return True
        texts = (new_record(decision, record.number, form, "accepted") for form in FORMS)
        return any(read_record(text).content == record.content for text in texts)


def _grouped(known: Iterable[Known], key: Callable[[Known], Hashable]) -> dict[Hashable, list[Known]]:
    """Files by what they have in common, if anything; what is in force comes last."""
    groups: dict[Hashable, list[Known]] = {}
    for one in sorted(known, key=lambda one: one.decision is not None and one.decision.is_active):
        common = key(one)
        if common not in (None, "", ()):
            groups.setdefault(common, []).append(one)
    return groups


def _file_in(unit: Unit) -> RecordFile | None:
    """The file that a unit of evidence holds. Anybody can tag evidence, below the project with what they like."""
    tags = unit.attributes.get("tags")
    if not isinstance(tags, list | tuple) or _TAG not in tags or unit.level < Level.PROJECT:
        return None
    told = _tagged(tags, _FILE) or ""
    name = told.replace("\\", "/").rpartition("/")[2]
    if not name.isprintable() or name[:1] in {"", "."} or not is_name_of_record(name):
        return None
    record = read_record(unit.content, name)
    return RecordFile(name=name, text=unit.content, record=record, id=unit.id, after=_tagged(tags, _AFTER))


def _tagged(tags: Iterable[object], prefix: str) -> str | None:
    return next((tag.removeprefix(prefix) for tag in tags if isinstance(tag, str) and tag.startswith(prefix)), None)


def imported_by(seat: Seat) -> ImportedRecords:
    return ImportedRecords(_units(seat, "evidence"), _units(seat, "decision"))


def _units(seat: Seat, kind: str) -> Iterator[Unit]:
    after: str | None = None
    while page := seat.units(kind=kind, limit=_PAGE, after=after):
        yield from page
        after = page[-1].id


def may_be_record(path: str) -> bool:
    name = os.path.basename(path)
    return name.lower().endswith((".md", ".markdown")) and is_name_of_record(name) and os.path.isfile(path)


# Who takes the place of whom


class Force(Names):
    HOLDS = "in force"
    ENDED = "no longer in force"
    NEVER = "never in force"


@value
class Place:
    """Where a record stands among the others: `base` is the one that it is the next version of, `newer` are those that
    took its own place."""

    force: Force
    why: str
    base: str | None
    newer: tuple[str, ...]


@value
class Bond:
    """`source type target`, by the names of two files."""

    source: str
    type: RelationType
    target: str


def bonds(records: Mapping[str, Record]) -> set[Bond]:
    """The relations that the records state, whichever side says it."""
    numbers = {str(records[name].number): name for name in sorted(records, reverse=True)}
    stated = set()
    for name, record in records.items():
        for link in record.links:
            target = link.target.replace("\\", "/").rpartition("/")[2]
            other = target if target in records else numbers.get(target)
            active = _PASSIVE.get(link.relation, link.relation)
            if other is None or other == name or active not in _TYPES:
                continue
            source, target = (name, other) if active == link.relation else (other, name)
            stated.add(Bond(source=source, type=_TYPES[active], target=target))
    return stated


def places(records: Mapping[str, Record]) -> dict[str, Place]:
    """The place of every record, each after those it took the place of, otherwise by number."""
    older: dict[str, set[str]] = {name: set() for name in records}
    newer: dict[str, set[str]] = {name: set() for name in records}
    for bond in bonds(records):
        if bond.type is RelationType.SUPERSEDES:
            older[bond.source].add(bond.target)
            newer[bond.target].add(bond.source)

    def by_number(name: str) -> tuple[bool, int, str]:
        return records[name].number is None, records[name].number or 0, name

    # What supersedes in a circle, or stands between two circles, is freed from neither end.
    freed = {*_in_order(older, by_number), *_in_order(newer, by_number)}
    circle = records.keys() - freed
    order = sorted(circle) + _in_order({name: older[name] - circle for name in freed}, by_number)
    decided = {name for name in records if name not in circle and records[name].status in IN_FORCE | ENDED}
    found: dict[str, Place] = {}
    taken: set[str | None] = set()
    for name in order:
        free = [other for other in older[name] if other in decided and other not in taken]
        base = min(free, key=by_number) if free and name in decided else None
        taken.add(base)
        after = tuple(sorted(newer[name] & decided)) if name in decided else ()
        force, why = _standing(records, name, after, newer[name], is_circular=name in circle)
        found[name] = Place(force=force, why=why, base=base, newer=after)
    return found


def _in_order(ahead: Mapping[str, set[str]], key: Callable[[str], tuple[bool, int, str]]) -> list[str]:
    """The names, each after those that are ahead of it; without what waits for a circle."""
    sorter = TopologicalSorter(ahead)
    with suppress(CycleError):
        sorter.prepare()
    order: list[str] = []
    while ready := sorted(sorter.get_ready(), key=key):
        order += ready
        sorter.done(*ready)
    return order


def _standing(
    records: Mapping[str, Record], name: str, after: tuple[str, ...], newer: set[str], *, is_circular: bool
) -> tuple[Force, str]:
    record = records[name]
    if is_circular:
        return Force.NEVER, "superseded in a circle: which came last can't be told"
    if record.status not in IN_FORCE | ENDED:
        return Force.NEVER, record.status
    if after:
        return Force.ENDED, f"superseded by {', '.join(after)}"
    targets = [link.target for link in record.links if link.relation == "superseded_by"]
    if record.status != "superseded" and not targets:
        return (Force.HOLDS, "") if record.status in IN_FORCE else (Force.ENDED, record.status)
    if newer:
        others = ", ".join(f"{other}, which is {records[other].status}" for other in sorted(newer))
        return Force.ENDED, f"superseded by {others}"
    missing = f"superseded by {', '.join(targets)}, which is not here"
    return Force.ENDED, missing if targets else "superseded, it does not say by what"
