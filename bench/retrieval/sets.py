"""The evaluation sets: public ones, read in place, since several licences forbid to copy them, and one of our own.

Our own set has 150 facts of an imagined company, each with three questions in its language and one in the other. It was
written without a look at the code, and halved before any tuning; the benchmark asks the half that nothing is tuned on.
Later facts of other companies, with two questions each, are asked for among these.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

SOURCES = {
    "locomo": "LoCoMo (github.com/snap-research/locomo): conversations as turns, questions with their evidence turns",
    "longmemeval_pool": "LongMemEval (github.com/xiaowu0162/LongMemEval): evidence sessions pooled into one memory",
    "ko_parakqc": "ParaKQC (github.com/warnikchow/paraKQC): Korean questions and commands, ten wordings each",
    "ko_question_pair": "Korean question pairs (github.com/songys/Question_pair)",
    "ko_korsts_dev": "KorSTS (github.com/kakaobrain/kor-nlu-datasets)",
}
PUBLIC = ("locomo", "longmemeval_pool", "ko_parakqc")
LATER = ("second", "third", "fourth", "fifth", "sixth", "seventh")
# Each with the questions that it takes from our own set.
OWN = {
    "paraphrases": ("other words", "situation", "same words"),
    "other_language": ("other language",),
    **dict.fromkeys(LATER, ("other words", "situation")),
}
RETRIEVAL = (*PUBLIC, *OWN)
PAIRS = ("ko_question_pair", "ko_korsts_dev")
FORM = """Each set is a folder with corpus.jsonl {id, scope, session, speaker, text, timestamp} and queries.jsonl
{id, scope, text, gold, gold_sessions, category, exclude?}, or with pairs.jsonl {a, b, label, score}."""


@dataclass(frozen=True)
class Turn:
    """One text to remember, with its speaker."""

    id: str
    scope: str
    session: str | None
    text: str
    at: datetime | None


@dataclass(frozen=True)
class Question:
    """`gold` names turns of the same scope; `exclude` those that are the question itself."""

    id: str
    scope: str
    text: str
    gold: frozenset[str]
    gold_sessions: frozenset[str]
    category: str
    exclude: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Retrieval:
    """Texts, and questions of which it is known where the answer stands."""

    name: str
    turns: list[Turn]
    questions: list[Question]


@dataclass(frozen=True)
class Pairs:
    """Pairs of sentences, and whether they mean the same."""

    name: str
    pairs: list[tuple[str, str]]
    same: list[bool]


def folder() -> Path:
    here = Path(__file__).resolve().parents[2]
    return Path(os.environ.get("MNEMARCH_BENCH_DATA") or here.parent / "shared" / "data")


def missing(names: Sequence[str]) -> str | None:
    """What to tell somebody who lacks the data of these sets, or None."""
    absent = [name for name in names if name not in OWN and not (folder() / name).is_dir()]
    if not absent:
        return None
    named = "\n".join(f"  {name}: {SOURCES[name]}" for name in absent)
    return f"{folder()} lacks these sets; MNEMARCH_BENCH_DATA may name a folder that has them:\n{named}\n{FORM}"


def retrieval(name: str) -> Retrieval:
    if name in OWN:
        return own(name)
    turns = [_turn(row) for row in _rows(name, "corpus")]
    questions = [_question(row) for row in _rows(name, "queries")]
    return Retrieval(name, turns, [question for question in questions if question.gold])


def unanswerable(name: str) -> list[Question]:
    """The questions of a public set that nothing answers."""
    return [question for question in map(_question, _rows(name, "queries")) if not question.gold]


def own(name: str, half: str = "held") -> Retrieval:
    """Every fact, and the questions of one half; of later facts all."""
    rows = own_rows("facts")
    later = own_rows(name) if name in LATER else []
    turns = [Turn(id=row["id"], scope="own", session=None, text=row["fact"], at=None) for row in (*rows, *later)]
    questions = [
        Question(f"{row['id']} {kind}", "own", row[kind], frozenset({row["id"]}), frozenset(), kind)
        for row in later or [row for row in rows if row["half"] == half]
        for kind in OWN[name]
    ]
    return Retrieval(name, turns, questions)


def own_rows(part: str) -> list[dict[str, Any]]:
    with (Path(__file__).parent / "own" / f"{part}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def pairs(name: str) -> Pairs:
    rows = [row for row in _rows(name, "pairs") if row.get("label") is not None]
    return Pairs(name, [(row["a"], row["b"]) for row in rows], [bool(row["label"]) for row in rows])


def _rows(name: str, part: str) -> list[dict[str, Any]]:
    with (folder() / name / f"{part}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _turn(row: dict[str, Any]) -> Turn:
    speaker, at = row.get("speaker"), row.get("timestamp")
    return Turn(
        id=row["id"],
        scope=row["scope"],
        session=row.get("session") or None,
        text=f"{speaker}: {row['text']}" if speaker else row["text"],
        at=datetime.fromisoformat(at).replace(tzinfo=UTC) if at else None,
    )


def _question(row: dict[str, Any]) -> Question:
    return Question(
        id=row["id"],
        scope=row["scope"],
        text=row["text"],
        gold=frozenset(row["gold"]),
        gold_sessions=frozenset(row.get("gold_sessions") or ()),
        category=str(row.get("category")),
        exclude=frozenset(row.get("exclude") or ()),
    )
