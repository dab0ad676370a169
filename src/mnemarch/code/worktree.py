"""Whether what is cited still stands in a working tree (S11-S13, R11): a file, some of its lines, a symbol."""

from __future__ import annotations

from _thread import allocate_lock  # what threading.Lock is; threading itself is a millisecond more to load

from mnemarch.code.sources import MISSING, UNKNOWN, Folder, Source, Trouble
from mnemarch.code.symbols import agrees, find, has_value, language_of, plain_name, symbols_of
from mnemarch.lazy import Lazy
from mnemarch.model.citation import CitationKind
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import hashlib
    import re
    from collections.abc import Callable, Hashable, Iterator, Sequence
    from typing import Any

    from mnemarch.code.sources import Sources
    from mnemarch.code.symbol import Symbol
    from mnemarch.code.symbols import Symbols
    from mnemarch.model.citation import Citation
else:
    hashlib = Lazy("hashlib")
    re = Lazy("re")

__all__ = ["Check", "Source", "Sources", "Trouble", "WorkTree", "checked", "content_hash", "lines_hash", "lines_of"]

FILES_MAX = 256
CHARS_MAX = 33_554_432
# Lines that are no longer in their place are looked for by hashing every stretch of the file that is as long.
_SEARCH_BYTES_MAX = 16_777_216
# What the trouble with one stretch weighs, however short it is.
_STRETCH_BYTES = 256
_ANSWERS_MAX = 64
_REASON_CHARS_MAX = 300


@value
class Check:
    """`holds`, `gone`, or `unknown` if the tree can't tell; why; and where it is now if it moved."""

    state: str
    reason: str = ""
    moved_to: str | None = None


class WorkTree:
    """Files with what they define, each read and parsed again only when it changed; for any number of threads."""

    def __init__(
        self,
        root: str | Sources,
        *,
        files_max: int = FILES_MAX,
        chars_max: int = CHARS_MAX,
        parse: Callable[[str, str], Symbols | None] = symbols_of,
    ) -> None:
        self._sources: Sources = Folder(root) if isinstance(root, str) else root
        self._files_max, self._chars_max = files_max, chars_max
        self._parse = parse
        self._lock = allocate_lock()
        self._kept: dict[str, _Kept] = {}
        self._chars = 0

    def has(self, path: str) -> bool:
        """Whether there is such a file; also if it can't be read."""
        kept = self._current(path)
        return not isinstance(kept, Trouble) or kept.state != MISSING

    def stamp(self, path: str) -> Hashable | None:
        return self._sources.stamp(path)

    def read(self, path: str) -> Source | Trouble:
        kept = self._current(path)
        return kept if isinstance(kept, Trouble) else kept.source

    def symbols(self, path: str) -> Symbols | Trouble:
        """What the file defines; UNKNOWN if there is no grammar for it."""
        kept = self._current(path)
        if isinstance(kept, Trouble):
            return kept
        found: Symbols | None = kept.answer("symbols", lambda: self._parse(path, kept.source.text))
        return Trouble(UNKNOWN, f"{path} can't be parsed") if found is None else found

    def content_hash(self, path: str) -> str | Trouble:
        kept = self._current(path)
        if isinstance(kept, Trouble):
            return kept
        digest: str = kept.answer("hash", lambda: content_hash(kept.source.text))
        return digest

    def holds_lines(self, path: str, first: int, last: int, sha256: str) -> tuple[int, int] | Trouble | None:
        """Where the lines with this hash stand now: in their old place, else nearest to it; None if nowhere."""
        kept = self._current(path)
        if isinstance(kept, Trouble):
            return kept
        where: tuple[int, int] | Trouble | None = kept.answer(
            ("lines", first, last, sha256), lambda: _whereabouts(kept.source, first, last, sha256)
        )
        return where

    def mentions(self, path: str, name: str) -> bool | Trouble:
        """Whether the file has the name as a whole word."""
        kept = self._current(path)
        if isinstance(kept, Trouble):
            return kept
        found: bool = kept.answer(("word", name), lambda: _has_word(kept.source.text, name))
        return found

    def _current(self, path: str) -> _Kept | Trouble:
        with self._lock:
            known = self._kept.pop(path, None)
            if known is not None:
                self._kept[path] = known  # the last one is the one used last
        if known is not None and (stamp := known.source.stamp) is not None and self._sources.stamp(path) == stamp:
            return known
        source = self._sources.read(path)
        with self._lock:
            if isinstance(source, Trouble):
                self._drop(path)
                return source
            if known is not None and known.source.text == source.text:
                known.source = source  # touched, or read a moment after it was written: what is known of it stays
            else:
                known = _Kept(source)
            self._drop(path)
            self._kept[path] = known
            self._chars += len(source.text)
            while len(self._kept) > self._files_max or (self._chars > self._chars_max and len(self._kept) > 1):
                self._drop(next(iter(self._kept)))
        return known

    def _drop(self, path: str) -> None:
        dropped = self._kept.pop(path, None)
        if dropped is not None:
            self._chars -= len(dropped.source.text)


class _Kept:
    """A file as it was read, and what was found out about it, each thing once."""

    __slots__ = ("_answers", "_lock", "source")

    def __init__(self, source: Source) -> None:
        self.source = source
        self._lock = allocate_lock()
        self._answers: dict[object, Any] = {}

    def answer(self, question: object, find_out: Callable[[], Any]) -> Any:
        answers = self._answers
        if question in answers:
            return answers[question]
        with self._lock:
            if question not in answers:
                if len(answers) >= _ANSWERS_MAX:
                    # The symbols are what costs; the rest is found out again.
                    self._answers = answers = {key: item for key, item in answers.items() if key == "symbols"}
                answers[question] = find_out()
            return answers[question]


def checked(tree: Sources, citation: Citation) -> Check:
    """Whether a file's or a symbol's citation still holds in the tree; other kinds are not the tree's to judge.

    Sources that are no WorkTree are read and parsed at every call: put `WorkTree(sources)` around them.
    """
    tree = tree if isinstance(tree, WorkTree) else WorkTree(tree)
    if citation.kind is CitationKind.SYMBOL:
        return _checked_symbol(tree, citation)
    if citation.kind is CitationKind.FILE:
        return _checked_file(tree, citation)
    return Check("unknown", f"a {citation.kind} citation is not checked in a working tree")


def content_hash(text: str) -> str:
    """SHA-256 of a text, whatever its line endings."""
    return _sha256(_unified(text))


def lines_of(text: str) -> list[str]:
    """The lines as editors and compilers count them: a form feed or a Unicode separator ends none."""
    lines = _unified(text).split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def lines_hash(lines: Sequence[str]) -> str:
    return _sha256("\n".join(lines))


def span_of(citation: Citation) -> tuple[int, int] | None:
    """The first and last line that a file's citation names."""
    first, _, last = (citation.get("lines") or "").partition("-")
    if not (first.isascii() and first.isdigit() and last.isascii() and last.isdigit()):
        return None
    return (int(first), int(last)) if 1 <= int(first) <= int(last) else None


def _checked_file(tree: WorkTree, citation: Citation) -> Check:
    path, sha256 = citation.ref, citation.get("sha256")
    if citation.get("lines") is None:
        digest = tree.content_hash(path)
        if isinstance(digest, Trouble):
            return _troubled(digest)
        return Check("holds", f"{path} has changed since it was cited" if sha256 not in {None, digest} else "")
    span = span_of(citation)
    if span is None:
        return Check("unknown", f"{path}: {citation.get('lines')!r} names no lines")
    if sha256 is None:
        source = tree.read(path)
        if isinstance(source, Trouble):
            return _troubled(source)
        count = len(lines_of(source.text))
        return Check("holds") if span[1] <= count else Check("gone", f"{path} has only {count} lines now")
    where = tree.holds_lines(path, *span, sha256)
    if isinstance(where, Trouble):
        return _troubled(where)
    if where is None:
        return Check("gone", f"{path}: lines {span[0]}-{span[1]} have changed")
    if where == span:
        return Check("holds")
    moved_to = f"{path}#L{where[0]}-L{where[1]}"
    return Check("holds", f"{path}: lines {span[0]}-{span[1]} are now {where[0]}-{where[1]}", moved_to)


def _checked_symbol(tree: WorkTree, citation: Citation) -> Check:
    path, name, sha256 = citation.ref, citation.get("name") or "", citation.get("sha256")
    if sha256 is not None and tree.content_hash(path) == sha256:
        return Check("holds")  # nothing in the file has changed, so there is no need to parse it
    symbols = tree.symbols(path) if language_of(path) is not None else None
    if symbols is None or (isinstance(symbols, Trouble) and symbols.state == UNKNOWN):
        return _checked_word(tree, path, name)
    if isinstance(symbols, Trouble):
        return _troubled(symbols)
    found = find(symbols, name)
    signature = citation.get("signature") or ""
    same = [symbol for symbol in found if agrees(signature, symbol)]
    value = citation.get("value") or ""
    if any(has_value(value, symbol) for symbol in same):
        return Check("holds")
    if same:
        now = " or ".join(symbol.value.replace("\n", " or ") for symbol in same)
        return Check("gone", f"{path}: {name} = {value.replace(chr(10), ' or ')} is now {now[:_REASON_CHARS_MAX]}")
    if found:
        return Check("gone", _changed(path, signature, found))
    if symbols.broken and tree.mentions(path, plain_name(name)) is True:
        return Check("unknown", f"{path} has errors of syntax, and {name} may be among them")
    return Check("gone", f"{path} no longer defines {name}")


def _checked_word(tree: WorkTree, path: str, name: str) -> Check:
    found = tree.mentions(path, name)
    if isinstance(found, Trouble):
        return _troubled(found)
    return Check("holds") if found else Check("gone", f"{path} no longer has {name}")


def _changed(path: str, signature: str, found: Sequence[Symbol]) -> str:
    was, now = signature.replace("\n", " or "), " or ".join(symbol.signature.replace("\n", " or ") for symbol in found)
    return f"{path}: {was[:_REASON_CHARS_MAX]} is now {now[:_REASON_CHARS_MAX]}"


def _troubled(trouble: Trouble) -> Check:
    return Check("gone" if trouble.state == MISSING else "unknown", trouble.reason)


def _has_word(text: str, name: str) -> bool:
    """Whether the last part of a name is in the text as a whole word."""
    word = name.removesuffix("()").replace("::", ".").rstrip(".").rpartition(".")[2]
    return bool(word) and word in text and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def _whereabouts(source: Source, first: int, last: int, sha256: str) -> tuple[int, int] | Trouble | None:
    lines = [line.encode(errors="surrogatepass") for line in lines_of(source.text)]
    length = last - first + 1
    hashed = 0
    for start in _outward(first - 1, len(lines) - length):
        stretch = b"\n".join(lines[start : start + length])
        if hashlib.sha256(stretch).hexdigest() == sha256:
            return (start + 1, start + length)
        hashed += len(stretch) + _STRETCH_BYTES
        if hashed > _SEARCH_BYTES_MAX:
            return Trouble(UNKNOWN, f"{source.path} is too large to look for lines {first}-{last} in all of it")
    return None


def _outward(middle: int, last: int) -> Iterator[int]:
    """The places from 0 to `last`, those near the middle first: what moved has mostly not moved far."""
    for distance in range(max(middle, last - middle) + 1):
        if 0 <= middle - distance <= last:
            yield middle - distance
        if distance and 0 <= middle + distance <= last:
            yield middle + distance


def _unified(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
