"""How well the write pipeline tells the buckets apart, and whether it loses evidence.

    python -m bench.learning.pipeline [--half dev|held] [--shown]

Our own texts are in buckets.txt, and requests for now beside standing wishes in the same words in requests.txt; each
in two halves that the hash of a text decides: rules are tuned on `dev` only. Whoever wrote the rules wrote the texts,
so the figures flatter. The texts of wishes.txt, in free words, were all seen while rules were made; what they showed
before that is told in it. From MNEMARCH_BENCH_DATA (by default ../shared/data) come the turns that hold the evidence of
LoCoMo and LongMemEval: each is ingested by an agent, and lost if it becomes no unit.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import zlib
from collections import Counter

import mnemarch
from mnemarch import Actor, Scope
from mnemarch.learning import MemoryEvent, RuleBasedClassifier

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = os.path.dirname(__file__)
DATA = os.environ.get("MNEMARCH_BENCH_DATA", os.path.join(HERE, "..", "..", "..", "shared", "data"))


SETS = ("buckets", "requests", "wishes")
# Of some texts it only matters that they are no wish.
NO_WISH = "OTHER"
# What is only history claims nothing.
NO_KNOWLEDGE = ("LEFT_OUT", "EPISODIC")


def texts(name: str, half: str) -> Iterator[tuple[str, str, str]]:
    """The bucket, source and text of each line of one half of a set."""
    bucket = ""
    with open(os.path.join(HERE, f"{name}.txt"), encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("["):
                bucket = line.strip().strip("[]")
            elif line.strip() and not line.startswith("#"):
                source, text = line.rstrip("\n").split("\t")
                if half == ("dev", "held")[zlib.crc32(text.encode()) % 2]:
                    yield bucket, source, text


def own(name: str, half: str, *, shown: bool) -> None:
    print(f"{name}.txt")
    counted: Counter[tuple[str, str, bool]] = Counter()
    kept: list[bool] = []
    told_as: Counter[str] = Counter()
    for bucket, source, text in texts(name, half):
        classified = RuleBasedClassifier().classify(MemoryEvent(text, source))
        language = "english" if text.isascii() else "korean"
        is_right = classified.bucket == bucket or (bucket == NO_WISH and classified.bucket != "PREFERENCE")
        counted[bucket, language, is_right] += 1
        told_as[str(classified.bucket)] += 1
        kept += [classified.bucket not in NO_KNOWLEDGE] if bucket == "LEFT_OUT" else []
        if shown and not is_right:
            print(f"  {bucket:10} told as {classified.bucket:10} ({classified.why})  {source}: {text}")
    right = sum(count for (_, _, is_right), count in counted.items() if is_right)
    print(f"{half:5} accuracy {right / counted.total():.3f} ({right} of {counted.total()})")
    print(f"{half:5} requests and courtesies kept as knowledge: {sum(kept)} of {len(kept)}")
    for place, names in ((1, ("english", "korean")), (0, tuple(dict.fromkeys(key[0] for key in counted)))):
        for group in names:
            of_it = {key: count for key, count in counted.items() if key[place] == group}
            good, total = sum(count for key, count in of_it.items() if key[2]), sum(of_it.values())
            precision = f", precision {good / told_as[group]:.3f}" if told_as[group] else ""
            print(f"{half:5} {group:10} recall {good / total:.3f} ({good} of {total}){precision}")


def evidence(name: str) -> None:
    """How many turns that hold evidence became no unit, each conversation ingested in order, session by session."""
    with open(os.path.join(DATA, name, "queries.jsonl"), encoding="utf-8") as lines:
        gold = {(query["scope"], turn) for query in map(json.loads, lines) for turn in query["gold"]}
    with open(os.path.join(DATA, name, "corpus.jsonl"), encoding="utf-8") as lines:
        turns = [turn for turn in map(json.loads, lines) if (turn["scope"], turn["id"]) in gold]
    lost: list[str] = []
    began = time.perf_counter()
    with mnemarch.open(":memory:") as memory:
        for turn in turns:
            seat = memory.seat(Actor.agent("bench"), Scope(project=turn["scope"], worktree="main", task="t"))
            source = turn["speaker"] if turn["speaker"] in {"user", "assistant"} else "user"
            told = seat.ingest(turn["text"], source=source, session=turn["session"])
            if told.unit is None:
                lost.append(f"{told.bucket}: {told.reason}: {turn['text'][:100]}")
    seconds = time.perf_counter() - began
    share, each = 100 * len(lost) / len(turns), 1000 * seconds / len(turns)
    print(f"{name}: {len(lost)} of {len(turns)} evidence turns lost, {share:.2f} %; {each:.1f} ms each")
    for line in lost:
        print(f"  {line}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=["dev", "held"])
    parser.add_argument("--shown", action="store_true", help="print each text that is told wrong")
    options = parser.parse_args()
    for half in [options.half] if options.half else ["dev", "held"]:
        for name in SETS:
            own(name, half, shown=options.shown)
    if options.half is None and os.path.isdir(DATA):
        for name in ("locomo", "longmemeval_pool"):
            evidence(name)


if __name__ == "__main__":
    main()
