"""Embedding. Takes: text. Gives: vectors that carry the name of their maker. Never: decides a duplicate by itself.

The names below are imported when first used; numpy, usearch and models only when a dense vector is really asked for.
"""

from __future__ import annotations

from mnemon.lazy import names_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemon.embedding.dense import DenseEmbedder
    from mnemon.embedding.dense_search import DenseSearch
    from mnemon.embedding.endpoint import EndpointEmbedder
    from mnemon.embedding.ngram import NgramHashEmbedder
    from mnemon.embedding.onnx import OnnxEmbedder
    from mnemon.embedding.question import QuestionEmbedder
    from mnemon.embedding.rarity import Frequencies
    from mnemon.embedding.sentence import SentenceEncoder
    from mnemon.embedding.snapshot import Snapshot
    from mnemon.embedding.sparse import SparseVector, cosine, cosine_sparse
    from mnemon.embedding.vectors import VectorIndex
    from mnemon.embedding.words import BagOfWordsEmbedder

_HOME_OF = {
    "BagOfWordsEmbedder": "mnemon.embedding.words",
    "DenseEmbedder": "mnemon.embedding.dense",
    "DenseSearch": "mnemon.embedding.dense_search",
    "EndpointEmbedder": "mnemon.embedding.endpoint",
    "Frequencies": "mnemon.embedding.rarity",
    "NgramHashEmbedder": "mnemon.embedding.ngram",
    "OnnxEmbedder": "mnemon.embedding.onnx",
    "QuestionEmbedder": "mnemon.embedding.question",
    "SentenceEncoder": "mnemon.embedding.sentence",
    "Snapshot": "mnemon.embedding.snapshot",
    "SparseVector": "mnemon.embedding.sparse",
    "VectorIndex": "mnemon.embedding.vectors",
    "cosine": "mnemon.embedding.sparse",
    "cosine_sparse": "mnemon.embedding.sparse",
}

__all__ = [
    "BagOfWordsEmbedder",
    "DenseEmbedder",
    "DenseSearch",
    "EndpointEmbedder",
    "Frequencies",
    "NgramHashEmbedder",
    "OnnxEmbedder",
    "QuestionEmbedder",
    "SentenceEncoder",
    "Snapshot",
    "SparseVector",
    "VectorIndex",
    "cosine",
    "cosine_sparse",
]


__getattr__, __dir__ = names_of(globals(), _HOME_OF)
