"""Every setting, its default and its unit. `mnemarch.toml` beside the memory changes them; nothing else does."""

from __future__ import annotations

import os

from mnemarch.errors import InvalidInput
from mnemarch.model.value import replace, value
from mnemarch.policy.permissions import Policy, policy_from
from mnemarch.policy.retention import RetentionRules
from mnemarch.policy.trust import TrustRules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from mnemarch.policy.heat import OrchestratorConfig

FILE_NAME = "mnemarch.toml"
# More than any machine can use, and still a number that every part can count with.
_NUMBER_MAX = 1_000_000_000

# A setting, what was given, what is allowed, and whether it holds.
Rule = tuple[str, "Any", str, bool]


def _require(*rules: Rule) -> None:
    for name, given, allowed, holds in rules:
        if not holds:
            raise InvalidInput(
                f"{name} must be {allowed}, not {given!r}.",
                hint="Correct the configuration; docs/reference/configuration.md has all settings.",
            )


def _whole(name: str, given: Any, least: int) -> Rule:
    holds = type(given) is int and least <= given <= _NUMBER_MAX
    return name, given, f"a whole number from {least} to {_NUMBER_MAX}", holds


def _between(name: str, given: Any, least: float, most: float) -> Rule:
    holds = type(given) in (int, float) and least <= given <= most
    return name, given, f"a number from {least:g} to {most:g}", holds


def _one_of(name: str, given: Any, *choices: str) -> Rule:
    return name, given, " or ".join(f'"{choice}"' for choice in choices), given in choices


def _truth(name: str, given: Any) -> Rule:
    return name, given, "true or false", isinstance(given, bool)


@value
class Limits:
    """What is too much."""

    text_bytes_max: int = 65_536
    data_bytes_max: int = 1_048_576
    batch_max: int = 500

    def __check__(self) -> None:
        _require(
            _whole("limits.text_bytes_max", self.text_bytes_max, 1),
            _whole("limits.data_bytes_max", self.data_bytes_max, 1),
            _whole("limits.batch_max", self.batch_max, 1),
        )


@value
class GateRules:
    """Numbers of the gate (S10) and of the duplicate guard (R6, A31)."""

    reuse_min: int = 3
    tau_dup: float = 0.96
    tau_sim: float = 0.78
    neighbours_max: int = 5

    def __check__(self) -> None:
        _require(
            _whole("gate.reuse_min", self.reuse_min, 1),
            _between("gate.tau_dup", self.tau_dup, 0, 1),
            _between("gate.tau_sim", self.tau_sim, 0, 1),
            _whole("gate.neighbours_max", self.neighbours_max, 0),
        )
        _require(("gate.tau_sim", self.tau_sim, f"at most gate.tau_dup ({self.tau_dup})", self.tau_sim <= self.tau_dup))


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

    def __check__(self) -> None:
        weights = (self.weight_similarity, self.weight_recency, self.weight_importance)
        _require(
            *(_between(f"recall.{name}", getattr(self, name), 0, _NUMBER_MAX) for name in _WEIGHTS),
            _between("recall.half_life_hours", self.half_life_hours, 0, _NUMBER_MAX),
            _whole("recall.k_max", self.k_max, 1),
            _whole("recall.candidates_per_item", self.candidates_per_item, 1),
            _whole("recall.candidates_min", self.candidates_min, 0),
            _whole("recall.expanded_max", self.expanded_max, 0),
            *(_truth(f"recall.{name}", getattr(self, name)) for name in _SWITCHES),
            _one_of("recall.fusion", self.fusion, "weighted", "rrf"),
            ("recall.semantic", self.semantic, _EMBEDDERS, _is_embedder(self.semantic)),
        )
        _require(
            ("recall.half_life_hours", self.half_life_hours, "above 0", self.half_life_hours > 0),
            (", ".join(f"recall.{name}" for name in _WEIGHTS), weights, "above 0 for one of them", any(weights)),
        )


_WEIGHTS = ("weight_similarity", "weight_recency", "weight_importance")
_SWITCHES = (
    "neighbours",
    "sessions",
    "speakers",
    "dates",
    "frame",
    "spelling",
    "intent",
    "own_session",
    "distinct",
)
_EMBEDDERS = '"sentence", "onnx:FOLDER", "https://host/v1#model", or "" for none'


def _is_embedder(name: Any) -> bool:
    if not isinstance(name, str):
        return False
    kind, separator, place = name.partition(":")
    return name in {"", "sentence"} or (bool(separator and place) and kind in {"onnx", "http", "https"})


@value
class LoopRules:
    """How often the same error or approach may fail in a task before it is blocked (S3)."""

    threshold: int = 3

    def __check__(self) -> None:
        _require(_whole("loops.threshold", self.threshold, 2))


@value
class DecisionRules:
    """How far the impact of a decision is followed (R12)."""

    impact_depth_max: int = 16
    impact_nodes_max: int = 1_000

    def __check__(self) -> None:
        _require(
            _whole("decisions.impact_depth_max", self.impact_depth_max, 1),
            _whole("decisions.impact_nodes_max", self.impact_nodes_max, 1),
        )


@value
class StoreRules:
    """How the embedded store behaves. `durability`: "process" survives a killed process, "power" a power cut."""

    durability: str = "process"
    lock_wait_s_max: float = 30.0
    index_tail_max: int = 512
    index_at_close_min: int = 64

    def __check__(self) -> None:
        _require(
            _one_of("store.durability", self.durability, "process", "power"),
            _between("store.lock_wait_s_max", self.lock_wait_s_max, 0, _NUMBER_MAX),
            _whole("store.index_tail_max", self.index_tail_max, 0),
            _whole("store.index_at_close_min", self.index_at_close_min, 0),
        )


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

    def __check__(self) -> None:
        name: Any = self.project
        _require(
            ("project", name, "a name", name is None or (isinstance(name, str) and bool(name.strip()))),
            *(
                (part, getattr(self, part), kind.__name__, isinstance(getattr(self, part), kind))
                for part, kind in _PARTS
            ),
        )
        _require(*_rules_of_retention(self.retention))
        for rule in _rules_of_trust(self.trust):
            _require(rule)


_PARTS = (
    ("policy", Policy),
    ("limits", Limits),
    ("gate", GateRules),
    ("trust", TrustRules),
    ("retention", RetentionRules),
    ("recall", RecallRules),
    ("loops", LoopRules),
    ("decisions", DecisionRules),
    ("store", StoreRules),
)


def _rules_of_retention(rules: RetentionRules) -> tuple[Rule, ...]:
    return (
        _whole("retention.age_days_max", rules.age_days_max, 0),
        _between("retention.reward_min", rules.reward_min, 0, 1),
        _between("retention.success_rate_min", rules.success_rate_min, 0, 1),
        _whole("retention.keep_per_task_min", rules.keep_per_task_min, 0),
    )


def _rules_of_trust(rules: TrustRules) -> Iterator[Rule]:
    """One after the other: the bounds must hold before anything can lie between them."""
    least, most = rules.minimum, rules.maximum
    yield _between("trust.minimum", least, 0, 1)
    yield _between("trust.maximum", most, 0, 1)
    yield "trust.minimum", least, f"at most trust.maximum ({most})", least <= most
    begins = (("trust.initial_draft", rules.initial_draft), ("trust.initial_verified", rules.initial_verified))
    for name, given in begins:
        yield _between(name, given, 0, 1)
        yield name, given, f"from trust.minimum ({least}) to trust.maximum ({most})", least <= given <= most
    # What raises trust can't lower it, nor the reverse.
    for name, usual in TrustRules().boosts.items():
        bounds = (0, 1) if usual > 0 else (-1, 0)
        yield _between(f"trust.boosts.{name}", rules.boosts.get(name), *bounds)
    for name in TrustRules().decay_per_month:
        yield _between(f"trust.decay_per_month.{name}", rules.decay_per_month.get(name), 0, 1)


_SECTIONS = ("limits", "gate", "retention", "recall", "loops", "decisions", "store")


def load(folder: str) -> Config:
    """The configuration of `folder`: the defaults, changed by its mnemarch.toml if there is one."""
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
    """A configuration from nested settings, as mnemarch.toml holds them. An unknown name is an error, not a no-op."""
    config = Config()
    changes: dict[str, Any] = {}
    for name, setting in settings.items():
        if name in {*_SECTIONS, "policy", "trust", "graph"} and not isinstance(setting, dict):
            raise InvalidInput(f"{name} must be a table, not {setting!r}.", hint=f"Write [{name}] in mnemarch.toml.")
        if name == "project":
            changes[name] = setting
        elif name == "policy":
            changes[name] = policy_from(setting)
        elif name == "graph":
            from mnemarch.policy.heat import graph_settings

            changes[name] = graph_settings(setting)
        elif name == "trust":
            changes[name] = _trust_from(setting, config.trust)
        elif name in _SECTIONS:
            changes[name] = _changed(getattr(config, name), name, setting)
        else:
            raise InvalidInput(
                f"mnemarch.toml has no setting {name!r}.",
                hint=f"Use project, policy, trust, graph, {', '.join(_SECTIONS)}.",
            )
    return replace(config, **changes)


def _trust_from(settings: Mapping[str, Any], default: TrustRules) -> TrustRules:
    changes = dict(settings)
    for name in ("boosts", "decay_per_month"):
        given = settings.get(name, {})
        known = getattr(default, name)
        if not isinstance(given, dict):
            raise InvalidInput(f"trust.{name} must be a table, not {given!r}.", hint=f"Write [trust.{name}].")
        if unknown := [entry for entry in given if entry not in known]:
            raise InvalidInput(
                f"mnemarch.toml has no setting trust.{name}.{unknown[0]}.", hint=f"It knows: {', '.join(known)}."
            )
        changes[name] = known | given
    trust: TrustRules = _changed(default, "trust", changes)
    return trust


def _changed(section: Any, name: str, changes: Mapping[str, Any]) -> Any:
    fields = type(section).__match_args__
    if unknown := [field for field in changes if field not in fields]:
        raise InvalidInput(
            f"mnemarch.toml has no setting {name}.{unknown[0]}.", hint=f"[{name}] knows: {', '.join(fields)}."
        )
    return replace(section, **changes)
