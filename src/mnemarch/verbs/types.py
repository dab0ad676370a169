"""The types of parameters: each parses text or JSON and has a JSON schema. The results of verbs as JSON, and back."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache

from mnemarch.errors import InvalidInput
from mnemarch.lazy import Any, loaded, paragraphs_beside
from mnemarch.model.caller import Actor
from mnemarch.model.json_text import canonical_json
from mnemarch.model.unit import Citation
from mnemarch.model.value import Frozen, Names, Ranks, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Reader = Callable[[Any, str], Any]

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
# The operator's verbs reach every project of a memory, so they need the widest profile. These two reveal no project.
_HARMLESS = frozenset({"memory.now", "memory.verify_receipt"})
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}


class Type(Frozen):
    """A type of parameter. `read(item, what)` parses text or a JSON value; `what` is its name in errors.

    A type without `read` is a Python object that only a program or the interface itself can pass.
    """

    name: str
    read: Reader | None = None
    schema: Callable[[], dict[str, Any]] = dict
    metavar: str = ""
    sample: str = ""


EXAMPLE_ID = "01a1e10a-75ac-7d0c-9ca4-6a8510450e10"


# The default of a required parameter.
REQUIRED: Any = object()


class Parameter(Frozen):
    """One parameter of a verb.

    `many` makes it a list. On the command line a required parameter is a word, another one an option. `flag` names the
    option; "" makes it an optional word, and "--yes|--no" sets True or False. A `piped` parameter is read from standard
    input if it is left out: a text, or JSON lines for a list. One that is not `offered` is for programs only.
    """

    name: str
    type: Type
    says: str = ""
    default: Any = REQUIRED
    flag: str | None = None
    many: bool = False
    metavar: str = ""
    piped: bool = False
    offered: bool = True


class Verb(Frozen):
    """One verb. `name` begins with its owner: memory, seat, decisions, rules, core or episodes.

    `profile` is the narrowest profile that has it: read, work or admin; "" keeps it in Python. `gives` is its return
    annotation. `command` is its name on the command line if that differs: an option chooses "stuck --clear", a second
    word chooses "decisions show". None keeps it off the command line.
    """

    name: str
    profile: str
    gives: str
    takes: tuple[Parameter, ...] = ()
    command: str | None = ""

    @property
    def sent(self) -> list[Parameter]:
        """The parameters that can come over a network: no file and no command of the server's machine."""
        return [each for each in self.takes if each.type.read is not None and each.type not in (PATH, COMMAND)]

    @property
    def path(self) -> str:
        """The route over a network."""
        return f"/v1/{self.name.replace('.', '/')}"

    @property
    def needs(self) -> str:
        """The narrowest profile that may call it over a network."""
        return "admin" if self.name.startswith("memory.") and self.name not in _HARMLESS else self.profile


def help_of(name: str) -> tuple[str, tuple[str, ...]]:
    """The description of a verb or a command, whose first sentence is its summary, and the examples."""
    lines = help_texts()[name]
    says = " ".join(line for line in lines if line[:2] != "$ ")
    return says, tuple(line[2:] for line in lines if line[:2] == "$ ")


@cache
def help_texts() -> dict[str, list[str]]:
    """The lines of `help.txt` for each verb and command."""
    return paragraphs_beside(__file__, "help.txt")


def read(parameter: Parameter, item: Any, what: str) -> Any:
    """Parse a parameter from text or JSON, a list item by item. `what` is its name in errors."""
    if not parameter.many:
        return read_one(parameter, item, what)
    if not isinstance(item, list | tuple):
        raise InvalidInput(f"{what} must be a list of texts.", hint='Write ["..."].')
    return [read_one(parameter, each, what) for each in item]


def read_one(parameter: Parameter, item: Any, what: str) -> Any:
    if parameter.type.read is None:
        raise InvalidInput(f"{what} can't be given as text.", hint="Leave it out.")
    return parameter.type.read(item, what)


def read_all(name: str, takes: Iterable[Parameter], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Check and parse a program's arguments for the verb or tool of this name."""
    known = {parameter.name: parameter for parameter in takes}
    unknown = [each for each in arguments if each not in known]
    if unknown:
        raise InvalidInput(f"{name} takes no {unknown[0]!r}.", hint=f"It takes {', '.join(known)}.")
    content = {
        each: read(known[each], item, each)
        for each, item in arguments.items()
        if item is not None or known[each].default is not None
    }
    missing = [each for each, one in known.items() if one.default is REQUIRED and each not in content]
    if missing:
        raise InvalidInput(f"{name} needs {' and '.join(missing)}.", hint=f"{missing[0]}: {known[missing[0]].says}.")
    return content


def schema_of(takes: Iterable[Parameter]) -> dict[str, Any]:
    """The JSON schema of those parameters that can be given as JSON."""
    offered = [parameter for parameter in takes if parameter.type.read is not None]
    return {
        "type": "object",
        "properties": {parameter.name: _property(parameter) for parameter in offered},
        "required": [parameter.name for parameter in offered if parameter.default is REQUIRED],
        "additionalProperties": False,
    }


def _property(parameter: Parameter) -> dict[str, Any]:
    schema = parameter.type.schema()
    described = {"type": "array", "items": schema} if parameter.many else schema
    return described | ({"description": parameter.says} if parameter.says else {})


def _of_type(python: type, words: str) -> Reader:
    def checked(item: Any, what: str) -> Any:
        if not isinstance(item, python):
            raise InvalidInput(f"{what} must be {words}, not {item!r}.", hint=f"Write {words}.")
        return item

    return checked


_text, _flag = _of_type(str, "text"), _of_type(bool, "true or false")


def _number(item: Any, what: str) -> int:
    try:
        number = int(item) if isinstance(item, str) else item
    except ValueError:
        number = None
    if type(number) is not int:
        raise InvalidInput(f"{what} must be a whole number, not {item!r}.", hint="For example 8.")
    return number


def _share(item: Any, what: str) -> float:
    try:
        return float(item)
    except (TypeError, ValueError):
        raise InvalidInput(f"{what} must be a number from 0 to 1, not {item!r}.", hint="For example 0.5.") from None


def _floor(item: Any, what: str) -> float | str:
    return item if item == "auto" else _share(item, what)


def _instant(item: Any, what: str) -> datetime:
    """An instant in ISO 8601. It needs a zone, or its meaning would depend on the machine."""
    try:
        moment = datetime.fromisoformat(item)
    except (ValueError, TypeError):
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InvalidInput(f"{what} {item!r} is not an instant with a zone.", hint="For example 2026-01-31T09:30Z.")
    return moment


def _duration(item: Any, what: str) -> timedelta:
    """A length of time: 30m, 6h, 1d or 2w."""
    text = item.strip().lower() if isinstance(item, str) else ""
    units = {"m": "minutes", "min": "minutes", "h": "hours", "d": "days", "w": "weeks"}
    count = text.rstrip("minhdw")
    if not count.isdecimal() or text[len(count) :] not in units or not int(count):
        raise InvalidInput(f"{what} {item!r} is not a length of time.", hint="Write 30m, 6h, 1d or 2w.")
    return timedelta(**{units[text[len(count) :]]: int(count)})


def _since(item: Any, what: str) -> datetime:
    """A moment in the past: a length of time ago (2h), `today`, `yesterday`, a local date, or an instant."""
    now = datetime.now().astimezone()
    text = item.strip().lower() if isinstance(item, str) else ""
    if text.rstrip("minhdw").isdecimal() and not text.isdecimal():
        try:
            return now - _duration(text, what)
        except OverflowError:
            raise InvalidInput(f"{what} {item!r} is too long ago.", hint="Write 2h, 3d or 2026-01-31.") from None
    days = {"today": now, "yesterday": now - timedelta(days=1)}
    try:
        day = days.get(text) or datetime.strptime(text, "%Y-%m-%d")
        return day.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None).astimezone()
    except ValueError:
        pass
    try:
        return _instant(item, what)
    except InvalidInput:
        hint = "Write 2h, 3d, today, 2026-01-31 or 2026-01-31T09:30Z."
        raise InvalidInput(f"{what} {item!r} is not a date or time.", hint=hint) from None


def json_object(item: Any, what: str) -> dict[str, Any]:
    """A JSON object, from text or already parsed."""
    import json

    try:
        content = json.loads(item) if isinstance(item, str) else item
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{what} is not valid JSON: {error}.", hint='Write {"name": "value"}.') from None
    if not isinstance(content, dict):
        raise InvalidInput(f"{what} must be a JSON object.", hint='Write {"name": "value"}.')
    return content


def _receipt(item: Any, what: str) -> Any:
    """A receipt in JSON, from text or already parsed."""
    from mnemarch.model.event import Receipt

    return Receipt.of(json_object(item, what))


def _parsed_by(kind: Any) -> Reader:
    return lambda item, what: kind.parse(_text(item, what))


def _value(name: str, class_name: str) -> Type:
    """The type of a value that one verb returns and another takes."""

    def read_back(item: Any, what: str) -> Any:
        kind = kind_of(class_name)
        return item if isinstance(item, kind) else read_value(kind, item, what)

    return Type(name, read_back, lambda: {"type": "object"})


def _string() -> dict[str, Any]:
    return {"type": "string"}


def _one_of(name: str, module: str, class_name: str, metavar: str, sample: str = "") -> Type:
    """The type of a word from a closed vocabulary, which is loaded at first use."""

    def vocabulary() -> Any:
        __import__(module)
        return getattr(sys.modules[module], class_name)

    def read_word(item: Any, what: str) -> Any:
        words, word = vocabulary(), _text(item, what)
        if hasattr(words, "parse"):
            return words.parse(word)
        if word not in words:
            raise InvalidInput(f"{word!r} is not a {name}.", hint=f"Use one of: {', '.join(words)}.")
        return word

    def schema() -> dict[str, Any]:
        return {"type": "string", "enum": [str(each) for each in vocabulary()]}

    return Type(name, read_word, schema, metavar, sample)


def _claimed() -> dict[str, Any]:
    """The kinds with a bucket. Units of the other kinds are not made by claiming them (R4)."""
    from mnemarch.policy.kinds import kinds_where

    return {"type": "string", "enum": sorted(kinds_where(lambda rules: rules.bucket is not None))}


# The command line reads these two from standard input if the argument is `-`. OUTPUT need not be UTF-8.
TEXT = Type("text", _text, _string, "TEXT|-", '"..."')
OUTPUT = Type("output", _text, _string, "TEXT|-")
WORDS = Type("words", _text, _string, "TEXT", '"..."')
ID = Type("id", _text, _string, "ID", EXAMPLE_ID)
CITATION = Type("citation", _parsed_by(Citation), _string, "CITATION", "test:tests/test_checkout.py::test_retry")
RECEIPT = Type("receipt", _receipt, lambda: {"type": "object"}, "RECEIPT|-", "receipt.json")
ACTOR = Type("actor", _parsed_by(Actor), _string, "KIND:ID")
LEVEL = _one_of("level", "mnemarch.model.caller", "Level", "LEVEL")
KIND = _one_of("kind", "mnemarch.model.unit", "Kind", "KIND")
CLAIMED = replace(KIND, read=_text, schema=_claimed)
STATUS = _one_of("status", "mnemarch.model.unit", "Status", "STATUS")
SIGNAL = _one_of("signal", "mnemarch.model.unit", "Signal", "SIGNAL", "pr_merged")
STRENGTH = _one_of("strength", "mnemarch.model.decision", "Strength", "STRENGTH")
RELATION = _one_of("relation", "mnemarch.model.decision", "RelationType", "RELATION")
ANCHOR_KIND = _one_of("kind of anchor", "mnemarch.model.decision", "AnchorKind", "KIND")
NUMBER = Type("number", _number, lambda: {"type": "integer"}, "N")
SHARE = Type("share", _share, lambda: {"type": "number", "minimum": 0, "maximum": 1}, "N")
FLOOR = Type("floor", _floor, lambda: {"anyOf": [SHARE.schema(), {"const": "auto"}]}, "N|auto")
INSTANT = Type("instant", _instant, lambda: {"type": "string", "format": "date-time"}, "ISO")
DURATION = Type("duration", _duration, lambda: {"type": "string"}, "TIME")
SINCE = Type("since", _since, lambda: {"type": "string"}, "WHEN")
FLAG = Type("flag", _flag, lambda: {"type": "boolean"})
PROPOSAL, RULE = _value("proposal", "DecisionProposal"), _value("rule", "CodeRule")
OBJECT = Type("object", json_object, lambda: {"type": "object"}, "JSON|@FILE")
# Files and commands of this machine. Over a network, a report is sent as its text, and the others can't be sent.
PATH = Type("path", _text, _string, "FILE", "memory.jsonl")
REPORT = Type("report", _text, _string, "FILE", "report.xml")
COMMAND = Type("command", _text, _string, "TEXT", '"..."')
# Only a program can pass these.
SEAT = Type("seat")
PROGRESS = Type("progress")
PYTHON = Type("python")


def record_type(name: str, takes: tuple[Parameter, ...], example: str, made: Callable[..., Any] = dict) -> Type:
    """The type of a JSON object with these fields. `made` converts it for the verb."""
    known = {field.name: field for field in takes}

    def read_record(item: Any, what: str) -> Any:
        record: Mapping[str, Any] = json_object(item, what)
        unknown = sorted(record.keys() - known.keys())
        if unknown:
            raise InvalidInput(
                f"{what}: no {name}: it has {', '.join(unknown)}.", hint=f"{example}, say; also: {', '.join(known)}."
            )
        content = {key: read(known[key], part, f"{what}: {key}") for key, part in record.items() if part is not None}
        missing = [key for key, field in known.items() if field.default is REQUIRED and key not in content]
        if missing:
            raise InvalidInput(f"{what}: no {name}: it needs {', '.join(missing)}.", hint=f"{example}, say.")
        return made(**content)

    return Type(name, read_record, lambda: schema_of(takes), "JSON lines")


# Parameters of several verbs


def version_of(what: str) -> Parameter:
    says = f"the version of {what} that you saw; a conflict if it changed since"
    return Parameter("expected_version", NUMBER, says, None)


def progress(says: str) -> Parameter:
    """The parameter for a progress counter. The last word of `says` is the thing that is counted."""
    return Parameter("progress", PROGRESS, says, None)


def at_most(default: int) -> Parameter:
    return Parameter("limit", NUMBER, f"how many at most (default: {default})", default)


# The results of verbs: as JSON and back, their JSON schemas, and which verbs a network serves


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
    hint = "Pass it unchanged, as the server returned it."
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


@cache
def served() -> dict[str, Verb]:
    """The verbs with all required parameters available over a network, by name."""
    from mnemarch.verbs import VERBS

    return {verb.name: verb for verb in VERBS if verb.profile and _is_complete(verb)}


def _is_complete(verb: Verb) -> bool:
    sent = {each.name for each in verb.sent}
    return all(each.name in sent or each.default is not REQUIRED or each.type is SEAT for each in verb.takes)
