"""What recall answers. Apart from the other outcomes, since a hook that recalls needs no more than this."""

from __future__ import annotations

from mnemarch.model.unit import Unit
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


@value
class Recalled:
    """One unit handed out: where it ranks, why, how to label it, and what its reader should know of its evidence."""

    unit: Unit
    score: float
    tier: int
    why: Mapping[str, float]
    label: str
    notes: tuple[str, ...] = ()


@value
class Withheld:
    """One unit that matched and was not handed out, and the rule that kept it back."""

    unit_id: str
    reason: str


@value
class Found:
    """The answer to a recall. `notes` says what the reader should know about the answer itself."""

    items: tuple[Recalled, ...]
    withheld: tuple[Withheld, ...]
    intent: str
    notes: tuple[str, ...] = ()


@value
class Pack:
    """What fits a token budget: one text for a model, what is in it, and what is not and why."""

    text: str
    items: tuple[Recalled, ...]
    left_out: tuple[Withheld, ...]
    withheld: tuple[Withheld, ...]
    tokens: int
    budget: int
    notes: tuple[str, ...] = ()
