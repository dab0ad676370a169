"""A code rule: two patterns, and what they do to a source text."""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from mnemarch.learning.generalise import bound_in
from mnemarch.learning.trees import (
    VARIABLE,
    Bound,
    Kinds,
    Node,
    Tree,
    filled,
    fragments,
    import_lines,
    imported_name,
    kinds_of,
    matches,
    parsed,
    pattern_of,
    unwrapped,
    with_bound,
    with_imports,
    without_imports,
)
from mnemarch.model.value import Frozen
from mnemarch.policy.admission import typed

PASSES_MAX = 3
# Before Python 3.12, none of these characters is allowed in the braces of an f-string.
_UNFIT_INSIDE = frozenset("\"'\\\n")
TAGS = ("api", "types", "correctness")


class Hit(NamedTuple):
    """A place where a rule applies: its offsets in the text, and the new code as text and as nodes.

    `replaced` are the nodes that are there now.
    """

    start: int
    end: int
    text: str
    rule: CodeRule
    replaced: tuple[Node, ...]
    nodes: tuple[Node, ...]


class Form(NamedTuple):
    """A parsed rule: the imports of its names, the nodes to find, the text to write, the imports to add and to remove.

    `keywords` are the keyword arguments that only the new side passes. `unbound` are the imported names that only the
    old side has. `enclosed` are the variables that move into a function or out of one. `formatted` are the untyped
    variables right of `%`. `jumps` are the kinds of nodes that only the new side has and that need a function or a loop
    around them. `fresh` are the names that only the new side binds. `is_python` says whether the running Python can
    parse the new side.
    """

    origins: tuple[frozenset[str], ...]
    nodes: tuple[Node, ...]
    words: frozenset[str]
    template: str
    variables: tuple[str, ...]
    holders: tuple[str, ...]
    new: tuple[Node, ...]
    needed: tuple[str, ...]
    unneeded: tuple[str, ...]
    keywords: frozenset[str]
    unbound: frozenset[str]
    enclosed: frozenset[str]
    formatted: frozenset[str]
    jumps: frozenset[str]
    fresh: frozenset[str]
    is_python: bool


class CodeRule(Frozen):
    """A rule that a patch taught (M21): code of the form `before_pattern` became `after_pattern`."""

    name: str
    category: str
    before_pattern: str
    after_pattern: str
    description: str = ""
    pattern_type: str = "ast"
    languages: tuple[str, ...] = ("python",)
    id: str = ""
    project_id: str = "global"
    confidence: float = 0.5
    observation_count: int = 1
    success_count: int = 0
    failure_count: int = 0
    min_confidence_threshold: float = 0.3
    promotion_threshold: float = 0.8
    created_at: datetime | None = None
    updated_at: datetime | None = None

    @property
    def tag(self) -> str:
        """A tag beside the category: `api`, `types` or `correctness`; empty if there is none."""
        return self.description.partition(":")[0] if self.description.partition(":")[0] in TAGS else ""

    @property
    def status(self) -> str:
        """`trusted` rules are applied, `candidate` ones are only checked, `weak` ones are neither (M18)."""
        if self.confidence >= self.promotion_threshold:
            return "trusted"
        return "weak" if self.confidence < self.min_confidence_threshold else "candidate"

    @property
    def form(self) -> Form:
        """The parsed rule, in its first language."""
        form = form_of(self.before_pattern, self.after_pattern, self.languages[0])
        assert form is not None
        return form

    @typed
    def apply(self, source: str) -> str:
        """The text with the rule applied wherever it fits; unchanged where it fits nowhere."""
        return apply_rules([self], source, self.languages[0])


@lru_cache(maxsize=4_096)
def form_of(before: str, after: str, language: str) -> Form | None:
    """The parsed rule of two patterns. None if they don't parse, or only the new one has some variable."""
    kinds = kinds_of(language)
    (origins, before), (imports, after) = imports_apart(before, language), imports_apart(after, language)
    old, new = pattern_of(before, language), pattern_of(after, language)
    if old is None or new is None or not old.nodes or not new.nodes:
        return None
    variables = tuple(at[1] or at[2] for at in VARIABLE.finditer(after))
    if not {node.text for root in old.nodes for node in root.walk() if node.kind in {"$", "$$$"}}.issuperset(variables):
        return None
    nodes, made = old.nodes, new.nodes
    if len(nodes) == len(made) == 1 and nodes[0].kind in kinds.statement and made[0].kind in kinds.statement:
        nodes, made = tuple(nodes[0].children[:1]), tuple(made[0].children[:1])
        after = after.rstrip().removesuffix(";")
    named = tuple(frozenset(re.findall(r"\w+", line)) - kinds.no_words for line in origins)
    needed = tuple(line for line in imports if line not in origins)
    unneeded = tuple(line for line in origins if line not in imports)
    keywords = [_keywords((node for root in side for node in root.walk()), kinds) for side in (nodes, made)]
    unbound = _bound_by(old.nodes, before, kinds) - _bound_by(new.nodes, after, kinds)
    gained = keywords[1] - keywords[0]
    sample = VARIABLE.sub(lambda at: f"*{at[1]}" if at[1] else f"{at[2]}", after)
    readable = language == "python" and _is_python(sample, ast.PyCF_ONLY_AST)
    enclosed = _variables_in(made, kinds.closures) ^ _variables_in(nodes, kinds.closures)
    right = (node.children[2].text for root in nodes for node in root.walk() if _is_formatting(node))
    formatted = frozenset(name for name in right if len(name.partition("_")[0]) == 1)  # Untyped: it may be a tuple.
    old_kinds, new_kinds = ({node.kind for root in side for node in root.walk()} for side in (nodes, made))
    jumps = (kind for kind in kinds.needs if kind in new_kinds - old_kinds)
    loose = frozenset(kind for kind in jumps if new_kinds.isdisjoint(kinds.needs[kind][0].split()))
    fresh = frozenset(bound_in(made, kinds)) - old.words
    more = (new.holders, made, needed, unneeded, gained, unbound, enclosed, formatted, loose, fresh, readable)
    return Form(named, nodes, old.words, after, variables, *more)


def _variables_in(nodes: Sequence[Node], kinds: frozenset[str]) -> frozenset[str]:
    """The variables inside nodes of these kinds."""
    around = (node for root in nodes for node in root.walk() if node.kind in kinds)
    return frozenset(leaf.text for node in around for leaf in node.walk() if leaf.kind in {"$", "$$$"})


def _is_formatting(node: Node) -> bool:
    """Whether a node is `"..." % $A`, which unpacks a tuple."""
    parts = node.children
    return node.kind == "binary_operator" and len(parts) == 3 and parts[1].text == "%" and parts[2].kind == "$"


def imports_apart(pattern: str, language: str) -> tuple[tuple[str, ...], str]:
    """The imports above a pattern, and the pattern without them."""
    head, blank, rest = pattern.partition("\n\n")
    tree = parsed(head, language) if blank else None
    if tree is None or not all(node.kind in tree.kinds.imports for node in tree.root.children):
        return (), pattern
    return tuple(head.splitlines()), rest


@typed
def apply_rules(rules: Sequence[CodeRule], source: str, language: str, *, is_file: bool = False) -> str:
    """The text with all rules applied: outermost first, without overlaps, in at most three passes. It must still parse.

    With `is_file` the text is a whole file. It must also compile, and a place stays unchanged if a comment would be
    lost.
    """
    for _ in range(PASSES_MAX):
        trees = fragments([source], language)
        if not trees:
            return source
        [tree] = trees
        hits = _sound(tree, list(hits_in(rules, tree, is_file=is_file)))
        text = unwrapped(changed(tree, hits), tree) if hits else source
        is_kept = not all(hit.rule.form.is_python for hit in hits) or _is_still_python(source, text, is_file=is_file)
        if text == source or not fragments([text], language) or not is_kept:
            return source
        source = text
    return source


def _sound(tree: Tree, hits: list[Hit]) -> list[Hit]:
    """The hits whose new text parses as the rule means it, with parentheses if an operator around it needs them."""
    if not hits or _reads_as_meant(tree, hits):
        return hits
    either = ((hit, hit._replace(text=f"({hit.text})")) for hit in hits)
    sound = (next((form for form in forms if _reads_as_meant(tree, [form])), None) for forms in either)
    return [hit for hit in sound if hit is not None]


def _reads_as_meant(tree: Tree, hits: Sequence[Hit]) -> bool:
    if any(node.kind in tree.kinds.imports for hit in hits for node in (*hit.replaced, *hit.nodes)):
        return True  # No operator is around an import.
    made = parsed(changed(tree, hits), tree.kinds.language)
    places = {id(hit.replaced[0]): hit for hit in hits}
    return made is not None and without_imports(made).hash == _replacing(without_imports(tree), places).hash


def _replacing(node: Node, places: dict[int, Hit]) -> Node:
    """The node with the hits applied below it. `places` has each hit by the id of its first node."""
    children: list[Node] = []
    index = 0
    while index < len(node.children):
        hit = places.get(id(node.children[index]))
        children += [_replacing(node.children[index], places)] if hit is None else hit.nodes
        index += 1 if hit is None else len(hit.replaced)
    return Node(node.kind, node.text, children, node.start, node.end, node.named)


def changed(tree: Tree, hits: Sequence[Hit]) -> str:
    """The text of a tree with the hits applied."""
    text = tree.source
    for hit in sorted(hits, key=lambda hit: -hit.start):
        text = text[: hit.start] + hit.text + text[hit.end :]
    forms = [hit.rule.form for hit in hits]
    if not any(form.needed or form.unneeded for form in forms):
        return text
    after = parsed(text, tree.kinds.language)
    if after is None:
        return text
    after.prefix = tree.prefix
    needed = [line for form in forms for line in form.needed]
    return with_imports(after, needed, [line for form in forms for line in form.unneeded])


def hits_in(rules: Sequence[CodeRule], tree: Tree, *, is_file: bool = False) -> Iterator[Hit]:
    """The places where rules apply in one tree, outermost first, without overlaps. Earlier rules win."""
    ready: dict[str, list[tuple[CodeRule, Form]]] = {}
    for rule in rules:
        form = form_of(rule.before_pattern, rule.after_pattern, tree.kinds.language)
        if form is not None and all(word in tree.source for word in form.words) and _may_mean(form, tree):
            ready.setdefault(form.nodes[0].kind, []).append((rule, form))
    hits = _hits(tree.root, tree, ready) if ready else iter(())
    fitting = (hit for hit in hits if _has_room(tree, hit, is_file=is_file))
    return (hit for hit in fitting if not is_file or _keeps_comments(tree, hit))


def _may_mean(form: Form, tree: Tree) -> bool:
    """Whether the rule's names can mean the same here: a text with imports must have the imports of the rule."""
    imported = tree.imported()
    return not imported or all(any(origin <= names for names in imported) for origin in form.origins)


def _hits(node: Node, tree: Tree, ready: dict[str, list[tuple[CodeRule, Form]]]) -> Iterator[Hit]:
    children, index = node.children, 0
    while index < len(children):
        child = children[index]
        for rule, form in ready.get(child.kind, ()):
            there = children[index : index + len(form.nodes)]
            if len(form.nodes) > 1 and node.kind not in tree.kinds.blocks:
                continue
            bound = matches(form.nodes, there, tree.kinds)
            if bound is None or not _stays_valid(form, bound, tree):
                continue
            text = _written(form, bound, tree, node, child)
            hit = Hit(child.start, there[-1].end, text, rule, tuple(there), tuple(with_bound(form.new, bound)))
            if not form.is_python or _is_still_python(tree.source[hit.start : hit.end], hit.text):
                yield hit
                index += len(there)
                break
        else:
            yield from _hits(child, tree, ready)
            index += 1


def _has_room(tree: Tree, hit: Hit, *, is_file: bool) -> bool:
    """Whether each new jump has its function or loop around it, and each fresh name is unused in its scope.

    A part of a file passes where the code around it is unknown.
    """
    kinds, jumps, fresh = tree.kinds, hit.rule.form.jumps, hit.rule.form.fresh if is_file else frozenset()
    around = [tree.root, *_around(tree.root, hit)] if jumps or fresh else []
    scope = next((node for node in reversed(around) if node.kind in kinds.scopes), tree.root)
    if fresh and not fresh.isdisjoint(leaf.text for leaf in scope.walk() if leaf.kind in kinds.names):
        return False
    for jump in jumps:
        holders, says = kinds.needs[jump][0].split(), kinds.needs[jump][1]
        inner = next((node for node in reversed(around) if node.kind in kinds.scopes.union(holders)), None)
        if inner is None or inner.start < len(tree.prefix):
            if is_file:
                return False
        elif inner.kind not in holders or not re.search(says, tree.text_of(inner)):
            return False
    return True


def _around(node: Node, hit: Hit) -> Iterator[Node]:
    """The nodes below this one that contain a hit, outermost first."""
    for child in node.children:
        if child.start <= hit.start and hit.end <= child.end and child is not hit.replaced[0]:
            yield child
            yield from _around(child, hit)


def _keeps_comments(tree: Tree, hit: Hit) -> bool:
    """Whether every comment of the old text is in the new one. A rule must not drop what a person wrote."""
    comments = [tree.source[start:end] for start, end in tree.comments if hit.start <= start < hit.end]
    return all(comment in hit.text for comment in comments)


def _is_still_python(before: str, after: str, *, is_file: bool = False) -> bool:
    """Whether Python parses the new text, if it parsed the old text. Tree-sitter accepts more than Python does.

    A whole file must also compile, since Python's parser accepts an `await` anywhere.
    """
    ways = (ast.PyCF_ONLY_AST, 0) if is_file else (ast.PyCF_ONLY_AST,)
    return all(_is_python(after, way) or not _is_python(before, way) for way in ways)


def _is_python(text: str, way: int) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(textwrap.dedent(text), "<rule>", "exec", way, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _stays_valid(form: Form, bound: Bound, tree: Tree) -> bool:
    """Whether the new code means what it meant in the example. No argument is passed twice; each name has its import.

    A quote would end an f-string around it. A `return` must not move into a function or out of one. A tuple right of
    `%` would be several values. A block that uses a name which another variable stands for may depend on its place.
    """
    kinds = tree.kinds
    moved = (inner for name in form.enclosed for node in bound[name] for inner in node.walk())
    if any(node.kind in kinds.jumps for node in moved):
        return False
    if any(kinds.literals.get(bound[name][0].kind) == "TUPLE" for name in form.formatted):
        return False
    passed = [node for nodes in bound.values() for node in nodes] if form.keywords else []
    if any(node.kind in kinds.spread for node in passed) or form.keywords & _keywords(passed, kinds):
        return False
    if form.unbound and form.unbound & tree.used():
        return False
    holders = zip(form.variables, form.holders, strict=False)
    inside = [node for name, holder in holders if holder in kinds.holds_code for node in bound[name]]
    if kinds.language == "python" and any(_UNFIT_INSIDE.intersection(tree.text_of(node)) for node in inside):
        return False
    single = {nodes[0].text for name, nodes in bound.items() if not name.startswith(("BODY", "ARGS", "NAME"))}
    blocks = [node for name, nodes in bound.items() if name.startswith("BODY") for node in nodes]
    return single.isdisjoint(leaf.text for node in blocks for leaf in node.walk() if leaf.kind in kinds.names)


def _keywords(nodes: Iterable[Node], kinds: Kinds) -> frozenset[str]:
    return frozenset(node.children[0].text for node in nodes if node.kind in kinds.keyword)


def _bound_by(nodes: Sequence[Node], text: str, kinds: Kinds) -> frozenset[str]:
    """The names that import statements bind."""
    statements = [text[node.start : node.end] for node in nodes if node.kind in kinds.imports]
    return frozenset(imported_name(line) for statement in statements for line in import_lines(statement))


def _written(form: Form, bound: Bound, tree: Tree, parent: Node, node: Node) -> str:
    kinds = tree.kinds
    text = filled(form.template, form.holders, bound, tree, node.start)
    if parent.kind in kinds.holds_code:
        return " " + text if text.startswith("{") else text
    is_loose = node.kind in kinds.atomic and form.new[0].kind not in kinds.atomic
    is_roomy = parent.kind in kinds.roomy or parent.kind in kinds.blocks or parent.kind in kinds.arguments
    return f"({text})" if is_loose and not is_roomy and form.new[0].kind not in kinds.statement else text
