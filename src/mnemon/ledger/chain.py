"""The hash chain (R1): what an entry's hash covers."""

from __future__ import annotations

from hashlib import sha256

from mnemon.model.canonical_json import compact_json
from mnemon.model.instant import micros

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemon.model.event import Event

CHAIN_VERSION = 1


def payload_hash(salt: bytes, body: bytes) -> bytes:
    """Salted, so that the hash which outlives an erased payload does not let anybody guess it back."""
    return sha256(salt + body).digest()


def entry_hash(previous: bytes, event: Event) -> bytes:
    """Covers the previous hash, every header field, and the payload by its hash, so a payload can be erased (R16)."""
    header = [
        CHAIN_VERSION,
        event.stream.org,
        event.stream.project,
        event.seq,
        event.id,
        event.type,
        event.actor.kind,
        event.actor.id,
        event.scope.segments,
        event.session,
        event.subject,
        event.key,
        micros(event.occurred_at),
        micros(event.recorded_at),
        event.payload_hash.hex(),
    ]
    return sha256(previous + compact_json(header).encode()).digest()
