"""Checks whether cited files, lines and symbols still stand in a tree of files (S11-S13, R11)."""

from __future__ import annotations

import time
from _thread import allocate_lock  # what threading.Lock is; threading itself is a millisecond more to load
from functools import cache, cached_property

from mnemarch.code import git
from mnemarch.code.sources import CHANGED, GONE, HOLDS, UNKNOWN, Check, CommitFiles, Folder, Source
from mnemarch.code.symbols import Symbols, agrees, find, plain_name, symbols_of
from mnemarch.forks import Forkable, watch
from mnemarch.model import stamps
from mnemarch.model.citation import Citation, CitationKind
from mnemarch.model.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from typing import TypeVar

    from mnemarch.code.history import History

    T = TypeVar("T")

_FILES_MAX = 256
_CHARS_MAX = 33_554_432
# Lines that are no longer in their place are searched for by hashing every stretch of the file that is as long.
_SEARCH_BYTES_MAX = 16_777_216
# What one stretch costs, however short it is.
_STRETCH_BYTES = 256
_ANSWERS_MAX = 64
_REASON_CHARS_MAX = 300
# How long one citation may be looked for on other branches.
_PATIENCE_S = 10.0


class WorkTree(Forkable):
    """Files with what they define, each read and parsed again only when it changed; for any number of threads."""

    def __init__(self, root: str | CommitFiles) -> None:
        self._sources: Folder | CommitFiles = Folder(root) if isinstance(root, str) else root
        self._begin()
        watch(self)

    def _begin(self) -> None:
        self._lock = allocate_lock()
        self._files: dict[str, _File] = {}

    def _resume(self, *, in_child: bool, rested: bool) -> None:  # noqa: ARG002
        if in_child:
            self._begin()

    def load(self, paths: Collection[str]) -> None:
        """These files are going to be asked for."""
        self._sources.load([path for path in paths if path not in self._files])

    def has(self, path: str) -> bool:
        """Whether there is such a file; also if it can't be read."""
        file = self._current(path)
        return not isinstance(file, Check) or file.state != GONE

    def read(self, path: str) -> Source | Check:
        file = self._current(path)
        return file if isinstance(file, Check) else file.source

    def symbols(self, path: str) -> Symbols | Check:
        """What the file defines; UNKNOWN if there is no grammar for it."""
        symbols = self.answer(path, "symbols", lambda text: symbols_of(path, text))
        return Check(UNKNOWN, f"{path} can't be parsed") if symbols is None else symbols

    def content_hash(self, path: str) -> str | Check:
        return self.answer(path, "hash", content_hash)

    def holds_lines(self, path: str, first: int, last: int, sha256: str) -> tuple[int, int] | Check | None:
        """Where the lines with this hash stand now: in their old place, else nearest to it; None if nowhere."""
        question = ("lines", first, last, sha256)
        return self.answer(path, question, lambda text: _whereabouts(path, text, first, last, sha256))

    def mentions(self, path: str, name: str) -> bool | Check:
        """Whether the file has the name as a whole word."""
        return self.answer(path, ("word", name), lambda text: _has_word(text, name))

    def answer(self, path: str, question: object, find_out: Callable[[str], T]) -> T | Check:
        """A cached answer about a file's text, or a new one."""
        file = self._current(path)
        if isinstance(file, Check):
            return file
        with file.lock:
            if question not in file.answers:
                if len(file.answers) >= _ANSWERS_MAX:
                    # The symbols are what costs; the rest is found out again.
                    file.answers = {key: item for key, item in file.answers.items() if key == "symbols"}
                file.answers[question] = find_out(file.source.text)
            answer: T = file.answers[question]  # type: ignore[assignment]
            return answer

    def _current(self, path: str) -> _File | Check:
        with self._lock:
            known = self._files.pop(path, None)
            if known is not None:
                self._files[path] = known  # The last one is the one used last.
        if known is not None and (stamp := known.source.stamp) is not None and self._sources.stamp(path) == stamp:
            return known
        source = self._sources.read(path)
        with self._lock:
            self._files.pop(path, None)
            if isinstance(source, Check):
                return source
            if known is not None and known.source.text == source.text:
                known.source = source  # touched, or read a moment after it was written: its answers stay
            else:
                known = _File(source)
            self._files[path] = known
            chars = sum(len(file.source.text) for file in self._files.values())
            while len(self._files) > _FILES_MAX or (chars > _CHARS_MAX and len(self._files) > 1):
                chars -= len(self._files.pop(next(iter(self._files))).source.text)
        return known


class _File:
    """A file as it was read, and what was found out about it, each thing once."""

    __slots__ = ("answers", "lock", "source")

    def __init__(self, source: Source) -> None:
        self.source = source
        self.lock = allocate_lock()
        self.answers: dict[object, object] = {}


class OtherBranches:
    """The local branches beside the commit at which units are judged, as one sweep sees them.

    A worktree goes from branch to branch, so it is enough that one of them has the code. For the project its default
    branch decides (`is_default`): what that deleted is gone, unless a branch brings it once it is merged, or one of the
    worktrees (`folders`) that has not committed it yet.
    """

    def __init__(self, root: str, history: History, commit: str, *, folders: Collection[str], is_default: bool) -> None:
        self._root = root
        self._folders = folders
        self._history = history
        self._commit = commit
        self._is_default = is_default
        # Whether a branch brings it: it has it, and where it left the commit's history nobody had it yet.
        self.bring = cache(self._is_brought)
        # By the file's content: most branches have the same.
        self._holding: dict[tuple[Citation, str], bool] = {}

    def have(self, citation: Citation) -> bool:
        """Whether code that is missing at the commit is elsewhere, and so is not gone."""
        return self.bring(citation) or (not self._is_default and bool(self._having(citation, self._tips)))

    def _is_brought(self, citation: Citation) -> bool:
        until = time.monotonic() + _PATIENCE_S
        for tip in (*self._having(citation, self._tips), *self._not_committed(citation)):
            fork = self._history.fork(self._commit, tip)
            # In doubt it is: nothing is archived because git knew no answer, or none in time.
            if fork is None or not self._having(citation, [fork]) or time.monotonic() > until:
                return True
        return False

    def _not_committed(self, citation: Citation) -> list[str]:
        """For the project: the HEAD of each worktree whose files have it, committed or not."""
        folders = self._folders if self._is_default else ()
        heads = [git.head(folder) for folder in folders if checked(WorkTree(folder), citation).state != GONE]
        return [head for head in heads if head is not None]

    @cached_property
    def _tips(self) -> list[str]:
        return git.branch_tips(self._root)

    def _having(self, citation: Citation, commits: Sequence[str]) -> list[str]:
        """Those of the commits that have it, by any name that its file has or had."""
        was = citation.get("was")
        having: dict[str, None] = {}
        for named in (citation, replace(citation, ref=was)) if was is not None else (citation,):
            for commit, content in self._history.contents(named.ref, commits).items():
                if self._holds(named, commit, content):
                    having[commit] = None
        return list(having)

    def _holds(self, citation: Citation, commit: str, content: str) -> bool:
        known = self._holding.get((citation, content))
        if known is None:
            tree = WorkTree(CommitFiles(self._root, commit))
            known = self._holding[citation, content] = checked(tree, citation).state != GONE
        return known


def checked(tree: WorkTree, citation: Citation) -> Check:
    """Whether a file's or a symbol's citation still holds in the tree; other kinds are not the tree's to judge."""
    if citation.kind is CitationKind.SYMBOL:
        return _checked_symbol(tree, citation)
    if citation.kind is not CitationKind.FILE:
        return Check(UNKNOWN, f"a {citation.kind} citation is not checked in a working tree")
    return _checked_file(tree, citation) if citation.get("lines") is None else _checked_lines(tree, citation)


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
    digest = tree.content_hash(citation.ref)
    if isinstance(digest, Check):
        return digest
    has_changed = citation.get("sha256") not in {None, digest}
    return Check(HOLDS, f"{citation.ref} has changed since it was cited" if has_changed else "")


def _checked_lines(tree: WorkTree, citation: Citation) -> Check:
    path, sha256, span = citation.ref, citation.get("sha256"), span_of(citation)
    if span is None:
        return Check(UNKNOWN, f"{path}: {citation.get('lines')!r} names no lines")
    if sha256 is None:
        source = tree.read(path)
        if isinstance(source, Check):
            return source
        count = len(lines_of(source.text))
        return Check(HOLDS) if span[1] <= count else Check(CHANGED, f"{path} has only {count} lines now")
    where = tree.holds_lines(path, *span, sha256)
    if isinstance(where, Check):
        return where
    if where is None:
        return Check(CHANGED, f"{path}: lines {span[0]}-{span[1]} have changed")
    if where == span:
        return Check(HOLDS)
    return Check(HOLDS, f"{path}: lines {span[0]}-{span[1]} are now {where[0]}-{where[1]}")


def _checked_symbol(tree: WorkTree, citation: Citation) -> Check:
    path, name, sha256 = citation.ref, citation.get("name") or "", citation.get("sha256")
    if sha256 is not None and tree.content_hash(path) == sha256:
        return Check(HOLDS)  # nothing in the file has changed, so there is no need to parse it
    symbols = tree.symbols(path)
    if isinstance(symbols, Check) and symbols.state == UNKNOWN:
        has_word = tree.mentions(path, name)
        if isinstance(has_word, Check):
            return has_word
        return Check(HOLDS) if has_word else Check(GONE, f"{path} no longer has {name}")
    if isinstance(symbols, Check):
        return symbols
    named = find(symbols, name)
    signature, value = citation.get("signature") or "", citation.get("value") or ""
    same = [symbol for symbol in named if agrees(signature, symbol.signature)]
    if any(agrees(value, symbol.value) for symbol in same):
        return Check(HOLDS)
    if same:
        now = _alternatives(symbol.value for symbol in same)
        return Check(CHANGED, f"{path}: {name} = {_alternatives([value])} is now {now}")
    if named:
        now = _alternatives(symbol.signature for symbol in named)
        return Check(CHANGED, f"{path}: {_alternatives([signature])} is now {now}")
    if symbols.broken and tree.mentions(path, plain_name(name)) is True:
        return Check(UNKNOWN, f"{path} has errors of syntax, and {name} may be among them")
    return Check(GONE, f"{path} no longer defines {name}")


def _alternatives(texts: Iterator[str] | list[str]) -> str:
    return " or ".join(text.replace("\n", " or ") for text in texts)[:_REASON_CHARS_MAX]


def _has_word(text: str, name: str) -> bool:
    """Whether the last part of a name is in the text as a whole word."""
    word = name.removesuffix("()").replace("::", ".").rstrip(".").rpartition(".")[2]
    if not word or word not in text:
        return False
    import re

    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def _whereabouts(path: str, text: str, first: int, last: int, sha256: str) -> tuple[int, int] | Check | None:
    lines = [line.encode(errors="surrogatepass") for line in lines_of(text)]
    length = last - first + 1
    hashed = 0
    for start in _outward(first - 1, len(lines) - length):
        stretch = b"\n".join(lines[start : start + length])
        if stamps.sha256(stretch).hexdigest() == sha256:
            return (start + 1, start + length)
        hashed += len(stretch) + _STRETCH_BYTES
        if hashed > _SEARCH_BYTES_MAX:
            return Check(UNKNOWN, f"{path} is too large to look for lines {first}-{last} in all of it")
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
    return stamps.sha256(text.encode(errors="surrogatepass")).hexdigest()
