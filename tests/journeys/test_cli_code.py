"""Loops and sweeps from the command line."""

from __future__ import annotations

from cli_session import TEST
from code_session import git

POOL = "TimeoutError: QueuePool limit of size 5 reached, timeout 30.00"


def test_the_third_failure_is_blocked_with_an_instruction(cli):
    assert cli("fail", POOL).exit_code == 0
    assert cli("fail", "-", stdin=POOL.replace("size 5", "size 7").encode()).exit_code == 0
    run = cli("fail", stdin=POOL.encode())
    assert run.exit_code == 1
    assert run.out.startswith("BLOCK  seen 3 times: ")
    assert "ask a person" in run.out


def test_attempts_lists_what_failed_and_why(cli):
    assert "No approach has failed" in cli("attempts").out
    cli.ok("fail", POOL, "--approach", "raise the pool size")
    assert cli("approach", "raise the pool size").out.count("already") == 1
    assert cli("stuck", "needs a password").out == "stuck  T-1\n"  # In whatever worktree: they share its attempts.
    told = cli.ok("attempts")
    assert told["stuck"] == "needs a password"
    assert told["failed"][0]["approach"] == "raise the pool size"
    assert "raise the pool size" in cli("attempts").out
    assert cli("approach", "try anything").out.startswith("The task is stuck: ")


def test_a_failed_verification_reports_its_loop(cli):
    argv = ("verify", "--failed", "--test", TEST, "--error", "-", "--approach", "raise the pool size")
    assert cli.ok(*argv, stdin=POOL.encode())["loop"]["type"] == "ALLOW"
    assert cli.ok(*argv, stdin=POOL.encode())["loop"]["type"] == "WARN"
    run = cli(*argv, stdin=POOL.encode())
    assert run.exit_code == 1
    assert "STOP." in run.out.partition("\nno claim of this task waits for these tests\n")[2]
    cli.ok("verify", "--passed")
    assert cli.ok("attempts")["failed"], "an agent's own word clears nothing"
    cli.ok("verify", "--passed", "--actor", "human:ada")
    assert cli.ok("attempts") == {"stuck": None, "failed": []}


def test_the_janitor_says_what_it_did(cli):
    cli.repository(src__a_py="def f(x):\n    return x\n")
    cli.ok("remember", "f gives back what it is given", "--level", "worktree", "--cite", "symbol:src/a.py::f")
    assert cli.ok("janitor") == {"checked": 1, "archived": 0, "revived": 0, "moved": 0, "skipped": 0}
    cli.repository(src__a_py="def g(x):\n    return x\n")
    found = cli.ok("recall", "what does f give back")
    assert found["items"] == []
    assert found["withheld"][0]["reason"] == "stale: src/a.py no longer defines f"
    run = cli("janitor")
    assert run.out.startswith("checked  1 units: ")
    assert cli.ok("units", "--status", "archived")[0]["archive_reason"].startswith("stale: ")
    cli.repository(src__a_py="def f(x):\n    return x\n")
    assert cli.ok("janitor")["revived"] == 1
    assert len(cli.ok("recall", "what does f give back")["items"]) == 1


def test_a_recall_on_another_branch_takes_nothing_away(cli):
    cli.repository()
    git(cli.home, "checkout", "-qb", "feature")
    cli.repository(refund_py="def refund(order):\n    return order\n")
    cited = ("--cite", "symbol:refund.py::refund", "--cite", "test:t1")
    cli.ok("remember", "refund gives the full amount back", *cited, "--level", "worktree")
    cli.ok("verify", "--passed", "--test", "t1")
    git(cli.home, "checkout", "-q", "main")
    for _ in range(2):
        (held,) = cli.ok("recall", "refund amount")["withheld"]
        assert held["reason"] == "stale: refund.py is not there"
    assert cli.ok("janitor")["archived"] == 0
    git(cli.home, "checkout", "-q", "feature")
    assert len(cli.ok("recall", "refund amount")["items"]) == 1


def test_recall_looks_back_at_a_commit(cli):
    cli.repository(src__a_py="def f(x):\n    return x\n")
    cli.ok("remember", "f gives back what it is given", "--level", "worktree", "--cite", "symbol:src/a.py::f")
    cli.repository(src__a_py="def g(x):\n    return x\n")
    assert cli.ok("recall", "what does f give back")["items"] == []
    wrong = cli("recall", "f", "--at-commit", "nonsense")
    assert wrong.exit_code == 2
    assert "No commit" in wrong.err


def test_an_output_that_is_no_utf8_is_counted_all_the_same(cli):
    for _ in range(2):
        assert cli("fail", "-", stdin=b"TypeError: \xe9 is no number").exit_code == 0
    assert cli("fail", "-", stdin=b"TypeError: \xe9 is no number").exit_code == 1
