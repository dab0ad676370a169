"""What a source text defines: names with signatures, by which a change that matters is told from one that doesn't.

Python is read by the standard library's parser, what it can't read and all other languages by ast-grep's trees, which
stand errors of syntax.
"""

from __future__ import annotations

from functools import cache

from mnemarch.code.symbol import Symbol
from mnemarch.lazy import Lazy
from mnemarch.model.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator, Mapping

    from ast_grep_py import SgNode

    from mnemarch.code import grammars, python_symbols, signatures
    from mnemarch.code.grammars import Grammar
else:
    re = Lazy("re")
    grammars = Lazy("mnemarch.code.grammars")
    python_symbols = Lazy("mnemarch.code.python_symbols")
    signatures = Lazy("mnemarch.code.signatures")

__all__ = ["Symbol", "Symbols", "agrees", "find", "has_value", "language_of", "symbols_of"]

# Error recovery may take ten microseconds a character: a larger text is searched for words only.
SOURCE_CHARS_MAX = 524_288

_LANGUAGES = {
    "python": "py pyi pyw",
    "javascript": "js mjs cjs jsx",
    "typescript": "ts mts cts",
    "tsx": "tsx",
    "go": "go",
    "rust": "rs",
    "java": "java",
    "c": "c",
    "cpp": "cc cpp cxx c++ h hh hpp hxx h++ ipp inl tpp",
    "ruby": "rb rake gemspec",
    "kotlin": "kt kts",
    "csharp": "cs csx",
    "php": "php phtml",
    "swift": "swift",
    "scala": "scala sc",
}
_VALUED = frozenset({"variable", "constant", "field"})
_BY_ENDING = {ending: language for language, endings in _LANGUAGES.items() for ending in endings.split()}


class Symbols(dict[str, Symbol]):
    """The symbols of one text by name. `broken`: the text has errors of syntax, so there may be more."""

    __slots__ = ("broken",)

    def __init__(self, found: Iterable[Symbol] = (), *, broken: bool = False) -> None:
        super().__init__()
        self.broken = broken
        for symbol in found:
            known = self.get(symbol.name)
            self[symbol.name] = symbol if known is None else _merged(known, symbol)


def language_of(path: str) -> str | None:
    """The language of a file, by its ending; None if it is none that we have a grammar for."""
    name, dot, ending = path.rpartition(".")
    return _BY_ENDING.get(ending.lower()) if dot and name and "/" not in ending else None


def symbols_of(path: str, text: str) -> Symbols | None:
    """What the text defines; None if that can't be told: no grammar for it, too long, or no text for a parser."""
    language = language_of(path)
    if language is None or len(text) > SOURCE_CHARS_MAX:
        return None
    text = text.removeprefix("\ufeff")
    if language == "python":
        try:
            return Symbols(python_symbols.definitions(text))
        except python_symbols.TOO_DEEP:
            return None  # The other parser would be at it for long.
        except python_symbols.UNPARSABLE:
            pass  # Half-written, or in the syntax of a newer Python.
    grammar = grammars.grammar_of(language)
    return _by_grammar(grammar, text) if grammar is not None else None


def find(symbols: Mapping[str, Symbol], name: str) -> list[Symbol]:
    """The symbols that a name means: the one of exactly this name, else all whose names end in it.

    `Auth.login`, `Auth::login`, `Auth#login`, `(*Auth).Login` and `login()` are understood.
    """
    name = plain_name(name)
    if not name:
        return []
    exact = symbols.get(name)
    if exact is not None and exact.kind != "import":
        return [exact]
    ending = f".{name}"
    found = [symbol for key, symbol in symbols.items() if key.endswith(ending)]
    return found or ([exact] if exact is not None else [])


def agrees(signature: str, symbol: Symbol) -> bool:
    """Whether one of the symbol's signatures is one of these; a signature that can't be read contradicts none."""
    return _has_common_line(signature, symbol.signature)


def has_value(value: str, symbol: Symbol) -> bool:
    """The same of what a constant or another variable is given."""
    return _has_common_line(value, symbol.value)


def _has_common_line(told: str, found: str) -> bool:
    return not told or not found or not set(told.split("\n")).isdisjoint(found.split("\n"))


def plain_name(name: str) -> str:
    """A name with dots, whatever the language writes between its parts."""
    if name.isidentifier():
        return name
    name, operator, sign = name.strip().partition("operator")
    if operator and not sign[:1].isalnum() and sign[:1] != "_":
        return _joints().sub(".", name) + operator + "".join(sign.split())  # C++'s `operator==` is one name
    name = _in_angles().sub("", _arguments().sub("", name + operator + sign))
    return _joints().sub(".", name).strip(".")


def _merged(known: Symbol, other: Symbol) -> Symbol:
    if "import" in {known.kind, other.kind}:
        return known if other.kind == "import" else other
    kept = max(known, other, key=lambda symbol: symbol.last - symbol.first)
    said = [line for symbol in (known, other) for line in symbol.signature.split("\n") if line]
    held = [line for symbol in (known, other) for line in symbol.value.split("\n") if line]
    return replace(kept, signature="\n".join(dict.fromkeys(said)), value="\n".join(dict.fromkeys(held)))


def _by_grammar(grammar: Grammar, text: str) -> Symbols | None:
    from ast_grep_py import SgRoot

    try:
        found = SgRoot(text, grammar.name).root().find_all(any=grammar.wanted())
        defining = [(node, kind) for node in found if (kind := grammar.kinds.get(node.kind())) is not None]
        # The others are errors: what was defined there isn't known.
        return Symbols(_named(grammar, defining, len(text)), broken=len(defining) < len(found))
    except (RuntimeError, ValueError):
        return None  # Surrogates, or a release of ast-grep that names its nodes otherwise.


def _named(grammar: Grammar, found: list[tuple[SgNode, str]], length: int) -> Iterator[Symbol]:
    """The definitions, which come in order, each named after those around it."""
    # Where each definition around ends, the name that it gives, and what it is.
    around: list[tuple[int, str, str]] = [(length + 1, "", "")]
    # The two parsers of Python would not write a value in the same way.
    valued = _VALUED if grammar.name != "python" else frozenset()
    for node, node_kind in found:
        span = node.range()
        while around[-1][0] <= span.start.index:
            around.pop()
        _, prefix, outer = around[-1]
        is_local = outer in grammars.FUNCTIONS
        if is_local and node_kind in grammars.VARIABLES and not grammar.variables_hold_functions:
            continue
        names = [] if node_kind == grammars.NAMELESS else list(grammar.named(node))
        inside, inner = prefix, outer if node_kind in grammars.VARIABLES and is_local else node_kind
        for name, own_kind, nodes in names:
            kind = own_kind or node_kind
            if is_local and kind in grammars.VARIABLES:
                continue
            if kind == "function" and outer in grammars.TYPES:
                kind = "method"
            dotted, inner = plain_name(name), kind
            if dotted and len(names) == 1 and grammars.is_around(node):
                inside = f"{prefix}{dotted}."
            if dotted and kind != grammars.OUTER:
                # A node that takes in its line's end goes on to the next line's first column.
                last = max(span.end.line + (span.end.column > 0), span.start.line + 1)
                signature = _signature(grammar, nodes, kind, dotted)
                value = grammars.value_of(node) if kind in valued and len(names) == 1 else ""
                yield Symbol(prefix + dotted, kind, signature, span.start.line + 1, last, value)
        around.append((span.end.index, inside, inner))


def _signature(grammar: Grammar, nodes: list[SgNode], kind: str, name: str) -> str:
    if grammar.name != "python":
        return signatures.signature_of(nodes, kind, name)
    [node] = nodes
    if node.kind() == "assignment":
        annotation = node.field("type")
        return python_symbols.variable_signature(name, annotation.text()) if annotation is not None else name
    colon = grammars.child_of(node, ":")
    if colon is None:
        return ""
    return python_symbols.header_signature(node.text()[: colon.range().end.index - node.range().start.index])


@cache
def _arguments() -> re.Pattern[str]:
    return re.compile(r"(?<=[\w!?=>])\s*\([^()]*\)$")


@cache
def _in_angles() -> re.Pattern[str]:
    return re.compile(r"<[^<>]*>|<.*>$")


@cache
def _joints() -> re.Pattern[str]:
    return re.compile(r"[\s`()*&]*(?:::|->|[.#$\\])+[\s`()*&]*|[\s`()*&]+")
