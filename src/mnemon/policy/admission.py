"""What may come in at all: bad input is refused here, in words, before anything is written."""

from __future__ import annotations

from mnemon.errors import InvalidInput
from mnemon.model.actor import checked_id
from mnemon.model.citation import Citation
from mnemon.model.instant import checked_instant
from mnemon.model.scope import Level
from mnemon.model.trust import DecayPolicy, Signal
from mnemon.model.unit import Kind
from mnemon.model.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mnemon.model.claim import Claim
    from mnemon.model.scope import Scope

KEY_CHARS_MAX = 512


def checked_text(text: Any, what: str, bytes_max: int) -> str:
    """`text` if it says something, is valid Unicode and is not too long."""
    if not isinstance(text, str):
        raise InvalidInput(f"{what} must be text, not {type(text).__name__}.", hint="Pass a string.")
    if not text.strip():
        raise InvalidInput(f"{what} is empty.", hint="Say something; nothing was stored.")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{what} is not valid Unicode at character {error.start}.", hint="Decode it first.") from None
    if size > bytes_max:
        raise InvalidInput(
            f"{what} has {size} bytes; the limit is {bytes_max}.",
            hint="Store a summary and cite the source, or raise limits.text_bytes_max in mnemon.toml.",
        )
    return text


def checked_key(key: str | None) -> str | None:
    if key is not None and len(checked_id(key, "an idempotency key")) > KEY_CHARS_MAX:
        raise InvalidInput(f"An idempotency key has at most {KEY_CHARS_MAX} characters.", hint="Use a hash as the key.")
    return key


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
    if claim.decay_policy is not None and claim.decay_policy not in set(DecayPolicy):
        raise InvalidInput(f"{claim.decay_policy!r} is no decay policy.", hint=f"Use one of: {', '.join(DecayPolicy)}.")
    for citation in claim.citations:
        if not isinstance(citation, Citation):
            raise InvalidInput(f"{citation!r} is no citation.", hint='Use Citation.test("..."), Citation.log(id), ...')
    level = scope.level if claim.level is None else Level.parse(claim.level)
    scope.at(level)
    return replace(
        claim,
        content=checked_text(claim.content, "The content", bytes_max),
        kind=Kind.parse(claim.kind),
        level=level,
        domain=checked_id(claim.domain, "a domain"),
        citations=tuple(dict.fromkeys(claim.citations)),
        importance=checked_share(claim.importance, "Importance"),
        occurred_at=None if claim.occurred_at is None else checked_instant(claim.occurred_at, "occurred_at"),
        session=None if claim.session is None else checked_id(claim.session, "a session"),
        key=checked_key(claim.key),
        decay_policy=None if claim.decay_policy is None else DecayPolicy(claim.decay_policy),
    )
