"""Caches: compiled patterns, and bounded caches of answers about texts, which erasing a text empties."""

from __future__ import annotations

from functools import cache, lru_cache

from mnemarch.lazy import compiled

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])
    _Answers = dict[Any, Any]
else:
    _Answers = dict

_WORD_CHARS_MAX = 64
_nothing: dict[str, Any] = {}
_clear_functions: list[Callable[[], object]] = []


@cache
def pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """The compiled pattern. `re` is imported only if a pattern has to be compiled."""
    return compiled(source, flags)


class BoundedCache(_Answers):
    """A bounded dictionary. When it is full, it drops its newer half, since frequent words tend to come early.

    With `answer`, `known[word]` computes a missing answer. Long words are not cached: they rarely come back.
    """

    def __init__(self, size_max: int, answer: Callable[[str], Any] = _nothing.__getitem__) -> None:
        super().__init__()
        self._size_max = size_max
        self._answer = answer
        _clear_functions.append(self.clear)

    def __setitem__(self, key: Any, answer: Any) -> None:
        if len(self) >= self._size_max:
            for newer in list(self)[self._size_max // 2 :]:
                self.pop(newer, None)
        super().__setitem__(key, answer)

    def __missing__(self, word: str) -> Any:
        answer = self._answer(word)
        if len(word) <= _WORD_CHARS_MAX:
            self[word] = answer
        return answer


def cached(size: int) -> Callable[[F], F]:
    """Cache the last `size` answers of a pure function of texts."""

    def decorate(function: F) -> F:
        wrapper: Any = lru_cache(maxsize=size)(function)
        _clear_functions.append(wrapper.cache_clear)
        return wrapper  # type: ignore[no-any-return]

    return decorate


def forget_texts() -> None:
    """Empty every cache, because one of the texts was erased (R16)."""
    for clear in _clear_functions:
        clear()
