"""Does the loop guard know an approach again? Precision and recall on labelled pairs, beside simple measures.

    python -m bench.loops.approaches

The pairs (approaches.jsonl) were written for this measurement: about half the same approach in other words, half
different ones that mostly share most words. No two splits share an area. Only "dev" chose the thresholds. "test" was
looked at once the matcher was done on "dev", "fresh" after what "test" had shown was mended, "last" after what "fresh"
had shown was; so only the first look at each is unseen (FIRST_LOOKS), and only "last" is a first look at this code.
Writes bench/out/approaches.json.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections import defaultdict
from difflib import SequenceMatcher

from mnemarch.embedding.sparse import NgramHashEmbedder, cosine
from mnemarch.text.approach import SAME_AT, approach, similarity

HERE = os.path.dirname(__file__)
SPLITS = ("dev", "test", "fresh", "last")
# Precision, recall and pairs wrongly called the same, as they were when each split was first looked at.
FIRST_LOOKS = {"test": (0.945, 0.707, 6), "fresh": (0.902, 0.742, 5), "last": (1.0, 0.854, 0)}
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Row = dict[str, Any]
    Scored = list[tuple[float, Row]]


def rows() -> list[Row]:
    """The labelled pairs."""
    with open(os.path.join(HERE, "approaches.jsonl"), encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def by_words(left: str, right: str) -> float:
    """The Jaccard index of the two sets of words."""
    ours, theirs = (set(re.findall(r"\w+", text.lower())) for text in (left, right))
    return len(ours & theirs) / len(ours | theirs) if ours | theirs else 0.0


def by_characters(left: str, right: str) -> float:
    """The ratio of difflib."""
    return SequenceMatcher(None, left.lower(), right.lower(), autojunk=False).ratio()


def by_ngrams(left: str, right: str) -> float:
    """The cosine of the built-in embedder's vectors."""
    embedder = NgramHashEmbedder()
    return cosine(embedder.embed(left), embedder.embed(right))


def by_approach(left: str, right: str) -> float:
    """Ours."""
    return similarity(approach(left), approach(right))


def scored(measure: Callable[[str, str], float], pairs: Sequence[Row]) -> Scored:
    return [(measure(row["a"], row["b"]), row) for row in pairs]


def counted(pairs: Scored, threshold: float) -> dict[str, float]:
    """Precision, recall and F1 of calling everything from the threshold on the same."""
    right = sum(score >= threshold and row["same"] for score, row in pairs)
    wrong = sum(score >= threshold and not row["same"] for score, row in pairs)
    missed = sum(score < threshold and row["same"] for score, row in pairs)
    precision = right / (right + wrong) if right + wrong else 1.0
    recall = right / (right + missed) if right + missed else 1.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return {"precision": precision, "recall": recall, "f1": f1, "right": right, "wrong": wrong, "missed": missed}


def best_threshold(pairs: Scored) -> float:
    """The threshold with the best F1."""
    return max((step / 100 for step in range(1, 100)), key=lambda threshold: counted(pairs, threshold)["f1"])


def by_kind(pairs: Scored, threshold: float) -> dict[str, dict[str, float]]:
    """For each kind of pair how many there are, and the share of them that was judged right."""
    kinds: dict[str, Scored] = defaultdict(list)
    for score, row in pairs:
        kinds[f"{row['kind']} ({'same' if row['same'] else 'different'})"].append((score, row))
    return {
        kind: {
            "pairs": len(found),
            "right": sum((score >= threshold) == row["same"] for score, row in found) / len(found),
        }
        for kind, found in sorted(kinds.items())
    }


def microseconds() -> dict[str, float]:
    """What one analysis and one comparison take, over all pairs, the best of five rounds."""
    texts = [text for row in rows() for text in (row["a"], row["b"])]
    read = list(map(approach, texts))
    pairs = list(zip(read[::2], read[1::2], strict=True))
    analysis, comparison = [], []
    for _ in range(5):
        start = time.perf_counter()
        for text in texts:
            approach(text)
        middle = time.perf_counter()
        for left, right in pairs:
            similarity(left, right)
        comparison.append((time.perf_counter() - middle) / len(pairs))
        analysis.append((middle - start) / len(texts))
    return {"analysis_us": min(analysis) * 1e6, "comparison_us": min(comparison) * 1e6}


def measured() -> dict[str, Any]:
    """Every measure on every split, ours also by kind, and what it costs."""
    splits = {split: [row for row in rows() if row["split"] == split] for split in SPLITS}
    ngrams_at = best_threshold(scored(by_ngrams, splits["dev"]))
    measures = [
        ("approach", by_approach, SAME_AT),
        ("word Jaccard 0.3", by_words, 0.3),
        ("word Jaccard 0.5", by_words, 0.5),
        ("difflib 0.6", by_characters, 0.6),
        (f"n-gram cosine {ngrams_at}", by_ngrams, ngrams_at),
    ]
    result: dict[str, Any] = {"pairs": {split: len(found) for split, found in splits.items()}}
    result["measures"] = {
        name: {split: counted(scored(measure, found), threshold) for split, found in splits.items()}
        for name, measure, threshold in measures
    }
    result["kinds"] = {split: by_kind(scored(by_approach, found), SAME_AT) for split, found in splits.items()}
    result["cost"] = microseconds()
    return result


def main() -> None:
    """Print the measurement and keep it."""
    result = measured()
    print(", ".join(f"{count} {split} pairs" for split, count in result["pairs"].items()), f"threshold {SAME_AT}")
    for split, (precision, recall, wrong) in FIRST_LOOKS.items():
        print(f"first look at {split:5} precision {precision:.3f}  recall {recall:.3f}  wrong {wrong}")
    for name, splits in result["measures"].items():
        for split, found in splits.items():
            print(
                f"{name:22} {split:5} precision {found['precision']:.3f}  recall {found['recall']:.3f}"
                f"  F1 {found['f1']:.3f}  wrong {found['wrong']}  missed {found['missed']}"
            )
    for kind in sorted({kind for found in result["kinds"].values() for kind in found}):
        shown = "  ".join(
            f"{split} {found[kind]['right']:.2f} of {found[kind]['pairs']:3}" if kind in found else f"{split} none"
            for split, found in result["kinds"].items()
        )
        print(f"{kind:26} {shown}")
    print("  ".join(f"{name} {spent:.0f}" for name, spent in result["cost"].items()))
    os.makedirs(os.path.join(HERE, "..", "out"), exist_ok=True)
    with open(os.path.join(HERE, "..", "out", "approaches.json"), "w", encoding="utf-8") as out:
        json.dump(result, out, indent=1, ensure_ascii=False)


if __name__ == "__main__":
    main()
