"""How sure a unit is, and what that rests on (G14)."""

from __future__ import annotations

from datetime import datetime

from mnemarch.model.closed import Names
from mnemarch.model.value import value


class Signal(Names):
    """What raises or lowers confidence (G15, R7)."""

    TESTS_PASSED = "tests_passed"
    PR_MERGED = "pr_merged"
    HUMAN_APPROVED = "human_approved"
    REPEATED_SUCCESS = "repeated_success"
    TESTS_FAILED = "tests_failed"
    PR_REVERTED = "pr_reverted"
    HUMAN_REJECTED = "human_rejected"
    CONTRADICTED = "contradicted"


class DecayPolicy(Names):
    RECENCY_BIAS = "recency_bias"
    STABLE = "stable"
    MANUAL_ONLY = "manual_only"


@value
class Trust:
    """Confidence as it stood at `last_validated_at` (or at birth); what it is now is a rule's business (R7)."""

    confidence: float
    since: datetime
    decay_policy: DecayPolicy = DecayPolicy.STABLE
    validation_source: Signal | None = None
    last_validated_at: datetime | None = None
    validation_count: int = 0
