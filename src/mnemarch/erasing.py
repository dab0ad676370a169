"""One erasure through every room: units, decisions, graphs, index, files (R16)."""

from __future__ import annotations

from mnemarch.decisions.guard import require_may_retire
from mnemarch.graph.files import forget_in_checkpoints
from mnemarch.graph.sharing import graphs_without, restate
from mnemarch.model.outcome import Erased
from mnemarch.model.value import replace
from mnemarch.units import erasure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.engine import Engine
    from mnemarch.log.act import Act
    from mnemarch.model.caller import Caller


def erase(
    engine: Engine, caller: Caller, target_id: str, reason: str, *, quoting: bool, expected_version: int | None
) -> Erased:
    """Remove a unit, or an entry of the log, and everything made of it."""

    def work(act: Act) -> tuple[Erased, tuple[str, ...]]:
        plan = erasure.planned(act, target_id, expected_version, quoting=quoting)
        if plan is None:  # Erased before: the files are searched once more, for those that were busy then.
            return Erased(units=(target_id,), events=0, files_searched=0), ()
        for unit in plan.units.values():
            require_may_retire(act, unit)
        restated = graphs_without(act.transaction, plan.events.values(), plan.spellings)
        # Before anything leaves the log: only the log knows which texts the files must lose.
        searched = forget_in_checkpoints(engine.checkpoint_folder, plan.spellings)
        gone_texts = erasure.carry_out(act, plan, reason)
        restate(act, restated)
        return Erased(units=tuple(plan.units), events=len(plan.events), files_searched=searched), gone_texts

    erased, gone_texts = engine.log.act(caller, work, durable=True)
    searched = engine.forget_erased(erased.units, gone_texts)
    return replace(erased, files_searched=erased.files_searched + searched)
