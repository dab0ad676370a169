"""The hash chain (R1): what an entry's hash covers."""

from __future__ import annotations

from functools import lru_cache

from mnemarch.model.json_text import kept_json
from mnemarch.model.stamps import micros, sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.model.event import Event

CHAIN_VERSION = 1


def payload_hash(salt: bytes, body: bytes) -> bytes:
    """Salted, so that the hash which outlives an erased payload does not let anybody guess it back."""
    return sha256(salt + body).digest()


def entry_hash(previous: bytes, event: Event) -> bytes:
    """Covers the previous hash, every header field, and the payload by its hash, so a payload can be erased (R16)."""
    return sha256(previous + header(event).encode()).digest()


def header(event: Event) -> str:
    """The header as one JSON array. What repeats from entry to entry is encoded once and kept."""
    stream, actor, scope = event.stream, event.actor, event.scope
    place = _encoded(stream.org, stream.project)
    who = _encoded(actor.kind, actor.id)
    where = _encoded(scope.org, scope.project, scope.worktree, scope.task)
    said = _encoded(event.session, event.subject, event.key)
    recorded = micros(event.recorded_at)
    occurred = recorded if event.occurred_at is event.recorded_at else micros(event.occurred_at)
    return (
        f'[{CHAIN_VERSION},{place},{event.seq},"{event.id}","{event.type}",{who},[{where}],{said},'
        f'{occurred},{recorded},"{event.payload_hash.hex()}"]'
    )


@lru_cache(maxsize=4096)
def _encoded(*items: str | None) -> str:
    return kept_json(*items)[1:-1]
