"""The cognitive gate: what may be handed out to this reader, now and in this tree, and why not the rest (R2, R8)."""

from __future__ import annotations

from mnemarch.model.caller import Actor, ActorKind
from mnemarch.model.unit import DISTRUSTED, Kind, Status, Unit
from mnemarch.model.value import replace
from mnemarch.policy.permissions import is_of_another, owners_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from mnemarch.code.codebase import CodeCheck, CodeView
    from mnemarch.stores.sql.reader import Reader

# What is said of a unit where its replacement has no effect (R8).
REPLACED_ELSEWHERE = "Replaced by {}, which does not hold in this tree."


class Gate:
    """The cognitive gate: whether a unit may be handed out now, and to a reader with this code (R2, R8)."""

    def __init__(
        self, now: datetime, as_of: datetime | None, code: Callable[[], CodeView] | None, actor: Actor
    ) -> None:
        self._actor = actor
        self._now = now
        self._as_of = as_of
        self._code = code
        self._view: CodeView | None = None
        # Set by whoever has a read open: what replaced a unit is looked up there.
        self.reader: Reader | None = None
        # Units that this reader's code contradicts, or has only under another name.
        self.unsettled: list[Unit] = []
        # Those that were admitted though the tests they rest on are not in this reader's tree; or are, but expect
        # something else by now.
        self.elsewhere: dict[str, bool] = {}

    def admitted(self, units: Sequence[Unit], withheld: dict[str, str]) -> list[tuple[Unit, tuple[str, ...]]]:
        """Those that may be handed out, with their status here and what their reader should know.

        The reasons of the others are added to `withheld`.
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

    def _person(self) -> str | None:
        """Who reads, or for whom an agent works: the person of this machine; None if nobody said who that is."""
        from mnemarch import user

        return self._actor.id if self._actor.kind is ActorKind.HUMAN else user.person()

    def _seen_from_here(self, units: Sequence[Unit]) -> tuple[dict[str, CodeCheck], set[str]]:
        """What the code says of the units, and the ids of replaced ones whose replacements do not hold here."""
        bound = [unit for unit in units if unit.is_bound_to_code]
        if not bound or self._code is None:
            return {}, set()
        # One view for the whole recall, so that its time limit is one too.
        view = self._view = self._view or self._code()
        replaced = [unit for unit in bound if unit.superseded_by and unit.valid_to_commit]
        if not replaced or self.reader is None or self._as_of is not None:
            return view.checks(bound), set()
        from mnemarch.units.life import successors

        return view.checks(bound), view.still_valid(replaced, successors(self.reader, replaced))


def withheld_reason(
    unit: Unit, now: datetime, as_of: datetime | None, *, replaced_elsewhere: bool = False
) -> str | None:
    """Why a unit that matches may not be handed out now, or as of an earlier moment; None if it may (R2, R8).

    `replaced_elsewhere`: the commit that replaced it is not in the reader's code, so it is still valid there.
    """
    if unit.erased_at is not None:
        return "erased"
    if unit.status is Status.ARCHIVED:
        return f"archived: {unit.archive_reason}" if unit.archive_reason else "archived"
    if unit.attributes.get(DISTRUSTED):
        return "distrusted"
    if as_of is None and unit.status is Status.DEPRECATED and not replaced_elsewhere:
        return f"superseded by {unit.superseded_by}"
    # A clock that went back must not hide what was recorded before it did.
    moment = as_of or max(now, unit.recorded_at)
    if moment < unit.occurred_at:
        return f"not yet valid: from {unit.occurred_at.isoformat()}"
    if not replaced_elsewhere and not unit.valid_at(moment):
        return f"superseded by {unit.superseded_by}" if unit.superseded_by else "out of validity"
    return None
