"""The gate's rules: which status the evidence permits (S10, R2), and which level an actor may write to (G6, R4)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from mnemarch.model.caller import Actor, ActorKind, Level, Scope, can_promote
from mnemarch.model.event import Receipt
from mnemarch.model.outcome import Refused
from mnemarch.model.stamps import datetime
from mnemarch.model.testrun import DEFAULT_BRANCH, TestRecord, base_name, is_covered, short_name
from mnemarch.model.unit import TRUSTED, Citation, CitationKind, Proof, Status, Unit
from mnemarch.model.value import Frozen
from mnemarch.policy.permissions import Deed, Policy

_SUCCESS_RATE_MIN = 0.5
# Bounds the tests that one reason names.
_SHOWN_MAX = 3


class Refusal(Frozen):
    """A refusal of the gate: its rule, its reason, a hint. `unit_id` is the rejected unit that the claim repeats."""

    rule: str
    reason: str
    hint: str = ""
    unit_id: str | None = None

    def answer(self, receipt: Receipt | None = None, unit_id: str | None = None) -> Refused:
        return Refused(rule=self.rule, reason=f"{self.reason} {self.hint}", receipt=receipt, unit_id=unit_id)


def warranted(citations: Iterable[Citation], tests: Mapping[str, CitedTest]) -> Status:
    """The status that this evidence permits (Rules 1 and 2). A person's word or a passing test verifies."""
    return Status.VERIFIED if any(counts(item, tests) for item in citations) else Status.HYPOTHESIS


def counts(citation: Citation, tests: Mapping[str, CitedTest]) -> bool:
    """Whether this citation verifies by itself (Rule 2)."""
    if citation.kind is CitationKind.TEST:
        return citation.ref in tests and tests[citation.ref].passed
    return citation.kind is CitationKind.HUMAN


def proof_from(
    citations: Iterable[Citation], tests: Mapping[str, CitedTest], now: datetime, *, is_about: bool, expects: str | None
) -> Proof | None:
    """The proof that a unit stores: the persons and the passing tests. None if no citation verifies.

    If any test was seen passing, tests that were only reported are left out.
    """
    counted = [item for item in citations if counts(item, tests)]
    people = [item for item in counted if item.kind is CitationKind.HUMAN]
    passing = [tests[item.ref] for item in counted if item.kind is CitationKind.TEST]
    seen = [test for test in passing if test.witnessed]
    if not counted:
        return None
    where = next((test.place for test in seen or passing), None)
    return Proof(
        by=(*(str(item) for item in people), *(f"test:{test.ref}" for test in seen or passing)),
        witnessed=bool(people or seen),
        at=now,
        about=is_about,
        worktree=where or None,
        flaky=any(test.flaky for test in seen or passing),
        expects=expects,
    )


def refusal_to_verify(citations: Collection[Citation], tests: Mapping[str, CitedTest]) -> Refusal | None:
    """The refusal to verify a unit with these citations, or None if they verify it."""
    if not citations:
        return Refusal(
            "S10.1", "It has no citation, so it stays a hypothesis.", "Cite a test or have a human approve it."
        )
    if warranted(citations, tests) is not Status.HYPOTHESIS:
        return None
    cited = [tests.get(name, CitedTest(name)) for name in cited_names(citations)]
    opposed, failed, flaky, ambiguous = (
        next((test for test in cited if getattr(test, problem)), None)
        for problem in ("instead", "failed", "flaky", "namesakes")
    )
    if opposed is not None:
        reason, hint = opposition(opposed.ref, opposed.instead), "State what the test shows, or let a lead accept it."
    elif failed is not None:
        reason, hint = f"{failed.ref} fails.", "Make it pass, then verify the task."
    elif flaky is not None:
        reason, hint = f"{flaky.ref} is flaky: it passes and fails on the same code.", "Repair the test first."
    elif ambiguous is not None:
        names = ", ".join(ambiguous.namesakes[:_SHOWN_MAX])
        reason = f"{ambiguous.ref!r} names {len(ambiguous.namesakes)} tests: {names}."
        hint = "Cite one of them by its whole name."
    elif cited:
        reason, hint = f"No verification recorded {cited[0].ref} as passed.", "Run it and verify the task."
    else:
        reason, hint = "Only a test or a person verifies a claim.", "Cite a passing test, or have a human approve it."
    return Refusal("S10.2", reason, hint)


def opposition(test: str, expects: str) -> str:
    """A sentence about a test that expects something else than a claim says."""
    return f"{short_name(test)} expects {expects}, and the claim says something else."


def publishable(unit: Unit, reuse_min: int) -> bool:
    """Rule 3: whether a unit is verified and was reused by enough distinct tasks. A skill must also mostly succeed."""
    rate = unit.attributes.get("success_rate")
    works = not isinstance(rate, int | float) or rate >= _SUCCESS_RATE_MIN
    return unit.status is Status.VERIFIED and unit.uses >= reuse_min and works


def refusal_to_write(
    actor: Actor, level: Level, status: Status, policy: Policy, *, is_witnessed: bool = True
) -> Refusal | None:
    """The refusal if this actor may not write content of this status at this level, else None (G23, R4).

    `is_witnessed`: a person vouched for it, or this program saw a test pass that is about it (R20, R21).
    """
    if not policy.allows(actor.kind, Deed.WRITE, level):
        return Refusal("G23", f"{actor} may not write at {level} scope.", _who_may_write(level, policy))
    if policy.requires_validation(level) and status not in TRUSTED:
        return Refusal(
            "G23.validation",
            f"{level} scope accepts only verified knowledge; this is a {status}.",
            "Cite a test and run it with `verify -- COMMAND`, or have a person approve it.",
        )
    if policy.requires_validation(level) and not is_witnessed:
        return Refusal(
            "G23.validation",
            f"{level} scope accepts only what a witnessed test shows, or what a person vouches for (R21).",
            "Run a test that is about it with `verify -- COMMAND`, or have a person approve it.",
        )
    return None


def _who_may_write(level: Level, policy: Policy) -> str:
    if level is Level.TASK:
        kinds = [str(kind) for kind in ActorKind if policy.allows(kind, Deed.WRITE, level)]
        return f"At {level} scope, only these may: {', '.join(kinds)}. Write at a wider level, or as one of these."
    return "Write at a narrower level, or ask an actor who may write here to promote it."


def refusal_to_promote(unit: Unit, target: Level, actor: Actor, policy: Policy) -> Refusal | None:
    """The refusal if this unit may not be promoted to `target`, else None (G6, R2, R4)."""
    if not can_promote(unit.level, target):
        return Refusal("G6", f"{target} is not wider than {unit.level}.", "Name a wider level than the unit has.")
    if not unit.live:
        return Refusal("G6", f"The unit is {unit.status}.", "Revive it first, or promote what replaced it.")
    refusal = refusal_to_write(actor, target, unit.status, policy, is_witnessed=carries(unit))
    if refusal is None and target is Level.ORG and unit.status is not Status.PUBLISHED:
        return Refusal(
            "S10.3", "Only published knowledge reaches org scope.", "Let more tasks reuse it first (gate.reuse_min)."
        )
    return refusal


def carries(unit: Unit) -> bool:
    """Whether a unit's evidence is good enough for the whole project. A committed decision always is (R4)."""
    from mnemarch.model.decision import version_key_of

    return version_key_of(unit) is not None or (unit.proof is not None and unit.proof.carries)


def refusal_to_replace(new: Unit, old: Unit, policy: Policy) -> Refusal | None:
    """The refusal if `new` may not replace `old`, else None. `new` must be allowed at the level of `old` (R4, R8)."""
    if new.level < old.level:
        return Refusal(
            "R8",
            f"A {new.level} unit can't replace a {old.level} unit: its other readers would have nothing.",
            f"Promote it to {old.level} first.",
        )
    if policy.requires_validation(old.level) and (new.status not in TRUSTED or not carries(new)):
        return Refusal(
            "G23.validation",
            f"{old.level} scope accepts only verified knowledge; unit {new.id} is a {new.status}.",
            "Cite a test that a verification recorded as passed, or a human's approval.",
        )
    return None


# Cited tests: whether they passed where the claim lives, and whether they were witnessed (R20, R21)


class CitedTest(Frozen):
    """The outcome of a cited test in the places that count for a unit.

    `instead` is what it expects in place of what the claim says: then it counts as not passed. `place` is where it
    passed. `greened_by` are the tasks that fixed it. `namesakes` are the tests that a bare name
    fits, if there are several: then the citation proves nothing (R2).
    """

    ref: str
    passed: bool = False
    failed: bool = False
    witnessed: bool = False
    flaky: bool = False
    place: str = ""
    greened_by: frozenset[str] = frozenset()
    instead: str = ""
    namesakes: tuple[str, ...] = ()


def cited_names(citations: Iterable[Citation]) -> list[str]:
    return [item.ref for item in citations if item.kind is CitationKind.TEST]


def standing(ref: str, records: Sequence[TestRecord], scope: Scope) -> CitedTest:
    """The outcome of a cited test for a unit of this scope.

    For a unit in a worktree, only outcomes in that worktree or on the default branch count. For a unit of the project,
    all places count. Witnessed outcomes outweigh reported ones. A flaky test counts as neither passed nor failed.
    """
    places = None if scope.worktree is None else (scope.worktree, DEFAULT_BRANCH)
    covered = [item for item in records if is_covered(item.name, ref)]
    names = {base_name(item.name) for item in covered}
    if len(names) > 1 and ref not in names:
        return CitedTest(ref, namesakes=tuple(sorted(names)))
    here = [item for item in covered if places is None or item.place in places]
    best = [item for item in here if item.witnessed] or here

    def outcome_in(place: str) -> CitedTest:
        there = [item for item in best if item.place == place]
        return CitedTest(
            ref=ref,
            passed=all(item.passed and not item.flaky for item in there),
            failed=any(not item.passed and not item.flaky for item in there),
            witnessed=there[0].witnessed,
            flaky=any(item.flaky for item in there),
            place=place,
            greened_by=frozenset(item.greened_by for item in there if item.greened_by),
        )

    outcomes = map(outcome_in, sorted({item.place for item in best}, reverse=True))
    return max(outcomes, key=lambda outcome: outcome.passed, default=CitedTest(ref))
