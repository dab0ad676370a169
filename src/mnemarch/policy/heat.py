"""Heat: the rank of a graph's nodes, how feedback spreads between them, and the settings of graphs (A22, R15, A31).

Heat says what to look at first. What is true is a matter of trust, and the two are never mixed.
"""

from __future__ import annotations

from math import exp, log, tanh

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


def _refuse(*rules: tuple[str, bool]) -> None:
    for rule, broken in rules:
        if broken:
            raise InvalidInput(
                f"A graph's {rule}.",
                hint="Correct the configuration; docs/reference/configuration.md has all settings.",
            )


def _whole(number: Any, least: int) -> bool:
    return type(number) is int and number >= least


def _number(number: Any) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool) and abs(number) < _NUMBER_MAX


def _share(number: Any) -> bool:
    return _number(number) and 0 <= number <= 1


def _truth(item: Any) -> bool:
    return isinstance(item, bool)


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
        _refuse(
            ("max_nodes must be at least 2", not _whole(self.max_nodes, 2)),
            ("max_edges must be at least 1", not _whole(self.max_edges, 1)),
            ("half_life_min must be above 0", not _number(self.half_life_min) or self.half_life_min <= 0),
            ("tau_dup must be from 0 to 1", not _share(self.tau_dup)),
            ("tau_sim must be from 0 to 1", not _share(self.tau_sim)),
            ("protect_min_degree must be at least 1", not _whole(self.protect_min_degree, 1)),
            ("enable_inverted_index must be true or false", not _truth(self.enable_inverted_index)),
            ("similar_max must be a whole number", not _whole(self.similar_max, 0)),
            ("decay_every_min must not be negative", not _number(self.decay_every_min) or self.decay_every_min < 0),
        )


@value
class PromotionConfig:
    """Which questions of a session are promoted to the agent's graph (A26)."""

    min_rank: float = 0.55
    max_promotions: int = 20
    min_degree: int = 2
    carry_weights: bool = True

    def __check__(self) -> None:
        _refuse(
            ("promotion.min_rank must be a number", not _number(self.min_rank)),
            ("promotion.max_promotions must be a whole number", not _whole(self.max_promotions, 0)),
            ("promotion.min_degree must be a whole number", not _whole(self.min_degree, 0)),
            ("promotion.carry_weights must be true or false", not _truth(self.carry_weights)),
        )


@value
class CheckpointConfig:
    """Where checkpoints are written, and how much of a session is in one (A27)."""

    out_dir: str | os.PathLike[str] = "./.agentos/checkpoints"
    top_k: int = 30
    pretty: bool = True

    def __check__(self) -> None:
        _refuse(
            ("checkpoint.out_dir must name a folder", not _folder(self.out_dir)),
            ("checkpoint.top_k must be at least 1", not _whole(self.top_k, 1)),
            ("checkpoint.pretty must be true or false", not _truth(self.pretty)),
        )


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
        bias = self.search_bias_session_first
        kinds: dict[str, type] = {"session_graph": GraphConfig, "agent_graph": GraphConfig}
        kinds |= {"promotion": PromotionConfig, "checkpoint": CheckpointConfig}
        _refuse(
            ("search_bias_session_first must not be negative", not _number(bias) or bias < 0),
            *(
                (
                    f"{name} must be a {kind.__name__}; or give it all as a mapping",
                    type(getattr(self, name)) is not kind,
                )
                for name, kind in kinds.items()
            ),
        )


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
