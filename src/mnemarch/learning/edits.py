"""Finds where two trees differ: the sites of a patch, each with its nodes before and after."""

from __future__ import annotations

from difflib import SequenceMatcher
from itertools import pairwise
from typing import NamedTuple

from mnemarch.learning.trees import Kinds, Node, Tree, imports_of, without_imports


class Site(NamedTuple):
    """A changed place: its nodes before and after, and the pairs of nodes around them, outermost first.

    A range of statements may have several nodes or none on a side. Every other site has one node on each side.
    """

    before: tuple[Node, ...]
    after: tuple[Node, ...]
    parents: tuple[tuple[Node, Node], ...]

    @property
    def key(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return tuple(node.hash for node in self.before), tuple(node.hash for node in self.after)

    def wider(self) -> Site | None:
        """The site of the node around this change; None at the top."""
        if not self.parents:
            return None
        before, after = self.parents[-1]
        return Site((before,), (after,), self.parents[:-1])


class Patch(NamedTuple):
    """The two trees of a patch, its sites, and the imports that only one side has."""

    before: Tree
    after: Tree
    sites: tuple[Site, ...]
    gained: tuple[str, ...]
    lost: tuple[str, ...]

    @property
    def changes_nothing(self) -> bool:
        return not self.sites and not self.gained and not self.lost


def patch_of(before: Tree, after: Tree) -> Patch:
    """The patch of two trees. Each site is lifted to an expression or a statement; sites in one statement are joined.

    Imports are not sites if other code changes too: a rule names the imports that it needs.
    """
    kinds = before.kinds
    old, new = imports_of(before), imports_of(after)
    sites = _sites(without_imports(before), without_imports(after), (), kinds)
    if sites and all(site.before and site.after for site in sites):
        gained = tuple(line for line in new if line not in old)
        lost = tuple(line for line in old if line not in new)
    else:
        gained = lost = ()
        # The order of imports is formatting.
        sites = _sites(before.root, after.root, (), kinds) if sites or set(old) != set(new) else []
    joined = _joined([lifted(site, kinds) for site in sites], kinds)
    return Patch(before, after, tuple(joined), gained, lost)


def opcodes(before: list[Node], after: list[Node]) -> list[tuple[str, int, int, int, int]]:
    """The edit operations that turn one list of nodes into the other, compared by hash."""
    hashes = [node.hash for node in before], [node.hash for node in after]
    codes = SequenceMatcher(None, *hashes, autojunk=False).get_opcodes()
    return [(str(code[0]), *code[1:]) for code in codes]


def _sites(before: Node, after: Node, parents: tuple[tuple[Node, Node], ...], kinds: Kinds) -> list[Site]:
    if before.hash == after.hash:
        return []
    whole = [Site((before,), (after,), parents)]
    is_block = before.kind in kinds.blocks
    is_leaf = not is_block and not (before.children and after.children)
    if before.kind != after.kind or before.text != after.text or is_leaf:
        return whole
    inside = (*parents, (before, after))
    sites: list[Site] = []
    for tag, i1, i2, j1, j2 in opcodes(before.children, after.children):
        if tag == "equal":
            continue
        old, new = before.children[i1:i2], after.children[j1:j2]
        pairs = list(zip(old, new, strict=False))
        if len(old) == len(new) and all(a.kind == b.kind for a, b in pairs if is_block):
            for a, b in pairs:
                sites += _sites(a, b, inside, kinds)
        elif is_block:
            sites.append(Site(tuple(old), tuple(new), inside))
        else:
            return whole
    return sites


def lifted(site: Site, kinds: Kinds) -> Site:
    """The site of the nearest expression or statement around a changed token, name or argument."""
    while _is_part(site, kinds) and (wider := site.wider()) is not None:
        site = wider
    return site


def _is_part(site: Site, kinds: Kinds) -> bool:
    if len(site.before) != 1 or len(site.after) != 1:
        return False
    parent = site.parents[-1][0].kind if site.parents else ""
    before, after = site.before[0], site.after[0]
    if parent in kinds.blocks or (before.kind == after.kind and before.kind in kinds.clauses):
        return False
    if parent in kinds.calls and site.parents[-1][0].children[0] is before:
        return True
    return any(not node.named or node.kind in kinds.parts or node.kind in kinds.names for node in (before, after))


def _joined(sites: list[Site], kinds: Kinds) -> list[Site]:
    """Join different sites in one statement at their lowest common ancestor. Repeats of one edit stay separate."""
    by_statement: dict[int, list[Site]] = {}
    for site in sites:
        around = [*(before for before, _ in site.parents), *site.before[:1]]
        inner = [node for outer, node in pairwise(around) if outer.kind in kinds.blocks]
        by_statement.setdefault(id(inner[-1]) if inner else id(site), []).append(site)
    joined: list[Site] = []
    for group in by_statement.values():
        if len({site.key for site in group}) == 1:
            joined += group
            continue
        shared = 0
        while all(site.parents[shared : shared + 1] == group[0].parents[shared : shared + 1] != () for site in group):
            shared += 1
        parents = group[0].parents[:shared]
        joined.append(lifted(Site((parents[-1][0],), (parents[-1][1],), parents[:-1]), kinds))
    whole = {id(site.before[0]) for site in joined if len(site.before) == 1}
    return [site for site in joined if not any(id(before) in whole for before, _ in site.parents)]
