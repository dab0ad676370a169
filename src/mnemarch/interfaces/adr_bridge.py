"""Decisions and folders of Markdown decision records (ADR), both ways; what the forms hold comes back as it was."""

from __future__ import annotations

import os

from mnemarch.decisions.adr import is_name_of_record, record_in
from mnemarch.decisions.adr_book import AdrFile, Book, tags_for
from mnemarch.decisions.adr_export import folder_of
from mnemarch.decisions.adr_import import Decide, End, import_plan
from mnemarch.decisions.adr_read import read_adr
from mnemarch.errors import Conflict, InvalidInput, NotAllowed, NotFound, StoreUnavailable
from mnemarch.files import write_whole
from mnemarch.model.caller import Level
from mnemarch.model.outcome import Verdict
from mnemarch.model.value import replace, value
from mnemarch.text.secrets import redacted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mnemarch.decisions.adr_import import Step
    from mnemarch.decisions.adr_succession import Bond
    from mnemarch.model.decision import Relation
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


def import_folder(
    seat: Seat, folder: str, progress: Callable[[int], None] | None = None, *, override: str | None = None
) -> list[AdrOutcome]:
    """Take over every record of a folder. Who imports it again, from wherever, changes only what the files say anew.

    What the guardian blocks is done if a person says why (`override`); what was not done is tried again next time.
    """
    names = _names_in(folder)
    files, outcomes = _read(folder, names)
    book = Book(_units(seat, "evidence"), _units(seat, "decision"))
    plan = import_plan(files, book, names)
    work = _Import(seat, files, book, plan.standing, override)
    for number, step in enumerate(plan.steps, start=1):
        outcomes.append(work.taken(step))
        if progress is not None:
            progress(number)
    troubles = {step.name: trouble for step in plan.steps if (trouble := work.read(step))}
    troubles |= {bond.source: trouble for bond in plan.bonds if (trouble := work.related(bond))}
    outcomes = [
        replace(one, note=f"{one.note}; {troubles[one.name]}") if one.name in troubles else one for one in outcomes
    ]
    return outcomes + [AdrOutcome(name, one.id, "no longer in the folder; still in force") for name, one in plan.gone]


def _names_in(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError as error:
        raise InvalidInput(
            f"{folder!r} can't be read: {error.strerror}.", hint="Give a folder of Markdown files."
        ) from None


def _read(folder: str, names: list[str]) -> tuple[dict[str, AdrFile], list[AdrOutcome]]:
    """The records of a folder, and what could not be read."""
    files: dict[str, AdrFile] = {}
    unread = []
    for name in names:
        if not _may_be_record(folder, name):
            continue
        try:
            text = _text(os.path.join(folder, name))
        except (OSError, ValueError) as error:
            unread.append(AdrOutcome(name, None, f"not read: {error}"))
            continue
        record = record_in(text, name)
        if record is not None:
            files[name] = AdrFile(name=name, text=text, record=record)
    return files, unread


def _may_be_record(folder: str, name: str) -> bool:
    is_markdown = name.lower().endswith((".md", ".markdown")) and is_name_of_record(name)
    return is_markdown and os.path.isfile(os.path.join(folder, name))


def _text(path: str) -> str:
    """The file as the memory would keep it, which keeps no secrets."""
    if os.path.getsize(path) > _FILE_BYTES_MAX:
        raise ValueError(f"it has more than {_FILE_BYTES_MAX} bytes")
    with open(path, encoding="utf-8", newline="") as file:
        return redacted(file.read())[0]


def _units(seat: Seat, kind: str) -> Iterator[Unit]:
    after: str | None = None
    while page := seat.units(kind=kind, limit=_PAGE, after=after):
        yield from page
        after = page[-1].id


class _Import:
    """An import at work: `standing` is the decision that stands for each record by now."""

    def __init__(
        self, seat: Seat, files: dict[str, AdrFile], book: Book, standing: dict[str, str], override: str | None
    ) -> None:
        self._seat = seat
        self._files = files
        self._book = book
        self._standing = dict(standing)
        self._override = override
        self._decided: set[str] = set()
        self._undone: set[str] = set()

    def taken(self, step: Step) -> AdrOutcome:
        """One step, as far as it is allowed: what somebody changed meanwhile, or guards, is left to them."""
        made, note = None if step.known is None else step.known.id, step.note
        try:
            evidence = self._evidence(step)
        except InvalidInput as error:
            self._undone.add(step.name)
            return AdrOutcome(step.name, made, f"not taken over: {error.message}")
        try:
            for act in step.acts:
                if isinstance(act, Decide):
                    made = self._standing[step.name] = self._decide(act, evidence)
                    self._decided.add(step.name)
                elif isinstance(act, End):
                    self._seat.reject(self._standing[act.name], act.why)
                else:
                    self.related(act)
        except (Conflict, InvalidInput, NotAllowed, NotFound) as error:
            self._undone.add(step.name)
            note = f"{note}; not done: {error.message}"
        return AdrOutcome(step.name, made, note)

    def _evidence(self, step: Step) -> str:
        """What the file is kept in that something is to be decided from, and before that, that it was renamed."""
        if not any(isinstance(act, Decide) for act in step.acts):
            return ""
        file = self._files[step.name]
        if step.former is not None:
            self._keep(file.name, step.former.text, self._came_last(step))
        return self._book.evidence_of(file.name, file.text) or self._keep(file.name, file.text)

    def _decide(self, act: Decide, evidence: str) -> str:
        desk = self._seat.decisions
        revises = None if act.revises is None else self._standing.get(act.revises)
        proposal = desk.propose(act.text, reason=act.reason, evidence=[evidence], revises=revises)
        is_blocked = proposal.guardian.type is Verdict.BLOCK
        return desk.commit(proposal, override=self._override if is_blocked else None).id

    def read(self, step: Step) -> str:
        """Keep what a file says as what it said last, once all is done that it asks for; gives what forbids it.

        What was decided from it tells that by itself.
        """
        file = self._files[step.name]
        if step.is_left or step.name in self._decided or self._undone.intersection((step.name, *step.newer)):
            return ""
        if self._book.is_read(file) or (not step.acts and self._book.is_own(file)):
            return ""
        try:
            self._keep(file.name, file.text, self._came_last(step))
        except InvalidInput as error:
            return f"not taken over: {error.message}"
        return ""

    def _came_last(self, step: Step) -> str:
        before = "" if step.former is None else self._book.read_at(step.former)
        return max(before, self._book.read_at(self._files[step.name], step.known))

    def _keep(self, name: str, text: str, after: str | None = None) -> str:
        return self._seat.decisions.add_evidence(text, tags=tags_for(name, after), level=Level.PROJECT).id

    def related(self, bond: Bond) -> str:
        """Relate two records, where something is in force of both and not the same; gives what forbids it."""
        source, target = self._standing.get(bond.source), self._standing.get(bond.target)
        try:
            if source is not None and target is not None:
                self._seat.decisions.relate(source, bond.type, target)
        except (InvalidInput, NotFound):
            pass
        except NotAllowed as error:
            return error.message
        return ""


# The other way


def export_folder(seat: Seat, folder: str, form: str = "") -> list[AdrOutcome]:
    """Write every decision that this seat sees as a record; what was imported keeps its text, but for its status.

    A file that somebody changed since is left as it is. Each file is written whole or stays as it was.
    """
    book = Book(_units(seat, "evidence"), _units(seat, "decision"))
    there = _as_they_are(folder)
    sheets = folder_of(book, _relations(seat, book), form, there)
    for sheet in sheets:
        if not sheet.is_other:
            _write(os.path.join(folder, sheet.name), sheet.text)
    left = "left as it is: it was changed there since; import it first"
    return [AdrOutcome(one.name, one.decision, left if one.is_other else "written") for one in sheets]


def _as_they_are(folder: str) -> dict[str, AdrFile]:
    """The records of the folder that is exported to, which is made if it is not there."""
    try:
        os.makedirs(folder, exist_ok=True)
        return {name: _as_it_is(folder, name) for name in sorted(os.listdir(folder)) if _may_be_record(folder, name)}
    except (FileExistsError, NotADirectoryError):
        raise InvalidInput(f"{folder!r} is no folder.", hint="Name a folder to write the records to.") from None
    except OSError as error:
        raise _unwritable(folder, error) from None


def _as_it_is(folder: str, name: str) -> AdrFile:
    with open(os.path.join(folder, name), encoding="utf-8", errors="replace", newline="") as file:
        text = file.read()
    return AdrFile(name=name, text=text, record=read_adr(text, name))


def _write(path: str, text: str) -> None:
    try:
        write_whole(path, text)
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: str, error: OSError) -> StoreUnavailable:
    return StoreUnavailable(
        f"{path!r} can't be written: {error.strerror}.",
        hint="Check the disk and the folder's rights, then export again; no file was left half written.",
    )


def _relations(seat: Seat, book: Book) -> Iterator[Relation]:
    for decision in book.decisions:
        if decision.is_active:
            yield from seat.decisions.relations(decision.id)
