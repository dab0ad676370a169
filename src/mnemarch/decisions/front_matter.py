"""The front matter of a decision record: the small part of YAML that such records use, everything else kept as text."""

from __future__ import annotations

from functools import cache

from mnemarch.lazy import Lazy
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Sequence
else:
    re = Lazy("re")

# At the start of a plain scalar these mean something to YAML.
_INDICATORS = "-?:,[]{}#&*!|>'\"%@`"


@value
class Entry:
    """One key with what it says, and the lines it was written in; comments and the like have no key."""

    key: str
    values: tuple[str, ...]
    is_list: bool
    text: str


def parted_from_front_matter(text: str) -> tuple[str, str]:
    """The front matter with both its fences, if the text begins with one, and what follows it."""
    if not text.startswith("---"):
        return "", text
    opening, _, _ = text.partition("\n")
    closing = _fence().search(text, len(opening) + 1) if opening.rstrip(" \t") == "---" else None
    if closing is None:
        return "", text
    inside = text[len(opening) + 1 : closing.start()]
    if not all(map(_may_stand_inside, inside.split("\n"))):
        return "", text
    end = closing.end() + text.startswith("\n", closing.end())
    return text[:end], text[end:]


def entries_of(front: str) -> tuple[Entry, ...]:
    """What the front matter says, in order; its lines are the entries' texts joined."""
    lines = front.split("\n")[1:]
    while lines and _fence().fullmatch(lines[-1]) is None:
        lines.pop()
    groups: list[list[str]] = []
    for line in lines[:-1]:
        if not groups or line[:1] == "#" or _key().match(line) or groups[-1][0][:1] == "#":
            groups.append([line])
        else:
            groups[-1].append(line)
    return tuple(map(_entry, groups))


def line_of(key: str, told: str | Sequence[str]) -> str:
    """An entry as a line: several names with commas between them, or as a list where a name has a comma itself."""
    if isinstance(told, str):
        return f"{key}: {_scalar(told)}\n"
    if any(mark in name for name in told for mark in ",;"):
        return f"{key}: [{', '.join(map(_quoted, told))}]\n"
    return f"{key}: {_scalar(', '.join(told))}\n"


def _may_stand_inside(line: str) -> bool:
    return not line.strip() or line[0] in " \t#-" or _key().match(line) is not None


def _entry(lines: list[str]) -> Entry:
    text = "".join(f"{line}\n" for line in lines)
    found = _key().match(lines[0])
    if found is None:
        return Entry(key="", values=(), is_list=False, text=text)
    told = lines[0][found.end() :].strip()
    if told[:1] == "[" and told[-1:] == "]":
        listed = tuple(_flow_items(told[1:-1]))
    elif told or any(line.strip() and not line.lstrip().startswith(("- ", "#")) for line in lines[1:]):
        one = _read_scalar(told)
        return Entry(key=found[1].casefold(), values=(one,) if one else (), is_list=False, text=text)
    else:
        items = (line.strip() for line in lines[1:])
        listed = tuple(_read_scalar(item[2:].strip()) for item in items if item.startswith("- "))
    return Entry(key=found[1].casefold(), values=tuple(filter(None, listed)), is_list=True, text=text)


def _flow_items(text: str) -> Iterator[str]:
    for match in _flow_item().finditer(text):
        yield _read_scalar(match[0].strip())


def _read_scalar(told: str) -> str:
    if told[:1] == '"' and (found := _double_quoted().match(told)):
        return _escaped().sub(r"\1", found[1])
    if told[:1] == "'" and (found := _single_quoted().match(told)):
        return found[1].replace("''", "'")
    if told[:1] in "|>":
        return ""  # a block: its lines stay as they are
    return "" if told[:1] == "#" else told.partition(" #")[0].rstrip()


def _scalar(told: str) -> str:
    told = " ".join(told.split())
    unsafe = told[:1] in _INDICATORS or ": " in told or " #" in told or told.endswith(":")
    return _quoted(told) if told and unsafe else told


def _quoted(told: str) -> str:
    plain = " ".join(told.split())
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'


@cache
def _fence() -> re.Pattern[str]:
    return re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE)


@cache
def _key() -> re.Pattern[str]:
    return re.compile(r"([^\W\d][\w .-]{0,60}?)[ \t]*:(?=\s|$)")


@cache
def _flow_item() -> re.Pattern[str]:
    return re.compile(r"""[ \t]*(?:"(?:\\.|[^"\\])*"|'(?:''|[^'])*')[^,]*|[^,]+""")


@cache
def _double_quoted() -> re.Pattern[str]:
    return re.compile(r'"((?:\\.|[^"\\])*)"')


@cache
def _single_quoted() -> re.Pattern[str]:
    return re.compile(r"'((?:''|[^'])*)'")


@cache
def _escaped() -> re.Pattern[str]:
    return re.compile(r'\\(["\\])')
