"""Graph. Takes: what an agent asks, what it was answered, what helped. Gives: what is hot. Never: says what is true.

The names below are imported when first used: a recall looks at a graph and needs few of them.
"""

from __future__ import annotations

from mnemon.lazy import names_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemon.graph.file_keeper import FileKeeper
    from mnemon.graph.node import Edge, EdgeType, Finalized, GraphHit, GraphStats, Node, NodeType, Promoted, Weights
    from mnemon.graph.orchestrator import MemoryOrchestrator
    from mnemon.graph.provider import EmbeddingProvider
    from mnemon.graph.store import GraphStore
    from mnemon.policy.heat import CheckpointConfig, GraphConfig, OrchestratorConfig, PromotionConfig

_HOME_OF = {
    "CheckpointConfig": "mnemon.policy.heat",
    "Edge": "mnemon.graph.node",
    "EdgeType": "mnemon.graph.node",
    "EmbeddingProvider": "mnemon.graph.provider",
    "FileKeeper": "mnemon.graph.file_keeper",
    "Finalized": "mnemon.graph.node",
    "GraphConfig": "mnemon.policy.heat",
    "GraphHit": "mnemon.graph.node",
    "GraphStats": "mnemon.graph.node",
    "GraphStore": "mnemon.graph.store",
    "MemoryOrchestrator": "mnemon.graph.orchestrator",
    "Node": "mnemon.graph.node",
    "NodeType": "mnemon.graph.node",
    "OrchestratorConfig": "mnemon.policy.heat",
    "Promoted": "mnemon.graph.node",
    "PromotionConfig": "mnemon.policy.heat",
    "Weights": "mnemon.graph.node",
}

__all__ = [
    "CheckpointConfig",
    "Edge",
    "EdgeType",
    "EmbeddingProvider",
    "FileKeeper",
    "Finalized",
    "GraphConfig",
    "GraphHit",
    "GraphStats",
    "GraphStore",
    "MemoryOrchestrator",
    "Node",
    "NodeType",
    "OrchestratorConfig",
    "Promoted",
    "PromotionConfig",
    "Weights",
]

__getattr__, __dir__ = names_of(globals(), _HOME_OF)
