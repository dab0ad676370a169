"""The folder of records that says what a memory holds: what was imported as it was, changed only where it says less."""

from __future__ import annotations

from mnemarch.decisions.adr import file_name
from mnemarch.decisions.adr_edit import restated
from mnemarch.decisions.adr_matter import mark_in, marked, record_of
from mnemarch.decisions.adr_read import read_adr
from mnemarch.decisions.adr_record import AdrLink
from mnemarch.decisions.adr_succession import Bond, Force, bonds, places
from mnemarch.decisions.adr_words import is_in_force
from mnemarch.decisions.adr_write import write_adr
from mnemarch.model.decision import RelationType
from mnemarch.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mnemarch.decisions.adr_book import AdrFile, Book
    from mnemarch.decisions.adr_record import AdrRecord
    from mnemarch.model.decision import Decision, Relation


@value
class _Draft:
    """A record to be written. `text` is what was imported; a decision that was made here has none."""

    name: str
    record: AdrRecord
    text: str
    decision: Decision


@value
class Sheet:
    """A file of the folder, and the decision it tells. Where one of its name says what nobody knows, it `is_other`."""

    name: str
    text: str
    decision: str | None
    is_other: bool


def folder_of(book: Book, relations: Iterable[Relation], form: str, there: Mapping[str, AdrFile]) -> list[Sheet]:
    """The files, in that form, if one is given. `there` are those that the folder holds so far, by name."""
    drafts = _drafts(book, form, there)
    named = {draft.name: draft for draft in drafts.values()}
    records = {name: draft.record for name, draft in named.items()}
    forces = {place.name: place.force for place in places(records)}
    links = _links_for({*_followed(book, drafts), *_related(book, drafts, relations)}, named, bonds(records))
    sheets = []
    for file in book.undecided():
        text = write_adr(file.record, form) if form else file.text
        is_other = file.name in there and there[file.name].text not in {text, file.text}
        sheets.append(Sheet(name=file.name, text=text, decision=None, is_other=is_other))
    for name, draft in named.items():
        told = links.get(name, ())
        text = _written(draft, _status(draft, forces[name], told), told, form)
        is_other = name in there and there[name].text != text and not _is_ours(there[name], draft, text)
        sheets.append(Sheet(name=name, text=text, decision=draft.decision.id, is_other=is_other))
    return sorted(sheets, key=lambda sheet: sheet.name)


def _is_ours(file: AdrFile, draft: _Draft, new: str) -> bool:
    """Whether a file is as it was imported or exported, and no word is lost when it is written anew.

    It is, if it says of status and links what it said before or will say, and the rest to the letter as we would.
    """
    if file.text == draft.text:
        return True
    old, coming = file.record, read_adr(new, draft.name)
    source = draft.record if draft.text else record_of(draft.decision, old.number, old.form)
    if old.status not in {coming.status, source.status or "accepted"}:
        return False
    if not {*old.links} <= {*source.links, *coming.links}:
        return False
    added = [link for link in old.links if link not in source.links]
    return _written(replace(draft, record=source), old.status, added, old.form) == file.text


def _drafts(book: Book, form: str, there: Mapping[str, AdrFile]) -> dict[str, _Draft]:
    """By decision: the latest that was made from each file, and all that were made here; each in its file, if it is
    there by whatever name."""
    sources = {one.id: source for one in book.decisions if (source := book.source_of(one)) is not None}
    by_force = sorted(book.decisions, key=lambda one: (one.is_active, one.id))
    latest = {sources[one.id].name: one.id for one in by_force if one.id in sources}
    # A version before the file was renamed has no file of its own.
    latest = {name: one for name, one in latest.items() if book.is_decided(name)}
    files = {one.id: there[name] for name, one in book.known(there).items()}
    followed = {one.unit.supersedes: sources[one.id].record for one in book.decisions if one.id in sources}
    taken = [*book.seen, *there.values()]
    numbers = [number for file in taken for number in (file.record.number, read_adr("", file.name).number)]
    number = max((each for each in numbers if each is not None), default=0)
    drafts = {}
    for one in book.decisions:
        source, file = sources.get(one.id), files.get(one.id)
        if source is not None and latest.get(source.name) == one.id:
            name = source.name if file is None else file.name
            drafts[one.id] = _Draft(name=name, record=source.record, text=source.text, decision=one)
        elif file is not None:
            record = record_of(one, file.record.number, form or "nygard")
            drafts[one.id] = _Draft(name=file.name, record=record, text="", decision=one)
        elif one.is_active or (source is None and not _is_edited(one, followed.get(one.id))):
            number += 1
            record = record_of(one, number, form or "nygard")
            drafts[one.id] = _Draft(name=file_name(record), record=record, text="", decision=one)
    return drafts


def _is_edited(one: Decision, new: AdrRecord | None) -> bool:
    """Whether the record of the next version is the same, edited, and no other that took its place."""
    return new is not None and (mark_in(new) == one.id or new.title == one.text.partition("\n")[0])


def _followed(book: Book, drafts: Mapping[str, _Draft]) -> Iterator[Bond]:
    """Which record is the next version of which."""
    for one in book.decisions:
        new, old = drafts.get(one.id), drafts.get(one.unit.supersedes or "")
        if new is not None and old is not None and new.name != old.name:
            yield Bond(source=new.name, type=RelationType.SUPERSEDES, target=old.name)


def _related(book: Book, drafts: Mapping[str, _Draft], relations: Iterable[Relation]) -> Iterator[Bond]:
    """Which record bears on which: the latest of a decision stands for it."""
    latest = {one.root_id: drafts[one.id] for one in book.decisions if one.id in drafts}
    for one in relations:
        source, target = latest.get(one.source), latest.get(one.target)
        # A record that supersedes another ends it, and this one may go on.
        goes_on = one.type is RelationType.SUPERSEDES and target is not None and target.decision.is_active
        if source is not None and target is not None and not goes_on:
            yield Bond(source=source.name, type=one.type, target=target.name)


def _links_for(known: Iterable[Bond], drafts: Mapping[str, _Draft], stated: set[Bond]) -> dict[str, list[AdrLink]]:
    """The links that each record lacks. What was made here tells all; what was imported, what no record tells yet.

    Who supersedes and who is superseded both say so. A relation belongs to a decision: any of its records may tell.
    """
    root = {name: draft.decision.root_id for name, draft in drafts.items()}
    told = {(root[bond.source], bond.type, root[bond.target]) for bond in stated}
    links: dict[str, list[AdrLink]] = {}
    for bond in sorted(known, key=lambda bond: (bond.target, bond.type, bond.source)):
        sides = [(str(bond.type).lower(), bond.source, bond.target)]
        if bond.type is RelationType.SUPERSEDES:
            sides.append(("superseded_by", bond.target, bond.source))
        ends = (root[bond.source], root[bond.target])
        is_told = bond in stated or (ends[0] != ends[1] and (ends[0], bond.type, ends[1]) in told)
        for relation, name, other in sides:
            if not drafts[name].text or not is_told:
                links.setdefault(name, []).append(AdrLink(relation, other, _label(drafts[other].record)))
    return links


def _label(record: AdrRecord) -> str:
    return record.title if record.number is None else f"{record.number}. {record.title}"


def _written(draft: _Draft, status: str, links: Sequence[AdrLink], form: str) -> str:
    record = replace(draft.record, status=status, links=(*draft.record.links, *links))
    if not draft.text:
        return marked(write_adr(record, form), draft.decision.id, draft.decision.unit.level)
    if form and form != draft.record.form:
        return write_adr(record, form)
    if not links and status == draft.record.status:
        return draft.text
    return restated(draft.text, status, links)


def _status(draft: _Draft, force: Force, links: Sequence[AdrLink]) -> str:
    """The status that the record has, unless the memory knows better."""
    status = draft.record.status
    if draft.decision.is_active:
        return status if is_in_force(status) else "accepted"
    if force is Force.HOLDS or not draft.text:
        return "superseded" if any(link.relation == "superseded_by" for link in links) else "deprecated"
    return status
