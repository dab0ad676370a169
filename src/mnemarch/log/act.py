"""Acts: a caller's reads and writes in one transaction, and free log entries that are idempotent by key (G2)."""

from __future__ import annotations

from collections import deque

from mnemarch.errors import Conflict, Hint, InvalidInput, NotAllowed, NotFound, StoreError, StoreUnavailable
from mnemarch.forks import Forkable, watch
from mnemarch.log.chain import entry_hash, header_around, payload_hash
from mnemarch.model.caller import Caller, Level, Stream, checked_id
from mnemarch.model.event import WITHOUT_EFFECT, Event, EventType, Receipt
from mnemarch.model.json_text import canonical_json
from mnemarch.model.stamps import checked_instant, new_id, random_bytes, short_id
from mnemarch.model.value import Frozen
from mnemarch.policy.admission import checked_key, checked_mapping, checked_name, checked_text
from mnemarch.text.secrets import redacted_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from typing import Any, TypeVar

    from mnemarch.config import Config
    from mnemarch.model.unit import Unit
    from mnemarch.policy.permissions import Deed
    from mnemarch.ports import Store
    from mnemarch.stores.sql.transaction import Transaction

    T = TypeVar("T")

# The longest wait for the store of an act that must not delay its caller.
MOMENT_S = 0.5
_POSTPONED_MAX = 1_000


class Act:
    """An open transaction with its caller, time and settings. Only `record` and `append` write events."""

    __slots__ = ("caller", "config", "now", "transaction")

    def __init__(self, transaction: Transaction, caller: Caller, now: datetime, config: Config) -> None:
        self.transaction = transaction
        self.caller = caller
        self.now = now
        self.config = config

    def by(self, caller: Caller) -> Act:
        """The same act with another caller."""
        return Act(self.transaction, caller, self.now, self.config)

    def record(
        self,
        type: EventType,
        payload: dict[str, Any],
        *,
        subject: str | None = None,
        key: str | None = None,
        occurred_at: datetime | None = None,
        session: str | None = None,
    ) -> tuple[Event, tuple[str, ...]]:
        """Redact secrets, append one event to the chain, and project it. Also returns the kinds of removed secrets."""
        clean, kinds = without_secrets(payload)
        said = {"subject": subject, "key": key, "occurred_at": occurred_at, "session": session}
        return self.append(type, clean, **said), kinds

    def append(self, type: EventType, clean: dict[str, Any], **said: Any) -> Event:
        """Like `record`, for a payload that has no secrets."""
        stream, clock = self.transaction.own(self.caller.stream)
        seq, previous = self.transaction.head(stream)
        event = drafted(self.caller, self.now, self.config, type, clean, stream, seq + 1, clock, **said)
        event = self.transaction.append(event, entry_hash(previous, event))
        if type not in WITHOUT_EFFECT:
            from mnemarch.log.projection import project

            project(self.transaction, event)
        return event

    # Checks at the start of every lifecycle verb

    def visible_unit(self, unit_id: str) -> Unit:
        """The unit, if it is visible to this seat. Raises NotFound for a unit that is not."""
        unit = self.transaction.unit(checked_id(unit_id, "a unit's id"))
        if unit is not None and unit.scope.key in self.caller.visible_keys:
            return unit
        if unit is not None and self.caller.may_read(unit.scope):
            hint = Hint("act there", unit=short_id(unit.id), worktree=unit.scope.worktree)
            raise NotFound(f"Unit {unit_id} lives in {unit.scope}, not here.", hint=hint)
        raise NotFound(f"No unit {unit_id!r} here.", hint=Hint("find the unit"))

    def changeable_unit(self, unit_id: str, expected_version: int | None) -> Unit:
        """The unit, if it still has the version that the caller saw (R5)."""
        unit = self.visible_unit(unit_id)
        if unit.erased_at is not None:
            raise NotFound(f"Unit {unit_id} was erased.", hint="Its text is gone, so nothing can be done with it.")
        self.check_version(unit, expected_version)
        return unit

    def permitted_unit(self, unit_id: str, deed: Deed, expected_version: int | None) -> Unit:
        """The unit, if it has the version that the caller saw and the policy allows the deed (R4)."""
        unit = self.changeable_unit(unit_id, expected_version)
        self.require(deed, unit)
        return unit

    def known_unit(self, unit_id: str | None) -> Unit:
        """The current state of a unit that this act has just read or written."""
        unit = self.transaction.unit(unit_id or "")
        assert unit is not None
        return unit

    @staticmethod
    def check_version(unit: Unit, expected_version: int | None, *, proposed: Unit | None = None) -> None:
        """Raise if a change was based on another version of the unit."""
        if expected_version is not None and type(expected_version) is not int:
            raise InvalidInput(
                f"expected_version is a number, not {expected_version!r}.", hint="Pass the unit.version you saw."
            )
        if expected_version is not None and unit.version != expected_version:
            raise Conflict(
                f"Unit {unit.id} is at version {unit.version}, not {expected_version}.",
                hint="Read it again, decide again, and pass the version that you saw.",
                expected_version=expected_version,
                actual_version=unit.version,
                current=unit,
                proposed=proposed,
            )

    def require(self, deed: Deed, unit: Unit) -> None:
        """Raise unless the policy allows the deed to this actor at the unit's level (R4)."""
        self.require_at(deed, unit.level, f"{deed} unit {unit.id}")

    def require_at(self, deed: Deed, level: Level, what: str) -> None:
        """Like `require`, for a deed that concerns no unit."""
        self.config.policy.require(self.caller.actor, deed, level, what)


def drafted(
    caller: Caller,
    now: datetime,
    config: Config,
    type: EventType,
    clean: dict[str, Any],
    stream: Stream,
    seq: int = 0,
    clock: str = "",
    **said: Any,
) -> Event:
    """A new event for a payload without secrets. It is not appended yet."""
    body = canonical_json(clean)
    salt = random_bytes()
    return Event(
        id=new_id(),
        stream=stream,
        seq=seq,
        type=type,
        actor=caller.actor,
        scope=caller.scope,
        session=said.get("session") or caller.session,
        subject=said.get("subject"),
        key=said.get("key"),
        occurred_at=said.get("occurred_at") or now,
        recorded_at=now,
        body=body,
        salt=salt,
        payload_hash=payload_hash(salt, _encoded(body, config.limits.data_bytes_max)),
        hash=b"",
        clock=clock,
    )


def _encoded(body: str, bytes_max: int) -> bytes:
    try:
        encoded = body.encode()
    except UnicodeEncodeError as error:
        wrong = error.object[error.start]
        raise InvalidInput(f"This is not valid Unicode: {wrong!r}.", hint="Decode it first.") from None
    if len(encoded) > bytes_max:
        raise InvalidInput(
            f"An event of {len(encoded)} bytes is over the limit of {bytes_max}.",
            hint="Log a reference to the data instead, or raise limits.data_bytes_max in mnemarch.toml.",
        )
    return encoded


def without_secrets(payload: Any) -> tuple[Any, tuple[str, ...]]:
    """The payload without secrets, and the kinds of those removed. Texts that were scanned before are cached."""
    kinds: set[str] = set()
    try:
        clean = redacted_tree(payload, kinds)
    except RecursionError:
        raise InvalidInput("The data is nested too deeply, or contains itself.", hint="Flatten it.") from None
    return clean, tuple(sorted(kinds)) if kinds else ()


def receipt_for(event: Event, *, redacted: tuple[str, ...] = (), duplicate: bool = False) -> Receipt:
    return Receipt(event_id=event.id, seq=event.seq, hash=event.hash.hex(), duplicate=duplicate, redacted=redacted)


class Log(Forkable):
    """The store, the clock and the settings. It begins acts."""

    def __init__(self, store: Store, clock: Callable[[], datetime], config: Config) -> None:
        self.store = store
        self.clock = clock
        self.config = config
        # Postponed acts, at most the newest ones.
        self._postponed: deque[tuple[Caller, Callable[[Act], object]]] = deque(maxlen=_POSTPONED_MAX)
        watch(self)

    def _resume(self, *, in_child: bool, rested: bool) -> None:  # noqa: ARG002
        if in_child:
            self._postponed.clear()  # The parent process runs them.

    def act(
        self,
        caller: Caller,
        work: Callable[[Act], T],
        *,
        durable: bool = False,
        wait_s_max: float | None = None,
        together: bool = False,
    ) -> T:
        """Run `work` as one act of `caller`. A refusal (NotAllowed) rolls the act back and is itself recorded (R4).

        Postponed acts run first, in the same transaction. `together` batches the queries of work that reads much
        (`Reader.together`).
        """
        postponed: list[tuple[Caller, Callable[[Act], object]]] = []

        def run(transaction: Transaction) -> T:
            while self._postponed:
                postponed.append(self._postponed.popleft())
            for earlier, deed in postponed:
                deed(Act(transaction, earlier, self.clock(), self.config))
            act = Act(transaction, caller, self.clock(), self.config)
            return transaction.together(lambda _: work(act)) if together else work(act)

        try:
            return self.store.write(run, durable=durable, wait_s_max=wait_s_max)
        except BaseException as error:
            self._postponed.extend(postponed)
            if isinstance(error, NotAllowed):
                payload = {"rule": error.rule, "reason": error.message}
                self.act(caller, lambda act: act.record(EventType.ACT_REFUSED, payload))
            raise

    def append(self, caller: Caller, payload: dict[str, Any], **said: Any) -> Event:
        """Log a payload without secrets in an act of its own. Takes no lock if the store chains entries itself."""
        if self._postponed or self.store.append_entry is None:
            return self.act(caller, lambda act: act.append(EventType.LOGGED, payload, **said))
        event = drafted(caller, self.clock(), self.config, EventType.LOGGED, payload, caller.stream, **said)
        return self.store.append_entry(event, *header_around(event))

    def act_soon(self, caller: Caller, work: Callable[[Act], object]) -> str:
        """Run `work` if the store is free within a moment, or else with the next act of this process.

        So a reader never waits for a writer. Returns the reason for a delay, or "".
        """
        try:
            self.act(caller, work, wait_s_max=0.0 if self._postponed else MOMENT_S, together=True)
        except StoreUnavailable as error:
            if self.store.writable:
                self._postponed.append((caller, work))
            return error.message
        return ""

    def close(self) -> None:
        """Run the postponed acts if the store is free now, or else drop them."""
        if self._postponed:
            caller, work = self._postponed.popleft()
            try:
                self.act(caller, work, wait_s_max=MOMENT_S)
            except StoreError:
                self._postponed.clear()


_KIND_BYTES_MAX = 256


class Entry(Frozen):
    """One thing to log: its kind, its text, and optional data."""

    kind: str
    text: str
    data: Mapping[str, Any] | None = None
    key: str | None = None
    occurred_at: datetime | None = None
    session: str | None = None

    @classmethod
    def of(cls, entry: Entry | Mapping[str, Any] | tuple[str, str]) -> Entry:
        """An entry from a pair of kind and text, or from its fields."""
        if isinstance(entry, cls):
            return entry
        try:
            return cls(*entry) if isinstance(entry, tuple) else cls(**entry)  # type: ignore[arg-type]
        except TypeError as error:
            raise InvalidInput(f"{entry!r} is not a log entry: {error}.", hint=Hint("log entry")) from None


def read_entry(entry: Entry, text_bytes_max: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The payload of an entry without secrets, and the kinds of those removed. Called before the transaction."""
    payload: dict[str, Any] = {
        "kind": checked_text(entry.kind, "The kind of entry", _KIND_BYTES_MAX),
        "text": checked_text(entry.text, f"The text of the entry of kind {entry.kind!r}", text_bytes_max),
    }
    if entry.data is not None:
        payload["data"] = checked_mapping(entry.data, "data")
    return without_secrets(payload)


def append(act: Act, entry: Entry, payload: dict[str, Any], redacted: tuple[str, ...]) -> Receipt:
    """Log one entry. A repeated key from the same actor and scope returns the first entry's receipt."""
    key = None if entry.key is None else checked_key(entry.key)
    if key is not None:
        earlier = act.transaction.event_for_key(act.caller.scope_key, str(act.caller.actor), key)
        if earlier is not None:
            return _again(earlier, payload)
    occurred_at, session = _checked(entry)
    event = act.append(EventType.LOGGED, payload, key=key, occurred_at=occurred_at, session=session)
    return receipt_for(event, redacted=redacted)


def append_alone(log: Log, caller: Caller, entry: Entry, payload: dict[str, Any], redacted: tuple[str, ...]) -> Receipt:
    """Like `append`, in an act of its own."""
    if entry.key is not None:
        return log.act(caller, lambda act: append(act, entry, payload, redacted))
    occurred_at, session = _checked(entry)
    return receipt_for(log.append(caller, payload, occurred_at=occurred_at, session=session), redacted=redacted)


def _checked(entry: Entry) -> tuple[datetime | None, str | None]:
    """The checked time and session of an entry, if it has them."""
    occurred_at = entry.occurred_at and checked_instant(entry.occurred_at, "occurred_at")
    return occurred_at, None if entry.session is None else checked_name(entry.session, "a session")


def _again(earlier: Event, payload: dict[str, Any]) -> Receipt:
    """The first entry's receipt. Raises Conflict if this entry has other content."""
    if earlier.body != canonical_json(payload):
        raise Conflict(
            f"This key already stands for event {earlier.id}, whose content differs or was erased.",
            hint="Use a new key for a new entry; nothing was stored.",
        )
    return receipt_for(earlier, duplicate=True)
