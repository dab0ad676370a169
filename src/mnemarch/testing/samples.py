"""A place and a moment for the tests of stores, and names that only look special."""

from __future__ import annotations

from datetime import UTC, datetime

from mnemarch import Level, Scope
from mnemarch.model.caller import Stream

# Names that only look special: every character of an id is only a character (R3).
HOSTILE_NAMES = (
    *("acme", "acme-corp", "acm_", "acm%", "%", "_", "a/b", "a::b", "a:b", "a / b"),
    *("quote'quote", 'double"double', "back\\slash", "semi;--drop", "nul\x00nul", "new\nline", " spaced "),
    *("emoji🧠👩‍💻", "한국어", "é", "e\u0301", "null", "[]", "x" * 10_000),
)

START = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
HERE = Scope(org="acme", project="shop", worktree="main", task="T-1")
WIDE = HERE.at(Level.PROJECT)
SHOP = Stream("acme", "shop")
