"""How the rules treat each kind of unit, one row per kind, and the tiers of the loading order (D15, R10).

A test fails for a kind without a row.
"""

from __future__ import annotations

from collections.abc import Callable

from mnemarch.model.value import Frozen

# The tiers of binding units. They are loaded in this order for every question.
TIER_POLICY, TIER_STRUCTURE, TIER_GLOBAL_AXIS, TIER_AXIS, TIER_LOCK, TIER_NORMAL = range(1, 7)
# Units that search found or anchors lead to; units that the program keeps without a verification; hypotheses (R2).
TIER_FOUND, TIER_KEPT, TIER_HYPOTHESIS = 7, 8, 9


class KindRules(Frozen):
    """How the rules treat units of one kind."""

    # The bucket of M1, or None for a kind outside the buckets.
    bucket: str | None
    # The intents of M5 that prefer this kind.
    intents: tuple[str, ...] = ()
    # Whether units with the same canonical text are merged (R6).
    merges: bool = False
    # Whether contradictions and near-duplicates between units of this kind are opened as disputes.
    disputes: bool = False
    decay_policy: str = "stable"
    # The attribute that retention judges by (G24). None: the kind is never pruned.
    pruned_by: str | None = None
    # Whether retention keeps the last few of each task.
    is_kept_per_task: bool = False
    # Whether search finds this kind.
    is_searched: bool = True


# Keyed by name, so that the settings load without the model of a unit.
KINDS: dict[str, KindRules] = {
    "profile": KindRules("PROFILE", ("PROFILE",), merges=True, disputes=True, decay_policy="manual_only"),
    "preference": KindRules("PREFERENCE", ("PREFERENCE",), merges=True, disputes=True, decay_policy="manual_only"),
    "episode": KindRules(
        "EPISODIC", ("RECALL", "DEBUG"), decay_policy="recency_bias", pruned_by="reward", is_kept_per_task=True
    ),
    "semantic": KindRules("SEMANTIC", ("KNOWLEDGE", "DEBUG"), merges=True, disputes=True),
    "fact": KindRules("FACT", ("KNOWLEDGE",), merges=True, disputes=True),
    "skill": KindRules("SEMANTIC", merges=True, disputes=True, pruned_by="success_rate"),
    "decision": KindRules(None, decay_policy="manual_only"),
    "evidence": KindRules(None, merges=True, decay_policy="manual_only"),
    "anchor": KindRules(None, decay_policy="manual_only"),
    "policy": KindRules(None, merges=True, disputes=True, decay_policy="manual_only"),
    # An entry of core memory (M19). It is not searched: it is in every prompt already.
    "core": KindRules(None, merges=True, decay_policy="manual_only", is_searched=False),
    # A value that an agent framework stores under a key.
    "item": KindRules(None, decay_policy="manual_only"),
}


def kinds_where(holds: Callable[[KindRules], bool]) -> frozenset[str]:
    """The names of the kinds whose row satisfies a condition."""
    return frozenset(name for name, rules in KINDS.items() if holds(rules))
