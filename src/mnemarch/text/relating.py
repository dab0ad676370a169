"""What relates a subject to its values: where a thing is, by what it is done, and of what kind its values are (R6)."""

from __future__ import annotations

from mnemarch.text.amounts import dimension
from mnemarch.text.slots import COPULAS, DETERMINERS, english_slots, verb_forms, word_of
from mnemarch.text.slots_korean import has_hangul, korean_slots, without_particle, word_set
from mnemarch.text.words import kinds_of, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mnemarch.text.guarded import Piece

# What stands in a topic for the verb that says by what a thing is done.
USES = ("±use",)
AMOUNT = frozenset({"amount"})
# So far back a copula is looked for.
_NEAR = 8


def parsed(found: tuple[Piece, ...]) -> tuple[dict[int, int], dict[int, tuple[str, ...]]]:
    """Where each value begins and ends, and what stands in the topic for verbs of place."""
    is_korean = has_hangul(found)
    slots = korean_slots(found) if is_korean else english_slots(found)
    relations = _places(found, slots) | _uses(found, slots, is_korean=is_korean) | _outcomes(found, slots)
    return slots, relations


def _places(found: Sequence[Piece], slots: dict[int, int]) -> dict[int, tuple[str, ...]]:
    """What stands in a topic for a verb that says where a thing is, or for the first piece of a value if none does."""
    relations: dict[int, tuple[str, ...]] = {}
    for begin, end in slots.items():
        if without_particle(found[end - 1])[1] in word_set("korean places"):
            puts = tuple(listed("relations", "korean place"))
            verb = next((at for at in range(end, len(found)) if found[at][3].startswith(puts)), None)
            if verb is not None:
                relations[verb] = ("@place",)
            continue
        before = [found[at][3].lower() for at in range(max(0, begin - 3), begin)]
        if word_set("places").isdisjoint(before):
            continue
        verb = next((at for at in range(max(0, begin - 3), begin) if found[at][3].lower() in verb_forms("place")), None)
        if verb is not None:
            relations[verb] = ("@place",)
        elif _is_told_where(found[max(0, begin - _NEAR) : begin]):
            relations[begin] = ("@place",)
    return relations


def _uses(found: Sequence[Piece], slots: dict[int, int], *, is_korean: bool) -> dict[int, tuple[str, ...]]:
    """What stands in a topic for words that say by what a thing is done: uses Celery, run on Celery, by Celery."""
    relations: dict[int, tuple[str, ...]] = {}
    verbs_of = _korean_use if is_korean else _english_use
    for begin, end in slots.items():
        verbs = () if found[begin][0] == "number" else verbs_of(found, end if is_korean else begin)
        if verbs:
            relations |= dict.fromkeys(verbs, ()) | {begin: USES}
    return relations


def _outcomes(found: Sequence[Piece], slots: dict[int, int]) -> dict[int, tuple[str, ...]]:
    """What stands in a topic for what a call ends with in a case that is told: returns None, raises KeyError if …"""
    told = [(max(0, begin - _NEAR), begin) for begin, end in slots.items() if end < len(found)]
    verbs = (at for start, begin in told for at in range(start, begin) if word_of(found[at]) in verb_forms("outcomes"))
    return dict.fromkeys(verbs, ("@outcome",))


def _korean_use(found: Sequence[Piece], end: int) -> Sequence[int]:
    verbs = listed("relations", "korean use", "korean run by")
    return [at for at in range(end, min(len(found), end + 2)) if found[at][3].startswith(tuple(verbs))][:1]


def _english_use(found: Sequence[Piece], begin: int) -> Sequence[int]:
    known = verb_forms("using") | verb_forms("run by")
    at = begin - 1
    while at > 0 and (word_of(found[at]) in DETERMINERS or word_of(found[at]) in word_set("slot prepositions")):
        at -= 1
    return range(at, begin) if at >= 0 and word_of(found[at]) in known else ()


def verb_of(piece: Piece) -> str:
    """By what a verb is compared that says by what a thing is done, and its preposition; nothing for an article."""
    word, written = word_of(piece), piece[3]
    if word in verb_forms("using") or written.startswith(tuple(listed("relations", "korean use"))):
        return "use"
    is_run = word in verb_forms("run by") or written.startswith(tuple(listed("relations", "korean run by")))
    return piece[1] if is_run or word in word_set("slot prepositions") else ""


def kinds_in(slot: Sequence[Piece]) -> frozenset[str]:
    """What the name in a value is used as: the Redis cluster, as Redis is; and that it is an amount: 2 GB of memory."""
    parts = " ".join(without_particle(piece)[0].lower() for piece in slot).replace(" - ", "-").split()
    names = [" ".join(parts), *(" ".join(parts[at : at + 2]) for at in range(len(parts) - 1)), *parts]
    is_amount = any(piece[0] == "number" and dimension(piece[1]) for piece in slot)
    return AMOUNT if is_amount else next((kinds for name in names if (kinds := kinds_of(name))), frozenset())


def _is_told_where(before: Sequence[Piece]) -> bool:
    """Whether a copula and a preposition stand right before: is not in, are now under the."""
    words = [piece[3].lower() for piece in before if piece[0] != "negation"]
    words = [word for word in words if word not in DETERMINERS and word not in word_set("adverbs")]
    return words[-2:-1] != [] and words[-2] in COPULAS and words[-1] in word_set("places")
