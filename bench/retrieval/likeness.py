"""How well a similarity tells Korean pairs that mean the same from those that don't."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bench.retrieval.measures import auc
from bench.retrieval.sets import Pairs
from bench.retrieval.variants import SEMANTIC, semantic
from mnemarch.embedding import BagOfWordsEmbedder, NgramHashEmbedder, SentenceEncoder, cosine

WORDS = "bag-of-words"


def aucs(given: Pairs) -> dict[str, float | None]:
    """The AUC of each similarity of Mnemarch; None for one that is not installed.

    Learnt is how rare each word is, from the set's own texts; never which of them belong together.
    """
    learnt = BagOfWordsEmbedder()
    learnt.learn([text for pair in given.pairs for text in pair])
    embedders: dict[str, Callable[[str], Mapping[Any, float]]] = {
        "ngram-hash": NgramHashEmbedder().embed,
        f"{WORDS}, nothing learnt": BagOfWordsEmbedder().embed,
        WORDS: learnt.embed,
    }
    found: dict[str, float | None] = {
        name: auc([cosine(embed(left), embed(right)) for left, right in given.pairs], given.same)
        for name, embed in embedders.items()
    }
    return found | {SEMANTIC: None if semantic() is None else _auc_of_sentences(given)}


def _auc_of_sentences(given: Pairs) -> float:
    encoder = SentenceEncoder()
    lefts, rights = (encoder.embed([pair[side] for pair in given.pairs]) for side in (0, 1))
    return auc([float(left @ right) for left, right in zip(lefts, rights, strict=True)], given.same)
