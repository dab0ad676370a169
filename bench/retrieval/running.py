"""One variant over one set: every question asked, every answer scored and timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import fmean, quantiles
from typing import Any

import mnemarch
from bench.retrieval import baselines
from bench.retrieval.loading import TASK, Loaded, copied
from bench.retrieval.measures import Score, difference, interval, mean, scored
from bench.retrieval.sets import Question
from bench.retrieval.variants import BASELINES, BM25, config_of
from mnemarch import Actor, Scope
from mnemarch.config import Config

_ITEMS = 50
_SHOWN = 10

# From a question to units and their texts, best first.
Ask = Callable[[Question], list[tuple[str, str]]]


@dataclass(frozen=True)
class Answered:
    """One question: how well its turns and its sessions were found, what a reader would read, how long it took."""

    turns: Score
    sessions: Score | None
    words: int
    ms: float


def answered(
    variant: str, loaded: Loaded, questions: Sequence[Question], progress: Callable[[int], None]
) -> list[Answered] | None:
    """Every question asked of one variant; None if it can't run here."""
    if variant in BASELINES:
        return _all(_asked_of_baseline(variant, loaded), loaded, questions, progress)
    config = config_of(variant)
    if config is None:
        return None
    with _asked_of_mnemarch(loaded, config) as ask:
        return _all(ask, loaded, questions, progress)


def _all(ask: Ask, loaded: Loaded, questions: Sequence[Question], progress: Callable[[int], None]) -> list[Answered]:
    found = []
    for number, question in enumerate(questions, start=1):
        started = time.perf_counter()
        items = ask(question)
        ms = (time.perf_counter() - started) * 1000
        texts = dict(items)
        units = loaded.ranking(question, list(texts))
        sessions = loaded.sessions(question, units)
        found.append(
            Answered(
                turns=scored(units, loaded.gold(question)),
                sessions=scored(sessions, question.gold_sessions) if question.gold_sessions else None,
                words=sum(len(texts[unit].split()) for unit in units[:_SHOWN]),
                ms=ms,
            )
        )
        progress(number)
    return found


def _asked_of_baseline(variant: str, loaded: Loaded) -> Ask:
    make = baselines.bm25 if variant == BM25 else baselines.ngram_hash
    held = {scope: loaded.texts(scope) for scope in loaded.turns}
    rankers = {scope: make(texts) for scope, (_, texts) in held.items()}

    def ask(question: Question) -> list[tuple[str, str]]:
        units, texts = held[question.scope]
        return [(units[place], texts[place]) for place in rankers[question.scope](question.text, _ITEMS)]

    return ask


@contextmanager
def _asked_of_mnemarch(loaded: Loaded, config: Config) -> Iterator[Ask]:
    with copied(loaded.folder) as folder, mnemarch.open(folder, config=config) as memory:
        seats = {
            scope: memory.seat(Actor.agent("reader"), Scope(project=scope, task=TASK), session="asking")
            for scope in loaded.turns
        }

        def ask(question: Question) -> list[tuple[str, str]]:
            found = seats[question.scope].recall(question.text, k=_ITEMS)
            return [(item.unit.id, item.unit.content) for item in found.items]

        if config.recall.semantic:
            memory.reindex()  # Embeds everything here and now instead of in the background.
        for seat in seats.values():
            seat.recall("warm", k=1)
        yield ask


def summary(found: Sequence[Answered], default: Sequence[Answered] | None, *, timed: bool) -> dict[str, Any]:
    """The numbers of one row; `delta` is to the default, with its 95 % interval."""
    at_10 = recall_at_10(found)
    row: dict[str, Any] = mean([each.turns for each in found])
    row["R@10 interval"] = interval(at_10)
    sessions = [each.sessions for each in found if each.sessions is not None]
    if sessions:
        row["sessions R@10"] = mean(sessions)["R@10"]
        row["sessions R@10 interval"] = interval([score.recall[10] for score in sessions])
    row["words@10"] = fmean(each.words for each in found)
    if timed:
        cuts = quantiles([each.ms for each in found] or [0.0, 0.0], n=20, method="inclusive")
        row |= {"p50 ms": cuts[9], "p95 ms": cuts[18]}
    if default is not None and default is not found:
        row["delta"] = difference(at_10, recall_at_10(default))
    return row


def recall_at_10(found: Sequence[Answered]) -> list[float]:
    """By question, which is what two variants are compared by."""
    return [each.turns.recall[10] for each in found]
