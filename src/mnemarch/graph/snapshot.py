"""A graph as JSON types: nodes with their vectors, edges, and all that is needed to compare them elsewhere (A8, A11).

Times are microseconds since 1970 in UTC. A vector is `[[feature, weight], ...]`; every weight comes back to the last
bit. A form that this version could not
read raises the version.
"""

from __future__ import annotations

from math import isfinite

from mnemarch.errors import Incompatible, InvalidInput, StoreCorrupt
from mnemarch.graph.node import EdgeType, NodeType
from mnemarch.graph.state import GraphState, edge_id
from mnemarch.model.json_text import canonical_json
from mnemarch.text.canonical import NORM_VERSION, canonical_key
from mnemarch.text.secrets import redacted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from mnemarch.graph.provider import EmbeddingProvider
    from mnemarch.graph.state import Arc, Vertex
    from mnemarch.policy.heat import GraphConfig

FORMAT = "mnemarch-graph"
VERSION = 1
_KEYED_BY_TEXT = (NodeType.QUERY, NodeType.ANSWER)
# Year 1 to year 9999, as far as there are dates.
_TIME_MIN, _TIME_MAX = -62_135_596_800_000_000, 253_402_300_799_999_999
CANONICAL_META = {"normVersion": NORM_VERSION, "hashAlgo": "xxh3-128", "seed": 0}


def maker_of(embedder: EmbeddingProvider) -> str:
    """What the vectors of an embedder are known by: those of different makers are never compared (R18)."""
    id = getattr(embedder, "id", None)
    if isinstance(id, str):
        return id
    name = f"{type(embedder).__module__}.{type(embedder).__qualname__}"
    state = _state_of(embedder)
    return f"{name}/{canonical_json(state)}" if state else name


def record_of(
    state: GraphState,
    vector_of: Callable[[Vertex], Mapping[Any, float]],
    embedder: EmbeddingProvider,
    config: GraphConfig,
    now: int,
) -> dict[str, Any]:
    """The whole graph."""
    return {
        **head(embedder, config, now),
        "decayedAt": state.decayed_at,
        "nodes": [node_record(vertex, vector_of) for vertex in state.nodes.values()],
        "edges": [edge_record(arc) for arc in state.arcs.values()],
    }


def head(embedder: EmbeddingProvider, config: GraphConfig, now: int) -> dict[str, Any]:
    """What every file of a graph begins with."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "createdAt": now,
        "config": {name: getattr(config, name) for name in type(config).__match_args__},
        "embedderId": maker_of(embedder),
        "embedderState": _state_of(embedder),
        "canonicalMeta": dict(CANONICAL_META),
    }


def _state_of(embedder: EmbeddingProvider) -> dict[str, Any]:
    export = getattr(embedder, "export_state", None)
    return dict(export()) if callable(export) else {}


def node_record(vertex: Vertex, vector_of: Callable[[Vertex], Mapping[Any, float]]) -> dict[str, Any]:
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
        record["embedding"] = [[feature, weight] for feature, weight in vector_of(vertex).items()]
    return record


def edge_record(arc: Arc) -> dict[str, Any]:
    return {
        "id": arc.id,
        "from": arc.from_,
        "to": arc.to,
        "type": str(arc.type),
        "weight": arc.weight,
        "createdAt": arc.created,
        "lastAccess": arc.last,
    }


def restored(record: Mapping[str, Any], embedder: EmbeddingProvider) -> GraphState:
    """The graph of a record. Vectors by another maker are left out, to be made again from their texts (R18)."""
    check_head(record)
    try:
        nodes = record["nodes"] if "nodes" in record else [*record["topQueries"], *record["around"]]
        return _restored(record, nodes, maker_of(embedder), canonical_json(_state_of(embedder)))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise StoreCorrupt(
            f"The graph is damaged: {type(error).__name__} {error}.", hint="Take another copy; nothing was changed."
        ) from None


def check_head(record: Any) -> None:
    """Refuse what is no graph, and what a later version wrote."""
    if not hasattr(record, "get") or record.get("format") != FORMAT:
        raise InvalidInput("This is no graph of Mnemarch.", hint="Give what to_snapshot gave.")
    version = record.get("version")
    if type(version) is not int or version > VERSION:
        raise Incompatible(
            f"The graph has version {version!r}; this Mnemarch reads up to {VERSION}.", hint="Upgrade Mnemarch."
        )


def _restored(record: Mapping[str, Any], nodes: Iterable[Mapping[str, Any]], maker: str, made_with: str) -> GraphState:
    state = GraphState()
    is_comparable = record.get("embedderId") == maker and canonical_json(record.get("embedderState")) == made_with
    for node in nodes:
        vector = _vector(node["embedding"]) if is_comparable and "embedding" in node else None
        _restore_node(state, node, vector)
    for edge in record["edges"]:
        _restore_edge(state, edge)
    decayed_at = record.get("decayedAt")
    state.decayed_at = None if decayed_at is None else _time(decayed_at)
    if record["canonicalMeta"] != CANONICAL_META:
        _rekey(state)
    return state


def _restore_node(state: GraphState, node: Mapping[str, Any], vector: Any) -> None:
    id, text, key = node["id"], node["text"], node["canonicalKey"]
    named = (id, *node["aliases"], *(part for part in (text, key) if part is not None))
    if not all(isinstance(part, str) for part in named) or id in state.nodes:
        raise ValueError(f"node {id!r}")
    if node["type"] == NodeType.QUERY and (not text or key is None):
        raise ValueError(f"question {id!r} without its text")
    clean = None if text is None else redacted(text)[0]
    if clean is not None and clean != text:  # Written by somebody who did not mind.
        text, vector = clean, None
        key = canonical_key(clean) if node["type"] in _KEYED_BY_TEXT else key
    state.add(id, NodeType(node["type"]), text, key, _time(node["createdAt"]), dict(node["about"]), vector=vector)
    if node["type"] == NodeType.ENTITY and not all(isinstance(name, str) for name in node["about"]["names"]):
        raise ValueError(f"names of {id!r}")
    weights = node["weights"]
    state.weigh(id, _finite(weights["repeat"]), _finite(weights["feedback"]), _time(node["lastAccess"]))
    for alias in node["aliases"]:
        state.alias(id, alias)
    if node["pinned"]:
        state.pin(id, True)


def _restore_edge(state: GraphState, edge: Mapping[str, Any]) -> None:
    if edge["from"] not in state.nodes or edge["to"] not in state.nodes or edge["from"] == edge["to"]:
        raise ValueError(f"edge {edge['id']!r}")
    ends = edge["from"], EdgeType(edge["type"]), edge["to"]
    if _finite(edge["weight"]) < 0:
        raise ValueError(f"weight of edge {edge['id']!r}")
    state.join(*ends, _finite(edge["weight"]), _time(edge["createdAt"]))
    state.join(*ends, 0.0, _time(edge["lastAccess"]))


def _rekey(state: GraphState) -> None:
    """Keys of another normal form are made anew; what that makes the same becomes one."""
    state.by_key = {}
    for vertex in list(state.nodes.values()):
        if vertex.text is not None and vertex.type in _KEYED_BY_TEXT:
            vertex.key = canonical_key(vertex.text)
        vertex.aliases = []  # Their wordings are not kept, so their keys can't be made anew.
        first = state.by_key.get((vertex.type, vertex.key)) if vertex.key is not None else None
        if first is not None:
            _absorb(state, first, vertex)
        elif vertex.key is not None:
            state.by_key[vertex.type, vertex.key] = vertex.id


def _absorb(state: GraphState, first: str, vertex: Vertex) -> None:
    state.weigh(first, vertex.repeat, vertex.feedback, vertex.last)
    for arc in list(vertex.edges.values()):
        ends = [first if end == vertex.id else end for end in (arc.from_, arc.to)]
        if arc.type is EdgeType.SIMILAR_TO and edge_id(ends[1], arc.type, ends[0]) in state.arcs:
            ends.reverse()
        if ends[0] != ends[1]:
            state.join(ends[0], arc.type, ends[1], arc.weight, arc.last)
    if vertex.pinned:
        state.pin(first, True)
    vertex.key = None
    state.drop(vertex.id)


def _vector(items: Any) -> dict[Any, float]:
    vector = {feature: _finite(weight) for feature, weight in items}
    if not all(isinstance(feature, int | str) for feature in vector):
        raise ValueError("a vector's feature")
    return vector


def _finite(number: Any) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float) or not isfinite(number):
        raise ValueError(f"{number!r} is no finite number")
    return float(number)


def _time(micros: Any) -> int:
    if type(micros) is not int or not _TIME_MIN <= micros <= _TIME_MAX:
        raise ValueError(f"{micros!r} is no time")
    return micros
