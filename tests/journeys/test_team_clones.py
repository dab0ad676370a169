"""Clones of one repository that share a memory: each working tree is a worktree of its own (R3)."""

from __future__ import annotations

import json
import shutil

import pytest

from fixtures import repositories


@pytest.fixture(params=["postgres", "files"])
def team(cli, request, tmp_path):
    """Ada's clone and Bob's, of one repository, with one memory; gives a way to run a command in a folder."""
    is_files = request.param == "files"
    address = f"file://{tmp_path / 'memory'}" if is_files else request.getfixturevalue("postgres_url")
    for name in ("PROJECT", "WORKTREE", "TASK"):
        cli.monkeypatch.delenv(f"MNEMARCH_{name}")
    cli.monkeypatch.setenv("MNEMARCH_STORE", address)
    repositories.made(tmp_path / "shop")
    repositories.commit(tmp_path / "shop", **{"a.py": "def load(): pass\n"})
    for name in ("ada", "bob"):
        repositories.clone(tmp_path / "shop", tmp_path / name)

    def run(folder, *words):
        cli.monkeypatch.chdir(tmp_path / folder)
        done = cli(*words)
        assert done.exit_code == 0, done
        return done.out

    return run


def test_r3_an_unproven_claim_in_one_clones_main_worktree_stays_there(team):
    team("ada", "remember", "The build needs node 18")
    assert "node 18" in team("ada", "recall", "which node version?")
    assert "node 18" not in team("bob", "recall", "which node version?")


def test_r3_a_clone_that_is_moved_keeps_its_worktree(team, tmp_path):
    team("ada", "remember", "The build needs node 18")
    (tmp_path / "ada").rename(tmp_path / "moved")
    assert "node 18" in team("moved", "recall", "which node version?")


def test_r3_linked_worktrees_of_one_name_in_two_clones_are_two(team, tmp_path):
    for name in ("ada", "bob"):
        repositories.git(
            tmp_path / name, "worktree", "add", "-q", "-b", "feat", str(tmp_path / f"{name}-desk" / "feat")
        )
    team("ada-desk/feat", "remember", "The build needs node 18")
    assert "node 18" in team("ada-desk/feat", "recall", "which node version?")
    assert "node 18" not in team("bob-desk/feat", "recall", "which node version?")


def test_r20_only_a_worktree_of_ones_own_clone_is_known_to_be_removed(team, tmp_path):
    desk = tmp_path / "desk" / "feat"
    repositories.git(tmp_path / "ada", "worktree", "add", "-q", "-b", "feat", str(desk))
    team("desk/feat", "remember", "The build needs node 18")
    person = ("inbox", "--actor", "human:ada", "--json")
    assert '"claim"' in team("bob", *person)
    shutil.rmtree(desk)
    assert "claim of an absent worktree" in team("ada", *person)
    assert "claim of an absent worktree" not in team("bob", *person)


def test_an_erasure_counts_tables_where_there_are_no_files(team, request):
    kind = request.node.callspec.params["team"]
    unit_id = json.loads(team("ada", "remember", "The build needs node 18", "--json"))["unit"]["id"]
    said = team("ada", "erase", unit_id, "--reason", "private", "--yes", "--actor", "human:ada")
    assert ("tables cleaned" if kind == "postgres" else "files cleaned") in said, said
