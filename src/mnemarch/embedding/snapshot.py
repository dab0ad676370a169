"""Vectors on their way between memories: with their texts and the state of their embedder (A11, R18)."""

from __future__ import annotations

from math import isfinite

from mnemarch.embedding import ngram, question, words
from mnemarch.embedding.sparse import SparseVector
from mnemarch.errors import InvalidInput
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Protocol

    class SparseEmbedder(Protocol):
        """What can make a snapshot: `NgramHashEmbedder`, `QuestionEmbedder` or `BagOfWordsEmbedder`."""

        @property
        def id(self) -> str: ...
        def embed(self, text: str) -> SparseVector[Any]: ...
        def export_state(self) -> dict[str, Any]: ...


@value
class Snapshot:
    """Texts by id, their vectors, and the state of the embedder that made them."""

    state: Mapping[str, Any]
    texts: Mapping[str, str]
    vectors: Mapping[str, SparseVector[Any]]

    def __check__(self) -> None:
        if self.texts.keys() != self.vectors.keys():
            odd = min(self.texts.keys() ^ self.vectors.keys())
            raise InvalidInput(
                f"The snapshot has a text or a vector of {odd!r}, but not both.", hint="Take the snapshot again."
            )

    @classmethod
    def of(cls, embedder: SparseEmbedder, texts: Mapping[str, str]) -> Snapshot:
        vectors = {text_id: embedder.embed(text) for text_id, text in texts.items()}
        return cls(state=embedder.export_state(), texts=dict(texts), vectors=vectors)

    @property
    def embedder_id(self) -> str:
        return _id_of(self.state)

    def comparable_with(self, embedder: SparseEmbedder) -> bool:
        """Whether this embedder's vectors may be compared with these as they are."""
        return self.embedder_id == embedder.id

    def reembedded(self, embedder: SparseEmbedder) -> Snapshot:
        """The same texts with vectors of this embedder: these, where it made them."""
        return self if self.comparable_with(embedder) else Snapshot.of(embedder, self.texts)

    def to_json(self) -> dict[str, Any]:
        """JSON types only; every weight comes back to the last bit."""
        return {
            "embedder": dict(self.state),
            "texts": dict(self.texts),
            "vectors": {text_id: [list(item) for item in vector.items()] for text_id, vector in self.vectors.items()},
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Snapshot:
        """A snapshot by any version of Mnemarch: vectors this one can't make are kept, and are comparable with none."""
        try:
            state, texts, vectors = record["embedder"], dict(record["texts"]), dict(record["vectors"])
            embedder_id = _id_of(state)
            read = {text_id: _vector(items, embedder_id) for text_id, items in vectors.items()}
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(
                f"This is no snapshot: {type(error).__name__} {error}.", hint="Give what Snapshot.to_json gave."
            ) from None
        if not all(isinstance(text, str) for text in texts.values()):
            raise InvalidInput("A text of the snapshot is no text.", hint="Give what Snapshot.to_json gave.")
        return cls(state=dict(state), texts=texts, vectors=read)


def _id_of(state: Mapping[str, Any]) -> str:
    if "frequencies" in state:
        return words.id_of(state)
    return question.id_of(state) if "featuresVersion" in state else ngram.id_of(state)


def _vector(items: Any, embedder_id: str) -> SparseVector[Any]:
    vector: SparseVector[Any] = SparseVector((feature, float(weight)) for feature, weight in items)
    if not all(map(isfinite, vector.values())):
        raise ValueError("a weight is no finite number")
    vector.embedder_id = embedder_id
    return vector
