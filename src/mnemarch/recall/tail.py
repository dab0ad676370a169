"""The newest units of a store, which are not indexed yet. They are scored exactly."""

from __future__ import annotations

from mnemarch.model.search import bm25
from mnemarch.text.conversation import Coherence, sketched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mnemarch.model.search import Sketch
    from mnemarch.model.unit import Searchable


class Tail:
    """A small inverted index over the newest units of every scope."""

    def __init__(self, position: int = 0) -> None:
        self.position = position
        self.total_length = 0
        self.coherence = Coherence()
        self._sketches: dict[str, Sketch | None] = {}
        self._subjects: dict[str, tuple[str, str]] = {}
        self._postings: dict[str, set[str]] = {}
        self._places: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._sketches)

    def __contains__(self, unit_id: str) -> bool:
        return unit_id in self._sketches

    def add(self, unit: Searchable) -> None:
        """Add a unit, or replace its older version."""
        is_known = unit.id in self._sketches
        self._remove(unit.id)
        self._sketches[unit.id] = None
        if unit.content:
            sketch = sketched(unit)
            self._sketches[unit.id] = sketch
            self._subjects[unit.id] = (unit.kind, unit.domain)
            self._places[sketch.place] = unit.id
            self.total_length += sketch.length
            for word in sketch.distinct():
                self._postings.setdefault(word, set()).add(unit.id)
            if not is_known:
                self.coherence.note(sketch)
        self.position = max(self.position, unit.changed_at)

    def _remove(self, unit_id: str) -> None:
        sketch = self._sketches.pop(unit_id, None)
        if sketch is not None:
            self.total_length -= sketch.length
            self._places.pop(sketch.place, None)
            for word in sketch.distinct():
                self._postings[word].discard(unit_id)

    def frequency(self, word: str, scope_keys: Sequence[str]) -> int:
        return sum([self._is_of(unit_id, scope_keys) for unit_id in self._postings.get(word, ())])

    def documents_in(self, scope_keys: Sequence[str]) -> int:
        return sum([self._is_of(unit_id, scope_keys) for unit_id in self._sketches])

    def _is_of(self, unit_id: str, scope_keys: Sequence[str]) -> bool:
        sketch = self._sketches[unit_id]
        return sketch is not None and sketch.scope_key in scope_keys

    def words_from(self, beginning: str, scope_keys: Sequence[str], limit: int) -> list[str]:
        """Words in these scopes with this beginning."""
        words = [word for word in self._postings if word.startswith(beginning) and self.frequency(word, scope_keys)]
        return sorted(words)[:limit]

    def best(
        self,
        weights: Mapping[str, float],
        mean_length: float,
        scope_keys: Sequence[str],
        *,
        states: Sequence[str],
        kinds: Sequence[str] = (),
        domains: Sequence[str] = (),
        limit: int,
    ) -> list[tuple[float, Sketch]]:
        """The best units of these scopes for weighted words, with their scores."""
        scored = []
        for unit_id in set[str]().union(*(self._postings.get(word, ()) for word in weights)):
            sketch = self._sketches[unit_id]
            kind, domain = self._subjects[unit_id]
            fits = (not kinds or kind in kinds) and (not domains or domain in domains)
            if sketch is not None and fits and sketch.state in states and sketch.scope_key in scope_keys:
                scored.append((bm25(sketch, weights, mean_length), sketch))
        scored.sort(key=lambda item: (-item[0], item[1].id))
        return scored[:limit]

    def at(self, places: Sequence[str], scope_keys: Sequence[str], *, states: Sequence[str]) -> list[Sketch]:
        """The units at these turns of sessions."""
        return self.of([self._places[place] for place in places if place in self._places], scope_keys, states=states)

    def of(self, unit_ids: Sequence[str], scope_keys: Sequence[str], *, states: Sequence[str]) -> list[Sketch]:
        """The units with these ids that the tail has in these scopes and states."""
        return [
            sketch
            for sketch in map(self._sketches.get, unit_ids)
            if sketch is not None and sketch.state in states and sketch.scope_key in scope_keys
        ]
