"""The seed's circular-fix detector (G19-G21, S3-S6), over the shared attempt ledger instead of a map in one process."""

from __future__ import annotations

from mnemarch.code import git
from mnemarch.errors import Hint, InvalidInput
from mnemarch.log.act import Act, Log, receipt_for
from mnemarch.loops import attempts
from mnemarch.model.testrun import Outcome, TestRun
from mnemarch.model.value import replace
from mnemarch.policy.admission import checked_name, checked_text
from mnemarch.policy.loops import Attempt, failed_approaches
from mnemarch.text import fingerprint as fingerprints

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mnemarch.model.caller import Caller
    from mnemarch.model.event import Event, Receipt
    from mnemarch.model.outcome import ApproachValidation, FailedApproach, LoopVerdict
    from mnemarch.units.scene import Scene

_ERROR_BYTES_MAX = 1_048_576
_REASON_BYTES_MAX = 4_096


class CircularFixDetector:
    """Tells whether a task goes round in circles. Nothing is kept here: every answer is read from the log."""

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
        """Count a failure and say whether to go on (S5).

        The same error on an unchanged `tree` with no new approach is the same attempt: it is not counted again. The
        tree is a digest of the files; in a git repository it is read if it is not given. `tests` are those that failed.
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
        """The same for an act that is still to begin: what fits into no transaction is done here."""
        subject, _ = self._named(task_id)
        root = self._caller.root
        if seen.tree is None and root is not None:
            seen = replace(seen, tree=git.tree_digest(root))
        said = checked_text(error, "The error", _ERROR_BYTES_MAX)
        plan = None if approach is None else self._approach(approach)
        given = attempts.failure(self._log.store, subject, said, plan, seen)
        return lambda act: attempts.fail(act, subject, given, key)

    def settle(self, act: Act, run: TestRun, *, succeeded: bool) -> None:
        """A run of the task, in the act that is under way: if it `succeeded`, the task's failures no longer count.

        Else only those no longer count whose tests all passed now.
        """
        attempts.succeeded(act, *self._named(None), run, all_of_it=succeeded)

    def validate_approach(self, task_id: str | None, proposed: str) -> ApproachValidation:
        """Whether an approach is worth trying, asked before acting (G21). Nothing is recorded."""
        known = self._known(task_id)
        return attempts.validated(known, self._approach(proposed))

    def detect_repeated_approach(self, task_id: str | None, approach: str) -> bool:
        """Whether this approach already failed in the task, in whatever words."""
        known = self._known(task_id)
        return attempts.Likeness(self._approach(approach)).first(known.attempts) is not None

    def get_failed_approaches(self, task_id: str | None = None) -> list[FailedApproach]:
        """What was tried in the task and failed, since it last succeeded or was cleared."""
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
        """Why the task was called stuck, or None if it is not."""
        return self._known(task_id).stuck

    def mark_subtask_stuck(self, task_id: str | None, reason: str) -> Receipt:
        """Call the task stuck: every further attempt is blocked until a person clears it."""
        subject, task = self._named(task_id)
        why = self._reason(reason)
        return receipt_for(self._log.act(self._caller, lambda act: attempts.mark_stuck(act, subject, task, why)))

    def clear(self, task_id: str | None, reason: str) -> Receipt:
        """Forget the failures of a task and that it was stuck; for a person or an orchestrator."""
        subject, task = self._named(task_id)
        why = self._reason(reason)
        return receipt_for(self._log.act(self._caller, lambda act: attempts.clear_stuck(act, subject, task, why)))

    @staticmethod
    def hash_error(error: str) -> str:
        """The fingerprint of an error (S4): the same for the same fault, whatever its line numbers and values."""
        return fingerprints.fingerprint(error).hash

    def _known(self, task_id: str | None) -> attempts.Ledger:
        """What the task has behind it: read in one go, and compared afterwards, since that takes a while."""
        subject, _ = self._named(task_id)
        return self._log.store.read(lambda reader: attempts.ledger(reader, subject))

    def _named(self, task_id: str | None) -> tuple[str, str | None]:
        """The ledger that is meant. From inside a task no other can be named: its failures are its own (R3)."""
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
    """What counts the error of a run of tests, in a task that has staged these events; None if it has no error."""
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
