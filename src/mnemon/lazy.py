"""Modules that are imported when first used: a process that only logs should not pay for what recall needs."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Lazy:
    """Stands for a module until one of its names is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        __import__(self._name)
        found = getattr(sys.modules[self._name], name)
        self.__dict__[name] = found
        return found
