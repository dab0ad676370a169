"""What `floor="auto"` costs and spares: recall@10 that it loses, and questions without an answer that get no item.

    python -m bench.retrieval.silence [--limit 60] [--keep FOLDER]

Each set is halved, LoCoMo by conversations, so that one half can be looked at and the other reported. A question of
LoCoMo without an answer is one about another conversation of its half.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator

import mnemarch
from bench.retrieval import sets
from bench.retrieval.loading import TASK, Loaded, copied, loaded
from bench.retrieval.measures import scored
from bench.retrieval.progress import Progress
from mnemarch import Actor, Scope

_ITEMS = 10
SETS = ("locomo", "longmemeval_pool", "paraphrases")

# A scope, a question, the units that answer it, and its half.
Asked = tuple[str, str, frozenset[str], str]


def main() -> None:
    parser = argparse.ArgumentParser("python -m bench.retrieval.silence", description=__doc__)
    parser.add_argument(
        "--limit", type=int, help="so many questions with an answer of each set at most, spread over it"
    )
    parser.add_argument("--keep", metavar="FOLDER", help="keep the loaded memories there, and use those that are")
    options = parser.parse_args()
    print(f"{'set':<18}{'half':<6}{'asked':>6}{'R@10':>8}{'lost':>8}{'unanswerable':>14}{'silent':>8}")
    for name in SETS:
        if sets.missing([name]) is None:
            with tempfile.TemporaryDirectory(prefix="mnemarch-bench-") as scratch:
                _measure(name, options.keep or scratch, options.limit)


def _measure(name: str, keep: str, limit: int | None) -> None:
    given = sets.retrieval(name)
    with Progress(f"{name}: loading", len(given.turns)) as progress:
        held = loaded(given, keep, progress)
    asked = list(_asked(name, held, limit))
    with copied(held.folder) as folder, mnemarch.open(folder) as memory:
        seats = {
            scope: memory.seat(Actor.agent("reader"), Scope(project=scope, task=TASK), session="asking")
            for scope in held.turns
        }

        def answer(scope: str, text: str) -> tuple[list[str], bool]:
            found = seats[scope].recall(text, k=_ITEMS)
            return [item.unit.id for item in found.items], found.fit < memory.config.recall.floor

        for half in ("tune", "held"):
            print(_row(name, half, [each for each in asked if each[3] == half], answer))


def _row(name: str, half: str, asked: list[Asked], answer: Callable[[str, str], tuple[list[str], bool]]) -> str:
    recalls, kept, silent = [], [], []
    for scope, text, gold, _ in asked:
        units, is_silent = answer(scope, text)
        if gold:
            recalls.append(scored(units, gold).recall[_ITEMS])
            kept.append(0.0 if is_silent else recalls[-1])
        else:
            silent.append(is_silent)
    count = max(1, len(recalls))
    found, lost = sum(recalls) / count, (sum(recalls) - sum(kept)) / count
    share = sum(silent) / max(1, len(silent))
    return f"{name:<18}{half:<6}{len(recalls):>6}{found:>8.3f}{lost:>8.3f}{len(silent):>14}{share:>8.2f}"


def _asked(name: str, held: Loaded, limit: int | None) -> Iterator[Asked]:
    if name == "paraphrases":
        for half in ("tune", "held"):
            for question in _some(sets.own(name, half).questions, limit):
                yield question.scope, question.text, held.gold(question), half
        for row in sets.own_rows("unanswerable"):
            yield "own", row["question"], frozenset(), row["half"]
        return
    scopes = sorted(held.turns)
    for number, question in enumerate(_some(sets.retrieval(name).questions, limit)):
        half = _half(number if len(scopes) == 1 else scopes.index(question.scope))
        yield question.scope, question.text, held.gold(question), half
        strangers = [each for each in scopes if each != question.scope and _half(scopes.index(each)) == half]
        if strangers:
            yield strangers[number % len(strangers)], question.text, frozenset(), half
    for number, question in enumerate(sets.unanswerable(name)):
        yield question.scope, question.text, frozenset(), _half(number)


def _half(number: int) -> str:
    return "held" if number % 2 else "tune"


def _some(questions: list[sets.Question], limit: int | None) -> list[sets.Question]:
    return questions[:: max(1, -(-len(questions) // limit))] if limit else questions


if __name__ == "__main__":
    main()
