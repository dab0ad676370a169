"""A real repository with a memory, as the journeys about code use it."""

from __future__ import annotations

import os
import subprocess

from mnemarch import Actor, Citation, Scope

AUTH = '''def login(user, password):
    """Let somebody in."""
    return user == password


def logout(user):
    return None
'''
WITHOUT_LOGOUT = AUTH.partition("\n\n\ndef logout")[0]


def git(folder, *arguments):
    done = subprocess.run(
        ["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments],
        check=True,
        capture_output=True,
        text=True,
        env={name: item for name, item in os.environ.items() if not name.startswith("GIT_")},
    )
    return done.stdout.strip()


def commit(folder, message, **files):
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_py", ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message)
    return git(folder, "rev-parse", "HEAD")


def repository(tmp_path):
    """A repository with two modules, on its default branch."""
    folder = tmp_path / "shop"
    folder.mkdir()
    git(folder, "-c", "init.defaultBranch=main", "init", "-q", "--template=")
    commit(folder, "begin", src__auth_py=AUTH, src__other_py="VALUE = 1\n")
    return folder


def seat_at(memory, folder, *, kind="agent", name="coder-1", worktree="main", task="T-1"):
    scope = Scope(project="shop", worktree=worktree, task=task)
    return memory.seat(Actor(kind, name), scope, root=folder)


def person(memory, folder, **where):
    """A seat that may write and supersede at project level."""
    return seat_at(memory, folder, kind="human", name="alice", **where)


def known(memory, folder, content, *citations, **where):
    """A verified unit of the project."""
    seat = person(memory, folder, **where)
    return seat.remember(content, level="project", citations=[*citations, Citation.human("alice")]).unit


def worktree(repo, name, branch):
    folder = repo.parent / name
    git(repo, "worktree", "add", "-q", "-b", branch, str(folder))
    return folder


def contents(found):
    return [item.unit.content for item in found.items]


def settled(memory):
    """Wait for what goes on in the background."""
    memory._engine.janitor.wait()
