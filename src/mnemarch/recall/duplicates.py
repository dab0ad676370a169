"""Near-duplicates of new units: searched for when units are indexed, so that no writer waits for it (G11, R6)."""

from __future__ import annotations

from mnemarch.model.caller import Actor, Presence
from mnemarch.model.unit import LIVE_STATES
from mnemarch.recall.tail import K1, B
from mnemarch.text.tokens import telling_tokens
from mnemarch.units.conflicts import DISPUTED_KINDS, compared, open_links

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mnemarch.log.act import Ledger
    from mnemarch.model.unit import Unit
    from mnemarch.recall.finder import Finder

_WORDS_MAX = 8
_SHARE_MIN = 0.5


def link_duplicates(log: Ledger, finder: Finder, unit_ids: Sequence[str]) -> None:
    """Link each of these units with the visible ones that it repeats or contradicts in other words.

    A pair is linked once, whoever checks it: the links are read again inside each act.
    """
    units = log.store.read(lambda reader: reader.units(unit_ids))
    for unit_id in unit_ids:
        unit = units.get(unit_id)
        if unit is None or not unit.live or unit.kind not in DISPUTED_KINDS or not unit.provenance:
            continue
        # As its author saw it: what is visible from where it was claimed.
        author = Presence(Actor.system("duplicates"), unit.provenance[0].scope)
        ids = _candidates(finder, unit, author.visible_keys, log.config.gate.neighbours_max)
        candidates = log.store.read(lambda reader, ids=ids: reader.units(ids))  # type: ignore[misc]
        others = [other for other in candidates.values() if other.live and other.kind in DISPUTED_KINDS]
        if compared(unit.content, others, log.config.gate):
            log.act(author, lambda act, unit=unit, ids=ids: open_links(act, act.known_unit(unit.id), ids))  # type: ignore[misc]


def _candidates(finder: Finder, unit: Unit, scope_keys: Sequence[str], limit: int) -> list[str]:
    """Units that share at least half of what this one's telling words weigh."""
    words = telling_tokens(unit.content)
    weights, mean_length = finder.weighed(words, scope_keys)
    telling = sorted(weights, key=lambda word: (-weights[word], word))[:_WORDS_MAX]
    damping = K1 * (1 - B + B * len(words) / mean_length)
    score_min = _SHARE_MIN * sum(
        weights[word] * words.count(word) * (K1 + 1) / (words.count(word) + damping) for word in telling
    )
    # The unit itself is among the best, hence one more.
    best = finder.best(dict.fromkeys(telling, 1.0), scope_keys, states=LIVE_STATES, limit=limit + 1)
    return [sketch.id for score, sketch in best if score >= score_min and sketch.id != unit.id]
