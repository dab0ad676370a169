"""A real repository with a memory, as the journeys about code use it."""

from __future__ import annotations

import pytest

import mnemarch
from fixtures import repositories
from fixtures.repositories import git, paths
from mnemarch import Actor, Citation, Scope

AUTH = '''def login(user, password):
    """Let somebody in."""
    return user == password


def logout(user):
    return None
'''
WITHOUT_LOGOUT = AUTH.partition("\n\n\ndef logout")[0]


def commit(folder, message, **files):
    """Commit everything there is, and these files; `src__a_py` names src/a.py."""
    return repositories.commit(folder, message, **paths(files))


def repository(tmp_path):
    """A repository with two modules, on its default branch."""
    return repositories.repository(tmp_path / "shop", **paths({"src__auth_py": AUTH, "src__other_py": "VALUE = 1\n"}))


@pytest.fixture
def repo(tmp_path):
    return repository(tmp_path)


@pytest.fixture
def memory(repo):
    with mnemarch.open(repo) as opened:
        yield opened


def seat_at(memory, folder, *, kind="agent", name="coder-1", worktree="main", task="T-1"):
    scope = Scope(project="shop", worktree=worktree, task=task)
    return memory.seat(Actor(kind, name), scope, root=folder)


def person(memory, folder, name="alice", **where):
    """A seat that may write and supersede at project level."""
    return seat_at(memory, folder, kind="human", name=name, **where)


def known(memory, folder, content, *citations, **where):
    """A verified unit of the project."""
    seat = person(memory, folder, **where)
    return seat.remember(content, level="project", citations=[*citations, Citation.human("alice")]).unit


def worktree(repo, name, branch):
    folder = repo.parent / name
    git(repo, "worktree", "add", "-q", "-b", branch, str(folder))
    return folder


def raised_on_a_branch(memory, repo):
    """What main knows, what took its place on a branch, and the worktree of that branch."""
    old = known(memory, repo, "Checkout retries three times")
    branch = worktree(repo, "feat", "feat/retries")
    commit(branch, "five", src__other_py="VALUE = 5\n")
    new = known(memory, branch, "Checkout retries five times", worktree="feat")
    person(memory, branch, worktree="feat").supersede(new.id, old.id, "raised")
    return old, new, branch


def contents(found):
    return [item.unit.content for item in found.items]


def settled(memory):
    """Wait for the background work."""
    memory._engine.janitor.wait()
