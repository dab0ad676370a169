"""Error fingerprints: the same for the same fault, whatever its line numbers, paths, times and values (S4, R9)."""

from __future__ import annotations

from itertools import pairwise

from mnemarch.model.stamps import sha256
from mnemarch.model.value import Frozen, replace
from mnemarch.text.cache import cached
from mnemarch.text.canonical import composed
from mnemarch.text.faults import (
    MASK,
    TYPES,
    Fault,
    base_name,
    code_skeleton,
    cut,
    in_test,
    is_source,
    message_skeleton,
    typed,
)
from mnemarch.text.words import Patterns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Reader = Callable[[Sequence[str]], list[Fault]]

CORE_CHARS_MAX = 300
_EMPTY = "no output"
_BARE_CHARS_MAX = 64
_NEARLY_BEST = 0.6

_LINES = Patterns("errors", "lines")
_DIAGNOSTICS = Patterns("errors", "diagnostics")
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
_MILD = frozenset({"warning", "note", "info", "hint"})


class Fingerprint(Frozen):
    """`hash` identifies the fault, `kind` is the error's type or empty, and `core` is the hashed text."""

    hash: str
    kind: str
    core: str


def fingerprint(error: str) -> Fingerprint:
    """The fingerprint of an error output, without the parts that differ between runs."""
    faults = {str(fault): fault for fault in _faults(_clean_lines(error))}
    names = sorted(faults)
    core = " | ".join(names) or _EMPTY
    if len(core) > CORE_CHARS_MAX:
        # A long core is cut and ends with a digest of the whole, so that different cores stay different.
        core = f"{core[: CORE_CHARS_MAX - 20]}… {_digest(core)[:16]}"
    if len(error) <= _BARE_CHARS_MAX and not any(map(str.isalpha, core)):
        # Bare values (an exit code, a path) would all have the same core, so the text itself is the core.
        core = " ".join(error.split()) or _EMPTY
    kinds = [faults[name].kind for name in names if faults[name].kind]
    return Fingerprint(hash=_digest(core), kind=kinds[0] if kinds else "", core=core)


@cached(1_024)
def telling_line(error: str) -> str:
    """The original line of an error output that shares most with its fingerprint.

    The fingerprint masks names and values, so a text for people quotes this line.
    """
    written = [line.strip() for line in _clean_lines(error) if line.strip()]
    lines = [_LINES["pytest margin"].sub("", line) for line in written]
    lines = [line for line, raw in zip(lines, written, strict=True) if line != raw] or lines
    # "+ where -1 = add(1, 2)" explains the assertion above it.
    lines = [line for line in lines if not line.startswith("+ ")] or lines
    core = set(_LINES["word"].findall(fingerprint(error).core))
    alike = [_share(core, words) for words in map(set, map(_LINES["word"].findall, lines))]
    least = _NEARLY_BEST * max(alike, default=0.0)
    # The fingerprint of a syntax error has its source line, and not its message.
    lines_and_shares = zip(lines, alike, strict=True)
    near = [each for each, share in lines_and_shares if share >= least or each.partition(":")[0] in _SYNTAX_ERRORS]
    typed_lines = [line for line in near if TYPES["type and message"].match(line)]
    return (typed_lines or near or [_EMPTY])[-1]


def _share(core: set[str], words: set[str]) -> float:
    """The shared part of both sets (Jaccard), in time proportional to the smaller set."""
    shared = len(core & words)
    return shared / (len(core) + len(words) - shared or 1)


def _digest(core: str) -> str:
    return sha256(core.encode("utf-8", "surrogatepass")).hexdigest()


def _clean_lines(text: str) -> list[str]:
    """The lines without colours, trailing white space, timestamps, and repeats of the line before."""
    lines = _LINES["colour"].sub("", text).splitlines() if "\x1b" in text else text.splitlines()
    news = [line for number, line in enumerate(lines) if not number or line != lines[number - 1]]
    return [composed(_LINES["stamp"].sub("", cut(line.rstrip())), "NFC") for line in news]


def _faults(lines: Sequence[str]) -> Sequence[Fault]:
    """The faults of the most specific form present: test reports, then traces, diagnostics, and plain lines."""
    text = "\n".join(lines)

    def read(*chosen: Reader) -> list[Fault]:
        present = [reader for reader in chosen if any(sign in text for sign in _SIGNS[reader])]
        return [fault for reader in present for fault in reader(lines)]

    tests = read(pytest_faults, javascript_test_faults)
    if tests:
        return tests
    panics = read(go_faults, rust_faults)
    tests = read(go_test_faults, cargo_test_faults)
    # A test that panicked has no message of its own. Rust's backtraces contain `at` too.
    stated = [*(fault for fault in tests if fault.what or not panics), *panics]
    traced = stated or read(python_faults, at_faults)
    return traced or _diagnostic_faults(lines) or surefire_faults(lines) or _plain_faults(lines)


def _diagnostic_faults(lines: Sequence[str]) -> list[Fault]:
    """Diagnostics of compilers, type checkers and linters. Mild ones count only if there are no errors."""
    diagnostics: list[tuple[str, Fault]] = []
    for number, line in enumerate(lines):
        following = lines[number + 1 : number + 6]
        diagnostic = _by_rustc(line, following) or _by_others(line, following)
        diagnostics += [] if diagnostic is None else [diagnostic]
    errors = [fault for level, fault in diagnostics if level not in _MILD]
    return errors or [fault for _, fault in diagnostics]


def _by_rustc(line: str, following: Sequence[str]) -> tuple[str, Fault] | None:
    """The level and the fault. The message is above the file; without a code and a file it is only a summary."""
    match = _DIAGNOSTICS["rustc message"].match(line)
    file = next(filter(None, map(_DIAGNOSTICS["rustc file"].match, following)), None) if match else None
    if match is None or (file is None and match["code"] is None):
        return None
    what = message_skeleton(match["message"])
    if file is not None and "'" not in what:
        # The message has no name in it, so add the file.
        what = f"{base_name(file['file'])}: {what}"
    return match["level"], Fault(kind=match["code"] or match["level"], what=what)


def _by_others(line: str, following: Sequence[str]) -> tuple[str, Fault] | None:
    match = _DIAGNOSTICS["message"].match(line)
    if match is None or not is_source(match["file"]):
        return None
    rule = _DIAGNOSTICS["rule"].search(match["message"])
    level = (match["level"] or "error").lower()
    kind = match["code"] or (rule and rule[1]) or level
    symbol = next(filter(None, map(_DIAGNOSTICS["symbol"].match, following)), None)
    parts = [match["message"] if rule is None else _DIAGNOSTICS["rule"].sub("", match["message"])]
    if symbol is not None and parts[0].startswith("cannot find symbol"):
        parts.append(symbol["symbol"])
    return level, Fault(kind=kind, what=": ".join([base_name(match["file"]), *map(message_skeleton, parts)]))


def _plain_faults(lines: Sequence[str]) -> list[Fault]:
    """One fault for each line that mentions an error, or else for each line. Commands count only if alone."""
    output = [line.strip() for line in lines if line.strip() and not _LINES["prompt"].match(line)]
    output = output or [_LINES["prompt"].sub("", line).strip() for line in lines if line.strip()]
    bad = [line for line in output if _LINES["bad news"].search(line)]
    return [_plain_fault(line) for line in dict.fromkeys(bad or output)]


def _plain_fault(line: str) -> Fault:
    # Read the fields of a JSON or logfmt line. Otherwise all of it would be masked as quoted values.
    fields: list[str] = []
    if line[:1] in {"{", '"'}:
        fields = _LINES["json field"].findall(line)
    elif _LINES["logfmt start"].match(line):
        fields = _LINES["logfmt field"].findall(line)
    line = ": ".join(fields) or line
    if TYPES["type and message"].match(line):
        return typed(line)
    bare = message_skeleton(line)
    message = _LINES["leading trivia"].sub("", bare) or bare or MASK
    if TYPES["type and message"].match(message):
        return typed(message)
    kind = _LINES["type somewhere"].search(message)
    return Fault(kind=kind[0] if kind else "", what=message)


# Reports of test runners, stack traces and panics


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
    return {test: [fault for fault in every if fault.kind or fault.what] or every for test, every in tests.items()}


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
            # A file with a syntax error begins with its place, and not with the error.
            shown = [line[1:] for line in section if line[:1] == "E"] if _PYTHON["frame"].match(errors[-1]) else []
            fault = (python_faults(shown) or [_asserted(errors[-1])])[-1]
            yield _test_name(files[0] if files else "", (head and head["test"]) or ""), fault


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


# The signs that each reader needs. Most texts have few of them.
_SIGNS: dict[Reader, tuple[str, ...]] = {
    pytest_faults: ("FAILED ", "ERROR ", "E   "),
    javascript_test_faults: ("●", "FAIL ", "×"),
    go_test_faults: ("--- FAIL",),
    cargo_test_faults: ("stdout ----",),
    go_faults: ("panic: ", "fatal error: "),
    rust_faults: ("panicked at",),
    python_faults: ('File "',),
    at_faults: (" at ", "\tat ", "Caused by: ", " bei ", " à ", " в ", "위치: ", "場所 "),
}
