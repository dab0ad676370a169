"""Error fingerprints: the same for the same fault, whatever its line numbers, paths, times and values (S4, R9)."""

from __future__ import annotations

from mnemarch.model.stamps import sha256
from mnemarch.model.value import Frozen
from mnemarch.text import fingerprint_readers as readers
from mnemarch.text.cache import cached
from mnemarch.text.canonical import composed
from mnemarch.text.fingerprint_skeleton import MASK, TYPES, Fault, base_name, cut, is_source, message_skeleton, typed
from mnemarch.text.words import Patterns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Reader = Callable[[Sequence[str]], list[Fault]]

CORE_CHARS_MAX = 300
_EMPTY = "no output"
_BARE_CHARS_MAX = 64
_NEARLY_BEST = 0.6

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

_LINES = Patterns("errors", "lines")
_DIAGNOSTICS = Patterns("errors", "diagnostics")
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
    near = [line for line, share in zip(lines, alike, strict=True) if share >= least]
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

    tests = read(readers.pytest_faults, readers.javascript_test_faults)
    if tests:
        return tests
    panics = read(readers.go_faults, readers.rust_faults)
    tests = read(readers.go_test_faults, readers.cargo_test_faults)
    # A test that panicked has no message of its own. Rust's backtraces contain `at` too.
    stated = [*(fault for fault in tests if fault.what or not panics), *panics]
    traced = stated or read(readers.python_faults, readers.at_faults)
    return traced or _diagnostic_faults(lines) or readers.surefire_faults(lines) or _plain_faults(lines)


def _diagnostic_faults(lines: Sequence[str]) -> list[Fault]:
    """Diagnostics of compilers, type checkers and linters. Mild ones count only if there are no errors."""
    found: list[tuple[str, Fault]] = []
    for number, line in enumerate(lines):
        following = lines[number + 1 : number + 6]
        diagnostic = _by_rustc(line, following) or _by_others(line, following)
        if diagnostic is not None:
            found.append(diagnostic)
    errors = [fault for level, fault in found if level not in _MILD]
    return errors or [fault for _, fault in found]


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
