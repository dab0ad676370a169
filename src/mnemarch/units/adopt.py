"""A merged worktree's verified units go over into the project, each through the gate."""

from __future__ import annotations

from mnemarch.code import git
from mnemarch.errors import Hint, InvalidInput
from mnemarch.model.outcome import Adopted, Refused, Stored
from mnemarch.model.presence import Presence
from mnemarch.model.scope import Level, Scope
from mnemarch.model.unit import TRUSTED
from mnemarch.units.promote import promote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.code.codebase import Codebase
    from mnemarch.log.act import Ledger

_UNITS_MAX = 10_000


def adopt(log: Ledger, caller: Presence, codebase: Codebase | None, worktree: str, commit: str | None) -> Adopted:
    """Promote what the worktree verified to project level, once its branch is merged.

    `commit` is the merged commit, for a worktree whose folder is gone.
    """
    _check_merged(caller.root, codebase, worktree, commit)
    scope = Scope(org=caller.scope.org, project=caller.scope.project, worktree=worktree)
    there = Presence(caller.actor, scope, caller.session, caller.root)
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
