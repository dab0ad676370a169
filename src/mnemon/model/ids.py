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
    random = int.from_bytes(os.urandom(8), "big") >> 2
    text = f"{(tick >> 12) << 80 | 0x7 << 76 | (tick & 0xFFF) << 64 | 0b10 << 62 | random:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
