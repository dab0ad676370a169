"""What a guard answers: whether to go on, and if not, why, on what evidence, and what to do instead (R9, R12)."""

from __future__ import annotations

from datetime import datetime

from mnemarch.model.closed import Names
from mnemarch.model.event import Receipt
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Verdict(Names):
    ALLOW = "ALLOW"
    WARN = "WARN"
    BLOCK = "BLOCK"


@value
class LoopVerdict:
    """Whether a task may go on after a failure. `instruction` is ready to be put before the agent (S6)."""

    type: Verdict
    reason: str
    details: Mapping[str, Any]
    instruction: str
    receipt: Receipt


@value
class FailedApproach:
    """Something that was tried and did not help (G20), in the words of the last try."""

    approach: str
    attempt_count: int
    last_attempt_at: datetime
    failure_reasons: tuple[str, ...]


@value
class ApproachValidation:
    """Whether an approach is worth trying (G21); if not, what failed before and what to do instead."""

    valid: bool
    reason: str
    suggestion: str
    failed_history: tuple[FailedApproach, ...]
