"""Named queries: read from .sql files, with lists of values bound one by one."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

_LIST = "IN (:"
_BOUND_MAX = 500


def named_queries(*paths: str) -> dict[str, str]:
    """The queries of some files by name; a later file overrides an earlier one."""
    queries: dict[str, str] = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            blocks = file.read().split("-- ")[1:]
        for block in blocks:
            name, _, rest = block.partition(":")
            queries[name] = rest.partition("\n")[2].strip()
    return queries


def migration(folder: str, version: int) -> str:
    """The script of a folder that leads from `version - 1` to `version`."""
    (name,) = (name for name in os.listdir(folder) if name.startswith(f"{version:04d}_"))
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


def in_parts(items: Iterable[str]) -> Iterator[list[str]]:
    """Many values in order, in lists that a database takes."""
    wanted = sorted(set(items))
    for start in range(0, len(wanted), _BOUND_MAX):
        yield wanted[start : start + _BOUND_MAX]


class Queries:
    """The queries of one dialect. `IN (:names)` takes a list, whose values are bound one by one.

    A JSON array in their place would end at the first NUL, and not every database has arrays.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = dict(texts)
        self._lists = {name: _lists_in(text) for name, text in texts.items() if _LIST in text}
        self._expanded: dict[tuple[str, ...], str] = {}

    def bound(self, name: str, parameters: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The text of a query and its parameters, with every list spelled out."""
        lists = self._lists.get(name)
        if lists is None:
            return self.texts[name], parameters
        shape: tuple[str, ...] = (name, *(str(len(parameters[each])) for each in lists))
        text = self._expanded.get(shape)
        if text is None:
            text = self.texts[name]
            for each in lists:
                names = ", ".join(f":{each}_{number}" for number in range(len(parameters[each])))
                text = text.replace(f"{_LIST}{each})", f"IN ({names or 'NULL'})")
            self._expanded[shape] = text
        for each in lists:
            for number, item in enumerate(parameters.pop(each)):
                parameters[f"{each}_{number}"] = item
        return text, parameters


def _lists_in(text: str) -> tuple[str, ...]:
    return tuple(sorted({part.partition(")")[0] for part in text.split(_LIST)[1:]}))
