"""What a Python source defines, by the standard library's own parser."""

from __future__ import annotations

from _thread import allocate_lock  # what threading.Lock is; threading itself is a millisecond more to load

from mnemarch.code.symbol import COMPUTED, DEFAULT, VALUE_CHARS_MAX, Symbol
from mnemarch.lazy import Lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    import warnings
    from collections.abc import Iterator
else:
    ast = Lazy("ast")
    warnings = Lazy("warnings")

# What `ast.parse` raises at a text it can't take: bad syntax, a NUL or a surrogate, nesting that is too deep.
TOO_DEEP = (RecursionError, MemoryError)
UNPARSABLE = (SyntaxError, ValueError)
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")

_turn = allocate_lock()


def definitions(text: str) -> Iterator[Symbol]:
    """Every definition in order; raises one of UNPARSABLE."""
    # Statements still to be looked at, each with the name of what is around it, and what that is.
    waiting: list[tuple[ast.AST, str, str]] = [(_parsed(text), "", "module")]
    while waiting:
        node, prefix, around = waiting.pop()
        inside, prefix_inside = around, prefix
        for name, kind, signature, value in _defined(node, around):
            # Where a function is defined in another, its own variables stay its own.
            yield Symbol(prefix + name, kind, signature, *_lines(node), value)
            if kind in {"class", "function", "method"}:
                prefix_inside, inside = f"{prefix}{name}.", kind
        if inside == "method" and getattr(node, "name", "") == "__init__":
            yield from _own_attributes(node, prefix)
        for field in reversed(_BLOCKS):
            waiting += [(child, prefix_inside, inside) for child in reversed(getattr(node, field, None) or ())]


def header_signature(header: str) -> str:
    """The signature of a function or class that is given up to its colon; empty if it can't be read."""
    try:
        return next((signature for _, _, signature, _ in _defined(_parsed(f"{header} ...").body[0], "")), "")
    except UNPARSABLE:
        return ""


def variable_signature(name: str, annotation: str) -> str:
    try:
        return next((signature for _, _, signature, _ in _assigned(_parsed(f"{name}: {annotation}").body[0])), "")
    except UNPARSABLE:
        return ""


def _parsed(text: str) -> ast.Module:
    # `catch_warnings` changes the whole process, so only one thread may be inside; without it, every odd backslash of
    # the source would be printed.
    with _turn, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def _lines(node: ast.AST) -> tuple[int, int]:
    first: int = getattr(node, "lineno", 1)
    last: int | None = getattr(node, "end_lineno", None)
    return first, last or first


def _defined(node: ast.AST, around: str) -> Iterator[tuple[str, str, str, str]]:
    """Name, kind, signature and value of what one statement defines."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name, "method" if around == "class" else "function", _function(node), ""
    elif isinstance(node, ast.ClassDef):
        yield node.name, "class", _class(node), ""
    elif around in {"module", "class"}:
        yield from _assigned(node)


def _assigned(node: ast.AST) -> Iterator[tuple[str, str, str, str]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            value = _value(node.value) if isinstance(target, ast.Name) else ""
            for name in _names(target):
                yield name, _kind_of_variable(name), name, value
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        name = node.target.id
        yield name, _kind_of_variable(name), f"{name}: {_annotation(node.annotation)}", _value(node.value)
    elif isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            name = alias.asname or alias.name
            if "." not in name and name != "*":
                yield name, "import", name, ""
    elif type(node).__name__ == "TypeAlias":
        name = node.name.id  # type: ignore[attr-defined]
        yield name, "type", f"type {name}{_type_parameters(node)} = {_text(node.value)}", ""  # type: ignore[attr-defined]


def _value(node: ast.expr | None) -> str:
    """What stands there for itself: `3`, `'strict'`, `-1`, `60 * 60`, `(3, 5)`."""
    if node is None or (isinstance(node, ast.Constant) and node.value is ...):
        return ""  # The name alone is declared.
    if node.end_lineno != node.lineno or (node.end_col_offset or 0) - node.col_offset > VALUE_CHARS_MAX:
        return COMPUTED
    if isinstance(node, ast.Constant):
        return repr(node.value)
    return ast.unparse(node) if _is_plain(node) else COMPUTED


def _is_plain(node: ast.expr) -> bool:
    parts = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.Tuple)
    return isinstance(node, parts) and all(
        isinstance(part, parts) for part in ast.walk(node) if isinstance(part, ast.expr)
    )


def _own_attributes(node: ast.AST, prefix: str) -> Iterator[Symbol]:
    """What `__init__` gives the object: `self.name = ...` at its top."""
    for statement in getattr(node, "body", ()):
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        for target in targets:
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
                typed = isinstance(statement, ast.AnnAssign)
                signature = f"{target.attr}: {_annotation(statement.annotation)}" if typed else target.attr
                yield Symbol(prefix + target.attr, "field", signature, *_lines(statement))


def _names(target: ast.AST) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Tuple | ast.List):
        yield from (item.id for item in target.elts if isinstance(item, ast.Name))


def _kind_of_variable(name: str) -> str:
    return "constant" if name.isupper() else "variable"


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    given = node.args
    plain = [*given.posonlyargs, *given.args]
    first_with_default = len(plain) - len(given.defaults)
    parts = [_parameter(item, has_default=at >= first_with_default) for at, item in enumerate(plain)]
    if given.posonlyargs:
        parts.insert(len(given.posonlyargs), "/")
    if given.vararg:
        parts.append("*" + _parameter(given.vararg))
    elif given.kwonlyargs:
        parts.append("*")
    parts += [
        _parameter(item, has_default=default is not None)
        for item, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
    ]
    if given.kwarg:
        parts.append("**" + _parameter(given.kwarg))
    prefix = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    result = f" -> {_annotation(node.returns)}" if node.returns else ""
    return f"{prefix}{node.name}{_type_parameters(node)}({', '.join(parts)}){result}"


def _parameter(item: ast.arg, *, has_default: bool = False) -> str:
    typed = f": {_annotation(item.annotation)}" if item.annotation else ""
    return item.arg + typed + (DEFAULT if has_default else "")


def _class(node: ast.ClassDef) -> str:
    bases = [*map(_text, node.bases), *(f"{item.arg or '**'}={_text(item.value)}" for item in node.keywords)]
    return f"class {node.name}{_type_parameters(node)}" + (f"({', '.join(bases)})" if bases else "")


def _type_parameters(node: ast.AST) -> str:
    parameters = getattr(node, "type_params", None)
    return f"[{', '.join(map(_text, parameters))}]" if parameters else ""


def _annotation(node: ast.AST) -> str:
    """A type as text; one in quotes is the same type as without."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return " ".join(node.value.split())
    return _text(node)


def _text(node: ast.AST) -> str:
    # `ast.unparse` would do for all of it, at ten times the cost for the few forms that nearly every type has.
    match node:
        case ast.Name():
            return node.id
        case ast.Constant(value=None):
            return "None"
        case ast.Attribute():
            return f"{_text(node.value)}.{node.attr}"
        case ast.Subscript(slice=ast.Tuple(elts=[_, *_] as items)):
            return f"{_text(node.value)}[{', '.join(map(_text, items))}]"
        case ast.Subscript(slice=ast.Name() | ast.Subscript() | ast.Attribute() | ast.Constant()):
            return f"{_text(node.value)}[{_text(node.slice)}]"
        case ast.BinOp(op=ast.BitOr(), right=ast.Name() | ast.Constant() | ast.Subscript() | ast.Attribute()):
            return f"{_text(node.left)} | {_text(node.right)}"
    return ast.unparse(node)
