"""Which commands run tests, and what runners' reports and outputs say of each test."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from fixtures.cases import cases
from mnemarch import InvalidInput
from mnemarch.model.testrun import Outcome, TestResult, TestRun, is_covered
from mnemarch.witness import runner_of
from mnemarch.witness.output import from_output
from mnemarch.witness.reports import of_tap, read_report
from mnemarch.witness.run import GoText

RUNS = Path(__file__).parents[1] / "fixtures" / "runs"
EXPECTED = json.loads((RUNS / "expected.json").read_text(encoding="utf-8"))
COMMANDS = dict(cases("witness", "commands"))


def outcomes(run: TestRun) -> dict[str, str]:
    return {
        result.name: f"{result.outcome}: {result.message.splitlines()[0]}" if result.message else str(result.outcome)
        for result in run.results
    }


@pytest.mark.parametrize(("command", "runner"), cases("witness", "a runner is known through what starts it"))
def test_a_runner_is_known_through_what_starts_it(command, runner):
    assert runner_of(command).runner == runner
    assert runner_of(["bash", "-lc", f"cd web && {command}"]).folder == "web"


@pytest.mark.parametrize(
    ("command", "folder"),
    [
        ("npm --prefix tools test", "tools"),
        ("pnpm -C app -s run test:unit", "app"),
        ("make -j 4 -C api CC=gcc test", "api"),
        ("yarn --cwd=web test", "web"),
        ("make test", ""),
    ],
)
def test_a_runner_that_goes_to_a_folder_tests_there(command, folder):
    assert runner_of(command).folder == (folder or ".")
    assert runner_of(["bash", "-c", f"cd sub && {command}"]).folder == os.path.join("sub", folder).rstrip("/")


@pytest.mark.parametrize(
    "command",
    [
        *("echo ok", "true", "exit 0", "cat pytest.log", "grep -r pytest .", "pip install pytest", "make build", ""),
        *(
            "pytest --version",
            "pytest --collect-only -q",
            "python -m pytest --co",
            "cargo test --no-run",
            "jest --help",
        ),
        *("uv run --with pytest echo ok", "if pytest; then", "! pytest", "echo 'pytest", "npm run build", "yarn"),
    ],
)
def test_what_runs_no_test_is_no_test_command(command):
    assert runner_of(command) is None
    assert runner_of(["sh", "-c", command]) is None


@pytest.mark.parametrize(
    "command", ["pytest || true", "pytest; true", "pytest | tail -5", "pytest & wait", "(pytest; ls)"]
)
def test_a_command_that_can_succeed_while_its_tests_fail_does_not_decide(command):
    assert not runner_of(command).decides


def test_redirections_and_what_must_succeed_first_leave_the_exit_code_alone():
    assert runner_of("cd api && make build && pytest -q > out.txt 2>&1").decides


def test_a_configured_command_counts_by_its_first_words():
    assert runner_of("packer validate x") is None
    assert runner_of(["packer", "validate", "x"], ["packer validate"]).named == "packer validate"
    assert runner_of("packer build x", ["packer validate"]) is None


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("terraform validate -json", "terraform validate"),
        ("bundle exec rspec spec/pool_spec.rb", "rspec"),
        ("dotnet test --no-build Shop.sln", "dotnet test"),
        ("npx playwright test", "playwright test"),
    ],
)
def test_a_run_whose_tests_are_not_read_is_one_test_named_by_its_command(command, named):
    assert runner_of(command).named == named
    assert from_output(command, 0, "All is well.").named(Outcome.PASS) == (named,)
    assert from_output(command, 1, "Not so well.").named(Outcome.FAIL) == (named,)


@pytest.mark.parametrize("command", ["terraform apply", "dotnet build", "rspec --version", "dotnet testing", "helm"])
def test_what_only_looks_like_such_a_run_is_none(command):
    assert runner_of(command) is None


@pytest.mark.parametrize("name", sorted(name for name in EXPECTED if name.endswith(".txt")))
@pytest.mark.parametrize("generic", [False, True])
def test_what_a_runner_prints_names_its_tests(name, generic):
    command = "make test" if generic else next(COMMANDS[key] for key in COMMANDS if name.startswith(key))
    run = from_output(command, 1, (RUNS / name).read_text(encoding="utf-8"))
    assert outcomes(run) == EXPECTED[name]
    assert not run.passed
    # The summary tells it, too, where the exit code does not.
    piped = from_output(f"{command} | tail -200", 0, (RUNS / name).read_text(encoding="utf-8"))
    assert (piped.results, piped.passed) == (run.results, False)


@pytest.mark.parametrize("name", sorted(name for name in EXPECTED if not name.endswith(".txt")))
def test_what_a_runner_writes_names_its_tests(name, tmp_path):
    assert outcomes(read_report(str(RUNS / name), root=str(tmp_path))[0]) == EXPECTED[name]


@pytest.mark.parametrize(
    ("command", "printed", "passed"),
    [
        ("pytest -q", "..... [100%]\n5 passed in 0.12s", True),
        ("pytest -q 2>&1 | tail -3", "1 failed, 4 passed in 0.12s", False),
        ("cd a && pytest -q; echo done", "===== 4 passed, 1 warning in 61.20s (0:01:01) =====\ndone", True),
        ("python -m unittest", "Ran 3 tests in 0.001s\n\nOK (skipped=1)", True),
        ("cargo test", "test result: ok. 5 passed; 0 failed; 0 ignored", True),
    ],
)
def test_a_summary_without_names_tells_how_a_run_ended(command, printed, passed):
    run = from_output(command, None, printed)
    assert (run.passed, run.results) == (passed, ())


@pytest.mark.parametrize(
    ("command", "exit_code", "printed"),
    [
        ("pytest -q", 0, "Command running in background"),
        ("cat log.txt", 0, "5 passed in 0.12s"),
        ("pytest -q || true", 0, "bash: pytest: command not found"),
        ("pytest", None, ""),
    ],
)
def test_an_output_without_a_test_run_is_none(command, exit_code, printed):
    assert from_output(command, exit_code, printed) is None


def test_names_are_relative_to_the_root_wherever_the_command_ran(tmp_path):
    printed = "FAILED tests/test_a.py::test_b[x::/y] - KeyError: 'a'\n1 failed in 0.1s"
    where = {"cwd": str(tmp_path / "api"), "root": str(tmp_path)}
    assert from_output("cd v2 && pytest", 1, printed, **where).results == (
        TestResult(name="api/v2/tests/test_a.py::test_b[x::/y]", outcome=Outcome.FAIL, message="KeyError: 'a'"),
    )
    checked = from_output("terraform validate", 0, "Success!", **where)
    assert checked.named(Outcome.PASS) == ("api/terraform validate",)


@pytest.mark.parametrize(
    ("command", "printed", "cited", "named"),
    [
        ("node --test", "ok 1 - GET /carts/../x works\n1..1", "GET /carts/../x works", "api::GET /carts/../x works"),
        (
            "go test -v",
            "--- PASS: TestSize (0.00s)\nok  \texample.com/shop/pool\t0.01s",
            "TestSize",
            "example.com/shop/pool.TestSize",
        ),
    ],
)
def test_a_test_of_a_subfolder_is_cited_by_its_bare_name(command, printed, cited, named, tmp_path):
    run = from_output(command, 0, printed, cwd=str(tmp_path / "api"), root=str(tmp_path))
    assert named in run.named(Outcome.PASS)
    assert is_covered(named, cited)


def test_reports_name_files_as_the_root_has_them(tmp_path):
    for name in ("web/a.test.js", "api/tests/test_a.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    report = json.loads((RUNS / "jest.json").read_text(encoding="utf-8").replace("/shop/", "/shop/web/"))
    (tmp_path / "jest.json").write_text(json.dumps(report), encoding="utf-8")
    assert "web/a.test.js::top" in outcomes(read_report(str(tmp_path / "jest.json"), root=str(tmp_path))[0])
    (tmp_path / "api" / "report.xml").write_text((RUNS / "pytest.xml").read_text(encoding="utf-8"), encoding="utf-8")
    for path in ("api/report.xml", "api"):
        assert "api/tests/test_a.py::test_ok" in outcomes(read_report(str(tmp_path / path), root=str(tmp_path))[0])


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    "text",
    [
        *("", "hello", "{}", '{"a": 1}', "[1]", '{"testResults": 1}', '{"testResults": [{}]}', '{"Action": "output"}'),
        *(
            "<html></html>",
            "<testsuite><testcase",
            "<testsuite>" + "<a>" * 100_000,
            "<a/>" * 3,
            "\x00\xff",
            "{" * 100_000,
        ),
        f"{BOMB}<testsuite name='&b;'></testsuite>",
        "<!DOCTYPE x SYSTEM 'file:///etc/passwd'><testsuite/>",
        '{"testResults": ' + "[" * 100_000,
    ],
    ids=range(17),
)
def test_what_is_no_report_is_refused(text, tmp_path):
    path = tmp_path / "report"
    path.write_text(text, encoding="utf-8", errors="replace")
    with pytest.raises(InvalidInput) as refused:
        read_report(str(path))
    assert str(path) in refused.value.message
    assert refused.value.hint


def test_a_report_that_is_not_there_or_a_folder_without_one_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "report.xml"):
        with pytest.raises(InvalidInput):
            read_report(str(path))


@pytest.mark.parametrize("size", [7, 1_000_000])
def test_what_go_writes_for_programs_is_shown_as_text(size, tmp_path):
    written = (RUNS / "go.json").read_bytes()
    shown = GoText(str(tmp_path / "report.json"))
    text = b"".join(shown.text(written[at : at + size]) for at in range(0, len(written), size)).decode()
    printed = (RUNS / "go-v.txt").read_text(encoding="utf-8")
    # What doesn't build is told by go itself.
    verdicts, expected = (re.findall(r"--- (?:PASS|FAIL|SKIP): \S+", each) for each in (text, printed))
    assert sorted(verdicts) == sorted(expected) != []
    assert "=== RUN" not in text
    assert (tmp_path / "report.json").read_bytes() == written


def test_a_hostile_output_is_read_to_its_end():
    for line in ("ok 1 - " + " " * 200_000, "a.py::" * 50_000, "\x1b[" * 100_000, "PASS " + "x/" * 100_000):
        assert from_output("make test", 1, f"{line}\n1 failed in 0.1s").exit_code == 1


def test_a_run_without_a_test_says_nothing():
    skipped = (TestResult(name="t", outcome=Outcome.SKIP),)
    for exit_code, results in ((5, ()), (0, ()), (0, skipped)):
        assert not TestRun(runner="pytest", command="pytest", results=results, exit_code=exit_code).ran
    broken = TestRun(runner="pytest", command="pytest", results=(), exit_code=4)
    assert (broken.ran, broken.passed, broken.error) == (True, False, "pytest ended with exit code 4")


def test_a_message_that_pytest_cut_off_is_completed_by_its_traceback():
    names = ("unit_price", "list_price")
    told = "\n".join(f"E   AttributeError: 'dict' object has no attribute '{name}'" for name in names)
    summary = "\n".join(f"FAILED t.py::test_{name} - AttributeError: 'dict' object has no ..." for name in names)
    run = from_output("pytest -q", 1, f"{told}\n{summary}\n2 failed in 0.1s\n")
    assert [result.message for result in run.results] == [
        f"AttributeError: 'dict' object has no attribute '{name}'" for name in names
    ]
    alone = from_output("pytest -q", 1, f"{summary}\n2 failed in 0.1s\n")
    assert {result.message for result in alone.results} == {"AttributeError: 'dict' object has no ..."}


def test_a_file_that_could_not_be_loaded_passes_with_a_clean_run_of_it(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_a.py").write_text("def test_a(): ...\n")
    awaited = ["tests/test_a.py", "tests/test_gone.py", "make check", "tests"]
    where = {"cwd": str(tmp_path), "root": str(tmp_path), "awaited": lambda: awaited}
    run = from_output("PYTHONPATH=. pytest -q", 0, ". [100%]\n1 passed in 0.1s\n", **where)
    assert [result.name for result in run.results] == ["tests/test_a.py"]
    elsewhere = from_output("pytest -q tests/test_b.py", 0, ". [100%]\n1 passed in 0.1s\n", **where)
    assert elsewhere.results == ()


def test_an_error_of_several_lines_is_read_from_tap_as_node_writes_it():
    text = (
        "# Subtest: adds tax\nnot ok 1 - adds tax\n  ---\n  duration_ms: 1.9\n  error: |-\n"
        "    Expected values to be strictly equal:\n    \n    13 !== 12\n    \n  code: 'ERR_ASSERTION'\n  ...\n1..1\n"
    )
    assert [each.message for each in of_tap(text)] == ["Expected values to be strictly equal: 13 !== 12"]
