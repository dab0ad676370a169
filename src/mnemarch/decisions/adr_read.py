"""Decision records read from Markdown: the Nygard form, the MADR forms, and whatever else names its parts."""

from __future__ import annotations

from functools import cache

from mnemarch.decisions.adr_choice import chosen_in, items_in
from mnemarch.decisions.adr_links import begins_with_relation, iso_date, links_in, status_in
from mnemarch.decisions.adr_outline import parted, told_lines, unified, without_comments
from mnemarch.decisions.adr_parts import head_of, links_of_pair, parts_of, texts_of
from mnemarch.decisions.adr_record import AdrRecord
from mnemarch.decisions.adr_words import MADR_NAMES, plain_name, relation, role_of
from mnemarch.decisions.front_matter import parted_from_front_matter
from mnemarch.lazy import Lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Mapping, Sequence

    from mnemarch.decisions.adr_outline import Section
    from mnemarch.decisions.adr_parts import Head, Part
    from mnemarch.decisions.adr_record import AdrLink
else:
    re = Lazy("re")

_NYGARD = frozenset({"status", "context", "consequences"})


def read_adr(text: str, name: str = "") -> AdrRecord:
    """The record that a Markdown text is; any text is one, if only of a form of its own."""
    preamble, sections = parted_at_title(unified(text))
    head = head_of(preamble)
    parts = parts_of(sections)
    told = head.parts | texts_of(parts)
    number, title = _numbered(told.get("title", "").partition("\n")[0].strip() or head.title)
    status_text = status_text_of(head, told)
    chosen, because = chosen_in(told.get("decision", ""))
    links = tuple(dict.fromkeys(_links(head, told, status_text)))
    replaced = any(link.relation == "superseded_by" for link in links)
    return AdrRecord(
        form=_form(parts),
        number=number if number is not None else _number_of(name),
        title=title or " ".join(_front(head, "title")),
        status=status_in(status_text) or ("superseded" if replaced and not status_text else ""),
        date=_date(head, told, status_text),
        deciders=_deciders(head, told),
        context=told.get("context", ""),
        decision=told.get("decision", ""),
        consequences=told.get("consequences", ""),
        drivers=items_in(told.get("drivers", "")),
        options=_options(parts, told),
        chosen=chosen,
        because=because,
        links=links,
        sections=tuple((section.heading, section.body) for section in sections),
        preamble=preamble,
    )


def status_text_of(head: Head, told: Mapping[str, str]) -> str:
    """The text that tells the status: the section, else the front matter, else a line of the head."""
    return told.get("status") or "\n".join(_front(head, "status")) or "\n".join(_paired(head, "status")[:1])


def parted_at_title(text: str) -> tuple[str, tuple[Section, ...]]:
    """The text up to its first section, the title included, and the sections."""
    front, rest = parted_from_front_matter(text)
    lead, sections = parted(rest)
    if not sections:
        return text, ()
    first = sections[0]
    alone = first.level == 1 and all(section.level > 1 for section in sections[1:])
    if role_of(first.name) and not alone:
        return front + lead, sections
    return f"{front}{lead}{first.heading}\n{first.body}", sections[1:]


def _form(parts: Sequence[Part]) -> str:
    named = {part.role for part in parts if part.leads}
    if any(plain_name(part.section.name) in MADR_NAMES for part in parts if part.leads and part.role):
        return "madr"
    if "decision" in named and named & _NYGARD:
        return "nygard"
    return "other"


def _numbered(title: str) -> tuple[int | None, str]:
    """12 and "Use SQLite" for "12. Use SQLite", "ADR-0012: Use SQLite" and the like."""
    found = _heading_number().match(title)
    if found is None:
        return None, _heading_word().sub("", title)
    return int(found["named"] or found["counted"]), found["title"].strip()


def title_in(heading: str) -> str:
    """What a heading says beside a number."""
    return _numbered(without_comments(heading).strip())[1]


def _number_of(name: str) -> int | None:
    found = _file_number().match(name.replace("\\", "/").rpartition("/")[2])
    return int(found[1]) if found else None


def _front(head: Head, role: str) -> tuple[str, ...]:
    return next((entry.values for entry in head.entries if entry.values and role_of(entry.key) == role), ())


def _paired(head: Head, role: str) -> list[str]:
    return [told for key, told in head.pairs if role_of(key) == role]


def _date(head: Head, told: Mapping[str, str], status_text: str) -> str:
    named = [*_front(head, "date"), *_paired(head, "date"), *told_lines(told.get("date", ""))]
    written = next((text for line in named if (text := without_comments(line).strip())), "")
    if not written:
        return next((day for line in told_lines(status_text) if (day := iso_date(line))), "")
    return iso_date(written) or " ".join(written.split())


def _deciders(head: Head, told: Mapping[str, str]) -> tuple[str, ...]:
    for entry in head.entries:
        if entry.values and role_of(entry.key) == "deciders":
            return entry.values if entry.is_list else tuple(_names(entry.values[0]))
    if written := "".join(_paired(head, "deciders")[:1]):
        return tuple(_names(written))
    section = told.get("deciders", "")
    return items_in(section) or tuple(name for line in told_lines(section) for name in _names(line))


def _names(written: str) -> Iterator[str]:
    text = without_comments(written)
    for name in text.split(";" if ";" in text else ","):
        if name.strip():
            yield name.strip()


def _options(parts: Sequence[Part], told: Mapping[str, str]) -> tuple[str, ...]:
    own = [part.section.body for part in parts if part.role == "options" and part.leads]
    listed = items_in("".join(own) if own else told.get("options", ""))
    return listed or _names_below(parts, "options") or _names_below(parts, "pros")


def _names_below(parts: Sequence[Part], role: str) -> tuple[str, ...]:
    below = [part.section for part in parts if part.role == role and not part.leads]
    level = min((section.level for section in below), default=0)
    return tuple(section.name for section in below if section.level == level and section.name)


def _links(head: Head, told: Mapping[str, str], status_text: str) -> Iterator[AdrLink]:
    for line in told_lines(status_text):
        yield from links_in(line)
    for entry in head.entries:
        for written in entry.values:
            yield from links_of_pair(entry.key, written)
    for key, written in head.pairs:
        yield from links_of_pair(key, written)
    for line in told_lines(told.get("links", "")):
        yield from links_in(line, default="relates_to")
    for text in (head.rest, told.get("more", "")):
        for line in told_lines(text):
            if begins_with_relation(line):
                yield from links_in(line)
            elif text is not head.rest:
                yield from _links_in_words(line)


def _links_in_words(line: str) -> Iterator[AdrLink]:
    return (link for link in links_in(line) if not relation().search(line))


@cache
def _heading_number() -> re.Pattern[str]:
    return re.compile(
        r"(?:\[?(?:ADR|DR|결정)[-_ #]{0,3}(?P<named>[0-9]{1,6})(?![0-9])\]?\s*[.:：)–—-]?"
        r"|(?P<counted>[0-9]{1,6})(?:[.:：)](?=\s|$)|\s+[–—-](?=\s)))\s*(?P<title>.*)",
        re.IGNORECASE | re.DOTALL,
    )


@cache
def _heading_word() -> re.Pattern[str]:
    return re.compile(r"^(?:\[ADR\]|(?:ADR|title|제목)\s*[:：])\s*", re.IGNORECASE)


@cache
def _file_number() -> re.Pattern[str]:
    return re.compile(r"(?:m?adr[-_ ]?)?(?![0-9]{4}-[0-9]{2}-[0-9]{2})([0-9]{1,6})(?=[-_. ]|$)", re.IGNORECASE)
