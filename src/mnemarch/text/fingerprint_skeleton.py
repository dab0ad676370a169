"""What identifies a fault: its type, its place, and what stays of its message when the values of one run go.

`_MASKS` says what counts as a value: to keep or to drop something else, change its rows.
"""

from __future__ import annotations

from functools import cache

from mnemarch.model.value import value
from mnemarch.text.cache import pattern
from mnemarch.text.words import entries

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable

MASK = "*"
# No message needs more to be known, and no pattern sees a longer line.
LINE_CHARS_MAX = 1_000
# Brackets in brackets are looked into so often; deeper ones stay as they are.
_DEPTH_MAX = 4

_MODULES = r"(?:[A-Za-z_][\w$]*(?:\.|::))*"
_AFTER_A_KIND = r"(?:\s\[\w+\])?(?::\s*(?P<message>.*))?$"
_KIND_ENDING = "(?:Error|Exception|Failure|Fault|Throwable|Warning|Interrupt|Exit|Iteration|Group|Rejection|Failed)"
KIND_AND_MESSAGE = rf"(?P<kind>{_MODULES}[A-Z][\w$]*?{_KIND_ENDING}|Error){_AFTER_A_KIND}"
_NAME_AND_MESSAGE = rf"(?P<kind>{_MODULES}[A-Za-z_][\w$]*){_AFTER_A_KIND}"
_QUOTED_SENTENCE = r"[\"'`]([^\"'`\s]+(?:\s[^\"'`\s]+){2,})[\"'`]"

# The interpreter words these and words them anew; the type says as much.
_SAID_BY_THE_TYPE = frozenset({"NameError", "RecursionError", "UnboundLocalError", "ZeroDivisionError"})
_HINTS = (
    r"\.?\s(?:Did you (?:mean|forget)|Maybe you meant|Perhaps you forgot|Or did you)\b.*"
    r"|\s\((?:most likely|consider|did you|hint)\b[^()]*\)"
    # What was given instead is a value.
    r"|,\s(?:not|but got|got|found)\s[^,\s]{1,60}$"
)
_QUALIFIED_CALLS = r"(?<![\w.<>])(?:[\w<>]++\.)++(\w+)\(\)"

# Each stops at the next mark of its own, so that a thousand openings are read once. An apostrophe in a word is none.
_QUOTED = (
    r"\"[^\"]*\"|(?<![A-Za-z0-9])'[^']*'(?![A-Za-z0-9])|`[^`']*[`']|“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»|»[^«»]*«"
    r"|‹[^‹›]*›|「[^「」]*」|『[^『』]*』|‘[^‘’]*’(?![A-Za-z])"
)
_HTTP_VERB = r"(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|CONNECT|TRACE) (?=\S)"
_DAY = r"(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}"
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
_NAMED_DATE = rf"(?:{_DAY},?\s{{1,2}})?(?:{_MONTH}\s{{1,2}}\d{{1,2}}|\d{{1,2}}[\s-]{_MONTH})(?:[,\s-]{{1,2}}\d{{4}})?"
_NUMBERED_DATE = r"\d{1,4}(?P<between>[-/.])\d{1,2}(?P=between)\d{1,4}"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?"
_ZONE = r"(?:Z|\s?[+-]\d{2}:?\d{2}|\s(?:[ECMPW]?[DEMPSU][SU]?T|UTC|GMT))?"
_MOMENT = (
    rf"(?i)(?<![\w.-])(?:{_NAMED_DATE}|{_NUMBERED_DATE})(?:[\s:T]{{1,2}}{_CLOCK})?{_ZONE}(?:\s\d{{4}})?(?!\w|\.\w)"
)
_SETTING = r"(?<![\w=.-])([A-Za-z_][\w.-]{0,60})\s?=(?!=)(?:[^\s,;()\[\]]+|\s{1,2}[^\s,;()\[\]=]+(?=[,;)\]]|$))?"
_ADDRESS = (
    r"(?i)(?<![a-z0-9])[a-z][a-z0-9+.-]{1,20}://[^\s,;)\]>]+"
    r"|(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}"
    r"|(?<![a-z])[a-z]:[\\/][^\s,;:)\]>]*"
    r"|\b(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}\b"
    r"|(?<![\w:])(?:[0-9a-f]{0,4}:){3,7}[0-9a-f]{1,4}\b"
    r"|@[0-9a-f]{4,16}\b"
)
_UNIT = (
    "(?:[kmgtp]i?)?(?:b|bytes?|bits?)|[mµun]?s|[mun]?secs?|seconds?|minutes?|mins?|hours?|hrs?|days?|[kmg]?hz|%|°?[cf]"
)
_AMOUNT = rf"(?i)(?<![\w.-])[<>~+-]?\d[\d.,]*\s?(?:{_UNIT})(?![\w%])"
_WORD = r"[\w@#%$+~./\\-]+(?::\d+)?"
_HEX_LETTERS = "[a-f]{8,}|[A-F]{8,}"
_USER = (
    r"(?i)\b((?:for|of|by|as|from|invalid|illegal|unknown) user(?= [\w.@$-])|for(?= [\w.@$-]{1,64} from \*)) [\w.@$-]+"
)
# Which of two Korean particles follows depends on how the value ends.
_PARTICLE = r"(?<=\*)(?:은|는|이|가|을|를|과|와|으로|로)(?:\((?:은|는|이|가|을|를|과|와|로)\))?(?=\s|$)"
_EMPTY_BRACKET = r"\([\s*,:]*\)"
_SHOWN_OBJECT = r"(?<=\w)\{[^{}]*\}"
_RUN_OF_VALUES = r"[\[{<]\s?\*?\s?[\]}>]|[<>~]?\*(?:(?:[\s,:;/|#+-]{0,3}|,?\s(?:and|or)\s)\*)+|[<>~]\*"
_LITERAL = r"\"[^\"]*\"|'[^']*'|(?<![A-Za-z_0-9])\d[\w.]*"
_MADE_UP_NAME = r"(?:tmp[\w-]{6,}|[0-9a-f-]{6,}|\d+|<ipython-input-.*)(?:\.\w{1,5}|>)?\Z"


@value
class Fault:
    """One error of an output: its type, the test, function or file it is in, and its message without values."""

    kind: str
    where: str
    what: str

    def __str__(self) -> str:
        head = " in ".join(part for part in (self.kind, self.where) if part)
        return ": ".join(part for part in (head, self.what) if part)


def typed(line: str, where: str = "", kind: str = "", *, ends_a_trace: bool = False) -> Fault:
    """The fault that `ValueError: bad value` states; where a trace ends, any name before the colon is a type."""
    match = pattern(_NAME_AND_MESSAGE if ends_a_trace else KIND_AND_MESSAGE).match(line)
    if match is None:
        return Fault(kind=kind, where=where, what=message_skeleton(line))
    # The type without its modules.
    kind = match["kind"].replace("$", ".").replace("::", ".").rsplit(".", 1)[-1]
    return Fault(kind=kind, where=where, what=message_skeleton(match["message"] or "", kind))


def place(file: str, function: str) -> str:
    """Where a fault is, as far as it is known."""
    return ":".join(part for part in (file, function) if part)


def base_name(path: str) -> str:
    """The last part of a path; `*` if a program made it up for this run."""
    name = path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    return MASK if pattern(_MADE_UP_NAME).match(name) else name


def is_library(path: str) -> bool:
    """Whether the code there belongs to the language or to a dependency."""
    return one_of("library paths").search(path.replace("\\", "/")) is not None


def is_source(path: str) -> bool:
    """Whether it ends like a file that somebody writes."""
    return one_of("file endings", r"(?i)\.", r"\Z").search(path) is not None


@cache
def one_of(section: str, before: str = "", after: str = "") -> re.Pattern[str]:
    """A pattern for anything that a section of data/errors.txt lists, between two other patterns."""
    return pattern(f"{before}(?:{'|'.join(entries('errors', section))}){after}")


def cut(line: str) -> str:
    """The line up to the last whole word that counts."""
    if len(line) <= LINE_CHARS_MAX:
        return line
    head, _, rest = line[: LINE_CHARS_MAX + 1].rpartition(" ")
    return head or rest


def code_skeleton(source: str) -> str:
    """A line of source code without its numbers and the content of its strings."""
    line = pattern(_LITERAL).sub(lambda literal: "0" if literal[0][0].isdigit() else "''", source[:LINE_CHARS_MAX])
    return " ".join(line.split())


def message_skeleton(message: str, kind: str = "") -> str:
    """What stays of a message in every run and in every version of a language."""
    sentence = pattern(_QUOTED_SENTENCE).fullmatch(message)
    line = cut(_one_wording(cut(sentence[1] if sentence else message), kind))
    for mask, replacement in _MASKS:
        line = pattern(mask).sub(replacement, line)
    # Runs of values are one value, and a bracket that holds nothing else says nothing.
    for _ in range(_DEPTH_MAX):
        before = line
        line = pattern(_SHOWN_OBJECT).sub(MASK, line)
        line = pattern(_RUN_OF_VALUES).sub(MASK, pattern(_EMPTY_BRACKET).sub(" ", line))
        if line == before:
            break
    return " ".join(line.split()).strip(" .,;:-")


def _one_wording(message: str, kind: str) -> str:
    """The message without hints, without the modules of functions, and as any version might have said it."""
    if kind in _SAID_BY_THE_TYPE:
        return ""
    message = pattern(_HINTS).sub("", message)
    if kind == "TypeError":
        message = pattern(_QUALIFIED_CALLS).sub(r"\1()", message)
    for source, wording in _rewordings().get(kind, ()):
        message = pattern(source).sub(wording, message)
    return message


@cache
def _rewordings() -> dict[str, list[tuple[str, str]]]:
    """For each type the patterns of its wordings, and the one wording that stands for them."""
    table: dict[str, list[tuple[str, str]]] = {}
    for line in entries("errors", "rewordings"):
        kind, _, rule = line.partition(": ")
        source, _, wording = rule.partition(" =>")
        table.setdefault(kind, []).append((source, wording.strip()))
    return table


def _unquoted(match: re.Match[str]) -> str:
    verb = pattern(_HTTP_VERB).match(match[0][1:])
    return f"{verb[0]}{MASK}" if verb else MASK


def _masked_word(match: re.Match[str]) -> str:
    word, colon, _ = match[0].partition(":")
    bare = word.rstrip(".-")
    if _is_host(bare, has_port=bool(colon)):
        return MASK
    is_called = match.string.startswith("(", match.end())
    if _is_value(bare) and not (is_called and bare.isidentifier()):
        word = MASK + word[len(bare) :]
    return f"{word}:{MASK}" if colon else word


def _is_value(word: str) -> bool:
    """Whether a word has a digit, is a path, or is made of hexadecimal letters."""
    slashes = word.count("/")
    # One slash may stand for "or": read/write.
    is_path = "\\" in word or slashes > 1 or (slashes == 1 and word[:1] in "/~.")
    return is_path or pattern(r"\d").search(word) is not None or pattern(_HEX_LETTERS).fullmatch(word) is not None


def _is_host(word: str, *, has_port: bool) -> bool:
    labels = word.split(".")
    if len(labels) < 2 or word != word.lower() or not all(labels) or is_source(word):
        return False
    is_country = len(labels) > 2 and len(labels[-1]) == 2
    return has_port or is_country or one_of("top domains").fullmatch(labels[-1]) is not None


# What a message is compared without, in this order, and what stands for it.
_MASKS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (_QUOTED, _unquoted),
    (_MOMENT, MASK),
    (_SETTING, r"\1=*"),
    (_ADDRESS, MASK),
    (_AMOUNT, MASK),
    (_WORD, _masked_word),
    (_USER, r"\1 *"),
    (_PARTICLE, ""),
)
