"""A graph as JSON types: a snapshot has all of it (A8, A11), a checkpoint the hottest questions of a session (A27).

Times are microseconds since 1970 in UTC. A vector is `[[feature, weight], ...]`; every weight comes back to the last
bit. A change that this version can't read raises the version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from mnemarch.errors import Incompatible, InvalidInput, StoreCorrupt
from mnemarch.graph import EdgeType, EmbeddingProvider, NodeType
from mnemarch.graph.core import Graph
from mnemarch.graph.state import GraphState, Vertex, edge_id, quotes
from mnemarch.model.json_text import canonical_json
from mnemarch.text.canonical import NORM_VERSION, canonical_key
from mnemarch.text.secrets import redacted

FORMAT = "mnemarch-graph"
VERSION = 1
NODE_LISTS = ("nodes", "topQueries", "around")
_KEYED_BY_TEXT = (NodeType.QUERY, NodeType.ANSWER)
# Year 1 to year 9999: all there is to `datetime`.
_TIME_MIN, _TIME_MAX = -62_135_596_800_000_000, 253_402_300_799_999_999
CANONICAL_META = {"normVersion": NORM_VERSION, "hashAlgo": "xxh3-128", "seed": 0}


# Writing


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
        "edges": [
            {
                "id": arc.id,
                "from": arc.from_,
                "to": arc.to,
                "type": str(arc.type),
                "weight": arc.weight,
                "createdAt": arc.created,
                "lastAccess": arc.last,
            }
            for arc in graph.state.arcs.values()
        ],
    }


def _node_record(vertex: Vertex, graph: Graph) -> dict[str, Any]:
    record: dict[str, Any] = {
        "id": vertex.id,
        "type": str(vertex.type),
        "text": vertex.text,
        "canonicalKey": vertex.key,
        "createdAt": vertex.created,
        "lastAccess": vertex.last,
        "weights": {"repeat": vertex.repeat, "feedback": vertex.feedback},
        "degree": vertex.degree,
        "pinned": vertex.pinned,
        "aliases": list(vertex.aliases),
        "about": dict(vertex.about),
    }
    if vertex.type is NodeType.QUERY:
        record["embedding"] = [[feature, weight] for feature, weight in graph.vector_of(vertex).items()]
    return record


def checkpoint_of(graph: Graph, top_k: int, now: int) -> dict[str, Any]:
    """The hottest questions, their answers, feedback and entities, and the edges among all these."""
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
    """A record without the nodes that quote one of these texts."""
    lists = [name for name in NODE_LISTS if name in record]
    gone = {node["id"] for name in lists for node in record[name] if quotes(node["text"], node["about"], contents)}
    kept = {name: [node for node in record[name] if node["id"] not in gone] for name in lists}
    edges = [edge for edge in record["edges"] if edge["from"] not in gone and edge["to"] not in gone]
    return record | kept | {"edges": edges}


def embedder_id(embedder: EmbeddingProvider) -> str:
    """What tells embedders apart: vectors of different ones are never compared (R18)."""
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
    """Refuse what is no graph, or of a later version."""
    if not hasattr(record, "get") or record.get("format") != FORMAT:
        raise InvalidInput("This is no graph of Mnemarch.", hint="Give what to_snapshot gave.")
    version = record.get("version")
    if type(version) is not int or version > VERSION:
        newer = f"The graph has version {version!r}; this Mnemarch reads up to {VERSION}."
        raise Incompatible(newer, hint="Upgrade Mnemarch.")


def restored(record: Mapping[str, Any], embedder: EmbeddingProvider) -> GraphState:
    """The graph of a record. Vectors of another embedder are left out, to be made again from their texts (R18)."""
    check_head(record)
    try:
        made_by = record.get("embedderId"), canonical_json(record.get("embedderState"))
        has_vectors = made_by == (embedder_id(embedder), canonical_json(_state_of(embedder)))
        return _restored(record, has_vectors, is_rekeyed=record["canonicalMeta"] != CANONICAL_META)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
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
        from_, type, to = restored_as.get(edge["from"]), EdgeType(edge["type"]), restored_as.get(edge["to"])
        weight, created, last = _finite(edge["weight"]), _time(edge["createdAt"]), _time(edge["lastAccess"])
        if from_ is None or to is None or edge["from"] == edge["to"]:
            raise ValueError(f"edge {edge['id']!r}")
        _require(weight >= 0, "weight of edge", edge["id"])
        if type is EdgeType.SIMILAR_TO and edge_id(to, type, from_) in state.arcs:
            from_, to = to, from_
        if from_ != to:
            state.join(from_, type, to, weight, created)
            state.join(from_, type, to, 0.0, last)
    if record.get("decayedAt") is not None:
        state.decayed_at = _time(record["decayedAt"])
    return state


def _restore_node(state: GraphState, node: Mapping[str, Any], vector: Any, *, is_rekeyed: bool) -> str:
    """Restore a node. If keys are made anew, nodes whose keys become equal are merged. Returns the id it now has."""
    id, type, text, key = node["id"], NodeType(node["type"]), node["text"], node["canonicalKey"]
    strings = [id, *node["aliases"], *(part for part in (text, key) if part is not None)]
    if type is NodeType.ENTITY:
        strings += node["about"]["names"]
    _require(all(isinstance(part, str) for part in strings) and id not in state.nodes, "node", id)
    _require(type is not NodeType.QUERY or (text and key is not None), "question without a text", id)
    clean = None if text is None else redacted(text)[0]
    is_redacted = clean != text  # It was written by somebody who did not redact it.
    if clean is not None and (is_redacted or is_rekeyed):
        key = canonical_key(clean) if type in _KEYED_BY_TEXT else key
    first = state.by_key.get((type, key)) if is_rekeyed else None
    if first is None:
        first = id
        vector = None if is_redacted else vector
        state.add(id, type, clean, key, _time(node["createdAt"]), dict(node["about"]), vector)
    weights = node["weights"]
    state.weigh(first, _finite(weights["repeat"]), _finite(weights["feedback"]), _time(node["lastAccess"]))
    # The texts of other wordings are not stored, so their keys can't be made anew.
    for alias in () if is_rekeyed else node["aliases"]:
        state.alias(id, alias)
    if node["pinned"]:
        state.pin(first, True)
    return first


def _vector(items: Any) -> dict[Any, float]:
    vector = {feature: _finite(weight) for feature, weight in items}
    _require(all(isinstance(feature, int | str) for feature in vector), "vector", list(vector)[:1])
    return vector


def _finite(number: Any) -> float:
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    _require(is_number and isfinite(number), "number", number)
    return float(number)


def _time(micros: Any) -> int:
    _require(type(micros) is int and _TIME_MIN <= micros <= _TIME_MAX, "time", micros)
    return int(micros)


def _require(is_valid: object, what: str, item: object) -> None:
    if not is_valid:
        raise ValueError(f"{what} {item!r}")
