"""Imports notes from other memories as unverified claims (R2, R20)."""

from __future__ import annotations

from contextlib import suppress

from mnemarch.errors import InvalidInput, NotAllowed
from mnemarch.files import path_inside
from mnemarch.importers.source import Note
from mnemarch.log.act import Act, Log
from mnemarch.log.projection import keys_of
from mnemarch.log.transfer import ExportFile
from mnemarch.model.caller import DOCTOR, ActorKind, Caller, Level, Scope
from mnemarch.model.event import Event, EventType
from mnemarch.model.stamps import blake2b
from mnemarch.model.unit import IMPORTED, KEPT_AS, LIVE, Citation, CitationKind, Claim, Kind, Status, Unit
from mnemarch.model.upkeep import ImportedClaims, Problem
from mnemarch.model.value import Frozen, replace
from mnemarch.policy.admission import checked_name, checked_text
from mnemarch.text.canonical import merge_key, mergeable
from mnemarch.text.prompt import has_fence, without_fenced
from mnemarch.text.secrets import redacted
from mnemarch.units.conflicts import open_links
from mnemarch.units.finding import live_with_same_text, refusal_to_repeat
from mnemarch.units.life import approve, reject, supersede
from mnemarch.units.remember import Intake, record_unit
from mnemarch.units.undo import IMPORTER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from mnemarch.stores.sql.reader import Reader

_IMPORT, _REPLACES = "import", "import_replaces"
_ENTRIES_MAX = 50
# Units of one import that the inbox looks at. More would delay the inbox.
WAITING_MAX = 2_000
_VERSIONS_MAX = 1_000
_SHOWN_MAX, _TAGS_MAX, _TAG_CHARS_MAX = 5, 20, 60
# Kinds that are imported. Decisions are made here, preferences belong to a person, and episodes to a task.
_BROUGHT = frozenset({Kind.FACT, Kind.SEMANTIC, Kind.SKILL})
_REPLACED = "its source replaced it"


def exported_notes(path: str, bytes_max: int) -> list[Note]:
    """Notes of the units that are live at the end of a Mnemarch export. The whole file is checked."""
    units: dict[str, dict[str, Any]] = {}
    for _, event in ExportFile(path, bytes_max).events():
        if event.stream.org == DOCTOR:
            continue  # The doctor's trial entries are not knowledge.
        payload, subject = event.payload or {}, event.subject or ""
        if event.type is EventType.UNIT_REMEMBERED and payload:
            units[subject] = payload["unit"] | {"at": event.occurred_at, "place": str(event.stream)}
        elif event.type is EventType.UNIT_ERASED:
            for record in payload["units"]:
                units.pop(record["id"], None)
        elif subject in units:
            units[subject] |= payload.get("set", {})
    names = ("kind", "domain", "importance", "at", "place")
    return [
        Note(text=unit["content"], id=unit_id, **{name: unit[name] for name in names})
        for unit_id, unit in units.items()
        if unit["status"] in LIVE
    ]


class _Draft(Frozen):
    """A note as a claim. `key` and a version number identify the versions of one note in its source."""

    claim: Claim
    key: str
    is_versioned: bool


class _Verdict(Frozen):
    """The verdict on a claim: it is `new` and may replace a unit, or it is `known` or `left_out`."""

    what: str
    number: int = 1
    replaces: Unit | None = None


class Importer:
    """Stores the notes of one caller for the project, as hypotheses that are labelled as imported.

    They open no conflicts and join no units. A text that is known already, or was rejected, is left out.
    """

    def __init__(self, log: Log, caller: Caller, intake: Intake) -> None:
        if caller.actor.kind not in {ActorKind.HUMAN, ActorKind.ORCHESTRATOR}:
            log.act(caller, _refuse)
        self._log, self._caller, self._intake = log, caller, intake
        # The program is the author: if a person were, a rejected text would count as approved.
        self._there = Caller(IMPORTER, caller.scope.at(Level.PROJECT))
        self._redacted: set[str] = set()
        self._left_out = self._known = 0

    def run(
        self,
        notes: Sequence[Note],
        problems: Sequence[Problem],
        *,
        format: str,
        name: str,
        dry_run: bool,
        progress: Callable[[int], None] | None,
    ) -> ImportedClaims:
        """Store notes, a few hundred to a transaction. Repeating an interrupted import continues it."""
        found = list(problems)
        drafts = self._drafts(notes, found, format, name)
        entry = {"format": format, "name": name, "notes": len(notes), "digest": _digest(format, notes)}
        size = max(1, self._log.config.limits.batch_max)
        verdicts: list[_Verdict] = []
        import_id = ""
        for start in range(0, len(drafts), size):
            batch = drafts[start : start + size]
            for draft in batch:
                keys_of(draft.claim.content)
            if dry_run:
                verdicts += self._log.store.read(lambda reader, batch=batch: [self._judged(reader, d) for d in batch])  # type: ignore[misc]
            else:
                import_id, told = self._log.act(self._caller, lambda act, batch=batch: self._taken(act, batch, entry))  # type: ignore[misc]
                verdicts += told
            if progress is not None:
                progress(len(verdicts))
        counts = {what: sum(each.what == what for each in verdicts) for what in ("new", "known", "left_out")}
        new = [draft.claim.content for draft, each in zip(drafts, verdicts, strict=True) if each.what == "new"]
        return ImportedClaims(
            id=import_id,
            units=counts["new"],
            known=counts["known"] + self._known,
            left_out=counts["left_out"] + self._left_out,
            replacing=sum(each.replaces is not None for each in verdicts),
            format=format,
            texts=tuple(new[:_SHOWN_MAX]),
            redacted=tuple(sorted(self._redacted)),
            problems=tuple(found),
            dry_run=dry_run,
        )

    # From notes to claims

    def _drafts(self, notes: Sequence[Note], problems: list[Problem], format: str, name: str) -> list[_Draft]:
        """The claims, each text once. A note that can't be a claim is left out, or reported as a problem."""
        drafts: dict[str, _Draft] = {}
        for note in notes:
            text = (without_fenced(note.text) if has_fence(note.text) else note.text).strip()
            if note.kind not in _BROUGHT or not text:
                self._left_out += 1
                continue
            try:
                content = checked_text(text, "The text", self._log.config.limits.text_bytes_max)
            except InvalidInput as error:
                problems.append(Problem(note.place, error.message.rstrip(".")))
                continue
            content, kinds = redacted(content)
            self._redacted.update(kinds)
            if drafts.setdefault(merge_key(content), draft := self._draft(note, content, format, name)) is not draft:
                self._known += 1
        return list(drafts.values())

    def _draft(self, note: Note, content: str, format: str, name: str) -> _Draft:
        tags = [tag[:_TAG_CHARS_MAX] for tag in note.tags[:_TAGS_MAX]]
        author = (note.author or "")[:_TAG_CHARS_MAX]
        origin = {"import_at": note.place, "import_author": author, "import_tags": tags}
        origin = {"import_from": f"{name} ({format})"} | {part: item for part, item in origin.items() if item}
        at = note.at if note.at is not None and note.at <= self._log.clock() else None
        claim = Claim(
            content=content,
            kind=Kind(note.kind),
            level=Level.PROJECT,
            domain=_domain(note.domain),
            citations=self._cited(note),
            importance=note.importance,
            occurred_at=at,
            attributes={KEPT_AS: IMPORTED, "kept_by": str(self._caller.actor)} | origin,
        )
        known_by = note.id or f"{note.place.partition(':')[0]}\n{mergeable(content)}"
        digest = blake2b(f"{format}\n{known_by}".encode("utf-8", "replace"), digest_size=16).hexdigest()
        return _Draft(claim, f"import:{digest}", bool(note.id))

    def _cited(self, note: Note) -> tuple[Citation, ...]:
        """A citation of the note's lines in its file, if the file is in the working tree."""
        path = None if note.lines is None else path_inside(note.file, self._caller.root)
        if path is not None:
            with suppress(InvalidInput):  # The tree may ignore the file.
                return (self._intake.completed(Citation.file(path, note.lines)),)
        return ()

    # From claims to units

    def _judged(self, reader: Reader, draft: _Draft) -> _Verdict:
        claim, number = draft.claim, 1
        versions = self._versions(reader, draft)
        if versions:
            number, latest = len(versions) + 1, versions[-1]
            texts = [mergeable((event.payload or {"unit": {"content": ""}})["unit"]["content"]) for event in versions]
            is_old = claim.occurred_at is None or claim.occurred_at <= latest.occurred_at
            # An older export, or a note that was erased here, changes nothing.
            if texts[-1] == mergeable(claim.content) or latest.erased or (is_old and mergeable(claim.content) in texts):
                return _Verdict("known")
        if live_with_same_text(reader, self._there.visible_keys, claim.content):
            return _Verdict("known")
        there = Act(reader, self._there, self._log.clock(), self._log.config)  # type: ignore[arg-type]
        if refusal_to_repeat(there, claim) is not None:
            return _Verdict("left_out")
        replaced = reader.unit(versions[-1].subject or "") if versions else None
        return _Verdict("new", number, replaced if replaced is not None and replaced.live else None)

    def _versions(self, reader: Reader, draft: _Draft) -> list[Event]:
        """The events of earlier imports with the same id, or the same text, oldest first."""
        versions: list[Event] = []
        while len(versions) < (_VERSIONS_MAX if draft.is_versioned else 1):
            key = f"{draft.key}:{len(versions) + 1}"
            event = reader.event_for_key(self._there.scope_key, str(IMPORTER), key)
            if event is None:
                break
            versions.append(event)
        return versions

    def _taken(self, act: Act, drafts: Sequence[_Draft], entry: dict[str, Any]) -> tuple[str, list[_Verdict]]:
        """Store the new claims. All claims of one import cite one log entry, which makes them one item of the inbox."""
        there, key = act.by(self._there), f"imported:{entry['digest']}"
        known = there.transaction.event_for_key(there.caller.scope_key, str(IMPORTER), key)
        import_id = "" if known is None else known.id
        verdicts = []
        for draft in drafts:
            verdict = self._judged(act.transaction, draft)
            verdicts.append(verdict)
            if verdict.what == "new":
                import_id = import_id or _recorded(there, entry, key)
                extra = {_IMPORT: import_id} | ({_REPLACES: verdict.replaces.id} if verdict.replaces else {})
                claim = replace(
                    draft.claim,
                    citations=(Citation.log(import_id), *draft.claim.citations),
                    key=f"{draft.key}:{verdict.number}",
                    attributes=dict(draft.claim.attributes) | extra,
                )
                record_unit(there, claim, None)
        return import_id, verdicts


def _refuse(act: Act) -> None:
    raise NotAllowed(
        f"{act.caller.actor} may not import: only a person or an orchestrator may (R4).",
        rule="R4",
        hint="Ask a person or an orchestrator to import it.",
    )


def _recorded(there: Act, entry: dict[str, Any], key: str) -> str:
    """Log the import. Its digest identifies a repetition of the same import."""
    text = f"{entry['notes']:,} notes of {entry['name']} ({entry['format']})"
    payload = {"kind": _IMPORT, "text": text, "data": {_IMPORT: entry}}
    event, _ = there.record(EventType.LOGGED, payload, subject=_subject(there.caller.scope), key=key)
    return event.id


def _subject(project: Scope) -> str:
    """The subject of a project's import entries in the log."""
    return f"imports:{project.key}"


def _digest(format: str, notes: Sequence[Note]) -> str:
    total = blake2b(format.encode(), digest_size=16)
    for note in notes:
        total.update(f"\n{note.id}\n{note.at}\n{note.text}".encode("utf-8", "replace"))
    return total.hexdigest()


def _domain(name: str) -> str:
    with suppress(InvalidInput):
        return checked_name(name, "a domain") if name else "global"
    return "global"


# The inbox


def imported_units(reader: Reader, project: Scope, import_id: str) -> list[Unit]:
    """The units of one import that nobody has judged, oldest first."""
    return _unjudged(reader.units_citing([project.key], CitationKind.LOG, [import_id]), import_id)


def _unjudged(units: Sequence[Unit], import_id: str) -> list[Unit]:
    return [unit for unit in units if unit.status is Status.HYPOTHESIS and unit.attributes.get(_IMPORT) == import_id]


def waiting_imports(reader: Reader, project: Scope) -> dict[str, list[Unit]]:
    """The imported units of a project that nobody has judged, by import. A large import is cut off."""
    waiting: dict[str, list[Unit]] = {}
    for entry in reader.events_of_subject(_subject(project), last=_ENTRIES_MAX):
        newest = reader.newest_citing([project.key], CitationKind.LOG, entry.id, WAITING_MAX)
        units = _unjudged(newest[::-1], entry.id)
        if not units and len(newest) == WAITING_MAX:
            units = imported_units(reader, project, entry.id)[:WAITING_MAX]
        if units:
            waiting[entry.id] = units
    return waiting


def replacing(units: Sequence[Unit]) -> int:
    """The number of units that replace a unit of an earlier import."""
    return sum(_REPLACES in unit.attributes for unit in units)


def judge_imported(act: Act, import_id: str, unit_ids: Sequence[str], rejection: str | None) -> None:
    """Confirm or reject some units of one import, for a person. A confirmed unit supersedes the unit it replaces."""
    if act.caller.actor.kind is not ActorKind.HUMAN:
        raise NotAllowed(
            f"{act.caller.actor} may not accept an import: only a person may (R2).",
            rule="R2",
            hint="Ask a person, or claim single facts and cite tests.",
        )
    there = act.by(Caller(act.caller.actor, act.caller.scope.at(Level.PROJECT)))
    for unit in _unjudged([*act.transaction.units(unit_ids).values()], import_id):
        if rejection is not None:
            reject(there, unit.id, rejection, None)
            continue
        approved = approve(there, unit.id, None)
        replaced = act.transaction.unit(str(unit.attributes.get(_REPLACES, "")))
        if replaced is not None and replaced.live and replaced.superseded_by is None:
            supersede(there, unit.id, replaced.id, _REPLACED, None, None)
        else:
            open_links(there, approved, is_new=True)
