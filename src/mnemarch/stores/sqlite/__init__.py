"""The embedded truth: one SQLite file in WAL mode, written by any number of processes; or SQLite in memory."""

from mnemarch.stores.sqlite.store import InMemoryStore, SqliteStore

__all__ = ["InMemoryStore", "SqliteStore"]
