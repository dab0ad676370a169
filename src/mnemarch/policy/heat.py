"""Heat: the rank of a graph's nodes, how feedback spreads between them, and the settings of graphs (A22, R15, A31).

Heat says what to look at first. Trust says what is true. The two are never mixed.
"""

from __future__ import annotations

from math import exp, log, tanh

from mnemarch.errors import InvalidInput
from mnemarch.model.value import Frozen
from mnemarch.policy.admission import changed_settings, require_between, require_valid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

OF_RECENCY, _OF_REPEAT, _OF_FEEDBACK = 0.5, 0.3, 0.2
_OF_SIMILARITY, _OF_RANK = 0.7, 0.3
_SATURATED_AT = 5.0
_NUMBER_MAX = 1e300
_LN2 = log(2.0)

# The weight of one feedback of each kind (R15).
FEEDBACK: Mapping[str, float] = {"up": 1.0, "down": -1.0, "retry": -0.5}
_HOPS_MAX = 2
_PER_HOP = 0.5
_SPREAD_MIN = 0.05
# A decayed edge below this weight is removed.
EDGE_WEIGHT_MIN = 0.05


# The bounds of settings. A setting without a row is at least 0.
_BOUNDS = {
    "max_nodes": (2, _NUMBER_MAX),
    "max_edges": (1, _NUMBER_MAX),
    "protect_min_degree": (1, _NUMBER_MAX),
    "top_k": (1, _NUMBER_MAX),
    "half_life_min": (1e-6, _NUMBER_MAX),
    "tau_dup": (0, 1),
    "tau_sim": (0, 1),
    "min_rank": (-_NUMBER_MAX, _NUMBER_MAX),
}


def _check(rules: Any, section: str = "") -> None:
    """Check every setting by its type and the bounds above."""
    for field, kind in type(rules).__annotations__.items():
        name, setting = f"A graph's {section}{field}", getattr(rules, field)
        if kind == "bool":
            require_valid(isinstance(setting, bool), name, setting, "true or false")
        elif kind in ("int", "float"):
            require_between(name, setting, kind, *_BOUNDS.get(field, (0, _NUMBER_MAX)))


def _folder(item: Any) -> bool:
    path = item.__fspath__() if hasattr(item, "__fspath__") else item
    return isinstance(path, str) and bool(path.strip())


class GraphConfig(Frozen):
    """The bounds and thresholds of one graph; the defaults are those of a session (A31)."""

    max_nodes: int = 1_000
    max_edges: int = 4_000
    half_life_min: float = 240.0
    tau_dup: float = 0.96
    tau_sim: float = 0.75
    protect_min_degree: int = 3
    enable_inverted_index: bool = False
    # Bounds the similar questions that one question is linked to: a thousand similar ones would have a million edges.
    similar_max: int = 8
    # The interval at which stored weights decay. 0: never, and only the computed rank depends on time (A24).
    decay_every_min: float = 0.0

    def __check__(self) -> None:
        _check(self)


class PromotionConfig(Frozen):
    """Which questions of a session are promoted to the agent's graph (A26)."""

    min_rank: float = 0.55
    max_promotions: int = 20
    min_degree: int = 2
    carry_weights: bool = True

    def __check__(self) -> None:
        _check(self, "promotion.")


class CheckpointConfig(Frozen):
    """Where checkpoints are written, and how many nodes of a session one holds (A27)."""

    out_dir: str | os.PathLike[str] = "./.agentos/checkpoints"
    top_k: int = 30
    pretty: bool = True

    def __check__(self) -> None:
        require_valid(_folder(self.out_dir), "A graph's checkpoint.out_dir", self.out_dir, "a folder")
        _check(self, "checkpoint.")


_AGENT_GRAPH = GraphConfig(
    max_edges=12_000, half_life_min=1_440.0, tau_sim=0.78, protect_min_degree=4, enable_inverted_index=True
)


class OrchestratorConfig(Frozen):
    """The settings of an agent's graph and of its sessions' graphs. The defaults are those of A31."""

    session_graph: GraphConfig = GraphConfig()
    agent_graph: GraphConfig = _AGENT_GRAPH
    promotion: PromotionConfig = PromotionConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    search_bias_session_first: float = 0.05

    def __check__(self) -> None:
        _check(self)
        kinds: dict[str, type] = {"session_graph": GraphConfig, "agent_graph": GraphConfig}
        kinds |= {"promotion": PromotionConfig, "checkpoint": CheckpointConfig}
        for name, kind in kinds.items():
            part = getattr(self, name)
            allowed = f"a {kind.__name__} (or give it all as a mapping)"
            require_valid(type(part) is kind, f"A graph's {name}", part, allowed)


_SECTIONS = {"session": "session_graph", "agent": "agent_graph", "promotion": "promotion", "checkpoint": "checkpoint"}


def graph_settings(table: Mapping[str, Any]) -> OrchestratorConfig:
    """The settings in a table, as `[graph]` in mnemarch.toml holds them: `session`, `agent`, `promotion`, `checkpoint`.

    An unknown name is an error, not a no-op.
    """
    if not isinstance(table, dict):
        raise InvalidInput(f"{table!r} are not settings of a graph.", hint="Use OrchestratorConfig(...), or a mapping.")
    default = OrchestratorConfig()
    changes: dict[str, Any] = {}
    for name, setting in table.items():
        short = name.removesuffix("_graph")
        if name == "search_bias_session_first":
            changes[name] = setting
        elif field := _SECTIONS.get(short):
            changes[field] = changed_settings(getattr(default, field), setting, f"graph.{short}")
        else:
            names = ", ".join([*_SECTIONS, "search_bias_session_first"])
            raise InvalidInput(f"There is no setting graph.{short}.", hint=f"[graph] knows: {names}.")
    return OrchestratorConfig(**changes)


def recency(age_min: float, half_life_min: float) -> float:
    """1 for a node used just now, halved with every half-life. A time in the future counts as now."""
    return exp(-_LN2 * max(0.0, age_min) / half_life_min)


def worth(repeat: float, feedback: float) -> float:
    """The part of a rank that does not depend on time."""
    return _OF_REPEAT * tanh(repeat / _SATURATED_AT) + _OF_FEEDBACK * tanh(feedback / _SATURATED_AT)


def rank(age_min: float, half_life_min: float, repeat: float, feedback: float) -> float:
    """The heat of a node (A22)."""
    return OF_RECENCY * recency(age_min, half_life_min) + worth(repeat, feedback)


def score(similarity: float, rank: float) -> float:
    """The number by which a search orders questions (R15)."""
    return _OF_SIMILARITY * similarity + _OF_RANK * rank


def spread(origin: str, delta: float, neighbours: Callable[[str], Iterable[tuple[str, float]]]) -> dict[str, float]:
    """Each neighbour's share of a feedback on `origin`. Every hop multiplies it by the edge's weight and by a half.

    A node gets one share, along its shortest path. Of equally short paths the strongest counts. An edge heavier than 1
    counts as 1, so that a share always shrinks.
    """
    reached: dict[str, float] = {}
    front = {origin: delta}
    for _ in range(_HOPS_MAX):
        ahead: dict[str, float] = {}
        for node, at_hand in front.items():
            for other, weight in neighbours(node):
                share = at_hand * min(1.0, weight) * _PER_HOP
                if other == origin or other in reached or abs(share) < _SPREAD_MIN:
                    continue
                if abs(share) > abs(ahead.get(other, 0.0)):
                    ahead[other] = share
        reached |= ahead
        front = ahead
    return reached
