"""The hosts of coding agents, read from `hosts.toml`, and the entries that each of them understands."""

from __future__ import annotations

import tomllib
from importlib.resources import files

from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SERVER = "mnemarch"
_SECONDS = 10


@value
class Hooks:
    """The form of one host's hooks."""

    events: dict[str, str]
    is_grouped: bool = True
    timeout_per_s: int = 1
    seconds_of: dict[str, int] = {}  # noqa: RUF012 - a value copies it

    def entry(self, event: str, command: str) -> dict[str, Any]:
        """What stands in the list of an event."""
        seconds = self.seconds_of.get(event, _SECONDS)
        handler = {"type": "command", "command": command, "timeout": seconds * self.timeout_per_s}
        matcher = {"matcher": self.events[event]} if self.events[event] else {}
        return {**matcher, "hooks": [handler]} if self.is_grouped else {**matcher, **handler}


@value
class Host:
    """One host: its files, and the form of what stands in them."""

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


_TABLE = tomllib.loads((files("mnemarch.interfaces.install") / "hosts.toml").read_text(encoding="utf-8"))
HOSTS = {name: _host(fields) for name, fields in _TABLE.items()}
