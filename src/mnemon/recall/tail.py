"""The tail: units newer than the index, kept in memory and scored exactly, so that nothing waits to be found."""

from __future__ import annotations

from mnemon.text.tokens import TOKENS_MAX, tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mnemon.model.unit import Searchable

K1 = 1.2
B = 0.75


def frequencies(text: str) -> dict[str, int]:
    """How often each token occurs."""
    counted: dict[str, int] = {}
    for token in tokens(text, limit=TOKENS_MAX):
        counted[token] = counted.get(token, 0) + 1
    return counted


def bm25(counted: Mapping[str, int], length: int, weights: Mapping[str, float], mean_tokens: float) -> float:
    """How well a text with these token counts answers a question of weighted words."""
    damping = K1 * (1 - B + B * length / mean_tokens)
    total = 0.0
    for word, weight in weights.items():
        count = counted.get(word)
        if count:
            total += weight * count * (K1 + 1) / (count + damping)
    return total


class Tail:
    """A small inverted index over the newest units of every scope."""

    def __init__(self) -> None:
        self.position = 0
        self.total_tokens = 0
        self._units: dict[str, tuple[str, str, str, str]] = {}
        self._tokens: dict[str, dict[str, int]] = {}
        self._lengths: dict[str, int] = {}
        self._postings: dict[str, set[str]] = {}

    def __len__(self) -> int:
        return len(self._units)

    def __contains__(self, unit_id: str) -> bool:
        return unit_id in self._units

    def add(self, unit: Searchable) -> None:
        """Take in a unit's newest searchable form in place of an older one."""
        self._remove(unit.id)
        self._units[unit.id] = (unit.scope_key, unit.state, unit.kind, unit.domain)
        if unit.content:
            counted = frequencies(unit.content)
            self._tokens[unit.id] = counted
            self._lengths[unit.id] = sum(counted.values())
            self.total_tokens += self._lengths[unit.id]
            for token in counted:
                self._postings.setdefault(token, set()).add(unit.id)
        self.position = max(self.position, unit.changed_at)

    def _remove(self, unit_id: str) -> None:
        self._units.pop(unit_id, None)
        counted = self._tokens.pop(unit_id, {})
        self.total_tokens -= self._lengths.pop(unit_id, 0)
        for token in counted:
            self._postings[token].discard(unit_id)

    def frequency(self, token: str) -> int:
        return len(self._postings.get(token, ()))

    def best(
        self,
        weights: Mapping[str, float],
        mean_tokens: float,
        scope_keys: Sequence[str],
        *,
        states: Sequence[str],
        kinds: Sequence[str] = (),
        domains: Sequence[str] = (),
        limit: int,
    ) -> list[tuple[float, str]]:
        """The best units of these scopes for weighted words, with their scores."""
        found: set[str] = set()
        for word in weights:
            found |= self._postings.get(word, set())
        scored = []
        for unit_id in found:
            scope_key, state, kind, domain = self._units[unit_id]
            fits = (not kinds or kind in kinds) and (not domains or domain in domains)
            if fits and state in states and scope_key in scope_keys:
                score = bm25(self._tokens[unit_id], self._lengths[unit_id], weights, mean_tokens)
                scored.append((score, unit_id))
        scored.sort(key=lambda item: (-item[0], item[1]))
        return scored[:limit]
