"""Character n-grams of the canonical text, the features of the built-in embedder."""

from __future__ import annotations

from mnemarch.text.canonical import canonical


def ngrams(text: str, low: int = 3, high: int = 5) -> list[str]:
    """Every run of `low` to `high` characters of the canonical text between two spaces; a shorter text is its own."""
    known = canonical(text)
    if len(known) < low:
        return [known] if known else []
    padded = f" {known} "
    return [padded[start : start + size] for size in range(low, high + 1) for start in range(len(padded) - size + 1)]
