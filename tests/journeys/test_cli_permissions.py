"""Who may do what, from the command line: the table of G23 and R4 is written out here and not read from the code.

Every cell of it is tried through the verbs in `contract/test_verbs.py`.
"""

from __future__ import annotations

import pytest

from mnemarch.config import Config

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
KEEPERS = {level: {"system", "human"} for level in LEVELS}
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
    "validate": JUDGES,
}


@pytest.mark.parametrize(
    ("actor", "level", "rule"), [("agent:a", "project", "G23"), ("orchestrator:lead", "project", "G23.validation")]
)
def test_a_refused_claim_names_its_rule_and_stays_in_the_log(cli, actor, level, rule):
    run = cli("remember", "Checkout retries.", "--level", level, "--actor", actor, "--json")
    assert (run.exit_code, run.json["rule"]) == (1, rule)
    assert run.json["receipt"]["event_id"]


def test_the_default_policy_is_exactly_this_table():
    policy = Config().policy
    shown = {act: {str(level): set(kinds) for level, kinds in rows.items()} for act, rows in policy.table.items()}
    assert shown["write"] == WRITERS
    assert {act: shown[act] for act in LIFECYCLE} == LIFECYCLE
    assert set(map(str, policy.validated_levels)) == VALIDATED


def test_a_tightened_policy_is_in_force(cli):
    (cli.home / "mnemarch.toml").write_text('[policy.write]\nworktree = ["orchestrator"]\n')
    assert cli("remember", "x y z", "--level", "worktree", "--actor", "agent:a").exit_code == 1
