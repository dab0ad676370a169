from code_session import contents, git, person, repository

import mnemarch
from mnemarch import Citation
from mnemarch.units import remember


def test_a_mention_that_was_cited_before_archives_no_policy(tmp_path, monkeypatch):
    repo = repository(tmp_path)
    with mnemarch.open(repo) as memory:
        seat = person(memory, repo)
        monkeypatch.setattr(remember, "_seen", lambda claim: list(claim.seen))
        vouched = [Citation.human("alice")]
        rule = seat.remember("Never log what src/auth.py sees", kind="policy", level="org", citations=vouched).unit
        assert [str(each) for each in rule.citations] == ["human:alice", "file:src/auth.py"]
        git(repo, "rm", "-q", "src/auth.py")
        git(repo, "commit", "-qm", "gone")
        assert contents(seat.recall("what is never logged")) == ["Never log what src/auth.py sees"]
        assert memory.janitor(seat).archived == 0
        assert seat.get(rule.id).status == "verified"
