"""Compares statements, and opens conflicts and merge proposals for people to decide (R5, R6).

A conflict belongs to one topic and can have any number of members. A write reads a few units of its topic, then opens
a conflict or joins the open one. The cost of a write does not grow with the conflict.
"""

from __future__ import annotations

from mnemarch.code.expectations import rest_on_two_contents
from mnemarch.lazy import Lazy
from mnemarch.model.caller import ActorKind
from mnemarch.model.event import EventType
from mnemarch.model.outcome import Dispute, Stored
from mnemarch.model.stamps import micros
from mnemarch.model.unit import OF_CODE, Citation, CitationKind, Claim, Kind, Link, LinkType, Status, Unit
from mnemarch.model.value import Frozen, replace
from mnemarch.policy.kinds import kinds_where
from mnemarch.policy.permissions import owners_of
from mnemarch.text.cache import cached
from mnemarch.text.canonical import canonical
from mnemarch.units.finding import past_with_same_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mnemarch.config import GateRules
    from mnemarch.embedding import sparse
    from mnemarch.embedding.sparse import SparseVector
    from mnemarch.log.act import Act
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.text import guarded
    from mnemarch.text import opposition as opposing
    from mnemarch.text import statements as stating
    from mnemarch.text import tokens as tokenizing

    # The units of a topic, and for each citation the units that cite the same.
    Rivals = tuple[list[Unit], list[tuple[Citation, list[Unit]]]]
else:
    # A run of tests mostly compares no statements, and their words take a while to load.
    guarded = Lazy("mnemarch.text.guarded")
    opposing = Lazy("mnemarch.text.opposition")
    sparse = Lazy("mnemarch.embedding.sparse")
    stating = Lazy("mnemarch.text.statements")
    tokenizing = Lazy("mnemarch.text.tokens")


DISPUTED_KINDS = kinds_where(lambda rules: rules.disputes)
# Prefix of a link's note when its source announces a change.
CHANGE = "change"
# This many live values, none of them verified or a person's, are a series and not a dispute (R6).
_SERIES_MIN = 4
_MEMBERS_READ_MAX = 5
_RESULTS_MAX = 3
_SHARED_WORDS_MIN = 0.5
_GLOBAL = "global"
# Folders whose subfolders are the packages of a repository.
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
    """The units that a statement contradicts, duplicates or resembles.

    All contradictions are returned, but only the closest few duplicates and similar units.
    """
    comparisons = [each for other in others if (each := _compared(content, other, rules)) is not None]
    comparisons.sort(key=lambda each: (-each.similarity, each.other.id))
    kept: list[Comparison] = []
    for type in LinkType:
        of_type = [each for each in comparisons if each.type is type]
        kept += of_type if type is LinkType.CONTRADICTS else of_type[:_RESULTS_MAX]
    return kept


def _compared(content: str, other: Unit, rules: GateRules) -> Comparison | None:
    opposition = (
        opposing.ended(other.content, content)
        or opposing.ended(content, other.content)
        or opposing.opposes(other.content, content)
    )
    if opposition is not None:
        return Comparison(LinkType.CONTRADICTS, other, 0.0, opposition.reason)
    ours, theirs = stating.statement(content), stating.statement(other.content)
    if set(ours.topic) != set(theirs.topic) and not _shares_words(content, other.content):
        return None
    if guarded.differences(content, other.content):
        return None
    similarity = _similarity(content, other.content)
    if (ours.topic, _values(content)) == (theirs.topic, _values(other.content)):
        is_same = canonical(content) == canonical(other.content)
        note = "the same words" if is_same else "the same except for filler words"
        return Comparison(LinkType.DUPLICATES, other, similarity, note)
    if similarity >= rules.tau_dup:
        return Comparison(LinkType.DUPLICATES, other, similarity, "the same in nearly the same words")
    if similarity >= rules.tau_sim:
        return Comparison(LinkType.SIMILAR_TO, other, similarity, "similar wording")
    return None


def resembling(content: str, others: Iterable[Unit], rules: GateRules) -> list[tuple[Unit, float]]:
    """The units with similar wording and their similarity, closest first. Their numbers and names may differ."""
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


# Reading conflicts


def open_disputes(reader: Reader, visible_keys: Sequence[str], type: LinkType) -> list[Dispute]:
    """The open disputes with at least two visible units."""
    return [dispute_from(link, reader.units(ids).values()) for link, ids in reader.open_links(visible_keys, type)]


def dispute_of(reader: Reader, link: Link, visible_keys: Sequence[str]) -> Dispute | None:
    """A link as a dispute between its visible units. None if fewer than two are visible."""
    units = [unit for unit in reader.units(reader.units_of_link(link.id)).values() if unit.scope.key in visible_keys]
    return dispute_from(link, units) if len(units) > 1 or (units and link.source == link.target) else None


def dispute_from(link: Link, members: Iterable[Unit]) -> Dispute:
    units = sorted(members, key=lambda unit: unit.id)
    contradicts = link.type is LinkType.CONTRADICTS
    subject, values = stating.compared([unit.content for unit in units]) if contradicts else ("", ())
    texts = {unit.id: unit.content for unit in units}
    # The older unit may be the one that announces the change. Repeating the old state does not end it.
    announces = (
        contradicts
        and link.note.startswith(CHANGE)
        and opposing.ended(texts.get(link.target, ""), texts.get(link.source, "")) is not None
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
        subject=subject,
        values=values,
        proposal=link.source if announces else None,
    )


def with_disputes(stored: Stored, disputes: Iterable[Dispute]) -> Stored:
    """The answer of a write, with the conflicts and merge proposals of its unit."""
    told = list(disputes)
    return replace(
        stored,
        conflicts=tuple(each for each in told if each.kind is LinkType.CONTRADICTS),
        similar=tuple(each for each in told if each.kind is LinkType.DUPLICATES),
    )


def with_open_disputes(act: Act, stored: Stored) -> Stored:
    """The answer of a promotion, with the open disputes that the unit has at its new level (R5)."""
    open_links(act, stored.unit)
    links = [link for link in act.transaction.links_of(stored.unit.id) if link.open]
    told = (dispute_of(act.transaction, link, act.caller.visible_keys) for link in links)
    return with_disputes(stored, [each for each in told if each is not None])


# Opening conflicts


def link_units(
    act: Act, source: str, target: str, type: LinkType, weight: float, note: str, others: Sequence[str] = ()
) -> Link:
    """Link two units. A conflict may link more, given as `others`.

    A contradiction or a duplicate stays open until somebody resolves it.
    """
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
    # A merge of clones gives the link an id that is the same in every clone.
    return Link.from_json(link | {"id": (event.payload or {}).get("id", event.id)})


def rivals_of(act: Act, said: Claim | Unit, citations: Iterable[Citation]) -> Rivals:
    """The visible units that a text may repeat or contradict: live units of its topic, or with a same citation."""
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
    """Link a unit with visible units that it repeats or contradicts, among `candidates` and its own topic.

    With `is_new` the unit has no links yet. With `is_new_text` no unit with this text was ever replaced. `rivals` are
    the units that were read before this one was stored.
    """
    if unit.kind not in DISPUTED_KINDS:
        return []
    topic, citing = rivals or rivals_of(act, unit, unit.citations if is_new else ())
    if is_new and is_new_text and not (topic or citing or candidates):
        return []
    related, linked = (set(), {unit.id}) if is_new else _linked(act, unit)
    successors = [] if is_new_text else _successors(act, unit.content)
    members = {each.id: each for each in (unit, *topic)} | act.transaction.units(candidates)
    members |= {after.id: after for after, _ in successors}
    others = [each for each in members.values() if each.id not in linked and _is_rival(act, unit, each)]
    comparisons = compared(unit.content, others, act.config.gate)
    comparisons = [each for each in comparisons if each.type is LinkType.CONTRADICTS or each.other.id not in related]
    settled = {each.other.id for each in comparisons if each.type is not LinkType.SIMILAR_TO} | linked
    # A text that was merged away and comes back is proposed for merging again.
    opposed = [_repetition(before, after) for after, before in successors if after.id not in settled]
    opposed += [each for each in comparisons if each.type is LinkType.CONTRADICTS]
    dispute = _opened(act, unit, opposed, (unit, *topic)) if opposed else None
    disputes = [] if dispute is None else [dispute]
    for each in (one for one in comparisons if one.type is not LinkType.CONTRADICTS):
        link = link_units(act, unit.id, each.other.id, each.type, each.similarity, each.note)
        disputes.append(dispute_from(link, (unit, each.other)))
    _relate_same_evidence(act, unit, citing, {each.other.id for each in comparisons} | related | linked)
    return disputes


def _opened(act: Act, unit: Unit, opposed: Sequence[Comparison], topic: Sequence[Unit]) -> Dispute | None:
    """Join the open conflict of these units, or open a new one. If their values are a series, close it instead."""
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
        # The newer unit is the source, because it may announce the end of the older one.
        older, newer = sorted((unit.id, first.other.id))
        link = link_units(act, newer, older, first.type, weight, first.note, more)
    else:
        act.record(EventType.LINK_JOINED, {"link": link.id, "unit": unit.id}, subject=link.id)
    return dispute_from(link, units)


def _open_conflict(act: Act, unit_ids: Sequence[str]) -> Link | None:
    """The open conflict of these units in the caller's scope. Conflicts of other worktrees are skipped."""
    for link in act.transaction.open_conflicts(unit_ids):
        sides = act.transaction.units((link.source, link.target)).values()
        if all(side.scope.key in act.caller.visible_keys for side in sides):
            return link
    return None


def _values(content: str) -> tuple[frozenset[str], ...]:
    return tuple(each.words for each in stating.statement(content).values)


def _is_vouched_for(unit: Unit) -> bool:
    return unit.status is not Status.HYPOTHESIS or unit.provenance[0].actor.kind is ActorKind.HUMAN


def _linked(act: Act, unit: Unit) -> tuple[set[str], set[str]]:
    """The units that are only similar to this one, and those with another link, open or settled.

    Neither are linked again. But similar units may begin to contradict each other.
    """
    related: set[str] = set()
    linked = {unit.id}
    for link in act.transaction.links_of(unit.id):
        units = related if link.type is LinkType.SIMILAR_TO else linked
        units |= {link.source, link.target, *act.transaction.units_of_link(link.id)}
    return related, linked


def _is_rival(act: Act, unit: Unit, other: Unit) -> bool:
    """Whether one reader could get both units, and the two can oppose each other."""
    if not (other.live and other.kind in DISPUTED_KINDS and other.scope.key in act.caller.visible_keys):
        return False
    if unit.domain != other.domain and _GLOBAL not in (unit.domain, other.domain):
        return False
    if unit.kind is other.kind is Kind.PREFERENCE and owners_of(unit).isdisjoint(owners_of(other)):
        return False
    ours, theirs = _packages(unit), _packages(other)
    is_apart = bool(ours and theirs) and ours.isdisjoint(theirs)
    return not is_apart and not rest_on_two_contents(unit, other)


def _packages(unit: Unit) -> frozenset[str]:
    """The packages whose code a unit cites: the first folder of a path, or the first two in packages/ and the like."""
    paths = [item.ref.split("/") for item in unit.citations if item.kind in OF_CODE]
    folders = [parts[:-1][: 2 if parts[0] in _CONTAINERS else 1] for parts in paths]
    return frozenset("/".join(parts) for parts in folders if parts)


def _repetition(replaced: Unit, successor: Unit) -> Comparison:
    """The contradiction between a superseded statement that is repeated and its successor (R8)."""
    note = f"repeats unit {replaced.id}, which unit {successor.id} replaced"
    return Comparison(LinkType.CONTRADICTS, successor, 0.0, note)


def _successors(act: Act, content: str) -> list[tuple[Unit, Unit]]:
    """The live successors of past units with this text, each with the unit it replaced. Their text differs."""
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
    """Link units that cite the same test or symbol but state another value. This works across languages (R6)."""
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
