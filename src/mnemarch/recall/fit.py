"""How likely it is that anything in memory answers a question: by how much of it the best texts say. Pure."""

from __future__ import annotations

from heapq import nlargest
from math import exp, log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mnemarch.recall.scores import Relevance, Term

_LOOKED_AT = 10
# Fitted to questions with and without an answer of two public sets and of our own, each weighing the same.
_BIAS = -2.69
_OF_COVERED = 5.36
_OF_WORDS = 1.65
_OF_LEAD = 1.25
# In a large memory some text has the words of any question.
_OF_DOCUMENTS = -0.5
# Where meaning takes part, a cosine above that of the nearest stranger speaks for an answer, and a lower one against
# it. The nearest of many is nearer.
_OF_MEANING = 6.0
_COSINE_OF_STRANGERS = 0.05


def fit_of(
    relevances: Sequence[Relevance], terms: Sequence[Term], documents: int, meanings: Mapping[str, float]
) -> float:
    """From 0 to 1, by the best of the candidates.

    It rises with the share of the question's words that stand together in one text and its neighbours, with how many
    words that is a share of, with how far the best text is ahead of the tenth, and with the nearest text's cosine.
    """
    asked = sum([term.is_asked for term in terms])
    best = nlargest(_LOOKED_AT, relevances, key=lambda relevance: relevance.score)
    covered = max((relevance.covered for relevance in best), default=0.0)
    if not asked or not (covered or meanings):
        return 0.0
    strengths = [relevance.strength for relevance in best] or [0.0]
    sign = _BIAS + _OF_COVERED * covered + _OF_WORDS * log(asked) + _OF_LEAD * (max(strengths) - min(strengths))
    size = log(max(1, documents))
    if meanings:
        sign += _OF_MEANING * (max(meanings.values()) - _COSINE_OF_STRANGERS * size)
    return 1 / (1 + exp(-sign - _OF_DOCUMENTS * size))
