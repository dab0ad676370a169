"""The rule-based analyst of task logs, and the check of an analysis that a caller passes (R14)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from mnemarch.errors import AnalystFailed, Hint
from mnemarch.lazy import Any
from mnemarch.model.event import Event, EventType
from mnemarch.model.json_text import from_json
from mnemarch.model.outcome import CALLER, Analysis
from mnemarch.model.testrun import short_name
from mnemarch.model.value import Frozen, replace
from mnemarch.text.cache import cached, pattern
from mnemarch.text.choices import Choice, choice_of, choices_in
from mnemarch.text.edits import Edit, as_code, netted, sides_of, told_edit
from mnemarch.text.prompt import without_fenced
from mnemarch.text.words import STOP_WORDS, Patterns, counted, in_a_line, some_of

TROUBLE = frozenset({"error", "failure", "fail", "exception"})
CHOICE = frozenset({"decision", "decide", "choice"})
_RESULT = frozenset({"result", "output", "done", "answer"})
# Kinds of log entries that describe the task. All other kinds record what happened in it.
TASK_KINDS = frozenset({"task", "goal", "plan", "prompt", "user", "request", "instruction", "issue", "todo"})
# Kinds of log entries in which an agent explains in sentences what it does and why.
PROSE = frozenset({"thought", "note", "plan", "assistant", "reasoning", "step", "summary", "comment", "design", "fix"})
# Commands that only look. They are not steps of a skill, and their exit code does not count as a failure.
_LOOKS = (
    r"(?:sudo )?(?:ls|cat|head|tail|less|more|grep|rg|find|pwd|cd|echo|which|wc|tree|type|file|stat|du|df|env|date"
    r"|whoami|diff|open|read|search|view|true|exit|sleep)\b|:|(?:\S*/)?mnemarch (?!verify\b)"
)
_GIT_LOOKS = r"git (?:-\S+ )*(?:status|diff|log|show|branch|blame|grep|ls-files|remote|rev-parse)\b"
# Git commands that only record or fetch work.
_RECORDS = r"git (?:-\S+ )*(?:add|commit|push|pull|fetch|switch|checkout|stash)\b"
_EDITS = frozenset({"edit", "patch", "write"})
OTHERS = "other tasks in the same worktree"
_EXITS = ("exit", "exit_code", "exitCode", "returncode")
# Redirections that write no file.
_UNWRITTEN = r"\d*>+ ?(?:&\d|/dev/null)"
_PARTS = r"&&|\|\||[;|\n]"
_FENCED = r"(?s)```[^\n`]*\n(.*?)```"
_COST_OF_FAILURE = 0.1
_SUCCESS_SCORE_MIN = 0.5
_SHOWN_CHARS = 200
_SHOWN_MAX = 3
_CHANGES_MAX = 5
_SKILL_STEPS_MAX = 20
_NAME_WORDS_MAX = 6


class LoggedStep(Frozen):
    """One log entry or failure of a task, as input of the analyst."""

    kind: str
    text: str
    data: Mapping[str, Any]


def steps_of(staged: Iterable[Event]) -> list[LoggedStep]:
    """The log entries and failures of a task, in order. A failure step carries the error and the approach."""
    steps: dict[str, LoggedStep] = {}
    for event in staged:
        if event.body is None:
            continue
        if event.type is EventType.LOGGED:
            steps[event.id] = logged_step(event.body)
        elif event.type is EventType.ATTEMPT_FAILED and (payload := event.payload):
            # A failure that tells an earlier one in full replaces it.
            data = {name: payload[name] for name in ("approach", "line") if payload.get(name)}
            steps[payload.get("tells") or event.id] = LoggedStep(kind="failure", text=payload["error"], data=data)
    return list(steps.values())


@cached(4_096)
def logged_step(body: str) -> LoggedStep:
    """A log entry as a step. Cached, because one verification reads each entry several times."""
    payload = from_json(body)
    # Recalled text is not part of what the task did: an episode must not store it again (R6).
    text = without_fenced(payload.get("text", ""))
    return LoggedStep(kind=payload.get("kind", ""), text=text, data=payload.get("data") or {})


def asked_for(steps: Iterable[LoggedStep], tests: Collection[str]) -> tuple[set[str], str]:
    """The tests that the task was asked to fix, and the text of the request.

    A request may name a test or its file, or ask for all failing tests.
    """
    says = Patterns("turns", "requests")
    asked = "\n".join(step.text for step in steps if step.kind.lower() in TASK_KINDS)
    parts = [part for part in pattern(r"[.;!?]\s|\n").split(asked) if not says["leave tests"].search(part)]
    if any(says["mend tests"].search(part) for part in parts):
        return set(tests), asked
    files = {test: test.partition("::")[0] for test in tests if "::" in test}
    wanted = {test for test in tests if is_named(test, asked) or (test in files and is_in(files[test], asked))}
    return wanted, "\n".join(parts)


def is_named(test: str, text: str) -> bool:
    """Whether a text names a test. A test name that is a plain word never counts."""
    short = short_name(test)
    return not (short.isalpha() and not any(map(str.isupper, short[1:]))) and is_in(short, text)


def is_in(name: str, text: str) -> bool:
    """Whether a text contains a name as a whole word. `test_cart.py` does not contain `test_cart`."""
    import re  # Rarely needed: only for tests that failed before the task too.

    return name in text and pattern(rf"(?<!\w){re.escape(name)}(?!\w|\.\w)").search(text) is not None


def analysed(
    steps: Sequence[LoggedStep], passed: bool, similar_successes: int, turn: Sequence[str] | None = None
) -> Analysis:
    """The analysis of a task from its log alone: what failed, what fixed it, decisions, and the steps that worked.

    `turn` lists the changes that were seen to fix the last failure. Without it, all changes after the last failure
    count as the fix.
    """
    failures = _failures(steps)
    results = [step for step in steps if step.kind.lower() in _RESULT]
    code = "\n".join(_worked(steps, failures)) or None
    return Analysis(
        success=passed,
        critique=_critique(steps, passed, failures, turn),
        score=max(_SUCCESS_SCORE_MIN, 1.0 - _COST_OF_FAILURE * len(failures)) if passed else 0.0,
        key_decisions=tuple(dict.fromkeys(choice.text for choice in key_choices(steps))),
        result=(results[-1].data or results[-1].text) if results else (steps[-1].text if steps else None),
        is_repeatable=passed and similar_successes > 0 and is_worth_repeating(code),
        suggested_skill_name=_slug(task_described(steps) or steps[0].text) if steps else None,
        extracted_code=code,
    )


def analysis_from(given: Analysis | Mapping[str, Any], passed: bool) -> Analysis:
    """The calling agent's own analysis, checked (R14). It may not claim a success if the verification failed."""
    shape: Any = given
    if isinstance(given, Analysis):
        analysis = given
    elif not isinstance(shape, dict):
        raise AnalystFailed(f"An analysis can't be a {type(shape).__name__}.", hint=Hint("analysis"))
    else:
        known = Analysis.__match_args__
        unknown = [str(name) for name in shape if name not in known]
        if unknown:
            told = f"An analysis has no field {', '.join(map(repr, unknown))}"
            listed = ", ".join(name for name in known if name != "analyst")
            raise AnalystFailed(f"{told}. Its fields are {listed}.", hint=Hint("analysis"))
        fields: dict[str, Any] = {"success": passed, "critique": "", "score": float(passed)} | shape
        analysis = Analysis(**fields)
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
    return replace(analysis, analyst=CALLER)


def task_described(steps: Sequence[LoggedStep]) -> str | None:
    """The task's description: one given in an entry's data, or else the first entry of a describing kind (G9)."""
    for step in steps:
        described = step.data.get("task_description") or step.data.get("taskDescription")
        if described:
            return str(described)
    return next((step.text for step in steps if step.kind.lower() in TASK_KINDS and step.text.strip()), None)


def key_choices(steps: Sequence[LoggedStep]) -> list[Choice]:
    """The decisions in a log: entries that were logged as decisions, and sentences that state one."""
    choices: list[Choice] = []
    for step in steps:
        kind = step.kind.lower()
        if kind in CHOICE and step.text.strip():
            choices.append(choice_of(step.text, _text_in(step, "rationale", "reason", "why")))
        elif kind in PROSE:
            choices += choices_in(step.text)
    return choices


# Failures, and changes that fixed them


def _critique(steps: Sequence[LoggedStep], passed: bool, failures: Sequence[int], turn: Sequence[str] | None) -> str:
    outcome = "Passed" if passed else "Failed"
    if not failures:
        return f"{outcome} in {counted(len(steps), 'step')} without a logged error."
    errors: dict[str, int] = {}
    for at in failures:
        line = _told(steps[at])
        errors[line] = errors.pop(line, 0) + 1
    quoted = [f"“{line}”{f' ({count} times)' if count > 1 else ''}" for line, count in errors.items()]
    left_out = f"{counted(len(quoted) - _SHOWN_MAX, 'other')}, " if len(quoted) > _SHOWN_MAX else ""
    told = f"{counted(len(failures), 'error')}: {left_out}{', then '.join(quoted[-_SHOWN_MAX:])}."
    if not passed:
        return f"Failed with {told}"
    last = failures[-1]
    after = ", ".join(changes_in(steps[last + 1 :], _told(steps[last])) if turn is None else turn)
    return f"Passed after {told}{f' After the last one: {after}.' if after else ''}"


def changes_in(steps: Sequence[LoggedStep], about: str = "") -> list[str]:
    """The changes that steps made, in order: each edit in its final form, and the commands that did something.

    If there are many edits, only those that share the most words with `about` are told in full.
    """
    edits = [edit for edit in netted(filter(None, map(edit_told, steps))) if edit.does_something]
    by_share = edits[::-1]
    if len(edits) > _SHOWN_MAX:
        asked = _words(about)
        by_share.sort(key=lambda edit: -len(asked & (own := _words(f"{edit.path} {edit.name}"))) / max(1, len(own)))
    told = {id(edit.sources[-1]): told_edit(edit) for edit in by_share[:_SHOWN_MAX]}
    texts = []
    for step in steps:
        texts += [told[id(step)]] if id(step) in told else []
        command = "" if _has_failed(step) else _command(step)
        texts += [as_code(command)] if is_worth_repeating(command) else []
    texts = list(dict.fromkeys(texts))[-_CHANGES_MAX:]
    others = [in_a_line(step.text, _SHOWN_CHARS) for step in steps if step.data.get("by") == OTHERS]
    texts += [f"edits of {some_of(list(dict.fromkeys(others)), _SHOWN_MAX)} by {OTHERS}"] if others else []
    if left := by_share[_SHOWN_MAX:]:
        files = list(dict.fromkeys(in_a_line(edit.path, _SHOWN_CHARS) for edit in left))
        texts.append(f"{counted(len(left), 'more edit')} of {some_of(files, _SHOWN_MAX)}")
    return texts


def edit_told(step: LoggedStep) -> Edit | None:
    """The edit that a step describes. None if the step is not an edit, or names no path."""
    path, patch = _text_in(step, "path"), _text_in(step, "patch")
    if not (path and is_edit(step)):
        return None
    before, after = sides_of(patch, path) if patch else (_side(step, "before"), _side(step, "after"))
    return Edit((step,), path, before, after, _text_in(step, "name"))


def edits_told(entries: Iterable[Event]) -> list[Edit]:
    """The edits in these log entries."""
    told = [(event, edit_told(logged_step(event.body))) for event in entries if event.body is not None]
    return [replace(edit, sources=(event,)) for event, edit in told if edit is not None and (edit.before or edit.after)]


def _words(text: str) -> set[str]:
    return set("".join(char if char.isalnum() else " " for char in text.lower()).split())


def _side(step: LoggedStep, name: str) -> str:
    side = step.data.get(name)
    return side if isinstance(side, str) else ""


def _failures(steps: Sequence[LoggedStep]) -> list[int]:
    """Indexes of the steps where the task failed.

    A failed command and the error entry right after it count as one failure. If a command runs again on unchanged
    code and fails without a new error, that is not another failure.
    """
    failures: list[int] = []
    told: set[str] = set()
    for at, step in enumerate(steps):
        if not _is_failure(step):
            told = set() if is_edit(step) else told
            continue
        is_told = at + 1 < len(steps) and _is_failure(steps[at + 1]) and _tells_of(step, steps[at + 1])
        if _command(step) in told and not is_told:
            continue
        if failures and failures[-1] == at - 1 and _tells_of(steps[at - 1], step):
            failures.pop()
        failures.append(at)
        told |= {_command(step)} if is_told and _command(step) else set()
    return failures


def without_runs_set_aside(steps: Sequence[LoggedStep]) -> list[LoggedStep]:
    """The steps without failed test runs that no error entry follows. Their failures were there before the task."""
    told = {at - 1 for at, step in enumerate(steps) if step.kind.lower() in TROUBLE}
    idle = {at for at, step in enumerate(steps) if _has_failed(step) and not is_worth_repeating(_command(step))}
    return [step for at, step in enumerate(steps) if at not in idle - told]


def _tells_of(before: LoggedStep, step: LoggedStep) -> bool:
    """Whether a step describes the failure of the step before it. Two runs, or two entries of one kind, never do."""
    if _command(step) or before.kind.lower() == step.kind.lower():
        return False
    return bool(_command(before)) or before.text in step.text or step.text in before.text


def _is_failure(step: LoggedStep) -> bool:
    if step.kind.lower() in TROUBLE:
        return True
    command = _command(step) if _has_failed(step) else ""
    return bool(command) and not _is_look(command)


def _has_failed(step: LoggedStep) -> bool:
    return any(step.data.get(name) not in (0, None, "0", False) for name in _EXITS)


def _told(step: LoggedStep) -> str:
    """The line that describes a failure, or else the command that failed."""
    from mnemarch.text.fingerprint import telling_line

    line = _text_in(step, "line") or ("" if step.text.strip() == _command(step) else telling_line(step.text))
    line = line or f"{_command(step)} failed"
    return line if len(line) <= _SHOWN_CHARS else f"{line[:_SHOWN_CHARS]}…"


# Steps that worked


def _worked(steps: Sequence[LoggedStep], failures: Sequence[int]) -> list[str]:
    """The commands, code and edits that led to success, in order. Only those after the last failure, if there are any.

    A line that ran several times is listed at its last place.
    """
    after = _runnable(steps[failures[-1] + 1 :]) if failures else []
    chosen = after if any(not line.startswith("# ") for line in after) else _runnable(steps)
    return chosen if any(not line.startswith("# ") for line in chosen) else []


def _runnable(steps: Sequence[LoggedStep]) -> list[str]:
    lines: dict[str, None] = {}
    for step in reversed(steps):
        lines |= dict.fromkeys(reversed(runnable_lines(step)))
        if len(lines) >= _SKILL_STEPS_MAX:
            break
    return list(lines)[:_SKILL_STEPS_MAX][::-1]


def is_edit(step: LoggedStep) -> bool:
    return step.kind.lower() in _EDITS or {"before", "after"} <= step.data.keys()


def runnable_lines(step: LoggedStep) -> list[str]:
    """The repeatable lines of a step: its command, code or edit. Empty if the step failed or only looked."""
    command, path = _command(step), _text_in(step, "path")
    if step.kind.lower() in TROUBLE or _has_failed(step):
        return []
    if command:
        return [] if _is_look(command) else [command]
    if code := _text_in(step, "code"):
        return [code]
    if path and (step.kind.lower() in _EDITS or "after" in step.data):
        return [f"# edit {path}"]
    if patch := _text_in(step, "patch"):
        return [patch]
    return [block.strip() for block in pattern(_FENCED).findall(step.text)]


@cached(4_096)
def is_worth_repeating(code: str | None) -> bool:
    """Whether steps make a skill. Edits of files, test runs, commits and looking alone don't (G10)."""
    from mnemarch.witness import runner_of

    text = pattern(_UNWRITTEN).sub("", code or "")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("# ")]
    parts = [part.strip() for line in lines for part in pattern(_PARTS).split(line)]
    idle = pattern(f"{_LOOKS}|{_GIT_LOOKS}|{_RECORDS}")
    return any(part and (">" in part or not idle.match(part)) and runner_of(part) is None for part in parts)


def _command(step: LoggedStep) -> str:
    return _text_in(step, "command") or (step.text.strip() if step.kind.lower() == "command" else "")


def _is_look(command: str) -> bool:
    """Whether every part of a command only looks at something."""
    parts = [part.strip() for part in pattern(_PARTS).split(command)]
    return ">" not in command and all(pattern(f"{_LOOKS}|{_GIT_LOOKS}").match(part) for part in parts if part)


def _text_in(step: LoggedStep, *names: str) -> str:
    texts = (step.data.get(name) for name in names)
    return next((text.strip() for text in texts if isinstance(text, str) and text.strip()), "")


def _slug(text: str) -> str:
    """A name for a skill, made of the words of its task without stop words, particles and endings."""
    from mnemarch.text.korean import bare, parted

    words = [word for word in pattern(r"\w+").findall(text[:_SHOWN_CHARS].lower()) if word not in STOP_WORDS]
    plain = [word if word.isascii() else bare(parted(word)[0]) or word for word in words if word != "please"]
    return "-".join(plain[:_NAME_WORDS_MAX]) or "skill"
