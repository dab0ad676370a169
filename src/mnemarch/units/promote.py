"""A unit moves to a wider level, through the gate; a merged worktree hands over what it verified."""

from __future__ import annotations

from mnemarch.code import git
from mnemarch.errors import Hint, InvalidInput
from mnemarch.log.act import receipt_for
from mnemarch.model.caller import ActorKind, Caller, Level, Scope
from mnemarch.model.decision import version_key_of
from mnemarch.model.event import EventType
from mnemarch.model.outcome import Adopted, Refused, Stored
from mnemarch.model.stamps import micros
from mnemarch.model.unit import TRUSTED, Status
from mnemarch.policy.permissions import Deed
from mnemarch.policy.promotion import Refusal, refusal_to_promote, refusal_to_verify
from mnemarch.units.conflicts import with_open_disputes
from mnemarch.units.same_text import refusal_to_repeat, twin_of
from mnemarch.units.status import change, inherit, passed_tests, publish_if_reused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mnemarch.code.codebase import Codebase
    from mnemarch.log.act import Act, Log
    from mnemarch.model.caller import Level
    from mnemarch.model.unit import Unit


def promote(act: Act, unit_id: str, target: Level, expected_version: int | None) -> Stored | Refused:
    """Move a unit to a wider level, and open the conflicts it has there; a twin at that level absorbs it."""
    unit = act.changeable_unit(unit_id, expected_version)
    scope = act.caller.scope.at(target)
    twin = twin_of(act.transaction, unit, scope.key)
    refusal = _refusal(act, unit, target, twin)
    if refusal is not None:
        payload: dict[str, Any] = {"to": str(target), "rule": refusal.rule, "reason": refusal.reason}
        event, _ = act.record(EventType.UNIT_HELD, payload, subject=unit_id)
        reason = f"{refusal.reason} {refusal.hint}"
        return Refused(rule=refusal.rule, reason=reason, receipt=receipt_for(event), unit_id=unit_id)
    if twin is not None:
        return _absorbed(act, unit, twin)
    payload = {"from": unit.scope.segments, "set": {"scope": scope.segments}}
    event, _ = act.record(EventType.UNIT_PROMOTED, payload, subject=unit_id)
    return with_open_disputes(act, Stored(unit=act.known_unit(unit_id), receipt=receipt_for(event)))


def _refusal(act: Act, unit: Unit, target: Level, twin: Unit | None) -> Refusal | None:
    """Why the unit may not move, or None. What joins its twin brings nothing there that was rejected."""
    actor = act.caller.actor
    refusal = refusal_to_promote(unit, target, actor, act.config.policy)
    if refusal is None and version_key_of(unit) is not None:
        # A decision is validated by its commit; where it holds is for whoever may decide there (R4).
        may_decide = act.config.policy.allows(actor.kind, Deed.DECIDE, target)
        return None if may_decide else Refusal("R4", f"{actor} may not decide at {target} scope.", "A person can.")
    if refusal is not None:
        return refusal
    if act.config.policy.requires_validation(target):
        # What was verified by a test that has failed since is not verified knowledge any more.
        refusal = refusal_to_verify(unit.citations, passed_tests(act, unit.citations))
    if refusal is None and twin is None and actor.kind is not ActorKind.HUMAN:
        refusal = refusal_to_repeat(act, unit, unit.id)
    return refusal


def _absorbed(act: Act, unit: Unit, twin: Unit) -> Stored:
    """The wider of two units with the same text absorbs the narrower: its evidence, voices and status."""
    payload: dict[str, Any] = {
        "from": unit.id,
        "cite": [citation.to_json() for citation in unit.citations],
        "voices": [source.to_json() for source in unit.provenance],
    } | _reuses(act, unit, twin)
    event, _ = act.record(EventType.UNIT_MERGED, payload, subject=twin.id)
    inherit(act, twin, unit)
    reason = "promoted into the unit that says the same at the wider level"
    changes = {
        "status": str(Status.DEPRECATED),
        "superseded_by": twin.id,
        "contradiction_note": reason,
        "valid_to": micros(max(act.now, unit.occurred_at)),
    }
    change(act, EventType.UNIT_SUPERSEDED, unit, {"new": twin.id, "reason": reason, "set": changes})
    after = publish_if_reused(act, act.known_unit(twin.id))
    return Stored(unit=after, receipt=receipt_for(event), merged=True)


def _reuses(act: Act, unit: Unit, twin: Unit) -> dict[str, Any]:
    """The tasks that reused only the narrower one count for the wider from now on; one task counts once (Rule 3)."""
    known = {use.task_key for use in act.transaction.uses_of_unit(twin.id) if use.credited}
    more = [use.task_key for use in act.transaction.uses_of_unit(unit.id) if use.credited and use.task_key not in known]
    return {"reused_by": more, "set": {"uses": twin.uses + len(more)}} if more else {}


_UNITS_MAX = 10_000


def adopt(log: Log, caller: Caller, codebase: Codebase | None, worktree: str, commit: str | None) -> Adopted:
    """Promote what the worktree verified to project level, once its branch is merged.

    `commit` is the merged commit, for a worktree whose folder is gone.
    """
    _check_merged(caller.root, codebase, worktree, commit)
    scope = Scope(org=caller.scope.org, project=caller.scope.project, worktree=worktree)
    there = Caller(caller.actor, scope, caller.session, caller.root)
    newest_first = log.store.read(lambda reader: reader.units_in([scope.key], live=True, limit=_UNITS_MAX))
    answers = [
        log.act(there, lambda act, unit=unit: promote(act, unit.id, Level.PROJECT, None), durable=True)  # type: ignore[misc]
        for unit in reversed(newest_first)
        if unit.status in TRUSTED
    ]
    return Adopted(
        worktree=worktree,
        units=tuple(answer.unit for answer in answers if isinstance(answer, Stored)),
        refused=tuple(answer for answer in answers if isinstance(answer, Refused)),
    )


def _check_merged(root: str | None, codebase: Codebase | None, worktree: str, commit: str | None) -> None:
    if root is None or codebase is None:
        raise InvalidInput(
            "Whether a branch is merged is asked of git, and this seat has no working tree.",
            hint=Hint("name the root"),
        )
    folder = codebase.worktrees().get(worktree)
    checked_out = None if folder is None else git.head(folder)
    tips = [tip for tip in (commit, checked_out) if tip is not None]
    target = git.default_branch(root)
    if not tips or target is None:
        raise InvalidInput(
            f"What worktree {worktree!r} was merged with can't be told.", hint=Hint("name what was merged")
        )
    for tip in tips:
        if not codebase.history.is_merged(tip, target):
            raise InvalidInput(
                f"Worktree {worktree!r} at {tip[:12]} is not merged into {target} yet.",
                hint="Merge its branch first, or promote single units.",
            )
