"""Asks a model to analyse a task or to classify a text, and checks the answer against the log (G8, M2).

The log is sent as data between marks that it can't forge. Only parts of the answer that the log supports are kept:
decisions that a step states, commands that were run, names that were logged. The model can't turn a failed verification
into a success.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from mnemarch.learning.classify import Classified, MemoryEvent
from mnemarch.learning.model import Model
from mnemarch.model.outcome import Analysis
from mnemarch.model.value import replace
from mnemarch.text.cache import pattern
from mnemarch.text.prompt import entry, estimated_tokens, fenced
from mnemarch.text.tokens import query_tokens, tokens
from mnemarch.text.words import entries, in_a_line
from mnemarch.units.analysis import CHOICE, PROSE, LoggedStep, analysed, runnable_lines

_INSTRUCTION = "\n".join(entries("analyst", "task"))
_VERDICTS = {True: "Verification passed.", False: "Verification failed, so it is false."}
_TEXT = {"type": "string"}
_STEP = {"type": "integer"}


def _object(**properties: Any) -> dict[str, Any]:
    """A schema of an object with exactly these fields."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_SCHEMA = _object(
    success={"type": "boolean"},
    critique=_TEXT,
    score={"type": "number"},
    key_decisions={"type": "array", "items": _object(step=_STEP, choice=_TEXT, reason=_TEXT)},
    is_repeatable={"type": "boolean"},
    skill_name=_TEXT,
    skill_steps={"type": "array", "items": _STEP},
)
# The kinds of entries in which an agent states its own choices. Tool output, files and requests are not its choices.
_AGENTS_OWN = CHOICE | PROSE | {"hypothesis", "approach", "edit", "patch"}
_SHOWN_DATA = ("command", "exit", "path", "rationale", "approach", "code", "patch", "before", "after")
_STEP_CHARS_MAX = 1_500
_CRITIQUE_CHARS_MAX = 1_200
_CHOICE_CHARS_MAX = 300
_DECISIONS_MAX = 5
_NAME_CHARS_MAX = 60
_WHY_CHARS_MAX = 200
_FAILED_SCORE_MAX = 0.5
# The share of the words of a choice, or of its reason, that must be in the log.
_SHARE_MIN = 0.6
# Names that can be looked up in the log: paths, tests, commits, and text between backticks.
_NAMES = (
    r"`([^`\n]+)`|([\w.-]+(?:/[\w.-]+)+|\w+\.(?:py|js|ts|tsx|go|rs|java|kt|rb|c|h|cpp|toml|json|ya?ml|md|sql|sh)\b)"
)
_NAMES += r"|(\btest_\w+|\w+::[\w:]+)|\b((?=[0-9a-f]*\d)[0-9a-f]{7,40})\b"
_SENTENCE_END = r"(?<=[.!?。])\s+"


def analysis_by_model(
    model: Model, name: str, steps: Sequence[LoggedStep], *, passed: bool, tests: Sequence[str], tokens_max: int
) -> Analysis:
    """The model's analysis, limited to what the log supports. The rules fill in the rest."""
    shown = _shown(steps, tests, passed, tokens_max)
    material = fenced(list(shown.values()))
    answer = model.answer(_INSTRUCTION.format(verdict=_VERDICTS[passed]), material, _SCHEMA)
    by_rules = analysed(steps, passed, 1)
    done = [number for number in answer["skill_steps"] if number in shown and number > 0]
    lines = [line for number in dict.fromkeys(done) for line in runnable_lines(steps[number - 1])]
    score = min(max(float(answer["score"]), 0.0), 1.0 if passed else _FAILED_SCORE_MAX)
    return replace(
        by_rules,
        success=passed and answer["success"],
        critique=_borne_out(answer["critique"], material) or by_rules.critique,
        score=round(score, 2),
        key_decisions=_decisions(answer["key_decisions"], steps, shown),
        is_repeatable=passed and answer["is_repeatable"],
        suggested_skill_name=in_a_line(answer["skill_name"], _NAME_CHARS_MAX) or by_rules.suggested_skill_name,
        extracted_code="\n".join(lines) or by_rules.extracted_code,
        analyst=name,
    )


def _shown(steps: Sequence[LoggedStep], tests: Sequence[str], passed: bool, tokens_max: int) -> dict[int, str]:
    """The steps as the model sees them, by number. A long log is cut to its first five steps and the newest that fit.

    Number 0 is the result of the verification.
    """
    verdict = f"[0 verification {'passed' if passed else 'failed'}]"
    shown = {0: entry(verdict, ", ".join(tests[:20]) or "no test was named")}
    left = tokens_max - estimated_tokens(shown[0])
    beginning = range(min(5, len(steps)))
    for at in [*beginning, *range(len(steps) - 1, len(beginning) - 1, -1)]:
        step = steps[at]
        data = [f"{name}: {_cut(str(step.data[name]))}" for name in _SHOWN_DATA if name in step.data]
        text = entry(f"[{at + 1} {step.kind or 'note'}]", "\n".join([_cut(step.text), *data]))
        left -= estimated_tokens(text)
        if left < 0:
            break
        shown[at + 1] = text
    return dict(sorted(shown.items()))


def _decisions(
    said: Sequence[Mapping[str, Any]], steps: Sequence[LoggedStep], shown: Mapping[int, str]
) -> tuple[str, ...]:
    """The decisions that one of the agent's own steps states in similar words. A reason not in the log is left out."""
    everything = frozenset(tokens("\n".join(shown.values())))
    kept: dict[str, None] = {}
    for each in said:
        number = each["step"]
        choice, reason = in_a_line(each["choice"], _CHOICE_CHARS_MAX), in_a_line(each["reason"], _CHOICE_CHARS_MAX)
        own = number > 0 and number in shown and steps[number - 1].kind.lower() in _AGENTS_OWN
        if own and _is_said(choice, frozenset(tokens(shown[number]))):
            because = f" (because {reason})" if reason and _is_said(reason, everything) else ""
            kept[f"{choice}{because}"] = None
    return tuple(kept)[:_DECISIONS_MAX]


def _is_said(text: str, words: Collection[str]) -> bool:
    wanted = query_tokens(text)
    return bool(wanted) and sum(word in words for word in wanted) >= _SHARE_MIN * len(wanted)


def _borne_out(critique: str, material: str) -> str:
    """The sentences of a critique whose names all occur in the log."""
    sentences = pattern(_SENTENCE_END).split(in_a_line(critique, _CRITIQUE_CHARS_MAX))
    names = [["".join(groups) for groups in pattern(_NAMES).findall(sentence)] for sentence in sentences]
    return " ".join(
        sentence for sentence, named in zip(sentences, names, strict=True) if all(name in material for name in named)
    )


def _cut(text: str) -> str:
    half = _STEP_CHARS_MAX // 2
    return text if len(text) <= _STEP_CHARS_MAX else f"{text[:half]}\n[…]\n{text[-half:]}"


# Which bucket a text belongs to

_SORTING = "\n".join(entries("analyst", "bucket"))


class LLMClassifier:
    """A classifier that asks a model (M2). It says where a text belongs, never whether it is true."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def classify(self, event: MemoryEvent) -> Classified:
        from mnemarch.learning.classify import Bucket, Classified

        buckets = [str(bucket) for bucket in Bucket]
        schema = _object(bucket=_TEXT | {"enum": buckets}, confidence={"type": "number"}, why=_TEXT)
        material = fenced([entry(f"[{event.source}]", _cut(event.text))])
        answer = self._model.answer(_SORTING, material, schema)
        confidence = min(max(float(answer["confidence"]), 0.0), 1.0)
        return Classified(Bucket(answer["bucket"]), confidence, in_a_line(answer["why"], _WHY_CHARS_MAX))
