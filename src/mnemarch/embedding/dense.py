"""What Mnemarch asks of a dense model, and what every answer of one is held to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from mnemarch.errors import InvalidInput
from mnemarch.lazy import Lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
else:
    np = Lazy("numpy")


class DenseEmbedder(Protocol):
    """A model that turns texts into vectors of one size. Safe to share between threads."""

    @property
    def id(self) -> str:
        """Name and version of the model: vectors of different ids are never compared (R18). Known without loading."""

    @property
    def dim(self) -> int:
        """How long a vector is. May load the model."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of float32 for each text: of length 1, or zeros for a blank text."""


def vectors_of(texts: Sequence[str], model: Callable[[list[str]], Any], dim: int, maker: str) -> Vectors:
    """One unit row of float32 for each text by asking the model for those that hold something; the others get zeros."""
    told = [at for at, text in enumerate(texts) if text.strip()]
    rows: Vectors = np.zeros((len(texts), dim), np.float32)
    if told:
        rows[told] = _unit_rows(model([texts[at] for at in told]), len(told), dim, maker)
    return rows


def _unit_rows(found: Any, texts: int, dim: int, maker: str) -> Vectors:
    try:
        matrix: Vectors = np.asarray(found, dtype=np.float32)
    except (TypeError, ValueError):
        matrix = np.zeros(0, np.float32)
    if matrix.shape != (texts, dim) or not np.isfinite(matrix).all():
        raise InvalidInput(
            f"{maker} gave an array of shape {matrix.shape} instead of {texts} x {dim} finite numbers.",
            hint="Check the model: it must answer each text with one vector, always of the same length.",
        )
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    # Zeros stay zeros: there is no direction to scale.
    rows: Vectors = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
    return rows


def sound(text: str, chars_max: int) -> str:
    """What a tokenizer can read: no lone surrogates, not too long. What a text is about stands in its beginning."""
    return text[:chars_max].encode("utf-8", "replace").decode()


def not_installed(what: str, install: str) -> InvalidInput:
    return InvalidInput(f"{what} is not installed.", hint=f"Install it: {install}")
