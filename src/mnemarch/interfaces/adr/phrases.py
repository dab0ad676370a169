"""The phrases of decision records, English and Korean: what a section is about, a status, a link to another record."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from urllib.parse import unquote

from markdown_it import MarkdownIt

from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markdown_it.token import Token

_WORDS = tomllib.loads(files(__package__).joinpath("words.toml").read_text(encoding="utf-8"))
_ROLES: dict[str, str] = {name: role for role, names in _WORDS["sections"].items() for name in names}
IN_FORCE, ENDED = frozenset(_WORDS["force"]["in_force"]), frozenset(_WORDS["force"]["ended"])
_STATUS_WORDS_MAX = 4
_UNKNOWN_STATUS_WORDS_MAX = 3
_LINE_CHARS_MAX = 2_000
_NAME_CHARS_MAX = 80
_LINK = "\ufffc"

MARKDOWN = MarkdownIt("commonmark").enable("strikethrough")
# Only the lines that may tell a status or links are parsed further.
MARKDOWN.core.ruler.disable(["inline", "text_join"])
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def _alternatives(table: str) -> str:
    return "|".join(f"(?P<{name}>{source})" for name, source in _WORDS[table].items())


_RELATION = re.compile(rf"(?<![^\W_])(?:{_alternatives('relations')})(?![^\W_])", re.IGNORECASE)
_KOREAN_RELATION = re.compile(rf"(?:{_alternatives('korean_relations')})[가-힣]*")
_REFERENCE = re.compile(
    rf"{_LINK}|(?<![\w./-])(?P<file>\w[\w.-]*\.md)(?!\w)"
    r"|(?<!\w)(?:ADR|결정)[-_ #:]{0,3}(?P<number>[0-9]{1,6})(?![0-9])",
    re.IGNORECASE,
)
_BARE_NUMBER = re.compile(r"[ \t]{0,3}[:：]?[ \t]{0,3}#?([0-9]{1,6})(?![0-9A-Za-z_-]|[./][0-9])")
_DATE = re.compile(r"[0-9]{4}(?:[-./][0-9]{1,2}[-./][0-9]{1,2}(?![0-9])|년 ?[0-9]{1,2}월 ?[0-9]{1,2}일)")
_WORD = re.compile(r"[^\W_]+")
_NOT_TICKED = re.compile(r"\[ \].*|\[[xX]\]|☐\s*\w*")
# Relations that are said of a record and mean nothing for it now.
_NO_LINK = frozenset({"", "other", "later"})
_AROUND_A_LINE = " \t*+->_#"


@value
class Link:
    """What this record has to do with another one, which is named by its file or by its number."""

    relation: str
    target: str


@value
class Line:
    """A line of text outside code and comments. In `text` each Markdown link is one mark, whose target is listed."""

    at: int
    text: str
    targets: tuple[str, ...]


def plain_name(heading: str) -> str:
    """A heading as it is compared: without number, emphasis, comment, emoji and case."""
    bare = COMMENT.sub("", heading)
    if len(bare) > _NAME_CHARS_MAX:
        return ""
    bare = re.sub(r"[*_`]+", " ", bare).replace("&", " and ").replace("-", " ")
    return " ".join(re.sub(r"^[\W\d_]+", "", bare).rstrip(" .:：?").casefold().split())


def role_of(heading: str) -> str:
    """What a heading announces: "context" for "## 2. Context and Problem Statement", "" for a name of its own."""
    name = plain_name(heading)
    outer, _, inner = name.partition("(")
    return _ROLES.get(name) or _ROLES.get(outer.strip()) or _ROLES.get(inner.rstrip(") "), "")


def line_of(at: int, written: str) -> Line:
    """A line without emphasis, comments and what is struck out."""
    tokens: list[Token] = []
    MARKDOWN.inline.parse(written[:_LINE_CHARS_MAX], MARKDOWN, {}, tokens)
    text, targets, depth, struck = "", [], 0, 0
    for token in tokens:
        struck += {"s_open": 1, "s_close": -1}.get(token.type, 0)
        if token.type == "link_open":
            targets.append(str(token.attrs["href"]))
            text += _LINK
        depth += {"link_open": 1, "link_close": -1}.get(token.type, 0)
        if not depth and not struck and token.type in {"text", "code_inline", "text_special"}:
            text += token.content
    return Line(at=at, text=_NOT_TICKED.sub(" ", text), targets=tuple(targets))


def _statuses() -> dict[str, str]:
    """Every phrase that names a status, and the status."""
    known = {word: status for status, words in _WORDS["statuses"].items() for word in (status, *words)}
    around = _WORDS["around"]
    nouns = [(word, status) for word, status in known.items() if not word.isascii()]
    single = [(noun, status) for noun, status in nouns if " " not in noun]
    said = {noun + ending: status for noun, status in single for ending in around["korean_endings"]}
    to_come = [(f"{before} {word}", known[word]) for word in known if word.isascii() for before in around["to_come"]]
    to_come += [
        (noun + gap + end, status) for noun, status in nouns for end in around["korean_to_come"] for gap in ("", " ")
    ]
    return {words: "to be deprecated" if status in ENDED else "pending" for words, status in to_come} | said | known


_STATUSES = _statuses()


def status_in(lines: Sequence[Line]) -> str:
    """The status that the lines leave a record in: a later line outdates an earlier one, superseded is for good.

    An unknown status is given in its own words; such a record is not in force.
    """
    statuses = [status for line in lines if (status := status_of(line))]
    if statuses:
        return "superseded" if "superseded" in statuses else statuses[-1]
    for line in lines:
        words = _WORD.findall(line.text.casefold())
        is_about_others = "|" in line.text or _RELATION.search(line.text) or any(True for _ in links_in(line))
        if words and not is_about_others and (words[0] == "not" or len(words) <= _UNKNOWN_STATUS_WORDS_MAX):
            return " ".join(words)
    return ""


def status_of(line: Line) -> str:
    """The status that a line begins with: "Accepted by the board", but not "Rejected options are listed below"."""
    relation = _RELATION.match(line.text.lstrip(_AROUND_A_LINE))
    if "|" in line.text or (relation and relation.lastgroup != "superseded_by"):
        return ""
    if any(link.relation == "superseded_by" for link in links_in(line)):
        return "superseded"
    text = _DATE.sub(" ", _RELATION.sub(" ", line.text))
    words = [(word[0].casefold(), word.end()) for word in _WORD.finditer(text)]
    while words and (words[0][0] in _WORDS["around"]["before"] or words[0][0].isdigit()) and not _status_at(words)[0]:
        words.pop(0)
    status = ""
    while (phrase := _status_at(words))[0]:
        status, length = phrase
        rest = text[words[length - 1][1] :].lstrip()
        words = words[length:]
        if words and rest[0].isalpha() and words[0][0] not in _WORDS["around"]["after"] and not _status_at(words)[0]:
            return ""
    return status


def _status_at(words: Sequence[tuple[str, int]]) -> tuple[str, int]:
    """The status that the first words name, and how many they are."""
    for length in range(min(_STATUS_WORDS_MAX, len(words)), 0, -1):
        if status := _STATUSES.get(" ".join(word for word, _ in words[:length])):
            return status, length
    return "", 0


def is_only_status(line: Line) -> bool:
    """Whether a line says a status and nothing else, not even a date."""
    return " ".join(_WORD.findall(line.text.casefold())) in _STATUSES


def begins_with_relation(text: str) -> bool:
    return _RELATION.match(text.lstrip(_AROUND_A_LINE)) is not None


def links_in(line: Line) -> Iterator[Link]:
    """The records that a line names, each with the relation that was said before it."""
    text, targets = line.text, iter(line.targets)
    marks = [(mark.end(), mark.lastgroup or "") for mark in _RELATION.finditer(text)]
    references = [(one.start(), one.end(), _target(one, targets)) for one in _REFERENCE.finditer(text)]
    numbers = (_BARE_NUMBER.match(text, end) for end, _ in marks)
    references += [(one.start(), one.end(), str(int(one[1]))) for one in numbers if one]
    korean = _KOREAN_RELATION.search(_REFERENCE.sub(" ", text)) if references and not text.isascii() else None
    relation, since = (korean.lastgroup or "") if korean else "", 0
    for start, end, target in sorted(references):
        for mark_end, name in marks:
            if since <= mark_end <= start:
                relation, since = name, mark_end
        if ". " in text[since:start]:
            relation = ""  # What one sentence says of a record, the next does not say of another.
        since = end
        if relation not in _NO_LINK and target and "://" not in target:
            yield Link(relation=relation, target=target)


def _target(reference: re.Match[str], targets: Iterator[str]) -> str:
    if reference["number"]:
        return str(int(reference["number"]))
    written = reference["file"] or next(targets, "")
    return unquote(written.partition("#")[0]) if "://" not in written else written
