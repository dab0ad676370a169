"""Test runs (R21): the outcome of each test, and whether this program witnessed the run."""

from __future__ import annotations

from collections.abc import Iterable

from mnemarch.model.caller import Stream
from mnemarch.model.stamps import datetime
from mnemarch.model.value import Frozen, Names, Record, replace

# The beginnings of Go test names, after the package. A subtest is named package.TestName/case.
_GO_TESTS = (".Test", ".Example", ".Fuzz")
_GO_SUBTEST = r"(.*\.(?:Test|Example|Fuzz)\w*)/"
# The place of tests that ran on the default branch, in any worktree.
DEFAULT_BRANCH = ""
# Bounds the distinct errors that are kept of one run.
_ERRORS_MAX = 10
# The states of a test that failed before and is not seen passing.
UNNAMED, NOT_RUN = "not named", "not run again"
# The exit code of a runner that collected no test.
_NOTHING_COLLECTED = {"pytest": 5, "unittest": 5}


class Outcome(Names):
    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    SKIP = "skip"


_BECAME = {Outcome.SKIP: "skipped", Outcome.FAIL: "still failing"}
_ASSERTIONS = ("assert ", "AssertionError")


class TestResult(Record):
    """The result of one test. `name` is the runner's id; a path in it is relative to the repository's root.

    `message` is the error of a failure.
    """

    __test__ = False  # The name looks like a test case to pytest.

    name: str
    outcome: Outcome
    message: str = ""


class TestRun(Record):
    """A test command and its results. `witnessed`: this program ran it, or read the runner's report.

    `output` is the end of the printed output, and `commit` the HEAD that it ran on.
    """

    __test__ = False

    runner: str
    command: str
    results: tuple[TestResult, ...]
    exit_code: int | None = None
    duration_ms: int | None = None
    witnessed: bool = False
    commit: str | None = None
    output: str = ""

    @property
    def passed(self) -> bool:
        """Whether the whole run succeeded: no test failed, and the command, if any, exited with 0."""
        return not self.exit_code and all(result.outcome is not Outcome.FAIL for result in self.results)

    @property
    def ran(self) -> bool:
        """Whether the run has a meaning: a test passed or failed, or the command broke before the first test."""
        tested = any(result.outcome is not Outcome.SKIP for result in self.results)
        return tested or self.exit_code not in (None, 0, _NOTHING_COLLECTED.get(self.runner))

    @property
    def error(self) -> str:
        """The error of the run: the first failure with a message, else the end of the output."""
        for result in self.results:
            if result.outcome is Outcome.FAIL and result.message:
                # An assertion gets the form of pytest's summary: its test's name tells it from other assertions.
                is_assertion = self.runner == "pytest" and result.message.startswith(_ASSERTIONS)
                return f"FAILED {result.name} - {result.message}" if is_assertion else result.message
        return self.output or f"{self.command} ended with exit code {self.exit_code}"

    @property
    def errors(self) -> dict[str, tuple[str, ...]]:
        """The distinct failure messages with their tests, in the order of the run. At most _ERRORS_MAX messages."""
        errors: dict[str, tuple[str, ...]] = {}
        for result in self.results:
            has_room = result.message in errors or len(errors) < _ERRORS_MAX
            if result.outcome is Outcome.FAIL and result.message and has_room:
                errors[result.message] = (*errors.get(result.message, ()), result.name)
        return errors

    @property
    def counts(self) -> dict[str, int]:
        """The number of tests by "failed", "passed" and "skipped". Zeros are left out."""
        words = {"failed": Outcome.FAIL, "passed": Outcome.PASS, "skipped": Outcome.SKIP}
        return {word: len(self.named(outcome)) for word, outcome in words.items() if self.named(outcome)}

    def without(self, names: frozenset[str]) -> TestRun:
        """The run without the failures of these tests."""
        left = [one for one in self.results if one.outcome is not Outcome.FAIL or one.name not in names]
        return replace(self, results=tuple(left)) if names else self

    def unseen(self, tests: Iterable[str]) -> dict[str, str]:
        """Those of these tests that this run does not show to pass, each with its state ("" if unknown).

        A file that could not be loaded before counts as passed if a test in it passed.
        """
        passed = self.named(Outcome.PASS)
        others = {each.name: _BECAME[each.outcome] for each in self.results if each.outcome in _BECAME}
        unseen = {}
        for test in set(tests).difference(passed):
            inside, around = (f"{test}::", f"{test}."), base_name(test)
            if test in others:
                unseen[test] = others[test]
            elif not any(name.startswith(inside) for name in passed):
                is_unnamed = any(around.startswith((f"{name}::", f"{name}.")) for name in passed)
                is_other = not passed or any(base_name(name) == around for name in passed)
                unseen[test] = UNNAMED if is_unnamed else "" if is_other else NOT_RUN
        return unseen

    def named(self, outcome: Outcome) -> tuple[str, ...]:
        return tuple(result.name for result in self.results if result.outcome is outcome)


class TestRecord(Frozen):
    """The newest outcome of one test in one place, either witnessed by this program or reported.

    `place` is a worktree, or DEFAULT_BRANCH. `flaky`: it both passed and failed on the same content, `tree`.
    `greened_by` is the task in which it first failed and then passed.
    """

    __test__ = False

    stream: Stream
    name: str
    place: str
    witnessed: bool
    passed: bool
    at: datetime
    event_id: str
    flaky: bool = False
    tree: str = ""
    greened_by: str = ""


def base_name(name: str) -> str:
    """A test's name without its parameters. Citing it covers all parameters."""
    if name.endswith("]"):
        return name.partition("[")[0]
    if "/" not in name or not any(begin in name for begin in _GO_TESTS):
        return name
    import re  # Imported late: recall needs test names for labels, and must start fast.

    subtest = re.match(_GO_SUBTEST, name)
    return subtest[1] if subtest else name


def short_name(name: str) -> str:
    """The bare name of a test's function, without path and parameters."""
    last = base_name(name).rpartition("::")[2]
    for begin in _GO_TESTS:
        _, is_go, rest = last.rpartition(begin)
        last = begin[1:] + rest if is_go else last
    return last


def forms_of(name: str) -> tuple[str, str, str]:
    """The names that can cite a test: its full name, the name without parameters, and the bare function name."""
    return name, base_name(name), short_name(name)


def meant(names: Iterable[str]) -> list[str]:
    """The cited names, without bare names whose full name is cited too."""
    cited = list(names)
    whole = {short_name(name) for name in cited if short_name(name) != name}
    return [name for name in cited if name not in whole]


def is_covered(name: str, cited: str) -> bool:
    """Whether citing `cited` covers the test `name`."""
    return cited in forms_of(name)
