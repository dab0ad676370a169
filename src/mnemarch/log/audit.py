"""Whether a store is still what was written: its chains, its projections, and the end of its log (R1)."""

from __future__ import annotations

from mnemarch.log.chain import checked_chain, entry_hash, payload_hash
from mnemarch.log.merging import Merge
from mnemarch.log.remembered import missing_from, name_of
from mnemarch.log.replay import Replay
from mnemarch.model.outcome import LogCheck, ReceiptCheck
from mnemarch.model.stamps import sha256
from mnemarch.model.value import replace
from mnemarch.stores.sql.rows import ROWS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from mnemarch.log.remembered import RememberedLog
    from mnemarch.model.event import Event, Receipt
    from mnemarch.ports import Store
    from mnemarch.stores.sql.reader import Reader

_ALL = 1 << 62
_RESTORE = "It was changed by hand, or by the disk: restore a backup (files in git: git checkout), or import an export."
_REBUILD = "The log itself holds: mnemarch rebuild makes this right from it."
_CUT = "Restore the newest backup. If you put this copy here yourself: mnemarch audit --accept"
_WHAT = {
    "units": "unit",
    "citations": "a citation of unit",
    "links": "link",
    "link_units": "the units of link",
    "relations": "a relation of decision",
    "tests": "the outcome of test",
    "uses": "a use of unit",
    "code_rules": "code rule",
}


def audited(
    store: Store,
    remembered: RememberedLog | None = None,
    progress: Callable[[int], None] | None = None,
    *,
    full: bool = False,
    accept: bool = False,
) -> LogCheck:
    """Check everything, and remember that it was; what nobody changed since is only compared with that.

    `full` checks everything again all the same, also the keys of units' texts. `accept` takes the end of the log for
    right: an older copy was put back on purpose.
    """
    known: dict[str, Any] = {} if remembered is None or accept else remembered.read()
    damage = store.check()
    if damage is not None:
        return LogCheck(ok=False, events=0, first_broken="the file", problem=damage, hint=_RESTORE)

    def work(reader: Reader) -> tuple[LogCheck, str]:
        cut = _cut(reader, store.id, known)
        seen = _fingerprint(reader)
        if cut is None and not full and seen == known.get("seen"):
            return LogCheck(ok=True, events=int(reader.counts()["total"]["events"])), seen
        check = _walked(reader, known.get("heads", {}), progress, full=full)
        return (check if cut is None or not check.ok else replace(cut, events=check.events)), seen

    check, seen = store.read(work)
    if check.ok and remembered is not None and store.writable:
        remembered.accept(store, seen)
    return check


def _cut(reader: Reader, store_id: str, known: dict[str, Any]) -> LogCheck | None:
    """Whether the log ends before what is remembered of it, or is another one."""
    if not known:
        return None
    if known["store"] != store_id:
        end = known["newest"][0]
        problem = "another memory stands here than the one that was here last"
        return LogCheck(ok=False, events=0, first_broken=end, problem=problem, hint=_CUT)
    name = missing_from(known["heads"], reader.heads())
    if name is None:
        return None
    stream = " / ".join(part for part in name if part)
    problem = (
        f"{stream} went on to #{known['heads'][name][0]}, and does no longer: its end was cut off, or an older copy"
    )
    return LogCheck(ok=False, events=0, first_broken=stream, problem=f"{problem} was put back", hint=_CUT)


def _fingerprint(reader: Reader) -> str:
    """A digest of every stored row. The same one says that nothing changed; another says nothing."""
    total = sha256()
    for row in reader.query("events", after=0, limit=_ALL):
        total.update(repr(row).encode("utf-8", "surrogatepass"))
    for stream, head in sorted(reader.heads().items(), key=lambda item: str(item[0])):
        total.update(repr((stream, head)).encode("utf-8", "surrogatepass"))
    for row in (*reader.rows(), *reader.query("row_search")):
        total.update(repr(row).encode("utf-8", "surrogatepass"))
    return total.hexdigest()


def _walked(
    reader: Reader, remembered: dict[Any, tuple[int, str]], progress: Callable[[int], None] | None, *, full: bool
) -> LogCheck:
    """Walk every chain, fold the events in memory, and compare what comes out with the stored rows."""
    replay = Replay()
    merge = Merge(replay)
    ends = {(*name, seq): hash for name, (seq, hash) in remembered.items()}
    other: list[Event] = []

    def fold(event: Event) -> None:
        merge.project(event, keyed=full)
        if ends.get((*name_of(event.stream), event.seq), event.hash.hex()) != event.hash.hex():
            other.append(event)

    check = checked_chain(reader.events(), reader.heads(), progress, fold)
    if not check.ok:
        return replace(check, hint=_RESTORE)
    if other:
        problem = f"{other[0].stream} #{other[0].seq} was another entry when this machine saw it last"
        return LogCheck(ok=False, events=check.events, first_broken=other[0].id, problem=problem, hint=_CUT)
    difference = next(_differences(reader, replay, full=full), None)
    if difference is None:
        return check
    what, problem = difference
    return LogCheck(ok=False, events=check.events, first_broken=what, problem=problem, hint=_REBUILD)


def _differences(reader: Reader, replay: Replay, *, full: bool) -> Iterator[tuple[str, str]]:
    """Every row that is not what the log says: the id that it is about, and what is wrong."""
    expected = {_key(row): row for row in replay.rows()}
    for row in reader.rows():
        wanted = expected.pop(_key(row), None)
        if wanted is None:
            yield str(row[1]), f"{_named(row)} is stored, and no event of the log made it"
        elif wanted != row:
            yield str(row[1]), f"{_named(row)} is stored otherwise than the log says"
    for row in expected.values():
        yield str(row[1]), f"{_named(row)} is in the log, and its row is gone"
    for id, *stored in reader.query("row_search"):
        _, _, *replayed = replay.stored[id]
        if stored[:3] != replayed[:3]:
            yield id, f"unit {id} stands elsewhere in search or in its conversation than the log says"
        elif full and stored != replayed:
            yield id, f"unit {id} has other keys for its text than the log says"


def _key(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return row[: 1 + ROWS[row[0]]]


def _named(row: tuple[Any, ...]) -> str:
    return f"{_WHAT[row[0]]} {row[3] if row[0] == 'tests' else row[1]}"


def checked_receipt(store: Store, receipt: Receipt) -> ReceiptCheck:
    """Whether the entry that a receipt was given for is in the log, as it was."""

    def work(reader: Reader) -> ReceiptCheck:
        event = reader.event(receipt.event_id)
        if event is None:
            return ReceiptCheck(ok=False, event_id=receipt.event_id, says="not in this log: it was cut or replaced")
        before = reader.query("event_before", position=event.position, id=event.id).fetchone()
        previous = b"" if before is None else before[0]
        is_whole = event.body is None or (
            event.salt is not None and payload_hash(event.salt, event.body.encode()) == event.payload_hash
        )
        is_same = (event.seq, event.hash.hex()) == (receipt.seq, receipt.hash)
        if not is_same or not is_whole or entry_hash(previous, event) != event.hash:
            return ReceiptCheck(ok=False, event_id=event.id, says="changed: the log has another entry with this id")
        says = "in the log, unchanged" + ("; its content was erased since" if event.erased else "")
        return ReceiptCheck(ok=True, event_id=event.id, says=says)

    return store.read(work)
