"""Which actors may do which acts at which level (G22-G23, R4).

The table is data. A project can tighten it, and needs an explicit setting to loosen it.
"""

from __future__ import annotations

from collections.abc import Mapping

from mnemarch.errors import InvalidInput, NotAllowed
from mnemarch.lazy import Any
from mnemarch.model.caller import GATE, Actor, ActorKind, Level
from mnemarch.model.unit import Kind, Unit
from mnemarch.model.value import Frozen, Names, member_of


class Deed(Names):
    """An act that needs permission: writing content, or a step in a unit's lifecycle."""

    WRITE = "write"
    DECIDE = "decide"
    ARCHIVE = "archive"
    REVIVE = "revive"
    PRUNE = "prune"
    DECAY = "decay"
    APPROVE = "approve"
    REJECT = "reject"
    ANNOTATE = "annotate"
    SUPERSEDE = "supersede"
    RESOLVE = "resolve"
    ERASE = "erase"
    CITE = "cite"
    USE = "use"
    VALIDATE = "validate"
    UNBLOCK = "unblock"
    UNDO = "undo"


_AGENT, _ORCHESTRATOR, _HUMAN, _SYSTEM = ActorKind
_KEEPERS = dict.fromkeys(Level, frozenset({_SYSTEM, _HUMAN}))
_JUDGES = dict.fromkeys(Level, frozenset({_HUMAN, _ORCHESTRATOR})) | {Level.ORG: frozenset({_HUMAN})}

DEFAULT_TABLE: dict[Deed, dict[Level, frozenset[ActorKind]]] = {
    Deed.WRITE: {
        Level.TASK: frozenset({_AGENT, _ORCHESTRATOR}),
        Level.WORKTREE: frozenset({_AGENT, _ORCHESTRATOR}),
        Level.PROJECT: frozenset({_ORCHESTRATOR, _HUMAN}),
        Level.ORG: frozenset({_HUMAN, _SYSTEM}),
    },
    **dict.fromkeys((Deed.ARCHIVE, Deed.PRUNE, Deed.DECAY), _KEEPERS),
    Deed.REVIVE: {level: judges | {_SYSTEM} for level, judges in _JUDGES.items()},
    **dict.fromkeys((Deed.APPROVE, Deed.REJECT, Deed.ANNOTATE, Deed.SUPERSEDE, Deed.RESOLVE), _JUDGES),
    **dict.fromkeys((Deed.DECIDE, Deed.ERASE, Deed.VALIDATE, Deed.UNBLOCK, Deed.UNDO), _JUDGES),
    **dict.fromkeys((Deed.CITE, Deed.USE), dict.fromkeys(Level, frozenset(ActorKind))),
}
DEFAULT_VALIDATED = frozenset({Level.PROJECT, Level.ORG})


def can_write(kind: ActorKind | str, level: Level | str) -> bool:
    """Whether this kind of actor may write at this level (G22, G23). False for an unknown kind or level."""
    try:
        return ActorKind(kind) in DEFAULT_TABLE[Deed.WRITE][Level.parse(level)]
    except (TypeError, ValueError, InvalidInput):
        return False


def require_outsider(actor: Actor) -> None:
    """Raise for the names of actors that are reserved for the program itself (R4)."""
    if actor.kind is ActorKind.SYSTEM or actor == GATE:
        raise NotAllowed(
            f"{actor} is the program's own name (rule R4: nobody else uses it).",
            rule="R4",
            hint="Use a name of your own: agent:NAME, or human:NAME for a person.",
        )


class Policy(Frozen):
    """The permission table that is in force."""

    table: Mapping[Deed, Mapping[Level, frozenset[ActorKind]]] = DEFAULT_TABLE
    validated_levels: frozenset[Level] = DEFAULT_VALIDATED

    def allows(self, kind: ActorKind, deed: Deed, level: Level) -> bool:
        return kind in self.table.get(deed, {}).get(level, frozenset())

    def require(self, actor: Actor, deed: Deed, level: Level, what: str) -> None:
        """Raise NotAllowed unless this actor may do the deed at this level. `what` names the deed in the message."""
        if not self.allows(actor.kind, deed, level):
            allowed = ", ".join(sorted(self.table[deed][level])) or "nobody"
            rule = "G23" if deed is Deed.WRITE else "R4"
            raise NotAllowed(
                f"{actor} may not {what} at {level} scope (policy rule {rule}).",
                rule=rule,
                hint=f"At {level} scope, only these may: {allowed}.",
            )

    def requires_validation(self, level: Level) -> bool:
        return level in self.validated_levels


def policy_from(settings: Mapping[str, Any]) -> Policy:
    """The policy from `[policy]` in mnemarch.toml. A setting wider than the default needs `allow_unsafe = true`."""
    table = {deed: dict(levels) for deed, levels in DEFAULT_TABLE.items()}
    validated = DEFAULT_VALIDATED
    _shaped(settings, dict, "[policy]", "a table")
    unsafe = _shaped(settings.get("allow_unsafe", False), bool, "policy.allow_unsafe", "true or false")
    for name, setting in settings.items():
        if name == "allow_unsafe":
            continue
        if name == "requires_validation":
            levels = _shaped(setting, list, "policy.requires_validation", "a list of levels")
            validated = frozenset(Level.parse(level) for level in levels)
            _refuse_loosening(DEFAULT_VALIDATED - validated, "requires_validation drops", unsafe)
            continue
        if name not in set(Deed):
            raise InvalidInput(f"[policy.{name}] is not an act.", hint=f"Use one of: {', '.join(Deed)}.")
        deed = Deed(name)
        for level_name, kinds in _shaped(setting, dict, f"[policy.{name}]", "a table of levels").items():
            level = Level.parse(level_name)
            named = _shaped(kinds, list, f"policy.{name}.{level_name}", "a list of actors")
            wanted = frozenset(member_of(ActorKind, kind, "kind of actor") for kind in named)
            _refuse_loosening(wanted - table[deed][level], f"{deed} at {level} adds", unsafe)
            table[deed][level] = wanted
    return Policy(table=table, validated_levels=validated)


def _shaped(setting: Any, shape: type, what: str, words: str) -> Any:
    if not isinstance(setting, shape):
        raise InvalidInput(f"{what} must be {words}, not {setting!r}.", hint="Correct it in mnemarch.toml.")
    return setting


def _refuse_loosening(extra: frozenset[Any], what: str, unsafe: bool) -> None:
    if extra and not unsafe:
        raise InvalidInput(
            f"[policy] {what} {', '.join(sorted(map(str, extra)))}: wider than the default (G23, R4).",
            hint="Remove it. If it is meant, set allow_unsafe = true under [policy].",
        )


def owners_of(unit: Unit) -> frozenset[str]:
    """The owners of a preference: the person that it names, else the persons who stated it, else its authors (R20)."""
    owner = unit.attributes.get("owner")
    if owner:
        return frozenset({str(owner)})
    actors = [item.actor for item in unit.provenance]
    return frozenset(actor.id for actor in actors if actor.kind is ActorKind.HUMAN) or frozenset(map(str, actors))


def is_of_another(unit: Unit, person: str | None) -> bool:
    """Whether a unit is a preference of persons other than `person`, for whom the agent works."""
    is_owned = "owner" in unit.attributes or any(item.actor.kind is ActorKind.HUMAN for item in unit.provenance)
    return unit.kind is Kind.PREFERENCE and person is not None and is_owned and person not in owners_of(unit)
