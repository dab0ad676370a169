"""Resolves partial ids: the beginning of an id, or of its last group, which is the part that gets printed."""

from __future__ import annotations

from collections.abc import Callable

from mnemarch.errors import InvalidInput
from mnemarch.model.caller import Caller
from mnemarch.model.stamps import ID_CHARS
from mnemarch.stores.sql.reader import Reader
from mnemarch.text import words

_PART_CHARS_MIN = 6
_CANDIDATES_MAX = 200
_LISTED_MAX = 5
_WORDS_CHARS_MAX = 60
_LAST_GROUP = 24
_OF_AN_ID = frozenset("0123456789abcdef-")


def is_whole(typed: str) -> bool:
    """Whether the text can't be a partial id: it is a whole id, or not an id at all."""
    return not _PART_CHARS_MIN <= len(typed) < ID_CHARS or not _OF_AN_ID.issuperset(typed.lower())


def unit_id(reader: Reader, caller: Caller, typed: str) -> str:
    """The whole id of the unit that a partial id names. If it names no unit, the text itself."""

    def named(part: str) -> dict[str, str]:
        units = reader.units_named(part, _CANDIDATES_MAX)
        return {unit.id: unit.content for unit in units if caller.may_read(unit.scope)}

    return _whole(typed, named)


def link_id(reader: Reader, caller: Caller, typed: str) -> str:
    """Like `unit_id`, for a conflict or a merge proposal."""

    def named(part: str) -> dict[str, str]:
        links = reader.links_named(part, _CANDIDATES_MAX)
        sides = reader.units({side for link in links for side in (link.source, link.target)})
        seen = {side for side, unit in sides.items() if caller.may_read(unit.scope)}
        return {link.id: link.note for link in links if {link.source, link.target} <= seen}

    return _whole(typed, named)


def event_id(reader: Reader, caller: Caller, typed: str) -> str:
    """Like `unit_id`, for an entry of the log."""

    def named(part: str) -> dict[str, str]:
        events = reader.events_named(part, _CANDIDATES_MAX)
        return {event.id: str(event.type) for event in events if caller.may_read(event.scope)}

    return _whole(typed, named)


def any_id(reader: Reader, caller: Caller, typed: str) -> str:
    """Like `unit_id`, for a unit, a conflict or an entry of the log, looked up in this order."""
    for look in (unit_id, link_id, event_id):
        whole = look(reader, caller, typed)
        if whole != typed:
            return whole
    return typed


def _whole(typed: str, candidates_for: Callable[[str], dict[str, str]]) -> str:
    candidates = {} if is_whole(typed) else candidates_for(typed.lower())
    if len(candidates) < 2:
        return next(iter(candidates), typed)
    listed = [
        f"{id[_LAST_GROUP:]} ({words.in_a_line(text, _WORDS_CHARS_MAX)})"
        for id, text in list(candidates.items())[:_LISTED_MAX]
    ]
    more = f" and {len(candidates) - _LISTED_MAX} more" if len(candidates) > _LISTED_MAX else ""
    raise InvalidInput(f"{typed!r} may be {', '.join(listed)}{more}.", hint="Name one of these.")
