"""An agent's graph and those of its sessions: asked together; when a session ends, its best goes over (A12-A15)."""

from __future__ import annotations

import os
from contextlib import suppress
from threading import RLock

from mnemarch.errors import Hint, InvalidInput, NotFound
from mnemarch.graph.held import Ended
from mnemarch.graph.keeping import Unkept
from mnemarch.graph.node import Finalized
from mnemarch.graph.store import (
    GraphStore,
    checked_answer,
    checked_entity,
    checked_feedback,
    default_embedder,
    fit_to_keep,
)
from mnemarch.lazy import Lazy
from mnemarch.model.value import replace
from mnemarch.policy.admission import checked_count, checked_name
from mnemarch.policy.heat import OrchestratorConfig, graph_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from typing import Any, TypeVar

    from mnemarch.graph import checkpoint as checkpoints
    from mnemarch.graph import promotion
    from mnemarch.graph.engine import Engine
    from mnemarch.graph.keeping import Keeper
    from mnemarch.graph.node import GraphHit
    from mnemarch.graph.provider import EmbeddingProvider
    from mnemarch.policy.heat import GraphConfig

    T = TypeVar("T")
else:
    checkpoints = Lazy("mnemarch.graph.checkpoint")
    promotion = Lazy("mnemarch.graph.promotion")

_K_MAX = 1_000
_MICROS_PER_MS = 1_000


class MemoryOrchestrator:
    """What one agent asks and learns, session by session. Safe to share between threads; it needs no `Memory`."""

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
    ) -> None:
        self.agent_id = checked_name(agent_id, "an agent's id")
        self.config = _config(config)
        self._embedder = default_embedder() if embedder is None else embedder
        self._keeper_of = keeper_of or (lambda _: Unkept(clock))
        self._root = root
        self._keeps_files = keeps_files
        self._lock = RLock()
        self._agent = self._store(self.config.agent_graph, None)
        self._sessions: dict[str, GraphStore] = {}

    def _store(self, config: GraphConfig, session: str | None) -> GraphStore:
        return GraphStore(config, self._embedder, keeper=self._keeper_of(session))

    # Graphs

    def get_agent_store(self) -> GraphStore:
        """What the agent knows across its sessions."""
        return self._agent

    def get_session_store(self, session_id: str) -> GraphStore:
        """The graph of a session, which begins with the first call."""
        session = checked_name(session_id, "a session")
        with self._lock:
            if session not in self._agent.held.sessions():
                self._sessions.pop(session, None)
                self._agent.held.begin_session(session, self._opened(session).held)
            return self._opened(session)

    def get_active_sessions(self) -> list[str]:
        """The sessions that were begun and not ended, the oldest first."""
        found = self._agent.held.sessions()
        return sorted(found, key=lambda session: (found[session], session))

    def _opened(self, session: str) -> GraphStore:
        with self._lock:
            if session not in self._sessions:
                self._sessions[session] = self._store(self.config.session_graph, session)
            return self._sessions[session]

    def running_session(self, session_id: str) -> GraphStore:
        """The graph of a session that is under way; no other is begun."""
        session = checked_name(session_id, "a session")
        with self._lock:
            active = self._agent.held.sessions()
            if session not in active:
                self._sessions.pop(session, None)
                raise NotFound(
                    f"Agent {self.agent_id} has no session {session!r} under way.",
                    hint=Hint("begin a session") if not active else f"Under way: {', '.join(sorted(active)[:10])}.",
                )
            return self._opened(session)

    # What happens in a session

    def upsert_query(self, session_id: str, text: str) -> str:
        """Note a question in the session's graph; entities that the agent knows and it mentions come along (A30)."""
        asked = fit_to_keep(text, "The question")

        def ask() -> str:
            store = self.get_session_store(session_id)
            for entity in self._agent.held.entities_in(asked):
                store.held.bring_entity(*entity)
            return store.upsert_query(asked)

        return _again_if_ended(ask)

    def record_answer(
        self, session_id: str, query_id: str, text: str | None = None, *, unit_id: str | None = None
    ) -> str:
        """Note what a question was answered with: a text, or a unit of a memory."""
        checked_answer(text, unit_id)

        def answer() -> str:
            store, query = self._asked(session_id, query_id)
            return store.record_answer(query, text, unit_id=unit_id)

        return _again_if_ended(answer)

    def record_feedback(self, session_id: str, query_id: str, label: str, note: str | None = None) -> str:
        """Note whether what came of a question helped: up, down or retry."""
        checked_feedback(label, note)

        def judge() -> str:
            store, query = self._asked(session_id, query_id)
            return store.record_feedback(query, label, note)

        return _again_if_ended(judge)

    def _asked(self, session_id: str, query_id: str) -> tuple[GraphStore, str]:
        """A question in the session's graph; one that was found in the agent's is asked there first (A12)."""
        session = checked_name(session_id, "a session")
        is_here = session in self._agent.held.sessions() and self._opened(session).held.has(query_id)
        found = None if is_here else self._agent.held.query_text(query_id)
        if found is None:
            return self.running_session(session), query_id
        return self.get_session_store(session), self.upsert_query(session, found)

    def upsert_entity(
        self,
        user_id: str,
        canonical_id: str,
        text: str | None = None,
        aliases: Sequence[str] | None = None,
        *,
        session_id: str | None = None,
    ) -> str:
        """Name a thing that questions are about: for the agent, and so for all its sessions, or for one of them."""
        checked_entity(user_id, canonical_id, text, aliases)
        if session_id is not None:
            return self.get_session_store(session_id).upsert_entity(user_id, canonical_id, text, aliases)
        entity = self._agent.upsert_entity(user_id, canonical_id, text, aliases)
        known = self._agent.node(entity)
        for session in self.get_active_sessions():
            held = self._opened(session).held
            if held.mentions_any(known.about["names"]):
                with suppress(Ended):
                    held.bring_entity(known.about, known.text)
        return entity

    def search(self, session_id: str, text: str, k: int = 5) -> list[GraphHit]:
        """The questions most like this one, in the session and in what the agent knows; the session's a little first.

        A question that is in both is told once (A13). Nothing is changed.
        """
        checked_count(k, "k", _K_MAX)
        session = checked_name(session_id, "a session")
        bias = self.config.search_bias_session_first
        hits: list[GraphHit] = []
        if session in self._agent.held.sessions():
            found = self._opened(session).search_similar_queries(text, k)
            hits = [replace(hit, score=hit.score + bias, from_="session") for hit in found]
        # As many more as the session may turn out to have too.
        hits += [replace(hit, from_="agent") for hit in self._agent.search_similar_queries(text, 2 * k)]
        best: dict[str, GraphHit] = {}
        for hit in hits:
            known = best.get(hit.canonical_key)
            if known is None or hit.score > known.score:
                best[hit.canonical_key] = hit
        return sorted(best.values(), key=lambda hit: (-hit.score, hit.from_ != "session", hit.id))[:k]

    def nominated(self, session_id: str | None, text: str) -> dict[str, float]:
        """Units that answered questions like this one and were not found wanting, and how alike the questions are.

        Heat only nominates: whether a unit may be told, and how far it is to be believed, is decided elsewhere (R2).
        """
        stores = [self._agent]
        if session_id is not None and session_id in self._agent.held.sessions():
            stores.append(self._opened(session_id))
        found: dict[str, float] = {}
        for store in stores:
            for unit_id, similarity in store.nominated(text).items():
                found[unit_id] = max(similarity, found.get(unit_id, 0.0))
        return found

    # The end of a session

    def finalize_session(
        self,
        session_id: str,
        *,
        promote: bool = True,
        checkpoint: bool | None = None,
        checkpoint_name: str | None = None,
    ) -> Finalized:
        """End a session: write a checkpoint of it, and take what was hot over to the agent's graph.

        If the checkpoint can't be written the session goes on, and nothing is lost. If nothing is said, there is one,
        except in a memory that has nothing on disk.
        """
        is_written = self._keeps_files or checkpoint_name is not None if checkpoint is None else checkpoint
        if checkpoint_name is not None:
            checkpoints.checked_name(checkpoint_name)
        with self._lock:
            store = self.running_session(session_id)
            path: str | None = None

            def work(session: Engine, agent: Engine, now: int) -> promotion.Outcome:
                nonlocal path
                # In the same act, so that nothing is asked between the two.
                path = self._checkpointed(session, session_id, checkpoint_name, now) if is_written else None
                if not promote:
                    return promotion.Outcome()
                half_life = self.config.session_graph.half_life_min
                return promotion.Promotion(session, agent, self.config.promotion, now).outcome(half_life)

            outcome = self._agent.held.end_session(session_id, store.held, work)
            self._sessions.pop(session_id, None)
        return Finalized(
            session_id=session_id,
            promoted=outcome.promoted,
            lowered=outcome.lowered,
            left_out=outcome.left_out,
            checkpoint=path,
        )

    def _checkpointed(self, session: Engine, session_id: str, name: str | None, now: int) -> str:
        rules = self.config.checkpoint
        record = checkpoints.checkpoint_of(session, self._embedder, self.config.session_graph, rules.top_k, now)
        named = {"agentId": self.agent_id, "sessionId": session_id} | record
        return checkpoints.write(named, rules, checkpoint_folder(self.config, self._root), name)

    def restore_session(self, session_id: str, checkpoint: str | os.PathLike[str]) -> GraphStore:
        """Begin a session with what a checkpoint of one holds."""
        session = checked_name(session_id, "a session")
        with self._lock:
            if session in self._agent.held.sessions():
                raise InvalidInput(
                    f"Session {session!r} is under way.", hint="Finalize it first, or restore under another name."
                )
            kept = GraphStore.load_from_file(checkpoint, GraphStore(self.config.session_graph, self._embedder))
            store = self.get_session_store(session)
            store.from_snapshot(kept.to_snapshot())
            return store

    def gc_sessions(self, older_than_ms: float, *, promote: bool = False) -> list[str]:
        """End the sessions in which nothing happened for so long; gives their ids.

        What they learnt is dropped, unless it is to be promoted first.
        """
        given: Any = older_than_ms
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given < float("inf"):
            raise InvalidInput(
                f"older_than_ms must be a number of milliseconds, not {older_than_ms!r}.", hint="3_600_000 is an hour."
            )
        ended: list[str] = []
        with self._lock:
            for session, began in self._agent.held.sessions().items():
                last = self._opened(session).held.last_access() or began
                if self._agent.held.keeper.now() - last > given * _MICROS_PER_MS:
                    with suppress(NotFound):  # Another process ended it meanwhile.
                        self.finalize_session(session, promote=promote, checkpoint=False)
                        ended.append(session)
        return ended


def _again_if_ended(act: Callable[[], T]) -> T:
    """Do it; if somebody ended the session at this very moment, do it in the next one."""
    while True:
        try:
            return act()
        except Ended:
            continue


def checkpoint_folder(config: OrchestratorConfig | None, root: str | None) -> str:
    """Where checkpoints go: `out_dir`, seen from the memory's folder or from the current one."""
    return os.path.abspath(os.path.join(root or os.curdir, (config or OrchestratorConfig()).checkpoint.out_dir))


def _config(given: Any) -> OrchestratorConfig:
    if given is None:
        return OrchestratorConfig()
    return given if isinstance(given, OrchestratorConfig) else graph_settings(given)
