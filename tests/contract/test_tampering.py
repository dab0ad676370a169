"""Somebody edits the database by hand: the audit finds it and names the entry (R1)."""

from __future__ import annotations

import sqlite3

import pytest

import mnemarch
from mnemarch import Actor, Scope

EDITS = {
    "body": '\'{"kind":"thought","text":"forged"}\'',
    "body of another type": "x'00ff'",
    "body is a number": "5",
    "body is no json": "'not json'",
    "salt": "x'00'",
    "salt gone": "NULL",
    "payload_hash": "x'00'",
    "payload_hash as text": "'abc'",
    "hash": "x'00'",
    "hash as text": "'abc'",
    "seq": "77",
    "id": "'another'",
    "type": "'unit.held'",
    "type unknown": "'nonsense'",
    "actor": "'human:alice'",
    "actor unknown": "'robot:x'",
    "actor nobody": "'nobody'",
    "scope": '\'["acme","shop",null,"T-2"]\'',
    "scope broken": "'not json'",
    "scope empty": "'[]'",
    "scope number": "'5'",
    "scope_key": "'00000000000000000000000000000000'",
    "session": "'another'",
    "subject": "'another'",
    "key": "'another'",
    "occurred_at": "1",
    "occurred_at as text": "'yesterday'",
    "occurred_at far": "9223372036854775807",
    "recorded_at": "1",
    "recorded_at far": "-9223372036854775808",
}


def edited(home, *statements):
    connection = sqlite3.connect(home / ".mnemarch" / "memory.db")
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


@pytest.fixture
def tampered(tmp_path):
    """A memory of five entries and a way to edit its file."""
    home = tmp_path / "home"
    with mnemarch.open(home) as memory:
        seat = memory.seat(Actor.agent("a"), Scope(org="acme", project="shop", task="T-1"), session="s")
        receipts = [seat.log("thought", f"n{number}", key=f"k{number}") for number in range(5)]

    return home, receipts, lambda *statements: edited(home, *statements)


@pytest.mark.parametrize("edit", EDITS)
def test_r1_an_edited_column_is_found_and_its_entry_named(tampered, edit):
    home, receipts, change = tampered
    column = edit.split()[0]
    change(f"UPDATE events SET {column} = {EDITS[edit]} WHERE seq = 3")
    with mnemarch.open(home) as memory:
        check = memory.audit()
    assert not check.ok
    assert check.problem
    if column == "id":
        assert check.first_broken == "another"
    else:
        assert check.first_broken in {receipts[2].event_id, receipts[3].event_id}


FORGED = (
    "INSERT INTO events SELECT 99, stream, 6, 'forged', type, actor, scope, scope_key, session, subject, 'k99', "
    "occurred_at, recorded_at, body, salt, payload_hash, hash FROM events WHERE seq = 5"
)
MOVES = ((2, -1), (4, 2), (2, 4))
WHOLE_ROWS = {
    "deleted": ("DELETE FROM events WHERE seq = 3",),
    "a cut off tail": ("DELETE FROM events WHERE seq > 3",),
    "all gone": ("DELETE FROM events",),
    "forged at the end": (FORGED,),
    "swapped": [f"UPDATE events SET position = {to} WHERE seq = {seq}" for seq, to in MOVES],
    "a stream taken away": ("DELETE FROM streams",),
}


@pytest.mark.parametrize("edit", WHOLE_ROWS)
def test_r1_rows_added_removed_or_moved_are_found(tampered, edit):
    home, receipts, change = tampered
    change(*WHOLE_ROWS[edit])
    named = {
        "deleted": receipts[3].event_id,
        "forged at the end": "forged",
        "a stream taken away": receipts[0].event_id,
    }
    with mnemarch.open(home) as memory:
        check = memory.audit()
        assert not check.ok
        assert edit not in named or check.first_broken == named[edit]
        if edit == "a stream taken away":
            with pytest.raises(mnemarch.StoreCorrupt):
                memory.rebuild()


def test_r1_a_projection_edited_by_hand_is_made_right_by_a_rebuild(tmp_path):
    home = tmp_path / "home"
    with mnemarch.open(home) as memory:
        seat = memory.seat(Actor.agent("a"), Scope(project="p", task="t"))
        unit = seat.remember("Checkout retries three times").unit
    edited(home, "UPDATE units SET body = replace(body, 'three', 'seven')")
    with mnemarch.open(home) as memory:
        seat = memory.seat(Actor.agent("a"), Scope(project="p", task="t"))
        assert "seven" in seat.get(unit.id).content
        rebuilt = memory.rebuild()
        assert not rebuilt.same
        assert seat.get(unit.id) == unit
        assert memory.rebuild().same


def test_r1_an_emptied_rejection_is_found_and_named(tmp_path):
    home = tmp_path / "home"
    with mnemarch.open(home) as memory:
        scope = Scope(project="p", task="t")
        unit = memory.seat(Actor.agent("a"), scope).remember("Admins may skip the second factor").unit
        human = memory.seat(Actor.human("h"), scope)
        human.reject(unit.id, "never")
        rejection = human.history(unit.id)[-1]
    edited(home, "UPDATE events SET body = NULL, salt = NULL WHERE type = 'unit.rejected'")
    with mnemarch.open(home) as memory:
        check = memory.audit()
        assert (check.ok, check.first_broken) == (False, rejection.id)
        assert "payload was removed" in check.problem
