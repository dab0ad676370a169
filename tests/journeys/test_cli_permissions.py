"""Who may do what, from the command line: every row of G23 and R4, written out here and not read from the code."""

from __future__ import annotations

import pytest
from cli_session import TEST, Cli

ACTORS = ("agent", "orchestrator", "human", "system")
LEVELS = ("task", "worktree", "project", "org")

# G23
WRITERS = {
    "task": {"agent", "orchestrator"},
    "worktree": {"agent", "orchestrator"},
    "project": {"orchestrator", "human"},
    "org": {"human", "system"},
}
VALIDATED = {"project", "org"}

# R4
EVERYBODY = {"agent", "orchestrator", "human", "system"}
KEEPERS = {level: {"system"} for level in LEVELS}
JUDGES = {
    "task": {"human", "orchestrator"},
    "worktree": {"human", "orchestrator"},
    "project": {"human", "orchestrator"},
    "org": {"human"},
}
READERS = {level: set(EVERYBODY) for level in LEVELS}
LIFECYCLE = {
    "archive": KEEPERS,
    "approve": JUDGES,
    "reject": JUDGES,
    "supersede": JUDGES,
    "resolve": JUDGES,
    "erase": JUDGES,
    "revive": {level: judges | {"system"} for level, judges in JUDGES.items()},
    "cite": READERS,
    "use": READERS,
    "validate": READERS,
}


@pytest.fixture
def cli(tmp_path, monkeypatch, capsys) -> Cli:
    return Cli(tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("actor", ACTORS)
def test_proven_content_is_written_only_by_those_whom_g23_lists(cli, actor, level):
    cli.ok("verify", "--passed", "--test", TEST, "--actor", "agent:coder-1")
    run = cli(
        *("remember", "Checkout retries three times.", "--level", level, "--cite", f"test:{TEST}"),
        *("--actor", f"{actor}:a", "--json"),
    )
    if actor in WRITERS[level]:
        assert run.exit_code == 0
        assert (run.json["unit"]["level"], run.json["unit"]["status"]) == (level, "verified")
    else:
        assert run.exit_code == 1
        assert run.json["rule"] == "G23"
        assert run.json["receipt"]["event_id"], "a refused claim stays in the log"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("actor", ACTORS)
def test_unproven_content_reaches_only_the_levels_without_validation(cli, actor, level):
    run = cli("remember", "Checkout retries.", "--level", level, "--actor", f"{actor}:a", "--json")
    allowed = actor in WRITERS[level]
    assert run.exit_code == (0 if allowed and level not in VALIDATED else 1)
    if run.exit_code:
        assert run.json["rule"] == ("G23.validation" if allowed else "G23")
    else:
        assert run.json["unit"]["status"] == "hypothesis"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("actor", ACTORS)
def test_a_unit_is_promoted_only_upward_and_by_those_who_may_write_there(cli, actor, level):
    unit = cli.unit_at("task")
    run = cli("promote", unit, "--to", level, "--actor", f"{actor}:a", "--json")
    if level == "task":
        assert (run.exit_code, run.json["rule"]) == (1, "G6")
    elif actor not in WRITERS[level]:
        assert (run.exit_code, run.json["rule"]) == (1, "G23")
    elif level == "org":
        assert (run.exit_code, run.json["rule"]) == (1, "S10.3")
    else:
        assert (run.exit_code, run.json["unit"]["level"]) == (0, level)


@pytest.mark.parametrize("actor", ACTORS)
def test_published_knowledge_reaches_the_org_through_a_human_or_the_system(cli, actor):
    unit = cli.unit_at("worktree")
    for task in ("T-2", "T-3", "T-4"):
        cli.ok("use", unit, "--task", task)
    assert cli.ok("get", unit)["status"] == "published"
    run = cli("promote", unit, "--to", "org", "--actor", f"{actor}:a", "--json")
    assert run.exit_code == (0 if actor in WRITERS["org"] else 1)


def prepared(cli: Cli, act: str, level: str) -> tuple[str, list[str]]:
    """A unit at this level, and the command line of the act on it."""
    unit = cli.unit_at(level)
    if act == "cite":
        return unit, [act, unit, "test:tests/test_other.py::test_more"]
    if act == "validate":
        return unit, [act, unit, "pr_merged"]
    if act == "supersede":
        return unit, [act, cli.unit_at(level, "Payments are idempotent by order id."), unit, "--reason", "newer"]
    if act == "resolve":
        rival = cli.unit_at(level, "Checkout retries four times.")
        with cli.seat("human:h") as seat:
            (dispute,) = seat.conflicts()
        return unit, [act, dispute.id, "--winner", rival, "--reason", "measured"]
    if act == "revive":
        with cli.seat("system:janitor") as seat:
            seat.archive(unit, "gone")
    reason = [] if act in {"use", "approve"} else ["--reason", "because"]
    return unit, [act, unit, *reason, *(["--yes"] if act == "erase" else [])]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("actor", ACTORS)
@pytest.mark.parametrize("act", LIFECYCLE)
def test_each_act_in_the_life_of_a_unit_is_for_those_whom_r4_lists(cli, act, actor, level):
    unit, argv = prepared(cli, act, level)
    with cli.seat() as seat:
        before = seat.get(unit)
    run = cli(*argv, "--actor", f"{actor}:a", "--json")
    if actor in LIFECYCLE[act][level]:
        assert run.exit_code == 0, run
    else:
        assert run.exit_code == 1
        assert (run.json["error"]["type"], run.json["error"]["rule"]) == ("NotAllowed", "R4")
        with cli.seat() as seat:
            assert seat.get(unit) == before


def test_the_policy_command_shows_exactly_this_table(cli):
    shown = cli.ok("policy")
    assert {level: set(kinds) for level, kinds in shown["acts"]["write"].items()} == WRITERS
    for act, levels in LIFECYCLE.items():
        assert {level: set(kinds) for level, kinds in shown["acts"][act].items()} == levels
    assert set(shown["requires_validation"]) == VALIDATED


def test_a_tightened_policy_is_shown_and_in_force(cli):
    (cli.home / "mnemarch.toml").write_text('[policy.write]\nworktree = ["orchestrator"]\n')
    assert cli.ok("policy")["acts"]["write"]["worktree"] == ["orchestrator"]
    assert cli("remember", "x y z", "--level", "worktree", "--actor", "agent:a").exit_code == 1


def test_nobody_can_vouch_in_the_name_of_another(cli):
    unit = cli.unit_at("worktree")
    run = cli("cite", unit, "human:ada", "--actor", "human:bob", "--json")
    assert (run.exit_code, run.json["error"]["type"]) == (2, "InvalidInput")


def test_an_agent_cannot_give_a_persons_signal(cli):
    unit = cli.unit_at("worktree")
    run = cli("validate", unit, "human_approved", "--actor", "agent:a", "--json")
    assert (run.exit_code, run.json["error"]["rule"]) == (1, "R2")
