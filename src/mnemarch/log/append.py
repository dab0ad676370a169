"""Free appends to the log (G2), idempotent by key."""

from __future__ import annotations

from mnemarch.errors import Conflict, Hint, InvalidInput
from mnemarch.log.act import Act, Log, receipt_for, without_secrets
from mnemarch.model.event import Event, EventType, Receipt
from mnemarch.model.json_text import canonical_json
from mnemarch.model.stamps import checked_instant
from mnemarch.model.value import value
from mnemarch.policy.admission import checked_key, checked_mapping, checked_name, checked_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from typing import Any

    from mnemarch.model.caller import Caller

_KIND_BYTES_MAX = 256


@value
class Entry:
    """One thing to log: what kind of thing, its text, and data that goes with it."""

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
            raise InvalidInput(f"{entry!r} is no log entry: {error}.", hint=Hint("log entry")) from None


def read_entry(entry: Entry, text_bytes_max: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What goes to the log, without secrets, and their kinds: read before the transaction begins."""
    payload: dict[str, Any] = {
        "kind": checked_text(entry.kind, "The kind of entry", _KIND_BYTES_MAX),
        "text": checked_text(entry.text, "The text", text_bytes_max),
    }
    if entry.data is not None:
        payload["data"] = checked_mapping(entry.data, "data")
    return without_secrets(payload)


def append(act: Act, entry: Entry, payload: dict[str, Any], redacted: tuple[str, ...]) -> Receipt:
    """Log one entry; the same key from the same actor and scope gives the first entry's receipt again."""
    key = None if entry.key is None else checked_key(entry.key)
    if key is not None:
        earlier = act.transaction.event_for_key(act.caller.scope_key, str(act.caller.actor), key)
        if earlier is not None:
            return _again(earlier, payload)
    occurred_at, session = _checked(entry)
    event, _ = act.record(EventType.LOGGED, payload, key=key, occurred_at=occurred_at, session=session)
    return receipt_for(event, redacted=redacted)


def append_alone(log: Log, caller: Caller, entry: Entry, payload: dict[str, Any], redacted: tuple[str, ...]) -> Receipt:
    """The same in an act of its own."""
    if entry.key is not None:
        return log.act(caller, lambda act: append(act, entry, payload, redacted))
    occurred_at, session = _checked(entry)
    return receipt_for(log.append(caller, payload, occurred_at=occurred_at, session=session), redacted=redacted)


def _checked(entry: Entry) -> tuple[datetime | None, str | None]:
    """When it happened and in which session, if that is said."""
    occurred_at = entry.occurred_at and checked_instant(entry.occurred_at, "occurred_at")
    return occurred_at, None if entry.session is None else checked_name(entry.session, "a session")


def _again(earlier: Event, payload: dict[str, Any]) -> Receipt:
    """The first entry's receipt, if this one says the same."""
    if earlier.body != canonical_json(payload):
        raise Conflict(
            f"This key already stands for event {earlier.id}, which says something else or was erased.",
            hint="Use a new key for a new entry; nothing was stored.",
        )
    return receipt_for(earlier, duplicate=True)
