"""One graph of questions, answers, feedback and entities: bounded, searchable, learning from what helped (A2-A9)."""

from __future__ import annotations

from copy import deepcopy
from threading import RLock

from mnemon.errors import InvalidInput, NotFound
from mnemon.graph.engine import Engine
from mnemon.graph.keeping import Unkept
from mnemon.graph.node import Edge, EdgeType, GraphHit, GraphStats, Node, NodeType, Weights, parsed
from mnemon.graph.rows import as_unit_vector
from mnemon.graph.state import GraphState
from mnemon.lazy import Lazy
from mnemon.model.instant import instant
from mnemon.model.value import replace
from mnemon.policy.admission import checked_count, checked_list, checked_name, checked_text
from mnemon.policy.heat import FEEDBACK, GraphConfig
from mnemon.text.mentions import Mentions
from mnemon.text.secrets import redacted

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from typing import Any, TypeVar

    from mnemon.graph import files, snapshot
    from mnemon.graph.keeping import Keeper
    from mnemon.graph.provider import EmbeddingProvider
    from mnemon.graph.state import Arc, Step, Vertex

    T = TypeVar("T")
else:
    # A recall reads a graph and has no use for its files.
    files = Lazy("mnemon.graph.files")
    snapshot = Lazy("mnemon.graph.snapshot")

_TEXT_BYTES_MAX = 65_536
_K_MAX = 10_000


class Ended(NotFound):
    """The session whose graph this is has ended."""


class GraphStore:
    """One graph. Safe to share between threads; it needs no `Memory`."""

    def __init__(
        self,
        config: GraphConfig | Mapping[str, Any] | None = None,
        embedder: EmbeddingProvider | None = None,
        *,
        clock: Callable[[], datetime] | None = None,
        keeper: Keeper | None = None,
    ) -> None:
        self.config = _config(config)
        self.embedder: EmbeddingProvider = default_embedder() if embedder is None else embedder
        if not callable(getattr(self.embedder, "embed", None)):
            raise InvalidInput(f"{embedder!r} can't embed.", hint="Give an object with embed(text), or nothing.")
        self.keeper: Keeper = keeper or Unkept(clock)
        self._files: files.Files | None = None
        self._lock = RLock()
        # When the act that is under way happens.
        self._moment: int | None = None
        self._revision = 0
        self._engine = Engine(self.config, self._embed, self._maker, GraphState())

    def _embed(self, text: str) -> Mapping[Any, float]:
        return as_unit_vector(self.embedder.embed(text))

    def _maker(self) -> object:
        return getattr(self.embedder, "id", None)

    # Writing

    def upsert_query(self, text: str) -> str:
        """The node of a question: a new one, or that of the same question asked before, in these words or in others.

        Questions in other words are one only if no number, negation, quotation or identifier differs (R6).
        """
        asked = fit_to_keep(text, "The question")
        return self._change("asked", lambda now: self._engine.ask(asked, now))

    def record_answer(self, query_id: str, text: str | None = None, *, unit_id: str | None = None) -> str:
        """Say what a question was answered with: a text, or a unit of a memory; gives the answer's node."""
        answer = checked_answer(text, unit_id)
        return self._change("answered", lambda now: self._engine.answer(query_id, *answer, now))

    def record_feedback(self, query_id: str, label: str, note: str | None = None) -> str:
        """Say whether what came of a question helped: up, down or retry; questions like it learn from it (R15)."""
        feedback = checked_feedback(label, note)
        return self._change("judged", lambda now: self._engine.judge(query_id, *feedback, now))

    def adjust_weights(self, id: str, *, feedback_delta: float = 0.0, repeat_delta: float = 0.0) -> None:
        """Add to a node's weights, as promotion does for what a session brings along."""
        feedback, repeat = _finite(feedback_delta, "feedback_delta"), _finite(repeat_delta, "repeat_delta")
        self._change("adjusted", lambda _: self._state.weigh(self._engine.vertex(id).id, repeat, feedback, None))

    def link(self, from_id: str, to_id: str, type: EdgeType | str, weight: float = 1.0) -> str:
        """Add an edge, or weight to the one that is there; gives its id, `from::type::to` (A6)."""
        kind = parsed(EdgeType, type, "type of edge")
        if _finite(weight, "weight") <= 0:
            raise InvalidInput(f"An edge's weight must be above 0, not {weight!r}.", hint="Correct it.")
        return self._change("linked", lambda now: self._engine.link(from_id, kind, to_id, float(weight), now))

    def upsert_entity(
        self, user_id: str, canonical_id: str, text: str | None = None, aliases: Sequence[str] = ()
    ) -> str:
        """Name a thing that questions are about; those that mention it, before or after, are linked to it (A30).

        It is one thing for all users: who named it is remembered, and its names add up.
        """
        entity = checked_entity(user_id, canonical_id, text, aliases)
        return self._change("named", lambda now: self._engine.name(*entity, now))

    def pin(self, id: str, pinned: bool = True) -> None:
        """Keep a node whatever its rank, or no longer."""
        self._change("pinned", lambda _: self._state.pin(self._engine.vertex(id).id, bool(pinned)))

    def decay(self) -> None:
        """Really lower every weight for the time since the last decay; an edge that is worn through goes (A24)."""
        self._change("worn", self._engine.wear)

    # Asking

    def search_similar_queries(self, text: str, k: int = 5) -> list[GraphHit]:
        """The questions most like this one, by `0.7 * similarity + 0.3 * rank`, best first. Nothing is changed."""
        asked = checked_text(text, "The question", _TEXT_BYTES_MAX)
        checked_count(k, "k", _K_MAX)
        with self._reading() as now:
            return [_hit(score, sim, vertex) for score, sim, vertex in self._engine.best(asked, k, now)]

    def node(self, id: str) -> Node:
        """A node as it stands now; a question with its vector, if that was needed so far."""
        with self._reading() as now:
            vertex = self._engine.vertex(id)
            return replace(self._shown(vertex, now), embedding=self._engine.vector_if_made(vertex))

    def nodes(self, type: NodeType | str | None = None) -> list[Node]:
        """All nodes, or those of a type, the hottest first."""
        kind = None if type is None else parsed(NodeType, type, "type of node")
        with self._reading() as now:
            found = [self._shown(one, now) for one in self._state.nodes.values() if kind in (None, one.type)]
        return sorted(found, key=lambda node: (-node.rank, node.id))

    def edges(self, node_id: str | None = None) -> list[Edge]:
        """All edges, or those of a node, the heaviest first."""
        with self._reading():
            arcs = self._state.arcs if node_id is None else self._engine.vertex(node_id).edges
            found = [_shown_arc(arc) for arc in arcs.values()]
        return sorted(found, key=lambda edge: (-edge.weight, edge.id))

    def answers(self, query_id: str) -> list[Node]:
        """What a question was answered with, the most frequent first."""
        with self._reading() as now:
            query = self._engine.vertex(query_id, NodeType.QUERY)
            near = sorted(self._state.neighbours(query.id, EdgeType.RESPONDED_WITH), key=lambda one: (-one[1], one[0]))
            return [self._shown(self._state.nodes[id], now) for id, _ in near]

    def entities_in(self, text: str) -> list[str]:
        """The nodes of the entities that a text mentions, in its order."""
        asked = fit_to_keep(text, "The text")
        with self._reading():
            return self._engine.named_in(asked)

    def mentioned_in(self, text: str) -> list[Node]:
        """The entities that a text mentions, as they stand now."""
        with self._reading() as now:
            return [self._shown(self._state.nodes[id], now) for id in self._engine.named_in(text)]

    def nominated(self, text: str) -> dict[str, float]:
        """Units that answered questions like this one and were not found wanting, and how alike the questions are."""
        asked = fit_to_keep(text, "The question")
        with self._reading() as now:
            return self._engine.nominated(asked, now)

    def stats(self) -> GraphStats:
        with self._reading():
            return GraphStats(nodes=len(self._state.nodes), edges=len(self._state.arcs))

    # Files (A8, A11)

    def to_snapshot(self) -> dict[str, Any]:
        """The whole graph with its vectors and the state of their embedder, in JSON types."""
        return self.revised_snapshot()[1]

    def from_snapshot(self, record: Mapping[str, Any]) -> None:
        """Become the graph of a snapshot; vectors of another embedder are made anew from their texts (R18)."""
        state = snapshot.restored(record, snapshot.maker_of(self.embedder))
        self._change("restored", lambda now: self._replace(state, now))

    def save_to_file(self, file: str | os.PathLike[str], *, only_if_dirty: bool = False) -> bool:
        """Write the graph to a file, whole or not at all; gives whether it was written."""
        return self.files.save(self, file, only_if_dirty=only_if_dirty)

    @classmethod
    def load_from_file(cls, file: str | os.PathLike[str], store: GraphStore | None = None) -> GraphStore:
        """The graph of a file, a snapshot or a checkpoint, in `store` or in a new one with the file's settings."""
        return files.load(cls, file, store)

    @property
    def files(self) -> files.Files:
        """What is known of the files this graph was read from or written to."""
        if self._files is None:
            self._files = files.Files()
        return self._files

    def _replace(self, state: GraphState, now: int) -> None:
        before = self._engine
        self._engine = Engine(self.config, self._embed, self._maker, GraphState())
        self._state.clear()
        for step in state.retold():
            self._state.take(step)
        for vertex in state.nodes.values():
            self._state.nodes[vertex.id].vector = vertex.vector
        for session, at in before.state.sessions.items():
            self._state.begin(session, at)
        try:
            self._engine.shrink(now)
        except InvalidInput:
            self._engine = before
            raise

    # Sessions, of which an agent's graph knows which are under way

    def sessions(self) -> dict[str, int]:
        """The sessions that were begun and not ended, and when."""
        with self._reading():
            return dict(self._state.sessions)

    def begin_session(self, session: str, store: GraphStore) -> None:
        """Begin a session, or begin it again."""

        def run(now: int) -> None:
            self._state.begin(session, now)
            if store._state.closed:
                store._state.close(False)

        with self._lock, store._lock:
            _together((self, store), "began", run)

    def end_session(self, session: str, store: GraphStore, work: Callable[[Engine, Engine, int], T]) -> T:
        """Do `work` with the session's graph and this one, and end the session, all in one act."""

        def run(now: int) -> T:
            done = work(store._engine, self._engine, now)
            store._state.clear()
            store._state.close(True)
            self._state.end(session)
            return done

        with self._lock, store._lock:
            return _together((self, store), "ended", run)

    # For whoever orchestrates

    def now(self) -> int:
        """The time by this graph's clock, in microseconds since 1970."""
        return self.keeper.now()

    def last_access(self) -> int | None:
        """When anything here was last touched; None if there is nothing."""
        with self._reading():
            return max((vertex.last for vertex in self._state.nodes.values()), default=None)

    def has(self, id: str) -> bool:
        given: Any = id
        with self._reading():
            return isinstance(given, str) and id in self._state.nodes

    def query_text(self, id: str) -> str | None:
        """What a question says; None if there is none of this id."""
        given: Any = id
        with self._reading():
            found = self._state.nodes.get(id) if isinstance(given, str) else None
            return found.text if found is not None and found.type is NodeType.QUERY else None

    def known_query(self, text: str) -> str | None:
        """The node that a question would be taken for, without asking it."""
        with self._reading():
            return self._engine.known(text)

    def are_linked(self, one: str, type: EdgeType, other: str) -> bool:
        """Whether an edge of this type leads from one node to the other, or back."""
        with self._reading():
            return self._engine.are_linked(one, type, other)

    def bring_entity(self, entity: Node) -> str:
        """Have an entity of another graph here too, with all its names and all who named it."""
        return self._change("named", lambda now: self._engine.bring(entity.about, entity.text, now))

    def mentions_any(self, names: Sequence[str]) -> bool:
        """Whether a question here mentions something of these names."""
        wanted = Mentions()
        wanted.add("", names)
        with self._reading():
            return any(wanted.found_in(query.text or "") for query in self._state.of_type(NodeType.QUERY))

    # For whoever keeps the graph

    @property
    def revision(self) -> int:
        """Grows with every change."""
        return self._revision

    @property
    def size(self) -> int:
        """The number of nodes as last known."""
        return len(self._state.nodes)

    @property
    def has_steps(self) -> bool:
        """Whether the act under way changed anything so far."""
        return bool(self._state.steps)

    def revised_snapshot(self) -> tuple[int, dict[str, Any]]:
        """A snapshot and the revision it was taken at."""
        with self._reading() as now:
            record = snapshot.record_of(self._state, self._engine.vector_of, self.embedder, self.config, now)
            return self._revision, record

    def take_steps(self) -> list[Step]:
        """The steps since the last call."""
        steps, self._state.steps = self._state.steps, []
        self._revision += bool(steps)
        return steps

    def take(self, steps: Sequence[Step]) -> None:
        """Take steps that were recorded before."""
        for step in steps:
            self._state.take(step)
        self.take_steps()

    def retold(self) -> list[Step]:
        """The steps that make this graph from nothing."""
        return self._state.retold()

    def forget(self) -> None:
        """Be empty, as before the first step."""
        self._engine = Engine(self.config, self._embed, self._maker, GraphState())
        self._revision += 1

    # Small things

    @property
    def _state(self) -> GraphState:
        return self._engine.state

    def _change(self, act: str, work: Callable[[int], T]) -> T:
        def timely(now: int) -> T:
            if self._state.closed:
                raise Ended("The session of this graph has ended.", hint="Begin another with upsert_query.")
            self._engine.wear_if_due(now)
            return work(now)

        with self._lock:
            return work(self._moment) if self._moment is not None else _together((self,), act, timely)

    def _reading(self) -> _Reading:
        return _Reading(self)

    def _shown(self, vertex: Vertex, now: int) -> Node:
        return Node(
            id=vertex.id,
            type=vertex.type,
            text=vertex.text,
            canonical_key=vertex.key,
            created_at=instant(vertex.created),
            last_access=instant(vertex.last),
            weights=Weights(repeat=vertex.repeat, feedback=vertex.feedback),
            degree=vertex.degree,
            rank=vertex.rank(now, self.config.half_life_min),
            pinned=vertex.pinned,
            about=deepcopy(vertex.about),
        )


class _Reading:
    """The graph held still, up to date with what others made of it; gives the time."""

    __slots__ = ("_store",)

    def __init__(self, store: GraphStore) -> None:
        self._store = store

    def __enter__(self) -> int:
        store = self._store
        store._lock.acquire()
        try:
            if store._moment is not None:
                return store._moment
            store.keeper.catch_up(store)
            return store.keeper.now()
        except BaseException:
            store._lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        self._store._lock.release()


def _together(stores: Sequence[GraphStore], act: str, work: Callable[[int], T]) -> T:
    """Run `work` as one act on several graphs, which the caller holds."""

    def run(now: int) -> T:
        for store in stores:
            store._moment = now
        try:
            return work(now)
        finally:
            for store in stores:
                store._moment = None

    return stores[0].keeper.change(stores, act, run)


def fit_to_keep(text: str, what: str) -> str:
    """A text that may be kept: it says something, and no secret (a graph is written to files)."""
    return redacted(checked_text(text, what, _TEXT_BYTES_MAX))[0]


def checked_answer(text: str | None, unit_id: str | None) -> tuple[str | None, str | None]:
    """An answer that may be kept: a text or a unit."""
    if (text is None) is (unit_id is None):
        raise InvalidInput("An answer is a text or a unit.", hint="Give text=... or unit_id=..., one of the two.")
    told = None if text is None else fit_to_keep(text, "The answer")
    return told, None if unit_id is None else checked_name(unit_id, "a unit's id")


def checked_feedback(label: Any, note: str | None) -> tuple[str, str | None]:
    """A label that is known, and a note that may be kept."""
    if not isinstance(label, str) or label not in FEEDBACK:
        raise InvalidInput(f"{label!r} is no feedback.", hint=f"Use one of: {', '.join(FEEDBACK)}.")
    return label, None if note is None else fit_to_keep(note, "The note")


def checked_entity(
    user_id: str, canonical_id: str, text: str | None, aliases: Sequence[str]
) -> tuple[list[str], str, str | None, list[str]]:
    """Who names it, its id, its text and its other names, each fit to be kept."""
    user, thing = checked_name(user_id, "a user's id"), checked_name(canonical_id, "an entity's id")
    told = None if text is None else fit_to_keep(text, "The entity's text")
    return [user], thing, told, [fit_to_keep(name, "An alias") for name in checked_list(aliases, "aliases")]


def _hit(score: float, sim: float, vertex: Vertex) -> GraphHit:
    return GraphHit(id=vertex.id, score=score, sim=sim, text=vertex.text or "", canonical_key=vertex.key or "")


def _shown_arc(arc: Arc) -> Edge:
    return Edge(
        id=arc.id,
        from_=arc.from_,
        to=arc.to,
        type=arc.type,
        weight=arc.weight,
        created_at=instant(arc.created),
        last_access=instant(arc.last),
    )


def _finite(number: Any, what: str) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) < float("inf"):
        raise InvalidInput(f"{what} must be a finite number, not {number!r}.", hint="Correct it.")
    return float(number)


def _config(given: Any) -> GraphConfig:
    if given is None:
        return GraphConfig()
    if isinstance(given, GraphConfig):
        return given
    try:
        return GraphConfig(**given)
    except TypeError as error:
        raise InvalidInput(
            f"These are no settings of a graph: {error}.", hint="Use GraphConfig(max_nodes=1000, ...)."
        ) from None


def default_embedder() -> EmbeddingProvider:
    """What questions are compared by if nothing else is said."""
    from mnemon.embedding.question import QuestionEmbedder

    return QuestionEmbedder()
