"""Readers of error outputs: the reports of test runners, stack traces and panics, each as faults."""

from __future__ import annotations

from itertools import pairwise

from mnemarch.model.value import replace
from mnemarch.text.fingerprint_skeleton import (
    MASK,
    NAMES,
    Fault,
    base_name,
    code_skeleton,
    is_library,
    message_skeleton,
    place,
    typed,
)
from mnemarch.text.words import Patterns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_PYTEST = Patterns("errors", "pytest")
_JAVASCRIPT = Patterns("errors", "javascript")
_GO = Patterns("errors", "go")
_RUST = Patterns("errors", "rust")
_MAVEN = Patterns("errors", "maven")
_PYTHON = Patterns("errors", "python")
_AT = Patterns("errors", "at")

# Which of them is raised for one fault depends on the version.
_SYNTAX_ERRORS = frozenset({"SyntaxError", "IndentationError", "TabError"})
# The margin of an exception group.
_MARGIN = " \t|+"
# So many lines above the first frame may the type stand: messages have several lines.
_HEAD_LINES_MAX = 12


def pytest_faults(lines: Sequence[str]) -> list[Fault]:
    """The faults of failing tests. The sections say more than the summary, which is cut to the terminal's width."""
    in_sections = _by_place(_pytest_sections(lines))
    in_summary = _by_place(_pytest_summary(lines)) or in_sections
    return [fault for where, faults in in_summary.items() for fault in in_sections.get(where, faults)]


def _by_place(faults: Iterable[Fault]) -> dict[str, list[Fault]]:
    """The faults of each test; the bare news that it failed only if nothing else is said of it."""
    places: dict[str, list[Fault]] = {}
    for fault in faults:
        places.setdefault(fault.where, []).append(fault)
    return {where: [fault for fault in told if fault.kind or fault.what] or told for where, told in places.items()}


def _pytest_summary(lines: Sequence[str]) -> Iterator[Fault]:
    for match in filter(None, map(_PYTEST["summary"].match, lines)):
        message = match["message"] or ""
        fault = replace(_asserted(message), where=_test_place(match["file"], match["test"] or ""))
        # Where a message is cut depends on how long its values are.
        yield replace(fault, what="") if message.endswith("...") else fault


def _pytest_sections(lines: Sequence[str]) -> Iterator[Fault]:
    """The error that each section ends with."""
    heads = [number for number, line in enumerate(lines) if _PYTEST["head"].match(line)]
    # What stands above the first head may be a section that lost its own.
    for start, end in pairwise(dict.fromkeys([0, *heads, len(lines)])):
        section = lines[start:end]
        errors = [
            line[1:].strip()
            for before, line in pairwise(["", *section])
            if _PYTEST["error"].match(line) and not before.startswith("E ")
        ]
        if errors:
            head = _PYTEST["head"].match(section[0])
            files = [match["file"] for match in map(_PYTEST["place"].match, section) if match]
            file = next((file for file in files if not is_library(file)), "")
            yield replace(_asserted(errors[-1]), where=_test_place(file, (head and head["test"]) or ""))


def _test_place(file: str, test: str) -> str:
    """File, class and test, whatever the parameters; a file that could not be collected stands for itself."""
    test = test.partition("[")[0]
    if test.endswith(".py"):
        file, test = test, ""
    return "::".join(part for part in (base_name(file), *test.replace("::", ".").split(".")) if part)


def _asserted(message: str) -> Fault:
    """The fault of a message; an assertion's values are no part of it, whichever they are."""
    assertion = message.removeprefix("AssertionError: ")
    if not assertion.startswith("assert "):
        return typed(message)
    return Fault(kind="AssertionError", where="", what=message_skeleton(_PYTEST["constant"].sub("0", assertion)))


def javascript_test_faults(lines: Sequence[str]) -> list[Fault]:
    """Failing tests of Jest and Vitest: the name of the test, and the first line under it."""
    faults, where, file, kind = [], "", "", ""
    for line in lines:
        title = _JAVASCRIPT["test"].match(line)
        suite = _JAVASCRIPT["file"].match(line)
        if title is not None:
            where, kind = title["test"] or title["path"], "AssertionError"
            if where == "Console":
                where = ""
            elif where == "Test suite failed to run":
                where, kind = file, ""
        elif suite is not None:
            file = base_name(suite["file"])
        elif where and line.strip():
            faults.append(typed(line.strip(), message_skeleton(where) or MASK, kind))
            where = ""
    return faults


def go_test_faults(lines: Sequence[str]) -> list[Fault]:
    """Failing tests of Go with their first message; a test that fails by its parts is those."""
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
        Fault(kind="FAIL", where=message_skeleton(test), what=message_skeleton(messages.get(test, "")))
        for test in failing
        if test not in parents or test in messages
    ]


def cargo_test_faults(lines: Sequence[str]) -> list[Fault]:
    """Failing tests of Rust that returned an error; those that panicked say so themselves."""
    faults, where = [], ""
    for line in lines:
        section = _RUST["test"].match(line)
        if section is not None:
            where = section["test"]
        elif where and line.strip():
            if line.startswith("Error: "):
                faults.append(Fault(kind="Error", where=where, what=message_skeleton(line.removeprefix("Error: "))))
            where = ""
    return faults


def surefire_faults(lines: Sequence[str]) -> list[Fault]:
    """Maven's list of failing tests, where the traces above it are missing."""
    matches = filter(None, map(_MAVEN["test"].match, lines))
    return [typed(match["message"], match["test"], match["kind"] or "AssertionError") for match in matches]


def go_faults(lines: Sequence[str]) -> list[Fault]:
    """The panics of Go, each in the first function of its trace that is neither Go's nor a dependency's."""
    faults: list[Fault] = []
    function, is_placed = "", True
    for line in lines:
        panic = _GO["panic"].match(line)
        if panic is not None:
            faults.append(Fault(kind=panic["kind"], where="", what=message_skeleton(panic["message"])))
            function, is_placed = "", False
        elif not is_placed:
            file = _GO["file"].match(line)
            if file is not None and function and not is_library(file[1]):
                faults[-1] = replace(faults[-1], where=place(base_name(file[1]), function))
                is_placed = True
            call = _GO["call"].match(line)
            function = _GO["closure"].sub("", call[1].rsplit("/", 1)[-1]) if call else ""
    return faults


def rust_faults(lines: Sequence[str]) -> list[Fault]:
    """The panics of Rust: a test's thread has the test's name, others say little."""
    faults = []
    for line, following in pairwise([*lines, ""]):
        panic = _RUST["panic"].search(line)
        if panic is not None:
            message = following if panic["message"] is None else panic["message"]
            test = panic["thread"] if "::" in panic["thread"] or "_" in panic["thread"] else ""
            where = place(base_name(panic["file"]), test)
            faults.append(Fault(kind="panic", where=where, what=message_skeleton(message)))
    return faults


def python_faults(lines: Sequence[str]) -> list[Fault]:
    """The errors at the ends of tracebacks; of a chain the last."""
    faults: list[Fault] = []
    frames: list[tuple[str, str]] = []
    margin, shown = 0, ""
    for line in lines:
        text = line.lstrip(_MARGIN)
        indent = len(line) - len(text)
        frame = _PYTHON["frame"].match(text)
        if frame is not None:
            frames.append((frame["file"], frame["function"] or ""))
            margin, shown = indent, ""
        elif not frames:
            # The last error is the one that ended the run; those before it were handled, or are told as its reason.
            if faults and _PYTHON["chain"].match(text):
                faults.pop()
        # A shown string may go on over lines of any indentation, and a log may have taken the indentation away.
        elif text and ((indent < margin and frames[-1][1]) or _PYTHON["type"].match(text)):
            faults.append(_python_fault(text, frames, shown))
            frames = []
        elif not shown and text.strip("^~ "):
            shown = text
    return faults


def _python_fault(text: str, frames: Sequence[tuple[str, str]], shown: str) -> Fault:
    """The fault in the innermost frame that is not in a library: file and function, never the line."""
    fault = typed(text, ends_a_trace=True)
    if fault.kind in _SYNTAX_ERRORS:
        return _syntax_fault(text, base_name(frames[-1][0]), shown)
    # Since 3.12 a comprehension has no frame of its own.
    telling = [frame for frame in frames if not frame[1].endswith("comp>")] or frames
    own = [frame for frame in telling if not is_library(frame[0])]
    file, function = (own or telling)[-1]
    return replace(fault, where=place(base_name(file), function))


def _syntax_fault(text: str, file: str, shown: str) -> Fault:
    """A syntax error, identified by the source line, since each version words it otherwise."""
    message = text.partition(":")[2].strip()
    # Of an f-string some versions show the expression alone, in a file of its own.
    if file == "<fstring>" or (message.startswith("f-string:") and shown.startswith("(")):
        file = "f-string"
    # What is never closed is reported where it opens, or at the end of the file.
    if _PYTHON["never closed"].search(message):
        shown = ""
    return Fault(kind="SyntaxError", where=file, what=code_skeleton(shown))


def at_faults(lines: Sequence[str]) -> list[Fault]:
    """The errors of Java, JavaScript and C# traces; of "Caused by" the last, since frameworks wrap all they run."""
    faults: list[Fault] = []
    for above, frames in _at_traces(lines):
        # The line that states the error: the nearest that names a type, or else the nearest.
        is_cause = bool(above) and _AT["cause"].match(above[0]) is not None
        stating = [line for line in above if _AT["type"].search(line)] or above or [""]
        head = above[0] if is_cause else stating[-1]
        if _AT["aside"].search(head):
            continue
        stated = _AT["type"].search(head)
        fault = typed(stated["stated"] if stated else head.strip(), _at_place(above, frames))
        if faults and is_cause:
            faults[-1] = replace(fault, where=fault.where or faults[-1].where)
        else:
            faults.append(fault)
    return faults


def _at_traces(lines: Sequence[str]) -> Iterator[tuple[list[str], list[str]]]:
    """For each trace the lines above its frames, and the frames without their `at`."""
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


def _at_place(above: Sequence[str], frames: Sequence[str]) -> str:
    """The first place that is not a library's; the file that is named above, if it could not be parsed; any place."""
    places = [_at_frame_place(frame) for frame in frames]
    own = next((place for place, is_foreign in places if not is_foreign), "")
    named = next((match[1] for match in map(_AT["file and line"].match, above) if match), "")
    return own or base_name(named) or (places[0][0] if places else "")


def _at_frame_place(frame: str) -> tuple[str, bool]:
    """File and function, or class and method; and whether that is a library's."""
    call = _AT["call"].match(frame)
    function, location = (call["function"], call["location"]) if call else ("", frame)
    script = _AT["script"].match(location)
    if script is not None:
        name = function.rsplit(".", 1)[-1]
        return place(base_name(script["file"]), "" if name == "<anonymous>" else name), is_library(script["file"])
    method = _AT["made-up method"].sub(r"\1", function.rsplit("/", 1)[-1])
    is_foreign = NAMES["foreign package"].match(method) is not None
    return ".".join(method.split(".")[-2:]), is_foreign
