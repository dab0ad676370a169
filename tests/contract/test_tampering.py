"""Somebody edits the database by hand: the audit finds it and names the entry (R1)."""

from __future__ import annotations

import json
import shutil
import sqlite3

import pytest

import mnemarch
from fixtures.cases import cases
from mnemarch import Actor, Citation, Scope
from mnemarch.interfaces.cli import main
from mnemarch.verbs.types import to_json

EDITS = dict(cases("tampering", "edits"))


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
    "occurred_at, recorded_at, body, salt, payload_hash, hash, clock FROM events WHERE seq = 5"
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


# What a row of the projections can be made to say, and of what kind the thing is that the audit names.
ROW_EDITS = dict(cases("tampering", "row edits"))


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory):
    """A memory with something of every projection; only to be copied."""
    home = tmp_path_factory.mktemp("lived") / "home"
    scope = Scope(org="acme", project="shop", worktree="main", task="T-1")
    with mnemarch.open(home) as memory:
        agent, human = memory.seat(Actor.agent("a"), scope, session="s"), memory.seat(Actor.human("h"), scope)
        first = agent.remember("Checkout retries three times", citations=[Citation.test("tests/test_a.py::test_b")])
        agent.remember("Checkout retries five times")
        agent.use(first.unit.id)
        agent.rules.learn("x = y == None\n", "x = y is None\n")
        agent.verify(passed=True, tests=["tests/test_a.py::test_b"])
        wide = human.remember("The shop opens at nine", level="project").unit
        human.archive(human.remember("The shop is blue", level="project").unit.id, "no longer")
        made = [
            human.decisions.commit(
                human.decisions.propose(
                    text, reason={"type": "risk", "summary": "safe"}, snapshots=[f"incident {text}"], strength="lock"
                )
            )
            for text in ("Payments go through the gateway", "Mails are sent at night")
        ]
        human.decisions.relate(made[0].id, "DEPENDS_ON", made[1].id)
        human.erase(wide.id, "private")
        human.remember("The shop closes at ten", level="project")
        assert memory.audit().ok
    return home


def copied(home, to):
    shutil.copytree(home, to)
    return to


@pytest.mark.parametrize("edit", ROW_EDITS)
def test_r1_a_row_edited_by_hand_is_found_and_a_rebuild_mends_it(lived_in, tmp_path, edit, capsys):
    home = copied(lived_in, tmp_path / "home")
    with mnemarch.open(home) as memory:
        assert memory.audit().ok  # Also what an audit has seen already is looked at.
    edited(home, ROW_EDITS[edit])
    with mnemarch.open(home) as memory:
        check = memory.audit()
        assert (check.ok, bool(check.first_broken), bool(check.problem)) == (False, True, True)
        assert "mnemarch rebuild" in check.hint
        assert [finding.ok for finding in memory.doctor()].count(False) >= 1
        memory.rebuild()
        assert memory.audit().ok


SCHEMA_EDITS = dict(cases("tampering", "schema edits"))


@pytest.mark.parametrize("edit", SCHEMA_EDITS)
def test_r1_a_changed_table_index_view_or_trigger_is_found(lived_in, tmp_path, edit):
    home = copied(lived_in, tmp_path / "home")
    edited(home, *SCHEMA_EDITS[edit])
    with mnemarch.open(home) as memory:
        check = memory.audit()
        assert (check.ok, "not as Mnemarch makes it" in check.problem, bool(check.hint)) == (False, True, True)


def test_r1_an_index_that_lacks_rows_is_found(lived_in, tmp_path):
    home = copied(lived_in, tmp_path / "home")
    narrowed = "UPDATE sqlite_master SET sql = {} WHERE name = 'units_canonical'"
    edited(
        home,
        "PRAGMA writable_schema = ON",
        narrowed.format("replace(sql, 'canonical_key IS', 'number < 0 AND canonical_key IS')"),
    )
    edited(home, "REINDEX units_canonical")
    edited(home, "PRAGMA writable_schema = ON", narrowed.format("replace(sql, 'number < 0 AND ', '')"))
    with mnemarch.open(home) as memory:
        assert "units_canonical" in memory.audit().problem


@pytest.mark.parametrize("session", ["'forged'", "'5'", "x'00'", "NULL, turn = 'x'"])
def test_r1_a_damaged_conversation_is_an_error_in_words(lived_in, tmp_path, session):
    home = copied(lived_in, tmp_path / "home")
    shutil.rmtree(home / ".mnemarch" / "index", ignore_errors=True)
    edited(home, f"UPDATE units SET session = {session}")
    with mnemarch.open(home) as memory:
        seat = memory.seat(Actor.agent("a"), Scope(org="acme", project="shop", worktree="main", task="T-1"))
        with pytest.raises(mnemarch.StoreCorrupt) as caught:
            seat.recall("How often does checkout retry?")
        assert "mnemarch rebuild" in caught.value.hint


def test_r1_an_erasure_in_the_middle_of_a_conversation_leaves_the_turns_after_it_to_a_replay(tmp_path):
    with mnemarch.open(tmp_path / "home") as memory:
        seats = [memory.seat(actor, Scope(project="p"), session="s") for actor in (Actor.agent("a"), Actor.human("h"))]
        units = [seats[1].remember(f"Door {number} is painted blue").unit for number in range(4)]
        seats[1].archive(units[3].id, "we know that Door 1 is painted blue")
        seats[1].revive(units[3].id, "but it holds")
        seats[1].erase(units[1].id, "private", copies=True)
        assert memory.audit().ok
        assert memory.rebuild().same
        assert memory.audit().ok
        seats[0].remember("Door 9 is painted red")
        memory.export(tmp_path / "log.jsonl")
    with mnemarch.open(tmp_path / "other") as memory:
        memory.import_(tmp_path / "log.jsonl")
        assert memory.audit().ok


@pytest.mark.parametrize("column", ["canonical_key", "topic_key"])
def test_r1_a_full_audit_also_finds_changed_keys_of_texts(lived_in, tmp_path, column):
    home = copied(lived_in, tmp_path / "home")
    edited(home, f"UPDATE units SET {column} = 'forged'")
    with mnemarch.open(home) as memory:
        assert not memory.audit(full=True).ok


def cut(home):
    """The newest entries cut off so that the rest is a whole chain again."""
    edited(
        home,
        "DELETE FROM events WHERE seq > 3",
        "UPDATE streams SET seq = 3, hash = (SELECT hash FROM events WHERE seq = 3) WHERE project = 'shop'",
    )


def older_copy(home):
    shutil.rmtree(home / ".mnemarch")
    shutil.copytree(home.parent / "older", home / ".mnemarch")


def older_copy_that_went_on(home):
    older_copy(home)
    with mnemarch.open(home) as memory:
        logged(memory, "other", 6)


def begun_anew(home):
    shutil.rmtree(home / ".mnemarch")
    with mnemarch.open(home) as memory:
        logged(memory, "new", 9)


def a_stream_cut_out(home):
    edited(
        home,
        "DELETE FROM events WHERE stream = (SELECT id FROM streams WHERE project = 'bank')",
        "DELETE FROM streams WHERE project = 'bank'",
    )


def logged(memory, text, count, project="shop"):
    seat = memory.seat(Actor.agent("a"), Scope(org="acme", project=project, task="T-1"))
    return [seat.log("thought", f"{text} {number}") for number in range(count)]


@pytest.mark.parametrize("act", [cut, older_copy, older_copy_that_went_on, begun_anew, a_stream_cut_out])
def test_r1_a_log_that_ends_earlier_than_this_machine_saw_it_is_noticed(tmp_path, act):
    home = tmp_path / "home"
    with mnemarch.open(home) as memory:
        logged(memory, "kept", 3)
    shutil.copytree(home / ".mnemarch", tmp_path / "older")
    with mnemarch.open(home) as memory:
        receipts = [*logged(memory, "lost", 2), *logged(memory, "elsewhere", 2, project="bank")]
    act(home)
    with mnemarch.open(home) as memory:
        check = memory.audit()
        assert not check.ok
        assert check.first_broken
        assert "mnemarch audit --accept" in check.hint
        gone = receipts[-1] if act is a_stream_cut_out else receipts[0]
        assert not memory.verify_receipt(gone).ok
        assert memory.audit(accept=True).ok
        assert memory.audit().ok


def test_r1_a_receipt_says_whether_its_entry_is_in_the_log_as_it_was(tmp_path, monkeypatch, capsys):
    home = tmp_path / "home"
    with mnemarch.open(home) as memory:
        receipts = logged(memory, "n", 5)
        logged(memory, "between", 1, project="bank")
        assert all(memory.verify_receipt(receipt).ok for receipt in receipts)
        answer = memory.seat(Actor.agent("a"), Scope(project="p", task="t")).remember("Checkout retries")
        assert memory.verify_receipt(to_json(answer)).ok
        for wrong in ({}, {"event_id": 5}, 5, "x"):
            with pytest.raises(mnemarch.InvalidInput, match="receipt"):
                memory.verify_receipt(wrong)
    monkeypatch.setenv("MNEMARCH_STORE", str(home))
    given, path = json.dumps(to_json(receipts[2])), tmp_path / "receipt.json"
    path.write_text(given)
    assert [main(["verify-receipt", each]) for each in (given, str(path))] == [0, 0]
    assert "in the log, unchanged" in capsys.readouterr().out
    assert main(["verify-receipt", str(tmp_path / "absent")]) == 2
    edited(home, """UPDATE events SET body = '{"kind":"thought","text":"forged"}' WHERE seq = 3""")
    assert main(["verify-receipt", given]) == 3
    assert "changed" in capsys.readouterr().out
    edited(home, "DELETE FROM events WHERE seq = 3")
    assert main(["verify-receipt", given]) == 3
    assert "missing: the log was cut or replaced" in capsys.readouterr().out
