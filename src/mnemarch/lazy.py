"""Modules that are imported when first used: a process that only logs should not pay for what recall needs."""

from __future__ import annotations

import gc
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def loaded(name: str) -> Any:
    """The module of that name. What a module defines stays, so looking for garbage meanwhile would be in vain."""
    pausing = name not in sys.modules and gc.isenabled()
    if pausing:
        gc.disable()
    try:
        __import__(name)
    finally:
        if pausing:
            gc.enable()
    return sys.modules[name]


def names_of(package: dict[str, Any], homes: dict[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose public names are imported when first used, each from its home."""

    def get(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")
        found: object = getattr(loaded(home), name)
        package[name] = found
        return found

    return get, lambda: sorted({*package, *homes})


class Lazy:
    """Stands for a module until one of its names is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        found = getattr(loaded(self._name), name)
        self.__dict__[name] = found
        return found
