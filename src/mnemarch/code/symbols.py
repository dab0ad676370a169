"""The names and signatures that a source text defines. They separate relevant changes from irrelevant ones.

All languages are parsed by ast-grep, which tolerates errors of syntax.
"""

from __future__ import annotations

from mnemarch.lazy import Lazy
from mnemarch.model.value import Frozen, replace
from mnemarch.text.cache import pattern
from mnemarch.text.words import grouped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ast_grep_py import SgNode

    from mnemarch.code import definitions
else:
    definitions = Lazy("mnemarch.code.definitions")

# Error recovery may take ten microseconds per character. Larger texts are only searched for words.
SOURCE_CHARS_MAX = 524_288
# The mark for a value that the program computes at run time, or that is too long to store.
COMPUTED = "…"
VALUE_CHARS_MAX = 200

_LANGUAGES = {ending: language for language, endings in grouped("code", "languages").items() for ending in endings}
_FUNCTIONS = frozenset({"function", "method", "nameless"})
_TYPES = frozenset({"class", "struct", "interface", "trait", "enum", "outer"})
_VALUED = frozenset({"variable", "constant", "field"})
_VARIABLES = _VALUED | {"import"}
_ARGUMENTS = r"(?<=[\w!?=>])\s*\([^()]*\)$"
_IN_ANGLES = r"<[^<>]*>|<.*>$"
_ANY_VALUE = r"""(?:"[^"]*"|'[^']*'|\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}|[^,()\[\]{}"'])+?"""
_JOINTS = r"[\s`()*&]*(?:::|->|[.#$\\])+[\s`()*&]*|[\s`()*&]+"


class Symbol(Frozen):
    """A definition: its dotted name, its kind, its signature, and its first and last line.

    A name with several definitions (overloads, the branches of an `if`) has all their signatures, one per line.
    Unreadable signatures are left out. `value` works the same way: it is the literal value of a constant or another
    variable, COMPUTED if the value isn't literal, or empty if unknown.
    """

    name: str
    kind: str
    signature: str
    first: int
    last: int
    value: str = ""


class Symbols(dict[str, Symbol]):
    """The symbols of one text by name. `broken`: the text has syntax errors, so symbols may be missing."""

    __slots__ = ("broken",)

    def __init__(self, symbols: Iterable[Symbol] = (), *, broken: bool = False) -> None:
        super().__init__()
        self.broken = broken
        for symbol in symbols:
            earlier = self.get(symbol.name)
            self[symbol.name] = symbol if earlier is None else _merged(earlier, symbol)


def language_of(path: str) -> str | None:
    """The language of a file by its extension. None if there is no grammar for it."""
    name, dot, ending = path.rpartition(".")
    return _LANGUAGES.get(ending.lower()) if dot and name and "/" not in ending else None


def symbols_of(path: str, text: str) -> Symbols | None:
    """The symbols that the text defines. None if it has no grammar, is too long or can't be parsed."""
    language = language_of(path)
    if language is None or len(text) > SOURCE_CHARS_MAX:
        return None
    from ast_grep_py import SgRoot

    grammar = definitions.grammar_of(language)
    try:
        nodes = SgRoot(text.removeprefix("\ufeff"), language).root().find_all(any=grammar.wanted)
        defining = [(node, kind) for node in nodes if (kind := grammar.kinds.get(node.kind())) is not None]
        # The other nodes are syntax errors, whose definitions are unknown.
        return Symbols(_defined(language, defining, len(text)), broken=len(defining) < len(nodes))
    except (RuntimeError, ValueError):
        return None  # Surrogates, or an ast-grep version with other node names.


def find(symbols: Mapping[str, Symbol], name: str) -> list[Symbol]:
    """The symbol with exactly this name, or else all symbols whose names end in it.

    Accepts `Auth.login`, `Auth::login`, `Auth#login`, `(*Auth).Login` and `login()`.
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
    """Whether two signatures or values share an alternative. An empty one agrees with everything.

    Spaces and the kind of quotes are ignored.
    """
    was, now = (pattern(r"[^\S\n]").sub("", text.replace("'", '"')).split("\n") for text in (cited, current))
    if not cited or not current or not set(was).isdisjoint(now):
        return True
    if COMPUTED not in cited:
        return False
    import re

    # A default value that was not stored matches any value.
    kept = [re.escape(line).replace(COMPUTED, _ANY_VALUE) for line in was if COMPUTED in line]
    return any(re.fullmatch(line, other) for line in kept for other in now)


def plain_name(name: str) -> str:
    """The name with dots in place of its language's separators."""
    if name.isidentifier():
        return name
    name, operator, sign = name.strip().partition("operator")
    if operator and not sign[:1].isalnum() and sign[:1] != "_":
        return pattern(_JOINTS).sub(".", name) + operator + "".join(sign.split())  # C++'s `operator==` is one name
    name = pattern(_IN_ANGLES).sub("", pattern(_ARGUMENTS).sub("", name + operator + sign))
    return pattern(_JOINTS).sub(".", name).strip(".")


def _merged(earlier: Symbol, other: Symbol) -> Symbol:
    if "import" in {earlier.kind, other.kind}:
        return earlier if other.kind == "import" else other
    longest = max(earlier, other, key=lambda symbol: symbol.last - symbol.first)
    lines = [line for symbol in (earlier, other) for line in symbol.signature.split("\n") if line]
    values = [line for symbol in (earlier, other) for line in symbol.value.split("\n") if line]
    return replace(longest, signature="\n".join(dict.fromkeys(lines)), value="\n".join(dict.fromkeys(values)))


def _defined(language: str, defining: list[tuple[SgNode, str]], length: int) -> Iterator[Symbol]:
    """The symbols of definitions in source order, each name prefixed by those of the definitions around it."""
    grammar = definitions.grammar_of(language)
    # The end, name prefix and kind of each surrounding definition.
    around: list[tuple[int, str, str]] = [(length + 1, "", "")]
    for node, node_kind in defining:
        span = node.range()
        # A node that includes its line break ends at the first column of the next line.
        lines = span.start.line + 1, max(span.end.line + (span.end.column > 0), span.start.line + 1)
        while around[-1][0] <= span.start.index:
            around.pop()
        _, prefix, outer = around[-1]
        is_local = outer in _FUNCTIONS
        if is_local and node_kind in _VARIABLES and not grammar.variables_hold_functions:
            if language == "python" and outer == "method":
                for attribute in definitions.python_attributes(node):
                    signature = definitions.signature_of([node], "field", "", frozenset())
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
            if dotted and len(names) == 1 and definitions.is_around(node):
                inside = f"{prefix}{dotted}."
            if dotted and kind != definitions.OUTER:
                silent = frozenset[str]() if language == "python" else definitions.SILENT
                signature = dotted if kind == "import" else definitions.signature_of(nodes, kind, dotted, silent)
                value = definitions.value_of(node) if kind in _VALUED and len(names) == 1 else ""
                yield Symbol(prefix + dotted, kind, signature, *lines, value)
        around.append((span.end.index, inside, inner))
