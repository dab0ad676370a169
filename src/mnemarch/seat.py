"""Seat: who acts, and where. Every verb, in the order of the data's path; the rooms below do the work."""

from __future__ import annotations

from mnemarch.errors import Hint, InvalidInput
from mnemarch.log.append import Entry, append
from mnemarch.model.caller import Level, checked_id
from mnemarch.model.testrun import Outcome
from mnemarch.model.value import replace
from mnemarch.policy.admission import checked_list, checked_text
from mnemarch.unit_verbs import UnitVerbs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime
    from typing import Any, TypeVar

    from mnemarch.decisions.decisions import Decisions
    from mnemarch.graph.orchestrator import MemoryOrchestrator
    from mnemarch.log.act import Act
    from mnemarch.loops.detector import CircularFixDetector
    from mnemarch.model.citation import Citation
    from mnemarch.model.event import Receipt
    from mnemarch.model.outcome import (
        Adopted,
        Analysis,
        ApproachValidation,
        FailedApproach,
        LoopVerdict,
        Promotion,
        Refused,
        Stored,
    )
    from mnemarch.model.search import Found, Pack
    from mnemarch.model.testrun import TestRun
    from mnemarch.model.unit import Claim, Kind

    T = TypeVar("T")
    Progress = Callable[[int], None]

_PAGE_MAX = 10_000
_REASON_BYTES_MAX = 4_096


class Seat(UnitVerbs):
    """The only way in: stage, verify, recall here; the life of a unit in `UnitVerbs`."""

    # 1. Staging: append freely

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
        """Append to the log; the receipt comes once the event is durable."""
        entry = Entry(kind=kind, text=text, data=data, key=key, occurred_at=occurred_at, session=session)
        return self._act(lambda act: append(act, entry))

    def log_many(self, entries: Iterable[Entry | Mapping[str, Any] | tuple[str, str]]) -> list[Receipt]:
        """Append several entries in one transaction: all of them, or none."""
        checked = [Entry.of(entry) for entry in entries]
        return self._act(lambda act: [append(act, entry) for entry in checked])

    @property
    def loops(self) -> CircularFixDetector:
        """Whether this seat's task goes round in circles."""
        from mnemarch.loops.detector import CircularFixDetector

        return CircularFixDetector(self._engine.log, self.caller)

    @property
    def decisions(self) -> Decisions:
        """What was decided, why, whether it still holds, and what changing it would reach."""
        from mnemarch.decisions.decisions import Decisions

        return Decisions(self._engine.log, self.caller, self._intake())

    @property
    def graph(self) -> MemoryOrchestrator:
        """What this actor asks and learns, session by session, kept in the log (A1)."""
        return self._engine.graph(self.caller)

    def validate_approach(self, approach: str) -> ApproachValidation:
        """Whether an approach has not failed yet in this task; to be asked before acting. Nothing is recorded."""
        return self.loops.validate_approach(None, approach)

    def fail(self, error: str, *, approach: str | None = None, key: str | None = None) -> LoopVerdict:
        """Record that something failed, and after which approach; the verdict says whether to go on."""
        return self.loops.check(error, approach=approach, key=key)

    def failed_approaches(self) -> list[FailedApproach]:
        """What was tried in this task and failed, since it last succeeded or was cleared."""
        return self.loops.get_failed_approaches()

    def mark_stuck(self, reason: str) -> Receipt:
        """Call the task stuck: every further attempt is blocked until a person clears it."""
        return self.loops.mark_subtask_stuck(None, reason)

    def clear_stuck(self, reason: str) -> Receipt:
        """Let the task start anew; for a person or an orchestrator."""
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
        """Claim something. It becomes a unit, joins one that says the same, or is refused by a rule."""
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
        """Claim many things in order, a few hundred to a transaction. All are checked before the first is stored."""
        self._engine.has_new_units = True
        return [self._with_current_trust(outcome) for outcome in self._intake().remember(claims, progress)]

    # 2. Gate: verify is what triggers promotion

    def verify(
        self,
        passed: bool | None = None,
        *,
        run: Sequence[str] | None = None,
        report: str | None = None,
        tests: Sequence[str] = (),
        commit: str | None = None,
        analysis: Analysis | Mapping[str, Any] | None = None,
        error: str | None = None,
        approach: str | None = None,
    ) -> Promotion:
        """Verify the task: the gate judges what it staged, and an episode is kept.

        `run` is a test command that is run now, `report` a file or folder that a runner wrote; without them `passed`
        and `tests` are what the caller says. Of a failure, say after which `approach` (and, without a run, with which
        `error`), and the answer's `loop` tells whether to go on.
        """
        from mnemarch.units.verify import verify

        if [passed, run, report].count(None) != 2 or (passed is not None and not isinstance(passed, bool)):
            raise InvalidInput("Verify takes one of: a run, a report, or what passed.", hint=Hint("verify"))
        seen = None
        if passed is None:
            if tests or error is not None:
                raise InvalidInput("Tests and errors are read from the run.", hint=Hint("only reported"))
            seen = self._tests_seen(run, report, commit)
            passed, tests, commit = seen.passed, seen.named(Outcome.PASS), seen.commit
            error, approach = (None, None) if passed else (seen.error, approach)
        if passed and not (error is None and approach is None):
            raise InvalidInput("A success has no error to report.", hint=Hint("only of a failure"))
        if approach is not None and error is None:
            raise InvalidInput("What came of the approach?", hint=Hint("name the error"))
        names = [checked_text(name, "A test's name", _REASON_BYTES_MAX) for name in checked_list(tests, "tests")]
        full_hash = self._full_hash(commit)
        loops = self.loops
        count_failure = None if error is None else loops.counting(error, approach)
        self._engine.has_new_units = True

        def judge(act: Act) -> Promotion:
            judged = verify(act, passed=passed, tests=names, commit=full_hash, analysis=analysis)
            if passed:
                loops.settle(act)
            return replace(judged, loop=None if count_failure is None else count_failure(act))

        judged = self._act(judge, durable=True)
        units = tuple(self._aged(unit) for unit in judged.units)
        return replace(judged, units=units, run=seen, witnessed=seen is not None and seen.witnessed)

    def _tests_seen(self, run: Sequence[str] | None, report: str | None, commit: str | None) -> TestRun:
        """The tests of a command that is run now, or of a report. A report of an agent is only what it says (R21)."""
        root = self.caller.root
        seen: TestRun
        if report is not None:
            from mnemarch.witness.reports import read_report

            trusted = self.actor.kind != "agent" and commit is not None
            seen = replace(read_report(report, root=root), commit=commit, witnessed=trusted)
        else:
            from mnemarch.witness.run import run_tests

            if commit is not None:
                raise InvalidInput("A run tests what is checked out.", hint=Hint("only reported"))
            words = checked_list(run, "run")
            for word in words:
                checked_text(word, "A word of the command", _REASON_BYTES_MAX)
            configured = self._engine.config.witness.test_commands
            seen = replace(run_tests(words, root=root, configured=configured), commit=self._head())
        if not seen.ran:
            says = f"`{seen.command}` named no test that passed or failed, so nothing was verified."
            raise InvalidInput(says, hint=Hint("no test named"))
        return seen

    def promote(
        self, unit_id: str, to: Level | str = Level.PROJECT, *, expected_version: int | None = None
    ) -> Stored | Refused:
        """Move a unit to a wider level, through the gate."""
        from mnemarch.units.promote import promote

        level = Level.parse(to)
        self.scope.at(level)
        outcome = self._act(lambda act: promote(act, unit_id, level, expected_version), durable=True)
        return self._with_current_trust(outcome)

    def adopt(self, worktree: str | None = None, *, commit: str | None = None) -> Adopted:
        """Take over into the project what a worktree verified, each unit through the gate, once its branch is merged.

        `commit` says what was merged if the worktree's folder is gone.
        """
        from mnemarch.units.promote import adopt

        name = checked_id(worktree, "a worktree") if worktree is not None else self.scope.worktree
        if name is None or self.scope.project is None:
            raise InvalidInput("Which worktree?", hint=Hint("name the worktree"))
        root = self.caller.root
        codebase = None if root is None else self._engine.codebase(root)
        adopted = adopt(self._engine.log, self.caller, codebase, name, self._full_hash(commit))
        return replace(adopted, units=tuple(self._aged(unit) for unit in adopted.units))

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
    ) -> Found:
        """The units that answer a question, in order, with reasons; and what was withheld, and why.

        They hold in the code that is checked out where the seat is; `at_commit` looks at another commit, `as_of` back
        in time.
        """
        from mnemarch.asking import Asking

        return Asking(self._engine, self.caller).recall(
            query, k, kinds=kinds, domain=domain, at_commit=at_commit, as_of=as_of
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
    ) -> Pack:
        """What answers a question, as one text for a model that fits a budget of tokens; `count` is its tokenizer."""
        from mnemarch.asking import Asking

        return Asking(self._engine, self.caller).context(
            query, tokens, count, kinds=kinds, domain=domain, at_commit=at_commit, as_of=as_of
        )
