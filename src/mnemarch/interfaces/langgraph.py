"""`MnemarchStore`: a LangGraph store whose items are governed units.

    from mnemarch.interfaces.langgraph import MnemarchStore

    with mnemarch.open(".") as memory:
        store = MnemarchStore(memory, project="shop")
        graph = builder.compile(store=store)

Search is by words, without a model, so no `index` is needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from langgraph.store import base

from mnemarch.errors import InvalidInput
from mnemarch.memory import Memory
from mnemarch.model.caller import Actor, Scope
from mnemarch.services.items import Change, Item, Items

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": eq,
    "$ne": ne,
    "$gt": gt,
    "$gte": ge,
    "$lt": lt,
    "$lte": le,
}
_OF_NUMBERS = (gt, ge, lt, le)
_SCORED_MAX = 1_000


class MnemarchStore(base.BaseStore):
    """Keeps the items of a graph in a memory. Many processes may write at once, and the log has each item's author.

    `fields` are the parts of a value that are searched, as in LangGraph's own index settings.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Memory,
        *,
        project: str,
        org: str = "default",
        actor: str = "agent:langgraph",
        fields: Sequence[str] = ("$",),
        ttl: base.TTLConfig | None = None,
    ) -> None:
        self._items: Items = memory.seat(Actor.parse(actor), Scope(org=org, project=project)).items
        self._fields = tuple(fields)
        self.ttl_config = ttl

    def batch(self, ops: Iterable[base.Op]) -> list[base.Result]:
        """Answer the reads, then make the changes, all or none. Of two changes to one key the last counts."""
        results: list[base.Result] = []
        puts: dict[tuple[tuple[str, ...], str], base.PutOp] = {}
        for op in ops:
            if isinstance(op, base.PutOp):
                puts.pop((op.namespace, op.key), None)
                puts[op.namespace, op.key] = op
                results.append(None)
            elif isinstance(op, base.GetOp):
                results.append(self._got(op))
            elif isinstance(op, base.SearchOp):
                results.append(self._searched(op))
            elif isinstance(op, base.ListNamespacesOp):
                results.append(self._listed(op))
            else:
                raise InvalidInput(f"{op!r} is not a store operation.", hint="Use get, put, search, list_namespaces.")
        if puts:
            self._items.change([self._change(op) for op in puts.values()])
        return results

    async def abatch(self, ops: Iterable[base.Op]) -> list[base.Result]:
        """Run `batch` in a worker thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """Archive expired items and return their number. Expired items are never read, even before a sweep."""
        expired = self._items.expired()
        if expired:
            self._items.change([Change(item.namespace, item.key, None) for item in expired])
        return len(expired)

    def _change(self, op: base.PutOp) -> Change:
        if op.value is None:
            return Change(op.namespace, op.key, None)
        if not isinstance(op.value, dict):
            raise InvalidInput(f"A value is a dictionary, not {op.value!r}.", hint='Put {"text": "..."}, for example.')
        fields = self._fields if op.index is None else op.index or ()
        texts = [text for field in fields for text in base.get_text_at_path(op.value, field)]
        return Change(op.namespace, op.key, op.value, text="\n".join(texts), minutes=op.ttl)

    def _got(self, op: base.GetOp) -> base.Item | None:
        kept = self._items.get(op.namespace, op.key)
        if kept is None:
            return None
        self._refresh([kept], op.refresh_ttl)
        return base.Item(**_fields_of(kept))

    def _searched(self, op: base.SearchOp) -> list[base.SearchItem]:
        kept = [each for each in self._items.under(op.namespace_prefix) if _passes(each.value, op.filter)]
        scores = {}
        if op.query:
            scores = self._items.scores(op.namespace_prefix, op.query, _SCORED_MAX)
            kept.sort(key=lambda each: -scores.get((each.namespace, each.key), -1.0))
        page = kept[op.offset : op.offset + op.limit]
        self._refresh(page, op.refresh_ttl)
        return [base.SearchItem(**_fields_of(each), score=scores.get((each.namespace, each.key))) for each in page]

    def _refresh(self, read: Sequence[Item], wanted: bool) -> None:
        """Restart the time to live of the items that were read."""
        if wanted and self.ttl_config and self.ttl_config.get("refresh_on_read", False):
            self._items.prolong([each for each in read if each.minutes is not None])

    def _listed(self, op: base.ListNamespacesOp) -> list[tuple[str, ...]]:
        conditions = op.match_conditions or ()
        known = {each for each in self._items.namespaces() if all(_matches(one, each) for one in conditions)}
        cut = sorted({each[: op.max_depth] for each in known})
        return cut[op.offset : op.offset + op.limit]


def _fields_of(kept: Item) -> dict[str, Any]:
    names = ("namespace", "key", "created_at", "updated_at")
    return {name: getattr(kept, name) for name in names} | {"value": dict(kept.value)}


def _passes(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    return all(_compares(value.get(key), condition) for key, condition in (wanted or {}).items())


def _compares(mine: Any, condition: Any) -> bool:
    """Whether a part of a value meets a filter's condition: equal, equal in the named parts, or true by an operator."""
    if isinstance(condition, dict):
        if any(name.startswith("$") for name in condition):
            return all(_holds(name, mine, limit) for name, limit in condition.items())
        return isinstance(mine, dict) and all(_compares(mine.get(name), part) for name, part in condition.items())
    if isinstance(condition, list | tuple):
        is_alike = isinstance(mine, list | tuple) and len(mine) == len(condition)
        return is_alike and all(_compares(*pair) for pair in zip(mine, condition, strict=True))
    return bool(mine == condition)


def _holds(name: str, mine: Any, limit: Any) -> bool:
    """Whether an operator holds. Comparisons of order are false for values that are not numbers."""
    compare = _COMPARISONS.get(name)
    if compare is None:
        raise InvalidInput(f"{name} is not an operator of a filter.", hint=f"Use one of: {', '.join(_COMPARISONS)}.")
    if compare not in _OF_NUMBERS:
        return compare(mine, limit)
    try:
        return compare(float(mine), float(limit))
    except (TypeError, ValueError):
        return False


def _matches(condition: base.MatchCondition, namespace: tuple[str, ...]) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(pattern in ("*", segment) for pattern, segment in zip(path, part, strict=True))
