"""Files of a folder or a commit: reads them, caches them with their symbols, and checks citations (S11-S13, R11).

Reading never leaves the folder, never blocks, and stops at a size limit.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from _thread import allocate_lock  # the same as threading.Lock, and a millisecond faster to import
from collections.abc import Collection, Hashable, Mapping, Sequence

from mnemarch.code.git import is_hash, output
from mnemarch.code.home import repository_around
from mnemarch.code.symbols import Symbols, agrees, find, plain_name, symbols_of
from mnemarch.forks import Forkable, watch
from mnemarch.model import stamps
from mnemarch.model.unit import Citation, CitationKind
from mnemarch.model.value import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from mnemarch.text.edits import Edit

    T = TypeVar("T")

FILE_BYTES_MAX = 8_388_608
HOLDS, CHANGED, GONE, UNKNOWN = "holds", "changed", "gone", "unknown"

# Two changes within one tick of the file system's clock get equal times. A tick is 10 ms on Linux, and 2 s on file
# systems that store whole seconds.
_TICK_NS, _COARSE_TICK_NS = 50_000_000, 2_100_000_000
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# The beginning of a git-lfs pointer, which git stores in place of the content.
_LFS = b"version https://git-lfs.github.com/spec/"
_FILES_AT_ONCE, _LOADED_MAX = 200, 1_000
_BATCH_BYTES_MAX = 4 * FILE_BYTES_MAX
_FOLDER_MODE, _LINK_MODES = "040000", frozenset({"120000", "160000"})
# How many files are read for the edits of a task.
_EDITED_MAX = 20
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_FILES_MAX = 256
_CHARS_MAX = 33_554_432
# Lines that moved are searched by hashing every stretch of the file with the same number of lines.
_SEARCH_BYTES_MAX = 16_777_216
# The minimum cost of one stretch.
_STRETCH_BYTES = 256
_ANSWERS_MAX = 64
_REASON_CHARS_MAX = 300


class Source(Frozen):
    """A text file. An equal `stamp` means equal content. None: the file changed too recently to rely on a stamp."""

    path: str
    text: str
    stamp: Hashable | None = None


class Check(Frozen):
    """Whether cited code is in a tree (HOLDS, CHANGED, GONE or UNKNOWN), and why."""

    state: str
    reason: str = ""


class Folder:
    """The files under one folder.

    A path is relative, with `/` between its parts. The file system decides whether `A.py` and `a.py` are one file.
    Symbolic links are followed if they stay inside the folder.
    """

    def __init__(self, root: str) -> None:
        self.root = root

    def stamp(self, path: str) -> Hashable | None:
        """A value that changes with the file, from one `stat` call. None if that fails."""
        if trouble_with(path) is not None:
            return None
        try:
            return _stamped(os.stat(f"{self.root}/{path}"))
        except (OSError, ValueError):
            return None

    def load(self, paths: Collection[str]) -> None:
        """Do nothing: single files are read fast enough."""

    def read(self, path: str) -> Source | Check:
        trouble = trouble_with(path)
        if trouble is not None:
            return trouble
        try:
            return self._read(path)
        except (FileNotFoundError, NotADirectoryError):
            return Check(GONE, f"{path} is not there")
        except PermissionError:
            return Check(UNKNOWN, f"{path} may not be read by this user")
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
                return Check(GONE, f"{path[:80]}… is not there: no file can have so long a name")
            return Check(UNKNOWN, f"{path} can't be read: {getattr(error, 'strerror', None) or error}")

    def _read(self, path: str) -> Source | Check:
        root = os.path.realpath(self.root)
        if not os.path.isdir(root):
            return Check(UNKNOWN, f"the working tree {self.root} is not there")
        inside = root.rstrip("/") + "/"
        target = os.path.realpath(inside + path)
        if target == root:
            return Check(GONE, f"{path} is a folder, not a file")
        if not target.startswith(inside):
            return Check(UNKNOWN, f"{path} leads outside of the working tree")
        return _read_inside(path, root, target[len(inside) :].split("/"))


def _read_inside(path: str, root: str, steps: list[str]) -> Source | Check:
    """Read a file by opening each folder in turn, so that a link created after the path was resolved isn't followed."""
    opened = [os.open(root, _STEP)]
    try:
        for step in steps[:-1]:
            opened.append(os.open(step, _STEP, dir_fd=opened[-1]))
        # Opening a device can have side effects, so check the type first, and again after opening.
        mode = os.stat(steps[-1], dir_fd=opened[-1], follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            return Check(GONE, f"{path} is a folder, not a file")
        if stat.S_ISREG(mode):
            opened.append(os.open(steps[-1], _OPEN, dir_fd=opened[-1]))
            if stat.S_ISREG(os.fstat(opened[-1]).st_mode):
                return _text(path, opened[-1])
        return Check(UNKNOWN, f"{path} is not a plain file")
    finally:
        for descriptor in opened:
            os.close(descriptor)


class CommitFiles:
    """The files of one commit of the repository around `root`, for any number of threads."""

    def __init__(self, root: str, commit: str) -> None:
        self._repository = repository_around(root)
        self._commit = commit
        self._at = f"at commit {commit[:12]}"
        self._loaded: dict[str, Source | Check] = {}

    def stamp(self, path: str) -> Hashable | None:  # noqa: ARG002 - the same for all
        """The commit, whose files never change."""
        return self._commit

    def load(self, paths: Collection[str]) -> None:
        """Read many files at once. Git is started twice for every 200 files."""
        if len(self._loaded) > _FILES_AT_ONCE:
            self._loaded = {}  # Callers have their own cache. This one only holds files until they are read.
        new = sorted(set(paths).difference(self._loaded))[:_LOADED_MAX]
        for start in range(0, len(new), _FILES_AT_ONCE):
            answers = self._read(new[start : start + _FILES_AT_ONCE])
            # Don't cache UNKNOWN: git may answer the next time.
            answered = {path: answer for path, answer in answers.items() if getattr(answer, "state", "") != UNKNOWN}
            self._loaded = self._loaded | answered

    def read(self, path: str) -> Source | Check:
        return self._loaded.get(path) or self._read([path])[path]

    def _read(self, paths: Sequence[str]) -> dict[str, Source | Check]:
        names = {path: os.path.normpath(path) for path in paths if trouble_with(path) is None}
        entries = self._entries(names.values())
        blobs = {path: trouble_with(path) or self._blob(path, names[path], entries) for path in paths}
        contents = self._contents(dict(blob for blob in blobs.values() if not isinstance(blob, Check)))
        return {
            path: blob if isinstance(blob, Check) else self._source(path, contents.get(blob[0]))
            for path, blob in blobs.items()
        }

    def _entries(self, names: Collection[str]) -> dict[str, list[str]] | None:
        """Mode, type, hash and size of these files and of the folders they are in. None if git fails."""
        if self._repository is None or not is_hash(self._commit) or not names:
            return None
        asked = {place for name in names for place in (name, *_folders(name))}
        command = ["--literal-pathspecs", "ls-tree", "-z", "-t", "-l", "--full-tree", self._commit, "--"]
        listed = output(self._repository.top, [*command, *sorted(asked)])
        if listed is None:
            return None
        rows = (os.fsdecode(row).partition("\t") for row in listed.split(b"\0") if row)
        return {name: about.split() for about, _, name in rows}

    def _blob(self, path: str, name: str, entries: Mapping[str, list[str]] | None) -> tuple[str, int] | Check:
        """The hash and size of a plain file, or why it can't be read."""
        if entries is None:
            return Check(UNKNOWN, f"git can't tell what is in the folder of {path} {self._at}")
        for place in (*_folders(name), name):
            if place in entries and entries[place][0] in _LINK_MODES:
                return Check(UNKNOWN, f"{path} is a symbolic link or submodule, or inside of one, {self._at}")
        if name not in entries:
            return Check(GONE, f"{path} is not there {self._at}")
        mode, _, blob, size = entries[name]
        if mode == _FOLDER_MODE:
            return Check(GONE, f"{path} is a folder, not a file, {self._at}")
        if not size.isdigit() or int(size) > FILE_BYTES_MAX:
            return Check(UNKNOWN, f"{path} is over {FILE_BYTES_MAX >> 20} MiB, or git does not have it here")
        return blob, int(size)

    def _contents(self, sizes: Mapping[str, int]) -> dict[str, bytes]:
        """The contents of blobs by hash. One git process reads all, or one each if they are large."""
        contents: dict[str, bytes] = {}
        is_small = sum(sizes.values()) <= _BATCH_BYTES_MAX
        for names in [list(sizes)] if is_small and sizes else [[name] for name in sizes]:
            assert self._repository is not None
            printed = output(self._repository.top, ["cat-file", "--batch"], "\n".join(names).encode()) or b""
            place = 0
            for name in names:
                header = f"{name} blob {sizes[name]}\n".encode()
                if not printed.startswith(header, place):
                    break
                end = place + len(header) + sizes[name]
                contents[name] = printed[place + len(header) : end]
                place = end + 1
        return contents

    def _source(self, path: str, content: bytes | None) -> Source | Check:
        if content is None:
            return Check(UNKNOWN, f"git does not have {path} here")
        if content.startswith(_LFS):
            return Check(UNKNOWN, f"{path} is kept outside of git by git-lfs")
        return _decoded(path, content, self._commit)


def _folders(name: str) -> list[str]:
    """The folders on a path, the outermost first."""
    return [name[:at] for at, character in enumerate(name) if character == "/"]


def trouble_with(path: str) -> Check | None:
    """The reason a path is invalid, without reading the disk. None if it is valid."""
    if "\0" in path or not path or not _is_encodable(path):
        return Check(UNKNOWN, f"{path!r} is no path")
    if path[0] == "/" or (".." in path and ".." in path.split("/")):
        return Check(UNKNOWN, f"{path} is outside of the working tree, or its path leads out of it")
    return None


def _is_encodable(path: str) -> bool:
    try:
        return path.isascii() or bool(os.fsencode(path))
    except UnicodeEncodeError:
        return False


def _text(path: str, descriptor: int) -> Source | Check:
    # Taken before reading: the content may be newer than the stamp, never older. Then the stamp no longer matches,
    # and the file is read again.
    looked_at = os.fstat(descriptor)
    pieces, size = [], 0
    while size <= FILE_BYTES_MAX and (piece := os.read(descriptor, FILE_BYTES_MAX + 1 - size)):
        pieces.append(piece)
        size += len(piece)
    if size > FILE_BYTES_MAX:
        return Check(UNKNOWN, f"{path} is over {FILE_BYTES_MAX >> 20} MiB")
    content = b"".join(pieces)
    changed_ns = max(looked_at.st_mtime_ns, looked_at.st_ctime_ns)
    tick_ns = _TICK_NS if looked_at.st_ctime_ns % 1_000_000 else _COARSE_TICK_NS
    is_settled = time.time_ns() - changed_ns > tick_ns
    return _decoded(path, content, _stamped(looked_at) if is_settled else None)


def _decoded(path: str, content: bytes, stamp: Hashable | None) -> Source | Check:
    if b"\0" in content:
        return Check(UNKNOWN, f"{path} is a binary file")
    try:
        return Source(path, content.decode(), stamp)
    except UnicodeDecodeError:
        return Check(UNKNOWN, f"{path} is not a UTF-8 text")


def _stamped(look: os.stat_result) -> Hashable:
    return (look.st_dev, look.st_ino, look.st_size, look.st_mtime_ns, look.st_ctime_ns)


# The cache, and what citations are checked by


class WorkTree(Forkable):
    """A cache of files and their symbols. A file is read and parsed again only if it changed. Thread-safe."""

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
        """Prefetch these files."""
        self._sources.load([path for path in paths if path not in self._files])

    def has(self, path: str) -> bool:
        """Whether the file exists, readable or not."""
        file = self._current(path)
        return not isinstance(file, Check) or file.state != GONE

    def read(self, path: str) -> Source | Check:
        file = self._current(path)
        return file if isinstance(file, Check) else file.source

    def symbols(self, path: str) -> Symbols | Check:
        """The symbols that the file defines, or UNKNOWN if it can't be parsed."""
        symbols = self.answer(path, "symbols", lambda text: symbols_of(path, text))
        return Check(UNKNOWN, f"{path} can't be parsed") if symbols is None else symbols

    def content_hash(self, path: str) -> str | Check:
        return self.answer(path, "hash", content_hash)

    def holds_lines(self, path: str, first: int, last: int, sha256: str) -> tuple[int, int] | Check | None:
        """The current place of the lines with this hash, the nearest to the old one. None if they are gone."""
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
                    # Keep the symbols, which are expensive. The rest is cheap to compute again.
                    file.answers = {key: item for key, item in file.answers.items() if key == "symbols"}
                file.answers[question] = find_out(file.source.text)
            answer: T = file.answers[question]  # type: ignore[assignment]
            return answer

    def _current(self, path: str) -> _File | Check:
        with self._lock:
            file = self._files.pop(path, None)
            if file is not None:
                self._files[path] = file  # Moves it to the end: least recently used files come first.
        if file is not None and (stamp := file.source.stamp) is not None and self._sources.stamp(path) == stamp:
            return file
        source = self._sources.read(path)
        with self._lock:
            self._files.pop(path, None)
            if isinstance(source, Check):
                return source
            if file is not None and file.source.text == source.text:
                file.source = source  # Only the stamp changed, so the answers stay valid.
            else:
                file = _File(source)
            self._files[path] = file
            chars = sum(len(file.source.text) for file in self._files.values())
            while len(self._files) > _FILES_MAX or (chars > _CHARS_MAX and len(self._files) > 1):
                chars -= len(self._files.pop(next(iter(self._files))).source.text)
        return file


class _File:
    """A file as it was read, and the cached answers about it."""

    __slots__ = ("answers", "lock", "source")

    def __init__(self, source: Source) -> None:
        self.source = source
        self.lock = allocate_lock()
        self.answers: dict[object, object] = {}


def checked(tree: WorkTree, citation: Citation) -> Check:
    """Whether the citation of a file or a symbol still holds in the tree. UNKNOWN for other kinds."""
    if citation.kind is CitationKind.SYMBOL:
        return _checked_symbol(tree, citation)
    if citation.kind is not CitationKind.FILE:
        return Check(UNKNOWN, f"a {citation.kind} citation is not checked in a working tree")
    return _checked_file(tree, citation) if citation.get("lines") is None else _checked_lines(tree, citation)


def content_hash(text: str) -> str:
    """SHA-256 of a text, whatever its line endings."""
    return _sha256(_unified(text))


def lines_of(text: str) -> list[str]:
    """The lines as editors and compilers count them: form feeds and Unicode separators end no line."""
    lines = _unified(text).split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def lines_hash(lines: Sequence[str]) -> str:
    return _sha256("\n".join(lines))


def span_of(citation: Citation) -> tuple[int, int] | None:
    """The first and last line that a citation of a file names."""
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
        return Check(UNKNOWN, f"{path}: {citation.get('lines')!r} is not a range of lines")
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
        return Check(HOLDS)  # The file is unchanged and need not be parsed.
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
        return Check(UNKNOWN, f"{path} has syntax errors, and {name} may be hidden by them")
    return Check(GONE, f"{path} no longer defines {name}")


def _alternatives(texts: Iterator[str] | list[str]) -> str:
    return " or ".join(text.replace("\n", " or ") for text in texts)[:_REASON_CHARS_MAX]


def _has_word(text: str, name: str) -> bool:
    """Whether the text has the last part of a name as a whole word."""
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
            return Check(UNKNOWN, f"{path} is too large to search all of it for lines {first}-{last}")
    return None


def _outward(middle: int, last: int) -> Iterator[int]:
    """The places from 0 to `last`, the nearest to the middle first, since most lines don't move far."""
    for distance in range(max(middle, last - middle) + 1):
        if 0 <= middle - distance <= last:
            yield middle - distance
        if distance and 0 <= middle + distance <= last:
            yield middle + distance


def _unified(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _sha256(text: str) -> str:
    return stamps.sha256(text.encode(errors="surrogatepass")).hexdigest()


def standing_edits(root: str | None, edits: Sequence[Edit]) -> dict[str, bool] | None:
    """Whether the files below the root still have each edit, by the id of its entry. None without a folder or edits.

    Edits can be undone, as by `git checkout`. A missing file is left out in a folder without git: it may have moved.
    """
    if root is None or not edits or not os.path.isdir(root):
        return None
    folder, files, stands = Folder(root), dict[str, Source | Check | None](), dict[str, bool]()
    for edit in reversed(edits):
        if edit.path not in files:
            files[edit.path] = folder.read(edit.path) if len(files) < _EDITED_MAX else None
        file, ids = files[edit.path], [entry.id for entry in edit.sources]
        if isinstance(file, Source):
            stands |= dict.fromkeys(ids, edit.stands_in(file.text))
        elif file is None or file.state != GONE or repository_around(root) is not None:
            stands |= dict.fromkeys(ids, False)
    return stands
