"""What a graph compares questions by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


class EmbeddingProvider(Protocol):
    """Turns a text into a dense list or a sparse map of numbers (A19).

    With `id` or `export_state` vectors of different makers are told apart; without either the class is the maker. With
    `sameness(text, other, cosine)` it may say of texts whose vectors are alike that they are hardly one question.
    """

    def embed(self, text: str) -> Mapping[Any, float] | Sequence[float]: ...
