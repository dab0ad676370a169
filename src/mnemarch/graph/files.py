"""Graphs in files: written whole or not at all, one writer at a time, and never over what somebody else wrote since."""

from __future__ import annotations

import json
import os

from xxhash import xxh3_128_hexdigest

from mnemarch.errors import Conflict, Incompatible, InvalidInput, NotFound, StoreCorrupt, StoreUnavailable
from mnemarch.files import holds_any, locked, write_whole
from mnemarch.graph import snapshot as snapshots
from mnemarch.lazy import Lazy
from mnemarch.model.json_text import canonical_json
from mnemarch.policy.heat import GraphConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from mnemarch.embedding import question, sparse, words
    from mnemarch.graph.provider import EmbeddingProvider
    from mnemarch.graph.store import GraphStore
else:
    sparse = Lazy("mnemarch.embedding.sparse")
    question = Lazy("mnemarch.embedding.question")
    words = Lazy("mnemarch.embedding.words")

__all__ = ["NODE_LISTS", "Files", "embedder_of", "held_folder", "holds_any", "load", "read", "write"]

_LOCK = ".graphs.lock"
_LOCK_WAIT_S_MAX = 30.0
NODE_LISTS = ("nodes", "topQueries", "around")

# By what a file is known again: another file in its place has another one of these.
Mark = tuple[int, int, int]


def read(path: str) -> dict[str, Any]:
    """What a file of a graph holds, checked to be whole."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
    except FileNotFoundError:
        raise NotFound(f"There is no file {path}.", hint="Check the name.") from None
    except UnicodeDecodeError:
        raise _foreign(path) from None
    except OSError as error:
        raise StoreUnavailable(f"{path} can't be read: {error.strerror}.", hint="Check the file's rights.") from None
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        if not text.strip() or f'"{snapshots.FORMAT}"' in text[:200]:
            raise StoreCorrupt(
                f"{path} is torn: it ends after {len(text)} characters.", hint="Take another copy of it."
            ) from None
        raise _foreign(path) from None
    try:
        snapshots.check_head(record)
    except InvalidInput:
        raise _foreign(path) from None
    except Incompatible as error:
        raise Incompatible(f"{path}: {error.message}", hint=error.hint) from None
    digest = record.pop("digest", None)
    try:
        is_whole = digest == _digest(record)
    except InvalidInput:  # A number that JSON does not know.
        is_whole = False
    if not is_whole:
        raise _damaged(path, "its digest does not match")
    found: dict[str, Any] = record
    return found


def _foreign(path: str) -> StoreCorrupt:
    return StoreCorrupt(f"{path} is no graph of Mnemarch.", hint="Give a snapshot or a checkpoint of a graph.")


def _damaged(path: str, how: str) -> StoreCorrupt:
    return StoreCorrupt(f"{path} is damaged: {how.rstrip('.')}.", hint="Take another copy of it.")


def write(path: str, record: Mapping[str, Any], *, pretty: bool = True) -> None:
    """Put a record into a file, whole, in place of what was there."""
    try:
        write_whole(path, _text({**record, "digest": _digest(record)}, pretty=pretty))
    except OSError as error:
        raise StoreUnavailable(
            f"{path} can't be written: {error.strerror}.", hint="Check the disk and the folder's rights."
        ) from None


def _text(record: Mapping[str, Any], *, pretty: bool) -> str:
    """JSON; if it is to be read by a person, with a node or an edge on each line."""
    if not pretty:
        return json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    fields = []
    for name, item in record.items():
        if name in (*NODE_LISTS, "edges") and item:
            lines = ",\n  ".join(json.dumps(one, ensure_ascii=False) for one in item)
            fields.append(f"{json.dumps(name)}: [\n  {lines}\n]")
        else:
            fields.append(f"{json.dumps(name)}: {json.dumps(item, ensure_ascii=False)}")
    return "{\n" + ",\n".join(fields) + "\n}\n"


def _digest(record: Mapping[str, Any]) -> str:
    return xxh3_128_hexdigest(canonical_json(dict(record)).encode("utf-8", "surrogatepass"))


def held_folder(path: str) -> Any:
    """Keep other savers out of a file's folder."""
    return locked(os.path.join(os.path.dirname(path), _LOCK), _LOCK_WAIT_S_MAX)


class Files:
    """Which files one graph was read from or written to, and at which revision."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Mark, int]] = {}

    def save(self, store: GraphStore, file: str | os.PathLike[str], *, only_if_dirty: bool) -> bool:
        path = os.path.abspath(os.fspath(file))
        with held_folder(path):
            known = self._known.get(path)
            found = _mark(path)
            if known is not None and found == known[0] and only_if_dirty and store.held.revision == known[1]:
                return False
            if known is not None and found is not None and found != known[0]:
                raise Conflict(
                    f"{path} was written by somebody else since this graph read or wrote it.",
                    hint="Load it again, or save under another name; nothing was overwritten.",
                )
            if known is None and found is not None:
                read(path)  # What is no graph, or a later version's, is not overwritten.
            with store.held.reading():
                record = store.to_snapshot()
                revision = store.held.revision
            write(path, record)
            mark = _mark(path)
            assert mark is not None
            self._known[path] = mark, revision
        return True

    def load(self, store: GraphStore, path: str, record: Mapping[str, Any], mark: Mark | None) -> None:
        store.from_snapshot(record)
        if mark is not None:
            self._known[path] = mark, store.held.revision


def load(made: type[GraphStore], file: str | os.PathLike[str], store: GraphStore | None) -> GraphStore:
    path = os.path.abspath(os.fspath(file))
    mark = _mark(path)
    record = read(path)
    if store is None:
        try:
            store = made(_config_in(record), embedder_of(record["embedderState"]))
        except (InvalidInput, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise _damaged(path, f"its settings make no sense ({error})") from None
    try:
        store.files.load(store, path, record, mark)
    except StoreCorrupt as error:
        raise _damaged(path, error.message) from None
    return store


def _mark(path: str) -> Mark | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _config_in(record: Mapping[str, Any]) -> GraphConfig:
    known = {name: setting for name, setting in record["config"].items() if name in GraphConfig.__match_args__}
    return GraphConfig(**known)


def embedder_of(state: Mapping[str, Any]) -> EmbeddingProvider | None:
    """The embedder of a state, if it is one of ours and this version can be it; None leaves the default."""
    kinds: list[Any] = [question.QuestionEmbedder, sparse.NgramHashEmbedder, words.BagOfWordsEmbedder]
    for kind in kinds:
        made: Any = kind()
        if set(made.export_state()) == set(state):
            try:
                made.import_state(state)
            except InvalidInput:
                return None
            known: EmbeddingProvider = made
            return known
    return None
