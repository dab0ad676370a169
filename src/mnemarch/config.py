"""All settings with their defaults and units. `checkout.load` defines which files change them."""

from __future__ import annotations

from mnemarch.errors import InvalidInput
from mnemarch.model.value import Frozen, replace
from mnemarch.policy.admission import NUMBER_MAX, changed_settings, require_between, require_valid
from mnemarch.policy.permissions import Policy, policy_from
from mnemarch.policy.trust import RetentionRules, TrustRules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from mnemarch.policy.heat import OrchestratorConfig

# The minimum of integer settings; 0 for those without a row.
_LEAST = {
    **dict.fromkeys(("limits.text_bytes_max", "limits.data_bytes_max", "limits.batch_max", "gate.reuse_min"), 1),
    **dict.fromkeys(("recall.k_max", "recall.binding_max", "recall.candidates_per_item"), 1),
    "loops.threshold": 2,
    "learning.entries_per_minute_max": 1,
    "decisions.impact_depth_max": 1,
    "decisions.impact_nodes_max": 1,
    "analyst.material_tokens_max": 500,
    "analyst.output_tokens_max": 100,
}
_SECTIONS_OF_SHARES = ("gate", "retention", "trust")  # Their other numbers are shares from 0 to 1.
_CHOICES = {
    "recall.fusion": ("weighted", "rrf"),
    "store.durability": ("process", "power"),
    "analyst.api": ("", "openai", "anthropic"),
    "learning.classifier": ("rules", "hybrid"),
}
_TEXTS = {"store.url": "an address", "store.replica": "an address", "recall.rerank": "a folder"}
_EMBEDDERS = '"auto", "sentence", "https://host/v1#model", or "" for none'
_VECTORS = '"qdrant://host:6333", "qdrants://..." with TLS, or "" to keep them beside the memory'
_ADDRESS = 'an http or https address without a name or key in it, or "" for the vendor\'s own'
_WEIGHTS = ("weight_similarity", "weight_recency", "weight_importance")


def _check(section: str, rules: Any) -> None:
    """Check every setting of a section by its type and the tables above."""
    for field, kind in type(rules).__annotations__.items():
        name, setting = f"{section}.{field}", getattr(rules, field)
        if kind == "bool":
            require_valid(isinstance(setting, bool), name, setting, "true or false")
        elif kind == "int":
            require_between(name, setting, kind, _LEAST.get(name, 0), NUMBER_MAX)
        elif kind == "float":
            require_between(name, setting, kind, 0, 1 if section in _SECTIONS_OF_SHARES else NUMBER_MAX)
        elif kind == "tuple[str, ...]":
            texts = isinstance(setting, tuple) and all(isinstance(text, str) and text.strip() for text in setting)
            require_valid(texts, name, setting, "a list of texts")
        elif name in _CHOICES:
            require_valid(setting in _CHOICES[name], name, setting, " or ".join(f'"{one}"' for one in _CHOICES[name]))
        elif name in _TEXTS:
            require_valid(isinstance(setting, str), name, setting, _TEXTS[name])


class Limits(Frozen):
    """The largest accepted inputs."""

    text_bytes_max: int = 65_536
    data_bytes_max: int = 1_048_576
    batch_max: int = 500


class GateRules(Frozen):
    """Numbers of the gate (S10) and of the search for duplicates (R6, A31)."""

    reuse_min: int = 3
    tau_dup: float = 0.96
    tau_sim: float = 0.78
    neighbours_max: int = 5

    def __check__(self) -> None:
        _check("gate", self)
        in_order = self.tau_sim <= self.tau_dup
        require_valid(in_order, "gate.tau_sim", self.tau_sim, f"at most gate.tau_dup ({self.tau_dup})")


class RecallRules(Frozen):
    """The weights of M4's three axes, the ranking signals, and the bounds of a search."""

    weight_similarity: float = 0.5
    weight_recency: float = 0.3
    weight_importance: float = 0.2
    half_life_hours: float = 24.0
    k_max: int = 1_000
    binding_max: int = 30
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
    everyday: bool = True
    common: bool = True
    turns: bool = True
    distinct: bool = True
    fusion: str = "weighted"
    floor: float = 0.12
    semantic: str = "auto"
    vectors: str = ""
    rerank: str = ""
    rerank_max: int = 20
    rerank_s_max: float = 2.0

    def __check__(self) -> None:
        _check("recall", self)
        weights = tuple(getattr(self, name) for name in _WEIGHTS)
        require_valid(_is_embedder(self.semantic), "recall.semantic", self.semantic, _EMBEDDERS)
        is_place = self.vectors == "" or str(self.vectors).startswith(("qdrant://", "qdrants://"))
        require_valid(is_place, "recall.vectors", self.vectors, _VECTORS)
        require_valid(self.half_life_hours > 0, "recall.half_life_hours", self.half_life_hours, "above 0")
        names = ", ".join(f"recall.{name}" for name in _WEIGHTS)
        require_valid(any(weights), names, weights, "above 0 for one of them")


def _is_embedder(name: Any) -> bool:
    if not isinstance(name, str):
        return False
    kind, separator, place = name.partition(":")
    return name in {"", "auto", "sentence"} or (bool(separator and place) and kind in {"http", "https"})


class LoopRules(Frozen):
    """How often the same error or approach may fail in a task before it is blocked (S3)."""

    threshold: int = 3


class WitnessRules(Frozen):
    """Commands that count as tests beside the known runners, given by their first words (R21)."""

    test_commands: tuple[str, ...] = ()


class LearningRules(Frozen):
    """The write pipeline (M2): its pre-filter and its classifier.

    In `text_chars_min`, a Korean syllable counts as two and a half characters. With the classifier `hybrid`, the
    analyst's model classifies texts for which the rules are unsure.
    """

    text_chars_min: int = 10
    entries_per_minute_max: int = 1_000
    classifier: str = "rules"


class CoreRules(Frozen):
    """The sections of core memory, and the size of each (M19)."""

    sections: tuple[str, ...] = ("persona", "human", "project", "task")
    chars_max: int = 2_000


class DecisionRules(Frozen):
    """How far the impact of a decision is followed (R12)."""

    impact_depth_max: int = 16
    impact_nodes_max: int = 1_000


class AnalystRules(Frozen):
    """The model that analyses tasks (G8). An empty `api` means none. Prices are per million tokens."""

    api: str = ""
    model: str = ""
    base_url: str = ""
    at_verify: bool = True
    timeout_s: float = 60.0
    retries_max: int = 2
    material_tokens_max: int = 12_000
    output_tokens_max: int = 2_000
    tokens_per_day_max: int = 500_000
    money_per_day_max: float = 1.0
    price_input: float = 0.0
    price_output: float = 0.0

    def __check__(self) -> None:
        _check("analyst", self)
        model: Any = self.model
        require_valid(isinstance(model, str) and bool(model.strip() or not self.api), "analyst.model", model, "a name")
        require_valid(_is_plain_address(self.base_url), "analyst.base_url", self.base_url, _ADDRESS)
        require_valid(self.timeout_s > 0, "analyst.timeout_s", self.timeout_s, "above 0")


def _is_plain_address(address: Any) -> bool:
    if not isinstance(address, str):
        return False
    plain = address.isascii() and address.isprintable() and not any(mark in address for mark in "@?# \\")
    return address == "" or (plain and address.startswith(("http://", "https://")))


class ReflectionRules(Frozen):
    """The thresholds of automatic reflection after a verification (M6), and its bounds.

    Each `_min` triggers a reflection: the number of new episodes, the sum of their importance, or the hours since the
    last reflection. 0 disables that trigger.
    """

    episodes_min: int = 10
    importance_min: float = 5.0
    hours_min: float = 24.0
    episodes_max: int = 500
    seconds_max: float = 2.0


class HookRules(Frozen):
    """What `mnemarch hook` injects and records. 0 tokens: nothing. `domains` maps folders to their domains (R3)."""

    start_tokens: int = 1_500
    prompt_tokens: int = 600
    seconds_max: float = 8.0
    records: bool = True
    verifies: bool = True
    reports: bool = True
    domains: Mapping[str, str] = {}

    def __check__(self) -> None:
        _check("hook", self)
        holds = isinstance(self.domains, dict) and all(isinstance(name, str) for name in self.domains.values())
        require_valid(holds, "hook.domains", self.domains, "a table of folders and what they are about")


class StoreRules(Frozen):
    """The store. `replica`: a database copy to build search indexes from. `durability`: "power" survives power cuts."""

    url: str = ""
    replica: str = ""
    partitions: int = 0
    durability: str = "process"
    lock_wait_s_max: float = 30.0
    index_tail_max: int = 512
    index_at_close_min: int = 64


class Config(Frozen):
    """All settings together."""

    project: str | None = None
    policy: Policy = Policy()
    limits: Limits = Limits()
    gate: GateRules = GateRules()
    trust: TrustRules = TrustRules()
    retention: RetentionRules = RetentionRules()
    recall: RecallRules = RecallRules()
    loops: LoopRules = LoopRules()
    witness: WitnessRules = WitnessRules()
    learning: LearningRules = LearningRules()
    decisions: DecisionRules = DecisionRules()
    core: CoreRules = CoreRules()
    analyst: AnalystRules = AnalystRules()
    reflection: ReflectionRules = ReflectionRules()
    # None: the defaults of A31, which are loaded when a graph is first used.
    graph: OrchestratorConfig | None = None
    store: StoreRules = StoreRules()
    hook: HookRules = HookRules()
    # The settings of the repository's mnemarch.toml that the user has not accepted.
    ignored: tuple[str, ...] = ()

    def __check__(self) -> None:
        name: Any = self.project
        require_valid(name is None or (isinstance(name, str) and bool(name.strip())), "project", name, "a name")
        for part, kind in _PARTS.items():
            require_valid(isinstance(getattr(self, part), kind), part, getattr(self, part), kind.__name__)
        for section in _SECTIONS:
            _check(section, getattr(self, section))
        _check_trust(self.trust)


def _check_trust(rules: TrustRules) -> None:
    _check("trust", rules)
    least, most = rules.minimum, rules.maximum
    require_valid(least <= most, "trust.minimum", least, f"at most trust.maximum ({most})")
    for name in ("initial_draft", "initial_verified"):
        start = getattr(rules, name)
        within = f"from trust.minimum ({least}) to trust.maximum ({most})"
        require_valid(least <= start <= most, f"trust.{name}", start, within)
    # A boost keeps the sign of its default.
    for name, usual in TrustRules().boosts.items():
        bounds = (0, 1) if usual > 0 else (-1, 0)
        require_between(f"trust.boosts.{name}", rules.boosts.get(name), "float", *bounds)
    for name in TrustRules().decay_per_month:
        require_between(f"trust.decay_per_month.{name}", rules.decay_per_month.get(name), "float", 0, 1)


_PARTS: dict[str, type] = {name: globals()[kind] for name, kind in Config.__annotations__.items() if kind in globals()}
# The parts that consist of plain settings.
_SECTIONS = [name for name in _PARTS if name not in ("policy", "trust")]


def config_from(settings: Mapping[str, Any]) -> Config:
    """A configuration from the nested settings of a mnemarch.toml. An unknown name is an error."""
    config = Config()
    changes: dict[str, Any] = {}
    for name, setting in settings.items():
        if name in {*_SECTIONS, "policy", "trust", "graph"} and not isinstance(setting, dict):
            raise InvalidInput(f"{name} must be a table, not {setting!r}.", hint=f"Write [{name}] in mnemarch.toml.")
        if name in {"project", "policy"}:
            changes[name] = setting if name == "project" else policy_from(setting)
        elif name == "graph":
            from mnemarch.policy.heat import graph_settings

            changes[name] = graph_settings(setting)
        elif name == "trust":
            changes[name] = _trust_from(setting, config.trust)
        elif name in _SECTIONS:
            changes[name] = changed_settings(getattr(config, name), setting, name)
        else:
            raise InvalidInput(
                f"mnemarch.toml has no setting {name!r}.",
                hint=f"Use project, policy, trust, graph, {', '.join(_SECTIONS)}.",
            )
    return replace(config, **changes)


def _trust_from(settings: Mapping[str, Any], default: TrustRules) -> TrustRules:
    changes = dict(settings)
    for name in ("boosts", "decay_per_month"):
        table, defaults = settings.get(name, {}), getattr(default, name)
        if not isinstance(table, dict):
            raise InvalidInput(f"trust.{name} must be a table, not {table!r}.", hint=f"Write [trust.{name}].")
        if unknown := [entry for entry in table if entry not in defaults]:
            problem = f"mnemarch.toml has no setting trust.{name}.{unknown[0]}."
            raise InvalidInput(problem, hint=f"It knows: {', '.join(defaults)}.")
        changes[name] = defaults | table
    return changed_settings(default, changes, "trust")
