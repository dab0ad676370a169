"""What is measured of a ranking, and how sure a difference is."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

DEPTHS = (1, 5, 10, 20)


@dataclass(frozen=True)
class Score:
    """One question's share of found gold at each depth, and where the first stood."""

    recall: dict[int, float]
    all_at_5: float
    reciprocal_rank: float
    ndcg_at_10: float


def scored(ranking: Sequence[str], gold: frozenset[str]) -> Score:
    """`ranking` without repeats; recall is the share of the gold found, never whether any was."""
    places = [place for place, item in enumerate(ranking) if item in gold]
    ideal = sum(1 / math.log2(place + 2) for place in range(min(10, len(gold))))
    return Score(
        recall={depth: sum(place < depth for place in places) / len(gold) for depth in DEPTHS},
        all_at_5=float(sum(place < 5 for place in places) == len(gold)),
        reciprocal_rank=1 / (places[0] + 1) if places else 0.0,
        ndcg_at_10=sum(1 / math.log2(place + 2) for place in places if place < 10) / ideal,
    )


def mean(scores: Sequence[Score]) -> dict[str, float]:
    """Each measure, averaged over questions."""
    count = max(1, len(scores))
    table = {f"R@{depth}": sum(score.recall[depth] for score in scores) / count for depth in DEPTHS}
    table["all@5"] = sum(score.all_at_5 for score in scores) / count
    table["MRR"] = sum(score.reciprocal_rank for score in scores) / count
    table["NDCG@10"] = sum(score.ndcg_at_10 for score in scores) / count
    return table


def difference(ours: Sequence[float], theirs: Sequence[float], rounds: int = 1000) -> tuple[float, float, float]:
    """The mean difference and its 95 % interval, by paired bootstrap over questions; the same on every run."""
    deltas = [a - b for a, b in zip(ours, theirs, strict=True)]
    chance = random.Random(20_251)
    means = sorted(sum(chance.choices(deltas, k=len(deltas))) / len(deltas) for _ in range(rounds))
    return sum(deltas) / len(deltas), means[int(0.025 * rounds)], means[int(0.975 * rounds) - 1]


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of a mean, by bootstrap over questions."""
    _, low, high = difference(values, [0.0] * len(values))
    return low, high


def auc(values: Sequence[float], same: Sequence[bool]) -> float:
    """The chance that a pair that means the same scores above one that does not; ties count half."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for place in order[start : end + 1]:
            ranks[place] = (start + end) / 2 + 1
        start = end + 1
    positive = sum(same)
    total = sum(rank for rank, label in zip(ranks, same, strict=True) if label)
    return (total - positive * (positive + 1) / 2) / (positive * (len(same) - positive))
