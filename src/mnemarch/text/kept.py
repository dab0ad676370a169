"""What is worked out of a text and kept for a while, so that one act need not do it again; erasure forgets it all."""

from __future__ import annotations

from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

_caches: list[Any] = []


def kept(size: int) -> Callable[[F], F]:
    """Keep the last `size` answers of a pure function of texts."""

    def keep(function: F) -> F:
        cached: Any = lru_cache(maxsize=size)(function)
        _caches.append(cached)
        return cached  # type: ignore[no-any-return]

    return keep


def forget_texts() -> None:
    """Drop every kept answer: one of the texts was erased (R16)."""
    for cached in _caches:
        cached.cache_clear()
