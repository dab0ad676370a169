"""The gates. They reject generalisations that would change code which the patch was not about."""

from __future__ import annotations

import builtins
import os
import re
import sys
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path

from mnemarch.learning.edits import Patch, Site
from mnemarch.learning.generalise import Rung, bound_in, imported_names, text
from mnemarch.learning.patterns import matches
from mnemarch.learning.rule import form_of
from mnemarch.learning.trees import Kinds, Node, kinds_of, parsed

_LITERAL_NODES_MAX = 60
_LONG_STRING_CHARS = 8
_WEAK_TOKENS = frozenset({".", ":", "=", "->", "::"})
_ARITHMETIC = frozenset({"<", "<=", ">", ">=", "+", "-", "*", "/", "%", "//", "and", "or", "&&", "||"})
# The language whose standard library is there to try rules on.
_LANGUAGE = "python"


def refusal(patch: Patch, site: Site, before: Sequence[Node], after: Sequence[Node], rung: Rung) -> str:
    """The reason to reject a generalisation; empty if it may be a rule."""
    kinds = patch.before.kinds
    old = [node for root in before for node in root.walk()]
    new = [node for root in after for node in root.walk()]
    is_long = before[0].kind in kinds.strings and len(before[0].text) >= _LONG_STRING_CHARS
    if len(before) == 1 and not before[0].children and not is_long:
        return "a lone name or literal"
    if not any(node.kind in {"$", "$$$"} for node in old) and sum(node.size for node in before) > _LITERAL_NODES_MAX:
        return "a long text"
    if all(node.children or node.kind in kinds.literals or node.kind == "$" for node in old) and not rung.is_last:
        return "literals only"
    if not _has_anchor(old, kinds, bound_in(before, kinds)):
        return "nothing to hold on to"
    if len(after) == 1 and after[0].kind == "$" and len(after[0].text) == 1:
        return "unwraps anything"
    if not _leaves(old) - _leaves(new) and _is_method_of_anything(before[0], kinds):
        return "only adds to a method of anything"
    if any(name not in text(patch.before, site.before) for name in _free_names(patch, old, new, kinds)):
        return "a name from elsewhere"
    return ""


def mends(before: Sequence[Node], after: Sequence[Node], kinds: Kinds) -> str:
    """The kind of a mere bug fix, which shows no habit: "bound" or "value"; "" if the patch does more.

    `amount < 0` to `<= 0` and `i < n` to `i < n - 1` are bounds, `sleep(1)` to `sleep(5)` is a value.
    """
    old = [node for root in before for node in root.walk()]
    new = [node for root in after for node in root.walk()]
    gone, come = _leaves(old) - _leaves(new), _leaves(new) - _leaves(old)
    literals = [kinds.literals.get(kind, "") for kind, _ in (*gone, *come)]
    marks = {(kind, text) for (kind, text), literal in zip((*gone, *come), literals, strict=True) if not literal}
    if any(kind != text for kind, text in marks) or not (gone or come):
        return ""  # More than operators and literals changed.
    operators = {kind for kind, _ in marks}
    is_arithmetic = operators <= _ARITHMETIC
    has_same_shape = [node.kind for node in old if node.children] == [node.kind for node in new if node.children]
    is_of_numbers = {"NUMBER", ""}.issuperset(literals)
    is_off_by_one = not (gone and come) and operators and is_arithmetic and is_of_numbers
    # If a number changes too, both tests may be equivalent: `>= 1` and `> 0`.
    is_stricter = operators in ({"<", "<="}, {">", ">="}) and not any(literals)
    if is_stricter or (is_off_by_one and operators <= {"+", "-"}):
        return "bound"
    if is_off_by_one or (gone and come and {"NUMBER"}.issuperset(literals)):
        return "value"
    # Code with a callee, an attribute, a keyword or a constant may occur elsewhere: `x == None`.
    says = kinds.calls | kinds.member | kinds.keyword | kinds.constants
    return "value" if has_same_shape and (is_arithmetic or says.isdisjoint(node.kind for node in old)) else ""


def _has_anchor(nodes: Sequence[Node], kinds: Kinds, bound: set[str]) -> bool:
    """Whether a pattern is specific: it has a name or literal, or two operators, keywords or typed variables.

    Operators and keywords count only in Python, where rules are tried on the standard library. In another language,
    `$A == $B` would match everywhere.
    """
    weight = 0
    for node in nodes:
        if node.kind == "$":
            weight += len(node.text) > 1 and not node.text.startswith("NAME")
        elif node.children or node.kind == "$$$":
            continue
        elif node.kind in kinds.names or node.kind in kinds.literals:
            weight += 2 * (node.text not in kinds.no_words and node.text not in bound)
        elif node.text and node.text not in _WEAK_TOKENS:
            weight += kinds.language == _LANGUAGE
    return weight >= 2


def _leaves(nodes: Sequence[Node]) -> Counter[tuple[str, str]]:
    return Counter((node.kind, node.text) for node in nodes if not node.children)


def _is_method_of_anything(node: Node, kinds: Kinds) -> bool:
    callee = node.children[0] if node.kind in kinds.calls and node.children else node
    return callee.kind in kinds.member and bool(callee.children) and callee.children[0].kind == "$"


def _free_names(patch: Patch, old: Sequence[Node], new: Sequence[Node], kinds: Kinds) -> set[str]:
    """The lower-case names that only the new side uses and that it does not bind, import or call."""
    known = {node.text for node in old} | set(dir(builtins)) | sys.stdlib_module_names | imported_names(patch)
    free: set[str] = set()
    for node in new:
        skipped = {0} if node.kind in kinds.calls | kinds.keyword else set()
        if node.kind in kinds.member:
            skipped = set(range(node.kind not in kinds.qualified, len(node.children)))
        free |= {
            child.text
            for index, child in enumerate(node.children)
            if child.kind in kinds.names and index not in skipped and child.text.islower()
        }
    return free - known - bound_in(new[:1], kinds)


# The standard library as a sample: a rule that would change much of it is too general

_LINES_MAX = 25_000
_STEP = 5
_HITS_PER_LINE_MAX = 10 / 100_000


@cache
def library_sample() -> tuple[Path, ...]:
    """Every fifth module of the standard library, up to about `_LINES_MAX` lines in all."""
    folder = Path(os.__file__).parent
    chosen: list[Path] = []
    lines = 0
    for path in sorted(folder.glob("*.py"))[::_STEP]:
        if lines < _LINES_MAX:
            chosen.append(path)
            lines += path.read_bytes().count(b"\n")
    return tuple(chosen)


class _File:
    """One file of the sample: its words, and its nodes by kind, each as its siblings and its index among them."""

    def __init__(self, path: Path) -> None:
        source = path.read_text("utf-8", "replace")
        tree = parsed(source, _LANGUAGE)
        self.lines = source.count("\n")
        self.words = frozenset(re.findall(r"\w+", source))
        self.by_kind: dict[str, list[tuple[list[Node], int]]] = {}
        for node in () if tree is None else tree.root.walk():
            for index, child in enumerate(node.children):
                self.by_kind.setdefault(child.kind, []).append((node.children, index))


@cache
def _files() -> tuple[_File, ...]:
    return tuple(_File(path) for path in library_sample())


@lru_cache(maxsize=4_096)
def is_too_common(before: str, after: str, language: str) -> bool:
    """Whether a rule would change more than ten places in 100,000 lines of the standard library."""
    form = form_of(before, after, language) if language == _LANGUAGE else None
    if form is None:
        return False
    kinds, first, width = kinds_of(language), form.nodes[0].kind, len(form.nodes)
    allowed = max(1, sum(file.lines for file in _files()) * _HITS_PER_LINE_MAX)
    hits = 0
    for file in _files():
        if form.words <= file.words:
            for siblings, index in file.by_kind.get(first, ()):
                hits += matches(form.nodes, siblings[index : index + width], kinds) is not None
                if hits > allowed:
                    return True
    return False
