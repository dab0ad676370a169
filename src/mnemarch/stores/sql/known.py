"""Caches a view's answers by question, and knows which answers its own writes may have changed."""

from __future__ import annotations

import re
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mnemarch.model.unit import Unit
    from mnemarch.stores.sql.queries import Queries

_WRITTEN = re.compile(r"(?:INSERT INTO|UPDATE|DELETE FROM) (\w+)")
_READ = re.compile(r"(?:FROM|JOIN) (\w+)")
_EQUAL = re.compile(r"(\w+) = (?:ANY\()?%\((\w+)\)s")
_VIEWS = {"entries": "events"}
# By query: whether it would return a unit that was written here, given the keys of its text. Written units are merged
# into the answers of these queries, so the answers are never invalid.
LAID_OVER: dict[str, Callable[[Unit, tuple[str | None, str | None], Mapping[str, Any]], bool]] = {
    "units_saying": lambda _, keys, asked: keys[0] == asked["canonical_key"],
    "units_with_text": lambda unit, keys, asked: (
        keys[0] == asked["canonical_key"] and unit.scope.key in asked["scope_keys"]
    ),
    "units_of_topic": lambda unit, keys, asked: (
        unit.live and keys[1] == asked["topic_key"] and unit.scope.key in asked["scope_keys"]
    ),
    "rejected_of_topic": lambda unit, keys, asked: (
        keys[1] == asked["topic_key"] and (unit.status, (unit.archive_reason or "")[:10]) == ("archived", "rejected: ")
    ),
}
# Queries whose answers are merged with written links.
_OF_LINKS = ("link", "conflicts_of")
# Columns that never change in a row. A written row with another value can't match a query's parameter. None means
# unknown, except in events, where it is a value.
_FIXED = {
    "events": ("id", "subject", "scope_key"),
    "tests": ("name", "called"),
    "units": ("id",),
    "uses": ("unit_id", "task_key"),
}


class Rows(list[Any]):
    """A cursor over rows that are already here."""

    def fetchone(self) -> Any:
        return self[0] if self else None

    def fetchall(self) -> list[Any]:
        return self


class _NoRow(tuple[Any, ...]):
    """The answer during a rehearsal: no rows, or 0 where a number is expected."""

    def __bool__(self) -> bool:
        return False

    def __getitem__(self, _: Any) -> Any:
        return 0


class NoRows(Rows):
    def fetchone(self) -> _NoRow:
        return _NoRow()


class _Shape:
    """The table that a query writes, the tables that it reads, and the fixed columns it selects by."""

    def __init__(self, text: str) -> None:
        written = _WRITTEN.match(text)
        self.writes = written and written[1]
        self.reads = frozenset(_VIEWS.get(name, name) for name in _READ.findall(text))
        fixed = _FIXED.get(next(iter(self.reads)), ()) if len(self.reads) == 1 else ()
        self.chooses = [(column, name) for column, name in _EQUAL.findall(text) if column in fixed]


_shapes: dict[str, _Shape] = {}


class Known:
    """Answers by question. `questions` have not been asked yet."""

    def __init__(self, queries: Queries) -> None:
        self._texts = queries.texts
        self.rows: dict[Any, Rows] = {}
        self.questions: dict[Any, tuple[str, dict[str, Any]]] = {}
        # By table and fixed column: the values of rows written since. None: any value.
        self._written: dict[str, dict[str, set[Any] | None]] = {}

    def _shape(self, name: str) -> _Shape:
        text = self._texts[name]
        shape = _shapes.get(text)
        if shape is None:
            shape = _shapes[text] = _Shape(text)
        return shape

    def table_written(self, name: str) -> str | None:
        """The table that a query writes to."""
        return self._shape(name).writes

    def write(self, table: str, row: Mapping[str, Any]) -> None:
        """Note a written row. Answers that may contain it become invalid."""
        written = self._written.setdefault(table, {column: set() for column in _FIXED.get(table, ())})
        for column, values in written.items():
            item = row.get(column)
            if column not in row or (item is None and table != "events"):
                written[column] = None
            elif values is not None:
                values.add(item)

    def answer(self, name: str, parameters: dict[str, Any], *, note: bool) -> Rows | None:
        """The cached rows; None if the question has to be asked now.

        With `note`, an unknown question is asked later together with others, and has no rows until then.
        """
        if not (note or self.rows):
            return None
        key = _key(name, parameters)
        rows = self.rows.get(key)
        if not self._is_in_doubt(name, parameters):
            if rows is None and note:
                self.questions[key] = name, parameters
                return NoRows()
            return rows
        return (rows or NoRows()) if self.questions else None

    def _is_in_doubt(self, name: str, parameters: Mapping[str, Any]) -> bool:
        if not self._written or name in LAID_OVER or name in _OF_LINKS:
            return False
        shape = self._shape(name)
        return any(table in self._written and not self._is_apart(table, shape, parameters) for table in shape.reads)

    def _is_apart(self, table: str, shape: _Shape, parameters: Mapping[str, Any]) -> bool:
        """Whether none of the rows written to a table can be in the query's answer."""
        for column, name in shape.chooses:
            values, wanted = self._written[table][column], parameters[name]
            if values is not None and values.isdisjoint(wanted if isinstance(wanted, list | tuple) else (wanted,)):
                return True
        return False

    def marks(self) -> Any:
        """The writes since the answers came, for `unmark`."""
        return {
            table: {column: None if values is None else set(values) for column, values in columns.items()}
            for table, columns in self._written.items()
        }

    def unmark(self, marks: Any) -> None:
        self._written = marks

    def learn(self, answers: Iterable[tuple[Any, list[Any]]]) -> None:
        """Add fresh answers, and drop older ones that became invalid."""
        if self._written:
            self.forget()
        self.questions = {}
        self.rows.update((key, Rows(rows)) for key, rows in answers)

    def forget(self) -> None:
        self.rows, self._written = {}, {}


def _key(name: str, parameters: Mapping[str, Any]) -> tuple[Any, ...]:
    items = ((each, tuple(item) if isinstance(item, list | tuple) else item) for each, item in parameters.items())
    return name, *sorted(items, key=lambda pair: pair[0])
