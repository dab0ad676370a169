"""Turns a tool call into log entries (commands, edits, files) and, if it ran tests, into a test run. Mostly pure."""

from __future__ import annotations

import os

from mnemarch.log.act import Entry
from mnemarch.model.stamps import blake2b
from mnemarch.model.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from mnemarch.interfaces.hooks.hosts import HookEvent
    from mnemarch.model.testrun import TestRun
    from mnemarch.seat import Seat

_PATHS = ("file_path", "filePath", "path", "absolute_path", "notebook_path")
_BEFORE = ("old_string", "oldString", "old_str")
_AFTER = ("new_string", "newString", "new_str", "content", "contents", "file_text", "new_source")
_PATCHES = ("patch", "patchText", "input", "command")
_PATCHED = ("*** Update File: ", "*** Add File: ", "*** Delete File: ")
# An edit with a longer side is kept without its text: half an edit would teach a wrong rule.
_SIDE_CHARS_MAX = 20_000
_COMMAND_CHARS_MAX = 4_000
_FILE_CHARS_MAX = 1_000_000
_ERROR_CHARS_MAX = 2_000
_WORDS_MAX = 60
# Signs of a shell command that changes files.
_EDITS = ("sed -i", "rm ", "mv ", "cp ", "tee ", "truncate ", "patch ", "git checkout", "git restore", "git apply", ">")


def edits_of(event: HookEvent, root: str) -> list[dict[str, Any]]:
    """The edits of a tool call: each has its path from the root, and either both sides or a patch."""
    told = event.input
    patch = next((told[name] for name in _PATCHES if _is_patch(told.get(name))), None)
    if patch is not None:
        paths = [
            line.removeprefix(mark).strip() for line in patch.splitlines() for mark in _PATCHED if mark in line[:17]
        ]
        return [{"path": path_in(path, root, event.cwd), "patch": patch[:_SIDE_CHARS_MAX]} for path in paths]
    named = _text(told, _PATHS)
    if not named or event.tool_kind != "edit":
        return []
    path, parts = path_in(named, root, event.cwd), told.get("edits")
    several = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return [{"path": path, **_sides(part)} for part in several or [dict(told)]]


def entries_of(event: HookEvent, root: str) -> list[Entry]:
    """The log entries of a finished tool call."""
    if event.tool_kind == "shell":
        command = _text(event.input, ("command", "cmd"))[:_COMMAND_CHARS_MAX]
        data: dict[str, Any] = {"command": command, "exit": event.exit}
        if event.exit:
            data["error"] = event.output[-_ERROR_CHARS_MAX:]
        kept = {name: item for name, item in data.items() if item is not None}
        return [Entry(kind="command", text=command, data=kept), *_edited(event, root)] if command.strip() else []
    if event.tool_kind == "read":
        path = _text(event.input, _PATHS)
        inside = path_in(path, root, event.cwd) if path else ""
        return [Entry(kind="file", text=inside, data={"path": inside})] if inside else []
    return [] if "Failure" in event.native else _edited(event, root)


def _edited(event: HookEvent, root: str) -> list[Entry]:
    """The log entries of a tool call's edits, each with the function or class around it, if known."""
    entries = []
    for edit in edits_of(event, root):
        name = _name_in(root, edit["path"], edit["after"]) if edit.get("before") else ""
        entries.append(Entry(kind="edit", text=edit["path"], data=edit | ({"name": name} if name else {})))
    return entries


def _name_in(root: str, path: str, part: str) -> str:
    from mnemarch.text.edits import enclosing_name

    whole = os.path.join(root, path)
    if os.path.isabs(path) or not os.path.isfile(whole):
        return ""
    try:
        with open(whole, encoding="utf-8") as file:
            return enclosing_name(file.read(_FILE_CHARS_MAX), part)
    except (OSError, ValueError):
        return ""


def digest_of(edit: Mapping[str, Any]) -> str:
    """A digest that is equal for equal edits."""
    said = "\0".join(str(edit.get(name) or "") for name in ("path", "after", "patch"))
    return blake2b(said.encode(errors="replace"), digest_size=10).hexdigest()


def paths_changed(event: HookEvent, root: str) -> list[str]:
    """The files that a tool is about to change. For a shell command that edits: the existing files that it names."""
    paths = [edit["path"] for edit in edits_of(event, root)]
    command = _text(event.input, ("command", "cmd")) if event.tool_kind == "shell" else ""
    if any(word in command for word in _EDITS):
        words = (word.strip("'\"`();|&<>") for word in command.split()[:_WORDS_MAX])
        named = (path_in(word, root, event.cwd) for word in words if word and word[0] != "-")
        paths += [path for path in named if os.path.isfile(os.path.join(root, path))]
    return list(dict.fromkeys(paths))


def path_in(path: str, root: str, cwd: str) -> str:
    """The path from the root of the working tree, or the absolute path if it lies outside."""
    whole = os.path.normpath(os.path.join(cwd, path))
    for base in (root, os.path.realpath(root)):
        if whole.startswith(f"{base}{os.sep}"):
            return whole[len(base) + 1 :].replace(os.sep, "/")
    return whole


def run_in(event: HookEvent, seat: Seat, root: str, configured: tuple[str, ...], reports: str) -> TestRun | None:
    """The test run of a command, or None if it ran no tests. A report of the runner supplies the tests if it exists."""
    command = _text(event.input, ("command", "cmd"))
    if event.tool_kind != "shell" or not command.strip():
        return None
    from mnemarch.witness.commands import runner_of

    if runner_of(command, configured) is None:  # Most commands run no tests and load nothing more.
        return None
    from mnemarch.witness.output import from_output

    seen = from_output(
        command,
        event.exit,
        event.output,
        cwd=event.cwd,
        root=root,
        configured=configured,
        awaited=seat.awaited_tests,
    )
    if seen is None or not os.path.exists(os.path.join(reports, "results.jsonl")):
        return seen
    from mnemarch.witness.reports import written_to

    try:
        _, results = written_to(reports, root)
    except (OSError, ValueError, LookupError):
        results = []
    forget_report(reports)
    own = tuple(result for result in results if not result.name.startswith("../"))
    return replace(seen, results=own) if own else seen


def forget_report(reports: str) -> None:
    """Remove an earlier run's report, so that the next run does not read it."""
    try:
        os.remove(os.path.join(reports, "results.jsonl"))
    except OSError:
        return


def _sides(told: Mapping[str, Any]) -> dict[str, str]:
    before, after = _text(told, _BEFORE), _text(told, _AFTER)
    return {} if max(len(before), len(after)) > _SIDE_CHARS_MAX else {"before": before, "after": after}


def _is_patch(item: Any) -> bool:
    return isinstance(item, str) and "*** Begin Patch" in item


def _text(told: Mapping[str, Any], names: tuple[str, ...]) -> str:
    def texts() -> Iterator[str]:
        for name in names:
            item = told.get(name)
            if isinstance(item, list):
                yield " ".join(map(str, item))
            elif isinstance(item, str):
                yield item

    return next(filter(None, texts()), "")
