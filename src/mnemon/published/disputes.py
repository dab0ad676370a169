"""Where two statements meet: the same, nearly the same, or opposed (G11, R6). Pure."""

from __future__ import annotations

from mnemon.embedding.ngram import NgramHashEmbedder, cosine
from mnemon.model.link import LinkType
from mnemon.model.outcome import Dispute
from mnemon.model.value import value
from mnemon.text.difference import differences, skeleton

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mnemon.config import GateRules
    from mnemon.model.link import Link
    from mnemon.model.unit import Unit
    from mnemon.text.difference import Difference

_EMBEDDER = NgramHashEmbedder()
_FOUND_MAX = 3
_VALUES = frozenset({"number", "negation"})


@value
class Meeting:
    """How a new statement stands to a known one."""

    type: LinkType
    other: Unit
    similarity: float
    note: str

    __hash__ = object.__hash__


def meetings(content: str, others: Iterable[Unit], rules: GateRules) -> list[Meeting]:
    """The known units that this content opposes, repeats in other words, or resembles; the closest few of each."""
    vector = _EMBEDDER.embed(content)
    shape = skeleton(content)
    found: dict[LinkType, list[Meeting]] = {}
    for other in others:
        similarity = cosine(vector, _EMBEDDER.embed(other.content))
        alike = shape == skeleton(other.content)
        if not alike and similarity < rules.tau_sim:
            continue
        parted = differences(content, other.content)
        if parted and _oppose(parted):
            note = "; ".join(f"{part.what}: {part.left or 'none'} / {part.right or 'none'}" for part in parted)
            meeting = Meeting(LinkType.CONTRADICTS, other, similarity, note)
        elif not parted and (alike or similarity >= rules.tau_dup):
            meeting = Meeting(LinkType.DUPLICATES, other, similarity, "the same in nearly the same words")
        else:
            meeting = Meeting(LinkType.SIMILAR_TO, other, similarity, "similar wording")
        found.setdefault(meeting.type, []).append(meeting)
    ranked = (sorted(group, key=lambda meeting: (-meeting.similarity, meeting.other.id)) for group in found.values())
    return [meeting for group in ranked for meeting in group[:_FOUND_MAX]]


def _oppose(parted: Sequence[Difference]) -> bool:
    """Statements that part in values only, or in one respect, oppose each other; in subject and value, they speak of
    different things: `a_pool` of 5 and `b_pool` of 8 can both be."""
    return len(parted) == 1 or all(part.what in _VALUES for part in parted)


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
