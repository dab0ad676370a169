"""The languages: which files are in them, and which nodes of ast-grep's trees define what."""

from __future__ import annotations

from mnemarch.code import naming
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ast_grep_py import SgNode

    from mnemarch.code.naming import Named


@value
class Grammar:
    """The definitions of one language: node kinds with what they define, rules for what a kind alone can't tell."""

    named: Callable[[SgNode], Iterator[Named]]
    kinds: dict[str, str]
    rules: tuple[Any, ...] = ()
    variables_hold_functions: bool = False

    def wanted(self) -> list[Any]:
        """What to look for, errors of syntax among it: one walk through the tree finds all."""
        ruled = {rule["kind"] for rule in self.rules}
        kinds = ("ERROR", *(kind for kind in self.kinds if kind not in ruled))
        return [*({"kind": kind} for kind in kinds), *self.rules]


def _kinds(**kinds_by_meaning: str) -> dict[str, str]:
    """What each node kind defines."""
    return {kind: what.rstrip("_") for what, kinds in kinds_by_meaning.items() for kind in kinds.split()}


_JAVASCRIPT = _kinds(
    function="function_declaration generator_function_declaration method_definition",
    class_="class_declaration class",
    variable="variable_declarator pair assignment_expression",
    field="field_definition",
    import_="export_specifier",
    nameless="arrow_function function_expression generator_function",
)
_HOLDING = [
    {"kind": kind} for kind in ("arrow_function", "function_expression", "generator_function", "class", "object")
]
_JAVASCRIPT_RULES: tuple[dict[str, Any], ...] = (
    {"kind": "pair", "has": {"field": "value", "any": _HOLDING}},
    {"kind": "assignment_expression", "has": {"field": "right", "any": _HOLDING}},
)
_TYPESCRIPT = Grammar(
    naming.in_javascript,
    {kind: what for kind, what in _JAVASCRIPT.items() if kind != "field_definition"}
    | _kinds(
        function="function_signature method_signature abstract_method_signature",
        class_="abstract_class_declaration",
        interface="interface_declaration",
        type="type_alias_declaration",
        enum="enum_declaration",
        namespace="internal_module module",
        field="public_field_definition property_signature",
        constant="enum_assignment property_identifier",
    ),
    (*_JAVASCRIPT_RULES, {"kind": "property_identifier", "inside": {"kind": "enum_body"}}),
    variables_hold_functions=True,
)
_C = _kinds(
    function="function_definition preproc_function_def",
    variable="declaration",
    type="type_definition",
    struct="struct_specifier union_specifier",
    enum="enum_specifier",
    field="field_declaration",
    constant="enumerator preproc_def",
)
_CPP = _kinds(
    class_="class_specifier", namespace="namespace_definition", type="alias_declaration", nameless="lambda_expression"
)
_PYTHON = _kinds(
    function="function_definition",
    class_="class_definition",
    type="type_alias_statement",
    variable="assignment augmented_assignment",
    import_="import_statement import_from_statement future_import_statement",
)
_GO = _kinds(
    function="function_declaration method_declaration method_elem",
    type="type_spec type_alias",
    field="field_declaration",
    constant="const_spec",
    variable="var_spec",
    nameless="func_literal",
)
_RUST = _kinds(
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
)
_JAVA = _kinds(
    function="method_declaration constructor_declaration annotation_type_element_declaration",
    class_="class_declaration record_declaration",
    interface="interface_declaration annotation_type_declaration",
    enum="enum_declaration",
    constant="enum_constant constant_declaration",
    field="field_declaration",
    nameless="lambda_expression",
)
_RUBY = _kinds(
    function="method singleton_method",
    class_="class",
    namespace="module",
    outer="singleton_class",
    constant="assignment",
    field="call",
)
_KOTLIN = _kinds(
    function="function_declaration secondary_constructor",
    class_="class_declaration object_declaration",
    type="type_alias",
    outer="companion_object",
    variable="property_declaration",
    field="class_parameter",
    constant="enum_entry",
    nameless="lambda_literal anonymous_function",
)
_CSHARP = _kinds(
    function="method_declaration constructor_declaration local_function_statement operator_declaration",
    class_="class_declaration record_declaration",
    interface="interface_declaration",
    struct="struct_declaration",
    enum="enum_declaration",
    type="delegate_declaration",
    field="field_declaration event_field_declaration property_declaration",
    constant="enum_member_declaration",
    nameless="lambda_expression anonymous_method_expression",
)
_PHP = _kinds(
    function="function_definition method_declaration",
    class_="class_declaration",
    interface="interface_declaration",
    trait="trait_declaration",
    enum="enum_declaration",
    constant="const_element enum_case",
    field="property_element",
    nameless="anonymous_function arrow_function",
)
_SWIFT = _kinds(
    function="function_declaration protocol_function_declaration init_declaration subscript_declaration",
    class_="class_declaration",
    interface="protocol_declaration",
    type="typealias_declaration associatedtype_declaration",
    variable="property_declaration",
    field="protocol_property_declaration",
    constant="enum_entry",
    nameless="lambda_literal",
)
_SCALA = _kinds(
    function="function_definition function_declaration",
    class_="class_definition object_definition",
    trait="trait_definition",
    enum="enum_definition",
    type="type_definition",
    variable="val_definition var_definition val_declaration var_declaration given_definition",
    field="class_parameter",
    constant="simple_enum_case full_enum_case",
    nameless="lambda_expression",
)
_RUBY_RULES = ({"kind": "call", "regex": r"^(attr_(reader|writer|accessor)|define_method)\b"},)

GRAMMARS = {
    "python": Grammar(naming.in_python, _PYTHON),
    "javascript": Grammar(naming.in_javascript, _JAVASCRIPT, _JAVASCRIPT_RULES, variables_hold_functions=True),
    "typescript": _TYPESCRIPT,
    "tsx": _TYPESCRIPT,
    "go": Grammar(naming.in_go, _GO),
    "rust": Grammar(naming.in_rust, _RUST),
    "java": Grammar(naming.in_java, _JAVA),
    "c": Grammar(naming.in_c, _C),
    "cpp": Grammar(naming.in_c, _C | _CPP),
    "ruby": Grammar(naming.in_ruby, _RUBY, _RUBY_RULES),
    "kotlin": Grammar(naming.in_kotlin, _KOTLIN),
    "csharp": Grammar(naming.in_csharp, _CSHARP),
    "php": Grammar(naming.by_field, _PHP),
    "swift": Grammar(naming.in_swift, _SWIFT),
    "scala": Grammar(naming.in_scala, _SCALA),
}
