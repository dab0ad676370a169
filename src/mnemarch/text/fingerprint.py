"""Error fingerprints: the same for the same fault, whatever its line numbers, paths, times and values (S4, R9)."""

from __future__ import annotations

from unicodedata import normalize

from mnemarch.model.stamps import sha256
from mnemarch.model.value import value
from mnemarch.text import fingerprint_readers as readers
from mnemarch.text.cache import pattern
from mnemarch.text.fingerprint_skeleton import (
    KIND_AND_MESSAGE,
    MASK,
    Fault,
    base_name,
    cut,
    is_source,
    message_skeleton,
    one_of,
    typed,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Reader = Callable[[Sequence[str]], list[Fault]]

# Fingerprints made by other rules cannot be compared: a change of meaning raises the version.
FINGERPRINT_VERSION = 1
CORE_CHARS_MAX = 300
_EMPTY = "no output"
_BARE_CHARS_MAX = 64

# The signs without which a reader finds nothing; most texts have few of them.
_SIGNS: dict[Reader, tuple[str, ...]] = {
    readers.pytest_faults: ("FAILED ", "ERROR ", "E   "),
    readers.javascript_test_faults: ("●", "FAIL ", "×"),
    readers.go_test_faults: ("--- FAIL",),
    readers.cargo_test_faults: ("stdout ----",),
    readers.go_faults: ("panic: ", "fatal error: "),
    readers.rust_faults: ("panicked at",),
    readers.python_faults: ('File "',),
    readers.at_faults: (" at ", "\tat ", "Caused by: ", " bei ", " à ", " в ", "위치: ", "場所 "),
}

_COLOUR = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])"
# What containers and CI put before each line.
_STAMP = (
    r"^(?:[\w.-]{1,60}\s{1,20}\|(?:\s|$))?"
    r"(?:\[?\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d{1,9})?(?:Z|[+-]\d{2}:?\d{2})?\]?(?:[ \t]|$))?"
)

_MILD = frozenset({"warning", "note", "info", "hint"})
_RUSTC = r"(?P<level>error|warning)(?:\[(?P<code>\w+)\])?: (?P<message>.*)"
_RUSTC_FILE = r"\s*--> (?P<file>.+?):\d+:\d+"
_DIAGNOSTIC = (
    r"(?i)\s*(?:\[ERROR\]\s+|ERROR in\s+|vet: |e: )?(?P<file>(?:file://|[A-Za-z]:)?[^\s:()]+\.[A-Za-z]{1,5})"
    r"(?::\[?\d+(?:[:,]\d+)?\]?|\(\d+(?:,\d+)?\)):?\s(?:-\s)?\s*"
    r"(?:(?P<level>(?:fatal )?error|warning|note|info|hint|오류|경고|エラー|错误|Fehler|erreur|ошибка)\b:?\s*)?"
    r"(?:(?P<code>[A-Z]{1,6}-?\d{3,5})\b:?\s*)?(?P<message>\S.*)$"
)
_RULE_AT_THE_END = r"\s+\[([A-Za-z][\w-]*)\]$|\s+\[[^\]]*\.\w*proj\]$"

# The fields in which loggers and APIs put what went wrong.
_FIELD = "(?:message|msg|error|err|exception|cause|detail|details|reason|event|title|type)"
_JSON_FIELD = rf'(?i)"{_FIELD}"\s?:\s?"((?:[^"\\]|\\.)+)"'
_LOGFMT_START = r"[A-Za-z_][\w.]*=\S"
_LOGFMT_FIELD = rf'(?i)(?<![\w.]){_FIELD}="((?:[^"\\]|\\.)+)"'
_KIND = r"(?<![\w$])[A-Z][\w$]*?(?:Error|Exception)(?![\w$])"
_PROMPT = (
    r"^\s*(?:(?:\([\w.-]{1,40}\)\s)?(?:[\w.-]{1,40}@[\w.-]{1,60}[: ][^$#%>]{0,200})?[$%❯➜»]\s"
    r"|[\w.-]{1,40}@[\w.-]{1,60}[: ][^$#%>]{0,200}#\s|PS [A-Z]:\\[^>]{0,200}>\s?|[A-Z]:\\[^>]{0,200}>)"
)
_LEVEL = "TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|ERR|SEVERE|FATAL|CRITICAL|CRIT|ALERT|EMERG|PANIC"
_ANY_LEVEL = f"{_LEVEL}|{_LEVEL.lower()}|{_LEVEL.title()}"
_LEADING_TRIVIA = (
    rf"^(?:[\s*|:,;.-]+|[\[(<](?:{_ANY_LEVEL})[\])>]|(?:{_LEVEL})(?=[\s:|-]+\S)|(?:{_ANY_LEVEL})(?=\s?:))+"
)


@value
class Fingerprint:
    """`hash` names the fault; `kind` is the error's type, or empty; `core` is what was hashed."""

    hash: str
    kind: str
    core: str


def fingerprint(error: str) -> Fingerprint:
    """What an error output says, without what differs from one run to the next."""
    faults = {str(fault): fault for fault in _faults(_clean_lines(error))}
    names = sorted(faults)
    core = " | ".join(names) or _EMPTY
    if len(core) > CORE_CHARS_MAX:
        # A long core ends with a digest of the whole, so that it still tells what it was cut from.
        core = f"{core[: CORE_CHARS_MAX - 20]}… {_digest(core)[:16]}"
    if len(error) <= _BARE_CHARS_MAX and not any(map(str.isalpha, core)):
        # A bare value (an exit code, a path): what is left of two of them is the same, and they are not.
        core = " ".join(error.split()) or _EMPTY
    kinds = [faults[name].kind for name in names if faults[name].kind]
    return Fingerprint(hash=_digest(core), kind=kinds[0] if kinds else "", core=core)


def _digest(core: str) -> str:
    return sha256(core.encode("utf-8", "surrogatepass")).hexdigest()


def _clean_lines(text: str) -> list[str]:
    """The lines without colours, white space at their ends, and stamps; a line that repeats the one before goes."""
    lines = pattern(_COLOUR).sub("", text).splitlines() if "\x1b" in text else text.splitlines()
    news = [line for number, line in enumerate(lines) if not number or line != lines[number - 1]]
    clean = [pattern(_STAMP).sub("", cut(line.rstrip())) for line in news]
    return [line if line.isascii() else normalize("NFC", line) for line in clean]


def _faults(lines: Sequence[str]) -> Sequence[Fault]:
    """By the most telling form that is there: test reports, then traces, then diagnostics, then plain lines."""
    text = "\n".join(lines)

    def read(*chosen: Reader) -> list[Fault]:
        present = [reader for reader in chosen if any(sign in text for sign in _SIGNS[reader])]
        return [fault for reader in present for fault in reader(lines)]

    tests = read(readers.pytest_faults, readers.javascript_test_faults)
    if tests:
        return tests
    panics = read(readers.go_faults, readers.rust_faults)
    tests = read(readers.go_test_faults, readers.cargo_test_faults)
    # A test that panicked says nothing by itself. Rust's backtraces say `at` too.
    stated = [*(fault for fault in tests if fault.what or not panics), *panics]
    traced = stated or read(readers.python_faults, readers.at_faults)
    return traced or _diagnostic_faults(lines) or readers.surefire_faults(lines) or _plain_faults(lines)


def _diagnostic_faults(lines: Sequence[str]) -> list[Fault]:
    """What compilers, type checkers and linters say about files; mild diagnostics only if there is nothing worse."""
    found: list[tuple[str, Fault]] = []
    for number, line in enumerate(lines):
        diagnostic = _by_rustc(line, lines[number + 1 : number + 4]) or _by_others(line)
        if diagnostic is not None:
            found.append(diagnostic)
    errors = [fault for level, fault in found if level not in _MILD]
    return errors or [fault for _, fault in found]


def _by_rustc(line: str, following: Sequence[str]) -> tuple[str, Fault] | None:
    """The level and the fault; the message stands above the file, and what names no file only sums up."""
    match = pattern(_RUSTC).match(line)
    file = next(filter(None, map(pattern(_RUSTC_FILE).match, following)), None) if match else None
    if match is None or file is None:
        return None
    kind, what = match["code"] or match["level"], message_skeleton(match["message"])
    return match["level"], Fault(kind=kind, where=base_name(file["file"]), what=what)


def _by_others(line: str) -> tuple[str, Fault] | None:
    match = pattern(_DIAGNOSTIC).match(line)
    if match is None or not is_source(match["file"]):
        return None
    rule = pattern(_RULE_AT_THE_END).search(match["message"])
    level = (match["level"] or "error").lower()
    kind = match["code"] or (rule and rule[1]) or level
    what = message_skeleton(pattern(_RULE_AT_THE_END).sub("", match["message"]))
    return level, Fault(kind=kind, where=base_name(match["file"]), what=what)


def _plain_faults(lines: Sequence[str]) -> list[Fault]:
    """One fault for each line that speaks of an error, or for each line if none does; commands only if alone."""
    output = [line.strip() for line in lines if line.strip() and not pattern(_PROMPT).match(line)]
    output = output or [pattern(_PROMPT).sub("", line).strip() for line in lines if line.strip()]
    bad = [line for line in output if one_of("bad news", "(?i)").search(line)]
    return [_plain_fault(line) for line in dict.fromkeys(bad or output)]


def _plain_fault(line: str) -> Fault:
    # The fields of a JSON or logfmt line: such a line is nothing but quoted values otherwise.
    fields: list[str] = []
    if line[:1] in {"{", '"'}:
        fields = pattern(_JSON_FIELD).findall(line)
    elif pattern(_LOGFMT_START).match(line):
        fields = pattern(_LOGFMT_FIELD).findall(line)
    line = ": ".join(fields) or line
    if pattern(KIND_AND_MESSAGE).match(line):
        return typed(line)
    bare = message_skeleton(line)
    message = pattern(_LEADING_TRIVIA).sub("", bare) or bare or MASK
    if pattern(KIND_AND_MESSAGE).match(message):
        return typed(message)
    kind = pattern(_KIND).search(message)
    return Fault(kind=kind[0] if kind else "", where="", what=message)
