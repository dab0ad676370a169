"""What tasks taught about a project, with recall at hand to find it (M13)."""

from __future__ import annotations

from mnemarch.learning.knowledge import SemanticMemoryManager
from mnemarch.policy.admission import typed_methods

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.model.caller import Caller
    from mnemarch.model.search import Recalled
    from mnemarch.services.engine import Engine
    from mnemarch.units.remember import Intake

_KINDS = ("fact", "semantic", "preference", "skill")


@typed_methods
class Knowledge(SemanticMemoryManager):
    """`seat.knowledge`."""

    def __init__(self, engine: Engine, caller: Caller, intake: Intake) -> None:
        super().__init__(engine.log, caller, intake)
        self._engine = engine

    def get_relevant_knowledge(self, query: str, k: int = 8) -> list[Recalled]:
        """What the project knows about a question: facts, lessons, habits and skills, as recall ranks them."""
        from mnemarch.services.recall import Answering  # A verification learns, and asks nothing.

        answering = Answering(self._engine, self._caller)
        return list(answering.recall(query, k, kinds=_KINDS, domain=None, at_commit=None, as_of=None).items)
