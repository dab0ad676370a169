"""The outline of a Markdown text: headings of both kinds, never one inside a code fence or a comment."""

from __future__ import annotations

from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# Four spaces make a line code.
_INDENT_MAX = 3
_LEVEL_MAX = 6
_COMMENT_END = "-->"


@value
class Section:
    """A heading as written, one line or two, and everything up to the next one."""

    heading: str
    level: int
    name: str
    body: str


@value
class Heading:
    """Where a heading stands and what it says."""

    at: int
    lines: int
    level: int
    name: str


def unified(text: str) -> str:
    """The text without a byte order mark, every line ending the same."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def trimmed(text: str) -> str:
    """The text without blank lines around it; the indentation of its first line stays."""
    text = text.rstrip()
    start = len(text) - len(text.lstrip())
    return text[text.rfind("\n", 0, start) + 1 :]


def parted(text: str) -> tuple[str, tuple[Section, ...]]:
    """What stands before the first heading, and the sections, flat and in order."""
    lines = text.split("\n")
    found = headings(lines)
    ends = [heading.at for heading in found[1:]] + [len(lines)]
    if not found:
        return text, ()
    sections = []
    for heading, end in zip(found, ends, strict=True):
        start = heading.at + heading.lines
        written = "\n".join(lines[heading.at : start])
        sections.append(
            Section(heading=written, level=heading.level, name=heading.name, body=_joined(lines, start, end))
        )
    return _joined(lines, 0, found[0].at), tuple(sections)


def headings(lines: list[str]) -> list[Heading]:
    """Every heading among the lines: `# Name`, or a line of its own that is underlined with === or ---."""
    found: list[Heading] = []
    free, _ = outside(lines)
    before, before_that, taken = -1, -1, -1
    for index in free:
        bare = lines[index].lstrip(" ")
        if bare[:1] == "#" and len(lines[index]) - len(bare) <= _INDENT_MAX:
            if atx := _atx(index, bare):
                found.append(atx)
                taken = index
        elif bare[:1] in {"=", "-"} and before == index - 1 != taken and _is_underline(lines[index]):
            alone = before_that != index - 2 or taken == index - 2 or not lines[index - 2].strip()
            if alone and _may_be_underlined(lines[index - 1], bare[0]):
                level = 1 if bare[0] == "=" else 2
                found.append(Heading(at=index - 1, lines=2, level=level, name=lines[index - 1].strip()))
                taken = index
        before, before_that = index, before
    return found


def outside(lines: list[str]) -> tuple[list[int], str]:
    """The lines that are in no code fence and no comment block, and what would close a block left open."""
    free: list[int] = []
    until = ""
    for index, line in enumerate(lines):
        if until:
            if _closes(line, until):
                until = ""
            continue
        until = _opened_by(line)
        if not until:
            free.append(index)
    return free, until


def told_lines(text: str) -> Iterator[str]:
    """The lines that say something: outside of blocks, without comments, not blank."""
    lines = text.split("\n")
    for index in outside(lines)[0]:
        line = without_comments(lines[index])
        if line.strip():
            yield line


def without_comments(text: str) -> str:
    """The text without what stands in <!-- -->."""
    kept, at = [], 0
    while (start := text.find("<!--", at)) >= 0:
        end = text.find(_COMMENT_END, start + 4)
        if end < 0:
            break
        kept.append(text[at:start])
        at = end + len(_COMMENT_END)
    return "".join([*kept, text[at:]])


def closed(text: str) -> str:
    """The text with its last fence or comment closed, so that what is written after it counts."""
    _, until = outside(text.split("\n"))
    return f"{text}\n{until}" if until else text


def demoted(text: str, level: int) -> str:
    """The text with its headings moved down, if need be, so that all are below this level."""
    lines = text.split("\n")
    found = headings(lines)
    shift = level + 1 - min((heading.level for heading in found), default=_LEVEL_MAX)
    if shift <= 0:
        return text
    for heading in reversed(found):
        marks = "#" * min(heading.level + shift, _LEVEL_MAX)
        lines[heading.at : heading.at + heading.lines] = [f"{marks} {heading.name}"]
    return "\n".join(lines)


def _joined(lines: list[str], start: int, end: int) -> str:
    ending = "\n" if start < end < len(lines) else ""
    return "\n".join(lines[start:end]) + ending


def _atx(at: int, bare: str) -> Heading | None:
    rest = bare.lstrip("#")
    level = len(bare) - len(rest)
    if level > _LEVEL_MAX or rest[:1] not in {"", " ", "\t"}:
        return None
    name = rest.strip()
    unclosed = name.rstrip("#")
    if not unclosed or unclosed[-1] in " \t":
        name = unclosed.rstrip()
    return Heading(at=at, lines=1, level=level, name=name)


def _is_underline(line: str) -> bool:
    bare = line.strip()
    indent = len(line) - len(line.lstrip(" "))
    return indent <= _INDENT_MAX and not bare.strip(bare[0]) and len(bare) >= (2 if bare[0] == "=" else 3)


def _may_be_underlined(line: str, mark: str) -> bool:
    """Paragraphs only; but a title with its number, underlined with ===, is meant as a title."""
    bare = line.lstrip(" ")
    if not bare.strip() or len(line) - len(bare) > _INDENT_MAX or bare[0] in ">|<":
        return False
    if bare.startswith(("* ", "+ ", "- ")):
        return False
    return mark == "=" or not bare.partition(". ")[0].isdigit()


def _opened_by(line: str) -> str:
    bare = line.lstrip(" ")
    if len(line) - len(bare) > _INDENT_MAX:
        return ""
    if bare.startswith("<!--"):
        return "" if _COMMENT_END in bare[4:] else _COMMENT_END
    if bare.startswith(("```", "~~~")):
        rest = bare.lstrip(bare[0])
        if bare[0] == "~" or "`" not in rest:
            return bare[0] * (len(bare) - len(rest))
    return ""


def _closes(line: str, until: str) -> bool:
    if until == _COMMENT_END:
        return until in line
    bare = line.lstrip(" ")
    return len(line) - len(bare) <= _INDENT_MAX and bare.startswith(until) and not bare.strip(until[0] + " \t")
