"""Converts verbs' results to JSON and back, makes their JSON schemas, and lists the verbs that a network serves."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache

from mnemarch.errors import InvalidInput
from mnemarch.lazy import Any, loaded
from mnemarch.model.caller import Actor
from mnemarch.model.json_text import canonical_json
from mnemarch.model.unit import Citation
from mnemarch.model.value import Names, Ranks
from mnemarch.verbs import VERBS
from mnemarch.verbs.types import COMMAND, PATH, REQUIRED, SEAT, Parameter, Verb

# Properties that the JSON form has beside the fields, and fields that it leaves out.
_DERIVED = {
    "Unit": ("level", "confidence"),
    "Event": ("payload",),
    "Rebuild": ("same",),
    "Decision": (
        *("id", "root_id", "version", "strength", "domain", "is_active"),
        *("text", "reason", "override", "evidence"),
    ),
}
_LEFT_OUT = {"Event": ("body", "clock"), "Stream": ("writer",), "Proof": ("expects",)}
# The modules with the classes of results.
_HOMES = (
    *(f"mnemarch.model.{name}" for name in ("caller", "decision", "event", "outcome")),
    *(f"mnemarch.model.{name}" for name in ("search", "testrun", "unit", "upkeep")),
    *(f"mnemarch.learning.{name}" for name in ("code_rules", "core", "rule")),
)
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}


def to_json(value: Any) -> Any:
    """`value` in JSON types: enums as words, instants in ISO 8601 (UTC), actors and citations in their typed form."""
    if isinstance(value, Names | Ranks | Actor | Citation):
        return str(value)
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(name): to_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return {name: to_json(getattr(value, name)) for name in _shown(type(value))}


def _shown(kind: Any) -> tuple[str, ...]:
    """The names in the JSON form of a class."""
    left_out = _LEFT_OUT.get(kind.__name__, ())
    return (*(name for name in kind.__match_args__ if name not in left_out), *_DERIVED.get(kind.__name__, ()))


def kind_of(annotation: str) -> Any:
    """The type for a verb's return annotation."""
    return eval(annotation, _names())  # noqa: S307 - an annotation of this program


@cache
def _names() -> dict[str, Any]:
    from typing import Any, ClassVar

    names: dict[str, Any] = {"Any": Any, "ClassVar": ClassVar, "Mapping": Mapping, "datetime": datetime}
    for home in _HOMES:
        classes = {name: kind for name, kind in vars(loaded(home)).items() if isinstance(kind, type)}
        names |= {name: kind for name, kind in classes.items() if kind.__module__ == home}
    return names


@cache
def _fields(kind: Any) -> dict[str, Any]:
    """The types of a class's fields and of the derived properties in its JSON form."""
    from typing import get_type_hints

    types = get_type_hints(kind, _names())
    derived = {
        name: get_type_hints(getattr(kind, name).fget, _names())["return"] for name in _DERIVED.get(kind.__name__, ())
    }
    return {name: types[name] for name in kind.__match_args__} | derived


def _is_value(kind: Any) -> bool:
    return isinstance(kind, type) and hasattr(kind, "__match_args__") and kind not in {Actor, Citation}


def _alternatives(kind: Any) -> tuple[Any, ...]:
    """The members of a union, or the type itself if it is none."""
    from types import UnionType
    from typing import Union, get_args, get_origin

    return get_args(kind) if get_origin(kind) in {UnionType, Union} else (kind,)


def from_json(kind: Any, content: Any) -> Any:
    """Make a value of this type from its JSON form."""
    from typing import Any, get_args, get_origin

    alternatives = [each for each in _alternatives(kind) if each is not type(None)]
    if content is None or Any in alternatives:
        return content
    kind = alternatives[0]
    if len(alternatives) > 1 and isinstance(content, dict):
        # A JSON form always has all its fields, so the set of fields identifies the class.
        kind = next((each for each in alternatives if _is_value(each) and {*_shown(each)} == content.keys()), kind)
    parts = get_args(kind)
    match get_origin(kind):
        case None:
            return _one_from_json(kind, content)
        case _ if isinstance(content, dict):
            return {name: from_json(parts[1], item) for name, item in content.items()}
        case collection if parts[-1] is ...:
            return collection(from_json(parts[0], item) for item in content)
        case collection:
            kinds = parts if len(parts) > 1 else parts * len(content)
            return collection(from_json(each, item) for each, item in zip(kinds, content, strict=True))


def _one_from_json(kind: Any, content: Any) -> Any:
    if kind is datetime:
        return datetime.fromisoformat(content)
    if kind is bytes:
        return bytes.fromhex(content)
    if kind in {Actor, Citation} or issubclass(kind, Ranks):
        return kind.parse(content)
    if issubclass(kind, Names):
        return kind(content)
    if not _is_value(kind):
        if type(content) is not kind and (kind, type(content)) != (float, int):
            raise TypeError(f"{content!r:.80} is no {kind.__name__}")
        return content
    types, left_out = _fields(kind), _LEFT_OUT.get(kind.__name__, ())
    if "body" in left_out:
        body = None if content["payload"] is None else canonical_json(content["payload"])
        content = content | {"body": body}
    names = [name for name in kind.__match_args__ if name in content or name not in left_out]
    return kind(**{name: from_json(types[name], content[name]) for name in names})


def recognised(content: Any) -> Any:
    """The value that a conflict carries, with its class recognised by its fields; other content unchanged."""
    kinds = map(kind_of, ("Unit", "Decision", "Dispute", "CoreSection"))
    fields = content.keys() if isinstance(content, dict) else None
    kind = next((each for each in kinds if {*_shown(each)} == fields), None)
    return content if kind is None else from_json(kind, content)


def read_value(kind: Any, content: Any, what: str) -> Any:
    """Make a value from received JSON. Raises unless converting the value back gives the same JSON."""
    hint = "Give it back as it was answered."
    try:
        value = from_json(kind, content)
        is_same = to_json(value) == content
    except (AttributeError, KeyError, TypeError, ValueError, InvalidInput):
        is_same, value = False, None
    if not is_same:
        raise InvalidInput(f"{what} is no {kind.__name__}.", hint=hint)
    return value


def schema_of_kind(kind: Any, named: dict[str, Any]) -> dict[str, Any]:
    """The JSON schema of a type. Schemas of classes are added to `named` and referenced."""
    from typing import Any, get_args, get_origin

    alternatives = _alternatives(kind)
    if Any in alternatives:
        return {}
    if len(alternatives) > 1:
        return {"anyOf": [schema_of_kind(each, named) for each in alternatives]}
    origin, parts = get_origin(kind), get_args(kind)
    if origin in {list, tuple}:
        items = [schema_of_kind(each, named) for each in parts if each is not ...]
        if origin is list or parts[-1] is ...:
            return {"type": "array", "items": items[0]}
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if origin is not None:
        return {"type": "object", "additionalProperties": schema_of_kind(parts[1], named)}
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if kind is None or kind is type(None):
        return {"type": "null"}
    if kind is datetime:
        return {"type": "string", "format": "date-time"}
    if issubclass(kind, Names | Ranks):
        return {"type": "string", "enum": [str(each) for each in kind]}
    if not _is_value(kind):
        return {"type": "string"}
    return _schema_of_value(kind, named)


def _schema_of_value(kind: Any, named: dict[str, Any]) -> dict[str, Any]:
    if kind.__name__ not in named:
        named[kind.__name__] = {}
        types = _fields(kind)
        named[kind.__name__] = {
            "type": "object",
            "properties": {name: schema_of_kind(types[name], named) for name in _shown(kind)},
            "required": list(_shown(kind)),
            "additionalProperties": False,
        }
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


# The operator's verbs reach every project of a memory, so they need the widest profile. These two reveal no project.
_HARMLESS = frozenset({"memory.now", "memory.verify_receipt"})


def offered(verb: Verb) -> list[Parameter]:
    """The parameters that can come over a network: no file and no command of the server's machine."""
    return [each for each in verb.takes if each.type.read is not None and each.type not in (PATH, COMMAND)]


@cache
def served() -> dict[str, Verb]:
    """The verbs with all required parameters available over a network, by name."""
    return {verb.name: verb for verb in VERBS if verb.profile and _is_complete(verb)}


def _is_complete(verb: Verb) -> bool:
    sent = {each.name for each in offered(verb)}
    return all(each.name in sent or each.default is not REQUIRED or each.type is SEAT for each in verb.takes)


def profile_of(verb: Verb) -> str:
    """The narrowest profile that may call the verb over a network."""
    return "admin" if verb.name.startswith("memory.") and verb.name not in _HARMLESS else verb.profile


def path_of(verb: Verb) -> str:
    return f"/v1/{verb.name.replace('.', '/')}"
