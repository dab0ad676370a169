"""How statements compare, and the links that follow: conflicts and merge proposals that somebody decides (R5, R6).

A conflict belongs to one topic and subject and has as many members as there are units that say something else of it. A
write reads a few units of its topic, opens a conflict or joins the open one, and costs the same however large it is.
"""

from __future__ import annotations

from mnemarch.embedding import sparse
from mnemarch.model.caller import ActorKind
from mnemarch.model.citation import OF_CODE, Citation, CitationKind
from mnemarch.model.event import EventType
from mnemarch.model.outcome import Dispute, Stored
from mnemarch.model.stamps import micros
from mnemarch.model.unit import Claim, Kind, Link, LinkType, Status, Unit
from mnemarch.model.value import Frozen, replace
from mnemarch.policy.kinds import kinds_where
from mnemarch.policy.permissions import owners_of
from mnemarch.text import changes as changing
from mnemarch.text import difference as differing
from mnemarch.text import opposition as opposing
from mnemarch.text import statements as stating
from mnemarch.text import tokens as tokenizing
from mnemarch.text.cache import cached
from mnemarch.text.canonical import canonical
from mnemarch.units.same_text import past_with_same_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mnemarch.config import GateRules
    from mnemarch.embedding.sparse import SparseVector
    from mnemarch.log.act import Act
    from mnemarch.stores.sql.reader import Reader

    # The units of a topic, and those that cite one thing.
    Rivals = tuple[list[Unit], list[tuple[Citation, list[Unit]]]]


DISPUTED_KINDS = kinds_where(lambda rules: rules.disputes)
# What the note of a link begins with when its source announces a change.
CHANGE = "change"
# With this many live values, none of them verified or a person's, a statement is a series and no dispute (R6).
_SERIES_MIN = 4
_MEMBERS_READ_MAX = 5
_RESULTS_MAX = 3
_SHARED_WORDS_MIN = 0.5
_GLOBAL = "global"
# Folders whose folders are the packages of a repository.
_CONTAINERS = frozenset(
    {"packages", "services", "apps", "libs", "crates", "modules", "components", "src", "cmd", "pkg"}
)
_NAMING = frozenset({CitationKind.TEST, CitationKind.SYMBOL})


class Comparison(Frozen):
    """How a statement compares with a known unit."""

    type: LinkType
    other: Unit
    similarity: float
    note: str


def compared(content: str, others: Iterable[Unit], rules: GateRules) -> list[Comparison]:
    """The known units that a statement contradicts, repeats or resembles; of those it resembles the closest few."""
    comparisons = [each for other in others if (each := _compared(content, other, rules)) is not None]
    comparisons.sort(key=lambda each: (-each.similarity, each.other.id))
    kept: list[Comparison] = []
    for type in LinkType:
        of_type = [each for each in comparisons if each.type is type]
        kept += of_type if type is LinkType.CONTRADICTS else of_type[:_RESULTS_MAX]
    return kept


def _compared(content: str, other: Unit, rules: GateRules) -> Comparison | None:
    opposition = (
        changing.ended(other.content, content)
        or changing.ended(content, other.content)
        or opposing.opposes(other.content, content)
    )
    if opposition is not None:
        return Comparison(LinkType.CONTRADICTS, other, 0.0, opposition.reason)
    ours, theirs = stating.statement(content), stating.statement(other.content)
    if set(ours.topic) != set(theirs.topic) and not _shares_words(content, other.content):
        return None
    if differing.differences(content, other.content):
        return None
    similarity = _similarity(content, other.content)
    if (ours.topic, _values(content)) == (theirs.topic, _values(other.content)):
        return Comparison(LinkType.DUPLICATES, other, similarity, "the same but for words that say nothing")
    if similarity >= rules.tau_dup:
        return Comparison(LinkType.DUPLICATES, other, similarity, "the same in nearly the same words")
    if similarity >= rules.tau_sim:
        return Comparison(LinkType.SIMILAR_TO, other, similarity, "similar wording")
    return None


def resembling(content: str, others: Iterable[Unit], rules: GateRules) -> list[tuple[Unit, float]]:
    """The units whose texts are worded alike, the closest first; what they say of numbers and names may differ."""
    alike = [(other, _similarity(content, other.content)) for other in others if _shares_words(content, other.content)]
    near = [each for each in alike if each[1] >= rules.tau_sim]
    return sorted(near, key=lambda each: (-each[1], each[0].id))


def _shares_words(left: str, right: str) -> bool:
    ours, theirs = _words(left), _words(right)
    return len(ours & theirs) >= _SHARED_WORDS_MIN * len(ours | theirs)


@cached(1024)
def _words(content: str) -> frozenset[str]:
    return frozenset(tokenizing.tokens(content))


def _similarity(left: str, right: str) -> float:
    return sparse.cosine(_vector(left), _vector(right))


@cached(1024)
def _vector(text: str) -> SparseVector[int]:
    return sparse.NgramHashEmbedder().embed(text)


# Conflicts as they are shown


def open_disputes(reader: Reader, visible_keys: Sequence[str], type: LinkType) -> list[Dispute]:
    """The open disputes with two or more units that can be seen from here."""
    return [dispute_from(link, _in_order(reader, ids)) for link, ids in reader.open_links(visible_keys, type)]


def dispute_of(reader: Reader, link: Link, visible_keys: Sequence[str]) -> Dispute | None:
    """A link as a dispute of the units that can be seen from here; None if it has not two of them."""
    units = [unit for unit in _in_order(reader, reader.units_of_link(link.id)) if unit.scope.key in visible_keys]
    return dispute_from(link, units) if len(units) > 1 or (units and link.source == link.target) else None


def _in_order(reader: Reader, unit_ids: Sequence[str]) -> list[Unit]:
    units = reader.units(unit_ids)
    return [units[unit_id] for unit_id in unit_ids if unit_id in units]


def dispute_from(link: Link, members: Iterable[Unit]) -> Dispute:
    units = sorted(members, key=lambda unit: unit.id)
    contradicts = link.type is LinkType.CONTRADICTS
    statements = [stating.statement(unit.content) for unit in units] if contradicts else []
    texts = {unit.id: unit.content for unit in units}
    # The earlier of the two may be the one that announces: who says the old state again has not ended it.
    announces = (
        contradicts
        and link.note.startswith(CHANGE)
        and changing.ended(texts.get(link.target, ""), texts.get(link.source, "")) is not None
    )
    return Dispute(
        id=link.id,
        kind=link.type,
        units=tuple(unit.id for unit in units),
        reason=link.note,
        similarity=link.weight,
        opened_at=link.at,
        open=link.open,
        winner=link.winner,
        decision=link.decision,
        subject=stating.subject_shown(units[0].content) if statements else "",
        values=tuple(", ".join(each.written for each in one.values) for one in statements),
        proposal=link.source if announces else None,
    )


def with_disputes(stored: Stored, disputes: Iterable[Dispute]) -> Stored:
    """The answer of a write with what its unit contradicts and repeats."""
    told = list(disputes)
    return replace(
        stored,
        conflicts=tuple(each for each in told if each.kind is LinkType.CONTRADICTS),
        similar=tuple(each for each in told if each.kind is LinkType.DUPLICATES),
    )


def with_open_disputes(act: Act, stored: Stored) -> Stored:
    """The answer of a promotion with everything its unit has to settle among its new neighbours (R5)."""
    open_links(act, stored.unit)
    links = [link for link in act.transaction.links_of(stored.unit.id) if link.open]
    told = (dispute_of(act.transaction, link, act.caller.visible_keys) for link in links)
    return with_disputes(stored, [each for each in told if each is not None])


# Conflicts as they are opened


def link_units(
    act: Act, source: str, target: str, type: LinkType, weight: float, note: str, others: Sequence[str] = ()
) -> Link:
    """Link two units, or more in a conflict; a contradiction or a duplicate stays open until somebody resolves it."""
    link = {
        "type": str(type),
        "source": source,
        "target": target,
        "weight": round(weight, 4),
        "note": note,
        "at": micros(act.now),
        "open": type is not LinkType.SIMILAR_TO,
        "winner": None,
    }
    payload: dict[str, object] = {"link": link} | ({"others": list(others)} if others else {})
    event, _ = act.record(EventType.LINK_ADDED, payload, subject=source)
    # Who merges clones gives it an id that all of them would give.
    return Link.from_json(link | {"id": (event.payload or {}).get("id", event.id)})


def rivals_of(act: Act, said: Claim | Unit, citations: Iterable[Citation]) -> Rivals:
    """The visible units that a text may repeat or contradict: the live ones of its topic, and what cites the same."""
    keys, reader = act.caller.visible_keys, act.transaction
    if said.kind not in DISPUTED_KINDS:
        return [], []
    naming = [citation for citation in citations if citation.kind in _NAMING]
    naming = naming if naming and _amounts(said) else []
    return (
        reader.units_of_topic(keys, stating.topic_key(said.content), _MEMBERS_READ_MAX),
        [(each, reader.newest_citing(keys, each.kind, each.ref, _MEMBERS_READ_MAX, live=True)) for each in naming],
    )


def open_links(
    act: Act,
    unit: Unit,
    candidates: Iterable[str] = (),
    *,
    rivals: Rivals | None = None,
    is_new: bool = False,
    is_new_text: bool = False,
) -> list[Dispute]:
    """Link a unit with the visible ones that it repeats or contradicts, among `candidates` and its own topic.

    A new unit has no links yet, and a new text no units that it was replaced by. `rivals` is what there was before it.
    """
    if unit.kind not in DISPUTED_KINDS:
        return []
    topic, citing = rivals or rivals_of(act, unit, unit.citations if is_new else ())
    if is_new and is_new_text and not (topic or citing or candidates):
        return []
    linked = {unit.id} if is_new else {unit.id, *_linked(act, unit)}
    successors = [] if is_new_text else _successors(act, unit.content)
    members = {each.id: each for each in (unit, *topic)} | act.transaction.units(candidates)
    members |= {after.id: after for after, _ in successors}
    others = [each for each in members.values() if each.id not in linked and _is_rival(act, unit, each)]
    comparisons = compared(unit.content, others, act.config.gate)
    settled = {each.other.id for each in comparisons if each.type is not LinkType.SIMILAR_TO} | linked
    # A text that was merged away and comes back is proposed for merging again.
    opposed = [_repetition(before, after) for after, before in successors if after.id not in settled]
    opposed += [each for each in comparisons if each.type is LinkType.CONTRADICTS]
    dispute = _opened(act, unit, opposed, (unit, *topic)) if opposed else None
    disputes = [] if dispute is None else [dispute]
    for each in (one for one in comparisons if one.type is not LinkType.CONTRADICTS):
        link = link_units(act, unit.id, each.other.id, each.type, each.similarity, each.note)
        disputes.append(dispute_from(link, (unit, each.other)))
    _relate_same_evidence(act, unit, citing, {each.other.id for each in comparisons} | linked)
    return disputes


def _opened(act: Act, unit: Unit, opposed: Sequence[Comparison], topic: Sequence[Unit]) -> Dispute | None:
    """The conflict of a unit with those it opposes: the open one that they have, or a new one; a series closes it."""
    units = (unit, *(each.other for each in opposed))
    link = _open_conflict(act, [each.id for each in units])
    values = {_values(each.content) for each in units}
    if len(values) >= _SERIES_MIN and not any(_is_vouched_for(each) for each in topic):
        reason = f"a series of {len(values)} values or more, of which none is verified or a person's"
        if link is None:
            return None
        act.record(EventType.LINK_RESOLVED, {"link": link.id, "winner": None, "reason": reason}, subject=link.id)
        return dispute_from(replace(link, open=False, decision=reason), units)
    first = opposed[0]
    if link is None:
        more = [each.other.id for each in opposed[1:]]
        weight = _similarity(unit.content, first.other.content)
        # The newer one is the source: it may announce what ends the other.
        older, newer = sorted((unit.id, first.other.id))
        link = link_units(act, newer, older, first.type, weight, first.note, more)
    else:
        act.record(EventType.LINK_JOINED, {"link": link.id, "unit": unit.id}, subject=link.id)
    return dispute_from(link, units)


def _open_conflict(act: Act, unit_ids: Sequence[str]) -> Link | None:
    """The conflict that these units have where this caller is: one of another worktree is not joined from here."""
    for link in act.transaction.open_conflicts(unit_ids):
        sides = act.transaction.units((link.source, link.target)).values()
        if all(side.scope.key in act.caller.visible_keys for side in sides):
            return link
    return None


def _values(content: str) -> tuple[frozenset[str], ...]:
    return tuple(each.words for each in stating.statement(content).values)


def _is_vouched_for(unit: Unit) -> bool:
    return unit.status is not Status.HYPOTHESIS or unit.provenance[0].actor.kind is ActorKind.HUMAN


def _linked(act: Act, unit: Unit) -> set[str]:
    """The units that are linked with this one already; what they once settled is settled."""
    links = act.transaction.links_of(unit.id)
    return {each for link in links for each in (link.source, link.target, *act.transaction.units_of_link(link.id))}


def _is_rival(act: Act, unit: Unit, other: Unit) -> bool:
    """Whether one reader would be handed both as statements that can oppose each other."""
    if not (other.live and other.kind in DISPUTED_KINDS and other.scope.key in act.caller.visible_keys):
        return False
    if unit.domain != other.domain and _GLOBAL not in (unit.domain, other.domain):
        return False
    if unit.kind is other.kind is Kind.PREFERENCE and owners_of(unit).isdisjoint(owners_of(other)):
        return False
    ours, theirs = _packages(unit), _packages(other)
    is_apart = bool(ours and theirs) and ours.isdisjoint(theirs)
    return not is_apart and not _cite_two_forms(unit, other)


def _cite_two_forms(unit: Unit, other: Unit) -> bool:
    """Whether the two cite one symbol with two signatures: no tree has both, so each holds on its own branch (R8)."""
    ours, theirs = _signatures(unit), _signatures(other)
    return any(ours[name] != theirs[name] for name in ours.keys() & theirs.keys())


def _signatures(unit: Unit) -> dict[str, str | None]:
    return {str(item): item.get("signature") for item in unit.citations if item.kind is CitationKind.SYMBOL}


def _packages(unit: Unit) -> frozenset[str]:
    """The packages whose code a unit cites: the first folder of a path, below packages/ and the like the first two."""
    paths = [item.ref.split("/") for item in unit.citations if item.kind in OF_CODE]
    folders = [parts[:-1][: 2 if parts[0] in _CONTAINERS else 1] for parts in paths]
    return frozenset("/".join(parts) for parts in folders if parts)


def _repetition(replaced: Unit, successor: Unit) -> Comparison:
    """A superseded statement that is said again contradicts its successor (R8)."""
    note = f"says again what unit {replaced.id} said before unit {successor.id} took its place"
    return Comparison(LinkType.CONTRADICTS, successor, 0.0, note)


def _successors(act: Act, content: str) -> list[tuple[Unit, Unit]]:
    """What replaced units with this text and says something else now, each with the unit it replaced."""
    successors: dict[str, tuple[Unit, Unit]] = {}
    for replaced in past_with_same_text(act.transaction, act.caller.visible_keys, content):
        last = _last_successor(act, replaced)
        is_rival = last.live and last.scope.key in act.caller.visible_keys and last.kind in DISPUTED_KINDS
        if is_rival and canonical(last.content) != canonical(content):
            successors[last.id] = (last, replaced)
    return list(successors.values())


def _last_successor(act: Act, unit: Unit) -> Unit:
    chain = {unit.id: unit}
    while unit.superseded_by is not None and unit.superseded_by not in chain:
        after = act.transaction.unit(unit.superseded_by)
        if after is None:
            break
        unit = chain[after.id] = after
    return unit


def _relate_same_evidence(
    act: Act, unit: Unit, citing: Sequence[tuple[Citation, Sequence[Unit]]], known: set[str]
) -> None:
    """Offer as related what cites the same test or symbol and states another value, in whatever language (R6)."""
    for citation, newest in citing:
        for other in newest:
            theirs = _amounts(other)
            if other.id not in known and other.live and theirs and theirs.isdisjoint(_amounts(unit)):
                known.add(other.id)
                note = f"cites {citation.ref} too, and states another value"
                link_units(act, unit.id, other.id, LinkType.SIMILAR_TO, 1.0, note)


def _amounts(said: Claim | Unit) -> frozenset[str]:
    values = stating.statement(said.content).values if said.kind in DISPUTED_KINDS else ()
    return frozenset(word for each in values if each.is_amount for word in each.words)
