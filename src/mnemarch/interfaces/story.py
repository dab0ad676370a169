"""The story of one unit, for `mnemarch explain`: who said it, what it rests on, how sure it is and how that came."""

from __future__ import annotations

from mnemarch.interfaces.show import clean, short, when

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mnemarch.model.event import Event
    from mnemarch.model.outcome import Dispute, Explanation


def story(given: Explanation) -> str:
    unit = given.unit
    lines = [
        clean(unit.content) or "(erased)",
        f"{unit.kind} · {unit.status} · confidence {given.confidence_now:.2f} · {unit.level} {clean(unit.scope)}"
        f" · domain {clean(unit.domain)} · version {unit.version}",
        unit.id,
        "",
    ]
    for name, items in _chapters(given):
        for number, item in enumerate(items):
            lines.append(f"{name if number == 0 else '':<10}{item}")
    return "\n".join(lines)


def _chapters(given: Explanation) -> Iterator[tuple[str, list[str]]]:
    yield "said by", [f"{voice.actor} in {voice.scope} on {when(voice.at)}" for voice in given.provenance]
    yield "evidence", [f"{'✓' if counts else '…'} {clean(cited)}" for cited, counts in given.citations] or ["nothing"]
    yield "status", [f"{given.unit.status}: {clean(given.status_reason)}"]
    yield "trust", [*map(clean, given.why_confidence), *_faded(given)]
    yield "valid", [given.valid]
    yield "here", [clean(note) for note in given.here]
    yield "replaces", [given.supersedes] if given.supersedes else []
    yield "replaced", [f"by {given.superseded_by}"] if given.superseded_by else []
    yield "disputes", [_dispute(dispute, given.unit.id) for dispute in given.disputes]
    yield "used by", [clean(", ".join(given.used_by))] if given.used_by else ["no task yet"]
    yield "history", [_event(event) for event in given.history]


def _faded(given: Explanation) -> list[str]:
    if given.confidence_now == given.confidence_stored:
        return []
    return [f"{given.confidence_now:.2f} today, by decay since the last validation"]


def _dispute(dispute: Dispute, unit_id: str) -> str:
    other = next(side for side in dispute.units if side != unit_id)
    decided = "both hold" if dispute.winner is None else f"won by {dispute.winner}"
    state = "open" if dispute.open else decided
    return f"{dispute.kind} {other} ({short(dispute.reason)}), {state}: {dispute.id}"


def _event(event: Event) -> str:
    return f"#{event.seq}  {when(event.recorded_at)}  {event.type}  {event.actor}"
