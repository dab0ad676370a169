"""Classifies changes: the five categories of rules (M21), a second tag, and the six categories of patterns (M17)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from itertools import pairwise
from posixpath import commonprefix

from mnemarch.learning.edits import Patch, Site
from mnemarch.learning.trees import Kinds, Node, fragments
from mnemarch.model.value import Names
from mnemarch.text.words import in_a_line

_SIDE_CHARS_MAX, _READ_CHARS_MAX = 56, 2_000
_RUN = re.compile(r"\${3}\w+")
# The parts cut from a name: all but about 30 characters before the change, and all but about 12 after it.
_HEAD, _TAIL = re.compile(r"\A.+\b(?=.{30})"), re.compile(r"(?<=.{12})\b.+\Z")
_COMPARED = frozenset({"==", "!=", "is", "is not", "===", "!=="})
_OCTAL = re.compile(r"0o?[0-7]{3,4}")
_EXCEPTION = re.compile(r"[A-Z]\w*(Error|Exception|Warning)|IOError|OSError|BaseException")


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


# The six categories of code patterns, by structure


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
