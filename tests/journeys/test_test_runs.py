"""Tests are run for real: what the user sees, and which tests are seen to pass, whatever starts the runner."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_session import shown_at_terminal

from fixtures.repositories import git
from mnemarch import InvalidInput
from mnemarch.model.testrun import Outcome
from mnemarch.witness.run import run_tests

FIXTURES = Path(__file__).parents[1] / "fixtures" / "runs"
PYTEST = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
SUITE = """
import pytest

class TestX:
    @pytest.mark.parametrize("a", ["x", "a::b/c"])
    def test_p(self, a): assert a

def test_ok(): pass
@pytest.mark.skip
def test_skipped(): pass
@pytest.mark.xfail
def test_known(): assert 0
"""
FAILING = """
import pytest

def test_bad(): assert "three" == "two", "checkout must retry"
@pytest.fixture
def broken(): raise KeyError("nope")
def test_setup(broken): pass
@pytest.fixture
def untidy():
    yield
    raise OSError("left open")
def test_teardown(untidy): pass
"""
PASSED = {"test_a.py::TestX::test_p[x]", "test_a.py::TestX::test_p[a::b/c]", "test_a.py::test_ok"}
SKIPPED = {"test_a.py::test_skipped", "test_a.py::test_known"}


class Project:
    """A folder with tests in `api/`, and what came of running them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.out, self.err = io.StringIO(), io.StringIO()
        self.write("pytest.ini", "[pytest]\n")
        self.write("test_a.py", SUITE)

    def write(self, name: str, text: str) -> None:
        path = self.root / "api" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run(self, *command: str, cwd: str = "api", **options):
        return run_tests(
            command, cwd=str(self.root / cwd), root=str(self.root), streams=(self.out, self.err), **options
        )


@pytest.fixture
def project(tmp_path, monkeypatch) -> Project:
    for name in ("PYTEST_XDIST_WORKER", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return Project(tmp_path)


def below(names: set[str]) -> set[str]:
    return {f"api/{name}" for name in names}


@pytest.mark.parametrize(
    ("command", "cwd"),
    [
        (["pytest"], "api"),
        ([*PYTEST, "-q", "api"], "."),
        ([*PYTEST, "-q", "-n", "2"], "api"),
        (["make", "-C", "api", "test"], "."),
        (["bash", "-c", "cd api && pytest -q"], "."),
    ],
)
def test_every_test_is_seen_by_its_own_name(project, command, cwd):
    project.write("Makefile", "test:\n\t@pytest -q\n")
    run = project.run(*command, cwd=cwd)
    assert (run.exit_code, run.passed, run.witnessed, run.runner or "pytest") == (0, True, True, "pytest")
    assert set(run.named(Outcome.PASS)) == below(PASSED)
    assert set(run.named(Outcome.SKIP)) == below(SKIPPED)
    assert "3 passed" in project.out.getvalue()


def test_failures_have_their_first_error_whichever_phase_failed(project):
    project.write("test_b.py", FAILING)
    project.write("test_c.py", "import nowhere")
    run = project.run(*PYTEST, "--continue-on-collection-errors")
    assert not run.passed
    assert set(run.named(Outcome.PASS)) == below(PASSED)
    first_lines = {result.name: result.message.splitlines()[0] for result in run.results if result.message}
    assert "nowhere" in next(result.message for result in run.results if result.name == "api/test_c.py")
    assert first_lines.keys() == below(
        {"test_b.py::test_bad", "test_b.py::test_setup", "test_b.py::test_teardown", "test_c.py"}
    )
    assert first_lines["api/test_b.py::test_bad"] == "AssertionError: checkout must retry"
    assert first_lines["api/test_b.py::test_setup"] == "KeyError: 'nope'"


def test_the_user_sees_what_the_runner_prints_and_nothing_else(project):
    project.run(*PYTEST, "-v", "test_a.py")
    alone = subprocess.run(
        [*PYTEST, "-v", "test_a.py"], cwd=project.root / "api", capture_output=True, encoding="utf-8"
    )
    seen, printed = project.out.getvalue().splitlines(), alone.stdout.splitlines()
    assert seen[:-1] == printed[:-1]
    assert project.err.getvalue() == alone.stderr


@pytest.mark.parametrize("alone", [False, True])
def test_a_run_that_tests_start_is_not_recorded(project, monkeypatch, alone):
    if alone:
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    project.write("inner/test_inner.py", "def test_inner(): assert 0")
    project.write(
        "test_outer.py",
        "import subprocess, sys, os\ndef test_outer():\n"
        "    assert 'PYTHONPATH' not in os.environ\n"
        "    assert subprocess.run([sys.executable, '-m', 'pytest', 'inner']).returncode == 1\n",
    )
    run = project.run(*PYTEST, "test_outer.py")
    assert run.named(Outcome.PASS) == ("api/test_outer.py::test_outer",)
    assert run.passed


def test_a_command_with_its_own_python_path_still_runs(project):
    run = project.run("bash", "-c", "PYTHONPATH=src pytest -v")
    assert set(run.named(Outcome.PASS)) == below(PASSED)


def test_unittest_names_its_tests_without_being_asked_to(project):
    project.write(
        "test_u.py",
        "import unittest\nclass Cart(unittest.TestCase):\n"
        "    def test_adds(self): pass\n    def test_fails(self): self.assertEqual(1, 2)\n"
        "    @unittest.skip('later')\n    def test_later(self): pass\n"
        "    def test_parts(self):\n        with self.subTest(n=1): self.fail('part')\n",
    )
    run = project.run(sys.executable, "-m", "unittest", "test_u")
    outcomes = {result.name: (result.outcome, result.message) for result in run.results}
    assert outcomes == {
        "api/test_u.Cart.test_adds": (Outcome.PASS, ""),
        "api/test_u.Cart.test_fails": (Outcome.FAIL, "AssertionError: 1 != 2"),
        "api/test_u.Cart.test_later": (Outcome.SKIP, ""),
        "api/test_u.Cart.test_parts": (Outcome.FAIL, "AssertionError: part"),
    }
    assert "FAILED (failures=2, skipped=1)" in project.err.getvalue()
    assert " ... " not in project.err.getvalue()


def test_the_reports_that_a_jvm_runner_leaves_are_read_if_this_run_wrote_them(project):
    reports = "api/target/surefire-reports"
    project.write(
        "target/surefire-reports/TEST-old.xml", '<testsuite><testcase name="old" classname="a.B"/></testsuite>'
    )
    os.utime(project.root / reports / "TEST-old.xml", (0, 0))
    project.write("mvnw", f"#!/bin/sh\ncp {FIXTURES}/surefire.xml {project.root}/{reports}/TEST-new.xml\nexit 1\n")
    (project.root / "api" / "mvnw").chmod(0o755)
    run = project.run("./mvnw", "-q", "test")
    assert run.named(Outcome.PASS) == ("com.acme.CartTest.adds", "com.acme.CartTest.flaky")
    assert run.error == "java.lang.AssertionError: expected:<1> but was:<2>"


def test_a_configured_check_is_one_test_named_by_its_command(project):
    project.write("check.sh", 'echo "checked $1"; exit $1')
    for exit_code, outcome in ((0, Outcome.PASS), (3, Outcome.FAIL)):
        run = project.run("sh", "check.sh", str(exit_code), configured=["sh check.sh"])
        assert run.named(outcome) == ("api/sh check.sh",)
        assert (run.exit_code, run.output) == (exit_code, f"checked {exit_code}")


@pytest.mark.parametrize(
    "command", [["echo", "ok"], ["bash", "-c", "touch ran; pytest || true"], ["pytest-no", "x"], []]
)
def test_what_is_no_test_command_is_not_run(project, command):
    with pytest.raises(InvalidInput) as refused:
        project.run(*command)
    assert "so it was not run" in refused.value.message
    assert not (project.root / "api" / "ran").exists()


def test_a_runner_that_is_not_there_is_said(project, monkeypatch):
    monkeypatch.setenv("PATH", str(project.root))
    with pytest.raises(InvalidInput, match="'pytest' can't be started: No such file or directory"):
        project.run("pytest")


def test_a_process_that_tests_leave_behind_does_not_hold_up_the_run(project):
    """It keeps the pipe open that the tests print to."""
    fifo = project.root / "fifo"
    os.mkfifo(fifo)
    start = f"subprocess.Popen(['cat', {str(fifo)!r}])"
    project.write("test_left.py", f"import subprocess\ndef test_it(): {start}\n")
    try:
        assert project.run(*PYTEST, "-s", "-W", "ignore", "test_left.py").passed
    finally:
        fifo.write_text("")


RUNNER = """
import sys
from mnemarch.witness.run import run_tests
run_tests(sys.argv[1:], cwd=".")
print("not reached")
"""
SLOW = """
import os, signal, subprocess, sys, time
def test_slow():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    print("child", child.pid, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize(
    ("number", "exit_code"),
    [(signal.SIGINT, -signal.SIGINT), *((number, 128 + number) for number in (signal.SIGTERM, signal.SIGQUIT))],
)
def test_an_interrupt_ends_the_tests_and_all_that_they_started(project, number, exit_code):
    project.write("test_slow.py", SLOW)
    command = [sys.executable, "-c", RUNNER, *PYTEST, "-s", "test_slow.py"]
    process = subprocess.Popen(
        command, cwd=project.root / "api", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    line = next(line for line in process.stdout if "child" in line)
    process.send_signal(number)
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == exit_code
    assert "not reached" not in printed
    # What nobody waits for may stay a zombie.
    state = subprocess.run(["ps", "-o", "stat=", "-p", line.split()[-1]], capture_output=True, text=True).stdout
    assert state[:1] in {"", "Z"}


TEST = "test_a.py::test_ok"


@pytest.fixture
def verifying(cli, project):
    """The command line in a repository with tests, and a claim that cites one of them."""
    cli.repository(
        test_a_py=SUITE,
        test_b_py="import os\nTAKEN = {'taken', 'FORCE_COLOR'}\n"
        "def test_free(): assert not TAKEN & {*os.listdir(), *os.environ}, 'port 80'\n",
    )
    cli.ok("remember", "Checkout retries three times", "--cite", f"test:{TEST}")
    return cli


def test_a_claim_is_raised_by_a_test_that_was_seen_to_pass(verifying):
    run = verifying("verify", "--", *PYTEST, "-q")
    assert run.exit_code == 0
    assert "4 passed" in run.out.splitlines()[1]
    assert "witnessed  4 passed, 2 skipped: " in run.out
    assert "raised" in run.out
    promotion = verifying("verify", "--json", "--", *PYTEST, "-q", TEST).json
    assert (promotion["witnessed"], promotion["run"]["exit_code"]) == (True, 0)
    assert promotion["run"]["results"] == [{"name": TEST, "outcome": "pass", "message": ""}]
    assert promotion["run"]["commit"] == git(verifying.home, "rev-parse", "HEAD")


def test_on_a_terminal_the_runner_prints_colours(verifying):
    shown, exit_code = shown_at_terminal(["verify", "--", *PYTEST, "-q"], [], verifying.home, MNEMARCH_ACTOR="agent:a")
    assert exit_code == 0, shown
    assert "\x1b[32m" in shown
    assert "witnessed  4 passed, 2 skipped: " in shown


def test_a_claim_whose_test_was_not_among_them_is_not_raised(verifying):
    run = verifying("verify", "--", *PYTEST, "-q", "test_b.py")
    assert run.exit_code == 0
    assert "raised" not in run.out
    assert f"No verification recorded {TEST} as passed" in run.out


def test_a_failing_run_asks_the_loop_guard_by_itself(verifying):
    for verdict in ("ALLOW", "WARN", "BLOCK"):
        (verifying.home / "taken").write_text(f"something was tried before {verdict}")
        run = verifying("verify", "--approach", "another port", "--", *PYTEST, "-q", "test_b.py")
        assert run.exit_code == 1
        assert "witnessed  1 failed: " in run.out
        assert f"{verdict}  " in run.out
    assert "AssertionError: port 80" in run.out
    assert "STOP." in run.out
    (verifying.home / "taken").unlink()
    assert verifying("verify", "--approach", "another port", "--", *PYTEST, "-q").exit_code == 0


def test_a_report_of_an_agent_is_reported_and_one_of_an_orchestrator_is_witnessed_at_its_commit(verifying):
    subprocess.run([*PYTEST, "-q", "--junitxml=report.xml"], cwd=verifying.home, stdout=subprocess.DEVNULL, check=True)
    for actor, options, witnessed in (
        ("agent:a", ["--commit", "HEAD"], False),
        ("orchestrator:ci", [], True),
        ("orchestrator:ci", ["--commit", "HEAD"], True),
    ):
        promotion = verifying.ok("verify", "--report", "report.xml", *options, "--actor", actor)
        assert promotion["witnessed"] is witnessed
        assert promotion["run"]["commit"] == git(verifying.home, "rev-parse", "HEAD")
        assert TEST in [result["name"] for result in promotion["run"]["results"]]


def test_a_report_that_is_older_than_an_edit_of_its_tests_is_not_taken_for_them(verifying):
    report, test = verifying.home / "report.xml", verifying.home / TEST.partition("::")[0]
    subprocess.run([*PYTEST, "-q", "--junitxml=report.xml"], cwd=verifying.home, stdout=subprocess.DEVNULL, check=True)
    hand_in = ("verify", "--report", "report.xml", "--actor", "orchestrator:ci")
    os.utime(test, (1e9 + report.stat().st_mtime,) * 2)
    assert verifying.ok(*hand_in)["witnessed"]  # As after a checkout: the file is newer, and nothing was edited.
    test.write_text(test.read_text() + "\n# edited\n")
    os.utime(report, (0, 0))
    refused = verifying(*hand_in)
    assert refused.exit_code == 2
    assert f"{test.name} was edited after report.xml was written." in refused.err
    assert verifying.ok(*hand_in, "--commit", "HEAD")["witnessed"]
    os.utime(report, (2e9 + test.stat().st_mtime,) * 2)
    assert verifying.ok(*hand_in)["witnessed"]


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--", "echo", "ok"], "not a test command that Mnemarch knows"),
        (["--", "bash", "-c", "pytest || true"], "can succeed while its tests fail"),
        (["--", *PYTEST, "-k", "nosuch"], "named no test"),
        (["--", *PYTEST, "-k", "test_known"], "named no test"),
        (["--passed", "--", "pytest"], "is one of these: a run, a report, or your own word"),
        (["--"], "not a test command"),
        ([], "is one of these: a run, a report, or your own word"),
        (["--test", "a", "--", "pytest"], "reports its own tests and errors"),
        (["--commit", "HEAD", "--", "pytest"], "the checked-out code"),
        (["--report", "none.xml"], "none.xml can't be read"),
        (["pytest", "-q"], "verify does not take -q"),
    ],
)
def test_what_verifies_nothing_is_refused_and_leaves_no_trace(verifying, argv, says):
    before = verifying.ok("stats")["events"]
    run = verifying("verify", *argv)
    assert (run.exit_code, says in run.err) == (2, True), run
    assert "hint: " in run.err
    assert verifying.ok("stats")["events"] == before


# Runners that this machine may not have.


@pytest.mark.skipif(
    subprocess.getstatusoutput("cargo --version")[0] != 0, reason="no cargo, or one without a toolchain"
)
def test_cargo_names_its_tests(project):
    project.write("Cargo.toml", '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n')
    project.write("src/lib.rs", "#[test] fn adds() {}\n#[test] fn fails() { assert_eq!(1, 2); }\n")
    run = project.run("cargo", "test", "--offline")
    assert run.named(Outcome.PASS) == ("api/adds",)
    assert "assertion `left == right` failed" in run.error


@pytest.mark.skipif(shutil.which("node") is None, reason="no node")
def test_node_names_its_tests(project):
    project.write(
        "a.test.js", "const { test } = require('node:test'); test('adds', () => {}); test('fails', () => { throw 1 });"
    )
    project.write("package.json", '{"scripts": {"test": "node --test"}}')
    for command in (["node", "--test"], ["npm", "test"]):
        run = project.run(*command)
        assert (run.named(Outcome.PASS), run.named(Outcome.FAIL)) == (("api::adds",), ("api::fails",))
