"""The vectors of a graph's questions, and the comparison of one with all of them at once.

What is found here is nominated: single precision, added in whatever order is fast. `exact` says it to the last bit.
"""

from __future__ import annotations

from math import fsum, sqrt

from mnemon.embedding.sparse import SparseVector
from mnemon.errors import InvalidInput
from mnemon.lazy import Lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    import numpy as np
else:
    np = Lazy("numpy")

# How far a similarity may be off that was not computed exactly; single precision is good for some seven digits. What
# is less similar than that has nothing in common.
MARGIN = 1e-5
ROOM_MIN = 64
# Of the newest vectors so many entries are scanned before they are worth ordering by feature.
_TAIL_MIN = 2_048
# A feature that more than this share of the questions have is spread out over all of them: adding up a whole column
# costs less than looking up a thirtieth of it. The most frequent so many, at most.
_FREQUENT_SHARE = 1 / 32
_FREQUENT_MAX = 128
_SHORT_MAX = 1 << 16
# What is shorter is dealt with at one go, however often it has to be copied for that.
_SHORT_LINE = 1 << 14


class Rows:
    """Vectors by number, one after the other; a question is compared with each (A25's linear scan).

    If they are `indexed`, all but the newest are also ordered by feature, so that a question is compared only with
    those that share one with it (A8). What came after that is scanned, until it is worth ordering anew.
    """

    def __init__(self, *, indexed: bool) -> None:
        self._indexed = indexed
        self._columns: dict[Any, int] = {}
        self._features: list[Any] = []
        self._spans: dict[int, tuple[int, int]] = {}
        self._starts = np.zeros(ROOM_MIN, np.intp)
        self._numbers = np.zeros(ROOM_MIN, np.intp)
        self._there = np.zeros(ROOM_MIN, bool)
        self._count = self._filled = self._top = 0
        # As wide as an index is, so that looking up takes no conversion; the weights once more, short, to be scanned.
        self._places = np.zeros(ROOM_MIN, np.intp)
        self._weights = np.zeros(ROOM_MIN)
        self._short = np.zeros(ROOM_MIN, np.float32)
        self._products = np.zeros(ROOM_MIN, np.float32)
        self._dense = np.zeros(ROOM_MIN)
        self._ordered_rows = self._ordered_entries = 0
        self._by_column: _ByColumn | None = None

    def add(self, number: int, vector: Mapping[Any, float]) -> None:
        if not vector:
            return
        places = [self._column(feature) for feature in vector]
        end = self._filled + len(places)
        while end > len(self._places):
            self._places, self._weights = doubled(self._places), doubled(self._weights)
            self._short, self._products = doubled(self._short), doubled(self._products)
        self._places[self._filled : end] = places
        self._weights[self._filled : end] = self._short[self._filled : end] = list(vector.values())
        if self._count == len(self._starts):
            self._starts, self._numbers = doubled(self._starts), doubled(self._numbers)
        self._starts[self._count], self._numbers[self._count] = self._filled, number
        while number >= len(self._there):
            self._there = doubled(self._there)
        self._there[number] = True
        self._spans[number] = self._filled, end
        self._count += 1
        self._filled = end
        self._top = max(self._top, number + 1)

    def _column(self, feature: Any) -> int:
        column = self._columns.get(feature)
        if column is None:
            column = self._columns[feature] = len(self._features)
            self._features.append(feature)
            if column == len(self._dense):
                self._dense = doubled(self._dense)
        return column

    def remove(self, number: int) -> None:
        if self._spans.pop(number, None) is not None:
            self._there[number] = False

    def vector(self, number: int) -> Mapping[Any, float]:
        """A vector as it was given."""
        start, end = self._spans.get(number, (0, 0))
        features = [self._features[place] for place in self._places[start:end].tolist()]
        return dict(zip(features, self._weights[start:end].tolist(), strict=True))

    def asked(self, vector: Mapping[Any, float]) -> Asked:
        """What is needed to compare a vector; to be used with `with`."""
        get = self._columns.get
        columns = np.array([get(feature, -1) for feature in vector], np.intp)
        weights = np.array(list(vector.values()))
        known = columns >= 0
        return Asked(self, columns[known], weights[known])

    def similarities(self, columns: Any, weights: Any) -> tuple[Any, Any]:
        """The number of every row that has anything in common with this, and about how similar it is."""
        if self._indexed and self._filled - self._ordered_entries > max(_TAIL_MIN, self._ordered_entries // 16):
            self._order()
        sums = np.zeros(self._top) if self._by_column is None else self._by_column.sums(columns, weights, self._top)
        first, begin = self._ordered_rows, self._ordered_entries
        if self._count > first:
            products = self._products[begin : self._filled]
            dense = self._dense.astype(np.float32)
            np.take(dense, self._places[begin : self._filled], out=products, mode="clip")
            np.multiply(products, self._short[begin : self._filled], out=products)
            starts = self._starts[first : self._count] - begin
            sums[self._numbers[first : self._count]] = np.add.reduceat(products, starts)
        found = np.flatnonzero((sums > 0) & self._there[: self._top])
        return found, sums[found]

    def _order(self) -> None:
        """Order all entries by feature."""
        ends = np.append(self._starts[1 : self._count], self._filled)
        numbers = np.repeat(self._numbers[: self._count], ends - self._starts[: self._count])
        there = np.flatnonzero(self._there[numbers])
        places, numbers, weights = self._places[there], numbers[there].astype(np.int32), self._short[there]
        # A short type is sorted by its digits, which is much faster.
        short = places.astype(np.uint16) if len(self._features) <= _SHORT_MAX else places
        order = np.argsort(short, kind="stable")
        counts = np.bincount(places, minlength=len(self._features))
        self._by_column = _ByColumn(counts, numbers[order], weights[order], self._top)
        self._ordered_rows, self._ordered_entries = self._count, self._filled

    def exact(self, number: int) -> float:
        """The similarity to what was asked, to the last bit: `fsum` does not depend on the order."""
        start, end = self._spans[number]
        shared = fsum((self._weights[start:end] * self._dense[self._places[start:end]]).tolist())
        return max(-1.0, min(1.0, shared))


class _ByColumn:
    """Entries in the order of their features; the frequent ones with a number for every row."""

    def __init__(self, counts: Any, numbers: Any, weights: Any, rows: int) -> None:
        self._starts = np.concatenate([[0], np.cumsum(counts)])
        self._numbers = numbers
        self._weights = weights
        self._rows = rows
        frequent = np.flatnonzero(counts > rows * _FREQUENT_SHARE)
        frequent = frequent[np.argsort(-counts[frequent], kind="stable")][:_FREQUENT_MAX]
        self._line = np.full(len(counts), -1)
        self._line[frequent] = np.arange(len(frequent))
        self._spread = np.zeros((len(frequent), rows), np.float32)
        self._product = np.zeros(rows, np.float32)
        for line, column in enumerate(frequent.tolist()):
            span = slice(self._starts[column], self._starts[column + 1])
            self._spread[line, numbers[span]] = weights[span]

    def sums(self, columns: Any, weights: Any, size: int) -> Any:
        """What each row has in common with a question, by the row's number."""
        known = columns < len(self._line)
        columns, weights = columns[known], weights[known].astype(np.float32)
        lines = self._line[columns]
        sums = self._of_rare(columns[lines < 0], weights[lines < 0], size)
        frequent = lines >= 0
        if frequent.any():
            sums[: self._rows] += self._of_frequent(lines[frequent], weights[frequent])
        return sums

    def _of_frequent(self, lines: Any, weights: Any) -> Any:
        if self._rows <= _SHORT_LINE:
            return weights @ self._spread[lines]
        # Of long lines a copy would cost more than all the rest.
        shared = np.zeros(self._rows, np.float32)
        for line, weight in zip(lines, weights, strict=True):
            np.multiply(self._spread[line], weight, out=self._product)
            shared += self._product
        return shared

    def _of_rare(self, columns: Any, weights: Any, size: int) -> Any:
        begins, ends = self._starts[columns], self._starts[columns + 1]
        counts = ends - begins
        last = np.cumsum(counts)
        total = int(last[-1]) if len(last) else 0
        if not total:
            return np.zeros(size)
        if total <= _SHORT_LINE:
            at = np.repeat(begins - last + counts, counts) + np.arange(total)
            numbers, shared = self._numbers[at], self._weights[at]
        else:
            # Of long runs it is faster to copy each than to look up every entry.
            spans = [slice(*span) for span in zip(begins.tolist(), ends.tolist(), strict=True)]
            numbers = np.concatenate([self._numbers[span] for span in spans])
            shared = np.concatenate([self._weights[span] for span in spans])
        return np.bincount(numbers, weights=shared * np.repeat(weights, counts), minlength=size)


class Asked:
    """One question under way: its vector spread out, so that the weight of a feature is found by its number."""

    def __init__(self, rows: Rows, columns: Any, weights: Any) -> None:
        self._rows = rows
        self._columns = columns
        self._weights = weights

    def __enter__(self) -> Asked:
        self._rows._dense[self._columns] = self._weights
        return self

    def __exit__(self, *_: object) -> None:
        self._rows._dense[self._columns] = 0.0

    def all(self) -> tuple[Any, Any]:
        """The number of every row that has anything in common with this, and about how similar it is."""
        return self._rows.similarities(self._columns, self._weights)

    def exact(self, number: int) -> float:
        return self._rows.exact(number)


def doubled(column: Any) -> Any:
    return np.concatenate([column, np.zeros(len(column), column.dtype)])


def as_unit_vector(given: Any) -> Mapping[Any, float]:
    """What an embedder gave, as a sparse vector of length 1 (or empty)."""
    if isinstance(given, SparseVector):
        return given
    try:
        weights = {_feature(feature): float(weight) for feature, weight in _items(given)}
        largest = max(map(abs, weights.values()), default=0.0)
        if largest and not 1e-100 < largest < 1e100:  # Their squares would be lost.
            weights = {feature: weight / largest for feature, weight in weights.items()}
        length = sqrt(fsum([weight * weight for weight in weights.values()]))
    except (TypeError, ValueError, OverflowError):
        weights, length = {}, float("nan")
    if not length < float("inf"):
        raise InvalidInput(
            f"The embedder gave {type(given).__name__} with something that is no finite number, or no feature.",
            hint="embed(text) gives a list of numbers, or a mapping from whole numbers or texts to numbers.",
        )
    return {feature: weight / length for feature, weight in weights.items() if weight}


def _items(given: Any) -> Any:
    return given.items() if hasattr(given, "items") else enumerate(given)


def _feature(given: Any) -> int | str:
    """A feature that a file can give back."""
    if type(given) is str or type(given) is int:
        return given
    if isinstance(given, str | bool) or not hasattr(given, "__index__"):
        raise ValueError(f"{given!r} is no feature")
    return int(given)
