"""How well the embedder of the graph tells questions that mean the same from others, beside the plain n-gram hash.

    python -m bench.graph_likeness

Nothing is learnt from the sets. Prints three tables: recall@10 and AUC with the listed baselines, what share of the
pairs reaches the graph's two thresholds, and what one question costs. Exits 1 if the embedder does not beat the listed
baseline of the plain one on each set, 2 without data.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from timeit import repeat

from rich.table import Table

from bench.retrieval import sets
from bench.retrieval.baselines import Postings
from bench.retrieval.measures import auc, scored
from bench.retrieval.tables import console, show
from mnemarch.embedding import NgramHashEmbedder, QuestionEmbedder, cosine

Embed = Callable[[str], Mapping[int, float]]

# What the n-gram hash was measured to reach before there was another, in percent.
LISTED = {"ko_parakqc": 59.1, "ko_question_pair": 83.0, "ko_korsts_dev": 81.8, "locomo": 50.2}
RETRIEVAL = ("ko_parakqc", "locomo")
# From here on two questions are linked, and are one.
THRESHOLDS = (0.75, 0.96)
# Where pairs are scored from 0 to 5: those that surely mean the same, and that surely don't.
SAME_LEAST, DIFFERENT_MOST = 4.0, 1.0
DEPTH = 10
ASKED = {
    "English": "Which service retries a failed checkout?",
    "Korean": "주문 서비스가 실패한 결제를 다시 시도하기 전에 토큰을 어디에서 확인하나요?",
}
_CALLS, _ROUNDS = 200, 15


@dataclass(frozen=True)
class Likeness:
    """The cosines of the pairs of a set, and whether each pair means the same."""

    values: Sequence[float]
    same: Sequence[bool]

    def reaching(self, threshold: float, *, same: bool) -> float:
        """The share of the pairs of that kind that reach it, in percent."""
        values = [value for value, label in zip(self.values, self.same, strict=True) if label == same]
        return 100 * sum(value >= threshold for value in values) / max(1, len(values))


def recall(given: sets.Retrieval, embed: Embed) -> float:
    """Recall@10 by cosine to every text of the question's scope, in percent."""
    found = 0.0
    for scope in sorted({turn.scope for turn in given.turns}):
        turns = [turn for turn in given.turns if turn.scope == scope]
        postings = Postings()
        for turn in turns:
            postings.add(embed(turn.text))
        for question in [question for question in given.questions if question.scope == scope]:
            best = [turns[place].id for place in postings.best(embed(question.text), DEPTH + len(question.exclude))]
            ranking = [id for id in best if id not in question.exclude]
            found += scored(ranking, question.gold).recall[DEPTH]
    return 100 * found / max(1, len(given.questions))


def sure_pairs(name: str) -> sets.Pairs:
    """The pairs of a set by its labels; by its scores where it has them, without those in between."""
    with (sets.folder() / name / "pairs.jsonl").open(encoding="utf-8") as file:
        scores = [(row["a"], row["b"], row["score"]) for row in map(json.loads, file)]
    if any(score is None for _, _, score in scores):
        return sets.pairs(name)
    sure = [row for row in scores if not DIFFERENT_MOST < row[2] < SAME_LEAST]
    return sets.Pairs(name, [(a, b) for a, b, _ in sure], [score >= SAME_LEAST for _, _, score in sure])


def likeness(given: sets.Pairs, embed: Embed) -> Likeness:
    return Likeness([cosine(embed(left), embed(right)) for left, right in given.pairs], given.same)


def microseconds(embed: Embed, text: str) -> float:
    """One call, warm; the fastest round counts."""
    # Each a little different: what an embedder keeps of a text would else make the next one cheap.
    texts = [f"{text} {number}" for number in range(_CALLS)]
    return min(repeat(lambda: [embed(each) for each in texts], number=1, repeat=_ROUNDS)) / _CALLS * 1e6


def measured(embed: Embed) -> dict[str, float]:
    """Recall@10 or AUC of each set, in percent."""
    found = {name: recall(sets.retrieval(name), embed) for name in RETRIEVAL}
    for name in sets.PAIRS:
        alike = likeness(sets.pairs(name), embed)
        found[name] = 100 * auc(alike.values, alike.same)
    return found


def score_table(ours: Mapping[str, float], plain: Mapping[str, float]) -> Table:
    table = Table("set", "measure", "question %", "plain %", "listed plain %", "")
    for name, listed in LISTED.items():
        measure = f"recall@{DEPTH}" if name in RETRIEVAL else "AUC"
        mark = "[green]holds[/]" if ours[name] > listed else "[red]broken[/]"
        table.add_row(name, measure, f"{ours[name]:.1f}", f"{plain[name]:.1f}", f"{listed:.1f}", mark)
    return table


def threshold_table(ours: Mapping[str, Likeness], plain: Mapping[str, Likeness]) -> Table:
    table = Table("set", "at least", "question: same %", "different %", "plain: same %", "different %")
    for name in ours:
        for threshold in THRESHOLDS:
            cells = [
                f"{found[name].reaching(threshold, same=same):.1f}" for found in (ours, plain) for same in (True, False)
            ]
            table.add_row(name, f"{threshold}", *cells)
    return table


def time_table(ours: Embed, plain: Embed) -> Table:
    table = Table("text", "characters", "question µs", "plain µs", "ratio")
    for language, text in ASKED.items():
        spent, beside = microseconds(ours, text), microseconds(plain, text)
        table.add_row(language, f"{len(text)}", f"{spent:.0f}", f"{beside:.0f}", f"{spent / beside:.2f}")
    return table


def main() -> int:
    absent = sets.missing(list(LISTED))
    if absent is not None:
        print(absent, file=sys.stderr)
        return 2
    ours, plain = QuestionEmbedder().embed, NgramHashEmbedder().embed
    screen = console()
    scores, beside = measured(ours), measured(plain)
    show(screen, "How well questions that mean the same are found", score_table(scores, beside))
    sure = [{name: likeness(sure_pairs(name), embed) for name in sets.PAIRS} for embed in (ours, plain)]
    show(screen, "Pairs that reach a threshold", threshold_table(*sure))
    show(screen, "What one embedding costs", time_table(ours, plain))
    return 0 if all(scores[name] > listed for name, listed in LISTED.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
