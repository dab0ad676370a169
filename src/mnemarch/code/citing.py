"""Citations of code: checked and completed when they are recorded, and found in texts (R2, R11).

A text may name files, lines and symbols in English or Korean prose, code spans, stack traces, diffs and logs.
"""

from __future__ import annotations

import os

from mnemarch.code.git import full_hash, root_name
from mnemarch.code.symbols import COMPUTED, VALUE_CHARS_MAX, Symbol, agrees, find, language_of
from mnemarch.code.worktree import CHANGED, Check, WorkTree, checked, lines_hash, lines_of, span_of
from mnemarch.errors import Hint, InvalidInput
from mnemarch.files import path_inside
from mnemarch.model.unit import OF_CODE, Citation, CitationKind
from mnemarch.model.value import Frozen, replace
from mnemarch.text import secrets
from mnemarch.text.cache import pattern
from mnemarch.text.words import Patterns, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator
    from typing import Any, TypeVar

    from mnemarch.code.codebase import Codebase

    T = TypeVar("T")

# A longer signature (a name with dozens of overloads) is not stored. Later checks then use the name alone.
_SIGNATURE_CHARS_MAX = 4_000
_NAMED_MAX = 8

# A longer text or token is data and not prose.
_TOKEN_CHARS_MAX = 1_024
_NEAR_CHARS = 160
_TEXT_CHARS_MAX = 262_144
_NODES_MAX, _PATHS_MAX, _PATH_CHARS_MAX = 2_000, 64, 1_024


_EXTENSIONS, _SHORT_EXTENSIONS, _WITHOUT_SYMBOLS, _PRODUCTS, _DOMAINS, _NO_NAMES, _PATH_KEYS = (
    frozenset(listed("code", name))
    for name in ("extensions", "short extensions", "without symbols", "products", "domains", "no names", "path keys")
)

_PATTERNS = Patterns("code", "references")


def checked_in_tree(citation: Citation, root: str | None, tree: WorkTree | None = None) -> Citation:
    """The citation, completed from the tree. Raises `InvalidInput` if the tree lacks the cited code.

    Pass a `tree` that already exists for `root` to avoid reading and parsing again.
    """
    if citation.kind is not CitationKind.COMMIT and citation.kind not in OF_CODE:
        return citation
    if root is None:
        raise InvalidInput(f"{citation} can't be checked: this seat has no working tree.", hint=Hint("name the root"))
    if citation.kind is CitationKind.COMMIT:
        whole = full_hash(root, citation.ref)
        if whole is None:
            raise InvalidInput(
                f"No commit {citation.ref!r} in the repository of {root}.", hint="Cite an existing commit."
            )
        return replace(citation, ref=whole)
    complete = _complete_symbol if citation.kind is CitationKind.SYMBOL else _complete_file
    # The root tells apart equal paths in different folders.
    return _with_detail(complete(citation, tree or WorkTree(root)), root=root_name(root) or "")


def retaken(citations: Iterable[Citation], code: Codebase) -> list[Citation]:
    """The cited symbols whose signatures changed, cited with both the new and the old signature (R11).

    The old signature stays because it still holds on branches without the change. A constant with a new value is a
    different fact, so its citation doesn't change.
    """
    changed = []
    for citation in citations:
        if citation.kind is not CitationKind.SYMBOL or checked(code.tree, citation).state != CHANGED:
            continue
        try:
            now = _complete_symbol(citation, code.tree)
        except InvalidInput:
            continue  # The name is ambiguous now.
        old, new = (each.get("signature") or "" for each in (citation, now))
        signature = "\n".join(dict.fromkeys([*new.split("\n"), *old.split("\n")]))
        if (
            not agrees(old, new)
            and len(signature) <= _SIGNATURE_CHARS_MAX
            and citation.get("value") == now.get("value")
        ):
            changed.append(_with_detail(now, signature=signature))
    return changed


def cited_in_text(code: Codebase, text: str, data: Iterable[Any] = ()) -> tuple[Citation, ...]:
    """Citations of the tree's files and symbols that a text, or the data of a tool's event, names.

    They need no effort from the author, and recall checks them again.
    """
    named = references_in(text)
    named += [Reference(path) for item in data for path in paths_in_data(item)]
    citations: dict[str, Citation] = {}
    for citation in _cited(code, named, text):
        citations.setdefault(str(citation), citation)
        if len(citations) >= _NAMED_MAX:
            break
    with_symbols = {citation.ref for citation in citations.values() if citation.kind == "symbol"}
    return tuple(item for item in citations.values() if item.kind != "file" or item.ref not in with_symbols)


def _complete_file(citation: Citation, tree: WorkTree) -> Citation:
    source = _citable(tree.read(citation.ref))
    if citation.get("lines") is None:
        return _with_detail(citation, sha256=_citable(tree.content_hash(citation.ref)))
    span, lines = span_of(citation), lines_of(source.text)
    if span is None or span[1] > len(lines):
        raise InvalidInput(
            f"{citation.ref!r} has {len(lines)} lines, not {citation.get('lines')}.", hint="Cite existing lines."
        )
    return _with_detail(citation, sha256=lines_hash(lines[span[0] - 1 : span[1]]))


def _complete_symbol(citation: Citation, tree: WorkTree) -> Citation:
    path, name = citation.ref, citation.get("name") or ""
    sha256 = _citable(tree.content_hash(path))
    symbols = tree.symbols(path)
    if isinstance(symbols, Check):
        if tree.mentions(path, name) is not True:
            raise InvalidInput(f"No {name!r} in {path!r}.", hint="Cite a name that the file has.")
        return _with_detail(citation, sha256=sha256)
    named = find(symbols, name)
    if not named:
        raise InvalidInput(f"{path!r} does not define {name!r}.", hint="Cite a name that the file defines.")
    if len(named) > 1:
        names = sorted(symbol.name for symbol in named)
        raise InvalidInput(
            f"{name!r} can be any of {len(names)} names in {path!r}: {', '.join(names[:5])}.",
            hint=f"Cite one of them, for example symbol:{path}::{names[0]}.",
        )
    [symbol] = named
    return _with_detail(
        citation,
        name=symbol.name,
        sha256=sha256,
        signature=_storable_signature(symbol.signature),
        value=_storable_value(symbol),
    )


def _storable_signature(signature: str) -> str:
    if not _is_storable(signature):
        signature = _PATTERNS["default text"].sub(f"= {COMPUTED}", signature)  # A default value may be a secret.
    return signature if len(signature) <= _SIGNATURE_CHARS_MAX and _is_storable(signature) else ""


def _storable_value(symbol: Symbol) -> str:
    """The symbol's value, if it is a short literal and no secret, alone or with its name. Empty otherwise."""
    value = symbol.value
    is_short = COMPUTED not in value.split("\n") and len(value) <= VALUE_CHARS_MAX
    return value if value and is_short and _is_storable(value) and _is_storable(f"{symbol.name} = {value}") else ""


def _is_storable(text: str) -> bool:
    # The log redacts secrets, so a redacted text would never equal the source again.
    return secrets.redacted(text)[0] == text


def _with_detail(citation: Citation, **details: str) -> Citation:
    detail = dict(citation.detail) | {name: text for name, text in details.items() if text}
    return replace(citation, detail=tuple(sorted(detail.items())))


def _citable(answer: T | Check) -> T:
    if isinstance(answer, Check):
        raise InvalidInput(
            f"It can't be cited: {answer.reason}.",
            hint="Cite a text file by its path from the root; lines of it as PATH#L2-L9.",
        )
    return answer


def _cited(code: Codebase, named: Iterable[Reference], text: str) -> Iterator[Citation]:
    for reference in named:
        path = _inside(code, reference.path)
        if path is None:
            continue
        name = reference.name or _definition_around(code, path, reference.lines)
        for wanted in ([Citation.symbol(path, name)] if name else []) + [Citation.file(path)]:
            try:
                citation = checked_in_tree(wanted, code.root, code.tree)
            except InvalidInput:
                continue  # The file lacks the name. Nobody asked for this citation, so it is no error.
            detail = dict(citation.detail) | {"by": "text"}
            if not _states(text, detail.get("value", "")):
                detail.pop("value", None)  # The text doesn't state the constant's value, so any value holds.
            yield replace(citation, detail=tuple(sorted(detail.items())))
            break


def _states(text: str, value: str) -> bool:
    import re

    bare = value.strip("'\"")
    return bool(bare) and re.search(rf"(?<![\w.]){re.escape(bare)}(?!\w|\.\d)", text) is not None


def _inside(code: Codebase, path: str) -> str | None:
    """The path from the tree's root, or None if the tree lacks it. The text may leave out leading folders."""
    if os.path.isabs(path):
        relative = path_inside(path, code.root)
        return relative if relative is not None and code.tree.has(relative) else None
    path = os.path.normpath(path).replace(os.sep, "/")
    if path.startswith("../") or path in {".", ".."}:
        return None
    return path if code.tree.has(path) else code.ending_with(path)


def _definition_around(code: Codebase, path: str, lines: tuple[int, int] | None) -> str | None:
    """The innermost definition around some lines. Its name survives edits that change the line numbers."""
    if lines is None or isinstance(symbols := code.tree.symbols(path), Check):
        return None
    around = [symbol for symbol in symbols.values() if symbol.first <= lines[0] and lines[1] <= symbol.last]
    return min(around, key=lambda symbol: symbol.last - symbol.first).name if around else None


# What a text names


class Reference(Frozen):
    """A path as in the text, but with `/`; a symbol with dots and the first and last line, if the text names them.

    An absolute path stays absolute: only a caller that knows the root can make it relative.
    """

    path: str
    name: str | None = None
    lines: tuple[int, int] | None = None


def references_in(text: str, limit: int = 32) -> list[Reference]:
    """The first `limit` distinct references of a text, in order. The end of a very long text is not read."""
    references: dict[Reference, None] = {}
    skipped_to = 0
    for match in _PATTERNS["token"].finditer(text, 0, _TEXT_CHARS_MAX):
        token = match[0]
        if match.start() < skipped_to or len(token) > _TOKEN_CHARS_MAX or len(token) < 3:
            continue
        if "://" in token:
            space = pattern(r"\s").search(text, match.end())
            skipped_to = space.end() if space is not None else len(text)
            continue
        for reference in _in_token(text, token, match.start()):
            references.setdefault(reference)
        if len(references) >= limit:
            break
    return list(references)[:limit]


def paths_in_data(data: Any) -> list[str]:
    """The paths in a tool's input or output: texts under keys such as `file`, `path` or `files`, at any depth."""
    paths: dict[str, None] = {}
    waiting: list[tuple[Any, bool]] = [(data, False)]
    for _ in range(_NODES_MAX):
        if not waiting or len(paths) >= _PATHS_MAX:
            break
        item, is_named = waiting.pop()
        if isinstance(item, str):
            is_path = "://" not in item and item.isprintable() and item.strip() == item
            if is_named and is_path and 0 < len(item) <= _PATH_CHARS_MAX:
                paths.setdefault(item.replace("\\", "/"))
        elif isinstance(item, dict):
            waiting += [(child, _names_a_path(key)) for key, child in reversed(list(item.items())[:_NODES_MAX])]
        elif isinstance(item, list | tuple):
            waiting += [(child, is_named) for child in reversed(item[:_NODES_MAX])]
    return list(paths)


def _names_a_path(key: object) -> bool:
    return str(key).lower().replace("_", "").replace("-", "") in _PATH_KEYS


def _in_token(text: str, token: str, start: int) -> Iterator[Reference]:
    end = _path_end(token)
    if end == 0:
        return
    begin = _path_begin(token, end)
    if "@" in token[1:begin]:
        return  # `git@host:path`
    path, rest = token[begin:end].replace("\\", "/"), token[end:]
    if text[max(start - 4, 0) : start] in {"+++ ", "--- "} or _is_after_diff(text, start):
        path = path[2:] if path.startswith(("a/", "b/")) else path
    while path.startswith("./"):
        path = path[2:]
    if not _is_path(path, has_more=bool(rest)):
        return
    name, lines, is_exact = _after_path(path, rest)
    behind = text[start + len(token) : start + len(token) + _NEAR_CHARS]
    if not is_exact:
        name, lines = _line_and_function(behind)
    elif rest.endswith(":in") and (raised := _PATTERNS["raised in"].match(behind)) is not None:
        name = _dotted(raised[1])
    before = text[max(start + begin - _NEAR_CHARS, 0) : start + begin]
    if name is None and (lines is not None or not is_exact):
        name = _caller_in(before)
    if name is not None or lines is not None or is_exact:
        yield Reference(path, name, lines)
        return
    around = _names_in(_PATTERNS["spans before"].search(before)) or _names_in(
        _PATTERNS["spans after"].match(rest + behind)
    )
    yield from [Reference(path, item) for item in around if language_of(item) is None] or [Reference(path)]


def _path_end(token: str) -> int:
    """The position where the first path of a token ends, 0 if there is none."""
    at = token.find(".")
    while at >= 0:
        ending = _PATTERNS["file ending"].match(token, at + 1)
        end = ending.end() if ending is not None else at + 1
        after = token[end : end + 1]
        goes_on = after == "/" or (after in {".", "_"} and token[end + 1 : end + 2].isalnum())
        if (
            ending is not None
            and ending[0].lower() in _EXTENSIONS
            and not goes_on
            and at > 0
            and token[at - 1] not in "/\\."
        ):
            return end
        at = token.find(".", at + 1)
    whole = _PATTERNS["file without ending"].search(token)
    return whole.end() if whole is not None else 0


def _path_begin(token: str, end: int) -> int:
    """The position where a path begins, after a prefix such as `HEAD:`, `--file=` or `@`. A drive is part of it."""
    begin = 0
    if not _PATTERNS["drive"].match(token):
        begin = max(token.rfind(":", 0, end), token.rfind("=", 0, end)) + 1
    while begin < end and token[begin] in "@#!$%&^=+-~" and token[begin : begin + 2] != "~/":
        begin += 1
    return begin


def _is_path(path: str, *, has_more: bool) -> bool:
    folder, _, file = path.rpartition("/")
    stem, _, ending = file.rpartition(".")
    if not file or "@" in path.lstrip("@").replace("/@", "/") or path.startswith("..."):
        return False  # An address (`user@host.py`), or the end of a shortened path.
    if not folder and ending.lower() in _SHORT_EXTENSIONS and "." in stem:
        return False
    first = folder.partition("/")[0]
    if "." in first and first.rpartition(".")[2].lower() in _DOMAINS:
        return False
    return bool(folder) or has_more or file.lower() not in _PRODUCTS


def _is_after_diff(text: str, start: int) -> bool:
    line = text[max(text.rfind("\n", max(start - 300, 0), start) + 1, start - 300) : start]
    return line.startswith("diff --git ")


def _after_path(path: str, rest: str) -> tuple[str | None, tuple[int, int] | None, bool]:
    """The symbol or the lines directly after a path, and whether there are any."""
    placed = _PATTERNS["lines after path"].match(rest)
    if placed is not None:
        first = int(placed["first"])
        last = max(first, int(placed["last"] or 0))
        return (None, (first, last), True) if first else (None, None, False)
    named = _PATTERNS["symbol after path"].match(rest)
    ending = path.rpartition(".")[2].lower()
    if named is None or ending in _WITHOUT_SYMBOLS or (rest[0] == "#" and language_of(path) is None):
        return None, None, False
    name = _dotted(named[1])
    return (name, None, True) if name is not None else (None, None, False)


def _line_and_function(text: str) -> tuple[str | None, tuple[int, int] | None]:
    """The symbol and lines after the path in `File "x.py", line 10, in f` and in `x.ts(10,5)`."""
    match = _PATTERNS["line and function"].match(text)
    if match is None:
        return None, None
    line = int(match["line"] or match["column"])
    return _dotted(match["name"] or ""), (line, line) if line > 0 else None


def _caller_in(text: str) -> str | None:
    """The `login` of `at login (x.ts:10:5)`, the `Auth.login` of `at com.shop.Auth.login(Auth.java:10)`."""
    called = _PATTERNS["call before"].search(text) if text.endswith("(") else None
    if called is None:
        return None
    parts = [part for part in called[1].split(".") if part not in {"Object", "Module"}]
    return _dotted(".".join(parts[-2:]) if text.endswith(f"{called[1]}(") else ".".join(parts))


def _names_in(spans: re.Match[str] | None) -> list[str]:
    """The names in a row of code spans."""
    names = [_dotted(span) for span in _PATTERNS["in span"].findall(spans[1])] if spans is not None else []
    return [name for name in names if name is not None]


def _dotted(name: str) -> str | None:
    """A symbol's name with dots, or None if it is no name."""
    name = name.removesuffix("()").rstrip(".:")
    if not name or name.lower() in _NO_NAMES or not _PATTERNS["dotted name"].fullmatch(name):
        return None
    return _PATTERNS["separator"].sub(".", name)
