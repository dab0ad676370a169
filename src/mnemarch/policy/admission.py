"""Checks of all input, before anything is written: texts, names, numbers, claims, signals, and argument types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cache, wraps

from mnemarch.errors import Hint, InvalidInput
from mnemarch.lazy import Lazy
from mnemarch.model.caller import Actor, Caller, Level, Scope, checked_id
from mnemarch.model.json_text import canonical_json
from mnemarch.model.stamps import blake2b, checked_instant
from mnemarch.model.value import member_of, replace
from mnemarch.text.secrets import redacted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from mnemarch.model import unit as units
    from mnemarch.model.unit import Claim, Signal

    F = TypeVar("F", bound=Callable[..., Any])
    C = TypeVar("C", bound=type)
    T = TypeVar("T")

else:
    units = Lazy("mnemarch.model.unit")  # A process that only logs checks no claim.

NAME_CHARS_MAX = 256
KEY_CHARS_MAX = 512
# The attributes that only the program sets. `kept_as` and `kept_by` mark units that it keeps without a verification.
_OF_THE_PROGRAM = {"kept_as", "kept_by", "distrusted", "tests_expected"}
# The kinds that only `seat.decisions`, `seat.core` and `seat.items` create (R4), each with a hint that says how.
_MADE_OTHERWISE = {
    "decision": Hint("make a decision"),
    "policy": Hint("lay down a policy"),
    "evidence": Hint("keep evidence"),
    "anchor": Hint("leave an anchor"),
    "core": Hint("append to a section"),
    "item": Hint("keep an item"),
}


def checked_text(text: Any, what: str, bytes_max: int) -> str:
    """Return `text` if it is not blank, is valid Unicode and is not too long."""
    if not isinstance(text, str):
        raise InvalidInput(f"{what} must be text, not {type(text).__name__}.", hint="Pass a string.")
    if not text.strip():
        raise InvalidInput(f"{what} is empty.", hint="Nothing was stored. Give a text.")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{what} is not valid Unicode at character {error.start}.", hint="Decode it first."
        ) from None
    if size > bytes_max:
        raise InvalidInput(
            f"{what} has {size} bytes; the limit is {bytes_max}.",
            hint="Store a summary and cite the source, or raise limits.text_bytes_max in mnemarch.toml.",
        )
    return text


def checked_name(name: Any, what: str, chars_max: int = NAME_CHARS_MAX) -> str:
    """Return `name` if it is short, printable and holds no secret. Names are stored and printed unchanged."""
    named = checked_id(name, what)
    _, kinds = redacted(named)
    problem = f"holds a secret ({', '.join(kinds)})" if kinds else ""
    if len(named) > chars_max:
        problem = f"has {len(named):,} characters; the limit is {chars_max}"
    elif not named.isprintable() and any(char < " " or "\x7f" <= char <= "\x9f" for char in named):
        problem = f"holds a control character: {named!r}"
    if problem:
        raise InvalidInput(f"{what[0].upper()}{what[1:]} {problem}.", hint="Use another name, such as a hash of it.")
    return named


def checked_mapping(unchecked: Any, what: str) -> dict[str, Any]:
    if not isinstance(unchecked, dict):
        raise InvalidInput(f"{what} must be a dictionary, not {type(unchecked).__name__}.", hint='Use {"name": ...}.')
    return dict(unchecked)


def checked_list(unchecked: Any, what: str) -> list[Any]:
    """`unchecked` as a list. A single string is refused: it would pass as a list of characters."""
    if not isinstance(unchecked, list | tuple | set | frozenset):
        raise InvalidInput(f"{what} must be a list, not {type(unchecked).__name__}.", hint="Put the value in [ ].")
    return list(unchecked)


_KEY_DIGITS = 32
_HEX = frozenset("0123456789abcdef")


def checked_key(key: str) -> str:
    """The stored form of an idempotency key: its hash. A key may repeat the text, and a key can't be erased (R16).

    A key that is already such a hash is returned unchanged.
    """
    checked_name(key, "an idempotency key", KEY_CHARS_MAX)
    mark, _, digest = key.partition(":")
    if mark == "key" and len(digest) == _KEY_DIGITS and _HEX.issuperset(digest):
        return key
    return f"key:{blake2b(key.encode(), digest_size=16).hexdigest()}"


def checked_count(number: Any, what: str, most: int) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= most:
        hint = f"Give a number from 0 to {most}."
        raise InvalidInput(f"{what} must be a whole number from 0 to {most}, not {number!r}.", hint=hint)
    return number


def checked_share(number: Any, what: str) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 1:
        raise InvalidInput(f"{what} must be a number from 0 to 1, not {number!r}.", hint="The usual value is 0.5.")
    return float(number)


def checked_signal(signal: str) -> Signal:
    return member_of(units.Signal, signal, "signal")


def default_level(actor: Actor, scope: Scope) -> Level:
    """The level of a claim that names none: project for a person, worktree for the other actors (R20)."""
    if actor.kind == "human" and scope.project is not None:
        return Level.PROJECT
    return Level.WORKTREE if scope.worktree is not None else scope.level


def checked_claim(claim: Claim, caller: Caller, bytes_max: int) -> Claim:
    """The claim with every field checked and converted. A person vouches for the claims that they make (R2)."""
    unchecked: Any = claim
    if not isinstance(unchecked, units.Claim):
        raise InvalidInput(f"{unchecked!r} is not a claim.", hint=Hint("claim"))
    decay = None if claim.decay_policy is None else member_of(units.DecayPolicy, claim.decay_policy, "decay policy")
    cited = checked_list(claim.citations, "citations")
    for citation in cited:
        if not isinstance(citation, units.Citation):
            raise InvalidInput(f"{citation!r} is not a citation.", hint=Hint("cite"))
    kind = member_of(units.Kind, claim.kind, "kind of unit", but=_MADE_OTHERWISE)
    attributes = checked_mapping(claim.attributes, "attributes")
    if _OF_THE_PROGRAM & attributes.keys():
        raise InvalidInput(
            f"A claim can't set {', '.join(sorted(_OF_THE_PROGRAM & attributes.keys()))}: the program sets it.",
            hint="Leave it out of the attributes.",
        )
    actor, scope = caller.actor, caller.scope
    level = default_level(actor, scope) if claim.level is None else Level.parse(claim.level)
    scope.at(level)
    if actor.kind == "human" and level >= Level.PROJECT and kind not in _MADE_OTHERWISE:
        cited.append(units.Citation.human(actor.id))
    if attributes:
        canonical_json(attributes)  # Raises now, before anything of a batch is stored.
    return units.Claim(
        content=checked_text(claim.content, "The content", bytes_max),
        kind=kind,
        level=level,
        domain=checked_name(claim.domain, "a domain"),
        citations=tuple(dict.fromkeys(cited)),
        importance=checked_share(claim.importance, "Importance"),
        occurred_at=None if claim.occurred_at is None else checked_instant(claim.occurred_at, "occurred_at"),
        session=None if claim.session is None else checked_name(claim.session, "a session"),
        attributes=attributes,
        key=None if claim.key is None else checked_key(claim.key),
        decay_policy=decay,
        seen=claim.seen,
    )


def refuse_made_otherwise(claims: Iterable[Claim]) -> None:
    """Raise for kinds that a claim can't create, such as decisions, policies and evidence (R4)."""
    for claim in claims:
        hint = _MADE_OTHERWISE.get(str(getattr(claim, "kind", "")))
        if hint is not None:
            raise InvalidInput(f"A unit of the kind {claim.kind} can't be made by a claim (R4).", hint=hint)


# By the name in an annotation: the accepted types, and their name in messages.
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
    """Decorate a class: its public methods raise `InvalidInput` for arguments that don't fit their annotations."""
    for name, method in list(vars(cls).items()):
        if name[0] != "_" and hasattr(method, "__code__"):
            setattr(cls, name, typed(method))
    return cls


def typed(function: F) -> F:
    """Decorate one function in the same way."""
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
def _parts(annotation: str) -> list[tuple[str, list[str]]]:
    """The alternatives of an annotation: each its name, and the annotations in its brackets."""
    parts = []
    for alternative in _split(annotation, "|"):
        name, _, inner = alternative.partition("[")
        parts.append((name, _split(inner[:-1], ",")))
    return parts


def _split(annotation: str, at: str) -> list[str]:
    """Split an annotation at a character, except inside brackets."""
    parts, depth = [""], 0
    for char in annotation:
        depth += (char == "[") - (char == "]")
        if char == at and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part.strip()]


def _fits(item: Any, annotation: str) -> bool:
    return any(_is(item, name, inner) for name, inner in _parts(annotation))


def _is(item: Any, name: str, inner: list[str]) -> bool:
    if name not in _TYPES:  # A class of this package. It is compared by name, so that its module need not be loaded.
        return any(base.__name__ == name for base in type(item).__mro__)
    if not isinstance(item, _TYPES[name][0]) or (isinstance(item, bool) and name in {"int", "float"}):
        return False
    if name == "Sequence":
        return not isinstance(item, str | bytes) and all(_fits(each, inner[0]) for each in item)
    if name == "tuple":
        return len(item) == len(inner) and all(map(_fits, item, inner))
    return True


# Settings

# The upper bound of numeric settings: beyond what any machine can use, and small enough for all arithmetic.
NUMBER_MAX = 1_000_000_000


def require_valid(holds: bool, name: str, setting: Any, allowed: str) -> None:
    if not holds:
        raise InvalidInput(
            f"{name} must be {allowed}, not {setting!r}.",
            hint="Correct the configuration; docs/reference/configuration.md has all settings.",
        )


def require_between(name: str, setting: Any, kind: str, least: float, most: float) -> None:
    """Raise unless the setting is a number of this kind within these bounds."""
    holds = type(setting) in ((int,) if kind == "int" else (int, float)) and least <= setting <= most
    words = "a whole number" if kind == "int" else "a number"
    require_valid(holds, name, setting, f"{words} from {least} to {most}")


def changed_settings(default: T, changes: Any, name: str) -> T:
    """A section of settings: `changes` itself if it is one, else the default with these changes applied.

    An unknown name is an error.
    """
    if isinstance(changes, type(default)):
        return changes
    if not hasattr(changes, "keys"):
        raise InvalidInput(f"{name} must be a table, not {changes!r}.", hint=f"Write [{name}], or give a mapping.")
    fields: Any = type(default).__match_args__  # type: ignore[attr-defined]
    if unknown := [field for field in changes if field not in fields]:
        raise InvalidInput(f"There is no setting {name}.{unknown[0]}.", hint=f"[{name}] knows: {', '.join(fields)}.")
    settings = {field: tuple(item) if isinstance(item, list) else item for field, item in changes.items()}
    return replace(default, **settings)
