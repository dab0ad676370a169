"""Shares graphs between processes through the log (R1).

Each act on a graph is an event with its steps. A graph is read by replaying the events; nothing else is stored.
"""

from __future__ import annotations

from mnemarch.graph.core import Graph, Keeper
from mnemarch.graph.state import GraphState, quotes
from mnemarch.model import stamps
from mnemarch.model.caller import GRAPH_PREFIX, Caller
from mnemarch.model.event import Event, EventType
from mnemarch.model.json_text import to_json
from mnemarch.units.life import note_help

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TypeVar

    from mnemarch.graph.state import Step
    from mnemarch.log.act import Act, Log
    from mnemarch.stores.sql.reader import Reader

    T = TypeVar("T")

# A graph is restated after this many events, and at least as many as its nodes, to limit how many a reader replays.
_RESTATED_EVERY = 200
_READ_BACK = 2 * _RESTATED_EVERY
_BATCH_CHARS_MAX = 131_072
_ENVELOPE_CHARS_MAX = 1_024


class LogKeeper(Keeper):
    """Keeps one graph of an actor in the log: a session's graph, or the actor's own."""

    reads_back = True

    def __init__(self, log: Log, caller: Caller, session: str | None) -> None:
        super().__init__(log.clock)
        self._log = log
        self._caller = caller
        self._session = session
        self._subject = caller.graph_subject(session)
        self._position = 0
        self._since_restated = 0
        self._epoch = log.store.epoch

    def read_anew(self, graph: Graph) -> None:
        graph.reset()
        self._position = self._since_restated = 0

    def catch_up(self, graph: Graph) -> None:
        self._log.store.read(lambda reader: self._read(reader, graph))

    def note_help(self, unit_ids: Sequence[str]) -> None:
        if unit_ids:
            self._log.act(self._caller, lambda act: note_help(act, unit_ids))

    def change(self, graphs: Sequence[Graph], act: str, work: Callable[[int], T]) -> T:
        keepers: list[Any] = [graph.keeper for graph in graphs]
        positions = [keeper._position for keeper in keepers]

        def forget_what_was_undone() -> None:
            for graph, keeper, position in zip(graphs, keepers, positions, strict=True):
                if graph.state.steps or keeper._position != position:
                    keeper.read_anew(graph)

        def run(under_way: Act) -> T:
            forget_what_was_undone()  # The store may repeat this after a failed commit.
            for graph, keeper in zip(graphs, keepers, strict=True):
                keeper._read(under_way.transaction, graph)
            outcome = work(stamps.micros(under_way.now))
            for graph, keeper in zip(graphs, keepers, strict=True):
                keeper._record(under_way, graph, act)
            return outcome

        try:
            return self._log.act(self._caller, run)
        except BaseException:
            forget_what_was_undone()
            raise

    def _read(self, reader: Reader, graph: Graph) -> None:
        if self._epoch != self._log.store.epoch:
            self._epoch = self._log.store.epoch
            self.read_anew(graph)
        if self._position:
            events = list(reader.events_of_subject(self._subject, after=self._position))
        else:
            events = self._events_since_restated(reader)
        for event in events:
            self._position = event.position
            if _restates(event):
                graph.reset()
                self._since_restated = 0
            self._since_restated += 1
            graph.replay(_steps_of(event))

    def _events_since_restated(self, reader: Reader) -> list[Event]:
        """The events that rebuild the graph: from the last one that restates it, or all."""
        last = _READ_BACK
        while True:
            events = list(reader.events_of_subject(self._subject, last=last))
            starts = [at for at, event in enumerate(events) if _restates(event)]
            if starts or len(events) < last:
                return events[starts[-1] :] if starts else events
            last *= 4

    def _record(self, act: Act, graph: Graph, name: str) -> None:
        head = {"agent": str(self._caller.actor), "session": self._session}
        if steps := graph.take_steps():
            self._follow(_append(act, self._subject, head | {"act": name}, steps))
            if self._since_restated >= max(_RESTATED_EVERY, len(graph.state.nodes)):
                steps = graph.state.all_steps()
                self._follow(_append(act, self._subject, head | {"act": "retold"}, steps, restates=True))

    def _follow(self, events: Sequence[Event]) -> None:
        for event in events:
            self._position = event.position
            self._since_restated = 0 if event.type is EventType.GRAPH_RESTATED else self._since_restated + 1


def _append(
    act: Act, subject: str | None, head: dict[str, Any], steps: Sequence[Step], *, restates: bool = False
) -> list[Event]:
    """Record steps in as many events as they need. If they restate the graph, the first event says so."""
    events: list[Event] = []
    for batch in _batches(steps, act) or [[]]:
        type = EventType.GRAPH_RESTATED if restates and not events else EventType.GRAPH_CHANGED
        events.append(act.record(type, head | {"steps": batch}, subject=subject)[0])
    return events


def _batches(steps: Sequence[Step], act: Act) -> list[list[Step]]:
    """The steps in batches that each fit into one event."""
    chars_max = min(_BATCH_CHARS_MAX, max(1, act.config.limits.data_bytes_max - _ENVELOPE_CHARS_MAX))
    batches: list[list[Step]] = []
    room = 0
    for step in steps:
        chars = len(to_json(step))
        if not batches or chars > room:
            batches.append([])
            room = chars_max
        batches[-1].append(step)
        room -= chars
    return batches


def _restates(event: Event) -> bool:
    return event.type is EventType.GRAPH_RESTATED and not event.erased


def _steps_of(event: Event) -> list[Step]:
    steps: list[Step] = (event.payload or {}).get("steps", [])
    return steps


# Erasure (R16)


def graphs_without(reader: Reader, events: Iterable[Event], contents: Sequence[str]) -> list[tuple[Event, list[Step]]]:
    """For each graph with one of these events: its last event, and the steps of the graph without nodes that quote."""
    last = {event.subject: event for event in events if (event.subject or "").startswith(GRAPH_PREFIX)}
    return [(event, _without(reader, subject or "", contents)) for subject, event in last.items()]


def _without(reader: Reader, subject: str, contents: Sequence[str]) -> list[Step]:
    state = GraphState()
    for event in reader.events_of_subject(subject):
        state = GraphState() if _restates(event) else state
        for step in _steps_of(event):
            state.take(step)
    for vertex in list(state.nodes.values()):
        if quotes(vertex.text, vertex.about, contents):
            state.drop(vertex.id)
    return state.all_steps()


def restate(act: Act, graphs: Sequence[tuple[Event, list[Step]]]) -> None:
    """Restate graphs whose events were erased."""
    for event, steps in graphs:
        payload = event.payload or {}
        head = {"agent": payload.get("agent"), "session": payload.get("session"), "act": "erased"}
        _append(act, event.subject, head, steps, restates=True)
