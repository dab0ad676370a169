"""A graph as arrays: what a search or an eviction reads of every node at once.

The arrays only nominate candidates, in whatever order is fast. Candidates are compared again exactly. So a search gives
the same bits with the inverted index and without it, and after a graph was saved and loaded.
"""

from __future__ import annotations

from itertools import repeat
from math import fsum, sqrt

from mnemarch.embedding.sparse import SparseVector
from mnemarch.errors import InvalidInput
from mnemarch.graph.state import MICROS_PER_MIN
from mnemarch.graph.values import NodeType
from mnemarch.lazy import Lazy
from mnemarch.policy.heat import OF_RECENCY, rank_of, score, worth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    import numpy as np

    from mnemarch.graph.state import Vector, Vertex
    from mnemarch.policy.heat import GraphConfig
else:
    np = Lazy("numpy")

_ROOM_MIN = 64
# How far a nominating similarity, rank or score may be off. What is less similar has nothing in common.
_MARGIN = 1e-5
# After so many changes, or a sixteenth of all vectors, they are laid out anew.
_NEW_ROWS_MAX = 64
_GATHERED_MAX = 1 << 14
_SCORE_MIN = -1.0
_LN2 = 0.6931471805599453


def _with_room(array: Any, size: int) -> Any:
    """The array, or a larger copy of it if `size` does not fit."""
    if size <= len(array):
        return array
    larger = np.zeros(max(size, 2 * len(array)), array.dtype)
    larger[: len(array)] = array
    return larger


class NodeTable:
    """Nodes by row: last access, worth, whether it may be evicted, and of each question its vector."""

    def __init__(self, config: GraphConfig, embed: Callable[[str], Vector]) -> None:
        self._config = config
        self._embed = embed
        self._vertices: list[Vertex | None] = []
        self._row: dict[str, int] = {}
        self._free_rows: list[int] = []
        # An act changes some nodes several times. Each is written once, before the next search.
        self._changed: dict[str, Vertex] = {}
        # Last access in e-folds of recency, so that a rank takes few operations.
        self._last = np.zeros(_ROOM_MIN)
        self._worth = np.zeros(_ROOM_MIN)
        self._evictable = np.zeros(_ROOM_MIN, bool)
        self._vectors = Vectors(indexed=config.enable_inverted_index)

    def note(self, vertex: Vertex, is_there: bool) -> None:
        """Note that a node changed, or went."""
        if is_there:
            self._changed[vertex.id] = vertex
            return
        self._changed.pop(vertex.id, None)
        row = self._row.pop(vertex.id, None)
        if row is not None:
            self._vertices[row] = None
            self._evictable[row] = False
            self._vectors.remove(row)
            self._free_rows.append(row)

    def _catch_up(self) -> None:
        for vertex in self._changed.values():
            row = self._row.get(vertex.id)
            if row is None:
                row = self._admit(vertex)
            self._last[row] = self._e_folds(vertex.last)
            self._worth[row] = worth(vertex.repeat, vertex.feedback)
            self._evictable[row] = not vertex.pinned and vertex.degree < self._config.protect_min_degree
        self._changed.clear()

    def _admit(self, vertex: Vertex) -> int:
        if not self._free_rows:
            self._free_rows.append(len(self._vertices))
            self._vertices.append(None)
            size = len(self._vertices)
            self._last, self._worth = _with_room(self._last, size), _with_room(self._worth, size)
            self._evictable = _with_room(self._evictable, size)
        row = self._row[vertex.id] = self._free_rows.pop()
        self._vertices[row] = vertex
        if vertex.type is NodeType.QUERY:
            self._vectors.add(row, self._embed(vertex.text or "") if vertex.vector is None else vertex.vector)
            vertex.vector = None
        return row

    def _at(self, row: int) -> Vertex:
        vertex = self._vertices[row]
        assert vertex is not None, "a free row has no vector and is not evictable"
        return vertex

    def similar(self, vector: Vector, least: float) -> list[tuple[float, Vertex]]:
        """The questions that are at least so similar, the most similar first."""
        self._catch_up()
        asked = self._vectors.spread(vector)
        about = self._vectors.similarities(asked, len(self._vertices))
        rows = ((about > 0) & (about >= least - _MARGIN)).nonzero()[0].tolist()
        exact = zip(self._vectors.exact(asked, rows), map(self._at, rows), strict=True)
        similar = [(sim, vertex) for sim, vertex in exact if sim > _MARGIN and sim >= least]
        return sorted(similar, key=lambda one: (-one[0], one[1].id))

    def best(self, vector: Vector, k: int, now: int) -> list[tuple[float, float, Vertex]]:
        """Score, similarity and node of the `k` best questions that have anything in common with `vector`."""
        self._catch_up()
        if k <= 0:
            return []
        asked = self._vectors.spread(vector)
        about = self._vectors.similarities(asked, len(self._vertices))
        scores: Any = score(about, self._ranks(now))
        scores -= (about <= 0) * 2.0  # Below every possible score.
        least = np.partition(scores, -k)[-k] if k < len(scores) else _SCORE_MIN
        rows = (scores >= max(least - 2 * _MARGIN, _SCORE_MIN)).nonzero()[0]
        exact = self._vectors.exact(asked, rows.tolist())
        half_life = self._config.half_life_min
        best = [
            (score(sim, rank_of(worthy, (now - vertex.last) / MICROS_PER_MIN, half_life)), sim, vertex)
            for sim, worthy, vertex in zip(exact, self._worth[rows].tolist(), map(self._at, rows.tolist()), strict=True)
            if sim > _MARGIN
        ]
        return sorted(best, key=lambda one: (-one[0], -one[1], one[2].id))[:k]

    def coldest(self, now: int, keep: set[str]) -> Vertex | None:
        """The node to evict: the lowest rank among those that may go; of equals, the least recently used (A23)."""
        self._catch_up()
        rows = np.flatnonzero(self._evictable[: len(self._vertices)])
        for id in keep:
            rows = rows[rows != self._row.get(id, -1)]
        if not len(rows):
            return None
        ranks = self._ranks(now)[rows]
        cold = map(self._at, rows[ranks <= ranks.min() + _MARGIN].tolist())
        half_life = self._config.half_life_min
        return min(cold, key=lambda vertex: (vertex.rank(now, half_life), vertex.last, vertex.id))

    def vector(self, vertex: Vertex) -> Vector:
        """The vector of a question, as it was given."""
        self._catch_up()
        return self._vectors.vector(self._row[vertex.id])

    def _ranks(self, now: int) -> Any:
        """About the rank of each row; `Vertex.rank` is exact."""
        size = len(self._vertices)
        ranks = np.minimum(0.0, self._last[:size] - self._e_folds(now)).astype(np.float32)
        np.exp(ranks, out=ranks)
        ranks *= OF_RECENCY
        ranks += self._worth[:size]
        return ranks

    def _e_folds(self, at: int) -> float:
        return at * (_LN2 / self._config.half_life_min / MICROS_PER_MIN)


class Vectors:
    """The vectors of questions by row, laid out in flat arrays of entries (column, weight).

    A search scans all entries (A25). With the inverted index (A8) it reads only the entries of the columns it asks for.
    Vectors that came after the last layout are always scanned.
    """

    def __init__(self, *, indexed: bool) -> None:
        self._indexed = indexed
        self._index: InvertedIndex | None = None
        self._column_of: dict[Any, int] = {}
        self._features: list[Any] = []
        # Columns and weights of each row's vector; most are laid out, new ones apart from the others.
        self._vectors: dict[int, tuple[Any, Any]] = {}
        self._laid_out = _Layout([], {})
        self._new_rows: dict[int, None] = {}
        self._new: _Layout | None = None
        self._removed = 0

    def add(self, row: int, vector: Vector) -> None:
        if vector:
            columns = np.array([self._column(feature) for feature in vector], np.intp)
            self._vectors[row] = columns, np.array(list(vector.values()))
            self._new_rows[row] = self._new = None

    def _column(self, feature: Any) -> int:
        column = self._column_of.get(feature)
        if column is None:
            column = self._column_of[feature] = len(self._features)
            self._features.append(feature)
        return column

    def remove(self, row: int) -> None:
        if row in self._new_rows:
            del self._new_rows[row]
            self._new = None
        elif row in self._vectors:
            self._laid_out.remove(row)
            self._removed += 1
        self._vectors.pop(row, None)

    def vector(self, row: int) -> Vector:
        """A vector as it was given."""
        columns, weights = self._vectors.get(row, (np.zeros(0, np.intp), np.zeros(0)))
        features = [self._features[column] for column in columns.tolist()]
        return dict(zip(features, weights.tolist(), strict=True))

    def spread(self, vector: Vector) -> Any:
        """A vector as an array by column; features that no row has are left out."""
        spread = np.zeros(len(self._features) + 1)
        columns = list(map(self._column_of.get, vector, repeat(-1)))
        spread[np.array(columns, np.intp)] = np.array(list(vector.values()))
        return spread[:-1]

    def similarities(self, asked: Any, row_count: int) -> Any:
        """About how similar each row is; 0 if it has nothing in common, or no vector."""
        if len(self._new_rows) + self._removed > max(_NEW_ROWS_MAX, len(self._vectors) // 16):
            self._laid_out = _Layout(list(self._vectors), self._vectors)
            self._index = InvertedIndex(self._laid_out) if self._indexed else None
            self._new_rows, self._new, self._removed = {}, None, 0
        if self._new is None:
            self._new = _Layout(list(self._new_rows), self._vectors)
        similarities = np.zeros(row_count + 1)  # The last is where removed vectors go.
        rough = asked.astype(np.float32)
        similarities[self._laid_out.rows] = (self._index or self._laid_out).similarities(rough)
        similarities[self._new.rows] = self._new.similarities(rough)
        return similarities[:-1]

    def exact(self, asked: Any, rows: Sequence[int]) -> list[float]:
        """How similar these rows are, to the last bit: `fsum` does not depend on the order."""
        vectors = [self._vectors[row] for row in rows]
        return [max(-1.0, min(1.0, fsum((asked.take(columns) * weights).tolist()))) for columns, weights in vectors]


class _Layout:
    """Some vectors, one after the other, in single precision."""

    def __init__(self, rows: list[int], vectors: Mapping[int, tuple[Any, Any]]) -> None:
        self._number = {row: number for number, row in enumerate(rows)}
        self.rows = np.array(rows, np.intp)
        self.lengths = np.array([len(vectors[row][0]) for row in rows], np.intp)
        self.columns = np.concatenate([np.zeros(0, np.intp), *(vectors[row][0] for row in rows)])
        self.weights = np.concatenate([np.zeros(0), *(vectors[row][1] for row in rows)]).astype(np.float32)
        self._starts = np.cumsum(self.lengths) - self.lengths
        self._products = np.zeros(len(self.weights), np.float32)

    def remove(self, row: int) -> None:
        self.rows[self._number[row]] = -1

    def similarities(self, asked: Any) -> Any:
        if not len(self.rows):
            return 0.0
        np.take(asked, self.columns, out=self._products, mode="clip")
        self._products *= self.weights
        return np.add.reduceat(self._products, self._starts)


class InvertedIndex:
    """The entries of a layout, ordered by column."""

    def __init__(self, layout: _Layout) -> None:
        self._count = len(layout.rows)
        order = np.argsort(layout.columns, kind="stable")
        self._numbers = np.repeat(np.arange(self._count, dtype=np.int32), layout.lengths)[order]
        self._weights = layout.weights[order]
        self._begins = np.concatenate([[0], np.cumsum(np.bincount(layout.columns))])

    def similarities(self, asked: Any) -> Any:
        columns = asked[: len(self._begins) - 1].nonzero()[0]
        begins, ends = self._begins[columns], self._begins[columns + 1]
        lengths = ends - begins
        total = lengths.sum()
        if total <= _GATHERED_MAX:
            at = np.repeat(ends - np.cumsum(lengths), lengths) + np.arange(total)
            numbers, weights = self._numbers[at], self._weights[at]
        else:
            # Long runs are faster to copy than to gather.
            runs = [slice(*run) for run in zip(begins.tolist(), ends.tolist(), strict=True)]
            numbers = np.concatenate([self._numbers[run] for run in runs])
            weights = np.concatenate([self._weights[run] for run in runs])
        return np.bincount(numbers, weights=weights * np.repeat(asked[columns], lengths), minlength=self._count)


def unit_vector(embedding: Any) -> Vector:
    """What an embedder returned, as a sparse vector of length 1 (or empty)."""
    if isinstance(embedding, SparseVector):
        return embedding
    try:
        items = embedding.items() if hasattr(embedding, "items") else enumerate(embedding)
        weights = {_feature(feature): float(weight) for feature, weight in items}
        largest = max(map(abs, weights.values()), default=0.0)
        if largest and not 1e-100 < largest < 1e100:  # Their squares would be lost.
            weights = {feature: weight / largest for feature, weight in weights.items()}
        length = sqrt(fsum([weight * weight for weight in weights.values()]))
    except (TypeError, ValueError, OverflowError):
        weights, length = {}, float("nan")
    if not length < float("inf"):
        raise InvalidInput(
            f"The embedder gave {type(embedding).__name__} with something that is no finite number, or no feature.",
            hint="embed(text) gives a list of numbers, or a mapping from whole numbers or texts to numbers.",
        )
    return {feature: weight / length for feature, weight in weights.items() if weight}


def _feature(feature: Any) -> int | str:
    """A feature that survives a round trip through a file."""
    if type(feature) is str or type(feature) is int:
        return feature
    if isinstance(feature, str | bool) or not hasattr(feature, "__index__"):
        raise ValueError(f"{feature!r} is no feature")
    return int(feature)
