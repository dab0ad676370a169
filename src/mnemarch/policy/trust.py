"""How sure a unit is: signals raise or lower it, time lowers it (G14-G18, R7)."""

from __future__ import annotations

from mnemarch.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from mnemarch.model.unit import Signal, Trust, Unit

DAYS_PER_MONTH = 30


@value
class TrustRules:
    """The numbers of G15-G17 and R7; every one can be set in the configuration."""

    # Keyed by name: so the settings load without the model of a unit.
    boosts: Mapping[str, float] = {
        "tests_passed": 0.2,
        "pr_merged": 0.3,
        "human_approved": 0.4,
        "repeated_success": 0.15,
        "tests_failed": -0.2,
        "pr_reverted": -0.3,
        "human_rejected": -0.4,
        "contradicted": -0.15,
    }
    decay_per_month: Mapping[str, float] = {"recency_bias": 0.1, "stable": 0.02, "manual_only": 0.0}
    minimum: float = 0.1
    maximum: float = 1.0
    initial_draft: float = 0.3
    initial_verified: float = 0.6


def confidence_at(trust: Trust, moment: datetime, rules: TrustRules) -> float:
    """Confidence at `moment`: multiplicative decay per whole day since the last validation, floored (R7).

    Whole days, so that what was validated today reads exactly as it was stored. A clock that went back gives no gain.
    """
    days = max(0, (moment - (trust.last_validated_at or trust.since)).days)
    factor: float = (1 - rules.decay_per_month[trust.decay_policy]) ** (days / DAYS_PER_MONTH)
    decayed = trust.confidence * factor
    return decayed if days == 0 else max(rules.minimum, min(rules.maximum, decayed))


def signalled(trust: Trust, signal: Signal, moment: datetime, rules: TrustRules) -> Trust:
    """Trust after one more signal (G18), starting from the confidence at that moment, within the bounds."""
    moved = confidence_at(trust, moment, rules) + rules.boosts[signal]
    return replace(
        trust,
        confidence=round(max(rules.minimum, min(rules.maximum, moved)), 6),
        validation_source=signal,
        last_validated_at=moment,
        validation_count=trust.validation_count + 1,
    )


def verified(trust: Trust, moment: datetime, rules: TrustRules) -> Trust:
    """Trust of a unit that becomes verified now: at least what a verified unit starts with (G17)."""
    confidence = max(confidence_at(trust, moment, rules), rules.initial_verified)
    return replace(trust, confidence=confidence, last_validated_at=moment)


def aged(unit: Unit, now: datetime, rules: TrustRules) -> Unit:
    """The unit with its confidence as of now; reading writes nothing (R7)."""
    confidence = confidence_at(unit.trust, now, rules)
    if confidence == unit.trust.confidence:
        return unit
    return replace(unit, trust=replace(unit.trust, confidence=confidence))
