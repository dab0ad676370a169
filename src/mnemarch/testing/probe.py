"""A probe: a store whose typed reads and writes are called directly, each in a transaction of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

from mnemarch.ports import Store
from mnemarch.stores.sql.reader import Reader
from mnemarch.stores.sql.transaction import Transaction
from mnemarch.stores.sqlite import SqliteStore

T = TypeVar("T")


class Probe(Transaction, SqliteStore):
    """A store that is also its own reader and transaction; what a read iterates over comes as a whole list.

    Only its type is used: `_Probe` stands for it and passes each call on.
    """


class _Probe:
    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        if hasattr(Store, name):
            return getattr(self._store, name)
        run = self._store.read if hasattr(Reader, name) else self._store.write

        def call(*arguments: Any, **options: Any) -> Any:
            return run(lambda view: _whole(getattr(view, name)(*arguments, **options)))

        return call


def _whole(result: Any) -> Any:
    """The result, also after its transaction has ended."""
    return list(result) if isinstance(result, Iterator) else result


def on_new_stores(tests: type[T]) -> type[T]:
    """Pass a probe of a new store to each test of a class, and close the store after it."""
    for name, test in list(vars(tests).items()):
        if name.startswith("test_"):
            setattr(tests, name, _on_new_store(test))
    return tests


def _on_new_store(test: Callable[[Any, Probe], None]) -> Callable[[Any, Path], None]:
    def run(self: Any, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        try:
            test(self, cast("Probe", _Probe(store)))
        finally:
            store.close()

    run.__name__, run.__qualname__, run.__doc__ = test.__name__, test.__qualname__, test.__doc__
    return run


class Stop(Exception):
    """What a test's own work raises."""


def error_of(call: Callable[[], object]) -> BaseException | None:
    """What the call raised, if anything."""
    try:
        call()
    except BaseException as error:  # noqa: BLE001 - also what is not an Exception must come out unchanged
        return error
    return None
