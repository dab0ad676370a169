"""One run of tests (R21): what the runner reported of each test, and whether this program saw it run."""

from __future__ import annotations

from collections.abc import Iterable

from mnemarch.model.caller import Stream
from mnemarch.model.stamps import datetime
from mnemarch.model.value import Frozen, Names, Record, replace

# How the name of a go test begins, after its package; a subtest is package.TestName/case.
_GO_TESTS = (".Test", ".Example", ".Fuzz")
_GO_SUBTEST = r"(.*\.(?:Test|Example|Fuzz)\w*)/"
# Where the default branch is checked out, whatever the worktree: the place that project units are judged by.
DEFAULT_BRANCH = ""
# So many different errors of one run are told apart.
_ERRORS_MAX = 10
# What became of a test that failed before and is not seen passing.
UNNAMED, NOT_RUN = "not named", "not run again"
# The exit code of a runner that came across no test.
_NOTHING_COLLECTED = {"pytest": 5, "unittest": 5}


class Outcome(Names):
    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    SKIP = "skip"


_BECAME = {Outcome.SKIP: "skipped", Outcome.FAIL: "still failing"}
_ASSERTIONS = ("assert ", "AssertionError")


class TestResult(Record):
    """One test. `name` is the runner's id; a path in it is relative to the repository's root, not to a subfolder.

    `message` is the error of a failure.
    """

    __test__ = False  # Not a test case, whatever pytest makes of the name.

    name: str
    outcome: Outcome
    message: str = ""


class TestRun(Record):
    """A command that tests, and what came of it. `witnessed`: this program ran it or read the runner's report of it.

    `output` is the end of what the run printed, and `commit` the HEAD it ran on.
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
        """Whether the run as a whole succeeded: no test failed, and the command, if there was one, ended with 0."""
        return not self.exit_code and all(result.outcome is not Outcome.FAIL for result in self.results)

    @property
    def ran(self) -> bool:
        """Whether the run says anything: a test passed or failed, or the command broke before it came to one."""
        tested = any(result.outcome is not Outcome.SKIP for result in self.results)
        return tested or self.exit_code not in (None, 0, _NOTHING_COLLECTED.get(self.runner))

    @property
    def error(self) -> str:
        """What went wrong: the first failure that says something, else the end of what was printed."""
        for result in self.results:
            if result.outcome is Outcome.FAIL and result.message:
                # As pytest sums it up: by its test an assertion is told from others.
                is_assertion = self.runner == "pytest" and result.message.startswith(_ASSERTIONS)
                return f"FAILED {result.name} - {result.message}" if is_assertion else result.message
        return self.output or f"{self.command} ended with exit code {self.exit_code}"

    @property
    def errors(self) -> dict[str, tuple[str, ...]]:
        """What each failure says, with the tests that say it; some ten of them, in the order of the run."""
        errors: dict[str, tuple[str, ...]] = {}
        told = [result for result in self.results if result.outcome is Outcome.FAIL and result.message]
        for result in told:
            if result.message in errors or len(errors) < _ERRORS_MAX:
                errors[result.message] = (*errors.get(result.message, ()), result.name)
        return errors

    @property
    def counts(self) -> dict[str, int]:
        """How many tests failed, passed and were skipped, in these words; what is none is left out."""
        words = {"failed": Outcome.FAIL, "passed": Outcome.PASS, "skipped": Outcome.SKIP}
        return {word: len(self.named(outcome)) for word, outcome in words.items() if self.named(outcome)}

    def without(self, names: frozenset[str]) -> TestRun:
        """The run without the failures of these tests."""
        left = [one for one in self.results if one.outcome is not Outcome.FAIL or one.name not in names]
        return replace(self, results=tuple(left)) if names else self

    def unseen(self, tests: Iterable[str]) -> dict[str, str]:
        """Those of these tests that this run does not show to pass, and what became of them, if that can be told.

        A file that could not be loaded passes when a test in it does.
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
    """The newest outcome of one test in one place, seen by this program (`witnessed`) or reported.

    `place` is a worktree, or DEFAULT_BRANCH. `flaky`: it both passed and failed on the same content, `tree`.
    `greened_by` is the task in which it failed first and passed then.
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
    """A test's name without its parameters: citing it covers them all."""
    if name.endswith("]"):
        return name.partition("[")[0]
    if "/" not in name or not any(begin in name for begin in _GO_TESTS):
        return name
    import re  # A recall, which asks for names in its labels, starts without it.

    subtest = re.match(_GO_SUBTEST, name)
    return subtest[1] if subtest else name


def short_name(name: str) -> str:
    """What people call a test: its function, with neither path nor parameters."""
    last = base_name(name).rpartition("::")[2]
    for begin in _GO_TESTS:
        _, is_go, rest = last.rpartition(begin)
        last = begin[1:] + rest if is_go else last
    return last


def forms_of(name: str) -> tuple[str, str, str]:
    """The names that a test can be cited by: the whole, without parameters, and its function's bare name."""
    return name, base_name(name), short_name(name)


def meant(names: Iterable[str]) -> list[str]:
    """The cited names without a bare one that stands beside its whole name."""
    cited = list(names)
    whole = {short_name(name) for name in cited if short_name(name) != name}
    return [name for name in cited if name not in whole]


def is_covered(name: str, cited: str) -> bool:
    """Whether citing `cited` covers the test `name`."""
    return cited in forms_of(name)
