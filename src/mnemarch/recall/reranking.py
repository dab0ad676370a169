"""Reorders the first candidates with a configured model that reads question and text together."""

from __future__ import annotations

from mnemarch.errors import StoreUnavailable
from mnemarch.recall.scores import add_reranked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mnemarch.ports import Reranker
    from mnemarch.recall.scores import Relevance


def reranked(reranker: Reranker, question: str, ordered: Sequence[Relevance], texts: Mapping[str, str]) -> list[str]:
    """Rerank the candidates whose texts are given. Returns notes for the answer."""
    first = [relevance for relevance in ordered if relevance.sketch.id in texts]
    try:
        scores = reranker.scores(question, [texts[relevance.sketch.id] for relevance in first])
    except StoreUnavailable as error:
        return [f"Not reranked: {error.message}"]
    add_reranked(first, scores)
    if len(scores) < len(first):
        return [f"Reranked {len(scores)} of the first {len(first)}: time was up (recall.rerank_s_max)."]
    return []
