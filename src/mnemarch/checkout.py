"""Settings and memories that came with a checkout. They are used only as far as the user made or accepted them."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping

from mnemarch import user
from mnemarch.code.git import output
from mnemarch.code.home import FOLDER, repository_at, upward
from mnemarch.config import Config, config_from
from mnemarch.errors import InvalidInput, StoreUnavailable
from mnemarch.files import read_small, write_private
from mnemarch.lazy import Any
from mnemarch.model.caller import Level
from mnemarch.model.json_text import to_json
from mnemarch.model.value import Frozen, replace
from mnemarch.policy.permissions import Deed

SETTINGS = "mnemarch.toml"
MAKER, _IGNORE = "maker", ".gitignore"
# The part of a folder of files that belongs to this machine alone.
LOCAL = ".local"
FILE_SCHEME = "file:"
_FOLDERS, _DATABASE = ("index", "vectors"), "memory.db"
_MAKER_BYTES_MAX = 4096
_NONCE_BYTES = 16
_INDEX_BYTES_MAX = 1 << 30
_UNKNOWN = object()
_INDEX_WITH_WHOLE_NAMES = (b"DIRC\0\0\0\2", b"DIRC\0\0\0\3")


def _higher(setting: Any, usual: Any) -> bool:
    return not _is_number(setting) or not _is_number(usual) or setting >= usual


def _lower(setting: Any, usual: Any) -> bool:
    return not _is_number(setting) or not _is_number(usual) or setting <= usual


def _inside(setting: Any, _: Any) -> bool:
    return not os.path.isabs(str(setting)) and ".." not in str(setting).split("/")


# The settings of recall that only rank.
_RANKING = (
    *("weight_similarity", "weight_recency", "weight_importance", "half_life_hours", "fusion", "neighbours"),
    *("sessions", "speakers", "dates", "frame", "spelling", "intent", "own_session", "everyday", "turns"),
    *("distinct", "common"),
)
# The settings that a repository may change without the user's acceptance, each with a test of the new value against the
# user's own. They name or rank things, or tighten a rule. The longest matching name counts. A wrong type fails later.
_HARMLESS: dict[str, Callable[[Any, Any], bool]] = {
    **dict.fromkeys(("project", "core.sections", "hook.domains", *map("recall.{}".format, _RANKING)), lambda *_: True),
    **dict.fromkeys(("limits", "trust", "loops.threshold", "core.chars_max", "store.lock_wait_s_max"), _lower),
    **dict.fromkeys(
        ("recall.k_max", "recall.candidates_per_item", "recall.candidates_min", "recall.expanded_max"), _lower
    ),
    **dict.fromkeys(("trust.decay_per_month", "gate.reuse_min", "decisions", "recall.binding_max"), _higher),
    **dict.fromkeys(("analyst.price_input", "analyst.price_output"), _higher),
    **dict.fromkeys(("analyst.api", "recall.vectors"), lambda setting, _: setting == ""),
    "analyst": lambda setting, usual: _is_number(setting) and _lower(setting, usual),
    "hook": lambda setting, usual: setting is False or (_is_number(setting) and _lower(setting, usual)),
    "store.durability": lambda setting, _: setting == "power",
    "witness.test_commands": lambda setting, usual: isinstance(setting, list) and set(map(str, setting)) <= set(usual),
    "graph.checkpoint.out_dir": _inside,
    "recall.semantic": lambda setting, _: ":" not in str(setting),
}


# Settings


def load(folder: str) -> Config:
    """The configuration of `folder`: the defaults, overridden by the user's own settings, then by its mnemarch.toml.

    Settings that loosen a rule, lead outside of the repository or name an address are ignored until the user has
    accepted the file with exactly this content.
    """
    own = user.settings()
    if "project" in own:
        raise InvalidInput("Your own configuration can't name a project.", hint=f"Put it into {SETTINGS}.")
    path = os.path.join(folder, SETTINGS)
    if not os.path.exists(path):
        return config_from(own)
    content = user.settings_file(path)
    settings = user.parsed(path, content)
    try:
        usual, leaves = config_from(own), () if user.has_accepted(path, content) else _leaves(settings)
        ignored = {name: setting for name, setting in leaves if not _is_harmless(name, setting, usual)}
        config = config_from(_merged(own, _without(settings, ignored)))
    except RecursionError:
        raise InvalidInput(f"{path} is nested too deeply.", hint="No setting needs more than three levels.") from None
    return replace(config, ignored=tuple(f"{name} = {to_json(setting)}" for name, setting in ignored.items()))


def is_users_own(section: str, **settings: str) -> bool:
    """Whether the user's own configuration has exactly these settings. Keys are sent only to its addresses."""
    own = user.settings().get(section)
    return isinstance(own, dict) and all(own.get(name, "") == setting for name, setting in settings.items())


def _is_harmless(name: str, setting: Any, own: Config) -> bool:
    if name.startswith("policy."):
        return not _widens(name, setting, own)
    usual = _usual(name, own)
    if usual is _UNKNOWN or usual == (tuple(setting) if isinstance(setting, list) else setting):
        return True  # An unknown setting is an error when the configuration is built.
    rule = next((_HARMLESS[prefix] for prefix in _prefixes(name) if prefix in _HARMLESS), None)
    return rule is not None and rule(setting, usual)


def _usual(name: str, own: Config) -> Any:
    """The user's own value of this setting."""
    usual: Any = own
    if name.startswith("graph.") and own.graph is None:
        from mnemarch.policy.heat import OrchestratorConfig

        usual = replace(own, graph=OrchestratorConfig())
    for part in name.split("."):
        usual = usual.get(part, _UNKNOWN) if isinstance(usual, dict) else getattr(usual, part, _UNKNOWN)
    return usual


def _widens(name: str, setting: Any, own: Config) -> bool:
    """Whether a setting of the policy allows more than the user's own policy."""
    if name == "policy.allow_unsafe":
        return setting is True
    named = {str(item) for item in setting} if isinstance(setting, list) else set()
    if name == "policy.requires_validation":
        return not {str(level) for level in own.policy.validated_levels} <= named
    _, deed, level = [*name.split("."), ""][:3]
    cells = {(str(one), str(at)): set(map(str, own.policy.table[one][at])) for one in Deed for at in Level}
    return (deed, level) in cells and not named <= cells[deed, level]


def _is_number(setting: Any) -> bool:
    return isinstance(setting, int | float) and not isinstance(setting, bool)


def _prefixes(name: str) -> Iterator[str]:
    """The name and its prefixes, longest first: `a.b.c`, `a.b`, `a`."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def _leaves(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, setting in settings.items():
        if isinstance(setting, dict):
            yield from _leaves(setting, f"{prefix}{name}.")
        else:
            yield prefix + name, setting


def _without(settings: Mapping[str, Any], names: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    kept = {name: setting for name, setting in settings.items() if prefix + name not in names}
    return {
        name: _without(setting, names, f"{prefix}{name}.") if isinstance(setting, dict) else setting
        for name, setting in kept.items()
    }


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    both = {
        name: _merged(under[name], over[name])
        for name in under.keys() & over.keys()
        if isinstance(under[name], dict) and isinstance(over[name], dict)
    }
    return {**under, **over, **both}


# The memory


class Foreign(Frozen):
    """Something that this user did not make here: its path, the bytes that identify it, and why it is foreign."""

    path: str
    content: bytes
    why: str


def require_own_memory(place: str) -> None:
    """Raise if the memory in a `.mnemarch/` folder is foreign and not accepted. Nothing of it is opened before."""
    _require_accepted(foreign_memory(place), "If you know where it comes from, accept it with: mnemarch trust")


def _require_accepted(foreign: Foreign | None, hint: str) -> None:
    if foreign is not None and not user.has_accepted(foreign.path, foreign.content):
        why = f"{foreign.path} was not made by you on this machine: {foreign.why}. It was not read."
        raise StoreUnavailable(why, hint=hint)


def foreign_memory(place: str) -> Foreign | None:
    """The memory in this folder if it is foreign, else None. A folder without a memory is not foreign."""
    links = sorted(_links(place))
    if links:
        targets = ", ".join(f"{path} is a link to {target}" for path, target in links)
        return Foreign(path=place, content=targets.encode(errors="surrogateescape"), why=targets)
    if not os.path.isdir(place):
        return None
    committed = _tracked(place)
    if committed:
        return Foreign(path=place, content=committed, why="git has its files from a commit")
    # List the files before checking the signature: a process that creates a memory now writes the signature first.
    parts = sorted(name for name in _names_in(place) if name in _FOLDERS or name.startswith(_DATABASE))
    if not parts or _is_signed(place):
        return None
    made = "another user or another machine made it"
    why = made if _DATABASE in parts else f"{made}, and it has {', '.join(parts)} without a database"
    return Foreign(path=place, content=_maker_of(place), why=why)


def sign(place: str) -> None:
    """Sign a new memory as this user's. It is recognised by its folder here, and by the user's key elsewhere."""
    if _is_signed(place):
        return
    nonce = os.urandom(_NONCE_BYTES).hex()
    mark = user.signature(nonce.encode(), make_key=True) or "-"
    lines = f"folder {os.stat(place).st_ino}\nuser {nonce} {mark}\n"
    write_private(os.path.join(place, MAKER), lines.encode())


def _is_signed(place: str) -> bool:
    # Only the first two lines count, so that a file can't hold a list of guesses.
    here, _, by = _maker_of(place).decode("ascii", "replace").strip().partition("\n")
    status = os.stat(place)
    if here == f"folder {status.st_ino}" and status.st_uid == os.geteuid():
        return True
    word, nonce, mark = [*by.split(), "", "", ""][:3]
    return word == "user" and mark == user.signature(nonce.encode())


def _maker_of(place: str) -> bytes:
    try:
        return read_small(os.path.join(place, MAKER), _MAKER_BYTES_MAX)
    except OSError:
        return b""


def _links(place: str) -> Iterator[tuple[str, str]]:
    """The links among the memory's folder, its files and its subfolders, each with its target.

    Raises if anything is neither a file nor a folder: opening a pipe would wait forever.
    """
    if os.path.islink(place):
        yield place, os.readlink(place)
        return
    folders = [place, *(os.path.join(place, name) for name in _FOLDERS)]
    for path in (os.path.join(folder, name) for folder in folders for name in _names_in(folder)):
        try:
            mode = os.lstat(path).st_mode
        except FileNotFoundError:
            continue  # Files come and go while another process has the memory open.
        if stat.S_ISLNK(mode):
            yield path, os.readlink(path)
        elif not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise StoreUnavailable(
                f"{path} is a pipe or a device, not a file.", hint="Move it away: a memory consists of files only."
            )


def _names_in(folder: str) -> list[str]:
    if os.path.islink(folder):
        return []
    try:
        return os.listdir(folder)
    except OSError:
        return []  # The folder does not exist, or opening it will report the error.


def _tracked(place: str) -> bytes:
    """The files of this folder that git tracks in any repository around it, one per line, or nothing."""
    for top in upward(place):
        repository = repository_at(top)
        if repository is None or repository.top == repository.common:
            continue
        name = os.path.relpath(os.path.realpath(place), top)
        if not _may_name(os.path.join(repository.own, "index"), name):
            continue
        # The index may list the name for another folder or in another case. Only git can tell.
        listed = output(top, ["ls-files", "--stage", "-z", "--", f":(icase,literal){name}"])
        lines = [line for line in (listed or b"?").split(b"\0") if line and not line.endswith(_IGNORE.encode())]
        if lines:
            return b"\n".join(lines)
    return b""


def _may_name(index: str, name: str) -> bool:
    """Whether git's index may have a file of this folder. This quick check starts no process."""
    folder = os.path.dirname(index)
    try:
        is_split = any(entry.startswith("sharedindex.") for entry in os.listdir(folder))
        # On a case-insensitive file system, `.MNEMARCH` is the same folder.
        is_caseless = os.path.exists(os.path.join(folder, "head"))
        content = read_small(index, _INDEX_BYTES_MAX)
    except OSError:
        return False
    is_plain = content[:8] in _INDEX_WITH_WHOLE_NAMES and not is_split and not is_caseless
    return not is_plain or os.fsencode(name) in content


# A memory in files


def file_folder(url: str, base: str) -> str:
    """The folder that a file: URL names. A relative path is relative to `base`."""
    from urllib.parse import unquote

    path = unquote(url.removeprefix(FILE_SCHEME))
    host, _, rest = path[2:].partition("/") if path.startswith("//") else ("", "", path)
    path = f"/{rest}" if path.startswith("//") else rest
    if not rest.strip("/ ") or host not in ("", "localhost") or "\0" in path:
        raise InvalidInput(f"{url!r} does not name a folder on this machine.", hint="file:///FOLDER, or file:FOLDER")
    folder = os.path.abspath(os.path.join(base, os.path.expanduser(path)))
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise InvalidInput(f"{folder!r} is a file.", hint="Give the folder that has, or shall have, the files.")
    return folder


def require_own_files(folder: str) -> None:
    """Raise if a memory in files is foreign and not accepted: its files may claim anything in any actor's name."""
    hint = f"If you trust those who write to it, accept it with: mnemarch trust --store file://{folder}"
    _require_accepted(foreign_files(folder), hint)


def foreign_files(folder: str) -> Foreign | None:
    """The files in this folder if they are foreign, else None.

    An acceptance covers the folder, not its content, since the files change with every pull.
    """
    log = os.path.join(folder, "log")
    if not _names_in(log) or is_own_local(os.path.join(folder, LOCAL)):
        return None
    why = "its files came with a checkout or a copy. Your yes trusts everybody who can write there, now and later"
    return Foreign(path=folder, content=FILE_SCHEME.encode(), why=why)


def is_own_local(place: str) -> bool:
    """Whether this user made the local part of a folder of files, on this machine."""
    return os.path.isdir(place) and not os.path.islink(place) and _is_signed(place)


def file_url(folder: str) -> str:
    """The store URL in a repository's settings, accepted or not, or ""."""
    path = os.path.join(folder, SETTINGS)
    settings = user.parsed(path, user.settings_file(path)) if os.path.exists(path) else {}
    store = settings.get("store")
    url = store.get("url") if isinstance(store, dict) else None
    return url if isinstance(url, str) else ""


def waiting(folder: str, store: str | None = None) -> list[Foreign]:
    """The foreign parts of this repository, or of the named store, that wait for the user's acceptance."""
    url = store or file_url(folder)
    base = folder if store is None else os.getcwd()
    files = foreign_files(file_folder(url, base)) if url.startswith(FILE_SCHEME) else None
    settings, path = None, os.path.join(folder, SETTINGS)
    if ignored := load(folder).ignored:
        settings = Foreign(path=path, content=user.settings_file(path), why="\n".join(ignored))
    parts = files, settings, foreign_memory(os.path.join(folder, FOLDER))
    return [part for part in parts if part is not None and not user.has_accepted(part.path, part.content)]
