"""Real hosts, offline: each is installed from npm, driven by a scripted model, and has the hooks that install writes.

`make test-hosts` runs these. What the hosts sent to the hook is recorded with `--rewrite`, and `make test` replays it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from scripted_model import ScriptedModel

HOSTS_FOLDER = os.environ.get("MNEMARCH_HOSTS", "")
pytestmark = pytest.mark.skipif(not HOSTS_FOLDER, reason="needs the hosts of npm: make test-hosts")

BIN = Path(HOSTS_FOLDER).absolute() / "node_modules/.bin"
ROOT = Path(__file__).parents[2]
ACTORS = {"copilot": "copilot-cli", "gemini": "gemini-cli"}
RECORDED = Path(__file__).parents[1] / "fixtures/hosts/recorded"
SECONDS_MAX = 300
PROMPT = "How many connections does the pool have? Make its test pass."
LESSON = "The pool has exactly three connections, since the database allows no more."
TEST = "from pool import size\n\n\ndef test_size():\n    assert size() == 3\n"
CLAIM = "size() in pool.py gives three: it counts the connections, and the database allows no more."
STOP = "STOP. Circular fix detected: Same error occurred 3 times."
RUN = "python -m pytest -q test_pool.py"
# Of the environment only what tells hosts apart is recorded: the rest may hold secrets.
SIGNS = ("CLAUDECODE", "CLAUDE_PROJECT_DIR", "COPILOT_CLI", "GEMINI_CLI", "GEMINI_SESSION_ID", "OPENCODE")
RECORDER = """#!{python}
import json, os, subprocess, sys
content = sys.stdin.buffer.read() if sys.argv[1] == "hook" else None
if content is None:
    os.execv({mnemarch!r}, [{mnemarch!r}, *sys.argv[1:]])
answer = subprocess.run([{mnemarch!r}, *sys.argv[1:]], input=content, capture_output=True)
line = {{"environ": {{name: os.environ[name] for name in {signs!r} if name in os.environ}}}}
line |= {{"stdin": json.loads(content), "stdout": answer.stdout.decode(), "exit": answer.returncode}}
line |= {{"stderr": answer.stderr.decode()}}
with open({calls!r}, "a") as file:
    file.write(json.dumps(line) + "\\n")
sys.stdout.write(answer.stdout.decode())
"""


class Bench:
    """A repository with a memory, a linked worktree to work in, a home of its own, and one host."""

    def __init__(self, host: str, folder: Path) -> None:
        self.host, self.folder = host, folder
        self.home, self.repo, self.worktree = folder / "home", folder / "shop", folder / "feature"
        self.calls_file = folder / "calls.jsonl"
        self.home.mkdir()
        self.environ = {
            "HOME": str(self.home),
            "PATH": f"{folder}/bin:{BIN}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        # A login shell begins with a PATH of its own.
        (self.home / ".bash_profile").write_text(f"export PATH={self.environ['PATH']}\n")
        self.command = folder / "bin/mnemarch"
        self.command.parent.mkdir()
        real = str(Path(sys.executable).parent / "mnemarch")
        source = RECORDER.format(python=sys.executable, mnemarch=real, signs=SIGNS, calls=str(self.calls_file))
        self.command.write_text(source)
        self.command.chmod(0o755)
        self.git("init", "-q", "-b", "main", str(self.repo), at=folder)
        (self.repo / "test_pool.py").write_text(TEST)
        self.commit("The pool")
        person = self.home / ".config/mnemarch/person"
        person.parent.mkdir(parents=True)
        person.write_text("ada\n")

    def git(self, *words: str, at: Path | None = None) -> str:
        settings = ["-c", "user.name=ada", "-c", "user.email=ada@example.org"]
        return self.run(["git", *settings, *words], at or self.repo).stdout

    def commit(self, message: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", message)

    def run(self, words: list[str], at: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        environ = self.environ | variables
        done = subprocess.run(words, cwd=at, env=environ, capture_output=True, text=True, timeout=SECONDS_MAX)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done

    def mnemarch(self, *words: str, at: Path | None = None) -> str:
        """What a command prints; hosts are to start the recorder, so it says that it is the program."""
        source = "import sys; from mnemarch.interfaces.cli import main; sys.argv[0] = sys.argv.pop(1); sys.exit(main())"
        return self.run([sys.executable, "-c", source, str(self.command), *words], at or self.repo).stdout

    def files(self) -> dict[str, bytes]:
        """Every file of the repository and of the home, but for git's and the memory's own, and what hosts keep."""
        names = [line for line in self.git("ls-files", "--cached", "--others").splitlines() if ".mnemarch/" not in line]
        return {name: (self.repo / name).read_bytes() for name in names if (self.repo / name).is_file()}

    def session(self, model: ScriptedModel) -> str:
        """One session of the host in the worktree; what it printed."""
        words, variables = PREPARED[self.host](self, model.url)
        process = subprocess.Popen(
            words,
            cwd=self.worktree,
            env=self.environ | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            printed, _ = process.communicate(timeout=SECONDS_MAX)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return printed

    def calls(self) -> list[dict]:
        """Every call of the hook: environ, stdin, stdout and exit code."""
        return [json.loads(line) for line in self.calls_file.read_text().splitlines()]


def _claude(_: Bench, url: str):
    variables = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "IS_SANDBOX": "1"}
    variables |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    return ["claude", "-p", PROMPT, "--allowedTools", "Bash,Write", "--verbose"], variables


def _codex(bench: Bench, url: str):
    trusted = "".join(f'[projects."{path}"]\ntrust_level = "trusted"\n' for path in (bench.repo, bench.worktree))
    config = bench.home / ".codex/config.toml"
    config.parent.mkdir(exist_ok=True)
    if not config.exists():  # A plugin is noted in it, too.
        config.write_text(
            'model = "scripted"\nmodel_provider = "scripted"\n[model_providers.scripted]\nname = "scripted"\n'
            f'wire_api = "responses"\n{trusted}'
        )
    options = ["--dangerously-bypass-hook-trust", "--dangerously-bypass-approvals-and-sandbox"]
    return ["codex", "exec", *options, "-c", f'model_providers.scripted.base_url="{url}/v1"', PROMPT], {}


def _copilot(_: Bench, url: str):
    variables = {"COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_BASE_URL": f"{url}/v1", "COPILOT_MODEL": "scripted"}
    return ["copilot", "-p", PROMPT, "--allow-all-tools"], variables | {"COPILOT_ALLOW_ALL": "true"}


def _gemini(bench: Bench, url: str):
    settings = bench.home / ".gemini/settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text('{"security": {"auth": {"selectedType": "gemini-api-key"}}}')
    variables = {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "none", "GEMINI_CLI_TRUST_WORKSPACE": "true"}
    # A named model: to choose one, it would ask a model.
    return ["gemini", "-p", PROMPT, "-y", "-m", "gemini-2.5-flash"], variables


def _opencode(bench: Bench, url: str):
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "scripted", "models": {"scripted": {"name": "scripted"}}}
    provider |= {"options": {"baseURL": f"{url}/v1", "apiKey": "none"}}
    config = {"model": "scripted/scripted", "small_model": "scripted/scripted", "autoupdate": False}
    config |= {"permission": {"*": "allow"}, "provider": {"scripted": provider}}
    path = bench.home / ".config/opencode/opencode.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(config))
    return ["opencode", "run", PROMPT], {"OPENCODE_DISABLE_MODELS_FETCH": "1"}


PREPARED = {"claude-code": _claude, "codex": _codex, "copilot": _copilot, "gemini": _gemini, "opencode": _opencode}


@pytest.mark.parametrize("host", PREPARED)
def test_a_host_is_given_context_stopped_in_its_circle_and_witnessed(host, tmp_path, request):
    bench = Bench(host, tmp_path)
    bench.mnemarch("init")
    bench.mnemarch("remember", LESSON, "--actor", "human:ada")
    before = bench.files()
    bench.mnemarch("install", host)
    bench.commit("Mnemarch")
    bench.git("worktree", "add", "-q", "-b", "feature", str(bench.worktree))

    # Three ways to the same error: a run without any change would be no new attempt.
    pool = str(bench.worktree / "pool.py")
    tries = [(pool, f"def size():\n    return {size}\n") for size in ("2", "1 + 1", "len('ab')", "3")]
    steps = [step for change in tries for step in (change, RUN)]
    steps.insert(-2, f'mnemarch remember "{CLAIM}" --cite test:test_pool.py::test_size')
    with ScriptedModel(steps) as model:
        printed = bench.session(model)
    calls = bench.calls()
    assert len(model.turns) == len(steps) + 1, printed
    assert all(call["exit"] == 0 and not call["stderr"] for call in calls)

    assert LESSON in model.turns[0], "the lesson is in what the model reads first"
    stopped = [STOP in turn for turn in model.turns]
    assert stopped.index(True) == 6, "the model reads it with the result of the third run"
    assert "Already tried here, and failed:" in model.turns[6], "and what it tried since the first"
    seen = json.loads(
        bench.mnemarch("log", "--task", "feature", "--type", "task.verified", "--json", at=bench.worktree)
    )
    assert [run["payload"]["passed"] for run in seen] == [True, False, False, False]
    assert all(run["payload"]["witnessed"] for run in seen)
    units = json.loads(bench.mnemarch("units", "--kind", "fact", "--json", at=bench.worktree))
    [claimed] = [unit for unit in units if unit["content"] == CLAIM]
    assert claimed["provenance"][0]["scope"]["task"] == "feature", "its own shell works in the task of its hooks"
    bench.git("add", "-A", at=bench.worktree)
    bench.git("commit", "-qm", "Three connections", at=bench.worktree)
    bench.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "other"), "feature")
    recalled = bench.mnemarch("recall", CLAIM, at=tmp_path / "other")
    assert f"[VERIFIED by test_size] {CLAIM}" in recalled, "another worktree that has the code knows it"

    says = bench.mnemarch("doctor", at=bench.worktree)
    assert "its hooks run, and pass on what the memory knows" in says
    assert "shows that they arrived" in says or host == "opencode", "which has no transcript to look at"
    if request.config.getoption("--rewrite"):
        record(bench, calls)
    bench.mnemarch("uninstall", host)
    assert bench.files() == before


def test_the_second_agent_that_meets_an_error_is_told_what_mended_it(tmp_path):
    bench = Bench("claude-code", tmp_path)
    bench.mnemarch("init")
    bench.mnemarch("install", "claude-code")
    (bench.repo / "pool.py").write_text("def size():\n    return 2\n")
    bench.commit("A pool that is too small")
    bench.git("worktree", "add", "-q", "-b", "feature", str(bench.worktree))
    mended = (str(bench.worktree / "pool.py"), "def size():\n    return 3\n")
    with ScriptedModel([RUN, mended, RUN]) as model:
        bench.session(model)
    bench.worktree = tmp_path / "second"
    bench.git("worktree", "add", "-q", "-b", "second", str(bench.worktree), "main")
    with ScriptedModel([RUN]) as model:
        printed = bench.session(model)
    assert len(model.turns) == 2, printed
    assert "Seen before in 1 other task, of which 1 got past it. It was gone there" in model.turns[1]
    assert "+ return 3" in model.turns[1]


PLUGGED_IN = {
    "claude-code": ["claude plugin marketplace add {}", "claude plugin install mnemarch@mnemarch"],
    "codex": ["codex plugin marketplace add {}", "codex plugin add mnemarch@mnemarch"],
    "copilot": ["copilot plugin marketplace add {}", "copilot plugin install mnemarch@mnemarch"],
    "gemini": ["gemini extensions install {}/plugin/gemini --consent"],
}


@pytest.mark.parametrize("host", PLUGGED_IN)
def test_a_plugin_gives_context_and_the_hook_knows_its_host(host, tmp_path):
    bench = Bench(host, tmp_path)
    bench.mnemarch("init")
    bench.mnemarch("remember", LESSON, "--actor", "human:ada")
    bench.git("worktree", "add", "-q", "-b", "feature", str(bench.worktree))
    market = tmp_path / "market"
    for folder in (".claude-plugin", "plugin"):
        shutil.copytree(ROOT / folder, market / folder)
    _, variables = PREPARED[host](bench, "http://127.0.0.1:9")
    for command in PLUGGED_IN[host]:
        bench.run(command.format(market).split(), bench.worktree, **variables)
    with ScriptedModel([RUN]) as model:
        printed = bench.session(model)
    assert len(model.turns) == 2, printed
    assert LESSON in model.turns[0]
    events = json.loads(bench.mnemarch("log", "--task", "feature", "--json", at=bench.worktree))
    assert {event["actor"] for event in events} == {f"agent:{ACTORS.get(host, host)}"}


def record(bench: Bench, calls: list[dict]) -> None:
    """Keep the last call of each kind as the host sent it, but for the paths of this machine."""
    from mnemarch.interfaces.hooks import hosts

    lines = {}
    for call in calls:
        event = hosts.read(hosts.HOSTS[bench.host], call["stdin"], "", {})
        runs = event.name == "after_tool" and RUN in json.dumps(call["stdin"])
        name = event.name if not runs else "passed" if " passed" in event.output else "failed"
        line = {"event": name, "environ": call["environ"], "stdin": call["stdin"]}
        text = json.dumps(line, ensure_ascii=False)
        text = re.sub(r'("transcript_path": ")[^"]*(/[^"/]*")', r"\1{folder}\2", text)
        for path, sign in ((bench.worktree, "{root}"), (bench.folder, "{folder}")):
            text = text.replace(str(path), sign)
        lines[name] = text
    (RECORDED / f"{bench.host}.jsonl").write_text("\n".join([*lines.values(), ""]), encoding="utf-8")
