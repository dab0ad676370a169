"""Each verb asks the store a bounded number of times: on a server every statement is a round trip."""

from __future__ import annotations

from collections import Counter

import pytest

import mnemarch
from mnemarch import Actor, Citation, Scope, Seat
from mnemarch.model.caller import Caller
from mnemarch.stores.sql.reader import Reader
from mnemarch.stores.sql.store import SqlStore


@pytest.fixture
def asked(monkeypatch):
    """The named queries that run, and how often a view is opened."""
    names: Counter[str] = Counter()
    query, read = Reader.query, SqlStore.read

    def counted(self, name, /, **parameters):
        names[name] += 1
        return query(self, name, **parameters)

    def viewed(self, work):
        names["view"] += 1
        return read(self, work)

    monkeypatch.setattr(Reader, "query", counted)
    monkeypatch.setattr(SqlStore, "read", viewed)
    return names


@pytest.fixture
def seat(tmp_path):
    with mnemarch.open(tmp_path) as memory:
        yield memory.seat(Actor.agent("a"), Scope(project="p", worktree="w", task="t"))


def statements(asked, verb):
    asked.clear()
    verb()
    return sum(count for name, count in asked.items() if name != "view")


def test_a_log_entry_takes_three_statements(seat, asked):
    seat.log("thought", "warm")
    assert statements(asked, lambda: seat.log("thought", "The pool is exhausted")) == 3


def test_a_new_fact_takes_eleven_statements_however_many_there_are(seat, asked):
    counts = []
    for letter in "abcdefghijklmnopqrstuvwxyz":
        text = f"The {letter * 4}ing of the pool is over"
        counts.append(statements(asked, lambda text=text: seat.remember(text, citations=[Citation.test("test_pool")])))
    assert counts == [11] * 26


@pytest.mark.parametrize("k", [1, 8, 20])
def test_a_recall_takes_no_more_statements_for_more_items(seat, asked, k):
    for number in range(30):
        seat.remember(f"Checkout retries the gateway of shop{number} in module{number}")
    seat.recall("how does checkout retry?", k=k)
    taken = statements(asked, lambda: seat.recall("how does checkout retry?", k=k))
    assert asked["view"] <= 3
    assert taken <= 10, dict(asked)  # four of them for what binds


def test_looking_around_takes_no_more_statements_for_more_entries(seat, asked):
    for number in range(30):
        seat.log("thought", f"x{number}")
        seat.remember(f"Checkout retries the gateway of shop{number} in module{number}")
    human = Seat(seat._engine, Caller(Actor.human("ada"), seat.scope))
    human.status()
    assert statements(asked, lambda: seat.events(limit=5)) <= 4
    assert statements(asked, lambda: human.events(limit=1000)) <= 2
    assert statements(asked, lambda: human.status()) <= 23, dict(asked)  # half of them for the inbox
