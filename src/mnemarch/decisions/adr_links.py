"""Lines of a decision record that say where it stands: its status, and what it has to do with other records."""

from __future__ import annotations

from functools import cache

from mnemarch.decisions.adr_outline import told_lines
from mnemarch.decisions.adr_record import AdrLink
from mnemarch.decisions.adr_words import korean_relation, relation, statuses, words_of_status
from mnemarch.lazy import Lazy
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import datetime as calendar
    import re
    import urllib.parse as addresses
    from collections.abc import Iterator

    from mnemarch.text import questions
else:
    calendar = Lazy("datetime")
    re = Lazy("re")
    addresses = Lazy("urllib.parse")
    questions = Lazy("mnemarch.text.questions")

_DATE_CHARS_MAX = 80
# No line about status or links is longer.
_LINE_CHARS_MAX = 2000
_SHORT_WORDS_MAX = 3
_AROUND_A_LINE = " \t*+->_#"
_STATUS_WORDS_MAX = 4
_VERB_ENDS = "됨함음다"


@value
class _Reference:
    start: int
    end: int
    target: str
    label: str
    is_link: bool


def links_in(line: str, default: str = "") -> Iterator[AdrLink]:
    """The records that a line names, each with the relation said before it; without one, `default`, if any."""
    line = line[:_LINE_CHARS_MAX]
    marks = [(mark.end(), mark.lastgroup or "") for mark in relation().finditer(line)]
    references = sorted(_references(line, marks), key=lambda each: each.start)
    korean = korean_relation().search(_reference().sub(" ", line)) if references and not line.isascii() else None
    ahead = (korean.lastgroup or "") if korean else ""
    following = iter([*marks, (len(line) + 1, "")])
    end, coming = next(following)
    before = 0
    for reference in references:
        while end <= reference.start:
            before, ahead = end, coming
            end, coming = next(following)
        if ". " in line[before : reference.start]:
            ahead = ""  # what a sentence says of one record, the next does not say of another
        before = reference.end
        said = ahead or _said_in_words(line, reference) or default
        if said:
            yield AdrLink(relation=said, target=reference.target, label=reference.label)


def begins_with_relation(line: str) -> bool:
    """Whether a line is about a relation from its first word on."""
    return relation().match(line.lstrip(_AROUND_A_LINE)) is not None


def line_for(link: AdrLink) -> str:
    """The line that says a link: Superseded by [13. Title](0013-title.md)."""
    return f"{link.relation.replace('_', ' ').capitalize()} {reference_for(link)}"


def reference_for(link: AdrLink) -> str:
    """What a link points to, as Markdown; a number that is its own label stays plain."""
    label = " ".join(link.label.split())
    if link.target.isdecimal():
        plain = label or f"ADR-{int(link.target):04}"
        if [(each.target, each.label) for each in _references(plain, [(0, "")])] == [(link.target, plain)]:
            return plain
    target = " ".join(link.target.split())
    if not _is_address(target):
        target = _percent().sub("%25", target).replace("#", "%23")
    target = target.replace("<", "%3C").replace(">", "%3E")
    if not target or any(mark in target for mark in " ()"):
        target = f"<{target}>"
    label = _bracket().sub(r"\\\g<0>", label)
    return f"[{label}]({target})"


def status_in(text: str) -> str:
    """The status that lines of text leave a record in: a later line outdates an earlier one, superseded is for good."""
    lines = [_dismissed().sub(" ", line[:_LINE_CHARS_MAX]) for line in told_lines(text)]
    told = [status for line in lines if (status := plain_status(line) or _leading_status(line))]
    if told:
        return "superseded" if "superseded" in told else told[-1]
    for line in lines:
        if "|" in line or relation().search(line) or any(True for _ in links_in(line)):
            continue
        said = _words(_reference().sub(" ", line))
        status, length = _status_at([(word, 0) for word in said])
        # A Korean noun belongs to the one after it: 승인 불가 is no 승인.
        if status and (length == len(said) or said[length - 1].isascii() or said[length - 1][-1] in _VERB_ENDS):
            return status
        if said and (status or said[0] == "not" or len(said) <= _SHORT_WORDS_MAX):
            return " ".join(said)
    return ""


def _leading_status(line: str) -> str:
    """The status that a line begins with: "Accepted by the board", but not "Rejected options are listed below"."""
    first = relation().match(line.lstrip(_AROUND_A_LINE))
    if "|" in line or (first and first.lastgroup != "superseded_by"):
        return ""
    words = [(match[0], match.end()) for match in _word().finditer(line.casefold())]
    before = words_of_status("before")
    while words and (words[0][0] in before or words[0][0].isdigit()) and not _status_at(words)[0]:
        words.pop(0)
    status, length = _status_at(words)
    if not status:
        return ""
    rest = line[words[length - 1][1] :].lstrip("*_~` ")
    following = words[length][0] if length < len(words) else ""
    goes_on = rest[:1].isalpha() and following not in words_of_status("after") and following not in statuses()
    return "" if goes_on else status


def _status_at(words: list[tuple[str, int]]) -> tuple[str, int]:
    """The status that the first words name, and how many they are."""
    for length in range(min(_STATUS_WORDS_MAX, len(words)), 0, -1):
        if status := statuses().get(" ".join(word for word, _ in words[:length])):
            return status, length
    return "", 0


def plain_status(line: str) -> str:
    """The status of a line that says nothing else, or that begins with "superseded by"; else ""."""
    if "|" in line:
        return ""
    if any(link.relation == "superseded_by" for link in links_in(line)):
        first = relation().match(line.lstrip(_AROUND_A_LINE))
        if says_no_more(line) or (first and first.lastgroup == "superseded_by"):
            return "superseded"
    if not says_no_more(line):
        return ""
    words = [(word, 0) for word in _words(_without_relations(line))]
    told = ""
    while words:
        status, length = _status_at(words)
        told = status or told
        del words[: length or 1]
    return told


def says_no_more(line: str) -> bool:
    """Whether a line holds nothing beyond a status, links and dates."""
    if len(line) > _LINE_CHARS_MAX:
        return False
    if not relation().search(line) and any(_said_in_words(line, each) for each in _references(line, [])):
        return True
    rest = _numeric_date().sub(" ", _without_relations(line))
    beside = words_of_status("beside")
    return all(word in statuses() or word in beside or word.isdigit() for word in _words(rest))


def iso_date(text: str) -> str:
    """The first day that is named, as an ISO date; "" if there is none."""
    for found in questions.dates_in(text[:_DATE_CHARS_MAX]):
        if found.year and found.month and found.day:
            try:
                return calendar.date(found.year, found.month, found.day).isoformat()
            except ValueError:
                continue
    return ""


def _references(line: str, marks: list[tuple[int, str]]) -> Iterator[_Reference]:
    for match in _reference().finditer(line):
        kind = match.lastgroup
        if kind == "number" or kind == "file":
            target = str(int(match["number"])) if kind == "number" else match["file"]
            yield _Reference(*match.span(), target=target, label=match[0], is_link=False)
        else:
            label = _escape().sub(r"\1", match["label"])
            target = _target(match["wide"] if match["wide"] is not None else match["bare"], label)
            yield _Reference(*match.span(), target=target, label=label, is_link=True)
    for end, _ in marks:
        if bare := _bare_number().match(line, end):
            yield _Reference(*bare.span(), target=str(int(bare[1])), label=bare[1], is_link=False)


def _target(written: str, label: str) -> str:
    if not written:
        number = _digits().search(label)
        return str(int(number[0])) if number else ""
    if _is_address(written):
        return written
    path = written.partition("#")[0].removeprefix("./")
    return addresses.unquote(path) if "%" in path else path


def _is_address(target: str) -> bool:
    return "://" in target or target.startswith("mailto:")


def _said_in_words(line: str, reference: _Reference) -> str:
    """A relation that nobody foresaw: a word or two, then a link, and nothing else."""
    if not reference.is_link or _is_address(reference.target):
        return ""
    before, after = line[: reference.start].strip(_AROUND_A_LINE), line[reference.end :].strip(" \t.*_")
    if after or not _few_words().fullmatch(before):
        return ""
    said = before.casefold().split()
    return "" if said[0] in statuses() else "_".join(said)


def _without_relations(line: str) -> str:
    rest, named = _reference().subn(" ", _bare_after_relation().sub(" ", line))
    rest = relation().sub(" ", rest)
    return korean_relation().sub(" ", rest) if named else rest


def _words(text: str) -> list[str]:
    return _word().findall(text.casefold())


@cache
def _reference() -> re.Pattern[str]:
    label = r"(?<![!\\])\[(?P<label>(?:\\.|[^\[\]\\\n]){0,300})\]"
    address = r'\((?:<(?P<wide>[^<>\n]*)>|(?P<bare>[^()\s<>]*))(?:[ \t]+"[^"()\n]*")?\)'
    file = r"(?<![\w./-])(?P<file>\w[\w.-]*\.md)(?!\w)"
    number = r"(?<!\w)(?:ADR|결정)[-_ #:]{0,3}(?P<number>[0-9]{1,6})(?![0-9])"
    return re.compile(rf"{label}{address}(?P<link>)|{file}|{number}", re.IGNORECASE)


@cache
def _bare_number() -> re.Pattern[str]:
    return re.compile(r"[ \t]{0,3}[:：]?[ \t]{0,3}#?([0-9]{1,6})(?![0-9A-Za-z_-]|[./][0-9])")


@cache
def _bare_after_relation() -> re.Pattern[str]:
    return re.compile(relation().pattern + _bare_number().pattern, re.IGNORECASE)


@cache
def _numeric_date() -> re.Pattern[str]:
    return re.compile(r"[0-9]{4}(?:[-./][0-9]{1,2}[-./][0-9]{1,2}(?![0-9])|년 ?[0-9]{1,2}월 ?[0-9]{1,2}일)")


@cache
def _digits() -> re.Pattern[str]:
    return re.compile(r"[0-9]{1,6}")


@cache
def _word() -> re.Pattern[str]:
    return re.compile(r"[^\W_]+")


@cache
def _few_words() -> re.Pattern[str]:
    return re.compile(r"[^\W\d_]{1,30}(?: [^\W\d_]{1,30}){0,3}")


@cache
def _dismissed() -> re.Pattern[str]:
    """What is struck out or not ticked, and the tick itself."""
    return re.compile(r"~~[^~\n]*~~|\[ \].*|\[[xX]\](?!\()|☐\s*\w*")


@cache
def _escape() -> re.Pattern[str]:
    return re.compile(r"\\([\[\]\\])")


@cache
def _bracket() -> re.Pattern[str]:
    return re.compile(r"[\[\]\\]")


@cache
def _percent() -> re.Pattern[str]:
    return re.compile(r"%(?=[0-9A-Fa-f]{2})")
