"""Graphs in files: written whole or not at all, one writer at a time, never over what somebody else wrote since."""

from __future__ import annotations

import atexit
import json
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from threading import Lock, Timer
from typing import Any, Self, TypeVar

from xxhash import xxh3_128_hexdigest

from mnemarch.embedding.sparse import BagOfWordsEmbedder, NgramHashEmbedder, QuestionEmbedder
from mnemarch.errors import (
    Conflict,
    Incompatible,
    InvalidInput,
    MnemarchError,
    NotFound,
    StoreCorrupt,
    StoreUnavailable,
)
from mnemarch.files import PARTIAL_END, locked, make_folder, write_whole
from mnemarch.forks import Forkable, watch
from mnemarch.graph import EmbeddingProvider, snapshot
from mnemarch.graph.core import Graph, Keeper, finite
from mnemarch.graph.store import GraphStore
from mnemarch.model.caller import Scope
from mnemarch.model.json_text import canonical_json, json_needles
from mnemarch.policy.heat import GraphConfig
from mnemarch.text.canonical import is_identifying

T = TypeVar("T")

_LOCK = ".graphs.lock"
_LOCK_WAIT_S_MAX = 30.0
_NAME_CHARS_MAX = 120


# Any file of a graph


def read(path: str) -> dict[str, Any]:
    """The record in a file, checked to be whole."""
    foreign = StoreCorrupt(f"{path} is no graph of Mnemarch.", hint="Give a snapshot or a checkpoint of a graph.")
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
    except FileNotFoundError:
        raise NotFound(f"There is no file {path}.", hint="Check the name.") from None
    except UnicodeDecodeError:
        raise foreign from None
    except OSError as error:
        raise StoreUnavailable(f"{path} can't be read: {error.strerror}.", hint="Check the file's rights.") from None
    try:
        record: dict[str, Any] = json.loads(text)
        snapshot.check_head(record)
    except (ValueError, RecursionError):
        if not text.strip() or f'"{snapshot.FORMAT}"' in text[:200]:
            torn = f"{path} is torn: it ends after {len(text)} characters."
            raise StoreCorrupt(torn, hint="Take another copy of it.") from None
        raise foreign from None
    except InvalidInput:
        raise foreign from None
    except Incompatible as error:
        raise Incompatible(f"{path}: {error.message}", hint=error.hint) from None
    digest = record.pop("digest", None)
    try:
        is_whole = digest == _digest(record)
    except InvalidInput:  # A number that JSON does not know.
        is_whole = False
    if not is_whole:
        raise _damaged(path, "its digest does not match")
    return record


def _damaged(path: str, how: str) -> StoreCorrupt:
    return StoreCorrupt(f"{path} is damaged: {how.rstrip('.')}.", hint="Take another copy of it.")


def _digest(record: Mapping[str, Any]) -> str:
    return xxh3_128_hexdigest(canonical_json(dict(record)).encode("utf-8", "surrogatepass"))


def write(path: str, record: Mapping[str, Any], *, pretty: bool = True) -> None:
    """Replace a file with a record."""
    try:
        write_whole(path, _text({**record, "digest": _digest(record)}, pretty=pretty), private=True)
    except OSError as error:
        failed = f"{path} can't be written: {error.strerror}."
        raise StoreUnavailable(failed, hint="Check the disk and the folder's rights.") from None


def _text(record: Mapping[str, Any], *, pretty: bool) -> str:
    """JSON; if a person is to read it, with one node or edge on each line."""
    if not pretty:
        return json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    fields = []
    for name, item in record.items():
        text = json.dumps(item, ensure_ascii=False)
        if name in (*snapshot.NODE_LISTS, "edges") and item:
            text = "[\n  " + ",\n  ".join(json.dumps(one, ensure_ascii=False) for one in item) + "\n]"
        fields.append(f"{json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(fields) + "\n}\n"


def _locked_folder(path: str) -> Any:
    """Keep other writers out of a file's folder."""
    return locked(os.path.join(os.path.dirname(path), _LOCK), _LOCK_WAIT_S_MAX)


# Snapshots


def save(store: GraphStore, file: str | os.PathLike[str], *, only_if_dirty: bool) -> bool:
    """Write a graph to a file; returns whether it was written."""
    path = os.path.abspath(os.fspath(file))
    with _locked_folder(path):
        known, revision = store.saved.get(path, (None, -1))
        mark = _mark(path)
        if mark is not None and known is None:
            read(path)  # What is no graph, or of a later version, is not overwritten.
        elif mark is not None and mark != known:
            changed = f"{path} was written by somebody else since this graph read or wrote it."
            raise Conflict(changed, hint="Load it again, or save under another name; nothing was overwritten.")
        elif mark is not None and only_if_dirty and store.revision == revision:
            return False
        with store.reading():
            record, revision = store.to_snapshot(), store.revision
        write(path, record)
        store.saved[path] = _mark(path), revision
    return True


def load(made: type[GraphStore], file: str | os.PathLike[str], store: GraphStore | None) -> GraphStore:
    """Fill a graph, or a new one with the file's settings, from a snapshot or checkpoint."""
    path = os.path.abspath(os.fspath(file))
    mark = _mark(path)
    record = read(path)
    if store is None:
        try:
            fields = GraphConfig.__match_args__
            config = GraphConfig(**{name: item for name, item in record["config"].items() if name in fields})
            store = made(config, embedder_of(record["embedderState"]))
        except (InvalidInput, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise _damaged(path, f"its settings make no sense ({error})") from None
    try:
        store.from_snapshot(record)
    except StoreCorrupt as error:
        raise _damaged(path, error.message) from None
    store.saved[path] = mark, store.revision
    return store


def _mark(path: str) -> tuple[int, int, int] | None:
    """Changes when another file takes this one's place; None if there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def embedder_of(state: Mapping[str, Any]) -> EmbeddingProvider | None:
    """The embedder with this state, if it is one of ours and of this version; None stands for the default."""
    kinds: list[Any] = [QuestionEmbedder, NgramHashEmbedder, BagOfWordsEmbedder]
    for embedder in (kind() for kind in kinds):
        if set(embedder.export_state()) == set(state):
            try:
                embedder.import_state(state)
            except InvalidInput:
                return None
            return embedder  # type: ignore[no-any-return]
    return None


# Checkpoints


def write_checkpoint(record: dict[str, Any], folder: str, name: str | None, *, pretty: bool) -> str:
    """Write a checkpoint into a folder; returns its path. Without a name it never replaces another."""
    stem = _file_name(record["sessionId"]) + f"-{record['createdAt']}" if name is None else checked_file_name(name)
    path = os.path.join(folder, f"{stem.removesuffix('.json')}.json")
    try:
        if not os.path.isdir(folder):
            os.makedirs(os.path.dirname(folder), exist_ok=True)
            make_folder(folder)
            with open(os.path.join(folder, ".gitignore"), "w", encoding="utf-8") as file:
                file.write("*\n")  # What somebody asked is private.
    except OSError as error:
        failed = f"{folder} can't be made: {error.strerror}."
        raise StoreUnavailable(failed, hint="Set checkpoint.out_dir to a folder you may write to.") from None
    with _locked_folder(path):
        _drop_partials(folder)
        number = 1
        while name is None and os.path.exists(path):
            number += 1
            path = os.path.join(folder, f"{stem}-{number}.json")
        if os.path.exists(path):
            read(path)  # What is no graph, or of a later version, is not overwritten.
        write(path, record, pretty=pretty)
    return path


def _drop_partials(folder: str) -> None:
    """Remove what a process that was killed while it wrote a checkpoint has left. Call with the folder locked."""
    for name in os.listdir(folder):
        if name.endswith(f".json{PARTIAL_END}"):
            os.remove(os.path.join(folder, name))


def checked_file_name(name: Any) -> str:
    """A file's name that stays in its folder."""
    if not isinstance(name, str) or not name.strip() or name != _file_name(name):
        usable = f"Use letters, digits, '-', '_' and '.', at most {_NAME_CHARS_MAX} characters."
        raise InvalidInput(f"{name!r} is no name for a checkpoint.", hint=usable)
    return name


def _file_name(name: str) -> str:
    """A name without characters that mean something to a file system."""
    plain = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
    return plain.lstrip(".")[:_NAME_CHARS_MAX] or "session"


def forget_in_checkpoints(folder: str, contents: Sequence[str], may_read: Callable[[Scope], bool]) -> int:
    """Remove every node that is a copy of one of these texts from the checkpoints in a folder; returns their number.

    Those of scopes that the caller may not read are left alone, and not counted.
    """
    if os.path.isdir(folder):
        with _locked_folder(os.path.join(folder, _LOCK)):
            _drop_partials(folder)
    names = os.listdir(folder) if os.path.isdir(folder) else []
    paths = [os.path.join(folder, name) for name in names if name.endswith(".json")]
    needles = [form.encode() for content in contents if is_identifying(content) for form in json_needles(content)]
    unclean: list[str] = []
    cleaned = 0
    for path in paths if contents else ():
        with _locked_folder(path):
            try:
                record = read(path)
            except MnemarchError:
                with open(path, "rb") as file:
                    data = file.read()
                unclean += [path] if any(needle in data for needle in needles) else []
                continue
            if "scope" in record and not may_read(Scope.of(record["scope"])):
                continue
            cleaned += 1
            kept = snapshot.without(record, contents)
            if kept != record:
                write(path, kept)
    if unclean:
        unread = f"These can't be read as checkpoints, and hold what is to be erased: {', '.join(unclean)}."
        raise StoreUnavailable(unread, hint="Remove them and erase again; nothing was erased yet.")
    return cleaned


# A graph that is saved by itself


class FileKeeper(Keeper, Forkable):
    """Keeps one graph in one file: changes are saved together a moment later, the last by `close` or at exit (A28).

    keeper = FileKeeper("agent.graph.json")
    store = keeper.open(GraphStore(config, embedder, keeper=keeper))
    """

    def __init__(
        self, file: str | os.PathLike[str], *, delay_s: float = 1.0, clock: Callable[[], datetime] | None = None
    ) -> None:
        super().__init__(clock)
        self.file = os.path.abspath(os.fspath(file))
        self._delay_s = finite(delay_s, "delay_s", least=0)
        self._store: GraphStore | None = None
        self._timer: Timer | None = None
        self._starting = Lock()
        self._saving = Lock()
        self.error: MnemarchError | None = None
        """The error of the last save in the background, if it failed; the next change tries again."""
        watch(self)

    def _resume(self, *, in_child: bool, rested: bool) -> None:  # noqa: ARG002
        if in_child:
            self._starting, self._saving, self._timer = Lock(), Lock(), None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self, store: GraphStore) -> GraphStore:
        """Fill a graph from the file, if there is one, and save its changes from now on."""
        if self._store is not None or store.keeper is not self:
            own = "GraphStore(config, embedder, keeper=keeper), with one FileKeeper for each graph."
            raise InvalidInput(f"{self.file} keeps another graph, or this graph has another keeper.", hint=own)
        self._store = store
        try:
            if os.path.exists(self.file):
                load(type(store), self.file, store)
        except BaseException:
            self._store = None
            raise
        atexit.register(self.flush)
        return store

    def change(self, graphs: Sequence[Graph], act: str, work: Callable[[int], T]) -> T:
        if self._store is None:
            closed = f"{self.file} does not keep this graph: it is closed, or was never opened."
            raise StoreUnavailable(closed, hint="keeper.open(store) first.")
        try:
            return super().change(graphs, act, work)
        finally:
            with self._starting:
                if self._timer is None:
                    self._timer = Timer(self._delay_s, self._save_in_background)
                    self._timer.daemon = True
                    self._timer.start()

    def _save_in_background(self) -> None:
        try:
            self.flush()
        except MnemarchError as error:
            self.error = error

    def flush(self) -> None:
        """Write now what is not written yet."""
        with self._starting:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None
        with self._saving:
            if self._store is not None:
                self._store.save_to_file(self.file, only_if_dirty=True)
                self.error = None

    def close(self) -> None:
        """Write what is left and let the graph go."""
        atexit.unregister(self.flush)
        try:
            self.flush()
        finally:
            self._store = None
