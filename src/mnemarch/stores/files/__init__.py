"""Files. Takes: a folder. Gives: one memory as files that a person reads and git merges. Never: asks or runs git."""

from mnemarch.stores.files.store import FileStore

__all__ = ["FileStore"]
