"""The systems that a seat leads to, and what earlier tasks add to its answers."""

from __future__ import annotations

from mnemarch.lazy import Lazy
from mnemarch.model.unit import FAULT
from mnemarch.model.value import replace
from mnemarch.seat.ingest import IngestVerbs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mnemarch.code.codebase import Codebase
    from mnemarch.decisions.decisions import Decisions
    from mnemarch.graph.orchestrator import MemoryOrchestrator
    from mnemarch.learning import knowledge as learning
    from mnemarch.learning.code_rules import CodeRules
    from mnemarch.learning.episodic import EpisodicMemoryManager
    from mnemarch.loops.detector import CircularFixDetector
    from mnemarch.model.outcome import LoopVerdict, Promotion
    from mnemarch.model.search import Recalled
    from mnemarch.model.unit import Unit
    from mnemarch.services import analysis
    from mnemarch.services.items import Items
    from mnemarch.services.knowledge import Knowledge
    from mnemarch.stores.sql.reader import Reader
else:
    # A failed run teaches nothing yet.
    learning = Lazy("mnemarch.learning.knowledge")
    analysis = Lazy("mnemarch.services.analysis")


_MET_MAX = 40


class Systems(IngestVerbs):
    """One property for each."""

    @property
    def loops(self) -> CircularFixDetector:
        """Whether this seat's task goes round in circles."""
        from mnemarch.loops.detector import CircularFixDetector

        return CircularFixDetector(self._engine.log, self.caller)

    @property
    def decisions(self) -> Decisions:
        """What was decided, why, whether it still holds, and what changing it would reach."""
        from mnemarch.decisions.decisions import Decisions

        return Decisions(self._engine.log, self.caller, self._intake())

    @property
    def graph(self) -> MemoryOrchestrator:
        """What this actor asks and learns, session by session, kept in the log (A1)."""
        return self._engine.graph(self.caller)

    @property
    def items(self) -> Items:
        """Keys and values in namespaces below this seat's project, for agent frameworks."""
        from mnemarch.services.items import Items

        return Items(self._engine, self.caller)

    @property
    def rules(self) -> CodeRules:
        """What patches taught this project about its code."""
        from mnemarch.learning.code_rules import CodeRules

        return CodeRules(self._engine.log, self.caller)

    @property
    def episodes(self) -> EpisodicMemoryManager:
        """What happened in earlier tasks: by the error that they met, or by what they were about."""
        from mnemarch.learning.episodic import EpisodicMemoryManager

        engine, root = self._engine, self.caller.root
        code = None if root is None else lambda: engine.codebase(root).view(self.scope.project, by_commit=True)
        return EpisodicMemoryManager(engine.log, self.caller, self._intake(), code=code, caches=engine.episodes)

    @property
    def knowledge(self) -> Knowledge:
        """What tasks taught about the project: bug patterns, code patterns, habits."""
        from mnemarch.services.knowledge import Knowledge

        return Knowledge(self._engine, self.caller, self._intake())

    def about(self, paths: Sequence[str]) -> list[Recalled]:
        """What warns whoever changes these files, by their paths from the root: locks, bug patterns and lessons."""
        from mnemarch.decisions.loading import spoken_of
        from mnemarch.policy.admission import checked_list

        named = [str(path) for path in checked_list(paths, "paths")]
        units = self._engine.store.read(lambda reader: spoken_of(reader, self.caller, named))
        if not units:
            return []
        from mnemarch.services.recall import Answering

        return Answering(self._engine, self.caller).handed_out(units)

    def awaited_tests(self) -> list[str]:
        """The tests that would verify what is claimed here, and those that failed in this task."""
        failed = [name for attempt in self.loops.failures() for name in attempt.tests]
        cited = self._engine.store.read(lambda reader: reader.tests_cited(self.caller.visible_keys))
        return list(dict.fromkeys((*cited, *failed)))

    def consolidate(self) -> Promotion | None:
        """Keep the episode of the task's last run of tests, if that was only judged, and learn from it."""
        from mnemarch.units.episode import consolidate

        told = consolidate(self._engine.log, self.caller)
        self._engine.has_new_units = True
        return None if told is None else self._learned_from(told, (), self._codebase())

    def _learned_from(self, judged: Promotion, met: Sequence[Unit], codebase: Codebase | None) -> Promotion:
        """The answer of a verification, after what follows it: an analysis, what a success teaches, a reflection.

        Without an episode only what came of the same error in other tasks is added; `met` are the units that tell it.
        """
        if not judged.episode_id:
            return replace(judged, loop=judged.loop and self._with_earlier(judged.loop, None, met))
        from mnemarch.learning.reflection import reflect_if_due, seen_before_reflecting

        task = self.caller.scope_key
        episode, entries, seen, loop = self._engine.store.read(
            lambda reader: reader.together(
                lambda reader: (
                    reader.unit(judged.episode_id),
                    learning.entries_of(reader, task) if judged.passed else [],
                    seen_before_reflecting(reader, self.caller, self._engine.config.reflection),
                    judged.loop and self._with_earlier(judged.loop, reader, met),
                )
            )
        )
        assert episode is not None
        if judged.passed:
            judged = analysis.followed_up(self._engine, self.caller, judged, episode)
        if loop is not None:
            judged = replace(judged, loop=loop)
        elif judged.passed and judged.episode_id == episode.id:
            learning.learn_from_task(self._engine.log, self.caller, episode, entries)
        elif judged.passed:
            self.knowledge.learn_from_episode(judged.episode_id, code=False)
        reflect_if_due(self._engine.log, self.caller, codebase, seen)
        return judged

    def _met(self, reader: Reader, verdict: LoopVerdict) -> list[Unit]:
        """The newest units that tell of the error."""
        fault = verdict.details["error_hash"]
        return reader.newest_citing(self.caller.visible_keys, FAULT, fault, _MET_MAX, live=True)

    def _with_earlier(
        self, verdict: LoopVerdict, reader: Reader | None = None, met: Sequence[Unit] | None = None
    ) -> LoopVerdict:
        """The verdict with what came of the same error in other tasks."""
        if reader is None:
            return self._engine.store.read(lambda reader: self._with_earlier(verdict, reader, met))
        met, own = self._met(reader, verdict) if met is None else met, self.caller.scope_key
        if all(unit.attributes.get("task_key") == own for unit in met):
            return verdict  # Most of the time: what finds episodes is not loaded.
        return replace(verdict, seen_before=self.episodes.last_time(verdict.details["error_hash"], reader, met))
