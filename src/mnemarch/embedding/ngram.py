"""The default embedder (A10): hashed character n-grams, L2-normalised, the same on every machine, no model."""

from __future__ import annotations

from xxhash import xxh3_128_intdigest

from mnemarch.embedding.sparse import cosine as cosine
from mnemarch.embedding.sparse import unit_vector
from mnemarch.errors import InvalidInput
from mnemarch.text.canonical import NORM_VERSION, ngrams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from mnemarch.embedding.rarity import Frequencies
    from mnemarch.embedding.sparse import SparseVector

HASH_ALGO = "xxh3-128"
DEFAULT_SEED = 20_251
_SIZE_MAX = 32
_DIM_MAX = 1 << 32
_SEED_MAX = (1 << 64) - 1
_STATE = ("ngramRange", "dim", "seed", "hashAlgo", "normVersion")
_USUAL = "Usual are ngram_range (3, 5), dim 16384 and any seed from 0 to 2**64 - 1."


class NgramHashEmbedder:
    """Sparse vectors `{place: weight}`, comparable only with those of an embedder in the same state (R18)."""

    def __init__(self, ngram_range: tuple[int, int] = (3, 5), dim: int = 16_384, seed: int = DEFAULT_SEED) -> None:
        self._become(ngram_range, dim, seed)

    def _become(self, ngram_range: Any, dim: Any, seed: Any) -> None:
        sizes = tuple(ngram_range) if isinstance(ngram_range, tuple | list) else ()
        whole = all(type(number) is int for number in (*sizes, dim, seed))
        if not (
            whole
            and len(sizes) == 2
            and 1 <= sizes[0] <= sizes[1] <= _SIZE_MAX
            and 1 <= dim <= _DIM_MAX
            and 0 <= seed <= _SEED_MAX
        ):
            raise InvalidInput(
                f"ngram_range {ngram_range!r}, dim {dim!r}, seed {seed!r} make no embedder.", hint=_USUAL
            )
        self.ngram_range: tuple[int, int] = sizes
        self.dim: int = dim
        self.seed: int = seed
        self._id = id_of(self.export_state())

    @property
    def id(self) -> str:
        """What the vectors depend on, in one string."""
        return self._id

    def embed(self, text: str) -> SparseVector[int]:
        """The unit vector of `text`; empty for text that holds nothing."""
        # Whole counts, a root and a quotient: IEEE 754 rounds them in one way only, so machines agree to the last bit.
        counted: dict[int, float] = {}
        for gram in ngrams(text, *self.ngram_range):
            place = xxh3_128_intdigest(gram.encode("utf-8", "surrogatepass"), self.seed) % self.dim
            counted[place] = counted.get(place, 0.0) + 1.0
        return unit_vector(counted, self._id)

    def with_frequencies(self, frequencies: Frequencies) -> WeightedNgramEmbedder:
        """An embedder that weighs rare places more; `Frequencies.of(map(embedder.embed, texts))` counts them."""
        return WeightedNgramEmbedder(self, frequencies)

    def export_state(self) -> dict[str, Any]:
        """All that is needed to make the same vectors elsewhere (A11)."""
        return {
            "ngramRange": list(self.ngram_range),
            "dim": self.dim,
            "seed": self.seed,
            "hashAlgo": HASH_ALGO,
            "normVersion": NORM_VERSION,
        }

    def import_state(self, state: Mapping[str, Any]) -> None:
        """Become the embedder that `state` describes; one that this version can't reproduce is refused."""
        id_of(state)
        if state["hashAlgo"] != HASH_ALGO or state["normVersion"] != NORM_VERSION:
            raise InvalidInput(
                f"Vectors by {state['hashAlgo']!r} over normal form {state['normVersion']!r} can't be made here: "
                f"this version has {HASH_ALGO!r} and {NORM_VERSION}.",
                hint="Embed their texts again with this version (Snapshot.reembedded).",
            )
        self._become(state["ngramRange"], state["dim"], state["seed"])


class WeightedNgramEmbedder:
    """The same n-grams weighted by how rare they are; a snapshot holds plain ones, these are for ranking."""

    def __init__(self, plain: NgramHashEmbedder, frequencies: Frequencies) -> None:
        self._plain = NgramHashEmbedder(plain.ngram_range, plain.dim, plain.seed)
        self._frequencies = frequencies
        self.id = f"{plain.id}/idf-{frequencies.digest()}"

    def embed(self, text: str) -> SparseVector[int]:
        """The unit vector of `text`, each place times its rarity."""
        rarity = self._frequencies.rarity
        return unit_vector(
            {place: weight * rarity(place) for place, weight in self._plain.embed(text).items()}, self.id
        )


def id_of(state: Mapping[str, Any]) -> str:
    """The id of the embedder that an exported state describes, whether or not this version can be it."""
    missing = [name for name in _STATE if name not in state]
    if missing:
        raise InvalidInput(
            f"The state of an n-gram embedder lacks {', '.join(missing)}.",
            hint=f"Give what export_state gave: {', '.join(_STATE)}.",
        )
    sizes = state["ngramRange"]
    shown = "-".join(map(str, sizes)) if isinstance(sizes, list | tuple) else str(sizes)
    return "/".join(["ngram-hash", shown, *(str(state[name]) for name in _STATE[1:])])
