"""The definitions in ast-grep's trees, language by language: their names, signatures and values.

`grammars.json` has the node kinds of each language by what they define, and rules where the kind alone can't tell;
`signatures` has the nodes that are a body, or that say nothing about a call.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import takewhile
from typing import Any

from ast_grep_py import SgNode

from mnemarch.code.symbols import COMPUTED, VALUE_CHARS_MAX
from mnemarch.model.json_text import from_json
from mnemarch.model.value import Frozen
from mnemarch.text.cache import pattern

# The name, a kind that overrides the grammar's (or None), and the nodes that make the signature.
Named = tuple[str, str | None, list[SgNode]]

# A block that only gives its name to its content: Rust's `impl`, Swift's `extension`.
OUTER = "outer"
_NAMES = frozenset(
    {"identifier", "simple_identifier", "type_identifier", "field_identifier", "property_identifier", "constant"}
    | {"private_property_identifier", "namespace_identifier", "qualified_identifier", "name"}
    | {"operator_name", "destructor_name"}
)
_FUNCTION_VALUES = frozenset({"arrow_function", "function_expression", "generator_function", "function"})
_NAMING = frozenset({"variable_declarator", "pair", "assignment_expression"})
_HOLDERS = _NAMING | {"field_definition", "public_field_definition"}


def _child_of(node: SgNode, *kinds: str) -> SgNode | None:
    return next((child for child in node.children() if child.kind() in kinds), None)


def _named_in(node: SgNode) -> list[SgNode]:
    """The children without punctuation."""
    return [child for child in node.children() if child.is_named()]


def _field_of(node: SgNode, *names: str) -> SgNode | None:
    """The first of these fields that the node has."""
    return next((field for name in names if (field := node.field(name)) is not None), None)


def is_around(node: SgNode) -> bool:
    """Whether names inside the node begin with its name. C's `typedef struct point { int x; } Point` has `point.x`."""
    shape = node.field("type") if node.kind() == "type_definition" else None
    return shape is None or shape.field("name") is None


def _by_field(node: SgNode) -> Iterator[Named]:
    """Definitions named by the field `name`, by declarators after a type, or by the first identifier."""
    declaring = _child_of(node, "variable_declaration") or node
    children = declaring.children()
    declarators = [item for item in children if item.kind() == "variable_declarator"]
    for item in declarators:
        name = item.field("name") or _child_of(item, "identifier")
        if name is not None:
            yield name.text(), _if_upper(name.text()), [*children[: children.index(declarators[0])], name]
    if declarators:
        return
    names = [item for item in node.field_children("name") if item.is_named()]
    identifiers = [item for item in node.children() if item.kind() in _NAMES]
    for item in names or identifiers[:1]:
        yield item.text(), None, [node]


def _if_upper(name: str) -> str | None:
    return "constant" if name.isupper() else None


def _in_python(node: SgNode) -> Iterator[Named]:
    kind, around = node.kind(), node.parent()
    if kind == "type_alias_statement":
        name = _named_in(node)[0].text().partition("[")[0].strip()
        if name.isidentifier():  # `type(a).b = c` is taken for one.
            yield name, None, [node]
    elif "import" in kind:
        for item in node.field_children("name"):
            name = (item.field("alias") or item).text()
            if "." not in name:
                yield name, None, [node]
    elif kind in {"function_definition", "class_definition"}:
        yield from _by_field(node)
    elif kind == "assignment" and (around is None or around.kind() != "assignment"):
        # `a = b = 1` is read at its outer assignment.
        for target in _python_targets(node):
            names = _named_in(target) if "pattern" in target.kind() else [target]
            for item in names:
                if item.kind() == "identifier":
                    yield item.text(), _if_upper(item.text()), [node]


def _python_targets(node: SgNode) -> Iterator[SgNode]:
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
    for target in _python_targets(node):
        owner, attribute = target.field("object"), target.field("attribute")
        if owner is not None and attribute is not None and owner.text() == "self":
            yield attribute.text()


def _in_javascript(node: SgNode) -> Iterator[Named]:
    kind, around = node.kind(), node.parent()
    if kind in _HOLDERS:
        yield from _variable(
            node, _field_of(node, "name", "property", "key", "left"), _field_of(node, "value", "right")
        )
    elif kind == "property_identifier":
        yield node.text(), None, [node]
    elif kind == "export_specifier":
        name = _field_of(node, "alias", "name")
        if name is not None:
            yield name.text(), None, [name]
    elif kind == "module" and _child_of(node, "string") is not None:
        return
    elif kind != "class" or around is None or around.kind() not in _NAMING:
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
        is_constant = text.isupper() or (around is not None and _child_of(around, "const") is not None)
        header = name if node.kind() in {"pair", "assignment_expression"} else node
        yield text, "constant" if is_constant else None, [header]


def _in_go(node: SgNode) -> Iterator[Named]:
    receiver, shape = node.field("receiver"), node.field("type")
    owner = receiver.find(kind="type_identifier") if receiver is not None else None
    kind = {"struct_type": "struct", "interface_type": "interface"}.get(shape.kind()) if shape is not None else None
    for item in node.field_children("name"):
        if node.kind() not in {"const_spec", "var_spec", "field_declaration"}:
            prefix = "" if owner is None else f"{owner.text()}."
            yield prefix + item.text(), kind or ("method" if prefix else None), [node]
        elif item.is_named():
            yield item.text(), None, [item, *([shape] if shape is not None else [])]


def _in_rust(node: SgNode) -> Iterator[Named]:
    if node.kind() != "impl_item":
        yield from _by_field(node)
        return
    owner = node.field("type")
    name = owner if owner is None or not owner.children() else owner.find(kind="type_identifier")
    if name is not None:
        yield name.text(), None, [node]


def _in_c(node: SgNode) -> Iterator[Named]:
    around = node.parent()
    is_template = around is not None and around.kind() == "template_declaration"
    parameters = around.field("parameters") if around is not None and is_template else None
    before = [parameters] if parameters is not None else []
    if node.kind() in {"struct_specifier", "union_specifier", "class_specifier", "enum_specifier"}:
        name = node.field("name")
        # Without a body it is only a declaration.
        if name is not None and node.field("body") is not None:
            yield name.text(), None, [*before, node]
        return
    declarators = node.field_children("declarator")
    if not declarators:
        yield from _by_field(node)
        return
    children = node.children()
    before += children[: children.index(declarators[0])]
    for item in declarators:
        name, is_function = _declared(item)
        if name is not None:
            kind = "function" if is_function and node.kind() != "type_definition" else None
            yield name.text(), kind, [*before, item]


def _declared(declarator: SgNode) -> tuple[SgNode | None, bool]:
    """The name inside a C declarator, and whether it names a function."""
    node: SgNode | None = declarator
    is_function = False
    while node is not None and node.kind() not in _NAMES:
        inner = node.field("declarator") or next(iter(_named_in(node)[::-1]), None)
        is_function = node.kind() == "function_declarator" and inner is not None and inner.kind() in _NAMES
        node = inner
    return node, is_function


def _in_ruby(node: SgNode) -> Iterator[Named]:
    kind = node.kind()
    name = node.field("left" if kind == "assignment" else "name")
    if kind == "call":
        arguments = node.field("arguments")
        for item in _named_in(arguments) if arguments is not None else ():
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
        yield from _by_field(node)


def _in_kotlin(node: SgNode) -> Iterator[Named]:
    kind = node.kind()
    if kind == "secondary_constructor":
        yield "constructor", None, [node]
    elif kind == "property_declaration":
        around = _child_of(node, "multi_variable_declaration") or node
        for item in around.children():
            name = _child_of(item, "simple_identifier") if item.kind() == "variable_declaration" else None
            if name is not None:
                yield name.text(), _if_upper(name.text()), [item]
    elif kind == "class_declaration":
        word = _child_of(node, "interface") or _child_of(node, "enum")
        yield from ((name, word.kind() if word is not None else None, nodes) for name, _, nodes in _by_field(node))
    elif kind != "companion_object" and (kind != "class_parameter" or _child_of(node, "binding_pattern_kind")):
        yield from _by_field(node)


_NAMED = {
    "python": _in_python,
    "javascript": _in_javascript,
    "typescript": _in_javascript,
    "go": _in_go,
    "rust": _in_rust,
    "c": _in_c,
    "cpp": _in_c,
    "ruby": _in_ruby,
    "kotlin": _in_kotlin,
}


class _Grammar(Frozen):
    """The definitions of one language: what each node kind defines, the nodes to find, and a node's names."""

    kinds: dict[str, str]
    wanted: list[Any]
    named: Callable[[SgNode], Iterator[Named]]
    variables_hold_functions: bool


@cache
def _table() -> dict[str, Any]:
    with open(os.path.join(os.path.dirname(__file__), "grammars.json"), encoding="utf-8") as file:
        return from_json(file.read())  # type: ignore[no-any-return]


@cache
def grammar_of(language: str) -> _Grammar:
    """The grammar of a language. `wanted` has errors of syntax among it: one walk through the tree finds all."""
    language = "typescript" if language == "tsx" else language
    row = _table()[language]
    kinds = {kind: meaning for meaning, names in row["kinds"].items() for kind in names.split()}
    rules = row.get("rules", [])
    unruled = {"ERROR", *kinds}.difference(rule["kind"] for rule in rules)
    wanted = [*({"kind": kind} for kind in sorted(unruled)), *rules]
    return _Grammar(kinds, wanted, _NAMED.get(language, _by_field), row.get("variables_hold_functions", False))


# Signatures on one line, the same however the source is laid out, and the values of constants

_DEPTH_MAX = 64
_ELIDED = "…"
_PARTS = {part: frozenset(" ".join(lines).split()) for part, lines in _table()["signatures"].items()}
_BODIES = _PARTS["bodies"]
# Parts that don't affect a call: visibility, decorators, the arguments of a base class.
SILENT, _SILENT_WORDS = _PARTS["silent"], _PARTS["silent_words"]
_UNNAMED = frozenset({"arrow_function", "function_expression", "generator_function", "class"})
_MODIFIERS = frozenset({"async", "*", "class"})
_MEMBERS = frozenset({"object_type", "interface_type"})
_WORDS = r"""\w+|"[^"\n]*"|'[^'\n]*'|`[^`\n]*`|[-=]>|\S"""
# A number, a string without interpolation, or a common constant.
_LITERAL = r"""(?a)[-+]?\.?\d[\w.]*|"[^"\\\n$#{]*"|'[^'\\\n]*'|[Tt]rue|[Ff]alse|null|nil|None"""
# What a string with interpolation or an escape contains, and in the kinds of its nodes the words for a variable.
_IN_STRINGS, _VARIABLE = frozenset("{#$\\`"), ("interpol", "substitution", "variable", "identifier", "expression")
_MARK = "\ue000"
_ARITHMETIC = frozenset("()[],.+-*/%<>|&~^")
_QUOTES = "'\"`"
_ENDS_OF_DEFAULT = frozenset({",", ")", "]", ">"})
_SPACE_AROUND = frozenset({"->", "=>", "=", "|", "{", "}", "<:", ">:"})
_NO_SPACE_BEFORE = frozenset({",", ":", ".", ")", "]", ">", "<", "::", "!", "?"})
_OPENING = frozenset({"(", "["})
_NO_SPACE_AFTER = frozenset({"(", "[", "<", ".", "::", "&", "*", "**", "...", "@", "~", "$", "'", "?.", "&&"})


class _UnreadableError(Exception):
    """The header has a syntax error."""


def signature_of(nodes: Iterable[SgNode], kind: str, name: str, silent: frozenset[str] = SILENT) -> str:
    """The normal form of the definition whose header is in `nodes`. Empty if the header has a syntax error."""
    parts: list[str] = []
    try:
        for node in nodes:
            header: list[str] = []
            _put_inner(node, header, silent | _MEMBERS if kind in {"type", "interface"} else silent, 0, kind)
            if node.kind() in _UNNAMED and node.field("name") is None:  # `f = async a => ...` is `async f(a)`.
                modifiers = list(takewhile(_MODIFIERS.__contains__, header))
                header = [*modifiers, name.rpartition(".")[2], *header[len(modifiers) :]]
            parts += header
    except _UnreadableError:
        return ""
    return _joined(parts)


def _put_inner(node: SgNode, parts: list[str], silent: frozenset[str], depth: int, kind: str = "") -> None:
    """Append the parts of a node. For a definition (depth 0), only those before its body or content."""
    children, is_outer = node.children(), depth == 0
    if not children:
        _put(node, parts, silent, 1)
    bare = node.field("parameter") if is_outer and node.kind() in _UNNAMED else None
    brackets, is_default = 0, False
    for child in children:
        what = child.kind()
        brackets += (what in {"(", "["}) - (what in {")", "]"})
        if is_default and (what not in _ENDS_OF_DEFAULT or brackets > 1):
            continue
        is_default = what == "=" and (brackets > 0 if is_outer else node.kind() not in {"type_binding", "setter"})
        if is_default:
            parts += ["=", *_default_after(child)]
        elif is_outer and (what in _BODIES or what in {"{", "=>"} or (what == "=" and kind != "type")):
            return
        elif bare is not None and child == bare:
            parts += ["(", child.text(), ")"]
        else:
            _put(child, parts, silent, depth + 1)


def _put(node: SgNode, parts: list[str], silent: frozenset[str], depth: int) -> None:
    kind, children = node.kind(), node.children()
    if kind in silent or kind in _BODIES or "comment" in kind:
        return
    is_text = kind.endswith(("string", "string_literal", "char_literal"))
    text = node.text() if is_text or not children or kind == "operator_name" else ""
    if kind == "ERROR" or (not children and not text):
        raise _UnreadableError
    if not text:
        if depth < _DEPTH_MAX:
            is_modifier = "modifier" in kind or (depth == 1 and "specifier" in kind)
            _put_inner(node, parts, silent, 0 if is_modifier else depth)
        else:
            parts.append(_ELIDED)
    elif depth > 1 or kind != text or text not in _SILENT_WORDS:  # The kind of a keyword's node is the keyword.
        parts.append(_quoted("".join(text.split()) if kind == "operator_name" else text))


def _quoted(text: str) -> str:
    return f'"{text[1:-1]}"' if len(text) > 1 and text[0] in _QUOTES and text[-1] == text[0] else text


def _default_after(sign: SgNode) -> list[str]:
    """The parts of a parameter's default value, which follows `=`."""
    texts, node = [], sign.next()
    while node is not None and node.kind() not in _ENDS_OF_DEFAULT:
        texts.append(node.text())
        node = node.next()
    return [_quoted(part) for part in pattern(_WORDS).findall(" ".join(texts))]


def _joined(parts: Iterable[str]) -> str:
    """The parts as one text, without a comma before a bracket or a `|` before the first alternative."""
    out: list[str] = []
    for part in parts:
        last = out[-1] if out else ""
        if part in {")", "]", ">", "}"} and last == ",":
            out.pop()
        elif part == "|" and last in {"", "=", ":", "(", "<", ","}:
            continue
        out.append("," if part == ";" else part)
    spaced = [
        f" {part}" if before and _is_space_between(before, part) else part
        for before, part in zip(["", *out], out, strict=False)
    ]
    return "".join(spaced).strip(" ,:=")


def _is_space_between(last: str, part: str) -> bool:
    if part in _NO_SPACE_BEFORE or last in _NO_SPACE_AFTER:
        return False
    if last in _SPACE_AROUND or part in _SPACE_AROUND or last in {",", ":"}:
        return True
    return part not in _OPENING and (last in {")", "]", ">", "?"} or last[-1].isalnum() or last[-1] in '_…"')


def value_of(node: SgNode) -> str:
    """A variable's literal value (`3`, `"strict"`, `60 * 60`), COMPUTED for other values, empty without a value."""
    content = node.field("value") or node.field("right")
    for holder in (node, _child_of(node, "variable_declarator", "init_declarator")):
        sign = _child_of(holder, "=") if holder is not None and content is None else None
        content = sign.next() if sign is not None else content
    text = "" if content is None else content.text().strip()
    if text in {"", "..."}:
        return ""  # A declaration without a value.
    if len(text) > VALUE_CHARS_MAX:
        return COMPUTED
    strings: dict[str, str] = {}
    if content is not None and not _IN_STRINGS.isdisjoint(text):
        # A sign of interpolation, or of an escape, says little: the parser knows which strings have variables.
        for number, string in enumerate(sorted({*_plain_strings(content)}, key=len, reverse=True)):
            strings[mark := f'"{_MARK}{number}"'] = _quoted(string)
            text = text.replace(string, mark)
    parts = pattern(_WORDS).findall(text)
    is_literal = pattern(_LITERAL).fullmatch
    is_written = is_literal(text) or all(part in _ARITHMETIC or is_literal(part) for part in parts)
    return _joined(strings.get(part) or _quoted(part) for part in parts) if is_written else COMPUTED


def _plain_strings(node: SgNode) -> Iterator[str]:
    """The strings on one line in a value, without those that have a variable."""
    if "string" not in node.kind() or node.kind() == "concatenated_string":
        for child in node.children():
            yield from _plain_strings(child)
    elif not _has_variable(node) and "\n" not in node.text():
        yield node.text()


def _has_variable(node: SgNode) -> bool:
    return any(word in node.kind() for word in _VARIABLE) or any(_has_variable(each) for each in node.children())
