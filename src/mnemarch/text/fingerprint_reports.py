"""What test runners report: one fault for each failing test."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

from mnemarch.lazy import Lazy
from mnemarch.model.value import replace
from mnemarch.text.fingerprint_masks import MASK, base_name, is_library
from mnemarch.text.fingerprint_parts import Fault, message_skeleton, typed

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator, Sequence
else:
    re = Lazy("re")


def pytest_faults(lines: Sequence[str]) -> list[Fault]:
    """The faults of failing tests. The sections say more than the summary, which is cut to the terminal's width."""
    told = _by_place(_pytest_sections(lines))
    listed = _by_place(_pytest_listed(lines)) or told
    return [fault for where, faults in listed.items() for fault in told.get(where, faults)]


def _by_place(faults: Iterable[Fault]) -> dict[str, list[Fault]]:
    """The faults of each test; the bare news that it failed only if nothing else is said of it."""
    places: dict[str, list[Fault]] = {}
    for fault in faults:
        places.setdefault(fault.where, []).append(fault)
    return {where: [fault for fault in found if fault.kind or fault.what] or found for where, found in places.items()}


def _pytest_listed(lines: Sequence[str]) -> Iterator[Fault]:
    for match in filter(None, map(_pytest_summary().match, lines)):
        said = match["message"] or ""
        fault = replace(_asserted(said), where=_test_place(match["file"], match["test"] or ""))
        # Where a message is cut depends on how long its values are.
        yield replace(fault, what="") if said.endswith("...") else fault


def _pytest_sections(lines: Sequence[str]) -> Iterator[Fault]:
    """The error that each section ends with."""
    heads = [number for number, line in enumerate(lines) if _pytest_header().match(line) or _pytest_title().match(line)]
    # What stands above the first head may be a section that lost its own.
    for start, end in pairwise(dict.fromkeys([0, *heads, len(lines)])):
        section = lines[start:end]
        errors = [
            line[1:].strip()
            for before, line in pairwise(["", *section])
            if _pytest_error().match(line) and not before.startswith("E ")
        ]
        if errors:
            header = _pytest_header().match(section[0])
            files = [match["file"] for match in map(_pytest_place().match, section) if match]
            file = next((file for file in files if not is_library(file)), "")
            where = _test_place(file, header["test"] if header else "")
            yield replace(_asserted(errors[-1]), where=where)


def _test_place(file: str, test: str) -> str:
    """File, class and test, whatever the parameters; a file that could not be collected stands for itself."""
    test = test.partition("[")[0]
    if test.endswith(".py"):
        file, test = test, ""
    return "::".join(part for part in (base_name(file), *test.replace("::", ".").split(".")) if part)


def _asserted(said: str) -> Fault:
    """An assertion's values are no part of it, whichever they are."""
    if said.removeprefix("AssertionError: ").startswith("assert "):
        said = _constants().sub("0", said.removeprefix("AssertionError: "))
        return Fault(kind="AssertionError", where="", what=message_skeleton(said))
    return typed(said)


def javascript_test_faults(lines: Sequence[str]) -> list[Fault]:
    """Failing tests of Jest and Vitest: the name of the test, and the first line under it."""
    faults, where, file, kind = [], "", "", ""
    for line in lines:
        title = _test_title().match(line)
        suite = _failing_file().match(line)
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
    said: dict[str, str] = {}
    failing: list[str] = []
    current = ""
    for line in lines:
        test = _go_test().match(line)
        if test is not None:
            current = test["test"]
            if test["verdict"] == "--- FAIL:":
                failing.append(current)
            continue
        detail = _go_detail().match(line)
        if detail is not None and not said.get(current):
            said[current] = detail["message"]
    whole = {test.rsplit("/", 1)[0] for test in failing if "/" in test}
    return [
        Fault(kind="FAIL", where=message_skeleton(test), what=message_skeleton(said.get(test, "")))
        for test in failing
        if test not in whole or test in said
    ]


def cargo_test_faults(lines: Sequence[str]) -> list[Fault]:
    """Failing tests of Rust that returned an error; those that panicked say so themselves."""
    faults, where = [], ""
    for line in lines:
        section = _cargo_section().match(line)
        if section is not None:
            where = section["test"]
        elif where and line.strip():
            if line.startswith("Error: "):
                faults.append(Fault(kind="Error", where=where, what=message_skeleton(line.removeprefix("Error: "))))
            where = ""
    return faults


def surefire_faults(lines: Sequence[str]) -> list[Fault]:
    """Maven's list of failing tests, where the traces above it are missing."""
    faults = []
    for line in lines:
        match = _surefire().match(line)
        if match is not None:
            faults.append(typed(match["message"], match["test"], match["kind"] or "AssertionError"))
    return faults


@cache
def _pytest_summary() -> re.Pattern[str]:
    return re.compile(
        r"(?:\[gw\d+\]\s*)?(?:\[\s*\d+%\]\s*)?(?:FAILED|ERROR) (?P<file>[^\s:]+\.\w+)(?:::(?P<test>\S+?(?:\[.*?\])?))?"
        r"(?: - (?P<message>.*))?$"
    )


@cache
def _pytest_title() -> re.Pattern[str]:
    return re.compile(r"={3,} .+ ={3,}$")


@cache
def _pytest_header() -> re.Pattern[str]:
    return re.compile(r"_{3,} (?:ERROR (?:at \w+ of|collecting) )?(?P<test>\S.*?) _{3,}$")


@cache
def _pytest_error() -> re.Pattern[str]:
    return re.compile(r"E\s{2,}\S")


@cache
def _pytest_place() -> re.Pattern[str]:
    return re.compile(r"(?P<file>[^\s:]+\.py):\d+:")


@cache
def _constants() -> re.Pattern[str]:
    return re.compile(r"\b(?:None|True|False|nan|inf)\b")


@cache
def _test_title() -> re.Pattern[str]:
    return re.compile(r"\s*● (?P<test>\S.*)|\s*(?:FAIL|×)\s+(?P<path>\S+ > .+)")


@cache
def _failing_file() -> re.Pattern[str]:
    return re.compile(r"\s*FAIL\s+(?P<file>\S+)")


@cache
def _go_test() -> re.Pattern[str]:
    return re.compile(r"\s*(?P<verdict>=== (?:RUN|CONT|NAME)|--- (?:FAIL|PASS|SKIP):)\s+(?P<test>Test\S+)")


@cache
def _go_detail() -> re.Pattern[str]:
    return re.compile(r"\s+(?:\w+\.go:\d+:\s*|Error:\s+)(?P<message>\S.*)")


@cache
def _cargo_section() -> re.Pattern[str]:
    return re.compile(r"---- (?P<test>\S+) stdout ----")


@cache
def _surefire() -> re.Pattern[str]:
    return re.compile(
        r"\[ERROR\]\s+(?P<test>[A-Z]\w+(?:\$\w+)?\.\w+)(?:->\S+)?:\d+\s+(?:»\s(?P<kind>\w+)\s*)?(?P<message>.*)$"
    )
