"""The types of `mnemarch.aio`. The lists of verbs are made by tests/journeys/test_aio.py --rewrite."""

import os
from collections.abc import Callable, Coroutine, Generator
from datetime import datetime
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from mnemarch.config import Config
from mnemarch.decisions import Decisions
from mnemarch.graph import MemoryOrchestrator
from mnemarch.learning import CodeRules, CoreMemory, EpisodicMemoryManager, WorkingMemoryManager
from mnemarch.learning.knowledge import SemanticMemoryManager
from mnemarch.loops import CircularFixDetector
from mnemarch.memory import Memory
from mnemarch.model.caller import Actor, Scope
from mnemarch.seat import Seat

P = ParamSpec("P")
T = TypeVar("T")

class _Awaited(Generic[P, T]):
    """A verb with the same parameters, whose result is awaited."""

    def __init__(self, verb: Callable[P, T]) -> None: ...
    def __get__(self, holder: object, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...

def _awaited(verb: Callable[Concatenate[Any, P], T]) -> _Awaited[P, T]: ...

class AsyncDecisions:
    accept_request = _awaited(Decisions.accept_request)
    active = _awaited(Decisions.active)
    add_anchor = _awaited(Decisions.add_anchor)
    add_evidence = _awaited(Decisions.add_evidence)
    add_policy = _awaited(Decisions.add_policy)
    broken_anchors = _awaited(Decisions.broken_anchors)
    check = _awaited(Decisions.check)
    commit = _awaited(Decisions.commit)
    decline_request = _awaited(Decisions.decline_request)
    domains = _awaited(Decisions.domains)
    get = _awaited(Decisions.get)
    history = _awaited(Decisions.history)
    impact = _awaited(Decisions.impact)
    in_force = _awaited(Decisions.in_force)
    load = _awaited(Decisions.load)
    propose = _awaited(Decisions.propose)
    relate = _awaited(Decisions.relate)
    relations = _awaited(Decisions.relations)
    requests = _awaited(Decisions.requests)
    unrelate = _awaited(Decisions.unrelate)

class AsyncLoops:
    check = _awaited(CircularFixDetector.check)
    clear = _awaited(CircularFixDetector.clear)
    detect_repeated_approach = _awaited(CircularFixDetector.detect_repeated_approach)
    failures = _awaited(CircularFixDetector.failures)
    get_failed_approaches = _awaited(CircularFixDetector.get_failed_approaches)
    hash_error = _Awaited(CircularFixDetector.hash_error)
    mark_subtask_stuck = _awaited(CircularFixDetector.mark_subtask_stuck)
    stuck_reason = _awaited(CircularFixDetector.stuck_reason)
    validate_approach = _awaited(CircularFixDetector.validate_approach)

class AsyncGraph:
    finalize_session = _awaited(MemoryOrchestrator.finalize_session)
    gc_sessions = _awaited(MemoryOrchestrator.gc_sessions)
    get_active_sessions = _awaited(MemoryOrchestrator.get_active_sessions)
    get_agent_store = _awaited(MemoryOrchestrator.get_agent_store)
    get_session_store = _awaited(MemoryOrchestrator.get_session_store)
    record_answer = _awaited(MemoryOrchestrator.record_answer)
    record_feedback = _awaited(MemoryOrchestrator.record_feedback)
    restore_session = _awaited(MemoryOrchestrator.restore_session)
    search = _awaited(MemoryOrchestrator.search)
    upsert_entity = _awaited(MemoryOrchestrator.upsert_entity)
    upsert_query = _awaited(MemoryOrchestrator.upsert_query)

class AsyncWorking:
    add_hypothesis = _awaited(WorkingMemoryManager.add_hypothesis)
    consolidate = _awaited(WorkingMemoryManager.consolidate)
    current = _awaited(WorkingMemoryManager.current)
    init_task = _awaited(WorkingMemoryManager.init_task)
    record_decision = _awaited(WorkingMemoryManager.record_decision)
    record_step = _awaited(WorkingMemoryManager.record_step)
    track_file = _awaited(WorkingMemoryManager.track_file)
    track_symbol = _awaited(WorkingMemoryManager.track_symbol)

class AsyncCore:
    archival_memory_insert = _awaited(CoreMemory.archival_memory_insert)
    archival_memory_search = _awaited(CoreMemory.archival_memory_search)
    call = _awaited(CoreMemory.call)
    compiled = _awaited(CoreMemory.compiled)
    conversation_search = _awaited(CoreMemory.conversation_search)
    core_memory_append = _awaited(CoreMemory.core_memory_append)
    core_memory_replace = _awaited(CoreMemory.core_memory_replace)
    history = _awaited(CoreMemory.history)
    sections = _awaited(CoreMemory.sections)
    tools = _awaited(CoreMemory.tools)

class AsyncRules:
    check = _awaited(CodeRules.check)
    cleanup_weak_rules = _awaited(CodeRules.cleanup_weak_rules)
    explain = _awaited(CodeRules.explain)
    find_code_rules = _awaited(CodeRules.find_code_rules)
    find_similar_rules = _awaited(CodeRules.find_similar_rules)
    get_code_rule = _awaited(CodeRules.get_code_rule)
    learn = _awaited(CodeRules.learn)
    rewritten = _awaited(CodeRules.rewritten)
    save_code_rule = _awaited(CodeRules.save_code_rule)
    update_code_rule_confidence = _awaited(CodeRules.update_code_rule_confidence)

class AsyncEpisodes:
    find_by_error_pattern = _awaited(EpisodicMemoryManager.find_by_error_pattern)
    find_by_project = _awaited(EpisodicMemoryManager.find_by_project)
    find_by_semantic_similarity = _awaited(EpisodicMemoryManager.find_by_semantic_similarity)
    find_similar = _awaited(EpisodicMemoryManager.find_similar)
    find_similar_batch = _awaited(EpisodicMemoryManager.find_similar_batch)
    get_cache_stats = _awaited(EpisodicMemoryManager.get_cache_stats)
    hybrid_search = _awaited(EpisodicMemoryManager.hybrid_search)
    invalidate_cache = _awaited(EpisodicMemoryManager.invalidate_cache)
    last_time = _awaited(EpisodicMemoryManager.last_time)
    match_error_patterns_batch = _awaited(EpisodicMemoryManager.match_error_patterns_batch)
    search = _awaited(EpisodicMemoryManager.search)
    store = _awaited(EpisodicMemoryManager.store)

class AsyncKnowledge:
    add_bug_pattern = _awaited(SemanticMemoryManager.add_bug_pattern)
    add_code_pattern = _awaited(SemanticMemoryManager.add_code_pattern)
    get_relevant_knowledge = _awaited(SemanticMemoryManager.get_relevant_knowledge)
    learn_from_edits = _awaited(SemanticMemoryManager.learn_from_edits)
    learn_from_episode = _awaited(SemanticMemoryManager.learn_from_episode)
    match_bug_pattern = _awaited(SemanticMemoryManager.match_bug_pattern)
    preferences = _awaited(SemanticMemoryManager.preferences)

class AsyncSeat:
    actor: Actor
    scope: Scope
    decisions: AsyncDecisions
    loops: AsyncLoops
    graph: AsyncGraph
    working: AsyncWorking
    core: AsyncCore
    rules: AsyncRules
    episodes: AsyncEpisodes
    knowledge: AsyncKnowledge
    about = _awaited(Seat.about)
    accept = _awaited(Seat.accept)
    approve = _awaited(Seat.approve)
    archive = _awaited(Seat.archive)
    awaited_tests = _awaited(Seat.awaited_tests)
    cite = _awaited(Seat.cite)
    clear_stuck = _awaited(Seat.clear_stuck)
    conflicts = _awaited(Seat.conflicts)
    consolidate = _awaited(Seat.consolidate)
    context = _awaited(Seat.context)
    decline = _awaited(Seat.decline)
    erase = _awaited(Seat.erase)
    events = _awaited(Seat.events)
    explain = _awaited(Seat.explain)
    fail = _awaited(Seat.fail)
    failed_approaches = _awaited(Seat.failed_approaches)
    get = _awaited(Seat.get)
    history = _awaited(Seat.history)
    import_claims = _awaited(Seat.import_claims)
    inbox = _awaited(Seat.inbox)
    ingest = _awaited(Seat.ingest)
    ingest_file = _awaited(Seat.ingest_file)
    ingest_many = _awaited(Seat.ingest_many)
    ingested = _awaited(Seat.ingested)
    log = _awaited(Seat.log)
    log_many = _awaited(Seat.log_many)
    mark_stuck = _awaited(Seat.mark_stuck)
    promote = _awaited(Seat.promote)
    proposals = _awaited(Seat.proposals)
    recall = _awaited(Seat.recall)
    reflect = _awaited(Seat.reflect)
    reject = _awaited(Seat.reject)
    related = _awaited(Seat.related)
    remember = _awaited(Seat.remember)
    remember_many = _awaited(Seat.remember_many)
    resolve = _awaited(Seat.resolve)
    revert = _awaited(Seat.revert)
    revive = _awaited(Seat.revive)
    show = _awaited(Seat.show)
    status = _awaited(Seat.status)
    supersede = _awaited(Seat.supersede)
    undo = _awaited(Seat.undo)
    units = _awaited(Seat.units)
    use = _awaited(Seat.use)
    validate = _awaited(Seat.validate)
    validate_approach = _awaited(Seat.validate_approach)
    verify = _awaited(Seat.verify)
    withdraw = _awaited(Seat.withdraw)

class AsyncMemory:
    config: Config
    def __init__(self, wrapped: Memory) -> None: ...
    def seat(
        self, actor: Actor, scope: Scope, *, session: str | None = None, root: str | os.PathLike[str] | None = None
    ) -> AsyncSeat: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *_: object) -> None: ...
    audit = _awaited(Memory.audit)
    backup = _awaited(Memory.backup)
    close = _awaited(Memory.close)
    cognify = _awaited(Memory.cognify)
    copy_to = _awaited(Memory.copy_to)
    doctor = _awaited(Memory.doctor)
    export = _awaited(Memory.export)
    import_ = _awaited(Memory.import_)
    janitor = _awaited(Memory.janitor)
    maintain = _awaited(Memory.maintain)
    now = _awaited(Memory.now)
    prune = _awaited(Memory.prune)
    rebuild = _awaited(Memory.rebuild)
    reindex = _awaited(Memory.reindex)
    stats = _awaited(Memory.stats)
    verify_receipt = _awaited(Memory.verify_receipt)

class _Opening:
    def __await__(self) -> Generator[Any, None, AsyncMemory]: ...
    async def __aenter__(self) -> AsyncMemory: ...
    async def __aexit__(self, *details: object) -> None: ...

def open(
    target: str | os.PathLike[str] | None = None,
    *,
    vectors: str | None = None,
    config: Config | None = None,
    clock: Callable[[], datetime] | None = None,
) -> _Opening: ...
