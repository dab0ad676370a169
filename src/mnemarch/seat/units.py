"""The verbs on units that exist: look at them, add evidence, decide about them, retire them."""

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
    from mnemarch.model.citation import Citation
    from mnemarch.model.event import Event
    from mnemarch.model.outcome import Dispute, Explanation, Refused, Related, Stored
    from mnemarch.model.unit import Kind, Status, Unit
    from mnemarch.model.upkeep import Erased, Reflected, Undone
    from mnemarch.services.engine import Engine
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.units import explain, life, lookup
    from mnemarch.units.remember import Intake

    T = TypeVar("T")
    Progress = Callable[[int], None]
else:
    # Who only logs needs none of these.
    guard = Lazy("mnemarch.decisions.guard")
    explain, life, lookup = (Lazy(f"mnemarch.units.{name}") for name in ("explain", "life", "lookup"))

_PAGE_MAX = 10_000
_REASON_BYTES_MAX = 4_096
_NO_REASON = "no reason given"


class UnitVerbs:
    """What a seat can do with units. It holds nothing but its memory's engine and its caller."""

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
        """The unit as it is now, its confidence decayed to this moment."""
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
        """What this seat can see, newest first; `after` is the last id of the page before.

        With `ids` those units instead, as far as this seat may see or inspect them.
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
        """Add evidence to a unit; what it points to is checked."""
        from mnemarch.model.citation import Citation

        if not isinstance(citation, Citation):
            raise InvalidInput(f"{citation!r} is no citation.", hint=Hint("cite"))
        return self._changed(life.cite, unit_id, self._intake().completed(citation), expected_version)

    def validate(self, unit_id: str, signal: str, *, expected_version: int | None = None) -> float:
        """Raise or lower a unit's confidence by one signal; gives the new confidence (G18)."""
        checked, whole = checked_signal(signal), self._whole(unit_id)
        return self._act(lambda act: life.validate(act, whole, checked, expected_version)).confidence

    def use(self, unit_id: str, *, expected_version: int | None = None) -> Unit:
        """Say that this task used a unit; each task counts once towards publishing it."""
        return self._changed(life.use, unit_id, expected_version)

    def approve(self, unit_id: str, *, expected_version: int | None = None) -> Unit:
        """A yes; a human's is evidence."""
        return self._changed(guard.approve, unit_id, expected_version, durable=True)

    def reject(self, unit_id: str, reason: str, *, expected_version: int | None = None) -> Unit:
        """A no, and why: the unit leaves recall."""
        return self._changed(guard.reject, unit_id, _checked_reason(reason), expected_version, durable=True)

    def withdraw(self, unit_id: str, reason: str, *, expected_version: int | None = None) -> Unit:
        """Take back a claim of your own, while nobody else has said, used or cited it."""
        return self._changed(guard.withdraw, unit_id, _checked_reason(reason), expected_version)

    def supersede(self, new_id: str, old_id: str, reason: str, *, expected_version: int | None = None) -> Unit:
        """Put one unit in the place of another; `expected_version` is the old one's. Gives the new unit."""
        why, commit = _checked_reason(reason), self._head()
        new, old = self._whole(new_id), self._whole(old_id)
        try:
            return self._changed(life.supersede, new, old, why, commit, expected_version, durable=True)
        except Conflict:
            self._act(lambda act: life.contest(act, new, old))
            raise

    def archive(self, unit_id: str, reason: str, *, expected_version: int | None = None) -> Unit:
        """Take a unit out of recall; it can be revived."""
        return self._changed(guard.archive, unit_id, _checked_reason(reason), expected_version)

    def revive(self, unit_id: str, reason: str, *, expected_version: int | None = None) -> Unit:
        """Bring an archived unit back."""
        return self._changed(guard.revive, unit_id, _checked_reason(reason), expected_version)

    def erase(
        self,
        unit_id: str,
        reason: str,
        *,
        copies: bool | Sequence[str] = False,
        dry_run: bool = False,
        expected_version: int | None = None,
    ) -> Erased:
        """Delete a unit, or an entry of the log, and what derives from it for good: from the log to the last file.

        Other places with the same text are its copies. They stay and are listed; `copies` erases them too: all, or
        those of these ids. With `dry_run` nothing is erased, and the answer says what would be (R16).
        """
        from mnemarch.services.undo import erase

        why, whole = _checked_reason(reason), self._whole(unit_id, lookup.any_id)
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
        """Retire what an actor wrote in this project and what rests on it alone; its items leave the inbox.

        `session` and `since` limit it to one conversation or to the time since a moment. With `dry_run` nothing
        changes, and the answer says what would.
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
        return self._act(lambda act: undo(act, undoing, why, dry_run=dry_run), durable=True)

    def revert(self, undo_id: str, *, reason: str = "") -> Undone:
        """Take an undo back: what it retired has its former status again."""
        from mnemarch.services.undo import revert

        why = _checked_reason(reason or _NO_REASON)
        whole = self._whole(undo_id, lookup.event_id)
        return self._act(lambda act: revert(act, whole, why), durable=True)

    def conflicts(self) -> list[Dispute]:
        """The open contradictions that this seat can see."""
        return self._disputes("contradicts")

    def proposals(self) -> list[Dispute]:
        """Near-duplicates that wait for somebody to merge them (resolve) or let them be."""
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
        """Decide a conflict or a merge proposal: the winner replaces the other side, seen at `expected_version`.

        With `both` there is no winner: the two do not exclude each other, and stay as they are.
        """
        why, link_id = _checked_reason(reason), self._whole(conflict_id, lookup.link_id)
        if (winner is None) != bool(both) or (both and expected_version is not None):
            raise InvalidInput(
                "A dispute is resolved for a winner, or for both sides as they are.",
                hint=Hint("winner or both"),
            )
        if winner is None:
            return self._act(lambda act: life.let_both_hold(act, link_id, why), durable=True)
        commit, kept = self._head(), self._whole(winner)
        return self._act(lambda act: life.resolve(act, link_id, kept, why, commit, expected_version), durable=True)

    def explain(self, unit_id: str) -> Explanation:
        """Where from, who, when true, how sure and why, replaced by what, used by whom."""
        return self._explained(self._stored(unit_id))

    def _explained(self, unit: Unit) -> Explanation:
        log, caller = self._engine.log, self.caller
        explanation = self._read(
            lambda reader: explain.explained(
                reader, unit, caller.stream, caller.visible_keys, log.clock(), log.config.trust
            )
        )
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
        """What the unit resembled, came from, led to, fixed or replaced, and the reverse; closest first."""
        unit = self._stored(unit_id)
        return self._read(lambda reader: explain.related(reader, unit, self.caller.visible_keys))

    def history(self, unit_id: str) -> list[Event]:
        """The unit's events, oldest first, without what they tell of units that this seat may not see."""
        whole = self._stored(unit_id).id
        return self._read(lambda reader: explain.told(reader, whole, self.caller.visible_keys))

    # Shared by the verbs

    def _act(self, work: Callable[[Act], T], *, durable: bool = False, together: bool = True) -> T:
        return self._engine.log.act(self.caller, work, durable=durable, together=together)

    def _changed(self, verb: Callable[..., Unit], unit_id: str, *arguments: object, durable: bool = False) -> Unit:
        """The unit after a verb of the rooms below, which takes its whole id and these arguments."""
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
        """Make lessons of the project's episodes: what worked, what never did, what nobody has solved (M6).

        At most `limit` lessons, for at most so many `seconds`; what is left is for the next time.
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
        """The unit as it is stored, if this seat may see or inspect it."""
        whole = self._whole(unit_id)
        unit = self._read(lambda reader: reader.unit(whole))
        if unit is None or not self.caller.may_read(unit.scope):
            raise NotFound(f"No unit {unit_id!r} here.", hint=Hint("find the unit"))
        return unit

    def _whole(self, id: str, look: Callable[[Reader, Caller, str], str] | None = None) -> str:
        """The whole id of which this is a part, by default a unit's."""
        checked = checked_id(id, "an id")
        if lookup.is_whole(checked):
            return checked
        return self._read(lambda reader: (look or lookup.unit_id)(reader, self.caller, checked))

    def _aged(self, unit: Unit) -> Unit:
        log = self._engine.log
        return aged(unit, log.clock(), log.config.trust)

    def _with_current_trust(self, outcome: Stored | Refused) -> Stored | Refused:
        from mnemarch.model.outcome import Stored

        if isinstance(outcome, Stored) and (unit := self._aged(outcome.unit)) is not outcome.unit:
            return replace(outcome, unit=unit)
        return outcome

    def _disputes(self, type: str) -> list[Dispute]:
        """Open disputes, after the near-duplicates of what was written last have been looked for."""
        from contextlib import suppress

        from mnemarch.model.unit import LinkType
        from mnemarch.units.conflicts import open_disputes

        with suppress(StoreUnavailable):  # Where nothing can be written, what is known is listed.
            self._engine.finder.link_duplicates()
        return self._read(lambda reader: open_disputes(reader, self._readable_keys(reader), LinkType(type)))

    def _readable_keys(self, reader: Reader) -> Sequence[str]:
        """The scopes that this seat sees, and those below its project that it may inspect."""
        caller = self.caller
        written = reader.scopes() if caller.inspects else ()
        below = (place.key for scope in written for place in scope.visible if caller.may_read(place))
        return list(dict.fromkeys([*caller.visible_keys, *below]))

    def _head(self) -> str | None:
        """The commit checked out where the seat is, if it is in a repository."""
        from mnemarch.code import git

        return None if self.caller.root is None else git.head(self.caller.root)

    def _full_hash(self, commit: str | None) -> str | None:
        if commit is None:
            return None
        from mnemarch.model.citation import Citation

        return self._intake().completed(Citation.commit(commit)).ref


def _checked_reason(reason: str) -> str:
    return checked_text(reason, "The reason", _REASON_BYTES_MAX)
