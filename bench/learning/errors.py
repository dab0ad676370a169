"""How well an error finds the episode that met it, over one pool of all error sets.

    python -m bench.learning.errors [dev|test|all]

One error of each group is known, up to three others are asked; groups are split by a hash of their name. "Right": the
best answer is of the group and above the threshold. "False": without the group something is above it. Groups weigh
alike. Exits 1 if a limit is broken, 2 without data.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter, defaultdict
from hashlib import sha256

from bench.loops.fingerprints import SOURCES, missing
from bench.retrieval.sets import folder
from mnemarch.learning.errors import ALIKE_MIN, KnownErrors, seen_error

LIMITS = {"top1": 0.97, "top3": 0.99, "right": 0.93, "false": -0.10, "pairs": 0.95}
CLUSTERED_MAX = 10


def groups(half: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for name in SOURCES:
        with (folder() / name / "items.jsonl").open(encoding="utf-8") as file:
            for row in map(json.loads, file):
                found[f"{name}/{row['scope']}/{row['group']}"].append(row["text"])
    halves = {group: ("test", "dev")[sha256(group.encode()).digest()[0] % 2] for group in found}
    return {group: texts for group, texts in found.items() if half in {"all", halves[group]}}


def measured(half: str) -> dict[str, float]:
    chance = random.Random(7)
    known: dict[str, str] = {}
    asked: list[tuple[str, str]] = []
    pairs: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for group, texts in groups(half).items():
        chance.shuffle(texts)
        known[group] = texts[0]
        others = [text for text in dict.fromkeys(texts[1:]) if text != texts[0]][:3] or texts[1:2]
        asked += [(group, text) for text in others]
        for text in texts[:CLUSTERED_MAX]:
            # A group is named only inside its source.
            pairs[group.split("/")[1], seen_error(text).key][group] += 1
    errors = KnownErrors((group, seen_error(text)) for group, text in known.items())
    weights = Counter(group for group, _ in asked)
    sums: Counter[str] = Counter()
    for group, text in asked:
        alike = errors.alike(seen_error(text), 0.0)
        best = list(alike)
        others = [score for who, (score, _) in alike.items() if who != group]
        is_first = best[:1] == [group]
        shares = {
            "top1": is_first,
            "top3": group in best[:3],
            "right": is_first and alike[group][0] >= ALIKE_MIN,
            "false": bool(others) and max(others) >= ALIKE_MIN,
        }
        for name, holds in shares.items():
            sums[name] += holds / weights[group]  # type: ignore[assignment]
    joined = sum(count.total() * (count.total() - 1) for count in pairs.values())
    same = sum(number * (number - 1) for count in pairs.values() for number in count.values())
    results = {name: total / len(weights) for name, total in sums.items()} | {"pairs": same / joined}
    return results | {"groups": len(weights), "asked": len(asked), "known": len(known)}


def main() -> int:
    if (absent := missing()) is not None:
        print(absent, file=sys.stderr)
        return 2
    results = measured(sys.argv[1] if len(sys.argv) > 1 else "all")
    print(" ".join(f"{name} {share:.4g}" for name, share in results.items()))
    broken = [name for name, limit in LIMITS.items() if (results[name] if limit > 0 else -results[name]) < limit]
    print(f"broken: {', '.join(broken)}" if broken else "all limits hold")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
