"""Patterns with variables: read from text, matched against trees, and written out as the new text.

`$A` stands for one expression, `$NAME_1` for one name, `$STRING_1`, `$NUMBER_1`, `$LIST_1` and so on for a literal of
that kind, `$$$ARGS_1` for any number of arguments, `$$$BODY_1` for the statements of a block.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from mnemarch.learning.trees import Kinds, Node, Tree, fragments, kinds_of

Bound = Mapping[str, tuple[Node, ...]]

VARIABLE = re.compile(r"\$\$\$([A-Z]+_\d+);?|\$([A-Z]+(?:_\d+)?)")
_ONE, _MANY = "mnemarchONE", "mnemarchMANY"
_MARK = re.compile(f"({_ONE}|{_MANY})([A-Z]+(?:_[0-9]+)?)")


class Pattern(NamedTuple):
    """The adjacent nodes to find, with variables among them; the words that a matching text must contain; and the kind
    of the node around each variable, in the order of the text."""

    nodes: tuple[Node, ...]
    words: frozenset[str]
    holders: tuple[str, ...]


@lru_cache(maxsize=4_096)
def pattern_of(text: str, language: str) -> Pattern | None:
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
    return Pattern(made, frozenset(leaf.text for leaf in leaves), tuple(holders))


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
