"""How two statements compare: the same, nearly the same, or opposed (G11, R6). Pure."""

from __future__ import annotations

from mnemarch.embedding.sparse import NgramHashEmbedder, cosine
from mnemarch.model.unit import LinkType
from mnemarch.model.value import value
from mnemarch.text.cache import cached
from mnemarch.text.difference import differences, oppose, skeleton
from mnemarch.text.empty_words import REWORDING_WORDS
from mnemarch.text.tokens import tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mnemarch.config import GateRules
    from mnemarch.embedding.sparse import SparseVector
    from mnemarch.model.unit import Unit

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
