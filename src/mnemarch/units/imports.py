"""What another memory exported, taken as claims: nobody here has verified any of it (R2, R20)."""

from __future__ import annotations

from mnemarch.errors import NotAllowed
from mnemarch.log.act import Act
from mnemarch.log.transfer import ExportFile
from mnemarch.model.caller import ActorKind, Caller, Level
from mnemarch.model.event import EventType
from mnemarch.model.outcome import ImportedClaims
from mnemarch.model.stamps import new_id
from mnemarch.model.unit import IMPORTED, KEPT_AS, LIVE, Claim, Kind, Status
from mnemarch.policy.admission import checked_name, checked_text
from mnemarch.units.conflicts import open_links
from mnemarch.units.evidence import approve, reject
from mnemarch.units.remember import record_unit
from mnemarch.units.same_text import live_with_same_text, refusal_to_repeat
from mnemarch.units.undo import IMPORTER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from mnemarch.model.caller import Scope
    from mnemarch.model.unit import Unit
    from mnemarch.stores.sql.reader import Reader

_IMPORT = "import"
_WAITING_MAX = 10_000
# Decisions are made here, preferences belong to a person, and episodes to whoever lived through them.
_BROUGHT = frozenset({Kind.FACT, Kind.SEMANTIC, Kind.SKILL})


def live_units(path: str, bytes_max: int) -> list[Mapping[str, Any]]:
    """What an export says of the units that are live at its end; the whole file is checked."""
    units: dict[str, dict[str, Any]] = {}
    for _, event in ExportFile(path, bytes_max).events():
        payload, subject = event.payload or {}, event.subject or ""
        if event.type is EventType.UNIT_REMEMBERED and payload:
            units[subject] = payload["unit"] | {"occurred_at": event.occurred_at, "from": str(event.stream)}
        elif event.type is EventType.UNIT_ERASED:
            for record in payload["units"]:
                units.pop(record["id"], None)
        elif subject in units:
            units[subject] |= payload.get("set", {})
    return [unit for unit in units.values() if unit["status"] in LIVE]


def bring_in(act: Act, units: list[Mapping[str, Any]], path: str) -> ImportedClaims:
    """Store them for the project as hypotheses that are labelled as imported; together they are one item to confirm.

    They contest nothing and join nothing: a text that is here already, or was rejected, is left out.
    """
    importer = act.caller.actor
    if importer.kind not in {ActorKind.HUMAN, ActorKind.ORCHESTRATOR}:
        raise NotAllowed(
            f"{importer} may not import: a person or an orchestrator does (R4).",
            rule="R4",
            hint="Ask a person or the lead to import it.",
        )
    # The program keeps them, nobody says them: what a person says again would be approved.
    there = Act(act.transaction, Caller(IMPORTER, act.caller.scope.at(Level.PROJECT)), act.now, act.config)
    during = {} if act.caller.session is None else {"import_session": act.caller.session}
    import_id, brought, known, left_out = new_id(), 0, 0, 0
    for unit in units:
        origin = {"import": import_id, "import_from": f"{path}: {unit['from']}"} | during
        claim = Claim(
            content=checked_text(unit["content"], "A unit's content", act.config.limits.text_bytes_max),
            kind=Kind(unit["kind"]),
            level=Level.PROJECT,
            domain=checked_name(unit["domain"], "a domain"),
            importance=unit.get("importance", 0.5),
            occurred_at=unit["occurred_at"],
            attributes={KEPT_AS: IMPORTED, "kept_by": str(importer)} | origin,
        )
        if live_with_same_text(act.transaction, there.caller.visible_keys, claim.content):
            known += 1
        elif claim.kind not in _BROUGHT or refusal_to_repeat(there, claim) is not None:
            left_out += 1
        else:
            record_unit(there, claim, None)
            brought += 1
    return ImportedClaims(id=import_id, units=brought, known=known, left_out=left_out)


def waiting_imports(reader: Reader, project: Scope) -> dict[str, list[Unit]]:
    """The imported units of a project that nobody has judged, by import."""
    waiting: dict[str, list[Unit]] = {}
    for unit in reader.units_in([project.key], status=Status.HYPOTHESIS, live=True, limit=_WAITING_MAX):
        if unit.attributes.get(KEPT_AS) == IMPORTED and _IMPORT in unit.attributes:
            waiting.setdefault(str(unit.attributes[_IMPORT]), []).append(unit)
    return waiting


def judge_import(act: Act, import_id: str, rejection: str | None) -> None:
    """A person confirms or rejects everything that one import brought in."""
    if act.caller.actor.kind is not ActorKind.HUMAN:
        raise NotAllowed(
            f"{act.caller.actor} may not confirm an import: only a person does (R2).",
            rule="R2",
            hint="Ask a person, or claim what you can show by a test.",
        )
    there = Act(act.transaction, Caller(act.caller.actor, act.caller.scope.at(Level.PROJECT)), act.now, act.config)
    for unit in waiting_imports(act.transaction, there.caller.scope).get(import_id, []):
        if rejection is not None:
            reject(there, unit.id, rejection, None)
        else:
            open_links(there, approve(there, unit.id, None), is_new=True)
