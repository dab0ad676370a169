"""Parses source text into light trees, in which equal hashes mean equal code up to formatting."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from textwrap import indent
from typing import Any

from ast_grep_py import SgNode, SgRoot

from mnemarch.errors import InvalidInput

# Deeper code counts as unparsable, since matching takes several frames for each level.
_DEPTH_MAX = 150
# A text with a longer line is data or generated code. Parsing it would take seconds.
_LINE_CHARS_MAX = 4_000


class Kinds:
    """The meaning of one language's kinds of nodes for rules: the lists and tables of `kinds.json`."""

    def __init__(self, language: str, table: dict[str, Any]) -> None:
        self.language = language
        # A language may lack some of the lists.
        for name in {name for each in _tables().values() for name in each if isinstance(each[name], str)}:
            setattr(self, name, frozenset(table.get(name, "").split()))
        self.same_as: dict[str, str] = table["same_as"]
        self.literals: dict[str, str] = table["literals"]
        self.binders: dict[str, int] = table["binders"]
        # By jump: the kinds of nodes that must enclose it, and a pattern for their text. An `await` needs `async`.
        self.needs: dict[str, list[str]] = table["needs"]
        self.wrappers: list[list[str]] = table["wrappers"]
        self.body_end: str = table.get("body_end", "")

    def __getattr__(self, name: str) -> frozenset[str]:
        """Only for the type checker: every list is set when the table is read."""
        raise AttributeError(name)


@cache
def _tables() -> dict[str, dict[str, Any]]:
    tables: dict[str, dict[str, Any]] = json.loads((files(__package__) / "kinds.json").read_text("utf-8"))
    return tables


LANGUAGES = tuple(_tables())


@cache
def kinds_of(language: str) -> Kinds:
    """The table of one language."""
    if language not in _tables():
        known = ", ".join(_tables())
        raise InvalidInput(f"No rules are learned from {language!r}.", hint=f"Rules are learned from {known}.")
    return Kinds(language, _tables()[language])


class Node:
    """One node: its kind, its text if it is a leaf, its children, its offsets, and a hash of all but the offsets.

    `outer` are its offsets including parentheses around it, which are not part of the node.
    """

    __slots__ = ("children", "end", "hash", "kind", "named", "outer", "size", "start", "text")

    def __init__(self, kind: str, text: str, children: list[Node], start: int, end: int, named: bool) -> None:
        self.kind: str = kind
        self.text: str = text
        self.children: list[Node] = children
        self.start = start
        self.end = end
        self.named = named
        self.outer = start, end
        self.hash: int = hash((kind, text, *(child.hash for child in children)))
        self.size: int = 1 + sum(child.size for child in children)

    def walk(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child.walk()


class Tree:
    """A parsed text: its root, the offsets of its comments, and the text put around a fragment to make it parse."""

    def __init__(self, source: str, kinds: Kinds) -> None:
        self.source = source
        self.kinds = kinds
        self.comments: list[tuple[int, int]] = []
        self.is_broken = False
        self.prefix = self.suffix = self.margin = self.shift = self.tail = ""
        self._imported: list[frozenset[str]] | None = None
        self.root = self._light(SgRoot(source, kinds.language).root())

    def text_of(self, node: Node) -> str:
        return self.source[node.start : node.end]

    def imported(self) -> list[frozenset[str]]:
        """The names of each import statement."""
        if self._imported is None:
            nodes = (node for node in self.root.walk() if node.kind in self.kinds.imports)
            self._imported = [frozenset(leaf.text for leaf in node.walk() if not leaf.children) for node in nodes]
        return self._imported

    def used(self) -> frozenset[str]:
        """The names that are used outside of import statements."""
        others = (node for node in self.root.children if node.kind not in self.kinds.imports)
        return frozenset(leaf.text for node in others for leaf in node.walk() if leaf.kind in self.kinds.names)

    def _light(self, node: SgNode, depth: int = 0) -> Node:
        if depth > _DEPTH_MAX:
            raise RecursionError
        kind, kinds = node.kind(), self.kinds
        range = node.range()
        start, end = range.start.index, range.end.index
        inner = node.children()
        if kind == "ERROR" or (not inner and start == end and not node.is_named()):
            self.is_broken = True
        if kind in kinds.strings and not any(child.kind() in kinds.holds_code for child in inner):
            return Node(kind, _value(self.source[start:end], kinds.language), [], start, end, True)
        text = "" if inner else self.source[start:end]
        if inner and kind in kinds.strings:
            text = inner[0].text().rstrip("\"'`").lower()
        children: list[Node] = []
        for child in inner:
            child_kind = child.kind()
            if child_kind in kinds.ignored:
                if "comment" in child_kind:
                    at = child.range()
                    self.comments.append((at.start.index, at.end.index))
                continue
            light = self._light(child, depth + 1)
            if child_kind in kinds.unwrapped and (len(light.children) == 1 or child_kind == "type_parameter"):
                for inside in light.children:
                    inside.outer = light.outer if len(light.children) == 1 else inside.outer
                children += light.children
            else:
                children.append(light)
        if kind in kinds.flat_calls and len(children) > 2:
            callee = Node("callee", "", children[:-1], children[0].start, children[-2].end, True)
            children = [callee, children[-1]]
        return Node(kinds.same_as.get(kind, kind), text, children, start, end, node.is_named())


def without_imports(tree: Tree) -> Node:
    """The root without the import statements directly in it."""
    root = tree.root
    left = [node for node in root.children if node.kind not in tree.kinds.imports]
    return Node(root.kind, root.text, left, root.start, root.end, True)


def _value(text: str, language: str) -> str:
    """The value of a string literal, so that quotes and escapes make no difference."""
    if language != "python":
        return "'" + text[1:-1] + "'" if text[:1] == '"' == text[-1:] and "'" not in text else text
    try:
        return repr(ast.literal_eval(text))
    except (ValueError, SyntaxError, MemoryError):
        return text


def parsed(source: str, language: str) -> Tree | None:
    """The tree of a whole text; None if it doesn't parse, is too deep or has a too long line."""
    if len(max(source.split("\n"), key=len)) > _LINE_CHARS_MAX:
        return None
    try:
        tree = Tree(source, kinds_of(language))
    except (RecursionError, RuntimeError, ValueError):
        return None
    return None if tree.is_broken else tree


# Matches a text whose last line opens a block that is missing.
_HEADER = re.compile(r":[ \t]*(#[^\n]*)?\s*\Z")


def fragments(texts: Sequence[str], language: str) -> list[Tree]:
    """The trees of texts that may be parts of a file, all completed in the same way. Empty if that is impossible."""
    is_header = language == "python" and any(_HEADER.search(text) for text in texts)
    trees = [] if is_header else [tree for text in texts if (tree := parsed(text, language)) is not None]
    if len(trees) == len(texts):
        return trees
    margin = _margin(texts)
    plain = [re.sub(f"^{margin}", "", text, flags=re.M).rstrip() for text in texts]
    wrappers = sorted(kinds_of(language).wrappers, key=lambda wrapper: "pass" not in wrapper[1]) if is_header else None
    for prefix, suffix, *shift in wrappers or kinds_of(language).wrappers:
        shifted = [indent(text, shift[0]) if shift else text for text in plain]
        trees = [tree for text in shifted if (tree := parsed(prefix + text + suffix, language)) is not None]
        if len(trees) == len(texts):
            for tree in trees:
                tree.prefix, tree.suffix, tree.margin, tree.shift = prefix, suffix, margin, "".join(shift)
            for tree, text in zip(trees, texts, strict=True):
                tree.tail = text[len(text.rstrip()) :]
            return trees
    return []


def unwrapped(text: str, tree: Tree) -> str:
    """The text of a completed fragment without the completion, at its old margin."""
    inner = text.removeprefix(tree.prefix).removesuffix(tree.suffix)
    inner = re.sub(f"^{tree.shift}", "", inner, flags=re.M) if tree.shift else inner
    return indent(inner, tree.margin) + tree.tail


def _margin(texts: Sequence[str]) -> str:
    """The white space with which every line of all texts begins."""
    lines = [line for text in texts for line in text.splitlines() if line.strip()]
    margins = [line[: len(line) - len(line.lstrip())] for line in lines]
    return next((margin for margin in sorted(set(margins), key=len) if all(m.startswith(margin) for m in margins)), "")


# Imports: reading, adding and removing them


def import_lines(statement: str) -> list[str]:
    """An import statement as one line for each imported name. A statement that is not Python's stays as it is."""
    plain = re.sub(r"#.*|[()\\]", "", statement) if re.match(r"from\s|import\s+[\w.]+(\s|,|$)", statement) else ""
    head, word, names = plain.partition("import ")
    if not word or '"' in plain or "{" in plain or ";" in plain:
        return [statement]
    return [f"{head}{word}{' '.join(name.split())}" for name in names.split(",") if name.strip()]


def statements_of(tree: Tree) -> list[Node]:
    """The import statements at the top of a text."""
    return [node for node in tree.root.children if node.kind in tree.kinds.imports]


def imports_of(tree: Tree) -> list[str]:
    return [line for node in statements_of(tree) for line in import_lines(tree.text_of(node))]


def imported_name(line: str) -> str:
    """The name that a line of imports binds."""
    return re.findall(r"\w+|$", line)[-2] if re.search(r"\w", line) else ""


def origins_of(tree: Tree, words: Iterable[str]) -> list[str]:
    """The imports that these words come from."""
    wanted = set(words)
    lines = imports_of(tree)
    return [line for line in lines if imported_name(line) in wanted or set(re.findall(r"\w+", line)[1:2]) & wanted]


def with_imports(tree: Tree, needed: Iterable[str], unneeded: Iterable[str]) -> str:
    """The text with the missing imports, and without the unneeded ones that nothing uses any more."""
    statements = statements_of(tree)
    rest = _cut(tree.source, [(node.start, node.end, "") for node in statements])
    gone = {line for line in unneeded if not re.search(rf"(?<![\w.]){imported_name(line)}\b", rest)}
    present = set(imports_of(tree))
    missing = [line for line in dict.fromkeys(needed) if line not in present]
    edits: list[tuple[int, int, str]] = []
    for node in statements:
        lines = import_lines(tree.text_of(node))
        left = [line for line in lines if line not in gone]
        if len(left) == len(lines):
            continue
        new = [_joined(left)] if left else missing
        missing = missing if left else []
        end = node.end + (not new and tree.source[node.end : node.end + 1] == "\n")
        edits.append((node.start, end, "\n".join(new)))
    at = _place(tree)
    edits += [(at, at, "".join(f"{line}\n" for line in missing))]
    return _cut(tree.source, edits)


def _joined(lines: Sequence[str]) -> str:
    head, word, _ = lines[0].partition("import ")
    return head + word + ", ".join(line.removeprefix(head + word) for line in lines)


def _place(tree: Tree) -> int:
    """The offset for new imports: the first line after the documentation and headers such as `__future__` imports."""
    for number, node in enumerate(tree.root.children):
        first = node.children[0] if node.children else node
        is_text = number == 0 and first.kind in tree.kinds.strings
        if not is_text and node.kind not in tree.kinds.headers and node.start >= len(tree.prefix):
            return tree.source.rfind("\n", 0, node.start) + 1
    return len(tree.prefix)


def _cut(text: str, edits: list[tuple[int, int, str]]) -> str:
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text
