"""The panics of Go and of Rust."""

from __future__ import annotations

from functools import cache

from mnemarch.lazy import Lazy
from mnemarch.model.value import replace
from mnemarch.text.fingerprint_masks import base_name, is_library
from mnemarch.text.fingerprint_parts import Fault, message_skeleton, place

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Sequence
else:
    re = Lazy("re")


def go_faults(lines: Sequence[str]) -> list[Fault]:
    """The panics of Go, each in the first function of its trace that is neither Go's nor a dependency's."""
    faults: list[Fault] = []
    function, is_placed = "", True
    for line in lines:
        panic = _go_panic().match(line)
        if panic is not None:
            faults.append(Fault(kind=panic["kind"], where="", what=message_skeleton(panic["message"])))
            function, is_placed = "", False
            continue
        if is_placed:
            continue
        file = _go_file().match(line)
        if file is not None and function and not is_library(file[1]):
            faults[-1] = replace(faults[-1], where=place(base_name(file[1]), function))
            is_placed = True
        call = _go_call().match(line)
        function = _go_closure().sub("", call[1].rsplit("/", 1)[-1]) if call else ""
    return faults


def rust_faults(lines: Sequence[str]) -> list[Fault]:
    """The panics of Rust: a test's thread has the test's name, others say little."""
    faults = []
    for number, line in enumerate(lines):
        panic = _rust_panic().search(line)
        if panic is None:
            continue
        following = lines[number + 1] if number + 1 < len(lines) else ""
        said = following if panic["message"] is None else panic["message"]
        thread = "" if panic["thread"] in {"main", "<unnamed>"} else panic["thread"]
        where = place(base_name(panic["file"]), thread if "::" in thread or "_" in thread else "")
        faults.append(Fault(kind="panic", where=where, what=message_skeleton(said)))
    return faults


@cache
def _go_panic() -> re.Pattern[str]:
    return re.compile(r"(?P<kind>panic|fatal error): (?P<message>.*?)(?: \[recovered[^\]]*\])?$")


@cache
def _go_call() -> re.Pattern[str]:
    return re.compile(r"(?!panic\(|runtime\.|testing\.|created by |goroutine )([\w./*()\[\]{}·~-]+)\(.*\)$")


@cache
def _go_file() -> re.Pattern[str]:
    return re.compile(r"\s+(\S+\.go):\d+")


@cache
def _go_closure() -> re.Pattern[str]:
    return re.compile(r"(?:\.func\d+|\.\d+|-fm)+$")


@cache
def _rust_panic() -> re.Pattern[str]:
    return re.compile(
        r"thread '(?P<thread>[^']*)'(?: \(\d+\))? panicked at (?:'(?P<message>.*)', )?(?P<file>[^\s:']+\.rs):\d+:\d+"
    )
