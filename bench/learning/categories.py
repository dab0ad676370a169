"""Whether a change gets the right category: `python -m bench.learning.categories --half dev`.

The five of code rules on linters' fixes, by a mapping of rule ids that we made (categories.json: every id that it
doesn't name is readability, those that fit several are left out), and on changes written by hand (categories.jsonl),
since linters hardly speak of security. The six of code patterns on generated changes. The first look at the test half
gave accuracy 0.943 and macro-F1 0.772; file modes were no security then.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from pathlib import Path

from bench.learning.rules import changes, is_syntactic
from mnemarch.learning.patches import category_of, patch_of, pattern_category
from mnemarch.learning.trees import fragments

HERE = Path(__file__).parent
MAPPING = {
    rule: category
    for category, rules in json.loads((HERE / "categories.json").read_text()).items()
    for rule in rules.split()
}
EACH = 60


def labelled(half: str) -> list[tuple[str, str, str, str]]:
    rows = [row for row in changes(half) if is_syntactic(row)]
    known = [(row["rule"], MAPPING.get(row["rule"], "readability"), row["before"], row["after"]) for row in rows]
    return [row for row in known if row[1] != "ambiguous"]


def by_hand() -> list[tuple[str, str, str, str]]:
    rows = [json.loads(line) for line in (HERE / "categories.jsonl").open()]
    return [("by hand", row["category"], row["before"], row["after"]) for row in rows]


def told(before: str, after: str) -> str | None:
    trees = fragments([before, after], "python")
    patch = patch_of(*trees) if trees else None
    sites = [site for site in patch.sites if site.before and site.after] if patch else []
    return category_of(patch, sites[0]) if patch and sites else None


def report(name: str, rows: list[tuple[str, str, str, str]], show: int) -> None:
    pairs = [(rule, wanted, got) for rule, wanted, *texts in rows if (got := told(*texts)) is not None]
    right = sum(wanted == got for _, wanted, got in pairs)
    scores = []
    for category in sorted({wanted for _, wanted, _ in pairs}):
        hits = sum(wanted == got == category for _, wanted, got in pairs)
        wrong = sum(got == category != wanted for _, wanted, got in pairs)
        missed = sum(wanted == category != got for _, wanted, got in pairs)
        scores.append((category, 2 * hits / max(1, 2 * hits + wrong + missed), hits + missed))
    macro = sum(score for _, score, _ in scores) / len(scores)
    accuracy = right / len(pairs)
    print(f"{name}: {len(pairs)} changes, accuracy {accuracy:.3f} (limit 0.88), macro-F1 {macro:.3f} (limit 0.80)")
    print("  " + ", ".join(f"{category} {score:.2f} of {count}" for category, score, count in scores))
    if show:
        print(Counter(pair for pair in pairs if pair[1] != pair[2]).most_common(show))


# Generated changes of the six kinds

WORDS = "order price total count items user cart rate limit index name value state batch".split()  # noqa: SIM905


def module(chance: random.Random) -> tuple[list[str], list[str]]:
    """Some functions of a made-up module, and their names."""
    functions, names = [], []
    for number in range(chance.randint(2, 4)):
        a, b, c = chance.sample(WORDS, 3)
        name = f"{chance.choice(['get', 'make', 'find'])}_{a}_{number}"
        names.append(name)
        functions.append(
            f"def {name}({a}, {b}):\n    {c} = {a} * {chance.randint(2, 99)} + {b}\n    if {c} > {b}:\n"
            f"        {c} = {c} - {a}\n    print({c}, {b})\n    return {c}\n"
        )
    return functions, names


def change(kind: str, chance: random.Random) -> tuple[str, str]:
    functions, names = module(chance)
    before = "\n\n".join(functions)
    index = chance.randrange(len(functions))
    one = functions[index]
    head, *lines = one.splitlines()
    a, b = head[head.index("(") + 1 : head.index(")")].split(", ")
    c = lines[0].split()[0]
    if kind == "rename":
        old = chance.choice([names[index], a, b, c])
        new = one.replace(old, old + "_new") if old in {names[index], c} else one.replace(old, "given_" + old)
        whole = before.replace(names[index], names[index] + "_new") if old == names[index] else None
        return before, whole or before.replace(one, new)
    if kind == "type_hints":
        typed = head.replace(f"({a}, {b})", f"({a}: int, {b}: {chance.choice(['float', 'str | None'])})")
        typed = typed.replace("):", ") -> int:") if chance.random() < 0.7 else typed
        return before, before.replace(head, typed)
    if kind == "restructure":
        return before, "\n\n".join(functions[1:] + functions[:1])
    if kind == "extract_constant":
        number = lines[0].split(" * ")[1].split()[0]
        return before, f"{c.upper()}_MAX = {number}\n\n" + before.replace(f"* {number} +", f"* {c.upper()}_MAX +", 1)
    if kind == "extract_method":
        body = "\n".join(lines[1:3])
        helper = f"def lower_{c}({a}, {b}, {c}):\n{body}\n    return {c}\n"
        return before, before.replace(body, f"    {c} = lower_{c}({a}, {b}, {c})", 1) + "\n\n" + helper
    longer = one.replace(f"    return {c}\n", f"    if {c}:\n        return {c}\n    else:\n        return {c}\n")
    return before.replace(one, longer), before


def generated(show: int) -> None:
    chance = random.Random(11)
    kinds = ("type_hints", "rename", "restructure", "extract_constant", "extract_method", "simplify")
    pairs = [(kind, pattern_category(*change(kind, chance))) for kind in kinds for _ in range(EACH)]
    right = sum(wanted == got for wanted, got in pairs)
    print(f"generated: {len(pairs)} changes of six kinds, accuracy {right / len(pairs):.3f} (limit 0.95)")
    if show:
        print(Counter(pair for pair in pairs if pair[0] != pair[1]).most_common(show))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=("dev", "test"), default="test")
    parser.add_argument("--show", type=int, default=0)
    options = parser.parse_args()
    rows = labelled(options.half)
    report(f"linters, {options.half}", rows, options.show)
    report("by hand", by_hand(), options.show)
    report("both", rows + by_hand(), 0)
    generated(options.show)


if __name__ == "__main__":
    main()
