"""Source text as light trees: equal hashes mean equal code up to formatting, in every language by a table of kinds."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from importlib.resources import files
from textwrap import indent

from ast_grep_py import SgRoot

from mnemarch.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from ast_grep_py import SgNode


# Deeper code is read as if it didn't parse: a match takes several frames for each level.
_DEPTH_MAX = 150
# Nobody writes a line so long: it is data, or what a program made of code, and takes seconds.
_LINE_CHARS_MAX = 4_000


class Kinds:
    """What the kinds of nodes of one language mean to a rule: the lists and tables of `kinds.json`."""

    ignored: frozenset[str]
    unwrapped: frozenset[str]
    blocks: frozenset[str]
    closures: frozenset[str]
    jumps: frozenset[str]
    strings: frozenset[str]
    holds_code: frozenset[str]
    names: frozenset[str]
    calls: frozenset[str]
    arguments: frozenset[str]
    keyword: frozenset[str]
    member: frozenset[str]
    imports: frozenset[str]
    statement: frozenset[str]
    parts: frozenset[str]
    constants: frozenset[str]
    no_words: frozenset[str]
    atomic: frozenset[str]
    roomy: frozenset[str]
    clauses: frozenset[str]
    parameters: frozenset[str]
    headers: frozenset[str]
    flat_calls: frozenset[str]
    qualified: frozenset[str]
    spread: frozenset[str]

    def __init__(self, language: str, table: dict[str, Any]) -> None:
        self.language = language
        for name in _LISTS:
            setattr(self, name, frozenset(table.get(name, "").split()))
        self.same_as: dict[str, str] = table["same_as"]
        self.literals: dict[str, str] = table["literals"]
        self.binders: dict[str, int] = table["binders"]
        self.wrappers: list[list[str]] = table["wrappers"]
        self.body_end: str = table.get("body_end", "")


_LISTS = tuple(name for name, type in Kinds.__annotations__.items() if type == "frozenset[str]")


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
    """One node: its kind, its text if it is a leaf, its children, where it stands, and the hash of all of it.

    `outer` is where it stands with the parentheses around it, which are no part of it.
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
    """A parsed text: its root, its comments' places, and what was put around a fragment to make it parse."""

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
        """The names that stand outside of import statements."""
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
    """A string as one leaf: its value, so that quotes and escapes make no difference."""
    if language != "python":
        return "'" + text[1:-1] + "'" if text[:1] == '"' == text[-1:] and "'" not in text else text
    try:
        return repr(ast.literal_eval(text))
    except (ValueError, SyntaxError, MemoryError):
        return text


def parsed(source: str, language: str) -> Tree | None:
    """The tree of a whole text; None if it doesn't parse, or a program wrote its lines."""
    if len(max(source.split("\n"), key=len)) > _LINE_CHARS_MAX:
        return None
    try:
        tree = Tree(source, kinds_of(language))
    except (RecursionError, RuntimeError, ValueError):
        return None
    return None if tree.is_broken else tree


# The last line is the beginning of a block that is not there.
_HEADER = re.compile(r":[ \t]*(#[^\n]*)?\s*\Z")


def fragments(texts: Sequence[str], language: str) -> list[Tree]:
    """The trees of texts that may be parts of a file, all completed in the same way; none if that can't be done."""
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
    """A completed fragment without what completed it, at the margin that it had."""
    inner = text.removeprefix(tree.prefix).removesuffix(tree.suffix)
    inner = re.sub(f"^{tree.shift}", "", inner, flags=re.M) if tree.shift else inner
    return indent(inner, tree.margin) + tree.tail


def _margin(texts: Sequence[str]) -> str:
    """The white space that every line of all texts begins with."""
    lines = [line for text in texts for line in text.splitlines() if line.strip()]
    margins = [line[: len(line) - len(line.lstrip())] for line in lines]
    return next((margin for margin in sorted(set(margins), key=len) if all(m.startswith(margin) for m in margins)), "")
