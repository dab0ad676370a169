"""The only file that names concrete parts: from what the user opens to a memory that works."""

from __future__ import annotations

import os
from contextlib import suppress

from mnemarch import checkout
from mnemarch.config import Config
from mnemarch.errors import InvalidInput, StoreUnavailable
from mnemarch.lazy import Lazy
from mnemarch.memory import Memory
from mnemarch.model import stamps
from mnemarch.model.value import replace
from mnemarch.wiring_vectors import FolderVectors, Making, TenantVectors, event_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from typing import Any

    from mnemarch.config import AnalystRules
    from mnemarch.learning import model as models
    from mnemarch.learning.model import ApiModel
    from mnemarch.log import remembered as log_memory
    from mnemarch.model.caller import Stream
    from mnemarch.ports import SearchIndex, Store, Vectors
    from mnemarch.stores import postgres, sqlite, tantivy_index
else:
    log_memory = Lazy("mnemarch.log.remembered")
    postgres = Lazy("mnemarch.stores.postgres")
    sqlite = Lazy("mnemarch.stores.sqlite")
    tantivy_index = Lazy("mnemarch.stores.tantivy_index")
    models = Lazy("mnemarch.learning.model")

_DATABASE, _IGNORE = "memory.db", ".gitignore"
_IGNORE_BYTES_MAX = 65_536
_LATER = {"file:": "JSON files"}
_POSTGRES = ("postgresql://", "postgres://")


def open(
    target: str | os.PathLike[str] | None = None,
    *,
    vectors: str | None = None,
    config: Config | None = None,
    clock: Callable[[], datetime] | None = None,
) -> Memory:
    """Open a memory: of this git repository, of a folder, at a postgresql:// URL, or ":memory:", nothing on disk.

    Its vectors are beside it, or in Qdrant if `vectors` or `recall.vectors` names a qdrant:// server.
    """
    clock = clock or stamps.now
    if target == ":memory:":
        if vectors:
            raise InvalidInput("A memory without a folder keeps no vectors.", hint="Open it in a folder.")
        settings = config or Config()
        analyst = _analyst(settings.analyst, is_own=True)
        return Memory(sqlite.InMemoryStore(), index=None, config=settings, clock=clock, root=None, analyst=analyst)
    address = None if target is None else _address(target)
    is_shared = address is not None and address.startswith(_POSTGRES)
    if address is None or is_shared:
        from mnemarch.code.home import home_of

        home = home_of(_current_folder())
        folder, root = home.folder, home.root
    else:
        folder = root = os.path.abspath(address)
    # A configuration that the caller hands in is the caller's own.
    settings = config or checkout.load(folder)
    is_own = config is not None
    names_vectors = vectors is not None
    if vectors is not None:
        settings = replace(settings, recall=replace(settings.recall, vectors=vectors))
    making = Making(settings, is_own=is_own, names_vectors=names_vectors)
    url = address if is_shared else settings.store.url
    if url:
        return _shared(str(url), root, settings, clock, making, is_own=is_own)
    return _embedded(folder, root, settings, clock, making, is_own=is_own)


def open_offline(folder: str) -> Memory:
    """The memory of a folder for a process that must not wait: it asks no model and searches by words alone."""
    folder = os.path.abspath(folder)
    config = checkout.load(folder)
    config = replace(config, recall=replace(config.recall, semantic=""))
    return _embedded(folder, folder, config, stamps.now, Making(config), is_own=False, asks_models=False)


def _shared(
    url: str, root: str, config: Config, clock: Callable[[], datetime], making: Making, *, is_own: bool
) -> Memory:
    """A memory in PostgreSQL. Each tenant has a search index of its own in the user's cache."""
    if not url.startswith(_POSTGRES):
        raise InvalidInput("store.url is no address of a PostgreSQL database.", hint="postgresql://user@host/database")
    try:
        shared = postgres.PostgresStore(url, lock_wait_s_max=config.store.lock_wait_s_max)
    except ModuleNotFoundError:
        raise InvalidInput(
            "PostgreSQL stores need psycopg, which is not installed.", hint="pip install 'mnemarch[postgres]'"
        ) from None

    def tenant(stream: Stream) -> tuple[Store, SearchIndex, Vectors]:
        store = shared.of(stream)
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        place = os.path.join(cache, "mnemarch", store.id, store.tenant)
        with suppress(OSError):  # Where there is no room for an index, the newest units are all units.
            os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        index = tantivy_index.TantivyIndex(place, store.id, lambda position: event_at(store, position))
        return store, index, TenantVectors(store, place, making)

    analyst = _analyst(config.analyst, is_own=is_own)
    return Memory(shared, index=None, config=config, clock=clock, root=root, analyst=analyst, tenant=tenant)


def _current_folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise InvalidInput("The current folder no longer exists.", hint="Change to another folder.") from None


def _embedded(
    folder: str,
    root: str,
    config: Config,
    clock: Callable[[], datetime],
    making: Making,
    *,
    is_own: bool,
    asks_models: bool = True,
) -> Memory:
    place = os.path.join(folder, ".mnemarch")
    checkout.require_own_memory(place)
    _make_place(place)
    store = sqlite.SqliteStore(
        os.path.join(place, _DATABASE),
        durability=config.store.durability,
        lock_wait_s_max=config.store.lock_wait_s_max,
    )
    index = tantivy_index.TantivyIndex(
        os.path.join(place, "index"), store.id, lambda position: event_at(store, position)
    )
    return Memory(
        store,
        index=index,
        vectors=FolderVectors(store, os.path.join(place, "vectors"), making),
        place=place,
        config=config,
        clock=clock,
        root=root,
        remembered=log_memory.RememberedLog(store.name),
        analyst=_analyst(config.analyst, is_own=is_own) if asks_models else None,
    )


def _analyst(rules: AnalystRules, *, is_own: bool) -> ApiModel | None:
    """The model that the configuration names, with a key if the user's own configuration names the same address.

    A vendor's own key goes only to that vendor.
    """
    if not rules.api:
        return None
    key = None
    if is_own or checkout.is_users_own("analyst", api=rules.api, base_url=rules.base_url):
        usual = "" if rules.base_url else os.environ.get(models.APIS[rules.api].key_variable)
        key = os.environ.get("MNEMARCH_ANALYST_KEY") or usual
    return models.ApiModel(rules, key or None)


def _make_place(place: str) -> None:
    """The folder of the memory, which git should never pick up: also not when its making was cut short."""
    is_new = not os.path.lexists(os.path.join(place, _DATABASE))
    is_ignored = os.path.exists(os.path.join(place, _IGNORE))
    if is_ignored and not is_new:
        return
    from mnemarch.files import make_folder, read_small, write_whole

    try:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        make_folder(place)
        # First of all: what another process makes of the folder meanwhile must be known as this user's.
        if is_new:
            checkout.sign(place)
        ignore = os.path.join(place, _IGNORE)
        # One that came with a checkout may let git pick the memory up.
        if _is_ours(place) and not (is_ignored and b"*" in read_small(ignore, _IGNORE_BYTES_MAX).split()):
            write_whole(ignore, "*\n", private=True)
    except OSError as error:
        # One that may only be read is opened; another process may have been faster.
        if not os.path.isdir(place):
            raise StoreUnavailable(
                f"{place} can't be made: {error.strerror}.", hint="Choose a folder you may write to."
            ) from None


def _is_ours(place: str) -> bool:
    """Whether the folder is a memory's, or nobody's yet. Another's is left as it is."""
    names = os.listdir(place)
    return _DATABASE in names or all(name.startswith((_IGNORE, checkout.MAKER)) for name in names)


def _address(target: Any) -> str:
    """The folder that is meant; what can't be one is refused, before anything of that name is made."""
    path = target if isinstance(target, str) else getattr(target, "__fspath__", lambda: None)()
    if not isinstance(path, str):
        raise InvalidInput(f"{target!r} names no memory.", hint="Give a folder, or nothing for this repository's.")
    address = os.path.expanduser(path)
    _refuse_unknown(address)
    return address


def _refuse_unknown(address: str) -> None:
    if not address.strip():
        raise InvalidInput("The memory to open has no name.", hint="Give a folder, or nothing for this repository's.")
    for prefix, what in _LATER.items():
        if address.startswith(prefix):
            raise InvalidInput(
                f"{what} stores are not part of this version: {address!r}.", hint="Open a folder instead."
            )
    if address.startswith(("qdrant:", "qdrants:")):
        raise InvalidInput(
            f"Qdrant keeps vectors, not a memory: {address!r}.",
            hint='Open a folder or a PostgreSQL database, with vectors="qdrant://host:6333".',
        )
    if "://" in address and not address.startswith(_POSTGRES):
        raise InvalidInput(
            f"No store is known by {address!r}.", hint="Open a folder, or nothing for this repository's."
        )
    if os.path.exists(address) and not os.path.isdir(address):
        raise InvalidInput(f"{address!r} is a file.", hint="Give the folder that holds (or shall hold) .mnemarch/.")
