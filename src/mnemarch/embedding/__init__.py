"""Embedding. Takes: text. Gives: vectors that carry the name of their maker. Never: decides a duplicate by itself.

The names below are imported when first used; numpy and models only when a dense vector is really asked for.
"""

from __future__ import annotations

from mnemarch.lazy import names_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.embedding.dense import DenseEmbedder as DenseEmbedder
    from mnemarch.embedding.dense import SentenceEncoder as SentenceEncoder
    from mnemarch.embedding.dense_search import DenseSearch as DenseSearch
    from mnemarch.embedding.endpoint import EndpointEmbedder as EndpointEmbedder
    from mnemarch.embedding.sparse import BagOfWordsEmbedder as BagOfWordsEmbedder
    from mnemarch.embedding.sparse import NgramHashEmbedder as NgramHashEmbedder
    from mnemarch.embedding.sparse import QuestionEmbedder as QuestionEmbedder
    from mnemarch.embedding.sparse import SparseVector as SparseVector
    from mnemarch.embedding.sparse import cosine as cosine
    from mnemarch.embedding.sparse import cosine_sparse as cosine_sparse

_SPARSE = ("NgramHashEmbedder", "QuestionEmbedder", "BagOfWordsEmbedder", "SparseVector", "cosine", "cosine_sparse")
_HOME_OF = {
    **dict.fromkeys(_SPARSE, "mnemarch.embedding.sparse"),
    **dict.fromkeys(("DenseEmbedder", "SentenceEncoder"), "mnemarch.embedding.dense"),
    "DenseSearch": "mnemarch.embedding.dense_search",
    "EndpointEmbedder": "mnemarch.embedding.endpoint",
}
__all__ = sorted(_HOME_OF)

__getattr__, __dir__ = names_of(globals(), _HOME_OF)
