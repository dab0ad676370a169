"""Walking the hash chains: the first entry that does not hold is named (R1)."""

from __future__ import annotations

from mnemon.ledger.chain import entry_hash, payload_hash
from mnemon.model.outcome import LogCheck

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mnemon.model.event import Event, Stream


def checked_chain(
    events: Iterable[Event],
    head_of: Callable[[Stream], tuple[int, bytes]],
    progress: Callable[[int], None] | None = None,
) -> LogCheck:
    """Walk every stream; name the first entry that was changed, removed, moved or added by hand."""
    heads: dict[Stream, tuple[int, bytes]] = {}
    ids: dict[Stream, str] = {}
    walked = 0
    for event in events:
        seq, previous = heads.get(event.stream, (0, b""))
        problem = _problem(event, seq, previous)
        if problem:
            return LogCheck(
                ok=False, events=walked, first_broken=event.id, problem=f"{event.stream} #{event.seq}: {problem}"
            )
        heads[event.stream] = (event.seq, event.hash)
        ids[event.stream] = event.id
        walked += 1
        if progress and walked % 1000 == 0:
            progress(walked)
    for stream, (seq, hash) in heads.items():
        if head_of(stream) != (seq, hash):
            problem = f"{stream} ends at #{seq}, but its head says #{head_of(stream)[0]}: entries were cut off"
            return LogCheck(ok=False, events=walked, first_broken=ids[stream], problem=problem)
    return LogCheck(ok=True, events=walked)


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
