"""A graph as arrays, for searches and evictions that read every node at once.

The inverted index (A8) maps each feature to the rows that have it and their weights. A search adds up the products in
the order of its own features, so the result is bit-identical after a graph was saved and loaded.
"""

from __future__ import annotations

from array import array
from math import fsum, sqrt

from mnemarch.embedding.sparse import SparseVector
from mnemarch.errors import InvalidInput
from mnemarch.graph import NodeType
from mnemarch.graph.state import MICROS_PER_MIN, Vertex
from mnemarch.lazy import Lazy
from mnemarch.policy.heat import OF_RECENCY, GraphConfig, score, worth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    import numpy as np

    from mnemarch.graph.state import Vector
else:
    np = Lazy("numpy")

# Questions below this similarity count as unrelated.
_SIMILARITY_MIN = 1e-5
# The maximum error of the array's ranks, which are in single precision.
_MARGIN = 1e-5
# The worth of a removed row, below every rank.
_GONE = -10.0
_LN2 = 0.6931471805599453


class NodeTable:
    """Last access, worth and evictability of nodes by row, and the rows of each feature of questions.

    The row of a removed node stays empty. A table with many empty rows `is_worn`.
    """

    def __init__(self, config: GraphConfig, vertices: Iterable[Vertex], vector_of: Callable[[Vertex], Vector]) -> None:
        self._config = config
        self._vector_of = vector_of
        self._vertices: list[Vertex | None] = []
        self._row: dict[str, int] = {}
        # An act may change a node several times. The table writes it once, before the next search.
        self._changed = {vertex.id: vertex for vertex in vertices}
        # The last access is stored in e-folds of recency, so that a rank takes few operations.
        self._last, self._worth, self._evictable = array("d"), array("d"), array("b")
        self._postings: dict[Any, tuple[array[int], array[float]]] = {}

    def note(self, vertex: Vertex, is_there: bool) -> None:
        """Note that a node changed or was removed."""
        if is_there:
            self._changed[vertex.id] = vertex
            return
        self._changed.pop(vertex.id, None)
        row = self._row.pop(vertex.id, None)
        if row is not None:
            self._vertices[row], self._worth[row], self._evictable[row] = None, _GONE, False

    @property
    def is_worn(self) -> bool:
        return len(self._vertices) - len(self._row) > 64 + len(self._row) // 4

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
        row = self._row[vertex.id] = len(self._vertices)
        self._vertices.append(vertex)
        for column in (self._last, self._worth, self._evictable):
            column.append(0)
        vector = self._vector_of(vertex) if vertex.type is NodeType.QUERY else {}
        for feature, weight in vector.items():
            posting = self._postings.get(feature)
            if posting is None:
                posting = self._postings[feature] = array("i"), array("d")
            posting[0].append(row)
            posting[1].append(weight)
        return row

    def _similarities(self, vector: Vector) -> Any:
        """The similarity of each row. 0 if it shares no feature or has no vector."""
        shared = [(weight, posting) for feature, weight in vector.items() if (posting := self._postings.get(feature))]
        if not shared:
            return np.zeros(len(self._vertices))
        rows = np.frombuffer(b"".join([posting[0] for _, posting in shared]), np.int32)
        products = np.frombuffer(b"".join([posting[1] for _, posting in shared]))
        products = products * np.repeat([weight for weight, _ in shared], [len(posting[0]) for _, posting in shared])
        # Rounding may give slightly more than 1.
        return np.minimum(1.0, np.bincount(rows, products, len(self._vertices)))

    def similar(self, vector: Vector, least: float) -> list[tuple[float, Vertex]]:
        """The questions with at least this similarity, the most similar first."""
        self._catch_up()
        similarities = self._similarities(vector)
        rows = (similarities >= max(least, _SIMILARITY_MIN)).nonzero()[0]
        pairs = zip(similarities[rows].tolist(), (self._vertices[row] for row in rows.tolist()), strict=True)
        similar = [(similarity, vertex) for similarity, vertex in pairs if vertex is not None]
        return sorted(similar, key=lambda one: (-one[0], one[1].id))

    def best(self, vector: Vector, k: int, now: int) -> list[tuple[float, float, Vertex]]:
        """Score, similarity and node of the `k` best questions that share a feature with `vector`."""
        self._catch_up()
        if k <= 0:
            return []
        similarities = self._similarities(vector)
        scores: Any = score(similarities, self._ranks(now))
        scores[similarities < _SIMILARITY_MIN] = _GONE
        least = np.partition(scores, -k)[-k] if k < len(scores) else _GONE
        rows = (scores >= max(least - _MARGIN, -1.0)).nonzero()[0]
        half_life = self._config.half_life_min
        best = [
            (score(similarity, vertex.rank(now, half_life)), similarity, vertex)
            for similarity, row in zip(similarities[rows].tolist(), rows.tolist(), strict=True)
            if (vertex := self._vertices[row]) is not None
        ]
        return sorted(best, key=lambda one: (-one[0], -one[1], one[2].id))[:k]

    def coldest(self, now: int, keep: set[str]) -> Vertex | None:
        """The evictable node with the lowest rank. Among equals, the least recently used one (A23)."""
        self._catch_up()
        rows = np.flatnonzero(np.asarray(self._evictable))
        for id in keep:
            rows = rows[rows != self._row.get(id, -1)]
        if not len(rows):
            return None
        ranks = self._ranks(now)[rows]
        cold_rows: list[int] = rows[ranks <= ranks.min() + _MARGIN].tolist()
        cold = [vertex for row in cold_rows if (vertex := self._vertices[row]) is not None]
        half_life = self._config.half_life_min
        return min(cold, key=lambda vertex: (vertex.rank(now, half_life), vertex.last, vertex.id))

    def _ranks(self, now: int) -> Any:
        """The approximate rank of each row. `Vertex.rank` is exact."""
        ages = np.minimum(0.0, np.asarray(self._last) - self._e_folds(now)).astype(np.float32)
        return OF_RECENCY * np.exp(ages) + np.asarray(self._worth)

    def _e_folds(self, at: int) -> float:
        return at * (_LN2 / self._config.half_life_min / MICROS_PER_MIN)


def unit_vector(embedding: Any) -> Vector:
    """The embedder's result as a sparse vector of length 1, or empty."""
    if isinstance(embedding, SparseVector):
        return embedding
    try:
        items = embedding.items() if hasattr(embedding, "items") else enumerate(embedding)
        weights = {_feature(feature): float(weight) for feature, weight in items}
        largest = max(map(abs, weights.values()), default=0.0)
        if largest and not 1e-100 < largest < 1e100:  # Their squares would underflow or overflow.
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
    """The feature as a type that survives saving and loading."""
    if type(feature) is str or type(feature) is int:
        return feature
    if isinstance(feature, str | bool) or not hasattr(feature, "__index__"):
        raise ValueError(f"{feature!r} is no feature")
    return int(feature)
