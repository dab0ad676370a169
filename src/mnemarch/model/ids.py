"""Time-ordered unique ids (UUID version 7)."""

from __future__ import annotations

import os
import time

_last_tick = 0


def new_id() -> str:
    """A UUIDv7: milliseconds, then 12 bits of the millisecond's fraction, then 62 random bits.

    Ids made by one process sort in the order they were made, also when the clock goes back; between processes the
    random bits keep them apart.
    """
    global _last_tick
    nanos = time.time_ns()
    tick = (nanos // 1_000_000) << 12 | (nanos % 1_000_000) * 4096 // 1_000_000
    _last_tick = tick = max(tick, _last_tick + 1)
    when = f"{tick:015x}"
    random = f"{int.from_bytes(os.urandom(8), 'big') >> 2 | 1 << 63:x}"
    return f"{when[:8]}-{when[8:12]}-7{when[12:]}-{random[:4]}-{random[4:]}"
