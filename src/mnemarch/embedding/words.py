"""The bag of words (A10's alternative): which telling words two texts share; Korean words by stem and form."""

from __future__ import annotations

import re
from functools import cache
from unicodedata import normalize

from mnemarch.embedding.sparse import Frequencies, unit_vector
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

    def __init__(self, frequencies: Frequencies | None = None) -> None:
        self._become(frequencies or Frequencies())

    def _become(self, frequencies: Frequencies) -> None:
        self.frequencies = frequencies
        self._id = _id(FEATURES_VERSION, TOKENS_VERSION, frequencies)

    @property
    def id(self) -> str:
        """What the vectors depend on, in one string: learning changes it."""
        return self._id

    def embed(self, text: str) -> SparseVector[str]:
        """The unit vector of `text`; empty for a text without telling words."""
        features = features_of(text)
        if self.frequencies.documents:
            rarity = self.frequencies.rarity
            features = {feature: weight * rarity(feature) for feature, weight in features.items()}
        return unit_vector(features, self._id)

    def learn(self, texts: Iterable[str]) -> None:
        """Count the features of more texts. Vectors made before can't be compared with later ones."""
        self._become(self.frequencies.and_of(map(features_of, texts)))

    def export_state(self) -> dict[str, Any]:
        """All that is needed to make the same vectors elsewhere."""
        return {
            "featuresVersion": FEATURES_VERSION,
            "tokensVersion": TOKENS_VERSION,
            "documents": self.frequencies.documents,
            "frequencies": dict(sorted(self.frequencies.counts.items())),
        }

    def import_state(self, state: Mapping[str, Any]) -> None:
        """Become the embedder that `state` describes, unless this version can't reproduce it."""
        frequencies = _frequencies(state)
        versions = state["featuresVersion"], state["tokensVersion"]
        if versions != (FEATURES_VERSION, TOKENS_VERSION):
            raise InvalidInput(
                f"Features {versions[0]!r} over tokens {versions[1]!r} can't be made here: this version has "
                f"{FEATURES_VERSION} and {TOKENS_VERSION}.",
                hint="Learn and embed the texts again with this version.",
            )
        self._become(frequencies)


def features_of(text: str) -> dict[str, float]:
    """Each feature of a text once, with the weight of its kind."""
    features: dict[str, float] = {}
    if not text.isascii():
        text = normalize("NFKC", text)
    for word in text.split():
        features.update(_features_of_word(word))
    return features


def id_of(state: Mapping[str, Any]) -> str:
    """The id of the embedder that an exported state describes, also if this version can't reproduce it."""
    return _id(state.get("featuresVersion"), state.get("tokensVersion"), _frequencies(state))


def _id(features_version: object, tokens_version: object, frequencies: Frequencies) -> str:
    return f"bag-of-words/{features_version}/{tokens_version}/{frequencies.documents}/{frequencies.digest()}"


def _frequencies(state: Mapping[str, Any]) -> Frequencies:
    counts = state.get("frequencies")
    if not isinstance(counts, dict) or any(name not in state for name in _STATE):
        raise InvalidInput(
            "This is no state of a bag of words.", hint=f"Give what export_state gave: {', '.join(_STATE)}."
        )
    return Frequencies(documents=state["documents"], counts=counts)


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
