"""The vectors of a graph's questions, and the comparison of one with all of them at once.

What is found here is nominated: single precision, added in whatever order is fast. `exact` says it to the last bit.
"""

from __future__ import annotations

from itertools import islice, repeat
from math import fsum

from mnemarch.graph.entries import ROOM_MIN, ByFeature, Lines, Scanned, doubled
from mnemarch.lazy import Lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    import numpy as np
else:
    np = Lazy("numpy")

# How far a similarity may be off that was not computed exactly; single precision is good for some seven digits. What
# is less similar than that has nothing in common.
MARGIN = 1e-5
# So many new entries are scanned before they are worth laying out, and so many in all before they are worth ordering.
_SCANNED_MIN = 2_048
_ORDERED_MIN = 1 << 15


class Rows:
    """Vectors by number; a question is compared with each.

    Frequent features are spread out in lines, of which a question needs few. The other entries are scanned (A25); if
    the rows are `indexed` and there are many, they are ordered by feature (A8), and only what came since is scanned.
    """

    def __init__(self, *, indexed: bool) -> None:
        self._indexed = indexed
        self._columns: dict[Any, int] = {}
        self._features: list[Any] = []
        self._spans: dict[int, tuple[int, int]] = {}
        self._there = np.zeros(ROOM_MIN, np.float32)
        self._places = np.zeros(ROOM_MIN, np.int32)
        self._weights = np.zeros(ROOM_MIN)
        self._filled = self._top = 0
        # What is asked, by column; the one after the last column is for whatever no row has.
        self._asked = np.zeros(ROOM_MIN)
        self._lines = Lines(np.zeros(0, np.intp), 0)
        self._by_feature: ByFeature | None = None
        self._scanned = Scanned()
        self._laid_out = 0

    def add(self, number: int, vector: Mapping[Any, float]) -> None:
        if not vector:
            return
        end = self._filled + len(vector)
        while end > len(self._places):
            self._places, self._weights = doubled(self._places), doubled(self._weights)
        while number >= len(self._there):
            self._there = doubled(self._there)
        places, weights = self._places[self._filled : end], self._weights[self._filled : end]
        places[:] = [self._column(feature) for feature in vector]
        weights[:] = list(vector.values())
        rest = self._lines.add(number, places, weights)
        self._scanned.add(number, places[rest], weights[rest])
        self._there[number] = 1.0
        self._spans[number] = self._filled, end
        self._filled = end
        self._top = max(self._top, number + 1)

    def _column(self, feature: Any) -> int:
        column = self._columns.get(feature)
        if column is None:
            column = self._columns[feature] = len(self._features)
            self._features.append(feature)
            if len(self._features) == len(self._asked):
                self._asked = doubled(self._asked)
        return column

    def remove(self, number: int) -> None:
        if self._spans.pop(number, None) is not None:
            self._there[number] = 0.0

    def vector(self, number: int) -> Mapping[Any, float]:
        """A vector as it was given."""
        start, end = self._spans.get(number, (0, 0))
        features = [self._features[place] for place in self._places[start:end].tolist()]
        return dict(zip(features, self._weights[start:end].tolist(), strict=True))

    def asked(self, vector: Mapping[Any, float]) -> Asked:
        """What is needed to compare a vector; to be used with `with`."""
        columns = np.array(list(map(self._columns.get, vector, repeat(len(self._features)))), np.intp)
        return Asked(self, columns, np.array(list(vector.values())))

    def similarities(self, columns: Any, weights: Any) -> Any:
        """About how similar each row is, by its number; 0 if they have nothing in common, or there is none."""
        if self._scanned.count - self._laid_out > max(_SCANNED_MIN, self._filled // 16):
            self._lay_out()
        weights = weights.astype(np.float32)
        sums = self._lines.sums(columns, weights, self._top)
        if self._by_feature is not None:
            self._by_feature.add_to(sums, columns, weights)
        self._scanned.add_to(sums, self._asked)
        sums *= self._there[: self._top]
        return sums

    def _lay_out(self) -> None:
        """Find anew which features are frequent, and a place for the entries of the others."""
        spans = np.array(list(self._spans.values()), np.intp).reshape(-1, 2)
        counts = spans[:, 1] - spans[:, 0]
        at = np.repeat(spans[:, 1] - np.cumsum(counts), counts) + np.arange(counts.sum())
        numbers = np.repeat(np.array(list(self._spans), np.intp), counts)
        places, weights = self._places[at], self._weights[at]
        self._lines = Lines(np.bincount(places, minlength=len(self._features)), self._top)
        rest = self._lines.add(numbers, places, weights)
        numbers, places, weights = numbers[rest], places[rest], weights[rest]
        self._scanned = Scanned()
        self._by_feature = None
        if self._indexed and len(places) >= _ORDERED_MIN:
            self._by_feature = ByFeature(len(self._features), numbers, places, weights)
        else:
            self._scanned.add(numbers, places, weights)
        self._laid_out = self._scanned.count

    def exact(self, numbers: Sequence[int]) -> list[float]:
        """How similar these rows are to what was asked, to the last bit: `fsum` does not depend on the order."""
        if not numbers:
            return []
        spans = [slice(*self._spans[number]) for number in numbers]
        places = np.concatenate([self._places[span] for span in spans])
        weights = np.concatenate([self._weights[span] for span in spans])
        shared = iter((weights * self._asked.take(places)).tolist())
        return [max(-1.0, min(1.0, fsum(islice(shared, span.stop - span.start)))) for span in spans]


class Asked:
    """One question under way: its vector spread out, so that the weight of a feature is found by its column."""

    def __init__(self, rows: Rows, columns: Any, weights: Any) -> None:
        self._rows = rows
        self._columns = columns
        self._weights = weights

    def __enter__(self) -> Asked:
        self._rows._asked[self._columns] = self._weights
        return self

    def __exit__(self, *_: object) -> None:
        self._rows._asked[self._columns] = 0.0

    def all(self) -> Any:
        """About how similar each row is, by its number; 0 if they have nothing in common, or there is none."""
        return self._rows.similarities(self._columns, self._weights)

    def exact(self, numbers: Sequence[int]) -> list[float]:
        return self._rows.exact(numbers)
