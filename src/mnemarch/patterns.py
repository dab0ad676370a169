"""A cache of compiled patterns on disk. It is in the folder of Python's bytecode, and off if bytecode is off.

Compiling the patterns for one test run takes twice as long as starting Python. A cached pattern needs neither a
compiler nor `re`. Patterns are keyed by their source, their flags and the Python that compiled them.
"""

from __future__ import annotations

import _sre  # type: ignore[import-not-found] # The C part of `re`. Importing `re` itself would load the compiler.
import marshal
import os
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

    # The flags including those in the source, the code, the number of groups, and their names.
    Kept = tuple[int, bytes, int, dict[str, int]]

_STEP_BYTES = 4
_KEPT_MAX = 1_000
_FILE_BYTES_MAX = 4 << 20
_WRONG = (OSError, ValueError, EOFError, TypeError, KeyError, RuntimeError, OverflowError)
_kept: dict[tuple[str, int], Kept] | None = None
_new: dict[tuple[str, int], re.Pattern[str]] = {}


def compiled(source: str, flags: int = 0) -> re.Pattern[str]:
    """The compiled pattern, like `re.compile`."""
    global _kept
    if _kept is None:
        _kept = _read()
    with suppress(*_WRONG):
        whole, code, groups, names = _kept[source, flags]
        named = {number: name for name, number in names.items()}
        steps = memoryview(code).cast("I").tolist()
        return _sre.compile(source, whole, steps, groups, names, tuple(map(named.get, range(groups + 1))))  # type: ignore[no-any-return]
    import re

    pattern = _new[source, flags] = re.compile(source, flags)
    return pattern


def keep() -> None:
    """Write the patterns that this process had to compile to the cache. Failures are ignored."""
    if not _new or sys.dont_write_bytecode:
        return
    with suppress(*_WRONG, AttributeError, ImportError):
        path, own = _path(), f"{_path()}.{os.getpid()}"
        with open(own, "xb") as file:  # Opened first, so that nothing is compiled if the folder can't be written.
            try:
                kept = _read() | {key: _parts_of(pattern, *key) for key, pattern in _new.items()}
                file.write(marshal.dumps((_stamp(), dict(list(kept.items())[-_KEPT_MAX:]))))
                file.flush()
                os.replace(own, path)
            except BaseException:
                os.remove(own)
                raise
    _new.clear()


def _parts_of(pattern: re.Pattern[str], source: str, flags: int) -> Kept:
    from re import _compiler, _parser  # type: ignore[attr-defined]

    steps = _compiler._code(_parser.parse(source, flags), flags)
    code = memoryview(bytearray(len(steps) * _STEP_BYTES)).cast("I")
    for place, step in enumerate(steps):
        code[place] = step
    return pattern.flags, code.tobytes(), pattern.groups, dict(pattern.groupindex)


def _read() -> dict[tuple[str, int], Kept]:
    with suppress(*_WRONG), open(_path(), "rb") as file:
        stamp, kept = marshal.loads(file.read(_FILE_BYTES_MAX))  # noqa: S302 - as trusted as the bytecode beside it
        if stamp == _stamp() and isinstance(kept, dict):
            return kept
    return {}


def _path() -> str:
    """The path of the cache: beside this module's bytecode, with the Python version in its name."""
    beside = getattr(__spec__, "cached", None)
    if not beside or _sre.CODESIZE != _STEP_BYTES:
        raise ValueError("bytecode is not kept")
    return f"{beside.removesuffix('.pyc')}.codes"


def _stamp() -> str:
    return f"{sys.version} {_sre.MAGIC}"
