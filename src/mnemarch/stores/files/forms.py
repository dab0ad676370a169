"""The formats of the files: a log line for each event, its payload, and a readable page for each unit."""

from __future__ import annotations

import json
import re
from datetime import datetime
from unicodedata import normalize

from mnemarch.model.caller import Actor, Scope, Stream
from mnemarch.model.event import Event, EventType
from mnemarch.model.json_text import canonical_json, from_json
from mnemarch.model.stamps import ID_CHARS, blake2b, micros

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LOG, PAYLOADS, UNITS = "log", "payloads", "units"
IMPORTED = "imported"  # Stands for the writer of events that were imported from a store without writers.
AFTER_ALL_WRITERS = "~"
# Erased files stay as notices: git would take a deleted file and a similar new one for a rename, and conflict.
ERASED = b"erased\n"
ERASED_PAGE = b"This unit was erased.\n"
_ID = re.compile(r"[0-9a-f-]{36}")
_AFTER = re.compile(rf"{LOG}/{IMPORTED}/(\d{{12,18}})-\d{{12}}")
_NAME_CHARS_MAX = 40
_SHORT_ID_AT = 24
_RESERVED = re.compile(r"con|prn|aux|nul|com\d|lpt\d")  # by Windows, in any folder


def lamport_of(clock: str) -> int:
    return int(from_json(clock)[0]) if clock else 0


def seen_in(clock: str) -> dict[str, int]:
    """The times of other writers that this event's writer has seen since its previous event."""
    seen: dict[str, int] = from_json(clock)[1] if clock else {}
    return seen


def imported_path(lamport: int, position: int, writer: str) -> str:
    """The file for imported events, which have no clock. They sort after all events up to `lamport`, by position."""
    return f"{LOG}/{IMPORTED}/{lamport:012d}-{position:012d}-{writer}.jsonl"


def imported_after(path: str) -> int:
    found = _AFTER.match(path)
    return int(found[1]) if found else 0


def month_of(event: Event) -> str:
    return f"{event.recorded_at:%Y-%m}"


def payload_path(event: Event) -> str:
    return f"{PAYLOADS}/{event.stream.writer or IMPORTED}/{month_of(event)}/{event.id}.json"


def line_of(event: Event) -> bytes:
    """One log line. The fields that a person looks for come first."""
    record: dict[str, Any] = {
        "at": event.recorded_at.isoformat(timespec="microseconds"),
        "type": str(event.type),
        "actor": str(event.actor),
        "scope": event.scope.segments,
        "subject": event.subject,
        "session": event.session,
        "key": event.key,
        "occurred": event.occurred_at.isoformat(timespec="microseconds"),
        "id": event.id,
        "seq": event.seq,
        "clock": event.clock and from_json(event.clock),
        "payload": event.payload_hash.hex(),
        "hash": event.hash.hex(),
    }
    if record["occurred"] == record["at"]:
        del record["occurred"]
    record = {name: item for name, item in record.items() if item not in (None, "")}
    return json.dumps(record, ensure_ascii=False, separators=(", ", ": ")).encode() + b"\n"


def event_in(line: bytes, writer: str) -> Event:
    """The event of a line, without its payload. Raises ValueError or similar for an invalid line."""
    record = json.loads(line)
    if not isinstance(record, dict) or not isinstance(record.get("id"), str) or not _ID.fullmatch(record["id"]):
        raise ValueError("it has no id")
    scope = Scope.of(record["scope"])
    clock = canonical_json(record["clock"]) if "clock" in record else ""
    if bool(clock) != bool(writer):
        raise ValueError("it has no clock")
    lamport, seen = lamport_of(clock), seen_in(clock)
    if lamport < 0 or not all(type(time) is int for time in seen.values()):
        raise ValueError("its clock is none")
    return Event(
        id=record["id"],
        stream=Stream(scope.org, scope.project, writer),
        seq=record["seq"],
        type=EventType(record["type"]),
        actor=Actor.parse(record["actor"]),
        scope=scope,
        session=record.get("session"),
        subject=record.get("subject"),
        key=record.get("key"),
        occurred_at=_instant(record["occurred"] if "occurred" in record else record["at"]),
        recorded_at=_instant(record["at"]),
        body=None,
        salt=None,
        payload_hash=bytes.fromhex(record["payload"]),
        hash=bytes.fromhex(record["hash"]),
        clock=clock,
    )


def _instant(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    micros(at)
    return at


def payload_file(event: Event) -> bytes:
    """A payload with its salt, indented so that a diff is readable."""
    assert event.body is not None
    assert event.salt is not None
    record = {"payload": from_json(event.body), "salt": event.salt.hex()}
    return json.dumps(record, ensure_ascii=False, indent=1).encode() + b"\n"


def with_payload(event: Event, content: bytes) -> Event:
    """The event with the content of its payload file, or without a payload if it was erased."""
    if content == ERASED:
        return event
    record = json.loads(content)
    object.__setattr__(event, "body", canonical_json(record["payload"]))
    object.__setattr__(event, "salt", bytes.fromhex(record["salt"]))
    return event


def folded(digest: str, line: bytes) -> str:
    """The file's digest after one more line."""
    return blake2b(digest.encode() + line, digest_size=16).hexdigest()


# Pages


def page_path(event: Event) -> str:
    """The path of a unit's page. It contains nothing of the text, so an erased unit leaves no trace in it."""
    kind = (event.payload or {}).get("unit", {}).get("kind", "unit")
    assert event.subject is not None
    short = event.subject[_SHORT_ID_AT:] if len(event.subject) == ID_CHARS else safe_name(event.subject)
    return f"{UNITS}/{safe_name(event.scope.project or event.scope.org)}/{event.recorded_at:%Y-%m-%d}-{kind}-{short}.md"


def page_of(event: Event) -> bytes:
    """A unit as it was created. Only fields that never change are shown, so pages never conflict in a merge."""
    unit = (event.payload or {})["unit"]
    cites = [" ".join(str(item.get(name, "")) for name in ("kind", "ref")) for item in unit.get("citations", ())]
    head = {
        "kind": unit["kind"],
        "id": event.subject,
        "by": str(event.actor),
        "at": f"{event.recorded_at:%Y-%m-%d %H:%M} UTC",
        "in": str(Scope.of(unit["scope"])),
        "domain": unit.get("domain"),
        "cites": ", ".join(cites),
    }
    lines = [f"{name}: {_one_line(str(item))}" for name, item in head.items() if item]
    return "\n".join(["---", *lines, "---", "", str(unit["content"]), ""]).encode()


def _one_line(text: str) -> str:
    return text if text.isprintable() else json.dumps(text, ensure_ascii=False)


def safe_name(name: str) -> str:
    """A folder name that is valid on every file system. If characters are lost, a digest keeps it unique."""
    plain = re.sub(r"[^\w-]+", "-", normalize("NFC", name).lower()).strip("-")[:_NAME_CHARS_MAX]
    is_whole = plain == name and not _RESERVED.fullmatch(plain)
    return plain if is_whole else f"{plain}-{blake2b(name.encode(), digest_size=4).hexdigest()}".lstrip("-")
