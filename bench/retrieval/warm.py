"""How long a warm recall takes among real sentences, beside a bare search of tantivy for the same words.

    python -m bench.retrieval.warm [--units 100000] [--questions 300] [--semantic] [--keep FOLDER]

The sentences of the public sets are one project: first as facts, then as turns in the sessions that they come from.
Each question is a real one and is asked once; other questions warm the process before. The limits are on the median of
the thread time, which other work on the machine changes least. With --semantic the floor also reads the question with
both models. Making the vectors takes a quarter of an hour of processor time; --keep makes them once.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from random import Random
from statistics import median, quantiles

import tantivy

import mnemarch
from bench.retrieval import sets
from bench.retrieval.loading import TASK, loaded
from bench.retrieval.progress import Progress
from bench.retrieval.variants import DEFAULT, SEMANTIC, config_of
from mnemarch import Actor, Scope
from mnemarch.embedding import SentenceEncoder
from mnemarch.text.tokens import query_tokens

_PROJECT, _ITEMS, _WARMING = "warm", 10, 100
_CHARS_MIN = 8
_SENTENCE_END = re.compile(r"(?<=[.!?。])\s+|\n+")
LIMIT_MS, LIMIT_MS_SEMANTIC = 5.0, 15.0

# Wall-clock and thread time of one call, in milliseconds.
Spent = tuple[float, float]


def main() -> int:
    parser = argparse.ArgumentParser(
        "python -m bench.retrieval.warm", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--units", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--semantic", action="store_true", help="with both sentence models")
    parser.add_argument("--keep", metavar="FOLDER", help="keep the loaded memories there, and use those that are")
    options = parser.parse_args()
    if (absent := sets.missing(sets.PUBLIC)) is not None:
        print(absent, file=sys.stderr)
        return 2
    turns, questions = _sentences(options.units), _questions(options.questions)
    limit = LIMIT_MS_SEMANTIC if options.semantic else LIMIT_MS
    print(f"{len(turns):,} sentences, {len(questions) - _WARMING} questions, each asked once; milliseconds")
    print(f"{'':<9}{'wall p50':>9}{'p95':>7}{'thread p50':>12}{'p95':>7}{'floor p50':>11}{'ratio':>7}{'limit':>7}")
    holds = []
    for name, given in (("facts", [replace(turn, session=None) for turn in turns]), ("turns", turns)):
        with tempfile.TemporaryDirectory(prefix="mnemarch-bench-") as scratch:
            with Progress(f"{name}: loading", len(given)) as progress:
                folder = loaded(sets.Retrieval(f"warm-{name}", given, []), options.keep or scratch, progress).folder
            ours, floor = _asked(folder, questions, semantic=options.semantic)
        (wall, wall_95), (thread, thread_95) = (_p50_p95([each[at] for each in ours]) for at in (0, 1))
        bare = median(thread for _, thread in floor)
        row = f"{name:<9}{wall:>9.2f}{wall_95:>7.2f}{thread:>12.2f}{thread_95:>7.2f}{bare:>11.2f}"
        print(f"{row}{thread / bare:>7.1f}{limit:>7.1f}")
        holds.append(thread <= limit)
    return 0 if all(holds) else 1


def _sentences(count: int) -> list[sets.Turn]:
    """The sentences of the public sets as turns of one project, each text once: all sets but the largest are whole."""
    given = sorted((sets.retrieval(name).turns for name in sets.PUBLIC), key=len)
    seen: set[str] = set()
    turns: list[sets.Turn] = []
    for turn in chain(*given):
        session = f"{turn.scope} {turn.session}" if turn.session else None
        for part in _SENTENCE_END.split(turn.text):
            if len(text := part.strip()) >= _CHARS_MIN and text not in seen and len(turns) < count:
                seen.add(text)
                turns.append(sets.Turn(f"s{len(turns)}", _PROJECT, session, text, turn.at))
    return turns


def _questions(count: int) -> list[str]:
    """Questions of each public set in turn; the first ones warm the process."""
    chance = Random(20_251)
    drawn = []
    for name in sets.PUBLIC:
        texts = list(dict.fromkeys(question.text for question in sets.retrieval(name).questions))
        drawn.append(chance.sample(texts, len(texts)))
    return [text for text in chain(*zip_longest(*drawn)) if text is not None][: count + _WARMING]


def _asked(folder: str, questions: Sequence[str], *, semantic: bool) -> tuple[list[Spent], list[Spent]]:
    """What each measured question took here and at the floor, alternately."""
    config = config_of(SEMANTIC if semantic else DEFAULT)
    with mnemarch.open(folder, config=config) as memory:
        if semantic:
            memory.reindex()
        seat = memory.seat(Actor.agent("reader"), Scope(project=_PROJECT, task=TASK), session="asking")
        bare = _bare_search(os.path.join(folder, ".mnemarch", "index"), semantic=semantic)
        pairs = list(_timed(questions, lambda text: seat.recall(text, k=_ITEMS), bare))[_WARMING:]
    return [ours for ours, _ in pairs], [floor for _, floor in pairs]


def _timed(questions: Sequence[str], *asks: Callable[[str], object]) -> Iterator[tuple[Spent, ...]]:
    for text in questions:
        spent = []
        for ask in asks:
            wall, thread = time.perf_counter(), time.thread_time()
            ask(text)
            spent.append(((time.perf_counter() - wall) * 1000, (time.thread_time() - thread) * 1000))
        yield tuple(spent)


def _bare_search(index: str, *, semantic: bool) -> Callable[[str], object]:
    """The best documents of the same index for the words of a question, and with models its vector."""
    opened = tantivy.Index.open(index)
    searcher, schema = opened.searcher(), opened.schema
    encoder = SentenceEncoder() if semantic else None

    def ask(text: str) -> object:
        words = query_tokens(text)
        terms = [(tantivy.Occur.Should, tantivy.Query.term_query(schema, "body", word, "freq")) for word in words]
        hits = searcher.search(tantivy.Query.boolean_query(terms), _ITEMS).hits
        documents = [searcher.doc(at) for _, at in hits]
        return documents, encoder and encoder.embed([text])

    return ask


def _p50_p95(values: Sequence[float]) -> tuple[float, float]:
    return median(values), quantiles(values, n=20, method="inclusive")[18]


if __name__ == "__main__":
    sys.exit(main())
