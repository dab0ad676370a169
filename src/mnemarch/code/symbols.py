"""The names and signatures that a source text defines: they tell a change that matters from one that doesn't.

All languages are parsed by ast-grep, which tolerates errors of syntax.
"""

from __future__ import annotations

from mnemarch.lazy import Lazy
from mnemarch.model.value import Frozen, replace
from mnemarch.text.cache import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ast_grep_py import SgNode

    from mnemarch.code import naming, signatures
else:
    naming = Lazy("mnemarch.code.naming")
    signatures = Lazy("mnemarch.code.signatures")

# Error recovery may take ten microseconds a character: a larger text is searched for words only.
SOURCE_CHARS_MAX = 524_288
# A variable's value is worked out when the program runs, or is too long to store.
COMPUTED = "…"
VALUE_CHARS_MAX = 200

_ENDINGS = {
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
_LANGUAGES = {ending: language for language, endings in _ENDINGS.items() for ending in endings.split()}
_FUNCTIONS = frozenset({"function", "method", "nameless"})
_TYPES = frozenset({"class", "struct", "interface", "trait", "enum", "outer"})
_VALUED = frozenset({"variable", "constant", "field"})
_VARIABLES = _VALUED | {"import"}
_ARGUMENTS = r"(?<=[\w!?=>])\s*\([^()]*\)$"
_IN_ANGLES = r"<[^<>]*>|<.*>$"
_ANY_VALUE = r"""(?:"[^"]*"|'[^']*'|\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}|[^,()\[\]{}"'])+?"""
_JOINTS = r"[\s`()*&]*(?:::|->|[.#$\\])+[\s`()*&]*|[\s`()*&]+"


class Symbol(Frozen):
    """A name with dots, what it is, its signature, and its first and last line.

    A name that is defined several times (overloads, the branches of an `if`) has all its signatures, one a line. A
    signature that can't be read is left out. The same goes for `value`: what a constant or another variable is given,
    if it is written there as a number, a text or the like; COMPUTED if it is not, empty if that can't be told.
    """

    name: str
    kind: str
    signature: str
    first: int
    last: int
    value: str = ""


class Symbols(dict[str, Symbol]):
    """The symbols of one text by name. `broken`: the text has errors of syntax, so there may be more."""

    __slots__ = ("broken",)

    def __init__(self, symbols: Iterable[Symbol] = (), *, broken: bool = False) -> None:
        super().__init__()
        self.broken = broken
        for symbol in symbols:
            known = self.get(symbol.name)
            self[symbol.name] = symbol if known is None else _merged(known, symbol)


def language_of(path: str) -> str | None:
    """The language of a file, by its ending; None if it is none that we have a grammar for."""
    name, dot, ending = path.rpartition(".")
    return _LANGUAGES.get(ending.lower()) if dot and name and "/" not in ending else None


def symbols_of(path: str, text: str) -> Symbols | None:
    """What the text defines; None if that can't be told: no grammar for it, too long, or no text for a parser."""
    language = language_of(path)
    if language is None or len(text) > SOURCE_CHARS_MAX:
        return None
    from ast_grep_py import SgRoot

    grammar = naming.grammar_of(language)
    try:
        nodes = SgRoot(text.removeprefix("\ufeff"), language).root().find_all(any=grammar.wanted)
        defining = [(node, kind) for node in nodes if (kind := grammar.kinds.get(node.kind())) is not None]
        # The others are errors: what was defined there isn't known.
        return Symbols(_defined(language, defining, len(text)), broken=len(defining) < len(nodes))
    except (RuntimeError, ValueError):
        return None  # Surrogates, or a release of ast-grep that names its nodes otherwise.


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
    matching = [symbol for key, symbol in symbols.items() if key.endswith(ending)]
    return matching or ([exact] if exact is not None else [])


def agrees(cited: str, current: str) -> bool:
    """Whether two signatures or values have an alternative in common; one that can't be read contradicts none.

    How they are spaced and quoted makes no difference.
    """
    was, now = (pattern(r"[^\S\n]").sub("", text.replace("'", '"')).split("\n") for text in (cited, current))
    if not cited or not current or not set(was).isdisjoint(now):
        return True
    if COMPUTED not in cited:
        return False
    import re

    # A default value that was not kept may be any.
    kept = [re.escape(line).replace(COMPUTED, _ANY_VALUE) for line in was if COMPUTED in line]
    return any(re.fullmatch(line, other) for line in kept for other in now)


def plain_name(name: str) -> str:
    """A name with dots, whatever the language writes between its parts."""
    if name.isidentifier():
        return name
    name, operator, sign = name.strip().partition("operator")
    if operator and not sign[:1].isalnum() and sign[:1] != "_":
        return pattern(_JOINTS).sub(".", name) + operator + "".join(sign.split())  # C++'s `operator==` is one name
    name = pattern(_IN_ANGLES).sub("", pattern(_ARGUMENTS).sub("", name + operator + sign))
    return pattern(_JOINTS).sub(".", name).strip(".")


def _merged(known: Symbol, other: Symbol) -> Symbol:
    if "import" in {known.kind, other.kind}:
        return known if other.kind == "import" else other
    longest = max(known, other, key=lambda symbol: symbol.last - symbol.first)
    lines = [line for symbol in (known, other) for line in symbol.signature.split("\n") if line]
    values = [line for symbol in (known, other) for line in symbol.value.split("\n") if line]
    return replace(longest, signature="\n".join(dict.fromkeys(lines)), value="\n".join(dict.fromkeys(values)))


def _defined(language: str, defining: list[tuple[SgNode, str]], length: int) -> Iterator[Symbol]:
    """The definitions, which come in order, each named after those around it."""
    grammar = naming.grammar_of(language)
    # Where each definition around ends, the name that it gives, and what it is.
    around: list[tuple[int, str, str]] = [(length + 1, "", "")]
    for node, node_kind in defining:
        span = node.range()
        # A node that takes in its line's end goes on to the next line's first column.
        lines = span.start.line + 1, max(span.end.line + (span.end.column > 0), span.start.line + 1)
        while around[-1][0] <= span.start.index:
            around.pop()
        _, prefix, outer = around[-1]
        is_local = outer in _FUNCTIONS
        if is_local and node_kind in _VARIABLES and not grammar.variables_hold_functions:
            if language == "python" and outer == "method":
                for attribute in naming.python_attributes(node):
                    signature = signatures.signature_of([node], "field", "", frozenset())
                    yield Symbol(around[-2][1] + attribute, "field", signature, *lines)
            continue
        names = [] if node_kind == "nameless" else list(grammar.named(node))
        inside, inner = prefix, outer if node_kind in _VARIABLES and is_local else node_kind
        for name, own_kind, nodes in names:
            kind = own_kind or node_kind
            if is_local and kind in _VARIABLES:
                continue
            if kind == "function" and outer in _TYPES:
                kind = "method"
            dotted, inner = plain_name(name), kind
            if dotted and len(names) == 1 and naming.is_around(node):
                inside = f"{prefix}{dotted}."
            if dotted and kind != naming.OUTER:
                silent = frozenset[str]() if language == "python" else signatures.SILENT
                signature = dotted if kind == "import" else signatures.signature_of(nodes, kind, dotted, silent)
                value = signatures.value_of(node) if kind in _VALUED and len(names) == 1 else ""
                yield Symbol(prefix + dotted, kind, signature, *lines, value)
        around.append((span.end.index, inside, inner))
