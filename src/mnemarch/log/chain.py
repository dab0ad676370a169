"""The hash chain of a stream: how an entry is hashed, and whether a log is still what was written."""

from __future__ import annotations

from functools import lru_cache

from mnemarch.errors import StoreCorrupt
from mnemarch.model.event import Event, EventType
from mnemarch.model.json_text import canonical_json, kept_json
from mnemarch.model.stamps import micros, sha256
from mnemarch.stores.sql.rows import DAMAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mnemarch.model.caller import Stream
    from mnemarch.model.outcome import LogCheck

CHAIN_VERSION = 1
_OF_WRITERS = 2  # with the writer and the clock


def payload_hash(salt: bytes, body: bytes) -> bytes:
    """Salted, so that the hash which outlives an erased payload does not let anybody guess it back."""
    return sha256(salt + body).digest()


def entry_hash(previous: bytes, event: Event) -> bytes:
    """Covers the previous hash, every header field, and the payload by its hash, so a payload can be erased (R16)."""
    return sha256(previous + header(event).encode()).digest()


def header(event: Event) -> str:
    """The header as one JSON array."""
    before, after = header_around(event)
    return f"{before}{event.seq}{after}"


def header_around(event: Event) -> tuple[str, str]:
    """What stands before and after the number in the header. What repeats from entry to entry is encoded once."""
    stream, actor, scope = event.stream, event.actor, event.scope
    place = f"{CHAIN_VERSION},{_encoded(stream.org, stream.project)}"
    if stream.writer:
        place = f"{_OF_WRITERS},{_encoded(stream.org, stream.project, stream.writer)},{canonical_json(event.clock)}"
    who = _encoded(actor.kind, actor.id)
    where = _encoded(scope.org, scope.project, scope.worktree, scope.task)
    said = _encoded(event.session, event.subject, event.key)
    recorded = micros(event.recorded_at)
    occurred = recorded if event.occurred_at is event.recorded_at else micros(event.occurred_at)
    return (
        f"[{place},",
        f',"{event.id}","{event.type}",{who},[{where}],{said},{occurred},{recorded},"{event.payload_hash.hex()}"]',
    )


@lru_cache(maxsize=4096)
def _encoded(*items: str | None) -> str:
    return kept_json(*items)[1:-1]


def checked_chain(
    events: Iterable[Event],
    heads: Mapping[Stream, tuple[int, bytes]],
    progress: Callable[[int], None] | None = None,
    each: Callable[[Event], None] | None = None,
) -> LogCheck:
    """Walk every stream; name the first entry that was changed, emptied, removed, moved or added by hand.

    `each` is called with every entry that fits.
    """
    from mnemarch.model.outcome import LogCheck

    ends: dict[Stream, tuple[int, bytes, str]] = {}
    emptied: dict[str, str] = {}
    walked = 0
    try:
        for event in events:
            seq, previous, _ = ends.get(event.stream, (0, b"", ""))
            problem = problem_of(event, seq, previous)
            if problem:
                problem = f"{event.stream} #{event.seq}: {problem}"
                return LogCheck(ok=False, events=walked, first_broken=event.id, problem=problem)
            ends[event.stream] = (event.seq, event.hash, event.id)
            if event.erased:
                emptied[event.id] = f"{event.stream} #{event.seq}"
            for event_id in _vouched_for(event):
                emptied.pop(event_id, None)
            if each is not None and not _taken(each, event):
                problem = f"{event.stream} #{event.seq}: it says what no entry of its type can say"
                return LogCheck(ok=False, events=walked, first_broken=event.id, problem=problem)
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


def _taken(each: Callable[[Event], None], event: Event) -> bool:
    try:
        each(event)
    except DAMAGE:
        return False
    return True


def _vouched_for(event: Event) -> Sequence[str]:
    """The entries before it that an erasure says it emptied (R16). Nobody else may: what it undid would come back."""
    payload = event.payload if event.type is EventType.UNIT_ERASED else None
    return () if payload is None else payload.get("events", ())


def problem_of(event: Event, seq: int, previous: bytes) -> str | None:
    """What is wrong with an entry that follows entry `seq` with this hash, or None."""
    if event.seq != seq + 1:
        return f"follows #{seq}: an entry is missing or repeated"
    if event.body is not None and (
        event.salt is None or payload_hash(event.salt, event.body.encode()) != event.payload_hash
    ):
        return "its payload was changed"
    if entry_hash(previous, event) != event.hash or bool(event.clock) != bool(event.stream.writer):
        return "it does not fit the chain: the entry or the one before it was changed"
    return None
