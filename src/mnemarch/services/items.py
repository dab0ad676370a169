"""Keyed items in namespaces, for agent frameworks that keep their memory as keys and values.

A namespace is a scope of the project: its first segment is the worktree, the rest is the task. So no namespace can
read another's items. An item is a unit. A new value supersedes the old one, and a deleted one is archived, so the log
keeps who wrote what, and when.
"""

from __future__ import annotations

from mnemarch.errors import InvalidInput
from mnemarch.model.caller import Caller, Level, Scope
from mnemarch.model.json_text import canonical_json
from mnemarch.model.stamps import datetime, timedelta
from mnemarch.model.unit import LIVE_STATES, Claim, Kind, Unit
from mnemarch.model.value import Frozen
from mnemarch.policy.admission import checked_name, checked_text
from mnemarch.policy.permissions import Deed
from mnemarch.text.tokens import query_tokens
from mnemarch.units.life import acting_in, archive
from mnemarch.units.remember import record_unit
from mnemarch.units.status import retire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from mnemarch.log.act import Act
    from mnemarch.services.engine import Engine
    from mnemarch.stores.sql.reader import Reader

    Namespace = tuple[str, ...]

# Joins the segments of a namespace. No segment may contain it.
_JOINT = "."
_PAGE = 1_000
# Prefix of a key in the unit's domain. A key may be empty, but a domain may not.
_KEY = ":"


class Item(Frozen):
    """The value of a key in a namespace, with its times."""

    namespace: Namespace
    key: str
    value: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None = None
    minutes: float | None = None


class Change(Frozen):
    """A new value for a key, or None to delete it.

    Questions find the item by `text`; if it is empty, they don't find it. The item expires `minutes` after its change.
    """

    namespace: Namespace
    key: str
    value: Mapping[str, Any] | None
    text: str = ""
    minutes: float | None = None


class Items:
    """The items of one project, read and written by one caller."""

    def __init__(self, engine: Engine, caller: Caller) -> None:
        if caller.scope.level is not Level.PROJECT:
            raise InvalidInput(
                f"Items belong to a project, but {caller.scope} is a {caller.scope.level}.",
                hint="Take a seat at the project, with no worktree and no task.",
            )
        self._engine = engine
        self._caller = caller

    def get(self, namespace: Namespace, key: str) -> Item | None:
        """The current value of a key, or None."""
        scope, now = self._scope(namespace), self._engine.log.clock()
        unit = self._engine.store.read(lambda reader: _named(reader, scope, key))
        item = None if unit is None else _item(unit)
        return item if item is not None and _lives(item, now) else None

    def change(self, changes: Sequence[Change]) -> None:
        """Carry out changes in order, all or none."""
        limits = self._engine.config.limits
        scopes = [self._scope(change.namespace) for change in changes]
        for change in changes:
            if change.value is not None:
                checked_text(canonical_json(change.value), f"The value of {change.key!r}", limits.text_bytes_max)

        def work(act: Act) -> None:
            for change, scope in zip(changes, scopes, strict=True):
                _carry_out(acting_in(act, scope), change)

        self._engine.has_new_units = True
        self._engine.log.act(self._caller, work)

    def prolong(self, items: Sequence[Item]) -> None:
        """Restart the lifetime of items that expire."""

        def work(act: Act) -> None:
            for item in items:
                inside = acting_in(act, self._scope(item.namespace))
                unit = _named(inside.transaction, inside.caller.scope, item.key)
                if unit is not None and unit.attributes["minutes"] is not None:
                    _replace(inside, unit, unit.content, dict(unit.attributes) | {"renewed_at": act.now.isoformat()})

        if items:
            self._engine.log.act(self._caller, work)

    def namespaces(self) -> set[Namespace]:
        """Every namespace that holds an item."""
        return {item.namespace for item in self.under(())}

    def expired(self) -> list[Item]:
        """The expired items that are still stored."""
        return [item for item in self._all(()) if not _lives(item, self._engine.log.clock())]

    def under(self, prefix: Namespace) -> list[Item]:
        """Every item whose namespace begins with `prefix`, newest first."""
        now = self._engine.log.clock()
        living = (item for item in self._all(prefix) if _lives(item, now))
        return sorted(living, key=lambda item: item.updated_at, reverse=True)

    def scores(self, prefix: Namespace, query: str, limit: int) -> dict[tuple[Namespace, str], float]:
        """The relevance of items for a question, from 0 to 1. Items without a word of it are left out."""
        engine = self._engine
        keys = [scope.key for scope in engine.store.read(lambda reader: self._scopes(reader, prefix))]
        engine.finder.catch_up()
        within = {"states": LIVE_STATES, "kinds": [Kind.ITEM]}
        weights = dict.fromkeys(query_tokens(query), 1.0)
        best = engine.finder.best(weights, keys, limit=limit, **within) if keys else []
        units = engine.store.read(lambda reader: reader.units([sketch.id for _, sketch in best]))
        highest = max((score for score, _ in best), default=0.0)
        found = [(score, units[sketch.id]) for score, sketch in best if sketch.id in units]
        return {
            (tuple(unit.attributes["namespace"]), unit.attributes["key"]): score / highest
            for score, unit in found
            if unit.attributes["is_found"]
        }

    def _all(self, prefix: Namespace) -> list[Item]:
        return list(map(_item, self._engine.store.read(lambda reader: list(self._units(reader, prefix)))))

    def _units(self, reader: Reader, prefix: Namespace) -> Iterator[Unit]:
        for scope in self._scopes(reader, prefix):
            before = None
            while page := reader.units_in([scope.key], kind=Kind.ITEM, live=True, limit=_PAGE, before=before):
                yield from page
                before = page[-1].id

    def _scopes(self, reader: Reader, prefix: Namespace) -> list[Scope]:
        """The scopes of known namespaces that begin with `prefix`."""
        mine = self._caller.scope
        return [
            scope
            for scope in reader.scopes()
            if (scope.org, scope.project) == (mine.org, mine.project) and _namespace(scope)[: len(prefix)] == prefix
        ]

    def _scope(self, namespace: Namespace) -> Scope:
        if not namespace or any(not segment or _JOINT in segment for segment in namespace):
            raise InvalidInput(
                f"{namespace!r} is not a namespace.", hint="Give one or more segments, none empty or with a full stop."
            )
        first, *rest = namespace
        joined = _JOINT.join(rest)
        for name in filter(None, (first, joined)):
            checked_name(name, "a namespace")
        return Scope(self._caller.scope.org, self._caller.scope.project, first, joined or None)


def _carry_out(act: Act, change: Change) -> None:
    act.require_at(Deed.WRITE, act.caller.scope.level, f"write the item {change.key!r}")
    old = _named(act.transaction, act.caller.scope, change.key)
    if change.value is None:
        if old is not None:
            archive(act, old.id, "deleted", None, Deed.WRITE)
        return
    created = act.now.isoformat() if old is None else old.attributes["created_at"]
    about = {
        "namespace": list(change.namespace),
        "key": change.key,
        "value": change.value,
        "created_at": created,
        "updated_at": act.now.isoformat(),
        "renewed_at": act.now.isoformat(),
        "is_found": bool(change.text),
        "minutes": change.minutes,
    }
    _replace(act, old, change.text or canonical_json(change.value), about)


def _replace(act: Act, old: Unit | None, content: str, about: Mapping[str, Any]) -> None:
    level, domain = act.caller.scope.level, _KEY + about["key"]
    claim = Claim(content=content, kind=Kind.ITEM, level=level, domain=domain, attributes=about)
    event, _ = record_unit(act, claim, None)
    if old is not None:
        assert event.subject is not None
        retire(act, old, event.subject, "a new value")


def _named(reader: Reader, scope: Scope, key: str) -> Unit | None:
    units = reader.units_in([scope.key], kind=Kind.ITEM, domain=_KEY + key, live=True, limit=1)
    return units[0] if units else None


def _namespace(scope: Scope) -> Namespace:
    if scope.worktree is None:
        return ()
    return (scope.worktree, *(scope.task.split(_JOINT) if scope.task else ()))


def _item(unit: Unit) -> Item:
    known = unit.attributes
    renewed, minutes = datetime.fromisoformat(known["renewed_at"]), known["minutes"]
    return Item(
        namespace=tuple(known["namespace"]),
        key=known["key"],
        value=known["value"],
        created_at=datetime.fromisoformat(known["created_at"]),
        updated_at=datetime.fromisoformat(known["updated_at"]),
        expires_at=None if minutes is None else renewed + timedelta(minutes=minutes),
        minutes=minutes,
    )


def _lives(item: Item, now: datetime) -> bool:
    return item.expires_at is None or item.expires_at > now
