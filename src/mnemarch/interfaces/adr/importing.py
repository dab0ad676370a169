"""Imports a folder of Markdown decision records into a memory."""

from __future__ import annotations

import os

from mnemarch.errors import Conflict, InvalidInput, NotAllowed, NotFound
from mnemarch.interfaces.adr.imported import ImportedRecords, RecordFile, bonds, places, tags_for
from mnemarch.interfaces.adr.record import Force, is_as_exported, is_name_of_record, record_in
from mnemarch.model.caller import Level
from mnemarch.model.decision import Decision, RelationType
from mnemarch.model.outcome import Verdict
from mnemarch.model.value import value
from mnemarch.text.secrets import redacted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from mnemarch.errors import MnemarchError
    from mnemarch.interfaces.adr.imported import Place
    from mnemarch.seat import Seat

_FILE_BYTES_MAX = 1_048_576


@value
class AdrOutcome:
    """What became of one file."""

    name: str
    decision_id: str | None
    note: str


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
    for source, relation, target in sorted(bonds({name: file.record for name, file in files.items()})):
        if relation != "supersedes":
            work.relate(source, relation, target)
    for name in work.places:
        work.keep_reading(name)
    return [*unread, *work.outcomes(), *work.gone(names)]


def _records_in(folder: str, names: Iterable[str]) -> tuple[dict[str, RecordFile], list[AdrOutcome]]:
    """The records of a folder, and what could not be read."""
    files: dict[str, RecordFile] = {}
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
            files[name] = RecordFile(name=name, text=text, record=record)
    return files, unread


class _Import:
    """An import at work: first it decides, then it takes out of force, then it relates, then it keeps what it read.

    What did not change in the folder changes nothing that was decided here since.
    """

    def __init__(self, seat: Seat, files: Mapping[str, RecordFile], override: str | None) -> None:
        self._seat = seat
        self._files = files
        self._override = override
        self._imported = ImportedRecords(seat)
        self._known = self._imported.matched(files)
        self._ids = {name: one.decision.id for name, one in self._known.items() if one.decision is not None}
        owned = set(self._ids.values())
        self._current = {
            name: one for name, known in self._known.items() if (one := self._imported.in_force(known, owned))
        }
        self._in_force = {name: one.id for name, one in self._current.items()}
        self.places = places({name: file.record for name, file in files.items()})
        self._notes: dict[str, list[str]] = {name: [] for name in self.places}
        # What needs no reading: its decision tells what the file said, or it was not taken over.
        self._settled: set[str] = set()
        self._undone: set[str] = set()

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
        file, known, desk = self._files[name], self._known.get(name), self._seat.decisions
        revises = None if base is None else self._in_force[base]
        try:
            if known is not None and known.name and known.name != name:
                self._keep(name, known.text, known.at)  # It was renamed, before it is another version.
            evidence = self._keep(name, file.text)
        except InvalidInput as error:
            self._refuse(name, error)
            return
        try:
            proposal = desk.propose(file.record.text, reason=file.record.reason, evidence=[evidence], revises=revises)
            desk.check(proposal)
            is_blocked = proposal.guardian.type is Verdict.BLOCK or bool(proposal.conflicts)
            made = desk.commit(proposal, override=self._override if is_blocked else None)
            assert isinstance(made, Decision), "who may not decide was refused above"
        except (Conflict, InvalidInput, NotAllowed, NotFound) as error:
            self._refuse(name, error)
            return
        self._in_force.pop(base or "", None)
        self._in_force[name] = self._ids[name] = made.id
        self._settled.add(name)

    def _choice(self, name: str, place: Place) -> tuple[str, bool, str | None]:
        """What to say of a file, whether its record is to be decided, and the record that it is the next version of."""
        record, known = self._files[name].record, self._known.get(name)
        standing = f"{place.why}: {place.force}"
        if place.force is Force.NEVER:
            return f"{standing}, kept as evidence", False, None
        if known is None or known.decision is None:
            if record.level:
                self._settled.add(name)
                return f"holds in a {record.level} that is not seen from here: not decided", False, None
            base = next((older for older in place.older if older in self._in_force), None)
            note = "decided" if base is None else f"the next version of {base}"
            return note if place.force is Force.HOLDS else standing, True, base
        if place.force is Force.ENDED:
            return standing, False, None
        current = self._current.get(name)
        if not self._is_changed(name) or (current is not None and self._imported.says(current, record)):
            is_same = current is not None and current.id == known.decision.id
            return "unchanged" if is_same else "unchanged, and decided otherwise since", False, None
        return ("decided anew", True, None) if current is None else ("revised", True, name)

    def _is_changed(self, name: str) -> bool:
        """Whether a record decides something else than when it was taken over last, or says that it came in or out of
        force."""
        known, record = self._known[name], self._files[name].record
        if known.name:
            return (known.record.content, known.record.force) != (record.content, record.force)
        assert known.decision is not None
        is_ended = record.force is not Force.HOLDS and known.decision.is_active
        return is_ended or not self._imported.says(known.decision, record)

    def end(self, name: str) -> None:
        """Take a record out of force that the folder says is not; a next version did so by itself."""
        place, current, decided = self.places[name], self._current.get(name), self._ids.get(name)
        if place.force is Force.HOLDS or name not in self._in_force or self._undone.intersection(place.newer):
            return
        if current is not None and current.id != decided and not self._is_changed(name):
            self._notes[name].append("what was decided here since still holds")
            return
        try:
            self._seat.reject(self._in_force.pop(name), place.why)
        except (Conflict, InvalidInput, NotAllowed, NotFound) as error:
            self._refuse(name, error)
            return
        for newer in place.newer:
            self.relate(newer, "supersedes", name)

    def relate(self, source: str, relation: str, target: str) -> None:
        source_id, target_id = self._ids.get(source), self._ids.get(target)
        try:
            if source_id is not None and target_id is not None:
                self._seat.decisions.relate(source_id, RelationType(relation.upper()), target_id)
        except (InvalidInput, NotFound):
            pass  # Both are one decision, or nothing is in force of one.
        except NotAllowed as error:
            self._notes[source].append(error.message)

    def keep_reading(self, name: str) -> None:
        """Keep what a file says as what it said last, once all is done that it asks for."""
        file, known = self._files[name], self._known.get(name)
        if name in self._settled or self._undone.intersection((name, *self.places[name].newer)):
            return
        if known is not None and (known.name, known.text) == (name, file.text):
            return
        if known is not None and not known.name and is_as_exported(file.text):
            return  # It was exported from here, and is no evidence of anything.
        last = "" if known is None else max(known.at, known.decision.id if known.decision else "")
        try:
            self._keep(name, file.text, last)
        except InvalidInput as error:
            self._refuse(name, error)

    def _refuse(self, name: str, error: MnemarchError) -> None:
        self._undone.add(name)
        self._notes[name] = [f"not done: {error.message}"]

    def _keep(self, name: str, text: str, after: str | None = None) -> str:
        return self._seat.decisions.add_evidence(text, tags=tags_for(name, after), level=Level.PROJECT).id
