"""A typed relation between two units: similar, contradicting, superseding, and later a decision's relations."""

from __future__ import annotations

from datetime import datetime

from mnemarch.model.closed import Names
from mnemarch.model.instant import instant, micros
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class LinkType(Names):
    SIMILAR_TO = "similar_to"
    DUPLICATES = "duplicates"
    CONTRADICTS = "contradicts"


@value
class Link:
    """`source type target`. `open` says whether somebody still has to decide it; `winner` is what was decided.

    Decided without a winner, both sides hold.
    """

    id: str
    type: LinkType
    source: str
    target: str
    weight: float
    note: str
    at: datetime
    open: bool = False
    winner: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "type": str(self.type),
            "source": self.source,
            "target": self.target,
            "weight": self.weight,
            "note": self.note,
            "at": micros(self.at),
            "open": self.open,
            "winner": self.winner,
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Link:
        return cls(**dict(record) | {"type": LinkType(record["type"]), "at": instant(record["at"])})


@value
class Use:
    """What one task did with one unit: was handed it, marked it used, was credited or blamed for it (R2)."""

    unit_id: str
    task_key: str
    handed: bool = False
    used: bool = False
    credited: bool = False
    blamed: bool = False
