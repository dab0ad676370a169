"""A folder of decision records goes in and comes out as it was."""

from __future__ import annotations

import pytest

import mnemon
from mnemon import Actor, InvalidInput, Reason, Scope
from mnemon.interfaces.adr_bridge import export_folder, import_folder

NYGARD = """# {number}. {title}

Date: 2024-0{number}-01

## Status

{status}

## Context

We need to keep {title}.

## Decision

We will {title}.

## Consequences

It costs time.
"""
MADR = """---
status: accepted
date: 2024-05-01
decision-makers: [kim, lee]
---

# Keep money as integers

## Context and Problem Statement

Floats lose cents.

## Considered Options

* floats
* integers

## Decision Outcome

Chosen option: "integers", because floats lose cents.

### Consequences

* Good, because sums are exact.
"""


def nygard(number, title, status="Accepted"):
    return NYGARD.format(number=number, title=title, status=status)


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "adr"
    made.mkdir()
    texts = {
        "0001-use-files.md": nygard(1, "use files", "Superseded by [2. use sqlite](0002-use-sqlite.md)"),
        "0002-use-sqlite.md": nygard(2, "use sqlite", "Accepted\n\nSupersedes [1. use files](0001-use-files.md)"),
        "0003-use-tabs.md": nygard(3, "use tabs", "Rejected"),
        "0004-use-xml.md": nygard(4, "use xml", "Deprecated"),
        "0005-integers.md": MADR,
        "README.md": "# Our decisions\n\nSee the files.\n",
    }
    for name, text in texts.items():
        (made / name).write_text(text, encoding="utf-8")
    return made


@pytest.fixture
def seat(tmp_path):
    with mnemon.open(tmp_path / "home") as memory:
        yield memory.seat(Actor.orchestrator("lead"), Scope(project="shop", task="T"))


def test_records_become_decisions_with_their_status_and_supersession(seat, folder):
    outcomes = {one.name: one for one in import_folder(seat, str(folder))}
    assert set(outcomes) == {path.name for path in folder.iterdir()} - {"README.md"}
    desk = seat.decisions
    assert sorted(one.text.partition("\n")[0] for one in desk.active()) == ["Keep money as integers", "use sqlite"]
    versions = desk.history(outcomes["0002-use-sqlite.md"].decision_id)
    assert [one.text.partition("\n")[0] for one in versions] == ["use files", "use sqlite"]
    assert outcomes["0003-use-tabs.md"].decision_id is None
    assert "never in force" in outcomes["0003-use-tabs.md"].note
    assert not desk.get(outcomes["0004-use-xml.md"].decision_id).is_active
    money = desk.get(outcomes["0005-integers.md"].decision_id)
    assert money.reason.summary == "floats lose cents"
    assert seat.get(money.evidence[0]).content == MADR, "the evidence is the record, word for word"


def test_what_went_in_comes_out_byte_for_byte(seat, folder, tmp_path):
    import_folder(seat, str(folder))
    names = export_folder(seat, str(tmp_path / "out"))
    assert sorted(names) == sorted(path.name for path in folder.iterdir() if path.name != "README.md")
    for name in names:
        assert (tmp_path / "out" / name).read_bytes() == (folder / name).read_bytes(), name
    assert sorted(export_folder(seat, str(tmp_path / "out"))) == sorted(names)


def test_importing_twice_changes_nothing(seat, folder):
    first = {one.name: one.decision_id for one in import_folder(seat, str(folder))}
    before = [one.id for one in seat.decisions.active()]
    again = {one.name: one.decision_id for one in import_folder(seat, str(folder))}
    assert again == first
    assert [one.id for one in seat.decisions.active()] == before


def test_what_was_revised_since_says_so_when_it_comes_out(seat, folder, tmp_path):
    made = {one.name: one.decision_id for one in import_folder(seat, str(folder))}
    evidence = [seat.decisions.add_evidence("the bench").id]
    seat.decisions.commit(
        seat.decisions.propose(
            "use postgres", reason=Reason("risk", "a team"), evidence=evidence, revises=made["0002-use-sqlite.md"]
        )
    )
    names = export_folder(seat, str(tmp_path / "out"))
    new = next(name for name in names if "postgres" in name)
    assert new == "0006-use-postgres.md"
    old = (tmp_path / "out" / "0002-use-sqlite.md").read_text(encoding="utf-8")
    assert "Superseded" in old
    assert new in old
    assert "We will use sqlite." in old
    text = (tmp_path / "out" / new).read_text(encoding="utf-8")
    assert "0002-use-sqlite.md" in text
    assert "## Decision" in text
    elsewhere = import_folder(seat, str(tmp_path / "out"))
    assert len(elsewhere) == len(names)


def test_decisions_made_here_come_out_in_either_form_and_go_in_again(seat, tmp_path):
    evidence = [seat.decisions.add_evidence("측정 결과").id]
    seat.decisions.commit(
        seat.decisions.propose(
            "결제는 세 번만 재시도한다", reason=Reason("risk", "은행이 막는다", "느리다"), evidence=evidence
        )
    )
    for form in ("nygard", "madr"):
        (name,) = export_folder(seat, str(tmp_path / form), form)
        assert "결제는" in name
        text = (tmp_path / form / name).read_text(encoding="utf-8")
        assert "은행이 막는다" in text
        with mnemon.open(tmp_path / f"home-{form}") as memory:
            other = memory.seat(Actor.orchestrator("lead"), Scope(project="shop"))
            import_folder(other, str(tmp_path / form))
            (decision,) = other.decisions.active()
            assert decision.text.startswith("결제는 세 번만 재시도한다")
            assert decision.reason.summary == "은행이 막는다"


def test_trouble_with_folders_is_told_and_nothing_is_overwritten(seat, folder, tmp_path):
    with pytest.raises(InvalidInput, match="can't be read"):
        import_folder(seat, str(tmp_path / "nowhere"))
    import_folder(seat, str(folder))
    out = tmp_path / "out"
    out.mkdir()
    (out / "0001-use-files.md").write_text("mine")
    with pytest.raises(InvalidInput, match="says something else"):
        export_folder(seat, str(out))
    assert [path.name for path in out.iterdir()] == ["0001-use-files.md"]
    (folder / "0009-bad.md").write_bytes(b"# 9. x\n\xff")
    with pytest.raises(InvalidInput, match="can't be read"):
        import_folder(seat, str(folder))


def test_relations_between_records_are_kept(seat, folder):
    depends = nygard(6, "use wal", "Accepted\n\nDepends on [2. use sqlite](0002-use-sqlite.md)")
    (folder / "0006-use-wal.md").write_text(depends, encoding="utf-8")
    made = {one.name: one.decision_id for one in import_folder(seat, str(folder))}
    nodes = seat.decisions.impact(made["0002-use-sqlite.md"]).nodes
    assert [node.id for node in nodes] == [made["0006-use-wal.md"]]


def test_our_own_records_can_be_imported(seat):
    from pathlib import Path

    outcomes = import_folder(seat, str(Path(__file__).parents[2] / "docs" / "decisions"))
    assert len(outcomes) >= 14
    assert all(one.decision_id for one in outcomes)
