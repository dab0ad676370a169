"""`Frozen`: frozen, slotted classes that behave like frozen dataclasses, at a fiftieth of the start-up cost.

A stored value is a `Record`, whose JSON form is derived from its fields. Closed vocabularies (`Names`, `Ranks`) replace
`enum` at a tenth of its start-up cost. Start-up cost counts: a process that only logs or recalls once builds ten of
them, and may take at most four times as long as a bare Python. To a type checker they are enums.
"""

from __future__ import annotations

import sys
from functools import cache

from mnemarch.errors import InvalidInput
from mnemarch.model.stamps import instant, micros

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping
    from enum import IntEnum as Ranks
    from enum import StrEnum as Names
    from typing import Any, ClassVar, Self, TypeVar, assert_never, dataclass_transform

    T = TypeVar("T")
    Member = TypeVar("Member", bound=Names)
    # The functions that write a field's content to JSON and read it back. None: no conversion.
    Form = tuple[Callable[[Any], Any] | None, Callable[[Any], Any] | None]
else:

    def dataclass_transform(**_: object):  # type: ignore[no-untyped-def]
        return lambda decorator: decorator

    class _Closed(type):
        """The metaclass of closed vocabularies. Names in capitals become members; calling the class looks one up."""

        def __new__(meta, name, bases, body):
            members = {key: item for key, item in body.items() if key.isupper() and key[0] != "_"}
            cls = type.__new__(meta, name, bases, {key: item for key, item in body.items() if key not in members})
            cls._by_value = {}
            for key, item in members.items():
                member = bases[0].__new__(cls, item)
                member.__dict__.update(name=key, value=item)
                cls._by_value[item] = member
                type.__setattr__(cls, key, member)
            return cls

        def __call__(cls, value):
            try:
                return cls._by_value[value]
            except (KeyError, TypeError):
                raise ValueError(f"{value!r} is not a valid {cls.__name__}") from None

        def __getitem__(cls, name):
            return {member.name: member for member in cls}[name]

        def __setattr__(cls, name, item):
            if name in cls.__dict__ and name.isupper():
                raise AttributeError(f"{cls.__name__} is closed: {name} can't be changed")
            type.__setattr__(cls, name, item)

        def __iter__(cls):
            return iter(cls._by_value.values())

        def __len__(cls):
            return len(cls._by_value)

        def __contains__(cls, item):
            return item in cls._by_value

    class _Member:
        """The common behaviour of members. There is one object per value, and a copy is that object."""

        def __repr__(self):
            return f"<{type(self).__name__}.{self.name}: {self.value!r}>"

        def __setattr__(self, name, item):
            raise AttributeError(f"{self!r} can't be changed")

        def __reduce_ex__(self, _protocol):
            return type(self), (self.value,)

    class Names(_Member, str, metaclass=_Closed):
        """A vocabulary whose members are strings."""

    class Ranks(_Member, int, metaclass=_Closed):
        """A vocabulary whose members are integers, and compare as integers."""

    def assert_never(member):
        raise AssertionError(f"{member!r} is handled nowhere")


def member_of(cls: type[Member], name: str, what: str, but: Container[str] = ()) -> Member:
    """The member with this value. Raises with the members except `but`; `what` describes the vocabulary."""
    try:
        return cls(name)
    except ValueError:
        known = ", ".join(each for each in cls if each not in but)
        raise InvalidInput(f"{name!r} is not a {what}.", hint=f"Use one of: {known}.") from None


__all__ = ["Frozen", "Names", "Ranks", "Record", "assert_never", "member_of", "replace"]
# The number of values after which compiling a class's initialiser pays off.
_OFTEN = 32


def _initialiser(cls: Any, fields: tuple[str, ...], defaults: dict[str, Any]) -> Any:
    """An `__init__` that needs no compiling. It is replaced by a compiled one after many calls, or at a wrong call."""
    slots = [(name, cls.__dict__[name].__set__) for name in fields]
    # A default mapping is copied: values must not share mutable content.
    shared = [name for name, default in defaults.items() if isinstance(default, dict)]
    known = frozenset(fields)
    check = cls.__dict__.get("__check__")
    made = 0

    def initialise(self: Any, *positional: Any, **named: Any) -> None:
        nonlocal made
        made += 1
        arguments = dict(zip(fields, positional, strict=False)) | named if positional else named
        contents = defaults | arguments
        if made == _OFTEN or contents.keys() != known or len(arguments) != len(positional) + len(named):
            cls.__init__ = _compiled_initialiser(cls, fields, defaults)
            cls.__init__(self, *positional, **named)
            return
        for name in shared:
            if name not in arguments:
                contents[name] = dict(defaults[name])
        for name, put in slots:
            put(self, contents[name])
        if check is not None:
            check(self)

    return initialise


def _compiled_initialiser(cls: Any, fields: tuple[str, ...], defaults: dict[str, Any]) -> Any:
    """A compiled `__init__`. It takes a third of the time for each value, and a tenth of a millisecond to compile."""
    names: dict[str, Any] = {f"put_{name}": cls.__dict__[name].__set__ for name in fields}
    names |= {f"default_{name}": default for name, default in defaults.items()}
    parameters = (f"{name}=default_{name}" if name in defaults else name for name in fields)
    lines = [f"def __init__(self, {', '.join(parameters)}):"]
    for name in fields:
        shared = isinstance(defaults.get(name), dict)
        content = f"dict({name}) if {name} is default_{name} else {name}" if shared else name
        lines.append(f"  put_{name}(self, {content})")
    if "__check__" in cls.__dict__:
        lines.append("  self.__check__()")
    # Compiled to a code object first: if an interrupt comes, even a caught one, while `exec` runs a string, Python
    # kills the process at exit.
    exec(compile("\n".join(lines), "<value>", "exec"), names)  # noqa: S102 - made of the class's own field names
    return names["__init__"]


class _FrozenType(type):
    """The metaclass of frozen classes: a slot for each annotated field, and the defaults in `__defaults__`."""

    def __new__(meta, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> _FrozenType:
        annotated = body.get("__annotations__", {}).items()
        fields = tuple(field for field, kind in annotated if not kind.startswith("ClassVar"))
        body["__slots__"] = body["__match_args__"] = fields
        body["__defaults__"] = {field: body.pop(field) for field in fields if field in body}
        return type.__new__(meta, name, bases, body)


@dataclass_transform(frozen_default=True)
class Frozen(metaclass=_FrozenType):
    """A frozen value of its annotated fields. `__check__`, if defined, runs after construction."""

    if not TYPE_CHECKING:

        def __init__(self, *positional, **named):
            # The initialiser is made for the first value: most classes never have one in a process.
            cls = type(self)
            cls.__init__ = _initialiser(cls, cls.__match_args__, cls.__defaults__)
            cls.__init__(self, *positional, **named)

    def __setattr__(self, name: str, _: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name!r} can't be changed (use replace)")

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and _contents(self) == _contents(other)

    def __hash__(self) -> int:
        return hash((type(self), *_contents(self)))

    def __repr__(self) -> str:
        cls: Any = type(self)
        return f"{cls.__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in cls.__match_args__)})"

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        """Support copying and pickling."""
        return type(self), _contents(self)


def _contents(made: Any) -> tuple[Any, ...]:
    return tuple(getattr(made, name) for name in type(made).__match_args__)


def replace(original: T, **changes: Any) -> T:
    """Return a copy of a value with some fields changed."""
    cls: Any = type(original)
    return cls(**({name: getattr(original, name) for name in cls.__match_args__} | changes))  # type: ignore[no-any-return]


class Record(Frozen):
    """A value whose JSON form is derived from its fields.

    `json_names` maps a field to its stored name if the two differ, or to None if the field is not stored.
    `json_optional` names the fields that are left out if they are None.
    """

    json_names: ClassVar[tuple[tuple[str, str | None], ...]] = ()
    json_optional: ClassVar[frozenset[str]] = frozenset()

    def to_json(self) -> dict[str, Any]:
        """The stored form: JSON types only, no derived fields."""
        record = _writer(type(self))(self)
        for key in self.json_optional:
            if record[key] is None:
                del record[key]
        return record

    @classmethod
    def fields_from_json(cls, record: Mapping[str, Any]) -> dict[str, Any]:
        """Read fields back from their stored form. The record need not have all of them."""
        readers, fields = _readers(cls), {}
        for key, content in record.items():
            name, read = readers.get(key) or (key, None)
            fields[name] = content if content is None or read is None else read(content)
        return fields

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        return cls(**cls.fields_from_json(record))


def _stored_fields(cls: Any) -> Iterator[tuple[str, str, Any, Any]]:
    """Each stored field: its name, its stored name, and the functions that write and read its content."""
    namespace, stored = sys.modules[cls.__module__].__dict__, dict(cls.json_names)
    for name in cls.__match_args__:
        key = stored.get(name, name)
        if key is not None:
            yield name, key, *_form_of(cls.__annotations__[name], namespace)


@cache
def _readers(cls: Any) -> dict[str, tuple[str, Any]]:
    """Name and reader of each field whose stored form differs, by its stored name."""
    return {key: (name, read) for name, key, _, read in _stored_fields(cls) if name != key or read is not None}


@cache
def _writer(cls: Any) -> Callable[[Any], dict[str, Any]]:
    """A function from a value to its record. It is compiled, since every act on the log writes records."""
    writers, items = {}, []
    for name, key, write, _ in _stored_fields(cls):
        writers[f"write_{name}"] = write
        written = f"None if self.{name} is None else write_{name}(self.{name})"
        items.append(f"{key!r}: {f'self.{name}' if write is None else written}")
    made: Callable[[Any], dict[str, Any]] = eval(f"lambda self: {{{', '.join(items)}}}", writers)  # noqa: S307
    return made


def _form_of(annotation: str, namespace: Mapping[str, Any]) -> Form:
    """The functions that write and read a field of this type. Of alternatives (`Kind | str`), the first one counts."""
    name = annotation.partition(" | ")[0]
    if name == "datetime":
        return micros, instant
    if name == "tuple[tuple[str, str], ...]":
        return dict, lambda pairs: tuple(sorted(pairs.items()))
    if name.startswith("tuple["):
        write, read = _form_of(name[len("tuple[") :].partition(",")[0], namespace)
        return (
            list if write is None else lambda items: [*map(write, items)],
            tuple if read is None else lambda items: tuple(map(read, items)),
        )
    if name.startswith("Mapping["):
        return dict, None
    kind = namespace.get(name)
    if isinstance(kind, type) and issubclass(kind, Names):
        return str, kind
    return getattr(kind, "to_json", None), getattr(kind, "from_json", None)
