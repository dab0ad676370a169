"""What one agent verified reaches the others by itself: five worktrees, real test runs, and nobody types an id."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from code_session import commit, git, repository

QUESTION = "how often does a retry try before it gives up?"
# What each agent learned, in both languages, and the code that it says it of.
LESSONS = {
    1: "retry_1 tries 1 time before it gives up",
    2: "retry_2 tries 2 times before it gives up",
    3: "retry_3 tries 3 times before it gives up, see src/mod3.py",
    4: "retry_4 tries 4 times before it gives up",
    5: "retry_5 함수는 5번 시도한 뒤 포기한다 (gives up)",
}


def mnemarch(folder, *argv, agent, task):
    """The command as an agent's host starts it: without a terminal, in the agent's worktree."""
    clean = {name: item for name, item in os.environ.items() if not name.startswith(("MNEMARCH_", "GIT_"))}
    # Python takes two versions of one size within a second for the same, and would run the first from its cache.
    where = {"MNEMARCH_ACTOR": agent, "MNEMARCH_TASK": task, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "mnemarch", *argv]
    return subprocess.Popen(
        command, cwd=folder, env=clean | where, stdin=subprocess.DEVNULL, stdout=-1, stderr=-1, text=True
    )


def finished(process):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, (out, err)
    return out


def worked(folder, number):
    """Code and a test for it, as an agent leaves them: not committed yet."""
    (folder / "src" / f"mod{number}.py").write_text(f"def retry_{number}(times={number}):\n    return times\n")
    (folder / f"test_mod{number}.py").write_text(
        f"from src.mod{number} import retry_{number}\n\n\ndef test_retry_{number}():\n"
        f"    assert retry_{number}() == {number}\n"
    )


@pytest.fixture
def trees(tmp_path):
    shop = repository(tmp_path)
    (shop / ".gitignore").write_text(".mnemarch/\n__pycache__/\n.pytest_cache/\n")
    commit(shop, "tests", conftest_py="")
    folders = {}
    for number in range(1, 7):
        folders[number] = tmp_path / f"w{number}"
        git(shop, "worktree", "add", "-q", str(folders[number]), "-b", f"feat-{number}")
    return folders


def test_five_agents_verify_and_a_sixth_recalls_all_that_holds_in_its_tree(trees):
    def who(number):
        return {"agent": f"agent:coder-{number}", "task": f"T-{number}"}

    for number in LESSONS:
        worked(trees[number], number)
    tests = {n: f"test_mod{n}.py::test_retry_{n}" if n % 2 else f"test_retry_{n}" for n in LESSONS}
    started = [
        mnemarch(trees[n], "remember", lesson, "--cite", f"test:{tests[n]}", "--json", **who(n))
        for n, lesson in LESSONS.items()
    ]
    assert [json.loads(finished(process))["unit"]["status"] for process in started] == ["hypothesis"] * 5
    sixth = mnemarch(trees[6], "recall", QUESTION, "--json", **who(6))
    assert json.loads(finished(sixth))["items"] == []
    runs = [
        mnemarch(trees[n], "verify", "--json", "--", sys.executable, "-m", "pytest", "-q", **who(n)) for n in LESSONS
    ]
    for process in runs:
        judged = json.loads(finished(process))
        assert (judged["witnessed"], judged["passed"]) == (True, True)
        assert [unit["status"] for unit in judged["units"]] == ["verified"]
    answer = json.loads(finished(mnemarch(trees[6], "recall", QUESTION, "-k", "20", "--json", **who(6))))
    facts = {item["unit"]["content"]: item["label"] for item in answer["items"] if item["unit"]["kind"] == "fact"}
    # The third is about a file that this tree does not have; of the others the label says where they were verified.
    assert facts == {LESSONS[n]: f"[VERIFIED by test_retry_{n} in w{n}]" for n in (1, 2, 4, 5)}
    assert "src/mod3.py" in str(answer["withheld"])
    git(trees[3], "add", "-A")
    git(trees[3], "commit", "-qm", "three")
    git(trees[6], "merge", "-q", "feat-3")
    answer = json.loads(finished(mnemarch(trees[6], "recall", QUESTION, "-k", "20", "--json", **who(6))))
    labels = {item["unit"]["content"]: item["label"] for item in answer["items"]}
    assert labels[LESSONS[3]] == "[VERIFIED by test_retry_3]"
    assert next(item["unit"]["content"] for item in answer["items"]) == LESSONS[3]


def test_a_test_that_expects_something_else_by_now_shows_nothing_of_an_older_claim(trees):
    who, other = {"agent": "agent:coder-2", "task": "T-2"}, {"agent": "agent:coder-6", "task": "T-6"}

    def recalled():
        told = json.loads(finished(mnemarch(trees[6], "recall", QUESTION, "--json", **other)))
        return {item["content"]: item["confidence"] for item in (each["unit"] for each in told["items"])}

    worked(trees[2], 2)
    cited = ["--cite", "test:test_mod2.py::test_retry_2", "--cite", "symbol:src/mod2.py:retry_2"]
    finished(mnemarch(trees[2], "remember", LESSONS[2], *cited, **who))
    finished(mnemarch(trees[2], "verify", "--", sys.executable, "-m", "pytest", "-q", **who))
    commit(trees[2], "retry")
    git(trees[6], "merge", "-q", "feat-2")
    (before,) = recalled().items()
    # A new parameter of the function, and the test calls it with one: what it expects is the same.
    code, test = trees[6] / "src" / "mod2.py", trees[6] / "test_mod2.py"
    code.write_text("def retry_2(times=2, wait=0):\n    return times\n")
    test.write_text(test.read_text().replace("retry_2()", "retry_2(wait=7)"))
    assert recalled() == {}
    finished(mnemarch(trees[6], "verify", "--", sys.executable, "-m", "pytest", "-q", **other))
    (after,) = recalled().items()
    assert after[0] == before[0]
    # Another default, and the test is made to expect it.
    code.write_text("def retry_2(times=4, wait=0):\n    return times\n")
    test.write_text(test.read_text().replace("== 2", "== 4"))
    finished(mnemarch(trees[6], "verify", "--", sys.executable, "-m", "pytest", "-q", **other))
    assert recalled() == {}
    code.write_text("def retry_2(times=2, wait=0):\n    return times\n")
    assert recalled() == dict([after])


def test_each_tree_puts_the_claim_first_whose_test_still_expects_it(trees):
    """Two branches change one test to expect two values: each reader learns which holds here."""

    def recalled(number):
        who = {"agent": "agent:coder-9", "task": "T-9"}
        told = json.loads(finished(mnemarch(trees[number], "recall", QUESTION, "--kind", "fact", "--json", **who)))
        return [(item["unit"]["content"], item["unit"]["confidence"], item["label"]) for item in told["items"]]

    def claimed(number, text):
        who = {"agent": f"agent:coder-{number}", "task": f"T-{number}"}
        finished(mnemarch(trees[number], "remember", text, "--cite", "test:test_retry_2", **who))
        finished(mnemarch(trees[number], "verify", "--", sys.executable, "-m", "pytest", "-q", **who))

    worked(trees[2], 2)
    claimed(2, two := LESSONS[2])
    commit(trees[2], "retry")
    git(trees[6], "merge", "-q", "feat-2")
    for path in (trees[6] / "src" / "mod2.py", trees[6] / "test_mod2.py"):
        path.write_text(path.read_text().replace("times=2", "times=4").replace("== 2", "== 4"))
    claimed(6, four := two.replace("2 times", "4 times"))
    shown, not_here = "[VERIFIED by test_retry_2]", "[VERIFIED by test_retry_2, not here]"
    assert recalled(2) == [(two, 0.6, shown), (four, 0.6, not_here)]
    assert recalled(6) == [(four, 0.6, shown), (two, 0.6, not_here)]
    ada = {"agent": "human:ada", "task": "T-9"}
    for tree in (2, 6):  # Each value holds in its own tree: there is nothing to decide.
        assert json.loads(finished(mnemarch(trees[tree], "conflicts", "--json", **ada))) == []
        assert finished(mnemarch(trees[tree], "inbox", **ada)).startswith("Nothing")
    old, new = sorted(
        unit["id"] for unit in json.loads(finished(mnemarch(trees[6], "units", "--kind", "fact", "--json", **ada)))
    )
    finished(mnemarch(trees[6], "supersede", new, old, "--reason", "it was raised", **ada))
    assert [(text, label) for text, _, label in recalled(6)] == [(four, "[VERIFIED by test_retry_2]")]
    # A replacement takes effect where it holds.
    assert [text for text, _, _ in recalled(2)] == [two, four]


def test_a_fallen_claim_does_not_return_by_a_test_that_was_made_to_expect_something_else(trees):
    shop, who = trees[1].parent / "shop", {"agent": "agent:coder-1", "task": "T-1"}
    pytest_q = ("verify", "--json", "--", sys.executable, "-m", "pytest", "-q")

    def recalled():
        told = json.loads(finished(mnemarch(shop, "recall", QUESTION, "--kind", "fact", "--json", **who)))
        return [item["label"] for item in told["items"]]

    worked(shop, 2)
    finished(mnemarch(shop, "remember", LESSONS[2], "--cite", "test:test_mod2.py::test_retry_2", **who))
    finished(mnemarch(shop, *pytest_q, **who))
    code, test = shop / "src" / "mod2.py", shop / "test_mod2.py"
    code.write_text(code.read_text().replace("times=2", "times=4"))
    mnemarch(shop, *pytest_q, **who).communicate(timeout=120)
    assert recalled() == ["[HYPOTHESIS: test_retry_2 fails]"]
    before = test.read_text()
    test.write_text(before.replace("== 2", "== 4"))
    (refused,) = json.loads(finished(mnemarch(shop, *pytest_q, **who)))["refused"]
    assert refused["reason"].startswith("test_retry_2 expects 4, and the claim says something else.")
    assert recalled() == ["[HYPOTHESIS: test_retry_2 changed]"]
    code.write_text(code.read_text().replace("times=4", "times=2"))
    test.write_text(before)
    finished(mnemarch(shop, *pytest_q, **who))
    assert recalled() == ["[VERIFIED by test_retry_2]"]


@pytest.mark.parametrize("first", ["test_mod2.py::test_retry_2", "test_retry_2"], ids=["whole", "bare"])
@pytest.mark.parametrize(
    ("claim", "is_raised"),
    [
        ("retry_2 tries 2 times before it gives up", False),
        ("retry_2 함수는 두 번 시도한 뒤 포기한다", False),
        ("retry_2 tries 4 times before it gives up", True),
        ("retry_2 is tried 4 times, not 2", True),
        ("retry_2 never sleeps", True),
    ],
)
def test_a_test_that_was_changed_after_a_claim_verifies_it_only_if_it_expects_what_the_claim_says(
    trees, claim, is_raised, first
):
    shop, who = trees[1].parent / "shop", {"agent": "agent:coder-1", "task": "T-1"}
    worked(shop, 2)
    remember = ("remember", claim, "--cite", "test:test_mod2.py::test_retry_2")
    finished(mnemarch(shop, *remember[:3], f"test:{first}", **who))
    for path, old in ((shop / "src" / "mod2.py", "times=2"), (shop / "test_mod2.py", "== 2")):
        path.write_text(path.read_text().replace(old, old.replace("2", "4")))
    finished(mnemarch(shop, *remember, **who))  # To say it again changes nothing.
    pytest_q = ("verify", "--json", "--", sys.executable, "-m", "pytest", "-q")
    judged = json.loads(finished(mnemarch(shop, *pytest_q, **who)))
    assert [unit["content"] for unit in judged["units"]] == [claim] * is_raised
    why = [
        "test_retry_2 expects 4, and the claim says something else. State what the test shows, or let a lead accept it."
    ]
    assert [one["reason"] for one in judged["refused"]] == why * (not is_raised)
    if not is_raised:
        told = json.loads(finished(mnemarch(shop, "recall", claim, "--kind", "fact", "--json", **who)))
        assert [item["label"] for item in told["items"]] == ["[HYPOTHESIS: test_retry_2 changed]"]
        # The claim holds again once the test does.
        for path, old in ((shop / "src" / "mod2.py", "times=4"), (shop / "test_mod2.py", "== 4")):
            path.write_text(path.read_text().replace(old, old.replace("4", "2")))
        assert len(json.loads(finished(mnemarch(shop, *pytest_q, **who)))["units"]) == 1


@pytest.mark.parametrize(
    ("claim", "shown"),
    [
        ("retry_2 tries 5 times before it gives up", "retry_2 tries twice before it gives up"),
        ("retry_2는 다섯 번 시도한다", "retry_2는 두 번 시도한다"),
    ],
)
def test_a_claim_is_not_verified_by_a_test_that_says_something_else(trees, claim, shown):
    shop, who = trees[1].parent / "shop", {"agent": "agent:coder-1", "task": "T-1"}
    worked(shop, 2)
    cite = ("--cite", "test:test_mod2.py::test_retry_2")
    told = "test_retry_2 expects 2, and the claim says something else."
    assert told in finished(mnemarch(shop, "remember", claim, *cite, **who))
    verify = ("verify", "--json", "--", sys.executable, "-m", "pytest", "-q")
    judged = json.loads(finished(mnemarch(shop, *verify, **who)))
    assert (judged["units"], [one["reason"].startswith(told) for one in judged["refused"]]) == ([], [True])
    # Nor by an earlier pass, when it is said again or gets the citation later.
    assert "hypothesis" in finished(mnemarch(shop, "remember", claim, *cite, **who))
    reported = mnemarch(shop, "verify", "--passed", "--test", cite[1].removeprefix("test:"), "--json", **who)
    assert json.loads(finished(reported))["units"] == []
    assert told in finished(mnemarch(shop, "explain", judged["refused"][0]["unit_id"], **who))
    assert "verified" in finished(mnemarch(shop, "remember", shown, *cite, **who))


def test_a_pass_of_another_version_of_a_test_verifies_nothing(trees):
    shop, who = trees[1].parent / "shop", {"agent": "agent:coder-1", "task": "T-1"}
    worked(shop, 2)
    pytest_q = ("verify", "--json", "--", sys.executable, "-m", "pytest", "-q")
    finished(mnemarch(shop, *pytest_q, **who))
    cite = ("--cite", "test:test_mod2.py::test_retry_2", "--json")

    def claimed(content, **where):
        stored = json.loads(finished(mnemarch(shop, "remember", content, *cite, **where)))
        return stored["unit"]["status"], stored["unit"]["scope"]["worktree"]

    assert claimed("retry_2 tries 2 times before it gives up", **who) == ("verified", None)
    test, code = shop / "test_mod2.py", shop / "src" / "mod2.py"
    test.write_text(test.read_text().replace("== 2", "== 7"))
    assert claimed("retry_2 tries 7 times before it gives up", **who) == ("hypothesis", "main")
    bare = json.loads(finished(mnemarch(shop, "remember", "retry_2 never sleeps", "--json", **who)))["unit"]["id"]
    cited = json.loads(finished(mnemarch(shop, "cite", bare, "test:test_retry_2", "--json", **who)))
    assert cited["status"] == "hypothesis"
    assert "… test:test_mod2.py::test_retry_2" in finished(mnemarch(shop, "explain", bare, **who))
    run = mnemarch(shop, *pytest_q, **who)
    assert json.loads(run.communicate(timeout=120)[0])["units"] == []
    code.write_text(code.read_text().replace("times=2", "times=7"))
    raised = json.loads(finished(mnemarch(shop, *pytest_q, **who)))["units"]
    assert [one["content"] for one in raised] == ["retry_2 tries 7 times before it gives up", "retry_2 never sleeps"]


def test_a_pass_elsewhere_of_a_test_that_was_changed_and_fails_here_verifies_nothing_cited_by_its_bare_name(trees):
    shop, who = trees[1].parent / "shop", {"agent": "agent:coder-2", "task": "T-2"}
    worked(trees[2], 2)
    finished(mnemarch(trees[2], "remember", "retry_2 never sleeps", "--cite", "test:test_retry_2", **who))
    worked(shop, 2)
    pytest_q = ("verify", "--json", "--", sys.executable, "-m", "pytest", "-q")
    finished(mnemarch(shop, *pytest_q, agent="agent:coder-1", task="T-1"))
    test = trees[2] / "test_mod2.py"
    test.write_text(test.read_text().replace("== 2", "== 7"))
    judged = json.loads(mnemarch(trees[2], *pytest_q, **who).communicate(timeout=120)[0])
    assert (judged["passed"], judged["units"]) == (False, [])


def test_a_test_that_a_claim_came_before_verifies_it(trees):
    shop, who = trees[1].parent / "shop", {"agent": "agent:coder-1", "task": "T-1"}
    finished(mnemarch(shop, "remember", LESSONS[2], "--cite", "test:test_mod2.py::test_retry_2", **who))
    worked(shop, 2)
    judged = finished(mnemarch(shop, "verify", "--json", "--", sys.executable, "-m", "pytest", "-q", **who))
    assert [unit["content"] for unit in json.loads(judged)["units"]] == [LESSONS[2]]
