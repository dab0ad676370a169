"""Error fingerprints: the same for the same fault, whatever its line numbers, paths, times and values (S4, R9)."""

from __future__ import annotations

from mnemarch.model.stamps import sha256
from mnemarch.model.value import value
from mnemarch.text import fingerprint_panics as panics
from mnemarch.text import fingerprint_reports as reports
from mnemarch.text import fingerprint_traces as traces
from mnemarch.text.fingerprint_diagnostics import diagnostic_faults
from mnemarch.text.fingerprint_parts import Fault, clean_lines, plain_faults

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Reader = Callable[[Sequence[str]], list[Fault]]

# Fingerprints made by other rules cannot be compared: a change of meaning raises the version.
FINGERPRINT_VERSION = 1
CORE_CHARS_MAX = 300
_EMPTY = "no output"
_BARE_CHARS_MAX = 64
# Who reads it, and the signs without which there is nothing to read.
_TEST_REPORTS: dict[Reader, tuple[str, ...]] = {
    reports.pytest_faults: ("FAILED ", "ERROR ", "E   "),
    reports.javascript_test_faults: ("●", "FAIL ", "×"),
}
_TESTS_THAT_PANIC: dict[Reader, tuple[str, ...]] = {
    reports.go_test_faults: ("--- FAIL",),
    reports.cargo_test_faults: ("stdout ----",),
}
_PANICS: dict[Reader, tuple[str, ...]] = {
    panics.go_faults: ("panic: ", "fatal error: "),
    panics.rust_faults: ("panicked at",),
}
_TRACES: dict[Reader, tuple[str, ...]] = {
    traces.python_faults: ('File "',),
    traces.at_faults: (" at ", "\tat ", "Caused by: ", " bei ", " à ", " в ", "위치: ", "場所 "),
}


@value
class Fingerprint:
    """`hash` names the fault; `kind` is the error's type, or empty; `core` is what was hashed."""

    hash: str
    kind: str
    core: str


def fingerprint(error: str) -> Fingerprint:
    """What an error output says, without what differs from one run to the next."""
    faults = {str(fault): fault for fault in _faults(clean_lines(error))}
    known = sorted(faults)
    core = _shortened(" | ".join(known)) or _EMPTY
    if len(error) <= _BARE_CHARS_MAX and not any(map(str.isalpha, core)):
        # A bare value (an exit code, a path): what is left of two of them is the same, and they are not.
        core = " ".join(error.split()) or _EMPTY
    kinds = [faults[said].kind for said in known if faults[said].kind]
    return Fingerprint(hash=_digest(core), kind=kinds[0] if kinds else "", core=core)


def _faults(lines: Sequence[str]) -> Sequence[Fault]:
    """By the most telling form that is there: test reports, then traces, then diagnostics, then plain lines."""
    text = "\n".join(lines)
    tests = _read(lines, text, _TEST_REPORTS)
    if tests:
        return tests
    panicked = _read(lines, text, _PANICS)
    tests = _read(lines, text, _TESTS_THAT_PANIC)
    told = [fault for fault in tests if fault.what] if panicked else tests
    # Rust's backtraces say `at` too.
    found = [*told, *panicked] or _read(lines, text, _TRACES)
    return found or diagnostic_faults(lines) or reports.surefire_faults(lines) or plain_faults(lines)


def _read(lines: Sequence[str], text: str, readers: Mapping[Reader, tuple[str, ...]]) -> list[Fault]:
    """What those readers find of which a sign is in the text; most texts have few."""
    return [
        fault for reader, signs in readers.items() if any(sign in text for sign in signs) for fault in reader(lines)
    ]


def _shortened(core: str) -> str:
    """A long core ends with a digest of the whole, so that it still tells what it was cut from."""
    if len(core) <= CORE_CHARS_MAX:
        return core
    return f"{core[: CORE_CHARS_MAX - 20]}… {_digest(core)[:16]}"


def _digest(core: str) -> str:
    return sha256(core.encode("utf-8", "surrogatepass")).hexdigest()
