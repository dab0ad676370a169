"""The parts of an error that say which fault it is, and the lines in which they are looked for."""

from __future__ import annotations

from functools import cache
from unicodedata import normalize

from mnemarch.lazy import Lazy
from mnemarch.model.value import value
from mnemarch.text.fingerprint_masks import MASK, cut, skeleton
from mnemarch.text.fingerprint_wording import one_wording

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Sequence
else:
    re = Lazy("re")

_MODULES = r"(?:[A-Za-z_][\w$]*(?:\.|::))*"
_AFTER_A_KIND = r"(?:\s\[\w+\])?(?::\s*(?P<message>.*))?$"
# The fields in which loggers and APIs put what went wrong.
_TELLING = "(?:message|msg|error|err|exception|cause|detail|details|reason|event|title|type)"


@value
class Fault:
    """One error of an output: its type, the test, function or file it is in, and its message without values."""

    kind: str
    where: str
    what: str

    def __str__(self) -> str:
        head = " in ".join(part for part in (self.kind, self.where) if part)
        return ": ".join(part for part in (head, self.what) if part)


def clean_lines(text: str) -> list[str]:
    """The lines without colours, white space at their ends, and the stamps that CI and containers put before each."""
    if "\x1b" in text:
        text = _colours().sub("", text)
    lines: list[str] = []
    before = None
    for line in text.splitlines():
        # A line that repeats the one before says nothing new.
        if line != before:
            lines.append(_clean(line))
        before = line
    return lines


def _clean(line: str) -> str:
    line = _stamp().sub("", cut(line.rstrip()))
    return line if line.isascii() else normalize("NFC", line)


def indent(line: str) -> int:
    """How far a line is moved in, the margin of an exception group included."""
    return len(line) - len(line.lstrip(" \t|+"))


def place(file: str, function: str) -> str:
    """Where a fault is, as far as it is known."""
    return ":".join(part for part in (file, function) if part)


def typed(line: str, where: str = "", kind: str = "", *, ends_a_trace: bool = False) -> Fault:
    """The fault that `ValueError: bad value` states; where a trace ends, any name before the colon is a type."""
    match = (_name_and_message() if ends_a_trace else _kind_and_message()).match(line)
    if match is None:
        return Fault(kind=kind, where=where, what=message_skeleton(line))
    kind = simple_name(match["kind"])
    return Fault(kind=kind, where=where, what=message_skeleton(match["message"] or "", kind))


def simple_name(name: str) -> str:
    """A type without its modules."""
    return name.replace("$", ".").replace("::", ".").rsplit(".", 1)[-1]


def message_skeleton(message: str, kind: str = "") -> str:
    """What stays of a message in every run and in every version of a language."""
    sentence = _quoted_sentence().fullmatch(message)
    return skeleton(one_wording(cut(sentence[1] if sentence else message), kind))


def plain_faults(lines: Sequence[str]) -> list[Fault]:
    """One fault for each line that speaks of an error, or for each line if none does."""
    said = [line for line in (_prompt().sub("", line).strip() for line in lines if not _is_command(line)) if line]
    if not said:
        said = [_prompt().sub("", line).strip() for line in lines if line.strip()]
    bad = [line for line in said if _bad_news().search(line)]
    return [_plain(line) for line in dict.fromkeys(bad or said)]


def _is_command(line: str) -> bool:
    return _prompt().match(line) is not None


def _plain(line: str) -> Fault:
    line = _said_in_fields(line)
    if _kind_and_message().match(line):
        return typed(line)
    bare = message_skeleton(line)
    said = _leading_trivia().sub("", bare) or bare or MASK
    if _kind_and_message().match(said):
        return typed(said)
    named = _kind_somewhere().search(said)
    return Fault(kind=named[0] if named else "", where="", what=said)


def _said_in_fields(line: str) -> str:
    """What the fields of a JSON or logfmt line say; such a line is nothing but quoted values otherwise."""
    if line[:1] in {"{", '"'}:
        said = _json_fields().findall(line)
    elif _logfmt_start().match(line):
        said = _logfmt_fields().findall(line)
    else:
        said = []
    return ": ".join(said) or line


@cache
def _colours() -> re.Pattern[str]:
    return re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")


@cache
def _stamp() -> re.Pattern[str]:
    container = r"(?:[\w.-]{1,60}\s{1,20}\|(?:\s|$))?"
    moment = r"(?:\[?\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d{1,9})?(?:Z|[+-]\d{2}:?\d{2})?\]?(?:[ \t]|$))?"
    return re.compile(rf"^{container}{moment}")


@cache
def _quoted_sentence() -> re.Pattern[str]:
    return re.compile(r"[\"'`]([^\"'`\s]+(?:\s[^\"'`\s]+){2,})[\"'`]")


@cache
def _json_fields() -> re.Pattern[str]:
    return re.compile(rf'"{_TELLING}"\s?:\s?"((?:[^"\\]|\\.)+)"', re.IGNORECASE)


@cache
def _logfmt_fields() -> re.Pattern[str]:
    return re.compile(rf'(?<![\w.]){_TELLING}="((?:[^"\\]|\\.)+)"', re.IGNORECASE)


@cache
def _logfmt_start() -> re.Pattern[str]:
    return re.compile(r"[A-Za-z_][\w.]*=\S")


@cache
def _kind_and_message() -> re.Pattern[str]:
    ending = "(?:Error|Exception|Failure|Fault|Throwable|Warning|Interrupt|Exit|Iteration|Group|Rejection|Failed)"
    return re.compile(rf"(?P<kind>{_MODULES}[A-Z][\w$]*?{ending}|Error){_AFTER_A_KIND}")


@cache
def _name_and_message() -> re.Pattern[str]:
    return re.compile(rf"(?P<kind>{_MODULES}[A-Za-z_][\w$]*){_AFTER_A_KIND}")


@cache
def _kind_somewhere() -> re.Pattern[str]:
    return re.compile(r"(?<![\w$])[A-Z][\w$]*?(?:Error|Exception)(?![\w$])")


@cache
def _prompt() -> re.Pattern[str]:
    return re.compile(
        r"^\s*(?:(?:\([\w.-]{1,40}\)\s)?(?:[\w.-]{1,40}@[\w.-]{1,60}[: ][^$#%>]{0,200})?[$%❯➜»]\s"
        r"|[\w.-]{1,40}@[\w.-]{1,60}[: ][^$#%>]{0,200}#\s|PS [A-Z]:\\[^>]{0,200}>\s?|[A-Z]:\\[^>]{0,200}>)"
    )


@cache
def _leading_trivia() -> re.Pattern[str]:
    level = "TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|ERR|SEVERE|FATAL|CRITICAL|CRIT|ALERT|EMERG|PANIC"
    either = "|".join([level, level.lower(), level.title()])
    return re.compile(rf"^(?:[\s*|:,;.-]+|[\[(<](?:{either})[\])>]|(?:{level})(?=[\s:|-]+\S)|(?:{either})(?=\s?:))+")


@cache
def _bad_news() -> re.Pattern[str]:
    words = (
        "error|fail|fatal|exception|panic|cannot|can't|could not|couldn't|unable|denied|refused|not found|no such"
        "|invalid|undefined|unexpected|missing|unknown|timed? ?out|abort|segmentation|killed|traceback"
        "|오류|에러|실패|예외|없습니다|없음|거부|잘못|失敗|失败|エラー|错误|錯誤|例外|異常|fehler|fehlgeschlagen"
        "|nicht gefunden|erreur|échec|introuvable|fallo|ошибк|не удалось|не найден|falha|błąd|hata|fejl|virhe"
    )
    return re.compile(words, re.IGNORECASE)
