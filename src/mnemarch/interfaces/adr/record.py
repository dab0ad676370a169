"""Reads the parts of a Markdown decision record that a decision needs (title, status, links, text, reason), and writes
records.

The forms are those of Nygard (a section "Status") and MADR (front matter, or a line "Status: ..." below the title), in
English and Korean.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence, Set
from functools import lru_cache
from itertools import pairwise
from unicodedata import category, normalize
from urllib.parse import unquote

from markdown_it import MarkdownIt

from mnemarch.model.decision import SUMMARY_CHARS_MAX, Decision, Reason
from mnemarch.model.value import Frozen

# A line's index and text.
Line = tuple[int, str]
# A heading's words and level, the line of the heading, and the line where its body starts.
Heading = tuple[str, int, int, int]

_SECTIONS = {
    "status": "status|상태",
    "context": "context|context and problem statement|problem|problem statement|background|why|rationale|motivation"
    "|맥락|배경|문맥|배경 및 문제|맥락과 문제|문제|이유|동기",
    "options": "considered options|options|alternatives|pros and cons of the options|선택지|고려한 선택지|대안|장단점",
    "decision": "decision|decision outcome|the decision|our decision|what we decided|resolution|solution|outcome"
    "|결정|결정 사항|결정 내용|결정 결과|결론|해결책",
    "consequences": "consequences|positive consequences|given up|결과|영향",
    "links": "links|related decisions|more information|링크|관련 결정|추가 정보",
    "beside": "date|deciders|decision makers|날짜|일자|결정자",
}
_ROLES = {name: role for role, names in _SECTIONS.items() for name in names.split("|")}
# Sections and lines that describe the record and are no part of its content.
_BESIDE_CONTENT = frozenset({"status", "links", "beside"})
_BESIDE_DECISION = _BESIDE_CONTENT | {"context", "options", "consequences"}
_STATUSES = {
    "accepted": "accepted|approved|adopted|agreed|decided|implemented|active|final|승인|채택|확정|수락",
    "proposed": "proposed|draft|pending|제안|초안",
    "rejected": "rejected|declined|거부|거절|기각|반려",
    "deprecated": "deprecated|obsolete|retired|withdrawn|폐기|철회",
    "superseded": "super[sc]eded|replaced|대체",
}
# Only the line's end, a sign, a number or one of a few words may follow a status: "승인 대기" is not accepted.
_STATUS = re.compile(
    r"[\W_]*(?:(?:status|상태)[\W_]*)?(?:"
    + "|".join(f"(?P<{status}>{words})" for status, words in _STATUSES.items())
    + r")(?:됨|된|함|되었음|되었다|되었습니다)?(?=[\W_]*$|\s*[^\w\s]|_|\s+\d|\s+(?:by|on|since|in|at|as|from|with)\b)",
    re.IGNORECASE,
)
_RELATION = re.compile(
    r"(?<!be )(?<!partly )(?<!partially )"
    r"(?:(?P<superseded_by>(?:super[sc]eded|replaced)[ -]by)|(?P<supersedes>super[sc]edes|replaces))\b",
    re.IGNORECASE,
)
_KOREAN_RELATION = re.compile(
    r"(?P<superseded_by>(?:에 ?의해|으?로) ?대체[됨된되])|(?P<supersedes>[을를] ?대체[함한하])"
)
MARKDOWN_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_REFERENCE = re.compile(r"([^\s,;()<>\"']+\.md)(?!\w)|(?:\bADR|결정)[-_ #]{0,3}([0-9]{1,6})(?![0-9])", re.IGNORECASE)
_BARE_NUMBER = re.compile(r"[\s:：#]*([0-9]{1,6})(?![\w-]|[./]\w)")
_KEY = re.compile(r"[^:：]{1,40}[:：][*_]*[ \t]*")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_HEADING_NUMBER = re.compile(
    r"(?:\[?ADR[-_ #]{0,3}([0-9]{1,6})\]?\s*[.:：)–—-]?|([0-9]{1,6})(?:[.:：)]|\s+[–—-])(?=\s))\s*", re.I
)
_FILE_NUMBER = re.compile(r"(?:adr[-_ ]?)?(?![0-9]{4}-[0-9]{2}-[0-9]{2})([0-9]{1,6})(?=[-_. ]|$)", re.IGNORECASE)
_NO_RECORD = re.compile(
    r"(?:(?:0+|m?adr|decision|record)[-_ ])*(?:readme|index|template|목차|템플릿)(?:[-_. ].*)?", re.I
)
# The mark of an exported record: the id of the decision's first version, a digest of the file, strength and domain.
MARK = re.compile(r"<!-- mnemarch: ([0-9A-Za-z-]{1,64})(?: ([0-9a-f]{16}))?(?: (axis|lock|normal) ([^<>\n]+?))? -->")
# A section without a heading: a paragraph that begins with **Decision.** or **Decision:**
_LEAD = re.compile(r"(?:\*\*|__)([^*_\n]{1,60})(?:\*\*|__)[.:：]?[ \t]*")
_LED_SECTIONS = frozenset({"context", "options", "decision", "consequences"})
_BELOW_HEADINGS = 7
MARKDOWN = MarkdownIt("commonmark")
MARKDOWN.core.ruler.disable(["inline", "text_join"])
_LINE_CHARS_MAX = 2_000
# Some encrypted file systems allow 143 bytes in a file's name.
_SLUG_BYTES_MAX = 120
_KOREAN = {"accepted": "승인됨", "deprecated": "폐기됨", "superseded": "대체됨"}
_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
# The text before the status on its line, by the status's place.
_BEFORE_STATUS = {"section": re.compile(r"[ \t]*(?:[*+-][ \t]+)?"), "front": re.compile(r"[^:]*:[ \t]*")}
_BEFORE_STATUS["head"] = re.compile(r"[^:：]*[:：][*_]*[ \t]*")


class Record(Frozen):
    """The parts of a decision record.

    `links` are pairs of a relation ("supersedes", "superseded_by") and a file's name or number. `content` is the text
    without status, links and dates. `mark` is the id of the decision that was exported to this record; `strength` and
    `domain` are from its mark too. `status_at` is the line of the status. `status_in` is its place: "section", "front",
    "head", or "title" for a record without one.
    """

    number: int | None
    title: str
    status: str
    links: tuple[tuple[str, str], ...]
    context: str
    decision: str
    consequences: str
    content: str
    mark: str
    strength: str | None
    domain: str | None
    status_at: int
    status_in: str

    @property
    def holds(self) -> bool:
        """Whether the record says that it is in force. A missing status counts as in force, an unknown one does not."""
        return self.status in {"", "accepted"}

    @property
    def was_decided(self) -> bool:
        """Whether the decision is or was in force."""
        return self.holds or self.status in {"deprecated", "superseded"}

    @property
    def text(self) -> str:
        """The title and the decision's text; without the title if the text begins with it."""
        if _begins_with(self.title, self.decision):
            return self.decision or "(untitled)"
        return f"{self.title}\n\n{self.decision}".strip()

    @property
    def reason(self) -> Reason:
        """The context and the consequences as a reason, each cut to the length limit."""
        summary = " ".join(self.context.split()) or self.title or "imported"
        return Reason("other", _cut(summary, SUMMARY_CHARS_MAX), _cut(self.consequences, SUMMARY_CHARS_MAX) or None)


@lru_cache(maxsize=1_024)
def read_record(text: str, name: str = "") -> Record:
    """Read a Markdown text as a record. Every text can be read; missing parts are empty."""
    outline = _Outline(text)
    status, status_at = outline.status()
    links = tuple(dict.fromkeys(outline.links()))
    heading = _COMMENT.sub("", outline.title).strip()
    number, title, mark, texts = _HEADING_NUMBER.match(heading), titled(heading, None), MARK.search(text), outline.texts
    body = outline.body()
    return Record(
        number=int(number[1] or number[2]) if number else number_of(name),
        title=title or next((entry for _, key, entry in outline.front if key == "title"), ""),
        status="superseded" if "superseded_by" in dict(links) else status,
        links=links,
        context=texts.get("context", ""),
        # Without a known heading for the decision, it is the text that has no other role.
        decision=texts.get("decision") or (outline.body(_BESIDE_DECISION) if "context" in texts else body),
        consequences=texts.get("consequences", ""),
        content=" ".join([title, *body.split()]),
        mark=mark[1] if mark else "",
        strength=mark[3] if mark else None,
        domain=mark[4] if mark else None,
        status_at=status_at,
        status_in=outline.place_of_status()[0],
    )


class _Outline:
    """The parts of a text: front matter, title, sections, and the lines that may have a status or links."""

    def __init__(self, text: str) -> None:
        self.lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self.front, self.title_end = _front_matter(self.lines)
        self.title = ""
        tokens = MARKDOWN.parse("\n".join([""] * self.title_end + self.lines[self.title_end :]))
        headings: list[Heading] = []
        for token, inline in pairwise(tokens):
            if token.level or not token.map:
                continue
            lead = _LEAD.match(inline.content) if token.type == "paragraph_open" else None
            if token.type == "heading_open":
                headings.append((inline.content, int(token.tag[1]), token.map[0], token.map[1]))
            elif lead is not None and _role_of(lead[1]) in _LED_SECTIONS:
                headings.append((lead[1], _BELOW_HEADINGS, token.map[0], token.map[0]))
        is_section = headings and _role_of(headings[0][0]) and any(one[1] <= headings[0][1] for one in headings[1:])
        if headings and not is_section:
            self.title, _, _, self.title_end = headings.pop(0)
        self.role_at = ["head"] * len(self.lines)
        self.texts: dict[str, str] = {}
        for role, start, body, end in _sections(headings, len(self.lines)):
            self.role_at[start:end] = [role] * (end - start)
            text = "\n".join(self.lines[body:end]).strip("\n").rstrip()
            self.texts.setdefault(role, _LEAD.sub("", text, count=1).strip("\n") if body == start else text)
        self.told: dict[str, list[Line]] = {"head": [], "status": [], "links": []}
        for before, token in pairwise(tokens):
            if token.type == "inline" and token.map and before.type != "heading_open":
                for at, line in enumerate(token.content.split("\n"), start=token.map[0]):
                    self.told.get(self.role_at[at], []).append((at, _COMMENT.sub("", line[:_LINE_CHARS_MAX])))

    def place_of_status(self) -> tuple[str, list[Line]]:
        """The place of the status ("section", "front", "head", or "title" if there is none), and its lines."""
        places = {
            "section": self.told["status"],
            "front": [(at, entry) for at, key, entry in self.front if _role_of(key) == "status"],
            "head": [(at, _KEY.sub("", line)) for at, line in self.told["head"] if _role_of_key(line) == "status"],
        }
        return next(((place, lines) for place, lines in places.items() if lines), ("title", []))

    def status(self) -> tuple[str, int]:
        """The status and its line. A line that names a successor comes first; else the last known status counts.

        An unknown status is returned as it is written. Without a status, the line is that of the title.
        """
        lines = self.place_of_status()[1]
        known = [(status.lastgroup or "", at) for at, line in lines if (status := _STATUS.match(line))]
        superseded = [("superseded", at) for at, line in lines if "superseded_by" in dict(_links_in(line))]
        unknown = [(line.strip().casefold(), at) for at, line in lines if line.strip() and not dict(_links_in(line))]
        return (superseded or known or unknown[:1] or [("", lines[0][0] if lines else self.title_end - 1)])[-1]

    def links(self) -> Iterator[tuple[str, str]]:
        """The links in the status, and in other lines that begin with a relation."""
        others = [*(f"{key} {entry}" for _, key, entry in self.front)]
        others += [line for _, line in (*self.told["head"], *self.told["links"])]
        lines = [line for _, line in self.place_of_status()[1]] + list(filter(_begins_with_relation, others))
        return (link for line in lines for link in _links_in(line))

    def body(self, left_out: Set[str] = _BESIDE_CONTENT) -> str:
        """The text without the sections of these roles, and without lines for status, links and dates."""
        head = self.told["head"]
        beside = {at for at, line in head if _role_of_key(line) in _BESIDE_CONTENT or _begins_with_relation(line)}
        lines = enumerate(self.lines[self.title_end :], start=self.title_end)
        kept = [line for at, line in lines if at not in beside and self.role_at[at] not in left_out]
        return MARK.sub("", "\n".join(kept)).strip()


def _role_of_key(line: str) -> str:
    key = _KEY.match(line)
    return _role_of(key[0]) if key else ""


def _begins_with_relation(line: str) -> bool:
    return bool(_RELATION.match(line.lstrip(" \t*+->_")) or _KOREAN_RELATION.search(line))


def _front_matter(lines: Sequence[str]) -> tuple[list[tuple[int, str, str]], int]:
    """The line, key and value of every simple entry of the front matter, and the line after the front matter."""
    end = lines.index("---", 1) if lines[0] == "---" and "---" in lines[1:] else 0
    if any(line.strip() and ":" not in line and line.lstrip()[0] not in "#-" for line in lines[1:end]):
        return [], 0  # This is text between two horizontal rules.
    entries = []
    for at, line in enumerate(lines[1:end], start=1):
        key, _, entry = line.partition(":")
        entry = re.sub(r"\s#.*", "", entry).strip().strip("\"'")
        if entry and line[0] not in " \t#-":
            entries.append((at, key.strip(), entry))
    return entries, end + 1 if end else 0


def _role_of(heading: str) -> str:
    """The role of a heading: "context" for "## 2. Context and Problem Statement", "" if it is unknown."""
    bare = re.sub(r"[*_`]+", "", _COMMENT.sub("", heading[:200])).replace("-", " ")
    return _ROLES.get(re.sub(r"^[\W\d]+", "", bare).rstrip(" .:：").casefold(), "")


def _sections(headings: Sequence[Heading], lines: int) -> Iterator[tuple[str, int, int, int]]:
    """Role, start, start of the body and end of each section. A subsection belongs to the section above it, if that has
    a role, except for the consequences below a decision. Of several sections with one role the first counts."""
    opened: list[Heading] = []
    for heading, level, start, body in headings:
        above, level_above = opened[-1][:2] if opened else ("", 0)
        role = _role_of(heading)
        if not above or level <= level_above or (above, role) == ("decision", "consequences"):
            is_first = all(role != one[0] for one in opened)
            opened.append((role if is_first else "", level, start, body))
    ends = [*(start for _, _, start, _ in opened[1:]), lines]
    for (role, _, start, body), end in zip(opened, ends, strict=False):
        yield role, start, body, end


def _links_in(line: str) -> Iterator[tuple[str, str]]:
    """The records that a line names, each with its relation: before the name in English, after it in Korean."""
    plain = MARKDOWN_LINK.sub(lambda link: f" {unquote(link[1].partition('#')[0])} ", line)
    marks = [*_RELATION.finditer(plain)]
    ends = [*(mark.start() for mark in marks[1:]), len(plain)]
    parts = [(mark.lastgroup, plain[mark.end() : end]) for mark, end in zip(marks, ends, strict=False)]
    if not marks and (korean := _KOREAN_RELATION.search(plain)):
        parts = [(korean.lastgroup, plain)]
    for relation, part in parts:
        bare = _BARE_NUMBER.match(part)
        references = [("", bare[1])] if bare else _REFERENCE.findall(part)
        for file, number in references:
            if "://" not in file:
                yield relation or "", file.rpartition("/")[2] or str(int(number))


def record_in(text: str, name: str) -> Record | None:
    """The record in a file, or None for a README, an index, a template, or any other text."""
    if not is_name_of_record(name):
        return None
    record = read_record(text, name)
    is_numbered = number_of(name) is not None and number_of(name) == read_record(text).number
    has_parts = bool(record.decision) and (bool(record.context) or record.status in _STATUSES)
    is_placeholder = record.title[:1] in {"", "{", "<", "["}
    return record if (is_numbered or has_parts) and not is_placeholder else None


def is_name_of_record(name: str) -> bool:
    stem, _, ending = name.rpartition(".")
    return ending.casefold() == "md" and _NO_RECORD.fullmatch(stem) is None


def is_as_exported(text: str) -> bool:
    """Whether a record is unchanged since its export."""
    mark = MARK.search(text)
    return mark is not None and mark[2] == _digest_of(text)


def _digest_of(text: str) -> str:
    """A digest of everything but the mark."""
    return hashlib.sha256(MARK.sub("", "\n".join(text.splitlines()), count=1).encode()).hexdigest()[:16]


def titled(text: str, chars_max: int | None = 120) -> str:
    """The title of a decision that begins with this text: its first line, without a number."""
    line = " ".join(text.partition("\n")[0].lstrip("#").split())
    return _cut(_HEADING_NUMBER.sub("", line, count=1) if _HEADING_NUMBER.match(line) else line, chars_max)


def _begins_with(title: str, text: str) -> bool:
    return titled(text) == title or bool(title and re.match(rf"{re.escape(title)}[.。]?(?!\S)", text))


def _cut(text: str, chars_max: int | None) -> str:
    return text if chars_max is None or len(text) <= chars_max else text[: chars_max - 1] + "…"


def number_of(name: str) -> int | None:
    """The number in a file's name."""
    number = _FILE_NUMBER.match(name)
    return int(number[1]) if number else None


# Writing: a new record for a decision without a file, or a changed status in an existing one


def file_name(number: int, title: str) -> str:
    """The file name of a record: 0012-kebab-case-of-title.md, in the title's own script."""
    plain = normalize("NFC", normalize("NFKC", title).lower())
    letters = "".join(each if each.isalnum() or category(each)[0] == "M" else " " for each in plain)
    slug = "-".join(letters.split()).encode()[:_SLUG_BYTES_MAX].decode(errors="ignore").strip("-")
    return f"{number:04}-{slug or 'decision'}.md"


def reference(number: int | None, title: str, name: str) -> str:
    """A Markdown link to a record."""
    label = re.sub(r"[][\\]", "", title if number is None else f"{number}. {title}")
    return f"[{label}]({name.replace(' ', '%20')})"


def new_record(decision: Decision, number: int, supersedes: Sequence[str] = ()) -> str:
    """A decision as a record in Nygard's form. Reading the record gives the same decision.

    A comment in it has the id of the decision's first version, a digest of the file, and strength and domain.
    """
    text = decision.text.strip()
    first, _, rest = text.partition("\n")
    title, rest = titled(first), rest.strip()
    is_joined_again = rest and f"{title}\n\n{rest}" == text and not _begins_with(title, rest)
    remark = f"<!-- mnemarch: {decision.root_id} -->"
    blocks = [f"# {number}. {title}", remark, f"Date: {decision.unit.occurred_at:%Y-%m-%d}"]
    blocks += [
        "## Status",
        "Accepted" if decision.is_active else "Deprecated",
        *(f"Supersedes {link}" for link in supersedes),
    ]
    blocks += ["## Context", _quoted_if_needed(decision.reason.summary)]
    blocks += ["## Decision", _quoted_if_needed(rest if is_joined_again else text)]
    blocks += ["## Consequences", _quoted_if_needed(decision.reason.tradeoff or "")]
    record = "\n\n".join(filter(None, blocks)) + "\n"
    mark = f"<!-- mnemarch: {decision.root_id} {_digest_of(record)} {decision.strength} {decision.unit.domain} -->"
    if MARK.fullmatch(mark) is None:  # The name of the domain can't stand in a comment.
        mark = f"<!-- mnemarch: {decision.root_id} {_digest_of(record)} -->"
    return record.replace(remark, mark, 1)


def _quoted_if_needed(text: str) -> str:
    """The text, as a quotation if it would break the record's outline, for example by a heading."""
    record = read_record(f"# T\n\n## Context\n\n{text}\n\n## Decision\n\nend\n")
    if not text or (record.context, record.decision) == (text.rstrip(), "end"):
        return text
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def with_status(text: str, status: str, by: str = "") -> str | None:
    """The text with another status: `status`, or "superseded by" the link in `by`. Every other line stays.

    Returns None if the status can't be changed in place.
    """
    record, status = read_record(text), "superseded" if by else status
    lines = _LINE.findall(text.removeprefix("\ufeff"))
    if not 0 <= record.status_at < len(lines):
        return None
    line, ending = lines[record.status_at]
    words = f"superseded by {by}" if by else status
    if record.status_in == "title":
        line += (ending or "\n") * 2 + f"Status: {words.capitalize() if not by else words}"
    else:
        before = _BEFORE_STATUS[record.status_in].match(line)
        start = before[0] if before else ""
        if re.search("[가-힣]", line[len(start) :]):
            words = f"{by}에 의해 {_KOREAN[status]}" if by else _KOREAN[status]
        elif line[len(start) :][:1].isupper():
            words = words[0].upper() + words[1:]
        line = start + (f'"{words}"' if record.status_in == "front" and by else words)
    lines[record.status_at] = (line, ending)
    new = text[: text.startswith("\ufeff")] + "".join(each + end for each, end in lines)
    back = read_record(new)
    return new if (back.status, back.content) == (status, record.content) else None
