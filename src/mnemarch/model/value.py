"""`@value`: frozen, slotted classes with the meaning of a frozen dataclass and a fiftieth of its start-up cost."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar, dataclass_transform

    T = TypeVar("T")
else:

    def dataclass_transform(**_: object):  # type: ignore[no-untyped-def]
        return lambda decorator: decorator


_MISSING: Any = object()
# So often made, a class is worth compiling an initialiser for.
_OFTEN = 32


def _initialiser(cls: Any, fields: tuple[str, ...], defaults: dict[str, Any]) -> Any:
    """An `__init__` that needs no compiling; a class that turns out to be made often gets one that is faster."""
    slots = [(name, cls.__dict__[name].__set__, defaults.get(name, _MISSING)) for name in fields]
    # A mapping as a default is copied: no two values may share what somebody could change.
    fresh = [slot for slot in slots if isinstance(slot[2], dict)]
    known = frozenset(fields)
    check = cls.__dict__.get("__check__")
    made = 0

    def initialise(self: Any, *positional: Any, **given: Any) -> None:
        nonlocal made
        made += 1
        if made == _OFTEN:
            cls.__init__ = _compiled_initialiser(cls, fields, defaults)
        if positional:
            given = _named(cls, fields, positional, given)
        look = given.get
        for name, put, default in slots:
            content = look(name, default)
            if content is _MISSING:
                raise TypeError(f"{cls.__name__} needs {name!r}")
            put(self, content)
        for name, put, default in fresh:
            if name not in given:
                put(self, dict(default))
        if not given.keys() <= known:
            unknown = ", ".join(repr(name) for name in given if name not in known)
            raise TypeError(f"{cls.__name__} has no {unknown}; it has {', '.join(fields)}")
        if check is not None:
            check(self)

    return initialise


def _compiled_initialiser(cls: Any, fields: tuple[str, ...], defaults: dict[str, Any]) -> Any:
    """The same as source text: a third of the time for each value, but a tenth of a millisecond to compile."""
    names: dict[str, Any] = {f"put_{name}": cls.__dict__[name].__set__ for name in fields}
    names |= {f"default_{name}": default for name, default in defaults.items()}
    given = (f"{name}=default_{name}" if name in defaults else name for name in fields)
    lines = [f"def __init__(self, {', '.join(given)}):"]
    for name in fields:
        shared = isinstance(defaults.get(name), dict)
        content = f"dict({name}) if {name} is default_{name} else {name}" if shared else name
        lines.append(f"  put_{name}(self, {content})")
    if "__check__" in cls.__dict__:
        lines.append("  self.__check__()")
    exec("\n".join(lines), names)  # noqa: S102 - made of the class's own field names
    return names["__init__"]


def _named(cls: type, fields: tuple[str, ...], positional: tuple[Any, ...], given: dict[str, Any]) -> dict[str, Any]:
    if len(positional) > len(fields):
        raise TypeError(f"{cls.__name__} takes {len(fields)} values, {len(positional)} were given")
    named = dict(zip(fields, positional, strict=False))
    if twice := named.keys() & given.keys():
        raise TypeError(f"{cls.__name__} got {', '.join(map(repr, twice))} twice")
    return named | given


def _refuse(self: Any, name: str, *_: object) -> None:
    raise AttributeError(f"{type(self).__name__} is frozen: {name!r} can't be changed (use replace)")


def _equal(self: Any, other: Any) -> bool:
    cls: Any = type(self)
    if type(other) is not cls:
        return False
    return all(getattr(self, name) == getattr(other, name) for name in cls.__match_args__)


def _hashed(self: Any) -> int:
    return hash((type(self), *(getattr(self, name) for name in type(self).__match_args__)))


def _shown(self: Any) -> str:
    return (
        f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in type(self).__match_args__)})"
    )


def _state(self: Any) -> dict[str, Any]:
    return {name: getattr(self, name) for name in type(self).__match_args__}


def _restore(self: Any, state: dict[str, Any]) -> None:
    for name, content in state.items():
        object.__setattr__(self, name, content)


@dataclass_transform(frozen_default=True)
def value(cls: type[T]) -> type[T]:
    """Make `cls` a frozen value of its annotated fields; `__check__`, if defined, runs after construction."""
    fields = tuple(cls.__annotations__)
    body = {name: item for name, item in cls.__dict__.items() if name not in {"__dict__", "__weakref__"}}
    defaults = {name: body.pop(name) for name in fields if name in body}
    body |= {
        "__slots__": fields,
        "__match_args__": fields,
        "__setattr__": _refuse,
        "__delattr__": _refuse,
        "__getstate__": _state,
        "__setstate__": _restore,
    }
    for name, method in (("__eq__", _equal), ("__hash__", _hashed), ("__repr__", _shown)):
        body.setdefault(name, method)
    meta: Any = type(cls)
    made = meta(cls.__name__, cls.__bases__, body)
    made.__init__ = _initialiser(made, fields, defaults)
    return made  # type: ignore[no-any-return]


def replace(original: T, **changes: Any) -> T:
    """A copy of a value with some fields changed."""
    cls: Any = type(original)
    return cls(**({name: getattr(original, name) for name in cls.__match_args__} | changes))  # type: ignore[no-any-return]
