"""A record restated in place: another status or further links, and every other line as it was."""

from __future__ import annotations

from functools import cache

from mnemarch.decisions.adr_links import iso_date, line_for, links_in, plain_status, reference_for
from mnemarch.decisions.adr_outline import headings, outside, unified
from mnemarch.decisions.adr_parts import pair_in, parts_of
from mnemarch.decisions.adr_read import parted_at_title, read_adr
from mnemarch.decisions.adr_words import role_of
from mnemarch.decisions.adr_write import says, write_adr
from mnemarch.decisions.front_matter import line_of, parted_from_front_matter
from mnemarch.lazy import Lazy
from mnemarch.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

    from mnemarch.decisions.adr_record import AdrLink
else:
    re = Lazy("re")


_KOREAN = {"accepted": "승인됨", "deprecated": "폐기됨", "superseded": "대체됨"}


@value
class _Edit:
    """What is to be said, and of which lines it is: `lines[front:head]` is the head, `status` the section's body."""

    old_status: str
    status: str
    links: tuple[AdrLink, ...]
    lines: tuple[str, ...]
    front: int
    head: int
    titles: frozenset[int]
    section: range | None

    @property
    def replacing(self) -> tuple[AdrLink, ...]:
        """The links that tell the status by themselves."""
        is_told = self.status == "superseded"
        return tuple(link for link in self.links if is_told and link.relation == "superseded_by")

    @property
    def others(self) -> tuple[AdrLink, ...]:
        return tuple(link for link in self.links if link not in self.replacing)

    def words(self, before: str = "") -> str:
        """The status, if it is another than before, in the language of what told it before."""
        if self.status == self.old_status and not self.replacing:
            return ""
        by = ", ".join(map(reference_for, self.replacing))
        if _hangul().search(before):
            return f"{by}에 의해 대체됨" if by else _KOREAN.get(self.status, self.status)
        return f"superseded by {by}" if by else self.status


# The lines that take the place of a line, and those that come after it.
_Changes = tuple[dict[int, str], dict[int, list[str]]]


def restated(text: str, status: str, links: Sequence[AdrLink]) -> str:
    """The text with this status and these links besides its own."""
    record = read_adr(text)
    wanted = replace(record, status=status, links=(*record.links, *links))
    pieces = _line().findall(text.removeprefix("\ufeff"))
    edit = _edit(unified(text), record.status, status, tuple(links))
    for change in (_in_section, _in_front_matter, _in_head):
        changes = change(edit)
        if changes is not None:
            new = text[: text.startswith("\ufeff")] + _changed(pieces, *changes)
            if says(new, wanted):
                return new
    written = write_adr(wanted)
    back = read_adr(written)
    # Superseded is final, whatever is said after it.
    is_told = back.status == status or "superseded" in {back.status, record.status}
    if not is_told or not set(links) <= set(back.links):
        written = _quoted(text, edit)  # An open comment, say, hides whatever is written below it.
    return text[: text.startswith("\ufeff")] + (written.replace("\n", "\r\n") if "\r\n" in text else written)


def _quoted(text: str, edit: _Edit) -> str:
    """A record that says what is wanted, and quotes a text that can't be made to say it."""
    tildes = max((len(run) for run in _tildes().findall(text)), default=2)
    fence = "~" * (tildes + 1)
    told = [_capital(edit.words() or edit.status), *map(line_for, edit.others)]
    blocks = ["# Record", "## Status", *told, "## Context", f"{fence}\n{unified(text)}\n{fence}"]
    return "\n\n".join(blocks) + "\n"


def _edit(text: str, old_status: str, status: str, links: tuple[AdrLink, ...]) -> _Edit:
    front, rest = parted_from_front_matter(text)
    _, sections = parted_at_title(text)
    lines, above = text.split("\n"), front.count("\n")
    found = headings(rest.split("\n"))
    marks = found[len(found) - len(sections) :]
    starts = [*(above + mark.at for mark in marks), len(lines)]
    bodies = [range(above + mark.at + mark.lines, end) for mark, end in zip(marks, starts[1:], strict=True)]
    leading = [
        body for part, body in zip(parts_of(sections), bodies, strict=True) if part.leads and part.role == "status"
    ]
    return _Edit(
        old_status=old_status,
        status=status,
        links=links,
        lines=tuple(lines),
        front=above,
        head=starts[0],
        titles=frozenset(above + mark.at for mark in found),
        section=leading[0] if leading else None,
    )


def _in_section(edit: _Edit) -> _Changes | None:
    if edit.section is None:
        return None
    told = [index for index in edit.section if edit.lines[index].strip()]
    last = told[-1] if told else edit.section.start - 1
    bullet = _bullet().match(edit.lines[last])
    words = edit.words(edit.lines[told[0] if told else last])
    said = [_capital(words)] if words else []
    replaced = {}
    same = [index for index in told if said and _says_only(edit.lines[index], edit.old_status)]
    if same:
        mark = _bullet().match(edit.lines[same[-1]])
        replaced = {same[-1]: (mark[0] if mark else "") + said.pop()}
    said += map(line_for, edit.others)
    return replaced, {last: [bullet[0] + line for line in said] if bullet else _paragraphs(said)}


def _says_only(line: str, status: str) -> bool:
    return plain_status(line) == status and not iso_date(line) and not any(True for _ in links_in(line))


def _in_front_matter(edit: _Edit) -> _Changes | None:
    keys = {edit.lines[index].partition(":")[0].strip(): index for index in range(1, edit.front)}
    at = next((index for key, index in keys.items() if role_of(key) == "status"), None)
    if at is None:
        return None
    words = edit.words(edit.lines[at])
    replaced = {at: line_of("status", words).rstrip("\n")} if words else {}
    told: dict[str, list[str]] = {}
    for link in edit.others:
        told.setdefault(link.relation.replace("_", "-"), []).append(reference_for(link))
    if told.keys() & keys.keys():
        return None
    return replaced, {at: [line_of(key, ", ".join(each)).rstrip("\n") for key, each in told.items()]}


def _in_head(edit: _Edit) -> _Changes | None:
    free = outside(list(edit.lines[edit.front : edit.head]))[0]
    for index in (edit.front + each for each in free):
        pair = pair_in(edit.lines[index]) if index not in edit.titles else None
        if pair is None or role_of(pair[0]) != "status":
            continue
        line, (_, told) = edit.lines[index], pair
        words = edit.words(told or line)
        words = _capital(words) if told[:1].isupper() else words
        start = line.rfind(told) if told else len(line)
        replaced = {index: line[:start] + words + line[start + len(told) :]} if words else {}
        bullet = _bullet().match(line)
        said = [
            f"{bullet[0] if bullet else ''}{_capital(link.relation.replace('_', ' '))}: {reference_for(link)}"
            for link in edit.others
        ]
        is_alone = index + 1 >= len(edit.lines) or not edit.lines[index + 1].strip()
        return replaced, {index: _paragraphs(said) if is_alone and not bullet else said}
    return None


def _changed(pieces: Sequence[str], replaced: dict[int, str], inserted: dict[int, list[str]]) -> str:
    """The lines, each with the ending it had; a new one has that of the first."""
    ending = next((piece[len(piece.rstrip("\r\n")) :] for piece in pieces if piece[-1] in "\r\n"), "\n")
    text = []
    for index, piece in enumerate(pieces):
        bare = piece.rstrip("\r\n")
        new = inserted.get(index, ())
        text.append(replaced.get(index, bare) + (piece[len(bare) :] or (ending if new else "")))
        text += [line + ending for line in new]
    return "".join(text)


def _paragraphs(lines: Sequence[str]) -> list[str]:
    return [each for line in lines for each in ("", line)]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


@cache
def _line() -> re.Pattern[str]:
    return re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


@cache
def _hangul() -> re.Pattern[str]:
    return re.compile("[가-힣]")


@cache
def _tildes() -> re.Pattern[str]:
    return re.compile("~~+")


@cache
def _bullet() -> re.Pattern[str]:
    return re.compile(r"[ \t]*[*+-][ \t]+")
