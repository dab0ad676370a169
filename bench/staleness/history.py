"""What it costs to ask a long history: a hundred commits against HEAD, in a repository of fifty thousand.

    python -m bench.staleness.history [--commits 50000] [--files 20000] [--rounds 7]

Prints one table and writes bench/out/history.json. Times are ratios to one bare `git --version` of the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable

from mnemarch.code.git import head
from mnemarch.code.history import History
from mnemarch.code.home import home_of
from mnemarch.code.worktree import CommitFiles

HERE = os.path.dirname(os.path.dirname(__file__))
ASKED = 100


def made(folder: str, commits: int, files: int) -> dict[int, str]:
    """A repository whose every tenth commit is on a branch beside main; gives the hash of each commit by number."""
    marks = os.path.join(folder, "marks")
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", folder], check=True)
    with open(os.path.join(folder, "script"), "w", encoding="utf-8") as script:
        script.write("blob\nmark :1\ndata 2\nx\n\n")
        for number in range(10, commits + 10):
            is_side = number % 10 == 9
            before = (number - 10 if number > 19 else 10) if is_side else number - (2 if number % 10 == 0 else 1)
            script.write(f"commit refs/heads/{'side' if is_side else 'main'}\nmark :{number}\n")
            script.write(f"committer b <b@localhost> {1_500_000_000 + number * 60} +0000\ndata 1\nx\n")
            script.write(f"from :{before}\n" if number > 10 else "")
            if number == 10:
                script.writelines(f"M 100644 :1 d{n % 200}/e{n % 7}/f{n}.py\n" for n in range(files))
            script.write(f"M 100644 inline d{number % 200}/e{number % 7}/g{number % 500}.py\n")
            script.write(f"data <<E\nv{number}\nE\n\n")
    with open(os.path.join(folder, "script"), "rb") as script_bytes:
        importing = ["git", "-C", folder, "fast-import", "--quiet", f"--export-marks={marks}"]
        subprocess.run(importing, stdin=script_bytes, check=True)
    with open(marks, encoding="ascii") as file:
        pairs = (line.split() for line in file)
        return {int(mark[1:]): name for mark, name in pairs if mark != ":1"}


def spent(act: Callable[[], object], rounds: int) -> float:
    """The median of the seconds that it takes."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        act()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def processes_of(act: Callable[[], object]) -> int:
    """How many processes it starts."""
    started = 0
    plain = subprocess.Popen

    class Counted(plain):  # type: ignore[type-arg, misc, valid-type]
        def __init__(self, *given: object, **options: object) -> None:
            nonlocal started
            started += 1
            super().__init__(*given, **options)

    subprocess.Popen = Counted  # type: ignore[misc]
    try:
        act()
    finally:
        subprocess.Popen = plain  # type: ignore[misc]
    return started


def measured(commits: int = 50_000, files: int = 20_000, rounds: int = 7) -> dict[str, float]:
    """Ratios to a bare git process, numbers of processes, and microseconds, by name."""
    with tempfile.TemporaryDirectory() as folder:
        hash_of = made(folder, commits, files)
        on_main = [name for number, name in hash_of.items() if number % 10 != 9]
        beside = [name for number, name in hash_of.items() if number % 10 == 9]
        newest = on_main[-1]
        spread = [*on_main[:: len(on_main) // 90][:90], *beside[:: len(beside) // 10][:10]]
        recent = on_main[-ASKED - 1 : -1]
        asked = {"recent": recent, "spread": spread}
        gone = "d1/e1/never.py"
        bare = spent(lambda: subprocess.run(["git", "--version"], capture_output=True, check=True), rounds * 3)
        found: dict[str, float] = {"bare_git_ms": bare * 1e3, "commits": len(hash_of)}
        warm = History(folder)
        for graph in ("", "_with_commit_graph"):
            for name, names in asked.items():
                cold = spent(lambda names=names: History(folder).contains(newest, names), rounds)  # type: ignore[misc]
                found[f"contains_{name}{graph}_ratio"] = cold / bare
            if not graph:
                subprocess.run(["git", "-C", folder, "commit-graph", "write", "--reachable"], check=True)
        found["contains_processes"] = processes_of(lambda: warm.contains(newest, spread))
        found["contains_warm_processes"] = processes_of(lambda: warm.contains(newest, spread))
        found["contains_warm_us"] = spent(lambda: warm.contains(newest, spread), 200) * 1e6
        found["renamed_never_there_ratio"] = spent(lambda: History(folder).renamed(gone, newest), 3) / bare
        found["head_us"] = spent(lambda: head(folder), 500) * 1e6
        found["home_us"] = spent(lambda: home_of(folder), 500) * 1e6
        paths = [f"d{n % 200}/e{n % 7}/f{n}.py" for n in range(min(files, ASKED))]
        found["commit_first_file_ratio"] = spent(lambda: CommitFiles(folder, newest).read(paths[1]), rounds) / bare
        found["commit_hundred_files_ratio"] = spent(lambda: CommitFiles(folder, newest).load(paths), rounds) / bare
        found["commit_files_processes"] = processes_of(lambda: CommitFiles(folder, newest).load(paths))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=50_000)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    found = measured(options.commits, options.files, options.rounds)
    for name, number in found.items():
        print(f"{name:<44} {number:>12,.1f}")
    os.makedirs(os.path.join(HERE, "out"), exist_ok=True)
    with open(os.path.join(HERE, "out", "history.json"), "w", encoding="utf-8") as file:
        json.dump(found, file, indent=2)


if __name__ == "__main__":
    main()
