"""Heat: the rank of a graph's nodes, how feedback spreads between them, and the settings of graphs (A22, R15, A31).

Heat says what to look at first. What is true is a matter of trust, and the two are never mixed.
"""

from __future__ import annotations

from math import exp, inf, log, tanh

from mnemarch.errors import InvalidInput
from mnemarch.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, TypeVar

    T = TypeVar("T")

OF_RECENCY, _OF_REPEAT, _OF_FEEDBACK = 0.5, 0.3, 0.2
_OF_SIMILARITY, _OF_RANK = 0.7, 0.3
_SATURATED_AT = 5.0
_NUMBER_MAX = 1e300
_LN2 = log(2.0)

# What one piece of feedback weighs (R15).
FEEDBACK: Mapping[str, float] = {"up": 1.0, "down": -1.0, "retry": -0.5}
_HOPS_MAX = 2
_PER_HOP = 0.5
_SPREAD_MIN = 0.05
# A worn edge below this weight is removed.
EDGE_WEIGHT_MIN = 0.05


# The least and the most that a number may be; others are at least 0.
_BOUNDS = {
    "max_nodes": (2, inf),
    "max_edges": (1, inf),
    "protect_min_degree": (1, inf),
    "top_k": (1, inf),
    "half_life_min": (1e-6, inf),
    "tau_dup": (0, 1),
    "tau_sim": (0, 1),
    "min_rank": (-inf, inf),
}


def _require(holds: bool, what: str) -> None:
    if not holds:
        hint = "Correct the configuration; docs/reference/configuration.md has all settings."
        raise InvalidInput(f"A graph's {what}.", hint=hint)


def _check(rules: Any, section: str = "") -> None:
    """Check every setting by its type and the bounds above."""
    for field, kind in type(rules).__annotations__.items():
        setting, (least, most) = getattr(rules, field), _BOUNDS.get(field, (0, inf))
        if kind == "bool":
            _require(isinstance(setting, bool), f"{section}{field} must be true or false")
        elif kind in ("int", "float"):
            is_number = type(setting) in ((int,) if kind == "int" else (int, float)) and abs(setting) < _NUMBER_MAX
            what = "whole number" if kind == "int" else "number"
            allowed = f"{what} of at least {least:g}" if most == inf else f"{what} from {least:g} to {most:g}"
            _require(is_number and least <= setting <= most, f"{section}{field} must be a {allowed}")


def _folder(item: Any) -> bool:
    path = item.__fspath__() if hasattr(item, "__fspath__") else item
    return isinstance(path, str) and bool(path.strip())


@value
class GraphConfig:
    """The bounds and thresholds of one graph; the defaults are those of a session (A31)."""

    max_nodes: int = 1_000
    max_edges: int = 4_000
    half_life_min: float = 240.0
    tau_dup: float = 0.96
    tau_sim: float = 0.75
    protect_min_degree: int = 3
    enable_inverted_index: bool = False
    # A question is linked to so many similar ones at most: a thousand similar questions would have a million edges.
    similar_max: int = 8
    # How often stored weights are lowered; 0: never, then time counts only when a rank is computed (A24).
    decay_every_min: float = 0.0

    def __check__(self) -> None:
        _check(self)


@value
class PromotionConfig:
    """Which questions of a session are promoted to the agent's graph (A26)."""

    min_rank: float = 0.55
    max_promotions: int = 20
    min_degree: int = 2
    carry_weights: bool = True

    def __check__(self) -> None:
        _check(self, "promotion.")


@value
class CheckpointConfig:
    """Where checkpoints are written, and how much of a session is in one (A27)."""

    out_dir: str | os.PathLike[str] = "./.agentos/checkpoints"
    top_k: int = 30
    pretty: bool = True

    def __check__(self) -> None:
        _require(_folder(self.out_dir), "checkpoint.out_dir must name a folder")
        _check(self, "checkpoint.")


_AGENT_GRAPH = GraphConfig(
    max_edges=12_000, half_life_min=1_440.0, tau_sim=0.78, protect_min_degree=4, enable_inverted_index=True
)


@value
class OrchestratorConfig:
    """The settings of an agent's graph and of its sessions', with the defaults of A31."""

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
            is_one = type(getattr(self, name)) is kind
            _require(is_one, f"{name} must be a {kind.__name__}; or give it all as a mapping")


_SECTIONS = {"session": "session_graph", "agent": "agent_graph", "promotion": "promotion", "checkpoint": "checkpoint"}


def graph_settings(table: Mapping[str, Any]) -> OrchestratorConfig:
    """The settings in a table, as `[graph]` in mnemarch.toml holds them: `session`, `agent`, `promotion`, `checkpoint`.

    An unknown name is an error, not a no-op.
    """
    if not isinstance(table, dict):
        raise InvalidInput(f"{table!r} are no settings of graphs.", hint="Use OrchestratorConfig(...), or a mapping.")
    default = OrchestratorConfig()
    changes: dict[str, Any] = {}
    for name, setting in table.items():
        short = name.removesuffix("_graph")
        if name == "search_bias_session_first":
            changes[name] = setting
        elif field := _SECTIONS.get(short):
            changes[field] = section(getattr(default, field), setting, f"graph.{short}")
        else:
            names = ", ".join([*_SECTIONS, "search_bias_session_first"])
            raise InvalidInput(f"There is no setting graph.{short}.", hint=f"[graph] knows: {names}.")
    return OrchestratorConfig(**changes)


def section(default: T, setting: Any, name: str) -> T:
    """Settings of one kind: as they are given, or the default with the changes in a table."""
    if isinstance(setting, type(default)):
        return setting
    if not hasattr(setting, "keys"):
        raise InvalidInput(f"{name} must be a table, not {setting!r}.", hint=f"Write [{name}], or give a mapping.")
    fields: Any = type(default).__match_args__  # type: ignore[attr-defined]
    if unknown := [field for field in setting if field not in fields]:
        raise InvalidInput(f"There is no setting {name}.{unknown[0]}.", hint=f"[{name}] knows: {', '.join(fields)}.")
    return replace(default, **setting)


def recency(age_min: float, half_life_min: float) -> float:
    """1 for a node used just now, halved with every half-life; a time in the future counts as now."""
    return exp(-_LN2 * max(0.0, age_min) / half_life_min)


def worth(repeat: float, feedback: float) -> float:
    """The part of a rank that does not depend on the time."""
    return _OF_REPEAT * tanh(repeat / _SATURATED_AT) + _OF_FEEDBACK * tanh(feedback / _SATURATED_AT)


def rank(age_min: float, half_life_min: float, repeat: float, feedback: float) -> float:
    """The heat of a node (A22)."""
    return rank_of(worth(repeat, feedback), age_min, half_life_min)


def rank_of(worth: float, age_min: float, half_life_min: float) -> float:
    """The rank of a node whose `worth` is known."""
    return OF_RECENCY * recency(age_min, half_life_min) + worth


def score(similarity: float, rank: float) -> float:
    """What a search orders questions by (R15)."""
    return _OF_SIMILARITY * similarity + _OF_RANK * rank


def spread(origin: str, delta: float, neighbours: Callable[[str], Iterable[tuple[str, float]]]) -> dict[str, float]:
    """Each neighbour's share of a feedback on `origin`: every hop multiplies by the edge's weight and by a half.

    A node gets its share once, by the shortest path; of equally short ones, by the strongest. An edge heavier than 1
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
