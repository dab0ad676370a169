"""Named queries of .sql files, and the rows that they read and write, as values.

A row that was damaged by hand is named, not guessed at.
"""

from __future__ import annotations

import os
from functools import lru_cache
from itertools import chain

from mnemarch.errors import InvalidInput, StoreCorrupt
from mnemarch.lazy import Lazy
from mnemarch.model.caller import Actor, Scope, Stream
from mnemarch.model.event import Event, EventType
from mnemarch.model.json_text import from_json, kept_json
from mnemarch.model.stamps import instant, micros
from mnemarch.policy.kinds import KINDS
from mnemarch.text.cache import cached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, TypeVar

    from mnemarch.model import decision as decisions
    from mnemarch.model import testrun as testruns
    from mnemarch.model import unit as units
    from mnemarch.model.decision import Relation, VersionKey
    from mnemarch.model.testrun import TestRecord
    from mnemarch.model.unit import Link, Searchable, Unit, Use
    from mnemarch.text import canonical, statements

    T = TypeVar("T")
else:
    # A process that only logs reads none of these.
    canonical = Lazy("mnemarch.text.canonical")
    decisions = Lazy("mnemarch.model.decision")
    testruns = Lazy("mnemarch.model.testrun")
    statements = Lazy("mnemarch.text.statements")
    units = Lazy("mnemarch.model.unit")

# The exceptions that reading a damaged or forged row can raise.
DAMAGE = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError, InvalidInput)

# The projections, and how many columns of `row_…` are the key of each.
ROWS = {"units": 1, "citations": 3, "links": 1, "link_units": 2, "relations": 3, "tests": 5, "uses": 2, "code_rules": 1}
_SESSION_PARTS = 3  # Org, project and name: see `Unit.session_key`.
_LIST = "IN (:"
_BOUND_MAX = 500


# Queries


def named_queries(*paths: str) -> dict[str, str]:
    """The queries of some files by name. A later file overrides an earlier one."""
    queries: dict[str, str] = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            blocks = file.read().split("-- ")[1:]
        for block in blocks:
            name, _, rest = block.partition(":")
            queries[name] = rest.partition("\n")[2].strip()
    return queries


def migration(folder: str, version: int) -> str:
    """The script of a folder that leads from `version - 1` to `version`."""
    (name,) = (name for name in os.listdir(folder) if name.startswith(f"{version:04d}_"))
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


def in_parts(items: Iterable[str]) -> Iterator[list[str]]:
    """Many values, sorted, in lists that are short enough for a database."""
    wanted = sorted(set(items))
    for start in range(0, len(wanted), _BOUND_MAX):
        yield wanted[start : start + _BOUND_MAX]


class Queries:
    """The queries of one dialect. `IN (:names)` takes a list. Its values are bound one by one.

    A JSON array in their place would end at the first NUL, and not every database has arrays.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = dict(texts)
        self._lists = {name: _lists_in(text) for name, text in texts.items() if _LIST in text}
        self._expanded: dict[tuple[str | int, ...], tuple[str, list[str]]] = {}

    def bound(self, name: str, parameters: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The text of a query and its parameters, with every list spelled out."""
        lists = self._lists.get(name)
        if lists is None:
            return self.texts[name], parameters
        items = [parameters.pop(each) for each in lists]
        shape: tuple[str | int, ...] = (name, *map(len, items))
        if shape not in self._expanded:
            text, names = self.texts[name], []
            for each, some in zip(lists, items, strict=True):
                own = [f"{each}_{number}" for number in range(len(some))]
                text = text.replace(f"{_LIST}{each})", f"IN ({', '.join(f':{one}' for one in own) or 'NULL'})")
                names += own
            self._expanded[shape] = text, names
        text, names = self._expanded[shape]
        parameters.update(zip(names, chain.from_iterable(items), strict=True))
        return text, parameters


def _lists_in(text: str) -> tuple[str, ...]:
    return tuple(sorted({part.partition(")")[0] for part in text.split(_LIST)[1:]}))


# Rows


def event_of(row: Any) -> Event:
    """A row of the view `entries`."""
    (position, seq, id, type, actor, scope, scope_key, session, subject, key, occurred_at, recorded_at, body, salt,
     payload_hash, hash, org, project, *of_writer) = row  # fmt: skip
    writer, clock = of_writer or ("", "")  # A view that somebody changed has fewer columns; an audit says so.
    event: Event | None
    try:
        event = Event(
            id=id,
            stream=Stream(org, project or None, writer),
            seq=seq,
            type=EventType(type),
            actor=Actor.parse(actor),
            scope=_scope_of(scope),
            session=session,
            subject=subject,
            key=key,
            occurred_at=instant(occurred_at),
            recorded_at=instant(recorded_at),
            body=body,
            salt=salt,
            payload_hash=payload_hash,
            hash=hash,
            position=position,
            clock=clock,
        )
        if org is None or event.scope.key != scope_key or not isinstance(body, str | None):
            event = None
    except (ValueError, TypeError, AttributeError, OverflowError, InvalidInput):
        event = None
    if event is None:
        raise StoreCorrupt(
            f"Event {id} at position {position} can't be read: its row or its stream's row was changed.",
            hint="Restore a backup. mnemarch audit names the entry.",
            event_id=str(id),
        )
    return event


@lru_cache(1024)
def _scope_of(segments: str) -> Scope:
    """Cached, since a process reads the same few scopes again and again."""
    return Scope.of(from_json(segments))


def _decoded(what: str, id: str, read: Callable[..., T], *given: Any) -> T:
    try:
        return read(*given)
    except DAMAGE as error:
        raise StoreCorrupt(
            f"The row of {what} {id} is not readable: {error!r}.",
            hint="To make the row again from the log: mnemarch rebuild",
        ) from None


def unit_of(row: tuple[str, str]) -> Unit:
    id, body = row
    return _decoded("unit", id, lambda: units.Unit.from_json(from_json(body)))


# Cached, since each verification compares the same few hundred episodes. It must not change them.
episode_of = cached(512)(unit_of)


def event_columns(event: Event) -> dict[str, Any]:
    """The columns that follow from an event alone. Its hash comes from the chain, its position from the store."""
    recorded_at = micros(event.recorded_at)
    return {
        "seq": event.seq,
        "id": event.id,
        "type": event.type,
        "actor": str(event.actor),
        "scope": kept_json(*event.scope.segments),
        "scope_key": event.scope.key,
        "session": event.session,
        "subject": event.subject,
        "key": event.key,
        "occurred_at": recorded_at if event.occurred_at is event.recorded_at else micros(event.occurred_at),
        "recorded_at": recorded_at,
        "body": event.body,
        "salt": event.salt,
        "payload_hash": event.payload_hash,
    }


def unit_columns(unit: Unit, version_key: VersionKey | None) -> dict[str, Any]:
    """The columns that queries select units by. They follow from the unit."""
    return {
        "scope_key": unit.scope.key,
        "level": int(unit.level),
        "kind": unit.kind,
        "domain": unit.domain,
        "status": unit.status,
        "live": unit.live,
        "root": version_key and version_key.root,
        "place": version_key and version_key.number,
        "strength": version_key and version_key.strength,
        "valid_to_commit": unit.valid_to_commit,
        "target": decisions.target_of(unit) if unit.kind == "anchor" else None,
    }


def link_of(row: tuple[str, str]) -> Link:
    id, body = row
    return _decoded("link", id, lambda: units.Link.from_json(from_json(body)))


def relation_of(row: Any) -> Relation:
    source, type, target, id = row
    return _decoded(
        "relation",
        id,
        lambda: decisions.Relation(source=source, type=decisions.RelationType(type), target=target, id=id),
    )


def use_of(row: Any) -> Use:
    unit_id, task_key, *flags = row
    return units.Use(unit_id, task_key, *map(bool, flags))


def test_of(stream: Stream, row: Any) -> TestRecord:
    name, place, witnessed, passed, flaky, *rest, at, event_id = row
    seen = bool(witnessed), bool(passed), instant(at), event_id, bool(flaky)
    return testruns.TestRecord(stream, name, place, *seen, *rest)


# The columns of a code rule (M21).
CODE_RULE = (
    "id",
    "project_id",
    "name",
    "description",
    "category",
    "before_pattern",
    "after_pattern",
    "pattern_type",
    "languages",
    "confidence",
    "observation_count",
    "success_count",
    "failure_count",
    "min_confidence_threshold",
    "promotion_threshold",
    "created_at",
    "updated_at",
)


def code_rule_of(row: Any) -> dict[str, Any]:
    """A code rule as a dictionary."""
    return dict(zip(CODE_RULE, row, strict=True))


def searchable_of(row: Any) -> Searchable:
    return _decoded("unit", row[0], _searchable, row)


def _searchable(row: Any) -> Searchable:
    id, scope_key, status, kind, domain, session, turn, body, changed_at = row
    record = from_json(body)
    content, occurred_at = record["content"], record["occurred_at"]
    content = units.search_text(kind, content, record["attributes"])
    texts, numbers = (id, scope_key, domain, content), (turn, changed_at, occurred_at)
    if {*map(type, texts)} != {str} or {*map(type, numbers)} != {int}:
        raise ValueError("a column of it was changed")
    if session is not None and _session_parts(session) != _SESSION_PARTS:
        raise ValueError("its session was changed")
    return units.Searchable(
        id=id,
        scope_key=scope_key,
        state=units.search_state(units.Status(status), record.get("superseded_from"), record["valid_to_commit"]),
        kind=units.search_kind(kind, record["attributes"]),
        domain=domain,
        session=session,
        turn=turn,
        content=content,
        occurred_at=occurred_at,
        importance=record["importance"],
        changed_at=changed_at,
    )


@lru_cache(64)
def _session_parts(session: str) -> int:
    return len(from_json(session))


def text_keys(unit: Unit) -> tuple[str, str]:
    """The keys by which units of one text, and of one topic, are found. "" if such units are never searched for."""
    # A decision has a text key, so that it is not made twice, but belongs to no topic of facts.
    is_decision = unit.kind is units.Kind.DECISION
    if not unit.content or not (is_decision or KINDS[unit.kind].merges):
        return "", ""
    return canonical.merge_key(unit.content), "" if is_decision else statements.topic_key(unit.content)


def beginning_of(scope: Scope) -> str:
    """The beginning of the stored form of every scope at or below this one. No character in a name can end it."""
    assert scope.task is None, "nothing is below a task"
    return f"{kept_json(*(segment for segment in scope.segments if segment is not None))[:-1]},"


def of_stream(stream: Stream, units: Iterable[Unit]) -> list[Unit]:
    wanted = (stream.project, None)
    return [unit for unit in units if unit.scope.org == stream.org and unit.scope.project in wanted]
