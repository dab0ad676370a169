"""Merges the events of other clones into a memory, and settles duplicates and conflicts between them (R5, R6)."""

from __future__ import annotations

from mnemarch.log import merging
from mnemarch.log.act import Act
from mnemarch.log.merging import joint_id
from mnemarch.model.caller import Actor, Caller, Scope
from mnemarch.model.event import Event, EventType
from mnemarch.model.unit import REPLACEMENT
from mnemarch.units.conflicts import DISPUTED_KINDS, open_links
from mnemarch.units.erasure import Plan, carry_out
from mnemarch.units.finding import twin_of
from mnemarch.units.status import absorb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from typing import Any

    from mnemarch.config import Config
    from mnemarch.stores.sql.transaction import Transaction

_MERGER = Actor.system("merge")


class _MergingAct(Act):
    """An act that gives links the same ids in every clone, so that two clones open only one conflict."""

    __slots__ = ()

    def record(self, type: EventType, payload: dict[str, Any], **more: Any) -> tuple[Event, tuple[str, ...]]:
        if type is EventType.LINK_ADDED:
            link = payload["link"]
            payload = payload | {"id": joint_id(link["source"], link["target"])}
        return super().record(type, payload, **more)


class Merging:
    """The merge functions that a file store calls, with the settings of the memory."""

    def __init__(self, config: Config, clock: Callable[[], datetime]) -> None:
        self._config = config
        self._clock = clock

    def fold(
        self, transaction: Transaction, entries: Sequence[tuple[str, Event]], *, whole: bool
    ) -> list[tuple[str, str]]:
        return merging.fold(transaction, entries, whole=whole, bytes_max=self._config.limits.data_bytes_max)

    def settle(self, transaction: Transaction, news: Sequence[Event]) -> list[str]:
        """Settle what the writers of new events could not know of each other.

        Returns the erased units of which some content was left.
        """
        for event in news:
            if event.type is EventType.UNIT_REMEMBERED:
                self._settle_unit(transaction, event.subject or "")
        return self._erase_rest(transaction, news)

    def _act(self, transaction: Transaction, scope: Scope) -> Act:
        return _MergingAct(transaction, Caller(_MERGER, scope), self._clock(), self._config)

    def _settle_unit(self, transaction: Transaction, unit_id: str) -> None:
        """Merge a new unit into its older twin, and open conflicts with the units that it opposes."""
        unit = transaction.unit(unit_id)
        if unit is None or not unit.live:
            return
        act = self._act(transaction, unit.scope)
        twin = twin_of(transaction, unit, unit.scope.key)
        if twin is not None and unit.kind in DISPUTED_KINDS:
            older, newer = sorted((unit, twin), key=lambda each: each.id)
            absorb(act, newer, older, "another clone had stated the same")
            unit = act.known_unit(older.id)
        disputed = [id for dispute in open_links(act, unit) for id in dispute.units]
        self._join_conflicts(act, [unit.id, *disputed])

    def _join_conflicts(self, act: Act, unit_ids: Sequence[str]) -> None:
        """Join the open conflicts of these units to the oldest. A single memory would have opened only one (R6)."""
        reader, keys = act.transaction, act.caller.visible_keys
        links = sorted(reader.open_conflicts(unit_ids), key=lambda link: (link.at, link.id))
        links = [link for link in links if link.source != link.target and not link.note.startswith(REPLACEMENT)]
        sides = reader.units(id for link in links for id in (link.source, link.target))
        seen = [link for link in links if {sides[id].scope.key for id in (link.source, link.target)} <= {*keys}]
        for link in seen[1:]:
            for unit_id in sorted({*reader.units_of_link(link.id)} - {*reader.units_of_link(seen[0].id)}):
                act.record(EventType.LINK_JOINED, {"link": seen[0].id, "unit": unit_id}, subject=seen[0].id)
            closed = {"link": link.id, "winner": None, "reason": f"joined to conflict {seen[0].id}"}
            act.record(EventType.LINK_RESOLVED, closed, subject=link.id)

    def _erase_rest(self, transaction: Transaction, news: Sequence[Event]) -> list[str]:
        """Empty events and recalls of an erased unit that come from a clone without the erasure (R16)."""
        rest: dict[str, Event] = {}
        gone: set[str] = set()
        for event in news:
            named = event.payload or {}
            if event.type is EventType.UNIT_ERASED:
                erased = [record["id"] for record in named.get("units", ())]
                about = [each for id in erased for each in transaction.events_of_subject(id)]
                asked = [each for id in erased for each in transaction.events_containing(id, event.stream)]
                left = [*about, *(each for each in asked if each.type is EventType.RECALLED)]
            else:
                units = named.get("units", ()) if event.type is EventType.RECALLED else [event.subject or ""]
                known = transaction.units(units).values()
                erased = [unit.id for unit in known if unit.erased_at is not None]
                left = [*filter(None, [transaction.event(event.id)])] if erased else []
            found = {each.id: each for each in left if each.body is not None and each.type is not EventType.UNIT_ERASED}
            rest |= found
            gone |= set(erased) if found else set()
        for stream in {event.stream.shared for event in rest.values()}:
            first, *others = [event for event in rest.values() if event.stream.shared == stream]
            act = self._act(transaction, Scope(org=stream.org, project=stream.project))
            plan = Plan(act, first)
            for event in others:
                plan.take(event)
            carry_out(act, plan, "another clone had erased it")
        return sorted(gone)
