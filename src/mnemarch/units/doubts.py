"""Decides which faults a task demonstrably fixed. A test that passes after it was edited proves nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mnemarch.code.tests import body_hash, is_removed
from mnemarch.code.worktree import WorkTree
from mnemarch.lazy import Any
from mnemarch.model.event import Event
from mnemarch.model.testrun import NOT_RUN, Outcome, TestRun
from mnemarch.model.unit import Unit
from mnemarch.units.account import KEPT_MAX, changed_since, faults_of, named
from mnemarch.units.analysis import LoggedStep, is_edit, is_worth_repeating

# Why a test that failed before and passes now proves nothing.
_CHANGED, _OTHERWISE, _FLAKY = "changed", "run with another conftest.py", "flaky"


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
    tree = None if root is None else WorkTree(root)
    met = [fault for episode in others for fault in episode.attributes.get("faults", ())]
    flaky = {fault["test"] for fault in met if fault.get("unseen") == _FLAKY}

    def doubt(fault: Mapping[str, Any], steps: Sequence[LoggedStep]) -> str:
        body = body_hash(tree, fault["test"]) if tree is not None and "body" in fault else ""
        if body and body != fault["body"]:
            return _CHANGED
        is_same = bool(content) and fault.get("tree") == content and not changed_since(fault, steps)
        return _FLAKY if is_same or fault["test"] in flaky else _doubtful_step(fault, steps)

    faults, said = faults_of(log, worked, run, doubt)
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
