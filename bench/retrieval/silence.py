"""What `floor="auto"` costs and spares: recall@10 that it loses, and questions without an answer that get no item.

    python -m bench.retrieval.silence [--sets locomo,small] [--semantic] [--prompt] [--limit 60] [--keep FOLDER]

Each set is halved, LoCoMo by conversations: the weights were fitted to the halves "tune" and are judged by "held".
"small" is our own set in five memories of 30 facts. Questions without an answer are near (about what the memory is
about), of a stranger (another conversation, another of the small memories) or foreign (of another set). Precision is
the share of the silences that lose nothing. With --prompt it is what a hook shows at a prompt, which also leaves out
what is much less close than the best and what shares too few words.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import mnemarch
from bench.retrieval import sets
from bench.retrieval.loading import TASK, Loaded, copied, loaded
from bench.retrieval.measures import scored
from bench.retrieval.progress import Progress
from bench.retrieval.variants import DEFAULT, SEMANTIC, config_of
from mnemarch import Actor, Scope

_ITEMS = 10
_TOKENS = 8_000
_SMALL, _SMALL_MEMORIES = "small", 5
_FOREIGN_MAX = 60
NEAR, STRANGER, FOREIGN = "near", "stranger", "foreign"
SETS = ("locomo", "longmemeval_pool", "paraphrases", _SMALL)


@dataclass(frozen=True)
class Asked:
    """A question in one scope; without `gold` it has no answer there, and `kind` says why."""

    scope: str
    text: str
    gold: frozenset[str]
    half: str
    kind: str = ""


def main() -> None:
    parser = argparse.ArgumentParser(
        "python -m bench.retrieval.silence", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", type=lambda text: text.split(","), default=SETS, help=", ".join(SETS))
    parser.add_argument("--semantic", action="store_true", help="with the sentence model")
    parser.add_argument("--prompt", action="store_true", help="what a hook shows at a prompt, not what recall gives")
    parser.add_argument("--limit", type=int, help="so many questions with an answer of a public set at most")
    parser.add_argument("--keep", metavar="FOLDER", help="keep the loaded memories there, and use those that are")
    options = parser.parse_args()
    kinds = "".join(f"{kind:>10}" for kind in (NEAR, STRANGER, FOREIGN))
    print(f"{'set':<18}{'half':<6}{'asked':>6}{'R@10':>8}{'lost':>8}{kinds}{'precision':>11}")
    for name in options.sets:
        if name == _SMALL or sets.missing([name]) is None:
            with tempfile.TemporaryDirectory(prefix="mnemarch-bench-") as scratch:
                variant = SEMANTIC if options.semantic else DEFAULT
                _measure(name, options.keep or scratch, options.limit, variant, prompt=options.prompt)


def _measure(name: str, keep: str, limit: int | None, variant: str, *, prompt: bool) -> None:
    given = _small() if name == _SMALL else sets.retrieval(name)
    with Progress(f"{name}: loading", len(given.turns)) as progress:
        held = loaded(given, keep, progress)
    asked = [*_asked(name, given, held, limit), *_foreign(name, held)]
    with copied(held.folder) as folder, mnemarch.open(folder, config=config_of(variant)) as memory:
        if variant == SEMANTIC:
            memory.reindex()
        seats = {
            scope: memory.seat(Actor.agent("reader"), Scope(project=scope, task=TASK), session="asking")
            for scope in held.turns
        }

        def answer(scope: str, text: str) -> tuple[list[str], list[str]]:
            found = seats[scope].recall(text, k=_ITEMS)
            units = [item.unit.id for item in found.items]
            if prompt:
                shown = seats[scope].context(text, _TOKENS, floor="auto").items
                return units, [item.unit.id for item in shown][:_ITEMS]
            return units, units if found.fit >= memory.config.recall.floor else []

        for half in ("tune", "held"):
            print(_row(name, half, [each for each in asked if each.half == half], answer))


def _row(name: str, half: str, asked: list[Asked], answer: Callable[[str, str], tuple[list[str], list[str]]]) -> str:
    recalls, lost, silences = [], [], []
    silent: dict[str, list[bool]] = {NEAR: [], STRANGER: [], FOREIGN: []}
    for each in asked:
        units, shown = answer(each.scope, each.text)
        found = scored(units, each.gold).recall[_ITEMS] if each.gold else 0.0
        if each.gold:
            recalls.append(found)
            lost.append(found - scored(shown, each.gold).recall[_ITEMS])
        else:
            silent[each.kind].append(not shown)
        if not shown:
            silences.append(not found)
    shares = "".join(f"{_mean(part):>10.2f}" if part else f"{'':>10}" for part in silent.values())
    measured = f"{len(recalls):>6}{_mean(recalls):>8.3f}{_mean(lost):>8.3f}{shares}{_mean(silences):>11.2f}"
    return f"{name:<18}{half:<6}{measured}"


def _mean(values: list[float] | list[bool]) -> float:
    return sum(values) / max(1, len(values))


def _small() -> sets.Retrieval:
    """Our own set, its facts dealt out to several memories, and the questions of both halves."""
    rows = [sets.own("paraphrases", half) for half in ("tune", "held")]
    place = {turn.id: f"own{number % _SMALL_MEMORIES}" for number, turn in enumerate(rows[0].turns)}
    return sets.Retrieval(
        _SMALL,
        [replace(turn, scope=place[turn.id]) for turn in rows[0].turns],
        [replace(question, scope=place[min(question.gold)]) for row in rows for question in row.questions],
    )


def _asked(name: str, given: sets.Retrieval, held: Loaded, limit: int | None) -> Iterator[Asked]:
    scopes = sorted(held.turns)
    halves = {row["id"]: row["half"] for row in sets.own_rows("facts")}
    questions = given.questions
    if name == "paraphrases":
        questions = [question for half in ("tune", "held") for question in sets.own(name, half).questions]
        for row in sets.own_rows("unanswerable"):
            yield Asked("own", row["question"], frozenset(), row["half"], NEAR)
    elif name != _SMALL:
        for number, question in enumerate(sets.unanswerable(name)):
            yield Asked(question.scope, question.text, frozenset(), _half(number), NEAR)
        questions = questions[:: max(1, -(-len(questions) // limit))] if limit else questions
    for number, question in enumerate(questions):
        half = halves.get(min(question.gold)) or _half(number if len(scopes) == 1 else scopes.index(question.scope))
        yield Asked(question.scope, question.text, held.gold(question), half)
        strangers = [
            each for each in scopes if each != question.scope and (name == _SMALL or _half(scopes.index(each)) == half)
        ]
        if strangers:
            yield Asked(strangers[number % len(strangers)], question.text, frozenset(), half, STRANGER)


def _foreign(name: str, held: Loaded) -> Iterator[Asked]:
    """Questions that have nothing to do with the memory: ours for public sets, LoCoMo's for ours."""
    is_own = name in {"paraphrases", _SMALL}
    if is_own and sets.missing(["locomo"]) is not None:
        return
    questions = sets.retrieval("locomo").questions if is_own else sets.own("paraphrases", "tune").questions
    english = [question.text for question in questions if question.text.isascii()]
    scopes = sorted(held.turns)
    for number, text in enumerate(english[:: max(1, len(english) // _FOREIGN_MAX)]):
        yield Asked(scopes[number // 2 % len(scopes)], text, frozenset(), _half(number), FOREIGN)


def _half(number: int) -> str:
    return "held" if number % 2 else "tune"


if __name__ == "__main__":
    main()
