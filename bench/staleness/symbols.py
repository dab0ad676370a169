"""What telling staleness costs: parsing a file of 2,000 lines in each language, and checking eight citations.

    python -m bench.staleness.symbols [--rounds 15]

Prints two tables and writes bench/out/symbols.json. Eight warm checks are compared with eight bare `os.stat` calls.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

from mnemarch.code.citing import checked_in_tree
from mnemarch.code.symbols import symbols_of
from mnemarch.code.worktree import WorkTree, checked
from mnemarch.model.unit import Citation

HERE = os.path.dirname(os.path.dirname(__file__))
LINES = 2_000
FILES = 8
# Longer than a tick of the file system's clock: before that a fresh file is read again, since it may still change.
SETTLED_S = 0.2

# One function of about ten lines in each language, and what stands around all of them.
BODIES = {
    "py": "def {f}(self, user: User, tries: int = 3, *rest: str) -> Token | None:\n",
    "js": "async function {f}(user, tries = 3, ...rest) {{\n",
    "ts": "export async function {f}(user: User, tries = 3, ...rest: string[]): Promise<Token> {{\n",
    "go": "func (a *Auth) {f}(user *User, tries int, rest ...string) (*Token, error) {{\n",
    "rs": "pub fn {f}(user: &User, tries: u32, rest: &[String]) -> Result<Token, Error> {{\n",
    "java": "  public Token {f}(User user, int tries, String... rest) throws IOException {{\n",
    "c": "static int {f}(struct user *user, int tries, const char *rest) {{\n",
    "cpp": "Token {f}(const User& user, int tries = 3, std::vector<std::string> rest = {{}}) {{\n",
    "rb": "def {f}(user, tries = 3, *rest)\n",
    "kt": "fun {f}(user: User, tries: Int = 3, vararg rest: String): Token? {{\n",
    "cs": "  public async Task<Token> {f}(User user, int tries = 3, params string[] rest) {{\n",
    "php": "function {f}(User $user, int $tries = 3, string ...$rest): ?Token {{\n",
    "swift": "func {f}(_ user: User, tries: Int = 3, rest: String...) throws -> Token {{\n",
    "scala": "  def {f}(user: User, tries: Int = 3, rest: String*): Option[Token] = {{\n",
}
STATEMENTS = {
    "py": "    value{n} = user.call({n}, [a for a in rest if a], key='k{n}')\n",
    "rb": "  value{n} = user.call({n}, rest.map {{ |a| a + 1 }})\n",
    "go": "\tvalue{n} := user.Call({n}, append(rest, name), 3)\n",
    "rs": "    let value{n} = user.call({n}, rest.iter().map(|a| a + 1), 3);\n",
    "kt": "    val value{n} = user.call({n}, rest.map {{ it + 1 }}, 3)\n",
    "swift": "    let value{n} = user.call({n}, rest.map({{ $0 + 1 }}), 3)\n",
    "scala": "    val value{n} = user.call({n}, rest.map(a => a + 1), 3)\n",
    "php": "    $value{n} = $user->call({n}, array_map($rest, 3), 'k{n}');\n",
    "js": "    const value{n} = user.call({n}, rest.map((a) => a + 1), 'k{n}');\n",
    "ts": "    const value{n}: number = user.call({n}, rest.map((a) => a + 1), 'k{n}');\n",
    "c": '    int value{n} = call(user, {n}, rest + 1, "k{n}");\n',
    "cpp": '    auto value{n} = user.call({n}, std::move(rest), "k{n}");\n',
    "java": '    int value{n} = user.call({n}, rest.length + 1, "k{n}");\n',
    "cs": '    var value{n} = user.Call({n}, rest.Length + 1, "k{n}");\n',
}
AROUND = {
    "java": ("class Auth {\n", "}\n"),
    "cs": ("class Auth {\n", "}\n"),
    "scala": ("object Auth {\n", "}\n"),
    "php": ("<?php\n", ""),
    "go": ("package auth\n", ""),
}


def source(ending: str, lines: int = LINES) -> str:
    """A plausible source of that many lines: functions of eight statements each."""
    before, after = AROUND.get(ending, ("", ""))
    end = {"py": "\n", "rb": "end\n"}.get(ending, "}\n")
    statements = "".join(STATEMENTS[ending].format(n=number) for number in range(8))
    functions = ("".join((BODIES[ending].format(f=f"login{number}"), statements, end)) for number in range(lines // 10))
    return before + "".join(functions) + after


def timed_us(work: Callable[[], Any], rounds: int) -> float:
    """The median of some rounds."""
    spent = []
    for _ in range(rounds):
        started = time.perf_counter_ns()
        work()
        spent.append((time.perf_counter_ns() - started) / 1_000)
    return statistics.median(spent)


def measured(rounds: int = 15) -> dict[str, Any]:
    """µs a file for each language, and ms for eight checks: unchanged or changed files, warm or cold."""
    parsing = {}
    for ending in BODIES:
        text = source(ending)
        found = symbols_of(f"a.{ending}", text)
        assert found is not None
        assert len(found) >= LINES // 10, f"{ending}: {len(found)} symbols"
        assert not found.broken, ending
        parsing[ending] = timed_us(lambda path=f"a.{ending}", text=text: symbols_of(path, text), rounds)  # type: ignore[misc]
    with tempfile.TemporaryDirectory() as root:
        return {"parse_us": parsing, "checks": measured_checks(root, rounds)}


def measured_checks(root: str, rounds: int) -> dict[str, float]:
    names = [
        f"auth{number}.{ending}" for number, ending in enumerate(("py", "ts", "go", "rs", "java", "cpp", "py", "ts"))
    ]
    paths = [os.path.join(root, name) for name in names]
    for name, path in zip(names, paths, strict=True):
        written(path, source(name.rpartition(".")[2]))
    citations = [checked_in_tree(Citation.symbol(name, "login7"), root) for name in names]
    time.sleep(SETTLED_S)

    def checks(tree: WorkTree) -> None:
        states = [checked(tree, citation).state for citation in citations]
        assert states == ["holds"] * FILES, states

    cold_unchanged = timed_us(lambda: checks(WorkTree(root)), rounds)
    for name, path in zip(names, paths, strict=True):
        text = source(name.rpartition(".")[2])
        written(path, text.replace("value3", "other3"))
    time.sleep(SETTLED_S)
    cold_changed = timed_us(lambda: checks(WorkTree(root)), max(rounds // 3, 1))
    tree = WorkTree(root)
    checks(tree)
    warm = timed_us(lambda: checks(tree), rounds * 20)
    floor = timed_us(lambda: [os.stat(path) for path in paths], rounds * 20)
    return {
        "eight bare stat calls, ms": floor / 1_000,
        "warm, ms": warm / 1_000,
        "warm / bare stat calls": warm / floor,
        "cold, files as they were cited, ms": cold_unchanged / 1_000,
        "cold, files changed since, ms": cold_changed / 1_000,
    }


def written(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    results = measured(parser.parse_args().rounds)
    print(f"{LINES} lines, parsed")
    for ending, spent_us in results["parse_us"].items():
        print(f"  {ending:6} {spent_us:10,.0f} µs")
    print(f"{FILES} symbol citations of {FILES} files of {LINES} lines")
    for name, number in results["checks"].items():
        print(f"  {name:36} {number:10.3f}")
    os.makedirs(os.path.join(HERE, "out"), exist_ok=True)
    with open(os.path.join(HERE, "out", "symbols.json"), "w", encoding="utf-8") as file:
        json.dump(results, file, indent=2)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
