"""Which errors a task is seen to have mended: a test that passes after it was changed shows nothing."""

from __future__ import annotations

from mnemarch.code.tests import body_hash, is_removed
from mnemarch.code.worktree import WorkTree
from mnemarch.model.testrun import NOT_RUN, Outcome, short_name
from mnemarch.units.account import KEPT_MAX, changed_since, faults_of, named
from mnemarch.units.analysis import is_edit, is_worth_repeating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Any

    from mnemarch.model.event import Event
    from mnemarch.model.testrun import TestRun
    from mnemarch.model.unit import Unit
    from mnemarch.units.analysis import LoggedStep
    from mnemarch.units.scene import Scene

# What became of a test that passes now, and failed before.
_CHANGED, _OTHERWISE, _FLAKY = "changed", "run with another conftest.py", "flaky"
_CONFTEST = "conftest.py"


def faults_shown(
    root: str | None,
    log: Sequence[Event],
    run: TestRun,
    scene: Scene,
    flaky: Collection[str],
    *,
    passed: bool,
    succeeded: bool,
) -> list[dict[str, Any]]:
    """The faults of a task, and of each that is gone what changed, or why nothing shows that it was mended.

    `flaky` are tests that were seen failing and passing with nothing changed.
    """
    tree = None if root is None else WorkTree(root)

    def doubt(fault: Mapping[str, Any], steps: Sequence[LoggedStep]) -> str:
        body = body_hash(tree, fault["test"]) if tree is not None and "body" in fault else ""
        if body and body != fault["body"]:
            return _CHANGED
        is_same = bool(scene.tree) and fault.get("tree") == scene.tree and not changed_since(fault, steps)
        return _FLAKY if is_same or fault["test"] in flaky else _doubtful_step(fault, steps)

    faults = faults_of(log, run.command if passed and run.witnessed else "", run if succeeded else None, doubt)
    for fault in faults:
        if fault.get("unseen") == NOT_RUN and is_removed(root, fault["test"]):
            fault["unseen"] = "removed"
    return faults


def flaky_in(episodes: Iterable[Unit]) -> set[str]:
    """The tests that these episodes saw failing and passing with nothing changed."""
    faults = [fault for episode in episodes for fault in episode.attributes.get("faults", ())]
    return {fault["test"] for fault in faults if fault.get("unseen") == _FLAKY}


def left_open(faults: Iterable[Mapping[str, Any]], run: TestRun) -> set[str]:
    """The tests that failed and that nobody saw passing."""
    passing = {_CHANGED, _OTHERWISE, _FLAKY}
    unseen = {fault["test"] for fault in faults if fault.get("unseen", _FLAKY) not in passing}
    return unseen.difference(run.named(Outcome.PASS))


def with_earlier(faults: Sequence[dict[str, Any]], before: Unit) -> list[dict[str, Any]]:
    """The faults with those that only the account `before` knows: not all of a long log is read."""
    known = {fault["key"] for fault in faults}
    return [*(fault for fault in before.attributes.get("faults", ()) if fault["key"] not in known), *faults][-KEPT_MAX:]


def _doubtful_step(fault: Mapping[str, Any], steps: Sequence[LoggedStep]) -> str:
    """What became of a test by an edit or command: its file was changed, if its lines are unknown, or a conftest.py."""
    file, short = fault["test"].partition("::")[0], short_name(fault["test"])
    for step in steps:
        command = str(named(step, "command", "command") or "")
        path = str(step.data.get("path")) if is_edit(step) else command if is_worth_repeating(command) else ""
        if _CONFTEST in path:
            return _OTHERWISE
        name = str(step.data.get("name") or "").rpartition(".")[2]
        if "body" not in fault and (name == short or (file in path and not name)):
            before, after = (str(step.data.get(side) or "") for side in ("before", "after"))
            if not before or before not in after:
                return _CHANGED
    return ""
