"""How well code rules learned from patches hold: `make bench-rules`, or `python -m bench.learning.rules --half dev`.

Read in place: `code_rules` and `code_ruff` of MNEMARCH_BENCH_DATA. Rule ids are divided once, by a hash, into a half to
tune on and a half to report.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from hashlib import sha256
from pathlib import Path

import mnemarch
from mnemarch import Actor, Scope
from mnemarch.learning.detect import detect_code_rules_from_patch, verdict
from mnemarch.learning.rule import apply_rules, hits_in
from mnemarch.learning.trees import fragments, parsed

DATA = Path(os.environ.get("MNEMARCH_BENCH_DATA", Path(__file__).parents[3] / "shared" / "data"))
ABSENT = """{} is not there. The changes come from the tests of pyupgrade, django-upgrade, Fixit, flake8-simplify, ruff,
one JSON object a line: {{"rule", "category", "before", "after", "fires"}}; set MNEMARCH_BENCH_DATA to their folder."""
TRAINED_MAX, TARGETS_MAX, LIBRARY_LINES = 8, 20, 60_000


def changes(half: str) -> list[dict[str, object]]:
    rows = []
    for name in ("code_rules", "code_ruff"):
        path = DATA / name / "changes.jsonl"
        if not path.exists():
            sys.exit(ABSENT.format(path))
        rows += [json.loads(line) | {"set": name} for line in path.open()]
    return [row for row in rows if (sha256(row["rule"].encode()).digest()[1] % 2 == 0) == (half == "dev")]


def is_syntactic(row) -> bool:
    if not row["before"] or not row["after"]:
        return False
    trees = fragments([row["before"], row["after"]], "python")
    return bool(trees) and trees[0].root.hash != trees[1].root.hash


def judged(rules, row) -> str:
    return verdict(rules, row["before"], row["after"], "python")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=("dev", "test"), default="test")
    parser.add_argument("--show", type=int, default=0, help="print this many wrong ones")
    parser.add_argument("--part", default="yield,one,eight,library")
    options = parser.parse_args()
    rows = changes(options.half)
    syntactic = [row for row in rows if is_syntactic(row)]
    print(f"{options.half}: {len(rows)} changes, {len(syntactic)} syntactic ones that parse")
    learned, seconds = {}, time.perf_counter()
    for row in syntactic:
        learned[row["id"]] = detect_code_rules_from_patch(row["before"], row["after"])
    cost = (time.perf_counter() - seconds) / len(syntactic)
    gave = [row for row in syntactic if learned[row["id"]]]
    proper = [row for row in gave if judged(learned[row["id"]], row) == "right"]
    print(f"give a rule          {len(gave) / len(syntactic):6.1%}   limit 88 %")
    print(f"turn before to after {len(proper) / len(gave):6.1%}   limit 100 %")
    print(f"cost                 {cost * 1e3:6.2f} ms a patch")
    by_rule = defaultdict(list)
    for row in syntactic:
        by_rule[row["rule"]].append(row)
    negatives = defaultdict(list)
    for row in rows:
        if row.get("fires") is False:
            negatives[row["rule"]].append(row)
    if "one" in options.part:
        one_patch(by_rule, learned, negatives, options.show)
    if "eight" in options.part:
        with mnemarch.open(":memory:") as memory:
            several(memory, by_rule, negatives, options.show)
    if "library" in options.part:
        library(by_rule, learned, options.show)


def share(outcomes: Counter) -> str:
    fired = sum(outcomes.values()) - outcomes["silent"]
    good = outcomes["right"] + outcomes["partly"]
    return (
        f"precision {good / max(1, fired):.3f} of {fired} fires, transfer {good / max(1, sum(outcomes.values())):.1%}"
    )


def one_patch(by_rule, learned, negatives, show: int) -> None:
    chance = random.Random(7)
    outcomes, wrongs, not_to, tried = Counter(), [], 0, 0
    for rule, examples in sorted(by_rule.items()):
        for trained in chance.sample(examples, min(TRAINED_MAX, len(examples))):
            others = [row for row in examples if row is not trained]
            for row in chance.sample(others, min(TARGETS_MAX, len(others))):
                outcome = judged(learned[trained["id"]], row)
                outcomes[outcome] += 1
                if outcome == "wrong":
                    wrongs.append((trained, learned[trained["id"]], row))
            for row in negatives[rule] if learned[trained["id"]] else ():
                tried += 1
                fired = apply_rules(learned[trained["id"]], row["before"], "python") != row["before"]
                not_to += fired
                if fired:
                    wrongs.append((trained, learned[trained["id"]], row))
    print(f"from one patch       {share(outcomes)}   limits 0.80, 20 %")
    print(f"must not match       {not_to / max(1, tried):6.1%} of {tried}   limit 12 %")
    for _, rules, row in chance.sample(wrongs, min(show, len(wrongs))):
        print("-----", row["rule"], row.get("fires"))
        for rule in rules:
            print(rule.before_pattern, "\n=>\n" + rule.after_pattern)
        print(">> before", row["before"], ">> after", row["after"], ">> made", sep="\n")
        print(apply_rules(rules, row["before"], "python"))


def taught(memory: mnemarch.Memory, project: str, rows: list) -> list:
    """The rules that a project has after these changes, without those that one of the changes contradicts."""
    rules = memory.seat(Actor.agent("bench"), Scope(project=project, task="t")).rules
    for row in rows:
        rules.learn(row["before"], row["after"], path="a.py")
    return [rule for rule in rules.find_code_rules() if not rule.failure_count]


def several(memory: mnemarch.Memory, by_rule, negatives, show: int) -> None:
    chance = random.Random(8)
    outcomes, not_to, tried, wrongs = Counter(), 0, 0, []
    # Which eight makes a difference: three choices of them.
    for number, (rule, examples) in enumerate(sorted(by_rule.items()) * 3):
        if len(examples) < 9:
            continue
        mixed = chance.sample(examples, len(examples))
        rules = taught(memory, f"p{number}", mixed[:8])
        for row in mixed[8 : 8 + TARGETS_MAX]:
            outcome = judged(rules, row)
            outcomes[outcome] += 1
            if outcome == "wrong":
                wrongs.append((rules, row))
        for row in negatives[rule]:
            tried += 1
            not_to += apply_rules(rules, row["before"], "python") != row["before"]
    print(f"from eight patches   {share(outcomes)}   limit 0.88")
    print(f"must not match       {not_to / max(1, tried):6.1%} of {tried}   limit 12 %")
    for rules, row in chance.sample(wrongs, min(show, len(wrongs))):
        print("===== 8", row["rule"], "\n", row["before"], "\n>> after\n", row["after"], "\n>> made")
        print(apply_rules(rules, row["before"], "python"))


def library_files() -> list[Path]:
    """Files of the standard library that the background check doesn't read, about 60,000 lines of them."""
    from mnemarch.learning.detect import library_sample

    folder = Path(os.__file__).parent
    seen = set(library_sample())
    files = [path for path in sorted(folder.glob("*.py")) + sorted(folder.glob("*/*.py")) if path not in seen]
    files = [path for path in files if not {"site-packages", "test", "idlelib", "lib2to3"} & set(path.parts)]
    random.Random(9).shuffle(files)
    chosen, lines = [], 0
    for path in files:
        if lines < LIBRARY_LINES:
            chosen.append(path)
            lines += path.read_text("utf-8", "replace").count("\n")
    return chosen


def library(by_rule, learned, show: int) -> None:
    chance = random.Random(10)
    rules = []
    for name, examples in sorted(by_rule.items()):
        withrule = [row for row in examples if learned[row["id"]] and row["set"] == "code_ruff"]
        if withrule:
            rules += [(name, rule) for rule in learned[chance.choice(withrule)["id"]]]
    lines = fires = confirmed = 0
    by_id: Counter[str] = Counter()
    shown = []
    names = {id(rule): name for name, rule in rules}
    for path in library_files():
        source = path.read_text("utf-8", "replace")
        tree = parsed(source, "python")
        if tree is None:
            continue
        lines += source.count("\n")
        hits = [hit for _, rule in rules for hit in hits_in([rule], tree)]
        if not hits:
            continue
        known = linted(path, sorted({names[id(hit.rule)] for hit in hits}))
        for hit in hits:
            first, last = source.count("\n", 0, hit.start) + 1, source.count("\n", 0, hit.end) + 1
            name = names[id(hit.rule)]
            is_confirmed = any(code == name and a <= last and first <= b for code, a, b in known)
            fires, confirmed = fires + 1, confirmed + is_confirmed
            if not is_confirmed:
                by_id[name] += 1
                shown.append((name, hit, path.name, first, source[hit.start : hit.end]))
    rate = (fires - confirmed) / max(1, len(rules)) / (lines / 100_000)
    print(
        f"standard library     {len(rules)} rules, {lines:,} lines, {fires} fires, {fires - confirmed} unconfirmed:"
        f" {rate:.2f} a rule and 100,000 lines   limit 0.5"
    )
    if show:
        print(by_id.most_common(20))
    for name, hit, path, line, text in chance.sample(shown, min(show, len(shown))):
        print(
            "#####", name, path, line, "\n", hit.rule.before_pattern, "\n =>\n", hit.rule.after_pattern, "\n ::", text
        )


def linted(path: Path, names: list[str]) -> list[tuple[str, int, int]]:
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--preview", "--no-cache", "--exit-zero"]
    command += ["--output-format", "json", "--target-version", "py314", "--select", ",".join(names)]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        copy.write_text(path.read_text("utf-8", "replace").replace("noqa", "noka"))
        done = subprocess.run([*command, str(copy)], capture_output=True, text=True)
    if done.returncode:
        return []
    return [(item["code"], item["location"]["row"], item["end_location"]["row"]) for item in json.loads(done.stdout)]


if __name__ == "__main__":
    main()
