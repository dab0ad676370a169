"""How well a similarity tells Korean pairs that mean the same from those that don't."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bench.retrieval.measures import auc
from bench.retrieval.sets import Pairs
from mnemon.embedding.ngram import NgramHashEmbedder, cosine

try:
    from mnemon.embedding.rarity import Frequencies
    from mnemon.embedding.words import BagOfWordsEmbedder
except ImportError:
    BagOfWordsEmbedder = None  # type: ignore[assignment, misc]

HASH, HASH_IDF, WORDS, WORDS_IDF = "ngram-hash", "ngram-hash, learnt", "bag-of-words, nothing learnt", "bag-of-words"
Embed = Callable[[str], Mapping[Any, float]]


def aucs(given: Pairs) -> dict[str, float | None]:
    """The AUC of each similarity of Mnemon; None for one that it has not."""
    return {name: None if embed is None else _auc(given, embed) for name, embed in _embedders(given).items()}


def _embedders(given: Pairs) -> dict[str, Embed | None]:
    """Learnt is how rare each word is, from the set's own texts; never which of them belong together."""
    plain = NgramHashEmbedder()
    if BagOfWordsEmbedder is None:
        return {HASH: plain.embed, HASH_IDF: None, WORDS: None, WORDS_IDF: None}
    texts = [text for pair in given.pairs for text in pair]
    weighted = plain.with_frequencies(Frequencies.of(map(plain.embed, texts)))
    learnt = BagOfWordsEmbedder()
    learnt.learn(texts)
    return {
        HASH: plain.embed,
        HASH_IDF: weighted.embed,
        WORDS: BagOfWordsEmbedder().embed,
        WORDS_IDF: learnt.embed,
    }


def _auc(given: Pairs, embed: Embed) -> float:
    return auc([cosine(embed(left), embed(right)) for left, right in given.pairs], given.same)
