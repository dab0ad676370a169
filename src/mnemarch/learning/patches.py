"""Patches: read from the commits of a repository, cut down to the statements that changed, and classified."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import cache
from importlib.resources import files
from itertools import pairwise
from posixpath import commonprefix
from textwrap import dedent
from typing import NamedTuple

from mnemarch.code.git import output
from mnemarch.code.symbols import language_of
from mnemarch.errors import InvalidInput
from mnemarch.learning.trees import LANGUAGES, Kinds, Node, Tree, fragments, imports_of, origins_of, without_imports
from mnemarch.model.value import Frozen, Names
from mnemarch.text.words import in_a_line

_TEXT_CHARS_MAX = 400_000
_PIECE_CHARS_MAX = 4_000
_SITES_MAX = 40
_FILES_MAX = 100
_GIT_MODIFIED = ("-r", "-z", "-M", "--no-renames", "--diff-filter=M", "--raw", "--no-abbrev")
_SIDE_CHARS_MAX, _READ_CHARS_MAX = 56, 2_000
_RUN = re.compile(r"\${3}\w+")
# The parts cut from a name: all but about 30 characters before the change, and all but about 12 after it.
_HEAD, _TAIL = re.compile(r"\A.+\b(?=.{30})"), re.compile(r"(?<=.{12})\b.+\Z")
_COMPARED = frozenset({"==", "!=", "is", "is not", "===", "!=="})
_OCTAL = re.compile(r"0o?[0-7]{3,4}")
_EXCEPTION = re.compile(r"[A-Z]\w*(Error|Exception|Warning)|IOError|OSError|BaseException")


class FilePatch(Frozen):
    """One file before and after a change, with its path and the commit that changed it."""

    before: str
    after: str
    path: str = ""
    commit: str | None = None


def language_for(path: str, language: str | None = None) -> str | None:
    """The language of a patch; None if no rules are learned from it."""
    named = language or (language_of(path) if path else "python")
    named = "typescript" if named == "javascript" else named
    return named if named in LANGUAGES else None


def pieces(before: str, after: str, language: str) -> list[tuple[str, str]]:
    """The changed statements before and after, with the imports of their names. A fragment is returned whole."""
    patch = patch_from(before, after, language)
    if patch is None:
        return []
    if patch.before.prefix or patch.before.suffix:
        return [(before, after)]
    found: dict[tuple[str, str], None] = {}
    for site in patch.sites[:_SITES_MAX]:
        pairs = [*site.parents, *zip(site.before, site.after, strict=False)]
        inner = [pair for outer, pair in pairwise(pairs) if outer[0].kind in patch.before.kinds.blocks]
        if len(site.before) == len(site.after) == 1 and inner:
            old, new = inner[-1]
            texts = _piece(patch.before, (old,)), _piece(patch.after, (new,))
        elif site.before and site.after:
            texts = _piece(patch.before, site.before), _piece(patch.after, site.after)
        else:
            continue
        if max(map(len, texts)) <= _PIECE_CHARS_MAX:
            found[texts] = None
    return list(found)


def _piece(tree: Tree, nodes: Sequence[Node]) -> str:
    start = tree.source.rfind("\n", 0, nodes[0].start) + 1
    is_alone = not tree.source[start : nodes[0].start].strip()
    text = tree.source[start if is_alone else nodes[0].start : nodes[-1].end]
    words = {leaf.text for node in nodes for leaf in node.walk() if not leaf.children}
    imports = [] if nodes[0].kind in tree.kinds.imports else origins_of(tree, words)
    return "\n".join([*imports, dedent(text)]) + "\n"


def commits_of(root: str, named: str) -> list[str]:
    """The commits of a range (A..B), oldest first, or the one that is named. Merges are left out."""
    one = [] if ".." in named else ["--max-count=1"]
    return _asked(root, ["rev-list", "--no-merges", "--reverse", *one, named, "--"], named).decode().split()


def commit_patches(root: str, commit: str) -> Iterator[FilePatch]:
    """The files that one commit modified, before and after."""
    raw = _asked(root, ["diff-tree", "--no-commit-id", "--root", *_GIT_MODIFIED, commit], commit)
    # Git's raw format: the blobs before and after, and the path.
    fields = raw.decode(errors="replace").split("\0")
    listed = [(entry.split()[2:4], path) for entry, path in zip(fields[::2], fields[1::2], strict=False)]
    for (old, new), path in listed[:_FILES_MAX]:
        if language_for(path) is None:
            continue
        texts = [output(root, ["cat-file", "blob", blob]) for blob in (old, new)]
        if None not in texts:
            before, after = ((text or b"").decode(errors="replace") for text in texts)
            yield FilePatch(before=before, after=after, path=path, commit=commit)


def _asked(root: str, arguments: Sequence[str], named: str) -> bytes:
    printed = None if named.startswith("-") else output(root, arguments)
    if printed is None:
        raise InvalidInput(f"git does not know {named!r} here.", hint="Name a commit or a range A..B.")
    return printed


def files_under(path: str) -> list[str]:
    """The files at or below a path to which rules can be applied. Files that git ignores are left out."""
    if os.path.isfile(path):
        return [path] if language_for(path) else []
    listed = output(path, ["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
    if listed is None:
        walked = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
    else:
        walked = (os.path.join(path, name) for name in listed.decode(errors="replace").split("\0") if name)
    return sorted(file for file in walked if language_for(file) and os.path.isfile(file))


# Where two trees differ: the sites of a patch, each with its nodes before and after


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


def patch_from(before: str, after: str, language: str) -> Patch | None:
    """The patch from one text to another. None if they don't parse, or are too long."""
    is_long = max(len(before), len(after)) > _TEXT_CHARS_MAX
    trees = [] if is_long else fragments([before, after], language)
    return patch_of(*trees) if trees else None


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


# The five categories of rules (M21), and a second tag


class Category(Names):
    """The five categories of rules (M21)."""

    NULL_SAFETY = "null_safety"
    ERROR_HANDLING = "error_handling"
    READABILITY = "readability"
    PERFORMANCE = "performance"
    SECURITY = "security"


@cache
def _words() -> dict[str, frozenset[str]]:
    tables = json.loads((files(__package__) / "categories.json").read_text("utf-8"))
    return {name: frozenset(words.split()) for name, words in tables.items()}


def _tokens(nodes: Iterable[Node], kinds: Kinds) -> Counter[str]:
    """The words and operators of code, without strings."""
    leaves = (leaf for node in nodes for leaf in node.walk() if not leaf.children and leaf.kind not in kinds.strings)
    return Counter(leaf.text for leaf in leaves if leaf.text)


def category_of(patch: Patch, site: Site) -> str:
    """The category of a change, from the tokens that it removes and adds and from the line on which it stands."""
    kinds, words = patch.before.kinds, _words()
    old, new = _tokens(site.before, kinds), _tokens(site.after, kinds)
    lost, gained = old - new, new - old
    both = set(lost) | set(gained)
    up = [site.before[0], *(before for before, _ in reversed(site.parents))]
    changed = next((node for node in up if node.children and node.kind not in kinds.parts), up[0])
    around = {leaf.text for leaf in changed.walk() if leaf.kind in kinds.names}
    values_only = not any(token.isidentifier() and token not in kinds.no_words for token in both)
    is_guarded = _callee(site, kinds) in words["security"] or (values_only and around & words["security"])
    # Octal numbers are nearly always file modes.
    if is_guarded or both & words["security"] or any(map(_OCTAL.fullmatch, gained)):
        return "security"
    if changed.kind in kinds.imports:
        return "readability"
    start, source = site.before[0].start, patch.before.source
    first = source[source.rfind("\n", 0, start) + 1 : site.before[0].end].split(None, 1)[:1]
    if both & words["error_handling"] or any(map(_EXCEPTION.fullmatch, both)):
        return "error_handling"
    if first and first[0].rstrip(":(") in {"raise", "except", "throw", "catch"}:
        return "error_handling"
    is_typed = bool((old.keys() | new.keys()) & words["types"]) or _is_annotation(site, kinds)
    is_guard = _is_guard(lost, gained, site, kinds)
    if (is_guard or both & words["null_safety"] or _callee(site, kinds) == "get") and not is_typed:
        return "null_safety"
    if lost.keys() & words["performance"] or gained.keys() & words["performance_gained"]:
        return "performance"
    if _is_loop_gone(site) or _is_looped_over_less(site, kinds):
        return "performance"
    return "readability"


def _callee(site: Site, kinds: Kinds) -> str:
    """The last word of the callee of a changed call, or "" if no call changed."""
    node = site.before[0]
    return [leaf.text for leaf in node.children[0].walk()][-1] if node.kind in kinds.calls and node.children else ""


def _is_annotation(site: Site, kinds: Kinds) -> bool:
    """Whether the change is in a type annotation, or is one."""
    path = [*site.parents, *zip(site.before, site.after, strict=False)]
    stripped = [[_without_types(node, kinds) for node in side] for side in (site.before, site.after)]
    if stripped[0] == stripped[1]:
        return True
    for (outer, _), (inner, _) in pairwise(path):
        if any(a.text in {":", "->"} and b is inner for a, b in pairwise(outer.children)):
            return outer.kind not in {"pair", "slice", "lambda"} and inner.kind not in kinds.blocks
    return False


def _is_guard(lost: Counter[str], gained: Counter[str], site: Site, kinds: Kinds) -> bool:
    """Whether a change adds or changes a test for null, or adds a default for a value that may be null."""
    before, after = (_tested_nothings(side, kinds) for side in (site.before, site.after))
    is_compared = bool((lost + gained).keys() & _COMPARED) and before + after > 0
    return is_compared or before != after or (not lost and bool(gained.keys() & _words()["defaulting"]))


def _tested_nothings(nodes: Iterable[Node], kinds: Kinds) -> int:
    """How often null occurs, except as an argument or a returned value: there it is a plain value."""
    holders = (holder for root in nodes for holder in root.walk())
    testing = (
        each for each in holders if each.kind not in kinds.arguments | kinds.keyword and "return" not in each.kind
    )
    leaves = (leaf for holder in testing for leaf in holder.children if leaf.text in _words()["nothing"])
    return sum(leaf.kind not in kinds.names or leaf.text == "None" for leaf in leaves)


def _is_looped_over_less(site: Site, kinds: Kinds) -> bool:
    """Whether a loop now iterates over a part of its old iterable, or over a literal of another kind."""
    for loops in (*site.parents, *zip(site.before, site.after, strict=False)):
        old, new = (next((b for a, b in pairwise(loop.children) if a.text == "in"), loop) for loop in loops)
        is_literal = {old.kind, new.kind} <= kinds.literals.keys() and old.kind != new.kind
        if old is not loops[0] and old.hash != new.hash:
            return is_literal or any(node.hash == new.hash for node in old.walk())
    return False


def _is_loop_gone(site: Site) -> bool:
    loops = [sum(node.kind in _words()["loops"] for root in side for node in root.walk())
             for side in (site.before, site.after)]  # fmt: skip
    return loops[0] > loops[1]


def tag_of(patch: Patch, site: Site) -> str:
    """A tag beside the category: `api` (names or imports changed), `types`, `correctness`, or ""."""
    kinds = patch.before.kinds
    if _is_annotation(site, kinds):
        return "types"
    old, new = (Counter(node.kind for root in side for node in root.walk()) for side in (site.before, site.after))
    if old == new and patch.before.root.hash != patch.after.root.hash:
        names = _tokens(site.before, kinds) - _tokens(site.after, kinds)
        return "api" if any(name.isidentifier() for name in names) else "correctness"
    return "api" if patch.gained or patch.lost else ""


def name_of(before: str, after: str) -> str:
    """A rule's name: its two patterns, each on one line. Long patterns are cut to the change and some context."""
    old, new = (in_a_line(_RUN.sub("…", text), _READ_CHARS_MAX) for text in (before, after))
    start = len(commonprefix([old, new]))
    rest = old[start:], new[start:]
    end = len(commonprefix([part[::-1] for part in rest]))
    head, tail = _HEAD.sub("…", old[:start]), _TAIL.sub("…", old[len(old) - end :])
    changed = (part[: len(part) - end] for part in rest)
    return " → ".join(f"{head}{part[:_SIDE_CHARS_MAX]}{'…' * (len(part) > _SIDE_CHARS_MAX)}{tail}" for part in changed)


# The six categories of code patterns (M17), by structure


def pattern_category(before: str, after: str, language: str = "python") -> str | None:
    """type_hints, rename, restructure, extract_constant, extract_method or simplify (M17); None if none of them."""
    trees = fragments([before, after], language)
    if not trees or trees[0].root.hash == trees[1].root.hash:
        return None
    kinds, (old, new) = trees[0].kinds, (tree.root for tree in trees)
    if _without_types(old, kinds) == _without_types(new, kinds):
        return "type_hints"
    if _is_rename(old, new, kinds):
        return "rename"
    statements = [Counter(node.hash for node in root.children) for root in (old, new)]
    if statements[0] == statements[1] or _all_statements(old, kinds) == _all_statements(new, kinds):
        return "restructure"
    if _new_constant(old, new, kinds):
        return "extract_constant"
    if _new_function(old, new, kinds):
        return "extract_method"
    return "simplify" if new.size < old.size else None


def _without_types(node: Node, kinds: Kinds) -> object:
    """The shape of a tree without annotations and imports."""
    children: list[object] = []
    skip = False
    for child in node.children:
        if child.text in {":", "->"} and child.text == child.kind:
            skip = node.kind not in {"pair", "slice", "lambda"}
            continue
        is_type = skip and child.kind not in kinds.blocks
        skip = False
        if not is_type and child.kind not in kinds.imports:
            children.append(_without_types(child, kinds))
    kind = node.kind.replace("typed_default_parameter", "default_parameter")
    if kind == "typed_parameter" and len(children) == 1:
        return children[0]
    return kind, node.text if not node.children else "", tuple(children)


def _is_rename(old: Node, new: Node, kinds: Kinds) -> bool:
    """Whether both trees have the same shape, and each differing statement maps old names to new names one to one."""
    if len(old.children) != len(new.children):
        return False
    pairs = zip(old.children, new.children, strict=True)
    return all(_is_renamed(a, b, kinds) for a, b in pairs if a.hash != b.hash)


def _is_renamed(old: Node, new: Node, kinds: Kinds) -> bool:
    names: dict[str, str] = {}

    def same(a: Node, b: Node) -> bool:
        if a.kind != b.kind or len(a.children) != len(b.children):
            return False
        if a.kind in kinds.names or a.kind.endswith("identifier"):
            return names.setdefault(a.text, b.text) == b.text
        return a.text == b.text and all(same(x, y) for x, y in zip(a.children, b.children, strict=True))

    return same(old, new) and len(set(names.values())) == len(names)


def _all_statements(root: Node, kinds: Kinds) -> Counter[tuple[int, ...]]:
    """All statements of a tree. A statement that contains a block counts without the block."""
    blocks = (node for node in root.walk() if node.kind in kinds.blocks)
    statements = (child.children or [child] for block in blocks for child in block.children)
    return Counter(tuple(part.hash for part in parts if part.kind not in kinds.blocks) for parts in statements)


def _new_constant(old: Node, new: Node, kinds: Kinds) -> bool:
    used = [Counter(leaf.text for leaf in root.walk() if leaf.kind in kinds.names or "identifier" in leaf.kind)
            for root in (old, new)]  # fmt: skip
    gained = used[1] - used[0]
    return any(re.fullmatch(r"_?[A-Z][A-Z0-9_]+", name) and name not in used[0] and gained[name] > 1 for name in gained)


def _new_function(old: Node, new: Node, kinds: Kinds) -> bool:
    """Whether the new code calls a new function whose statements or expressions were there before."""
    known = {node.hash for node in old.walk()}
    defined = [{names[0] for node in root.walk() if (names := _defined(node, kinds))} for root in (old, new)]
    called = {leaf.text for node in new.walk() if node.kind in kinds.calls for leaf in node.children[0].walk()}
    for node in new.walk():
        names = _defined(node, kinds)
        if names and names[0] not in defined[0] and names[0] in called:
            bodies = [child for child in node.children if child.kind in kinds.blocks]
            parts = [part for body in bodies for statement in body.children for part in statement.walk()]
            if any(part.hash in known and part.size > 3 for part in parts):
                return True
    return False


def _defined(node: Node, kinds: Kinds) -> list[str]:
    """The identifiers of a function definition, its name first; empty for other nodes."""
    has_list = any(child.kind in kinds.parameters for child in node.children)
    return [child.text for child in node.children if "identifier" in child.kind] if has_list else []
