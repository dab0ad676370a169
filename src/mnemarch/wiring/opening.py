"""Builds a memory from concrete parts: a store, a search index, vectors, and the models that it may ask."""

from __future__ import annotations

import os
from contextlib import suppress

from mnemarch import checkout
from mnemarch.errors import InvalidInput
from mnemarch.lazy import Lazy
from mnemarch.log.chain import RememberedLog
from mnemarch.memory import Memory
from mnemarch.services.engine import Engine
from mnemarch.wiring.places import DATABASE, make_local, make_place
from mnemarch.wiring.vectors import InDatabase, InFolder, Making, StoreVectors, event_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from mnemarch.config import Config
    from mnemarch.embedding import dense
    from mnemarch.learning import model as models
    from mnemarch.learning.model import ApiModel
    from mnemarch.model.caller import Stream
    from mnemarch.ports import Reranker, SearchIndex, Store, Vectors
    from mnemarch.services import merging
    from mnemarch.services.engine import OpenIndex, OpenTenant
    from mnemarch.stores import files, postgres, sqlite, tantivy_index
    from mnemarch.stores.postgres import search as pgsearch
else:
    files = Lazy("mnemarch.stores.files")
    merging = Lazy("mnemarch.services.merging")
    pgsearch = Lazy("mnemarch.stores.postgres.search")
    postgres = Lazy("mnemarch.stores.postgres")
    sqlite = Lazy("mnemarch.stores.sqlite")
    tantivy_index = Lazy("mnemarch.stores.tantivy_index")
    models = Lazy("mnemarch.learning.model")
    dense = Lazy("mnemarch.embedding.dense")

POSTGRES = ("postgresql://", "postgres://")


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
        local = make_local(folder)
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
            raise InvalidInput("store.url is no address of a database or of a folder of files.", hint=hint)
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
            cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
            place = os.path.join(cache, "mnemarch", store.id, store.tenant)
            with suppress(OSError):  # Without a local index, the one in the database covers all units.
                os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
            vectors = StoreVectors(store, place, making, InDatabase(store))
            return store, _index_in(place, store), pgsearch.DatabaseIndex(store), vectors

        return self._memory(shared, index=None, tenant=tenant)

    def _with_index(self, place: str, store: Store, remembered: RememberedLog | None = None) -> Memory:
        """A memory whose search index and vectors are in a local folder."""
        assert self._making is not None, "only a memory without a folder has no vectors"
        beside = os.path.join(place, "vectors")
        kept = InFolder(store, beside, self._config.store.lock_wait_s_max)
        vectors = StoreVectors(store, beside, self._making, kept)
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
    return lambda: tantivy_index.TantivyIndex(folder, store.id, lambda position: event_at(store, position))
