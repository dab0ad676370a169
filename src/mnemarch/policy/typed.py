"""What callers pass is of the type that a method says: checked by its own annotations, before it does anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import cache, wraps

from mnemarch.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])
    C = TypeVar("C", bound=type)

# A lone string where a list is meant is a mistake that would go unseen.
_TYPES: dict[str, tuple[Any, str]] = {
    "str": (str, "text"),
    "bool": (bool, "True or False"),
    "int": (int, "a whole number"),
    "float": (int | float, "a number"),
    "Sequence": (Sequence | Set, "a list"),
    "tuple": (list | tuple, "a tuple"),
    "Mapping": (Mapping, "a dictionary"),
    "None": (type(None), "None"),
    "Any": (object, "anything"),
    "Callable": (object, "a function"),
}


def typed_methods(cls: C) -> C:
    """A class whose public methods refuse arguments of other types than they say, with `InvalidInput`."""
    for name, method in list(vars(cls).items()):
        if name[0] != "_" and hasattr(method, "__code__"):
            setattr(cls, name, typed(method))
    return cls


def typed(function: F) -> F:
    """The same of one function."""
    names, types = function.__code__.co_varnames, function.__annotations__

    @wraps(function)
    def checked(*args: Any, **named: Any) -> Any:
        for name, item in (*zip(names, args, strict=False), *named.items()):
            if name in types and not _fits(item, types[name]):
                words = " or ".join(_TYPES.get(part, (0, f"a {part}"))[1] for part, _ in _parts(types[name]))
                raise InvalidInput(
                    f"{name} of {function.__name__} must be {words}, not {item!r:.80}.", hint=f"Pass {words}."
                )
        return function(*args, **named)

    return checked  # type: ignore[return-value]


@cache
def _parts(said: str) -> list[tuple[str, list[str]]]:
    """The alternatives of an annotation, each with the annotations of what is in it."""
    parts = []
    for alternative in _split(said, "|"):
        name, _, inner = alternative.partition("[")
        parts.append((name, _split(inner[:-1], ",")))
    return parts


def _split(said: str, at: str) -> list[str]:
    """The parts between these characters, outside of brackets."""
    parts, depth = [""], 0
    for char in said:
        depth += (char == "[") - (char == "]")
        if char == at and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part.strip()]


def _fits(item: Any, said: str) -> bool:
    return any(_is(item, name, inner) for name, inner in _parts(said))


def _is(item: Any, name: str, inner: list[str]) -> bool:
    if name not in _TYPES:  # A class of this package, which need not be loaded.
        return any(base.__name__ == name for base in type(item).__mro__)
    if not isinstance(item, _TYPES[name][0]) or (isinstance(item, bool) and name in {"int", "float"}):
        return False
    if name == "Sequence":
        return not isinstance(item, str | bytes) and all(_fits(each, inner[0]) for each in item)
    if name == "tuple":
        return len(item) == len(inner) and all(map(_fits, item, inner))
    return True
