"""What the guardian says of a proposal (D11, R12): from strength and explicit relations alone, the same every time."""

from __future__ import annotations

from mnemarch.model.decision import GuardianVerdict, Strength
from mnemarch.model.outcome import Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mnemarch.model.caller import Level
    from mnemarch.model.decision import Decision

_EVERYWHERE = "global"


def judged(
    strength: Strength,
    base: Decision | None,
    constraining: Sequence[Decision],
    reached: Sequence[Decision],
    *,
    domain: str | None = None,
    level: Level | None = None,
) -> GuardianVerdict:
    """`base` is what the proposal revises, `constraining` what binds it, `reached` what its change would touch.

    `domain` and `level` are where it would hold, if not where its base does.
    """
    against: list[tuple[Verdict, str, str]] = []
    if base is not None:
        if base.strength is Strength.AXIS:
            against.append((Verdict.BLOCK, f"It revises an axis: {_named(base)}.", base.id))
        elif base.strength is Strength.LOCK:
            against.append((Verdict.WARN, f"It revises a lock: {_named(base)}.", base.id))
        if strength < base.strength:
            weaker = f"It would stand weaker than what it replaces: {strength} instead of {base.strength}."
            against.append((Verdict.BLOCK, weaker, base.id))
        if base.strength > Strength.NORMAL:
            against += [(Verdict.WARN, loss, base.id) for loss in _losses(base, domain, level)]
    against += _bonds(constraining)
    against += [
        (Verdict.WARN, f"Its change reaches the {other.strength} {_named(other)}.", other.id)
        for other in reached
        if other.strength > Strength.NORMAL
    ]
    return _verdict(against)


def parting(base: Decision, constraining: Sequence[Decision]) -> GuardianVerdict:
    """The same of taking a decision out of force: what goes stands weaker than anything that could replace it."""
    against = list(_bonds(constraining))
    if base.strength > Strength.NORMAL:
        firm = "an axis" if base.strength is Strength.AXIS else "a lock"
        against.insert(0, (Verdict.BLOCK, f"It takes {firm} out of force: {_named(base)}.", base.id))
    return _verdict(against)


def _bonds(constraining: Sequence[Decision]) -> Iterator[tuple[Verdict, str, str]]:
    for other in constraining:
        if other.strength is Strength.AXIS:
            yield Verdict.BLOCK, f"An axis constrains it: {_named(other)}.", other.id
        elif other.strength is Strength.LOCK:
            yield Verdict.WARN, f"A lock constrains it: {_named(other)}.", other.id


def _verdict(against: Sequence[tuple[Verdict, str, str]]) -> GuardianVerdict:
    """The worst of what was said, with all of it."""
    verdicts = [verdict for verdict, _, _ in against]
    worst = next((verdict for verdict in (Verdict.BLOCK, Verdict.WARN) if verdict in verdicts), Verdict.ALLOW)
    return GuardianVerdict(
        type=worst,
        reasons=tuple(dict.fromkeys(reason for _, reason, _ in against)),
        evidence=tuple(dict.fromkeys(unit_id for _, _, unit_id in against)),
    )


def _losses(base: Decision, domain: str | None, level: Level | None) -> Iterator[str]:
    """Where it would hold no longer."""
    if domain not in (None, base.domain, _EVERYWHERE):
        yield f"It would hold in domain {domain} alone, and no longer in {base.domain}."
    if level is not None and level < base.unit.level:
        yield f"It would hold at {level} scope alone, and no longer in the whole {base.unit.level}."


def _named(decision: Decision) -> str:
    line = " ".join(decision.text.split())
    return f'"{line if len(line) <= 80 else line[:79] + "…"}" ({decision.id}, version {decision.version})'
