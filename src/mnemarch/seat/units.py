"""The verbs on existing units: show them, add evidence, decide about them, retire them."""

from __future__ import annotations

from mnemarch.errors import Conflict, Hint, InvalidInput, NotFound, StoreUnavailable
from mnemarch.lazy import Lazy
from mnemarch.model.caller import Actor, Caller, Level, Scope, checked_id
from mnemarch.model.value import replace
from mnemarch.policy.admission import checked_count, checked_list, checked_signal, checked_text
from mnemarch.policy.trust import aged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from typing import Any, TypeVar

    from mnemarch.code.codebase import Codebase
    from mnemarch.decisions import guard
    from mnemarch.log.act import Act
    from mnemarch.model.event import Event
    from mnemarch.model.outcome import Dispute, Explanation, Refused, Related, Stored
    from mnemarch.model.unit import Citation, Kind, Status, Unit
    from mnemarch.model.upkeep import Erased, Reflected, Undone
    from mnemarch.services.engine import Engine
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.units import explain, finding, life
    from mnemarch.units.remember import Intake

    T = TypeVar("T")
    Progress = Callable[[int], None]
else:
    # Who only logs needs none of these.
    guard = Lazy("mnemarch.decisions.guard")
    explain, finding, life = (Lazy(f"mnemarch.units.{name}") for name in ("explain", "finding", "life"))

_PAGE_MAX = 10_000
_REASON_BYTES_MAX = 4_096
_NO_REASON = "no reason given"


class UnitVerbs:
    """The verbs of a seat on units. The only state is the memory's engine and the caller."""

    __slots__ = ("_engine", "caller")

    def __init__(self, engine: Engine, caller: Caller) -> None:
        self._engine = engine
        self.caller = caller

    @property
    def actor(self) -> Actor:
        return self.caller.actor

    @property
    def scope(self) -> Scope:
        return self.caller.scope

    def get(self, unit_id: str) -> Unit:
        """The unit as it is now, with its confidence decayed to this moment."""
        return self._aged(self._stored(unit_id))

    def units(
        self,
        *,
        kind: Kind | str | None = None,
        status: Status | str | None = None,
        level: Level | str | None = None,
        domain: str | None = None,
        limit: int = 50,
        after: str | None = None,
        ids: Sequence[str] | None = None,
    ) -> list[Unit]:
        """The units that this seat can see, newest first. `after` is the last id of the previous page.

        With `ids`, the units with these ids instead, if this seat may see or inspect them.
        """
        from mnemarch.model.unit import Kind, Status

        checked_count(limit, "limit", _PAGE_MAX)
        if ids is not None:
            asked = self._read(lambda reader: reader.units([self._whole(id) for id in checked_list(ids, "ids")]))
            return [self._aged(unit) for unit in asked.values() if self.caller.may_read(unit.scope)][:limit]
        units = self._read(
            lambda reader: reader.units_in(
                self.caller.visible_keys,
                kind=None if kind is None else Kind.parse(kind),
                status=None if status is None else Status.parse(status),
                level=None if level is None else Level.parse(level),
                domain=None if domain is None else checked_id(domain, "a domain"),
                limit=limit,
                before=None if after is None else self._whole(after),
            )
        )
        return [self._aged(unit) for unit in units]

    def cite(self, unit_id: str, citation: Citation, *, expected_version: int | None = None) -> Unit:
        """Add evidence to a unit. The citation's target is checked."""
        from mnemarch.model.unit import Citation

        if not isinstance(citation, Citation):
            raise InvalidInput(f"{citation!r} is not a citation.", hint=Hint("cite"))
        intake = self._intake()
        completed = intake.completed(citation)
        return self._changed(life.cite, unit_id, completed, expected_version, intake.test_sources([completed]))

    def validate(self, unit_id: str, signal: str, *, expected_version: int | None = None) -> float:
        """Raise or lower a unit's confidence by one signal. Returns the new confidence (G18)."""
        checked, whole = checked_signal(signal), self._whole(unit_id)
        return self._act(lambda act: life.validate(act, whole, checked, expected_version)).confidence

    def use(self, unit_id: str, *, expected_version: int | None = None) -> Unit:
        """Record that this task used a unit. Each task counts once towards publishing it."""
        return self._changed(life.use, unit_id, expected_version)

    def approve(self, unit_id: str, *, expected_version: int | None = None) -> Unit:
        """Approve a unit. A person's approval is evidence."""
        return self._changed(guard.approve, unit_id, expected_version, durable=True)

    def reject(self, unit_id: str, reason: str, *, expected_version: int | None = None) -> Unit:
        """Reject a unit, with a reason. It leaves recall."""
        return self._changed(guard.reject, unit_id, _checked_reason(reason), expected_version, durable=True)

    def withdraw(self, unit_id: str, reason: str, *, expected_version: int | None = None) -> Unit:
        """Take back a claim of your own that nobody else has stated, used or cited."""
        return self._changed(guard.withdraw, unit_id, _checked_reason(reason), expected_version)

    def supersede(self, new_id: str, old_id: str, reason: str, *, expected_version: int | None = None) -> Unit:
        """Replace a unit by another. `expected_version` is that of the old unit. Returns the new unit."""
        why, commit = _checked_reason(reason), self._head()
        new, old = self._whole(new_id), self._whole(old_id)
        try:
            return self._changed(life.supersede, new, old, why, commit, expected_version, durable=True)
        except Conflict:
            self._act(lambda act: life.contest(act, new, old))
            raise

    def archive(self, unit_id: str, reason: str, *, expected_version: int | None = None) -> Unit:
        """Take a unit out of recall. It can be revived."""
        return self._changed(guard.archive, unit_id, _checked_reason(reason), expected_version)

    def revive(self, unit_id: str, reason: str, *, expected_version: int | None = None) -> Unit:
        """Bring an archived unit back."""
        sources = self._intake().test_sources(self._stored(unit_id).citations)
        return self._changed(guard.revive, unit_id, _checked_reason(reason), expected_version, sources)

    def erase(
        self,
        unit_id: str,
        reason: str,
        *,
        copies: bool | Sequence[str] = False,
        dry_run: bool = False,
        expected_version: int | None = None,
    ) -> Erased:
        """Permanently delete a unit or a log entry, and everything derived from it, from the log and all files (R16).

        Other places with the same text are copies. They stay, and the answer lists them. `copies=True` erases them too;
        a list of ids erases only those. With `dry_run` nothing is erased, and the answer says what would be.
        """
        from mnemarch.services.undo import erase

        why, whole = _checked_reason(reason), self._whole(unit_id, finding.any_id)
        what = {"copies": copies, "dry_run": dry_run, "expected_version": expected_version}
        return erase(self._engine, self.caller, whole, why, **what)  # type: ignore[arg-type]

    def undo(
        self,
        actor: Actor | str,
        *,
        reason: str = "",
        session: str | None = None,
        since: datetime | None = None,
        dry_run: bool = False,
    ) -> Undone:
        """Retire the units that an actor wrote in this project and those that rest on them alone.

        The actor's items leave the inbox. `session` and `since` limit the undo to one session or to the time since a
        moment. With `dry_run` nothing changes, and the answer says what would.
        """
        from mnemarch.model.stamps import checked_instant
        from mnemarch.services.undo import undo
        from mnemarch.units.undo import Undoing

        undoing = Undoing(
            actor=Actor.parse(str(actor)),
            session=None if session is None else checked_id(session, "a session"),
            since=None if since is None else checked_instant(since, "since"),
        )
        why = _checked_reason(reason or _NO_REASON)
        found = self._act(lambda act: undo(act, undoing, why, {}, dry_run=True))
        if dry_run:
            return found
        # What others get back is judged by their tests as they are now.
        back = self._read(lambda reader: reader.units(fate.unit_id for fate in found.restored)).values()
        sources = self._intake().test_sources([citation for unit in back for citation in unit.citations])
        return self._act(lambda act: undo(act, undoing, why, sources, dry_run=False), durable=True)

    def revert(self, undo_id: str, *, reason: str = "") -> Undone:
        """Revert an undo. The units that it retired get their former status back."""
        from mnemarch.services.undo import revert

        why = _checked_reason(reason or _NO_REASON)
        whole = self._whole(undo_id, finding.event_id)
        return self._act(lambda act: revert(act, whole, why), durable=True)

    def conflicts(self) -> list[Dispute]:
        """The open contradictions that this seat can see."""
        return self._disputes("contradicts")

    def proposals(self) -> list[Dispute]:
        """The near-duplicates that wait for somebody to merge them or to leave them as they are (`resolve`)."""
        return self._disputes("duplicates")

    def resolve(
        self,
        conflict_id: str,
        *,
        winner: str | None = None,
        both: bool = False,
        reason: str,
        expected_version: int | None = None,
    ) -> Dispute:
        """Decide a conflict or a merge proposal. The winner replaces the other side, which has `expected_version`.

        With `both` there is no winner: the units don't exclude each other, and stay as they are.
        """
        why, link_id = _checked_reason(reason), self._whole(conflict_id, finding.link_id)
        if (winner is None) != bool(both) or (both and expected_version is not None):
            raise InvalidInput(
                "A resolution names a winner, or keeps both sides.",
                hint=Hint("winner or both"),
            )
        if winner is None:
            return self._act(lambda act: life.let_both_hold(act, link_id, why), durable=True)
        commit, kept = self._head(), self._whole(winner)
        return self._act(lambda act: life.resolve(act, link_id, kept, why, commit, expected_version), durable=True)

    def explain(self, unit_id: str) -> Explanation:
        """Explain a unit: its sources, its validity, its confidence and why, its replacement, its users."""
        return self._explained(self._stored(unit_id))

    def _explained(self, unit: Unit) -> Explanation:
        caller, sources = self.caller, self._intake().test_sources(unit.citations)
        explanation = self._read(lambda reader: explain.explained(reader, unit, caller, self._engine.log, sources))
        if caller.root is None or not unit.is_bound_to_code:
            return explanation
        from mnemarch.units.gate import REPLACED_ELSEWHERE

        view = self._engine.codebase(caller.root).view(self.scope.project, by_commit=True)
        check = view.checks([unit]).get(unit.id)
        here = (check.reason, *check.notes) if check is not None else ()
        if unit.superseded_by and view.still_valid([unit], self._read(lambda reader: life.successors(reader, [unit]))):
            here += (REPLACED_ELSEWHERE.format(unit.superseded_by),)
        return replace(explanation, here=tuple(filter(None, here)))

    def related(self, unit_id: str) -> list[Related]:
        """The units that this unit resembles, came from, led to, fixed or replaced, and the reverse; closest first."""
        unit = self._stored(unit_id)
        return self._read(lambda reader: explain.related(reader, unit, self.caller.visible_keys))

    def history(self, unit_id: str) -> list[Event]:
        """The unit's events, oldest first. Their content about units that this seat may not see is left out."""
        whole = self._stored(unit_id).id
        return self._read(lambda reader: explain.told(reader, whole, self.caller.visible_keys))

    # Shared by the verbs

    def _act(self, work: Callable[[Act], T], *, durable: bool = False, together: bool = True) -> T:
        return self._engine.log.act(self.caller, work, durable=durable, together=together)

    def _changed(self, verb: Callable[..., Unit], unit_id: str, *arguments: object, durable: bool = False) -> Unit:
        """The unit after a verb of the folders below, which takes the unit's full id and these arguments."""
        whole = self._whole(unit_id)
        return self._aged(self._act(lambda act: verb(act, whole, *arguments), durable=durable))

    def _read(self, work: Callable[[Reader], T]) -> T:
        return self._engine.store.read(work)

    def reflect(
        self,
        *,
        limit: int | None = None,
        seconds: float | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Reflected:
        """Derive lessons from the project's episodes: what worked, what never worked, what is unsolved (M6).

        It makes at most `limit` lessons in at most `seconds`. The next reflection continues.
        """
        from mnemarch.learning.reflection import Reflecting

        if limit is not None:
            checked_count(limit, "limit", _PAGE_MAX)
        unchecked: Any = seconds
        if unchecked is not None and not (isinstance(unchecked, int | float) and unchecked > 0):
            raise InvalidInput(f"seconds must be a number above 0, not {seconds!r}.", hint="Try seconds=10.")
        self._engine.has_new_units = True
        return Reflecting(self._engine.log, self.caller, self._codebase()).reflect(
            lessons_max=limit, seconds_max=seconds, dry_run=dry_run, progress=progress
        )

    def _codebase(self) -> Codebase | None:
        root = self.caller.root
        return None if root is None else self._engine.codebase(root)

    def _intake(self) -> Intake:
        from mnemarch.units.remember import Intake

        return Intake(self._engine.log, self.caller, self._codebase())

    def _stored(self, unit_id: str) -> Unit:
        """The stored unit. Raises NotFound if this seat may neither see nor inspect it."""
        whole = self._whole(unit_id)
        unit = self._read(lambda reader: reader.unit(whole))
        if unit is None or not self.caller.may_read(unit.scope):
            raise NotFound(f"No unit {unit_id!r} here.", hint=Hint("find the unit"))
        return unit

    def _whole(self, id: str, look: Callable[[Reader, Caller, str], str] | None = None) -> str:
        """The full id for a part of one. `look` finds it; by default among units."""
        checked = checked_id(id, "an id")
        if finding.is_whole(checked):
            return checked
        return self._read(lambda reader: (look or finding.unit_id)(reader, self.caller, checked))

    def _aged(self, unit: Unit) -> Unit:
        log = self._engine.log
        return aged(unit, log.clock(), log.config.trust)

    def _with_current_trust(self, outcome: Stored | Refused) -> Stored | Refused:
        from mnemarch.model.outcome import Stored

        if isinstance(outcome, Stored) and (unit := self._aged(outcome.unit)) is not outcome.unit:
            return replace(outcome, unit=unit)
        return outcome

    def _disputes(self, type: str) -> list[Dispute]:
        """The open disputes. The search for near-duplicates among the newest units runs first."""
        from contextlib import suppress

        from mnemarch.model.unit import LinkType
        from mnemarch.units.conflicts import open_disputes

        with suppress(StoreUnavailable):  # A read-only store lists the disputes that are known.
            self._engine.finder.link_duplicates()
        return self._read(lambda reader: open_disputes(reader, self._readable_keys(reader), LinkType(type)))

    def _readable_keys(self, reader: Reader) -> Sequence[str]:
        """The keys of the scopes that this seat sees, and of those below its project that it may inspect."""
        caller = self.caller
        written = reader.scopes() if caller.inspects else ()
        below = (place.key for scope in written for place in scope.visible if caller.may_read(place))
        return list(dict.fromkeys([*caller.visible_keys, *below]))

    def _head(self) -> str | None:
        """The commit that is checked out at the seat's root, or None outside of a repository."""
        from mnemarch.code import git

        return None if self.caller.root is None else git.head(self.caller.root)

    def _full_hash(self, commit: str | None) -> str | None:
        if commit is None:
            return None
        from mnemarch.model.unit import Citation

        return self._intake().completed(Citation.commit(commit)).ref


def _checked_reason(reason: str) -> str:
    return checked_text(reason, "The reason", _REASON_BYTES_MAX)
