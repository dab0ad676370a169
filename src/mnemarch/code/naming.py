"""The definitions in ast-grep's trees and their names, language by language.

`grammars.json` has the node kinds of each language by what they define, and rules where the kind alone can't tell;
`signatures` has the nodes that are a body, or that say nothing about a call.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from ast_grep_py import SgNode

from mnemarch.model.json_text import from_json
from mnemarch.model.value import Frozen

# The name, another kind than the grammar's (or None), and the nodes that make the signature.
Named = tuple[str, str | None, list[SgNode]]

# A block that only lends its name: Rust's `impl`, Swift's `extension`.
OUTER = "outer"
_NAMES = frozenset(
    {"identifier", "simple_identifier", "type_identifier", "field_identifier", "property_identifier", "constant"}
    | {"private_property_identifier", "namespace_identifier", "qualified_identifier", "name"}
    | {"operator_name", "destructor_name"}
)
_FUNCTION_VALUES = frozenset({"arrow_function", "function_expression", "generator_function", "function"})
_NAMING = frozenset({"variable_declarator", "pair", "assignment_expression"})
_HOLDERS = _NAMING | {"field_definition", "public_field_definition"}


def child_of(node: SgNode, *kinds: str) -> SgNode | None:
    return next((child for child in node.children() if child.kind() in kinds), None)


def named_in(node: SgNode) -> list[SgNode]:
    """The children that are no mere punctuation."""
    return [child for child in node.children() if child.is_named()]


def field_of(node: SgNode, *names: str) -> SgNode | None:
    """The first of these fields that the node has."""
    return next((field for name in names if (field := node.field(name)) is not None), None)


def is_around(node: SgNode) -> bool:
    """Whether what is inside is named after it: C's `typedef struct point { int x; } Point` has `point.x`."""
    shape = node.field("type") if node.kind() == "type_definition" else None
    return shape is None or shape.field("name") is None


def by_field(node: SgNode) -> Iterator[Named]:
    """Definitions whose names are in the field `name`, or in declarators behind a type, or are the first identifier."""
    declaring = child_of(node, "variable_declaration") or node
    children = declaring.children()
    declarators = [item for item in children if item.kind() == "variable_declarator"]
    for item in declarators:
        name = item.field("name") or child_of(item, "identifier")
        if name is not None:
            yield name.text(), _if_upper(name.text()), [*children[: children.index(declarators[0])], name]
    names = [item for item in node.field_children("name") if item.is_named()] or [
        item for item in node.children() if item.kind() in _NAMES
    ][:1]
    for item in names if not declarators else ():
        yield item.text(), None, [node]


def _if_upper(name: str) -> str | None:
    return "constant" if name.isupper() else None


def in_python(node: SgNode) -> Iterator[Named]:
    kind, around = node.kind(), node.parent()
    if kind == "type_alias_statement":
        name = named_in(node)[0].text().partition("[")[0].strip()
        if name.isidentifier():  # `type(a).b = c` is taken for one.
            yield name, None, [node]
    elif "import" in kind:
        for item in node.field_children("name"):
            name = (item.field("alias") or item).text()
            if "." not in name:
                yield name, None, [node]
    elif kind in {"function_definition", "class_definition"}:
        yield from by_field(node)
    elif kind == "assignment" and (
        around is None or around.kind() != "assignment"
    ):  # `a = b = 1` is told by the outer one.
        for target in python_targets(node):
            names = named_in(target) if "pattern" in target.kind() else [target]
            for item in names:
                if item.kind() == "identifier":
                    yield item.text(), _if_upper(item.text()), [node]


def python_targets(node: SgNode) -> Iterator[SgNode]:
    """What is assigned to: `a` and `b` of `a = b = 1`."""
    inner: SgNode | None = node
    while inner is not None and inner.kind().endswith("assignment"):
        left = inner.field("left")
        if left is not None:
            yield left
        inner = inner.field("right")


def python_attributes(node: SgNode) -> Iterator[str]:
    """The `name` of `self.name = ...`, if that is at the top of `__init__`."""
    statement = node.parent()
    block = statement.parent() if statement is not None else None
    function = block.parent() if block is not None else None
    name = function.field("name") if function is not None else None
    if name is None or name.text() != "__init__" or "assignment" not in node.kind():
        return
    for target in python_targets(node):
        owner, attribute = target.field("object"), target.field("attribute")
        if owner is not None and attribute is not None and owner.text() == "self":
            yield attribute.text()


def in_javascript(node: SgNode) -> Iterator[Named]:
    kind, around = node.kind(), node.parent()
    if kind in _HOLDERS:
        yield from _variable(node, field_of(node, "name", "property", "key", "left"), field_of(node, "value", "right"))
    elif kind == "property_identifier":
        yield node.text(), None, [node]
    elif kind == "export_specifier":
        name = field_of(node, "alias", "name")
        if name is not None:
            yield name.text(), None, [name]
    elif kind == "module" and child_of(node, "string") is not None:
        return
    elif kind != "class" or around is None or around.kind() not in _NAMING:
        yield from by_field(node)


def _variable(node: SgNode, name: SgNode | None, content: SgNode | None) -> Iterator[Named]:
    if name is None:
        return
    if name.kind() in {"object_pattern", "array_pattern"}:
        for item in name.children():
            bound = item.field("value") if item.kind() == "pair_pattern" else item
            if bound is not None and bound.kind() in {"identifier", "shorthand_property_identifier_pattern"}:
                yield bound.text(), None, [bound]
        return
    text = name.text().strip("'\"").replace(".prototype.", ".").removeprefix("module.exports").removeprefix("exports")
    text = text.removeprefix(".")
    if text.startswith("this."):
        return
    if content is not None and content.kind() in _FUNCTION_VALUES:
        yield text, "function", [content]
    elif content is not None and content.kind() == "class":
        yield text, "class", [content]
    else:
        around = node.parent()
        is_constant = text.isupper() or (around is not None and child_of(around, "const") is not None)
        header = name if node.kind() in {"pair", "assignment_expression"} else node
        yield text, "constant" if is_constant else None, [header]


def in_go(node: SgNode) -> Iterator[Named]:
    receiver, shape = node.field("receiver"), node.field("type")
    owner = receiver.find(kind="type_identifier") if receiver is not None else None
    kind = {"struct_type": "struct", "interface_type": "interface"}.get(shape.kind()) if shape is not None else None
    for item in node.field_children("name"):
        if node.kind() not in {"const_spec", "var_spec", "field_declaration"}:
            prefix = "" if owner is None else f"{owner.text()}."
            yield prefix + item.text(), kind or ("method" if prefix else None), [node]
        elif item.is_named():
            yield item.text(), None, [item, *([shape] if shape is not None else [])]


def in_rust(node: SgNode) -> Iterator[Named]:
    if node.kind() != "impl_item":
        yield from by_field(node)
        return
    owner = node.field("type")
    name = owner if owner is None or not owner.children() else owner.find(kind="type_identifier")
    if name is not None:
        yield name.text(), None, [node]


def in_c(node: SgNode) -> Iterator[Named]:
    around = node.parent()
    is_template = around is not None and around.kind() == "template_declaration"
    parameters = around.field("parameters") if around is not None and is_template else None
    before = [parameters] if parameters is not None else []
    if node.kind() in {"struct_specifier", "union_specifier", "class_specifier", "enum_specifier"}:
        name = node.field("name")
        # Without a body it is only mentioned.
        if name is not None and node.field("body") is not None:
            yield name.text(), None, [*before, node]
        return
    declarators = node.field_children("declarator")
    if not declarators:
        yield from by_field(node)
        return
    children = node.children()
    before += children[: children.index(declarators[0])]
    for item in declarators:
        name, is_function = _declared(item)
        if name is not None:
            kind = "function" if is_function and node.kind() != "type_definition" else None
            yield name.text(), kind, [*before, item]


def _declared(declarator: SgNode) -> tuple[SgNode | None, bool]:
    """The name inside a C declarator, and whether it is a function's."""
    node: SgNode | None = declarator
    is_function = False
    while node is not None and node.kind() not in _NAMES:
        inner = node.field("declarator") or next(iter(named_in(node)[::-1]), None)
        is_function = node.kind() == "function_declarator" and inner is not None and inner.kind() in _NAMES
        node = inner
    return node, is_function


def in_ruby(node: SgNode) -> Iterator[Named]:
    kind = node.kind()
    name = node.field("left" if kind == "assignment" else "name")
    if kind == "call":
        arguments = node.field("arguments")
        for item in named_in(arguments) if arguments is not None else ():
            if item.kind() == "simple_symbol":
                yield item.text().removeprefix(":"), None, [item]
    elif kind == "assignment":
        if name is not None and name.kind() == "constant":
            yield name.text(), None, [name]
    elif kind == "singleton_method":
        owner = node.field("object")
        if owner is not None and name is not None:
            yield name.text() if owner.kind() == "self" else f"{owner.text()}.{name.text()}", None, [node]
    elif kind != "singleton_class":
        yield from by_field(node)


def in_kotlin(node: SgNode) -> Iterator[Named]:
    kind = node.kind()
    if kind == "secondary_constructor":
        yield "constructor", None, [node]
    elif kind == "property_declaration":
        around = child_of(node, "multi_variable_declaration") or node
        for item in around.children():
            name = child_of(item, "simple_identifier") if item.kind() == "variable_declaration" else None
            if name is not None:
                yield name.text(), _if_upper(name.text()), [item]
    elif kind == "class_declaration":
        word = child_of(node, "interface") or child_of(node, "enum")
        yield from ((name, word.kind() if word is not None else None, nodes) for name, _, nodes in by_field(node))
    elif kind != "companion_object" and (kind != "class_parameter" or child_of(node, "binding_pattern_kind")):
        yield from by_field(node)


_NAMED = {
    "python": in_python,
    "javascript": in_javascript,
    "typescript": in_javascript,
    "go": in_go,
    "rust": in_rust,
    "c": in_c,
    "cpp": in_c,
    "ruby": in_ruby,
    "kotlin": in_kotlin,
}


class Grammar(Frozen):
    """The definitions of one language: what each node kind defines, what to look for, and the names of a node."""

    kinds: dict[str, str]
    wanted: list[Any]
    named: Callable[[SgNode], Iterator[Named]]
    variables_hold_functions: bool


@cache
def table() -> dict[str, Any]:
    with open(os.path.join(os.path.dirname(__file__), "grammars.json"), encoding="utf-8") as file:
        return from_json(file.read())  # type: ignore[no-any-return]


@cache
def grammar_of(language: str) -> Grammar:
    """The grammar of a language. `wanted` has errors of syntax among it: one walk through the tree finds all."""
    language = "typescript" if language == "tsx" else language
    row = table()[language]
    kinds = {kind: meaning for meaning, names in row["kinds"].items() for kind in names.split()}
    rules = row.get("rules", [])
    unruled = {"ERROR", *kinds}.difference(rule["kind"] for rule in rules)
    wanted = [*({"kind": kind} for kind in sorted(unruled)), *rules]
    return Grammar(kinds, wanted, _NAMED.get(language, by_field), row.get("variables_hold_functions", False))
