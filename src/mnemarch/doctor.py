"""Doctor. Takes: an open memory. Gives: findings in words, after a real write and a real recall."""

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

# The doctor's own scope, so that its traces are in nobody's. A hook that starts there must find the sentence below by
# the task's name.
PLACE = {"org": DOCTOR, "project": "round-trip", "worktree": "doctor", "task": "find the sentence again"}
SENTENCE = "The doctor left this sentence to see whether it can be found again"
_BEHIND_S_MAX = 60.0


def examined(engine: Engine, seat: Seat) -> list[Finding]:
    """Run all checks, in the order in which problems would show. After a failed check, the others still run."""
    if engine.store.sees_all:
        checks = (_file, _rights, _log, _clock, _round_trip, _index, _vectors)
        return [_checked(check, engine, seat) for check in checks]
    own = engine.of(seat.caller.stream)
    rest = "Only the operator of the memory (role mnemarch_operator) can check the log and the index of all projects."
    return [*(_checked(check, own, seat) for check in (_file, _rights, _round_trip)), good(rest)]


def _checked(check: Callable[[Engine, Seat], Finding], engine: Engine, seat: Seat) -> Finding:
    try:
        return check(engine, seat)
    except MnemarchError as error:
        return wrong(error.message, error.hint)


def good(what: str) -> Finding:
    """A check that found nothing wrong."""
    return Finding(ok=True, what=what)


def wrong(what: str, hint: str) -> Finding:
    """A check that found a problem, with a hint how to solve it."""
    return Finding(ok=False, what=what, hint=hint)


def _file(engine: Engine, _: Seat) -> Finding:
    store = engine.store
    if trouble := store.check():
        hint = "Restore the newest backup (files in git: git checkout), or import an export into a new memory."
        return wrong(f"The database is damaged: {trouble}.", hint)
    ((size,),) = store.query("size")
    return good(f"The store is sound ({size:,} bytes, format {store.format_version}).")


def _rights(engine: Engine, _: Seat) -> Finding:
    if engine.store.writable:
        return good("The store can be written.")
    return wrong("The store is read-only.", "Give yourself the right to write its file and folder.")


def _log(engine: Engine, _: Seat) -> Finding:
    check = audited(engine.store, engine.remembered)
    if check.ok:
        return good(f"The log is intact ({counted(check.events, 'event')}), and every stored row follows from it.")
    return wrong(f"The audit fails at {check.first_broken}: {check.problem}.", check.hint)


def _clock(engine: Engine, _: Seat) -> Finding:
    newest = engine.store.read(lambda reader: list(reader.events(after=max(0, reader.position() - 1), limit=1)))
    behind_s = (newest[0].recorded_at - engine.log.clock()).total_seconds() if newest else 0.0
    if behind_s < _BEHIND_S_MAX:
        return good("The clock is not behind the log.")
    hint = "Set the clock. Nothing is lost, because sequence numbers give the order. But shown ages are wrong."
    return wrong(f"This machine's clock is {behind_s:,.0f} s behind the newest event.", hint)


def _round_trip(_: Engine, seat: Seat) -> Finding:
    receipt = seat.log("check", "round trip")
    seat.remember(SENTENCE, key="the-sentence")
    found = seat.recall(SENTENCE, k=1)
    if found.items and found.items[0].unit.content == SENTENCE:
        return good(f"A write was stored and recalled (event #{receipt.seq}).")
    return wrong("A test sentence was written, but recall did not find it.", "Run mnemarch reindex, then doctor again.")


def _index(engine: Engine, _: Seat) -> Finding:
    stats = engine.stats()
    if stats.unindexed <= 2 * engine.config.store.index_tail_max:
        return good(f"The search index is up to date ({stats.indexed:,} indexed, {stats.unindexed:,} newer).")
    return wrong(f"{stats.unindexed:,} units are not indexed: recall is slow.", "Run mnemarch reindex.")


def _vectors(engine: Engine, _: Seat) -> Finding:
    stats = engine.meaning()
    says, waiting = stats["meaning"], stats["without_vector"]
    if says == "off":
        return good("Search by meaning is off. To turn it on: mnemarch reindex --meaning")
    if says != "on":
        hint = "Recall searches by words alone. Correct the cause, or set recall.semantic to an empty text."
        return wrong(f"Search by meaning does not work: {says}", hint)
    if waiting <= 2 * engine.config.store.index_tail_max:
        return good(f"The vectors are up to date ({stats['vectors']:,} vectors, {waiting:,} units to come).")
    hint = "A long-running process makes them in the background. To make them now: mnemarch reindex"
    return wrong(f"{waiting:,} units have no vector yet: recall finds them by words alone.", hint)
