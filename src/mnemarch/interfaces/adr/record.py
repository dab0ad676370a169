"""Reads a Markdown decision record as far as a decision needs it: title, status, links, text and reason."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from mnemarch.interfaces.adr import phrases
from mnemarch.interfaces.adr.phrases import COMMENT, MARKDOWN, Line, Link, line_of, plain_name, role_of
from mnemarch.model.decision import SUMMARY_CHARS_MAX, Reason
from mnemarch.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from markdown_it.token import Token

    Content = tuple[tuple[str, str], ...]
    # The name and level of a section, the lines where it and its body start, and what follows a run-in.
    Mark = tuple[str, int, int, int, str]

# These sections say where a record stands, not what it decides.
_BESIDE_CONTENT = frozenset({"title", "status", "date", "deciders", "links", "more"})
_TELLING = frozenset({"head", "status", "links", "more"})
_RUN_IN = frozenset({"context", "drivers", "options", "decision", "consequences", "more"})
_RUN_IN_LEVEL = 7
_IN_A_DECISION = frozenset({"consequences", "effects", "confirmation"})
_FRONT_MATTER = re.compile(
    r"---[ \t]*\n((?:(?:[ \t#-].*|[^\W\d][\w .-]*:(?:[ \t].*)?)?\n)*?)(?:---|\.\.\.)[ \t]*(?:\n|$)"
)
_NUMBERED_UNDERLINED = re.compile(r"\s*[0-9]+(?=\. .+\n=+[ \t]*(?:\n|$))")
_HEADING_NUMBER = re.compile(
    r"(?:\[?(?:ADR|DR|결정)[-_ #]{0,3}(?P<named>[0-9]{1,6})(?![0-9])\]?\s*[.:：)–—-]?"
    r"|(?P<counted>[0-9]{1,6})(?:[.:：)](?=\s|$)|\s+[–—-](?=\s)))\s*(?P<title>.*)",
    re.IGNORECASE | re.DOTALL,
)
_HEADING_WORD = re.compile(r"^(?:\[ADR\]|(?:ADR|title|제목)\s*[:：])\s*", re.IGNORECASE)
_FILE_NUMBER = re.compile(r"(?:m?adr[-_ ]?)?(?![0-9]{4}-[0-9]{2}-[0-9]{2})([0-9]{1,6})(?=[-_. ]|$)", re.IGNORECASE)
_BECAUSE = re.compile(
    r"^[ \t>*_+-]*(?:the )?(?:(?:chosen|selected) (?:option|alternative|solution)"
    r"|선택(?:한|된)? ?(?:옵션|대안|선택지|방안|안)?)[*_]{0,3}[ \t]*[:：]"
    r"(?:(?!\n\n).)*?(?:(?<!\w)because(?!\w)|왜냐하면|이유[ \t]?[:：])[\s:：]*(.+?)(?:(?<!\.)\.)?(?:\n\n|\Z)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_MARK = re.compile(r"<!-- mnemarch: ([0-9A-Za-z-]{1,64})(?: (task|worktree))? -->")
_KINDS = r"(?:m?adrs?|nygard|decisions?|records?|architecture|[0-9x]+)"
_INDEXES = r"(?:templates?|템플릿|readme|index|toc|table-of-contents|summary|changelog|contributing|license|목차)"
_VARIANTS = r"(?:m?adr|nygard|minimal|bare|short|long|full|[a-z]{2}|[a-z]{2}-[a-z]{2}|[0-9.]+)"
_NO_RECORD = re.compile(rf"[_.]*(?:{_KINDS}[-_ ])*{_INDEXES}(?:[-_. ]{_VARIANTS})*", re.IGNORECASE)
_PLACEHOLDER = re.compile(
    r"[{<\[][^{}<>\[\]]*[}>\]]|(?:NUMBER\. )?title|(?:m?adr|decision record) ?template|title of .*|short title.*",
    re.IGNORECASE,
)


@value
class Section:
    """A heading, or a bold run-in such as `**Context.**`, with the lines up to the next one.

    `leads` is false where the section belongs to the one above it. `rest` is what follows a run-in on its line.
    """

    name: str
    level: int
    role: str
    leads: bool
    start: int
    body: int
    end: int
    rest: str = ""


@value
class Record:
    """What a decision record says. `sections`, `front` and `told` are where, by line; `mark` is a decision's id."""

    number: int | None
    title: str
    status: str
    links: tuple[Link, ...]
    context: str
    decision: str
    consequences: str
    content: Content
    has_options: bool
    mark: str
    level: str
    lines: tuple[str, ...]
    front: tuple[tuple[int, str, str], ...]
    sections: tuple[Section, ...]
    told: tuple[Line, ...]
    head_end: int

    @property
    def text(self) -> str:
        """The decision in words: the title and what was decided, once where the one begins the other."""
        first, _, _ = self.decision.partition("\n")
        if titled(first) == self.title:
            return self.decision or "(untitled)"
        return f"{self.title}\n\n{self.decision}".strip()

    @property
    def reason(self) -> Reason:
        """Why (in `Chosen option: "X", because Y.` it is Y), and what it costs, as far as a reason has room."""
        because = _BECAUSE.search(self.decision)
        said = (because[1] if because else "", self.context, self.title, "imported")
        summary = next(filter(None, (" ".join(text.split()) for text in said)))
        return Reason("other", cut(summary), cut(self.consequences) or None)

    def status_line(self) -> Line | None:
        """The line of the head that tells the status, such as `* Status: accepted`."""
        for line in self.told:
            key, colon, _ = line.text.replace("：", ":", 1).partition(":")
            if line.role == "head" and colon and role_of(key) == "status":
                return line
        return None


@lru_cache(maxsize=1_024)
def read_record(text: str, name: str = "") -> Record:
    """The record that a Markdown text is; any text can be read as one."""
    lines = unified(text).split("\n")
    front, front_end = _front_matter(lines)
    body = "\n".join([""] * front_end + lines[front_end:])
    # Markdown takes a numbered title that is underlined for a list.
    tokens = MARKDOWN.parse(_NUMBERED_UNDERLINED.sub(lambda found: found[0] + "\\", body, count=1))
    title, sections = _sections(tokens, lines)
    head_end = sections[0].start if sections else len(lines)
    told = tuple(_told(tokens, sections, head_end))
    texts = _texts(sections, lines)
    number, named = _numbered(texts.get("title", "").partition("\n")[0].strip() or title)
    in_front = {role_of(key): written for _, key, written in reversed(front)}
    own = tuple((one.role or plain_name(one.name), _text(one, lines)) for one in sections if _is_content(one))
    mark = _MARK.search("\n".join(lines[:head_end]))
    bare = Record(
        number=number if number is not None else number_of(name),
        title=named or in_front.get("title", ""),
        status="",
        links=(),
        context=texts.get("context", ""),
        decision=texts.get("decision", ""),
        consequences=texts.get("consequences", ""),
        content=(("title", named), *own),
        has_options="options" in texts,
        mark=mark[1] if mark else "",
        level=(mark[2] or "") if mark else "",
        lines=tuple(lines),
        front=front,
        sections=sections,
        told=told,
        head_end=head_end,
    )
    return _with_status(bare, in_front.get("status", ""))


def _with_status(record: Record, in_front: str) -> Record:
    """The record with its status (from its section, else the front matter, else its head) and its links."""
    said = [line for line in record.told if line.role == "status"]
    if not said and in_front:
        said = [line_of(0, in_front, "status")]
    elif not said and (line := record.status_line()):
        said = [line]
    links = [link for line in said for link in phrases.links_in(line)]
    for at, key, written in record.front:
        if phrases.is_relation(key):
            links += phrases.links_in(line_of(at, f"{key} {written}", "links"))
    for line in record.told:
        if line.role == "links" or (line.role in {"head", "more"} and phrases.begins_with_relation(line.text)):
            links += phrases.links_in(line)
    status = phrases.status_in(said)
    if not said and any(link.relation == "superseded_by" for link in links):
        status = "superseded"
    return replace(record, status=status, links=tuple(dict.fromkeys(links)))


def record_in(text: str, name: str) -> Record | None:
    """The record that a file is; None for a README, an index, a template, or anything else."""
    if not is_name_of_record(name):
        return None
    record = read_record(text, name)
    if _PLACEHOLDER.fullmatch(record.title):
        return None
    is_whole = bool(record.decision and (record.context or record.consequences or record.status))
    is_open = bool(record.context and record.has_options)
    is_numbered = record.number is not None and record.number == number_of(name) == read_record(text).number
    return record if is_whole or is_open or is_numbered else None


def is_name_of_record(name: str) -> bool:
    """Whether a file may be a record by its name."""
    stem, dot, ending = name.replace("\\", "/").rpartition("/")[2].rpartition(".")
    if dot and ending.casefold() not in {"md", "markdown"}:
        return False
    return _NO_RECORD.fullmatch(stem if dot else ending) is None


def unified(text: str) -> str:
    """The text without a byte order mark, every line ending the same."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def cut(text: str, chars_max: int = SUMMARY_CHARS_MAX) -> str:
    return text if len(text) <= chars_max else text[: chars_max - 1] + "…"


def titled(line: str, chars_max: int = 120) -> str:
    """The title of a decision that begins with this line."""
    return cut(_numbered(" ".join(line.lstrip("#").split()))[1], chars_max)


def number_of(name: str) -> int | None:
    """The number in a file's name."""
    number = _FILE_NUMBER.match(name.replace("\\", "/").rpartition("/")[2])
    return int(number[1]) if number else None


def _numbered(heading: str) -> tuple[int | None, str]:
    """12 and "Use SQLite" for "12. Use SQLite", "ADR-0012: Use SQLite" and the like."""
    bare = COMMENT.sub("", heading).strip()
    numbered = _HEADING_NUMBER.match(bare)
    if numbered is None:
        return None, _HEADING_WORD.sub("", bare)
    return int(numbered["named"] or numbered["counted"]), numbered["title"].strip()


# The outline


def _front_matter(lines: Sequence[str]) -> tuple[tuple[tuple[int, str, str], ...], int]:
    """The line, key and value of every simple entry of the front matter, and the line after it."""
    front = _FRONT_MATTER.match("\n".join(lines)) if lines[0].startswith("---") else None
    if front is None:
        return (), 0
    entries: list[tuple[int, str, str]] = []
    key = ""
    for at, line in enumerate(front[1].split("\n")[:-1], start=1):
        if line[:1] not in {"", " ", "\t", "#", "-"}:
            key, _, written = line.partition(":")
            listed = re.fullmatch(r"\s*\[(.*)\]\s*", written)
            entries += [(at, key.strip(), _scalar(each)) for each in (listed[1].split(",") if listed else [written])]
        elif line.strip().startswith("- ") and key:
            entries.append((at, key.strip(), _scalar(line.strip()[2:])))
    return tuple(entry for entry in entries if entry[2]), front[0].rstrip("\n").count("\n") + 1


def _scalar(written: str) -> str:
    bare = written.strip()
    quoted = re.match(r"""(["'])(.*?)\1\s*(?:#.*)?$""", bare)
    return quoted[2] if quoted else re.sub(r"(?:^|\s)#.*", "", bare).strip().strip("|>").strip()


def _sections(tokens: Sequence[Token], lines: Sequence[str]) -> tuple[str, tuple[Section, ...]]:
    """The title, and the sections below it with their roles. A bold run-in counts before the first of them."""
    marks: list[Mark] = []
    for at, token in enumerate(tokens):
        if token.level or token.map is None:
            continue
        content, (start, end) = tokens[at + 1].content if at + 1 < len(tokens) else "", token.map
        if token.type == "heading_open":
            marks.append((content, int(token.tag[1]), start, end, ""))
        elif token.type == "paragraph_open" and content.startswith("**") and all(mark[1] > 6 for mark in marks[1:]):
            name, closing, _ = content[2:100].partition("**")
            if closing and role_of(name) in _RUN_IN:
                rest = lines[start].partition(f"**{name}**")[2].lstrip(" \t:：.")
                marks.append((name, _RUN_IN_LEVEL, start, start + 1, rest))
    if not marks or marks[0][1] == _RUN_IN_LEVEL:
        return "", tuple(_with_roles(marks, len(lines)))
    is_alone = marks[0][1] == 1 and all(mark[1] > 1 for mark in marks[1:])
    if role_of(marks[0][0]) and not is_alone:
        return "", tuple(_with_roles(marks, len(lines)))
    return marks[0][0].replace("\\.", ".", 1), tuple(_with_roles(marks[1:], len(lines)))


def _with_roles(marks: Sequence[Mark], lines: int) -> Iterator[Section]:
    """A section below one with a role belongs to it; of several with one role the first counts."""
    above: list[tuple[int, str]] = []
    taken: set[str] = set()
    ends = [*(start for _, _, start, _, _ in marks[1:]), lines]
    for (name, level, start, body, rest), end in zip(marks, ends, strict=False):
        while above and above[-1][0] >= level:
            above.pop()
        parent, role, leads = above[-1][1] if above else "", role_of(name), True
        if parent and not (parent == "decision" and role in _IN_A_DECISION):
            role, leads = parent, False
        elif role == "effects":
            role, leads = ("" if "consequences" in taken else "consequences"), "consequences" in taken
        elif role in taken:
            role = ""
        else:
            taken.add(role)
        above.append((level, role))
        yield Section(name=name, level=level, role=role, leads=leads, start=start, body=body, end=end, rest=rest)


def _text(section: Section, lines: Sequence[str]) -> str:
    return "\n".join([section.rest, *lines[section.body : section.end]]).strip("\n").rstrip()


def _texts(sections: Iterable[Section], lines: Sequence[str]) -> dict[str, str]:
    """What each role says, with the headings of what stands below it."""
    texts: dict[str, list[str]] = {}
    for section in sections:
        body = section.body if section.leads else section.start
        own = [section.rest] if section.rest else []
        texts.setdefault(section.role, []).extend([*own, *lines[body : section.end]])
    return {role: _trimmed("\n".join(text)) for role, text in texts.items()}


def _trimmed(text: str) -> str:
    """The text without blank lines around it; the indentation of its first line stays."""
    return re.sub(r"\A(?:[ \t]*\n)+", "", text.rstrip())


def _is_content(section: Section) -> bool:
    return section.role not in _BESIDE_CONTENT


def _told(tokens: Sequence[Token], sections: Sequence[Section], head_end: int) -> Iterator[Line]:
    """The lines of the head and of the sections that may tell a status or links."""
    for before, token in pairwise(tokens):
        if token.type != "inline" or token.map is None or before.type == "heading_open":
            continue
        for at, written in enumerate(token.content.split("\n"), start=token.map[0]):
            role = "head" if at < head_end else _role_at(sections, at)
            if role in _TELLING:
                yield line_of(at, written, role)


def _role_at(sections: Sequence[Section], at: int) -> str:
    return next((one.role for one in sections if one.start <= at < one.end), "")
