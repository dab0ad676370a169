"""Checks an installed host: whether its entries exist, their command runs, a hook ran, and its context arrived."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from mnemarch.doctor import PLACE, SENTENCE, good, wrong
from mnemarch.files import read_small
from mnemarch.interfaces.command import Call
from mnemarch.interfaces.hook import local_place
from mnemarch.interfaces.hooks.relay import place_of
from mnemarch.interfaces.hooks.sessions import FOLDER as SESSIONS
from mnemarch.interfaces.install.commands import own_command, places_of, text_of
from mnemarch.interfaces.install.forms import HOSTS, form_of, has_server
from mnemarch.model.caller import DOCTOR
from mnemarch.model.outcome import Finding

_SECONDS_MAX = 20
_FILE_BYTES_MAX = 256 << 20
_TOKENS_MIN = 400
# One of these texts is in every context that a hook hands over.
_MARKS = (b"<mnemarch-memory", b"shared memory. Prompts, edits and commands")
_COMMAND = r'"((?:[^"\\]|\\.)*hook --host {})"|COMMAND = (\[[^\n]*\])'


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
        what = f"{title}: its hooks don't start this program, so they were not tried: {command}"
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
        return good(f"{title}: its hooks run, and hand over what the memory knows.")
    trouble = "runs, but hands nothing over" if is_proved else "doesn't run, or leaves no trace"
    served = "Start it: mnemarch serve, and leave it running."
    anew = f"mnemarch install {name} writes it anew; {_sessions(call)}/trouble.log may say more."
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
        return good(f"{what}; in that session there was nothing to tell the agent.")
    what += f"; in that session {given:,} bytes of context went to the agent"
    try:
        content = read_small(str(transcript), _FILE_BYTES_MAX) if transcript else None
    except OSError:
        content = None
    if content is None:
        return good(f"{what}. Its transcript is not there to show that they arrived.")
    if any(mark in content for mark in _MARKS):
        return good(f"{what}, and its transcript shows that they arrived.")
    return wrong(f"{what}, but its transcript has none of it.", todo[0])


def _state_in(path: str) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        state = json.loads(read_small(path, 1 << 20))
        if isinstance(state, dict) and state.get("events") and DOCTOR not in path:
            return state
    return {}
