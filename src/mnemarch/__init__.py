"""Mnemarch: a governed memory that several coding agents share.

The names below are imported on first use, so that a hook that only logs starts fast. Type checkers read
`__init__.pyi`, which a test generates from this list.
"""

from __future__ import annotations

from mnemarch.lazy import names_of

__version__ = "0.1.0"

_NAMES_IN = {
    "client": "connect",
    "errors": "AnalystFailed Conflict Incompatible InvalidInput MnemarchError NotAllowed NotFound "
    "StoreCorrupt StoreError StoreUnavailable",
    "log.act": "Entry",
    "memory": "Memory",
    "model.caller": "Actor ActorKind Level Scope can_promote",
    "model.decision": "Decision DecisionProposal Reason Strength",
    "model.event": "Event EventType Receipt",
    "model.outcome": "Analysis ApproachValidation FailedApproach Ingested LoopVerdict Promotion Refused Stored "
    "Swept Verdict",
    "model.search": "Found Pack Recalled Withheld",
    "model.unit": "Citation Claim Kind Status Unit",
    "policy.permissions": "can_write",
    "seat": "Seat",
    "wiring": "copy open",
}
_HOME_OF = {name: f"mnemarch.{module}" for module, names in _NAMES_IN.items() for name in names.split()}

__all__ = sorted(_HOME_OF)

__getattr__, __dir__ = names_of(globals(), _HOME_OF)
