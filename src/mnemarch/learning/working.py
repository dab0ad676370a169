"""Working memory (M7-M9, R17): what a task is about, what was done in it and why, read from the log alone.

Every call appends to the log, so a killed process loses nothing, and another process can continue. Entries that hooks
and other agents log for the task count as well.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol

from mnemarch.code.home import home_of
from mnemarch.errors import InvalidInput
from mnemarch.log.act import Log
from mnemarch.model.caller import Caller
from mnemarch.model.event import Event, EventType, Receipt
from mnemarch.model.outcome import Promotion
from mnemarch.model.unit import Unit
from mnemarch.model.value import Frozen, replace
from mnemarch.policy.admission import typed_methods
from mnemarch.text.edits import sides_of
from mnemarch.text.words import counted
from mnemarch.units.analysis import TROUBLE

Entry = tuple[Event, Mapping[str, Any]]


class Gate(Protocol):
    """The part of a seat that logs and verifies a task."""

    def log(self, kind: str, text: str, *, data: Mapping[str, Any] | None = None) -> Receipt: ...
    def get(self, unit_id: str) -> Unit: ...
    @property
    def verify(self) -> Callable[..., Promotion]: ...


_EDITING_TOOLS = frozenset({"edit", "write", "search_replace"})
_STEPS = TROUBLE | {"step", "edit", "command", "tool", "tool_output"}
_READ = (EventType.LOGGED, EventType.TASK_VERIFIED, EventType.UNIT_REMEMBERED)
# Two errors that are further apart than this have a change of strategy between them (M8).
_STEPS_APART = 5
_DESCRIPTION_CHARS, _REASON_CHARS = 50, 100
_SUMMARY_CHARS = 200
_FILES_SHOWN_MAX = 5


class Step(Frozen):
    """One step of the work, numbered from 1. `error` says what went wrong."""

    number: int
    kind: str
    text: str
    error: str
    data: Mapping[str, Any]


class StepDecision(Frozen):
    """A choice that was noted while working. It binds nobody. `context_snapshot` has the step at which it was made."""

    description: str
    rationale: str
    context_snapshot: Mapping[str, Any]


class Pivot(Frozen):
    """Where the work took another direction (M8)."""

    step_number: int
    description: str
    reason: str


class LineChanges(Frozen):
    """The changed lines of all edits: by a real diff, and by the formula of M9, which counts newlines."""

    added: int = 0
    removed: int = 0
    counted_added: int = 0
    counted_removed: int = 0


class Episode(Frozen):
    """A task as its log tells it. `unit` is the episode that the gate wrote, if the task was verified."""

    task: str
    project: str | None
    plan: str
    steps: tuple[Step, ...]
    pivots: tuple[Pivot, ...]
    hypotheses: tuple[str, ...]
    decisions: tuple[StepDecision, ...]
    files: tuple[str, ...]
    symbols: tuple[str, ...]
    lines: LineChanges
    patch: str
    unit: Unit | None = None


@typed_methods
class WorkingMemoryManager:
    """The working memory of a seat's task."""

    def __init__(self, log: Log, caller: Caller, gate: Gate) -> None:
        self._log = log
        self._caller = caller
        self._gate = gate

    def init_task(self, description: str, *, plan: Sequence[str] = ()) -> Receipt:
        """Log the description and the plan of the task. Earlier entries then belong to another task."""
        receipt = self._gate.log("task", description, data={"task_description": description})
        if plan:
            self._gate.log("plan", "\n".join(plan), data={"steps": list(plan)})
        return receipt

    def record_step(
        self,
        action: str,
        *,
        tool: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        result: str | None = None,
        error: str | None = None,
    ) -> Receipt:
        """Log a step. An edit has `old_string` and `new_string` among its arguments; a failed step has an error."""
        told = dict(arguments or {})
        kind = "step"
        if (tool or "").lower() in _EDITING_TOOLS:
            kind = "edit"
            path, after = told.pop("path", ""), told.pop("content", "")
            path = str(told.pop("file_path", path))
            told["path"] = self._relative(path) if path else None
            told |= {"before": told.pop("old_string", ""), "after": told.pop("new_string", after)}
        elif "command" in told:
            kind = "command"
        if error:  # A failed step changed no file, so it must not count as an edit.
            named = {name: told[name] for name in ("path", "command") if name in told}
            told = named | {"action": action} | ({"exit": 1} if "command" in named else {})
            kind = "error"
        data = {"tool": tool, "result": result} | told
        kept = {name: item for name, item in data.items() if item is not None}
        return self._gate.log(kind, error or action, data=kept)

    def add_hypothesis(self, text: str) -> Receipt:
        """Log a guess. It is never handed out as a fact."""
        return self._gate.log("hypothesis", text)

    def record_decision(self, description: str, rationale: str = "") -> Receipt:
        """Log a choice and its reason. Binding decisions are made with `seat.decisions`."""
        return self._gate.log("decision", description, data={"rationale": rationale})

    def track_file(self, path: str) -> Receipt:
        """Log that the task is about a file."""
        relative = self._relative(path)
        return self._gate.log("file", relative, data={"path": relative})

    def track_symbol(self, path: str, name: str = "") -> Receipt:
        """Log that the task is about a function or class of a file. Path and name may be one text, `path::name`."""
        if not name:
            path, _, name = path.partition("::")
        relative = self._relative(path)
        return self._gate.log("symbol", f"{relative}:{name}", data={"path": relative, "name": name})

    def current(self) -> Episode:
        """The task so far."""
        return self._episode(self._entries())

    def consolidate(
        self,
        passed: bool | None = None,
        *,
        run: Sequence[str] | None = None,
        report: str | None = None,
        tests: Sequence[str] = (),
        commit: str | None = None,
    ) -> Episode:
        """Verify the task as `seat.verify` does, and return its one episode, new or updated.

        Without `passed`, `run` and `report`, a verification stands if nothing was logged after it. If there is none,
        the task is reported as passed unless its last step failed.
        """
        if passed is None and run is None and report is None:
            entries = self._entries()
            task = self._episode(entries)
            done = [event.type for event, _ in entries if event.type is not EventType.UNIT_REMEMBERED]
            if done and done[-1] is EventType.TASK_VERIFIED:
                return task
            passed = not (task.steps and task.steps[-1].error)
        judged = self._gate.verify(passed, run=run, report=report, tests=tests, commit=commit)
        return replace(self.current(), unit=self._gate.get(judged.episode_id))

    # What the log says

    def _entries(self) -> Sequence[Entry]:
        """The task's log entries, verifications and units since it began, each with its payload."""
        key = self._caller.scope_key
        events = self._log.store.read(lambda reader: list(reader.events_of_scope(key, _READ)))
        entries = [(event, payload) for event in events if (payload := event.payload) is not None]
        begun = [place for place, (_, payload) in enumerate(entries) if _kind(payload) == "task"]
        return entries[begun[-1] :] if begun else entries

    def _episode(self, entries: Sequence[Entry]) -> Episode:
        logged = [(_kind(payload), payload) for event, payload in entries if event.type is EventType.LOGGED]
        steps: list[Step] = []
        decisions: list[StepDecision] = []
        for kind, payload in logged:
            data = payload.get("data") or {}
            if kind in _STEPS:
                steps.append(Step(len(steps) + 1, kind, payload["text"], _error(kind, payload["text"], data), data))
            elif kind == "decision":
                snapshot = data.get("context_snapshot") or {}
                about = {"current_step": len(steps)} | (snapshot if isinstance(snapshot, dict) else {})
                decisions.append(StepDecision(payload["text"], str(data.get("rationale") or ""), about))
        data = [(kind, payload.get("data") or {}) for kind, payload in logged]
        files = [str(about["path"]) for kind, about in data if kind in {"file", "edit"} and about.get("path")]
        symbols = [f"{about.get('path')}:{about.get('name')}" for kind, about in data if kind == "symbol"]
        active = tuple(dict.fromkeys(files))
        lines = self._calculate_line_changes(steps)
        return Episode(
            task=next((payload["text"] for kind, payload in logged if kind in {"task", "user", "prompt"}), ""),
            project=self._get_project_id(active),
            plan=self._extract_plan_summary(logged),
            steps=tuple(steps),
            pivots=self._extract_pivots(steps, decisions),
            hypotheses=tuple(payload["text"] for kind, payload in logged if kind == "hypothesis"),
            decisions=tuple(decisions),
            files=active,
            symbols=tuple(dict.fromkeys(symbols)),
            lines=lines,
            patch=self._generate_patch_description(steps, lines),
            unit=self._kept(entries),
        )

    def _kept(self, entries: Sequence[Entry]) -> Unit | None:
        """The task's episode, if it was verified."""
        kept = [event.subject for event, payload in entries if payload.get("unit", {}).get("kind") == "episode"]
        return self._gate.get(kept[-1]) if kept and kept[-1] else None

    def _get_project_id(self, files: Sequence[str]) -> str | None:
        """The project that most of the active files belong to: the seat's, or that of another repository."""
        projects = Counter(
            home_of(os.path.dirname(path)).project if os.path.isabs(path) else self._caller.scope.project
            for path in files
        )
        return projects.most_common(1)[0][0] if projects else self._caller.scope.project

    @staticmethod
    def _extract_plan_summary(logged: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
        """The last plan in one line."""
        plan = next((payload["text"] for kind, payload in reversed(logged) if kind == "plan"), "")
        return "; ".join(line.strip() for line in plan.splitlines() if line.strip())[:_SUMMARY_CHARS]

    @staticmethod
    def _extract_pivots(steps: Sequence[Step], decisions: Sequence[StepDecision]) -> tuple[Pivot, ...]:
        """The pivots: an error that is followed by the next one more than five steps later, and every decision."""
        error_steps = [step.number for step in steps if step.error]
        pivots = [
            Pivot(number, "Strategy change after errors", "Recovered from error sequence")
            for number, following in pairwise(error_steps)
            if following - number > _STEPS_APART
        ]
        pivots += [
            Pivot(
                decision.context_snapshot["current_step"],
                f"Decision: {decision.description[:_DESCRIPTION_CHARS]}",
                decision.rationale[:_REASON_CHARS],
            )
            for decision in decisions
        ]
        return tuple(pivots)

    @staticmethod
    def _calculate_line_changes(steps: Sequence[Step]) -> LineChanges:
        edits = filter(None, map(_sides, steps))
        counts = [(*line_changes(*sides), *counted_lines(*sides)) for sides in edits]
        return LineChanges(*map(sum, zip(*counts, strict=True)))

    @staticmethod
    def _generate_patch_description(steps: Sequence[Step], lines: LineChanges) -> str:
        """The number of edits, their lines and their files, in one line."""
        edits = [step for step in steps if _sides(step) is not None]
        files = list(dict.fromkeys(str(step.data.get("path") or "") for step in edits))
        named = ", ".join(filter(None, files[:_FILES_SHOWN_MAX])) + ", …" * (len(files) > _FILES_SHOWN_MAX)
        return (
            f"{counted(len(edits), 'edit')}, +{lines.added} -{lines.removed} lines{f': {named}' if named else ''}"
            if edits
            else ""
        )

    def _relative(self, path: str) -> str:
        """The path relative to the root of the working tree, if it is inside; else the path as it is."""
        if not path:
            raise InvalidInput("A file is named by its path.", hint='For example "src/shop.py".')
        root = self._caller.root
        inside = root is not None and os.path.isabs(path) and os.path.commonpath([root, path]) == root
        return os.path.relpath(path, root) if inside else path


def _kind(payload: Mapping[str, Any]) -> str:
    return str(payload.get("kind", "")).lower()


def _error(kind: str, text: str, data: Mapping[str, Any]) -> str:
    """The error of a step; empty if it went well."""
    if kind in TROUBLE or data.get("exit"):
        return text
    return str(data.get("error") or "")


def _sides(step: Step) -> tuple[str, str] | None:
    """The text before and after an edit, or the lines of its patch; None for another step."""
    data = step.data
    if step.kind != "edit":
        return None
    if isinstance(data.get("patch"), str):
        return sides_of(data["patch"], str(data.get("path") or ""))
    return str(data.get("before") or ""), str(data.get("after") or "")


# Lines that an edit adds and removes: by a real diff, and by the older formula of M9


def line_changes(old: str, new: str) -> tuple[int, int]:
    """Lines added and removed as `git diff --numstat --minimal` counts them: all but a longest common subsequence."""
    before, after = _lines(old), _lines(new)
    common = _common(before, after)
    return len(after) - common, len(before) - common


def _lines(text: str) -> list[str]:
    """Lines as git sees them: only a newline ends a line, and a last line without one differs from a line with one."""
    *whole, rest = text.split("\n")
    return [*(f"{line}\n" for line in whole), *([rest] if rest else [])]


def _common(before: Sequence[str], after: Sequence[str]) -> int:
    """The length of a longest common subsequence. One row of its table is one integer, with a bit for each line of
    `before`.

    So a rewritten file of 20,000 lines takes a moment and not minutes.
    """
    places: dict[str, int] = {}
    for place, line in enumerate(before):
        places[line] = places.get(line, 0) | 1 << place
    row = every = (1 << len(before)) - 1
    for line in after:
        matched = row & places.get(line, 0)
        row = ((row + matched) | (row - matched)) & every
    return len(before) - row.bit_count()


def counted_lines(old: str, new: str) -> tuple[int, int]:
    """Lines added and removed by the formula of M9: the difference of both counts of newlines."""
    difference = new.count("\n") - old.count("\n")
    return max(0, difference), max(0, -difference)
