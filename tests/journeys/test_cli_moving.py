"""A person moves a memory, and takes over what another tool knew, at a terminal."""

from __future__ import annotations

import json

from cli_session import shown_at_terminal, told

PERSON = ("--actor", "human:ada")
GRAPH = [
    {
        "type": "entity",
        "name": "Payments",
        "entityType": "service",
        "observations": ["Retries three times", "새벽에 멈춘다"],
    },
    {"type": "relation", "from": "Payments", "to": "Bank", "relationType": "calls"},
]


def graph_file(cli, *more):
    path = cli.home / "memory.jsonl"
    path.write_text("".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in (*GRAPH, *more)), encoding="utf-8")
    return path


def test_a_person_looks_imports_judges_and_finds_it_in_two_languages(cli):
    cli.repository()
    path = graph_file(cli)
    with path.open("a") as file:
        file.write("{broken\n")
    shown, code = told(["import", "memory.jsonl", "--dry-run"], [], cli.home)
    assert code == 0
    assert "would import 3 units of mcp-memory" in shown
    assert "Payments: 새벽에 멈춘다" in shown
    assert "line 3: no JSON" in shown
    shown, code = told(["import", "memory.jsonl"], [], cli.home)
    assert code == 0
    assert "mnemarch accept" in shown
    (item,) = cli.ok("inbox", *PERSON)
    assert "imported, and judged by nobody yet: 3" in cli("show", item["id"], *PERSON).out
    found = cli.ok("recall", "결제가 언제 멈추나? payments 새벽")["items"]
    assert found[0]["label"] == "[IMPORTED]"
    explained = cli("explain", found[0]["unit"]["id"]).out
    assert "imported  memory.jsonl (mcp-memory), line 1, #service" in explained
    assert f"log:{item['id']}" in explained
    assert cli("accept", item["id"], *PERSON).exit_code == 0
    assert cli.ok("recall", "how often do payments retry?")["items"][0]["label"] == "[VERIFIED by ada]"
    assert cli.ok("import", "memory.jsonl", *PERSON)["known"] == 3


def test_what_is_wrong_with_an_import_is_said_with_what_to_do(cli):
    cli.begun()
    (cli.home / "odd.json").write_text('{"a": 1}')
    for argv, words in (
        (["odd.json"], "--from"),
        (["odd.json", "--from", "zep"], "Use one of: mnemarch, mem0"),
        (["missing.json"], "No such file"),
        (["memory.jsonl", "--strict"], "line 3"),
    ):
        graph_file(cli, 5)
        run = cli("import", *argv, *PERSON)
        assert run.exit_code == 2, run
        assert words in run.err
    assert cli("import", "memory.jsonl").exit_code == 1
    assert cli.ok("units") == []


def test_who_imports_decision_records_as_notes_is_told_how_they_become_decisions(cli):
    folder = cli.home / "adr"
    folder.mkdir()
    record = "# 1. Use Postgres\n\n## Status\nAccepted\n\n## Context\nIt counts.\n\n## Decision\nWe use Postgres.\n"
    (folder / "0001-use-postgres.md").write_text(record)
    assert "mnemarch decisions import adr" in cli("import", "adr", "--dry-run", *PERSON).out
    (folder / "0001-use-postgres.md").rename(folder / "notes.md")
    (folder / "notes.md").write_text("# Notes\n\nWe met on Monday.\n")
    assert "decisions import" not in cli("import", "adr", "--dry-run", *PERSON).out


def test_a_copy_at_a_terminal_shows_progress_and_says_that_it_is_verified(cli, tmp_path):
    cli.begun()
    cli.ok("remember", "결제는 세 번 재시도한다", *PERSON)
    shown, code = shown_at_terminal(["copy", ".", str(tmp_path / "other")], [], cli.home)
    assert code == 0
    assert "copying: 1 events" in shown
    assert "verified  both have the same chains" in shown
    assert cli.ok("recall", "결제 재시도", "--store", str(tmp_path / "other"))["items"]
    refused = cli("copy", ".", str(tmp_path / "other"))
    assert refused.exit_code == 1
    assert "A person can" in refused.err


def test_a_copy_that_is_refused_says_what_to_do(cli, tmp_path):
    cli.begun()
    cli.ok("log", "thought", "here")
    other = str(tmp_path / "other")
    cli.ok("log", "thought", "there", "--store", other)
    for argv, words in ((["copy", ".", other], "empty store"), (["copy", ".", "."], "another target")):
        run = cli(*argv, *PERSON)
        assert run.exit_code in {1, 2}
        assert words in run.err
    run = cli("copy", "nowhere", other, *PERSON)
    assert "There is no memory in 'nowhere'.\nhint: Give the folder that holds .mnemarch/, or file:FOLDER" in run.err
    assert not (cli.home / "nowhere").exists()
