"""Where two statements meet: the same, nearly the same, or opposed (G11, R6). Pure."""

from __future__ import annotations

from mnemarch.embedding.ngram import NgramHashEmbedder, cosine
from mnemarch.model.link import LinkType
from mnemarch.model.outcome import Dispute
from mnemarch.model.value import value
from mnemarch.text.difference import differences, oppose, skeleton
from mnemarch.text.kept import kept
from mnemarch.text.tokens import tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mnemarch.config import GateRules
    from mnemarch.embedding.sparse import SparseVector
    from mnemarch.model.link import Link
    from mnemarch.model.unit import Unit

_EMBEDDER = NgramHashEmbedder()
_FOUND_MAX = 3
_SHARED_MIN = 0.5
# Korean skeletons differ by particles and endings, which no list of words covers: here their shapes are compared.
_KOREAN_SHAPE_MIN = 0.85
# Words that a rewording may add or drop without saying anything else.
_EMPTY_WORDS = frozenset(
    tokens(
        "a an the is are was were be been being it its this that these those we our you your they their he she i "
        "will would shall should do does did has have had to of in on at for by with from as and or then so also "
        "now currently always please just only there here"
    )
)


@value
class Meeting:
    """How a new statement stands to a known one."""

    type: LinkType
    other: Unit
    similarity: float
    note: str


@value
class _Shape:
    """What is compared of a statement, worked out once: bulk writes meet the same neighbours again and again."""

    skeleton: str
    skeleton_words: frozenset[str]
    words: frozenset[str]
    korean: bool


def meetings(content: str, others: Iterable[Unit], rules: GateRules, *, opposed_max: int = _FOUND_MAX) -> list[Meeting]:
    """The known units that this content opposes, repeats in other words, or resembles; the closest few of each."""
    found: dict[LinkType, list[Meeting]] = {}
    for other in others:
        meeting = _meeting(content, other, rules)
        if meeting is not None:
            found.setdefault(meeting.type, []).append(meeting)
    ranked = (sorted(group, key=lambda meeting: (-meeting.similarity, meeting.other.id)) for group in found.values())
    return [meeting for group in ranked for meeting in group[: _found_max(group, opposed_max)]]


def _found_max(group: Sequence[Meeting], opposed_max: int) -> int:
    return opposed_max if group[0].type is LinkType.CONTRADICTS else _FOUND_MAX


def repetition(content: str, replaced: Unit, successor: Unit) -> Meeting:
    """How what was superseded stands to its successor when it is said again: one of the two can't hold (R8)."""
    note = f"says again what unit {replaced.id} said before unit {successor.id} took its place"
    return Meeting(LinkType.CONTRADICTS, successor, _similarity(content, successor.content), note)


def _meeting(content: str, other: Unit, rules: GateRules) -> Meeting | None:
    ours, theirs = _shape(content), _shape(other.content)
    if _same_but_for_guards(ours, theirs):
        parted = differences(content, other.content)
        if not parted:
            note = "the same but for words that say nothing"
            return Meeting(LinkType.DUPLICATES, other, _similarity(content, other.content), note)
        if oppose(parted):
            note = "; ".join(f"{part.what}: {part.left or 'none'} / {part.right or 'none'}" for part in parted)
            return Meeting(LinkType.CONTRADICTS, other, _similarity(content, other.content), note)
        return None
    if len(ours.words & theirs.words) < _SHARED_MIN * len(ours.words | theirs.words):
        return None
    if differences(content, other.content):
        return None
    similarity = _similarity(content, other.content)
    if similarity < rules.tau_sim:
        return None
    if similarity >= rules.tau_dup:
        return Meeting(LinkType.DUPLICATES, other, similarity, "the same in nearly the same words")
    return Meeting(LinkType.SIMILAR_TO, other, similarity, "similar wording")


@kept(1024)
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


@kept(1024)
def _vector(text: str) -> SparseVector[int]:
    return _EMBEDDER.embed(text)


def _same_but_for_guards(ours: _Shape, theirs: _Shape) -> bool:
    """Whether two statements say the same of the same, once numbers, names, quotes and negations are left out."""
    if ours.skeleton == theirs.skeleton:
        return True
    if ours.korean and theirs.korean:
        return _similarity(ours.skeleton, theirs.skeleton) >= _KOREAN_SHAPE_MIN
    return ours.skeleton_words ^ theirs.skeleton_words <= _EMPTY_WORDS


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
