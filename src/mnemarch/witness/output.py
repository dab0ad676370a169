"""Reads what runners print for people: the tests that it names, and the line that sums them up."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence

from mnemarch.model.testrun import TestResult, TestRun
from mnemarch.model.value import replace
from mnemarch.text.words import Patterns
from mnemarch.witness import TestCommand, runner_of, selected
from mnemarch.witness.reports import LINE_CHARS_MAX, PATTERNS, merged, of_tap, prefix_of, rebased, result_of

_TAIL_CHARS = 4_000
_CUT = "..."
_SUMMARIES, _FAILING = Patterns("runners", "summaries"), Patterns("runners", "failing")


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
    test_command, text = runner_of(command, configured), plain(printed)
    if test_command is None:
        return None
    failed = _failed_by_summary(test_command.runner, text)
    code = exit_code if test_command.decides and exit_code is not None else failed
    folder, root = os.path.join(cwd, test_command.folder), root or cwd
    runner, results = results_in(test_command, text, code, prefix_of(folder, root))
    if not results and failed is None and not code:
        return None
    if not results and not code and PATTERNS["all passed"].search(text):
        results = [result_of(name, "passed") for name in selected(test_command, awaited(), folder, root)]
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
    clean = PATTERNS["control"].sub("", printed) if "\x1b" in printed or "\r" in printed else printed
    return "\n".join(line[:LINE_CHARS_MAX] for line in clean.splitlines())


def tail(text: str) -> str:
    return text[-_TAIL_CHARS:].strip()


def results_in(
    test_command: TestCommand, text: str, exit_code: int | None, prefix: str
) -> tuple[str, list[TestResult]]:
    """The runner and the results of the tests that a text names. If none, a named command is a test itself."""
    for runner in [test_command.runner] if test_command.runner else _READERS:
        results = merged(_READERS[runner](text)) if runner in _READERS else []
        if results:
            return runner, [replace(one, name=_placed(runner, one.name, prefix)) for one in results]
    if test_command.named and exit_code is not None:
        whole = result_of(f"{prefix}{test_command.named}", "failed" if exit_code else "passed", tail(text))
        return test_command.runner, [whole]
    return test_command.runner, []


def _placed(runner: str, name: str, prefix: str) -> str:
    """A test's name with the folder in which the runner ran. Go names a whole package, and TAP only a title."""
    if runner == "go" or not prefix:
        return name
    return f"{prefix[:-1]}::{name}" if runner in {"node", "tap"} else rebased(name, prefix)


def _failed_by_summary(runner: str, text: str) -> int | None:
    """1 if the summary line reports a failed test, 0 if it reports none, None if there is no summary line."""
    for name in [runner] if runner else _SUMMARIES.sources:
        summaries = _SUMMARIES[name].findall(text) if name in _SUMMARIES.sources else []
        if summaries:
            return int(any(map(_FAILING[name].search, summaries)))
    return None


def _of_pytest(text: str) -> Iterator[TestResult]:
    """The results in pytest's output. Its summary cuts messages off, so they are completed from the error lines."""
    errors = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
    for match in PATTERNS["pytest line"].finditer(text):
        yield result_of(match["name"], match["outcome"])
    for match in PATTERNS["pytest summary"].finditer(text):
        yield result_of(match["name"], match["outcome"], _completed(match["message"] or "", errors))


def _completed(message: str, errors: list[str]) -> str:
    """The message, or the error line that it is the beginning of. Each line is used once."""
    beginning = message.removesuffix(_CUT)
    at = next((at for at, error in enumerate(errors) if message != beginning and error.startswith(beginning)), None)
    return message if at is None else errors.pop(at)


def _of_unittest(text: str) -> Iterator[TestResult]:
    """The results in unittest's output. Before Python 3.11 it names only the class."""
    for match in PATTERNS["unittest"].finditer(text):
        test, where = match["test"] or match["failed"], match["where"] or match["place"]
        name = where if where.endswith(f".{test}") else f"{where}.{test}"
        last = (match["trace"] or "").strip().rpartition("\n")[2]
        yield result_of(name.replace("unittest.loader._FailedTest.", ""), match["outcome"] or "FAIL", last)


def _of_go(text: str) -> Iterator[TestResult]:
    """The results in the output of `go test`. A package's line follows its tests; without -v it is the only line."""
    tests: list[tuple[str, str]] = []
    printed: list[str] = []
    for line in text.splitlines():
        match = PATTERNS["go"].match(line)
        if match is None:
            continue
        if match[2]:
            tests.append((match[2], match[1]))
        elif match[5]:
            printed.append(match[5])
        else:
            message = "\n".join(printed)
            yield from (result_of(f"{match[4]}.{name}", outcome, message) for name, outcome in tests)
            if all(outcome != "FAIL" for _, outcome in tests):
                yield result_of(match[4], match[3], message)
            tests, printed = [], []


def _of_cargo(text: str) -> Iterator[TestResult]:
    yield from (result_of(match[1], "FAILED", match[2]) for match in PATTERNS["cargo failure"].finditer(text))
    for match in PATTERNS["cargo line"].finditer(text):
        yield result_of(match["name"], match["outcome"])


def _of_javascript(text: str) -> Iterator[TestResult]:
    """The results in the output of jest and vitest. Without --verbose they may name only the file that passed."""
    file, in_tree = "", False
    suites: dict[int, str] = {}
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if match := PATTERNS["javascript path"].match(line):
            below = lines[number + 1].strip() if number + 1 < len(lines) else ""
            yield result_of(f"{match[2]}::{match[3]}", match[1], below)
        elif match := PATTERNS["javascript file"].match(line):
            file, in_tree, suites = os.path.normpath(match[2]), match[1] in {"PASS", "FAIL"}, {}
            yield result_of(file, match[1])
        elif match := PATTERNS["javascript bullet"].match(line):
            message = "\n".join(lines[number + 1 : number + 8]).strip()
            yield result_of(f"{file}::{match[1].replace(' › ', ' > ')}", "FAIL", message)
        elif not line.strip():
            in_tree = False
        elif in_tree:
            indent = len(line) - len(line.lstrip())
            suites = {at: name for at, name in suites.items() if at < indent}
            if match := PATTERNS["javascript test"].match(line):
                yield result_of(f"{file}::{' > '.join([*suites.values(), match[3]])}", match[2])
            else:
                suites[indent] = line.strip()


def _of_node(text: str) -> Iterator[TestResult]:
    """The results of `node --test` on a terminal. Elsewhere it prints TAP."""
    suites: dict[int, str] = {}
    for line in text.splitlines():
        match = PATTERNS["node"].match(line)
        if line.startswith("ℹ tests"):
            return
        if match is None:
            continue
        suites = {at: name for at, name in suites.items() if at < len(match[1])}
        if match[2] == "▶":
            suites[len(match[1])] = match[3]
        else:
            yield result_of(" > ".join([*suites.values(), match[3]]), match[2])


_READERS: dict[str, Callable[[str], Iterable[TestResult]]] = {
    "pytest": _of_pytest,
    "unittest": _of_unittest,
    "go": _of_go,
    "cargo": _of_cargo,
    "jest": _of_javascript,
    "vitest": _of_javascript,
    "node": lambda text: list(_of_node(text)) or of_tap(text),
    "tap": of_tap,
}
