"""The user's own folder, outside of all repositories: their name, their configuration, and what they accepted.

person          the name they confirmed, in one line
config.toml     settings for all repositories
orchestrators   who may act as one, a name in each line; NAME @HOST lets that coding agent act as it
key             the key that signs the memories of this user
accepted/       one small file for each accepted thing that came with a checkout
"""

from __future__ import annotations

import os

from mnemarch.errors import InvalidInput
from mnemarch.files import read_small, write_private
from mnemarch.lazy import Any
from mnemarch.model.stamps import blake2b

_FILE_BYTES_MAX = 65_536
_KEY_BYTES = 32
_NAME_CHARS_MAX = 60
_IN_COMMANDS = frozenset('$`|&;<>{}=\\/"#*?:~^%')
# Bounds the dots in one line: parsing a dotted key takes quadratic time.
_DOTS_MAX = 1_000
# The environment variables that coding agents set for the programs that they start, and the agents' names.
_HOSTS = {
    "CLAUDECODE": "claude-code",
    "CODEX_THREAD_ID": "codex",
    "CODEX_SANDBOX": "codex",
    "CODEX_SANDBOX_NETWORK_DISABLED": "codex",
    "CODEX_CI": "codex",
    "COPILOT_CLI": "copilot-cli",
    "CURSOR_AGENT": "cursor",
    "GEMINI_CLI": "gemini-cli",
    "OPENCODE": "opencode",
}
# The environment variables with the id of the conversation that started a program.
_SESSIONS = ("CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID", "COPILOT_AGENT_SESSION_ID", "GEMINI_SESSION_ID")


def path_of(name: str) -> str:
    """The path of a file of the user's configuration: in $XDG_CONFIG_HOME/mnemarch, or ~/.config/mnemarch."""
    return _own("XDG_CONFIG_HOME", ".config", name)


def state_path_of(name: str) -> str:
    """The path of a file of this machine's state: in $XDG_STATE_HOME/mnemarch, or ~/.local/state/mnemarch."""
    return _own("XDG_STATE_HOME", os.path.join(".local", "state"), name)


def cache_path_of(name: str) -> str:
    """The path of a file that can be recreated: in $XDG_CACHE_HOME/mnemarch, or ~/.cache/mnemarch."""
    return _own("XDG_CACHE_HOME", ".cache", name)


def _own(variable: str, otherwise: str, name: str) -> str:
    base = os.environ.get(variable, "")
    # A relative path is ignored: inside a repository it would name the repository's files.
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), otherwise)
    return os.path.join(base, "mnemarch", name)


def host() -> str | None:
    """The coding agent that started this process, or None."""
    return next((name for variable, name in _HOSTS.items() if os.environ.get(variable)), None)


def session() -> str | None:
    """The id of the conversation that started this process, if the coding agent sets one."""
    return next(filter(None, map(os.environ.get, _SESSIONS)), None)


def person() -> str | None:
    """The name that a person confirmed at a terminal."""
    name = _content("person").decode(errors="replace").strip()
    return name if name.isprintable() and name else None


def is_name(typed: str) -> bool:
    """Whether a line can be a person's name. A command that was pasted into the terminal is none."""
    is_short = 0 < len(typed) <= _NAME_CHARS_MAX and typed.isprintable()
    return is_short and _IN_COMMANDS.isdisjoint(typed) and " -" not in typed and typed.split()[0] != "mnemarch"


def keep_person(name: str) -> bool:
    """Store the user's name. False if it can't be written."""
    return _written("person", f"{name}\n".encode())


def settings() -> dict[str, Any]:
    """The settings of the user's own config.toml, which apply in all repositories. Empty without that file."""
    path = path_of("config.toml")
    return parsed(path, settings_file(path)) if os.path.lexists(path) else {}


def may_orchestrate(name: str, host: str | None) -> bool:
    """Whether the user named this orchestrator. For a coding agent: whether it may act as that orchestrator."""
    lines = [line.strip() for line in _content("orchestrators").decode(errors="replace").split("\n")]
    return f"{name} @{host}" in lines if host is not None else any(line.split(" @")[0] == name for line in lines)


def has_accepted(path: str, content: bytes) -> bool:
    """Whether the user accepted exactly this content at this path."""
    return os.path.exists(_acceptance(path, content))


def accept(path: str, content: bytes) -> None:
    if not _written(_acceptance(path, content), path.encode(errors="surrogateescape")):
        raise InvalidInput(f"{path_of('accepted')} can't be written.", hint="Set XDG_CONFIG_HOME to a folder of yours.")


def revoke(path: str) -> int:
    """Remove all acceptances for this path. Returns their number."""
    folder = path_of("accepted")
    names = os.listdir(folder) if os.path.isdir(folder) else ()
    files = [os.path.join(folder, name) for name in names]
    accepted = [file for file in files if _content(file) == path.encode(errors="surrogateescape")]
    for file in accepted:
        os.remove(file)
    return len(accepted)


def signature(nonce: bytes, *, make_key: bool = False) -> str | None:
    """The user's signature of a nonce, or None if they have no key."""
    if make_key and not os.path.lexists(path_of("key")):
        _written("key", os.urandom(_KEY_BYTES), replaces=False)
    key = _content("key")
    return blake2b(nonce, key=key, digest_size=16).hexdigest() if len(key) == _KEY_BYTES else None


def settings_file(path: str) -> bytes:
    """The bytes of a TOML file."""
    try:
        return read_small(path, _FILE_BYTES_MAX)
    except OSError as error:
        raise InvalidInput(
            f"{path} can't be read: {error.strerror}.", hint="It must be a small file that you may read."
        ) from None


def parsed(path: str, content: bytes) -> dict[str, Any]:
    """The settings in a TOML file. Raises InvalidInput for any content that can't be parsed."""
    import tomllib

    if any(line.count(b".") > _DOTS_MAX for line in content.splitlines()):
        raise InvalidInput(f"{path} has a line with more than {_DOTS_MAX} dots.", hint="Break it into several.")
    try:
        return tomllib.loads(content.decode())
    except RecursionError:
        raise InvalidInput(f"{path} is nested too deeply.", hint="No setting needs more than three levels.") from None
    except ValueError as error:
        raise InvalidInput(
            f"{path} is not valid TOML: {error}.", hint="Correct it, or remove it for the defaults."
        ) from None


def _acceptance(path: str, content: bytes) -> str:
    place = path.encode(errors="surrogateescape")
    return path_of(os.path.join("accepted", blake2b(place + b"\0" + content, digest_size=16).hexdigest()))


def _content(name: str) -> bytes:
    """The bytes of one of the user's files. Empty if it is missing or unreadable, as in a sandbox."""
    try:
        return read_small(path_of(name), _FILE_BYTES_MAX)
    except OSError:
        return b""


def _written(name: str, content: bytes, *, replaces: bool = True) -> bool:
    """Write one of the user's files. False if it can't be written."""
    path = path_of(name)
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        write_private(path, content, replaces=replaces)
    except OSError:
        return False
    return True
