"""What must hold of the default: the targets, and never below the baseline of the same run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.retrieval.likeness import WORDS
from bench.retrieval.variants import BM25, DEFAULT

TURNS, FIRST, SESSIONS, AUC = "R@10", "R@5", "sessions R@10", "AUC"
TARGETS = {
    ("locomo", TURNS): 0.83,
    ("longmemeval_pool", TURNS): 0.76,
    ("longmemeval_pool", SESSIONS): 0.85,
    ("ko_parakqc", TURNS): 0.85,
    ("paraphrases", FIRST): 0.65,
    ("ko_question_pair", AUC): 0.90,
    ("ko_korsts_dev", AUC): 0.87,
}


@dataclass(frozen=True)
class Limit:
    """One number and the least it may be."""

    set: str
    measure: str
    value: float
    least: float
    by: str

    @property
    def holds(self) -> bool:
        return self.value >= self.least


def limits(results: Mapping[str, Mapping[str, Any]]) -> list[Limit]:
    """Every limit that this run can judge, by the default, and by its similarity."""
    found = []
    for name, rows in results.items():
        measured = {variant: row for variant, row in rows.items() if isinstance(row, dict)}
        ours = next((measured[variant] for variant in (DEFAULT, WORDS) if variant in measured), {})
        floor = measured.get(BM25, {})
        for measure in (TURNS, FIRST, SESSIONS, AUC):
            if measure in ours and (name, measure) in TARGETS:
                found.append(Limit(name, measure, ours[measure], TARGETS[name, measure], "target"))
            if measure in ours and measure in floor:
                found.append(Limit(name, measure, ours[measure], floor[measure], "bm25"))
    return found
