"""Reads notes in Markdown: basic-memory, plain folders, and the files of Claude Code and Codex."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from markdown_it import MarkdownIt

from mnemarch.importers.source import Note, Source, moment_of, words_of
from mnemarch.model.value import Frozen, replace

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


def markdown(source: Source) -> Iterator[Note]:
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


def claude_code(source: Source) -> Iterator[Note]:
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


def codex(source: Source) -> Iterator[Note]:
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
