"""Reads a Markdown decision record as far as a decision needs it: title, status, links, text and reason."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from itertools import pairwise

from mnemarch.interfaces.adr import phrases
from mnemarch.interfaces.adr.phrases import COMMENT, ENDED, IN_FORCE, MARKDOWN, Link, line_of, role_of
from mnemarch.model.closed import Names
from mnemarch.model.decision import SUMMARY_CHARS_MAX, Reason
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from markdown_it.token import Token

    from mnemarch.interfaces.adr.phrases import Line

    # The line, key and value of an entry of the front matter.
    Entry = tuple[int, str, str]
    # The name and level of a section, the lines where it and its body start, and what follows a run-in.
    Heading = tuple[str, int, int, int, str]

# These sections say where a record stands, not what it decides.
_BESIDE_CONTENT = frozenset({"title", "status", "date", "deciders", "links", "more"})
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
# The decision that was exported to a record, where it holds, and a digest of the file.
MARK = re.compile(r"<!-- mnemarch: ([0-9A-Za-z-]{1,64})(?: (task|worktree))?(?: ([0-9a-f]{16}))? -->")
_KINDS = r"(?:m?adrs?|nygard|decisions?|records?|architecture|[0-9x]+)"
_INDEXES = r"(?:templates?|템플릿|readme|index|toc|table-of-contents|summary|changelog|contributing|license|목차)"
_VARIANTS = r"(?:m?adr|nygard|minimal|bare|short|long|full|[a-z]{2}|[a-z]{2}-[a-z]{2}|[0-9.]+)"
_NO_RECORD = re.compile(rf"[_.]*(?:{_KINDS}[-_ ])*{_INDEXES}(?:[-_. ]{_VARIANTS})*", re.IGNORECASE)
_PLACEHOLDER = re.compile(
    r"[{<\[][^{}<>\[\]]*[}>\]]|(?:NUMBER\. )?title|(?:m?adr|decision record) ?template|title of .*|short title.*",
    re.IGNORECASE,
)


class Force(Names):
    HOLDS = "in force"
    ENDED = "no longer in force"
    NEVER = "never in force"


@value
class Section:
    """A heading, or a bold run-in such as `**Context.**`, with the lines up to the next one.

    `leads` is false where the section belongs to the one above it. `rest` is what follows a run-in on its line.
    """

    role: str
    leads: bool
    start: int
    body: int
    end: int
    rest: str


@value
class Record:
    """What a decision record says.

    `body` is every section that decides something. `mark` is the id of the decision that was exported to this record,
    and `level` where it holds. `status_at` is the line that tells the status, in the place that `status_in` names:
    "section", "front", "head", or "title" for a record that has no status.
    """

    number: int | None
    title: str
    status: str
    links: tuple[Link, ...]
    context: str
    decision: str
    consequences: str
    body: str
    has_options: bool
    mark: str
    level: str
    status_at: int
    status_in: str

    @property
    def content(self) -> tuple[str, str]:
        return self.title, self.body

    @property
    def force(self) -> Force:
        """Whether the record says of itself that it is in force."""
        if self.status not in IN_FORCE | ENDED:
            return Force.NEVER
        is_superseded = any(link.relation == "superseded_by" for link in self.links)
        return Force.ENDED if is_superseded or self.status in ENDED else Force.HOLDS

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
        reasons = (because[1] if because else "", self.context, self.title, "imported")
        summary = next(filter(None, (" ".join(text.split()) for text in reasons)))
        return Reason("other", cut(summary), cut(self.consequences) or None)


@lru_cache(maxsize=1_024)
def read_record(text: str, name: str = "") -> Record:
    """The record that a Markdown text is; any text can be read as one."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    front, front_end = _front_matter(lines)
    body = "\n".join([""] * front_end + lines[front_end:])
    # Markdown takes a numbered title that is underlined for a list.
    tokens = MARKDOWN.parse(_NUMBERED_UNDERLINED.sub(lambda digits: digits[0] + "\\", body, count=1))
    title, title_at, sections = _sections(tokens, lines)
    head_end = sections[0].start if sections else len(lines)
    texts = _texts(sections, lines)
    number, named = _numbered(texts.get("title", "").partition("\n")[0].strip() or title)
    in_front = {role_of(key): value for _, key, value in reversed(front)}
    status, status_at, status_in, links = _standing(_lines_by_role(tokens, sections, head_end), front, title_at)
    mark = MARK.search("\n".join(lines[:head_end]))
    content = [section for section in sections if section.role not in _BESIDE_CONTENT]
    return Record(
        number=number if number is not None else number_of(name),
        title=named or in_front.get("title", ""),
        status=status,
        links=links,
        context=texts.get("context", ""),
        decision=texts.get("decision", ""),
        consequences=texts.get("consequences", ""),
        body="\n\n".join("\n".join(lines[one.start : one.end]).rstrip() for one in content),
        has_options="options" in texts,
        mark=mark[1] if mark else "",
        level=(mark[2] or "") if mark else "",
        status_at=status_at,
        status_in=status_in,
    )


def _standing(
    lines: Mapping[str, Sequence[Line]], front: Sequence[Entry], title_at: int
) -> tuple[str, int, str, tuple[Link, ...]]:
    """The status (from its section, else the front matter, else the head), where it is told, and the links."""
    heads = [line for line in lines["head"] if role_of(line.text.replace("：", ":").partition(":")[0]) == "status"]
    fronts = [line_of(at, value) for at, key, value in front if role_of(key) == "status"]
    places = {"section": lines["status"], "front": fronts, "head": heads[:1], "title": []}
    status_in = next((place for place in places if places[place]), "title")
    status_lines = places[status_in]
    status = phrases.status_in(status_lines)
    links = [link for line in status_lines for link in phrases.links_in(line)]
    related = [line_of(at, f"{key} {value}") for at, key, value in front]
    related += [*lines["head"], *lines["more"]]
    for line in [*(one for one in related if phrases.begins_with_relation(one.text)), *lines["links"]]:
        links += phrases.links_in(line)
    if not status_lines and any(link.relation == "superseded_by" for link in links):
        status = "superseded"
    tells = [line.at for line in status_lines if phrases.status_of(line) == status]
    status_at = (tells or [line.at for line in status_lines] or [title_at])[-1]
    return status, status_at, status_in, tuple(dict.fromkeys(links))


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


def is_as_exported(text: str) -> bool:
    """Whether nobody changed a record since it was exported."""
    mark = MARK.search(text)
    return mark is not None and mark[3] == digest_of(text)


def digest_of(text: str) -> str:
    """A digest of everything but the mark."""
    return hashlib.sha256(MARK.sub("", "\n".join(text.splitlines()), count=1).encode()).hexdigest()[:16]


def is_name_of_record(name: str) -> bool:
    """Whether a file may be a record by its name."""
    stem, _, ending = name.replace("\\", "/").rpartition("/")[2].rpartition(".")
    return ending.casefold() in {"md", "markdown"} and _NO_RECORD.fullmatch(stem) is None


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


def _front_matter(lines: Sequence[str]) -> tuple[list[Entry], int]:
    """Every entry `key: value` of the front matter, and the line after it."""
    front = _FRONT_MATTER.match("\n".join(lines)) if lines[0].startswith("---") else None
    if front is None:
        return [], 0
    entries = []
    for at, line in enumerate(front[1].split("\n")[:-1], start=1):
        key, _, written = line.partition(":")
        if line[:1] not in {"", " ", "\t", "#", "-"} and (scalar := _scalar(written)):
            entries.append((at, key.strip(), scalar))
    return entries, front[0].rstrip("\n").count("\n") + 1


def _scalar(written: str) -> str:
    bare = written.strip()
    quoted = re.match(r"""(["'])(.*?)\1\s*(?:#.*)?$""", bare)
    return quoted[2] if quoted else re.sub(r"(?:^|\s)#.*", "", bare).strip().strip("|>").strip()


def _sections(tokens: Sequence[Token], lines: Sequence[str]) -> tuple[str, int, list[Section]]:
    """The title and its last line (-1 if there is none), and the sections below it.

    A bold run-in counts before the first heading below the title.
    """
    headings: list[Heading] = []
    for token, inline in pairwise(tokens):
        if token.level or token.map is None:
            continue
        content, (start, end) = inline.content, token.map
        if token.type == "heading_open":
            headings.append((content, int(token.tag[1]), start, end, ""))
        elif token.type == "paragraph_open" and content.startswith("**") and all(one[1] > 6 for one in headings[1:]):
            name, closing, _ = content[2:100].partition("**")
            if closing and role_of(name) in _RUN_IN:
                rest = lines[start].partition(f"**{name}**")[2].lstrip(" \t:：.")
                headings.append((name, _RUN_IN_LEVEL, start, start + 1, rest))
    if not headings or headings[0][1] == _RUN_IN_LEVEL:
        return "", -1, list(_with_roles(headings, len(lines)))
    title, level, _, end, _ = headings[0]
    is_alone = level == 1 and all(one[1] > 1 for one in headings[1:])
    if role_of(title) and not is_alone:
        return "", -1, list(_with_roles(headings, len(lines)))
    return title.replace("\\.", ".", 1), end - 1, list(_with_roles(headings[1:], len(lines)))


def _with_roles(headings: Sequence[Heading], lines: int) -> Iterator[Section]:
    """A section below one with a role belongs to it; of several with one role the first counts."""
    above: list[tuple[int, str]] = []
    taken: set[str] = set()
    ends = [*(start for _, _, start, _, _ in headings[1:]), lines]
    for (name, level, start, body, rest), end in zip(headings, ends, strict=False):
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
        yield Section(role=role, leads=leads, start=start, body=body, end=end, rest=rest)


def _texts(sections: Iterable[Section], lines: Sequence[str]) -> dict[str, str]:
    """What each role says, with the headings of what stands below it; the indentation of the first line stays."""
    texts: dict[str, list[str]] = {}
    for section in sections:
        body = section.body if section.leads else section.start
        own = [section.rest] if section.rest else []
        texts.setdefault(section.role, []).extend([*own, *lines[body : section.end]])
    return {role: re.sub(r"\A(?:[ \t]*\n)+", "", "\n".join(text).rstrip()) for role, text in texts.items()}


def _lines_by_role(tokens: Sequence[Token], sections: Sequence[Section], head_end: int) -> dict[str, list[Line]]:
    """The lines of the head and of the sections that may tell a status or links."""
    by_role: dict[str, list[Line]] = {"head": [], "status": [], "links": [], "more": []}
    for before, token in pairwise(tokens):
        if token.type != "inline" or token.map is None or before.type == "heading_open":
            continue
        for at, written in enumerate(token.content.split("\n"), start=token.map[0]):
            role = next((one.role for one in sections if one.start <= at < one.end), "")
            if at < head_end or role in by_role:
                by_role["head" if at < head_end else role].append(line_of(at, written))
    return by_role
