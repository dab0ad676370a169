"""What identifies a fault: its type, and its message without the values of one run.

Names and codes stay, since they name the module, key, attribute or file. The rows of `_MASKS` define what counts as a
value.
"""

from __future__ import annotations

from functools import cache

from mnemarch.model.value import Frozen, replace
from mnemarch.text.cache import pattern
from mnemarch.text.words import Patterns, entries

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable

MASK = "*"
# This much of a line identifies any message. It also bounds the input of the patterns.
LINE_CHARS_MAX = 1_000
# How deep nested brackets are masked. Deeper ones stay unchanged.
_DEPTH_MAX = 4

NAMES = Patterns("errors", "names")
TYPES = Patterns("errors", "types")
_VALUES = Patterns("errors", "values")
# The first of the private-use characters that replace kept names while values are masked. Tools don't print them.
_KEPT_FROM = 0xE000


class Fault(Frozen):
    """One error of an output: its type, its message without values, and the test, if only that identifies it."""

    kind: str
    what: str
    test: str = ""

    def __str__(self) -> str:
        head = " in ".join(part for part in (self.kind, self.test) if part)
        return ": ".join(part for part in (head, self.what) if part)


def in_test(fault: Fault, test: str) -> Fault:
    """The fault of a test. Errors are equal in all tests. Assertions and failures without a message get the test."""
    is_assertion = NAMES["assertion"].match(fault.kind) or fault.what.startswith("assertion")
    return replace(fault, test=test) if is_assertion or not fault.what else fault


def typed(line: str, kind: str = "", *, ends_a_trace: bool = False) -> Fault:
    """The fault in a line such as `ValueError: bad value`. At the end of a trace, any name before a colon is a type."""
    match = TYPES["name and message" if ends_a_trace else "type and message"].match(line)
    message = line if match is None else match["message"] or ""
    if match is not None:
        # The type without its modules.
        kind = match["kind"].replace("$", ".").replace("::", ".").rsplit(".", 1)[-1]
    keeps_names = NAMES["assertion"].match(kind) is None
    return Fault(kind=kind, what=message_skeleton(message, kind, keeps_names=keeps_names))


def base_name(path: str) -> str:
    """The last part of a path, or `*` if a program generated the name."""
    name = path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    return MASK if _VALUES["made-up name"].match(name) else name


def is_source(path: str) -> bool:
    """Whether the path has the extension of a source file."""
    return NAMES["file ending"].search(path) is not None


def cut(line: str) -> str:
    """The line, cut at a whole word if it is too long."""
    if len(line) <= LINE_CHARS_MAX:
        return line
    head, _, rest = line[: LINE_CHARS_MAX + 1].rpartition(" ")
    return head or rest


def code_skeleton(source: str) -> str:
    """A line of source code without its numbers and the content of its strings."""
    line = _VALUES["literal"].sub(lambda literal: "0" if literal[0][0].isdigit() else "''", source[:LINE_CHARS_MAX])
    return " ".join(line.split())


def message_skeleton(message: str, kind: str = "", *, keeps_names: bool = True) -> str:
    """The parts of a message that are equal in every run and in every version of a language."""
    sentence = _VALUES["quoted sentence"].fullmatch(message)
    line = cut(_one_wording(cut(sentence[1] if sentence else message), kind))
    kept: list[str] = []

    def keep(content: str) -> str:
        kept.append(content)
        return chr(_KEPT_FROM + len(kept) - 1)

    def name_or_mask(match: re.Match[str]) -> str:
        name = _name_in(match[0][1:-1].rstrip(".")) if keeps_names else MASK
        return _unquoted(match) if name == MASK else f"'{keep(name)}'"

    if _VALUES["digits of a code"].search(line):
        line = _VALUES["code"].sub(lambda code: keep(code[0]), line)
    if "/" in line:
        line = _VALUES["module path"].sub(lambda match: f"{match[1]} '{match[2]}'", line)
    line = _VALUES["quoted"].sub(name_or_mask, line)
    for mask, replacement in _MASKS:
        line = _VALUES[mask].sub(replacement, line)
    # Runs of values become one value, and brackets with values alone are removed.
    for _ in range(_DEPTH_MAX):
        before = line
        line = _VALUES["shown object"].sub(MASK, line)
        line = _VALUES["run"].sub(MASK, _VALUES["empty bracket"].sub(" ", line))
        if line == before:
            break
    shown = line.translate({_KEPT_FROM + number: content for number, content in enumerate(kept)})
    return " ".join(shown.split()).strip(" .,;:-")


def _one_wording(message: str, kind: str) -> str:
    """The message without hints and modules of functions, in one wording for all versions."""
    message = _VALUES["hints"].sub("", message)
    if kind == "TypeError":
        message = _VALUES["qualified call"].sub(lambda match: f"{match[1]}()", message)
    for source, wording in _rewordings().get(kind, ()):
        message = pattern(source).sub(wording, message)
    return message


@cache
def _rewordings() -> dict[str, list[tuple[str, str]]]:
    """The patterns of each type's wordings, each with the wording that replaces it."""
    table: dict[str, list[tuple[str, str]]] = {}
    for line in entries("errors", "rewordings"):
        kind, _, rule = line.partition(": ")
        source, _, wording = rule.partition(" =>")
        table.setdefault(kind, []).append((source, wording.strip()))
    return table


def _name_in(content: str) -> str:
    """A quoted name, or the file at the end of a quoted path. `*` for any other value."""
    if not _VALUES["name"].fullmatch(content):
        content = base_name(content) if _VALUES["path to a file"].fullmatch(content) else MASK
    return MASK if _VALUES["hex letters"].fullmatch(content) else content


def _unquoted(match: re.Match[str]) -> str:
    verb = _VALUES["http verb"].match(match[0][1:])
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
    return is_path or _VALUES["digit"].search(word) is not None or _VALUES["hex letters"].fullmatch(word) is not None


def _is_host(word: str, *, has_port: bool) -> bool:
    labels = word.split(".")
    if len(labels) < 2 or word != word.lower() or not all(labels) or is_source(word):
        return False
    is_country = len(labels) > 2 and len(labels[-1]) == 2
    return has_port or is_country or NAMES["top domain"].fullmatch(labels[-1]) is not None


# The masked parts of a message, in order (patterns of data/errors.txt), with their replacements.
# A replacement with a backslash would load `re`, which takes as long as the rest of a fingerprint.
_MASKS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    ("moment", MASK),
    ("setting", lambda match: f"{match[1]}=*"),
    ("address", MASK),
    ("amount", MASK),
    ("word", _masked_word),
    ("user", lambda match: f"{match[1]} *"),
    ("particle", ""),
)
