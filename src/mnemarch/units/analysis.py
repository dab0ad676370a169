"""The analyst: what a log says about its task, by rules; and the check of an analysis that somebody gives (R14)."""

from __future__ import annotations

import re

from mnemarch.errors import AnalystFailed, Hint
from mnemarch.model.outcome import Analysis
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_TROUBLE = frozenset({"error", "failure", "fail", "exception"})
_CHOICE = frozenset({"decision", "decide", "choice"})
_RESULT = frozenset({"result", "output", "done", "answer"})
_COST_OF_TROUBLE = 0.1
_SUCCESS_SCORE_MIN = 0.5
_SHOWN_CHARS = 200
# Kinds of log entries that say what the task is. Any other kind says what somebody did, saw or thought in it.
_TASK_KINDS = frozenset({"task", "goal", "plan", "prompt", "user", "request", "instruction", "issue", "todo"})


@value
class LoggedStep:
    """One log entry of a task, as the analyst sees it."""

    kind: str
    text: str
    data: Mapping[str, Any]


def analysed(steps: Sequence[LoggedStep], passed: bool, similar_successes: int) -> Analysis:
    """Summary and critique of a task from its log alone."""
    troubles = [step.text for step in steps if step.kind.lower() in _TROUBLE]
    choices = tuple(dict.fromkeys(step.text for step in steps if step.kind.lower() in _CHOICE))
    results = [step for step in steps if step.kind.lower() in _RESULT]
    code = _code_of(steps)
    return Analysis(
        success=passed,
        critique=_critique(passed, troubles, len(steps)),
        score=max(_SUCCESS_SCORE_MIN, 1.0 - _COST_OF_TROUBLE * len(troubles)) if passed else 0.0,
        key_decisions=choices,
        result=(results[-1].data or results[-1].text) if results else (steps[-1].text if steps else None),
        is_repeatable=passed and similar_successes > 0 and code is not None,
        suggested_skill_name=_slug(task_described(steps) or steps[0].text) if steps else None,
        extracted_code=code,
    )


def analysis_from(given: Analysis | Mapping[str, Any], passed: bool) -> Analysis:
    """The calling agent's own analysis (R14), checked: it may add insight, not claim a success that Verify denied."""
    shape: Any = given
    if isinstance(given, Analysis):
        analysis = given
    elif not isinstance(shape, dict):
        raise AnalystFailed(f"An analysis is no {type(shape).__name__}.", hint=Hint("analysis"))
    else:
        try:
            fields: dict[str, Any] = {"success": passed, "critique": "", "score": float(passed)} | dict(given)
            analysis = Analysis(**fields)
        except TypeError as error:
            raise AnalystFailed(f"The analysis does not fit: {error}.", hint=Hint("analysis")) from None
    if analysis.success and not passed:
        raise AnalystFailed("The analysis claims success, but verification failed.", hint="Set success to False.")
    score: Any = analysis.score
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        raise AnalystFailed(f"The score must be from 0 to 1, not {score!r}.", hint="1.0 is a full success.")
    decisions: Any = analysis.key_decisions
    texts = [analysis.critique, *(decisions if isinstance(decisions, list | tuple) else [None])]
    named = (analysis.suggested_skill_name, analysis.extracted_code)
    if any(not isinstance(text, str) for text in (*texts, *(item for item in named if item is not None))):
        raise AnalystFailed("critique, key_decisions, skill name and code must be text.", hint="Give strings.")
    return analysis


def _critique(passed: bool, troubles: Sequence[str], steps: int) -> str:
    if not troubles:
        return f"{'Passed' if passed else 'Failed'} in {steps} step{'' if steps == 1 else 's'} without a logged error."
    last = troubles[-1][:_SHOWN_CHARS]
    if passed:
        return f"Passed after {len(troubles)} logged error(s); the last was: {last}"
    return f"Failed with {len(troubles)} logged error(s); the last was: {last}"


def _code_of(steps: Sequence[LoggedStep]) -> str | None:
    """The last code or command that the task logged, as data or in a fenced block."""
    for step in reversed(steps):
        for name in ("code", "command", "patch"):
            if isinstance(step.data.get(name), str):
                return str(step.data[name])
        fenced = re.search(r"```[^\n`]*\n(.*?)```", step.text, re.DOTALL)
        if fenced:
            return fenced[1].strip()
    return None


def _slug(text: str) -> str:
    words = re.findall(r"\w+", text.lower())[:6]
    return "-".join(words) or "skill"


def task_described(steps: Sequence[LoggedStep]) -> str | None:
    """What the task is (G9): a description given with an entry, else the first entry of a kind that describes it."""
    for step in steps:
        described = step.data.get("task_description") or step.data.get("taskDescription")
        if described:
            return str(described)
    return next((step.text for step in steps if step.kind.lower() in _TASK_KINDS and step.text.strip()), None)
