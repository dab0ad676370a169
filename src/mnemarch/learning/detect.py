"""Learns rules from patches. Each site tries the rungs of the ladder until a generalisation passes every gate."""

from __future__ import annotations

import builtins
import os
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache, lru_cache
from pathlib import Path

from mnemarch.learning.generalise import LADDER, Generaliser, Rung, bound_in, differing, imported_names, text
from mnemarch.learning.patches import Category, Patch, Site, category_of, lifted, name_of, patch_from, patch_of, tag_of
from mnemarch.learning.rule import CodeRule, apply_rules, changed, form_of, hits_in
from mnemarch.learning.trees import (
    Kinds,
    Node,
    Tree,
    fragments,
    imported_name,
    kinds_of,
    matches,
    origins_of,
    parsed,
    pattern_of,
)
from mnemarch.policy.admission import typed

Texts = tuple[str, str]

_SITES_MAX = 12
_LITERAL_NODES_MAX = 60
_LONG_STRING_CHARS = 8
_WEAK_TOKENS = frozenset({".", ":", "=", "->", "::"})
_ARITHMETIC = frozenset({"<", "<=", ">", ">=", "+", "-", "*", "/", "%", "//", "and", "or", "&&", "||"})
# The language whose standard library is there to try rules on.
_LANGUAGE = "python"


@typed
def detect_code_rules_from_patch(before: str, after: str, language: str = "python") -> list[CodeRule]:
    """The rules that one patch teaches. Together they turn `before` into `after`; if they can't, the list is empty.

    Each rule was tried on its own patch. A Python rule was also tried on a part of the standard library, where it must
    hardly ever apply.
    """
    patch = patch_from(before, after, language)
    sites = [] if patch is None else list({site.key: site for site in patch.sites}.values())
    if patch is None or len(sites) > _SITES_MAX:
        return []
    rules: list[CodeRule] = []
    for site in sites:
        rule = _rule_for(patch, site)
        if rule is None:
            return []
        rules.append(rule)
    made = fragments([apply_rules(rules, before, language), after], language) if rules else []
    return rules if made and patch_of(*made).changes_nothing else []


def verdict(rules: Sequence[CodeRule], before: str, after: str, language: str) -> str:
    """How rules fit a known change: `silent` (no effect), `right`, `partly` (nearer to `after`) or `wrong`.

    Imports don't count, since the rest of the file decides whether one is still used.
    """
    made = apply_rules(rules, before, language)
    if made == before:
        return "silent"
    trees = fragments([made, after], language)
    start = fragments([before, after], language)
    if not trees or not start:
        return "wrong"
    if not patch_of(*trees).sites:
        return "right"
    return "partly" if _distance(*trees) < _distance(*start) else "wrong"


def _distance(one: Tree, other: Tree) -> int:
    ours, theirs = ([(node.kind, node.text) for node in tree.root.walk() if not node.children] for tree in (one, other))
    blocks = SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks()
    return len(ours) + len(theirs) - 2 * sum(block.size for block in blocks)


def _rule_for(patch: Patch, site: Site) -> CodeRule | None:
    """The rule of the first rung of the ladder that gives one."""
    if not site.before or not site.after:
        return None
    rungs = ((rung, _wider(site, rung.wider, patch)) for rung in LADDER)
    tried = (_tried(patch, wide, rung) for rung, wide in rungs if wide is not None)
    # A fixed bound teaches no rule. A fixed value teaches one only if `_may_be_general` allows it.
    mended = _mends(site.before, site.after, patch.before.kinds)
    rules = (rule for rule in tried if rule is not None)
    return None if mended == "bound" else next((rule for rule in rules if not mended or _may_be_general(rule)), None)


def _may_be_general(rule: CodeRule) -> bool:
    """Whether a fixed value may become a rule: it has no variables, or it concerns security, such as a key's size."""
    return rule.category == Category.SECURITY or "$" not in rule.before_pattern


def _joint_rule(one: Patch, other: Patch) -> CodeRule | None:
    """The more general rule that two patches of one site each share."""
    kinds = one.before.kinds
    if not all(site.before and site.after for site in (*one.sites, *other.sites)):
        return None
    for rung in LADDER:
        ours, theirs = _wider(one.sites[0], rung.wider, one), _wider(other.sites[0], rung.wider, other)
        if ours is None or theirs is None:
            continue
        holes = differing(ours, theirs, kinds)
        rule = _tried(one, ours, rung, holes) if holes else None
        if rule is not None and _is_step(rule, other) and not any(hits_in([rule], other.after)):
            return rule
    return None


def joint_rules(patch: Texts, others: Mapping[str, Texts], language: str) -> list[tuple[CodeRule, str]]:
    """The rules that a patch shares with others, each with the other's id. No rule is wrong on any of these patches."""
    new = patch_from(*patch, language)
    if new is None or len(new.sites) != 1:
        return []
    rules: dict[tuple[str, str], tuple[CodeRule, str]] = {}
    for id, texts in others.items():
        other = patch_from(*texts, language)
        rule = _joint_rule(new, other) if other is not None and len(other.sites) == 1 else None
        known = (patch, *others.values())
        if rule is not None and all(verdict([rule], *each, language) != "wrong" for each in known):
            rules.setdefault((rule.before_pattern, rule.after_pattern), (rule, id))
    return list(rules.values())


def _wider(site: Site, steps: int, patch: Patch) -> Site | None:
    for _ in range(steps):
        wider = site.wider()
        if wider is None or not wider.parents:
            return None
        site = lifted(wider, patch.before.kinds)
    return site if site.parents else None


def _tried(patch: Patch, site: Site, rung: Rung, holes: Mapping[int, str] | None = None) -> CodeRule | None:
    """The rule of one rung, if it passes every gate, never changes the new code and does a part of the patch."""
    if site.before[0].start < len(patch.before.prefix) or site.after[0].start < len(patch.after.prefix):
        return None  # The author did not write the text that completes a fragment.
    texts = Generaliser(patch, site, rung, holes).patterns()
    language = patch.before.kinds.language
    if texts is None or (old := pattern_of(texts[0], language)) is None:
        return None
    is_import = site.before[0].kind in patch.before.kinds.imports
    words = set() if is_import else old.words | {imported_name(line) for line in patch.lost}
    origins = origins_of(patch.before, words)
    # Imports that the new side uses and that were there before must be there wherever the rule applies.
    used = set() if is_import or (new := pattern_of(texts[1], language)) is None else new.words
    origins += [line for line in origins_of(patch.after, used) if line not in (*origins, *patch.gained)]
    stay = [line for line in origins if line not in patch.lost]
    before, after = _below(origins, texts[0]), _below([*stay, *patch.gained], texts[1])
    form = form_of(before, after, language)
    if form is None or _refusal(patch, site, form.nodes, form.new, rung):
        return None
    category = category_of(patch, site)
    name, tag = name_of(*texts), tag_of(patch, site)
    rule = CodeRule(
        name=name,
        description=f"{tag}: {name}" if tag else name,
        category=category,
        before_pattern=before,
        after_pattern=after,
        languages=(language,),
    )
    if any(hits_in([rule], patch.after)) or not _is_step(rule, patch) or _is_too_common(before, after, language):
        return None
    return rule


def _below(imports: Sequence[str], pattern: str) -> str:
    return "\n".join(imports) + "\n\n" + pattern if imports else pattern


def _is_step(rule: CodeRule, patch: Patch) -> bool:
    """Whether the rule does some of what the patch did and nothing else."""
    hits = list(hits_in([rule], patch.before))
    made = parsed(changed(patch.before, hits), patch.before.kinds.language) if hits else None
    if made is None:
        return False
    left = {site.key for site in patch_of(made, patch.after).sites}
    return left < {site.key for site in patch.sites}


# The gates: they reject generalisations that would change code which the patch was not about


def _refusal(patch: Patch, site: Site, before: Sequence[Node], after: Sequence[Node], rung: Rung) -> str:
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


def _mends(before: Sequence[Node], after: Sequence[Node], kinds: Kinds) -> str:
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
def _is_too_common(before: str, after: str, language: str) -> bool:
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
