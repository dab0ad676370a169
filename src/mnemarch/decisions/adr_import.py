"""What an import does to a memory, file by file, before it does anything: pure, so that it can be argued about."""

from __future__ import annotations

from mnemarch.decisions.adr_matter import level_in, reason_of, text_of
from mnemarch.decisions.adr_succession import Bond, Force, bonds, places
from mnemarch.model.decision import RelationType
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from mnemarch.decisions.adr_book import AdrFile, Book
    from mnemarch.decisions.adr_succession import Place
    from mnemarch.model.decision import Decision, Reason


@value
class Decide:
    """Decide what a file says, as the next version of what stands for the record `revises`, which may be itself."""

    name: str
    text: str
    reason: Reason
    revises: str | None


@value
class End:
    """Take what stands for a record out of force."""

    name: str
    why: str


@value
class Step:
    """What becomes of one file: the acts, in order, and the note on it. `known` is the decision made of it before.

    `former` is the file when it had another name. When the acts and the steps of `newer` are done, the file is read;
    unless it `is_left` to others.
    """

    name: str
    known: Decision | None
    former: AdrFile | None
    acts: tuple[Decide | Bond | End, ...]
    note: str
    newer: tuple[str, ...]
    is_left: bool = False


@value
class Plan:
    """`standing` gives for each record the decision that stands for it before the first step; `gone` are the names of
    files that the folder lacks, and what is in force of them."""

    standing: dict[str, str]
    steps: tuple[Step, ...]
    bonds: tuple[Bond, ...]
    gone: tuple[tuple[str, Decision], ...]


def import_plan(files: Mapping[str, AdrFile], book: Book, names: Collection[str]) -> Plan:
    """How a memory comes to hold what a folder says, whose files are `names`, records or not.

    A file that says nothing new changes nothing that came later.
    """
    records = {name: file.record for name, file in files.items()}
    known = book.known(files)
    planning = _Planning(files, book, known, _held(known, book))
    steps = tuple(map(planning.step, places(records)))
    standing = {name: planning.held.get(name, one).id for name, one in known.items()}
    # Who supersedes whom is what the steps are about.
    stated = [bond for bond in bonds(records) if bond.type is not RelationType.SUPERSEDES]
    ordered = sorted(stated, key=lambda bond: (bond.source, bond.type, bond.target))
    # A folder of which nothing is known is another one.
    gone = book.gone(names, known.values()) if known else ()
    return Plan(standing=standing, steps=steps, bonds=tuple(ordered), gone=tuple(gone))


def _held(known: Mapping[str, Decision], book: Book) -> dict[str, Decision]:
    """What is in force of each record: the latest version, unless one after its own is another record's."""
    owner = {decision.id: name for name, decision in known.items()}
    held: dict[str, Decision] = {}
    for root in {decision.root_id: decision for decision in known.values()}.values():
        versions = book.versions(root)
        later: set[str] = set()
        for one in reversed(versions):
            source = book.source_of(one)
            name = owner.get(one.id) or (source.name if source is not None else None)
            if name is not None:
                if versions[-1].is_active and one.id in owner and later <= {name}:
                    held[name] = versions[-1]
                later.add(name)
    return held


class _Planning:
    """Step by step, with what is in force of each record after the steps so far."""

    def __init__(
        self,
        files: Mapping[str, AdrFile],
        book: Book,
        known: Mapping[str, Decision],
        held: Mapping[str, Decision],
    ) -> None:
        self._files = files
        self._book = book
        self._known = known
        self._former = book.former(files, known)
        self.held = held
        self._in_force = set(held)

    def step(self, place: Place) -> Step:
        name, known = place.name, self._known.get(place.name)
        decide, note = self._decide(place)
        acts: list[Decide | Bond | End] = []
        if decide is not None:
            acts.append(decide)
            self._in_force.discard(decide.revises or "")
            self._in_force.add(name)
        for other in place.older:
            if self._may_end(other, by=name):
                acts.append(self._end(other, f"superseded by {name}"))
                if name in self._in_force:
                    acts.append(Bond(source=name, type=RelationType.SUPERSEDES, target=other))
        # What took its place ends it in its own step: the next version does so by itself.
        if place.force is not Force.HOLDS and not place.newer and self._may_end(name):
            acts.append(self._end(name, place.why))
        is_left = known is None and decide is None and place.force is not Force.NEVER
        return Step(
            name=name,
            known=known,
            former=self._former.get(name),
            acts=tuple(acts),
            note=note,
            newer=place.newer,
            is_left=is_left,
        )

    def _decide(self, place: Place) -> tuple[Decide | None, str]:
        """Whether something is to be decided anew, and what there is to say of the file."""
        name, force, file = place.name, place.force, self._files[place.name]
        told = f"{place.why}: {force}"
        if force is Force.NEVER:
            return None, f"{told}, kept as evidence"
        if name not in self._known:
            if level := level_in(file.record):
                return None, f"holds in a {level} that is not seen from here: not decided"
            base = place.base if place.base in self._in_force else None
            note = "decided" if base is None else f"the next version of {base}"
            return self._decided(file, base), note if force is Force.HOLDS else told
        if force is Force.ENDED:
            return None, told
        held = self.held.get(name)
        if not self._is_news(name) or (held is not None and self._book.says(held, file)):
            is_same = held is not None and held.id == self._known[name].id
            return None, "unchanged" if is_same else "unchanged, and decided otherwise since"
        return self._decided(file, None if held is None else name), "decided anew" if held is None else "revised"

    @staticmethod
    def _decided(file: AdrFile, revises: str | None) -> Decide:
        return Decide(name=file.name, text=text_of(file.record), reason=reason_of(file.record), revises=revises)

    def _is_news(self, name: str) -> bool:
        return self._book.is_news(self._files[name], self._known.get(name))

    def _may_end(self, name: str, by: str = "") -> bool:
        """Whether the folder has a say in what is in force of a record: not if that was decided here since."""
        if name not in self._in_force:
            return False
        known, held = self._known.get(name), self.held.get(name)
        if known is None or held is None or held.id == known.id or self._is_news(name):
            return True
        # What takes its place may have been decided without ending it.
        return bool(by) and (self._is_news(by) or held.id < self._book.read_at(self._files[by], self._known.get(by)))

    def _end(self, name: str, why: str) -> End:
        self._in_force.discard(name)
        return End(name=name, why=why)
