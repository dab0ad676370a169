"""One erasure through every room: units, decisions, graphs, index, files (R16)."""

from __future__ import annotations

from contextlib import suppress

from mnemarch.decisions.guard import require_may_retire
from mnemarch.errors import NotAllowed, NotFound
from mnemarch.graph.files import forget_in_checkpoints
from mnemarch.graph.sharing import graphs_without, restate
from mnemarch.model.unit import Unit
from mnemarch.model.upkeep import Copy, Erased
from mnemarch.model.value import replace
from mnemarch.policy.admission import checked_list
from mnemarch.units import erasure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mnemarch.log.act import Act
    from mnemarch.model.caller import Caller
    from mnemarch.model.event import Event
    from mnemarch.services.engine import Engine
    from mnemarch.units.erasure import Plan


def erase(
    engine: Engine,
    caller: Caller,
    target_id: str,
    reason: str,
    *,
    copies: bool | Sequence[str],
    dry_run: bool,
    expected_version: int | None,
) -> Erased:
    """Remove a unit, or an entry of the log, and what derives from it; and the copies that are chosen."""

    def work(act: Act) -> tuple[Erased, Sequence[str]]:
        plan = erasure.planned(act, target_id, expected_version)
        if plan is None:  # Erased before: the files are cleaned once more, for those that were busy then.
            known = erasure.erased_with(act, target_id)
            return Erased(units=_readable(act, known), events=0, dry_run=dry_run), known
        left = _with_chosen_copies(act, plan, copies)
        for unit in plan.units.values():
            require_may_retire(act, unit)
        seen = sum(caller.may_read(event.scope) for event in plan.events.values())
        erased = Erased(units=_readable(act, plan.units), events=seen, copies=left, dry_run=dry_run)
        if dry_run:
            return erased, ()
        erasure.check_reason(plan, reason)
        restated = graphs_without(act.transaction, plan.events.values(), plan.texts)
        # Before anything leaves the log: only the log knows which texts the files must lose.
        cleaned = forget_in_checkpoints(engine.checkpoint_folder, plan.texts, caller.may_read)
        erasure.carry_out(act, plan, reason)
        restate(act, restated)
        return replace(erased, files=cleaned), list(plan.units)

    erased, unit_ids = engine.log.act(caller, work, durable=True)
    erased = replace(erased, kept=engine.store.keeps_erased)
    return erased if dry_run else replace(erased, files=erased.files + engine.forget_erased(unit_ids))


def _readable(act: Act, unit_ids: Iterable[str]) -> tuple[str, ...]:
    """Those of these units that the caller may read: of others an erasure says nothing."""
    units = act.transaction.units(unit_ids).values()
    return tuple(unit.id for unit in units if act.caller.may_read(unit.scope))


def _with_chosen_copies(act: Act, plan: Plan, chosen: bool | Sequence[str]) -> tuple[Copy, ...]:
    """Add the chosen copies to the plan; gives those that are left."""
    known = {copy.id: (copy, source) for copy, source in erasure.copies_of(act, plan) if _may_retire(act, source)}
    ids = list(known) if chosen is True else checked_list(chosen or (), "copies")
    for id in ids:
        if id not in known:
            raise NotFound(f"{id!r} is no copy that you may erase.", hint="Take ids that a dry run lists.")
        plan.take(known[id][1])
    return tuple(copy for copy, _ in known.values() if copy.id not in plan.units and copy.id not in plan.events)


def _may_retire(act: Act, source: Unit | Event) -> bool:
    with suppress(NotAllowed):
        if isinstance(source, Unit):
            require_may_retire(act, source)
        return True
    return False
