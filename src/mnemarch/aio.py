"""The same verbs for async callers: each is a coroutine that runs the verb in a worker thread."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from mnemarch import wiring

P = ParamSpec("P")
T = TypeVar("T")

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Coroutine, Generator
    from datetime import datetime

    from mnemarch.config import Config
    from mnemarch.decisions import Decisions
    from mnemarch.graph import MemoryOrchestrator
    from mnemarch.learning import CodeRules, CoreMemory, EpisodicMemoryManager, WorkingMemoryManager
    from mnemarch.learning.knowledge import SemanticMemoryManager
    from mnemarch.loops import CircularFixDetector
    from mnemarch.memory import Memory
    from mnemarch.model.caller import Actor, Scope
    from mnemarch.seat import Seat

    class _Awaited(Generic[P, T]):
        """To a type checker: a verb with the same parameters, whose result is awaited."""

        def __init__(self, verb: Callable[P, T]) -> None: ...
        def __get__(self, holder: object, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...

    def _awaited(verb: Callable[Concatenate[Any, P], T]) -> _Awaited[P, T]: ...


class _Wrapper:
    """Gives every verb of what it wraps as a coroutine; the classes below declare them to type checkers."""

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            if name.startswith("_"):
                raise AttributeError(name)
            verb = getattr(self._wrapped, name)
            if not callable(verb):
                return verb

            async def call(*positional, **named):
                return await asyncio.to_thread(verb, *positional, **named)

            return call


class _System(Generic[T]):
    """One of a seat's systems, wrapped."""

    def __init__(self, wrapper: Callable[[Any], T]) -> None:
        self._wrapper = wrapper

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, seat: Any, owner: type) -> T:
        return self._wrapper(getattr(seat._wrapped, self._name))


class AsyncDecisions(_Wrapper):
    """`seat.decisions`, awaited."""

    if TYPE_CHECKING:
        active = _awaited(Decisions.active)
        get = _awaited(Decisions.get)
        history = _awaited(Decisions.history)
        load = _awaited(Decisions.load)
        relate = _awaited(Decisions.relate)
        unrelate = _awaited(Decisions.unrelate)
        relations = _awaited(Decisions.relations)
        add_evidence = _awaited(Decisions.add_evidence)
        accept_request = _awaited(Decisions.accept_request)
        add_anchor = _awaited(Decisions.add_anchor)
        add_policy = _awaited(Decisions.add_policy)
        decline_request = _awaited(Decisions.decline_request)
        requests = _awaited(Decisions.requests)
        broken_anchors = _awaited(Decisions.broken_anchors)
        impact = _awaited(Decisions.impact)
        propose = _awaited(Decisions.propose)
        check = _awaited(Decisions.check)
        commit = _awaited(Decisions.commit)
        domains = _awaited(Decisions.domains)
        in_force = _awaited(Decisions.in_force)


class AsyncLoops(_Wrapper):
    """`seat.loops`, awaited."""

    if TYPE_CHECKING:
        check = _awaited(CircularFixDetector.check)
        validate_approach = _awaited(CircularFixDetector.validate_approach)
        detect_repeated_approach = _awaited(CircularFixDetector.detect_repeated_approach)
        get_failed_approaches = _awaited(CircularFixDetector.get_failed_approaches)
        failures = _awaited(CircularFixDetector.failures)
        stuck_reason = _awaited(CircularFixDetector.stuck_reason)
        mark_subtask_stuck = _awaited(CircularFixDetector.mark_subtask_stuck)
        clear = _awaited(CircularFixDetector.clear)
        hash_error = _Awaited(CircularFixDetector.hash_error)


class AsyncGraph(_Wrapper):
    """`seat.graph`, awaited."""

    if TYPE_CHECKING:
        upsert_query = _awaited(MemoryOrchestrator.upsert_query)
        search = _awaited(MemoryOrchestrator.search)
        record_answer = _awaited(MemoryOrchestrator.record_answer)
        record_feedback = _awaited(MemoryOrchestrator.record_feedback)
        upsert_entity = _awaited(MemoryOrchestrator.upsert_entity)
        finalize_session = _awaited(MemoryOrchestrator.finalize_session)
        gc_sessions = _awaited(MemoryOrchestrator.gc_sessions)
        get_active_sessions = _awaited(MemoryOrchestrator.get_active_sessions)
        get_session_store = _awaited(MemoryOrchestrator.get_session_store)
        get_agent_store = _awaited(MemoryOrchestrator.get_agent_store)
        restore_session = _awaited(MemoryOrchestrator.restore_session)


class AsyncWorking(_Wrapper):
    """`seat.working`, awaited."""

    if TYPE_CHECKING:
        init_task = _awaited(WorkingMemoryManager.init_task)
        record_step = _awaited(WorkingMemoryManager.record_step)
        add_hypothesis = _awaited(WorkingMemoryManager.add_hypothesis)
        record_decision = _awaited(WorkingMemoryManager.record_decision)
        track_file = _awaited(WorkingMemoryManager.track_file)
        track_symbol = _awaited(WorkingMemoryManager.track_symbol)
        current = _awaited(WorkingMemoryManager.current)
        consolidate = _awaited(WorkingMemoryManager.consolidate)


class AsyncCore(_Wrapper):
    """`seat.core`, awaited."""

    if TYPE_CHECKING:
        sections = _awaited(CoreMemory.sections)
        compiled = _awaited(CoreMemory.compiled)
        history = _awaited(CoreMemory.history)
        core_memory_append = _awaited(CoreMemory.core_memory_append)
        core_memory_replace = _awaited(CoreMemory.core_memory_replace)
        archival_memory_insert = _awaited(CoreMemory.archival_memory_insert)
        archival_memory_search = _awaited(CoreMemory.archival_memory_search)
        conversation_search = _awaited(CoreMemory.conversation_search)
        tools = _awaited(CoreMemory.tools)
        call = _awaited(CoreMemory.call)


class AsyncRules(_Wrapper):
    """`seat.rules`, awaited."""

    if TYPE_CHECKING:
        learn = _awaited(CodeRules.learn)
        find_code_rules = _awaited(CodeRules.find_code_rules)
        get_code_rule = _awaited(CodeRules.get_code_rule)
        explain = _awaited(CodeRules.explain)
        update_code_rule_confidence = _awaited(CodeRules.update_code_rule_confidence)
        save_code_rule = _awaited(CodeRules.save_code_rule)
        find_similar_rules = _awaited(CodeRules.find_similar_rules)
        cleanup_weak_rules = _awaited(CodeRules.cleanup_weak_rules)
        check = _awaited(CodeRules.check)
        rewritten = _awaited(CodeRules.rewritten)


class AsyncEpisodes(_Wrapper):
    """`seat.episodes`, awaited."""

    if TYPE_CHECKING:
        store = _awaited(EpisodicMemoryManager.store)
        search = _awaited(EpisodicMemoryManager.search)
        find_similar = _awaited(EpisodicMemoryManager.find_similar)
        find_similar_batch = _awaited(EpisodicMemoryManager.find_similar_batch)
        find_by_error_pattern = _awaited(EpisodicMemoryManager.find_by_error_pattern)
        match_error_patterns_batch = _awaited(EpisodicMemoryManager.match_error_patterns_batch)
        find_by_project = _awaited(EpisodicMemoryManager.find_by_project)
        find_by_semantic_similarity = _awaited(EpisodicMemoryManager.find_by_semantic_similarity)
        hybrid_search = _awaited(EpisodicMemoryManager.hybrid_search)
        last_time = _awaited(EpisodicMemoryManager.last_time)
        invalidate_cache = _awaited(EpisodicMemoryManager.invalidate_cache)
        get_cache_stats = _awaited(EpisodicMemoryManager.get_cache_stats)


class AsyncKnowledge(_Wrapper):
    """`seat.knowledge`, awaited."""

    if TYPE_CHECKING:
        add_bug_pattern = _awaited(SemanticMemoryManager.add_bug_pattern)
        match_bug_pattern = _awaited(SemanticMemoryManager.match_bug_pattern)
        add_code_pattern = _awaited(SemanticMemoryManager.add_code_pattern)
        preferences = _awaited(SemanticMemoryManager.preferences)
        learn_from_episode = _awaited(SemanticMemoryManager.learn_from_episode)
        get_relevant_knowledge = _awaited(SemanticMemoryManager.get_relevant_knowledge)


class AsyncSeat(_Wrapper):
    """A seat whose verbs are coroutines."""

    actor: Actor
    scope: Scope

    decisions = _System(AsyncDecisions)
    loops = _System(AsyncLoops)
    graph = _System(AsyncGraph)
    working = _System(AsyncWorking)
    core = _System(AsyncCore)
    rules = _System(AsyncRules)
    episodes = _System(AsyncEpisodes)
    knowledge = _System(AsyncKnowledge)

    if TYPE_CHECKING:
        log = _awaited(Seat.log)
        log_many = _awaited(Seat.log_many)
        ingest = _awaited(Seat.ingest)
        ingest_many = _awaited(Seat.ingest_many)
        ingest_file = _awaited(Seat.ingest_file)
        ingested = _awaited(Seat.ingested)
        remember = _awaited(Seat.remember)
        remember_many = _awaited(Seat.remember_many)
        validate_approach = _awaited(Seat.validate_approach)
        fail = _awaited(Seat.fail)
        failed_approaches = _awaited(Seat.failed_approaches)
        mark_stuck = _awaited(Seat.mark_stuck)
        clear_stuck = _awaited(Seat.clear_stuck)
        verify = _awaited(Seat.verify)
        promote = _awaited(Seat.promote)
        reflect = _awaited(Seat.reflect)
        events = _awaited(Seat.events)
        status = _awaited(Seat.status)
        show = _awaited(Seat.show)
        inbox = _awaited(Seat.inbox)
        import_claims = _awaited(Seat.import_claims)
        accept = _awaited(Seat.accept)
        decline = _awaited(Seat.decline)
        withdraw = _awaited(Seat.withdraw)
        get = _awaited(Seat.get)
        units = _awaited(Seat.units)
        explain = _awaited(Seat.explain)
        related = _awaited(Seat.related)
        history = _awaited(Seat.history)
        conflicts = _awaited(Seat.conflicts)
        proposals = _awaited(Seat.proposals)
        resolve = _awaited(Seat.resolve)
        cite = _awaited(Seat.cite)
        use = _awaited(Seat.use)
        validate = _awaited(Seat.validate)
        approve = _awaited(Seat.approve)
        reject = _awaited(Seat.reject)
        supersede = _awaited(Seat.supersede)
        archive = _awaited(Seat.archive)
        revive = _awaited(Seat.revive)
        erase = _awaited(Seat.erase)
        undo = _awaited(Seat.undo)
        revert = _awaited(Seat.revert)
        recall = _awaited(Seat.recall)
        context = _awaited(Seat.context)
        about = _awaited(Seat.about)
        awaited_tests = _awaited(Seat.awaited_tests)
        consolidate = _awaited(Seat.consolidate)


class AsyncMemory(_Wrapper):
    """A memory whose verbs are coroutines; use it with `async with`."""

    config: Config

    def seat(
        self, actor: Actor, scope: Scope, *, session: str | None = None, root: str | os.PathLike[str] | None = None
    ) -> AsyncSeat:
        """Taking a seat does no work, so it is not awaited."""
        return AsyncSeat(self._wrapped.seat(actor, scope, session=session, root=root))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self._wrapped.close)

    if TYPE_CHECKING:
        doctor = _awaited(Memory.doctor)
        stats = _awaited(Memory.stats)
        audit = _awaited(Memory.audit)
        verify_receipt = _awaited(Memory.verify_receipt)
        rebuild = _awaited(Memory.rebuild)
        reindex = _awaited(Memory.reindex)
        janitor = _awaited(Memory.janitor)
        cognify = _awaited(Memory.cognify)
        maintain = _awaited(Memory.maintain)
        prune = _awaited(Memory.prune)
        export = _awaited(Memory.export)
        import_ = _awaited(Memory.import_)
        copy_to = _awaited(Memory.copy_to)
        backup = _awaited(Memory.backup)
        now = _awaited(Memory.now)
        close = _awaited(Memory.close)


class _Opening:
    """A memory that is being opened: await it, or enter it with `async with`."""

    def __init__(self, work: Callable[[], Memory]) -> None:
        self._work = work
        self._memory: AsyncMemory | None = None

    def __await__(self) -> Generator[Any, None, AsyncMemory]:
        return self._opened().__await__()

    async def _opened(self) -> AsyncMemory:
        self._memory = AsyncMemory(await asyncio.to_thread(self._work))
        return self._memory

    async def __aenter__(self) -> AsyncMemory:
        return await self._opened()

    async def __aexit__(self, *details: object) -> None:
        if self._memory is not None:
            await self._memory.__aexit__(*details)


def open(
    target: str | os.PathLike[str] | None = None,
    *,
    vectors: str | None = None,
    config: Config | None = None,
    clock: Callable[[], datetime] | None = None,
) -> _Opening:
    """`mnemarch.open` for `async with`; it can be awaited too."""
    return _Opening(lambda: wiring.open(target, vectors=vectors, config=config, clock=clock))
