"""Importers. Takes: what another memory wrote, as files. Gives: notes with where they come from. Never: believes one.

A format is one row of the table: how it is told from others, and a function from a source to its notes.
"""

from __future__ import annotations

import os

from mnemarch.errors import InvalidInput
from mnemarch.importers import markdown, records
from mnemarch.importers.source import Note, Source, head_of
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOTES_MAX = 100_000
EXPORT = "mnemarch"
EVERY = "*"


@value
class Format:
    """One format. `is_parted`: a file of it is about several projects, of which one is meant."""

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


def _is_of_codex(source: Source) -> bool:
    return source.name in {"AGENTS.md", "AGENTS.override.md"} or _has(source, "AGENTS.md", *_OF_CODEX)


def _is_of_claude_code(source: Source) -> bool:
    is_memory = source.name == "memory" and _has(source, "MEMORY.md")
    return is_memory or source.name in _OF_CLAUDE or _has(source, "CLAUDE.md", ".claude/CLAUDE.md")


_OF_CLAUDE = ("CLAUDE.md", "CLAUDE.local.md")
_OF_CODEX = ("raw_memories.md", "rollout_summaries", "memories/MEMORY.md", "memories/raw_memories.md")
FORMATS = {
    "mem0": Format(
        "an export of mem0 (JSON)",
        records.mem0,
        lambda source: "memory" in (keys := _keys(source)) and "namespace" not in keys,
    ),
    "mcp-memory": Format(
        "the MCP reference server's memory.jsonl",
        records.mcp_memory,
        lambda source: bool({"entityType", "relationType"} & _keys(source)),
    ),
    "claude-mem": Format(
        "claude-mem's database",
        records.claude_mem,
        lambda source: {"memory_session_id", "sdk_session_id"} & source.tables().get("observations", set()) != set(),
        is_parted=True,
    ),
    "langgraph": Format(
        "a LangGraph store: SqliteStore's database, or items as JSON",
        records.langgraph,
        lambda source: (
            {"prefix", "key", "value"} <= source.tables().get("store", set())
            or {"namespace", "key", "value"} <= _keys(source)
        ),
    ),
    "claude-code": Format("Claude Code's CLAUDE.md, rules and memory", markdown.claude_code, _is_of_claude_code),
    "codex": Format("Codex's AGENTS.md and memories", markdown.codex, _is_of_codex),
    "markdown": Format("basic-memory, or any folder of Markdown notes", markdown.markdown, _is_markdown),
}


def format_of(path: str) -> str:
    """The format of a file or folder, if it can only be one. Markdown is what is nothing more special."""
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
    chosen = notes if wanted == EVERY else [note for note in notes if _is_of(note, wanted)]
    if notes and not chosen:
        groups: dict[str, int] = {}
        for note in notes:
            groups[note.group] = groups.get(note.group, 0) + 1
        often = sorted(groups, key=lambda group: -groups[group])[:8]
        listed = ", ".join(f"{group!r} ({groups[group]:,})" for group in often)
        raise InvalidInput(
            f"Nothing in {source.path!r} is of {wanted!r}.", hint=f"--only takes one of {listed}; or '*', for all."
        )
    return chosen


def _is_of(note: Note, wanted: str) -> bool:
    return note.group == wanted or note.group.startswith((f"{wanted}.", f"{wanted}/"))
