"""Embedding. Takes: text. Gives: vectors that carry the name of their maker. Never: decides a duplicate by itself.

The names below are imported when first used; numpy, usearch and models only when a dense vector is really asked for.
"""

from __future__ import annotations

from mnemarch.lazy import names_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.embedding.dense import DenseEmbedder
    from mnemarch.embedding.dense_search import DenseSearch
    from mnemarch.embedding.endpoint import EndpointEmbedder
    from mnemarch.embedding.ngram import NgramHashEmbedder
    from mnemarch.embedding.onnx import OnnxEmbedder
    from mnemarch.embedding.question import QuestionEmbedder
    from mnemarch.embedding.rarity import Frequencies
    from mnemarch.embedding.sentence import SentenceEncoder
    from mnemarch.embedding.snapshot import Snapshot
    from mnemarch.embedding.sparse import SparseVector, cosine, cosine_sparse
    from mnemarch.embedding.vectors import VectorIndex
    from mnemarch.embedding.words import BagOfWordsEmbedder

_HOME_OF = {
    "BagOfWordsEmbedder": "mnemarch.embedding.words",
    "DenseEmbedder": "mnemarch.embedding.dense",
    "DenseSearch": "mnemarch.embedding.dense_search",
    "EndpointEmbedder": "mnemarch.embedding.endpoint",
    "Frequencies": "mnemarch.embedding.rarity",
    "NgramHashEmbedder": "mnemarch.embedding.ngram",
    "OnnxEmbedder": "mnemarch.embedding.onnx",
    "QuestionEmbedder": "mnemarch.embedding.question",
    "SentenceEncoder": "mnemarch.embedding.sentence",
    "Snapshot": "mnemarch.embedding.snapshot",
    "SparseVector": "mnemarch.embedding.sparse",
    "VectorIndex": "mnemarch.embedding.vectors",
    "cosine": "mnemarch.embedding.sparse",
    "cosine_sparse": "mnemarch.embedding.sparse",
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
