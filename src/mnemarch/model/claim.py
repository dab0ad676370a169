"""What somebody asks to have remembered, before the gate has judged it."""

from __future__ import annotations

from datetime import datetime

from mnemarch.model.citation import Citation
from mnemarch.model.instant import instant, micros
from mnemarch.model.scope import Level
from mnemarch.model.trust import DecayPolicy
from mnemarch.model.unit import Kind
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


@value
class Claim:
    """One statement for `remember`; what is unset is taken from the seat or the configuration."""

    content: str
    kind: Kind | str = Kind.FACT
    level: Level | str | None = None
    domain: str = "global"
    citations: tuple[Citation, ...] | list[Citation] = ()
    importance: float = 0.5
    occurred_at: datetime | None = None
    session: str | None = None
    key: str | None = None
    decay_policy: DecayPolicy | str | None = None
    attributes: Mapping[str, Any] = {}
    # What the text names in the working tree; the seat fills it in.
    seen: tuple[Citation, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "content": self.content,
            "kind": str(self.kind),
            "level": self.level and str(self.level),
            "domain": self.domain,
            "citations": [citation.to_json() for citation in self.citations],
            "importance": self.importance,
            "occurred_at": self.occurred_at and micros(self.occurred_at),
            "session": self.session,
            "decay_policy": self.decay_policy and str(self.decay_policy),
            "attributes": dict(self.attributes),
            "seen": [citation.to_json() for citation in self.seen],
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Claim:
        return cls(
            **dict(record)
            | {
                "kind": Kind(record["kind"]),
                "level": record["level"] and Level.parse(record["level"]),
                "citations": tuple(Citation.from_json(item) for item in record["citations"]),
                "seen": tuple(Citation.from_json(item) for item in record.get("seen", ())),
                "occurred_at": record["occurred_at"] and instant(record["occurred_at"]),
                "decay_policy": record["decay_policy"] and DecayPolicy(record["decay_policy"]),
            }
        )


def waiting_key(refusal_id: str) -> str:
    """The idempotency key under which a claim that only lacked validation is made again, once."""
    return f"waiting:{refusal_id}"
