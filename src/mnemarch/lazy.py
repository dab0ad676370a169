"""Modules, texts and compiled patterns that are loaded on first use, so that a process starts fast.

A process that only logs doesn't load the parts of recall.
"""

from __future__ import annotations

import _sre  # type: ignore[import-not-found] # The C part of `re`. Importing `re` itself would load the compiler.
import gc
import marshal
import os
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable
    from typing import Any as Any

    # A compiled pattern: its flags with those in the source, the code, the number of groups, and their names.
    _Compiled = tuple[int, bytes, int, dict[str, int]]
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


# Compiling the patterns for one test run takes twice as long as starting Python. So compiled patterns are kept on disk,
# in the folder of Python's bytecode, and not if bytecode is off. A kept pattern needs neither a compiler nor `re`.
_STEP_BYTES = 4
_KEPT_MAX = 1_000
_KEPT_BYTES_MAX = 4 << 20
_WRONG = (OSError, ValueError, EOFError, TypeError, KeyError, RuntimeError, OverflowError)
_kept: dict[tuple[str, int], _Compiled] | None = None
_new: dict[tuple[str, int], re.Pattern[str]] = {}


def compiled(source: str, flags: int = 0) -> re.Pattern[str]:
    """The compiled pattern, like `re.compile`. It is known by its source, its flags and the Python that compiled it."""
    global _kept
    if _kept is None:
        _kept = _read_kept()
    with suppress(*_WRONG):
        whole, code, groups, names = _kept[source, flags]
        named = {number: name for name, number in names.items()}
        steps = memoryview(code).cast("I").tolist()
        return _sre.compile(source, whole, steps, groups, names, tuple(map(named.get, range(groups + 1))))  # type: ignore[no-any-return]
    import re

    pattern = _new[source, flags] = re.compile(source, flags)
    return pattern


def keep_patterns() -> None:
    """Write the patterns that this process had to compile to the disk. Failures are ignored."""
    if not _new or sys.dont_write_bytecode:
        return
    with suppress(*_WRONG, AttributeError, ImportError):
        path, own = _kept_path(), f"{_kept_path()}.{os.getpid()}"
        with open(own, "xb") as file:  # Opened first, so that nothing is compiled if the folder can't be written.
            try:
                kept = _read_kept() | {key: _parts_of(pattern, *key) for key, pattern in _new.items()}
                file.write(marshal.dumps((_stamp(), dict(list(kept.items())[-_KEPT_MAX:]))))
                file.flush()
                os.replace(own, path)
            except BaseException:
                os.remove(own)
                raise
    _new.clear()


def _parts_of(pattern: re.Pattern[str], source: str, flags: int) -> _Compiled:
    from re import _compiler, _parser  # type: ignore[attr-defined]

    steps = _compiler._code(_parser.parse(source, flags), flags)
    code = memoryview(bytearray(len(steps) * _STEP_BYTES)).cast("I")
    for place, step in enumerate(steps):
        code[place] = step
    return pattern.flags, code.tobytes(), pattern.groups, dict(pattern.groupindex)


def _read_kept() -> dict[tuple[str, int], _Compiled]:
    with suppress(*_WRONG), open(_kept_path(), "rb") as file:
        stamp, kept = marshal.loads(file.read(_KEPT_BYTES_MAX))  # noqa: S302 - as trusted as the bytecode beside it
        if stamp == _stamp() and isinstance(kept, dict):
            return kept
    return {}


def _kept_path() -> str:
    """The path of the cache: beside this module's bytecode, with the Python version in its name."""
    beside = getattr(__spec__, "cached", None)
    if not beside or _sre.CODESIZE != _STEP_BYTES:
        raise ValueError("bytecode is not kept")
    return f"{beside.removesuffix('.pyc')}.codes"


def _stamp() -> str:
    return f"{sys.version} {_sre.MAGIC}"
