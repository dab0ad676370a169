"""The hosts of coding agents, read from `hosts.toml`, and the forms of their entries: JSON with comments, TOML, or a
script. Pure: it takes a text and returns a text.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from importlib.resources import files
from typing import Any

from mnemarch.model.value import Frozen

SERVER = "mnemarch"
_SECONDS = 10
Path = tuple[str | int, ...]
_Owned = Callable[[Path, Any], bool]

_SKIPPED = re.compile(r"(?:[\s\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_WORD = re.compile(r'[^\s{}\[\],:"/]+')
_INDENT = re.compile(r"\n([ \t]+)\S")
_DEPTH_MAX = 100
_CLOSES = {"{": "}", "[": "]"}


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
    data = tomllib.loads(text) if form == "toml" else parsed_json(text).value
    servers = data.get(entries.host.server_key) if isinstance(data, dict) else None
    return isinstance(servers, dict) and SERVER in servers


# JSON


def _put_json(entries: Entries, text: str | None) -> str:
    from shlex import join

    text = _new_json(entries) if text is None or not text.strip() else text
    if entries.has_hooks and entries.host.hooks is not None:
        for event in entries.host.hooks.events:
            entry = entries.host.hooks.entry(event, join(entries.hook_command))
            text = _inserted(text, ("hooks", event), entry, is_element=True)
    if entries.has_server and not has_server(entries, text, "json"):
        server = entries.host.server(entries.command)
        text = _inserted(text, (entries.host.server_key, SERVER), server, is_element=False)
    return text


def _new_json(entries: Entries) -> str:
    is_meant = entries.has_hooks or entries.host.hooks is None
    return json.dumps(entries.host.new_file if is_meant else {}, indent=2) + "\n"


def _taken_json(entries: Entries, text: str, before: str | None, is_noted: bool) -> str | None:
    is_new = is_noted and (before is None or not before.strip())
    known = _new_json(entries) if is_new else before
    rest = _without(text, partial(_is_owned, entries, known), known)
    if rest == text:
        return text
    is_empty = parsed_json(rest).value == parsed_json(_new_json(entries)).value
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
        raise ValueError(f"{_TABLE} is in it in a form that can't be removed safely")
    if is_inside and before and not before.endswith("\n"):
        rest = rest.removesuffix("\n").removesuffix("\r")  # The line end before the table was added with the table.
    return rest or (before if is_noted else None)


# Script


def _put_script(entries: Entries, text: str | None) -> str:
    if text is not None:
        raise ValueError("another file already has this name")
    script = (files("mnemarch.interfaces.install") / "opencode.js").read_text(encoding="utf-8")
    return script.replace('["mnemarch", "hook", "--host", "opencode"]', json.dumps(entries.hook_command))


_PUT = {"json": _put_json, "toml": _put_toml, "script": _put_script}
_TAKEN: dict[str, Callable[[Entries, str, str | None, bool], str | None]] = {
    "json": _taken_json,
    "toml": _taken_toml,
    "script": lambda _, text, *__: None if text.startswith(_SCRIPT_HEAD) else text,
}


# The text of JSON with comments, edited with minimal changes. Removing an insertion restores the text to the byte


class _Node(Frozen):
    """One JSON value and its place in the text. `items` are its members or elements."""

    value: Any
    start: int
    end: int
    items: tuple[_Item, ...] = ()


class _Item(Frozen):
    """A member or an element: its start (a member's is its key's), its node, and the place of the comma after it."""

    key: str | int
    start: int
    node: _Node
    comma: int | None


def parsed_json(text: str) -> _Node:
    """Parse a text. Raises ValueError with the number of the line that is not JSON."""
    node = _value(text, _skip(text, 0), 0)
    if _skip(text, node.end) != len(text):
        raise _wrong(text, _skip(text, node.end))
    return node


def _value(text: str, at: int, depth: int) -> _Node:
    if text[at : at + 1] in _CLOSES and depth < _DEPTH_MAX:
        return _container(text, at, depth)
    token = _STRING.match(text, at) or _WORD.match(text, at)
    if token is None:
        raise _wrong(text, at)
    try:
        return _Node(value=json.loads(token[0], strict=False), start=at, end=token.end())
    except ValueError:
        raise _wrong(text, at) from None


def _container(text: str, start: int, depth: int) -> _Node:
    is_object, at = text[start] == "{", _skip(text, start + 1)
    items: list[_Item] = []
    while text[at : at + 1] != _CLOSES[text[start]]:
        begin = at
        key: str | int = len(items)
        if items and items[-1].comma is None:
            raise _wrong(text, at)
        if is_object:
            name = _value(text, at, _DEPTH_MAX)
            at = _skip(text, name.end)
            if not isinstance(name.value, str) or text[at : at + 1] != ":":
                raise _wrong(text, at)
            key, at = name.value, _skip(text, at + 1)
        node = _value(text, at, depth + 1)
        at = _skip(text, node.end)
        comma = at if text[at : at + 1] == "," else None
        items.append(_Item(key=key, start=begin, node=node, comma=comma))
        at = at if comma is None else _skip(text, at + 1)
    data = {item.key: item.node.value for item in items} if is_object else [item.node.value for item in items]
    return _Node(value=data, start=start, end=at + 1, items=tuple(items))


def _skip(text: str, at: int) -> int:
    skipped = _SKIPPED.match(text, at)
    return skipped.end() if skipped else at


def _wrong(text: str, at: int) -> ValueError:
    return ValueError(f"line {text.count(chr(10), 0, at) + 1} is not JSON")


def _child(node: _Node, key: str | int) -> _Node | None:
    # Of two members with one name the last counts, as in the hosts' parsers.
    return next((item.node for item in reversed(node.items) if item.key == key), None)


def _at(node: _Node, path: Path) -> _Node | None:
    for key in path:
        child = _child(node, key)
        if child is None:
            return None
        node = child
    return node


def _inserted(text: str, path: tuple[str, ...], content: Any, *, is_element: bool) -> str:
    """The text with a new member at `path`, or a new last element in the list there. Missing containers are added."""
    node = parsed_json(text)
    for depth, key in enumerate(path):
        if not isinstance(node.value, dict):
            raise ValueError(f"{'.'.join(path[:depth]) or 'the whole'} is not an object")
        child = _child(node, key)
        if child is None:
            content = [content] if is_element else content
            for inner in reversed(path[depth + 1 :]):
                content = {inner: content}
            return _put(text, node, content, f"{json.dumps(key)}: ")
        node = child
    if not isinstance(node.value, list):
        raise ValueError(f"{'.'.join(path)} is not a list")
    return _put(text, node, content, "")


def _put(text: str, container: _Node, content: Any, key: str) -> str:
    inner = text[container.start + 1 : container.end - 1]
    unit = match[1] if (match := _INDENT.search(text)) else "  "
    line = text[text.rfind("\n", 0, container.start) + 1 : container.start]
    margin = line[: len(line) - len(line.lstrip())]
    newline = "\r\n" if "\r\n" in text else "\n"
    last = container.items[-1] if container.items else None
    if last is not None and "\n" not in inner:
        head, tail, rendered = " ", "", json.dumps(content, ensure_ascii=False)
    else:
        lines = json.dumps(content, ensure_ascii=False, indent=unit).split("\n")
        rendered, head = f"{newline}{margin}{unit}".join(lines), f"{newline}{margin}{unit}"
        tail = "" if "\n" in inner else f"{newline}{margin}"
    # The new item goes after the last comment, which belongs to the item before.
    at = container.start + 1 + len(inner.rstrip())
    if last is not None and last.comma is not None:
        return f"{text[:at]}{head}{key}{rendered},{tail}{text[at:]}"
    comma_at = at if last is None else last.node.end
    comma = "" if last is None else ","
    return f"{text[:comma_at]}{comma}{text[comma_at:at]}{head}{key}{rendered}{tail}{text[at:]}"


def _without(text: str, owned: _Owned, before: str | None) -> str:
    """The text without owned items and without containers that become empty, except containers that `before` has."""
    original = None if before is None else parsed_json(before)
    while True:
        node = parsed_json(text)
        path = next(_owned_paths(node, (), owned), None)
        if path is None:
            return text
        while len(path) > 1 and (original is None or _at(original, path[:-1]) is None):
            parent = _at(node, path[:-1])
            if parent is None or len(parent.items) > 1:
                break
            path = path[:-1]
        blank = ""
        if original is not None and before is not None and (there := _at(original, path[:-1])) is not None:
            blank = before[there.start + 1 : there.end - 1]
        text = _cut(text, node, path, blank)


def _owned_paths(node: _Node, path: Path, owned: _Owned) -> Iterator[Path]:
    for number, item in reversed(list(enumerate(node.items))):
        here = (*path, number if isinstance(node.value, list) else item.key)
        if owned(here, item.node.value):
            yield here
        else:
            yield from _owned_paths(item.node, here, owned)


def _cut(text: str, root: _Node, path: Path, blank: str) -> str:
    """The text without one item, the space before it and one comma. A container that becomes empty gets `blank`."""
    container = _at(root, path[:-1])
    assert container is not None
    number = next(n for n, item in reversed(list(enumerate(container.items))) if item.key == path[-1])
    item, previous = container.items[number], container.items[number - 1] if number else None
    start = len(text[: item.start].rstrip())
    if item.comma is not None:
        return text[:start] + text[item.node.end : item.comma] + text[item.comma + 1 :]
    if previous is not None:
        assert previous.comma is not None
        return text[: previous.comma] + text[previous.comma + 1 : start] + text[item.node.end :]
    inner = text[container.start + 1 : start] + text[item.node.end : container.end - 1]
    inner = blank if inner.strip() == blank.strip() else inner
    return text[: container.start + 1] + inner + text[container.end - 1 :]
