"""The signature of a definition on one line, the same however the source is laid out, and the value of a constant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile

from ast_grep_py import SgNode

from mnemarch.code.naming import child_of, table
from mnemarch.code.symbols import COMPUTED, VALUE_CHARS_MAX
from mnemarch.text.cache import pattern

_DEPTH_MAX = 64
_ELIDED = "…"
_PARTS = {part: frozenset(" ".join(lines).split()) for part, lines in table()["signatures"].items()}
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
    for holder in (node, child_of(node, "variable_declarator", "init_declarator")):
        sign = child_of(holder, "=") if holder is not None and content is None else None
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
