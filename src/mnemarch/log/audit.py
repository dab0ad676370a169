"""Walking the hash chains: the first entry that does not hold is named (R1)."""

from __future__ import annotations

from mnemarch.errors import StoreCorrupt
from mnemarch.log.chain import entry_hash, payload_hash
from mnemarch.model.event import EventType
from mnemarch.model.outcome import LogCheck

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mnemarch.model.caller import Stream
    from mnemarch.model.event import Event
    from mnemarch.ports import Store


def audited(store: Store, progress: Callable[[int], None] | None = None) -> LogCheck:
    """Walk every hash chain of a store."""
    return store.read(lambda reader: checked_chain(reader.events(), reader.heads(), progress))


def checked_chain(
    events: Iterable[Event],
    heads: Mapping[Stream, tuple[int, bytes]],
    progress: Callable[[int], None] | None = None,
) -> LogCheck:
    """Walk every stream; name the first entry that was changed, emptied, removed, moved or added by hand."""
    ends: dict[Stream, tuple[int, bytes, str]] = {}
    emptied: dict[str, str] = {}
    walked = 0
    try:
        for event in events:
            seq, previous, _ = ends.get(event.stream, (0, b"", ""))
            problem = _problem(event, seq, previous)
            if problem:
                problem = f"{event.stream} #{event.seq}: {problem}"
                return LogCheck(ok=False, events=walked, first_broken=event.id, problem=problem)
            ends[event.stream] = (event.seq, event.hash, event.id)
            if event.erased:
                emptied[event.id] = f"{event.stream} #{event.seq}"
            for event_id in _vouched_for(event):
                emptied.pop(event_id, None)
            walked += 1
            if progress and walked % 1000 == 0:
                progress(walked)
    except StoreCorrupt as error:
        return LogCheck(ok=False, events=walked, first_broken=error.event_id, problem=error.message)
    for stream in dict.fromkeys((*heads, *ends)):
        seq, hash, last_id = ends.get(stream, (0, b"", ""))
        head = heads.get(stream, (0, b""))
        if head != (seq, hash):
            problem = f"{stream} ends at #{seq}, but its head says #{head[0]}: entries were cut off or put in"
            return LogCheck(ok=False, events=walked, first_broken=last_id or f"{stream} #1", problem=problem)
    for event_id, place in emptied.items():
        problem = f"{place}: its payload was removed, and no erasure says so"
        return LogCheck(ok=False, events=walked, first_broken=event_id, problem=problem)
    return LogCheck(ok=True, events=walked)


def _vouched_for(event: Event) -> Sequence[str]:
    """The entries before it that an erasure says it emptied (R16). Nobody else may: what it undid would come back."""
    payload = event.payload if event.type is EventType.UNIT_ERASED else None
    return () if payload is None else payload.get("events", ())


def _problem(event: Event, seq: int, previous: bytes) -> str | None:
    if event.seq != seq + 1:
        return f"follows #{seq}: an entry is missing or repeated"
    if event.body is not None and (
        event.salt is None or payload_hash(event.salt, event.body.encode()) != event.payload_hash
    ):
        return "its payload was changed"
    if entry_hash(previous, event) != event.hash:
        return "it does not fit the chain: the entry or the one before it was changed"
    return None
