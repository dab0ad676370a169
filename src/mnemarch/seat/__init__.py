"""Seat. Takes: who acts, and where. Gives: every verb of the memory, in the order of the data's path.

Never: does the work of a folder or a service below.
"""

from __future__ import annotations

from mnemarch.errors import Hint, InvalidInput, StoreUnavailable
from mnemarch.log.act import Act, Entry, append, append_alone, read_entry
from mnemarch.model.caller import Actor, Level, checked_id
from mnemarch.model.value import replace
from mnemarch.policy.admission import checked_count, checked_list, checked_text, refuse_made_otherwise
from mnemarch.seat.systems import Systems

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime
    from typing import Any, TypeVar

    from mnemarch.learning.core import CoreMemory
    from mnemarch.learning.working import WorkingMemoryManager
    from mnemarch.model.event import Event, EventType, Receipt
    from mnemarch.model.outcome import (
        Analysis,
        ApproachValidation,
        Dispute,
        Explanation,
        FailedApproach,
        InboxItem,
        LoopVerdict,
        Overview,
        Promotion,
        Refused,
        Settled,
        Stored,
    )
    from mnemarch.model.search import Found, Pack
    from mnemarch.model.testrun import TestRun
    from mnemarch.model.unit import Citation, Claim, Kind, Unit
    from mnemarch.services.inbox import Inbox

    T = TypeVar("T")
    Progress = Callable[[int], None]

_PAGE_MAX = 10_000
_REASON_BYTES_MAX = 4_096


class Seat(Systems):
    """The only entry point: staging, verification and recall. `UnitVerbs` has the lifecycle of a unit."""

    # 1. Staging: appends are not judged

    def log(
        self,
        kind: str,
        text: str,
        *,
        data: Mapping[str, Any] | None = None,
        key: str | None = None,
        occurred_at: datetime | None = None,
        session: str | None = None,
    ) -> Receipt:
        """Append to the log. Returns the receipt once the event is durable."""
        entry = Entry(kind=kind, text=text, data=data, key=key, occurred_at=occurred_at, session=session)
        read = read_entry(entry, self._engine.config.limits.text_bytes_max)
        return append_alone(self._engine.log, self.caller, entry, *read)

    def log_many(self, entries: Iterable[Entry | Mapping[str, Any] | tuple[str, str]]) -> list[Receipt]:
        """Append several entries in one transaction: all of them, or none."""
        limit = self._engine.config.limits.text_bytes_max
        read = [(entry, read_entry(entry, limit)) for entry in map(Entry.of, entries)]
        return self._act(lambda act: [append(act, entry, *ready) for entry, ready in read])

    @property
    def working(self) -> WorkingMemoryManager:
        """The working memory of this seat's task: its subject, its steps, and their reasons (M7)."""
        from mnemarch.learning.working import WorkingMemoryManager

        return WorkingMemoryManager(self._engine.log, self.caller, self)

    @property
    def core(self) -> CoreMemory:
        """The sections that are in every prompt of this seat, and the tools that edit them (M19)."""
        from mnemarch.learning.core import CoreMemory

        return CoreMemory(self._engine.log, self.caller, self)

    def validate_approach(self, approach: str) -> ApproachValidation:
        """Whether an approach has not failed yet in this task. Ask before acting. Nothing is recorded."""
        return self.loops.validate_approach(None, approach)

    def fail(self, error: str, *, approach: str | None = None, key: str | None = None) -> LoopVerdict:
        """Record a failure and the approach that led to it. The verdict says whether to go on."""
        return self._with_earlier(self.loops.check(error, approach=approach, key=key))

    def failed_approaches(self) -> list[FailedApproach]:
        """The approaches that failed in this task since it last succeeded or was cleared."""
        return self.loops.get_failed_approaches()

    def mark_stuck(self, reason: str) -> Receipt:
        """Mark the task as stuck. Every further attempt is blocked until a person clears it."""
        return self.loops.mark_subtask_stuck(None, reason)

    def clear_stuck(self, reason: str) -> Receipt:
        """Let the task start anew. Only for a person or an orchestrator."""
        return self.loops.clear(None, reason)

    def remember(
        self,
        content: str,
        *,
        kind: Kind | str = "fact",
        level: Level | str | None = None,
        domain: str = "global",
        citations: Sequence[Citation] = (),
        importance: float = 0.5,
        occurred_at: datetime | None = None,
        session: str | None = None,
        key: str | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> Stored | Refused:
        """Claim a statement. It becomes a unit, joins a unit with the same text, or is refused by a rule."""
        from mnemarch.model.unit import Claim

        unchecked: Any = citations
        claim = Claim(
            content=content,
            kind=kind,
            level=level,
            domain=domain,
            citations=unchecked,
            importance=importance,
            occurred_at=occurred_at,
            session=session,
            key=key,
            attributes={} if attributes is None else attributes,
        )
        return self.remember_many([claim])[0]

    def remember_many(self, claims: Iterable[Claim], progress: Progress | None = None) -> list[Stored | Refused]:
        """Claim many statements in order, a few hundred per transaction. All are checked before the first is stored."""
        self._engine.has_new_units = True
        all_claims = list(claims)
        refuse_made_otherwise(all_claims)
        return [self._with_current_trust(outcome) for outcome in self._intake().remember(all_claims, progress)]

    # 2. Gate: a verification triggers promotions

    def verify(
        self,
        passed: bool | None = None,
        *,
        run: Sequence[str] | TestRun | None = None,
        report: str | None = None,
        tests: Sequence[str] = (),
        commit: str | None = None,
        analysis: Analysis | Mapping[str, Any] | None = None,
        error: str | None = None,
        approach: str | None = None,
        account: bool = True,
    ) -> Promotion:
        """Verify the task: the gate judges its staged claims by each test, and an episode is stored.

        `run` is a test command to run, or the run that a host's hook saw. `report` is the file that a test runner
        wrote. `passed` and `tests` only report an outcome. `approach` says what was tried. After a failure, the
        answer's `loop` says whether to go on. Without `account`, the episode is left to `consolidate`.
        """
        from mnemarch.loops.detector import counting_run
        from mnemarch.units.scene import read_scene, scene_of
        from mnemarch.units.verify import Verification, read_ahead

        _require_one_way((passed, run, report), may_analyse=account or analysis is None)
        if passed is not None:
            seen = self._reported(passed, tests, commit, error, approach)
        elif tests or error is not None:
            raise InvalidInput("A run reports its own tests and errors.", hint=Hint("verify"))
        else:
            seen = self._witnessed(run, report, commit)
        loops = self.loops
        caller, codebase = self.caller, self._codebase()
        met = read_scene(self._engine.store, caller, codebase, seen, account=account)
        scene = scene_of(self._engine.log, caller, codebase, seen, met)
        # A test that failed before this task is no error of this task.
        own = seen.without(scene.set_aside)
        if error is None and not seen.passed and seen.witnessed:
            error = own.error
        count_failure = counting_run(loops, error, approach, own, scene, met.task.log)
        entry = None if approach is None else Entry(kind="approach", text=approach)
        tried = entry and (entry, *read_entry(entry, self._engine.config.limits.text_bytes_max))
        self._engine.has_new_units = True
        read_ahead(met.task, account=account)

        def judge(act: Act) -> tuple[Promotion, list[Unit]]:
            verification = Verification(act, seen, scene, met, account=account)
            succeeded = verification.succeeded
            if seen.witnessed or (succeeded and self.actor.kind == "human"):
                loops.settle(act, seen, succeeded=succeeded)
            loop = None if count_failure is None or succeeded else count_failure(act)
            # The episode includes this failure, or the approach that was tried before this success.
            receipt = append(act, *tried) if tried and succeeded else None if loop is None else loop.receipt
            met_before = [] if loop is None else self._met(act.transaction, loop)
            judged = replace(verification.judge(), loop=loop)
            return verification.told(judged, analysis, receipt) if account else judged, met_before

        judged = self._learned_from(*self._act(judge, durable=True), codebase)
        units = tuple(self._aged(unit) for unit in judged.units)
        return replace(judged, units=units, run=None if passed is not None else seen)

    def _reported(
        self, passed: bool, tests: Sequence[str], commit: str | None, error: str | None, approach: str | None
    ) -> TestRun:
        """The test run of a verification that only reports an outcome."""
        from mnemarch.model.testrun import Outcome, TestResult, TestRun

        if not isinstance(passed, bool):
            raise InvalidInput(f"passed must be True or False, not {passed!r}.", hint=Hint("verify"))
        if passed and error is not None:
            raise InvalidInput("A success has no error.", hint=Hint("only of a failure"))
        if approach is not None and error is None and not passed:
            raise InvalidInput("The result of the approach is missing.", hint=Hint("name the error"))
        names = [checked_text(name, "A test's name", _REASON_BYTES_MAX) for name in checked_list(tests, "tests")]
        outcome = Outcome.PASS if passed else Outcome.FAIL
        return TestRun(
            runner="",
            command="",
            results=tuple(TestResult(name, outcome) for name in dict.fromkeys(names)),
            exit_code=int(not passed),
            commit=self._full_hash(commit),
        )

    def _witnessed(self, run: Sequence[str] | TestRun | None, report: str | None, commit: str | None) -> TestRun:
        """The test run of a verification that runs the tests, or reads the file that a test runner wrote.

        A file that an agent hands in counts as reported, not as witnessed (R21).
        """
        from mnemarch.model.testrun import TestRun

        root = self.caller.root
        if report is not None:
            from mnemarch.witness.reports import read_report

            is_trusted = self.actor.kind in {"human", "orchestrator"}
            tested = self._full_hash(commit) or self._head()
            told, written = read_report(report, root=root)
            if commit is None:
                self._require_unedited(report, written)
            seen = replace(told, commit=tested, witnessed=is_trusted)
        elif isinstance(run, TestRun):
            seen = replace(run, commit=self._head())
        else:
            from mnemarch.witness.run import run_tests

            if commit is not None:
                raise InvalidInput("A run tests the checked-out code, not a commit.", hint=Hint("only reported"))
            said = checked_list(run, "run")
            words = [checked_text(word, "A word of the command", _REASON_BYTES_MAX) for word in said]
            if not self._engine.store.writable:
                why = "The memory can't be written from here, so the tests were not run."
                raise StoreUnavailable(why, hint="Get the right to its file and folder, or run them without verify.")
            configured = self._engine.config.witness.test_commands
            seen = replace(run_tests(words, root=root, configured=configured), commit=self._head())
        if not seen.ran:
            says = f"`{seen.command}` named no test that passed or failed, so nothing was verified."
            raise InvalidInput(says, hint=Hint("no test named"))
        return seen

    def _require_unedited(self, report: str, written: Mapping[str, float]) -> None:
        """Raise if a test was edited after its report was written, and the edit is not committed.

        A checkout makes files newer that nobody edited.
        """
        from mnemarch.code.tests import edited_since

        codebase = self._codebase()
        edited = None if codebase is None else edited_since(codebase, written)
        if edited is not None:
            raise InvalidInput(f"{edited} was edited after {report} was written.", hint=Hint("run the tests again"))

    def promote(
        self, unit_id: str, to: Level | str = Level.PROJECT, *, expected_version: int | None = None
    ) -> Stored | Refused:
        """Move a unit to a wider level, through the gate."""
        from mnemarch.units.status import promote

        level = Level.parse(to)
        self.scope.at(level)
        whole = self._whole(unit_id)
        outcome = self._act(lambda act: promote(act, whole, level, expected_version), durable=True)
        return self._with_current_trust(outcome)

    # 3. Published: `UnitVerbs` has the lifecycle of a unit; these verbs list and show

    def events(
        self,
        *,
        task: str | None = None,
        worktree: str | None = None,
        actor: Actor | str | None = None,
        types: Sequence[EventType | str] | None = None,
        since: datetime | None = None,
        limit: int = 100,
        after: str | None = None,
        beyond: int | None = None,
    ) -> list[Event]:
        """The events that this seat may read, newest first. `after` is the last id of the previous page.

        With `beyond`, the events after that position, oldest first: use it to follow the log.

        People and orchestrators read all of their project; an agent reads the events of its own scopes. A type may
        name a group: "unit" stands for every type that begins with "unit.".
        """
        from mnemarch.services import overview

        wanted: dict[str, Any] = {"task": task, "worktree": worktree, "actor": actor, "types": types, "since": since}
        return overview.events(self._engine, self.caller, **wanted, limit=limit, after=after, beyond=beyond)

    def status(self) -> Overview:
        """The project at a glance: worktrees, agents at work, tasks, new knowledge, and waiting items."""
        from mnemarch.services import overview

        return overview.overview(self._engine, self.caller)

    def show(self, id: str) -> Explanation | Dispute | Event:
        """The thing with this id: a unit or decision, explained; a conflict or merge proposal; an entry of the log."""
        from mnemarch.model.unit import Unit
        from mnemarch.services import overview

        named = self._read(lambda reader: overview.named(reader, self.caller, id))
        return self._explained(named) if isinstance(named, Unit) else named

    def inbox(self, limit: int = 20) -> list[InboxItem]:
        """The items of the project that wait for a person or an orchestrator, the most wanted first."""
        return self._inbox().items(checked_count(limit, "limit", _PAGE_MAX))

    def accept(self, ids: str | Sequence[str], progress: Progress | None = None) -> list[Settled]:
        """Accept inbox items. A claim moves to the project, a request becomes a decision, a stuck task continues."""
        return self._settled(ids, None, progress)

    def decline(self, ids: str | Sequence[str], reason: str, progress: Progress | None = None) -> list[Settled]:
        """Decline inbox items, with a reason. A declined claim leaves recall."""
        return self._settled(ids, checked_text(reason, "The reason", _REASON_BYTES_MAX), progress)

    def _inbox(self) -> Inbox:
        from mnemarch.services.inbox import Inbox

        return Inbox(self._engine, self.caller, self.decisions)

    def _settled(self, ids: str | Sequence[str], rejection: str | None, progress: Progress | None) -> list[Settled]:
        self._engine.has_new_units = True
        named = [ids] if isinstance(ids, str) else checked_list(ids, "ids")
        inbox = self._inbox()
        return inbox.settle([checked_id(item, "an id") for item in named], rejection, progress)

    # 4. Recall

    def recall(
        self,
        query: str,
        k: int = 8,
        *,
        kinds: Sequence[Kind | str] | None = None,
        domain: str | None = None,
        phase: str | None = None,  # noqa: ARG002 - routes work, never filters memory (D17)
        at_commit: str | None = None,
        as_of: datetime | None = None,
        floor: float | str = 0.0,
    ) -> Found:
        """The units that answer a question, in order, with reasons; and what was withheld, and why.

        They hold in the code that is checked out here; `at_commit` looks at another commit, `as_of` back in time.
        `found.fit` says how likely it is that anything answers: under the `floor` there are no items ("auto": 0.12).
        """
        from mnemarch.services.recall import Answering

        return Answering(self._engine, self.caller).recall(
            query, k, kinds=kinds, domain=domain, at_commit=at_commit, as_of=as_of, floor=floor
        )

    # 5. Context

    def context(
        self,
        query: str,
        tokens: int = 2_000,
        *,
        count: Callable[[str], int] | None = None,
        kinds: Sequence[Kind | str] | None = None,
        domain: str | None = None,
        phase: str | None = None,  # noqa: ARG002 - routes work, never filters memory (D17)
        at_commit: str | None = None,
        as_of: datetime | None = None,
        floor: float | str = 0.0,
        without: Sequence[str] = (),
    ) -> Pack:
        """The answer to a question as one text for a model, within a budget of tokens. `count` counts a text's tokens.

        `floor` works as in `recall`. The units `without` are left out, since the model has them already.
        """
        from mnemarch.services.recall import Answering

        where: dict[str, Any] = {"kinds": kinds, "domain": domain, "at_commit": at_commit, "as_of": as_of}
        return Answering(self._engine, self.caller).context(query, tokens, count, without=without, floor=floor, **where)


def _require_one_way(ways: Sequence[object], *, may_analyse: bool) -> None:
    if sum(way is not None for way in ways) != 1:
        raise InvalidInput("A verification is one of these: a run, a report, or your own word.", hint=Hint("verify"))
    if not may_analyse:
        raise InvalidInput("An analysis belongs to the episode, which comes later.", hint="Leave out one of the two.")
