"""How things look: JSON for programs; safe text, tables and wrapped lines for people; the text of units and recall."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from mnemarch.interfaces.command import at_terminal
from mnemarch.model.search import UNRECORDED
from mnemarch.model.stamps import short_id
from mnemarch.model.unit import Kind
from mnemarch.policy.kinds import TIER_NORMAL
from mnemarch.text.cache import pattern
from mnemarch.text.words import counted, some_of
from mnemarch.verbs.types import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from mnemarch.interfaces.command import Call
    from mnemarch.model import event, outcome, search, unit

    Outcome = outcome.Stored | outcome.Refused
    Text = Callable[[Any, Call], str]

_RECALLED_CHARS = 240
# Binding entries after this many are listed above an answer only if they are firmer than normal decisions.
_BINDING_SHOWN = 5
_SIDES_MAX = 8
_HINTS = (
    "Decide one: mnemarch resolve ID --winner UNIT --reason WHY\n"
    "If all are true: mnemarch resolve ID --both --reason WHY"
)
_SHOWN_CHARS = 96
_LAST_COLUMN_MIN = 12
# Columns with ids are never cut, since a cut id can't be copied.
_NEVER_CUT = frozenset({"id", "to", "leads to", "session"})
_SERVER_OPTIONS = frozenset({"host", "hostaddr", "port"})
INDENT = "  "
_ID = r"(?<!['\w-])[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}(?![\w-])"
_CLEAR_LINE = "\r\x1b[K"
# Others wrote the stored texts: these must not move the cursor, recolour the screen or reverse the text's direction.
_CONTROLS = dict.fromkeys(
    (*(code for code in range(0xA0) if not 0x20 <= code < 0x7F), *range(0x202A, 0x202F), *range(0x2066, 0x206A)), "�"
)
_KEPT = {ord("\n"): "\n", ord("\t"): "    "}


def clean(text: object) -> str:
    """Text that is safe to print on a terminal, line breaks kept."""
    return str(text).translate(_CONTROLS | _KEPT)


def with_short_ids(text: object) -> str:
    """A message with its ids shortened. An id in quotes stays whole, since somebody typed it."""
    return pattern(_ID).sub(lambda match: short_id(match[0]), clean(text))


def short(text: object, chars_max: int = _SHOWN_CHARS) -> str:
    """The beginning of a text, on one line."""
    line = clean(" ".join(str(text).split()))
    return line if len(line) <= chars_max else line[: chars_max - 1] + "…"


def is_confirmed(question: str) -> bool:
    """Whether the person at the terminal says yes."""
    return answer_to(f"{question} [y/N] ").strip().lower() in {"y", "yes"}


def answer_to(question: str) -> str:
    """The line that the person types. It is read unbuffered: the rest of a paste is for the shell."""
    print(question, end="", file=sys.stderr, flush=True)
    return open(sys.stdin.fileno(), "rb", buffering=0, closefd=False).readline().decode(errors="replace")


def quoted(content: str) -> str:
    return f'"{short(content)}"' if content else "(erased)"


def age(moment: datetime) -> str:
    """The time since a moment, in one unit: "3 h ago"."""
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
    """One line for each name and value, with the values aligned."""
    rows = [(name, clean(item)) for name, item in pairs]
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join(f"{name:<{width}}  {item}" for name, item in rows)


def table(headers: Sequence[str], rows: Sequence[Sequence[object]], empty: str) -> str:
    """A table with aligned columns, drawn for a terminal and plain for a pipe. Long texts belong in the last column."""
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
    """One row on several lines, for a terminal too narrow for its columns: the id, the short cells, the last cell."""
    *before, last = zip(headers, row, strict=True)
    ids = [cell for header, cell in before if header in _NEVER_CUT]
    # A number needs its header to be understood.
    short_ones = "  ".join(
        f"{header} {cell}" if cell.isdigit() else cell for header, cell in before if header not in _NEVER_CUT and cell
    )
    whole, below = (ids[:1], [*ids[1:], short_ones]) if ids else ([short_ones], [])
    lines = [*whole, *(f"{INDENT}{part}" for part in below if part)]
    rest = f"{INDENT}{last[1]}" if last[0] in _NEVER_CUT else wrapped(last[1])
    return "\n".join([*lines, rest] if last[1] else lines)


def wrapped(text: str, indent: str = INDENT) -> str:
    """A text with an indent; on a terminal it is wrapped to the width, with every line indented."""
    if not at_terminal(sys.stdout):
        return f"{indent}{text}"
    from rich.console import Console
    from rich.text import Text

    console = Console()
    lines = Text(text).wrap(console, max(_LAST_COLUMN_MIN, console.width - len(indent)))
    return "\n".join(f"{indent}{line.plain.rstrip()}" for line in lines)


def diff_of(path: str, before: str | None, after: str | None) -> str:
    """The difference between two texts of a file. None stands for a missing file."""
    from difflib import unified_diff

    old, new = ((text or "").splitlines(keepends=True) for text in (before, after))
    was, now = ("/dev/null" if text is None else path for text in (before, after))
    lines = unified_diff(old, new, was, now)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def unit_line(one: unit.Unit, first: str) -> str:
    return f"{first}  {short_id(one.id)}  {one.status} {one.confidence:.2f}  {one.level}  {quoted(one.content)}"


class Counter:
    """Shows the progress of long work on stderr. It is silent if stderr is no terminal."""

    def __init__(self, doing: str, what: str) -> None:
        self._doing, self._what = doing, what
        self._is_watched = at_terminal(sys.stderr)

    def __enter__(self) -> Callable[[int], None] | None:
        self._write(f"{self._doing} ...")
        return (lambda done: self._write(f"{self._doing}: {done:,} {self._what}")) if self._is_watched else None

    def __exit__(self, *_: object) -> None:
        self._write("")

    def _write(self, line: str) -> None:
        if self._is_watched:
            sys.stderr.write(f"{_CLEAR_LINE}{line}")
            sys.stderr.flush()


def json_text(data: Any) -> str:
    """A JSON document for standard output. It is ASCII unless the output is UTF-8, so that no character is lost."""
    import json

    ascii_only = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    return json.dumps(to_json(data), ensure_ascii=ascii_only, indent=2)


def meaning_line(seen: outcome.Stats | outcome.Overview) -> str:
    """The state of search by meaning."""
    if seen.meaning == "on":
        return f"{seen.vectors:,} vectors, {seen.without_vector:,} units without a vector yet"
    return clean(seen.meaning)


def without_password(url: str) -> str:
    """An address without name and password. Of its options only the server's host and port stay."""
    scheme, _, rest = url.partition("://")
    place, _, options = rest.partition("?")
    where = "&".join(option for option in options.split("&") if option.partition("=")[0] in _SERVER_OPTIONS)
    return f"{scheme}://{place.rpartition('@')[2]}{where and f'?{where}'}" if rest else ""


# Units, conflicts, the inbox and recall


def _receipt(receipt: event.Receipt, _: Call) -> str:
    first = "known already" if receipt.duplicate else "logged"
    return "\n".join([f"{first}  {short_id(receipt.event_id)}  #{receipt.seq}", *redactions(receipt)])


def redactions(receipt: event.Receipt | None) -> list[str]:
    if receipt is None or not receipt.redacted:
        return []
    return [f"  redacted: {', '.join(receipt.redacted)} (it was not stored)"]


def _receipts(receipts: Sequence[event.Receipt], _: Call) -> str:
    new = sum(not receipt.duplicate for receipt in receipts)
    redacted = sum(bool(receipt.redacted) for receipt in receipts)
    return f"logged  {new} entries, {len(receipts) - new} known already, {redacted} with secrets removed"


def _outcome(first: str) -> Text:
    def text(outcome: Outcome, call: Call) -> str:
        from mnemarch.model.outcome import Refused

        return _refused(outcome, call) if isinstance(outcome, Refused) else _stored(outcome, first)

    return text


def _stored(stored: outcome.Stored, first: str) -> str:
    unit = stored.unit
    lines = [unit_line(unit, "joined" if stored.merged else first)]
    if stored.merged:
        voices, mentions = counted(len(unit.provenance), "author"), counted(unit.mentions, "mention")
        lines.append(f"  known already: {voices}, {mentions}")
    if stored.receipt.duplicate:
        lines.append("  this key was used before; nothing new was stored")
    lines += [f"  {note}" for note in map(clean, stored.notes)]
    lines += redactions(stored.receipt)
    lines += _opened(stored)
    return "\n".join(lines)


def _refused(refusal: outcome.Refused, call: Call) -> str:
    actor = call.seat.actor
    lines = [f"refused by {refusal.rule}: {with_short_ids(refusal.reason)}"]
    if refusal.receipt is not None:
        lines.append(f"  it stays in the log as event {short_id(refusal.receipt.event_id)}")
    if actor.kind == "human" and refusal.rule.startswith("G23") and call.arguments.keys() & {"content", "claims"}:
        lines.append(f"  a person can write at --level project and vouch for it: --cite human:{clean(actor.id)}")
        lines.append("  if an agent found this out, state it as that agent: --actor agent:NAME")
    return "\n".join([*lines, *redactions(refusal.receipt)])


def _outcomes(outcomes: Sequence[Outcome], call: Call) -> str:
    from mnemarch.model.outcome import Refused

    refusals = [outcome for outcome in outcomes if isinstance(outcome, Refused)]
    joined = sum(outcome.merged for outcome in outcomes if not isinstance(outcome, Refused))
    new = len(outcomes) - len(refusals) - joined
    counts = f"stored  {new} new, {joined} joined to known units, {len(refusals)} refused"
    return "\n".join([counts, *(_refused(refusal, call) for refusal in refusals)])


def _inbox(items: Sequence[outcome.InboxItem], call: Call) -> str:
    if not items:
        return "Nothing waits."
    lines = []
    for item in items:
        lines.append(f"{short_id(item.id)}  {item.what}: {clean(item.subject)}")
        lines += [f"    {with_short_ids(text)}" for text in (item.evidence, item.why) if text]
    seen = call.seat.status()
    more = seen.waiting - len(items)
    lines += ["", f"{more} more: mnemarch inbox --limit {len(items) + more}"] if more > 0 else []
    lines += [] if seen.is_complete else ["", "Older items of the same authors appear when these are settled."]
    return "\n".join([*lines, "", "mnemarch accept ITEM... or mnemarch decline ITEM... --reason WHY"])


def _settled(items: Sequence[outcome.Settled], _: Call) -> str:
    lines = []
    for item in items:
        lines.append(f"{clean(item.answer)}  {item.what}  {short_id(item.id)}")
        lines += [unit_line(item.unit, "  now  ")] if item.unit is not None else []
    return "\n".join(lines)


def _unit(one: unit.Unit, _: Call) -> str:
    pairs: list[tuple[str, object]] = [
        ("id", one.id),
        ("kind", one.kind),
        ("status", f"{one.status}, confidence {one.confidence:.2f}, version {one.version}"),
        ("scope", f"{one.scope} ({one.level})"),
        ("domain", one.domain),
        ("said by", ", ".join(str(source.actor) for source in one.provenance) or "nobody any more"),
        ("when", f"{when(one.occurred_at)} ({age(one.occurred_at)})"),
        ("cites", ", ".join(map(str, one.citations)) or "nothing"),
        ("used by", f"{one.uses} tasks"),
    ]
    rest = ("supersedes", "superseded_by", "contradiction_note", "archive_reason", "erased_at")
    pairs += [(name.replace("_", " "), getattr(one, name)) for name in rest if getattr(one, name) is not None]
    return f"{clean(one.content) or '(erased)'}\n\n{fields(pairs)}"


def _changed(first: str) -> Text:
    def text(one: unit.Unit, _: Call) -> str:
        why = f"\n  {with_short_ids(one.archive_reason)}" if one.archive_reason else ""
        return f"{unit_line(one, first)}  v{one.version}{why}"

    return text


def _units(units: Sequence[unit.Unit], _: Call) -> str:
    rows = [
        (short_id(one.id), one.kind, f"{one.status} {one.confidence:.2f}", one.level, quoted(one.content))
        for one in units
    ]
    return table(("id", "kind", "status", "level", "content"), rows, "No units can be seen from here.")


def _explanation(explanation: outcome.Explanation, _: Call) -> str:
    unit = explanation.unit
    lines = [
        clean(unit.content) or "(erased)",
        f"{unit.kind} · {unit.status} · confidence {explanation.confidence_now:.2f} · {unit.level} {clean(unit.scope)}"
        f" · domain {clean(unit.domain)} · version {unit.version}",
        unit.id,
        "",
    ]
    for name, items in _chapters(explanation):
        lines += [f"{name if number == 0 else '':<10}{item}" for number, item in enumerate(items)]
    return "\n".join(lines)


def _chapters(explanation: outcome.Explanation) -> Iterator[tuple[str, list[str]]]:
    faded = explanation.confidence_now != explanation.confidence_stored
    yield "said by", [f"{voice.actor} in {voice.scope} on {when(voice.at)}" for voice in explanation.provenance]
    reason = explanation.unit.attributes.get("reason") if explanation.unit.kind == "decision" else None
    if reason is not None:
        cost = [f"at a cost: {clean(reason['tradeoff'])}"] if reason["tradeoff"] else []
        yield "because", [f"{reason['type']}: {clean(reason['summary'])}", *cost]
    yield "imported", _origin(explanation.unit.attributes)
    yield (
        "evidence",
        [f"{'✓' if counts else '…'} {clean(cited)}" for cited, counts in explanation.citations] or ["nothing"],
    )
    yield "status", [f"{explanation.unit.status}: {clean(explanation.status_reason)}"]
    yield "trust", [*map(clean, explanation.why_confidence)]
    yield "", [f"{explanation.confidence_now:.2f} today, by decay since the last validation"] if faded else []
    yield "valid", [explanation.valid]
    yield "here", [clean(note) for note in explanation.here]
    yield "related", [*map(with_short_ids, explanation.related)]
    yield "disputes", [_dispute_line(dispute, explanation.unit.id) for dispute in explanation.disputes]
    yield "used by", [clean(", ".join(explanation.used_by))] if explanation.used_by else ["no task yet"]
    yield (
        "history",
        [f"#{event.seq}  {when(event.recorded_at)}  {event.type}  {event.actor}" for event in explanation.history],
    )


def _origin(known: Mapping[str, Any]) -> list[str]:
    """The origin of an imported unit, as far as its source has it."""
    if "import_from" not in known:
        return []
    source = [known["import_from"], known.get("import_at"), *(f"#{tag}" for tag in known.get("import_tags", ()))]
    who = [f"by {known['import_author']}"] if "import_author" in known else []
    return [clean(", ".join(filter(None, [*source, *who]))), clean(f"brought in by {known.get('kept_by')}")]


def _related(relations: Sequence[outcome.Related], _: Call) -> str:
    lines = [f"{with_short_ids(each.sentence)}\n   {short(each.unit.content, _RECALLED_CHARS)}" for each in relations]
    return "\n".join(lines) or "It has no related units."


def _found(answer: search.Found, call: Call) -> str:
    shown = [item for at, item in enumerate(answer.binding) if item.tier < TIER_NORMAL or at < _BINDING_SHOWN]
    lines = [f"  {item.label} {short_id(item.unit.id)}  {short(item.unit.content)}" for item in shown]
    more = len(answer.binding) - len(shown) + answer.unlisted
    lines += [f"  … and {more} more: mnemarch decisions load"] if more else []
    lines = ["binding", *lines, ""] if lines else []
    lines += [] if answer.items else [f"Nothing found for {quoted(call.options.query)} from here."]
    for rank, item in enumerate(answer.items, start=1):
        lines += _recalled(rank, item)
    if answer.withheld:
        withheld = (f"  {short_id(each.unit_id)}  {with_short_ids(each.reason)}" for each in answer.withheld)
        lines += ["", "withheld", *withheld]
    known = UNRECORDED, f"{answer.unlisted} more binding"
    return "\n".join([*lines, *(note for note in _notes(answer.notes) if not any(each in note for each in known))])


def _notes(notes: Sequence[str]) -> list[str]:
    return [f"note: {clean(note)}" for note in notes]


def _recalled(rank: int, item: search.Recalled) -> list[str]:
    why = ", ".join(f"{name} {share:.2f}" for name, share in item.why.items())
    unit = item.unit
    return [
        f"{rank}. {item.label} {short(unit.content, _RECALLED_CHARS)}",
        f"   score {item.score:.2f} ({why})  {unit.kind}  {unit.level}  {age(unit.occurred_at)}",
        f"   {short_id(unit.id)}",
        *(f"   note: {clean(note)}" for note in item.notes),
    ]


def _about_pack(pack: search.Pack, call: Call) -> str:
    """Notes about a context: its size, and what was left out."""
    left = f", {len(pack.left_out)} left out" if pack.left_out else ""
    bind = f" and {counted(len(pack.binding), 'binding decision')}" if pack.binding else ""
    size = f"{counted(len(pack.items), 'unit')}{bind}, {pack.tokens} of {pack.budget} tokens{left}"
    first = size if pack.text else f"Nothing found for {quoted(call.options.query)} that fits the budget."
    return "\n".join([first, *_notes(pack.notes)])


# Conflicts and merge proposals


def _opened(stored: outcome.Stored) -> Iterator[str]:
    """Lines about the units that a new unit contradicts or resembles."""
    for dispute in (*stored.conflicts, *stored.similar):
        verb, what = ("contradicts", "conflict") if dispute in stored.conflicts else ("resembles", "proposal")
        if not dispute.open:
            yield f"  conflict {short_id(dispute.id)} is closed: {clean(dispute.decision or '')}"
            continue
        others, id = _others(dispute, stored.unit.id), short_id(dispute.id)
        yield f"  {verb} {others} ({clean(dispute.reason)}): {what} {id}"
        if dispute.proposal == stored.unit.id:
            yield f"  it announces a change: if {short_id(dispute.proposal)} wins, it supersedes the older unit"


def _disputes(what: str) -> Text:
    """The text for disputes, one paragraph each with all its units, which a table could not show."""

    def text(disputes: Sequence[outcome.Dispute], call: Call) -> str:
        if not disputes:
            return f"No open {what}s."
        is_resolved = not all(_has_decision(dispute, call) for dispute in disputes)
        paragraphs = ["\n".join(_paragraph(what, dispute, call)) for dispute in disputes]
        return "\n\n".join([*paragraphs, *([_HINTS] if is_resolved else [])])

    return text


def _paragraph(what: str, dispute: outcome.Dispute, call: Call) -> Iterator[str]:
    yield f"{what}  {short_id(dispute.id)}"
    yield wrapped(_difference(dispute))
    for side in dispute.units[:_SIDES_MAX]:
        one = call.seat.get(side)
        yield f"{INDENT}unit  {short_id(side)}{'  announces the change' if side == dispute.proposal else ''}"
        yield wrapped(quoted(one.content), INDENT * 2)
        yield f"{INDENT * 2}{_standing(one)}"
    if len(dispute.units) > _SIDES_MAX:
        yield f"{INDENT}and {len(dispute.units) - _SIDES_MAX} more: mnemarch --json {what}s"
    if _has_decision(dispute, call):
        yield f"{INDENT}Revise a decision instead: mnemarch decide TEXT --revises DECISION (the one in force)"
    elif len(dispute.units) == 1:
        yield f"{INDENT}Keep it: mnemarch resolve ID --reason WHY, or drop it: mnemarch reject UNIT --reason WHY"
    if dispute.proposal is not None:
        yield f"{INDENT}If the newer one, {short_id(dispute.proposal)}, wins, it supersedes the older."


def _has_decision(dispute: outcome.Dispute, call: Call) -> bool:
    return any(call.seat.get(side).kind is Kind.DECISION for side in dispute.units[:_SIDES_MAX])


def _standing(one: unit.Unit) -> str:
    voices = ", ".join(clean(str(source.actor)) for source in one.provenance) or "nobody any more"
    return f"{one.status} {one.confidence:.2f}  {one.level}  by {voices}, {age(one.occurred_at)}"


def _difference(dispute: outcome.Dispute) -> str:
    """The subject of a dispute and its values, or the reason if there are no two values."""
    values = list(dict.fromkeys(value for value in dispute.values if value))
    if len(values) < 2 or dispute.proposal is not None:
        return clean(f"differs in {dispute.reason}" if " / " in dispute.reason else dispute.reason)
    more = f" and {len(values) - _SIDES_MAX} more" if len(values) > _SIDES_MAX else ""
    return f"{clean(dispute.subject)}: {' / '.join(map(clean, values[:_SIDES_MAX]))}{more}"


def _resolved(dispute: outcome.Dispute, _: Call) -> str:
    if dispute.winner is None:
        return f"resolved  {short_id(dispute.id)}\n  {_all_hold(dispute)}  {'  '.join(map(short_id, dispute.units))}"
    winner, losers = short_id(dispute.winner), _others(dispute, dispute.winner)
    return f"resolved  {short_id(dispute.id)}\n  winner  {winner}\n  loser   {losers}"


def _dispute_line(dispute: outcome.Dispute, unit_id: str) -> str:
    """One line about a dispute of a unit."""
    won = f"won by {short_id(dispute.winner or '')}"
    decided = f"{_all_hold(dispute)}: {dispute.decision}" if dispute.winner is None else won
    how = "open" if dispute.open else clean(decided)
    return f"{dispute.kind} {_others(dispute, unit_id)} ({short(dispute.reason)}), {how}: {short_id(dispute.id)}"


def _all_hold(dispute: outcome.Dispute) -> str:
    return "both hold" if len(dispute.units) == 2 else "all hold"


def _others(dispute: outcome.Dispute, unit_id: str) -> str:
    return some_of([short_id(side) for side in dispute.units if side != unit_id], _SIDES_MAX)


_CHANGED = {"cite": "cited", "use": "used", "approve": "approved", "reject": "rejected", "withdraw": "withdrawn"}
_CHANGED |= {"supersede": "superseding", "archive": "archived", "revive": "revived"}
# Keyed by the verb's name, or by its return annotation if several verbs share the text.
TEXTS: dict[str, Text] = {
    "Receipt": _receipt,
    "list[Receipt]": _receipts,
    "Stored | Refused": _outcome("stored"),
    "seat.promote": _outcome("promoted"),
    "list[Stored | Refused]": _outcomes,
    "list[InboxItem]": _inbox,
    "list[Settled]": _settled,
    "seat.get": _unit,
    "Unit": _changed("changed"),
    **{f"seat.{verb}": _changed(done) for verb, done in _CHANGED.items()},
    "seat.validate": lambda to, _: f"validated  {short_id(to['unit_id'])}  confidence {to['confidence']:.2f}",
    "list[Unit]": _units,
    "seat.conflicts": _disputes("conflict"),
    "seat.proposals": _disputes("proposal"),
    "Dispute": _resolved,
    "Explanation": _explanation,
    "list[Related]": _related,
    "Found": _found,
    "Pack": lambda pack, _: clean(pack.text),
    "about Found": lambda answer, _: "\n".join(_notes([note for note in answer.notes if UNRECORDED in note])),
    "about Pack": _about_pack,
}
