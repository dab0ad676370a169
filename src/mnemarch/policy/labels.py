"""How far a reader may believe a unit, in a few words (R2): what verified it, or as what it is kept."""

from __future__ import annotations

from mnemarch.model.testrun import short_name
from mnemarch.model.unit import KEPT_AS, TRUSTED, Kind, Unit

# Every token of a label is one less for content.
_NAME_CHARS_MAX = 24
_RED_HERE = ", fails here"


def label_of(unit: Unit, *, is_contested: bool = False, is_elsewhere: bool = False, is_red_here: bool = False) -> str:
    """The label of a unit that is handed out.

    `is_contested`: another unit contradicts it. `is_elsewhere`: its test is not in the reader's tree. `is_red_here`: it
    was last seen failing there.
    """
    words = _verified(unit, is_elsewhere=is_elsewhere) if unit.status in TRUSTED else _kept(unit)
    words += _RED_HERE if is_red_here else ""
    return f"[{words}]" + (" [CONTESTED]" if is_contested else "")


def head_of(unit: Unit, label: str) -> str:
    """A label as the head of a context has it, where every token is one less for content.

    It goes without the names of tests and worktrees, dates, commands and numbers, which `explain` tells. It keeps what
    changes how far a reader may believe the unit.
    """
    words, _, contested = label.removeprefix("[").partition("]")
    word, proof = words.split()[0].rstrip(",:"), unit.proof
    if contested:
        return f"[CONTESTED] {word.lower()}"
    if unit.kind in (Kind.DECISION, Kind.POLICY) or (proof is not None and proof.person is not None):
        return f"[{words}]"
    if unit.status in TRUSTED and proof is not None:
        if not proof.witnessed:
            return "[REPORTED]"
        if proof.until is not None:
            return f"[{word} once]"
        if words.endswith(_RED_HERE):
            return f"[{word}{_RED_HERE}]"
        elsewhere = " elsewhere" if f" in {proof.worktree}" in words else ""
        return f"[{word}{', flaky' if proof.flaky else elsewhere}]"
    return f"[{word}, fails]" if words.endswith(" fails") else f"[{word}]"


def _verified(unit: Unit, *, is_elsewhere: bool) -> str:
    status, proof = unit.status.upper(), unit.proof
    if unit.kind is Kind.DECISION and "root" in unit.attributes:
        return f"{unit.attributes['strength'].upper()} v{unit.attributes['version']} {unit.domain}"
    if unit.kind is Kind.POLICY:
        return "POLICY"
    if proof is None:
        return status
    if proof.person is not None:
        return f"{status} by {proof.person}"
    if not proof.witnessed:
        return f"{status}, reported"
    if proof.until is not None:
        return f"{status} until {proof.until:%Y-%m-%d}"
    test = _shown(proof.tests[0])
    where = f" in {proof.worktree}" if is_elsewhere and proof.worktree else ""
    return f"{status} by {test}{where}{', flaky' if proof.flaky else ''}"


def _shown(test: str) -> str:
    """A test as a label has it: its function, of a dotted name the class too, and of a long one both ends."""
    last = short_name(test).rpartition(" > ")[2]
    name = ".".join(last.split(".")[-2:]) if "/" not in last else last
    return (
        name if len(name) <= _NAME_CHARS_MAX else f"{name[: _NAME_CHARS_MAX // 2]}…{name[1 - _NAME_CHARS_MAX // 2 :]}"
    )


def _kept(unit: Unit) -> str:
    """What the program keeps although nobody verified it has its own word."""
    by, successes = unit.attributes.get("kept_by", ""), unit.attributes.get("successes")
    words = {
        "observed": f"OBSERVED: {by}",
        "accepted": f"ACCEPTED by {by}",
        "imported": "IMPORTED",
        "lesson": f"LESSON from {by}",
    }.get(str(unit.attributes.get(KEPT_AS)))
    if words is not None:
        return words
    if unit.kind is Kind.EPISODE:
        return "EPISODE"
    if unit.kind is Kind.SKILL and isinstance(successes, int):
        return f"SKILL, {successes} successes"
    if unit.fell_from is not None and unit.proof is not None and unit.proof.tests:
        return f"{unit.status.upper()}: {_shown(unit.proof.tests[0])} fails"
    return unit.status.upper()
