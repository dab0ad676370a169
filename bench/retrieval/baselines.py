"""What recall is held against: textbook BM25 and the seed's plain n-gram hash, over the same units."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nlargest
from math import log
from unicodedata import normalize

from Stemmer import Stemmer

from mnemarch.embedding.sparse import NgramHashEmbedder
from mnemarch.text.words import STOP_WORDS

_K1, _B = 1.2, 0.75
_WORDS = re.compile("[가-힣]+|[a-z0-9']+")
_STEM = Stemmer("english").stemWord

# From a question and a number to that many places of texts, best first.
Ranker = Callable[[str, int], list[int]]


class Postings:
    """An inverted index: the sum of what each feature of a question adds to each text."""

    def __init__(self) -> None:
        self._held: dict[str | int, tuple[array[int], array[float]]] = {}
        self._count = 0

    def add(self, weights: Mapping[str, float] | Mapping[int, float]) -> None:
        """The next text."""
        held = self._held
        for feature, weight in weights.items():
            known = held.get(feature)
            if known is None:
                known = held[feature] = array("i"), array("f")
            known[0].append(self._count)
            known[1].append(weight)
        self._count += 1

    def count(self, feature: str) -> int:
        """How many texts have it."""
        return len(self._held[feature][0]) if feature in self._held else 0

    def best(self, asked: Mapping[str, float] | Mapping[int, float], limit: int) -> list[int]:
        """The places of the best texts that have anything of what is asked."""
        totals = [0.0] * self._count
        for feature, weight in asked.items():
            for text, held in zip(*self._held.get(feature, ((), ())), strict=True):
                totals[text] += weight * held
        best = nlargest(limit, range(self._count), key=lambda text: (totals[text], -text))
        return [text for text in best if totals[text] > 0]


def bm25(texts: Sequence[str]) -> Ranker:
    """Stemmed words, Korean as pairs of syllables; k1 1.2, b 0.75, nothing else."""
    counted = [Counter(words(text)) for text in texts]
    mean = sum(counts.total() for counts in counted) / max(1, len(texts))
    postings = Postings()
    for counts in counted:
        damping = _K1 * (1 - _B + _B * counts.total() / mean)
        postings.add({word: count * (_K1 + 1) / (count + damping) for word, count in counts.items()})

    def rank(question: str, limit: int) -> list[int]:
        asked = {word: postings.count(word) for word in words(question)}
        rarities = {word: log(1 + (len(texts) - seen + 0.5) / (seen + 0.5)) for word, seen in asked.items()}
        return postings.best(rarities, limit)

    return rank


def ngram_hash(texts: Iterable[str]) -> Ranker:
    """The seed's embedder (A10), by cosine to every text."""
    embedder = NgramHashEmbedder()
    postings = Postings()
    for text in texts:
        postings.add(embedder.embed(text))
    return lambda question, limit: postings.best(embedder.embed(question), limit)


def words(text: str) -> list[str]:
    """Stems without stop words, and of Korean words each pair of syllables.

    Not the tokens of mnemarch: a floor must not move with what stands on it.
    """
    found: list[str] = []
    for word in _WORDS.findall(normalize("NFKC", text).lower()):
        if word[0] >= "가":
            found += [word[at : at + 2] for at in range(max(1, len(word) - 1))]
        elif word not in STOP_WORDS:
            found.append(_STEM(word))
    return found
