"""The bag of words (A10's alternative): which telling words two texts share; Korean words by stem and form."""

from __future__ import annotations

import re
from functools import cache
from math import log
from unicodedata import normalize

from xxhash import xxh3_64_hexdigest

from mnemarch.embedding.sparse import unit_vector
from mnemarch.errors import InvalidInput
from mnemarch.text import korean
from mnemarch.text.cache import cached
from mnemarch.text.tokens import TOKENS_VERSION, telling_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from mnemarch.embedding.sparse import SparseVector

# Other features or weights make other vectors: a change of meaning raises the version.
FEATURES_VERSION = 1
# A Korean word has about four features, any other word one. So both weigh the same.
_OF_ONE_TOKEN = 4.0
_STATE = ("featuresVersion", "tokensVersion", "documents", "frequencies")


class BagOfWordsEmbedder:
    """Sparse vectors `{feature: weight}`, weighted by rarity once frequencies were learnt."""

    def __init__(self) -> None:
        self._become(0, {})

    def _become(self, documents: int, counts: Mapping[str, int]) -> None:
        # In how many of `documents` texts each feature occurs. The fewer, the more it tells.
        self.documents, self.counts = documents, counts
        lines = sorted(f"{feature}\t{count}" for feature, count in counts.items() if count)
        digest = xxh3_64_hexdigest("\n".join((str(documents), *lines)).encode("utf-8", "surrogatepass"))
        self._id = f"bag-of-words/{FEATURES_VERSION}/{TOKENS_VERSION}/{documents}/{digest}"

    @property
    def id(self) -> str:
        """What the vectors depend on, in one string: learning changes it."""
        return self._id

    def embed(self, text: str) -> SparseVector[str]:
        """The unit vector of `text`; empty for a text without telling words."""
        features = features_of(text)
        if self.documents:
            features = {feature: weight * self._rarity(feature) for feature, weight in features.items()}
        return unit_vector(features, self._id)

    def learn(self, texts: Iterable[str]) -> None:
        """Count the features of more texts. Vectors made before can't be compared with later ones."""
        documents, counts = self.documents, dict(self.counts)
        for text in texts:
            documents += 1
            for feature in features_of(text):
                counts[feature] = counts.get(feature, 0) + 1
        self._become(documents, counts)

    def _rarity(self, feature: str) -> float:
        """ln((N + 1) / (df + 0.5)): always above 0."""
        return log((self.documents + 1) / (self.counts.get(feature, 0) + 0.5))

    def export_state(self) -> dict[str, Any]:
        """All that is needed to make the same vectors elsewhere."""
        return {
            "featuresVersion": FEATURES_VERSION,
            "tokensVersion": TOKENS_VERSION,
            "documents": self.documents,
            "frequencies": dict(sorted(self.counts.items())),
        }

    def import_state(self, state: Mapping[str, Any]) -> None:
        """Become the embedder that `state` describes, unless this version can't reproduce it."""
        documents, counts = state.get("documents"), state.get("frequencies")
        numbers = [documents, *(counts.values() if isinstance(counts, dict) else [None])]
        if type(documents) is not int or not all(type(count) is int and 0 <= count <= documents for count in numbers):
            raise InvalidInput(
                "This is no state of a bag of words.", hint=f"Give what export_state gave: {', '.join(_STATE)}."
            )
        versions = state.get("featuresVersion"), state.get("tokensVersion")
        if versions != (FEATURES_VERSION, TOKENS_VERSION):
            raise InvalidInput(
                f"Features {versions[0]!r} over tokens {versions[1]!r} can't be made here: this version has "
                f"{FEATURES_VERSION} and {TOKENS_VERSION}.",
                hint="Learn and embed the texts again with this version.",
            )
        self._become(documents, dict(state["frequencies"]))


def features_of(text: str) -> dict[str, float]:
    """Each feature of a text once, with the weight of its kind."""
    features: dict[str, float] = {}
    if not text.isascii():
        text = normalize("NFKC", text)
    for word in text.split():
        features.update(_features_of_word(word))
    return features


@cached(16_384)
def _features_of_word(word: str) -> dict[str, float]:
    tokens = telling_tokens(word)
    if word.isascii():
        return dict.fromkeys(tokens, _OF_ONE_TOKEN)
    runs = _hangul_runs()
    features = dict.fromkeys([token for token in tokens if not runs.search(token)], _OF_ONE_TOKEN)
    for run in runs.findall(word):
        # What search tokens leave out, such as the particle of a foreign word, is left out here too.
        if set(tokens).issuperset(korean.features(run)):
            features.update(dict.fromkeys(korean.fine_features(run), 1.0))
    return features


@cache
def _hangul_runs() -> re.Pattern[str]:
    return re.compile("[\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff]+")
