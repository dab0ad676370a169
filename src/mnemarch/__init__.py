"""Mnemarch: a governed memory that several coding agents share.

The names below are imported when first used, so that a hook which only logs starts fast.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.client import connect
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
    from mnemarch.log.act import Entry
    from mnemarch.memory import Memory
    from mnemarch.model.caller import Actor, ActorKind, Level, Scope, can_promote
    from mnemarch.model.citation import Citation
    from mnemarch.model.decision import Decision, DecisionProposal, Reason, Strength
    from mnemarch.model.event import Event, EventType, Receipt
    from mnemarch.model.outcome import (
        Analysis,
        ApproachValidation,
        FailedApproach,
        Ingested,
        LoopVerdict,
        Promotion,
        Refused,
        Stored,
        Swept,
        Verdict,
    )
    from mnemarch.model.search import Found, Pack, Recalled, Withheld
    from mnemarch.model.unit import Claim, Kind, Status, Unit
    from mnemarch.policy.permissions import can_write
    from mnemarch.seat import Seat
    from mnemarch.wiring import copy, open

__version__ = "0.1.0"

_HOME_OF = {
    "Actor": "mnemarch.model.caller",
    "ActorKind": "mnemarch.model.caller",
    "Analysis": "mnemarch.model.outcome",
    "AnalystFailed": "mnemarch.errors",
    "ApproachValidation": "mnemarch.model.outcome",
    "Citation": "mnemarch.model.citation",
    "Claim": "mnemarch.model.unit",
    "Conflict": "mnemarch.errors",
    "Decision": "mnemarch.model.decision",
    "DecisionProposal": "mnemarch.model.decision",
    "Entry": "mnemarch.log.act",
    "Event": "mnemarch.model.event",
    "EventType": "mnemarch.model.event",
    "FailedApproach": "mnemarch.model.outcome",
    "Found": "mnemarch.model.search",
    "Incompatible": "mnemarch.errors",
    "Ingested": "mnemarch.model.outcome",
    "InvalidInput": "mnemarch.errors",
    "Kind": "mnemarch.model.unit",
    "Level": "mnemarch.model.caller",
    "LoopVerdict": "mnemarch.model.outcome",
    "Memory": "mnemarch.memory",
    "MnemarchError": "mnemarch.errors",
    "NotAllowed": "mnemarch.errors",
    "NotFound": "mnemarch.errors",
    "Pack": "mnemarch.model.search",
    "Promotion": "mnemarch.model.outcome",
    "Reason": "mnemarch.model.decision",
    "Recalled": "mnemarch.model.search",
    "Receipt": "mnemarch.model.event",
    "Refused": "mnemarch.model.outcome",
    "Scope": "mnemarch.model.caller",
    "Seat": "mnemarch.seat",
    "Status": "mnemarch.model.unit",
    "StoreCorrupt": "mnemarch.errors",
    "StoreError": "mnemarch.errors",
    "StoreUnavailable": "mnemarch.errors",
    "Stored": "mnemarch.model.outcome",
    "Strength": "mnemarch.model.decision",
    "Swept": "mnemarch.model.outcome",
    "Unit": "mnemarch.model.unit",
    "Verdict": "mnemarch.model.outcome",
    "Withheld": "mnemarch.model.search",
    "can_promote": "mnemarch.model.caller",
    "can_write": "mnemarch.policy.permissions",
    "connect": "mnemarch.client",
    "copy": "mnemarch.wiring",
    "open": "mnemarch.wiring",
}

__all__ = [
    "Actor",
    "ActorKind",
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
    "Ingested",
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
    "connect",
    "copy",
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
