"""Graph. Takes: what an agent asks, what it was answered, what helped. Gives: what is hot. Never: says what is true.

Each public name is imported when it is first used: a recall needs few of them.
"""

from __future__ import annotations

from mnemarch.lazy import names_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.graph.files import FileKeeper as FileKeeper
    from mnemarch.graph.orchestrator import MemoryOrchestrator as MemoryOrchestrator
    from mnemarch.graph.store import GraphStore as GraphStore
    from mnemarch.graph.values import *  # noqa: F403
    from mnemarch.policy.heat import CheckpointConfig as CheckpointConfig
    from mnemarch.policy.heat import GraphConfig as GraphConfig
    from mnemarch.policy.heat import OrchestratorConfig as OrchestratorConfig
    from mnemarch.policy.heat import PromotionConfig as PromotionConfig

_NAMES_IN = {
    "mnemarch.graph.files": ("FileKeeper",),
    "mnemarch.graph.orchestrator": ("MemoryOrchestrator",),
    "mnemarch.graph.store": ("GraphStore",),
    "mnemarch.graph.values": (
        "Edge", "EdgeType", "EmbeddingProvider", "Finalized", "GraphHit", "GraphStats", "Node", "NodeType", "Promoted",
        "Weights",
    ),
    "mnemarch.policy.heat": ("CheckpointConfig", "GraphConfig", "OrchestratorConfig", "PromotionConfig"),
}  # fmt: skip
_HOME_OF = {name: module for module, names in _NAMES_IN.items() for name in names}

__all__ = sorted(_HOME_OF)

__getattr__, __dir__ = names_of(globals(), _HOME_OF)
