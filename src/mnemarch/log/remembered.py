"""What this person's machine remembers of a log, outside its store: so a tail that was cut off is noticed.

The store itself can't tell: whoever cuts off its newest entries, or puts an older copy back, leaves a whole chain.
"""

from __future__ import annotations

import os
from contextlib import suppress

from mnemarch import user
from mnemarch.model.json_text import canonical_json, from_json
from mnemarch.model.stamps import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from mnemarch.model.caller import Stream
    from mnemarch.ports import Store
    from mnemarch.stores.sql.reader import Reader

_FOLDER = "logs"


class RememberedLog:
    """One small file for each store, by its path: which store it was, where its streams ended, what an audit saw."""

    def __init__(self, store_path: str) -> None:
        named = os.path.realpath(store_path)
        name = blake2b(named.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
        self._place = user.state_path_of(os.path.join(_FOLDER, f"{name}.json"))
        self._named = named

    def read(self) -> dict[str, Any]:
        """What is remembered; nothing if there is no such file, or none that can be read."""
        try:
            with open(self._place, encoding="utf-8") as file:
                known = from_json(file.read())
            heads = {(org, project, *writer): (seq, hash) for org, project, seq, hash, *writer in known["heads"]}
            return {"store": str(known["store"]), "heads": heads, "newest": known["newest"], "seen": known["seen"]}
        except (OSError, ValueError, TypeError, KeyError):
            return {}

    def follow(self, store: Store) -> None:
        """Remember where the streams end now, if the log still goes on from what is remembered."""
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
        """Remember the log as it is now, whatever was remembered; `seen` is what an audit made of it."""
        state = store.read(lambda reader: _state(store.id, reader, reader.heads(), seen))
        if state is not None:
            self._write(state)

    def _write(self, state: Mapping[str, Any]) -> None:
        # A machine that keeps nothing for its user still has a memory that works.
        with suppress(OSError):
            os.makedirs(os.path.dirname(self._place), exist_ok=True)
            partial = f"{self._place}.{os.getpid()}"
            with open(partial, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(canonical_json({**state, "path": self._named}))
            os.replace(partial, self._place)


def missing_from(
    remembered: Mapping[tuple[str | None, ...], tuple[int, str]], heads: Mapping[Stream, tuple[int, bytes]]
) -> tuple[str | None, ...] | None:
    """The first remembered stream that ends earlier now, or is gone."""
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
