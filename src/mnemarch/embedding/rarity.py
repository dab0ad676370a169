"""How much a feature tells: the fewer texts have it, the more."""

from __future__ import annotations

from math import log

from xxhash import xxh3_64_hexdigest

from mnemarch.errors import InvalidInput
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any


@value
class Frequencies:
    """In how many of `documents` texts each feature is. Without any, every feature tells the same."""

    documents: int = 0
    counts: Mapping[Any, int] = {}

    def __check__(self) -> None:
        whole = (self.documents, *self.counts.values())
        if not all(type(count) is int and 0 <= count <= self.documents for count in whole):
            raise InvalidInput(
                f"Frequencies of {self.documents!r} texts must be whole numbers from 0 to that.",
                hint="Count each text once for each feature it has.",
            )

    @classmethod
    def of(cls, texts: Iterable[Iterable[Any]]) -> Frequencies:
        """Counted over texts, each given as its features (or its vector)."""
        return cls().and_of(texts)

    def and_of(self, texts: Iterable[Iterable[Any]]) -> Frequencies:
        """These and those of more texts."""
        documents, counts = self.documents, dict(self.counts)
        for features in texts:
            documents += 1
            for feature in set(features):
                counts[feature] = counts.get(feature, 0) + 1
        return Frequencies(documents=documents, counts=counts)

    def rarity(self, feature: Any) -> float:
        """ln((N + 1) / (df + 0.5)): always above 0."""
        return log((self.documents + 1) / (self.counts.get(feature, 0) + 0.5))

    def digest(self) -> str:
        """Names these frequencies: weights by others make other vectors."""
        lines = sorted(f"{feature}\t{count}" for feature, count in self.counts.items() if count)
        return xxh3_64_hexdigest("\n".join((str(self.documents), *lines)).encode("utf-8", "surrogatepass"))
