"""Importers. Takes: what another memory wrote, as files. Gives: notes with where they come from. Never: believes one.

A format is one row of the table: how it is told from others, and a function from a source to its notes. Those that keep
JSON or SQLite are read here: mem0, the MCP reference server, LangGraph's stores, claude-mem.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from mnemarch.errors import InvalidInput
from mnemarch.importers import markdown
from mnemarch.importers.source import Note, Source, head_of, moment_of, words_of
from mnemarch.model.value import Frozen

# The fields in which agents' stores keep the text of a memory.
_TEXTS = ("memory", "text", "content", "data", "fact", "summary")
_OWNERS = ("user_id", "agent_id", "app_id", "run_id")
# claude-mem's columns for the parts of a session's summary.
_PARTS = ("learned", "completed", "investigated", "next_steps", "notes")


def mem0(source: Source) -> Iterator[Note]:
    """The notes of a mem0 export: the JSON of `get_all()` as a list or an object with `results`, or a memory a line."""
    for place, record in source.records():
        text = _text(record)
        if not text:
            source.noted(place, "no memory with a text")
            continue
        fields: dict[str, Any] = record if isinstance(record, dict) else {}
        metadata = fields.get("metadata")
        more = metadata if isinstance(metadata, dict) else {}
        yield Note(
            text=text,
            place=place,
            id=str(fields.get("id") or ""),
            at=moment_of(fields.get("updated_at") or fields.get("created_at")),
            author=str(fields.get("actor_id") or fields.get("agent_id") or fields.get("user_id") or ""),
            tags=(*words_of(fields.get("categories")), *words_of(more.get("tags"))),
            domain=_plain(more.get("domain")),
            group=next((str(fields[name]) for name in _OWNERS if fields.get(name)), ""),
        )


def mcp_memory(source: Source) -> Iterator[Note]:
    """The notes of the reference server's file, an entity or relation a line. Observations and relations are notes."""
    for place, record in source.records():
        fields = record if isinstance(record, dict) else {}
        named, other = _plain(fields.get("name")), _plain(fields.get("to"))
        if named and isinstance(fields.get("observations"), list):
            tags = words_of([fields.get("entityType")])
            for item in fields["observations"]:
                # A fork of the server stores observations as objects with a timestamp.
                said = item if isinstance(item, dict) else {"content": item}
                text = _plain(said.get("content"))
                if text:
                    at = moment_of(said.get("timestamp"))
                    yield Note(text=f"{named}: {text}", place=place, at=at, tags=tags, group=named)
                else:
                    source.noted(place, f"an observation of {named!r} is no text")
        elif other and _plain(fields.get("from")) and _plain(fields.get("relationType")):
            text = f"{fields['from']} {fields['relationType']} {other}"
            yield Note(text=text, place=place, tags=("relation",), group=_plain(fields["from"]))
        else:
            source.noted(place, "neither an entity nor a relation")


def langgraph(source: Source) -> Iterator[Note]:
    """The notes of a SqliteStore's database, or of any store's items as JSON."""
    if source.tables():
        for row in source.rows("store", "prefix, key"):
            try:
                content = json.loads(row["value"])
            except (ValueError, TypeError, RecursionError):
                source.noted(f"{row['prefix']} / {row['key']}", "its value is no JSON")
                continue
            yield from _item(source, str(row["prefix"]).split("."), row, content)
    else:
        for place, record in source.records():
            if not isinstance(record, dict) or not isinstance(record.get("namespace"), list):
                source.noted(place, "no item with namespace, key and value")
                continue
            yield from _item(source, [str(part) for part in record["namespace"]], record, record.get("value"))


def _item(source: Source, namespace: list[str], row: Mapping[str, Any], content: Any) -> Iterator[Note]:
    place = f"{'.'.join(namespace)} / {row.get('key')}"
    text = _text(content)
    with suppress(RecursionError):
        if not text and isinstance(content, dict | list) and content:
            text = f"{row.get('key')}: {json.dumps(content, ensure_ascii=False)}"
    if not text:
        source.noted(place, "an item without a text")
        return
    at = moment_of(row.get("updated_at") or row.get("created_at"))
    yield Note(text=text, place=place, id=place, at=at, tags=tuple(namespace), group=".".join(namespace))


def claude_mem(source: Source) -> Iterator[Note]:
    """The observations and session summaries of claude-mem's database. Older versions have fewer columns."""
    for row in source.rows("observations", "id"):
        facts = "".join(f"\n- {fact}" for fact in words_of(row.get("facts")))
        head = _plain(row.get("title"))
        body = _plain(row.get("narrative")) or _plain(row.get("text")) or _plain(row.get("subtitle"))
        yield from _row(source, row, f"observation {row.get('id')}", f"{head}\n{body}{facts}")
    if "session_summaries" in source.tables():
        for row in source.rows("session_summaries", "id"):
            parts = [f"{part.replace('_', ' ')}: {row[part]}" for part in _PARTS if _plain(row.get(part))]
            text = "\n".join([_plain(row.get("request")), *parts]) if parts else ""
            yield from _row(source, row, f"summary {row.get('id')}", text)


def _row(source: Source, row: Mapping[str, Any], place: str, text: str) -> Iterator[Note]:
    if not text.strip():
        source.noted(place, "no text")
        return
    at = moment_of(row.get("created_at_epoch") or row.get("created_at"))
    tags = (*words_of([row.get("type")]), *words_of(row.get("concepts")))
    group = _plain(row.get("merged_into_project")) or _plain(row.get("project"))
    yield Note(text.strip(), place, place, at, "claude-mem", tags, kind="semantic", group=group)


def _text(record: Any, depth: int = 2) -> str:
    """The text of a record. Some stores keep it one or two levels deeper."""
    if isinstance(record, str):
        return record.strip()
    if not isinstance(record, dict) or depth < 0:
        return ""
    held = [record[name] for name in _TEXTS if name in record]
    texts = [item for item in held if isinstance(item, str)]
    return next((text for item in (*texts, *held) if (text := _text(item, depth - 1))), "")


def _plain(item: Any) -> str:
    return item.strip() if isinstance(item, str) else ""


NOTES_MAX = 100_000
EXPORT = "mnemarch"
EVERY = "*"


class Format(Frozen):
    """One format. `is_parted` says that one file holds several projects, of which one is imported."""

    says: str
    read: Callable[[Source], Iterator[Note]]
    knows: Callable[[Source], bool]
    is_parted: bool = False


def _keys(source: Source) -> set[str]:
    """The keys of the first record of a JSON file."""
    if source.is_folder or head_of(source.path)[:64].lstrip(b"\xef\xbb\xbf \r\n\t")[:1] not in (b"{", b"["):
        return set()
    probe = Source(source.path)
    try:
        first = next((record for _, record in probe.records() if isinstance(record, dict)), {})
    except InvalidInput:
        return set()
    return set(first)


def _has(source: Source, *names: str) -> bool:
    return source.is_folder and any(os.path.lexists(os.path.join(source.path, name)) for name in names)


def _is_markdown(source: Source) -> bool:
    if not source.is_folder:
        return source.name.lower().endswith(".md")
    return next(Source(source.path).files(), None) is not None


def _is_of_claude_code(source: Source) -> bool:
    is_memory = source.name == "memory" and _has(source, "MEMORY.md")
    return is_memory or source.name in _OF_CLAUDE or _has(source, "CLAUDE.md", ".claude/CLAUDE.md")


_OF_CLAUDE = ("CLAUDE.md", "CLAUDE.local.md")
_OF_CODEX = ("raw_memories.md", "rollout_summaries", "memories/MEMORY.md", "memories/raw_memories.md")
FORMATS = {
    "mem0": Format(
        "an export of mem0 (JSON)",
        mem0,
        lambda source: "memory" in (keys := _keys(source)) and "namespace" not in keys,
    ),
    "mcp-memory": Format(
        "the MCP reference server's memory.jsonl",
        mcp_memory,
        lambda source: bool({"entityType", "relationType"} & _keys(source)),
    ),
    "claude-mem": Format(
        "claude-mem's database",
        claude_mem,
        lambda source: {"memory_session_id", "sdk_session_id"} & source.tables().get("observations", set()) != set(),
        is_parted=True,
    ),
    "langgraph": Format(
        "a LangGraph store: SqliteStore's database, or items as JSON",
        langgraph,
        lambda source: (
            {"prefix", "key", "value"} <= source.tables().get("store", set())
            or {"namespace", "key", "value"} <= _keys(source)
        ),
    ),
    "claude-code": Format("Claude Code's CLAUDE.md, rules and memory", markdown.claude_code, _is_of_claude_code),
    "codex": Format(
        "Codex's AGENTS.md and memories",
        markdown.codex,
        lambda source: source.name in {"AGENTS.md", "AGENTS.override.md"} or _has(source, "AGENTS.md", *_OF_CODEX),
    ),
    "markdown": Format("basic-memory, or any folder of Markdown notes", markdown.markdown, _is_markdown),
}


def format_of(path: str) -> str:
    """The format of a file or folder. Raises if it is unclear. Markdown is chosen only if no other format fits."""
    source = Source(path)
    if not source.is_folder and head_of(path).lstrip()[:12].replace(b" ", b"").startswith(b'{"mnemarch"'):
        return EXPORT
    names = [name for name, format in FORMATS.items() if format.knows(source)]
    special = [name for name in names if name != "markdown"] or names
    if len(special) == 1:
        return special[0]
    told = f"may be {' or '.join(special)}" if special else "is in no format that is known"
    formats = "; ".join(f"{name}: {format.says}" for name, format in FORMATS.items())
    raise InvalidInput(f"{path!r} {told}.", hint=f"Say which with --from. {formats}.")


def notes_in(source: Source, name: str, only: str | None = None) -> list[Note]:
    """All notes of a source in this format, or those of one project, user or namespace."""
    if name not in FORMATS:
        raise InvalidInput(f"{name!r} is no format.", hint=f"Use one of: {', '.join([EXPORT, *FORMATS])}.")
    format, notes = FORMATS[name], []
    for note in format.read(source):
        notes.append(note)
        if len(notes) > NOTES_MAX:
            raise InvalidInput(f"{source.path!r} has more than {NOTES_MAX:,} notes.", hint="Split it, or use --only.")
    wanted = only or (os.path.basename(source.root) if format.is_parted and source.root else EVERY)
    inside = (f"{wanted}.", f"{wanted}/")
    chosen = [note for note in notes if wanted in (EVERY, note.group) or note.group.startswith(inside)]
    if notes and not chosen:
        often = Counter(note.group for note in notes).most_common(8)
        listed = ", ".join(f"{group!r} ({count:,})" for group, count in often)
        raise InvalidInput(
            f"Nothing in {source.path!r} is of {wanted!r}.", hint=f"--only takes one of {listed}; or '*', for all."
        )
    return chosen
