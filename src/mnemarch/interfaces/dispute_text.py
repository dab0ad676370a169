"""Conflicts and merge proposals in words: what a write opened, the open ones, and how one was decided."""

from __future__ import annotations

from mnemarch.interfaces.show import INDENT, age, clean, quoted, short, wrapped
from mnemarch.model.stamps import short_id
from mnemarch.model.unit import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mnemarch.interfaces.command import Call
    from mnemarch.model.outcome import Dispute, Stored
    from mnemarch.model.unit import Unit

_SIDES_MAX = 8
_HINTS = (
    "Decide one: mnemarch resolve ID --winner UNIT --reason WHY\n"
    "If all of them hold: mnemarch resolve ID --both --reason WHY"
)


def opened(stored: Stored) -> Iterator[str]:
    """What a new unit contradicts and resembles, line by line."""
    for dispute in (*stored.conflicts, *stored.similar):
        verb, what = ("contradicts", "conflict") if dispute in stored.conflicts else ("resembles", "proposal")
        if not dispute.open:
            yield f"  conflict {short_id(dispute.id)} is closed: {clean(dispute.decision or '')}"
            continue
        others, id = _others(dispute, stored.unit.id), short_id(dispute.id)
        yield f"  {verb} {others} ({clean(dispute.reason)}): {what} {id}"
        if dispute.proposal == stored.unit.id:
            yield f"  it announces a change: resolved for {short_id(dispute.proposal)}, it supersedes the older"


def listed(what: str) -> Callable[[Sequence[Dispute], Call], str]:
    """Each as a paragraph: all its units belong to it, which the rows of a table don't show."""

    def text(disputes: Sequence[Dispute], call: Call) -> str:
        if not disputes:
            return f"No open {what}s."
        return "\n\n".join([*("\n".join(_paragraph(what, dispute, call)) for dispute in disputes), _HINTS])

    return text


def _paragraph(what: str, dispute: Dispute, call: Call) -> Iterator[str]:
    yield f"{what}  {short_id(dispute.id)}"
    yield wrapped(_difference(dispute))
    for side in dispute.units[:_SIDES_MAX]:
        one = call.seat.get(side)
        yield f"{INDENT}unit  {short_id(side)}{'  announces the change' if side == dispute.proposal else ''}"
        yield wrapped(quoted(one.content), INDENT * 2)
        yield f"{INDENT * 2}{_standing(one)}"
    if len(dispute.units) > _SIDES_MAX:
        yield f"{INDENT}and {len(dispute.units) - _SIDES_MAX} more: mnemarch --json {what}s"
    if any(call.seat.get(side).kind is Kind.DECISION for side in dispute.units[:_SIDES_MAX]):
        yield f"{INDENT}A decision is revised, not resolved: mnemarch decide TEXT --revises DECISION (the one in force)"
    elif len(dispute.units) == 1:
        yield f"{INDENT}Keep it: mnemarch resolve ID --reason WHY, or drop it: mnemarch reject UNIT --reason WHY"
    if dispute.proposal is not None:
        yield f"{INDENT}Resolved for the newer one, {short_id(dispute.proposal)}, it supersedes the older."


def _standing(unit: Unit) -> str:
    voices = ", ".join(clean(str(source.actor)) for source in unit.provenance)
    return (
        f"{unit.status} {unit.confidence:.2f}  {unit.level}  by {voices or 'nobody any more'}, {age(unit.occurred_at)}"
    )


def _difference(dispute: Dispute) -> str:
    """What the units of a dispute are about, and the values that they give it."""
    values = list(dict.fromkeys(value for value in dispute.values if value))
    if len(values) < 2 or dispute.proposal is not None:
        return clean(f"differs in {dispute.reason}" if " / " in dispute.reason else dispute.reason)
    more = f" and {len(values) - _SIDES_MAX} more" if len(values) > _SIDES_MAX else ""
    return f"{clean(dispute.subject)}: {' / '.join(map(clean, values[:_SIDES_MAX]))}{more}"


def resolved(dispute: Dispute, _: Call) -> str:
    if dispute.winner is None:
        return f"resolved  {short_id(dispute.id)}\n  {_all_hold(dispute)}  {'  '.join(map(short_id, dispute.units))}"
    winner, losers = short_id(dispute.winner), _others(dispute, dispute.winner)
    return f"resolved  {short_id(dispute.id)}\n  winner  {winner}\n  loser   {losers}"


def state(dispute: Dispute, unit_id: str) -> str:
    """A dispute of one unit in a line."""
    won = f"won by {short_id(dispute.winner or '')}"
    decided = f"{_all_hold(dispute)}: {dispute.decision}" if dispute.winner is None else won
    how = "open" if dispute.open else clean(decided)
    return f"{dispute.kind} {_others(dispute, unit_id)} ({short(dispute.reason)}), {how}: {short_id(dispute.id)}"


def _all_hold(dispute: Dispute) -> str:
    return "both hold" if len(dispute.units) == 2 else "all hold"


def _others(dispute: Dispute, unit_id: str) -> str:
    others = [side for side in dispute.units if side != unit_id]
    more = f" and {len(others) - _SIDES_MAX} more" if len(others) > _SIDES_MAX else ""
    return ", ".join(map(short_id, others[:_SIDES_MAX])) + more
