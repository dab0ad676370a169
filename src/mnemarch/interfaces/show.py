"""Answers in words: what people read when they don't ask for JSON."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from mnemarch.interfaces.place import at_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mnemarch.model.caller import Actor
    from mnemarch.model.event import Event, Receipt
    from mnemarch.model.outcome import (
        ApproachValidation,
        Dispute,
        FailedApproach,
        LoopVerdict,
        Promotion,
        Refused,
        Stored,
    )
    from mnemarch.model.search import Found, Pack, Recalled
    from mnemarch.model.unit import Unit

_SHOWN_CHARS = 96
_LAST_COLUMN_MIN = 12
# An id that is cut can't be copied.
_NEVER_CUT = frozenset({"id", "to", "leads to", "session"})
_INDENT = "  "
# What is remembered was written by others: it must not move the cursor, recolour the screen or turn the text around.
_CONTROLS = dict.fromkeys(
    (*(code for code in range(0xA0) if not 0x20 <= code < 0x7F), *range(0x202A, 0x202F), *range(0x2066, 0x206A)), "�"
)
_KEPT = {ord("\n"): "\n", ord("\t"): "    "}


def clean(text: object) -> str:
    """Text that is safe to print on a terminal, line breaks kept."""
    return str(text).translate(_CONTROLS | _KEPT)


def short(text: object, chars_max: int = _SHOWN_CHARS) -> str:
    """The beginning of a text, on one line."""
    line = clean(" ".join(str(text).split()))
    return line if len(line) <= chars_max else line[: chars_max - 1] + "…"


def quoted(content: str) -> str:
    return f'"{short(content)}"' if content else "(erased)"


def age(moment: datetime) -> str:
    """How long ago, in one unit."""
    seconds = (datetime.now(UTC) - moment).total_seconds()
    if seconds < 0:
        return "in the future"
    for name, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {name} ago"
    return "just now"


def when(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"


def fields(pairs: Iterable[tuple[str, object]]) -> str:
    """Name and value a line, the values aligned."""
    rows = [(name, clean(item)) for name, item in pairs]
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join(f"{name:<{width}}  {item}" for name, item in rows)


def table(headers: Sequence[str], rows: Sequence[Sequence[object]], empty: str) -> str:
    """Aligned columns: drawn for a terminal, plain for a pipe. Long texts belong in the last column."""
    if not rows:
        return empty
    cells = [[clean(cell).replace("\n", " ") for cell in row] for row in rows]
    if at_terminal(sys.stdout):
        return _drawn(headers, cells)
    widths = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (headers, *cells)
    )


def _drawn(headers: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    *before_last, last = [max(map(cell_len, column)) for column in zip(headers, *cells, strict=True)]
    room = console.width - sum(width + 2 for width in before_last)
    if room < (last if headers[-1] in _NEVER_CUT else _LAST_COLUMN_MIN):
        return "\n".join(_stacked(headers, row) for row in cells)
    drawn = Table(box=None, header_style="bold underline", pad_edge=False, padding=(0, 2, 0, 0))
    for header in headers[:-1]:
        drawn.add_column(header, no_wrap=True)
    drawn.add_column(headers[-1], overflow="fold")
    for row in cells:
        drawn.add_row(*map(Text, row))
    with console.capture() as capture:
        console.print(drawn)
    return capture.get().rstrip("\n")


def _stacked(headers: Sequence[str], row: Sequence[str]) -> str:
    """One row below itself, where a terminal is too narrow for its columns: its id, what is short, and the rest."""
    *before, last = zip(headers, row, strict=True)
    ids = [cell for header, cell in before if header in _NEVER_CUT]
    # A bare number says nothing without its head.
    short_ones = "  ".join(
        f"{header} {cell}" if cell.isdigit() else cell for header, cell in before if header not in _NEVER_CUT and cell
    )
    whole, below = (ids[:1], [*ids[1:], short_ones]) if ids else ([short_ones], [])
    lines = [*whole, *(f"{_INDENT}{part}" for part in below if part)]
    rest = f"{_INDENT}{last[1]}" if last[0] in _NEVER_CUT else wrapped(last[1])
    return "\n".join([*lines, rest] if last[1] else lines)


def wrapped(text: str, indent: str = _INDENT) -> str:
    """A text below something else: on a terminal in lines that fit it, all of them indented."""
    if not at_terminal(sys.stdout):
        return f"{indent}{text}"
    from rich.console import Console
    from rich.text import Text

    console = Console()
    lines = Text(text).wrap(console, max(_LAST_COLUMN_MIN, console.width - len(indent)))
    return "\n".join(f"{indent}{line.plain.rstrip()}" for line in lines)


# Staging and the gate


def receipt(given: Receipt) -> str:
    first = "known already" if given.duplicate else "logged"
    return "\n".join([f"{first}  {given.event_id}  #{given.seq}", *_redactions(given)])


def _redactions(given: Receipt | None) -> list[str]:
    if given is None or not given.redacted:
        return []
    return [f"  redacted: {', '.join(given.redacted)} (it never reached the disk)"]


def unit_line(unit: Unit, first: str) -> str:
    return f"{first}  {unit.id}  {unit.status} {unit.confidence:.2f}  {unit.level}  {quoted(unit.content)}"


def stored(given: Stored, first: str = "stored") -> str:
    lines = [unit_line(given.unit, "joined" if given.merged else first)]
    if given.merged:
        lines.append(f"  known already: {len(given.unit.provenance)} voices, {given.unit.mentions} mentions")
    if given.receipt.duplicate:
        lines.append("  this key was used before; nothing new was stored")
    lines += _redactions(given.receipt)
    for dispute in given.conflicts:
        lines.append(f"  contradicts {_other(dispute, given.unit.id)} ({clean(dispute.reason)}): conflict {dispute.id}")
    for dispute in given.similar:
        lines.append(f"  resembles {_other(dispute, given.unit.id)} ({clean(dispute.reason)}): proposal {dispute.id}")
    return "\n".join(lines)


def _other(dispute: Dispute, unit_id: str) -> str:
    return next(side for side in dispute.units if side != unit_id)


def refused(given: Refused, actor: Actor | None = None) -> str:
    lines = [f"refused by {given.rule}: {clean(given.reason)}"]
    if given.receipt is not None:
        lines.append(f"  it stays in the log as event {given.receipt.event_id}")
    if actor is not None and actor.kind == "human" and given.rule.startswith("G23"):
        lines.append(f"  a person writes at --level project, with a word of their own: --cite human:{clean(actor.id)}")
        lines.append("  what an agent found out is its own to say: --actor agent:NAME")
    return "\n".join([*lines, *_redactions(given.receipt)])


def outcome(given: Stored | Refused, first: str = "stored", actor: Actor | None = None) -> str:
    from mnemarch.model.outcome import Refused

    return refused(given, actor) if isinstance(given, Refused) else stored(given, first)


def promotion(given: Promotion) -> str:
    lines = [f"episode  {given.episode_id}"]
    if given.skill_id is not None:
        lines.append(f"skill    {given.skill_id}")
    lines += [unit_line(unit, "raised ") for unit in given.units]
    for refusal in given.refused:
        lines.append(f"kept     {refusal.unit_id or ''}  by {refusal.rule}: {clean(refusal.reason)}")
    if not given.units and not given.refused:
        lines.append("nothing was staged for the gate to judge")
    if given.loop is not None:
        lines += ["", loop(given.loop)]
    return "\n".join(lines)


# Loops


def approach(given: ApproachValidation) -> str:
    if given.valid:
        return "not tried yet in this task"
    return "\n".join([f"tried already: {clean(given.reason)}", *_failed(given.failed_history), given.suggestion])


def loop(given: LoopVerdict) -> str:
    count, kind = given.details["count"], short(given.details["error"])
    lines = [f"{given.type}  {'first' if count == 1 else f'{count}.'} time: {kind}"]
    if given.instruction:
        lines += ["", clean(given.instruction)]
    return "\n".join([*lines, *_redactions(given.receipt)])


def attempts(given: Sequence[FailedApproach], stuck: str | None) -> str:
    lines = [f"stuck: {clean(stuck)}"] if stuck is not None else []
    return "\n".join([*lines, *_failed(given)]) or "Nothing has failed here since the last success."


def _failed(given: Sequence[FailedApproach]) -> list[str]:
    return [
        line
        for item in given
        for line in (
            f"{item.attempt_count}x  {quoted(item.approach)}  last {age(item.last_attempt_at)}",
            *(f"    {short(reason)}" for reason in item.failure_reasons),
        )
    ]


# Knowledge


def unit(given: Unit) -> str:
    pairs: list[tuple[str, object]] = [
        ("id", given.id),
        ("kind", given.kind),
        ("status", f"{given.status}, confidence {given.confidence:.2f}, version {given.version}"),
        ("scope", f"{given.scope} ({given.level})"),
        ("domain", given.domain),
        ("said by", ", ".join(str(source.actor) for source in given.provenance) or "nobody any more"),
        ("when", f"{when(given.occurred_at)} ({age(given.occurred_at)})"),
        ("cites", ", ".join(map(str, given.citations)) or "nothing"),
        ("used by", f"{given.uses} tasks"),
    ]
    rest = ("supersedes", "superseded_by", "contradiction_note", "archive_reason", "erased_at")
    pairs += [(name.replace("_", " "), getattr(given, name)) for name in rest if getattr(given, name) is not None]
    return f"{clean(given.content) or '(erased)'}\n\n{fields(pairs)}"


def units(given: Sequence[Unit]) -> str:
    rows = [(one.id, one.kind, f"{one.status} {one.confidence:.2f}", one.level, quoted(one.content)) for one in given]
    return table(("id", "kind", "status", "level", "content"), rows, "No units can be seen from here.")


def disputes(given: Sequence[Dispute], contents: Mapping[str, str], what: str) -> str:
    """Each as a paragraph: both sides belong to it, which the rows of a table don't show."""
    if not given:
        return f"No open {what}s."
    told = []
    for dispute in given:
        lines = [f"{what}  {dispute.id}", wrapped(f"differs in {clean(dispute.reason)}")]
        for side in dispute.units:
            lines += [f"{_INDENT}unit  {side}", wrapped(quoted(contents.get(side, "")), _INDENT * 2)]
        told.append("\n".join(lines))
    hints = [
        "Decide one: mnemarch resolve ID --winner UNIT --reason WHY",
        "If both hold: mnemarch resolve ID --both --reason WHY",
    ]
    return "\n\n".join([*told, "\n".join(hints)])


def dispute(given: Dispute) -> str:
    if given.winner is None:
        return f"resolved  {given.id}\n  both hold  {'  '.join(given.units)}"
    return f"resolved  {given.id}\n  winner  {given.winner}\n  loser   {_other(given, given.winner)}"


def history(given: Sequence[Event]) -> str:
    rows = [
        (f"#{event.seq}", when(event.recorded_at), event.type, event.actor, event.scope, _what_happened(event))
        for event in given
    ]
    return table(("seq", "when", "event", "who", "where", "what"), rows, "No events.")


def _what_happened(event: Event) -> str:
    payload = event.payload
    if payload is None:
        return "(erased)"
    trust = (payload.get("set") or {}).get("trust") or (payload.get("unit") or {}).get("trust")
    parts = [
        str(payload.get("signal") or ""),
        f"confidence {trust['confidence']:.2f}" if trust else "",
        f"by {payload['rule']}" if "rule" in payload else "",
        ", ".join(map(str, payload.get("because", ()))),
        short(payload.get("reason") or payload.get("said") or ""),
    ]
    return "; ".join(part for part in parts if part)


# Recall


def found(given: Found, query: str) -> str:
    lines = [] if given.items else [f"Nothing found for {quoted(query)} from here."]
    for rank, item in enumerate(given.items, start=1):
        lines += _recalled(rank, item)
    if given.withheld:
        lines += ["", "withheld"]
        lines += [f"  {held.unit_id}  {clean(held.reason)}" for held in given.withheld]
    lines += [f"note: {clean(note)}" for note in given.notes]
    return "\n".join(lines)


def about_pack(given: Pack, query: str) -> str:
    """What is to be said of a context and is no part of it."""
    left = f", {len(given.left_out)} left out" if given.left_out else ""
    units = "1 unit" if len(given.items) == 1 else f"{len(given.items)} units"
    found = f"{units}, {given.tokens} of {given.budget} tokens{left}"
    said = found if given.text else f"Nothing found for {quoted(query)} that fits."
    return "\n".join((said, *(f"note: {clean(note)}" for note in given.notes)))


def _recalled(rank: int, item: Recalled) -> list[str]:
    why = ", ".join(f"{name} {share:.2f}" for name, share in item.why.items())
    one = item.unit
    # What binds is told: an axis or a lock is not weighed like a fact.
    binds = f"  {one.attributes.get('strength', '')} {one.kind}" if one.kind == "decision" else ""
    return [
        f"{rank}. {item.label} {short(one.content, 240)}",
        f"   score {item.score:.2f} ({why})  tier {item.tier}{binds}  {one.level}  {age(one.occurred_at)}",
        f"   {one.id}",
        *(f"   note: {clean(note)}" for note in item.notes),
    ]
