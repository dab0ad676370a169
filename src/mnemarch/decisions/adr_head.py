"""The head of a decision record as it is written: title, date, who decided, and where the record stands."""

from __future__ import annotations

from mnemarch.decisions.adr_links import (
    begins_with_relation,
    iso_date,
    line_for,
    plain_status,
    reference_for,
    says_no_more,
    status_in,
)
from mnemarch.decisions.adr_outline import closed, trimmed, without_comments
from mnemarch.decisions.adr_parts import Head, Part
from mnemarch.decisions.adr_read import status_text_of
from mnemarch.decisions.adr_record import AdrLink, AdrRecord
from mnemarch.decisions.adr_words import relation, role_of
from mnemarch.decisions.front_matter import line_of
from mnemarch.model.value import value


@value
class Source:
    """A record taken apart for writing, and those of its links that nothing else in the text would tell."""

    record: AdrRecord
    form: str
    head: Head
    parts: tuple[Part, ...]
    told: dict[str, str]
    links: tuple[AdrLink, ...]


def head_blocks(source: Source) -> list[str]:
    """The title and what stands around it. In a MADR the file name alone tells the number."""
    record = source.record
    counted = f"{record.number}. " if record.number is not None and source.form != "madr" else ""
    title = " ".join(f"# {counted}{record.title}".split())
    if source.form == "madr":
        blocks = [_front_matter(source), title]
    else:
        blocks = [title, f"Date: {record.date}" if record.date else "", _deciders_line(record.deciders)]
    if source.form == "other":
        blocks.append(f"Status: {_capital(record.status)}" if record.status else "")
        blocks += filter(begins_with_relation, map(line_for, source.links))
    return [block for block in [*blocks, closed(source.head.rest)] if block not in {"", "#"}]


def status_text(source: Source) -> str:
    """The status, its history before it, links and remarks after it."""
    record = source.record
    history, remarks = beyond_status(source)
    is_linked = any(is_in_status(record, link) for link in source.links)
    current = "" if is_linked else _capital(record.status)
    return "\n\n".join(filter(None, [*history, current, *map(line_for, source.links), remarks]))


def beyond_status(source: Source) -> tuple[list[str], str]:
    """What the text about the status says beyond status and links: former statuses, and remarks."""
    record, text = source.record, status_text_of(source.head, source.told)
    current = {"", "superseded", record.status, status_in(text)}
    history: list[str] = []
    remarks: list[str] = []
    for line in text.split("\n"):
        told = without_comments(line)
        if not line.strip():
            remarks += [""] if remarks else []
        elif not says_no_more(told):
            remarks.append(line)
        elif plain_status(told) not in current or iso_date(told) not in {"", record.date}:
            history.append(line.strip())
    return history, trimmed("\n".join(remarks))


def is_in_status(record: AdrRecord, link: AdrLink) -> bool:
    """Whether the link is what the status is about."""
    return record.status == "superseded" and link.relation == "superseded_by"


def is_held(key: str) -> bool:
    """Whether a field holds what the front matter says under this key."""
    return role_of(key) in {"status", "date", "deciders", "links"} or relation().fullmatch(key) is not None


def _front_matter(source: Source) -> str:
    record = source.record
    replacing = [reference_for(link) for link in source.links if is_in_status(record, link)]
    status = f"superseded by {', '.join(replacing)}" if replacing else record.status
    lines = [line_of("status", status)] if status else []
    lines += [line_of("date", record.date)] if record.date else []
    lines += [line_of("decision-makers", record.deciders)] if record.deciders else []
    lines += [entry.text for entry in source.head.entries if not is_held(entry.key)]
    return f"---\n{''.join(lines)}---" if lines else ""


def _deciders_line(deciders: tuple[str, ...]) -> str:
    """With semicolons where a name has a comma itself."""
    if any("," in name for name in deciders):
        return f"Deciders: {' '.join(f'{name};' for name in deciders)}"
    return f"Deciders: {', '.join(deciders)}" if deciders else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
