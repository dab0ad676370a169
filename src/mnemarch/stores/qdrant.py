"""Vectors of units in Qdrant, a server or a cluster: a collection for each embedder, shared by all tenants.

A point has a unit's id and labels, and never its text. Two kinds of points have no tenant, so no search sees them: one
for each tenant says how far its vectors reach, and one for each erased unit keeps the unit from coming back.
"""

from __future__ import annotations

import time
import warnings

from xxhash import xxh3_64_hexdigest, xxh3_128_hexdigest

from mnemarch.errors import InvalidInput, StoreUnavailable
from mnemarch.files import locked_if_free
from mnemarch.forks import Forkable, abandon, watch
from mnemarch.lazy import Lazy
from mnemarch.model.stamps import new_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, TypeVar

    from qdrant_client import QdrantClient, models

    from mnemarch.embedding import vectors
    from mnemarch.embedding.vectors import Head, Within
    from mnemarch.model.unit import Searchable

    T = TypeVar("T")
else:
    # An address is checked in every process, and loading the client takes a second.
    models = Lazy("qdrant_client.models")
    vectors = Lazy("mnemarch.embedding.vectors")

_SCHEMES = {"qdrant": "http", "qdrants": "https"}
_PORT = 6333
_PREFIX = "mnemarch_"
# The time-outs of a question, and of making vectors, for which nobody waits: a busy server may need longer.
_TIMEOUT_S, _MAKING_TIMEOUT_S = 2, 10
# After a failure, questions are answered without Qdrant for this long. Each of them would wait for the time-out.
_PAUSE_S = 5.0
_LABELS = ("scope", "state", "kind", "domain")
_DETAIL_CHARS_MAX = 200
_ABOUT_KEYS = frozenset({401, 403})
_MISSING = 404
# Each tenant has a graph of its own, since no search crosses tenants.
_LINKS = 16
_HNSW_EF = 128


class _MissingError(Exception):
    """Qdrant does not have the collection."""


class EmbeddingMemoryStore(Forkable):
    """The vectors of one store by one embedder, for all projects or for the named tenants.

    The last tenant is the project's own. The first is its org's, which several projects share. Thread-safe.
    """

    def __init__(
        self,
        url: str,
        embedder_id: str,
        *,
        dim: Callable[[], int],
        store_id: str = "",
        tenants: Sequence[str] = ("",),
        event_at: Callable[[int], str] | None = None,
        lock: str = "",
        api_key: str | None = None,
        withheld: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._address = http_address(url)
        self._embedder = f"{embedder_id}/int8"
        self._collection = _PREFIX + xxh3_64_hexdigest(self._embedder.encode())
        self._dim = dim
        self._org = tenants[0]
        self._tenants = [f"{store_id}/{tenant}" for tenant in tenants]
        self._event_at = event_at or (lambda _: "")
        self._lock = lock
        self._api_key = api_key
        self._withheld = withheld
        self._clock = clock
        self._head = vectors.Head()
        self._paused: tuple[float, StoreUnavailable] | None = None
        self._opened: dict[int, QdrantClient] = {}
        watch(self)

    def _resume(self, *, in_child: bool, rested: bool) -> None:  # noqa: ARG002
        if in_child:  # Its connections are the parent's.
            abandon(list(self._opened.values()))
            self._opened = {}

    # Calling

    def _client(self, timeout_s: int) -> QdrantClient:
        client = self._opened.get(timeout_s)
        if client is None:
            require_client()
            from qdrant_client import QdrantClient

            with warnings.catch_warnings():  # It warns of a key without TLS; docs/howto/qdrant.md does so too.
                warnings.simplefilter("ignore")
                client = self._opened[timeout_s] = QdrantClient(
                    url=self._address, api_key=self._api_key, timeout=timeout_s, check_compatibility=False
                )
        return client

    def _asked(self, call: Callable[[QdrantClient], T]) -> T:
        """The answer of a call for a question. Raises at once if the server failed a moment ago."""
        if self._paused is not None and self._clock() < self._paused[0]:
            raise self._paused[1]
        return self._done(call, _TIMEOUT_S)

    def _done(self, call: Callable[[QdrantClient], T], timeout_s: int = _MAKING_TIMEOUT_S) -> T:
        """The answer of a call, by default with the longer time-out. Raises _MissingError without a collection."""
        client = self._client(timeout_s)
        from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

        try:
            answer = call(client)
        except UnexpectedResponse as error:
            if error.status_code == _MISSING:
                raise _MissingError from None
            trouble = self._refusal(error.status_code or 0, error.content)
        except (ResponseHandlingException, OSError) as error:
            source = getattr(error, "source", error)
            trouble = StoreUnavailable(
                f"Qdrant at {self._address} does not answer: {str(source) or type(source).__name__}.",
                hint="Check that it runs. Missing vectors are added when it answers again.",
            )
        else:
            self._paused = None
            return answer
        self._paused = self._clock() + _PAUSE_S, trouble
        raise trouble

    def _refusal(self, status: int, content: bytes) -> StoreUnavailable:
        detail = " ".join(content.decode("utf-8", "replace").split())[:_DETAIL_CHARS_MAX]
        if self._api_key:
            detail = detail.replace(self._api_key, "***")
        hint = "Look into its log. Missing vectors are added when it answers again."
        if status in _ABOUT_KEYS:
            hint = self._withheld or "Set MNEMARCH_QDRANT_KEY to a key that may read and write."
        return StoreUnavailable(f"Qdrant at {self._address} refused with status {status}: {detail}.", hint=hint)

    # Answering

    def state(self) -> Head:
        """How far the vectors reach. A complete set stays complete, so it is not asked for again."""
        if not self._head.complete:
            self._head = self._seen(self._asked)
        return self._head

    def _seen(self, ask: Callable[..., Any]) -> Head:
        """The head that Qdrant has. An empty one if the store was restored from a backup meanwhile."""
        try:
            points = ask(lambda client: client.retrieve(self._collection, [self._head_id], with_payload=True))
        except _MissingError:
            return vectors.Head()
        told = points[0].payload["head"] if points else {}
        head = vectors.Head(**{**told, "position": int(told.get("position", 0))})
        return head if head.event == self._event_at(head.position) else vectors.Head()

    @property
    def _head_id(self) -> str:
        return _point_id("head", self._tenants[-1])

    def count(self) -> int:
        ours = models.Filter(must=[_any_of("tenant", self._tenants)])
        try:
            return self._asked(lambda client: client.count(self._collection, count_filter=ours)).count
        except _MissingError:
            return 0

    def nearest(self, vector: Any, count: int, within: Within) -> list[tuple[str, float]]:
        conditions = [
            _any_of(name, allowed) for name, allowed in zip(_LABELS, within, strict=True) if allowed is not None
        ]
        return self._found(vector, count, conditions)[:count]

    def compared(self, vector: Any, unit_ids: Iterable[str]) -> list[tuple[str, float]]:
        ids = list(dict.fromkeys(unit_ids))
        points: list[Any] = [_point_id(tenant, id) for tenant in self._tenants for id in ids]
        return self._found(vector, len(ids), [models.HasIdCondition(has_id=points)], exact=True) if ids else []

    def _found(self, vector: Any, limit: int, conditions: list[Any], *, exact: bool = False) -> list[tuple[str, float]]:
        """The nearest units of all tenants, by one request, best first."""
        requests = [
            models.QueryRequest(
                query=vector.tolist(),
                filter=models.Filter(must=[_any_of("tenant", [tenant]), *conditions]),
                params=models.SearchParams(exact=exact, hnsw_ef=max(_HNSW_EF, limit)),
                limit=limit,
                with_payload=["unit"],
            )
            for tenant in self._tenants
        ]
        try:
            answers = self._asked(lambda client: client.query_batch_points(self._collection, requests))
        except _MissingError:
            raise self._gone() from None
        points = [point for answer in answers for point in answer.points]
        return vectors.best_first((str((point.payload or {})["unit"]), point.score) for point in points)

    def _gone(self) -> StoreUnavailable:
        self._head = vectors.Head()
        return StoreUnavailable(
            f"Qdrant at {self._address} lost the vectors.", hint="To make them again now: mnemarch reindex"
        )

    def known(self, units: Sequence[Searchable]) -> set[str]:
        points = self._points([self._id_of(unit) for unit in units])
        texts = {point.id: (point.payload or {}).get("text") for point in points}
        return {unit.id for unit in units if texts.get(self._id_of(unit), "") == vectors.text_key(unit.content)}

    def _points(self, ids: list[str], *, with_vectors: bool = False) -> list[Any]:
        try:
            return self._done(
                lambda client: client.retrieve(self._collection, ids, with_payload=True, with_vectors=with_vectors)
            )
        except _MissingError:
            raise self._gone() from None

    def _tenant_of(self, unit: Searchable) -> str:
        """The tenant of a unit: the org's for units at org level."""
        return self._tenants[0] if unit.scope_key == self._org else self._tenants[-1]

    def _id_of(self, unit: Searchable) -> str:
        return _point_id(self._tenant_of(unit), unit.id)

    # Making

    def alone(self) -> AbstractContextManager[bool]:
        """Hold the lock of this machine. If two machines overlap, they only repeat work."""
        return locked_if_free(self._lock)

    def begin(self, *, may_replace: bool) -> Head | None:  # noqa: ARG002 - each embedder has a collection of its own
        if not self._done(lambda client: client.collection_exists(self._collection)):
            self._make_collection()
        self._head = self._seen(self._done)
        if not self._head.born:
            self._make_payload_indexes()  # Again for each tenant: the making of the first may have been cut short.
            # Remove what an earlier state of the store left. The org's points stay, since its other projects use them.
            old = models.FilterSelector(filter=models.Filter(must=[_any_of("tenant", self._tenants[-1:])]))
            self._done(lambda client: client.delete(self._collection, old, wait=True))
            self._put_head(vectors.Head(embedder=self._embedder, born=new_id()))
        return self._head

    def save(self, begun: Head, changes: Sequence[tuple[Searchable, Any]], position: int, *, complete: bool) -> bool:
        if self._seen(self._done).born != begun.born:
            return False
        if changes:
            self._put(changes)
        head = vectors.Head(
            embedder=self._embedder,
            born=begun.born,
            position=position,
            event=self._event_at(position),
            complete=int(complete or self._head.complete),
        )
        self._put_head(head)
        return True

    def _put(self, changes: Sequence[tuple[Searchable, Any]]) -> None:
        """Write units. A unit with a known text keeps its vector, and an erased unit stays erased."""
        kept = [self._id_of(unit) for unit, vector in changes if vector is None and unit.content]
        known = {point.id: point.vector for point in self._points(kept, with_vectors=True)} if kept else {}
        points: list[models.PointStruct] = []
        erased: list[str] = []
        left: list[Any] = []
        for unit, vector in changes:
            id = self._id_of(unit)
            unit_id, key, *labels, packed = vectors.row_of(unit, vector)
            numbers = known.get(id) if packed is None else vectors.unpacked(packed)[0].tolist()
            if numbers is None:
                (left if unit.content else erased).append(id)
                continue
            named = dict(zip(_LABELS, labels, strict=True))
            payload = {"tenant": self._tenant_of(unit), "unit": unit_id, "text": key, **named}
            # Not validated: checking 512 numbers takes longer than embedding a text.
            points.append(models.PointStruct.model_construct(id=id, vector=numbers, payload=payload))
            if self._tenant_of(unit) != self._tenants[-1]:
                left.append(_point_id(self._tenants[-1], unit_id))
        is_erased = models.FieldCondition(key="erased", match=models.MatchValue(value="yes"))
        if points:
            self._upsert(self._collection, points, unless=is_erased)
        if erased:
            self._upsert(self._collection, [_tombstone(id) for id in erased])
        if left:  # They rose to the org, or have a text without a direction.
            where = models.Filter(must=[models.HasIdCondition(has_id=left)], must_not=[is_erased])
            self._done(lambda client: client.delete(self._collection, models.FilterSelector(filter=where), wait=True))

    def _upsert(self, collection: str, points: list[models.PointStruct], *, unless: Any = None) -> None:
        """Write points, in the same order on all replicas. Existing points that match `unless` stay as they are."""
        how: dict[str, Any] = {"wait": True, "ordering": models.WriteOrdering.MEDIUM}
        if unless is not None:
            how["update_filter"] = models.Filter(must_not=[unless])
        self._done(lambda client: client.upsert(collection, points, **how))

    def _put_head(self, head: Head) -> None:
        told = {name: getattr(head, name) for name in ("embedder", "born", "position", "event", "complete")}
        # The joined position of two streams has more than 64 bits.
        point = models.PointStruct(
            id=self._head_id, vector={}, payload={"head": {**told, "position": str(head.position)}}
        )
        self._upsert(self._collection, [point])
        self._head = head

    def _make_collection(self) -> None:
        sized = models.VectorParams(size=self._dim(), distance=models.Distance.COSINE, on_disk=True)
        links = models.HnswConfigDiff(m=0, payload_m=_LINKS)
        try:
            self._done(lambda client: client.create_collection(self._collection, sized, hnsw_config=links))
        except StoreUnavailable:
            if not self._done(lambda client: client.collection_exists(self._collection)):
                raise

    def _make_payload_indexes(self) -> None:
        tenant = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)

        def make(client: QdrantClient) -> None:
            for name in ("tenant", *_LABELS):
                schema: Any = tenant if name == "tenant" else models.PayloadSchemaType.KEYWORD
                client.create_payload_index(self._collection, name, schema, wait=True)

        self._done(make)

    def erase(self, unit_ids: Sequence[str]) -> None:
        """Erase in the collections of all embedders. Qdrant removes the rest when it merges old segments."""
        points = [_tombstone(_point_id(tenant, id)) for tenant in self._tenants for id in unit_ids]
        if not points:
            return
        collections = self._done(lambda client: client.get_collections()).collections
        for name in (each.name for each in collections if each.name.startswith(_PREFIX)):
            self._upsert(name, points)

    def close(self) -> None:
        opened, self._opened = self._opened, {}
        for client in opened.values():
            client.close()


def _point_id(tenant: str, unit_id: str) -> str:
    """The id of a unit's point. It is the same for every writer."""
    from uuid import UUID

    return str(UUID(xxh3_128_hexdigest(f"{tenant}\n{unit_id}".encode("utf-8", "surrogatepass"))))


def _tombstone(id: str) -> models.PointStruct:
    return models.PointStruct(id=id, vector={}, payload={"erased": "yes"})


def _any_of(name: str, allowed: Iterable[str]) -> models.FieldCondition:
    return models.FieldCondition(key=name, match=models.MatchAny(any=list(allowed)))


def require_client() -> None:
    from importlib.util import find_spec

    if find_spec("qdrant_client") is None:
        raise InvalidInput("Qdrant needs its client, which is not installed.", hint="pip install 'mnemarch[qdrant]'")


def http_address(url: str) -> str:
    """The http or https address that a `qdrant://host:port` or, with TLS, `qdrants://host:port` stands for."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url.strip())
        plain = bool(parts.hostname) and not (parts.query or parts.fragment) and parts.path in {"", "/"}
        port = parts.port or _PORT
    except ValueError:
        parts, plain, port = urlsplit(""), False, 0
    if not plain or "@" in parts.netloc or parts.scheme not in _SCHEMES:
        raise InvalidInput(
            "That is not the address of a Qdrant server.",
            hint="Write qdrant://host:6333, or qdrants:// with TLS; the key comes from MNEMARCH_QDRANT_KEY.",
        )
    host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else parts.hostname
    return f"{_SCHEMES[parts.scheme]}://{host}:{port}"
