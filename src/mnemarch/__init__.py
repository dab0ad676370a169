"""Mnemarch: a governed memory that several coding agents share.

The names below are imported when first used, so that a hook which only logs starts fast.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.errors import (
        AnalystFailed,
        Conflict,
        Incompatible,
        InvalidInput,
        MnemarchError,
        NotAllowed,
        NotFound,
        StoreCorrupt,
        StoreError,
        StoreUnavailable,
    )
    from mnemarch.log.append import Entry
    from mnemarch.memory import Memory
    from mnemarch.model.actor import Actor, ActorKind
    from mnemarch.model.citation import Citation
    from mnemarch.model.claim import Claim
    from mnemarch.model.decision import Decision, DecisionProposal, Reason, Strength
    from mnemarch.model.event import Event, EventType, Receipt
    from mnemarch.model.found import Found, Pack, Recalled, Withheld
    from mnemarch.model.outcome import Adopted, Analysis, Promotion, Refused, Stored, Swept
    from mnemarch.model.scope import Level, Scope, can_promote
    from mnemarch.model.unit import Kind, Status, Unit
    from mnemarch.model.verdict import ApproachValidation, FailedApproach, LoopVerdict, Verdict
    from mnemarch.policy.permissions import can_write
    from mnemarch.seat import Seat
    from mnemarch.wiring import open

__version__ = "0.1.0"

_HOME_OF = {
    "Actor": "mnemarch.model.actor",
    "ActorKind": "mnemarch.model.actor",
    "Adopted": "mnemarch.model.outcome",
    "Analysis": "mnemarch.model.outcome",
    "AnalystFailed": "mnemarch.errors",
    "ApproachValidation": "mnemarch.model.verdict",
    "Citation": "mnemarch.model.citation",
    "Claim": "mnemarch.model.claim",
    "Conflict": "mnemarch.errors",
    "Decision": "mnemarch.model.decision",
    "DecisionProposal": "mnemarch.model.decision",
    "Entry": "mnemarch.log.append",
    "Event": "mnemarch.model.event",
    "EventType": "mnemarch.model.event",
    "FailedApproach": "mnemarch.model.verdict",
    "Found": "mnemarch.model.found",
    "Incompatible": "mnemarch.errors",
    "InvalidInput": "mnemarch.errors",
    "Kind": "mnemarch.model.unit",
    "Level": "mnemarch.model.scope",
    "LoopVerdict": "mnemarch.model.verdict",
    "Memory": "mnemarch.memory",
    "MnemarchError": "mnemarch.errors",
    "NotAllowed": "mnemarch.errors",
    "NotFound": "mnemarch.errors",
    "Pack": "mnemarch.model.found",
    "Promotion": "mnemarch.model.outcome",
    "Reason": "mnemarch.model.decision",
    "Recalled": "mnemarch.model.found",
    "Receipt": "mnemarch.model.event",
    "Refused": "mnemarch.model.outcome",
    "Scope": "mnemarch.model.scope",
    "Seat": "mnemarch.seat",
    "Status": "mnemarch.model.unit",
    "StoreCorrupt": "mnemarch.errors",
    "StoreError": "mnemarch.errors",
    "StoreUnavailable": "mnemarch.errors",
    "Stored": "mnemarch.model.outcome",
    "Strength": "mnemarch.model.decision",
    "Swept": "mnemarch.model.outcome",
    "Unit": "mnemarch.model.unit",
    "Verdict": "mnemarch.model.verdict",
    "Withheld": "mnemarch.model.found",
    "can_promote": "mnemarch.model.scope",
    "can_write": "mnemarch.policy.permissions",
    "open": "mnemarch.wiring",
}

__all__ = [
    "Actor",
    "ActorKind",
    "Adopted",
    "Analysis",
    "AnalystFailed",
    "ApproachValidation",
    "Citation",
    "Claim",
    "Conflict",
    "Decision",
    "DecisionProposal",
    "Entry",
    "Event",
    "EventType",
    "FailedApproach",
    "Found",
    "Incompatible",
    "InvalidInput",
    "Kind",
    "Level",
    "LoopVerdict",
    "Memory",
    "MnemarchError",
    "NotAllowed",
    "NotFound",
    "Pack",
    "Promotion",
    "Reason",
    "Recalled",
    "Receipt",
    "Refused",
    "Scope",
    "Seat",
    "Status",
    "StoreCorrupt",
    "StoreError",
    "StoreUnavailable",
    "Stored",
    "Strength",
    "Swept",
    "Unit",
    "Verdict",
    "Withheld",
    "can_promote",
    "can_write",
    "open",
]


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'mnemarch' has no attribute {name!r}")
    from mnemarch.lazy import loaded

    found: object = getattr(loaded(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
