"""Decisions from the command line."""

from __future__ import annotations

import pytest
from cli_session import CTRL_C, CTRL_D, told

from mnemarch.model.stamps import short_id

WHY = ("--type", "risk", "--reason", "one file is less to lose")
LEAD = ("--actor", "orchestrator:lead")


def decided(cli, text, *more):
    return cli.ok("decide", text, *WHY, "--snapshot", "the bench says so", *LEAD, *more)


def test_a_decision_is_made_listed_shown_and_revised(cli):
    first = decided(cli, "Use SQLite", "--strength", "lock", "--domain", "coding", "--tradeoff", "one machine")
    assert (first["version"], first["strength"], first["domain"], first["is_active"]) == (1, "lock", "coding", True)
    assert first["reason"] == {"type": "risk", "summary": "one file is less to lose", "tradeoff": "one machine"}
    second = decided(cli, "Use SQLite in WAL mode", "--revises", first["id"])
    assert (second["version"], second["root_id"]) == (2, first["id"])
    assert [one["text"] for one in cli.ok("decisions", "--domain", "coding")] == ["Use SQLite in WAL mode"]
    assert [one["version"] for one in cli.ok("decisions", "history", second["id"])] == [1, 2]
    explained = cli("show", first["id"]).out
    assert "because   risk: one file is less to lose\n          at a cost: one machine" in explained
    shown = cli("decisions", "show", first["id"]).out
    assert "superseded by " + short_id(second["id"]) in shown
    assert "at a cost one machine" in shown
    assert "in force" in cli("decisions", "history", first["id"]).out
    learned = cli("status").out.partition("learned, last day: ")[2]
    assert (learned[0], "the bench says so" in learned) == ("1", False)


def test_an_answer_begins_with_axes_locks_and_the_few_decisions_on_the_question(cli):
    decided(cli, "No secrets in logs", "--strength", "lock")
    for number in range(40):
        decided(cli, f"Service {number} owns table {number}")
    decided(cli, "Retries back off")
    binding, _, answer = cli("recall", "how do retries back off?").out.partition("\n\n")
    assert ["secrets" in line for line in binding.splitlines()[1:]] == [True, *[False] * 5]
    assert "Retries back off" in binding.splitlines()[2]
    assert binding.endswith("… and 37 more: mnemarch decisions load")
    assert answer.startswith("1. [NORMAL v1 global] Retries back off")
    assert "more binding" not in answer


def test_a_dry_run_shows_the_verdict_and_commits_nothing(cli):
    axis = decided(cli, "No server", "--strength", "axis")
    evidence = cli.ok("decisions", "evidence", "a customer asked", "--tag", "sales", *LEAD)["id"]
    argv = ("decide", "A server", *WHY, "--evidence", evidence, "--revises", axis["id"])
    run = cli(*argv, "--dry-run")
    assert run.exit_code == 1
    assert "guardian: BLOCK" in run.out
    assert cli.ok("decisions")[0]["text"] == "No server"
    refused = cli(*argv, *LEAD)
    assert refused.exit_code == 1
    assert "The guardian blocks it" in refused.err
    person = cli.ok(*argv, "--actor", "human:ada", "--override", "the board said so")
    assert person["version"] == 2
    assert "override  the board said so" in cli("decisions", "show", person["id"]).out
    before = cli.ok("stats")["events"]
    shown = cli("decide", "x", *WHY, "--snapshot", "y", "--dry-run")
    assert (shown.exit_code, "guardian: ALLOW" in shown.out) == (0, True)
    assert cli.ok("stats")["events"] == before


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["decide", "x"], "needs a reason"),
        (["decide", "x", "--type", "risk"], "needs a reason"),
        (["decide", "x", "--type", "whim", "--reason", "y", "--snapshot", "z"], "not a type of reason"),
        (["decide", "x", *WHY], "at least one evidence"),
        (["decide", "x", *WHY, "--evidence", "nothing"], "can't be seen from"),
        (["decide", "x", *WHY, "--snapshot", "y", "--strength", "iron", *LEAD], "not a strength"),
        (["decisions", "dance"], "has no subcommand 'dance'"),
        (["decisions", "history"], "decisions history needs ID"),
        (["impact", "nothing"], "There is no decision"),
        (["decisions", "relate", "a", "LIKES", "b"], "not a relation"),
    ],
)
def test_wrong_use_is_told(cli, argv, message):
    run = cli.begun()(*argv)
    assert run.exit_code == 2
    assert message in run.err
    assert "\nhint: " in run.err


def test_what_an_agent_decides_waits_in_the_inbox(cli):
    run = cli("decide", "Use SQLite", *WHY, "--snapshot", "the bench", "--actor", "agent:a")
    assert run.exit_code == 1
    assert "may not commit a decision at project scope. It waits in the inbox as request" in run.out


def test_what_opposes_a_lock_is_refused_until_a_person_says_why(cli):
    lock = decided(cli, "Retries are capped at three", "--strength", "lock")
    against = ("decide", "Retries are capped at nine", *WHY, "--snapshot", "x", "--actor", "human:ada")
    refused = cli(*against)
    assert refused.exit_code == 1
    assert f"It opposes the lock {lock['id'][24:32]} (version 1)" in refused.err
    assert f"--revises {lock['id'][24:32]}" in refused.err
    assert cli.ok(*against, "--override", "the bank asked")["unit"]["attributes"]["reason"]["override"]
    assert len(cli.ok("conflicts", *LEAD)) == 1


def test_the_impact_is_drawn_as_a_tree(cli):
    hub, one, two = (decided(cli, text)["id"] for text in ('The "log" is <true>', "Use SQLite", "Use tantivy"))
    cli.ok("decisions", "relate", one, "DEPENDS_ON", hub, *LEAD)
    cli.ok("decisions", "relate", hub, "CONSTRAINS", two, *LEAD)
    assert [node["id"] for node in cli.ok("impact", hub)["nodes"]] == sorted([one, two], key=[two, one].index)
    tree = cli("impact", hub).out
    assert "├─ CONSTRAINS → Use tantivy" in tree
    assert "└─ DEPENDS_ON ← Use SQLite" in tree
    cut = cli("impact", hub, "--nodes", "1").out
    assert "(cut: more than 1 decisions are reached)" in cut
    assert "No stated relation leads" in cli("impact", one).out
    cli.ok("decisions", "relate", one, "DEPENDS_ON", hub, "--drop", *LEAD)
    assert len(cli.ok("impact", hub)["nodes"]) == 1


def test_what_to_know_first_is_loaded_in_order_and_broken_anchors_are_listed(cli):
    normal = decided(cli, "a normal rule", "--domain", "coding")
    decided(cli, "an axis", "--strength", "axis")
    anchor = cli.ok("decisions", "anchor", "see the rule", normal["id"], "gotcha", "--domain", "coding", *LEAD)
    assert [(one["tier"], one["unit"]["content"]) for one in cli.ok("decisions", "load", "--domain", "coding")] == [
        (3, "an axis"),
        (6, "a normal rule"),
    ]
    assert cli.ok("decisions", "broken") == []
    decided(cli, "another rule", "--revises", normal["id"])
    assert [one["id"] for one in cli.ok("decisions", "broken")] == [anchor["id"]]
    assert len(cli.ok("decisions", "relations", normal["id"])) == 0


@pytest.mark.parametrize("answer", [b"n\n", b"\n", CTRL_D, CTRL_C])
def test_on_a_terminal_nothing_is_stored_until_somebody_says_yes(cli, answer):
    decided(cli, "so that the memory is there")
    before = cli.ok("stats")["events"]
    argv = ["decide", "Use SQLite", *WHY, "--snapshot", "seen", *LEAD]
    text, exit_code = told(argv, [answer], cli.home)
    assert exit_code == (130 if answer == CTRL_C else 1)
    assert "guardian: ALLOW" in text
    assert "Traceback" not in text
    assert cli.ok("stats")["events"] == before
    text, exit_code = told(argv, [b"y\n"], cli.home)
    assert (exit_code, "version 1, in force" in text) == (0, True)


def test_a_terminal_does_not_ask_to_confirm_what_a_lock_refuses(cli):
    decided(cli, "Sessions are stored in Redis", "--strength", "lock")
    argv = ["decide", "Sessions are stored in Postgres", *WHY, "--snapshot", "seen", *LEAD]
    text, exit_code = told(argv, [], cli.home)
    assert (exit_code, "conflicts with:" in text, "--override" in text) == (1, True, True)
    assert "Commit it?" not in text
    shown = cli(*argv, "--dry-run")
    assert (shown.exit_code, "BLOCK: it opposes" in shown.out, "ALLOW" in text + shown.out) == (1, True, False)
    overridden = cli(*argv[:-2], "--actor", "human:ada", "--override", "slow", "--dry-run")
    assert (overridden.exit_code, "BLOCK" in overridden.out, "stays open" in overridden.out) == (0, False, True)


def test_in_a_repository_a_person_decides_keeps_evidence_and_leaves_anchors(cli):
    cli.repository()
    text, exit_code = told(["decide", "Use tabs", *WHY, "--snapshot", "seen"], [b"y\n"], cli.home, USER="me")
    assert (exit_code, "decided by human:ada" in text) == (0, True), text
    person = ("--actor", "human:ada")
    made = cli.ok("decide", "Retry at most thrice", *WHY, "--snapshot", "incident 12", *person)
    assert made["unit"]["level"] == "project"
    seen = cli.ok("decisions", "evidence", "p99: 4.1 s", *person)
    assert (seen["level"], seen["status"]) == ("project", "verified")
    anchor = cli.ok("decisions", "anchor", "how slow is the bank?", seen["id"], "gotcha", *person)
    assert anchor["level"] == "project"
    wide = cli.ok("decisions", "evidence", "for all of us", "--level", "org", *person)
    assert wide["level"] == "org"


def test_arrows_point_as_the_relation_reads(cli):
    hub, needs, bound = (decided(cli, text)["id"] for text in ("the hub", "needs it", "is bound"))
    cli.ok("decisions", "relate", needs, "DEPENDS_ON", hub, *LEAD)
    cli.ok("decisions", "relate", hub, "CONSTRAINS", bound, *LEAD)
    told = {(node["source"], node["relation"], node["target"]) for node in cli.ok("impact", hub)["nodes"]}
    assert told == {(needs, "DEPENDS_ON", hub), (hub, "CONSTRAINS", bound)}


def test_an_impact_is_told_of_what_is_in_force(cli):
    hub, needs = decided(cli, "the hub"), decided(cli, "needs it")
    cli.ok("decisions", "relate", needs["id"], "DEPENDS_ON", hub["id"], *LEAD)
    newer = decided(cli, "the hub, revised", "--revises", hub["id"])
    later = decided(cli, "needs it still", "--revises", needs["id"])
    for named in (hub["id"], newer["id"]):
        tree = cli("impact", named).out
        assert tree.splitlines()[0] == f"the hub, revised  {short_id(newer['id'])}"
        assert f"needs it still  {short_id(later['id'])}" in tree
    cli.ok("erase", hub["id"], "--reason", "private", "--yes", *LEAD)
    assert cli("show", hub["id"]).exit_code == 0
    assert "needs it still" in cli("impact", hub["id"]).out


def test_a_limit_that_cuts_is_told(cli):
    hub, needs = decided(cli, "the hub"), decided(cli, "needs it")
    cli.ok("decisions", "relate", needs["id"], "DEPENDS_ON", hub["id"], *LEAD)
    run = cli("impact", hub["id"], "--depth", "0")
    assert "cut: the search ended after 0 steps" in run.out
    assert "No stated relation leads" not in run.out


def test_a_preview_says_when_a_limit_cut_it(cli):
    (cli.home / "mnemarch.toml").write_text("[decisions]\nimpact_nodes_max = 1\n")
    cli.ok("trust", "--yes")
    hub, *others = (decided(cli, text)["id"] for text in ("the hub", "needs it", "needs it too"))
    for other in others:
        cli.ok("decisions", "relate", other, "DEPENDS_ON", hub, *LEAD)
    run = cli("decide", "x", *WHY, "--snapshot", "y", "--revises", hub, "--dry-run")
    assert "(cut: more than 1 decisions are reached)" in run.out


def test_the_list_says_that_there_are_other_domains(cli):
    decided(cli, "blue buttons", "--domain", "ui")
    listed = cli("decisions").out
    assert "Decided in other domains (--domain NAME): ui" in listed
    assert "other domains" not in cli("decisions", "--domain", "ui").out
