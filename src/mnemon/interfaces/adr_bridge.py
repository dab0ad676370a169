"""Decisions and folders of Markdown decision records (ADR), both ways; what the forms hold comes back as it was."""

from __future__ import annotations

import os

from mnemon.decisions.adr import AdrLink, AdrRecord, file_name, is_adr, read_adr, write_adr
from mnemon.errors import InvalidInput
from mnemon.model.decision import Decision, Reason, standing_of
from mnemon.model.digest import blake2b
from mnemon.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mnemon.memory import Seat

_TAG, _FILE = "adr", "file:"
_PAGE = 1_000
_FILE_BYTES_MAX = 1_048_576
_SUMMARY_CHARS = 1_000
# What was decided once, whether or not it still holds; the rest was never in force.
_DECIDED = frozenset({"", "accepted", "decided", "final", "superseded", "deprecated", "obsolete", "retired"})
_ENDED = frozenset({"superseded", "deprecated", "obsolete", "retired"})
_RELATIONS = {"depends_on": "DEPENDS_ON", "amends": "REFINES"}


@value
class AdrOutcome:
    """What became of one file."""

    name: str
    decision_id: str | None
    note: str


@value
class _File:
    name: str
    text: str
    record: AdrRecord


def import_folder(seat: Seat, folder: str, progress: Callable[[int], None] | None = None) -> list[AdrOutcome]:
    """Take over every record of a folder: in order, so that what supersedes comes after what it supersedes."""
    files = _in_order(_read(folder))
    before = {file.name: [one.name for one in _predecessors(file, files)] for file in files}
    replaced = {name for names in before.values() for name in names}
    made: dict[str, str] = {}
    outcomes = []
    for number, file in enumerate(files, start=1):
        base = next((made[name] for name in before[file.name] if name in made), None)
        outcomes.append(_imported(seat, file, base, made, is_replaced=file.name in replaced))
        if progress is not None:
            progress(number)
    for file in files:
        _relate(seat, file, files, made)
    return outcomes


def _read(folder: str) -> list[_File]:
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise InvalidInput(
            f"{folder!r} can't be read: {error.strerror}.", hint="Give a folder of Markdown files."
        ) from None
    files = []
    for name in names:
        path = os.path.join(folder, name)
        if not name.lower().endswith((".md", ".markdown")) or not os.path.isfile(path):
            continue
        if os.path.getsize(path) > _FILE_BYTES_MAX:
            raise InvalidInput(f"{path!r} is over {_FILE_BYTES_MAX} bytes.", hint="A decision record is shorter.")
        try:
            with open(path, encoding="utf-8", newline="") as opened:
                text = opened.read()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{path!r} can't be read: {error}.", hint="Records are UTF-8 text.") from None
        if is_adr(text, name):
            files.append(_File(name, text, read_adr(text, name)))
    return files


def _in_order(files: Sequence[_File]) -> list[_File]:
    """By number, but each after those it supersedes; a circle is cut where it began."""
    ordered: dict[str, _File] = {}
    started: set[str] = set()
    waiting = sorted(files, key=_place, reverse=True)
    while waiting:
        file = waiting[-1]
        ahead = [one for one in _predecessors(file, files) if one.name not in ordered and one.name not in started]
        started.add(file.name)
        if ahead:
            waiting += ahead
        else:
            ordered.setdefault(file.name, waiting.pop())
    return list(ordered.values())


def _place(file: _File) -> tuple[bool, int, str]:
    return file.record.number is None, file.record.number or 0, file.name


def _predecessors(file: _File, files: Sequence[_File]) -> list[_File]:
    """The records that this one supersedes, whichever of the two says so."""
    named = [_found(link.target, files) for link in file.record.links if link.relation == "supersedes"]
    naming = [
        other
        for other in files
        for link in other.record.links
        if link.relation == "superseded_by" and _found(link.target, files) is file
    ]
    unique = {one.name: one for one in (*named, *naming) if one is not None and one.name != file.name}
    return list(unique.values())


def _found(target: str, files: Sequence[_File]) -> _File | None:
    base = target.partition("#")[0].replace("\\", "/").rpartition("/")[2]
    for file in files:
        if file.name == base or (base.isdigit() and file.record.number == int(base)):
            return file
    return None


def _imported(seat: Seat, file: _File, base: str | None, made: dict[str, str], *, is_replaced: bool) -> AdrOutcome:
    record, desk = file.record, seat.decisions
    evidence = desk.add_evidence(file.text, tags=[_TAG, _FILE + file.name])
    if record.status not in _DECIDED:
        return AdrOutcome(file.name, None, f"{record.status}: kept as evidence, since it was never in force")
    proposal = desk.propose(
        _text_of(record),
        reason=Reason("other", _summary(record), record.consequences[:_SUMMARY_CHARS] or None),
        evidence=[evidence.id],
        revises=base,
    )
    # The same file gives the same decision, however often it is imported.
    key = blake2b(f"{file.name}\0{file.text}".encode(), digest_size=16).hexdigest()
    decision = desk.commit(replace(proposal, key=f"{_TAG}-{key}"))
    made[file.name] = decision.id
    if record.status in _ENDED and decision.is_active and not is_replaced:
        seat.reject(decision.id, f"{record.status} when it was imported")
        return AdrOutcome(file.name, decision.id, f"{record.status}: no longer in force")
    return AdrOutcome(
        file.name, decision.id, f"version {decision.version} of {decision.root_id}" if base else "decided"
    )


def _text_of(record: AdrRecord) -> str:
    body = record.chosen or record.decision
    return f"{record.title}\n\n{body}".strip() if body else record.title or "(untitled)"


def _summary(record: AdrRecord) -> str:
    for text in (record.because, record.context, record.title, "imported"):
        line = " ".join(text.split())
        if line:
            return line if len(line) <= _SUMMARY_CHARS else line[: _SUMMARY_CHARS - 1] + "…"
    raise AssertionError("unreachable")


def _relate(seat: Seat, file: _File, files: Sequence[_File], made: dict[str, str]) -> None:
    for link in file.record.links:
        relation = _RELATIONS.get(link.relation)
        other = _found(link.target, files)
        if relation is None or other is None or other.name == file.name:
            continue
        if file.name in made and other.name in made:
            sides = [seat.decisions.get(made[name]) for name in (file.name, other.name)]
            if sides[0].root_id != sides[1].root_id and all(_is_held(seat, one) for one in sides):
                seat.decisions.relate(sides[0].id, relation, sides[1].id)


def _is_held(seat: Seat, decision: Decision) -> bool:
    return any(one.is_active for one in seat.decisions.history(decision.id))


# The other way


def export_folder(seat: Seat, folder: str, form: str = "") -> list[str]:
    """Write every decision that this seat sees as a record; what was imported keeps its text, but for its status."""
    records = _records(seat, form)
    try:
        os.makedirs(folder, exist_ok=True)
        for name, text in records.items():
            _refuse_other(os.path.join(folder, name), text)
        for name, text in records.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8", newline="") as file:
                file.write(text)
    except OSError as error:
        raise InvalidInput(f"{folder!r} can't be written: {error.strerror}.", hint="Choose another folder.") from None
    return list(records)


def _refuse_other(path: str, text: str) -> None:
    if os.path.exists(path):
        with open(path, encoding="utf-8", newline="", errors="replace") as file:
            if file.read() != text:
                raise InvalidInput(f"{path!r} exists and says something else.", hint="Export to an empty folder.")


def _records(seat: Seat, form: str) -> dict[str, str]:
    decisions = sorted(_all(seat), key=lambda one: one.id)
    sources = {one.id: _source(seat, one) for one in decisions}
    taken = [record.number for _, record in filter(None, sources.values()) if record.number is not None]
    number = max(taken, default=0)
    drafts: dict[str, tuple[str, AdrRecord]] = {}
    for one in decisions:
        source = sources[one.id]
        if source is None:
            number += 1
            record = _record(one, number, form)
            source = (file_name(record), record)
        drafts[one.id] = source
    written = {
        name: write_adr(_linked(one, record, drafts), form) for one in decisions for name, record in [drafts[one.id]]
    }
    return written | {name: text for name, text in _never_decided(seat).items() if name not in written}


def _all(seat: Seat) -> list[Decision]:
    found: list[Decision] = []
    after: str | None = None
    while page := seat.units(kind="decision", limit=_PAGE, after=after):
        found += [Decision(unit) for unit in page if standing_of(unit) is not None]
        after = page[-1].id
    return found


def _source(seat: Seat, decision: Decision) -> tuple[str, AdrRecord] | None:
    """The file that a decision was imported from."""
    for unit_id in decision.evidence:
        evidence = seat.get(unit_id)
        name = _name_in(evidence.attributes.get("tags", ()))
        if name is not None:
            return name, read_adr(evidence.content, name)
    return None


def _name_in(tags: Iterable[str]) -> str | None:
    listed = list(tags)
    named = [tag.removeprefix(_FILE) for tag in listed if tag.startswith(_FILE)]
    return os.path.basename(named[0]) if _TAG in listed and named else None


def _never_decided(seat: Seat) -> dict[str, str]:
    """Records that were imported without ever being in force."""
    found: dict[str, str] = {}
    after: str | None = None
    while page := seat.units(kind="evidence", limit=_PAGE, after=after):
        for unit in page:
            name = _name_in(unit.attributes.get("tags", ()))
            if name is not None and unit.live:
                found.setdefault(name, unit.content)
        after = page[-1].id
    return found


def _record(decision: Decision, number: int, form: str) -> AdrRecord:
    title, _, rest = decision.text.partition("\n")
    reason = decision.reason
    return AdrRecord(
        form=form or "nygard",
        number=number,
        title=title if len(title) <= 120 else title[:119] + "…",
        date=f"{decision.unit.occurred_at:%Y-%m-%d}",
        deciders=(str(decision.unit.author),) if form == "madr" else (),
        context=reason.summary,
        decision=rest.strip() or decision.text,
        consequences=reason.tradeoff or "",
    )


def _linked(decision: Decision, record: AdrRecord, drafts: dict[str, tuple[str, AdrRecord]]) -> AdrRecord:
    """The record with the status that the decision has now, and links to the versions before and after it."""
    status = record.status
    if decision.is_active:
        status = record.status if record.status in {"accepted", "decided", "final"} else "accepted"
    elif record.status not in _ENDED:
        status = "superseded" if decision.unit.superseded_by else "deprecated"
    links = list(record.links)
    for relation, unit_id in (("supersedes", decision.unit.supersedes), ("superseded_by", decision.unit.superseded_by)):
        other = drafts.get(unit_id or "")
        if other is not None and not any(link.relation == relation for link in links):
            links.append(AdrLink(relation, other[0], _label(other[1])))
    return replace(record, status=status, links=tuple(links))


def _label(record: AdrRecord) -> str:
    return record.title if record.number is None else f"{record.number}. {record.title}"
