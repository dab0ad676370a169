"""Every command does its work, for people and for programs."""

from __future__ import annotations

import json

import pytest
from cli_session import TEST, Cli

from fixtures.cases import cases
from mnemarch.interfaces.plain_commands import sections
from mnemarch.model.stamps import short_id

# Some have tests of their own: one takes long, one serves until it is ended, one answers a host and no person.
COMMANDS = sorted({name for names in sections().values() for name in names} - {"demo", "serve", "hook"})


PERSON, LEAD = ("--actor", "human:ada"), ("--actor", "orchestrator:lead")
BECAUSE = ("--reason", "because")
DECIDE = ("decide", "Use SQLite", "--type", "risk", "--reason", "one file", "--snapshot", "the bench", *LEAD)
FAIL = ("fail", "TimeoutError: the pool is empty", "--approach", "raise the pool size")
# A command line that succeeds once a unit is there. UNIT and RIVAL are units that contradict each other, CONFLICT is
# their dispute, DECISION a decision.
HAPPY = {argv[0]: argv for argv in (*cases("cli_commands", "happy"), FAIL, DECIDE)}
# What has to be done before.
FIRST = {
    "attempts": FAIL,
    "decisions": DECIDE,
    "promote": ("approve", "UNIT", *PERSON),
    "revive": ("archive", "UNIT", *BECAUSE, *PERSON),
    "import": ("export", "copy"),
    "uninstall": ("install", "claude-code"),
}


def argv_for(cli: Cli, command: str) -> list[str]:
    """A command line that succeeds, with whatever has to be there first."""
    first, argv = list(FIRST.get(command, ())), list(HAPPY.get(command, (command,)))
    for word, make in (
        ("UNIT", lambda: cli.unit_at("worktree")),
        ("RIVAL", lambda: cli.unit_at("worktree", "Checkout retries four times.")),
        ("CONFLICT", lambda: cli.ok("conflicts")[0]["id"]),
        ("DECISION", lambda: cli.ok(*DECIDE)["id"]),
        ("RECEIPT", lambda: json.dumps(cli.ok("log", "thought", "x"))),
        ("TEST", lambda: TEST),
    ):
        if word == "UNIT" or word in argv:
            id = make()
            first, argv = ([id if each == word else each for each in words] for words in (first, argv))
    if first:
        cli.ok(*first)
    if command == "undo":  # Its --actor is who is undone.
        cli.monkeypatch.setenv("MNEMARCH_ACTOR", "human:ada")
    return argv


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_answers_a_person_in_words(cli, command):
    run = cli(*argv_for(cli, command))
    assert run.exit_code == 0, run
    assert run.out.strip()
    # What is said of a context is no part of it.
    assert bool(run.err) == (command == "context")


@pytest.mark.parametrize("argv", [["log", "thought", "-"], ["log", "thought"], ["remember", "-"], ["remember"]])
def test_text_is_read_from_standard_input(cli, argv):
    cli.ok(*argv, stdin="재시도는 세 번\n".encode())
    cli.ok("export", "log.jsonl")
    assert '재시도는 세 번\\"' in (cli.home / "log.jsonl").read_text()


def test_a_batch_of_log_entries_is_stored_whole_or_not_at_all(cli):
    lines = b'{"kind": "thought", "text": "one"}\n\n{"kind": "thought", "text": "two", "data": {"n": 2}, "key": "k"}\n'
    assert len(cli.ok("log", "--batch", stdin=lines)) == 2
    run = cli("log", "--batch", stdin=b'{"kind": "thought", "text": "three"}\n{"kind": "thought", "text": ""}\n')
    assert run.exit_code == 2
    assert cli.ok("stats")["events"] == 2


def test_a_batch_of_claims_answers_each_in_order(cli):
    claims = [
        {"content": "Checkout retries three times.", "citations": [f"test:{TEST}"], "importance": 0.9},
        {"content": "Checkout retries three times!", "kind": "fact"},
        {"content": "Every shop charges first.", "level": "project"},
    ]
    run = cli("remember", "--batch", "--json", stdin="\n".join(map(json.dumps, claims)).encode())
    first, second, third = run.json
    assert run.exit_code == 1
    assert second["merged"]
    assert second["unit"]["id"] == first["unit"]["id"]
    assert third["rule"] == "G23"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{", "Line 1 is not valid JSON"),
        (b"[]", "Line 1 must be a JSON object"),
        (b'{"content": "x", "colour": "red"}', "Line 1: no claim"),
        (b'{"content": "x", "citations": "test:t"}', "Line 1: citations must be a list"),
        (b'{"content": "x", "occurred_at": "yesterday"}', "Line 1: occurred_at"),
        (b'{"content": "\xff"}', "Line 1 is not valid UTF-8"),
    ],
)
def test_a_bad_line_of_a_batch_is_named_and_nothing_is_stored(cli, line, says):
    run = cli.begun()("remember", "--batch", stdin=line)
    assert run.exit_code == 2
    assert says in run.err
    assert cli.ok("stats")["events"] == 0


def test_an_option_beside_a_batch_is_refused_not_ignored(cli):
    run = cli("remember", "--batch", "--level", "task", stdin=b'{"content": "x"}')
    assert run.exit_code == 2
    assert "level" in run.err


def test_a_claim_says_what_it_contradicts(cli):
    cli.ok("remember", "Checkout retries 3 times")
    run = cli("remember", "Checkout retries 5 times")
    assert run.exit_code == 0
    assert "contradicts" in run.out
    (dispute,) = cli.ok("conflicts")
    assert short_id(dispute["id"]) in run.out
    assert dispute["kind"] == "contradicts"


def test_a_secret_is_taken_out_and_the_person_is_told(cli):
    secret = "AKIA" + "Z2J4K6M8P3Q5R7T9"
    run = cli("log", "tool_output", f"export KEY={secret}")
    assert "redacted" in run.out
    assert not any(secret.encode() in path.read_bytes() for path in cli.home.rglob("*") if path.is_file())


def test_what_a_person_remembers_is_verified_for_the_project_without_options(cli):
    unit = cli.ok("remember", "We deploy on Tuesdays", "--actor", "human:ada")["unit"]
    assert (unit["status"], unit["scope"]["worktree"]) == ("verified", None)
    assert "[VERIFIED by ada] We deploy on Tuesdays" in cli("recall", "when do we deploy?").out
    assert cli("remember", "We deploy daily", "--level", "task", "--actor", "human:ada").exit_code == 1


def test_recall_gives_reasons_and_says_what_was_withheld(cli):
    old = cli.unit_at("worktree")
    new = cli.unit_at("worktree", "Checkout retries with growing pauses.")
    cli.ok("supersede", new, old, "--reason", "newer", "--actor", "human:ada")
    found = cli.ok("recall", "how does checkout retry?")
    assert set(found) >= {"items", "withheld", "intent", "notes"}
    assert [item["unit"]["id"] for item in found["items"]] == [new]
    assert {"similarity", "recency", "importance"} <= found["items"][0]["why"].keys()
    assert found["withheld"] == [{"unit_id": old, "reason": f"superseded by {new}"}]
    said = cli("recall", "how does checkout retry?").out
    assert "[VERIFIED, reported] Checkout retries with growing pauses." in said
    assert f"{short_id(old)}  superseded by {short_id(new)}" in said


def test_a_question_without_an_answer_is_answered_in_words(cli):
    run = cli("recall", "quantum entanglement")
    assert run.exit_code == 0
    assert "Nothing found" in run.out


def test_the_gate_says_what_it_raised_and_what_it_kept_down(cli):
    cli.ok("remember", "Checkout retries three times.", "--cite", f"test:{TEST}")
    cli.ok("remember", "The cache is warm.")
    run = cli("verify", "--passed", "--test", TEST)
    assert run.exit_code == 0
    assert "raised" in run.out
    assert "by S10.1" in run.out


def test_an_analysis_can_be_read_from_a_file(cli):
    (cli.home / "analysis.json").write_text('{"critique": "went well", "score": 0.8}')
    judged = cli.ok("verify", "--passed", "--analysis", "@analysis.json")
    assert "went well" in cli.ok("get", judged["episode_id"])["content"]


def test_the_story_of_a_unit_names_who_why_and_how_sure(cli):
    unit = cli.unit_at("worktree")
    cli.ok("approve", unit, "--actor", "human:ada")
    told = cli("explain", unit).out
    for piece in ("agent:w", f"✓ test:{TEST}", "✓ human:ada", "S10.2", "human_approved by human:ada", "unit.approved"):
        assert piece in told


def test_a_change_from_a_stale_version_is_a_conflict_that_carries_both(cli):
    unit = cli.unit_at("worktree")
    seen = cli.ok("get", unit)["version"]
    cli.ok("approve", unit, "--actor", "human:ada", "--expected-version", str(seen))
    run = cli("approve", unit, "--actor", "orchestrator:lead", "--expected-version", str(seen), "--json")
    error = run.json["error"]
    assert run.exit_code == 1
    assert error["type"] == "Conflict"
    assert error["expected_version"] == seen
    assert error["actual_version"] == error["current"]["version"] > seen
    assert error["current"]["id"] == unit


@pytest.mark.parametrize(
    "command",
    [
        *("promote", "cite", "use", "validate", "approve", "reject", "resolve"),
        *("supersede", "archive", "revive", "erase"),
    ],
)
def test_every_verb_that_changes_a_unit_can_name_the_version_it_saw(cli, command):
    run = cli(*argv_for(cli, command), "--expected-version", "99", "--json")
    assert run.exit_code == 1
    assert run.json["error"]["type"] == "Conflict"


def test_erase_shows_the_copies_and_needs_a_yes_where_nobody_can_be_asked(cli):
    unit = cli.ok("remember", "The till of shop 7 opens with 4711")["unit"]["id"]
    for n in range(25):
        cli.ok("log", "note", f"{n}: the till of shop 7 opens with 4711", "--task", f"T-{n}")
    erase = ("erase", unit[24:], "--reason", "asked", "--actor", "human:ada")
    run = cli(*erase)
    assert run.exit_code == 1
    assert "25 copies of the text elsewhere" in run.out
    assert "and 5 more" in run.out
    assert "agent:cli" in run.out
    assert "--yes" in run.out
    preview = cli(*erase, "--json").json
    assert (preview["dry_run"], preview["units"], len(preview["copies"])) == (True, [unit], 25)
    assert cli.ok("get", unit)["content"]
    assert len(cli.ok(*erase, "--yes")["copies"]) == 25
    assert cli(*erase, "--yes").out.startswith("erased before")


def test_what_others_wrote_cannot_steer_the_terminal(cli):
    cli.ok("remember", "harmless \x1b[2J\x1b]0;title\x07 \u202etext")
    for argv in (["units"], ["recall", "harmless"], ["remember", "harmless \x1b[2J\x1b]0;title\x07 \u202etext"]):
        said = cli(*argv).out
        assert "harmless" in said
        assert not {"\x1b", "\x07", "\u202e"} & set(said)


def test_a_false_contradiction_is_closed_for_both(cli):
    first = cli.ok("remember", "The release had 7 bugs")["unit"]["id"]
    second = cli.ok("remember", "The release had 3 bugs")["unit"]["id"]
    (dispute,) = cli.ok("conflicts")
    argv = ["resolve", dispute["id"], "--both", "--reason", "two releases", "--actor", "human:ada"]
    run = cli(*argv)
    assert run.exit_code == 0, run
    assert "both hold" in run.out
    assert cli.ok("conflicts") == []
    told = cli("explain", dispute["units"][0]).out
    assert "both hold" in told
    assert "two releases" in cli("history", dispute["units"][1]).out
    assert {cli.ok("get", unit)["status"] for unit in (first, second)} == {"hypothesis"}
    assert cli(*argv).exit_code == 1
    assert cli(*argv, "--winner", first).exit_code == 2


def test_undo_shows_what_would_go_and_takes_it_back(cli, monkeypatch):
    for n in range(25):
        cli.ok("remember", f"Shelf number{n} is for box number{n}", "--actor", "agent:bad")
    shared = cli.ok("remember", "Boxes are blue", "--actor", "agent:bad")["unit"]["id"]
    cli.ok("remember", "Boxes are blue", "--actor", "agent:good")
    undo = ("undo", "--actor", "agent:bad")
    assert cli(*undo).exit_code == 1, "a pipe is an agent"
    monkeypatch.setenv("MNEMARCH_ACTOR", "human:ada")
    shown = cli(*undo)
    assert shown.exit_code == 1
    assert "25 units would go:" in shown.out
    assert "and 5 more" in shown.out
    assert "1 unit stays:" in shown.out
    assert "agent:good stated it too" in shown.out
    assert len(cli.ok("units")) == 26, "nothing was done"
    undone = cli.ok(*undo, "--yes")
    assert (len(undone["retired"]), [fate["unit_id"] for fate in undone["kept"]]) == (25, [shared])
    assert cli.ok("units", "--status", "hypothesis")[0]["id"] == shared
    taken_back = cli("undo", "--revert", undone["id"][24:])
    assert "25 units are back" in taken_back.out
    assert len(cli.ok("units", "--status", "hypothesis")) == 26
