"""The evaluation sets, read in place. They are not part of this repository; several licences forbid it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

SOURCES = {
    "locomo": "LoCoMo (github.com/snap-research/locomo): conversations as turns, questions with their evidence turns",
    "longmemeval_pool": "LongMemEval (github.com/xiaowu0162/LongMemEval): evidence sessions pooled into one memory",
    "ko_parakqc": "ParaKQC (github.com/warnikchow/paraKQC): Korean questions and commands, ten wordings each",
    "ko_question_pair": "Korean question pairs (github.com/songys/Question_pair)",
    "ko_korsts_dev": "KorSTS (github.com/kakaobrain/kor-nlu-datasets)",
}
FORM = """Each set is a folder with corpus.jsonl {id, scope, session, speaker, text, timestamp} and queries.jsonl
{id, scope, text, gold, gold_sessions, category, exclude?}, or with pairs.jsonl {a, b, label, score}."""


@dataclass(frozen=True)
class Turn:
    id: str
    scope: str
    session: str | None
    text: str
    at: datetime | None


@dataclass(frozen=True)
class Question:
    id: str
    scope: str
    text: str
    gold: frozenset[str]
    gold_sessions: frozenset[str]
    category: str
    exclude: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Retrieval:
    name: str
    turns: list[Turn]
    questions: list[Question] = field(default_factory=list)


@dataclass(frozen=True)
class Pairs:
    name: str
    pairs: list[tuple[str, str]]
    same: list[bool]


def folder() -> Path:
    here = Path(__file__).resolve().parents[2]
    return Path(os.environ.get("MNEMON_BENCH_DATA") or here.parent / "shared" / "data")


def missing() -> str | None:
    """What to tell somebody who has no data, or None."""
    if (folder() / "locomo" / "corpus.jsonl").exists():
        return None
    named = "\n".join(f"  {name}: {source}" for name, source in SOURCES.items())
    return f"No evaluation data in {folder()} (MNEMON_BENCH_DATA points elsewhere).\n{FORM}\nSources:\n{named}"


def retrieval(name: str) -> Retrieval:
    turns = [_turn(row) for row in _rows(name, "corpus")]
    questions = [_question(row) for row in _rows(name, "queries")]
    return Retrieval(name, turns, [question for question in questions if question.gold])


def pairs(name: str) -> Pairs:
    rows = [row for row in _rows(name, "pairs") if row.get("label") is not None]
    return Pairs(name, [(row["a"], row["b"]) for row in rows], [bool(row["label"]) for row in rows])


def _rows(name: str, part: str) -> list[dict]:
    with (folder() / name / f"{part}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _turn(row: dict) -> Turn:
    speaker, at = row.get("speaker"), row.get("timestamp")
    return Turn(
        id=row["id"],
        scope=row["scope"],
        session=row.get("session") or None,
        text=f"{speaker}: {row['text']}" if speaker else row["text"],
        at=datetime.fromisoformat(at).replace(tzinfo=UTC) if at else None,
    )


def _question(row: dict) -> Question:
    return Question(
        id=row["id"],
        scope=row["scope"],
        text=row["text"],
        gold=frozenset(row["gold"]),
        gold_sessions=frozenset(row.get("gold_sessions") or ()),
        category=str(row.get("category")),
        exclude=frozenset(row.get("exclude") or ()),
    )
