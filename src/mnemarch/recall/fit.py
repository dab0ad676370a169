"""How likely it is that anything in memory answers a question: by how much of it the best texts say. Pure."""

from __future__ import annotations

from heapq import nlargest
from math import exp, log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mnemarch.recall.scores import Relevance, Term

_LOOKED_AT = 10
# Fitted to one half of the questions of two public sets and of our own, with and without an answer, each set weighing
# the same, and checked on the other half (bench/retrieval/silence).
_BIAS = 0.9
_OF_SAID = 0.9
_OF_STRENGTH = 2.8
# In a large memory some text has the words of any question. Smaller ones than this were not measured.
_OF_DOCUMENTS = -0.82
_DOCUMENTS_MIN = 30
_OF_MEANING = 4.4


def fit_of(
    relevances: Sequence[Relevance],
    terms: Sequence[Term],
    documents: int,
    meanings: Mapping[str, float],
    noise: float,
) -> float:
    """From 0 to 1, by the best of the candidates.

    It rises with how many words of the question stand together in one text and its neighbours, with how strongly they
    do, and where meaning takes part with how far the nearest text's cosine is above that of unrelated texts, `noise`.
    """
    asked = sum([term.is_asked for term in terms])
    best = nlargest(_LOOKED_AT, relevances, key=lambda relevance: relevance.score)
    if not asked or not best:
        return 0.0
    said = asked * max(relevance.covered for relevance in best)
    sign = _BIAS + _OF_SAID * said + _OF_STRENGTH * max(relevance.strength for relevance in best)
    if meanings:
        sign += _OF_MEANING * (max(meanings.values()) - noise)
    return 1 / (1 + exp(-sign - _OF_DOCUMENTS * log(max(_DOCUMENTS_MIN, documents))))
