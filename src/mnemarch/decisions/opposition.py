"""What a proposed decision contradicts, shown before it is committed (R12); no part of the guardian's verdict (D11)."""

from __future__ import annotations

from mnemarch.decisions.guard import firmest_first
from mnemarch.decisions.loading import GLOBAL, decided
from mnemarch.model.decision import Decision, Strength
from mnemarch.text.difference import differences, oppose, skeleton
from mnemarch.text.tokens import tokens
from mnemarch.text.words import EMPTY_WORDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mnemarch.model.caller import Level, Presence
    from mnemarch.stores.sql.reader import Reader

# There are few of these, so each can be looked at; of what is decided in passing there may be 100,000 (D7).
_FIRM = (Strength.AXIS, Strength.LOCK)


def opposed(
    reader: Reader, presence: Presence, text: str, *, domain: str, level: Level, base: Decision | None
) -> list[Decision]:
    """The axes and locks that hold where the proposal would, and say the opposite of it; the firmest first."""
    root = None if base is None else base.root_id
    firm = (one for one in _firm(reader, presence, domain) if one.unit.level >= level and one.root_id != root)
    return sorted((one for one in firm if opposes(text, one.text)), key=firmest_first)


def _firm(reader: Reader, presence: Presence, domain: str) -> Iterator[Decision]:
    for each in dict.fromkeys((domain, GLOBAL)):
        for strength in _FIRM:
            yield from map(Decision, decided(reader, presence, each, strength))


def opposes(ours: str, theirs: str) -> bool:
    """Whether two statements are the same but for numbers and negations, or for one name or quotation: as facts do."""
    return _bare(ours) == _bare(theirs) and oppose(differences(ours, theirs))


def _bare(text: str) -> frozenset[str]:
    """What a statement speaks of, without what the guard compares and without words that say nothing."""
    return frozenset(tokens(skeleton(text))) - EMPTY_WORDS
