"""What sources in other languages define: which nodes of ast-grep's trees are definitions, and how they are named."""

from __future__ import annotations

from functools import cache

from mnemarch.code.symbol import COMPUTED, VALUE_CHARS_MAX
from mnemarch.lazy import Lazy
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator
    from typing import Any

    from ast_grep_py import SgNode

    # The name, another kind than the table's (or None), and the nodes that make the signature.
    Named = tuple[str, str | None, list[SgNode]]
else:
    re = Lazy("re")

# Not symbols: `OUTER` only lends its name (an impl block), `NAMELESS` is a function without a name.
OUTER, NAMELESS = "outer", "nameless"
FUNCTIONS = frozenset({"function", "method", NAMELESS})
TYPES = frozenset({"class", "struct", "interface", "trait", "enum", OUTER})
VARIABLES = frozenset({"variable", "constant", "field", "import"})

_NAMES = frozenset(
    {"identifier", "simple_identifier", "type_identifier", "field_identifier", "property_identifier", "constant"}
    | {"private_property_identifier", "namespace_identifier", "qualified_identifier", "name"}
    | {"operator_name", "destructor_name"}
)
_FUNCTION_VALUES = frozenset({"arrow_function", "function_expression", "generator_function", "function"})


@value
class Grammar:
    """The definitions of one language: node kinds with what they define, rules for what a kind alone can't tell."""

    name: str
    kinds: dict[str, str]
    rules: tuple[Any, ...]
    named: Callable[[SgNode], Iterator[Named]]
    variables_hold_functions: bool = False

    def wanted(self) -> list[Any]:
        """What to look for, errors of syntax among it: one walk through the tree finds all."""
        told_by_rule = {rule["kind"] for rule in self.rules}
        kinds = ("ERROR", *(kind for kind in self.kinds if kind not in told_by_rule))
        return [*({"kind": kind} for kind in kinds), *self.rules]


def grammar_of(language: str) -> Grammar | None:
    return _GRAMMARS.get(language)


def child_of(node: SgNode, *kinds: str) -> SgNode | None:
    return next((child for child in node.children() if child.kind() in kinds), None)


def named_in(node: SgNode) -> list[SgNode]:
    """The children that are no mere punctuation."""
    return [child for child in node.children() if child.is_named()]


def value_of(node: SgNode) -> str:
    """What a variable is given, if it stands there for itself (`3`, `"strict"`, `true`); else as `Symbol` says."""
    held = node.field("value") or node.field("right")
    for holder in (node, child_of(node, "variable_declarator", "init_declarator")):
        sign = child_of(holder, "=") if holder is not None and held is None else None
        held = sign.next() if sign is not None else held
    if held is None:
        return ""
    text = held.text().strip()
    if len(text) > VALUE_CHARS_MAX or _literal().fullmatch(text) is None:
        return COMPUTED
    return f'"{text[1:-1]}"' if text[0] in "'\"" else text


@cache
def _literal() -> re.Pattern[str]:
    """A number, a text with nothing to work out in it, or a word that all languages have for such values."""
    return re.compile(r"""[-+]?\.?\d[\w.]*|"[^"\\\n$#{]*"|'[^'\\\n]*'|[Tt]rue|[Ff]alse|null|nil""", re.ASCII)


def is_around(node: SgNode) -> bool:
    """Whether what is inside is named after it: C's `typedef struct point { int x; } Point` has `point.x`."""
    shape = node.field("type") if node.kind() == "type_definition" else None
    return shape is None or shape.field("name") is None


def _by_field(node: SgNode) -> Iterator[Named]:
    """Definitions whose names are in the field `name`, or are the first identifier."""
    names = [item for item in node.field_children("name") if item.is_named()] or [
        item for item in node.children() if item.kind() in _NAMES
    ][:1]
    for item in names:
        yield item.text(), None, [node]


def _in_javascript(node: SgNode) -> Iterator[Named]:
    kind = node.kind()
    if kind == "variable_declarator":
        yield from _variable(node, node.field("name"), node.field("value"))
    elif kind in {"field_definition", "public_field_definition"}:
        yield from _variable(node, node.field("name") or node.field("property"), node.field("value"))
    elif kind == "pair":
        yield from _variable(node, node.field("key"), node.field("value"))
    elif kind == "assignment_expression":
        yield from _variable(node, node.field("left"), node.field("right"))
    elif kind == "property_identifier":
        yield node.text(), None, [node]
    elif kind == "module" and child_of(node, "string") is not None:
        return
    elif kind == "export_specifier":
        name = node.field("alias") or node.field("name")
        if name is not None:
            yield name.text(), None, [name]
    elif kind == "class":
        around = node.parent()
        if around is None or around.kind() not in {"variable_declarator", "pair", "assignment_expression"}:
            yield from _by_field(node)
    else:
        yield from _by_field(node)


def _variable(node: SgNode, name: SgNode | None, content: SgNode | None) -> Iterator[Named]:
    if name is None:
        return
    if name.kind() in {"object_pattern", "array_pattern"}:
        for item in name.children():
            bound = item.field("value") if item.kind() == "pair_pattern" else item
            if bound is not None and bound.kind() in {"identifier", "shorthand_property_identifier_pattern"}:
                yield bound.text(), None, [bound]
        return
    made = content.kind() if content is not None else ""
    text = name.text().strip("'\"").replace(".prototype.", ".").removeprefix("module.exports").removeprefix("exports")
    text = text.removeprefix(".")
    if text.startswith("this."):
        return
    if content is not None and made in _FUNCTION_VALUES:
        yield text, "function", [content]
    elif content is not None and made == "class":
        yield text, "class", [content]
    else:
        around = node.parent()
        first = around.child(0) if around is not None else None
        is_constant = text.isupper() or (first is not None and first.kind() == "const")
        header = name if node.kind() in {"pair", "assignment_expression"} else node
        yield text, "constant" if is_constant else None, [header]


def _in_go(node: SgNode) -> Iterator[Named]:
    receiver = node.field("receiver")
    owner = receiver.find(kind="type_identifier") if receiver is not None else None
    method = "method" if owner is not None else None
    shape = node.field("type")
    as_type = {"struct_type": "struct", "interface_type": "interface"}.get(shape.kind()) if shape is not None else None
    for item in node.field_children("name"):
        if node.kind() in {"const_spec", "var_spec", "field_declaration"}:
            if item.is_named():
                yield item.text(), None, [item, *([shape] if shape is not None else [])]
        else:
            yield item.text() if owner is None else f"{owner.text()}.{item.text()}", as_type or method, [node]


def _in_rust(node: SgNode) -> Iterator[Named]:
    if node.kind() != "impl_item":
        yield from _by_field(node)
        return
    owner = node.field("type")
    named = owner if owner is None or not owner.children() else owner.find(kind="type_identifier")
    if named is not None:
        yield named.text(), None, [node]


def _in_java(node: SgNode) -> Iterator[Named]:
    declarators = node.field_children("declarator")
    for item in declarators:
        name, kind = item.field("name"), node.field("type")
        if name is not None and kind is not None:
            yield name.text(), "constant" if name.text().isupper() else None, [kind, name]
    if not declarators:
        yield from _by_field(node)


def _in_csharp(node: SgNode) -> Iterator[Named]:
    if node.kind() in {"field_declaration", "event_field_declaration"}:
        declared = child_of(node, "variable_declaration")
        children = named_in(declared) if declared is not None else []
        for item in children[1:]:
            name = item.field("name") or child_of(item, "identifier")
            if name is not None:
                yield name.text(), None, [children[0], name]
    elif node.kind() == "operator_declaration":
        sign = node.field("operator")
        yield f"operator{sign.text() if sign is not None else ''}", None, [node]
    else:
        yield from _by_field(node)


def _in_c(node: SgNode) -> Iterator[Named]:
    if node.kind() in {"struct_specifier", "union_specifier", "class_specifier", "enum_specifier"}:
        name = node.field("name")
        # Without a body it is only mentioned.
        if name is not None and node.field("body") is not None:
            yield name.text(), None, [*_template(node), node]
        return
    declarators = node.field_children("declarator")
    if not declarators:
        yield from _by_field(node)
        return
    before: list[SgNode] = []
    for child in node.children():
        if child in declarators:
            break
        before.append(child)
    for item in declarators:
        name, is_function = _declared(item)
        if name is not None:
            kind = "function" if is_function and node.kind() != "type_definition" else None
            yield name.text(), kind, [*_template(node), *before, item]


def _template(node: SgNode) -> list[SgNode]:
    around = node.parent()
    parameters = around.field("parameters") if around is not None and around.kind() == "template_declaration" else None
    return [parameters] if parameters is not None else []


def _declared(declarator: SgNode) -> tuple[SgNode | None, bool]:
    """The name inside a C declarator, and whether it is a function's."""
    node: SgNode | None = declarator
    is_function = False
    while node is not None and node.kind() not in _NAMES:
        inner = node.field("declarator") or next(iter(named_in(node)[::-1]), None)
        is_function = node.kind() == "function_declarator" and inner is not None and inner.kind() in _NAMES
        node = inner
    return node, is_function


def _in_ruby(node: SgNode) -> Iterator[Named]:
    kind = node.kind()
    if kind == "singleton_class":
        return
    if kind == "call":
        arguments = node.field("arguments")
        for item in named_in(arguments) if arguments is not None else ():
            if item.kind() == "simple_symbol":
                yield item.text().removeprefix(":"), None, [item]
    elif kind == "assignment":
        name = node.field("left")
        if name is not None and name.kind() == "constant":
            yield name.text(), None, [name]
    elif kind == "singleton_method":
        owner, name = node.field("object"), node.field("name")
        if owner is not None and name is not None:
            yield name.text() if owner.kind() == "self" else f"{owner.text()}.{name.text()}", None, [node]
    else:
        yield from _by_field(node)


def _in_kotlin(node: SgNode) -> Iterator[Named]:
    kind = node.kind()
    if kind == "companion_object":
        return
    if kind == "secondary_constructor":
        yield "constructor", None, [node]
    elif kind == "class_parameter":
        if child_of(node, "binding_pattern_kind") is not None:
            yield from _by_field(node)
    elif kind == "property_declaration":
        around = child_of(node, "multi_variable_declaration") or node
        for item in around.children():
            name = child_of(item, "simple_identifier") if item.kind() == "variable_declaration" else None
            if name is not None:
                yield name.text(), "constant" if name.text().isupper() else None, [item]
    elif kind == "class_declaration" and child_of(node, "interface", "enum") is not None:
        what = "interface" if child_of(node, "interface") is not None else "enum"
        yield from ((name, what, nodes) for name, _, nodes in _by_field(node))
    else:
        yield from _by_field(node)


def _in_swift(node: SgNode) -> Iterator[Named]:
    kind = node.kind()
    what = node.field("declaration_kind")
    names = [item for item in node.field_children("name") if item.is_named()]
    if kind in {"subscript_declaration", "init_declaration"}:
        yield kind.removesuffix("_declaration"), None, [node]
    elif kind in {"property_declaration", "protocol_property_declaration", "enum_entry"}:
        for item in names:
            name = item.text().split()[-1]
            yield name, "constant" if name.isupper() else None, [node if len(names) == 1 else item]
    elif what is not None:
        as_type = {"extension": OUTER, "actor": "class", "protocol": "interface"}.get(what.text(), what.text())
        yield from ((name, as_type, nodes) for name, _, nodes in _by_field(node))
    else:
        # A result's type is in a field of the same name.
        yield from list(_by_field(node))[:1]


def _in_scala(node: SgNode) -> Iterator[Named]:
    pattern = node.field("pattern")
    if pattern is None:
        yield from _by_field(node)
        return
    for name in [pattern] if pattern.kind() == "identifier" else pattern.children():
        if name.kind() == "identifier":
            # A constant's name starts with a capital here.
            header = node if name == pattern else name
            yield name.text(), "constant" if name.text()[:1].isupper() else None, [header]


def _in_php(node: SgNode) -> Iterator[Named]:
    if node.kind() == "const_element":
        name = child_of(node, "name")
        if name is not None:
            yield name.text(), None, [name]
        return
    for name_text, _, nodes in _by_field(node):
        yield name_text.removeprefix("$"), None, nodes


def _in_python(node: SgNode) -> Iterator[Named]:
    if node.kind() != "assignment":
        yield from _by_field(node)
        return
    left = node.field("left")
    if left is not None and left.kind() == "identifier":
        yield left.text(), "constant" if left.text().isupper() else None, [node]


def _kinds(**named: str) -> dict[str, str]:
    return {kind: what for what, kinds in named.items() for kind in kinds.split()}


_JAVASCRIPT = _kinds(
    function="function_declaration generator_function_declaration method_definition",
    variable="variable_declarator pair assignment_expression",
    field="field_definition",
    nameless="arrow_function function_expression generator_function",
) | {"class_declaration": "class", "class": "class", "export_specifier": "import"}
_TYPESCRIPT = {kind: what for kind, what in _JAVASCRIPT.items() if kind != "field_definition"} | _kinds(
    function="function_signature method_signature abstract_method_signature",
    interface="interface_declaration",
    type="type_alias_declaration",
    enum="enum_declaration",
    namespace="internal_module module",
    field="public_field_definition property_signature",
    constant="enum_assignment property_identifier",
)
_TYPESCRIPT["abstract_class_declaration"] = "class"
_HOLDING = [
    {"kind": kind} for kind in ("arrow_function", "function_expression", "generator_function", "class", "object")
]
_JAVASCRIPT_RULES: tuple[dict[str, Any], ...] = (
    {"kind": "pair", "has": {"field": "value", "any": _HOLDING}},
    {"kind": "assignment_expression", "has": {"field": "right", "any": _HOLDING}},
)
_TYPESCRIPT_RULES = (*_JAVASCRIPT_RULES, {"kind": "property_identifier", "inside": {"kind": "enum_body"}})

_C = _kinds(
    function="function_definition preproc_function_def",
    variable="declaration",
    type="type_definition",
    struct="struct_specifier union_specifier",
    enum="enum_specifier",
    field="field_declaration",
    constant="enumerator preproc_def",
)
_CPP = _C | {"class_specifier": "class", "namespace_definition": "namespace", "alias_declaration": "type"}
_CPP["lambda_expression"] = NAMELESS

_GRAMMARS = {
    grammar.name: grammar
    for grammar in (
        Grammar("javascript", _JAVASCRIPT, _JAVASCRIPT_RULES, _in_javascript, variables_hold_functions=True),
        Grammar("typescript", _TYPESCRIPT, _TYPESCRIPT_RULES, _in_javascript, variables_hold_functions=True),
        Grammar("tsx", _TYPESCRIPT, _TYPESCRIPT_RULES, _in_javascript, variables_hold_functions=True),
        Grammar(
            "go",
            _kinds(
                function="function_declaration method_declaration method_elem",
                type="type_spec type_alias",
                field="field_declaration",
                constant="const_spec",
                variable="var_spec",
                nameless="func_literal",
            ),
            (),
            _in_go,
        ),
        Grammar(
            "rust",
            _kinds(
                function="function_item function_signature_item macro_definition",
                struct="struct_item union_item",
                enum="enum_item",
                trait="trait_item",
                outer="impl_item",
                type="type_item associated_type",
                namespace="mod_item",
                constant="const_item static_item enum_variant",
                field="field_declaration",
                nameless="closure_expression",
            ),
            (),
            _in_rust,
        ),
        Grammar(
            "java",
            _kinds(
                function="method_declaration constructor_declaration annotation_type_element_declaration",
                interface="interface_declaration annotation_type_declaration",
                enum="enum_declaration",
                constant="enum_constant constant_declaration",
                field="field_declaration",
                nameless="lambda_expression",
            )
            | {"class_declaration": "class", "record_declaration": "class"},
            (),
            _in_java,
        ),
        Grammar("c", _C, (), _in_c),
        Grammar("cpp", _CPP, (), _in_c),
        Grammar(
            "ruby",
            _kinds(
                function="method singleton_method", namespace="module", outer="singleton_class", constant="assignment"
            )
            | {"class": "class", "call": "field"},
            ({"kind": "call", "regex": r"^(attr_(reader|writer|accessor)|define_method)\b"},),
            _in_ruby,
        ),
        Grammar(
            "kotlin",
            _kinds(
                function="function_declaration secondary_constructor",
                type="type_alias",
                outer="companion_object",
                variable="property_declaration",
                field="class_parameter",
                constant="enum_entry",
                nameless="lambda_literal anonymous_function",
            )
            | {"class_declaration": "class", "object_declaration": "class"},
            (),
            _in_kotlin,
        ),
        Grammar(
            "csharp",
            _kinds(
                function="method_declaration constructor_declaration local_function_statement operator_declaration",
                interface="interface_declaration",
                struct="struct_declaration",
                enum="enum_declaration",
                type="delegate_declaration",
                field="field_declaration event_field_declaration property_declaration",
                constant="enum_member_declaration",
                nameless="lambda_expression anonymous_method_expression",
            )
            | {"class_declaration": "class", "record_declaration": "class"},
            (),
            _in_csharp,
        ),
        Grammar(
            "php",
            _kinds(
                function="function_definition method_declaration",
                interface="interface_declaration",
                trait="trait_declaration",
                enum="enum_declaration",
                constant="const_element enum_case",
                field="property_element",
                nameless="anonymous_function arrow_function",
            )
            | {"class_declaration": "class"},
            (),
            _in_php,
        ),
        Grammar(
            "swift",
            _kinds(
                function="function_declaration protocol_function_declaration init_declaration subscript_declaration",
                interface="protocol_declaration",
                type="typealias_declaration associatedtype_declaration",
                variable="property_declaration",
                field="protocol_property_declaration",
                constant="enum_entry",
                nameless="lambda_literal",
            )
            | {"class_declaration": "class"},
            (),
            _in_swift,
        ),
        Grammar(
            "scala",
            _kinds(
                function="function_definition function_declaration",
                trait="trait_definition",
                enum="enum_definition",
                type="type_definition",
                variable="val_definition var_definition val_declaration var_declaration given_definition",
                field="class_parameter",
                constant="simple_enum_case full_enum_case",
                nameless="lambda_expression",
            )
            | {"class_definition": "class", "object_definition": "class"},
            (),
            _in_scala,
        ),
        Grammar(
            "python",
            _kinds(function="function_definition", variable="assignment", nameless="lambda")
            | {"class_definition": "class"},
            (),
            _in_python,
        ),
    )
}
