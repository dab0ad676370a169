"""Readers of error outputs: the reports of test runners, stack traces and panics, each as faults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from mnemarch.model.value import replace
from mnemarch.text.fingerprint_skeleton import (
    MASK,
    Fault,
    base_name,
    code_skeleton,
    in_test,
    message_skeleton,
    typed,
)
from mnemarch.text.words import Patterns

_PYTEST = Patterns("errors", "pytest")
_JAVASCRIPT = Patterns("errors", "javascript")
_GO = Patterns("errors", "go")
_RUST = Patterns("errors", "rust")
_MAVEN = Patterns("errors", "maven")
_PYTHON = Patterns("errors", "python")
_AT = Patterns("errors", "at")

# Python versions raise different ones of these for the same fault.
_SYNTAX_ERRORS = frozenset({"SyntaxError", "IndentationError", "TabError"})
# The margin of an exception group.
_MARGIN = " \t|+"
# How many lines above the first frame are searched for the type, since messages may have several lines.
_HEAD_LINES_MAX = 12


def pytest_faults(lines: Sequence[str]) -> list[Fault]:
    """The faults of failing tests. Sections are preferred to the summary, which is cut to the terminal's width."""
    in_sections = _by_test(_pytest_sections(lines))
    in_summary = _by_test(_pytest_summary(lines)) or in_sections
    return [in_test(fault, test) for test, faults in in_summary.items() for fault in in_sections.get(test, faults)]


def _by_test(faults: Iterable[tuple[str, Fault]]) -> dict[str, list[Fault]]:
    """The faults of each test. A fault without type and message counts only if the test has no other."""
    tests: dict[str, list[Fault]] = {}
    for test, fault in faults:
        tests.setdefault(test, []).append(fault)
    return {test: [fault for fault in told if fault.kind or fault.what] or told for test, told in tests.items()}


def _pytest_summary(lines: Sequence[str]) -> Iterator[tuple[str, Fault]]:
    for match in filter(None, map(_PYTEST["summary"].match, lines)):
        message = match["message"] or ""
        fault = _asserted(message)
        # The length of the values decides where a message is cut, so a cut message is dropped.
        yield (
            _test_name(match["file"], match["test"] or ""),
            replace(fault, what="") if message.endswith("...") else fault,
        )


def _pytest_sections(lines: Sequence[str]) -> Iterator[tuple[str, Fault]]:
    """The error that each section ends with."""
    heads = [number for number, line in enumerate(lines) if _PYTEST["head"].match(line)]
    # The lines above the first head may be a section without its head.
    for start, end in pairwise(dict.fromkeys([0, *heads, len(lines)])):
        section = lines[start:end]
        errors = [
            line[1:].strip()
            for before, line in pairwise(["", *section])
            if _PYTEST["error"].match(line) and not f"{before} ".startswith("E ")
        ]
        if errors:
            head = _PYTEST["head"].match(section[0])
            files = [match["file"] for match in map(_PYTEST["place"].match, section) if match]
            yield _test_name(files[0] if files else "", (head and head["test"]) or ""), _asserted(errors[-1])


def _test_name(file: str, test: str) -> str:
    """File, class and test without parameters, or the file alone if it could not be collected."""
    test = test.partition("[")[0]
    if test.endswith(".py"):
        file, test = test, ""
    return "::".join(part for part in (base_name(file), *test.replace("::", ".").split(".")) if part)


def _asserted(message: str) -> Fault:
    """The fault of a message, without the values of an assertion."""
    assertion = message.removeprefix("AssertionError: ")
    if not assertion.startswith("assert "):
        return typed(message)
    what = message_skeleton(_PYTEST["constant"].sub("0", assertion), keeps_names=False)
    return Fault(kind="AssertionError", what=what)


def javascript_test_faults(lines: Sequence[str]) -> list[Fault]:
    """Failing tests of Jest and Vitest: the name of the test, and the first line under it."""
    faults, test, kind = [], "", ""
    for line in lines:
        title = _JAVASCRIPT["test"].match(line)
        if title is not None:
            test = message_skeleton(title["test"] or title["path"], keeps_names=False) or MASK
            kind = "" if test == "Test suite failed to run" else "AssertionError"
            if test == "Console":
                test = ""
        elif test and line.strip():
            faults.append(in_test(typed(line.strip(), kind), test))
            test = ""
    return faults


def go_test_faults(lines: Sequence[str]) -> list[Fault]:
    """Failing tests of Go with their first message. A test with failing subtests is replaced by those."""
    messages: dict[str, str] = {}
    failing: list[str] = []
    current = ""
    for line in lines:
        test = _GO["test"].match(line)
        if test is not None:
            current = test["test"]
            if test["verdict"] == "--- FAIL:":
                failing.append(current)
        elif detail := _GO["detail"].match(line):
            messages.setdefault(current, detail["message"])
    parents = {test.rsplit("/", 1)[0] for test in failing if "/" in test}
    return [
        Fault(kind="FAIL", test=message_skeleton(test), what=message_skeleton(messages.get(test, "")))
        for test in failing
        if test not in parents or test in messages
    ]


def cargo_test_faults(lines: Sequence[str]) -> list[Fault]:
    """Failing tests of Rust that returned an error; those that panicked say so themselves."""
    faults, is_first = [], False
    for line in lines:
        if _RUST["test"].match(line):
            is_first = True
        elif is_first and line.strip():
            if line.startswith("Error: "):
                faults.append(Fault(kind="Error", what=message_skeleton(line.removeprefix("Error: "))))
            is_first = False
    return faults


def surefire_faults(lines: Sequence[str]) -> list[Fault]:
    """Maven's list of failing tests, where the traces above it are missing."""
    matches = filter(None, map(_MAVEN["test"].match, lines))
    return [in_test(typed(match["message"], match["kind"] or "AssertionError"), match["test"]) for match in matches]


def go_faults(lines: Sequence[str]) -> list[Fault]:
    """The panics of Go."""
    matches = filter(None, map(_GO["panic"].match, lines))
    return [Fault(kind=match["kind"], what=message_skeleton(match["message"])) for match in matches]


def rust_faults(lines: Sequence[str]) -> list[Fault]:
    """The panics of Rust: a test's thread has the test's name, others say little."""
    faults = []
    for line, following in pairwise([*lines, ""]):
        panic = _RUST["panic"].search(line)
        if panic is not None:
            message = following if panic["message"] is None else panic["message"]
            test = panic["thread"] if "::" in panic["thread"] or "_" in panic["thread"] else ""
            faults.append(in_test(Fault(kind="panic", what=message_skeleton(message)), test))
    return faults


def python_faults(lines: Sequence[str]) -> list[Fault]:
    """The errors at the ends of tracebacks. For a chain, only the last error."""
    faults: list[Fault] = []
    frames: list[tuple[str, str]] = []
    margin, shown = 0, ""
    for number, line in enumerate(lines):
        text = line.lstrip(_MARGIN)
        indent = len(line) - len(text)
        frame = _PYTHON["frame"].match(text)
        if frame is not None:
            frames.append((frame["file"], frame["function"] or ""))
            margin, shown = indent, ""
        elif not frames:
            # The last error ended the run. The errors before it were handled or are its causes.
            if faults and _PYTHON["chain"].match(text):
                faults.pop()
        # A shown string may continue with any indentation, and a log may have removed the indentation.
        elif text and ((indent < margin and frames[-1][1]) or _PYTHON["type"].match(text)):
            if text.endswith(":"):
                # The message begins on the next line.
                text += " " + next((after.strip() for after in lines[number + 1 : number + 4] if after.strip()), "")
            faults.append(_python_fault(text, frames, shown))
            frames = []
        elif not shown and text.strip("^~ "):
            shown = text
    return faults


def _python_fault(text: str, frames: Sequence[tuple[str, str]], shown: str) -> Fault:
    fault = typed(text, ends_a_trace=True)
    if fault.kind in _SYNTAX_ERRORS:
        return _syntax_fault(text, base_name(frames[-1][0]), shown)
    test = next((f"{base_name(file)}::{function}" for file, function in frames if function.startswith("test")), "")
    return in_test(fault, test)


def _syntax_fault(text: str, file: str, shown: str) -> Fault:
    """A syntax error, identified by file and source line, since its message differs between versions."""
    message = text.partition(":")[2].strip()
    # Some versions show only the expression of an f-string, with a file name of its own.
    if file == "<fstring>" or (message.startswith("f-string:") and shown.startswith("(")):
        file = "f-string"
    # Versions report an unclosed bracket where it opens or at the end of the file.
    if _PYTHON["never closed"].search(message):
        shown = ""
    return Fault(kind="SyntaxError", what=": ".join(part for part in (file, code_skeleton(shown)) if part))


def at_faults(lines: Sequence[str]) -> list[Fault]:
    """The errors of Java, JavaScript and C# traces. The last "Caused by" counts, since frameworks wrap errors."""
    faults: list[Fault] = []
    for above, frames in _at_traces(lines):
        # The nearest line that names a type states the error, or else the nearest line.
        is_cause = bool(above) and _AT["cause"].match(above[0]) is not None
        stating = [line for line in above if _AT["type"].search(line)] or above or [""]
        head = above[0] if is_cause else stating[-1]
        if _AT["aside"].search(head):
            continue
        stated = _AT["type"].search(head)
        # The test that a frame or a line above names, or else the first file of JavaScript that is no library's.
        named = (
            *map(_AT["test"].search, frames),
            *map(_AT["title"].match, above[::-1]),
            *map(_AT["own"].match, frames),
        )
        test = next((match[1] for match in named if match is not None), "")
        fault = in_test(typed(stated["stated"] if stated else head.strip()), test)
        if faults and is_cause:
            faults[-1] = fault
        else:
            faults.append(fault)
    return faults


def _at_traces(lines: Sequence[str]) -> Iterator[tuple[list[str], list[str]]]:
    """The lines above the frames of each trace, and its frames without `at`."""
    above: list[str] = []
    frames: list[str] = []
    is_cause = False
    for line in lines:
        frame = _AT["frame"].match(line)
        if frame is not None:
            frames.append(frame["rest"])
            continue
        if not line.strip():
            continue
        starts_cause = _AT["cause"].match(line) is not None
        if frames or (starts_cause and is_cause):
            yield above[-_HEAD_LINES_MAX:], frames
            above, frames, is_cause = [], [], False
        if starts_cause:
            above, is_cause = [], True
        above.append(line)
    if frames or is_cause:
        yield above[-_HEAD_LINES_MAX:], frames
