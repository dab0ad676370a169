"""Graph. Takes: what an agent asks, what it was answered, what helped. Gives: what is hot. Never: says what is true.

The names below are imported when first used: a recall looks at a graph and needs few of them.
"""

from __future__ import annotations

from mnemarch.lazy import names_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.graph.file_keeper import FileKeeper
    from mnemarch.graph.node import Edge, EdgeType, Finalized, GraphHit, GraphStats, Node, NodeType, Promoted, Weights
    from mnemarch.graph.orchestrator import MemoryOrchestrator
    from mnemarch.graph.provider import EmbeddingProvider
    from mnemarch.graph.store import GraphStore
    from mnemarch.policy.heat import CheckpointConfig, GraphConfig, OrchestratorConfig, PromotionConfig

_HOME_OF = {
    "CheckpointConfig": "mnemarch.policy.heat",
    "Edge": "mnemarch.graph.node",
    "EdgeType": "mnemarch.graph.node",
    "EmbeddingProvider": "mnemarch.graph.provider",
    "FileKeeper": "mnemarch.graph.file_keeper",
    "Finalized": "mnemarch.graph.node",
    "GraphConfig": "mnemarch.policy.heat",
    "GraphHit": "mnemarch.graph.node",
    "GraphStats": "mnemarch.graph.node",
    "GraphStore": "mnemarch.graph.store",
    "MemoryOrchestrator": "mnemarch.graph.orchestrator",
    "Node": "mnemarch.graph.node",
    "NodeType": "mnemarch.graph.node",
    "OrchestratorConfig": "mnemarch.policy.heat",
    "Promoted": "mnemarch.graph.node",
    "PromotionConfig": "mnemarch.policy.heat",
    "Weights": "mnemarch.graph.node",
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
