"""Graphs that live in the log (R1): every act is an event with its steps, and a graph is read back by taking them.

So several processes share an agent's graph and none loses what another wrote; nothing else has to be stored.
"""

from __future__ import annotations

from mnemarch.graph.state import GraphState, quotes
from mnemarch.lazy import Lazy
from mnemarch.model.caller import GRAPH_PREFIX
from mnemarch.model.event import EventType
from mnemarch.model.json_text import to_json
from mnemarch.model.stamps import micros

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeVar

    from mnemarch.graph import checkpoint
    from mnemarch.graph.held import Held
    from mnemarch.graph.keeping import Keeper
    from mnemarch.graph.state import Step
    from mnemarch.log.act import Act, Ledger
    from mnemarch.model.caller import Presence
    from mnemarch.model.event import Event
    from mnemarch.ports import Reader

    T = TypeVar("T")
else:
    checkpoint = Lazy("mnemarch.graph.checkpoint")

# After so many events, and as many as it has nodes, a graph is told as a whole, so that no more need be read back.
_RETOLD_EVERY = 200
_READ_BACK = 2 * _RETOLD_EVERY
_BATCH_CHARS_MAX = 131_072
_ENVELOPE_CHARS_MAX = 1_024


class LogKeeper:
    """Keeps one graph of an actor in the log: that of a session, or its own."""

    def __init__(self, ledger: Ledger, presence: Presence, session: str | None) -> None:
        self._ledger = ledger
        self._presence = presence
        self._session = session
        self._subject = presence.graph_subject(session)
        self._position = 0
        self._since_retold = 0

    def now(self) -> int:
        return micros(self._ledger.clock())

    def catch_up(self, graph: Held) -> None:
        self._ledger.store.read(lambda reader: self._read_up(reader, graph))

    def change(self, graphs: Sequence[Held], act: str, work: Callable[[int], T]) -> T:
        kept = [(graph, _of_log(graph.keeper)) for graph in graphs]
        known = [keeper._position for _, keeper in kept]

        def forget_what_was_undone() -> None:
            for (graph, keeper), position in zip(kept, known, strict=True):
                if graph.has_steps or keeper._position != position:
                    keeper._start_over(graph)

        def run(under_way: Act) -> T:
            forget_what_was_undone()  # If it has run before, that came to nothing.
            for graph, keeper in kept:
                keeper._read_up(under_way.transaction, graph)
            done = work(micros(under_way.now))
            for graph, keeper in kept:
                keeper._record(under_way, graph, act)
            return done

        try:
            return self._ledger.act(self._presence, run)
        except BaseException:
            forget_what_was_undone()
            raise

    def _record(self, act: Act, graph: Held, name: str) -> None:
        steps = graph.take_steps()
        if not steps:
            return
        chars_max = _chars_max(act)
        for batch in _batches(steps, chars_max):
            self._append(act, EventType.GRAPH_CHANGED, name, batch)
        if self._since_retold >= max(_RETOLD_EVERY, graph.size):
            first, *others = _batches(graph.retold(), chars_max) or [[]]
            self._append(act, EventType.GRAPH_RESTATED, "retold", first)
            for batch in others:
                self._append(act, EventType.GRAPH_CHANGED, "retold", batch)

    def _append(self, act: Act, type: EventType, name: str, steps: Sequence[Step]) -> None:
        agent = str(self._presence.actor)
        payload = {"agent": agent, "session": self._session, "act": name, "steps": list(steps)}
        event, _ = act.record(type, payload, subject=self._subject)
        self._position = event.position
        self._since_retold = 0 if type is EventType.GRAPH_RESTATED else self._since_retold + 1

    def _start_over(self, graph: Held) -> None:
        """Forget what was read: part of it was not kept."""
        graph.forget()
        self._position = self._since_retold = 0

    def _read_up(self, reader: Reader, graph: Held) -> None:
        if self._position:
            events = list(reader.events_of_subject(self._subject, after=self._position))
        else:
            events = self._from_the_last_whole(reader)
        for event in events:
            self._position = event.position
            if event.type is EventType.GRAPH_RESTATED and not event.erased:
                graph.forget()
                self._since_retold = 0
            self._since_retold += 1
            graph.take((event.payload or {"steps": []})["steps"])

    def _from_the_last_whole(self, reader: Reader) -> list[Event]:
        """The events that make the graph: from where it was last told as a whole, or all."""
        last = _READ_BACK
        while True:
            events = list(reader.events_of_subject(self._subject, last=last))
            begins = [at for at, event in enumerate(events) if _is_whole(event)]
            if begins or len(events) < last:
                return events[begins[-1] :] if begins else events
            last *= 4


class Erasing:
    """The graphs of a memory as an erasure needs them; their files are in a folder (R16)."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def without(
        self, reader: Reader, events: Iterable[Event], contents: Sequence[str]
    ) -> list[tuple[Event, list[Step]]]:
        """For each graph that has one of these events: its last one, and the graph without what quotes a text."""
        last = {event.subject: event for event in events if (event.subject or "").startswith(GRAPH_PREFIX)}
        return [(event, self._without(reader, subject or "", contents)) for subject, event in last.items()]

    def _without(self, reader: Reader, subject: str, contents: Sequence[str]) -> list[Step]:
        state = GraphState()
        for event in reader.events_of_subject(subject):
            if _is_whole(event):
                state = GraphState()
            for step in (event.payload or {"steps": []})["steps"]:
                state.take(step)
        for vertex in list(state.nodes.values()):
            if quotes(vertex.text, vertex.about, contents):
                state.drop(vertex.id)
        return state.retold()

    def restate(self, act: Act, graphs: Sequence[tuple[Event, list[Step]]]) -> None:
        """Record graphs anew, in place of their events that were emptied."""
        for event, steps in graphs:
            self._restate(act, event, steps)

    def _restate(self, act: Act, event: Event, steps: Sequence[Step]) -> None:
        told = event.payload or {}
        for at, batch in enumerate(_batches(steps, _chars_max(act)) or [[]]):
            type = EventType.GRAPH_CHANGED if at else EventType.GRAPH_RESTATED
            payload = {
                "agent": told.get("agent"),
                "session": told.get("session"),
                "act": "erased",
                "steps": list(batch),
            }
            act.record(type, payload, subject=event.subject)

    def forget_in_files(self, contents: Sequence[str]) -> int:
        """Rid the files of these texts; gives how many there are."""
        return checkpoint.forget(self._folder, contents)


def _is_whole(event: Event) -> bool:
    return event.type is EventType.GRAPH_RESTATED and not event.erased


def _of_log(keeper: Keeper) -> LogKeeper:
    assert isinstance(keeper, LogKeeper), "graphs that change together are kept together"
    return keeper


def _chars_max(act: Act) -> int:
    """How much fits into one event."""
    return min(_BATCH_CHARS_MAX, max(1, act.config.limits.data_bytes_max - _ENVELOPE_CHARS_MAX))


def _batches(steps: Sequence[Step], chars_max: int) -> list[list[Step]]:
    """The steps in runs that fit into an event each."""
    return list(_cut(steps, chars_max))


def _cut(steps: Sequence[Step], chars_max: int) -> Iterator[list[Step]]:
    batch: list[Step] = []
    size = 0
    for step in steps:
        length = len(to_json(step))
        if batch and size + length > chars_max:
            yield batch
            batch, size = [], 0
        batch.append(step)
        size += length
    if batch:
        yield batch
