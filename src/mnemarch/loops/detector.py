"""The circular-fix detector, and the ledger of a task's attempts that it reads from the log (G19-G21, S3-S6, R9).

The log is the ledger, so all agents share it and it survives processes.
"""

from __future__ import annotations

from mnemarch.errors import Conflict, Hint, InvalidInput
from mnemarch.lazy import Lazy
from mnemarch.log.act import Act, Log, receipt_for, without_secrets
from mnemarch.model.caller import ActorKind, Caller, Scope
from mnemarch.model.event import Event, EventType, Receipt
from mnemarch.model.json_text import to_json
from mnemarch.model.outcome import ApproachValidation, FailedApproach, LoopVerdict, Verdict
from mnemarch.model.stamps import blake2b
from mnemarch.model.testrun import Outcome, TestRun
from mnemarch.model.value import Frozen, replace
from mnemarch.policy.admission import checked_key, checked_name, checked_text
from mnemarch.policy.loops import Attempt, Judgement, failed_approaches, judged, quoted, same_attempt
from mnemarch.policy.permissions import Deed
from mnemarch.text import FINGERPRINT_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from mnemarch.code import git
    from mnemarch.ports import Store
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.text import approach as approaches
    from mnemarch.text import fingerprint as fingerprints
    from mnemarch.text.fingerprint import Fingerprint
    from mnemarch.units.scene import Scene
else:
    # Each takes a while to load, and most verifications need neither.
    approaches = Lazy("mnemarch.text.approach")
    fingerprints = Lazy("mnemarch.text.fingerprint")
    git = Lazy("mnemarch.code.git")

_ERROR_BYTES_MAX = 1_048_576
_REASON_BYTES_MAX = 4_096
_ERROR_CHARS_MAX = 16_384
_LINE_CHARS_MAX = 300
_TESTS_MAX = 100
_ENTRIES_MAX = 200
# Events of a ledger that are read at most. Older attempts of such a task don't help any more.
_REMEMBERED_MAX = 1_000
_READ_FIRST = 30
_ERASED = "[ERASED]"


class Ledger(Frozen):
    """The attempts of a task since its last success, and the reason if it was marked as stuck."""

    # Includes the attempts whose tests passed since, while other tests failed.
    history: tuple[Attempt, ...]
    stuck: str | None
    # The events of attempts by id, including attempts that passing tests have cleared.
    events: dict[str, Event]

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """The attempts that still count."""
        return tuple(attempt for attempt in self.history if not attempt.has_passed)


def subject_of(scope: Scope, task: str | None) -> str:
    """The subject of a task's ledger in the log. All worktrees of a project share the ledger of a task."""
    if task is None:
        return f"loops:{scope.key}"
    return f"loops:{blake2b(to_json([scope.org, scope.project, task]).encode(), digest_size=16).hexdigest()}"


def ledger(reader: Reader, subject: str) -> Ledger:
    attempts: dict[str, Attempt] = {}
    events: dict[str, Event] = {}
    stuck: str | None = None
    recorded = _recorded(reader, subject)
    reverted = {(event.payload or {}).get("reverts") for event in recorded if event.type is EventType.ATTEMPTS_CLEARED}
    for event in recorded:
        if event.id in reverted:
            continue
        payload = event.payload or {}  # If it was erased, the event still counts, without its text.
        if event.type is EventType.ATTEMPT_FAILED and payload:
            # A failure that tells an earlier one in full replaces it.
            attempts[payload.get("tells") or event.id] = _attempt(event)
            events[event.id] = event
            stuck = payload.get("stuck", stuck)
        elif event.type is EventType.TASK_STUCK:
            stuck = payload.get("reason", _ERASED)
        elif event.type is EventType.ATTEMPTS_CLEARED:
            cleared = payload.get("attempts")
            gone = {at: each for at, each in attempts.items() if cleared is None or each.event_id in cleared}
            if cleared is not None and "task" in payload:  # Their tests passed. An undo names no task.
                attempts |= {at: replace(each, has_passed=True) for at, each in gone.items()}
            else:
                attempts = {at: each for at, each in attempts.items() if at not in gone}
            is_unstuck = payload.get("unstuck", event.actor.kind is not ActorKind.AGENT)
            stuck = None if is_unstuck else payload.get("stuck", stuck)
    return Ledger(history=tuple(attempts.values()), stuck=stuck, events=events)


def _recorded(reader: Reader, subject: str) -> list[Event]:
    """The events of a ledger since its last restart. Older events are not read."""
    events = list(reader.events_of_subject(subject, last=_READ_FIRST))
    begins = [at for at, event in enumerate(events) if _begins_anew(event)]
    if begins or len(events) < _READ_FIRST:
        return events[begins[-1] :] if begins else events
    return list(reader.events_of_subject(subject, last=_REMEMBERED_MAX))


def _begins_anew(event: Event) -> bool:
    """Whether the ledger restarts here: all attempts were cleared, and the event says whether the task is stuck."""
    payload = (event.payload or {}) if event.type is EventType.ATTEMPTS_CLEARED else {}
    return "attempts" not in payload and (payload.get("unstuck") is True or "stuck" in payload)


def _attempt(event: Event) -> Attempt:
    payload = event.payload or {}
    known = payload["fingerprint"]
    if known["version"] != FINGERPRINT_VERSION:
        made = fingerprints.fingerprint(payload["error"])
        known = {"hash": made.hash, "core": made.core}
    return Attempt(
        event_id=event.id,
        at=event.recorded_at,
        actor=str(event.actor),
        fault=known["hash"],
        summary=known["core"],
        approach=payload["approach"],
        first=payload["first"] or (event.id if payload["approach"] else None),
        is_plan=payload.get("is_plan", True),
        tree=payload.get("tree"),
        tests=tuple(payload.get("tests", ())),
        line=payload.get("line") or "",
    )


class Likeness:
    """Finds attempts of one approach, in any wording. Each wording is compared only once."""

    def __init__(self, approach: str) -> None:
        self._wanted = approaches.approach(approach)
        self.is_plan = self._wanted.is_plan
        self._is_same: dict[str, bool] = {}

    def first(self, attempts: tuple[Attempt, ...]) -> str | None:
        """The id of the first attempt with this approach, or None if it is new."""
        return next((attempt.first for attempt in attempts if attempt.approach and self._is(attempt.approach)), None)

    def _is(self, other: str) -> bool:
        if other not in self._is_same:
            self._is_same[other] = approaches.same_approach(approaches.approach(other), self._wanted)
        return self._is_same[other]


class Seen(Frozen):
    """Observations about a failure besides its error."""

    # Digest of the files, and the names of failed tests.
    tree: str | None = None
    tests: tuple[str, ...] = ()
    # All errors of the run with their tests, and the keys of earlier faults whose tests pass now.
    errors: Mapping[str, Sequence[str]] = {}
    mended: tuple[str, ...] = ()
    # Changes before each earlier failure, by event id, and before this one under "". They are shown but not stored, so
    # they disappear when the log entries are erased.
    changes: Mapping[str, tuple[str, ...]] = {}
    # Hashes of the failed tests' source lines.
    bodies: Mapping[str, str] = {}


class Failure(Frozen):
    """A parsed failure. It is parsed before the transaction, because a long output takes a while."""

    error: str
    line: str
    fault: Fingerprint
    approach: str | None
    likeness: Likeness | None
    redacted: tuple[str, ...]
    # The faults of the run if there are several. An episode tells each of them.
    faults: list[dict[str, Any]]
    seen: Seen


def failure(store: Store, subject: str, error: str, approach: str | None, seen: Seen) -> Failure:
    likeness = None if approach is None else Likeness(approach)
    if likeness is not None:
        # Compare with earlier approaches now, so that the act only compares new ones.
        likeness.first(store.read(lambda reader: ledger(reader, subject)).history)
    fault = fingerprints.fingerprint(error)
    (said, plan), kinds = without_secrets([_cut(error), approach])
    faults = _faults(seen.errors) if len(seen.errors) > 1 else []
    return Failure(said, _line(said), fault, plan, likeness, kinds, faults, seen)


def _faults(errors: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """The distinct faults of a run, each with its key, its telling line, and its tests. Empty if there is only one."""
    faults: dict[str, dict[str, Any]] = {}
    for error, tests in errors.items():
        (said,), _ = without_secrets([_cut(error)])
        key = fingerprints.fingerprint(error).hash
        known = faults.setdefault(key, {"key": key, "line": _line(said), "tests": []})
        known["tests"] += list(tests)[:_TESTS_MAX]
    return list(faults.values()) if len(faults) > 1 else []


def _line(error: str) -> str:
    return fingerprints.telling_line(error)[:_LINE_CHARS_MAX]


def fail(act: Act, subject: str, given: Failure, key: str | None = None) -> LoopVerdict:
    """Record a failure and judge it in one act, so that concurrent failures of many agents are all counted."""
    key = None if key is None else checked_key(key)
    if key is not None:
        earlier = act.transaction.event_for_key(act.caller.scope_key, str(act.caller.actor), key)
        if earlier is not None:
            return _again(earlier, subject, given)
    before = ledger(act.transaction, subject)
    fault, seen = given.fault, given.seen
    new = Attempt(
        event_id="",
        at=act.now,
        actor=str(act.caller.actor),
        fault=fault.hash,
        summary=fault.core,
        approach=given.approach,
        first=None if given.likeness is None else given.likeness.first(before.history),
        is_plan=given.likeness is None or given.likeness.is_plan,
        tree=seen.tree,
        tests=seen.tests,
        line=given.line,
    )
    told = same_attempt(before.attempts, new)
    if told is not None and (new.approach is None or told.approach is not None) and before.stuck is None:
        return _verdict(before.events[told.event_id], duplicate=True)
    counted = tuple(attempt for attempt in before.history if attempt is not told)
    judgement = judged(counted, new, before.stuck, act.config.loops.threshold)
    payload: dict[str, object] = {
        "error": given.error,
        "line": given.line,
        "fingerprint": {
            "hash": fault.hash,
            "kind": fault.kind,
            "core": fault.core,
            "version": FINGERPRINT_VERSION,
        },
        "approach": given.approach,
        "first": new.first,
        "verdict": {name: getattr(judgement, name) for name in Judgement.__match_args__},
    }
    optional: dict[str, Any] = {"is_plan": None if new.is_plan else False, "tree": seen.tree}
    # Each failure repeats the stuck reason, because only a limited number of events is read back.
    optional |= {"tells": None if told is None else told.event_id, "stuck": before.stuck}
    lists = {"tests": list(seen.tests), "faults": given.faults, "mended": list(seen.mended)}
    optional |= {name: items or None for name, items in lists.items()} | {"bodies": dict(seen.bodies) or None}
    payload |= {name: item for name, item in optional.items() if item is not None}
    event, _ = act.record(EventType.ATTEMPT_FAILED, payload, subject=subject, key=key)
    verdict = _verdict(event, duplicate=False, redacted=given.redacted)
    if not seen.changes:
        return verdict
    *others, new = with_changes([*counted, new], seen.changes)
    in_full = judged(others, new, before.stuck, act.config.loops.threshold)
    return replace(verdict, instruction=in_full.instruction)


def with_changes(attempts: Sequence[Attempt], changes: Mapping[str, tuple[str, ...]]) -> list[Attempt]:
    """The attempts, each with the changes before it."""
    return [replace(attempt, changes=changes.get(attempt.event_id, ())) for attempt in attempts]


def _cut(error: str) -> str:
    """The beginning and end of a long output, which usually show the failure."""
    if len(error) <= _ERROR_CHARS_MAX:
        return error
    half = _ERROR_CHARS_MAX // 2
    return f"{error[:half]}\n… ({len(error)} characters in all) …\n{error[-half:]}"


def _verdict(event: Event, *, duplicate: bool, redacted: tuple[str, ...] = ()) -> LoopVerdict:
    record = (event.payload or {})["verdict"]
    receipt = receipt_for(event, duplicate=duplicate, redacted=redacted)
    return LoopVerdict(**record | {"type": Verdict(record["type"])}, receipt=receipt)


def _again(earlier: Event, subject: str, given: Failure) -> LoopVerdict:
    """The first verdict, if this is the same failure again. Raises Conflict for another failure."""
    payload = earlier.payload or {}
    tells = (payload.get("error"), payload.get("approach")) == (given.error, given.approach)
    if earlier.type is not EventType.ATTEMPT_FAILED or earlier.subject != subject or not tells:
        raise Conflict(
            f"This key already stands for event {earlier.id}, which is another failure or another task's, "
            "or was erased.",
            hint="Use a new key for a new failure; nothing was stored.",
        )
    return _verdict(earlier, duplicate=True)


def validated(known: Ledger, approach: str) -> ApproachValidation:
    """Whether an approach is still worth trying in this task, with the reason if not (G21)."""
    history = tuple(failed_approaches(known.attempts))
    if known.stuck is not None:
        return ApproachValidation(
            valid=False,
            reason=f"The task is stuck: {quoted(known.stuck)}.",
            suggestion="Ask a person; only a person or an orchestrator can clear it.",
            failed_history=history,
        )
    first = Likeness(approach).first(known.attempts)
    if first is None:
        return ApproachValidation(valid=True, reason="", suggestion="", failed_history=history)
    tries = [attempt for attempt in known.attempts if attempt.first == first]
    return ApproachValidation(
        valid=False,
        reason=f"This approach already failed: {quoted(tries[-1].line or tries[-1].summary)}",
        suggestion="Try an alternative, or ask for human intervention.",
        failed_history=tuple(failed_approaches(tries)),
    )


def blocked_tasks(reader: Reader, scope: Scope, since: int, limit: int) -> list[Event]:
    """The failures after which the loop guard blocks a task below a scope, newest first. Not those of stuck tasks."""
    newest: dict[str, Event] = {}
    for event in reader.events_back(scope, types=[EventType.ATTEMPT_FAILED], since=since, limit=limit):
        newest.setdefault(event.subject or "", event)
    verdicts = [(event, (event.payload or {}).get("verdict", {})) for event in newest.values()]
    blocks = [event for event, verdict in verdicts if verdict.get("type") == Verdict.BLOCK]
    blocking = [(event, ledger(reader, event.subject or "")) for event in blocks]
    open_ones = [(event, known) for event, known in blocking if known.stuck is None]
    return [event for event, known in open_ones if event.id in {attempt.event_id for attempt in known.attempts}]


def mark_stuck(act: Act, subject: str, task: str | None, reason: str) -> Event:
    event, _ = act.record(EventType.TASK_STUCK, {"task": task, "reason": reason}, subject=subject)
    return event


def clear_stuck(act: Act, subject: str, task: str | None, reason: str) -> Event:
    """Clear all attempts and the stuck mark, for a person or an orchestrator."""
    act.require_at(Deed.UNBLOCK, act.caller.scope.level, f"clear task {task!r}")
    payload = {"task": task, "reason": reason, "unstuck": True}
    event, _ = act.record(EventType.ATTEMPTS_CLEARED, payload, subject=subject)
    return event


def forget(act: Act, subject: str, event_ids: Sequence[str], entries: Sequence[str], reason: str) -> dict[str, Any]:
    """Clear some attempts, and the stuck mark if one of these events set it last. Returns the input of `bring_back`.

    Changes in the newest of these log `entries` no longer count as tried.
    """
    calls = [event for event in act.transaction.events_of_subject(subject) if event.type is EventType.TASK_STUCK]
    stuck = ledger(act.transaction, subject).stuck if calls and calls[-1].id in event_ids else None
    payload = {"reason": reason, "attempts": list(event_ids), "unstuck": stuck is not None}
    payload |= {"entries": list(entries[-_ENTRIES_MAX:])} if entries else {}
    cleared, _ = act.record(EventType.ATTEMPTS_CLEARED, payload, subject=subject)
    return {"subject": subject, "cleared": cleared.id, "attempts": list(event_ids), "stuck": stuck}


def bring_back(act: Act, forgotten: Mapping[str, Any]) -> None:
    """Revert `forget`: count the attempts again, and mark the task as stuck again, as the actor who marked it."""
    subject, stuck = forgotten["subject"], forgotten["stuck"]
    payload = {"reason": "reverted", "attempts": [], "unstuck": False, "reverts": forgotten["cleared"]}
    act.record(EventType.ATTEMPTS_CLEARED, payload, subject=subject)
    if stuck is not None:
        told = [act.transaction.event(id) for id in forgotten["attempts"]]
        call = [event for event in told if event is not None and event.type is EventType.TASK_STUCK][-1]
        mark_stuck(act.by(Caller(call.actor, call.scope, call.session)), subject, call.scope.task, stuck)


def clear_after_success(act: Act, subject: str, task: str | None, run: TestRun, *, all_of_it: bool) -> None:
    """Clear the attempts after a success. Without `all_of_it`, only those whose failed tests all pass in this run.

    A stuck task stays stuck until a person or an orchestrator clears it.
    """
    before = ledger(act.transaction, subject)
    attempts = before.attempts
    payload: dict[str, object] = {"task": task, "reason": "verified", "unstuck": False, "stuck": before.stuck}
    if not all_of_it:
        passed = frozenset(run.named(Outcome.PASS))
        attempts = tuple(attempt for attempt in attempts if attempt.tests and passed.issuperset(attempt.tests))
        payload["attempts"] = [attempt.event_id for attempt in attempts]
    elif unseen := run.unseen(dict.fromkeys(test for attempt in attempts for test in attempt.tests[:_TESTS_MAX])):
        payload["unseen"] = unseen
    if attempts:
        act.record(EventType.ATTEMPTS_CLEARED, payload, subject=subject)


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
        seen = Seen(tree=tree, tests=tuple(tests))
        return self._log.act(self._caller, self.counting(error, approach, seen, task_id=task_id, key=key))

    def counting(
        self,
        error: str,
        approach: str | None,
        seen: Seen,
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
        given = failure(self._log.store, subject, said, plan, seen)
        return lambda act: fail(act, subject, given, key)

    def settle(self, act: Act, run: TestRun, *, succeeded: bool) -> None:
        """Clear the task's failures after a run, in the current act.

        If the task did not succeed, only clear failures whose tests all passed now.
        """
        clear_after_success(act, *self._named(None), run, all_of_it=succeeded)

    def validate_approach(self, task_id: str | None, proposed: str) -> ApproachValidation:
        """Whether an approach is worth trying (G21). Nothing is recorded."""
        known = self._known(task_id)
        return validated(known, self._approach(proposed))

    def detect_repeated_approach(self, task_id: str | None, approach: str) -> bool:
        """Whether this approach already failed in the task, in any wording."""
        known = self._known(task_id)
        return Likeness(self._approach(approach)).first(known.attempts) is not None

    def get_failed_approaches(self, task_id: str | None = None) -> list[FailedApproach]:
        """The approaches that failed in the task since it last succeeded or was cleared."""
        known = self._known(task_id).attempts
        if not known or self._named(task_id)[1] != self._caller.scope.task:
            return failed_approaches(known)
        from mnemarch.units.account import changes_before_failures
        from mnemarch.units.scene import told_of

        log = self._log.store.read(lambda reader: told_of(reader, self._caller))
        return failed_approaches(with_changes(known, changes_before_failures(log)))

    def failures(self) -> tuple[Attempt, ...]:
        """Every failure of the task since it last succeeded or was cleared."""
        return self._known(None).attempts

    def stuck_reason(self, task_id: str | None = None) -> str | None:
        """The reason why the task is stuck, or None if it is not."""
        return self._known(task_id).stuck

    def mark_subtask_stuck(self, task_id: str | None, reason: str) -> Receipt:
        """Mark the task as stuck. Every further attempt is blocked until a person or an orchestrator clears it."""
        return self._recorded(mark_stuck, task_id, reason)

    def clear(self, task_id: str | None, reason: str) -> Receipt:
        """Clear a task's failures and its stuck mark. Only a person or an orchestrator may."""
        return self._recorded(clear_stuck, task_id, reason)

    def _recorded(
        self, record: Callable[[Act, str, str | None, str], Event], task_id: str | None, reason: str
    ) -> Receipt:
        named, why = self._named(task_id), checked_text(reason, "The reason", _REASON_BYTES_MAX)
        return receipt_for(self._log.act(self._caller, lambda act: record(act, *named, why)))

    @staticmethod
    def hash_error(error: str) -> str:
        """The fingerprint of an error. It ignores line numbers and values (S4)."""
        return fingerprints.fingerprint(error).hash

    def _known(self, task_id: str | None) -> Ledger:
        """The task's ledger. It is compared after the read, because comparing is slow."""
        subject, _ = self._named(task_id)
        return self._log.store.read(lambda reader: ledger(reader, subject))

    def _named(self, task_id: str | None) -> tuple[str, str | None]:
        """The subject of a task's ledger, and the task. Raises if a seat inside a task names another task (R3)."""
        scope = self._caller.scope
        if task_id is None or task_id == scope.task:
            return subject_of(scope, scope.task), scope.task
        task = checked_name(task_id, "a task")
        if scope.task is not None:
            raise InvalidInput(
                f"This seat is in task {scope.task!r} and can't see the attempts of {task!r}.",
                hint=Hint("name that task or none"),
            )
        return subject_of(scope, task), task

    @staticmethod
    def _approach(text: str) -> str:
        return checked_text(text, "The approach", _REASON_BYTES_MAX * 4)


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

    seen = Seen(
        tree=scene.tree or None,
        tests=tuple(run.named(Outcome.FAIL)),
        errors=run.errors,
        mended=tuple(mended_in(staged, run)),
        changes=changes_before_failures(staged),
        bodies=scene.bodies,
    )
    return loops.counting(error, approach, seen)
