"""The signature of a definition in one normal form, however it is laid out."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable
from functools import lru_cache

from ast_grep_py import SgNode

from mnemarch.code.naming import child_of, named_in, python_targets, table
from mnemarch.code.symbols import COMPUTED, VALUE_CHARS_MAX
from mnemarch.forks import lasting_lock
from mnemarch.text.cache import pattern

# A default value that is longer than this, or was cited before defaults were kept, may be any.
_DEFAULT_CHARS_MAX = 80
_ANY_DEFAULT = "=…"
# A number, a text with nothing to work out in it, or a word that all languages have for such values.
_LITERAL = r"""(?a)[-+]?\.?\d[\w.]*|"[^"\\\n$#{]*"|'[^'\\\n]*'|[Tt]rue|[Ff]alse|null|nil"""
_DEPTH_MAX = 64
_ELIDED = "…"
# Between the parts of a signature: here a type begins, or ends.
_BEFORE_TYPE, _AFTER_TYPE = "\x01", "\x02"
# What comes behind it is a default value as it is written.
_AS_IT_IS = "\x03"
_PARTS = {part: frozenset(" ".join(lines).split()) for part, lines in table()["signatures"].items()}
_BODIES = _PARTS["bodies"]
# Says nothing about a call: who may see it, what decorates it, with what a base class is called.
_SILENT, _SILENT_WORDS = _PARTS["silent"], _PARTS["silent_words"]
_UNNAMED = frozenset({"arrow_function", "function_expression", "generator_function", "class"})
_QUOTES = "'\"`"
_ENDS_OF_DEFAULT = frozenset({",", ")", "]", ">"})
_SPACE_AROUND = frozenset({"->", "=>", "=", "|", "{", "}", "<:", ">:"})
_NO_SPACE_BEFORE = frozenset({",", ":", ".", ")", "]", ">", "<", "::", "!"})
_NO_SPACE_AFTER = frozenset({"(", "[", "<", ".", "::", "&", "*", "**", "...", "@", "~", "$", "'", "?.", "&&"})


class _UnreadableError(Exception):
    """There is an error of syntax in the header."""


def signature_of(nodes: Iterable[SgNode], kind: str, name: str) -> str:
    """The normal form of a definition whose header is in `nodes`; empty if the header has an error of syntax."""
    parts: list[str] = []
    try:
        for node in nodes:
            if node.kind() in _UNNAMED:
                _put_unnamed(node, parts, name.rpartition(".")[2])
            else:
                _put_header(node, parts, kind)
    except _UnreadableError:
        return ""
    return _joined(parts)


def _put_unnamed(node: SgNode, parts: list[str], name: str) -> None:
    """A function or class that is called like the variable it is put in: `f = async a => ...` is `async f(a)`."""
    own_name, parameter = node.field("name"), node.field("parameter")
    after: list[str] = []
    for child in node.children():
        kind = child.kind()
        if kind in _BODIES or kind == "=>":
            break
        if kind in {"async", "*", "class"}:
            parts.append(kind)
        elif parameter is not None and child == parameter:
            after += ["(", child.text(), ")"]
        elif own_name is None or child != own_name:
            _put(child, after, 0, outer=True)
    parts += [name, *after]


def _put_header(node: SgNode, parts: list[str], kind: str) -> None:
    """All of a definition up to its body or its content; a type's content is what it is."""
    children = node.children()
    if not children or node.kind() in {"function_declarator", "qualified_identifier"}:
        _put(node, parts, 0, outer=True)
        return
    receiver = node.field("receiver") if node.kind() == "method_declaration" else None
    parens, skipping = 0, False
    for child in children:
        what = child.kind()
        if what in _BODIES or what == "{":
            break
        parens += (what == "(") - (what == ")")
        if skipping and not (what == "," or (what == ")" and parens == 0)):
            continue
        skipping = False
        if what == "=" and parens:
            parts.append(_default_after(child))
            skipping = True
        elif what in {"=", "=>"} and kind != "type":
            break
        elif receiver is not None and child == receiver:
            _put_receiver(child, parts)
        elif kind in {"type", "interface"} and what in {"object_type", "interface_type"}:
            parts.append("{…}" if what == "object_type" else "interface")
        else:
            _put(child, parts, 0, outer=True)
    if node.kind() in {"method", "singleton_method"} and node.field("parameters") is None:
        parts += ["(", ")"]


def _put_receiver(node: SgNode, parts: list[str]) -> None:
    """Go's `(a *Auth)`: what it is called inside doesn't matter."""
    declared = node.find(kind="parameter_declaration")
    shape = declared.field("type") if declared is not None else None
    parts.append("(")
    if shape is not None:
        _put(shape, parts, 1)
    parts += [")", _AFTER_TYPE]


def _put(node: SgNode, parts: list[str], depth: int, *, outer: bool = False) -> None:
    kind = node.kind()
    if kind in _SILENT or kind in _BODIES or "comment" in kind:
        return
    if kind == "ERROR":
        raise _UnreadableError
    children = node.children()
    text = node.text() if not children or kind.endswith(("string", "string_literal", "char_literal")) else ""
    if not children or (text and text[0] in _QUOTES):
        if not text:
            raise _UnreadableError
        if len(text) > 1 and text[0] in _QUOTES and text[-1] == text[0]:
            text = f'"{text[1:-1]}"'
        # A keyword's node is of its own kind: a function may well be called `open`.
        if not (outer and kind == text in _SILENT_WORDS):
            parts.append(text)
        return
    if depth > _DEPTH_MAX or kind == "operator_name":
        parts.append(_ELIDED if depth > _DEPTH_MAX else "".join(node.text().split()))
        return
    is_type = kind.endswith("_type")
    if is_type:
        parts.append(_BEFORE_TYPE)
    if kind == "object_type":
        _put_members(node, parts, depth)
    else:
        _put_children(kind, children, parts, depth, outer="modifier" in kind or (outer and "specifier" in kind))
    if is_type:
        parts.append(_AFTER_TYPE)


def _put_children(kind: str, children: list[SgNode], parts: list[str], depth: int, *, outer: bool) -> None:
    bare = kind == "method_parameters" and children[0].kind() != "("
    if bare:
        parts.append("(")
    skipping = False
    for child in children:
        what = child.kind()
        if skipping and what not in _ENDS_OF_DEFAULT:
            continue
        skipping = what == "=" and kind not in {"type_binding", "setter"}
        if skipping:
            parts.append(_default_after(child))
        elif kind == "keyword_parameter" and what == ":":
            parts.append(":")
            if child.next() is not None:
                parts.append(_default_after(child).replace("=", " ", 1))
            break
        elif kind == "superclass" and what == "<":
            parts.append("< ")
        elif kind == "function_declarator" and what == "qualified_identifier":
            _put(_last_name(child), parts, depth + 1)
        else:
            _put(child, parts, depth + 1, outer=outer)
    if bare:
        parts.append(")")


def _default_after(sign: SgNode) -> str:
    """A parameter's default value, which comes behind `=`, however it is spaced and quoted."""
    nodes, node = [], sign.next()
    while node is not None and node.kind() not in _ENDS_OF_DEFAULT:
        nodes.append(node.text())
        node = node.next()
    text = " ".join(" ".join(nodes).split())
    if text[:1] in _QUOTES and text[-1:] == text[:1]:
        text = f'"{text[1:-1]}"'
    return _AS_IT_IS + (f"={text}" if 0 < len(text) <= _DEFAULT_CHARS_MAX else _ANY_DEFAULT)


def _last_name(node: SgNode) -> SgNode:
    """C++'s `void Auth::login()` is the `login()` of its class."""
    while node.kind() == "qualified_identifier" and (name := node.field("name")) is not None:
        node = name
    return node


def _put_members(node: SgNode, parts: list[str], depth: int) -> None:
    """TypeScript's `{ a: string; b: number }`, whose members may be parted by `;`, `,` or a line's end."""
    parts.append("{")
    for child in node.children():
        if child.is_named():
            _put(child, parts, depth + 1)
            parts.append(",")
    parts.append("}")


def _joined(parts: list[str]) -> str:
    out: list[str] = []
    last, gap = "", ""
    for part in parts:
        if part in {_BEFORE_TYPE, _AFTER_TYPE}:
            gap = part
            continue
        if part[0] == _AS_IT_IS:
            out.append(part[1:])
            last, gap = part[1:], ""
            continue
        if part in {")", "]", ">", "}"} and last == ",":
            out.pop()
            last = out[-1] if out else ""
        if part == "|" and last in {"", "=", ":", "(", "<", ","}:
            continue  # `| A | B` is `A | B`
        if out and _is_space_between(last, part, gap):
            out.append(" ")
        out.append(part)
        last, gap = part, ""
    return "".join(out).rstrip(",: ")


def _is_space_between(last: str, part: str, gap: str) -> bool:
    if part in _NO_SPACE_BEFORE or last in _NO_SPACE_AFTER:
        return False
    if last in _SPACE_AROUND or part in _SPACE_AROUND or last in {",", ":"}:
        return True
    if part == "(":
        return last == ")"
    if part == "[":
        return gap == _BEFORE_TYPE and last != "]"
    if part == "?":
        return False
    if last == "?":
        return gap == _AFTER_TYPE  # PHP's `?int`, Kotlin's `Int?`
    return bool(gap) or last in {")", ">"} or last[-1].isalnum() or last[-1] in "_…\"'"


def value_of(node: SgNode) -> str:
    """A variable's value, if it is written there (`3`, `"strict"`, `true`); else as `Symbol` says."""
    content = node.field("value") or node.field("right")
    for holder in (node, child_of(node, "variable_declarator", "init_declarator")):
        sign = child_of(holder, "=") if holder is not None and content is None else None
        content = sign.next() if sign is not None else content
    if content is None:
        return ""
    text = content.text().strip()
    if len(text) > VALUE_CHARS_MAX or pattern(_LITERAL).fullmatch(text) is None:
        return COMPUTED
    return f'"{text[1:-1]}"' if text[0] in "'\"" else text


def of_python(node: SgNode, name: str) -> str:
    """The signature of a Python function, class, variable or type; empty if it has an error of syntax."""
    try:
        return _PYTHON.get(node.kind(), _python_name)(node, name)
    except _SYNTAX_ERRORS:
        return ""


def python_value(node: SgNode) -> str:
    """A Python variable's value, if it is written there: `3`, `'strict'`, `-1`, `60 * 60`, `(3, 5)`."""
    content = node.field("right")
    while content is not None and content.kind() == "assignment":
        content = content.field("right")
    if content is None or any("pattern" in target.kind() for target in python_targets(node)):
        return ""
    if content.kind() not in _PYTHON_VALUES:
        return COMPUTED
    try:
        written = _parsed(content.text())
    except _SYNTAX_ERRORS:
        return COMPUTED
    if isinstance(written, ast.Constant) and written.value is ...:
        return ""  # Only the name is declared.
    if written.end_lineno != written.lineno or (written.end_col_offset or 0) - written.col_offset > VALUE_CHARS_MAX:
        return COMPUTED
    if isinstance(written, ast.Constant):
        return repr(written.value)
    parts = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.Tuple)
    is_plain = all(isinstance(part, parts) for part in ast.walk(written) if isinstance(part, ast.expr))
    return ast.unparse(written) if is_plain else COMPUTED


def _python_function(node: SgNode, name: str) -> str:
    parameters, result = node.field("parameters"), node.field("return_type")
    parts = map(_python_parameter, _items(parameters))
    prefix = "async " if child_of(node, "async") is not None else ""
    returns = f" -> {_annotation(result.text())}" if result is not None else ""
    return f"{prefix}{name}{_type_parameters(node.field('type_parameters'))}({', '.join(parts)}){returns}"


def _python_parameter(node: SgNode) -> str:
    kind, annotation = node.kind(), node.field("type")
    if kind == "ERROR":
        raise SyntaxError
    named = named_in(node)[0] if "parameter" in kind else node
    typed = f": {_annotation(annotation.text())}" if annotation is not None else ""
    return "".join(named.text().split()) + typed + (_python_default(node) if "default" in kind else "")


def _python_default(node: SgNode) -> str:
    default = node.field("value")
    text = "" if default is None else _expression(default.text())
    return f"={text}" if 0 < len(text) <= _DEFAULT_CHARS_MAX and "\n" not in text else _ANY_DEFAULT


def _python_class(node: SgNode, name: str) -> str:
    bases, keywords = [], []
    for item in _items(node.field("superclasses")):
        if item.kind() in {"keyword_argument", "dictionary_splat"}:
            key, content = item.field("name"), named_in(item)[-1]
            keywords.append(f"{key.text() if key is not None else '**'}={_expression(content.text())}")
        else:
            bases.append(_expression(item.text()))
    inherited = f"({', '.join(bases + keywords)})" if bases or keywords else ""
    return f"class {name}{_type_parameters(node.field('type_parameters'))}{inherited}"


def _python_type(node: SgNode, name: str) -> str:
    left, right = _items(node)
    return f"type {name}{_type_parameters(left.find(kind='type_parameter'))} = {_expression(right.text())}"


def _python_name(node: SgNode, name: str) -> str:
    annotation = node.field("type") if node.kind() == "assignment" else None
    return name if annotation is None else f"{name}: {_annotation(annotation.text())}"


def _type_parameters(node: SgNode | None) -> str:
    parameters = [" ".join(item.text().split()) for item in _items(node)]
    return f"[{', '.join(parameters)}]" if parameters else ""


def _items(node: SgNode | None) -> list[SgNode]:
    """The parts of a list, without comments and the backslashes at the ends of lines."""
    parts = named_in(node) if node is not None else []
    return [item for item in parts if item.kind() not in {"comment", "line_continuation"}]


@lru_cache(4_096)
def _annotation(text: str) -> str:
    """A type in one normal form; one in quotes is the same type as without."""
    if text[0] in "'\"":
        quoted = _parsed(text)
        if isinstance(quoted, ast.Constant) and isinstance(quoted.value, str):
            return " ".join(quoted.value.split())
    return _expression(text)


@lru_cache(4_096)
def _expression(text: str) -> str:
    if text.replace(".", "").isidentifier() and text.isascii():
        return text
    star = "*" if text.startswith("*") else ""
    return star + ast.unparse(_parsed(text.removeprefix(star)))


def _parsed(text: str) -> ast.expr:
    # `catch_warnings` changes the whole process, so only one thread may be inside; without it, every odd backslash of
    # the source would be printed.
    with _turn, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(f"({text})", mode="eval").body


_turn = lasting_lock()
# What `ast.parse` raises at a text it can't take: bad syntax, a NUL or a surrogate, nesting that is too deep.
_SYNTAX_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError)
_PYTHON = {
    "function_definition": _python_function,
    "class_definition": _python_class,
    "type_alias_statement": _python_type,
}
_PYTHON_VALUES = _PARTS["python_values"]
