"""Reads what runners write for programs: JUnit XML, `go test -json`, TAP, the JSON of jest, vitest and our recorder."""

from __future__ import annotations

import os
from itertools import takewhile

from mnemarch.errors import InvalidInput
from mnemarch.lazy import Lazy
from mnemarch.model.testrun import Outcome, TestResult, TestRun
from mnemarch.text.words import Patterns, entries

TYPE_CHECKING = False
if TYPE_CHECKING:
    import json
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any
else:
    json = Lazy("json")

MESSAGE_CHARS_MAX = 4_000
# No line with a test's name is longer. A pattern's time may grow with the square of the length.
LINE_CHARS_MAX = 2_000
_REPORT_BYTES_MAX = 64 << 20
_FILES_MAX = 10_000
_DEPTH_MAX = 64
_WORST_FIRST = (Outcome.FAIL, Outcome.SKIP, Outcome.PASS)
# The words and signs of all runners, in their reports and on the terminal.
_OUTCOMES = {outcome: meaning for meaning in Outcome for outcome in entries("runners", f"outcomes: {meaning}")}
# The folders in which the runners of a JVM leave their reports, below each module.
_REPORT_FOLDERS = Patterns("runners", "report folders")
PATTERNS = Patterns("runners", "output")
_ERROR_LINES_MAX = 40
_HINT = "Known formats: JUnit XML (also a folder of it), `go test -json`, TAP, and the JSON of jest and vitest."


def read_report(path: str, *, root: str | None = None) -> tuple[TestRun, dict[str, float]]:
    """The test run in a report: a file, or a folder of JUnit files, and when each test's file was written.

    Names of tests are relative to `root`.
    """
    files = sorted(_xml_below(path)) if os.path.isdir(path) else [path]
    if not files:
        raise InvalidInput(f"{path} has no XML file.", hint=_HINT)
    runner, results, written = "", list[TestResult](), dict[str, float]()
    for file in files:
        names = Names(root or os.getcwd(), os.path.dirname(os.path.abspath(file)))
        runner, in_file = _parsed(text_of(file), file, names)
        results += in_file
        written |= dict.fromkeys((result.name for result in in_file), os.stat(file).st_mtime)
    return TestRun(runner=runner, command=path, results=tuple(merged(results))), written


def text_of(path: str) -> str:
    """The text of a report."""
    try:
        with open(path, "rb") as file:
            raw = file.read(_REPORT_BYTES_MAX + 1)
    except OSError as error:
        raise InvalidInput(f"{path} can't be read: {error.strerror}.", hint="Check the path of the report.") from None
    if len(raw) > _REPORT_BYTES_MAX:
        raise InvalidInput(f"{path} has more than {_REPORT_BYTES_MAX} bytes.", hint="Report fewer tests at a time.")
    return raw.decode("utf-8-sig", "replace")


def _xml_below(folder: str) -> Iterator[str]:
    for inner, _, files in os.walk(folder):
        yield from (os.path.join(inner, name) for name in files[:_FILES_MAX] if name.endswith(".xml"))


def _parsed(text: str, path: str, names: Names) -> tuple[str, list[TestResult]]:
    """The runner and the results of a report. Its first character tells the format."""
    begins = text.lstrip()[:1]
    try:
        if begins == "<":
            return "junit", list(_Junit(text, names).results)
        if begins == "{":
            records = _json_records(text)
            if "testResults" in records[0]:
                return "jest", list(_of_jest(records[0], names))
            if "Action" in records[0]:
                return "go", list(_of_go(records))
        elif results := of_tap(text):
            return "tap", results
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidInput(f"{path} is not a readable report: {error}.", hint=_HINT) from None
    raise InvalidInput(f"{path} is not a report of a known test runner.", hint=_HINT)


def written_to(folder: str, root: str) -> tuple[str, list[TestResult]]:
    """The runner, and the results that it was made to write into our temporary folder."""
    recorded, report = os.path.join(folder, "results.jsonl"), os.path.join(folder, "report.json")
    if os.path.exists(recorded):
        lines = [json.loads(line) for line in text_of(recorded).splitlines() if line[-1:] == "}"]
        return lines[0]["runner"], merged(_of_recorder(lines, root))
    try:
        runner, results = _parsed(text_of(report), report, Names(root, root))
    except InvalidInput:  # The runner wrote none, or died while it did.
        return "", []
    return runner, merged(results)


def left_below(runner: str, base: str, root: str, since: float) -> list[TestResult]:
    """The results in the reports that a JVM runner always leaves below its folder, written since `since`."""
    results = []
    for folder, inner, _ in os.walk(base) if runner in _REPORT_FOLDERS.sources else ():
        inner[:] = [name for name in inner if name not in {".git", "node_modules"}]
        if _REPORT_FOLDERS[runner].search(folder.replace(os.sep, "/")):
            fresh = [path for path in sorted(_xml_below(folder)) if os.path.getmtime(path) >= since]
            results += [one for path in fresh for one in _parsed(text_of(path), path, Names(root, base))[1]]
    return merged(results)


def result_of(name: str, outcome: str, message: str = "") -> TestResult:
    """The result of a test, from a runner's word for its outcome. Only a failure has a message."""
    meaning = _OUTCOMES[outcome.lower()]
    is_failure = meaning is Outcome.FAIL
    return TestResult(name=name, outcome=meaning, message=message.strip()[:MESSAGE_CHARS_MAX] if is_failure else "")


def merged(results: Iterable[TestResult]) -> list[TestResult]:
    """One result for each test, the worst of its setup, body, teardown and repeated runs."""
    by_name: dict[str, TestResult] = {}
    for result in results:
        worst = by_name.setdefault(result.name, result)
        is_worse = _WORST_FIRST.index(result.outcome) < _WORST_FIRST.index(worst.outcome)
        if is_worse or (result.outcome is worst.outcome and not worst.message):
            by_name[result.name] = result
    return list(by_name.values())


# Names


def prefix_of(folder: str, root: str) -> str:
    """The prefix that turns a path relative to `folder` into one relative to `root`."""
    inner = os.path.relpath(os.path.realpath(folder), os.path.realpath(root))
    return "" if inner == "." else f"{inner}/".replace(os.sep, "/")


def rebased(name: str, prefix: str) -> str:
    """A test's name with its path relative to the root."""
    path, separator, rest = f"{prefix}{name}".partition("::")
    return f"{os.path.normpath(path)}{separator}{rest}" if prefix else name


class Names:
    """Maps the names of tests in a report to files below `root`. `base` is the folder of the report."""

    def __init__(self, root: str, base: str) -> None:
        self._root = root
        folders = prefix_of(base, root).split("/")[:-1]
        # A runner names files relative to its folder: the nearest one above the report that has the file.
        self._prefixes = ["".join(f"{folder}/" for folder in folders[:end]) for end in range(len(folders), -1, -1)]

    def of_file(self, path: str) -> str:
        """The path relative to the root, wherever the report was written."""
        parts = path.replace("\\", "/").strip("/").split("/")
        tails = ("/".join(parts[at:]) for at in range(len(parts)))
        return next(filter(self._exists, tails), path)

    def of_case(self, class_name: str, name: str, *, is_python: bool) -> str:
        """A test case's name. pytest names classes after files: `tests.test_a.TestX` is `tests/test_a.py::TestX`."""
        parts = (class_name or name).split(".")
        inside = [name] if class_name else []
        for end in range(len(parts), 0, -1):
            path = "/".join(parts[:end]) + ".py"
            for prefix in self._prefixes:
                if self._exists(f"{prefix}{path}"):
                    return "::".join([f"{prefix}{path}", *parts[end:], *inside])
        if is_python:
            end = next((at for at, part in enumerate(parts) if part[:1].isupper()), len(parts))
            return "::".join(["/".join(parts[:end]) + ".py", *parts[end:], *inside])
        return ".".join(filter(None, (class_name, name)))

    def _exists(self, path: str) -> bool:
        return os.path.isfile(os.path.join(self._root, path))


# Formats


def _of_recorder(lines: Iterable[dict[str, Any]], root: str) -> Iterator[TestResult]:
    prefix = ""
    for line in lines:
        if "folder" in line:
            prefix = prefix_of(line["folder"], root)
        elif line["outcome"] in _OUTCOMES:
            yield result_of(rebased(line["name"] or "collection", prefix), line["outcome"], line.get("message", ""))


class _Junit:
    """Reads JUnit XML as a stream of tags. Entities are not expanded, and nothing is fetched."""

    def __init__(self, text: str, names: Names) -> None:
        from xml.parsers.expat import ExpatError, ParserCreate

        self.results: list[TestResult] = []
        self._names = names
        self._open: list[str] = []
        self._case: dict[str, str] = {}
        self._outcome = Outcome.PASS
        self._message = self._text = ""
        self._is_python = False
        parser = ParserCreate()
        parser.StartDoctypeDeclHandler = self._refuse
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._data
        try:
            # The text is already decoded, so the declared encoding is removed.
            parser.Parse(PATTERNS["xml declaration"].sub("", text, count=1), True)
        except ExpatError as error:
            raise ValueError(f"its XML is broken, {error}") from None

    def _refuse(self, *_: object) -> None:
        raise ValueError("it declares a document type, which can hide entities")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._open.append(tag)
        if len(self._open) > _DEPTH_MAX:
            raise ValueError(f"it is nested more than {_DEPTH_MAX} deep")
        if len(self._open) == 1 and tag not in {"testsuites", "testsuite"}:
            raise ValueError(f"it begins with <{tag}>, not with <testsuites>")
        if tag == "testsuite":
            self._is_python = attributes.get("name") == "pytest"
        elif tag == "testcase":
            self._case, self._outcome, self._message, self._text = attributes, Outcome.PASS, "", ""
        elif tag in {"failure", "error", "skipped"} and self._open[-2] == "testcase":
            self._outcome = min(self._outcome, _OUTCOMES[tag], key=_WORST_FIRST.index)
            kind, message = attributes.get("type", ""), attributes.get("message", "")
            if tag != "skipped" and message and not self._message:
                self._message = message if kind in message else f"{kind}: {message}"

    def _data(self, text: str) -> None:
        if self._open[-1] in {"failure", "error"} and not self._message and len(self._text) < MESSAGE_CHARS_MAX:
            self._text += text

    def _end(self, tag: str) -> None:
        self._open.pop()
        if tag == "testcase":
            case = self._case
            name = self._names.of_case(case.get("classname", ""), case.get("name", ""), is_python=self._is_python)
            self.results.append(result_of(name, self._outcome, self._message or self._text))


def _json_records(text: str) -> list[dict[str, Any]]:
    """The records of one JSON document, or of one document in each line. Other lines of a build are skipped."""
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line[:1] == "{"]


def _of_jest(report: dict[str, Any], names: Names) -> Iterator[TestResult]:
    for file in report["testResults"]:
        path = names.of_file(file["name"])
        for test in file["assertionResults"]:
            name = f"{path}::{' > '.join([*test['ancestorTitles'], test['title']])}"
            outcome = test["status"] if test["status"] in _OUTCOMES else "skipped"
            yield result_of(name, outcome, "\n".join(test.get("failureMessages") or ()))
        if file["status"] == "failed" and not file["assertionResults"]:
            yield result_of(path, "failed", file.get("message", ""))


def _of_go(events: Sequence[dict[str, Any]]) -> Iterator[TestResult]:
    """The results of tests. A package is one only if it failed without a failed test: in the build or by a panic."""
    printed: dict[str, list[str]] = {}
    failed: set[str] = set()
    for event in events:
        package, test = event.get("Package", event.get("ImportPath", "")), event.get("Test")
        name = f"{package}.{test}" if test else package
        if "output" in event["Action"]:
            printed.setdefault(name, []).append(event["Output"])
        outcome = _OUTCOMES.get(event["Action"])
        if outcome is None or (test is None and (outcome is not Outcome.FAIL or package in failed)):
            continue
        lines = printed.get(name, []) + printed.get(event.get("FailedBuild", ""), [])
        message = "".join(line for line in lines if not line.lstrip().startswith(("===", "---", "FAIL")))
        if outcome is Outcome.FAIL:
            failed.add(package)
        yield result_of(name, outcome, message)


def _indented(lines: Sequence[str], indent: int) -> str:
    """A text of several lines in YAML: the lines that are indented deeper than its key."""
    deeper = takewhile(lambda line: not line.strip() or len(line) - len(line.lstrip()) > indent, lines)
    return " ".join(filter(None, map(str.strip, deeper)))


def of_tap(text: str) -> list[TestResult]:
    """The results in TAP. A suite's tests are indented below its name, and an error below its test."""
    suites: dict[int, str] = {}
    results: list[TestResult] = []
    lines = [line[:LINE_CHARS_MAX] for line in text.splitlines()]
    for number, line in enumerate(lines, start=1):
        indent = len(line) - len(line.lstrip())
        if line.lstrip().startswith("# Subtest: "):
            suites[indent] = line.partition(": ")[2]
        elif line.startswith("Bail out!"):
            results.append(result_of("Bail out!", "failed", line))
        elif test := PATTERNS["tap test"].fullmatch(line):
            name = " > ".join([*(suite for at, suite in sorted(suites.items()) if at < indent), test[3] or "test"])
            results.append(result_of(name, "skipped" if test[4] else test[2]))
        elif results and (error := PATTERNS["tap error"].fullmatch(line)) and not results[-1].message:
            is_block = error["text"][0] in "|>" and not error["quote"]
            message = _indented(lines[number : number + _ERROR_LINES_MAX], indent) if is_block else error["text"]
            results[-1] = result_of(results[-1].name, results[-1].outcome, message)
    return results
