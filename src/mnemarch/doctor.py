"""Doctor. Takes: an open memory. Gives: what is wrong with it, in words, after a real write and a real recall."""

from __future__ import annotations

from mnemarch.errors import MnemarchError
from mnemarch.log.audit import audited
from mnemarch.model.caller import DOCTOR
from mnemarch.model.outcome import Finding
from mnemarch.text.words import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mnemarch.seat import Seat
    from mnemarch.services.engine import Engine

# A place of its own: its traces are in nobody's scope. The task names what a hook is to find there.
PLACE = {"org": DOCTOR, "project": "round-trip", "worktree": "doctor", "task": "find the sentence again"}
SENTENCE = "The doctor left this sentence to see whether it can be found again"
_BEHIND_S_MAX = 60.0


def examined(engine: Engine, seat: Seat) -> list[Finding]:
    """Each check in the order in which trouble would show; one that fails says what to do, and the rest go on."""
    checks: tuple[Callable[[Engine, Seat], Finding], ...] = (
        _file_is_sound,
        _store_is_writable,
        _log_holds,
        _clock_is_right,
        _round_trip,
        _index_keeps_up,
        _vectors_keep_up,
    )
    return [_checked(check, engine, seat) for check in checks]


def _checked(check: Callable[[Engine, Seat], Finding], engine: Engine, seat: Seat) -> Finding:
    try:
        return check(engine, seat)
    except MnemarchError as error:
        return Finding(ok=False, what=error.message, hint=error.hint)


def _file_is_sound(engine: Engine, _: Seat) -> Finding:
    store = engine.store
    trouble = store.check()
    if trouble is None:
        ((size,),) = store.query("size")
        return Finding(ok=True, what=f"The store is sound ({size:,} bytes, format {store.format_version}).")
    return Finding(
        ok=False,
        what=f"The storage engine finds damage: {trouble}.",
        hint="Restore the newest backup (files in git: git checkout), or import an export into a new memory.",
    )


def _store_is_writable(engine: Engine, _: Seat) -> Finding:
    if engine.store.writable:
        return Finding(ok=True, what="The store can be written.")
    return Finding(
        ok=False, what="The store is read-only.", hint="Give yourself the right to write its file and folder."
    )


def _log_holds(engine: Engine, _: Seat) -> Finding:
    check = audited(engine.store, engine.remembered)
    if check.ok:
        return Finding(ok=True, what=f"The log holds ({counted(check.events, 'event')}), and rows are what it says.")
    return Finding(ok=False, what=f"The audit fails at {check.first_broken}: {check.problem}.", hint=check.hint)


def _clock_is_right(engine: Engine, _: Seat) -> Finding:
    newest = engine.store.read(lambda reader: list(reader.events(after=max(0, reader.position() - 1), limit=1)))
    behind_s = (newest[0].recorded_at - engine.log.clock()).total_seconds() if newest else 0.0
    if behind_s < _BEHIND_S_MAX:
        return Finding(ok=True, what="The clock is not behind the log.")
    return Finding(
        ok=False,
        what=f"This machine's clock is {behind_s:,.0f} s behind the newest event.",
        hint="Set the clock. Nothing is lost: order comes from sequence numbers, but ages will read wrong.",
    )


def _round_trip(_: Engine, seat: Seat) -> Finding:
    receipt = seat.log("check", "round trip")
    seat.remember(SENTENCE, key="the-sentence")
    found = seat.recall(SENTENCE, k=1)
    if found.items and found.items[0].unit.content == SENTENCE:
        return Finding(ok=True, what=f"A write and a recall came round (event #{receipt.seq}).")
    return Finding(
        ok=False, what="What was written could not be recalled.", hint="Run mnemarch reindex, then doctor again."
    )


def _index_keeps_up(engine: Engine, _: Seat) -> Finding:
    stats = engine.stats()
    behind_max = 2 * engine.config.store.index_tail_max
    if stats.unindexed <= behind_max:
        return Finding(
            ok=True, what=f"The search index keeps up ({stats.indexed:,} indexed, {stats.unindexed:,} newer)."
        )
    return Finding(
        ok=False, what=f"{stats.unindexed:,} units are not indexed: recall is slow.", hint="Run mnemarch reindex."
    )


def _vectors_keep_up(engine: Engine, _: Seat) -> Finding:
    stats = engine.meaning()
    if stats["meaning"] == "off":
        return Finding(ok=True, what="Search by meaning is off; mnemarch reindex --meaning begins it.")
    if stats["meaning"] != "on":
        return Finding(
            ok=False,
            what=f"Search by meaning takes no part: {stats['meaning']}",
            hint="Recall goes on by words. Mend it, or set recall.semantic to an empty text.",
        )
    if stats["without_vector"] <= 2 * engine.config.store.index_tail_max:
        told = f"{stats['vectors']:,} vectors, {stats['without_vector']:,} units to come"
        return Finding(ok=True, what=f"The vectors keep up ({told}).")
    return Finding(
        ok=False,
        what=f"{stats['without_vector']:,} units have no vector yet: recall finds them by words alone.",
        hint="A long-lived process makes them in the background; or at once: mnemarch reindex",
    )
