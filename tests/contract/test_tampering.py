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


@pytest.fixture
def tampered(tmp_path):
    """A memory of five entries and a way to edit its file."""
    home = tmp_path / "home"
    with mnemarch.open(home) as memory:
        seat = memory.seat(Actor.agent("a"), Scope(org="acme", project="shop", task="T-1"), session="s")
        receipts = [seat.log("thought", f"n{number}", key=f"k{number}") for number in range(5)]

    def edit(*statements):
        connection = sqlite3.connect(home / ".mnemarch" / "memory.db")
        with connection:
            for statement in statements:
                connection.execute(statement)
        connection.close()

    return home, receipts, edit


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


def test_r1_a_deleted_entry_is_found(tampered):
    home, receipts, change = tampered
    change("DELETE FROM events WHERE seq = 3")
    with mnemarch.open(home) as memory:
        assert memory.audit().first_broken == receipts[3].event_id


def test_r1_a_cut_off_tail_is_found(tampered):
    home, _, change = tampered
    change("DELETE FROM events WHERE seq > 3")
    with mnemarch.open(home) as memory:
        assert not memory.audit().ok


def test_r1_a_project_whose_entries_are_all_gone_is_found(tampered):
    home, _, change = tampered
    change("DELETE FROM events")
    with mnemarch.open(home) as memory:
        assert not memory.audit().ok


def test_r1_a_forged_entry_at_the_end_is_found(tampered):
    home, _, change = tampered
    change(
        "INSERT INTO events SELECT 99, stream, 6, 'forged', type, actor, scope, scope_key, session, subject, 'k99', "
        "occurred_at, recorded_at, body, salt, payload_hash, hash FROM events WHERE seq = 5"
    )
    with mnemarch.open(home) as memory:
        assert memory.audit().first_broken == "forged"


def test_r1_swapped_entries_are_found(tampered):
    home, _, change = tampered
    change(
        "UPDATE events SET position = -1 WHERE seq = 2",
        "UPDATE events SET position = 2 WHERE seq = 4",
        "UPDATE events SET position = 4 WHERE seq = 2",
    )
    with mnemarch.open(home) as memory:
        assert not memory.audit().ok


def test_r1_a_projection_edited_by_hand_is_made_right_by_a_rebuild(tmp_path):
    home = tmp_path / "home"
    with mnemarch.open(home) as memory:
        seat = memory.seat(Actor.agent("a"), Scope(project="p", task="t"))
        unit = seat.remember("Checkout retries three times").unit
    connection = sqlite3.connect(home / ".mnemarch" / "memory.db")
    with connection:
        connection.execute("UPDATE units SET body = replace(body, 'three', 'seven')")
    connection.close()
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
    connection = sqlite3.connect(home / ".mnemarch" / "memory.db")
    with connection:
        connection.execute("UPDATE events SET body = NULL, salt = NULL WHERE type = 'unit.rejected'")
    connection.close()
    with mnemarch.open(home) as memory:
        check = memory.audit()
        assert (check.ok, check.first_broken) == (False, rejection.id)
        assert "payload was removed" in check.problem


def test_r1_a_project_whose_stream_was_taken_away_is_found_and_not_passed_over(tampered):
    home, receipts, change = tampered
    change("DELETE FROM streams")
    with mnemarch.open(home) as memory:
        assert memory.audit().first_broken == receipts[0].event_id
        with pytest.raises(mnemarch.StoreCorrupt):
            memory.rebuild()
