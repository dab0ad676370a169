"""Which records of a folder hold, which took the place of which, and how they bear on each other."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from mnemarch.decisions.adr_words import is_ended, is_in_force
from mnemarch.model.closed import Names
from mnemarch.model.decision import RelationType
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from mnemarch.decisions.adr_record import AdrRecord

    Edges = Mapping[str, Collection[str]]

_RELATIONS = {
    "supersedes": RelationType.SUPERSEDES,
    "depends_on": RelationType.DEPENDS_ON,
    "constrains": RelationType.CONSTRAINS,
    "validates": RelationType.VALIDATES,
    "refines": RelationType.REFINES,
    "amends": RelationType.REFINES,
    "extends": RelationType.REFINES,
    "clarifies": RelationType.REFINES,
    "partially_supersedes": RelationType.REFINES,
}
_INVERSE = {
    "required_by": "depends_on",
    "constrained_by": "constrains",
    "validated_by": "validates",
    "refined_by": "refines",
    "amended_by": "amends",
    "extended_by": "extends",
    "clarified_by": "clarifies",
    "partially_superseded_by": "partially_supersedes",
    "superseded_by": "supersedes",
}


class Force(Names):
    HOLDS = "in force"
    ENDED = "no longer in force"
    NEVER = "never in force"


@value
class Place:
    """Where a record stands among the others: `older` are those that it took the place of, the first as their next
    version where it is `base`; `newer` are those that took its own."""

    name: str
    force: Force
    why: str
    base: str | None
    older: tuple[str, ...]
    newer: tuple[str, ...]


@value
class Bond:
    """`source type target`, by the names of two files."""

    source: str
    type: RelationType
    target: str


def places(records: Mapping[str, AdrRecord]) -> list[Place]:
    """The place of every record, each after those it took the place of, otherwise by number and name."""
    older: dict[str, dict[str, None]] = {name: {} for name in records}
    newer: dict[str, dict[str, None]] = {name: {} for name in records}
    for new, relation, old in _links(records):
        if relation == "supersedes":
            older[new][old] = newer[old][new] = None
    circle = _in_circles(older, newer)
    decided = {name for name, one in records.items() if name not in circle and _was_decided(one)}
    order = list(_in_order(records, older, circle))
    base_of = _bases(records, [name for name in order if name in decided], older)
    found = []
    for name in order:
        force, why = _standing(name, records, newer[name], decided, circle)
        found.append(
            Place(
                name=name,
                force=force,
                why=why,
                base=base_of.get(name),
                older=_among(decided, older[name], records) if name in decided else (),
                newer=_among(decided, newer[name], records) if name in decided else (),
            )
        )
    return found


def bonds(records: Mapping[str, AdrRecord]) -> set[Bond]:
    """The relations that the records state, whichever side says it."""
    return {
        Bond(source=source, type=_RELATIONS[relation], target=target)
        for source, relation, target in _links(records)
        if relation in _RELATIONS
    }


def _links(records: Mapping[str, AdrRecord]) -> Iterator[tuple[str, str, str]]:
    """Every link between two of the records, in the active voice."""
    numbers: dict[int, str] = {}
    for name in sorted(records):
        number = records[name].number
        if number is not None:
            numbers.setdefault(number, name)
    for name, record in records.items():
        for link in record.links:
            other = _found(link.target, records, numbers)
            if other is None or other == name:
                continue
            active = _INVERSE.get(link.relation)
            yield (name, link.relation, other) if active is None else (other, active, name)


def _found(target: str, records: Mapping[str, AdrRecord], numbers: Mapping[int, str]) -> str | None:
    base = target.partition("#")[0].replace("\\", "/").rpartition("/")[2]
    if base in records:
        return base
    return numbers.get(int(base)) if base.isascii() and base.isdigit() else None


def _in_circles(older: Edges, newer: Edges) -> set[str]:
    """What is left when those at either end are taken away, again and again: the circles, and what is between two."""
    left = set(older)
    for ahead, behind in ((older, newer), (newer, older)):
        waits = {name: sum(other in left for other in ahead[name]) for name in left}
        free = [name for name in left if waits[name] == 0]
        while free:
            name = free.pop()
            left.discard(name)
            for other in behind[name]:
                if other in left:
                    waits[other] -= 1
                    if waits[other] == 0:
                        free.append(other)
    return left


def _in_order(records: Mapping[str, AdrRecord], older: Edges, circle: Collection[str]) -> Iterator[str]:
    waits = {name: sum(other not in circle for other in older[name]) if name not in circle else 0 for name in records}
    behind: dict[str, list[str]] = {name: [] for name in records}
    for name in records:
        for other in older[name]:
            behind[other].append(name)
    free = [_by_number(name, records[name]) for name, count in waits.items() if count == 0]
    heapify(free)
    while free:
        *_, name = heappop(free)
        yield name
        for other in behind[name] if name not in circle else ():
            waits[other] -= 1
            if waits[other] == 0 and other not in circle:
                heappush(free, _by_number(other, records[other]))


def _by_number(name: str, record: AdrRecord) -> tuple[bool, int, str]:
    return record.number is None, record.number or 0, name


def _among(decided: Collection[str], names: Collection[str], records: Mapping[str, AdrRecord]) -> tuple[str, ...]:
    return tuple(sorted((name for name in names if name in decided), key=lambda name: _by_number(name, records[name])))


def _was_decided(record: AdrRecord) -> bool:
    return is_in_force(record.status) or is_ended(record.status)


def _bases(records: Mapping[str, AdrRecord], decided: list[str], older: Edges) -> dict[str, str]:
    """Whose next version each record is: a record has one at most, and is followed by one at most."""
    bases: dict[str, str] = {}
    known, taken = set(decided), set()
    for name in decided:
        free = [other for other in _among(known, older[name], records) if other not in taken]
        if free:
            bases[name] = free[0]
            taken.add(free[0])
    return bases


def _standing(
    name: str,
    records: Mapping[str, AdrRecord],
    newer: Collection[str],
    decided: Collection[str],
    circle: Collection[str],
) -> tuple[Force, str]:
    record = records[name]
    if name in circle:
        return Force.NEVER, "superseded in a circle: which came last can't be told"
    if not _was_decided(record):
        return Force.NEVER, record.status
    successors = [other for other in newer if other in decided]
    if successors:
        return Force.ENDED, f"superseded by {', '.join(sorted(successors))}"
    links = [link for link in record.links if link.relation == "superseded_by"]
    if record.status == "superseded" or links:
        return Force.ENDED, _unfounded(records, newer, [link.target for link in links])
    return (Force.HOLDS, "") if is_in_force(record.status) else (Force.ENDED, record.status)


def _unfounded(records: Mapping[str, AdrRecord], newer: Collection[str], targets: list[str]) -> str:
    """Why there is nothing in the place of a superseded record."""
    if newer:
        return "superseded by " + ", ".join(f"{name}, which is {records[name].status}" for name in sorted(newer))
    return (
        f"superseded by {', '.join(targets)}, which is not here" if targets else "superseded, it does not say by what"
    )
