"""Decisions from the command line."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import pytest
from cli_session import Cli

WHY = ("--type", "risk", "--reason", "one file is less to lose")
LEAD = ("--actor", "orchestrator:lead")


@pytest.fixture
def cli(tmp_path, monkeypatch, capsys) -> Cli:
    return Cli(tmp_path, monkeypatch, capsys)


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
    shown = cli("decisions", "show", first["id"]).out
    assert "superseded by " + second["id"] in shown
    assert "at a cost one machine" in shown
    assert "in force" in cli("decisions", "history", first["id"]).out


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
    person = cli.ok(*argv, "--actor", "human:kim", "--override", "the board said so")
    assert person["version"] == 2
    assert "keeps no evidence" in cli("decide", "x", *WHY, "--snapshot", "y", "--dry-run").err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["decide", "x"], "needs a reason"),
        (["decide", "x", "--type", "risk"], "needs a reason"),
        (["decide", "x", "--type", "whim", "--reason", "y", "--snapshot", "z"], "no type of reason"),
        (["decide", "x", *WHY], "at least one evidence"),
        (["decide", "x", *WHY, "--evidence", "nothing"], "not here"),
        (["decide", "x", *WHY, "--snapshot", "y", "--strength", "iron", *LEAD], "no strength"),
        (["decisions", "dance"], "knows no 'dance'"),
        (["decisions", "history"], "takes 1 argument"),
        (["impact", "nothing"], "No decision"),
        (["decisions", "relate", "a", "LIKES", "b"], "no relation"),
    ],
)
def test_wrong_use_is_told(cli, argv, message):
    run = cli(*argv)
    assert run.exit_code == 2
    assert message in run.err
    assert "\nhint: " in run.err


def test_an_agent_is_refused(cli):
    run = cli("decide", "Use SQLite", *WHY, "--snapshot", "the bench", "--actor", "agent:a")
    assert run.exit_code == 1
    assert "may not commit a decision" in run.err


def test_the_impact_is_drawn_as_a_tree_and_as_graphs(cli):
    hub, one, two = (decided(cli, text)["id"] for text in ('The "log" is <true>', "Use SQLite", "Use tantivy"))
    cli.ok("decisions", "relate", one, "DEPENDS_ON", hub, *LEAD)
    cli.ok("decisions", "relate", hub, "CONSTRAINS", two, *LEAD)
    assert [node["id"] for node in cli.ok("impact", hub)["nodes"]] == sorted([one, two], key=[two, one].index)
    tree = cli("impact", hub).out
    assert "├─ CONSTRAINS: Use tantivy" in tree
    assert "└─ DEPENDS_ON: Use SQLite" in tree
    mermaid = cli("impact", hub, "--format", "mermaid").out
    assert mermaid.startswith("flowchart TD")
    assert "The &quot;log&quot; is &lt;true&gt;" in mermaid
    assert "-->|DEPENDS_ON|" in mermaid
    dot = cli("impact", hub, "--format", "dot").out
    assert dot.startswith("digraph impact {")
    assert 'label="The \\"log\\" is <true>"' in dot
    assert '"relation": "DEPENDS_ON"' in cli("impact", hub, "--format", "json").out
    cut = cli("impact", hub, "--nodes", "1").out
    assert "(cut: more than 1 decisions are reached)" in cut
    assert "Nothing depends on it" in cli("impact", one).out
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


def test_on_a_terminal_what_is_missing_is_asked_for(cli):
    main, side = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "mnemon", "decide", "--actor", "orchestrator:lead"],
        cwd=cli.home,
        stdin=side,
        stdout=side,
        stderr=side,
        close_fds=True,
    )
    os.close(side)
    for line in ("Use SQLite", "risk", "one file", "the bench says so", "y"):
        os.write(main, line.encode() + b"\n")
    told = b""
    while True:
        try:
            chunk = os.read(main, 4096)
        except OSError:
            break
        if not chunk:
            break
        told += chunk
    os.close(main)
    assert process.wait(30) == 0
    text = re.sub(r"\s+", " ", told.decode())
    assert "guardian: ALLOW" in text
    assert "Commit it? [y/N]" in text
    assert "version 1, in force" in text
    assert cli.ok("decisions")[0]["text"] == "Use SQLite"
