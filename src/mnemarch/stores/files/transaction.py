"""A transaction of one writer among several: it gives events their time, and notes what leaves the files."""

from __future__ import annotations

from mnemarch.model.json_text import canonical_json, from_json
from mnemarch.stores.files import forms
from mnemarch.stores.sql.transaction import Transaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mnemarch.model.caller import Stream
    from mnemarch.model.event import Event
    from mnemarch.stores.sql.queries import Queries


class FileTransaction(Transaction):
    """Writes as one of the writers of the folder, and notes what leaves its files."""

    def __init__(self, execute: Callable[..., Any], queries: Queries, integrity_error: type[Exception]) -> None:
        super().__init__(execute, queries, integrity_error)
        self.writer = ""
        self.erased: list[Event] = []
        self._clocks: dict[str, tuple[int, dict[str, int]]] | None = None

    def forget(self) -> None:
        super().forget()
        self._clocks = None

    @property
    def clocks(self) -> dict[str, tuple[int, dict[str, int]]]:
        """The last Lamport time of each writer, and how far it had seen each of the others."""
        if self._clocks is None:
            self._clocks = {writer: (lamport, from_json(seen)) for writer, lamport, seen in self.query("clocks")}
        return self._clocks

    @property
    def lamport(self) -> int:
        return max((lamport for lamport, _ in self.clocks.values()), default=0)

    def own(self, stream: Stream) -> tuple[Stream, str]:
        known = self.clocks.get(self.writer, (0, {}))[1]
        others = {writer: lamport for writer, (lamport, _) in self.clocks.items() if writer != self.writer}
        news = {writer: lamport for writer, lamport in others.items() if lamport > known.get(writer, 0)}
        stream = type(stream)(stream.org, stream.project, self.writer)
        return stream, canonical_json([self.lamport + 1, news])

    def next_number(self, stream: Stream) -> int:  # noqa: ARG002
        return self.lamport + 1

    def append(self, event: Event, hash: bytes) -> Event:
        placed = super().append(event, hash)
        if event.clock:
            writer = event.stream.writer
            seen = {**self.clocks.get(writer, (0, {}))[1], **forms.seen_in(event.clock)}
            self.clocks[writer] = forms.lamport_of(event.clock), seen
            lamport = self.clocks[writer][0]
            self.query("put_clock", writer=writer, lamport=lamport, seen=canonical_json(seen))
        return placed

    def erase_payload(self, event_id: str) -> None:
        event = self.event(event_id)
        if event is not None and event.body is not None:
            self.erased.append(event)
        super().erase_payload(event_id)
