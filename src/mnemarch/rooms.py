"""The rooms of learning as a seat enters them: each is made for its caller, and keeps nothing of its own."""

from __future__ import annotations

from mnemarch.model.value import replace
from mnemarch.unit_verbs import UnitVerbs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.knowing import Knowledge
    from mnemarch.learning.episodic import EpisodicMemoryManager
    from mnemarch.model.outcome import LoopVerdict, Promotion


class Rooms(UnitVerbs):
    """What earlier tasks taught."""

    __slots__ = ()

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
        from mnemarch.knowing import Knowledge

        return Knowledge(self._engine, self.caller, self._intake())

    def _learned_from(self, judged: Promotion) -> Promotion:
        """The answer of a verification, after a success was learned from, in an act of its own."""
        if judged.loop is not None:
            return replace(judged, loop=self._with_earlier(judged.loop))
        if judged.passed:
            self.knowledge.learn_from_episode(judged.episode_id)
        return judged

    def _with_earlier(self, verdict: LoopVerdict) -> LoopVerdict:
        """The verdict with what came of the same error in other tasks."""
        return replace(verdict, seen_before=self.episodes.last_time(verdict.details["error_hash"]))
