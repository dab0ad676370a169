"""A person and an agent take in what was said, with the command."""

from __future__ import annotations

import json

import pytest

RULES = "# Style\n- Use 2-space indentation.\n- Never commit generated files.\n\n- 커밋 메시지는 한국어로 작성한다.\n"


def test_a_rules_file_is_ingested_once_and_its_removed_rules_are_withheld(cli):
    cli.repository(AGENTS_md=RULES)
    cli.monkeypatch.setenv("MNEMARCH_ACTOR", "human:ada")
    told = cli.ok("ingest", "--file", "AGENTS.md")
    assert [each["unit"]["kind"] for each in told] == ["preference"] * 3
    assert "file:AGENTS.md#L2-L2" in told[0]["unit"]["citations"]
    again = cli.ok("ingest", "--file", "AGENTS.md")
    assert [each["unit"]["id"] for each in again] == [each["unit"]["id"] for each in told]
    assert all(each["receipt"]["duplicate"] for each in again)
    cli.repository(AGENTS_md=RULES.replace("- Never commit generated files.\n", ""))
    handed = [item["unit"]["content"] for item in cli.ok("recall", "indentation, generated files")["items"]]
    assert "Use 2-space indentation." in handed
    assert "Never commit generated files." not in handed
    assert cli("ingest", "--file", "missing.md").exit_code == 2
    assert cli("ingest", "--file", "README.md").exit_code == 2


def test_explain_and_show_say_why_an_entry_was_left_out(cli):
    entry = cli.ok("ingest", "thanks a lot")["receipt"]["event_id"]
    for command in ("explain", "show"):
        assert "left out  an acknowledgement or a greeting" in cli(command, entry).out
    assert cli.ok("explain", entry)["bucket"] == "LEFT_OUT"
    assert cli("explain", "0123456789").exit_code == 2


def test_a_hedge_of_a_person_stays_in_the_log_and_an_order_becomes_a_preference(cli):
    cli.monkeypatch.setenv("MNEMARCH_ACTOR", "human:ada")
    run = cli("ingest", "탭을 쓰는 게 좋을 것 같아요")
    assert run.out.startswith("no unit (episodic)")
    assert "it stays in the log" in run.out
    assert cli.ok("ingest", "커밋하기 전에 반드시 ruff를 돌려라")["unit"]["kind"] == "preference"


def test_a_conversation_comes_in_by_lines_and_its_preference_is_recalled(cli):
    turns = [
        {"kind": "user", "text": "Fix the cart test. And always use pnpm, never npm."},
        {"kind": "assistant", "text": "`find_cart` returns None when the cart is empty."},
        {"kind": "user", "text": "감사합니다!"},
    ]
    run = cli("ingest", "--batch", stdin="\n".join(map(json.dumps, turns)).encode())
    assert run.out.startswith("ingested  1 preference, 1 fact, 1 left out")
    (first, *_) = cli.ok("recall", "which package manager?")["items"]
    assert first["unit"]["content"] == "always use pnpm, never npm."


def test_an_empty_batch_tells_what_it_took_up(cli):
    own = cli.home / "own" / "mnemarch"
    own.mkdir(parents=True)
    (own / "config.toml").write_text("[learning]\nentries_per_minute_max = 1\n")
    cli.monkeypatch.setenv("XDG_CONFIG_HOME", str(own.parent))
    turns = [{"kind": "user", "text": f"The port of service {number} is {8000 + number}."} for number in range(3)]
    run = cli("ingest", "--batch", stdin="\n".join(map(json.dumps, turns)).encode())
    assert run.out.startswith("ingested  1 fact, 2 no unit (fact)")
    assert "over the rate limit" in run.out
    assert cli("ingest", "--batch").out.startswith("ingested  2 fact\n")
    assert cli("ingest", "--batch").out == "There was nothing to ingest, and nothing waits in the log.\n"


@pytest.mark.parametrize("heading", ["Don't", "Never do this", "하지 말 것"])
def test_a_bullet_under_a_heading_that_forbids_does_not_become_its_contrary(cli, heading):
    (cli.home / "AGENTS.md").write_text(f"## {heading}\n- Commit directly to the main branch\n", encoding="utf-8")
    cli.ok("ingest", "--file", "AGENTS.md")
    assert [unit["content"] for unit in cli.ok("units")] == [f"{heading}: Commit directly to the main branch"]
