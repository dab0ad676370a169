"""Reads what runners print for people: the tests that it names, and the line that sums them up."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence

from mnemarch.model.testrun import Outcome, TestResult, TestRun
from mnemarch.model.value import replace
from mnemarch.text.cache import pattern
from mnemarch.witness import TestCommand, runner_of, selected
from mnemarch.witness.reports import LINE_CHARS_MAX, MESSAGE_CHARS_MAX, merged, of_tap, prefix_of, rebased

_TAIL_CHARS = 4_000
_CONTROL = r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\r(?=\n)"
_OUTCOMES = {
    **dict.fromkeys(("passed", "pass", "ok", "xpass", "✓", "✔", "√"), Outcome.PASS),
    **dict.fromkeys(("failed", "fail", "error", "unexpected success", "✕", "✖", "×", "❯"), Outcome.FAIL),
    **dict.fromkeys(("skipped", "skip", "xfail", "ignored", "expected failure", "○", "✎", "↓", "﹣"), Outcome.SKIP),
}
_CUT = "..."
_PYTEST_WORDS = r"(?P<outcome>PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)"
# Lines that each name a test and its outcome.
_LINES = {
    "pytest": (
        rf"^(?P<name>\S+\.py::.+?) {_PYTEST_WORDS}\b.*$",
        rf"^(?:\[gw\d+\] \[ *\d+%\] )?{_PYTEST_WORDS} (?P<name>\S+\.py(?:::.+?)?)(?: - (?P<message>.*))? *$",
    ),
    "cargo": (r"^test (?P<name>.+?)(?: - should panic)? \.\.\. (?P<outcome>ok|FAILED|ignored)\b.*$",),
}
# By runner: a pattern of the line that sums a run up, and a pattern in it that means a failed test.
_SUMMARIES = {
    "pytest": (
        r"^=*\s*(?:\d+ \w+, )*\d+ (?:passed|failed|errors?|skipped|xfailed|xpassed)\b.* in [\d.]+s",
        "failed|error",
    ),
    "unittest": (r"^(?:OK|FAILED)(?: \(.*\))?$", "FAILED"),
    "go": (r"^(?:ok|FAIL)\s+\S+\s+(?:[\d.]+s|\(cached\)|\[build failed\])", "FAIL"),
    "cargo": (r"^test result: .*$", "FAILED"),
    "jest": (r"^Tests: .* total$", "failed"),
    "vitest": (r"^ *Tests  .*\(\d+\)$", "failed"),
    "node": (r"^[ℹ#] fail \d+$", "fail [1-9]"),
    "tap": (r"^(?:Result: \w+|# fail +\d+)$", "FAIL|fail +[1-9]"),
}
# The line with which pytest says that all tests passed.
_ALL_PASSED = r"(?m)^=*\s*\d+ passed(?:, \d+ warnings?)? in [\d.]+s"
_UNITTEST = (
    r"(?m)^ *(?P<test>[\w.]+) \((?P<where>[\w.]+)\)(?: \(.*\)| \[.*\])?(?:\n[^\n]*?)? \.\.\. "
    r"(?P<outcome>ok|FAIL|ERROR|skipped|expected failure|unexpected success)\b|"
    r"^(?:FAIL|ERROR): (?P<failed>[\w.]+) \((?P<place>[\w.]+)\).*\n-+\n(?P<trace>(?:.+\n)*)"
)
_GO = r" *--- (PASS|FAIL|SKIP): (\S+) \(|(ok|FAIL)\s+(\S+)\s+(?:[\d.]+s|\(cached\)|\[.*)$|(?!FAIL|ok|PASS|===)(.+)$"
_CARGO_FAILURE = r"(?m)^---- (.+) stdout ----\n(?:\s*\n)*((?:(?!stack backtrace:).+\n)+)"
_JS_FILE = r"^ *(PASS|FAIL|✓|❯|×) +(\S+\.[cm]?[jt]sx?)(?: \(.*\).*| \[.*)?$"
_JS_PATH = r"^ *(✓|×|↓|FAIL) +(\S+\.[cm]?[jt]sx?) > (.*?)(?: \d+m?s)?$"
_JS_TEST = r"^( +)(✓|✕|○|✎) (?:skipped |todo )?(.*?)(?: \([\d.]+ m?s\))?$"
_JS_BULLET = r"^ *● (.+)$"
_SPEC = r"^( *)(▶|✔|✖|﹣) (.*?)(?: \([\d.]+ms\))?(?: # .*)?$"


def from_output(
    command: str | Sequence[str],
    exit_code: int | None,
    printed: str,
    *,
    cwd: str = "",
    root: str = "",
    configured: Sequence[str] = (),
    awaited: Callable[[], Iterable[str]] = tuple,
) -> TestRun | None:
    """The test run that a command printed, for a command that somebody else ran. None if the output shows no test run.

    An exit code of None is unknown. If a pipe or `|| true` may have changed the exit code, the output decides instead.
    If all tests passed and none is named, the `awaited` tests that the command must have run count as passed.
    """
    known, text = runner_of(command, configured), plain(printed)
    if known is None:
        return None
    failed = _failed_by_summary(known.runner, text)
    code = exit_code if known.decides and exit_code is not None else failed
    runner, results = results_in(known, text, code, prefix_of(os.path.join(cwd, known.folder), root or cwd))
    if not results and failed is None and not code:
        return None
    if not results and not code and pattern(_ALL_PASSED).search(text):
        there = os.path.join(cwd, known.folder)
        results = [_result(name, "passed") for name in selected(known, awaited(), there, root or cwd)]
    return TestRun(
        runner=runner,
        command=command if isinstance(command, str) else " ".join(command),
        results=tuple(results),
        exit_code=code,
        witnessed=True,
        output=tail(text),
    )


def plain(printed: str) -> str:
    """The output without colours. Lines are cut at a length that no line with a test's name exceeds."""
    clean = pattern(_CONTROL).sub("", printed) if "\x1b" in printed or "\r" in printed else printed
    return "\n".join(line[:LINE_CHARS_MAX] for line in clean.splitlines())


def tail(text: str) -> str:
    return text[-_TAIL_CHARS:].strip()


def results_in(known: TestCommand, text: str, exit_code: int | None, prefix: str) -> tuple[str, list[TestResult]]:
    """The runner and the results of the tests that a text names. If none, a named command is a test itself."""
    for runner in [known.runner] if known.runner else _READERS:
        results = merged(_READERS[runner](text)) if runner in _READERS else []
        if results:
            return runner, [replace(one, name=rebased(one.name, prefix)) for one in results]
    if known.named and exit_code is not None:
        outcome, message = (Outcome.FAIL, tail(text)) if exit_code else (Outcome.PASS, "")
        return known.runner, [TestResult(name=f"{prefix}{known.named}", outcome=outcome, message=message)]
    return known.runner, []


def _failed_by_summary(runner: str, text: str) -> int | None:
    """1 if the summary line reports a failed test, 0 if it reports none, None if there is no summary line."""
    for name in [runner] if runner else _SUMMARIES:
        line, failing = _SUMMARIES.get(name, (r"(?!)", ""))
        summaries = pattern(f"(?m){line}").findall(text)
        if summaries:
            return int(any(pattern(failing).search(summary) for summary in summaries))
    return None


def _result(name: str, outcome: str, message: str | None = None) -> TestResult:
    kind = _OUTCOMES[outcome.lower()]
    says = (message or "").strip()[:MESSAGE_CHARS_MAX] if kind is Outcome.FAIL else ""
    return TestResult(name=name, outcome=kind, message=says)


def _by_lines(runner: str) -> Callable[[str], Iterator[TestResult]]:
    def read(text: str) -> Iterator[TestResult]:
        told = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
        for line in _LINES[runner]:
            for match in pattern(f"(?m){line}").finditer(text):
                yield _result(match["name"], match["outcome"], _whole(match.groupdict().get("message"), told))

    return read


def _whole(message: str | None, told: list[str]) -> str | None:
    """A message that pytest's summary cut off, completed from the lines in `told`. Each line is used once."""
    if message is None or not message.endswith(_CUT):
        return message
    whole = next((line for line in told if line.startswith(message.removesuffix(_CUT))), message)
    if whole in told:
        told.remove(whole)
    return whole


def _of_unittest(text: str) -> Iterator[TestResult]:
    """The results in unittest's output. Before Python 3.11 it names only the class."""
    for match in pattern(_UNITTEST).finditer(text):
        test, where = match["test"] or match["failed"], match["where"] or match["place"]
        name = where if where.endswith(f".{test}") else f"{where}.{test}"
        last = (match["trace"] or "").strip().rpartition("\n")[2]
        yield _result(name.replace("unittest.loader._FailedTest.", ""), match["outcome"] or "FAIL", last)


def _of_go(text: str) -> Iterator[TestResult]:
    """The results in the output of `go test`. A package's line follows its tests; without -v it is the only line."""
    tests: list[tuple[str, str]] = []
    printed: list[str] = []
    for line in text.splitlines():
        match = pattern(_GO).match(line)
        if match is None:
            continue
        if match[2]:
            tests.append((match[2], match[1]))
        elif match[5]:
            printed.append(match[5])
        else:
            says = "\n".join(printed)
            yield from (_result(f"{match[4]}.{name}", outcome, says) for name, outcome in tests)
            if all(outcome != "FAIL" for _, outcome in tests):
                yield _result(match[4], match[3], says)
            tests, printed = [], []


def _of_cargo(text: str) -> Iterator[TestResult]:
    yield from (_result(match[1], "FAILED", match[2]) for match in pattern(_CARGO_FAILURE).finditer(text))
    yield from _by_lines("cargo")(text)


def _of_javascript(text: str) -> Iterator[TestResult]:
    """The results in the output of jest and vitest. Without --verbose they may name only the file that passed."""
    file, in_tree = "", False
    suites: dict[int, str] = {}
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if match := pattern(_JS_PATH).match(line):
            below = lines[number + 1].strip() if number + 1 < len(lines) else ""
            yield _result(f"{match[2]}::{match[3]}", match[1], below)
        elif match := pattern(_JS_FILE).match(line):
            file, in_tree, suites = os.path.normpath(match[2]), match[1] in {"PASS", "FAIL"}, {}
            yield _result(file, match[1])
        elif match := pattern(_JS_BULLET).match(line):
            message = "\n".join(lines[number + 1 : number + 8]).strip()
            yield _result(f"{file}::{match[1].replace(' › ', ' > ')}", "FAIL", message)
        elif not line.strip():
            in_tree = False
        elif in_tree:
            indent = len(line) - len(line.lstrip())
            suites = {at: name for at, name in suites.items() if at < indent}
            if match := pattern(_JS_TEST).match(line):
                yield _result(f"{file}::{' > '.join([*suites.values(), match[3]])}", match[2])
            else:
                suites[indent] = line.strip()


def _of_node(text: str) -> Iterator[TestResult]:
    """The results of `node --test` on a terminal. Elsewhere it prints TAP."""
    suites: dict[int, str] = {}
    for line in text.splitlines():
        match = pattern(_SPEC).match(line)
        if line.startswith("ℹ tests"):
            return
        if match is None:
            continue
        suites = {at: name for at, name in suites.items() if at < len(match[1])}
        if match[2] == "▶":
            suites[len(match[1])] = match[3]
        else:
            yield _result(" > ".join([*suites.values(), match[3]]), match[2])


_READERS: dict[str, Callable[[str], Iterable[TestResult]]] = {
    "pytest": _by_lines("pytest"),
    "unittest": _of_unittest,
    "go": _of_go,
    "cargo": _of_cargo,
    "jest": _of_javascript,
    "vitest": _of_javascript,
    "node": lambda text: list(_of_node(text)) or of_tap(text),
    "tap": of_tap,
}
