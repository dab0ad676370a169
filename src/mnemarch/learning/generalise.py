"""Turns one changed site into patterns. Code that both sides share becomes a variable, as far as the rung allows."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from string import ascii_uppercase
from typing import NamedTuple

from mnemarch.learning.patches import Patch, Site, opcodes
from mnemarch.learning.trees import VARIABLE, Kinds, Node, Tree, margin_at

_VARIABLES_MAX = 20


class Rung(NamedTuple):
    """One rung of the ladder: how many enclosing nodes the pattern includes, and which code stays as written."""

    wider: int = 0
    keep_names: bool = False
    keep_literals: bool = False
    keep_compounds: bool = False
    is_last: bool = False


LADDER = (
    Rung(),
    Rung(keep_names=True),
    Rung(wider=1),
    Rung(wider=2),
    Rung(keep_compounds=True),
    Rung(wider=1, keep_compounds=True),
    Rung(keep_literals=True),
    Rung(keep_names=True, keep_literals=True, keep_compounds=True),
    Rung(wider=1, keep_names=True, keep_literals=True, keep_compounds=True),
    Rung(wider=2, keep_names=True, keep_literals=True, keep_compounds=True),
    Rung(keep_names=True, keep_literals=True, keep_compounds=True, is_last=True),
)


class Generaliser:
    """Finds the variables of one site. `differing` names a variable for each node where another patch differs."""

    def __init__(self, patch: Patch, site: Site, rung: Rung, differing: Mapping[int, str] | None = None) -> None:
        self.differing = differing or {}
        self.kinds: Kinds = patch.before.kinds
        self.patch = patch
        self.site = site
        self.rung = rung
        self.names: dict[object, str] = {}
        self.bound = _bound_names(site.before, self.kinds)
        self.fixed = imported_names(patch)
        self.counts = Counter(name.lstrip("$").partition("_")[0] for name in set(self.differing.values()))
        after = list(_placed(site.after))
        self.in_after = {node.hash for node, parent, index in after if self._prefix(node, parent, index) is not None}
        self.after_arguments = {node.hash: node for node, _, _ in after if node.kind in self.kinds.arguments}
        self.after_blocks = {node.hash for node, _, _ in after if node.kind in self.kinds.blocks}
        lists = ((node, self._list_of(node)) for node, _, _ in after)
        self.after_lists = [(node, *both) for node, both in lists if both is not None]
        self.unchanged = {node.hash for node, *_ in self.after_lists}
        self.pair: tuple[Node, Node] | None = None

    def patterns(self) -> tuple[str, str] | None:
        """The two patterns as text. None if the source contains text like a variable, or needs too many variables."""
        sides = (self.patch.before, self.site.before), (self.patch.after, self.site.after)
        if any(VARIABLE.search(text(tree, nodes)) for tree, nodes in sides):
            return None
        self.edits: list[tuple[int, int, str]] = []
        for node in self.site.before:
            self._before(node, None, 0)
        before = _rendered(self.patch.before, self.site.before, self.edits)
        self.edits = []
        for node in self.site.after:
            self._after(node, None, 0)
        after = _rendered(self.patch.after, self.site.after, self.edits)
        return (before, after) if len(self.names) <= _VARIABLES_MAX else None

    # What may vary

    def _prefix(self, node: Node, parent: Node | None, index: int) -> str | None:
        """The prefix of a variable for this node; None if the node stays as written."""
        kinds = self.kinds
        if parent is None or not node.named or parent.kind in kinds.blocks or node.kind in kinds.blocks:
            return None
        if node.kind in kinds.literals:
            keeps = self.rung.keep_literals or (self.rung.keep_compounds and node.children)
            return None if keeps else kinds.literals[node.kind]
        if _says_what(parent, index, kinds) or node.kind in kinds.parts:
            return None
        if node.kind in kinds.constants or parent.kind in kinds.imports:
            return None
        if node.kind not in kinds.names:
            return None if self.rung.keep_compounds else ""
        if node.text in self.bound and not self.rung.keep_names:
            return "NAME"
        is_module = parent.kind in kinds.member and node.text in sys.stdlib_module_names
        return None if self.rung.keep_names or is_module or node.text in self.fixed else ""

    def _name(self, key: object, prefix: str) -> str:
        if key not in self.names:
            self.counts[prefix] += 1
            count = self.counts[prefix]
            letter = ascii_uppercase[count - 1] if count <= len(ascii_uppercase) else f"Z_{count}"
            self.names[key] = f"{prefix}_{count}" if prefix else letter
        return self.names[key]

    # The walks

    def _before(self, node: Node, parent: Node | None, index: int) -> None:
        kinds = self.kinds
        prefix = self._prefix(node, parent, index)
        if id(node) in self.differing:
            self._vary(node)
        elif prefix is not None and (node.hash in self.in_after or prefix == "NAME"):
            self.edits.append((node.start, node.end, "$" + self._name(node.hash, prefix)))
        elif node.kind in kinds.blocks and node.hash in self.after_blocks and node.children and parent is not None:
            self._run(node, "BODY")
        elif node.kind in kinds.arguments and node.hash in self.after_arguments and self._is_whole_run(node, parent):
            self._run(node, "ARGS")
        elif self._has_list_edit(node):
            self._rewrite_list(node, 0, self._before)
        elif node.kind not in kinds.imports:
            for place, child in enumerate(node.children):
                self._before(child, node, place)

    def _after(self, node: Node, parent: Node | None, index: int) -> None:
        kinds = self.kinds
        prefix = self._prefix(node, parent, index)
        if id(node) in self.differing:
            self._vary(node)
        elif prefix is not None and node.hash in self.names:
            self.edits.append((node.start, node.end, "$" + self.names[node.hash]))
        elif node.kind in kinds.blocks | kinds.arguments and ("run", node.hash) in self.names:
            self._run(node, "")
        elif self.pair is not None and node is self.pair[1]:
            self._rewrite_list(node, 1, self._after)
        elif node.kind not in kinds.imports:
            for place, child in enumerate(node.children):
                self._after(child, node, place)

    def _vary(self, node: Node) -> None:
        name = self.differing[id(node)]
        if name.startswith("$$$"):
            self.edits.append((node.children[0].start, node.children[-1].end, name))
        else:
            self.edits.append((node.start, node.end, name))

    def _is_whole_run(self, node: Node, parent: Node | None) -> bool:
        keeps = self.rung.keep_literals
        return parent is not None and parent.kind in self.kinds.calls and bool(node.children) and not keeps

    def _run(self, node: Node, prefix: str) -> None:
        name = self._name(("run", node.hash), prefix)
        end = self.kinds.body_end if name.startswith("BODY") else ""
        self.edits.append((node.children[0].start, node.children[-1].end, f"$$${name}{end}"))

    # Changed keyword arguments and parameters: the other items of the list become runs

    def _list_of(self, node: Node) -> tuple[Node, Node] | None:
        """The name and the argument or parameter list of a call or definition; None for other nodes."""
        kinds = self.kinds
        if node.kind in kinds.calls and len(node.children) == 2 and node.children[1].kind in kinds.arguments:
            return node.children[0], node.children[1]
        lists = [child for child in node.children if child.kind in kinds.parameters]
        names = [child for child in node.children if child.kind in kinds.names]
        return (names[0], lists[0]) if lists and names else None

    def _has_list_edit(self, node: Node) -> bool:
        """Whether a call changes only in its keywords, or a definition in its parameters. Sets `pair` if so."""
        may_be_one = not self.pair and not self.rung.keep_literals and node.hash not in self.unchanged
        ours = self._list_of(node) if may_be_one else None
        if ours is None:
            return False
        named, items = ours
        for other, name, theirs in self.after_lists:
            if other.kind == node.kind and name.hash == named.hash:
                changed = _changed(items.children, theirs.children)
                is_definition = items.kind in self.kinds.parameters
                if changed and all(item.kind in self.kinds.keyword or is_definition for item in changed):
                    self.pair = node, other
                    return True
        return False

    def _rewrite_list(self, node: Node, side: int, walk: Callable[[Node, Node | None, int], None]) -> None:
        """Rewrite the list, with a run for each unchanged part and at both ends."""
        assert self.pair is not None
        lists = [pair[1] for each in self.pair if (pair := self._list_of(each)) is not None]
        codes = opcodes(lists[0].children, lists[1].children)
        codes = [("equal", 0, 0, 0, 0)] * (codes[0][0] != "equal") + codes
        codes += [("equal", 0, 0, 0, 0)] * (codes[-1][0] != "equal")
        outer, items = self.edits, []
        for number, code in enumerate(codes):
            if code[0] == "equal":
                items.append("$$$" + self._name(("list", number), "ARGS"))
                continue
            for index in range(*((code[3], code[4]) if side else (code[1], code[2]))):
                self.edits = []
                walk(lists[side].children[index], lists[side], index)
                tree = (self.patch.before, self.patch.after)[side]
                items.append(_rendered(tree, lists[side].children[index : index + 1], self.edits))
        self.edits = outer
        self.edits.append((lists[side].start + 1, lists[side].end - 1, ", ".join(items)))
        for place, child in enumerate(node.children):
            if child is not lists[side]:
                walk(child, node, place)


def _says_what(parent: Node, index: int, kinds: Kinds) -> bool:
    """Whether a node is a callee, or the name of a keyword or an attribute."""
    if parent.kind in kinds.keyword:
        return index == 0
    return parent.kind in kinds.calls or (parent.kind in kinds.member and index > 0)


def _changed(before: list[Node], after: list[Node]) -> list[Node]:
    codes = [code for code in opcodes(before, after) if code[0] != "equal"]
    return [node for _, i1, i2, j1, j2 in codes for node in (*before[i1:i2], *after[j1:j2])]


def _placed(nodes: Sequence[Node], holder: Node | None = None) -> Iterator[tuple[Node, Node | None, int]]:
    """Every node with its parent and its index there."""
    for index, node in enumerate(nodes):
        yield node, holder, index
        yield from _placed(node.children, node)


def _names_in(nodes: Sequence[Node], kinds: Kinds) -> Iterator[str]:
    return (leaf.text for node in nodes for leaf in node.walk() if leaf.kind in kinds.names)


def _bound_names(nodes: Sequence[Node], kinds: Kinds) -> set[str]:
    """The names that the site itself binds and uses again. Their spelling doesn't matter."""
    used = Counter(_names_in(nodes, kinds))
    return {name for name in bound_in(nodes, kinds) if used[name] > 1}


def bound_in(nodes: Sequence[Node], kinds: Kinds) -> set[str]:
    bound: set[str] = set()
    for node in (inner for root in nodes for inner in root.walk()):
        place = kinds.binders.get(node.kind)
        if place is not None and place < len(node.children):
            target = node.children[place]
            bound |= set() if target.kind in kinds.member else set(_names_in((target,), kinds))
    return bound


def imported_names(patch: Patch) -> set[str]:
    return {name for tree in (patch.before, patch.after) for names in tree.imported() for name in names}


def text(tree: Tree, nodes: Sequence[Node]) -> str:
    return tree.source[nodes[0].start : nodes[-1].end]


def _rendered(tree: Tree, nodes: Sequence[Node], edits: list[tuple[int, int, str]]) -> str:
    """The source of these nodes with the edits applied, without comments and margin."""
    start, end = nodes[0].start, nodes[-1].end
    comments = [(a, b, "") for a, b in tree.comments if start <= a and b <= end]
    taken: list[tuple[int, int, str]] = []
    for edit in sorted((*edits, *comments), key=lambda edit: (edit[0], -edit[1])):
        if not taken or edit[0] >= taken[-1][1]:
            taken.append(edit)
    text, at = "", start
    for first, last, new in taken:
        text += tree.source[at:first] + new
        at = last
    text += tree.source[at:end]
    margin = margin_at(tree.source, start)
    text = re.sub(r"[ \t]+$", "", text, flags=re.M)
    return text.replace("\n" + margin, "\n") if margin else text


# Two patches


def differing(one: Site, other: Site, kinds: Kinds) -> dict[int, str] | None:
    """The variables that let one site also cover another: a name for the id of each smallest node that differs.

    Nodes that differ in the same way get the same variable. None if the new sides differ where the old ones don't, or
    if a variable of the old side is missing on the new side: a rule must not drop unknown code.
    """
    names: dict[tuple[int, int], str] = {}
    holes: tuple[dict[int, str], dict[int, str]] = {}, {}
    for is_new, ours, theirs in ((False, one.before, other.before), (True, one.after, other.after)):
        if len(ours) != len(theirs):
            return None
        for a, b in zip(ours, theirs, strict=True):
            if not _covered(a, b, None, 0, names, holes[is_new], kinds, is_new):
                return None
    return holes[0] | holes[1] if set(holes[0].values()) <= set(holes[1].values()) else None


def _covered(
    a: Node, b: Node, parent: Node | None, index: int, names: dict[tuple[int, int], str], holes: dict[int, str],
    kinds: Kinds, is_new: bool,
) -> bool:  # fmt: skip
    if a.hash == b.hash:
        return True
    pair = a.hash, b.hash
    if pair not in names and a.kind == b.kind and a.text == b.text and len(a.children) == len(b.children) > 0:
        inner: dict[int, str] = {}
        known = dict(names)
        pairs = enumerate(zip(a.children, b.children, strict=True))
        if all(_covered(x, y, a, at, known, inner, kinds, is_new) for at, (x, y) in pairs):
            names.update(known)
            holes.update(inner)
            return True
    is_run = a.kind == b.kind and a.kind in kinds.arguments | kinds.blocks and bool(a.children and b.children)
    may_vary = is_run or not any(
        not node.named or node.kind in kinds.parts or node.kind in kinds.blocks for node in (a, b)
    )
    if parent is None or not may_vary or (is_new and pair not in names):
        return False
    if not is_run and _says_what(parent, index, kinds):
        return False
    if pair not in names:
        literal = kinds.literals.get(a.kind, "")
        same = literal if literal == kinds.literals.get(b.kind, "") else ""
        letter = same or ("ARGS" if a.kind in kinds.arguments else "BODY" if is_run else "X")
        alike = sum(name.lstrip("$").startswith(f"{letter}_") for name in names.values())
        names[pair] = f"{'$$$' if is_run else '$'}{letter}_{alike + 1}"
    holes[id(a)] = names[pair]
    return True
