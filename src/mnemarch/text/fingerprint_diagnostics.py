"""What compilers, type checkers and linters say about files."""

from __future__ import annotations

from functools import cache

from mnemarch.lazy import Lazy
from mnemarch.text.fingerprint_masks import base_name, is_source
from mnemarch.text.fingerprint_parts import Fault, message_skeleton

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Sequence
else:
    re = Lazy("re")

_MILD = frozenset({"warning", "note", "info", "hint"})


def diagnostic_faults(lines: Sequence[str]) -> list[Fault]:
    """One fault for each diagnostic; milder ones only if there is nothing worse."""
    errors: list[Fault] = []
    milder: list[Fault] = []
    for number, line in enumerate(lines):
        told = _by_rustc(line, lines[number + 1 : number + 4]) or _by_others(line)
        if told is not None:
            level, fault = told
            (milder if level in _MILD else errors).append(fault)
    return errors or milder


def _by_rustc(line: str, following: Sequence[str]) -> tuple[str, Fault] | None:
    """The message stands above the file; what names no file only sums up."""
    match = _rustc().match(line)
    arrow = next(filter(None, map(_rustc_arrow().match, following)), None) if match else None
    if match is None or arrow is None:
        return None
    level, kind = match["level"], match["code"] or match["level"]
    return level, Fault(kind=kind, where=base_name(arrow["file"]), what=message_skeleton(match["message"]))


def _by_others(line: str) -> tuple[str, Fault] | None:
    match = _diagnostic().match(line)
    if match is None or not is_source(match["file"]):
        return None
    rule = _rule_at_the_end().search(match["message"])
    level = (match["level"] or "error").lower()
    kind = match["code"] or (rule and rule[1]) or level
    message = _rule_at_the_end().sub("", match["message"])
    return level, Fault(kind=kind, where=base_name(match["file"]), what=message_skeleton(message))


@cache
def _rustc() -> re.Pattern[str]:
    return re.compile(r"(?P<level>error|warning)(?:\[(?P<code>\w+)\])?: (?P<message>.*)")


@cache
def _rustc_arrow() -> re.Pattern[str]:
    return re.compile(r"\s*--> (?P<file>.+?):\d+:\d+")


@cache
def _diagnostic() -> re.Pattern[str]:
    place = r":\[?\d+(?:[:,]\d+)?\]?|\(\d+(?:,\d+)?\)"
    level = r"(?:fatal )?error|warning|note|info|hint|오류|경고|エラー|错误|Fehler|erreur|ошибка"
    code = r"[A-Z]{1,6}-?\d{3,5}"
    return re.compile(
        rf"\s*(?:\[ERROR\]\s+|ERROR in\s+|vet: |e: )?(?P<file>(?:file://|[A-Za-z]:)?[^\s:()]+\.[A-Za-z]{{1,5}})(?:{place}):?"
        rf"\s(?:-\s)?\s*(?:(?P<level>{level})\b:?\s*)?(?:(?P<code>{code})\b:?\s*)?(?P<message>\S.*)$",
        re.IGNORECASE,
    )


@cache
def _rule_at_the_end() -> re.Pattern[str]:
    return re.compile(r"\s+\[([A-Za-z][\w-]*)\]$|\s+\[[^\]]*\.\w*proj\]$")
