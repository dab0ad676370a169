"""Graph. Takes: what an agent asks, what it was answered, what helped. Gives: what is hot. Never: says what is true.

This module defines the values that users of a graph see: nodes, edges, search hits, the outcome of a session, and the
protocol of embedders. Other public names are imported on first use, since a recall needs few of them.
"""

from __future__ import annotations

from mnemarch.lazy import names_of
from mnemarch.model.value import Frozen, Names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from typing import Any, Protocol

    from mnemarch.graph.files import FileKeeper
    from mnemarch.graph.orchestrator import MemoryOrchestrator
    from mnemarch.graph.store import GraphStore
    from mnemarch.policy.heat import CheckpointConfig, GraphConfig, OrchestratorConfig, PromotionConfig
else:
    Protocol = object  # A recall imports this module, so it avoids `typing`, which is slow to import.

_HOME_OF = {
    "FileKeeper": "mnemarch.graph.files",
    "GraphStore": "mnemarch.graph.store",
    "MemoryOrchestrator": "mnemarch.graph.orchestrator",
    **dict.fromkeys(
        ("CheckpointConfig", "GraphConfig", "OrchestratorConfig", "PromotionConfig"), "mnemarch.policy.heat"
    ),
}

__all__ = [
    "CheckpointConfig", "Edge", "EdgeType", "EmbeddingProvider", "FileKeeper", "Finalized", "GraphConfig", "GraphHit",
    "GraphStats", "GraphStore", "MemoryOrchestrator", "Node", "NodeType", "OrchestratorConfig", "Promoted",
    "PromotionConfig", "Weights",
]  # fmt: skip

__getattr__, __dir__ = names_of(globals(), _HOME_OF)


class EmbeddingProvider(Protocol):
    """Turns a text into a dense list or a sparse map of numbers.

    Vectors of different embedders are never compared (R18). `id` identifies an embedder; without it, its class and
    `export_state()` do. An optional `sameness(text, other, cosine)` may lower the cosine of texts that only look alike.
    """

    def embed(self, text: str) -> Mapping[Any, float] | Sequence[float]: ...


class NodeType(Names):
    QUERY = "query"
    ANSWER = "answer"
    FEEDBACK = "feedback"
    ENTITY = "entity"


class EdgeType(Names):
    SIMILAR_TO = "similar_to"
    RESPONDED_WITH = "responded_with"
    HAS_FEEDBACK = "has_feedback"
    REFERS_TO_ENTITY = "refers_to_entity"


class Weights(Frozen):
    """How often a node was used, and the sum of its feedback."""

    repeat: float
    feedback: float


class Node(Frozen):
    """A copy of one node. `about` holds fields specific to its type: a feedback's label, an entity's names.

    `embedding` is set only when a single question is read, and only if its vector was computed before.
    """

    id: str
    type: NodeType
    text: str | None
    canonical_key: str | None
    created_at: datetime
    last_access: datetime
    weights: Weights
    degree: int
    rank: float
    pinned: bool = False
    about: Mapping[str, Any] = {}
    embedding: Mapping[Any, float] | None = None


class Edge(Frozen):
    """A copy of one edge. Its id is `from::type::to`."""

    id: str
    from_: str
    to: str
    type: EdgeType
    weight: float
    created_at: datetime
    last_access: datetime


class GraphHit(Frozen):
    """A question similar to the search. `from_` is its graph: "session" or "agent"."""

    id: str
    score: float
    sim: float
    text: str
    canonical_key: str
    from_: str = ""


class GraphStats(Frozen):
    nodes: int
    edges: int


class Promoted(Frozen):
    """A session's question in the agent's graph. `merged`: the agent's graph already had it, or a similar one."""

    text: str
    session_node: str
    agent_node: str
    merged: bool


class Finalized(Frozen):
    """The outcome of a session: questions promoted to the agent, lowered there, left out, and the checkpoint's path."""

    session_id: str
    promoted: tuple[Promoted, ...] = ()
    lowered: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    checkpoint: str | None = None
