"""Which known units a new statement might repeat or oppose: looked up before the act, completed inside it."""

from __future__ import annotations

from mnemarch.model.unit import LIVE_STATES
from mnemarch.model.value import value
from mnemarch.recall.tail import K1, B, Tail
from mnemarch.text.tokens import telling_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mnemarch.ports import Reader
    from mnemarch.recall.finder import Finder

_WORDS_MAX = 8
_SHARE_MIN = 0.5
_PAGE = 2_000


@value
class Glance:
    """What was looked up for one statement: its telling words, the score that counts as near, and what was found."""

    weights: Mapping[str, float]
    mean_tokens: float
    score_min: float
    scope_keys: Sequence[str]
    found: tuple[str, ...]


class Neighbourhood:
    """Serves one call. What others, or the call itself, wrote since the look-up is added from the open transaction."""

    def __init__(self, finder: Finder, limit: int) -> None:
        self._finder = finder
        self._limit = limit
        self._since = Tail()
        self._since.position = -1

    def glance(self, content: str, scope_keys: Sequence[str]) -> Glance:
        """Look for statements that share at least half of what this one's telling words weigh."""
        self._finder.catch_up()
        words = telling_tokens(content)
        weights, mean, position = self._finder.weighed(words, scope_keys)
        if self._since.position < 0:
            self._since.position = position
        telling = sorted(weights, key=lambda word: (-weights[word], word))[:_WORDS_MAX]
        chosen = {word: weights[word] for word in telling}
        damping = K1 * (1 - B + B * len(words) / mean)
        bar = _SHARE_MIN * sum(
            weight * words.count(word) * (K1 + 1) / (words.count(word) + damping) for word, weight in chosen.items()
        )
        found = self._finder.best(dict.fromkeys(telling, 1.0), scope_keys, states=LIVE_STATES, limit=self._limit)
        near = tuple(sketch.id for score, sketch in found if score >= bar)
        return Glance(weights=chosen, mean_tokens=mean, score_min=bar, scope_keys=scope_keys, found=near)

    def near(self, reader: Reader, glance: Glance) -> list[str]:
        """The ids found, and those of units that came after the look-up, as the open transaction sees them."""
        for unit in reader.searchable_after(self._since.position, _PAGE):
            self._since.add(unit)
        late = self._since.best(
            glance.weights, glance.mean_tokens, glance.scope_keys, states=LIVE_STATES, limit=self._limit
        )
        return [*glance.found, *(sketch.id for score, sketch in late if score >= glance.score_min)]
