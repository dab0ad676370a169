"""A folder of decision records goes in and comes out as it was."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from cli_session import Cli
from hypothesis import given, settings
from hypothesis import strategies as st

import mnemarch
from mnemarch import Actor, Claim, InvalidInput, NotAllowed, Reason, Scope
from mnemarch.interfaces import adr
from mnemarch.interfaces.adr import import_folder

RECORDS = Path(__file__).parents[1] / "fixtures" / "records"
NYGARD, MADR = ((RECORDS / name).read_text(encoding="utf-8") for name in ("nygard_form.md", "madr_money.md"))


def nygard(number, title, status="Accepted"):
    return NYGARD.format(number=number, title=title, status=status)


def put(folder, **texts):
    """Files with these texts, `n1_a` being 0001-a.md, and no others."""
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for name, text in texts.items():
        number, _, title = name.removeprefix("n").partition("_")
        (folder / f"{int(number):04}-{title}.md").write_bytes(text.encode())
    return str(folder)


def export_folder(seat, folder):
    """The names of the files of an export; it leaves none that should be written."""
    outcomes = adr.export_folder(seat, folder)
    assert {one.note for one in outcomes} <= {"written", "unchanged"}
    return [one.name for one in outcomes]


def titles(seat):
    return sorted(one.text.partition("\n")[0] for one in seat.decisions.active(limit=1_000))


def made(seat):
    return len(seat.units(kind="decision", limit=1_000))


def decided(seat, text, *, evidence=(), revises=None, reason="why"):
    cited = list(evidence) or [seat.decisions.add_evidence(f"seen: {text}").id]
    proposal = seat.decisions.propose(text, reason=Reason("risk", reason), evidence=cited, revises=revises)
    return seat.decisions.commit(proposal)


def read(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def assert_comes_out_as_it_is(seat, folder):
    """An export to another folder gives the same files, byte for byte."""
    out = f"{folder}-out-{len(os.listdir(Path(folder).parent))}"
    export_folder(seat, out)
    assert read(out) == read(folder)


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
    with mnemarch.open(tmp_path / "home") as memory:
        yield memory.seat(Actor.orchestrator("lead"), Scope(project="shop", task="T"))


def test_records_become_decisions_with_their_status_and_supersession(seat, folder):
    outcomes = {one.name: one for one in import_folder(seat, str(folder))}
    assert set(outcomes) == {path.name for path in folder.iterdir()} - {"README.md"}
    desk = seat.decisions
    assert sorted(one.text.partition("\n")[0] for one in desk.active()) == ["Keep money as integers", "use sqlite"]
    versions = desk.history(outcomes["0002-use-sqlite.md"].decision_id)
    assert [one.text.partition("\n")[0] for one in versions] == ["use files", "use sqlite"]
    for name in ("0003-use-tabs.md", "0004-use-xml.md"):
        assert outcomes[name].decision_id is None
        assert "in force, kept as evidence" in outcomes[name].note
    money = desk.get(outcomes["0005-integers.md"].decision_id)
    assert money.reason.summary == "Floats lose cents."
    assert money.text == 'Keep money as integers\n\nChosen option: "integers", because floats lose cents.'
    assert seat.get(money.evidence[0]).content == MADR, "the evidence is the record, word for word"


# What comes out


def dressed_as(text, dress):
    return {"LF": text, "CRLF": text.replace("\n", "\r\n"), "BOM": f"\ufeff{text}"}[dress]


def test_what_was_revised_since_says_so_when_it_comes_out(seat, folder, tmp_path):
    known = {one.name: one.decision_id for one in import_folder(seat, str(folder))}
    source = seat.decisions.get(known["0002-use-sqlite.md"]).evidence
    decided(seat, "use postgres", revises=known["0002-use-sqlite.md"], evidence=source)
    names = export_folder(seat, str(tmp_path / "out"))
    written = {name: content.decode() for name, content in read(tmp_path / "out").items()}
    assert [name for name in names if "postgres" in name] == ["0006-use-postgres.md"]
    assert "Accepted\n\nSupersedes [2. use sqlite](0002-use-sqlite.md)\n" in written["0006-use-postgres.md"]
    before = (folder / "0002-use-sqlite.md").read_text(encoding="utf-8")
    assert written["0002-use-sqlite.md"] == before.replace(
        "Accepted\n", "Superseded by [6. use postgres](0006-use-postgres.md)\n", 1
    )
    there, count = titles(seat), made(seat)
    import_folder(seat, str(tmp_path / "out"))
    assert (titles(seat), made(seat)) == (there, count), "what came out of a memory is no news to it"


ODD_TEXTS = ["결제는 세 번만 재시도한다", "12. is a number\n\nand 13 too", "x" * 300, "Retry: three\nSecond line"]
ODD_TEXTS += ["Use SQLite\n\nIn WAL mode", "word " * 60 + "THE END\nand more", "Use C#\n\n```\n# no heading\n```"]


@pytest.mark.parametrize("text", ODD_TEXTS)
@pytest.mark.parametrize(("strength", "domain"), [("normal", "global"), ("lock", "주문 처리")])
def test_decisions_made_here_come_out_and_go_in_again(seat, tmp_path, text, strength, domain):
    evidence = [seat.decisions.add_evidence("측정 결과").id]
    reason, firm = Reason("risk", "은행이 막는다", "느리다"), {"strength": strength, "domain": domain}
    proposal = seat.decisions.propose(text, reason=reason, evidence=evidence, **firm)
    seat.decisions.commit(proposal)
    (name,) = export_folder(seat, str(tmp_path / "out"))
    with mnemarch.open(tmp_path / "elsewhere") as memory:
        other = memory.seat(Actor.orchestrator("lead"), Scope(project="shop"))
        import_folder(other, str(tmp_path / "out"))
        (decision,) = other.decisions.active(domain)
        assert (decision.text, decision.strength, decision.unit.domain) == (text, strength, domain)
        assert (decision.reason.summary, decision.reason.tradeoff) == ("은행이 막는다", "느리다")
        export_folder(other, str(tmp_path / "again"))
    assert read(tmp_path / "again") == {name: (tmp_path / "out" / name).read_bytes()}


def test_every_decision_comes_out_once_with_its_own_text(seat, tmp_path):
    import_folder(seat, put(tmp_path / "adr", n1_a=nygard(1, "aa")))
    (source,) = seat.decisions.active()
    decided(seat, "Rests on the same, and is another", evidence=source.evidence)
    decided(seat, "Said once")
    export_folder(seat, str(tmp_path / "out"))
    texts = [content.decode() for content in read(tmp_path / "out").values()]
    assert len(texts) == len(seat.decisions.active()) == 3
    assert sum("Rests on the same, and is another" in text for text in texts) == 1
    assert sum("Said once" in text for text in texts) == 1
    assert sum("We will aa." in text for text in texts) == 1
    before, exhibits = titles(seat), len(seat.units(kind="evidence"))
    import_folder(seat, str(tmp_path / "out"))
    assert titles(seat) == before
    assert len(seat.units(kind="evidence")) == exhibits, "its own words are no evidence"


@pytest.mark.parametrize("tags", [None, 5, [1], ["adr"], ["adr", "file:.."], ["adr", "file:a/b\\\x00.md"], "adr"])
def test_nothing_that_somebody_keeps_as_evidence_stops_an_export(tmp_path, tags):
    with mnemarch.open(tmp_path / "home") as memory:
        agent = memory.seat(Actor.agent("coder"), Scope(project="shop", worktree="w", task="T"))
        # As a log of an earlier version may hold it.
        agent._intake().remember([Claim(content="noted", kind="evidence", attributes={"tags": tags})])
        seat = memory.seat(Actor.orchestrator("lead"), Scope(project="shop", worktree="w", task="T"))
        decided(seat, "aa")
        assert export_folder(seat, str(tmp_path / "out")) == ["0001-aa.md"]


def test_what_a_seat_cannot_see_does_not_stop_its_export(seat, tmp_path):
    with mnemarch.open(tmp_path / "shared") as memory:
        lead = memory.seat(Actor.orchestrator("lead"), Scope(project="shop", worktree="w", task="T"))
        decision = decided(lead, "aa")
        lead.erase(decision.evidence[0], "private")
        outside = memory.seat(Actor.orchestrator("lead"), Scope(project="shop"))
        assert export_folder(outside, str(tmp_path / "out")) == ["0001-aa.md"]


# Importing again


def test_a_copy_is_further_evidence_of_one_decision(seat, tmp_path):
    folder = put(tmp_path / "adr", n1_a=nygard(1, "aa"), n1_b=nygard(1, "aa"))
    first = [one.note for one in import_folder(seat, folder)]
    again = [one.note for one in import_folder(seat, folder)]
    assert (first, again) == (["decided", "says what 0001-a.md says"], ["unchanged"] * 2)
    assert titles(seat) == ["aa"]
    assert made(seat) == 1
    assert export_folder(seat, str(tmp_path / "out")) == ["0001-a.md", "0001-b.md"]


@pytest.mark.parametrize(
    ("old", "new"),
    [("costs time", "costs money"), ("We need to keep", "We want to keep"), ("We will aa", "We will AA")],
    ids=["consequences", "context", "only case"],
)
def test_an_edited_file_is_the_next_version_of_its_decision(seat, tmp_path, old, new):
    before, after = nygard(1, "aa"), nygard(1, "aa").replace(old, new)
    (first,) = import_folder(seat, put(tmp_path / "adr", n1_a=before))
    (second,) = import_folder(seat, put(tmp_path / "adr", n1_a=after))
    (decision,) = seat.decisions.active()
    assert (decision.id, decision.root_id, decision.version) == (second.decision_id, first.decision_id, 2)
    assert seat.get(decision.evidence[0]).content == after
    (again,) = import_folder(seat, put(tmp_path / "adr", n1_a=after))
    assert (again.decision_id, again.note) == (second.decision_id, "unchanged")
    export_folder(seat, str(tmp_path / "out"))
    assert read(tmp_path / "out") == {"0001-a.md": after.encode()}
    import_folder(seat, put(tmp_path / "adr", n1_a=before))
    assert [one.version for one in seat.decisions.active()] == [3], "what came back is news"
    import_folder(seat, put(tmp_path / "adr", n1_a=before))
    assert made(seat) == 3
    export_folder(seat, str(tmp_path / "back"))
    assert read(tmp_path / "back") == {"0001-a.md": before.encode()}


def test_a_file_that_says_nothing_new_changes_nothing_that_was_decided_since(seat, tmp_path):
    folder = put(tmp_path / "adr", n1_a=nygard(1, "aa"), n2_b=nygard(2, "bb"))
    known = {one.name: one.decision_id for one in import_folder(seat, folder)}
    decided(seat, "other words", revises=known["0001-a.md"])
    seat.reject(known["0002-b.md"], "no more")
    notes = [one.note for one in import_folder(seat, folder)]
    assert titles(seat) == ["other words"]
    assert notes == ["unchanged; it was decided otherwise since"] * 2
    import_folder(seat, put(tmp_path / "adr", n1_a=nygard(1, "a1"), n2_b=nygard(2, "b1")))
    assert titles(seat) == ["a1", "b1"]


def test_what_was_decided_here_since_stays_when_another_record_supersedes_its_file(seat, tmp_path):
    known = import_folder(seat, put(tmp_path / "adr", n1_a=nygard(1, "aa"), n2_b=nygard(2, "bb")))
    decided(seat, "other words", revises=known[0].decision_id)
    superseding = nygard(2, "bb", "Accepted\n\nSupersedes [1. aa](0001-a.md)")
    outcomes = import_folder(seat, put(tmp_path / "adr", n1_a=nygard(1, "aa"), n2_b=superseding))
    assert titles(seat) == ["bb", "other words"]
    assert "still holds" in outcomes[0].note


def test_an_exported_file_that_was_edited_is_the_next_version(seat, tmp_path):
    root = decided(seat, "Use SQLite").id
    (name,) = export_folder(seat, str(tmp_path / "out"))
    path = tmp_path / "out" / name
    path.write_text(path.read_text(encoding="utf-8").replace("why", "it is there"), encoding="utf-8")
    for _ in range(2):
        import_folder(seat, str(tmp_path / "out"))
        (decision,) = seat.decisions.active()
        assert (decision.root_id, decision.version, decision.reason.summary) == (root, 2, "it is there")
    export_folder(seat, str(tmp_path / "again"))
    import_folder(seat, str(tmp_path / "again"))
    assert made(seat) == 2


@pytest.mark.parametrize("status", ["Deprecated", "Rejected", "Superseded by ADR-9", "Proposed", "폐기됨", "Withdrawn"])
def test_a_status_that_ends_a_record_ends_its_decision(seat, tmp_path, status):
    (first,) = import_folder(seat, put(tmp_path / "adr", n1_a=nygard(1, "aa")))
    ended = nygard(1, "aa", status)
    for _ in range(2):
        (outcome,) = import_folder(seat, put(tmp_path / "adr", n1_a=ended))
        assert outcome.decision_id == first.decision_id
        assert "in force" in outcome.note
        assert seat.decisions.active() == []
    export_folder(seat, str(tmp_path / "out"))
    assert read(tmp_path / "out") == {"0001-a.md": ended.encode()}
    import_folder(seat, put(tmp_path / "adr", n1_a=nygard(1, "aa")))
    assert titles(seat) == ["aa"]


def test_a_status_put_on_an_exported_file_by_hand_may_go_back_too(seat, tmp_path):
    decided(seat, "Use SQLite")
    (name,) = export_folder(seat, str(tmp_path / "out"))
    path = tmp_path / "out" / name
    accepted = path.read_text(encoding="utf-8")
    for text, there in [(accepted.replace("Accepted", "Deprecated"), []), (accepted, ["Use SQLite"])] * 2:
        path.write_text(text, encoding="utf-8")
        import_folder(seat, str(tmp_path / "out"))
        assert titles(seat) == there


# What was not done


def axis_of(seat, decision):
    """The same, but an axis, which the guardian guards."""
    desk = seat.decisions
    return desk.commit(
        desk.propose(
            decision.text,
            strength="axis",
            reason=Reason("risk", "firm"),
            evidence=decision.evidence,
            revises=decision.id,
        )
    )


def test_what_was_blocked_is_said_at_every_import_until_a_person_does_it(tmp_path):
    with mnemarch.open(tmp_path / "home") as memory:
        seat = memory.seat(Actor.orchestrator("lead"), Scope(project="shop"))
        person = memory.seat(Actor.human("kim"), Scope(project="shop"))
        import_folder(seat, put(tmp_path / "adr", n1_a=nygard(1, "aa")))
        axis = axis_of(person, seat.decisions.active()[0])
        edited = nygard(1, "aa").replace("We will aa", "We will AA")
        folder = put(tmp_path / "adr", n1_a=edited)
        for text, who in [(nygard(1, "aa", "Deprecated"), seat), (edited, seat), (edited, person), (edited, seat)]:
            (outcome,) = import_folder(who, put(tmp_path / "adr", n1_a=text))
            assert "not done" in outcome.note
            assert [one.id for one in seat.decisions.active()] == [axis.id]
        (left,) = adr.export_folder(seat, folder)
        assert left.note == "unchanged", "what the file says is not done, and stays there"
        assert read(folder) == {"0001-a.md": edited.encode()}
        assert "not done" in import_folder(seat, folder, override="I may")[0].note
        (outcome,) = import_folder(person, folder, override="the board said so")
        (decision,) = seat.decisions.active()
        assert (outcome.note, decision.text, decision.override) == ("revised", "aa\n\nWe will AA.", "the board said so")
        assert (decision.strength, decision.root_id) == ("axis", axis.root_id)
        assert import_folder(seat, folder)[0].note == "unchanged"
        put(tmp_path / "adr", n1_a=nygard(1, "aa"), n2_b=nygard(2, "bb"))
        import_folder(person, folder, override="back")
        (new,) = (one for one in seat.decisions.active() if one.text.startswith("bb"))
        assert new.override is None, "what nothing blocks needs no reason to be done"


def test_a_disk_that_is_full_leaves_every_record_as_it_was(seat, tmp_path, monkeypatch):
    folder = put(tmp_path / "adr", n1_a=nygard(1, "aa"), n2_b=nygard(2, "bb"))
    import_folder(seat, folder)
    for one in seat.decisions.active():
        seat.reject(one.id, "no longer")
    before = read(folder)

    def no_room(_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", no_room)
        with pytest.raises(OSError, match="No space left"):
            adr.export_folder(seat, folder)
    assert read(folder) == before
    export_folder(seat, folder)
    assert read(folder).keys() == before.keys()
    assert read(folder) != before


def test_from_the_command_line_a_person_gives_the_reason_and_export_says_what_it_left(tmp_path, monkeypatch, capsys):
    cli, lead, ada = Cli(tmp_path, monkeypatch, capsys), ("--actor", "orchestrator:lead"), ("--actor", "human:ada")
    folder = put(tmp_path / "adr", n1_a=nygard(1, "aa"))
    (first,) = cli.ok("decisions", "import", folder, *lead)
    shown = cli.ok("decisions", "show", first["decision_id"])
    why = ("--type", "risk", "--reason", "firm", "--evidence", shown["evidence"][0])
    cli.ok("decide", shown["text"], "--strength", "axis", "--revises", shown["id"], *why, *ada)
    put(tmp_path / "adr", n1_a=nygard(1, "a1"))
    assert "not done" in cli("decisions", "import", folder, *ada).out
    (left,) = cli.ok("decisions", "export", folder)
    assert left["note"] == "unchanged"
    (done,) = cli.ok("decisions", "import", folder, "--override", "the board said so", *ada)
    assert done["note"] == "revised"


def test_what_a_blocked_record_would_supersede_stays_and_is_said_again(tmp_path):
    with mnemarch.open(tmp_path / "home") as memory:
        seat = memory.seat(Actor.orchestrator("lead"), Scope(project="shop"))
        person = memory.seat(Actor.human("kim"), Scope(project="shop"))
        import_folder(seat, put(tmp_path / "adr", n1_a=nygard(1, "aa"), n2_b=nygard(2, "bb")))
        for one in seat.decisions.active():
            axis_of(person, one)
        by = "Superseded by [3. cc](0003-c.md)"
        folder = put(tmp_path / "adr", n1_a=nygard(1, "aa", by), n2_b=nygard(2, "bb", by), n3_c=nygard(3, "cc"))
        for who in (seat, person):
            assert "not done" in {one.name: one.note for one in import_folder(who, folder)}["0003-c.md"]
            assert titles(seat) == ["aa", "bb"]
        import_folder(person, folder, override="new law")
        assert titles(seat) == ["cc"]
        export_folder(seat, str(tmp_path / "out"))
        assert read(tmp_path / "out") == read(tmp_path / "adr")


def test_an_import_that_was_stopped_is_taken_up_again(seat, tmp_path):
    import_folder(seat, put(tmp_path / "adr", n1_a=nygard(1, "aa")))
    edited, new = nygard(1, "a1"), nygard(2, "bb")
    for name, text in {"0001-a.md": edited, "0002-b.md": new}.items():
        seat.decisions.add_evidence(text, tags=["adr", f"file:{name}"], level="project")
    import_folder(seat, put(tmp_path / "adr", n1_a=edited, n2_b=new))
    assert titles(seat) == ["a1", "bb"]
    assert made(seat) == 3


def test_what_a_task_keeps_as_a_file_is_no_file(tmp_path):
    with mnemarch.open(tmp_path / "home") as memory:
        where = Scope(project="shop", worktree="w", task="T")
        seat = memory.seat(Actor.orchestrator("lead"), where)
        import_folder(seat, put(tmp_path / "adr", n1_a=nygard(1, "aa")))
        edited = nygard(1, "a1")
        memory.seat(Actor.agent("coder"), where).decisions.add_evidence(
            edited, tags=["adr", "file:0001-a.md", "after:"]
        )
        assert export_folder(seat, str(tmp_path / "out")) == ["0001-a.md"]
        import_folder(seat, put(tmp_path / "adr", n1_a=edited))
        assert titles(seat) == ["a1"]


# Files that say the same, or are gone


def test_a_record_that_says_the_same_in_another_file_is_further_evidence(seat, tmp_path):
    import_folder(seat, put(tmp_path / "adr", n1_a=nygard(1, "aa")))
    import_folder(seat, put(tmp_path / "adr", n1_a=nygard(1, "aa"), n2_a=nygard(2, "aa").replace("time", "money")))
    (decision,) = seat.decisions.active()
    assert [seat.get(each).content.count("money") for each in decision.evidence] == [0, 1]
    assert titles(seat) == ["aa"]


def test_a_file_that_is_gone_is_told_and_what_it_says_still_holds(seat, tmp_path):
    import_folder(seat, put(tmp_path / "adr", n1_a=nygard(1, "aa"), n2_b=nygard(2, "bb"), n3_c=nygard(3, "cc")))
    folder = put(tmp_path / "adr", n2_b=nygard(2, "bb"), n3_c="")
    for _ in range(2):
        notes = {one.name: one.note for one in import_folder(seat, folder)}
        assert notes == {"0001-a.md": "no longer in the folder, but still in force", "0002-b.md": "unchanged"}
        assert titles(seat) == ["aa", "bb", "cc"]
    assert [one.name for one in import_folder(seat, put(tmp_path / "other", n9_z=nygard(9, "zz")))] == ["0009-z.md"]


def test_a_decision_whose_evidence_was_erased_is_known_again(seat, tmp_path):
    import_folder(seat, put(tmp_path / "adr", n1_a=nygard(1, "aa")))
    (first,) = seat.decisions.active()
    seat.erase(first.evidence[0], "private")
    for _ in range(2):
        import_folder(seat, str(tmp_path / "adr"))
        assert [one.id for one in seat.decisions.active()] == [first.id]
    export_folder(seat, str(tmp_path / "out"))
    assert (tmp_path / "out" / "0001-a.md").read_bytes() == (tmp_path / "adr" / "0001-a.md").read_bytes()


# Who takes the place of whom


def test_each_of_several_predecessors_ends(seat, tmp_path):
    by = "Superseded by [3. cc](0003-c.md)"
    folder = put(tmp_path / "adr", n1_a=nygard(1, "aa", by), n2_b=nygard(2, "bb", by), n3_c=nygard(3, "cc"))
    for _ in range(2):
        known = {one.name: one.decision_id for one in import_folder(seat, folder)}
        assert titles(seat) == ["cc"]
    assert [one.text[:2] for one in seat.decisions.history(known["0003-c.md"])] == ["aa", "cc"]
    assert "superseded by 0003-c.md" in str(seat.get(known["0002-b.md"]).archive_reason)
    assert_comes_out_as_it_is(seat, tmp_path / "adr")


def test_two_successors_both_hold(seat, tmp_path):
    by = "Superseded by [2](0002-b.md) and [3](0003-c.md)"
    folder = put(tmp_path / "adr", n1_a=nygard(1, "aa", by), n2_b=nygard(2, "bb"), n3_c=nygard(3, "cc"))
    for _ in range(2):
        import_folder(seat, folder)
        assert titles(seat) == ["bb", "cc"]
    assert_comes_out_as_it_is(seat, tmp_path / "adr")


@pytest.mark.parametrize(
    ("first", "second", "noted"),
    [
        ("Superseded by ADR-2", "Proposed", "superseded: not in force"),
        ("Superseded by ADR-9", "Accepted", "superseded: not in force"),
        ("Superseded", "Accepted", "superseded: not in force"),
        ("Superseded by ADR-2", "Deprecated", "superseded by 0002"),
    ],
    ids=["proposed", "missing", "unsaid", "deprecated"],
)
def test_a_superseded_record_is_not_in_force_whatever_took_its_place(seat, tmp_path, first, second, noted):
    folder = put(tmp_path / "adr", n1_a=nygard(1, "aa", first), n2_b=nygard(2, "bb", second))
    for _ in range(2):
        outcomes = {one.name: one for one in import_folder(seat, folder)}
        assert noted in outcomes["0001-a.md"].note
        assert titles(seat) == (["bb"] if second == "Accepted" else [])
    assert_comes_out_as_it_is(seat, tmp_path / "adr")


def test_a_circle_is_refused_by_its_names(seat, tmp_path):
    told = {f"n{old}_a": nygard(old, "aa", f"Superseded by ADR-{new}") for old, new in ((1, 2), (2, 1))}
    with pytest.raises(InvalidInput, match=r"circle: 000\d-a\.md, 000\d-a\.md"):
        import_folder(seat, put(tmp_path / "adr", **told))
    assert made(seat) == 0


def test_a_record_that_was_in_force_ends_when_another_comes_to_supersede_it(seat, tmp_path):
    old, new = nygard(1, "aa"), nygard(2, "bb")
    import_folder(seat, put(tmp_path / "adr", n1_a=old, n2_b=new))
    superseding = nygard(2, "bb", "Accepted\n\nSupersedes [1. aa](0001-a.md)")
    for _ in range(2):
        import_folder(seat, put(tmp_path / "adr", n1_a=old, n2_b=superseding))
        assert titles(seat) == ["bb"]
    assert made(seat) == 2
    assert_comes_out_as_it_is(seat, tmp_path / "adr")


# A folder that was exported before


def test_an_exported_folder_can_be_brought_up_to_date(seat, folder, tmp_path):
    import_folder(seat, str(folder))
    out = str(tmp_path / "out")
    native = decided(seat, "cache pages")
    names = export_folder(seat, out)
    known = {one.name: one.decision_id for one in import_folder(seat, out)}
    decided(seat, "cache rows", revises=native.id)
    seat.decisions.relate(known["0005-integers.md"], "DEPENDS_ON", known["0002-use-sqlite.md"])
    notes = {one.name: one.note for one in adr.export_folder(seat, out)}
    assert notes == dict.fromkeys(names, "unchanged") | {"0006-cache-pages.md": "written"}
    assert "# 6. cache rows" in (tmp_path / "out" / "0006-cache-pages.md").read_text(encoding="utf-8")
    seat.reject(known["0005-integers.md"], "no more")
    import_folder(seat, put(tmp_path / "more", n9_x=nygard(9, "xx")))
    decided(seat, "newest")
    assert export_folder(seat, out) == [*names, "0009-x.md", "0010-newest.md"]
    there, count = titles(seat), made(seat)
    import_folder(seat, out)
    assert (titles(seat), made(seat)) == (there, count)
    with mnemarch.open(tmp_path / "elsewhere") as memory:
        other = memory.seat(Actor.orchestrator("lead"), Scope(project="shop"))
        import_folder(other, out)
        assert titles(other) == there


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Accepted", "Withdrawn"),
        ("Accepted", "Accepted by the board"),
        ("Accepted", "Accepted\n\nDepends on [9. x](0009-x.md)"),
        ("why", "it is there"),
        ("cache pages\n", "cache pages\n\nA remark.\n"),
    ],
    ids=["status", "remark on the status", "link", "reason", "remark"],
)
@pytest.mark.parametrize("name", ["0001-a.md", "0002-cache-pages.md"])
def test_what_somebody_changed_in_an_exported_folder_is_left_and_said(seat, tmp_path, name, old, new):
    text = nygard(1, "cache pages").replace("We need", "why")
    import_folder(seat, put(tmp_path / "adr", n1_a=text))
    decided(seat, "cache pages\n\nof memory")
    export_folder(seat, str(tmp_path / "out"))
    path = tmp_path / "out" / name
    changed = path.read_text(encoding="utf-8").replace(old, new, 1)
    assert changed != path.read_text(encoding="utf-8")
    path.write_text(changed, encoding="utf-8")
    for one in seat.decisions.active():
        seat.reject(one.id, "no more")
    notes = {one.name: one.note for one in adr.export_folder(seat, str(tmp_path / "out"))}
    assert [each for each, note in notes.items() if note != "written"] == [name]
    assert path.read_text(encoding="utf-8") == changed
    (other,) = {"0001-a.md", "0002-cache-pages.md"} - {name}
    assert "Deprecated" in (tmp_path / "out" / other).read_text(encoding="utf-8"), "the rest goes on"


def test_what_was_renamed_in_an_exported_folder_is_not_written_again_under_its_old_name(seat, tmp_path):
    import_folder(seat, put(tmp_path / "adr", n1_a=nygard(1, "aa")))
    native = decided(seat, "bb")
    export_folder(seat, str(tmp_path / "out"))
    for old, new in (("0001-a.md", "0001-alpha.md"), ("0002-bb.md", "0002-beta.md")):
        (tmp_path / "out" / old).rename(tmp_path / "out" / new)
    seat.reject(native.id, "no more")
    export_folder(seat, str(tmp_path / "out"))
    assert set(read(tmp_path / "out")) == {"0001-alpha.md", "0002-beta.md"}
    import_folder(seat, str(tmp_path / "out"))
    assert titles(seat) == ["aa"], "a renamed file says what the old one said"


# Trouble


def test_trouble_with_folders_is_told(seat, tmp_path):
    (tmp_path / "file").write_text("no folder")
    for act, place in ((import_folder, "nowhere"), (import_folder, "file"), (export_folder, "file")):
        with pytest.raises(InvalidInput, match="is not a folder"):
            act(seat, str(tmp_path / place))


def test_one_file_that_cannot_be_read_does_not_stop_the_others(seat, folder):
    (folder / "0006-latin.md").write_bytes("# 6. caf\xe9\n".encode("latin-1"))
    (folder / "0007-huge.md").write_text(nygard(7, "huge") + "x " * 600_000)
    (folder / "0008-long.md").write_text(nygard(8, "long") + "x " * 40_000)
    (folder / "README.md").write_bytes("caf\xe9".encode("latin-1"))
    outcomes = {one.name: one for one in import_folder(seat, str(folder))}
    assert titles(seat) == ["Keep money as integers", "use sqlite"]
    for name in ("0006-latin.md", "0007-huge.md", "0008-long.md"):
        assert outcomes[name].decision_id is None
        assert outcomes[name].note.startswith("not ")
    assert "README.md" not in outcomes


def test_who_may_not_decide_for_the_project_may_not_import(folder, tmp_path):
    with mnemarch.open(tmp_path / "home") as memory:
        agent = memory.seat(Actor.agent("coder"), Scope(project="shop", worktree="w", task="T"))
        with pytest.raises(NotAllowed):
            import_folder(agent, str(folder))


def test_a_secret_in_a_record_is_not_kept_and_the_record_is_known_again(seat, tmp_path):
    text = nygard(1, "aa").replace("costs time", "costs ghp_abcdefghijklmnopqrstuvwxyz0123456789")
    folder = put(tmp_path / "adr", n1_a=text)
    import_folder(seat, folder)
    import_folder(seat, folder)
    assert made(seat) == 1


# Relations


def test_our_own_records_can_be_imported_and_come_out_as_they_are(seat, tmp_path):
    ours = Path(__file__).parents[2] / "docs" / "decisions"
    outcomes = import_folder(seat, str(ours))
    assert len(outcomes) >= 14
    assert all(one.decision_id for one in outcomes)
    export_folder(seat, str(tmp_path / "out"))
    assert read(tmp_path / "out") == {one.name: (ours / one.name).read_bytes() for one in outcomes}


STATUSES = ["Accepted", "Accepted", "Approved", "Proposed", "Deprecated", "Rejected", "Superseded by [x]({}.md)"]
LINKS = ["Supersedes", "Amends"]
files = st.tuples(
    st.sampled_from(STATUSES),
    st.lists(st.tuples(st.sampled_from(LINKS), st.integers(1, 5)), max_size=2),
    st.integers(1, 6),
    st.sampled_from(["LF", "CRLF", "BOM"]),
)


@given(st.lists(files, min_size=1, max_size=5))
@pytest.mark.long
@settings(max_examples=40)
def test_any_folder_comes_out_as_it_went_in_and_is_no_news_again(tmp_path_factory, folder):
    home = tmp_path_factory.mktemp("folder")
    for number, (status, links, other, dress) in enumerate(folder, start=1):
        told = [status.format(max(other, number + 1))]  # No circles: those are refused.
        told += [f"{relation} [y]({min(end, number - 1)}.md)" for relation, end in links]
        text = dressed_as(nygard(number, f"r{number}", "\n\n".join(told)), dress)
        (home / f"{number}.md").write_bytes(text.encode())
    with mnemarch.open(":memory:") as memory, mnemarch.open(":memory:") as elsewhere:
        seat = memory.seat(Actor.orchestrator("lead"), Scope(project="shop"))
        import_folder(seat, str(home))
        before, events = titles(seat), memory.stats().events
        import_folder(memory.seat(Actor.human("kim"), Scope(project="shop", worktree="w")), str(home))
        assert (titles(seat), memory.stats().events) == (before, events)
        export_folder(seat, str(home / "out"))
        assert read(home / "out") == {path.name: path.read_bytes() for path in home.glob("*.md")}
        for decision in seat.decisions.active()[:1]:
            decided(seat, "made here", revises=decision.id, evidence=decision.evidence)
        before, count = titles(seat), made(seat)
        export_folder(seat, str(home / "changed"))
        import_folder(seat, str(home / "changed"))
        assert (titles(seat), made(seat)) == (before, count)
        other = elsewhere.seat(Actor.orchestrator("lead"), Scope(project="shop"))
        import_folder(other, str(home / "changed"))
        assert titles(other) == before


states = st.lists(
    st.tuples(st.sampled_from(["Accepted", "Deprecated", "Proposed"]), st.sampled_from(["time", "money"])),
    min_size=2,
    max_size=2,
)


@given(st.lists(states, min_size=2, max_size=4))
@pytest.mark.long
@settings(max_examples=25)
def test_whatever_a_folder_went_through_it_holds_what_it_says_now(tmp_path_factory, history):
    """Edited, ended and put back, the memory holds what another does that reads it for the first time."""
    home = tmp_path_factory.mktemp("folder")
    with mnemarch.open(":memory:") as memory:
        seat = memory.seat(Actor.orchestrator("lead"), Scope(project="shop"))
        for turn, folder in enumerate(history):
            texts = {
                f"n{number}_r{number}": nygard(number, f"r{number}", status).replace("time", cost)
                for number, (status, cost) in enumerate(folder, start=1)
            }
            import_folder(seat, put(home / "adr", **texts))
            with mnemarch.open(":memory:") as fresh:
                other = fresh.seat(Actor.orchestrator("lead"), Scope(project="shop"))
                import_folder(other, str(home / "adr"))
                assert titles(seat) == titles(other)
            events = memory.stats().events
            import_folder(seat, str(home / "adr"))
            assert memory.stats().events == events
            export_folder(seat, str(home / str(turn)))
            assert read(home / str(turn)) == read(home / "adr")


def test_a_record_is_handed_out_beside_its_decision_only_if_it_has_more_of_the_questions_words(seat, tmp_path):
    record = nygard(1, "store money in cents").replace("It costs time", "Two engineers know how")
    record += "\n## Considered options\n\nThe bank sends decimals.\n"
    import_folder(seat, put(tmp_path / "adr", n1_money=record))
    for question, shows_reason in (("how do we store money?", False), ("which engineers know it?", True)):
        found = seat.recall(question)
        assert [str(item.unit.kind) for item in found.items] == ["decision"]
        assert ("Two engineers know how" in str(found.items[0].notes)) is shows_reason
        assert {one.reason for one in found.withheld} == {"the record of a decision that is listed"}
    for question, kinds in (("money", ["evidence"]), ("who sends decimals?", None)):
        assert str(seat.recall(question, kinds=kinds).items[0].unit.kind) == "evidence"
    # A context lists the decision in any case, and its record only for the answer that it has alone.
    assert "The bank sends decimals" in seat.context("who sends decimals?").text
    assert "The bank sends" not in seat.context("how do we store money?").text


def test_a_record_that_is_not_in_force_is_no_knowledge(seat, folder):
    import_folder(seat, str(folder))
    for question in ("use tabs", "use xml", "use files"):
        records = [item.unit.content for item in seat.context(question).items if item.unit.kind == "evidence"]
        assert all("Accepted" in record for record in records), records
    left = {one.reason for one in seat.recall("tabs").withheld}
    assert "archived: rejected: 0003-use-tabs.md: rejected" in left
    (folder / "README.md").unlink()
    assert_comes_out_as_it_is(seat, folder)
    # A record that holds again is handed out again, with what it says now.
    path = folder / "0003-use-tabs.md"
    path.write_text(nygard(3, "use tabs", "Accepted"), encoding="utf-8")
    import_folder(seat, str(folder))
    assert "Accepted" in seat.recall("use tabs", kinds=["evidence"]).items[0].unit.content
    notes = {one.note for one in import_folder(seat, str(folder))}
    assert not any("not done" in note for note in notes), notes
    edited = nygard(3, "use tabs").replace("costs time", "costs a pipeline")
    path.write_text(edited, encoding="utf-8")
    import_folder(seat, str(folder))
    records = [item.unit.content for item in seat.recall("use tabs", kinds=["evidence"]).items]
    assert [record for record in records if "tabs" in record] == [edited]
