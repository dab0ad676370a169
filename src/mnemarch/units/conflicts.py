"""How statements compare, and the links that follow: conflicts and merge proposals that somebody decides (R5, R6)."""

from __future__ import annotations

from mnemarch.embedding.sparse import NgramHashEmbedder, cosine
from mnemarch.model.event import EventType
from mnemarch.model.outcome import Dispute
from mnemarch.model.stamps import micros
from mnemarch.model.unit import Link, LinkType, Status
from mnemarch.model.value import replace, value
from mnemarch.policy.kinds import kinds_where
from mnemarch.text.cache import cached
from mnemarch.text.canonical import canonical, canonical_key
from mnemarch.text.difference import differences, oppose, skeleton
from mnemarch.text.tokens import tokens
from mnemarch.text.words import REWORDING_WORDS
from mnemarch.units.same_text import past_with_same_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mnemarch.config import GateRules
    from mnemarch.embedding.sparse import SparseVector
    from mnemarch.log.act import Act
    from mnemarch.model.outcome import Stored
    from mnemarch.model.unit import Unit
    from mnemarch.stores.sql.reader import Reader


_EMBEDDER = NgramHashEmbedder()
_RESULTS_MAX = 3
_SHARED_WORDS_MIN = 0.5
# Korean skeletons differ by particles and endings, which no list of words covers: here their shapes are compared.
_KOREAN_SHAPE_MIN = 0.85
# Words that a rewording may add or drop without saying anything else.
_REWORDING_TOKENS = frozenset(tokens(" ".join(sorted(REWORDING_WORDS))))


@value
class Comparison:
    """How a statement compares with a known unit."""

    type: LinkType
    other: Unit
    similarity: float
    note: str


@value
class _Shape:
    """What is compared of a statement; cached, since one neighbour is compared with many."""

    skeleton: str
    skeleton_words: frozenset[str]
    words: frozenset[str]
    korean: bool


def compared(
    content: str, others: Iterable[Unit], rules: GateRules, *, contradictions_max: int = _RESULTS_MAX
) -> list[Comparison]:
    """The known units that a statement contradicts, repeats or resembles; of each type the closest few."""
    by_type: dict[LinkType, list[Comparison]] = {}
    for other in others:
        comparison = _compared(content, other, rules)
        if comparison is not None:
            by_type.setdefault(comparison.type, []).append(comparison)
    closest: list[Comparison] = []
    for type, group in by_type.items():
        group.sort(key=lambda comparison: (-comparison.similarity, comparison.other.id))
        closest += group[: contradictions_max if type is LinkType.CONTRADICTS else _RESULTS_MAX]
    return closest


def repetition(content: str, replaced: Unit, successor: Unit) -> Comparison:
    """A superseded statement that is said again contradicts its successor (R8)."""
    note = f"says again what unit {replaced.id} said before unit {successor.id} took its place"
    return Comparison(LinkType.CONTRADICTS, successor, _similarity(content, successor.content), note)


def _compared(content: str, other: Unit, rules: GateRules) -> Comparison | None:
    ours, theirs = _shape(content), _shape(other.content)
    if _same_but_for_guarded_pieces(ours, theirs):
        parts = differences(content, other.content)
        if not parts:
            note = "the same but for words that say nothing"
            return Comparison(LinkType.DUPLICATES, other, _similarity(content, other.content), note)
        if oppose(parts):
            note = "; ".join(f"{part.what}: {part.left or 'none'} / {part.right or 'none'}" for part in parts)
            return Comparison(LinkType.CONTRADICTS, other, _similarity(content, other.content), note)
        return None
    if len(ours.words & theirs.words) < _SHARED_WORDS_MIN * len(ours.words | theirs.words):
        return None
    if differences(content, other.content):
        return None
    similarity = _similarity(content, other.content)
    if similarity >= rules.tau_dup:
        return Comparison(LinkType.DUPLICATES, other, similarity, "the same in nearly the same words")
    if similarity >= rules.tau_sim:
        return Comparison(LinkType.SIMILAR_TO, other, similarity, "similar wording")
    return None


@cached(1024)
def _shape(content: str) -> _Shape:
    bones = skeleton(content)
    return _Shape(
        skeleton=bones,
        skeleton_words=frozenset(tokens(bones)),
        words=frozenset(tokens(content)),
        korean=any("가" <= character <= "힣" for character in content),
    )


def _similarity(left: str, right: str) -> float:
    return cosine(_vector(left), _vector(right))


@cached(1024)
def _vector(text: str) -> SparseVector[int]:
    return _EMBEDDER.embed(text)


def _same_but_for_guarded_pieces(ours: _Shape, theirs: _Shape) -> bool:
    """Whether two statements say the same once numbers, names, quotes and negations are left out."""
    if ours.skeleton == theirs.skeleton:
        return True
    if ours.korean and theirs.korean:
        return _similarity(ours.skeleton, theirs.skeleton) >= _KOREAN_SHAPE_MIN
    return ours.skeleton_words ^ theirs.skeleton_words <= _REWORDING_TOKENS


DISPUTED_KINDS = kinds_where(lambda rules: rules.disputes)
# With this many live values, none of them verified or a person's, a statement is a series and no dispute (R6).
_SERIES_MIN = 4


def open_disputes(reader: Reader, visible_keys: Sequence[str], type: LinkType) -> list[Dispute]:
    return [dispute_from(link) for link in reader.open_links(visible_keys, type)]


def dispute_from(link: Link) -> Dispute:
    return Dispute(
        id=link.id,
        kind=link.type,
        units=(link.source, link.target),
        reason=link.note,
        similarity=link.weight,
        opened_at=link.at,
        open=link.open,
        winner=link.winner,
    )


def with_disputes(stored: Stored, links: Sequence[Link]) -> Stored:
    """The answer of a write with what its unit contradicts and repeats."""
    return replace(
        stored,
        conflicts=tuple(dispute_from(link) for link in links if link.type is LinkType.CONTRADICTS),
        similar=tuple(dispute_from(link) for link in links if link.type is LinkType.DUPLICATES),
    )


def with_open_disputes(act: Act, stored: Stored) -> Stored:
    """The answer of a promotion with everything its unit has to settle among its new neighbours (R5)."""
    open_links(act, stored.unit)
    links = [link for link in act.transaction.links_of(stored.unit.id) if link.open]
    sides = act.transaction.units({side for link in links for side in (link.source, link.target)})
    seen = {side for side, unit in sides.items() if unit.live and unit.scope.key in act.caller.visible_keys}
    return with_disputes(stored, [link for link in links if {link.source, link.target} <= seen])


def link_units(act: Act, source: str, target: str, type: LinkType, weight: float, note: str) -> Link:
    """Link two units; a contradiction or a duplicate stays open until somebody resolves it."""
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
    event, _ = act.record(EventType.LINK_ADDED, {"link": link}, subject=source)
    return Link.from_json(link | {"id": event.id})


def open_links(
    act: Act, unit: Unit, candidates: Iterable[str] = (), *, is_new: bool = False, is_new_text: bool = False
) -> list[Link]:
    """Link a unit with the visible ones that it repeats or contradicts, among `candidates` and its own topic.

    A new unit has no links yet, and a new text no units that it was replaced by.
    """
    if unit.kind not in DISPUTED_KINDS:
        return []
    links = [] if is_new else act.transaction.links_of(unit.id)
    linked = {side for link in links for side in (link.source, link.target)} | {unit.id}
    successors = [] if is_new_text else _successors(act, unit.content)
    rivals = {rival.id: rival for rival in _rivals(act, unit.content, candidates)}
    rivals |= {after.id: after for after, _ in successors}
    unlinked = [rival for rival in rivals.values() if rival.id not in linked]
    comparisons = compared(unit.content, unlinked, act.config.gate, contradictions_max=_SERIES_MIN)
    # A text that was merged away and comes back is proposed for merging again.
    settled = linked | {each.other.id for each in comparisons if each.type is not LinkType.SIMILAR_TO}
    again = [repetition(unit.content, before, after) for after, before in successors if after.id not in settled]
    repeated = {each.other.id for each in again}
    return [
        link_units(act, unit.id, each.other.id, each.type, each.similarity, each.note)
        for each in (*again, *(each for each in comparisons if each.other.id not in repeated))
    ]


def _rivals(act: Act, content: str, candidates: Iterable[str]) -> list[Unit]:
    """Live visible units that are the same but for numbers, names and negations, and those of the candidates."""
    skeleton_key = canonical_key(skeleton(content))
    topic = act.transaction.units_with_skeleton(act.caller.visible_keys, skeleton_key, _SERIES_MIN + 1)
    units = {} if _is_series(topic) else {unit.id: unit for unit in topic}
    units |= act.transaction.units(candidates)
    return [unit for unit in units.values() if _is_rival(act, unit)]


def _is_series(topic: Sequence[Unit]) -> bool:
    """Whether the members of a topic, the unit itself among them, are many values that nobody vouches for."""
    vouched = any(unit.status is not Status.HYPOTHESIS or unit.provenance[0].actor.kind == "human" for unit in topic)
    return len(topic) > _SERIES_MIN and not vouched


def _is_rival(act: Act, unit: Unit) -> bool:
    return unit.live and unit.scope.key in act.caller.visible_keys and unit.kind in DISPUTED_KINDS


def _successors(act: Act, content: str) -> list[tuple[Unit, Unit]]:
    """What replaced units with this text and says something else now, each with the unit it replaced."""
    successors: dict[str, tuple[Unit, Unit]] = {}
    for replaced in past_with_same_text(act.transaction, act.caller.visible_keys, content):
        last = _last_successor(act, replaced)
        if _is_rival(act, last) and canonical(last.content) != canonical(content):
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
