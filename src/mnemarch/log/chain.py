"""The hash chain of a stream: hashes entries, and remembers how far a log went.

A store can't detect that its newest entries were cut off, or that an older copy was restored, because the chain is
still valid. So each user's machine remembers the end of a log, outside of the store.
"""

from __future__ import annotations

import os
from _json import encode_basestring_ascii as quoted
from contextlib import suppress
from functools import lru_cache

from mnemarch import user
from mnemarch.files import write_private
from mnemarch.model.json_text import canonical_json, from_json, kept_json
from mnemarch.model.stamps import blake2b, micros, sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from mnemarch.model.caller import Stream
    from mnemarch.model.event import Event
    from mnemarch.ports import Store
    from mnemarch.stores.sql.reader import Reader

CHAIN_VERSION = 1
_OF_WRITERS = 2  # The header includes the writer and the clock.


def payload_hash(salt: bytes, body: bytes) -> bytes:
    """The salted hash of a payload. It outlives an erasure; the salt keeps anybody from guessing the payload by it."""
    return sha256(salt + body).digest()


def entry_hash(previous: bytes, event: Event) -> bytes:
    """The hash of an entry, over the previous hash and the header.

    The header has only the payload's hash, so a payload can be erased (R16).
    """
    before, after = header_around(event)
    return sha256(previous + f"{before}{event.seq}{after}".encode()).digest()


def header_around(event: Event) -> tuple[str, str]:
    """The header, a JSON array, before and after the sequence number. Parts that repeat between entries are cached."""
    stream, actor, scope = event.stream, event.actor, event.scope
    place = f"{CHAIN_VERSION},{_encoded(stream.org, stream.project)}"
    if stream.writer:
        place = f"{_OF_WRITERS},{_encoded(stream.org, stream.project, stream.writer)},{canonical_json(event.clock)}"
    who = _encoded(actor.kind, actor.id)
    where = _encoded(scope.org, scope.project, scope.worktree, scope.task)
    said = ",".join("null" if name is None else quoted(name) for name in (event.session, event.subject, event.key))
    recorded = micros(event.recorded_at)
    occurred = recorded if event.occurred_at is event.recorded_at else micros(event.occurred_at)
    return (
        f"[{place},",
        f',"{event.id}","{event.type}",{who},[{where}],{said},{occurred},{recorded},"{event.payload_hash.hex()}"]',
    )


@lru_cache(maxsize=4096)
def _encoded(*items: str | None) -> str:
    return kept_json(*items)[1:-1]


def is_whole(event: Event) -> bool:
    """Whether an entry still has the payload that it was hashed with, or had it erased."""
    if event.body is None:
        return True
    return event.salt is not None and payload_hash(event.salt, event.body.encode()) == event.payload_hash


def problem_of(event: Event, seq: int, previous: bytes) -> str | None:
    """The problem of an entry that should follow entry `seq` with the hash `previous`, or None."""
    if event.seq != seq + 1:
        return f"follows #{seq}: an entry is missing or repeated"
    if not is_whole(event):
        return "its payload was changed"
    if entry_hash(previous, event) != event.hash or bool(event.clock) != bool(event.stream.writer):
        return "it does not fit the chain: the entry or the one before it was changed"
    return None


_FOLDER = "logs"


class RememberedLog:
    """A small file for each store path. It has the store's id, the ends of its streams, and the last audit's digest."""

    def __init__(self, store_path: str) -> None:
        named = os.path.realpath(store_path)
        name = blake2b(named.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
        self._place = user.state_path_of(os.path.join(_FOLDER, f"{name}.json"))
        self._named = named

    def read(self) -> dict[str, Any]:
        """The content of the file, or an empty dict if it is missing or unreadable."""
        try:
            with open(self._place, encoding="utf-8") as file:
                known = from_json(file.read())
            heads = {(org, project, *writer): (seq, hash) for org, project, seq, hash, *writer in known["heads"]}
            return {"store": str(known["store"]), "heads": heads, "newest": known["newest"], "seen": known["seen"]}
        except (OSError, ValueError, TypeError, KeyError):
            return {}

    def follow(self, store: Store) -> None:
        """Remember the current ends of the streams, if the log continues the remembered one."""
        known = self.read()

        def work(reader: Reader) -> dict[str, Any] | None:
            heads = reader.heads()
            if not known:
                return _state(store.id, reader, heads, "")
            if known["store"] != store.id or missing_from(known["heads"], heads) is not None:
                return None
            newest = reader.event(known["newest"][0])
            if newest is None or newest.hash.hex() != known["newest"][1]:
                return None
            return _state(store.id, reader, heads, known["seen"])

        state = store.read(work)
        if state is not None and state["newest"] != known.get("newest"):
            self._write(state)

    def accept(self, store: Store, seen: str) -> None:
        """Remember the current log in place of the remembered one. `seen` is the digest of an audit."""
        state = store.read(lambda reader: _state(store.id, reader, reader.heads(), seen))
        if state is not None:
            self._write(state)

    def _write(self, state: Mapping[str, Any]) -> None:
        # The memory must also work where the user's folder can't be written.
        with suppress(OSError):
            os.makedirs(os.path.dirname(self._place), exist_ok=True)
            content = canonical_json({**state, "path": self._named})
            write_private(self._place, content.encode(errors="surrogateescape"))


def missing_from(
    remembered: Mapping[tuple[str | None, ...], tuple[int, str]], heads: Mapping[Stream, tuple[int, bytes]]
) -> tuple[str | None, ...] | None:
    """The first remembered stream that ends earlier now, or is gone. None if there is none."""
    ends = {name_of(stream): seq for stream, (seq, _) in heads.items()}
    return next((name for name, (seq, _) in remembered.items() if ends.get(name, 0) < seq), None)


def name_of(stream: Stream) -> tuple[str | None, ...]:
    return (stream.org, stream.project, *filter(None, [stream.writer]))


def _state(
    store_id: str, reader: Reader, heads: Mapping[Stream, tuple[int, bytes]], seen: str
) -> dict[str, Any] | None:
    newest = next(reader.events(after=max(0, reader.position() - 1), limit=1), None)
    if newest is None:
        return None
    return {
        "store": store_id,
        "newest": [newest.id, newest.hash.hex()],
        "heads": [
            [stream.org, stream.project, seq, hash.hex(), *filter(None, [stream.writer])]
            for stream, (seq, hash) in heads.items()
        ],
        "seen": seen,
    }
