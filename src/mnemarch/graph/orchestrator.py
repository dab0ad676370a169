"""An agent's graph and its sessions' graphs. They are searched together, and a session's hot questions are promoted."""

from __future__ import annotations

import os
from contextlib import suppress
from threading import RLock

from mnemarch.errors import InvalidInput, NotFound
from mnemarch.forks import Forkable, is_torn, watch
from mnemarch.graph import EdgeType, EmbeddingProvider, Finalized, GraphHit, NodeType, Promoted
from mnemarch.graph.core import Ended, Full, Keeper, checked_answer, checked_entity, checked_feedback, finite, storable
from mnemarch.graph.store import GraphStore
from mnemarch.lazy import Lazy
from mnemarch.model.value import replace
from mnemarch.policy.admission import checked_count, checked_name
from mnemarch.policy.heat import OrchestratorConfig, PromotionConfig, graph_settings
from mnemarch.text.mentions import Mentions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from typing import Any, TypeVar

    from mnemarch.graph import files
    from mnemarch.graph.state import Arc, Vertex
    from mnemarch.model.caller import Scope

    T = TypeVar("T")
else:
    files = Lazy("mnemarch.graph.files")

_K_MAX = 1_000
_MICROS_PER_MS = 1_000


class MemoryOrchestrator(Forkable):
    """One agent's graph and its sessions' graphs. Thread-safe; needs no `Memory`."""

    def __init__(
        self,
        agent_id: str,
        config: OrchestratorConfig | Mapping[str, Any] | None = None,
        *,
        embedder: EmbeddingProvider | None = None,
        clock: Callable[[], datetime] | None = None,
        keeper_of: Callable[[str | None], Keeper] | None = None,
        root: str | None = None,
        keeps_files: bool = True,
        scope: Scope | None = None,
    ) -> None:
        self.agent_id = checked_name(agent_id, "an agent's id")
        config = {} if config is None else config
        self.config = config if isinstance(config, OrchestratorConfig) else graph_settings(config)
        self._keeper_of = keeper_of or (lambda _: Keeper(clock))
        self._root = root
        self._keeps_files = keeps_files
        self._scope = scope
        self._lock = RLock()
        self._agent = GraphStore(self.config.agent_graph, embedder, keeper=self._keeper_of(None))
        self._sessions: dict[str, GraphStore] = {}
        watch(self)

    def _resume(self, *, in_child: bool, rested: bool) -> None:  # noqa: ARG002
        if in_child:
            is_torn(self._lock)

    # Graphs

    def get_agent_store(self) -> GraphStore:
        """The agent's graph, which outlives its sessions."""
        return self._agent

    def get_session_store(self, session_id: str) -> GraphStore:
        """The graph of a session. The first call begins the session."""
        session = checked_name(session_id, "a session")
        with self._lock:
            if not self._is_active(session):
                self._sessions.pop(session, None)
                store = self._opened(session)

                def begin(now: int) -> None:
                    self._agent.state.begin(session, now)
                    if store.state.closed:
                        store.state.close(False)

                self._agent.change_with(store, "began", begin)
            return self._opened(session)

    def get_active_sessions(self) -> list[str]:
        """The open sessions, the oldest first."""
        active = self._agent.sessions()
        return sorted(active, key=lambda session: (active[session], session))

    def running_session(self, session_id: str) -> GraphStore:
        """The graph of an open session. Raises if the session isn't open."""
        session = checked_name(session_id, "a session")
        with self._lock:
            active = self._agent.sessions()
            if session not in active:
                self._sessions.pop(session, None)
                hint = f"Under way: {', '.join(sorted(active)[:10])}." if active else "Start one with upsert_query."
                raise NotFound(f"Agent {self.agent_id} has no open session {session!r}.", hint=hint)
            return self._opened(session)

    def _is_active(self, session: str | None) -> bool:
        return session in self._agent.sessions()

    def _opened(self, session: str) -> GraphStore:
        with self._lock:
            if session not in self._sessions:
                keeper, config = self._keeper_of(session), self.config.session_graph
                self._sessions[session] = GraphStore(config, self._agent.embedder, keeper=keeper)
            return self._sessions[session]

    # Events of a session

    def upsert_query(self, session_id: str, text: str) -> str:
        """Record a question in the session's graph, linked to the agent's known entities that it mentions (A30)."""
        question = storable(text, "The question")

        def ask() -> str:
            store = self.get_session_store(session_id)
            with self._agent.reading():
                mentioned = [self._agent.state.nodes[id] for id in self._agent.mentions.found_in(question)]
                entities = [(dict(entity.about), entity.text) for entity in mentioned]
            for about, name in entities:
                store.bring(about, name)
            return store.upsert_query(question)

        return _again_if_ended(ask)

    def record_answer(
        self, session_id: str, query_id: str, text: str | None = None, *, unit_id: str | None = None
    ) -> str:
        """Record the answer to a question: a text, or a unit of a memory."""
        checked_answer(text, unit_id)
        return self._in_session(session_id, query_id, lambda one, id: one.record_answer(id, text, unit_id=unit_id))

    def record_feedback(self, session_id: str, query_id: str, label: str, note: str | None = None) -> str:
        """Record whether the answer helped: up, down or retry."""
        checked_feedback(label, note)
        return self._in_session(session_id, query_id, lambda one, id: one.record_feedback(id, label, note))

    def _in_session(self, session_id: str, query_id: str, act: Callable[[GraphStore, str], T]) -> T:
        """Act on a question in the session's graph. A question only in the agent's graph is asked there first (A12)."""
        session = checked_name(session_id, "a session")

        def run() -> T:
            is_here = self._is_active(session) and self._opened(session).has(query_id)
            if not is_here and self._agent.has(query_id):
                node = self._agent.node(query_id)
                if node.type is NodeType.QUERY:
                    asked = self.upsert_query(session, node.text or "")
                    return act(self.get_session_store(session), asked)
            return act(self.running_session(session), query_id)

        return _again_if_ended(run)

    def upsert_entity(
        self,
        user_id: str,
        canonical_id: str,
        text: str | None = None,
        aliases: Sequence[str] | None = None,
        *,
        session_id: str | None = None,
    ) -> str:
        """Name an entity that questions are about, for the agent and all its sessions, or for one session."""
        checked_entity(user_id, canonical_id, text, aliases)
        if session_id is not None:
            return self.get_session_store(session_id).upsert_entity(user_id, canonical_id, text, aliases)
        entity = self._agent.upsert_entity(user_id, canonical_id, text, aliases)
        node = self._agent.node(entity)
        names = Mentions()
        names.add(entity, node.about["names"])
        for store in map(self._opened, self.get_active_sessions()):
            with store.reading():
                queries = store.state.of_type(NodeType.QUERY)
                is_mentioned = any(names.found_in(query.text or "") for query in queries)
            if is_mentioned:
                with suppress(Ended):
                    store.bring(node.about, node.text)
        return entity

    def search(self, session_id: str, text: str, k: int = 5) -> list[GraphHit]:
        """The most similar questions of the session's and the agent's graph, without repeats (A13).

        Questions of the session rank slightly higher.
        """
        checked_count(k, "k", _K_MAX)
        session = checked_name(session_id, "a session")
        bias = self.config.search_bias_session_first
        hits: list[GraphHit] = []
        if self._is_active(session):
            similar = self._opened(session).search_similar_queries(text, k)
            hits = [replace(hit, score=hit.score + bias, from_="session") for hit in similar]
        # Twice as many, since the session may have the same ones.
        hits += [replace(hit, from_="agent") for hit in self._agent.search_similar_queries(text, 2 * k)]
        best: dict[str, GraphHit] = {}
        for hit in hits:
            existing = best.get(hit.canonical_key)
            if existing is None or hit.score > existing.score:
                best[hit.canonical_key] = hit
        return sorted(best.values(), key=lambda hit: (-hit.score, hit.from_ != "session", hit.id))[:k]

    def nominated(self, session_id: str | None, text: str) -> dict[str, float]:
        """Units that answered similar questions without bad feedback, with the similarity of the questions.

        Heat only nominates. Recall decides whether a unit is shown and how far it is trusted (R2).
        """
        stores = [self._agent]
        if session_id is not None and self._is_active(session_id):
            stores.append(self._opened(session_id))
        nominated: dict[str, float] = {}
        for store in stores:
            for unit_id, similarity in store.nominated(text).items():
                nominated[unit_id] = max(similarity, nominated.get(unit_id, 0.0))
        return nominated

    # The end of a session

    def finalize_session(
        self,
        session_id: str,
        *,
        promote: bool = True,
        checkpoint: bool | None = None,
        checkpoint_name: str | None = None,
    ) -> Finalized:
        """End a session: write its checkpoint, and promote its hot questions to the agent's graph.

        If the checkpoint can't be written, the session stays open and nothing is lost. A checkpoint is the default,
        except in a memory without files.
        """
        if checkpoint is None:
            checkpoint = self._keeps_files or checkpoint_name is not None
        if checkpoint_name is not None:
            files.checked_file_name(checkpoint_name)

        def end(now: int) -> Finalized:
            outcome = Finalized(session_id=session_id)
            # In the same act, so that no question comes in between.
            if checkpoint:
                path = self._write_checkpoint(store, session_id, checkpoint_name, now)
                outcome = replace(outcome, checkpoint=path)
            if promote:
                outcome = Promotion(store, self._agent, self.config.promotion, now).outcome(outcome)
            store.state.clear()
            store.state.close(True)
            self._agent.state.end(session_id)
            return outcome

        with self._lock:
            store = self.running_session(session_id)
            finalized = self._agent.change_with(store, "ended", end)
            self._sessions.pop(session_id, None)
        return finalized

    def _write_checkpoint(self, session: GraphStore, session_id: str, name: str | None, now: int) -> str:
        rules, folder = self.config.checkpoint, checkpoint_folder(self.config, self._root)
        record = files.checkpoint_of(session, rules.top_k, now)
        where = {} if self._scope is None else {"scope": self._scope.segments}
        record = {"agentId": self.agent_id, "sessionId": session_id} | where | record
        return files.write_checkpoint(record, folder, name, pretty=rules.pretty)

    def restore_session(self, session_id: str, checkpoint: str | os.PathLike[str]) -> GraphStore:
        """Begin a session from a checkpoint."""
        session = checked_name(session_id, "a session")
        with self._lock:
            if self._is_active(session):
                other = "Finalize it first, or restore under another name."
                raise InvalidInput(f"Session {session!r} is open.", hint=other)
            loaded = GraphStore.load_from_file(checkpoint, GraphStore(self.config.session_graph, self._agent.embedder))
            store = self.get_session_store(session)
            store.from_snapshot(loaded.to_snapshot())
            return store

    def gc_sessions(self, older_than_ms: float, *, promote: bool = False) -> list[str]:
        """End the sessions that were idle this long, with or without promotion. Returns their ids."""
        age_ms = finite(older_than_ms, "older_than_ms", least=0)
        ended: list[str] = []
        with self._lock:
            for session, began in self._agent.sessions().items():
                graph = self._opened(session)
                with graph.reading() as now:
                    last = max((vertex.last for vertex in graph.state.nodes.values()), default=began)
                if now - last > age_ms * _MICROS_PER_MS:
                    with suppress(NotFound):  # Another process ended it meanwhile.
                        self.finalize_session(session, promote=promote, checkpoint=False)
                        ended.append(session)
        return ended


def _again_if_ended(act: Callable[[], T]) -> T:
    """Run an act. If the session ends meanwhile, run it again in a new session."""
    while True:
        try:
            return act()
        except Ended:
            continue


def checkpoint_folder(config: OrchestratorConfig | None, root: str | None) -> str:
    """The folder of checkpoints: `out_dir`, relative to the memory's folder or to the current one.

    A symbolic link from a repository can't move them out of the repository.
    """
    base = os.path.realpath(root or os.curdir)
    out_dir = os.fspath((config or OrchestratorConfig()).checkpoint.out_dir)
    folder = os.path.abspath(os.path.join(root or os.curdir, out_dir))
    is_within = not os.path.isabs(out_dir) and os.pardir not in out_dir.split("/")
    if is_within and os.path.commonpath([base, os.path.realpath(folder)]) != base:
        raise InvalidInput(f"{folder} leads out of {base} by a link.", hint="Remove the link.")
    return folder


class Promotion:
    """The promotion of a session's hot questions into the agent's graph, at one time (A14, A26)."""

    def __init__(self, session: GraphStore, agent: GraphStore, rules: PromotionConfig, now: int) -> None:
        self._session = session
        self._agent = agent
        self._rules = rules
        self._now = now
        # The agent's node of each promoted question.
        self._promoted: dict[str, str] = {}
        self._left_out: list[str] = []

    def outcome(self, ended: Finalized) -> Finalized:
        """Promote the hot questions. A question that the agent already has gains weight.

        A question with bad feedback is not promoted. If the agent has it, it loses weight there.
        """
        rules, queries = self._rules, list(self._session.state.of_type(NodeType.QUERY))
        ranks = {query.id: query.rank(self._now, self._session.config.half_life_min) for query in queries}
        hot = [one for one in queries if ranks[one.id] >= rules.min_rank and one.degree >= rules.min_degree]
        hot = sorted((one for one in hot if one.feedback >= 0), key=lambda one: (-ranks[one.id], one.id))
        promoted = [one for query in hot[: rules.max_promotions] if (one := self._promote(query)) is not None]
        for query in hot:
            if query.id in self._promoted:
                self._carry_edges(query)
        lowered = [place for query in queries if (place := self._lowered(query)) is not None]
        return replace(ended, promoted=tuple(promoted), lowered=tuple(lowered), left_out=tuple(self._left_out))

    def _promote(self, query: Vertex) -> Promoted | None:
        text = query.text or ""
        existing = self._agent.node_for(text)
        try:
            node = self._agent.ask(text, self._now)
        except Full:
            self._left_out.append(query.id)
            return None
        if self._rules.carry_weights:
            self._agent.state.weigh(node, max(0.0, query.repeat - 1.0), query.feedback, None)
        self._promoted[query.id] = node
        self._agent.keep.add(node)  # Keeps promoted questions from evicting each other.
        return Promoted(text=text, session_node=query.id, agent_node=node, merged=existing == node)

    def _carry_edges(self, query: Vertex) -> None:
        """Copy a question's answers, the entities it mentions, and its similarity to other promoted questions."""
        for arc in sorted(query.edges.values(), key=lambda arc: (-arc.weight, arc.id)):
            if arc.from_ == query.id:
                try:
                    self._carry(arc)
                except Full:
                    self._left_out.append(arc.to)

    def _carry(self, arc: Arc) -> None:
        agent, node, other = self._agent, self._promoted[arc.from_], self._session.state.nodes[arc.to]
        if arc.type is EdgeType.RESPONDED_WITH:
            answer = agent.answer(node, other.text, other.about.get("unit"), self._now)
            if arc.weight > 1.0:
                agent.join(node, arc.type, answer, arc.weight - 1.0, self._now)
            return
        if arc.type is EdgeType.REFERS_TO_ENTITY:
            target = agent.bring(other.about, other.text)
        else:  # Feedback nodes are not promoted, only their weight.
            target = self._promoted.get(arc.to, node)
        if target != node and not agent.state.are_linked(node, arc.type, target):
            agent.join(node, arc.type, target, arc.weight, self._now)

    def _lowered(self, query: Vertex) -> str | None:
        is_bad = query.feedback < 0 and self._rules.carry_weights
        node = self._agent.node_for(query.text or "") if is_bad else None
        if node is not None:
            self._agent.state.weigh(node, 0.0, query.feedback, None)
        return node
