"""Mnemon: a governed memory that several coding agents share."""

from __future__ import annotations

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
from mnemon.model.event import Event, EventType, Receipt
from mnemon.model.outcome import Analysis, Found, Promotion, Recalled, Refused, Stored, Withheld
from mnemon.model.scope import Level, Scope, can_promote
from mnemon.model.unit import Kind, Status, Unit
from mnemon.policy.permissions import can_write
from mnemon.staging.append import Entry
from mnemon.wiring import open

__version__ = "0.1.0"

__all__ = [
    "Actor",
    "ActorKind",
    "Analysis",
    "AnalystFailed",
    "Citation",
    "Claim",
    "Conflict",
    "Entry",
    "Event",
    "EventType",
    "Found",
    "Incompatible",
    "InvalidInput",
    "Kind",
    "Level",
    "Memory",
    "MnemonError",
    "NotAllowed",
    "NotFound",
    "Promotion",
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
    "Unit",
    "Withheld",
    "can_promote",
    "can_write",
    "open",
]
