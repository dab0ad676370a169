"""The systems that a seat leads to and that need nothing else of it."""

from __future__ import annotations

from mnemarch.ingesting import IngestVerbs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.decisions.decisions import Decisions
    from mnemarch.graph.orchestrator import MemoryOrchestrator
    from mnemarch.learning.code_rules import CodeRules
    from mnemarch.loops.detector import CircularFixDetector


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
    def rules(self) -> CodeRules:
        """What patches taught this project about its code."""
        from mnemarch.learning.code_rules import CodeRules

        return CodeRules(self._engine.log, self.caller)
