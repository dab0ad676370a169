"""Modules and texts that are loaded on first use, so that a process that only logs doesn't load the parts of recall."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any as Any
else:
    Any = object  # Other modules import it from here, because `typing` takes 4 ms to load.


def loaded(name: str) -> Any:
    """Import a module. The garbage collector is paused, since the definitions of a module are no garbage."""
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
    """`__getattr__` and `__dir__` for a package that imports its public names on first use.

    `homes` maps each name to its module.
    """

    def get(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")
        content: object = getattr(loaded(home), name)
        package[name] = content
        return content

    return get, lambda: sorted({*package, *homes})


class Lazy:
    """A stand-in for a module, which is imported when one of its names is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        content = getattr(loaded(self._name), name)
        self.__dict__[name] = content
        return content


def lines_beside(module_path: str, name: str) -> list[str]:
    """The lines of a text file next to a module."""
    with open(os.path.join(os.path.dirname(module_path), name), encoding="utf-8") as file:
        return file.read().strip().split("\n")


def paragraphs_beside(module_path: str, name: str) -> dict[str, list[str]]:
    """The paragraphs of a text file next to a module: by the first line, the other lines."""
    texts: dict[str, list[str]] = {}
    for paragraph in "\n".join(lines_beside(module_path, name)).split("\n\n"):
        title, *texts[title] = paragraph.split("\n")
    return texts
