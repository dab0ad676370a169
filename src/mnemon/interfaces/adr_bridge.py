"""Decisions and folders of Markdown decision records (ADR), both ways; what the forms hold comes back as it was."""

from __future__ import annotations

import os

from mnemon.decisions.adr import is_name_of_record, record_in
from mnemon.decisions.adr_book import AdrFile, Book, tags_for
from mnemon.decisions.adr_export import folder_of
from mnemon.decisions.adr_import import Decide, End, import_plan
from mnemon.errors import Conflict, InvalidInput, NotAllowed, NotFound
from mnemon.model.scope import Level
from mnemon.model.value import replace, value
from mnemon.text.secrets import redacted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mnemon.decisions.adr_import import Step
    from mnemon.decisions.adr_succession import Bond
    from mnemon.memory import Seat
    from mnemon.model.decision import Relation
    from mnemon.model.unit import Unit

_PAGE = 1_000
_FILE_BYTES_MAX = 1_048_576


@value
class AdrOutcome:
    """What became of one file."""

    name: str
    decision_id: str | None
    note: str


def import_folder(seat: Seat, folder: str, progress: Callable[[int], None] | None = None) -> list[AdrOutcome]:
    """Take over every record of a folder. Who imports it again, from wherever, changes only what the files say anew."""
    files, outcomes = _read(folder)
    book = Book(_units(seat, "evidence"), _units(seat, "decision"))
    kept: dict[str, AdrFile] = {}
    for name, file in files.items():
        try:
            evidence = book.evidence_of(name, file.text) or ("" if book.is_own(file) else _keep(seat, file))
            kept[name] = replace(file, evidence=evidence)
        except InvalidInput as error:
            outcomes.append(AdrOutcome(name, None, f"not taken over: {error.message}"))
    plan = import_plan(kept, book)
    work = _Import(seat, kept, plan.standing)
    for number, step in enumerate(plan.steps, start=1):
        outcomes.append(work.taken(step))
        if progress is not None:
            progress(number)
    troubles = {bond.source: trouble for bond in plan.bonds if (trouble := work.related(bond))}
    return [replace(one, note=f"{one.note}; {troubles[one.name]}") if one.name in troubles else one for one in outcomes]


def _read(folder: str) -> tuple[dict[str, AdrFile], list[AdrOutcome]]:
    """The records of a folder, and what could not be read."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise InvalidInput(
            f"{folder!r} can't be read: {error.strerror}.", hint="Give a folder of Markdown files."
        ) from None
    files: dict[str, AdrFile] = {}
    unread = []
    for name in names:
        path = os.path.join(folder, name)
        if not name.lower().endswith((".md", ".markdown")) or not is_name_of_record(name) or not os.path.isfile(path):
            continue
        try:
            text = _text(path)
        except (OSError, ValueError) as error:
            unread.append(AdrOutcome(name, None, f"not read: {error}"))
            continue
        record = record_in(text, name)
        if record is not None:
            files[name] = AdrFile(name=name, text=text, record=record)
    return files, unread


def _text(path: str) -> str:
    """The file as the memory would keep it, which keeps no secrets."""
    if os.path.getsize(path) > _FILE_BYTES_MAX:
        raise ValueError(f"it has more than {_FILE_BYTES_MAX} bytes")
    with open(path, encoding="utf-8", newline="") as file:
        return redacted(file.read())[0]


def _keep(seat: Seat, file: AdrFile) -> str:
    return seat.decisions.add_evidence(file.text, tags=tags_for(file.name), level=Level.PROJECT).id


def _units(seat: Seat, kind: str) -> Iterator[Unit]:
    after: str | None = None
    while page := seat.units(kind=kind, limit=_PAGE, after=after):
        yield from page
        after = page[-1].id


class _Import:
    """An import at work: `standing` is the decision that stands for each record by now."""

    def __init__(self, seat: Seat, files: dict[str, AdrFile], standing: dict[str, str]) -> None:
        self._seat = seat
        self._files = files
        self._standing = dict(standing)

    def taken(self, step: Step) -> AdrOutcome:
        """One step, as far as it is allowed: what somebody changed meanwhile, or guards, is left to them."""
        made, note = step.known, step.note
        try:
            for act in step.acts:
                if isinstance(act, Decide):
                    made = self._standing[step.name] = self._decide(act)
                elif isinstance(act, End):
                    self._seat.reject(self._standing[act.name], act.why)
                else:
                    self.related(act)
        except (Conflict, InvalidInput, NotAllowed, NotFound) as error:
            note = f"{note}; not done: {error.message}"
        return AdrOutcome(step.name, made, note)

    def _decide(self, act: Decide) -> str:
        desk, file = self._seat.decisions, self._files[act.name]
        proposal = desk.propose(
            act.text,
            reason=act.reason,
            evidence=[file.evidence or _keep(self._seat, file)],
            revises=None if act.revises is None else self._standing.get(act.revises),
        )
        return desk.commit(proposal).id

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


def export_folder(seat: Seat, folder: str, form: str = "") -> list[str]:
    """Write every decision that this seat sees as a record; what was imported keeps its text, but for its status."""
    book = Book(_units(seat, "evidence"), _units(seat, "decision"))
    files = {name: text.encode() for name, text in folder_of(book, _relations(seat, book), form).items()}
    try:
        os.makedirs(folder, exist_ok=True)
        for name, content in files.items():
            _refuse_other(os.path.join(folder, name), content)
        for name, content in files.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)
    except OSError as error:
        raise InvalidInput(f"{folder!r} can't be written: {error.strerror}.", hint="Choose another folder.") from None
    return sorted(files)


def _refuse_other(path: str, content: bytes) -> None:
    if os.path.exists(path):
        with open(path, "rb") as file:
            if file.read() != content:
                raise InvalidInput(f"{path!r} exists and says something else.", hint="Export to an empty folder.")


def _relations(seat: Seat, book: Book) -> Iterator[Relation]:
    for decision in book.decisions:
        if decision.is_active:
            yield from seat.decisions.relations(decision.id)
