"""Install. Takes: the name of a coding agent's host. Gives: its hooks and its MCP server, written into its own files.
Never: touches an entry that is not Mnemarch's."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from mnemarch import user
from mnemarch.code.home import FOLDER
from mnemarch.doctor import PLACE, SENTENCE, good, wrong
from mnemarch.errors import InvalidInput
from mnemarch.files import read_small, small_json, write_private, write_whole
from mnemarch.interfaces.command import Answer, Call, Command
from mnemarch.interfaces.hooks import local_place, place_of, prepare
from mnemarch.interfaces.hooks.sessions import FOLDER as SESSIONS
from mnemarch.interfaces.install.forms import HOSTS, SERVER, Entries, form_of, has_server
from mnemarch.interfaces.text import diff_of
from mnemarch.model.caller import DOCTOR
from mnemarch.model.outcome import Finding
from mnemarch.model.stamps import blake2b
from mnemarch.model.value import Frozen
from mnemarch.verbs.types import FLAG, WORDS, Parameter

_FILE_BYTES_MAX, _TRANSCRIPT_BYTES_MAX = 64 << 20, 256 << 20
_SECONDS_MAX = 20
_TOKENS_MIN = 400
# One of these texts is in every context that a hook hands over.
_MARKS = (b"<mnemarch-memory", b"shared memory. Prompts, edits and commands")
_COMMAND = r'"((?:[^"\\]|\\.)*hook --host {})"|COMMAND = (\[[^\n]*\])'


# `mnemarch install` and `mnemarch uninstall`: writes a host's hooks and MCP server into the host's own files
#
# Each file is changed whole or not at all. A copy from before the change is the backup. Without a copy, or if the file
# was changed since, Mnemarch's entries are recognised by their form.


class Change(Frozen):
    """One file's text before the change, after it, and without Mnemarch's entries. None stands for a missing file."""

    path: str
    now: str | None
    then: str | None
    original: str | None


def planned(path: str, entries: Entries, *, installs: bool) -> Change:
    """The change that installing or removing makes to a file."""
    form, now, note = form_of(path), text_of(path), small_json(f"{_place_of(path)}.json", _FILE_BYTES_MAX)
    try:
        if now is None:
            original = None
        elif note is not None and now == note["after"]:
            original = text_of(_place_of(path))
        else:
            before = None if note is None else text_of(_place_of(path))
            original = entries.taken(now, form, before, is_noted=note is not None)
        then = original
        if installs:
            then = entries.put(original, form)
            if entries.taken(then, form, original, is_noted=True) != original:
                raise ValueError("its entries could not be removed again exactly")
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} was not changed: {error}.", hint="Correct it, then run this again.") from None
    return Change(path=path, now=now, then=then, original=original)


def carried_out(change: Change, base: str) -> None:
    """Write the file and its backup, or restore the original and remove the backup and empty folders below `base`."""
    if text_of(change.path) != change.now:  # Hosts also write to these files.
        raise InvalidInput(f"{change.path} changed at this moment. It was left as it is.", hint="Run this again.")
    place, folder = _place_of(change.path), os.path.dirname(os.path.realpath(change.path))
    if change.then == change.original:
        if change.then is None:
            os.remove(change.path)
            _remove_empty(folder, base)
        else:
            write_whole(change.path, change.then)
        for name in (place, f"{place}.json"):
            with suppress(FileNotFoundError):
                os.remove(name)
        return
    assert change.then is not None
    os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
    if change.original is not None:
        write_private(place, change.original.encode())
    write_private(f"{place}.json", json.dumps({"path": change.path, "after": change.then}).encode())
    os.makedirs(folder, exist_ok=True)
    write_whole(change.path, change.then)


def backup_of(path: str) -> str | None:
    """The path of the backup, if the file existed before."""
    place = _place_of(path)
    return place if os.path.exists(place) else None


def text_of(path: str) -> str | None:
    """The text of a file, or None if it does not exist. Raises for binary files and dangling links."""
    try:
        return read_small(path, _FILE_BYTES_MAX).decode()
    except FileNotFoundError:
        if os.path.islink(path):
            raise InvalidInput(f"{path} is a link to nothing.", hint="Remove the link, or create its target.") from None
        return None
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not valid UTF-8; it was left as it is.", hint="Save it as UTF-8.") from None
    except OSError as error:
        raise InvalidInput(f"{path} can't be read: {error.strerror}.", hint="Check the path and its rights.") from None


def _place_of(path: str) -> str:
    """The path of a file's backup. It is in the user's state folder, since the memory's folder may be removed first."""
    digest = blake2b(os.path.realpath(path).encode(errors="surrogateescape"), digest_size=8).hexdigest()
    return user.state_path_of(os.path.join("installed", f"{digest}-{os.path.basename(path)}"))


def _remove_empty(folder: str, base: str) -> None:
    """Remove the folders below `base` that a removed file left empty."""
    with suppress(OSError):
        while folder != os.path.realpath(base):
            os.rmdir(folder)
            folder = os.path.dirname(folder)


def own_command() -> list[str]:
    """The command that starts this program. Its path is absolute, since a hook's PATH may be minimal."""
    started = sys.argv[0] if os.path.basename(sys.argv[0]) == "mnemarch" else ""
    beside = os.path.join(os.path.dirname(sys.executable), "mnemarch")
    path = shutil.which(started) or shutil.which(beside)
    return [sys.executable, "-m", "mnemarch"] if path is None else [os.path.abspath(path)]


def places_of(name: str, root: str, *, of_user: bool) -> dict[str, Entries]:
    """The files of a host, each with its entries."""
    host, base = HOSTS[name], os.path.expanduser("~") if of_user else root
    hooks, servers = (os.path.join(base, file) for file in host.files(of_user=of_user))
    if form_of(servers) == "json" and not os.path.exists(servers) and os.path.exists(f"{servers}c"):
        servers += "c"  # opencode.jsonc
    return {
        path: Entries(host=host, name=name, command=own_command(), has_hooks=path == hooks, has_server=path == servers)
        for path in dict.fromkeys((hooks, servers))
    }


def is_installed(name: str, root: str, *, of_user: bool) -> bool:
    """Whether a host's hooks have an entry of Mnemarch."""
    path = next(iter(places_of(name, root, of_user=of_user)))
    # A script has its command as a list of words.
    return f"hook --host {name}" in (text_of(path) or "").replace('", "', " ")


def _changes(call: Call, name: str, *, installs: bool) -> list[Change]:
    of_user, root = call.options.user, call.home.root
    changes = []
    for path, entries in places_of(name, root, of_user=of_user).items():
        _require_inside(path, root, of_user=of_user)
        sharing = [] if installs else _others_with(name, path, root, of_user=of_user)
        if not sharing or entries.has_hooks:
            changes.append(planned(path, entries, installs=installs))
    return changes


def _others_with(name: str, path: str, root: str, *, of_user: bool) -> list[str]:
    """Other installed hosts that read the MCP server from the same file."""
    sharing = [other for other in HOSTS if other != name and path in places_of(other, root, of_user=of_user)]
    return [other for other in sharing if is_installed(other, root, of_user=of_user)]


def _require_inside(path: str, root: str, *, of_user: bool) -> None:
    """Raise if a file of a project is a link that leads outside: it may have come with a clone."""
    real, top = os.path.realpath(path), os.path.realpath(root)
    if not of_user and os.path.commonpath([real, top]) != top:
        raise InvalidInput(
            f"{path} leads to {real}, outside of this working tree.", hint="Use --user, or remove the link."
        )


def _run(call: Call, *, installs: bool) -> Answer:
    name, is_dry = call.options.host, call.options.dry_run
    if name not in HOSTS:
        raise InvalidInput(f"There is no host {name!r}.", hint=f"Use one of: {', '.join(HOSTS)}.")
    changes = _changes(call, name, installs=installs)
    needed = [change for change in changes if change.now != change.then]
    notes = [] if not installs else _notes(call, name, changes)
    if not is_dry:
        if installs and not call.options.user:
            call.open()
        if installs and call.is_on_server:
            prepare(call.home.folder)
        for change in needed:
            carried_out(change, os.path.expanduser("~") if call.options.user else call.home.root)
    place = call.address or os.path.join(call.home.folder, FOLDER)
    data: dict[str, Any] = {
        "host": name,
        "dry_run": is_dry,
        "memory": place if installs and not call.options.user else None,
        "files": [{"path": change.path, "is": _deed(change), "backup": backup_of(change.path)} for change in changes],
        "todo": [*HOSTS[name].todo, *notes] if installs else [],
    }
    diff = "".join(diff_of(change.path, change.now, change.then) for change in needed)
    return Answer(data | ({"diff": diff} if is_dry else {}), lambda: _words(data, diff))


def _notes(call: Call, name: str, changes: list[Change]) -> list[str]:
    """Notes for this installation, beside the host's general ones."""
    from importlib.util import find_spec

    places = places_of(name, call.home.root, of_user=call.options.user)
    notes = [
        f"{change.path} has a server {SERVER} that was not written by this command. It stays as it is."
        for change in changes
        if places[change.path].has_server
        and change.original is not None
        and has_server(places[change.path], change.original, form_of(change.path))
    ]
    if find_spec("mcp") is None:
        notes.append("The MCP server lacks a package: pip install 'mnemarch[mcp]'. The hooks work without it.")
    if call.is_on_server:
        notes.append("The memory is on PostgreSQL, so the hooks need a local server. Keep mnemarch serve running here.")
    if call.options.user:
        return [*notes, "The hooks work in each repository that has a memory. To create one: mnemarch init"]
    return [
        *notes,
        "Other worktrees of this repository get these files with a commit. The path of the command in them"
        f" is this machine's. mnemarch install {name} --user covers every worktree without a commit.",
    ]


def _deed(change: Change) -> str:
    if change.now == change.then:
        return "unchanged"
    return "removed" if change.then is None else "made" if change.now is None else "changed"


def _words(data: dict[str, Any], diff: str) -> str:
    if data["dry_run"]:
        return diff.rstrip("\n") or "Nothing would change."
    lines = [f"{file['is']:<10} {file['path']}" for file in data["files"]]
    lines += [f"backup     {file['backup']}" for file in data["files"] if file["backup"]]
    if data["memory"]:
        lines.append(f"memory     {data['memory']}")
    if data["todo"]:
        lines += ["", "next", *(f"  {todo}" for todo in data["todo"])]
        lines.append(
            f"  mnemarch doctor shows whether the hooks run. mnemarch uninstall {data['host']} reverts all this."
        )
    return "\n".join(lines)


_TAKES = (
    Parameter("host", WORDS, ", ".join(HOSTS), metavar="HOST"),
    Parameter("user", FLAG, "write to your own files, for every repository", False),
    Parameter("dry_run", FLAG, "change nothing; show the difference", False),
)
COMMANDS = {
    "install": Command(partial(_run, installs=True), _TAKES, begins_memory=True),
    "uninstall": Command(partial(_run, installs=False), _TAKES),
}


# The check of an installed host: whether its entries exist, their command runs, a hook ran, and its context arrived


def findings(call: Call) -> Iterator[Finding]:
    """Findings for each host whose hooks are in this repository or in the user's own files."""
    for name, host in HOSTS.items():
        commands = []
        for of_user in (False, True):
            places = places_of(name, call.home.root, of_user=of_user)
            command = _registered(name, text_of(next(iter(places))) or "")
            if command is not None:
                commands.append(command)
                yield from _missing_server(name, places)
        for command in dict.fromkeys(commands):
            yield _tried(name, command, call)
        if commands:
            yield _last_seen(name, host.title, host.todo, _sessions(call))


def _sessions(call: Call) -> str:
    """The folder of the hooks' session files."""
    place = place_of(call.home.folder) if call.is_on_server else local_place(call.store or call.home.folder)
    return os.path.join(place, SESSIONS)


def _registered(name: str, text: str) -> str | None:
    """The shell command of the hooks in the file's text, or None."""
    found = re.search(_COMMAND.format(name), text)
    if found is None:
        return None
    return str(json.loads(f'"{found[1]}"')) if found[1] else shlex.join(json.loads(found[2]))


def _missing_server(name: str, places: dict[str, Any]) -> Iterator[Finding]:
    for path, entries in places.items():
        text = text_of(path)
        if entries.has_server and (text is None or not has_server(entries, text, form_of(path))):
            what = f"{entries.host.title}: its hooks are installed, but {path} has no MCP server mnemarch."
            yield wrong(what, f"mnemarch install {name}")


def _tried(name: str, command: str, call: Call) -> Finding:
    """Run the host's hook command for a session start, with a minimal environment, and check its output.

    The session is in the doctor's own scope: it adds no task to anybody's, and the output has to have the sentence
    that the doctor stored there. Only this program's own command is run, since the file may have come with a clone.
    """
    title, hooks = HOSTS[name].title, HOSTS[name].hooks
    words = shlex.split(command)
    if words != [*own_command(), "hook", "--host", name]:
        what = f"{title}: its hooks start another program, so they were not tried: {command}"
        return wrong(what, f"mnemarch install {name} writes the path of this program.")
    session = f"{DOCTOR}-{os.getpid()}"
    event = "session.created" if hooks is None else next(iter(hooks.events))
    own = {key: text for key, text in os.environ.items() if key == "HOME" or key.startswith(("XDG_", "MNEMARCH_"))}
    place = {f"MNEMARCH_{part.upper()}": name for part, name in PLACE.items()}
    proof = os.path.join(_sessions(call), session)
    try:
        done = subprocess.run(  # noqa: S603 - the program itself
            words,
            input=json.dumps({"hook_event_name": event, "session_id": session, "cwd": call.home.root}).encode(),
            env=own | place | {"PATH": os.defpath},
            cwd=call.home.root,
            capture_output=True,
            timeout=_SECONDS_MAX,
            check=False,
        )
        is_proved, told = done.returncode == 0 and os.path.exists(f"{proof}.json"), done.stdout
    except (OSError, subprocess.TimeoutExpired):
        is_proved, told = False, b""
    finally:
        with suppress(OSError):
            os.remove(f"{proof}.json")
        shutil.rmtree(proof, ignore_errors=True)
    # With a small `start_tokens` setting, the sentence may not fit.
    if is_proved and (SENTENCE.encode() in told or call.memory.config.hook.start_tokens < _TOKENS_MIN):
        return good(f"{title}: its hooks run, and pass on what the memory knows.")
    trouble = "runs, but passes nothing on" if is_proved else "doesn't run, or leaves no trace"
    served = "Start it: mnemarch serve, and leave it running."
    anew = f"mnemarch install {name} writes it again. {_sessions(call)}/trouble.log may say more."
    return wrong(f"{title}: the command of its hooks {trouble}: {command}", served if call.is_on_server else anew)


def _last_seen(name: str, title: str, todo: list[str], folder: str) -> Finding:
    """The time of the last hook in this repository, and whether that session's transcript has its context."""
    states = [_state_in(str(path)) for path in Path(folder).glob("*.json")]
    sessions = [state for state in states if state.get("host") == name]
    if not sessions:
        return good(f"{title}: no session has called a hook yet. {todo[0]}")
    state = max(sessions, key=lambda each: max(each["events"].values()))
    event, at = max(state["events"].items(), key=lambda pair: pair[1])
    what = f"{title}: a hook ran last at {at[:19].replace('T', ' ')}Z ({event})"
    given, transcript = state.get("context_bytes", 0), state.get("transcript")
    if not given:
        return good(f"{what}. In that session there was nothing to tell the agent.")
    what += f". In that session {given:,} bytes of context went to the agent"
    try:
        content = read_small(str(transcript), _TRANSCRIPT_BYTES_MAX) if transcript else None
    except OSError:
        content = None
    if content is None:
        return good(f"{what}. There is no transcript to show that they arrived.")
    if any(mark in content for mark in _MARKS):
        return good(f"{what}, and its transcript shows that they arrived.")
    return wrong(f"{what}, but its transcript has none of it.", todo[0])


def _state_in(path: str) -> dict[str, Any]:
    state = small_json(path, 1 << 20)
    return state if isinstance(state, dict) and state.get("events") and DOCTOR not in path else {}
