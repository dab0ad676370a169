"""A policy rests on the person who added it, and not on a file that its text names (D15, R11)."""

from __future__ import annotations

from code_session import contents, git, memory, person, repo

from mnemarch import Citation

__all__ = ["memory", "repo"]


def test_a_policy_holds_whatever_becomes_of_the_files_it_names(memory, repo):
    seat = person(memory, repo)
    rule = seat.decisions.add_policy("Never log what src/auth.py sees")
    assert rule.citations == (Citation.human("alice"),)
    git(repo, "rm", "-q", "src/auth.py")
    git(repo, "commit", "-qm", "gone")
    assert contents(seat.recall("what is never logged")) == ["Never log what src/auth.py sees"]
    assert memory.janitor(seat).archived == 0
    assert [one.unit.id for one in seat.decisions.load()] == [rule.id]


def test_a_mention_that_was_cited_before_archives_no_policy(memory, repo):
    """Logs of earlier versions hold policies that cite the files in their text."""
    seat = person(memory, repo)
    mention = Citation.from_json({"kind": "file", "ref": "src/auth.py", "detail": {"by": "text"}})
    rule = seat.cite(seat.decisions.add_policy("Never log what src/auth.py sees").id, mention)
    assert [str(each) for each in rule.citations] == ["human:alice", "file:src/auth.py"]
    git(repo, "rm", "-q", "src/auth.py")
    git(repo, "commit", "-qm", "gone")
    assert contents(seat.recall("what is never logged")) == ["Never log what src/auth.py sees"]
    assert memory.janitor(seat).archived == 0
    assert seat.get(rule.id).status == "verified"
