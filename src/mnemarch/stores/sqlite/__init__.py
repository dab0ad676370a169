"""The embedded store. Takes: a path. Gives: one SQLite file that any number of processes write, or SQLite in memory.

Never: holds a query that another dialect could share.
"""

from mnemarch.stores.sqlite.store import InMemoryStore, SqliteStore

__all__ = ["InMemoryStore", "SqliteStore"]
