"""The cognitive gate decides which units a reader may get now, given the code there (R2, R8)."""

from __future__ import annotations

from mnemarch.model.caller import Actor, ActorKind, Level, Scope
from mnemarch.model.unit import DISTRUSTED, TRUSTED, Kind, Proof, Status, Unit
from mnemarch.model.value import replace
from mnemarch.policy.permissions import is_of_another, owners_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from mnemarch.code.codebase import CodeCheck, CodeView
    from mnemarch.model.testrun import TestRecord
    from mnemarch.stores.sql.reader import Reader

# Note on a unit whose replacement does not hold in the reader's tree (R8).
REPLACED_ELSEWHERE = "Replaced by {}, which does not hold in this tree."
# The reason for an archived unit whose code is in the reader's tree again.
BACK = "archived because its code was gone; the code is back, so the janitor checks it again"


class Gate:
    """Decides whether a unit may be handed out now to a reader with this code (R2, R8)."""

    def __init__(
        self, now: datetime, as_of: datetime | None, code: Callable[[], CodeView] | None, actor: Actor
    ) -> None:
        self._actor = actor
        self._now = now
        self._as_of = as_of
        self._code = code
        self._view: CodeView | None = None
        # Set by a caller with an open read transaction, to look up successors of units.
        self.reader: Reader | None = None
        # Units whose citations are stale in this reader's code, or have moved to another name.
        self.unsettled: list[Unit] = []
        # Ids of admitted units whose tests are missing in this reader's tree, or expect something else there (True).
        self.elsewhere: dict[str, bool] = {}

    def admitted(self, units: Sequence[Unit], withheld: dict[str, str]) -> list[tuple[Unit, tuple[str, ...]]]:
        """The units that may be handed out, with their status in this tree and notes for the reader.

        Adds the reasons for withholding the others to `withheld`.
        """
        checks, still_valid = self._seen_from_here(units)
        passed = []
        for unit in units:
            check = checks.get(unit.id)
            is_valid_here = unit.id in still_valid
            reason = withheld_reason(unit, self._now, self._as_of, replaced_elsewhere=is_valid_here)
            if reason is None and unit.kind is Kind.PREFERENCE and is_of_another(unit, self._person()):
                reason = f"a preference of {', '.join(sorted(owners_of(unit)))}"
            if check is not None:
                if reason is None and (check.is_stale or check.moves):
                    self.unsettled.append(unit)
                reason = reason or check.reason
            if reason is not None:
                withheld[unit.id] = reason
                continue
            notes = check.notes if check is not None else ()
            if check is not None and (check.lacks_tests or check.has_other_tests):
                self.elsewhere[unit.id] = check.has_other_tests
            if is_valid_here and unit.status is Status.DEPRECATED:
                notes = (*notes, REPLACED_ELSEWHERE.format(unit.superseded_by))
                unit = replace(unit, status=unit.superseded_from or Status.VERIFIED)
            passed.append((unit, notes))
        return passed

    def past_reason(self, unit: Unit) -> str | None:
        """The reason to withhold a past unit. One that was archived as stale is checked against the code again."""
        reason = withheld_reason(unit, self._now, self._as_of)
        if self._code is None or not unit.archive_reason:
            return reason
        from mnemarch.code.codebase import STALE

        self._view = self._view or self._code()
        check = self._view.checks([unit]).get(unit.id) if unit.archive_reason.startswith(STALE) else None
        if check is None or not check.is_confirmed:
            return reason
        self.unsettled.append(unit)
        return BACK

    def _person(self) -> str | None:
        """The person who reads, or the person of this machine if an agent reads. None if that person is unknown."""
        from mnemarch import user

        return self._actor.id if self._actor.kind is ActorKind.HUMAN else user.person()

    def _seen_from_here(self, units: Sequence[Unit]) -> tuple[dict[str, CodeCheck], set[str]]:
        """The code checks of the units, and the ids of replaced units whose replacements do not hold in this tree."""
        bound = [unit for unit in units if unit.is_bound_to_code]
        if not bound or self._code is None:
            return {}, set()
        # One view for the whole recall, so that one time limit covers all checks.
        view = self._view = self._view or self._code()
        replaced = [unit for unit in bound if unit.superseded_by and unit.valid_to_commit]
        if not replaced or self.reader is None or self._as_of is not None:
            return view.checks(bound), set()
        from mnemarch.units.life import successors

        return view.checks(bound), view.still_valid(replaced, successors(self.reader, replaced))


def withheld_reason(
    unit: Unit, now: datetime, as_of: datetime | None, *, replaced_elsewhere: bool = False
) -> str | None:
    """The reason to withhold a unit now, or at the earlier moment `as_of`. None if it may be handed out (R2, R8).

    With `replaced_elsewhere`, the commit that replaced the unit is not in the reader's code, so it still holds there.
    """
    if unit.erased_at is not None:
        return "erased"
    if unit.status is Status.ARCHIVED:
        return f"archived: {unit.archive_reason}" if unit.archive_reason else "archived"
    if unit.attributes.get(DISTRUSTED):
        return "distrusted"
    if as_of is None and unit.status is Status.DEPRECATED and not replaced_elsewhere:
        return f"superseded by {unit.superseded_by}"
    # If the clock was set back, units that were recorded before must stay visible.
    moment = as_of or max(now, unit.recorded_at)
    if moment < unit.occurred_at:
        return f"not yet valid: from {unit.occurred_at.isoformat()}"
    if not replaced_elsewhere and not unit.valid_at(moment):
        return f"superseded by {unit.superseded_by}" if unit.superseded_by else "out of validity"
    return None


def red_among(units: Iterable[Unit], here: Sequence[TestRecord], scope: Scope) -> set[str]:
    """The ids of verified units whose tests were all last seen failing in the caller's worktree (R2).

    A project unit's label follows the default branch. A reader in a worktree where its tests fail needs to know that.
    """
    shown = {unit.id: tests for unit in units if unit.status in TRUSTED and (tests := _tests_behind(unit.proof))}
    if not shown:
        return set()
    from mnemarch.model.testrun import meant
    from mnemarch.policy.promotion import standing

    scope = scope.at(Level.PROJECT)
    return {
        unit_id for unit_id, tests in shown.items() if all(standing(name, here, scope).failed for name in meant(tests))
    }


def _tests_behind(proof: Proof | None) -> Sequence[str]:
    """The tests of a proof that rests on tests alone. Empty for a person's word or a proof that has ended."""
    return () if proof is None or proof.person is not None or proof.until is not None else proof.tests
