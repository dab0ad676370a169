"""A task's account, computed from its log: the text of its episode, and the errors (faults) that it met and mended.

A test that passes after it was edited proves nothing.
"""

from __future__ import annotations

from mnemarch.model.caller import Caller, Level
from mnemarch.model.event import Event, EventType
from mnemarch.model.json_text import to_json
from mnemarch.model.outcome import CALLER
from mnemarch.model.testrun import NOT_RUN, UNNAMED, Outcome, TestRun
from mnemarch.model.value import Frozen, replace
from mnemarch.text import FINGERPRINT_VERSION
from mnemarch.text.cache import cached
from mnemarch.text.edits import as_code, is_of_tests
from mnemarch.text.words import in_a_line, some_of
from mnemarch.units.analysis import (
    OTHERS,
    TASK_KINDS,
    TROUBLE,
    LoggedStep,
    changes_in,
    edits_told,
    is_edit,
    is_worth_repeating,
    logged_step,
    task_described,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from mnemarch.model.unit import Unit
    from mnemarch.stores.sql.reader import Reader

    Doubt = Callable[[Mapping[str, Any], Sequence[LoggedStep]], str]

# An episode keeps this many of the newest items of each list, and this many characters of each item.
KEPT_MAX = 30
KEPT_CHARS_MAX = 300
_THEN_MAX = 3
# Kinds of log entries that are requests, and the fewest words that make one.
_REQUESTS = frozenset({"prompt", "user", "request", "instruction"})
_ASKED_WORDS_MIN = 3
# Kinds of log entries that state an approach. The last one before a success counts as the one that worked.
_APPROACH_KINDS = frozenset({"approach", "plan", "hypothesis", "decision", "fix"})
# Commands that only change folder or set something, and the punctuation that a program's name may contain.
_GOING = frozenset({"cd", "source", "export", "set", "sudo", "."})
_IN_NAMES = str.maketrans("", "", "-_./")
_HEAD_WORDS_MAX = 3
_CHARS_MAX = 4_000
_TESTS_MAX = 5
_APPROACHES_MAX = 3
# Length of the commit hash in the text. The attributes keep the whole hash.
_COMMIT_CHARS = 12
_OTHERS_READ_MAX = 200
# Why a test that failed before and passes now proves nothing.
_CHANGED, _OTHERWISE, _FLAKY = "changed", "run with another conftest.py", "flaky"


class Account(Frozen):
    """The facts about a task at its verification."""

    name: str
    passed: bool
    success: bool
    steps: Sequence[LoggedStep]
    faults: Sequence[Mapping[str, Any]]
    failed_approaches: Sequence[str]
    approach: str | None
    tests: Sequence[str]
    set_aside: Sequence[str]
    commit: str | None
    critique: str
    analyst: str


def text_of(account: Account) -> str:
    """The account as text. Each sentence states only what the log says."""
    described = task_described(account.steps)
    later = f", at last “{last}”" if (last := _asked_at_last(account.steps)) not in ("", described) else ""
    task = f"{account.name} (“{cut(described)}”{later})" if described else account.name
    open_or_failed = "is left open" if account.passed and account.analyst != CALLER else "failed"
    lines = [f"{task} {'succeeded' if account.success else open_or_failed}."]
    if account.tests:
        lines.append(_tested(account))
    if account.set_aside:
        lines.append(f"Still failing, as before the task: {some_of(account.set_aside, _TESTS_MAX)}.")
    if account.commit:
        lines.append(f"On top of commit {account.commit[:_COMMIT_CHARS]}.")
    if account.failed_approaches:
        quoted = [f"“{approach}”" for approach in dict.fromkeys(account.failed_approaches)]
        lines.append(f"Tried, and failed: {some_of(quoted, _APPROACHES_MAX)}.")
    if account.faults and not account.critique:
        which = "Its error" if len(account.faults) == 1 else f"The last of {len(account.faults)} errors"
        lines.append(f"{which}: “{account.faults[-1]['line']}”.")
    if account.approach and account.faults:
        lines.append(f"What worked, as it was said: “{account.approach}”.")
    unseen = {fault["test"]: fault["unseen"] for fault in account.faults if "unseen" in fault}
    lines += [f"Nothing shows that it was mended: {test} was {became}." for test, became in unseen.items()]
    if account.critique and account.analyst == CALLER and (change := (account.faults or [{}])[-1].get("change")):
        lines.append(f"It was gone after {', '.join(change)}.")
    if account.critique:
        lines.append(f"{'Its own critique, not verified: ' if account.analyst == CALLER else ''}{account.critique}")
    first = account.steps[0] if account.steps and not described else None
    if first is not None and first.text.strip():
        lines.append(f"Logged first, as {first.kind or 'a note'} and not verified: “{cut(first.text)}”.")
    return "\n".join(lines)


def _asked_at_last(steps: Sequence[LoggedStep]) -> str:
    """The last request, on one line. Texts of one or two words and questions don't count as requests."""
    texts = (step.text.strip() for step in reversed(steps) if step.kind.lower() in _REQUESTS)
    last = next((text for text in texts if len(text.split()) >= _ASKED_WORDS_MIN and not text.endswith("?")), "")
    return in_a_line(last, KEPT_CHARS_MAX)


def _tested(account: Account) -> str:
    """A sentence about the tests. It omits their names if nothing else is known: recall would find it by them."""
    outcome = "passed" if account.passed else "failed"
    if account.steps or account.failed_approaches or account.critique:
        return f"{outcome.capitalize()}: {some_of(account.tests, _TESTS_MAX)}."
    return f"{len(account.tests)} test{'' if len(account.tests) == 1 else 's'} {outcome}."


def failed_approaches(staged: Sequence[Event]) -> list[str]:
    payloads = [event.payload for event in staged if event.type is EventType.ATTEMPT_FAILED and event.payload]
    # An approach that fixed one of several errors did not fail.
    tried = [payload["approach"] for payload in reversed(payloads) if not payload.get("mended")]
    return [cut(approach) for approach in tried if approach]


def cut(text: str) -> str:
    """The beginning of a long text. The episode cites the log, which has the whole text."""
    return text if len(text) <= _CHARS_MAX else f"{text[:_CHARS_MAX]} … ({len(text)} characters in all)"


# Faults: their keys, the commands that failed, and the commands that worked afterwards


def named(step: LoggedStep, field: str, kind: str) -> object:
    """The value of a field in an entry's data. For an entry of this kind without data, its text."""
    return step.data.get(field) or (step.text if step.kind.lower() == kind and not step.data else None)


def faults_shown(
    root: str | None,
    log: Iterable[Event],
    worked: str,
    run: TestRun | None,
    content: str,
    others: Iterable[Unit],
    before: Unit | None,
) -> tuple[list[dict[str, Any]], str]:
    """The faults of a task, and the last approach that somebody announced.

    A fault that is gone says what changed, or why nothing shows that it was mended. `content` is a digest of the tree
    that was tested last. `others` are earlier episodes, which may know a test as flaky. Of a long log not everything is
    read, so the faults that only the earlier account `before` has are taken from it.
    """
    from mnemarch.code.tests import body_hash, is_removed
    from mnemarch.code.worktree import WorkTree

    tree = None if root is None else WorkTree(root)
    met = [fault for episode in others for fault in episode.attributes.get("faults", ())]
    flaky = {fault["test"] for fault in met if fault.get("unseen") == _FLAKY}

    def doubt(fault: Mapping[str, Any], steps: Sequence[LoggedStep]) -> str:
        body = body_hash(tree, fault["test"]) if tree is not None and "body" in fault else ""
        if body and body != fault["body"]:
            return _CHANGED
        is_same = bool(content) and fault.get("tree") == content and not _changed_since(fault, steps)
        return _FLAKY if is_same or fault["test"] in flaky else _doubtful_step(fault, steps)

    faults, said = _faults_of(log, worked, run, doubt)
    for fault in faults:
        if fault.get("unseen") == NOT_RUN and is_removed(root, fault["test"]):
            fault["unseen"] = "removed"
    known = {fault["key"] for fault in faults}
    told = () if before is None else before.attributes.get("faults", ())
    return [*(fault for fault in told if fault["key"] not in known), *faults][-KEPT_MAX:], said


def left_open(faults: Iterable[Mapping[str, Any]], run: TestRun) -> set[str]:
    """The tests that failed and were not seen passing since."""
    passing = (None, _CHANGED, _OTHERWISE, _FLAKY)
    return {fault["test"] for fault in faults if fault.get("unseen") not in passing} - {*run.named(Outcome.PASS)}


def _doubtful_step(fault: Mapping[str, Any], steps: Sequence[LoggedStep]) -> str:
    """Why a passing test may show nothing: a conftest.py was changed, or its own file if its lines are unknown."""
    file = fault["test"].partition("::")[0]
    for step in steps:
        command = str(named(step, "command", "command") or "")
        touched = str(step.data.get("path")) if is_edit(step) else command if is_worth_repeating(command) else ""
        if "conftest.py" in touched:
            return _OTHERWISE
        if "body" not in fault and file in touched:
            return _CHANGED
    return ""


def _faults_of(
    staged: Iterable[Event], worked: str, run: TestRun | None, doubt: Doubt
) -> tuple[list[dict[str, Any]], str]:
    """The newest errors of a task, in order, and the last approach announced between the last error and the success.

    An error has a `key` by which it is recognised, its `line`, and where they are known:

    - `command`: the command that failed; `next`: the first command that worked after it; `then`: the commands up to the
      one that ran the same program with success;
    - `test`: the first test that met it;
    - `approach`: what was tried before it; `mended`: the approach after which another error came in its place, which
      says nothing against that approach; `tried`: what was changed before it came again;
    - `gone`: the task got past it; `change`: what was changed until its test passed;
    - `unseen`: why its test was not seen passing, though the task succeeded.

    `worked` is the test command that works now: whatever its earlier runs saw failing, failed in it. `run` is the run
    that shows the success, None if the task failed. `doubt` gives the reason why a passing test shows nothing.
    """
    met = _Faults(worked, doubt)
    for event in staged:
        if event.body is None:
            continue
        if event.type is EventType.ATTEMPT_FAILED and (payload := event.payload):
            met.fail(payload.get("tells") or event.id, payload)
        elif is_success(event):
            is_run = event.type is EventType.ATTEMPTS_CLEARED
            # An account without a run does not show that a test passed.
            ended = [key for key, fault in met.open.items() if is_run or "test" not in fault]
            met.end(ended, (event.payload or {}).get("unseen") if is_run else None)
            met.open.clear()
            met.is_well = bool(met.faults)
        elif event.type is EventType.LOGGED:
            met.step(event.id, logged_step(event.body))
    if worked:
        met.steps.append(LoggedStep(kind="command", text=worked, data={}))
    if run is not None:
        met.end([*met.open], run.unseen(fault["test"] for fault in met.open.values() if "test" in fault))
    newest = list(met.faults.values())[-KEPT_MAX:]
    for fault in newest:
        _follow(fault, met.steps[fault.pop("since") :])
    told = [{name: each for name, each in fault.items() if name not in {"body", "tree"}} for fault in newest]
    return told, met.said


class _Faults:
    """The errors that a task met, in the order of its log, and by their keys those that are still `open`.

    `steps` is everything that the task did. The `since` of a fault is the number of steps before it.
    """

    def __init__(self, worked: str, doubt: Doubt) -> None:
        self.faults: dict[str, dict[str, Any]] = {}
        self.open: dict[str, dict[str, Any]] = {}
        self.steps: list[LoggedStep] = []
        self._worked, self._doubt = worked, doubt
        self._failing = self.said = ""
        self.is_well = self._is_another = False

    def fail(self, event_id: str, payload: Mapping[str, Any]) -> None:
        approach, gone = (payload["approach"] or "")[:KEPT_CHARS_MAX], payload.get("mended", ())
        for fault in self.faults.values():
            if fault["key"] in gone:
                fault.setdefault("mended", approach or self.said)
            elif fault["key"] not in self.open:
                fault.setdefault("mended", self.said)
        self.end(gone)
        failed = self._failing or (self._worked if payload.get("tests") else "")
        for number, told in enumerate(_told(payload)):
            tests, tried = told.get("tests") or [None], None if gone else approach
            optional = {"test": tests[0], "approach": tried, "command": failed[:KEPT_CHARS_MAX]}
            optional |= {"body": payload.get("bodies", {}).get(tests[0]), "tree": payload.get("tree")}
            fault = {"key": told["key"], "line": told["line"]}
            # A failure that tells an earlier one in full replaces it.
            self._meet(f"{event_id}:{number}", fault | {name: item for name, item in optional.items() if item})
        self.said, self.is_well, self._is_another = "", False, False

    def step(self, event_id: str, step: LoggedStep) -> None:
        kind = step.kind.lower()
        if kind in TROUBLE:
            fault = dict(read_error(step.text))
            if all(known["key"] != fault["key"] for known in self.faults.values()):
                self._meet(event_id, fault)
            return
        self.steps.append(step)
        if self.is_well and (is_edit(step) or kind in TASK_KINDS - _APPROACH_KINDS):
            self._is_another = True  # A request or an edit after success starts other work.
        if kind in _APPROACH_KINDS and not self._is_another and (text := step.text.strip()):
            self.said = text if len(text) <= KEPT_CHARS_MAX else f"{text[:KEPT_CHARS_MAX]}…"
        if command := named(step, "command", "command"):
            self._failing = str(command) if step.data.get("exit") else ""

    def _meet(self, name: str, fault: dict[str, Any]) -> None:
        again = self.open.get(fault["key"])
        if again is not None and (tried := changes_in(self.steps[again["since"] :])):
            again["tried"] = tried[-_THEN_MAX:]
        self.faults[name] = self.open[fault["key"]] = fault | {"since": len(self.steps)}

    def end(self, keys: Iterable[str], unseen: Mapping[str, str] | None = None) -> None:
        """Close these faults. A fault whose test was not seen passing is not marked as gone."""
        for gone in filter(None, [self.open.pop(key, None) for key in keys]):
            test, steps = gone.get("test"), self.steps[gone["since"] :]
            became = (unseen or {}).get(test or "")
            # If the run names only a file or package, an edit of the tests may have skipped the test.
            if became == UNNAMED and any(is_of_tests(str(step.data.get("path"))) for step in steps if is_edit(step)):
                continue
            if became is None and test is not None:
                became = self._doubt(gone, steps)
            if became in (None, "", UNNAMED):
                change = _changed_since(gone, steps) if test is not None else []
                gone |= {"gone": True} | ({"change": change} if change else {})
            elif became:
                gone["unseen"] = became


def _changed_since(fault: Mapping[str, Any], steps: Sequence[LoggedStep]) -> list[str]:
    """The changes since a fault, with the command that works now if it sets a variable that the failing one lacked."""
    commands = [str(named(step, "command", "command") or "") for step in steps if not step.data.get("exit")]
    red = str(fault.get("command", ""))
    again = [command for command in commands if red and command_head(command) == command_head(red)]
    new = {word.partition("=")[0] for word in again[-1].split() if "=" in word and word not in red} if again else set()
    told = [as_code(again[-1])] if any(map(str.isupper, new)) else []
    return [*changes_in(steps, f"{fault['test']} {fault['line']}"), *told]


def _follow(fault: dict[str, Any], steps: Iterable[LoggedStep]) -> None:
    """Add to a fault the commands that ran after it, until its own command works again."""
    ran: list[str] = []
    for step in steps if "command" in fault else ():
        if is_edit(step):
            return  # The edit may have fixed it, so later commands prove nothing.
        command = str(named(step, "command", "command") or "")[:KEPT_CHARS_MAX]
        if command and not step.data.get("exit"):
            ran.append(command)
            fault.setdefault("next", command)
            if command_head(command) == command_head(fault["command"]):
                fault["then"] = ran[-_THEN_MAX:]
                return


def changes_before_failures(staged: Sequence[Event]) -> dict[str, tuple[str, ...]]:
    """What a task changed before each failure, by the failure's event; what came after the last one has the key "".

    Changes before the first failure after a success are left out: they are what failed, and no attempt to mend it. So
    are the changes of an actor that was undone.
    """
    undone: dict[str, Sequence[str]] = {}
    for event in staged:
        if event.type is EventType.ATTEMPTS_CLEARED and (payload := event.payload):
            undone[event.id] = payload.get("entries", ())
            undone.pop(payload.get("reverts", ""), None)
    gone = {entry for entries in undone.values() for entry in entries}
    changes: dict[str, tuple[str, ...]] = {}
    steps: list[LoggedStep] | None = None
    for event in staged:
        if event.type is EventType.ATTEMPT_FAILED:
            if steps is not None:
                changes[event.id] = tuple(changes_in(steps))
            steps = []
        elif is_success(event):
            steps = None
        elif steps is not None and event.type is EventType.LOGGED and event.body is not None and event.id not in gone:
            steps.append(logged_step(event.body))
    return changes if steps is None else changes | {"": tuple(changes_in(steps))}


def mended_in(staged: Iterable[Event], run: TestRun) -> list[str]:
    """Keys of faults from the task's earlier runs whose tests all pass in this run.

    A run describes the errors of a limited number of tests. Any further failed test is a fault by its own name.
    """
    passed = set(run.named(Outcome.PASS))
    tests: dict[str, Iterable[str]] = {}
    for event in staged:
        if event.type is EventType.ATTEMPT_FAILED and (payload := event.payload):
            for key in payload.get("mended", ()):
                tests.pop(key, None)
            told = {fault["key"]: fault["tests"] for fault in _told(payload) if fault.get("tests")}
            covered = {test for names in told.values() for test in names}
            tests |= told | {test: (test,) for test in payload.get("tests", ()) if test not in covered}
        elif is_success(event):
            tests.clear()  # These faults are fixed already.
    return [key for key, names in tests.items() if passed.issuperset(names)]


def is_success(event: Event) -> bool:
    """Whether the event records the task's success, so that all errors before it are gone."""
    if event.type is EventType.ATTEMPTS_CLEARED and (payload := event.payload):
        return "attempts" not in payload and not payload.get("unstuck")
    return (told := account_in(event)) is not None and told["attributes"].get("success") is True


def account_in(event: Event) -> Mapping[str, Any] | None:
    """The record of the task's account that an event created, or None.

    Other episodes, such as stories about the past, are not accounts of a task.
    """
    # Parsing is slow and most units are not accounts, so the text is searched first.
    if event.type is not EventType.UNIT_REMEMBERED or '"task_key"' not in (event.body or ""):
        return None
    record = (event.payload or {})["unit"]
    return record if record.get("kind") == "episode" and "task_key" in record.get("attributes", {}) else None


def _told(payload: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """The faults in one failure event: one for each error of a test run. Errors that were already parsed are reused."""
    is_current = payload["fingerprint"]["version"] == FINGERPRINT_VERSION
    if is_current and "faults" in payload:
        faults: list[Mapping[str, Any]] = payload["faults"]
        return faults
    is_known = is_current and payload.get("line") is not None
    known = {"key": payload["fingerprint"]["hash"], "line": payload["line"]} if is_known else None
    return [{**(known or read_error(payload["error"])), "tests": payload.get("tests", ())}]


def command_head(command: str) -> str:
    """The program that a command line runs, with its subcommands, but without a leading `cd` and without arguments."""
    parts = [part.split() for part in command.replace(";", "&&").split("&&")]
    words = next((part for part in parts if part and part[0] not in _GOING), [])
    words = words[next((at for at, word in enumerate(words) if "=" not in word), 0) :]
    plain: list[str] = []
    for word in words[:_HEAD_WORDS_MAX]:
        is_plain = word == "-m" or word.translate(_IN_NAMES).isalnum()
        if not is_plain or (word.startswith("-") and word != "-m"):
            break
        plain.append(word)
    return " ".join(plain)


@cached(1_024)
def read_error(error: str) -> dict[str, str]:
    """The fault in an error text: its key and the line that tells it."""
    from mnemarch.text.fingerprint import fingerprint, telling_line

    return {"key": fingerprint(error).hash, "line": telling_line(error)[:KEPT_CHARS_MAX]}


def with_edits_of_others(reader: Reader, caller: Caller, log: Sequence[Event]) -> list[Event]:
    """The log of a task. After its first failure, it includes edits by other tasks in the same worktree."""
    failed = next((event for event in log if event.type is EventType.ATTEMPT_FAILED), None)
    if failed is None or caller.scope.worktree is None or not edits_told(log):
        return [*log]  # Without an edit of the task, edits of other tasks explain nothing.
    around = caller.scope.at(Level.WORKTREE)
    events = reader.events_back(around, types=[EventType.LOGGED], limit=_OTHERS_READ_MAX)
    foreign = [e for e in events if e.position > failed.position and e.scope.key != caller.scope_key]
    others = [
        replace(edit.sources[0], body=to_json({"kind": "edit", "text": edit.path, "data": {"by": OTHERS}}))
        for edit in edits_told(foreign)
    ]
    return sorted((*log, *others), key=lambda event: event.position) if others else [*log]
