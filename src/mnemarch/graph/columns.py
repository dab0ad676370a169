"""A graph in columns: what a search or an eviction reads of every node at once.

Numbers here only nominate. Whoever was nominated is compared again, exactly, so that a search gives the same bits with
the inverted index and without it, and after a graph was saved and loaded.
"""

from __future__ import annotations

from math import exp

from mnemarch.graph.entries import ROOM_MIN, doubled
from mnemarch.graph.node import NodeType
from mnemarch.graph.rows import MARGIN, Rows
from mnemarch.graph.state import MICROS_PER_MIN
from mnemarch.lazy import Lazy
from mnemarch.policy.heat import rank_of, score, worth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    import numpy as np

    from mnemarch.graph.state import Vertex
    from mnemarch.policy.heat import GraphConfig
else:
    np = Lazy("numpy")

_GAPS_MIN = 64
_LN2 = 0.6931471805599453
_OF_RECENCY = 0.5
# Ranks are computed in double precision; so many e-folds of time cost so many of its sixteen digits.
_E_FOLDS_MAX = 7.0
_OLDEST_E_FOLDS = -40.0
_RANK_MARGIN = 1e-9
# A score is between -1 and 1: what is lowered by 2 is out.
_SCORE_MIN = -1.0


class Columns:
    """Nodes by number: when each was last touched, what it is worth, whether it may go; of each question its vector."""

    def __init__(self, config: GraphConfig, embed: Callable[[str], Mapping[Any, float]]) -> None:
        self._config = config
        self._embed = embed
        self._begin()

    def _begin(self) -> None:
        self._vertices: list[Vertex | None] = []
        self._number: dict[str, int] = {}
        self._gaps = 0
        # An act changes some nodes several times: each is written down once, when it is next asked for.
        self._changed: dict[str, Vertex] = {}
        # Recency as of a moment: later it is less by one factor for all, so that it need not be computed anew.
        self._as_of = 0
        self._warmth = np.zeros(ROOM_MIN)
        self._worth = np.zeros(ROOM_MIN)
        self._evictable = np.zeros(ROOM_MIN, bool)
        self._rows = Rows(indexed=self._config.enable_inverted_index)

    # Keeping up

    def note(self, vertex: Vertex, is_there: bool) -> None:
        """Hear that a node changed, or went."""
        if is_there:
            self._changed[vertex.id] = vertex
            return
        self._changed.pop(vertex.id, None)
        number = self._number.pop(vertex.id, None)
        if number is not None:
            self._vertices[number] = None
            self._evictable[number] = False
            self._rows.remove(number)
            self._gaps += 1

    def _catch_up(self) -> None:
        if self._gaps > max(_GAPS_MIN, len(self._number)):
            self._close_gaps()
        for vertex in self._changed.values():
            number = self._number.get(vertex.id)
            if number is None:
                number = self._admit(vertex)
            self._warmth[number] = self._warmth_of(vertex.last)
            self._worth[number] = worth(vertex.repeat, vertex.feedback)
            self._evictable[number] = not vertex.pinned and vertex.degree < self._config.protect_min_degree
        self._changed.clear()

    def _admit(self, vertex: Vertex) -> int:
        number = len(self._vertices)
        if number == len(self._warmth):
            self._warmth, self._worth = doubled(self._warmth), doubled(self._worth)
            self._evictable = doubled(self._evictable)
        self._vertices.append(vertex)
        self._number[vertex.id] = number
        if vertex.type is NodeType.QUERY:
            given, vertex.vector = vertex.vector, None
            self._rows.add(number, self._embed(vertex.text or "") if given is None else given)
        return number

    def _close_gaps(self) -> None:
        """Number the nodes anew."""
        before, there = self._rows, [(number, one) for number, one in enumerate(self._vertices) if one is not None]
        changed = self._changed
        self._begin()
        for number, vertex in there:
            vertex.vector = before.vector(number) if vertex.type is NodeType.QUERY else None
            self._changed[vertex.id] = vertex
        self._changed |= changed

    # Asking

    def alike(self, vector: Mapping[Any, float], least: float) -> list[tuple[float, Vertex]]:
        """The questions whose similarity is at least so high, the most alike first."""
        self._catch_up()
        with self._rows.asked(vector) as asked:
            similarities = asked.all()
            near = ((similarities > 0) & (similarities >= least - MARGIN)).nonzero()[0].tolist()
            exact = asked.exact(near)
        found = zip(exact, map(self._at, near), strict=True)
        alike = [(sim, vertex) for sim, vertex in found if sim > MARGIN and sim >= least]
        return sorted(alike, key=lambda one: (-one[0], one[1].id))

    def best(self, vector: Mapping[Any, float], k: int, now: int) -> list[tuple[float, float, Vertex]]:
        """Score, similarity and node of the `k` best questions that have anything in common with `vector`."""
        self._catch_up()
        if k <= 0:
            return []
        with self._rows.asked(vector) as asked:
            similarities = asked.all()
            scores: Any = score(similarities, self._ranks(len(similarities), now))
            scores -= (similarities <= 0) * 2.0
            least = np.partition(scores, -k)[-k] if k < len(scores) else _SCORE_MIN
            near = (scores >= max(least - 2 * MARGIN, _SCORE_MIN)).nonzero()[0]
            exact = asked.exact(near.tolist())
        half_life = self._config.half_life_min
        found = [
            (score(sim, rank_of(worthy, (now - vertex.last) / MICROS_PER_MIN, half_life)), sim, vertex)
            for sim, worthy, vertex in zip(exact, self._worth[near].tolist(), map(self._at, near.tolist()), strict=True)
            if sim > MARGIN
        ]
        return sorted(found, key=lambda one: (-one[0], -one[1], one[2].id))[:k]

    def coldest(self, now: int, kept: frozenset[str]) -> Vertex | None:
        """The node to give up: the lowest rank among those that may go, of equals the one longest untouched (A23)."""
        self._catch_up()
        free = np.flatnonzero(self._evictable[: len(self._vertices)])
        for id in kept:
            free = free[free != self._number.get(id, -1)]
        if not len(free):
            return None
        ranks = self._ranks(len(self._vertices), now)[free]
        near = [self._at(number) for number in free[ranks <= ranks.min() + _RANK_MARGIN].tolist()]
        half_life = self._config.half_life_min
        return min(near, key=lambda vertex: (vertex.rank(now, half_life), vertex.last, vertex.id))

    def vector(self, vertex: Vertex) -> Mapping[Any, float]:
        """The vector of a question, as it was made."""
        self._catch_up()
        return self._rows.vector(self._number[vertex.id])

    def _at(self, number: int) -> Vertex:
        vertex = self._vertices[number]
        assert vertex is not None, "what went is in no row"
        return vertex

    def _ranks(self, count: int, now: int) -> Any:
        """About the heat of the first so many nodes; `Vertex.rank` is exact."""
        if not 0 <= self._e_folds(now) < _E_FOLDS_MAX:
            self._as_of = now
            there = [(number, vertex) for number, vertex in enumerate(self._vertices) if vertex is not None]
            self._warmth[[number for number, _ in there]] = [self._warmth_of(vertex.last) for _, vertex in there]
        faded = exp(-self._e_folds(now))
        return np.minimum(_OF_RECENCY, self._warmth[:count] * faded) + self._worth[:count]

    def _warmth_of(self, last: int) -> float:
        # What is touched after that moment is warmer than warm then, and just warm when it is asked for.
        e_folds = min(_E_FOLDS_MAX, self._e_folds(last))
        return _OF_RECENCY * exp(e_folds) if e_folds > _OLDEST_E_FOLDS else 0.0

    def _e_folds(self, at: int) -> float:
        """How much less is left of recency at that moment, or how much more there was."""
        return (at - self._as_of) * (_LN2 / self._config.half_life_min / MICROS_PER_MIN)
