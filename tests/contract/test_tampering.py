"""Somebody edits the database by hand: the audit finds it and names the entry (R1)."""

from __future__ import annotations

import json
import shutil
import sqlite3

import pytest

import mnemarch
from mnemarch import Actor, Citation, Scope
from mnemarch.interfaces.cli import main
from mnemarch.verbs.wire import to_json

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
ROW_EDITS = {
    "a code rule": "UPDATE memory_code_rules SET confidence = 0.99",
    "a unit's text": "UPDATE units SET body = replace(body, 'three', 'seven')",
    "a unit's status": "UPDATE units SET body = replace(body, 'hypothesis', 'verified')",
    "a unit's status to queries": "UPDATE units SET status = 'published' WHERE status = 'hypothesis'",
    "a unit's confidence": "UPDATE units SET body = replace(body, '\"confidence\":0.3', '\"confidence\":0.9')",
    "a unit's author": "UPDATE units SET body = replace(body, 'agent:a', 'human:h')",
    "a unit that is no unit": "UPDATE units SET body = '{}'",
    "a unit that is no text": "UPDATE units SET body = x'00ff'",
    "a unit's scope": "UPDATE units SET scope_key = 'elsewhere'",
    "a unit's level": "UPDATE units SET level = 4",
    "a unit's kind": "UPDATE units SET kind = 'policy' WHERE kind = 'fact'",
    "a unit's domain": "UPDATE units SET domain = 'coding'",
    "a dead unit": "UPDATE units SET live = 0 WHERE live",
    "a living unit": "UPDATE units SET live = 1 WHERE NOT live",
    "a unit's id": "UPDATE units SET id = 'forged' WHERE number = 1",
    "a unit taken away": "DELETE FROM units WHERE number = 1",
    "all units taken away": "DELETE FROM units",
    "a unit put in": "INSERT INTO units SELECT 99, 'forged', scope_key, level, kind, domain, status, live, NULL, NULL, "
    "searchable_at, replace(body, id, 'forged'), NULL, NULL, NULL, NULL, NULL, NULL, 0 FROM units WHERE number = 1",
    "a decision's strength": "UPDATE units SET strength = 3 WHERE root IS NOT NULL",
    "a decision's root": "UPDATE units SET root = 'another' WHERE root = (SELECT max(root) FROM units)",
    "a unit's conversation": "UPDATE units SET session = replace(session, '\"s\"', '\"t\"')",
    "a conversation without a project": "UPDATE units SET session = 'forged'",
    "a unit's turn": "UPDATE units SET turn = 7 WHERE session IS NOT NULL",
    "a unit's place in search": "UPDATE units SET searchable_at = 0",
    "a citation": "UPDATE citations SET ref = 'tests/test_b.py::test_c' WHERE kind = 'test'",
    "a citation taken away": "DELETE FROM citations",
    "a citation put in": "INSERT INTO citations SELECT 'human', 'mallory', id FROM units",
    "a relation": "UPDATE relations SET type = 'CONSTRAINS'",
    "a relation taken away": "DELETE FROM relations",
    "a relation put in": "INSERT INTO relations VALUES ('a', 'REFINES', 'b', 'c')",
    "a conflict": "UPDATE links SET body = replace(body, '\"open\":true', '\"open\":false')",
    "a conflict to queries": "UPDATE links SET open = 0",
    "a conflict taken away": "DELETE FROM links",
    "a member of a conflict": "DELETE FROM link_units WHERE unit_id = (SELECT max(unit_id) FROM link_units)",
    "the outcome of a test": "UPDATE tests SET passed = 1 - passed",
    "a test seen": "UPDATE tests SET witnessed = 1 - witnessed",
    "a test put in": "INSERT INTO tests SELECT org, 'bank', name, place, witnessed, called, passed, flaky, tree, "
    "greened_by, at, event_id FROM tests LIMIT 1",
    "a test taken away": "DELETE FROM tests",
    "a use": "UPDATE uses SET credited = 1 - credited",
    "a use taken away": "DELETE FROM uses",
}


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


SCHEMA_EDITS = {
    "a trigger put in": ["CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM uses; END"],
    "a table put in": ["CREATE TABLE more (x)"],
    "an index taken away": ["DROP INDEX units_in_force"],
    "an index with fewer rows": [
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = sql || ' WHERE 0' WHERE name = 'units_scope'",
    ],
    "a view that hides": [
        "DROP VIEW entries",
        "CREATE VIEW entries AS SELECT e.position, e.seq, e.id, e.type, e.actor, e.scope, e.scope_key, e.session, "
        "e.subject, e.key, e.occurred_at, e.recorded_at, e.body, e.salt, e.payload_hash, e.hash, s.org, s.project "
        "FROM events e JOIN streams s ON s.id = e.stream",
    ],
}


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
    assert "not in this log" in capsys.readouterr().out
