"""Every setting, its default and its unit. `mnemon.toml` beside the memory changes them; nothing else does."""

from __future__ import annotations

import os
from math import isfinite

from mnemon.errors import InvalidInput
from mnemon.model.value import replace, value
from mnemon.policy.permissions import Policy, policy_from
from mnemon.policy.retention import RetentionRules
from mnemon.policy.trust import TrustRules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from mnemon.policy.heat import OrchestratorConfig

FILE_NAME = "mnemon.toml"


@value
class Limits:
    """What is too much."""

    text_bytes_max: int = 65_536
    data_bytes_max: int = 1_048_576
    batch_max: int = 500


@value
class GateRules:
    """Numbers of the gate (S10) and of the duplicate guard (R6, A31)."""

    reuse_min: int = 3
    tau_dup: float = 0.96
    tau_sim: float = 0.78
    neighbours_max: int = 5


@value
class RecallRules:
    """The three axes of M4 and how far a search looks."""

    weight_similarity: float = 0.5
    weight_recency: float = 0.3
    weight_importance: float = 0.2
    half_life_hours: float = 24.0
    k_max: int = 1_000
    candidates_per_item: int = 4
    candidates_min: int = 200
    expanded_max: int = 30
    neighbours: bool = True
    sessions: bool = True
    speakers: bool = True
    dates: bool = True
    frame: bool = True
    spelling: bool = True
    intent: bool = True
    own_session: bool = True
    distinct: bool = True
    fusion: str = "weighted"
    semantic: str = ""


@value
class LoopRules:
    """How often the same error or approach may fail in a task before it is blocked (S3)."""

    threshold: int = 3


@value
class DecisionRules:
    """How far the impact of a decision is followed (R12)."""

    impact_depth_max: int = 16
    impact_nodes_max: int = 1_000


@value
class StoreRules:
    """How the embedded store behaves. `durability`: "process" survives a killed process, "power" a power cut."""

    durability: str = "process"
    lock_wait_s_max: float = 30.0
    index_tail_max: int = 512
    index_at_close_min: int = 64


@value
class Config:
    """All settings together."""

    project: str | None = None
    policy: Policy = Policy()
    limits: Limits = Limits()
    gate: GateRules = GateRules()
    trust: TrustRules = TrustRules()
    retention: RetentionRules = RetentionRules()
    recall: RecallRules = RecallRules()
    loops: LoopRules = LoopRules()
    decisions: DecisionRules = DecisionRules()
    # None: the defaults of A31, which are not loaded before a graph is used.
    graph: OrchestratorConfig | None = None
    store: StoreRules = StoreRules()


_SECTIONS = ("limits", "gate", "retention", "recall", "loops", "decisions", "store")


def load(folder: str) -> Config:
    """The configuration of `folder`: the defaults, changed by its mnemon.toml if there is one."""
    path = os.path.join(folder, FILE_NAME)
    if not os.path.exists(path):
        return Config()
    import tomllib

    try:
        with open(path, "rb") as file:
            settings = tomllib.load(file)
    except OSError as error:
        raise InvalidInput(f"{path} can't be read: {error.strerror}.", hint="It must be a file you may read.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{path} is not valid TOML: {error}.", hint="Correct it, or remove it for the defaults."
        ) from None
    return config_from(settings)


def config_from(settings: Mapping[str, Any]) -> Config:
    """A configuration from nested settings, as mnemon.toml holds them. An unknown name is an error, not a no-op."""
    config = Config()
    changes: dict[str, Any] = {}
    for name, setting in settings.items():
        if name in {*_SECTIONS, "policy", "trust", "graph"} and not isinstance(setting, dict):
            raise InvalidInput(f"{name} must be a table, not {setting!r}.", hint=f"Write [{name}] in mnemon.toml.")
        if name == "project":
            changes[name] = _typed(name, setting, "")
        elif name == "policy":
            changes[name] = policy_from(setting)
        elif name == "graph":
            from mnemon.policy.heat import graph_settings

            changes[name] = graph_settings(setting)
        elif name == "trust":
            changes[name] = _trust_from(setting, config.trust)
        elif name in _SECTIONS:
            section = getattr(config, name)
            fields = {
                field: _typed(f"{name}.{field}", item, _default(section, name, field))
                for field, item in setting.items()
            }
            changes[name] = replace(section, **fields)
        else:
            raise InvalidInput(
                f"mnemon.toml has no setting {name!r}.",
                hint=f"Use project, policy, trust, graph, {', '.join(_SECTIONS)}.",
            )
    config = replace(config, **changes)
    _refuse_nonsense(config)
    return config


def _trust_from(settings: Mapping[str, Any], default: TrustRules) -> TrustRules:
    tables = {"boosts": dict(default.boosts), "decay_per_month": dict(default.decay_per_month)}
    plain: dict[str, Any] = {}
    for name, setting in settings.items():
        if name not in tables:
            plain[name] = _typed(f"trust.{name}", setting, _default(default, "trust", name))
            continue
        if not isinstance(setting, dict):
            raise InvalidInput(f"trust.{name} must be a table, not {setting!r}.", hint=f"Write [trust.{name}].")
        for entry, number in setting.items():
            if entry not in tables[name]:
                known = ", ".join(tables[name])
                raise InvalidInput(f"mnemon.toml has no setting trust.{name}.{entry}.", hint=f"It knows: {known}.")
            tables[name][entry] = _typed(f"trust.{name}.{entry}", number, 0.0)
    return replace(default, **tables, **plain)


def _default(section: Any, name: str, field: str) -> Any:
    if field not in type(section).__match_args__:
        known = ", ".join(type(section).__match_args__)
        raise InvalidInput(f"mnemon.toml has no setting {name}.{field}.", hint=f"[{name}] knows: {known}.")
    return getattr(section, field)


def _typed(name: str, given: Any, default: Any) -> Any:
    wanted = (int, float) if isinstance(default, float) else type(default)
    if not isinstance(given, wanted) or isinstance(given, bool) is not isinstance(default, bool):
        raise InvalidInput(f"{name} must be like {default!r}, not {given!r}.", hint="Correct it in mnemon.toml.")
    if isinstance(given, int | float) and not isfinite(given):
        raise InvalidInput(f"{name} must be a finite number, not {given!r}.", hint="Correct it in mnemon.toml.")
    if isinstance(given, int | float) and given < 0 and not name.startswith("trust.boosts"):
        raise InvalidInput(f"{name} must not be negative: {given!r}.", hint="Correct it in mnemon.toml.")
    return given


def _refuse_nonsense(config: Config) -> None:
    """Settings that are well formed and still make no sense together."""
    if config.recall.fusion not in {"weighted", "rrf"}:
        raise InvalidInput(
            f"recall.fusion must be weighted or rrf, not {config.recall.fusion!r}.", hint="Correct it in mnemon.toml."
        )
    trust, decays = config.trust, config.trust.decay_per_month.values()
    wrong = {
        'store.durability must be "process" or "power"': config.store.durability not in {"process", "power"},
        "loops.threshold must be at least 2": config.loops.threshold < 2,
        "recall.half_life_hours must be above 0": config.recall.half_life_hours <= 0,
        "trust.decay_per_month must be at most 1": any(rate > 1 for rate in decays),
        "trust.minimum must be at most trust.maximum": not trust.minimum <= trust.maximum,
        "project must have a name": config.project is not None and not config.project.strip(),
    }
    for rule, broken in wrong.items():
        if broken:
            raise InvalidInput(f"{rule}.", hint="Correct it in mnemon.toml.")
