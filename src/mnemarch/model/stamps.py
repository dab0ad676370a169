"""Ids, instants and digests.

Instants are aware datetimes in memory and whole microseconds since 1970 (UTC) in stored form.
"""

from __future__ import annotations

import os
import time
from collections import deque

from mnemarch.errors import Hint, InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import UTC as UTC
    from datetime import datetime as datetime
    from datetime import timedelta as timedelta
    from hashlib import blake2b as blake2b
    from hashlib import sha256 as sha256
    from typing import Any
else:
    # Importing `datetime` and `hashlib` takes 5 of the 100 ms that a hook may take. The interpreter's own C modules
    # provide the same.
    try:
        from _datetime import UTC, datetime, timedelta
    except ImportError:
        from datetime import UTC, datetime, timedelta
    try:
        from _blake2 import blake2b

        try:
            from _sha2 import sha256  # 3.12 and newer
        except ImportError:
            from _sha256 import sha256
    except ImportError:
        from hashlib import blake2b, sha256  # noqa: F401 - for others

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_last_tick = 0
ID_CHARS = 36
_RANDOM_BYTES, _RANDOM_AHEAD = 16, 64
# Drawn in advance: os.urandom releases the GIL, and a thread may wait long to reacquire it.
_random: deque[bytes] = deque()
os.register_at_fork(after_in_child=_random.clear)


def random_bytes() -> bytes:
    """16 fresh random bytes."""
    while True:
        try:
            return _random.popleft()
        except IndexError:
            ahead = os.urandom(_RANDOM_BYTES * _RANDOM_AHEAD)
            _random.extend(ahead[at : at + _RANDOM_BYTES] for at in range(0, len(ahead), _RANDOM_BYTES))


def new_id() -> str:
    """A UUIDv7: milliseconds, then 12 bits of the millisecond's fraction, then 62 random bits.

    Ids of one process sort in the order of their creation, even if the clock goes back. The random bits keep the ids
    of different processes distinct.
    """
    global _last_tick
    nanos = time.time_ns()
    tick = (nanos // 1_000_000) << 12 | (nanos % 1_000_000) * 4096 // 1_000_000
    _last_tick = tick = max(tick, _last_tick + 1)
    when = f"{tick:015x}"
    random = f"{int.from_bytes(random_bytes()[:8], 'big') >> 2 | 1 << 63:x}"
    return f"{when[:8]}-{when[8:12]}-7{when[12:]}-{random[:4]}-{random[4:]}"


def short_id(id: str) -> str:
    """The form of an id that is printed for people: the first 8 characters of its last group.

    The last group is random. The beginning is the time, which ids of the same minute share.
    """
    return id[24:32] if len(id) == ID_CHARS else id


def now() -> datetime:
    return datetime.now(UTC)


def micros(instant: datetime) -> int:
    return (instant - EPOCH) // _MICROSECOND


def instant(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def checked_instant(moment: Any, what: str) -> datetime:
    """`moment` in UTC. A datetime without a zone is refused: its meaning would depend on the machine."""
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise InvalidInput(f"{what} must be a datetime with a time zone, not {moment!r}.", hint=Hint("instant"))
    aware: datetime = moment
    try:
        return aware.astimezone(UTC)
    except OverflowError:
        raise InvalidInput(f"{what} {moment!r} is out of range.", hint="Use a date between year 1 and 9999.") from None
