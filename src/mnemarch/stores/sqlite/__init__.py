"""The embedded truth: one SQLite file in WAL mode, written by any number of processes."""

from mnemarch.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
