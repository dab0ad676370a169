"""Parses source text into light trees, in which equal hashes mean equal code up to formatting, and matches patterns."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from textwrap import indent
from typing import Any, NamedTuple

from ast_grep_py import SgNode, SgRoot

from mnemarch.errors import InvalidInput

# Deeper code counts as unparsable, since matching takes several frames for each level.
_DEPTH_MAX = 150
# A text with a longer line is data or generated code. Parsing it would take seconds.
_LINE_CHARS_MAX = 4_000
VARIABLE = re.compile(r"\$\$\$([A-Z]+_\d+);?|\$([A-Z]+(?:_\d+)?)")
_ONE, _MANY = "mnemarchONE", "mnemarchMANY"
_MARK = re.compile(f"({_ONE}|{_MANY})([A-Z]+(?:_[0-9]+)?)")


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
        raise InvalidInput(f"No rules are learned from {language!r}.", hint=f"Known languages: {known}.")
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


def _statements_of(tree: Tree) -> list[Node]:
    """The import statements at the top of a text."""
    return [node for node in tree.root.children if node.kind in tree.kinds.imports]


def imports_of(tree: Tree) -> list[str]:
    return [line for node in _statements_of(tree) for line in import_lines(tree.text_of(node))]


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
    statements = _statements_of(tree)
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


# Patterns with variables: read from text, matched against trees, and written out as the new text.
#
# `$A` stands for one expression, `$NAME_1` for one name, `$STRING_1`, `$NUMBER_1`, `$LIST_1` and so on for a literal of
# that kind, `$$$ARGS_1` for any number of arguments, `$$$BODY_1` for the statements of a block.

Bound = Mapping[str, tuple[Node, ...]]


class _Pattern(NamedTuple):
    """The adjacent nodes to find, with variables among them; the words that a matching text must contain; and the kind
    of the node around each variable, in the order of the text."""

    nodes: tuple[Node, ...]
    words: frozenset[str]
    holders: tuple[str, ...]


@lru_cache(maxsize=4_096)
def pattern_of(text: str, language: str) -> _Pattern | None:
    """The pattern in a text; None if it can't be parsed."""
    kinds = kinds_of(language)
    marked = VARIABLE.sub(lambda at: f"{_MANY if at[1] else _ONE}{at[1] or at[2]}{';' * at[0].endswith(';')}", text)
    trees = fragments([marked], language)
    if not trees:
        return None
    [tree] = trees
    holders: list[str] = []
    nodes = _between(tree.root, len(tree.prefix), len(tree.source) - len(tree.suffix))
    made = tuple(_with_variables(node, kinds, "", holders) for node in nodes)
    leaves = (node for root in made for node in root.walk() if node.kind in kinds.names)
    return _Pattern(made, frozenset(leaf.text for leaf in leaves), tuple(holders))


def _between(node: Node, first: int, last: int) -> list[Node]:
    """The outermost nodes below the root that are between two offsets."""
    nodes: list[Node] = []
    for child in node.children:
        if first <= child.start and child.end <= last:
            nodes.append(child)
        elif child.end > first and child.start < last:
            nodes += _between(child, first, last)
    return nodes


def _with_variables(node: Node, kinds: Kinds, parent: str, holders: list[str]) -> Node:
    mark = _MARK.fullmatch(node.text) if node.kind in kinds.names else None
    if mark:
        holders.append(parent)
        return Node("$$$" if mark[1] == _MANY else "$", mark[2], [], node.start, node.end, True)
    around = [node.kind] * len(node.children)
    if "subscript" in node.kind:
        around[:1] = [""]  # Only inside the brackets no parentheses are needed.
    children = [_with_variables(child, kinds, kind, holders) for child, kind in zip(node.children, around, strict=True)]
    if node.kind in kinds.statement and len(children) == 1 and children[0].kind == "$$$":
        return children[0]
    return Node(node.kind, node.text, children, node.start, node.end, node.named)


def matches(pattern: Sequence[Node], nodes: Sequence[Node], kinds: Kinds) -> Bound | None:
    """The values of the variables if the pattern matches exactly these nodes; None if not."""
    return next(_sequence(pattern, nodes, {}, kinds), None)


def _fits(pattern: Node, node: Node, bound: Bound, kinds: Kinds) -> Iterator[Bound]:
    if pattern.kind == "$":
        known = bound.get(pattern.text)
        if known is not None:
            if known[0].hash == node.hash:
                yield bound
        elif _may_stand_for(pattern.text, node, kinds):
            yield {**bound, pattern.text: (node,)}
    elif pattern.hash == node.hash:
        yield bound
    elif pattern.kind == node.kind and pattern.text == node.text and pattern.children:
        yield from _sequence(pattern.children, node.children, bound, kinds)
        if pattern.kind in kinds.arguments:
            yield from _by_name(pattern.children, node.children, bound, kinds)


def _by_name(pattern: list[Node], nodes: list[Node], bound: Bound, kinds: Kinds) -> Iterator[Bound]:
    """Match keyword arguments in any order. The other arguments go to the first run."""
    runs = [item for item in pattern if item.kind == "$$$"]
    words = [item for item in pattern if item.kind in kinds.keyword]
    if not runs or not words or len(runs) + len(words) != len(pattern) or any(run.text in bound for run in runs):
        return
    left = list(nodes)
    for word in words:
        same = [item for item in left if item.kind in kinds.keyword and item.children[0].hash == word.children[0].hash]
        inner = next(_fits(word, same[0], bound, kinds), None) if same else None
        if inner is None:
            return
        bound = inner
        left.remove(same[0])
    yield {**bound, **{run.text: () for run in runs}, runs[0].text: tuple(left)}


def _may_stand_for(name: str, node: Node, kinds: Kinds) -> bool:
    wanted = name.partition("_")[0]
    if len(wanted) == 1:  # $A, or $X_1 of two patches
        return node.named and node.kind not in kinds.parts and node.kind not in kinds.blocks
    if wanted == "NAME":
        return node.kind in kinds.names
    return kinds.literals.get(node.kind) == wanted


def _sequence(pattern: Sequence[Node], nodes: Sequence[Node], bound: Bound, kinds: Kinds) -> Iterator[Bound]:
    if not pattern:
        if not nodes:
            yield bound
        return
    first, rest = pattern[0], pattern[1:]
    if first.kind == "$$$":
        known = bound.get(first.text)
        lengths: Iterable[int] = range(len(nodes) + 1) if known is None else (len(known),)
        for length in lengths if rest else (len(nodes),):
            run = tuple(nodes[:length])
            if known is not None and [node.hash for node in known] != [node.hash for node in run]:
                continue
            if all(node.named for node in run):
                yield from _sequence(rest, nodes[length:], {**bound, first.text: run}, kinds)
    elif nodes:
        for inner in _fits(first, nodes[0], bound, kinds):
            yield from _sequence(rest, nodes[1:], inner, kinds)


def with_bound(pattern: Sequence[Node], bound: Bound) -> Iterator[Node]:
    """The nodes of a pattern, with its variables replaced by their values."""
    for node in pattern:
        if node.kind in {"$", "$$$"}:
            yield from bound[node.text]
        else:
            children = list(with_bound(node.children, bound))
            yield Node(node.kind, node.text, children, node.start, node.end, node.named)


def filled(template: str, holders: Sequence[str], bound: Bound, tree: Tree, at: int) -> str:
    """The template with its variables replaced by source text, indented for the line where it is inserted."""
    template = template.replace("\n", "\n" + margin_at(tree.source, at))
    around = iter(holders)

    def text(found: re.Match[str]) -> str:
        holder = next(around, "")
        nodes = bound[found[1] or found[2]]
        if not nodes:
            return "\0"
        if (found[1] or "").startswith("BODY"):
            return _moved(nodes, tree, len(template[: found.start()].rpartition("\n")[2]))
        if found[2]:
            return _bracketed(tree.text_of(nodes[0]), nodes[0], holder, tree.kinds)
        written = tree.source[nodes[0].outer[0] : nodes[-1].outer[1]]
        gaps = (tree.source[one.outer[1] : other.outer[0]] for one, other in pairwise(nodes))
        if any(gap.strip("\n\t ,") and "#" not in gap for gap in gaps):  # Something between them was removed.
            written = ", ".join(tree.source[slice(*node.outer)] for node in nodes)
        return written

    written = VARIABLE.sub(text, template)
    return re.sub(r",\s*\0(?=\s*[)\]}]|$)|\0(?:,\s*)?", "", written)


def _moved(nodes: Sequence[Node], tree: Tree, column: int) -> str:
    """The text of statements at another indentation. Lines inside strings are not moved."""
    own, source = margin_at(tree.source, nodes[0].start), tree.source
    strings = [node for root in nodes for node in root.walk() if node.kind in tree.kinds.strings]
    lines = source[nodes[0].start : nodes[-1].end].split("\n")
    moved, at = lines[:1], nodes[0].start + len(lines[0]) + 1
    for line in lines[1:]:
        is_inside = any(node.start < at <= node.end for node in strings)
        moved.append(line if is_inside or not line.startswith(own) else " " * column + line[len(own) :])
        at += len(line) + 1
    return "\n".join(moved)


def _bracketed(written: str, node: Node, holder: str, kinds: Kinds) -> str:
    if holder in kinds.holds_code:
        return " " + written if written.startswith("{") else written
    # An argument in parentheses may be a tuple: `f((a, b))`.
    is_roomy = holder in kinds.arguments and node.outer == (node.start, node.end)
    if node.kind in kinds.atomic or is_roomy or (holder in kinds.roomy - kinds.arguments and "\n" not in written):
        return written
    return f"({written})"


def margin_at(source: str, at: int) -> str:
    """The white space with which the line at this offset begins."""
    line = source[source.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]
