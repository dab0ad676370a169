"""Exports a memory's decisions to a folder of Markdown decision records."""

from __future__ import annotations

import os

from mnemarch.errors import InvalidInput, StoreUnavailable
from mnemarch.files import write_whole
from mnemarch.interfaces.adr.imported import (
    AdrOutcome,
    Bond,
    Force,
    RecordFile,
    bonds,
    imported_by,
    may_be_record,
    places,
)
from mnemarch.interfaces.adr.phrases import IN_FORCE
from mnemarch.interfaces.adr.record import number_of, read_record, titled
from mnemarch.interfaces.adr.writing import file_name, new_record, reference, restated
from mnemarch.model.decision import RelationType
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mnemarch.interfaces.adr.imported import ImportedRecords, Known
    from mnemarch.interfaces.adr.record import Record
    from mnemarch.interfaces.adr.writing import Mention
    from mnemarch.model.decision import Decision
    from mnemarch.seat import Seat


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
    imported, there = imported_by(seat), _as_they_are(folder)
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
            if may_be_record(path):
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
