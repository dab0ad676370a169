"""The hosts of coding agents, read from `hosts.toml`, and the forms of their entries: JSON with comments, TOML, or a
script. Pure: it takes a text and returns a text.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from typing import Any

from mnemarch.interfaces.install import jsonc
from mnemarch.interfaces.install.jsonc import Path
from mnemarch.model.value import Frozen

SERVER = "mnemarch"
_SECONDS = 10


class Hooks(Frozen):
    """The form of one host's hooks."""

    events: dict[str, str]
    is_grouped: bool = True
    timeout_per_s: int = 1
    seconds_of: dict[str, int] = {}  # noqa: RUF012 - a value copies it

    def entry(self, event: str, command: str) -> dict[str, Any]:
        """The item for the list of an event."""
        seconds = self.seconds_of.get(event, _SECONDS)
        handler = {"type": "command", "command": command, "timeout": seconds * self.timeout_per_s}
        matcher = {"matcher": self.events[event]} if self.events[event] else {}
        return {**matcher, "hooks": [handler]} if self.is_grouped else {**matcher, **handler}


class Host(Frozen):
    """One host: its files, and the form of the entries in them."""

    title: str
    hook_file: str
    server_file: str
    server_key: str
    todo: list[str]
    hooks: Hooks | None = None
    user_hook_file: str = ""
    user_server_file: str = ""
    new_file: dict[str, Any] = {}  # noqa: RUF012 - a value copies it
    server_style: str = "plain"

    def files(self, *, of_user: bool) -> tuple[str, str]:
        """The file of the hooks, and the file of the MCP servers."""
        if not of_user:
            return self.hook_file, self.server_file
        return self.user_hook_file or self.hook_file, self.user_server_file or self.server_file

    def server(self, command: list[str]) -> dict[str, Any]:
        """The entry of the MCP server."""
        if self.server_style == "list":
            return {"type": "local", "command": [*command, "mcp"], "enabled": True}
        typed = {"type": "stdio"} if self.server_style == "typed" else {}
        return {**typed, "command": command[0], "args": [*command[1:], "mcp"]}


def _host(fields: dict[str, Any]) -> Host:
    hooks = fields.pop("hooks", None)
    return Host(**fields, hooks=None if hooks is None else Hooks(**hooks))


_ROWS = tomllib.loads((files("mnemarch.interfaces.install") / "hosts.toml").read_text(encoding="utf-8"))
HOSTS = {name: _host(fields) for name, fields in _ROWS.items()}
_TABLE = f"[mcp_servers.{SERVER}]"
_SCRIPT_HEAD = "// Mnemarch for "


class Entries(Frozen):
    """The entries for one file of a host: its hooks, its MCP server, or both."""

    host: Host
    name: str
    command: list[str]
    has_hooks: bool
    has_server: bool

    @property
    def hook_command(self) -> list[str]:
        return [*self.command, "hook", "--host", self.name]

    def put(self, text: str | None, form: str) -> str:
        """The text with the entries added. `text` is None for a new file. Raises ValueError if they can't be added."""
        return _PUT[form](self, text)

    def taken(self, text: str, form: str, before: str | None, *, is_noted: bool) -> str | None:
        """The text without the entries, or None if nothing else was in it.

        If `is_noted`, `before` is the file's text from before the installation, None if there was no file.
        """
        return _TAKEN[form](self, text, before, is_noted)


def form_of(path: str) -> str:
    return {".toml": "toml", ".js": "script"}.get(os.path.splitext(path)[1], "json")


def has_server(entries: Entries, text: str, form: str) -> bool:
    """Whether the text has a server of this name, whoever wrote it."""
    data = tomllib.loads(text) if form == "toml" else jsonc.parsed(text).value
    servers = data.get(entries.host.server_key) if isinstance(data, dict) else None
    return isinstance(servers, dict) and SERVER in servers


# JSON


def _put_json(entries: Entries, text: str | None) -> str:
    from shlex import join

    text = _new_json(entries) if text is None or not text.strip() else text
    if entries.has_hooks and entries.host.hooks is not None:
        for event in entries.host.hooks.events:
            entry = entries.host.hooks.entry(event, join(entries.hook_command))
            text = jsonc.inserted(text, ("hooks", event), entry, is_element=True)
    if entries.has_server and not has_server(entries, text, "json"):
        server = entries.host.server(entries.command)
        text = jsonc.inserted(text, (entries.host.server_key, SERVER), server, is_element=False)
    return text


def _new_json(entries: Entries) -> str:
    is_meant = entries.has_hooks or entries.host.hooks is None
    return json.dumps(entries.host.new_file if is_meant else {}, indent=2) + "\n"


def _taken_json(entries: Entries, text: str, before: str | None, is_noted: bool) -> str | None:
    is_new = is_noted and (before is None or not before.strip())
    known = _new_json(entries) if is_new else before
    rest = jsonc.without(text, partial(_is_owned, entries, known), known)
    if rest == text:
        return text
    is_empty = jsonc.parsed(rest).value == jsonc.parsed(_new_json(entries)).value
    return before if is_empty and (is_new or not is_noted) else rest


def _is_owned(entries: Entries, before: str | None, path: Path, content: Any) -> bool:
    if entries.has_server and path == (entries.host.server_key, SERVER):
        return _is_own_server(entries, content) or (before is not None and not has_server(entries, before, "json"))
    return entries.has_hooks and path[:1] == ("hooks",) and _is_own_hook(entries, content)


def _is_own_hook(entries: Entries, content: Any) -> bool:
    """Whether this handler, or every handler in this group, is Mnemarch's."""
    if not isinstance(content, dict) or entries.host.hooks is None:
        return False
    handlers = content.get("hooks")
    if isinstance(handlers, list) and handlers:
        return all(_is_own_hook(entries, handler) for handler in handlers)
    command = content.get("command")
    return isinstance(command, str) and "mnemarch" in command and command.endswith(f" hook --host {entries.name}")


def _is_own_server(entries: Entries, content: Any) -> bool:
    """Whether a server has the form that `install` writes. One without an absolute path was written by hand."""
    if not isinstance(content, dict):
        return False
    command, arguments = content.get("command"), content.get("args", [])
    words = [
        *(command if isinstance(command, list) else [command]),
        *(arguments if isinstance(arguments, list) else []),
    ]
    if not all(isinstance(word, str) for word in words) or not os.path.isabs(words[0]):
        return False
    return "mnemarch" in " ".join(words) and content == entries.host.server(words[:-1])


# TOML


def _put_toml(entries: Entries, text: str | None) -> str:
    text = text or ""
    if has_server(entries, text, "toml"):
        return text
    newline = "\r\n" if "\r\n" in text else "\n"
    server = entries.host.server(entries.command)
    lines = [_TABLE, *(f"{key} = {json.dumps(content, ensure_ascii=False)}" for key, content in server.items()), ""]
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    result = text + gap + newline.join(lines)
    expected = tomllib.loads(text)
    expected.setdefault(entries.host.server_key, {})[SERVER] = server
    if tomllib.loads(result) != expected:
        raise ValueError("a table can't be added at its end")
    return result


def _taken_toml(entries: Entries, text: str, before: str | None, is_noted: bool) -> str | None:
    was_there = is_noted and before is not None and has_server(entries, before, "toml")
    data = tomllib.loads(text)
    if was_there or not has_server(entries, text, "toml"):
        return text
    if not is_noted and not _is_own_server(entries, data[entries.host.server_key][SERVER]):
        return text
    kept: list[str] = []
    is_inside = False
    for line in text.splitlines(keepends=True):
        is_header = line.startswith("[")
        if is_header and (line.strip() == _TABLE or line.startswith(_TABLE[:-1] + ".")):
            is_inside = True
            if kept and not kept[-1].strip():
                kept.pop()
        elif is_header or not line.strip() or line.lstrip().startswith("#"):
            is_inside = False
        if not is_inside:
            kept.append(line)
    rest = "".join(kept)
    del data[entries.host.server_key][SERVER]
    try:
        is_safe = tomllib.loads(rest) in (data, {key: table for key, table in data.items() if table != {}})
    except ValueError:
        is_safe = False
    if not is_safe:
        raise ValueError(f"{_TABLE} stands in it in a form that can't be taken out safely")
    if is_inside and before and not before.endswith("\n"):
        rest = rest.removesuffix("\n").removesuffix("\r")  # The line end before the table was added with the table.
    return rest or (before if is_noted else None)


# Script


def _put_script(entries: Entries, text: str | None) -> str:
    if text is not None:
        raise ValueError("another file has this name")
    script = (files("mnemarch.interfaces.install") / "opencode.js").read_text(encoding="utf-8")
    return script.replace('["mnemarch", "hook", "--host", "opencode"]', json.dumps(entries.hook_command))


_PUT = {"json": _put_json, "toml": _put_toml, "script": _put_script}
_TAKEN: dict[str, Callable[[Entries, str, str | None, bool], str | None]] = {
    "json": _taken_json,
    "toml": _taken_toml,
    "script": lambda _, text, *__: None if text.startswith(_SCRIPT_HEAD) else text,
}
