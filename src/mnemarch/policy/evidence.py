"""What a cited test shows: whether it passed where the claim lives, and who saw it (R20, R21)."""

from __future__ import annotations

from mnemarch.model.citation import CitationKind
from mnemarch.model.testrun import DEFAULT_BRANCH, base_name, is_covered
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mnemarch.model.caller import Scope
    from mnemarch.model.citation import Citation
    from mnemarch.model.testrun import TestRecord

_NOBODY: frozenset[str] = frozenset()


@value
class CitedTest:
    """How a cited test stands where a unit lives: `place` is where it passed, `greened_by` the tasks that fixed it.

    `namesakes` are the tests that a bare name fits, if there are several: then it says nothing of any (R2).
    """

    ref: str
    passed: bool
    failed: bool
    witnessed: bool
    flaky: bool
    place: str
    greened_by: frozenset[str]
    namesakes: tuple[str, ...] = ()


def cited_names(citations: Iterable[Citation]) -> list[str]:
    return [item.ref for item in citations if item.kind is CitationKind.TEST]


def standing(ref: str, records: Sequence[TestRecord], scope: Scope) -> CitedTest:
    """How a cited test stands for a unit of this scope.

    A worktree's unit is judged by what happened there or on the default branch, a project's by any place. What this
    program saw outweighs what was reported. A flaky test shows nothing: it has neither passed nor failed.
    """
    places = None if scope.worktree is None else (scope.worktree, DEFAULT_BRANCH)
    covered = [item for item in records if is_covered(item.name, ref)]
    names = {base_name(item.name) for item in covered}
    if len(names) > 1 and ref not in names:
        return CitedTest(ref, False, False, False, False, "", _NOBODY, tuple(sorted(names)))
    here = [item for item in covered if places is None or item.place in places]
    witnessed = [item for item in here if item.witnessed]
    best: CitedTest | None = None
    for place in sorted({item.place for item in witnessed or here}, reverse=True):
        there = [item for item in witnessed or here if item.place == place]
        outcome = CitedTest(
            ref=ref,
            passed=all(item.passed and not item.flaky for item in there),
            failed=any(not item.passed and not item.flaky for item in there),
            witnessed=bool(witnessed),
            flaky=any(item.flaky for item in there),
            place=place,
            greened_by=frozenset(item.greened_by for item in there if item.greened_by),
        )
        if best is None or (outcome.passed and not best.passed):
            best = outcome
    return best or CitedTest(ref, False, False, False, False, "", _NOBODY)
