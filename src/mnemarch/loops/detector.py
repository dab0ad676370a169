"""The circular-fix detector, based on the shared attempt ledger in the log (G19-G21, S3-S6)."""

from __future__ import annotations

from mnemarch.errors import Hint, InvalidInput
from mnemarch.lazy import Lazy
from mnemarch.log.act import Act, Log, receipt_for
from mnemarch.loops import attempts
from mnemarch.model.testrun import Outcome, TestRun
from mnemarch.model.value import replace
from mnemarch.policy.admission import checked_name, checked_text
from mnemarch.policy.loops import Attempt, failed_approaches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mnemarch.code import git
    from mnemarch.model.caller import Caller
    from mnemarch.model.event import Event, Receipt
    from mnemarch.model.outcome import ApproachValidation, FailedApproach, LoopVerdict
    from mnemarch.text import fingerprint as fingerprints
    from mnemarch.units.scene import Scene
else:
    git = Lazy("mnemarch.code.git")
    fingerprints = Lazy("mnemarch.text.fingerprint")

_ERROR_BYTES_MAX = 1_048_576
_REASON_BYTES_MAX = 4_096


class CircularFixDetector:
    """Tells whether a task goes round in circles. It keeps no state: every answer is read from the log."""

    def __init__(self, log: Log, caller: Caller) -> None:
        self._log = log
        self._caller = caller

    def check(
        self,
        error: str,
        *,
        approach: str | None = None,
        task_id: str | None = None,
        key: str | None = None,
        tree: str | None = None,
        tests: Sequence[str] = (),
    ) -> LoopVerdict:
        """Count a failure, and return a verdict on going on (S5).

        The same error on an unchanged `tree` without a new approach is the same attempt, and not counted again. `tree`
        is a digest of the files; in a git repository it is computed by default. `tests` are the failed tests.
        """
        seen = attempts.Seen(tree=tree, tests=tuple(tests))
        return self._log.act(self._caller, self.counting(error, approach, seen, task_id=task_id, key=key))

    def counting(
        self,
        error: str,
        approach: str | None,
        seen: attempts.Seen,
        *,
        task_id: str | None = None,
        key: str | None = None,
    ) -> Callable[[Act], LoopVerdict]:
        """Like `check`, as a function for a later act. Slow work is done here, before the transaction."""
        subject, _ = self._named(task_id)
        root = self._caller.root
        if seen.tree is None and root is not None:
            seen = replace(seen, tree=git.tree_digest(root))
        said = checked_text(error, "The error", _ERROR_BYTES_MAX)
        plan = None if approach is None else self._approach(approach)
        given = attempts.failure(self._log.store, subject, said, plan, seen)
        return lambda act: attempts.fail(act, subject, given, key)

    def settle(self, act: Act, run: TestRun, *, succeeded: bool) -> None:
        """Clear the task's failures after a run, in the current act.

        If the task did not succeed, only clear failures whose tests all passed now.
        """
        attempts.succeeded(act, *self._named(None), run, all_of_it=succeeded)

    def validate_approach(self, task_id: str | None, proposed: str) -> ApproachValidation:
        """Whether an approach is worth trying (G21). Nothing is recorded."""
        known = self._known(task_id)
        return attempts.validated(known, self._approach(proposed))

    def detect_repeated_approach(self, task_id: str | None, approach: str) -> bool:
        """Whether this approach already failed in the task, in any wording."""
        known = self._known(task_id)
        return attempts.Likeness(self._approach(approach)).first(known.attempts) is not None

    def get_failed_approaches(self, task_id: str | None = None) -> list[FailedApproach]:
        """The approaches that failed in the task since it last succeeded or was cleared."""
        known = self._known(task_id).attempts
        if not known or self._named(task_id)[1] != self._caller.scope.task:
            return failed_approaches(known)
        from mnemarch.units.account import changes_before_failures
        from mnemarch.units.scene import told_of

        log = self._log.store.read(lambda reader: told_of(reader, self._caller))
        return failed_approaches(attempts.with_changes(known, changes_before_failures(log)))

    def failures(self) -> tuple[Attempt, ...]:
        """Every failure of the task since it last succeeded or was cleared."""
        return self._known(None).attempts

    def stuck_reason(self, task_id: str | None = None) -> str | None:
        """The reason why the task is stuck, or None if it is not."""
        return self._known(task_id).stuck

    def mark_subtask_stuck(self, task_id: str | None, reason: str) -> Receipt:
        """Mark the task as stuck. Every further attempt is blocked until a person or an orchestrator clears it."""
        subject, task = self._named(task_id)
        why = self._reason(reason)
        return receipt_for(self._log.act(self._caller, lambda act: attempts.mark_stuck(act, subject, task, why)))

    def clear(self, task_id: str | None, reason: str) -> Receipt:
        """Clear a task's failures and its stuck mark. Only a person or an orchestrator may."""
        subject, task = self._named(task_id)
        why = self._reason(reason)
        return receipt_for(self._log.act(self._caller, lambda act: attempts.clear_stuck(act, subject, task, why)))

    @staticmethod
    def hash_error(error: str) -> str:
        """The fingerprint of an error. It ignores line numbers and values (S4)."""
        return fingerprints.fingerprint(error).hash

    def _known(self, task_id: str | None) -> attempts.Ledger:
        """The task's ledger. It is compared after the read, because comparing is slow."""
        subject, _ = self._named(task_id)
        return self._log.store.read(lambda reader: attempts.ledger(reader, subject))

    def _named(self, task_id: str | None) -> tuple[str, str | None]:
        """The subject of a task's ledger, and the task. Raises if a seat inside a task names another task (R3)."""
        scope = self._caller.scope
        if task_id is None or task_id == scope.task:
            return attempts.subject_of(scope, scope.task), scope.task
        task = checked_name(task_id, "a task")
        if scope.task is not None:
            raise InvalidInput(
                f"This seat is in task {scope.task!r} and can't see the attempts of {task!r}.",
                hint=Hint("name that task or none"),
            )
        return attempts.subject_of(scope, task), task

    @staticmethod
    def _approach(text: str) -> str:
        return checked_text(text, "The approach", _REASON_BYTES_MAX * 4)

    @staticmethod
    def _reason(text: str) -> str:
        return checked_text(text, "The reason", _REASON_BYTES_MAX)


def counting_run(
    loops: CircularFixDetector,
    error: str | None,
    approach: str | None,
    run: TestRun,
    scene: Scene,
    staged: Sequence[Event],
) -> Callable[[Act], LoopVerdict] | None:
    """A function that counts the error of a test run in a later act. None without an error.

    `staged` are the events that the task has staged.
    """
    if error is None:
        return None
    from mnemarch.units.account import changes_before_failures, mended_in

    seen = attempts.Seen(
        tree=scene.tree or None,
        tests=tuple(run.named(Outcome.FAIL)),
        errors=run.errors,
        mended=tuple(mended_in(staged, run)),
        changes=changes_before_failures(staged),
        bodies=scene.bodies,
    )
    return loops.counting(error, approach, seen)
