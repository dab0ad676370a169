"""Graphs in files: a snapshot has the whole graph (A8, A11), a checkpoint a session's hottest part (A27).

Writes are atomic, one writer at a time, and changes by others are never overwritten. Times are microseconds since 1970
in UTC. A vector is `[[feature, weight], ...]`, and every weight is restored exactly. Increase the version for changes
that this version can't read.
"""

from __future__ import annotations

import atexit
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from threading import Lock, Timer
from typing import Any, Self, TypeVar

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
from mnemarch.graph import EdgeType, EmbeddingProvider, NodeType
from mnemarch.graph.core import Graph, Keeper, finite
from mnemarch.graph.state import Arc, GraphState, Vertex, edge_id, quotes
from mnemarch.graph.store import GraphStore
from mnemarch.model.caller import Scope
from mnemarch.model.json_text import canonical_json, json_needles
from mnemarch.policy.heat import GraphConfig
from mnemarch.text.canonical import NORM_VERSION, canonical_key, hashed, is_identifying
from mnemarch.text.secrets import redacted

FORMAT = "mnemarch-graph"
VERSION = 1
NODE_LISTS = ("nodes", "topQueries", "around")
# The fields of nodes and edges by the names in a record. "type" is only here for its place in the order.
_OF_A_NODE = {"id": "id", "type": "type", "text": "text", "canonicalKey": "key", "createdAt": "created"}
_OF_A_NODE |= {"lastAccess": "last", "degree": "degree", "pinned": "pinned"}
_OF_AN_EDGE = {"id": "id", "from": "from_", "to": "to", "type": "type", "weight": "weight"}
_OF_AN_EDGE |= {"createdAt": "created", "lastAccess": "last"}
_KEYED_BY_TEXT = (NodeType.QUERY, NodeType.ANSWER)
# Year 1 to year 9999, the range of `datetime`.
_TIME_MIN, _TIME_MAX = -62_135_596_800_000_000, 253_402_300_799_999_999
CANONICAL_META = {"normVersion": NORM_VERSION, "hashAlgo": "xxh3-128", "seed": 0}
_LOCK = ".graphs.lock"
_LOCK_WAIT_S_MAX = 30.0
_NAME_CHARS_MAX = 120

T = TypeVar("T")


# Records


def record_of(graph: Graph, now: int) -> dict[str, Any]:
    """The whole graph."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "createdAt": now,
        "config": {name: getattr(graph.config, name) for name in type(graph.config).__match_args__},
        "embedderId": embedder_id(graph.embedder),
        "embedderState": _state_of(graph.embedder),
        "canonicalMeta": dict(CANONICAL_META),
        "decayedAt": graph.state.decayed_at,
        "nodes": [_node_record(vertex, graph) for vertex in graph.state.nodes.values()],
        "edges": [_fields(arc, _OF_AN_EDGE) for arc in graph.state.arcs.values()],
    }


def _node_record(vertex: Vertex, graph: Graph) -> dict[str, Any]:
    record = _fields(vertex, _OF_A_NODE) | {"about": dict(vertex.about)}
    record |= {"weights": {"repeat": vertex.repeat, "feedback": vertex.feedback}, "aliases": list(vertex.aliases)}
    if vertex.type is NodeType.QUERY:
        record["embedding"] = [[feature, weight] for feature, weight in graph.vector_of(vertex).items()]
    return record


def _fields(item: Vertex | Arc, fields: Mapping[str, str]) -> dict[str, Any]:
    return {name: getattr(item, field) for name, field in fields.items()} | {"type": str(item.type)}


def checkpoint_of(graph: Graph, top_k: int, now: int) -> dict[str, Any]:
    """The hottest questions, their answers, feedback and entities, and the edges between these."""
    whole = record_of(graph, now)
    nodes = {node["id"]: node for node in whole.pop("nodes")}
    queries = [
        (-query.rank(now, graph.config.half_life_min), query.id) for query in graph.state.of_type(NodeType.QUERY)
    ]
    hot = [id for _, id in sorted(queries)[:top_k]]
    near = {edge["to"] for edge in whole["edges"] if edge["from"] in hot and edge["type"] != EdgeType.SIMILAR_TO}
    kept = near.union(hot)
    return {
        **whole,
        "topQueries": [nodes[id] for id in hot],
        "around": [node for id, node in nodes.items() if id in near],
        "edges": [edge for edge in whole["edges"] if edge["from"] in kept and edge["to"] in kept],
    }


def without(record: dict[str, Any], contents: Sequence[str]) -> dict[str, Any]:
    """The record without the nodes that quote one of these texts."""
    lists = [name for name in NODE_LISTS if name in record]
    gone = {node["id"] for name in lists for node in record[name] if quotes(node["text"], node["about"], contents)}
    kept = {name: [node for node in record[name] if node["id"] not in gone] for name in lists}
    edges = [edge for edge in record["edges"] if edge["from"] not in gone and edge["to"] not in gone]
    return record | kept | {"edges": edges}


def embedder_id(embedder: EmbeddingProvider) -> str:
    """The identity of an embedder. Vectors of different embedders are never compared (R18)."""
    id = getattr(embedder, "id", None)
    if isinstance(id, str):
        return id
    name = f"{type(embedder).__module__}.{type(embedder).__qualname__}"
    state = _state_of(embedder)
    return f"{name}/{canonical_json(state)}" if state else name


def _state_of(embedder: EmbeddingProvider) -> dict[str, Any]:
    export = getattr(embedder, "export_state", None)
    return dict(export()) if callable(export) else {}


# Reading


def check_head(record: Any) -> None:
    """Raise if the record is no graph, or of a later version."""
    if not hasattr(record, "get") or record.get("format") != FORMAT:
        raise InvalidInput("This is not a graph of Mnemarch.", hint="Give a snapshot that to_snapshot returned.")
    version = record.get("version")
    if type(version) is not int or version > VERSION:
        newer = f"The graph has version {version!r}; this Mnemarch reads up to {VERSION}."
        raise Incompatible(newer, hint="Upgrade Mnemarch.")


def restored(record: Mapping[str, Any], embedder: EmbeddingProvider) -> GraphState:
    """The graph of a record. Vectors of another embedder are dropped, and computed again from the texts (R18)."""
    check_head(record)
    try:
        made_by = record.get("embedderId"), canonical_json(record.get("embedderState"))
        has_vectors = made_by == (embedder_id(embedder), canonical_json(_state_of(embedder)))
        return _restored(record, has_vectors, is_rekeyed=record["canonicalMeta"] != CANONICAL_META)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, InvalidInput) as error:
        damaged = f"The graph is damaged: {type(error).__name__} {error}."
        raise StoreCorrupt(damaged, hint="Take another copy; nothing was changed.") from None


def _restored(record: Mapping[str, Any], has_vectors: bool, *, is_rekeyed: bool) -> GraphState:
    state = GraphState()
    nodes: Iterable[Any] = record["nodes"] if "nodes" in record else [*record["topQueries"], *record["around"]]
    restored_as: dict[str, str] = {}
    for node in nodes:
        vector = _vector(node["embedding"]) if has_vectors and "embedding" in node else None
        restored_as[node["id"]] = _restore_node(state, node, vector, is_rekeyed=is_rekeyed)
    for edge in record["edges"]:
        from_, type, to = restored_as[edge["from"]], EdgeType(edge["type"]), restored_as[edge["to"]]
        weight = finite(edge["weight"], "The weight of an edge", least=0)
        created, last = _time(edge["createdAt"]), _time(edge["lastAccess"])
        _require(edge["from"] != edge["to"], "edge", edge["id"])
        if type is EdgeType.SIMILAR_TO and edge_id(to, type, from_) in state.arcs:
            from_, to = to, from_
        if from_ != to:
            state.join(from_, type, to, weight, created)
            state.join(from_, type, to, 0.0, last)
    if record.get("decayedAt") is not None:
        state.decayed_at = _time(record["decayedAt"])
    return state


def _restore_node(state: GraphState, node: Mapping[str, Any], vector: Any, *, is_rekeyed: bool) -> str:
    """Restore a node. Returns its id. With `is_rekeyed`, keys are recomputed, and nodes with equal keys are merged."""
    id, type, text, key = node["id"], NodeType(node["type"]), node["text"], node["canonicalKey"]
    strings = [id, *node["aliases"], *(part for part in (text, key) if part is not None)]
    if type is NodeType.ENTITY:
        strings += node["about"]["names"]
    _require(all(isinstance(part, str) for part in strings) and id not in state.nodes, "node", id)
    _require(type is not NodeType.QUERY or (text and key is not None), "question without a text", id)
    clean = None if text is None else redacted(text)[0]
    is_redacted = clean != text  # The file's writer did not redact the text.
    if clean is not None and (is_redacted or is_rekeyed):
        key = canonical_key(clean) if type in _KEYED_BY_TEXT else key
    first = state.by_key.get((type, key)) if is_rekeyed else None
    if first is None:
        first = id
        vector = None if is_redacted else vector
        state.add(id, type, clean, key, _time(node["createdAt"]), dict(node["about"]), vector)
    weights = node["weights"]
    repeat, feedback = (finite(weights[name], f"The {name} of a node") for name in ("repeat", "feedback"))
    state.weigh(first, repeat, feedback, _time(node["lastAccess"]))
    # The texts behind aliases are not stored, so their keys can't be recomputed.
    for alias in () if is_rekeyed else node["aliases"]:
        state.alias(id, alias)
    if node["pinned"]:
        state.pin(first, True)
    return first


def _vector(items: Any) -> dict[Any, float]:
    vector = {feature: finite(weight, "The weight of a feature") for feature, weight in items}
    _require(all(isinstance(feature, int | str) for feature in vector), "vector", list(vector)[:1])
    return vector


def _time(micros: Any) -> int:
    _require(type(micros) is int and _TIME_MIN <= micros <= _TIME_MAX, "time", micros)
    return int(micros)


def _require(is_valid: object, what: str, item: object) -> None:
    if not is_valid:
        raise ValueError(f"{what} {item!r}")


# All files of graphs


def read(path: str) -> dict[str, Any]:
    """The record in a file. Raises if the file is damaged or no graph."""
    foreign = StoreCorrupt(f"{path} is not a graph of Mnemarch.", hint="Give a snapshot or a checkpoint of a graph.")
    try:
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            text = file.read()
    except FileNotFoundError:
        raise NotFound(f"There is no file {path}.", hint="Check the name.") from None
    except OSError as error:
        raise StoreUnavailable(f"{path} can't be read: {error.strerror}.", hint="Check the file's rights.") from None
    try:
        record: dict[str, Any] = json.loads(text)
        check_head(record)
        is_whole = record.pop("digest", None) == _digest(record)
    except (ValueError, RecursionError):
        if not text.strip() or f'"{FORMAT}"' in text[:200]:
            torn = f"{path} is incomplete: it ends after {len(text)} characters."
            raise StoreCorrupt(torn, hint="Take another copy of it.") from None
        raise foreign from None
    except InvalidInput:
        raise foreign from None
    except Incompatible as error:
        raise Incompatible(f"{path}: {error.message}", hint=error.hint) from None
    if not is_whole:
        raise _damaged(path, "its digest does not match")
    return record


def _damaged(path: str, how: str) -> StoreCorrupt:
    return StoreCorrupt(f"{path} is damaged: {how.rstrip('.')}.", hint="Take another copy of it.")


def _digest(record: Mapping[str, Any]) -> str:
    return hashed(canonical_json(dict(record)))


def write(path: str, record: Mapping[str, Any], *, pretty: bool = True) -> None:
    """Replace a file with a record."""
    try:
        write_whole(path, _text({**record, "digest": _digest(record)}, pretty=pretty), private=True)
    except OSError as error:
        failed = f"{path} can't be written: {error.strerror}."
        raise StoreUnavailable(failed, hint="Check the disk and the folder's rights.") from None


def _text(record: Mapping[str, Any], *, pretty: bool) -> str:
    """The record as JSON. With `pretty`, each node or edge is on its own line."""
    if not pretty:
        return json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    fields = []
    for name, item in record.items():
        text = json.dumps(item, ensure_ascii=False)
        if name in (*NODE_LISTS, "edges") and item:
            text = "[\n  " + ",\n  ".join(json.dumps(one, ensure_ascii=False) for one in item) + "\n]"
        fields.append(f"{json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(fields) + "\n}\n"


def _locked_folder(path: str) -> Any:
    """Lock a file's folder against other writers."""
    return locked(os.path.join(os.path.dirname(path), _LOCK), _LOCK_WAIT_S_MAX)


# Snapshots


def save(store: GraphStore, file: str | os.PathLike[str], *, only_if_dirty: bool) -> bool:
    """Write a graph to a file. Returns whether it was written."""
    path = os.path.abspath(os.fspath(file))
    with _locked_folder(path):
        last_mark, revision = store.saved.get(path, (None, -1))
        mark = _mark(path)
        if mark is not None and last_mark is None:
            read(path)  # Raises for files of other kinds or later versions, so that they are not overwritten.
        elif mark is not None and mark != last_mark:
            changed = f"{path} was changed by somebody else since this graph read or wrote it."
            raise Conflict(changed, hint="Nothing was overwritten. Load it again, or save under another name.")
        elif mark is not None and only_if_dirty and store.revision == revision:
            return False
        with store.reading():
            record, revision = store.to_snapshot(), store.revision
        write(path, record)
        store.saved[path] = _mark(path), revision
    return True


def load(made: type[GraphStore], file: str | os.PathLike[str], store: GraphStore | None) -> GraphStore:
    """Load a snapshot or checkpoint into a graph, or into a new one with the file's settings."""
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
    """A value that changes when the file is replaced. None if there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def embedder_of(state: Mapping[str, Any]) -> EmbeddingProvider | None:
    """The built-in embedder with this state. None, for the default, if this version has none."""
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
    """Write a checkpoint into a folder. Returns its path. Without a name it never replaces another."""
    stem = _file_name(record["sessionId"]) + f"-{record['createdAt']}" if name is None else checked_file_name(name)
    path = os.path.join(folder, f"{stem.removesuffix('.json')}.json")
    try:
        if not os.path.isdir(folder):
            os.makedirs(os.path.dirname(folder), exist_ok=True)
            make_folder(folder)
            with open(os.path.join(folder, ".gitignore"), "w", encoding="utf-8") as file:
                file.write("*\n")  # Questions are private.
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
            read(path)  # Raises for files of other kinds or later versions, so that they are not overwritten.
        write(path, record, pretty=pretty)
    return path


def _drop_partials(folder: str) -> None:
    """Remove partial checkpoints of killed processes. The caller holds the folder's lock."""
    for name in os.listdir(folder):
        if name.endswith(f".json{PARTIAL_END}"):
            os.remove(os.path.join(folder, name))


def checked_file_name(name: Any) -> str:
    """The name, checked to stay in its folder as a file's name."""
    if not isinstance(name, str) or not name.strip() or name != _file_name(name):
        usable = f"Use letters, digits, '-', '_' and '.', at most {_NAME_CHARS_MAX} characters."
        raise InvalidInput(f"{name!r} can't be the name of a checkpoint.", hint=usable)
    return name


def _file_name(name: str) -> str:
    """The name without characters that are special in file systems."""
    plain = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
    return plain.lstrip(".")[:_NAME_CHARS_MAX] or "session"


def forget_in_checkpoints(folder: str, contents: Sequence[str], may_read: Callable[[Scope], bool]) -> int:
    """Remove every node that copies one of these texts from the checkpoints in a folder.

    Returns the number of checkpoints checked. Checkpoints in scopes that the caller may not read are skipped.
    """
    if not os.path.isdir(folder):
        return 0
    with _locked_folder(os.path.join(folder, _LOCK)):
        _drop_partials(folder)
    paths = [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".json")]
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
            kept = without(record, contents)
            if kept != record:
                write(path, kept)
    if unclean:
        unread = f"These files hold what is to be erased, but can't be read as checkpoints: {', '.join(unclean)}."
        raise StoreUnavailable(unread, hint="Nothing was erased yet. Remove them, and erase again.")
    return cleaned


# Automatic saving


class FileKeeper(Keeper, Forkable):
    """Keeps one graph in one file. Changes are saved together after a moment, and by `close` or at exit (A28).

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
        """Load a graph from the file, if it exists, and save its changes from now on."""
        if self._store is not None or store.keeper is not self:
            own = "GraphStore(config, embedder, keeper=keeper), with one FileKeeper for each graph."
            raise InvalidInput(f"{self.file} belongs to another graph, or this graph has another keeper.", hint=own)
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
        """Write pending changes now."""
        with self._starting:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None
        with self._saving:
            if self._store is not None:
                self._store.save_to_file(self.file, only_if_dirty=True)
                self.error = None

    def close(self) -> None:
        """Write pending changes and release the graph."""
        atexit.unregister(self.flush)
        try:
            self.flush()
        finally:
            self._store = None
