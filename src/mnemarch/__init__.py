"""Mnemarch: a governed memory that several coding agents share.

The names below are imported when first used, so that a hook which only logs starts fast.
"""

from __future__ import annotations

from mnemarch.lazy import names_of

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

_NAMES_IN = {
    "client": "connect",
    "errors": "AnalystFailed Conflict Incompatible InvalidInput MnemarchError NotAllowed NotFound "
    "StoreCorrupt StoreError StoreUnavailable",
    "log.act": "Entry",
    "memory": "Memory",
    "model.caller": "Actor ActorKind Level Scope can_promote",
    "model.citation": "Citation",
    "model.decision": "Decision DecisionProposal Reason Strength",
    "model.event": "Event EventType Receipt",
    "model.outcome": "Analysis ApproachValidation FailedApproach Ingested LoopVerdict Promotion Refused Stored "
    "Swept Verdict",
    "model.search": "Found Pack Recalled Withheld",
    "model.unit": "Claim Kind Status Unit",
    "policy.permissions": "can_write",
    "seat": "Seat",
    "wiring": "copy open",
}
_HOME_OF = {name: f"mnemarch.{module}" for module, names in _NAMES_IN.items() for name in names.split()}

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

__getattr__, __dir__ = names_of(globals(), _HOME_OF)
