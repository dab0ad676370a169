"""Instants: aware datetimes outside, whole microseconds since 1970 (UTC) in stored form."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mnemarch.errors import Hint, InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def micros(instant: datetime) -> int:
    return (instant - EPOCH) // _MICROSECOND


def instant(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def now() -> datetime:
    return datetime.now(UTC)


def checked_instant(given: Any, what: str) -> datetime:
    """`given` in UTC; a datetime without a zone would mean something else on every machine."""
    if not isinstance(given, datetime) or given.tzinfo is None:
        raise InvalidInput(f"{what} must be a datetime with a time zone, not {given!r}.", hint=Hint("instant"))
    aware: datetime = given
    try:
        return aware.astimezone(UTC)
    except OverflowError:
        raise InvalidInput(f"{what} {given!r} is out of range.", hint="Use a date between year 1 and 9999.") from None
