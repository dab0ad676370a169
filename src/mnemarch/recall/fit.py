"""How likely it is that anything in memory answers a question: by how much of it the best texts say. Pure."""

from __future__ import annotations

from math import exp, log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mnemarch.recall.scores import Relevance, Term

_LOOKED_AT = 10
# Fitted to one half of the questions of two public sets and of our own, with and without an answer, each set weighing
# the same, and checked on the other half (bench/retrieval/silence).
_BIAS = -4.95
_OF_COVERED = 0.2
_OF_STRENGTH = 5.1
_OF_WORDS = 2.1
# In a large memory some text has the words of any question. Smaller ones than this were not measured.
_OF_DOCUMENTS = -0.41
_DOCUMENTS_MIN = 30
_OF_MEANING = 6.1


def fit_of(
    relevances: Sequence[Relevance],
    terms: Sequence[Term],
    documents: int,
    meanings: Mapping[str, float],
    noise: float,
) -> float:
    """From 0 to 1, by the best of the candidates.

    It rises with the share of the question that stands together in one text and its neighbours, with how strongly it
    does, with how many words that is a share of, and where meaning takes part with how far the nearest text's cosine is
    above that of unrelated texts, `noise`.
    """
    asked = sum([term.is_asked for term in terms])
    best = sorted(relevances, key=lambda relevance: relevance.score, reverse=True)[:_LOOKED_AT]
    if not asked or not best:
        return 0.0
    sign = _BIAS + _OF_WORDS * log(asked) + _OF_DOCUMENTS * log(max(_DOCUMENTS_MIN, documents))
    sign += _OF_COVERED * max(relevance.covered for relevance in best)
    sign += _OF_STRENGTH * max(relevance.strength for relevance in best)
    if meanings:
        sign += _OF_MEANING * (max(meanings.values()) - noise)
    return 1 / (1 + exp(-sign))
