"""A decision record taken apart: its head, and the role that each of its sections plays."""

from __future__ import annotations

from functools import cache

from mnemarch.decisions.adr_links import links_in
from mnemarch.decisions.adr_outline import Section, outside, parted, trimmed, without_comments
from mnemarch.decisions.adr_words import relation, role_of
from mnemarch.decisions.front_matter import Entry, entries_of, parted_from_front_matter
from mnemarch.lazy import Lazy
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Sequence

    from mnemarch.decisions.adr_record import AdrLink, AdrRecord
else:
    re = Lazy("re")

# The parts that a field of the record holds; the other parts are carried along as they are.
FIELD_ROLES = frozenset(
    {"title", "status", "date", "deciders", "context", "drivers", "options", "decision", "consequences"}
)
_IN_A_DECISION = frozenset({"consequences", "effects", "confirmation"})
_RUN_IN = frozenset({"context", "drivers", "options", "decision", "consequences", "more"})


@value
class Head:
    """What stands before the first section; `parts` are those that a bold name begins, as in `**Context.** ...`."""

    title: str
    entries: tuple[Entry, ...]
    pairs: tuple[tuple[str, str], ...]
    parts: dict[str, str]
    rest: str


@value
class Part:
    """A section, and the role it plays: `leads` where its own heading announces the role."""

    role: str
    leads: bool
    section: Section


def head_of(preamble: str) -> Head:
    """The head of a record, taken apart."""
    front, text = parted_from_front_matter(preamble)
    lead, sections = parted(text)
    title = without_comments(sections[0].name).strip() if sections else ""
    lines = "".join([lead, *(section.body for section in sections)]).split("\n")
    free = set(outside(lines)[0])
    pairs: list[tuple[str, str]] = []
    rest: list[str] = []
    parts: dict[str, list[str]] = {}
    current = rest
    for index, line in enumerate(lines):
        role, after = _run_in(line) if index in free else ("", "")
        if role and role not in parts:
            current = parts[role] = [after]
        elif index in free and current is rest and (pair := pair_in(line)):
            pairs.append(pair)
        else:
            current.append(line)
    return Head(
        title=title,
        entries=entries_of(front),
        pairs=tuple(pairs),
        parts={role: trimmed("\n".join(part)) for role, part in parts.items()},
        rest=trimmed("\n".join(rest)),
    )


def parts_of(sections: Sequence[Section]) -> list[Part]:
    """Each section with its role. What stands below a known section belongs to it; the first of a kind counts."""
    parts: list[Part] = []
    above: list[Part] = []
    taken: set[str] = set()
    for section in sections:
        while above and above[-1].section.level >= section.level:
            above.pop()
        parent = above[-1].role if above else ""
        role = role_of(section.name)
        if parent and not (parent == "decision" and role in _IN_A_DECISION):
            part = Part(role=parent, leads=False, section=section)
        elif role == "effects" and "consequences" not in taken:
            taken.add(role)
            part = Part(role="consequences", leads=False, section=section)
        elif role in taken or (role == "consequences" and "effects" in taken):
            part = Part(role="", leads=True, section=section)
        else:
            taken.add(role)
            part = Part(role=role if role != "effects" else "", leads=True, section=section)
        parts.append(part)
        above.append(part)
    return parts


def texts_of(parts: Sequence[Part]) -> dict[str, str]:
    """What each role says: the bodies of its sections, with the headings of those below."""
    found: dict[str, list[str]] = {}
    for part in parts:
        if part.role:
            lines = found.setdefault(part.role, [])
            lines.append(part.section.body if part.leads else f"{part.section.heading}\n{part.section.body}")
    return {role: trimmed("".join(lines)) for role, lines in found.items()}


def sections_of(record: AdrRecord) -> tuple[Section, ...]:
    """A record's sections with their levels, from the headings as written."""
    found = []
    for heading, body in record.sections:
        _, outline = parted(heading)
        level, name = (outline[0].level, outline[0].name) if outline else (2, heading.strip())
        found.append(Section(heading=heading, level=level, name=name, body=body))
    return tuple(found)


def links_of_pair(key: str, written: str) -> Iterator[AdrLink]:
    """The links that a line such as `Supersedes: ADR-3` names."""
    if role_of(key) == "links":
        yield from links_in(written, default="relates_to")
    elif relation().fullmatch(key):
        yield from links_in(f"{key} {written}")


def pair_in(line: str) -> tuple[str, str] | None:
    """The key and the value of a line such as `* Status: accepted` or `**Date:** 2024-01-31`, if a field holds it."""
    key, colon, written = line.replace("：", ":", 1).partition(":")
    key = _around_a_key().sub("", key[:80])
    if not colon or not key:
        return None
    told = written.strip().removeprefix("**").removeprefix("__").strip()
    held = role_of(key) in {"status", "date", "deciders"} or any(True for _ in links_of_pair(key, told))
    return (key, told) if held else None


def _run_in(line: str) -> tuple[str, str]:
    """The role and the rest of a line such as `**Context.** We have ...`."""
    if not line.startswith("**"):
        return "", ""
    name, closing, _ = line[2:100].partition("**")
    role = role_of(name) if closing else ""
    return (role, line[len(name) + 4 :].lstrip(" \t:：.")) if role in _RUN_IN else ("", "")


@cache
def _around_a_key() -> re.Pattern[str]:
    return re.compile(r"^[\W_]+|[\W_]+$")
