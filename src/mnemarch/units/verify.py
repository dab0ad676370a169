"""The gate: judges a task's claims, and the units that it relied on, by a run of tests (G4, R20)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mnemarch.errors import Hint, InvalidInput
from mnemarch.lazy import Any, Lazy
from mnemarch.log.act import Act, receipt_for
from mnemarch.log.projection import keys_of
from mnemarch.model.caller import Caller, Level
from mnemarch.model.event import Event, EventType, Receipt
from mnemarch.model.outcome import Analysis, Promotion, Refused, Stored, TrustChange
from mnemarch.model.stamps import micros
from mnemarch.model.testrun import DEFAULT_BRANCH, Outcome, TestRun, base_name, forms_of, meant, short_name
from mnemarch.model.unit import Citation, CitationKind, Claim, Kind, Signal, Status, Unit, waiting_key
from mnemarch.model.value import replace
from mnemarch.policy.promotion import Refusal, refusal_to_verify
from mnemarch.text.secrets import redacted
from mnemarch.units.finding import is_settled, refusal_to_repeat
from mnemarch.units.scene import NOT_CLAIMS, Met, Scene, Task, task_of, units_citing_tests
from mnemarch.units.status import (
    as_gate,
    blame,
    change,
    cited_tests,
    credit,
    follow_tests,
    promote,
    raise_by_evidence,
    signal,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.units import life, remember
else:
    # Most runs of tests raise nothing.
    life = Lazy("mnemarch.units.life")
    remember = Lazy("mnemarch.units.remember")

_LOCAL = (
    "It is verified, but stays in this worktree: the test is neither new nor changed here, and too little in it tells"
    " that it is about the claim. Cite the file or symbol that both are about, or let a lead accept it."
)
# Test names in one event. More would exceed its size limit.
_NAMES_MAX = 5_000
_CHANGED = Refusal("S10.2", "Its test expects something else than when it verified this.", "Claim what it shows now.")
_OVERTAKEN = Refusal("S10.2", "Its test expects another value than when this was claimed.", "Claim what it shows now.")
_REPORTED = Refusal(
    "R21",
    "The project accepts only a witnessed test that is about the claim, or a person's word.",
    "Run it with `verify -- COMMAND`, or have a person approve it.",
)


def read_ahead(task: Task, *, account: bool) -> None:
    """Parse a task's claims, and its log, before the write transaction, so that other writers don't wait for it."""
    claims: list[Unit | Claim] = [*task.claims, *task.refused_claims.values()]
    for said in claims:
        # A claim without a cited test is not raised, so its keys are not needed.
        if any(item.kind is CitationKind.TEST for item in said.citations):
            keys_of(redacted(said.content)[0])
    if account:
        from mnemarch.units import episode

        episode.read_ahead(task.log)


class Verification:
    """One test run, judged in one act. `met` was read before the act."""

    def __init__(self, act: Act, run: TestRun, scene: Scene, met: Met, *, account: bool) -> None:
        self._act = act
        self._run = run
        self._scene = scene
        self._passed = run.named(Outcome.PASS)
        self._failed = run.named(Outcome.FAIL)
        self._trust_changes: dict[tuple[str, str], TrustChange] = {}
        # Units of refused claims that this run let through.
        self._claimed: set[str] = set()
        # A task's log can be long. It is read again only if the store changed meanwhile.
        is_known = met.position == act.transaction.position()
        self._task = met.task if is_known else task_of(act.transaction, act.caller, log=account)
        # The task also succeeded if every failed test had already failed before it began (R2).
        self.succeeded = run.passed or bool(
            run.witnessed and self._passed and self._failed and scene.set_aside.issuperset(self._failed)
        )
        if act.caller.scope.level > Level.WORKTREE:
            raise InvalidInput("Verify judges the claims of a task, and no task is named.", hint=Hint("name the task"))

    def judge(self) -> Promotion:
        """Record the run, and judge everything that the seat's task staged."""
        act, run, succeeded = self._act, self._run, self.succeeded
        citing = {unit.id for unit in self._citing((*self._passed, *self._failed))} if run.witnessed else set[str]()
        event, _ = act.record(EventType.TASK_VERIFIED, self._payload(succeeded))
        if run.witnessed:
            self._settle_reliance(succeeded)
        units, refused = self._raised()
        if run.witnessed:
            self._follow_renames()
            followed = act.transaction.units(sorted(citing | self._claimed))
            for unit in filter(_is_judged, followed.values()):
                self._noting(unit, Signal.TESTS_FAILED, self._followed(unit))
        return Promotion(
            episode_id="",
            skill_id=None,
            units=tuple(units),
            refused=tuple(refused),
            receipt=receipt_for(event),
            witnessed=run.witnessed,
            passed=succeeded,
            trust_changes=tuple(self._trust_changes.values()),
            set_aside=tuple(self._set_aside()),
        )

    def told(
        self, judged: Promotion, analysis: Analysis | Mapping[str, Any] | None, newest: Receipt | None
    ) -> Promotion:
        """Write the task's episode, and return the answer with it. `newest` is the event that this run staged."""
        from mnemarch.units.analysis import analysis_from
        from mnemarch.units.episode import keep_episode

        given = None if analysis is None else analysis_from(analysis, self.succeeded)
        staged = [*self._task.log]
        if newest is not None and all(newest.event_id != known.id for known in staged):
            staged += filter(None, [self._act.transaction.event(newest.event_id)])
        before, run, scene = self._task.account, self._run, self._scene
        episode, skill_id = keep_episode(self._act, staged, before, self.succeeded, run, scene, given)
        return replace(judged, episode_id=episode.id, skill_id=skill_id)

    def _payload(self, succeeded: bool) -> dict[str, Any]:
        run = self._run
        aside = self._set_aside()
        return ({"set_aside": aside} if aside else {}) | {
            "passed": succeeded,
            "witnessed": run.witnessed,
            "tests": {str(Outcome.PASS): self._kept_passes(), str(Outcome.FAIL): list(self._failed[:_NAMES_MAX])},
            "places": list(self._scene.places),
            "tree": self._scene.tree,
            "runner": run.runner,
            "command": run.command,
            "exit_code": run.exit_code,
            "duration_ms": run.duration_ms,
            "commit": run.commit,
            "output": run.output,
        }

    def _set_aside(self) -> list[str]:
        return [name for name in self._failed[:_NAMES_MAX] if name in self._scene.set_aside]

    def _kept_passes(self) -> list[str]:
        """The passing tests to record. For a very large suite, only those that units cite or that failed before."""
        if len(self._passed) <= _NAMES_MAX:
            return list(self._passed)
        reader, caller = self._act.transaction, self._act.caller
        cited = set(reader.tests_cited(caller.visible_keys))
        red = {record.name for record in reader.tests(caller.stream, self._passed) if not record.passed}
        return [name for name in self._passed if name in red or not cited.isdisjoint(forms_of(name))]

    # Units that the task relied on

    def _settle_reliance(self, succeeded: bool) -> None:
        """Credit or blame the units that the task relied on, once each.

        Credit needs any sign of use, and blame needs an explicit `use` (R2).
        """
        act = self._act
        if succeeded and act.caller.task_key is None:
            return
        signs = (self._scene.touched | self._task.helped) - self._scene.outdated
        # A long task may have recalled hundreds. Few are read: most are settled, or show no sign of use.
        unsettled = [
            use
            for use in act.transaction.uses_of_task(act.caller.scope_key)
            if not (use.credited if succeeded else use.blamed)
            and (use.used or (succeeded and use.handed and use.unit_id in signs))
        ]
        units = act.transaction.units([use.unit_id for use in unsettled])
        for use in unsettled:
            unit = units.get(use.unit_id)
            if unit is None or not unit.live or any(item.scope.key == use.task_key for item in unit.provenance):
                continue
            if succeeded:
                self._noting(unit, Signal.REPEATED_SUCCESS, credit(act, unit, use))
            else:
                self._noting(unit, Signal.TESTS_FAILED, blame(act, unit, use))

    def _noting(self, before: Unit, given: Signal, after: Unit) -> None:
        """Note a change of a unit's trust or status for the answer."""
        if after.trust.confidence != before.trust.confidence or after.status is not before.status:
            self._trust_changes[before.id, str(given)] = TrustChange(
                unit_id=before.id,
                signal=str(after.trust.validation_source or given),
                before=before.trust.confidence,
                after=after.trust.confidence,
                status=after.status,
            )

    # Known units and their tests

    def _followed(self, unit: Unit) -> Unit:
        """Update a unit after this run: its status, its cited signatures, and whether its test was merged."""
        act = self._act
        if unit.status is not Status.HYPOTHESIS or unit.id not in self._scene.outdated:
            unit = follow_tests(act, unit)
        if self._passed_of(unit):
            unit = life.retake(act, unit, self._scene.retaken.get(unit.id, ()), self._passed_of(unit))
            proof = unit.proof
            if proof is not None and proof.until is not None and self._is_home(unit):
                proof = replace(proof, until=None)
                payload = {"because": list(proof.by), "set": {"proof": proof.to_json()}}
                unit = change(act, EventType.UNIT_VERIFIED, unit, payload)
            merged = proof is not None and proof.worktree not in (None, act.caller.scope.worktree)
            if proof is not None and merged and unit.level >= Level.PROJECT and DEFAULT_BRANCH in self._scene.places:
                merged_proof = proof.to_json() | {"worktree": None}
                unit = signal(act, EventType.UNIT_VALIDATED, unit, Signal.PR_MERGED, {"set": {"proof": merged_proof}})
        return unit

    def _is_home(self, unit: Unit) -> bool:
        """Whether the tests ran where the unit lives: in its worktree, or for a project's unit the default branch."""
        return (DEFAULT_BRANCH if unit.level >= Level.PROJECT else unit.scope.worktree) in self._scene.places

    def _follow_renames(self) -> None:
        """Cite renamed tests by their new names. If a unit's tests are all gone, note when its proof ended (R2)."""
        act, renamed = self._act, self._scene.renamed
        keys = act.caller.visible_keys
        for unit in act.transaction.units_citing(keys, CitationKind.TEST, sorted(renamed), live_but=NOT_CLAIMS):
            proof = unit.proof
            if proof is None or not self._is_home(unit):
                continue
            names = {name: renamed[name] for name in proof.tests if name in renamed}
            new = [name for name in names.values() if name is not None]
            # Two successive names of one test become one.
            by = list(dict.fromkeys(f"test:{names.get(name) or name}" for name in proof.tests))
            if proof.person is None and names and (new or proof.until is None):
                changes: dict[str, Any] = proof.to_json() | {"by": by}
                if names.keys() == set(proof.tests) and not new:
                    changes["until"] = micros(act.now)
                payload = {"cite": [Citation.test(name).to_json() for name in new], "set": {"proof": changes}}
                change(act, EventType.UNIT_CITED, unit, payload)

    # Claims of the task

    def _raised(self) -> tuple[list[Unit], list[Refused]]:
        """Raise units and waiting claims to the status and level that their evidence supports.

        Returns the raised units, and a refusal with its rule for each of the others.
        """
        act = self._act
        raised: list[Unit] = []
        refused: list[Refused] = []
        candidates, held = self._candidates()
        for unit in candidates:
            before, unit = unit, self._with_whole_names(unit)
            may_rise = unit.status is Status.HYPOTHESIS or (unit.proof is not None and not unit.proof.carries)
            if may_rise and unit.id not in self._scene.outdated:
                unit = raise_by_evidence(act, unit, Signal.TESTS_PASSED, self._scene.sources)
            elif self._passed_of(unit):
                unit = signal(act, EventType.UNIT_VALIDATED, unit, Signal.TESTS_PASSED, {})
            if unit.status is Status.HYPOTHESIS:
                # The program made a skill itself, so nobody is asked to prove it.
                if (self._passed or self._run.passed) and unit.kind is not Kind.SKILL:
                    refused.append(self._still_hypothesis(unit, held.get(unit.id)))
                continue
            after, kept_local = self._lifted(unit)
            refused += [kept_local] if kept_local else []
            self._noting(before, Signal.TESTS_PASSED, after)
            if before.status is Status.HYPOTHESIS or after.level is not before.level:
                raised.append(after)
        for claim, author in self._waiting_claims():
            outcome = remember.remember(author, claim, self._scene.sources)
            if isinstance(outcome, Refused):
                refused.append(outcome)
                continue
            self._claimed.add(outcome.unit.id)
            if not outcome.merged:
                raised.append(outcome.unit)
        return raised, refused

    def _candidates(self) -> tuple[list[Unit], Mapping[str, Event]]:
        """The live units of this task, and visible units that cite a test which has just passed.

        Also returns the last event that held each unit back.
        """
        own = {unit.id for unit in self._task.claims}
        citing = {unit.id: unit for unit in self._citing(self._passed)}
        units = self._act.transaction.units(sorted(own)) | citing
        held = self._act.transaction.held(own.union(citing))
        return sorted((unit for unit in units.values() if _is_judged(unit)), key=lambda unit: unit.id), held

    def _citing(self, names: Sequence[str]) -> list[Unit]:
        """The visible units that cite one of these tests by any of its names."""
        return units_citing_tests(self._act.transaction, self._act.caller, names)

    def _with_whole_names(self, unit: Unit) -> Unit:
        """Cite tests of this run by their whole names, where the unit cites them by a bare name or from a subfolder.

        Nothing is added if the whole name is cited already, or if several tests of the project have the bare name: a
        later test with the same name is not the one that was meant (R2).
        """
        gained = []
        cited = {item.ref for item in unit.citations if item.kind is CitationKind.TEST}
        for ref in sorted(meant(cited)):
            ran = {base_name(name) for name in (*self._passed, *self._failed) if short_name(name) == ref}
            if ran:
                records = self._act.transaction.tests(self._act.caller.stream, [ref], called=True)
                ran |= {base_name(record.name) for record in records}
            ran |= {self._scene.fuller[ref]} if ref in self._scene.fuller else set()
            if len(ran) == 1 and ref not in ran and not ran & cited:
                gained.append(Citation.test(ran.pop()).to_json())
        return change(self._act, EventType.UNIT_CITED, unit, {"cite": gained}) if gained else unit

    def _passed_of(self, unit: Unit) -> list[str]:
        """The passed tests of this run that the unit cites. Empty if its tests expect something else by now."""
        if unit.id in self._scene.outdated:
            return []
        passed = {form for name in self._passed for form in (name, base_name(name))}
        return [item.ref for item in unit.citations if item.kind is CitationKind.TEST and item.ref in passed]

    def _lifted(self, unit: Unit) -> tuple[Unit, Refused | None]:
        """Raise the unit to the level of its evidence: the project, if a test seen passing is about it (R20)."""
        target = Level.PROJECT if unit.proof is not None and unit.proof.carries else Level.WORKTREE
        if unit.level >= target or unit.scope.project is None:
            is_local = unit.level is Level.WORKTREE and self._run.witnessed and self._passed_of(unit)
            return unit, Refused(rule="R20", reason=_LOCAL, unit_id=unit.id) if is_local else None
        if unit.scope.worktree is None and target is Level.WORKTREE:
            return unit, None
        outcome = promote(as_gate(self._act), unit.id, target, None)
        return (outcome.unit, None) if isinstance(outcome, Stored) else (unit, outcome)

    def _still_hypothesis(self, unit: Unit, known: Event | None) -> Refused:
        """Why a unit stays a hypothesis. A reason that is already `known` is not recorded again."""
        act = self._act
        tests = cited_tests(act.transaction, act.caller, unit.scope, unit, self._scene.sources)
        refusal = refusal_to_verify(unit.citations, tests) or refusal_to_repeat(act, unit, unit.id)
        if refusal is None and unit.id in self._scene.outdated:
            refusal = _OVERTAKEN if unit.proof is None else _CHANGED
        refusal = refusal or _REPORTED
        payload = {"rule": refusal.rule, "reason": refusal.reason}
        if known is not None and (known.payload or {}).items() >= payload.items():
            receipt = receipt_for(known, duplicate=True)
        else:
            receipt = receipt_for(act.record(EventType.UNIT_HELD, payload, subject=unit.id)[0])
        return refusal.answer(receipt, unit.id)

    def _waiting_claims(self) -> list[tuple[Claim, Act]]:
        """The task's refused claims that now have the validation they lacked, each with an act of its own author."""
        act, waiting = self._act, []
        for event in self._task.refused:
            payload = event.payload
            if payload is None or payload["rule"] != "G23.validation" or event.id in self._scene.outdated:
                continue
            # The key stops the next verification from storing an accepted claim again.
            key = waiting_key(event.id)
            is_stored = act.transaction.event_for_key(event.scope.key, str(event.actor), key) is not None
            if is_stored or is_settled(act, event):
                continue  # If settled, it was declined, or its author was undone.
            claim = replace(Claim.from_json(payload["claim"]), key=key)
            author = Caller(event.actor, event.scope, event.session, act.caller.root)
            tests = cited_tests(act.transaction, act.caller, event.scope.at(Level.PROJECT), claim, self._scene.sources)
            if refusal_to_verify(claim.citations, tests) is None:
                waiting.append((claim, act.by(author)))
        return waiting


def _is_judged(unit: Unit) -> bool:
    return unit.live and unit.kind not in NOT_CLAIMS
