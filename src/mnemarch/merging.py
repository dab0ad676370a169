"""What a memory does with what comes from other clones: folds it in, and settles what they could not know (R5, R6)."""

from __future__ import annotations

from mnemarch.log import merging
from mnemarch.log.act import Act
from mnemarch.log.merging import joint_id
from mnemarch.model.caller import Actor, Caller
from mnemarch.model.event import EventType
from mnemarch.units.conflicts import DISPUTED_KINDS, open_links
from mnemarch.units.promote import absorb
from mnemarch.units.same_text import twin_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from typing import Any

    from mnemarch.config import Config
    from mnemarch.model.event import Event
    from mnemarch.stores.sql.transaction import Transaction

_MERGER = Actor.system("merge")


class _MergingAct(Act):
    """Opens conflicts under ids that every clone would give them: two that open the same one open one."""

    __slots__ = ()

    def record(self, type: EventType, payload: dict[str, Any], **more: Any) -> tuple[Event, tuple[str, ...]]:
        if type is EventType.LINK_ADDED:
            link = payload["link"]
            payload = payload | {"id": joint_id(link["source"], link["target"])}
        return super().record(type, payload, **more)


class Merging:
    """What a store of files asks for, with the settings of the memory."""

    def __init__(self, config: Config, clock: Callable[[], datetime]) -> None:
        self._config = config
        self._clock = clock

    def fold(
        self, transaction: Transaction, entries: Sequence[tuple[str, int, Event]], *, whole: bool
    ) -> list[tuple[str, str]]:
        return merging.fold(transaction, entries, whole=whole, bytes_max=self._config.limits.data_bytes_max)

    def settle(self, transaction: Transaction, births: Sequence[str]) -> None:
        """Of two units with one text the older absorbs the newer; with what a unit opposes, a conflict is opened."""
        for unit_id in births:
            unit = transaction.unit(unit_id)
            if unit is None or not unit.live:
                continue
            act = _MergingAct(transaction, Caller(_MERGER, unit.scope), self._clock(), self._config)
            twin = twin_of(transaction, unit, unit.scope.key)
            if twin is not None and unit.kind in DISPUTED_KINDS:
                older, newer = sorted((unit, twin), key=lambda each: each.id)
                absorb(act, newer, older, "another clone had remembered the same")
                unit = act.known_unit(older.id)
            open_links(act, unit)
