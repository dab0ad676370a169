"""Importers. Takes: what another memory wrote, as files. Gives: notes with where they come from. Never: believes one.

A format is one row of the table: how it is told from others, and a function from a source to its notes.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from markdown_it import MarkdownIt

from mnemarch.errors import InvalidInput
from mnemarch.importers.source import Note, Source, head_of, moment_of, words_of
from mnemarch.model.value import Frozen, replace

# The fields in which agents' stores keep the text of a memory.
_TEXTS = ("memory", "text", "content", "data", "fact", "summary")
_OWNERS = ("user_id", "agent_id", "app_id", "run_id")
# claude-mem's columns for the parts of a session's summary.
_PARTS = ("learned", "completed", "investigated", "next_steps", "notes")
_MARKDOWN = MarkdownIt("commonmark")
_MARKDOWN.core.ruler.disable(["inline", "text_join"])
_OBSERVATION = re.compile(r"\[([^\][()\s][^\][()]{0,60})\] +(\S.*)", re.DOTALL)
_RELATION = re.compile(r"(?:([\w -]{1,60}?) +)?\[\[([^\]|#]{1,200})(?:[|#][^\]]*)?\]\](?: *\([^)]*\))?")
_WIKI = re.compile(r"\[\[([^\]|]{1,200})(?:\|([^\]]*))?\]\]")
_TAG = re.compile(r"(?<!\S)#([^\s#]{1,60})")
_TASK = re.compile(r"\[[ xX-]\] +")
_KEY = re.compile(r"([\w-]{1,60})\s*:\s*(.*)")
# An item of a word or two gets its heading, without which it means nothing. So does an item below a prohibition.
_LONE_WORDS_MAX = 2
_FORBIDS = re.compile(
    r"(?i)\b(?:do not|don['’]?t|never|avoid|not?|forbidden|prohibited|anti-?patterns?)\b|금지|하지|말 ?것|마세요|않"
)
_DATES = ("updated_at", "updated", "modified", "last_updated", "date", "created_at", "created")
_OF_CLAUDE = ("CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md")
# Headings in Codex's handbook whose items are sources and search words.
_NO_KNOWLEDGE = frozenset({"keywords", "rollout_summary_files"})
_APPLIES_TO = re.compile(r"(?m)^applies_to:.*?\bcwd=([^;\n]+)")
_OF_CODEX = ("raw_memories.md", "rollout_summaries", "memories/MEMORY.md", "memories/raw_memories.md")
NOTES_MAX = 100_000
EXPORT = "mnemarch"
EVERY = "*"


# JSON and SQLite


def _mem0(source: Source) -> Iterator[Note]:
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


def _mcp_memory(source: Source) -> Iterator[Note]:
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


def _langgraph(source: Source) -> Iterator[Note]:
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


def _claude_mem(source: Source) -> Iterator[Note]:
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


# Markdown: basic-memory, plain folders, and the files of Claude Code and Codex


class Block(Frozen):
    """A paragraph or a list item, with the heading above it and its first and last line."""

    heading: str
    text: str
    lines: tuple[int, int]
    is_item: bool

    @property
    def statement(self) -> str:
        is_lone = len(self.text.split()) <= _LONE_WORDS_MAX or _FORBIDS.search(self.heading)
        return f"{self.heading}: {self.text}" if self.heading and is_lone else self.text


def blocks_in(text: str, line: int = 0) -> Iterator[Block]:
    """The paragraphs and items of a text that begins after line `line`. Code, tables and comments are left out."""
    heading, depth = "", 0
    tokens = _MARKDOWN.parse(text)
    for number, token in enumerate(tokens):
        depth += (token.type == "list_item_open") - (token.type == "list_item_close")
        if token.type == "heading_open":
            heading = " ".join(tokens[number + 1].content.split())
        elif token.type == "paragraph_open" and token.map:
            said = " ".join(_without_comments(tokens[number + 1].content).split())
            if said and not said.startswith("|"):
                yield Block(heading, said, (line + token.map[0] + 1, line + token.map[1]), depth > 0)


def _without_comments(text: str) -> str:
    """The text without HTML comments. A pattern would take quadratic time if many comments have no end."""
    parts, at = [], 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start)) >= 0:
        parts.append(text[at:start])
        at = end + 3
    return "".join([*parts, text[at:]])


def rules_in(text: str) -> list[tuple[str, tuple[int, int]]]:
    """The items of a rules file in order, each with its first and last line. A short item includes its heading."""
    _, body, line = front_matter(text)
    return [(block.statement, block.lines) for block in blocks_in(body, line) if block.is_item]


def front_matter(text: str) -> tuple[dict[str, str], str, int]:
    """The simple entries of a front matter, the text after it, and the number of lines before that text."""
    lines = text.splitlines()
    end = next((at for at, line in enumerate(lines[1:], start=1) if line.rstrip() in {"---", "..."}), 0)
    if not lines or lines[0].rstrip() != "---" or not end:
        return {}, text, 0
    entries: dict[str, str] = {}
    key = ""
    for line in lines[1:end]:
        item = line.strip()
        named = _KEY.fullmatch(item)
        if item.startswith("- ") and key:
            entries[key] = f"{entries[key]},{item[2:].strip()}".strip(",")
        elif named is not None:
            key = named[1]
            entries[key] = named[2].strip().strip("[]\"'").replace('"', "")
    return entries, "\n".join(lines[end + 1 :]), end + 1


def _markdown(source: Source) -> Iterator[Note]:
    """The notes of a file or a folder: observations, relations, and every other paragraph and item."""
    for file in source.files():
        yield from _notes_in(source, file)


def _notes_in(source: Source, file: str) -> Iterator[Note]:
    entries, body, line = front_matter(source.text(file))
    title = entries.get("title") or os.path.splitext(os.path.basename(file))[0]
    for block in blocks_in(body, line):
        text, tags = block.statement, words_of(entries.get("tags"))
        observed = _OBSERVATION.fullmatch(block.text) if block.is_item else None
        related = _RELATION.fullmatch(block.text) if block.is_item else None
        if related is not None:
            text, tags = f"{title} {related[1] or 'relates to'} {related[2]}", (*tags, "relation")
        elif observed is not None:
            text, tags = f"{title}: {_TAG.sub('', observed[2]).strip()}", (*tags, observed[1])
        tags = (*tags, *(_TAG.findall(block.text) if block.is_item else ()))
        yield _note(source, file, block, text, entries, tags)


def _note(
    source: Source, file: str, block: Block, text: str, entries: dict[str, str], tags: Iterable[str] = ()
) -> Note:
    first, last = block.lines
    span = f"{first}" if first == last else f"{first}-{last}"
    return Note(
        text=_TASK.sub("", _WIKI.sub(lambda link: link[2] or link[1], text)),
        place=f"{source.place_of(file)}:{span}",
        at=next((at for name in _DATES if (at := moment_of(entries.get(name))) is not None), None),
        author=entries.get("author", ""),
        tags=tuple(dict.fromkeys(tags)),
        domain=entries.get("domain", ""),
        group=entries.get("permalink") or source.place_of(file),
        file=file,
        lines=block.lines,
    )


# Claude Code


def _claude_code(source: Source) -> Iterator[Note]:
    """The notes of CLAUDE.md, its rules and memories, in a repository, in `~/.claude`, or in a folder of memories."""
    if not source.is_folder:
        yield from _rules(source, [source.path])
        return
    rules = [os.path.join(source.path, name) for name in _OF_CLAUDE]
    yield from _rules(source, [file for file in rules if os.path.lexists(file)])
    for name in (".claude/rules", "rules"):
        yield from _rules(source, _below(source, name))
    yield from _memories(source, _below(source, "." if source.name == "memory" else _memory_of(source)))


def _memory_of(source: Source) -> str:
    """The folder in `~/.claude` with the memories of the importer's repository."""
    slug = re.sub(r"[^A-Za-z0-9]", "-", source.root or "?")
    return os.path.join("projects", slug, "memory")


def _below(source: Source, name: str) -> list[str]:
    """The Markdown files of a folder in the source."""
    folder = os.path.normpath(os.path.join(source.path, name))
    if not os.path.isdir(folder):
        return []
    there = type(source)(folder, source.root)
    files = list(there.files())
    source.problems += there.problems
    return files


def _rules(source: Source, files: Iterable[str]) -> Iterator[Note]:
    for file in files:
        entries, body, line = front_matter(source.text(file))
        for block in blocks_in(body, line):
            # The items are the rules; paragraphs only introduce them. `@file` only points to another file.
            if block.is_item and not block.text.startswith("@"):
                yield _note(source, file, block, block.statement, entries)


def _memories(source: Source, files: Iterable[str]) -> Iterator[Note]:
    """The notes of memory files. A file whose front matter names it is one note. MEMORY.md lists or holds notes."""
    files = list(files)
    for file in files:
        is_index = os.path.basename(file) == "MEMORY.md"
        text = source.text(file)
        entries, body, line = front_matter(text)
        blocks = [block for block in blocks_in(body, line) if not (is_index and _is_pointer(block))]
        if not is_index and "name" in entries and blocks:
            whole = Block(
                "", "\n".join(block.text for block in blocks), (blocks[0].lines[0], blocks[-1].lines[1]), False
            )
            note = _note(source, file, whole, f"{entries.get('description', '')}\n{whole.text}".strip(), entries)
            yield replace(note, id=f"memory {entries['name']}", tags=words_of(entries.get("type")))
        else:
            yield from (_note(source, file, block, block.statement, entries) for block in blocks)


def _is_pointer(block: Block) -> bool:
    """Whether an item of an index only points to a file."""
    return bool(re.match(r"\[[^\]]*\]\([^)]*\.md\)|`?[\w./-]+\.md`?(?:\W|$)", block.text))


# Codex


def _codex(source: Source) -> Iterator[Note]:
    """The notes of AGENTS.md and of Codex's handbook, in a repository, in `~/.codex`, or in a folder of memories.

    A group of the handbook that applies to another folder than the importer's is left out.
    """
    if not source.is_folder:
        yield from _rules(source, [source.path])
        return
    rules = [os.path.join(source.path, name) for name in ("AGENTS.md", "AGENTS.override.md")]
    yield from _rules(source, [file for file in rules if os.path.lexists(file)])
    for name in ("memories/MEMORY.md", "MEMORY.md", "memories/raw_memories.md", "raw_memories.md"):
        file = os.path.join(source.path, name)
        if os.path.lexists(file):
            yield from _handbook(source, file)
            return  # Codex makes the handbook from the raw memories.


def _handbook(source: Source, file: str) -> Iterator[Note]:
    line = 0
    for part in re.split(r"(?m)^(?=# )", source.text(file)):
        folders = [cwd.strip() for cwd in _APPLIES_TO.findall(part)]
        if not folders or source.root is None or any(_is_near(cwd, source.root) for cwd in folders):
            for block in blocks_in(part, line):
                if block.is_item and block.heading.lower() not in _NO_KNOWLEDGE:
                    yield _note(source, file, block, block.statement, {})
        else:
            source.noted(f"{source.place_of(file)}:{line + 1}", f"it applies to {folders[0]}, not to this folder")
        line += part.count("\n")


def _is_near(cwd: str, root: str) -> bool:
    """Whether one folder is, or contains, the other. A relative path counts as near."""
    paths = [os.path.realpath(os.path.expanduser(path)) for path in (cwd, root)]
    return os.path.commonpath(paths) in paths if all(map(os.path.isabs, (cwd, root))) else True


# The table of formats


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


FORMATS = {
    "mem0": Format(
        "an export of mem0 (JSON)",
        _mem0,
        lambda source: "memory" in (keys := _keys(source)) and "namespace" not in keys,
    ),
    "mcp-memory": Format(
        "the MCP reference server's memory.jsonl",
        _mcp_memory,
        lambda source: bool({"entityType", "relationType"} & _keys(source)),
    ),
    "claude-mem": Format(
        "claude-mem's database",
        _claude_mem,
        lambda source: {"memory_session_id", "sdk_session_id"} & source.tables().get("observations", set()) != set(),
        is_parted=True,
    ),
    "langgraph": Format(
        "a LangGraph store: SqliteStore's database, or items as JSON",
        _langgraph,
        lambda source: (
            {"prefix", "key", "value"} <= source.tables().get("store", set())
            or {"namespace", "key", "value"} <= _keys(source)
        ),
    ),
    "claude-code": Format("Claude Code's CLAUDE.md, rules and memory", _claude_code, _is_of_claude_code),
    "codex": Format(
        "Codex's AGENTS.md and memories",
        _codex,
        lambda source: source.name in {"AGENTS.md", "AGENTS.override.md"} or _has(source, "AGENTS.md", *_OF_CODEX),
    ),
    "markdown": Format("basic-memory, or any folder of Markdown notes", _markdown, _is_markdown),
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
        raise InvalidInput(f"There is no format {name!r}.", hint=f"Use one of: {', '.join([EXPORT, *FORMATS])}.")
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
            f"Nothing in {source.path!r} belongs to {wanted!r}.", hint=f"--only takes one of {listed}; or '*', for all."
        )
    return chosen
