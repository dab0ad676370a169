"""`MnemarchSession`: a conversation of the OpenAI Agents SDK, kept in a memory.

from mnemarch.interfaces.openai_agents import MnemarchSession

session = MnemarchSession("support-17", memory, project="shop")
await Runner.run(agent, "Where is my order?", session=session)
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from agents import SessionABC, TResponseInputItem
from agents.memory.session_settings import SessionSettings

from mnemarch.memory import Memory
from mnemarch.model.caller import Actor, Scope
from mnemarch.model.stamps import new_id
from mnemarch.services.items import Change, Item

_CONVERSATIONS = "conversations"


class MnemarchSession(SessionABC):
    """The items of one conversation, in order. Many processes may add to it at once."""

    def __init__(
        self,
        session_id: str,
        memory: Memory,
        *,
        project: str,
        org: str = "default",
        actor: str = "agent:openai-agents",
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._items = memory.seat(Actor.parse(actor), Scope(org=org, project=project), session=session_id).items
        # A full stop would split the namespace.
        self._namespace = (_CONVERSATIONS, session_id.replace("%", "%25").replace(".", "%2E"))

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The conversation, or its last `limit` items, the oldest first."""
        last = self.session_settings.limit if limit is None and self.session_settings else limit
        turns = await asyncio.to_thread(self._turns)
        return [_said(turn) for turn in (turns if last is None else turns[max(0, len(turns) - last) :])]

    async def add_items(self, items: Sequence[TResponseInputItem]) -> None:
        """Add items at the end, all of them or none."""
        # Ids sort by the time they were made.
        changes = [Change(self._namespace, new_id(), {"item": item}, text=_text(item)) for item in items]
        if changes:
            await asyncio.to_thread(self._items.change, changes)

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the last item and return it; None if there is none."""
        return await asyncio.to_thread(self._popped)

    async def clear_session(self) -> None:
        """Remove all items."""
        await asyncio.to_thread(self._remove_all)

    def _turns(self) -> list[Item]:
        mine = [item for item in self._items.under(self._namespace) if item.namespace == self._namespace]
        return sorted(mine, key=lambda item: item.key)

    def _popped(self) -> TResponseInputItem | None:
        turns = self._turns()
        if not turns:
            return None
        self._items.change([Change(self._namespace, turns[-1].key, None)])
        return _said(turns[-1])

    def _remove_all(self) -> None:
        if turns := self._turns():
            self._items.change([Change(self._namespace, turn.key, None) for turn in turns])


def _said(turn: Item) -> TResponseInputItem:
    return cast("TResponseInputItem", turn.value["item"])


def _text(item: Any) -> str:
    """The text of an item that is searched."""
    content = item.get("content") if isinstance(item, dict) else None
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and part.get("text"))
