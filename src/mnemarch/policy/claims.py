"""What a claim or a signal must look like before an act begins."""

from __future__ import annotations

from mnemarch.errors import Hint, InvalidInput
from mnemarch.model.caller import Level, checked_id
from mnemarch.model.citation import Citation
from mnemarch.model.json_text import canonical_json
from mnemarch.model.stamps import checked_instant
from mnemarch.model.unit import Claim, DecayPolicy, Kind, Signal
from mnemarch.model.value import replace
from mnemarch.policy.admission import checked_key, checked_list, checked_mapping, checked_name, checked_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mnemarch.model.caller import Scope


_OF_DECISIONS = {"root", "version", "strength"}


def checked_share(number: Any, what: str) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 1:
        raise InvalidInput(f"{what} must be a number from 0 to 1, not {number!r}.", hint="0.5 is the middle.")
    return float(number)


def checked_signal(signal: str) -> Signal:
    try:
        return Signal(signal)
    except ValueError:
        raise InvalidInput(f"{signal!r} is no signal.", hint=f"Use one of: {', '.join(Signal)}.") from None


def checked_claim(claim: Claim, scope: Scope, bytes_max: int) -> Claim:
    """The claim with every field of its proper type; its level is the seat's own where it names none."""
    given: Any = claim
    if not isinstance(given, Claim):
        raise InvalidInput(f"{given!r} is no claim.", hint=Hint("claim"))
    if claim.decay_policy is not None and claim.decay_policy not in set(DecayPolicy):
        raise InvalidInput(f"{claim.decay_policy!r} is no decay policy.", hint=f"Use one of: {', '.join(DecayPolicy)}.")
    cited = checked_list(claim.citations, "citations")
    for citation in cited:
        if not isinstance(citation, Citation):
            raise InvalidInput(f"{citation!r} is no citation.", hint=Hint("cite"))
    if (
        Kind.parse(claim.kind) is Kind.DECISION
        and _OF_DECISIONS & checked_mapping(claim.attributes, "attributes").keys()
    ):
        raise InvalidInput(
            f"A claim can't name {', '.join(sorted(_OF_DECISIONS))}: a decision in force needs a reason, evidence and"
            " versions (R12).",
            hint=Hint("make a decision"),
        )
    level = scope.level if claim.level is None else Level.parse(claim.level)
    scope.at(level)
    return replace(
        claim,
        content=checked_text(claim.content, "The content", bytes_max),
        kind=Kind.parse(claim.kind),
        level=level,
        domain=checked_id(claim.domain, "a domain"),
        citations=tuple(dict.fromkeys(cited)),
        importance=checked_share(claim.importance, "Importance"),
        occurred_at=None if claim.occurred_at is None else checked_instant(claim.occurred_at, "occurred_at"),
        session=None if claim.session is None else checked_name(claim.session, "a session"),
        attributes=_checked_attributes(claim.attributes),
        key=None if claim.key is None else checked_key(claim.key),
        decay_policy=None if claim.decay_policy is None else DecayPolicy(claim.decay_policy),
    )


def _checked_attributes(given: Any) -> dict[str, Any]:
    """A dictionary that JSON can hold, found out before anything of a batch is stored."""
    attributes = checked_mapping(given, "attributes")
    canonical_json(attributes)
    return attributes
