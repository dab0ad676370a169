"""Estimates how likely the memory is to answer a question, from how much of it the best texts contain. Pure."""

from __future__ import annotations

from math import exp, log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mnemarch.recall.scores import Relevance, Term

_LOOKED_AT = 10
# The weights were fitted on half of the questions of two public sets and our own, with and without an answer. Each set
# weighs the same. They were checked on the other half (bench/retrieval/silence).
_BIAS = -4.95
_OF_COVERED = 0.2
_OF_STRENGTH = 5.1
_OF_WORDS = 2.1
# In a large memory some text contains the words of any question. Memories below the minimum were not measured.
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
    """The probability, from 0 to 1, that one of the best candidates is an answer.

    It rises with the share of the question that one text and its neighbours contain, with the strength of that match,
    and with the number of words asked. With vectors, it also rises with the distance of the nearest text's cosine from
    `noise`, the cosine of unrelated texts.
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
