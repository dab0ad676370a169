"""Imports a folder of Markdown decision records into a memory, and exports a memory's decisions to one."""

from __future__ import annotations

import os

from mnemarch.errors import Conflict, InvalidInput, NotAllowed, NotFound, StoreUnavailable
from mnemarch.files import write_whole
from mnemarch.interfaces.adr.imported import Bond, Force, ImportedRecords, RecordFile, bonds, places, tags_for
from mnemarch.interfaces.adr.phrases import IN_FORCE
from mnemarch.interfaces.adr.record import is_name_of_record, number_of, read_record, record_in, titled
from mnemarch.interfaces.adr.writing import file_name, new_record, reference, restated
from mnemarch.model.caller import Level
from mnemarch.model.decision import RelationType
from mnemarch.model.outcome import Verdict
from mnemarch.model.value import value
from mnemarch.text.secrets import redacted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from mnemarch.interfaces.adr.imported import Known, Place
    from mnemarch.interfaces.adr.record import Record
    from mnemarch.interfaces.adr.writing import Mention
    from mnemarch.model.decision import Decision
    from mnemarch.model.unit import Unit
    from mnemarch.seat import Seat

_PAGE = 1_000
_FILE_BYTES_MAX = 1_048_576


@value
class AdrOutcome:
    """What became of one file."""

    name: str
    decision_id: str | None
    note: str


def _imported_by(seat: Seat) -> ImportedRecords:
    return ImportedRecords(_units(seat, "evidence"), _units(seat, "decision"))


def _units(seat: Seat, kind: str) -> Iterator[Unit]:
    after: str | None = None
    while page := seat.units(kind=kind, limit=_PAGE, after=after):
        yield from page
        after = page[-1].id


# Import


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
    for number, name in enumerate(work.places, start=1):
        work.decide(name)
        if progress is not None:
            progress(number)
    for name in work.places:
        work.end(name)
    work.relate(bonds({name: file.record for name, file in files.items()}))
    for name in work.places:
        work.keep_reading(name)
    return [*unread, *work.outcomes(), *work.gone(names)]


def _records_in(folder: str, names: Iterable[str]) -> tuple[dict[str, RecordFile], list[AdrOutcome]]:
    """The records of a folder, and what could not be read."""
    files: dict[str, RecordFile] = {}
    unread = []
    for name in names:
        path = os.path.join(folder, name)
        if not _may_be_record(path):
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
            files[name] = RecordFile(name=name, text=text, record=record)
    return files, unread


def _may_be_record(path: str) -> bool:
    name = os.path.basename(path)
    return name.lower().endswith((".md", ".markdown")) and is_name_of_record(name) and os.path.isfile(path)


class _Import:
    """An import at work: first it decides, then it takes out of force, then it relates, then it keeps what it read.

    It compares where each record stood when it was taken over last with where it stands now: what did not change in
    the folder changes nothing that was decided here since.
    """

    def __init__(self, seat: Seat, files: Mapping[str, RecordFile], override: str | None) -> None:
        self._seat = seat
        self._files = files
        self._override = override
        self._imported = _imported_by(seat)
        self._known = self._imported.matched(files)
        self._held = self._imported.held(self._known)
        self.places = places({name: file.record for name, file in files.items()})
        self._before = places({one.name: one.record for one in self._known.values() if one.name})
        self._in_force = {name: one.id for name, one in self._held.items()}
        self._ids = {name: one.decision.id for name, one in self._known.items() if one.decision is not None}
        self._notes: dict[str, list[str]] = {name: [] for name in self.places}
        self._decided: set[str] = set()
        self._undone: set[str] = set()
        self._not_ours: set[str] = set()

    def outcomes(self) -> Iterator[AdrOutcome]:
        for name, notes in sorted(self._notes.items()):
            yield AdrOutcome(name, self._ids.get(name), "; ".join(notes))

    def gone(self, names: Sequence[str]) -> Iterator[AdrOutcome]:
        """What is in force of files that are no longer there. A folder of which nothing is known is another one."""
        matched = set(self._known.values())
        for name, known in sorted(self._imported.files.items()) if matched else ():
            if name not in names and known not in matched and known.decision is not None and known.decision.is_active:
                yield AdrOutcome(name, known.decision.id, "no longer in the folder; still in force")

    def decide(self, name: str) -> None:
        """Decide what a record says, if that is to be decided."""
        note, is_to_decide, base = self._choice(name, self.places[name])
        self._notes[name].append(note)
        if not is_to_decide:
            return
        file, known = self._files[name], self._known.get(name)
        try:
            if known is not None and known.name and known.name != name:
                # That the file was renamed, before it is another version.
                self._keep(name, known.text, known.at)
            evidence = self._keep(name, file.text)
        except InvalidInput as error:
            self._undone.add(name)
            self._notes[name] = [f"not taken over: {error.message}"]
            return
        desk = self._seat.decisions
        revises = None if base is None else self._in_force[base]
        try:
            proposal = desk.propose(file.record.text, reason=file.record.reason, evidence=[evidence], revises=revises)
            is_blocked = proposal.guardian.type is Verdict.BLOCK
            made = desk.commit(proposal, override=self._override if is_blocked else None)
        except (Conflict, InvalidInput, NotAllowed, NotFound) as error:
            self._refuse(name, error.message)
            return
        self._in_force.pop(base or "", None)
        self._in_force[name] = self._ids[name] = made.id
        self._decided.add(name)

    def _choice(self, name: str, place: Place) -> tuple[str, bool, str | None]:
        """What to say of a file, whether its record is to be decided, and the record that it is the next version of."""
        record, known = self._files[name].record, self._known.get(name)
        told = f"{place.why}: {place.force}"
        if place.force is Force.NEVER:
            return f"{told}, kept as evidence", False, None
        if known is None or known.decision is None:
            if record.level:
                self._not_ours.add(name)
                return f"holds in a {record.level} that is not seen from here: not decided", False, None
            base = place.base if place.base in self._in_force else None
            note = "decided" if base is None else f"the next version of {base}"
            return note if place.force is Force.HOLDS else told, True, base
        if place.force is Force.ENDED:
            return told, False, None
        held = self._held.get(name)
        if not self._is_changed(name) or (held is not None and self._imported.says(held, record)):
            is_same = held is not None and held.id == known.decision.id
            return "unchanged" if is_same else "unchanged, and decided otherwise since", False, None
        return ("decided anew", True, None) if held is None else ("revised", True, name)

    def _is_changed(self, name: str) -> bool:
        """Whether a record decides something else than when it was taken over last, or came in or out of force."""
        known, record, force = self._known[name], self._files[name].record, self.places[name].force
        if known.name:
            return known.record.content != record.content or self._before[known.name].force is not force
        assert known.decision is not None
        is_ended = force is not Force.HOLDS and known.decision.is_active
        return is_ended or not self._imported.says(known.decision, record)

    def end(self, name: str) -> None:
        """Take a record out of force that the folder says is not; a next version did so by itself."""
        place = self.places[name]
        if place.force is Force.HOLDS or name not in self._in_force or not self._may_end(name, place):
            return
        if self._undone.intersection(place.newer):
            return
        try:
            self._seat.reject(self._in_force[name], place.why)
        except (Conflict, InvalidInput, NotAllowed, NotFound) as error:
            self._refuse(name, error.message)
            return
        del self._in_force[name]
        for other in place.newer:
            self._relate(Bond(source=other, type=RelationType.SUPERSEDES, target=name))

    def _may_end(self, name: str, place: Place) -> bool:
        """Whether the folder has a say in what is in force of a record: not if that was decided here since."""
        held, known = self._held.get(name), self._known.get(name)
        if held is None or known is None or known.decision is None or held.id == known.decision.id:
            return True
        return self._is_changed(name) or any(held.id < self._ids.get(other, "") for other in place.newer)

    def relate(self, stated: Iterable[Bond]) -> None:
        """Who supersedes whom is what was decided and ended; all other relations are stated here."""
        for bond in sorted(stated, key=lambda bond: (bond.source, bond.type, bond.target)):
            if bond.type is not RelationType.SUPERSEDES:
                self._relate(bond)

    def _relate(self, bond: Bond) -> None:
        source, target = self._ids.get(bond.source), self._ids.get(bond.target)
        try:
            if source is not None and target is not None:
                self._seat.decisions.relate(source, bond.type, target)
        except (InvalidInput, NotFound):
            pass  # Both are one decision, or nothing is in force of one.
        except NotAllowed as error:
            self._notes[bond.source].append(error.message)

    def keep_reading(self, name: str) -> None:
        """Keep what a file says as what it said last, once all is done that it asks for. A decision tells by itself."""
        file, known = self._files[name], self._known.get(name)
        if name in self._decided | self._not_ours or self._undone.intersection((name, *self.places[name].newer)):
            return
        if known is not None and (known.name, known.text) == (name, file.text):
            return
        if known is not None and not known.name and file.record.mark and not self._is_changed(name):
            return  # It was exported from here, and is no evidence of anything.
        last = "" if known is None else max(known.at, known.decision.id if known.decision else "")
        try:
            self._keep(name, file.text, last)
        except InvalidInput as error:
            self._notes[name].append(f"not taken over: {error.message}")

    def _refuse(self, name: str, message: str) -> None:
        self._undone.add(name)
        self._notes[name].append(f"not done: {message}")

    def _keep(self, name: str, text: str, after: str | None = None) -> str:
        return self._seat.decisions.add_evidence(text, tags=tags_for(name, after), level=Level.PROJECT).id


# Export


@value
class _Draft:
    """A record to be written. `text` is what was imported; a decision that was made here has none."""

    name: str
    number: int | None
    form: str
    text: str
    decision: Decision

    @property
    def record(self) -> Record:
        return read_record(self.text or self.written("accepted", ()) or "", self.name)

    @property
    def label(self) -> str:
        title = self.record.title
        return title if self.record.number is None else f"{self.record.number}. {title}"

    def written(self, status: str, mentions: Sequence[Mention]) -> str | None:
        if not self.text:
            return new_record(self.decision, self.number, self.form, status, mentions)
        return restated(self.text, status, mentions) if mentions or status != self.record.status else self.text


def export_folder(seat: Seat, folder: str, form: str = "") -> list[AdrOutcome]:
    """Write every decision that this seat sees as a record; what was imported keeps its text, but for its status.

    A file that somebody changed since is left as it is. Each file is written whole or stays as it was.
    """
    imported, there = _imported_by(seat), _as_they_are(folder)
    drafts = _drafts(imported, form or "nygard", there)
    named = {draft.name: draft for draft in drafts.values()}
    records = {name: draft.record for name, draft in named.items()}
    forces = {name: place.force for name, place in places(records).items()}
    known = {*_followed(imported, drafts), *_related(seat, imported, drafts)}
    links = _links_for(known, named, bonds(records))
    outcomes = []
    for file in imported.files.values():
        if file.decision is None:
            is_ours = file.name not in there or there[file.name].text == file.text
            outcomes.append(_put(folder, file.name, file.text if is_ours else "", None))
    for name, draft in named.items():
        told = links.get(name, [])
        mentions = [(relation, reference(named[other].label, other)) for relation, other in told]
        text = draft.written(_status(draft, forces[name], told), mentions)
        if text is None:
            note = "left as it is: its status can't be changed in place"
            outcomes.append(AdrOutcome(name, draft.decision.id, note))
        else:
            is_ours = name not in there or _is_ours(there[name], draft, text, named)
            outcomes.append(_put(folder, name, text if is_ours else "", draft.decision.id))
    return sorted(outcomes, key=lambda outcome: outcome.name)


def _as_they_are(folder: str) -> dict[str, RecordFile]:
    """The records of the folder that is exported to, which is made if it is not there."""
    files = {}
    try:
        os.makedirs(folder, exist_ok=True)
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            if _may_be_record(path):
                with open(path, encoding="utf-8", errors="replace", newline="") as file:
                    text = file.read()
                files[name] = RecordFile(name=name, text=text, record=read_record(text, name))
    except (FileExistsError, NotADirectoryError):
        raise InvalidInput(f"{folder!r} is no folder.", hint="Name a folder to write the records to.") from None
    except OSError as error:
        raise _unwritable(folder, error) from None
    return files


def _put(folder: str, name: str, text: str, decision_id: str | None) -> AdrOutcome:
    if not text:
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


def _drafts(imported: ImportedRecords, form: str, there: Mapping[str, RecordFile]) -> dict[str, _Draft]:
    """By decision: the latest that was made from each file, and all that were made here, each in the file that it has
    in the folder by now."""
    latest = {known.decision.id: known for known in imported.files.values() if known.decision is not None}
    present = {known.decision.id: there[name] for name, known in imported.matched(there).items() if known.decision}
    edited = {one.unit.supersedes: imported.file_of[one.id] for one in imported.decisions.values() if one.id in latest}
    taken = [number_of(name) for name in (*there, *(file.name for file in imported.read.values()))]
    taken += [file.record.number for file in (*there.values(), *imported.read.values())]
    number = max((each for each in taken if each is not None), default=0)
    drafts = {}
    for one in imported.decisions.values():
        known, file = latest.get(one.id), present.get(one.id)
        if known is not None:
            name, text = file.name if file else known.name, imported.text_of(known)
            drafts[one.id] = _Draft(name=name, number=None, form="", text=text, decision=one)
        elif file is not None:
            drafts[one.id] = _Draft(name=file.name, number=file.record.number, form=form, text="", decision=one)
        elif one.is_active or (one.id not in imported.made_from and not _is_edited(one, edited.get(one.id))):
            number += 1
            name = file_name(number, titled(one.text.strip().partition("\n")[0]))
            drafts[one.id] = _Draft(name=name, number=number, form=form, text="", decision=one)
    return drafts


def _is_edited(one: Decision, new: Known | None) -> bool:
    """Whether the record of the next version is the same, edited, and no other that took its place."""
    return new is not None and (new.record.mark == one.id or new.record.title == one.text.partition("\n")[0])


def _followed(imported: ImportedRecords, drafts: Mapping[str, _Draft]) -> Iterator[Bond]:
    """Which record is the next version of which."""
    for one in imported.decisions.values():
        new, old = drafts.get(one.id), drafts.get(one.unit.supersedes or "")
        if new is not None and old is not None and new.name != old.name:
            yield Bond(source=new.name, type=RelationType.SUPERSEDES, target=old.name)


def _related(seat: Seat, imported: ImportedRecords, drafts: Mapping[str, _Draft]) -> Iterator[Bond]:
    """Which record bears on which: the latest of a decision stands for it."""
    latest = {one.root_id: drafts[one.id] for one in imported.decisions.values() if one.id in drafts}
    active = [one.id for one in imported.decisions.values() if one.is_active]
    for relation in (relation for each in active for relation in seat.decisions.relations(each)):
        source, target = latest.get(relation.source), latest.get(relation.target)
        # A record that supersedes another ends it, and this one may go on.
        goes_on = relation.type is RelationType.SUPERSEDES and target is not None and target.decision.is_active
        if source is not None and target is not None and not goes_on:
            yield Bond(source=source.name, type=relation.type, target=target.name)


def _links_for(
    known: Iterable[Bond], drafts: Mapping[str, _Draft], stated: set[Bond]
) -> dict[str, list[tuple[str, str]]]:
    """The links that each record lacks. What was made here tells all; what was imported, what no record tells yet.

    Who supersedes and who is superseded both say so. A relation belongs to a decision: any of its records may tell.
    """
    root = {name: draft.decision.root_id for name, draft in drafts.items()}
    told = {(root[bond.source], bond.type, root[bond.target]) for bond in stated}
    links: dict[str, list[tuple[str, str]]] = {}
    for bond in sorted(known, key=lambda bond: (bond.target, bond.type, bond.source)):
        sides = [(str(bond.type).lower(), bond.source, bond.target)]
        if bond.type is RelationType.SUPERSEDES:
            sides.append(("superseded_by", bond.target, bond.source))
        ends = (root[bond.source], root[bond.target])
        is_told = bond in stated or (ends[0] != ends[1] and (ends[0], bond.type, ends[1]) in told)
        for relation, name, other in sides:
            if not drafts[name].text or not is_told:
                links.setdefault(name, []).append((relation, other))
    return links


def _status(draft: _Draft, force: Force, links: Sequence[tuple[str, str]]) -> str:
    """The status that the record has, unless the memory knows better."""
    status = draft.record.status
    if draft.decision.is_active:
        return status if status in IN_FORCE else "accepted"
    if force is Force.HOLDS or not draft.text:
        return "superseded" if any(relation == "superseded_by" for relation, _ in links) else "deprecated"
    return status


def _is_ours(file: RecordFile, draft: _Draft, new: str, drafts: Mapping[str, _Draft]) -> bool:
    """Whether a file is as it was imported or exported, so that no word is lost when it is written anew.

    It is, if it says of status and links what it said before or will say, and the rest to the letter as we would.
    """
    if file.text in {draft.text, new}:
        return True
    source, coming, old = draft.record, read_record(new, draft.name), file.record
    if old.status not in {coming.status, source.status or "accepted"}:
        return False
    added = [link for link in old.links if link not in source.links]
    if not {*added} <= {*coming.links} or any(link.target not in drafts for link in added):
        return False
    mentions = [(link.relation, reference(drafts[link.target].label, link.target)) for link in added]
    return draft.written(old.status, mentions) == file.text
