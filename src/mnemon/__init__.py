"""Mnemon: a governed memory that several coding agents share.

The names below are imported when first used, so that a hook which only logs starts fast.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemon.errors import (
        AnalystFailed,
        Conflict,
        Incompatible,
        InvalidInput,
        MnemonError,
        NotAllowed,
        NotFound,
        StoreCorrupt,
        StoreError,
        StoreUnavailable,
    )
    from mnemon.memory import Memory, Seat
    from mnemon.model.actor import Actor, ActorKind
    from mnemon.model.citation import Citation
    from mnemon.model.claim import Claim
    from mnemon.model.decision import Decision, DecisionProposal, Reason, Strength
    from mnemon.model.event import Event, EventType, Receipt
    from mnemon.model.found import Found, Pack, Recalled, Withheld
    from mnemon.model.outcome import Adopted, Analysis, Promotion, Refused, Stored, Swept
    from mnemon.model.scope import Level, Scope, can_promote
    from mnemon.model.unit import Kind, Status, Unit
    from mnemon.model.verdict import ApproachValidation, FailedApproach, LoopVerdict, Verdict
    from mnemon.policy.permissions import can_write
    from mnemon.staging.append import Entry
    from mnemon.wiring import open

__version__ = "0.1.0"

_HOME_OF = {
    "Actor": "mnemon.model.actor",
    "ActorKind": "mnemon.model.actor",
    "Adopted": "mnemon.model.outcome",
    "Analysis": "mnemon.model.outcome",
    "AnalystFailed": "mnemon.errors",
    "ApproachValidation": "mnemon.model.verdict",
    "Citation": "mnemon.model.citation",
    "Claim": "mnemon.model.claim",
    "Conflict": "mnemon.errors",
    "Decision": "mnemon.model.decision",
    "DecisionProposal": "mnemon.model.decision",
    "Entry": "mnemon.staging.append",
    "Event": "mnemon.model.event",
    "EventType": "mnemon.model.event",
    "FailedApproach": "mnemon.model.verdict",
    "Found": "mnemon.model.found",
    "Incompatible": "mnemon.errors",
    "InvalidInput": "mnemon.errors",
    "Kind": "mnemon.model.unit",
    "Level": "mnemon.model.scope",
    "LoopVerdict": "mnemon.model.verdict",
    "Memory": "mnemon.memory",
    "MnemonError": "mnemon.errors",
    "NotAllowed": "mnemon.errors",
    "NotFound": "mnemon.errors",
    "Pack": "mnemon.model.found",
    "Promotion": "mnemon.model.outcome",
    "Reason": "mnemon.model.decision",
    "Recalled": "mnemon.model.found",
    "Receipt": "mnemon.model.event",
    "Refused": "mnemon.model.outcome",
    "Scope": "mnemon.model.scope",
    "Seat": "mnemon.memory",
    "Status": "mnemon.model.unit",
    "StoreCorrupt": "mnemon.errors",
    "StoreError": "mnemon.errors",
    "StoreUnavailable": "mnemon.errors",
    "Stored": "mnemon.model.outcome",
    "Strength": "mnemon.model.decision",
    "Swept": "mnemon.model.outcome",
    "Unit": "mnemon.model.unit",
    "Verdict": "mnemon.model.verdict",
    "Withheld": "mnemon.model.found",
    "can_promote": "mnemon.model.scope",
    "can_write": "mnemon.policy.permissions",
    "open": "mnemon.wiring",
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
    "MnemonError",
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
        raise AttributeError(f"module 'mnemon' has no attribute {name!r}")
    from mnemon.lazy import loaded

    found: object = getattr(loaded(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
