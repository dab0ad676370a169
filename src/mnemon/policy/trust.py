"""How sure a unit is: signals raise or lower it, time lowers it (G14-G18, R7)."""

from __future__ import annotations

from mnemon.model.trust import DecayPolicy, Signal, Trust
from mnemon.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from mnemon.model.unit import Kind

DAYS_PER_MONTH = 30


@value
class TrustRules:
    """The numbers of G15-G17 and R7; every one can be set in the configuration."""

    boosts: Mapping[Signal, float] = {
        Signal.TESTS_PASSED: 0.2,
        Signal.PR_MERGED: 0.3,
        Signal.HUMAN_APPROVED: 0.4,
        Signal.REPEATED_SUCCESS: 0.15,
        Signal.TESTS_FAILED: -0.2,
        Signal.PR_REVERTED: -0.3,
        Signal.HUMAN_REJECTED: -0.4,
        Signal.CONTRADICTED: -0.15,
    }
    decay_per_month: Mapping[DecayPolicy, float] = {
        DecayPolicy.RECENCY_BIAS: 0.1,
        DecayPolicy.STABLE: 0.02,
        DecayPolicy.MANUAL_ONLY: 0.0,
    }
    minimum: float = 0.1
    maximum: float = 1.0
    initial_draft: float = 0.3
    initial_verified: float = 0.6

    __hash__ = object.__hash__


# Keyed by name, so that the settings load without the model of a unit.
_DECAY_OF_KIND = {
    "episode": DecayPolicy.RECENCY_BIAS,
    "preference": DecayPolicy.RECENCY_BIAS,
    "profile": DecayPolicy.MANUAL_ONLY,
    "decision": DecayPolicy.MANUAL_ONLY,
    "evidence": DecayPolicy.MANUAL_ONLY,
    "anchor": DecayPolicy.MANUAL_ONLY,
    "policy": DecayPolicy.MANUAL_ONLY,
}


def decay_policy_of(kind: Kind) -> DecayPolicy:
    """How a unit of this kind fades unless its claim says otherwise."""
    return _DECAY_OF_KIND.get(kind, DecayPolicy.STABLE)


def confidence_at(trust: Trust, moment: datetime, rules: TrustRules) -> float:
    """Confidence at `moment`: multiplicative decay per whole day since the last validation, floored (R7).

    Whole days, so that what was validated today reads exactly as it was stored. A clock that went back gives no gain.
    """
    days = max(0, (moment - (trust.last_validated_at or trust.since)).days)
    kept: float = (1 - rules.decay_per_month[trust.decay_policy]) ** (days / DAYS_PER_MONTH)
    faded = trust.confidence * kept
    return faded if days == 0 else max(rules.minimum, min(rules.maximum, faded))


def signalled(trust: Trust, signal: Signal, moment: datetime, rules: TrustRules) -> Trust:
    """Trust after one more signal (G18): counted from what the confidence is now, within the bounds."""
    moved = confidence_at(trust, moment, rules) + rules.boosts[signal]
    return replace(
        trust,
        confidence=round(max(rules.minimum, min(rules.maximum, moved)), 6),
        validation_source=signal,
        last_validated_at=moment,
        validation_count=trust.validation_count + 1,
    )


def verified(trust: Trust, rules: TrustRules) -> Trust:
    """Trust of a unit that has just become verified: at least what a verified unit starts with (G17)."""
    return replace(trust, confidence=max(trust.confidence, rules.initial_verified))
