"""Whether two statements oppose each other, or one announces that the other has ended (R6, R12).

This is the one rule for facts and decisions. Two statements are compared as frames (`text/sides.py`): their common part
is the subject, and the rest decides. Two statements that differ only in denials oppose each other even if their frames
don't.
"""

from __future__ import annotations

from mnemarch.model.value import Frozen
from mnemarch.text import korean
from mnemarch.text.cache import cached, pattern
from mnemarch.text.canonical import canonical
from mnemarch.text.clauses import root_of
from mnemarch.text.frames import frame_of
from mnemarch.text.guarded import pieces, polarity
from mnemarch.text.sides import is_denial, opposed
from mnemarch.text.slots import has_hangul
from mnemarch.text.statements import STATEMENT_CHARS_MAX, empty_words, said_by, said_in, statement
from mnemarch.text.words import Patterns, is_hangul

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

_PATTERNS = Patterns("senses", "patterns")
_TRY = r"(?i)^\W*(?:i |we |also )?(?:tried|attempted)\b|시도했|해 ?(?:봤|보았)"
_CIRCUMSTANCE = Patterns("relations", "asides")
# The words of negations and verbs of use, in the form in which they are compared.
_SAYING_NO = frozenset({"not", "un", "prefer+", "prefer-"})
_CHANGES = {"english": Patterns("relations", "changes"), "korean": Patterns("relations", "korean changes")}


class Opposition(Frozen):
    """An opposition between two statements about one subject, with the words of both sides.

    `kind` is polarity, value or change. A change: the second statement announces that the first has ended.
    """

    kind: str
    left: str
    right: str

    @property
    def reason(self) -> str:
        sides = (self.left, self.right) if self.kind == "polarity" else map(korean.as_name, (self.left, self.right))
        return f"{self.kind}: {' / '.join(side or 'none' for side in sides)}"


def opposes(a: str, b: str, *, is_rule: bool = False) -> Opposition | None:
    """The opposition between two statements, or None if they say the same or both can be true.

    They oppose in polarity or in a value. If they differ in both, both can be true: something that is not stored in
    Redis may be stored in Postgres. Two attempts never oppose each other, since they are two events.
    """
    if _tells_of_a_try(a) and _tells_of_a_try(b):
        return None
    turned = _turned_round(a, b)
    if turned is not None:
        kind, parts = "polarity", turned
    else:
        kind, parts = opposed(a, b, is_rule=is_rule) or ("polarity", _denied(a, b))
    return Opposition(kind, *(", ".join(part[side] for part in parts) for side in (0, 1))) if parts else None


def _tells_of_a_try(text: str) -> bool:
    return pattern(_TRY).search(text) is not None


def _denied(a: str, b: str) -> list[tuple[str, str]]:
    """The denials between two texts that otherwise say the same.

    Opposite conditions (on create, on delete) and opposite kinds of the subject (the left panel, the right panel) tell
    two things apart.
    """
    frames = frame_of(a), frame_of(b)
    if not all(frame.is_plain for frame in frames):
        return []
    apart = [
        {item.written for item in frame.items if item.is_condition or (item.is_modifier and item.is_subject)}
        for frame in frames
    ]
    ours, theirs = pieces(a), pieces(b)
    said = [{word for piece in side for word in said_by(piece)} for side in (ours, theirs)]
    parts = polarity(ours, theirs) if said[0] == said[1] else []
    return [part for part in parts if not (part[0] in apart[0] and part[1] in apart[1])]


def _turned_round(a: str, b: str) -> list[tuple[str, str]] | None:
    """The exchanged ends of a one-way relation, such as "flags override the file", that two texts state both ways.

    Empty if the relation is reversed too: A starts before B, B starts after A. None if no ends are exchanged.
    """
    for name in ("one way", "korean one way"):
        ours, theirs = (_PATTERNS[name].match(text.strip()) for text in (a, b))
        if ours and theirs:
            (verb, *ends), (other_verb, *other_ends) = map(_read_one_way, (ours, theirs))
            if ends == other_ends[::-1] != other_ends:
                return [(ours["one"], theirs["one"])] if verb == other_verb else []
    return None


def _read_one_way(match: re.Match[str]) -> list[str]:
    """The verb of a relation without its endings, and its two ends."""
    return [" ".join(map(root_of, match["verb"].lower().split())), canonical(match["one"]), canonical(match["other"])]


def breaks(text: str, rule: str) -> Opposition | None:
    """The opposition between a text and a rule, which may be wider or narrower than the text, or None (R12).

    "Money is stored as floats" breaks "All money is stored as integers in cents". Only the beginning of a long text is
    compared, since it states the decision.
    """
    return opposes(text[:STATEMENT_CHARS_MAX], rule[:STATEMENT_CHARS_MAX], is_rule=True)


# Announced changes


class Change(Frozen):
    """An announced change: the words of the old and the new thing, and the other words, which say what it is about."""

    old: frozenset[str]
    new: frozenset[str]
    about: frozenset[str]
    names: tuple[str, str]


@cached(256)
def change_of(text: str) -> Change | None:
    """The change that an English or Korean text announces ("no longer", "switched from X to Y", "is now"), or None."""
    if len(text) > STATEMENT_CHARS_MAX:
        return None
    patterns = _CHANGES["korean" if has_hangul(pieces(text)) else "english"]
    for name in patterns.sources:
        match = patterns[name].search(text)
        if match is not None:
            named = match.groupdict()
            names = _bare_name(named.get("old") or ""), _bare_name(named.get("new") or "")
            old, new = (said_in(each) - empty_words() for each in names)
            about = said_in(text[: match.start()] + " ".join(named.values()) + text[match.end() :])
            return Change(old, new, about - old - new - empty_words() if named else frozenset(), names)
    return None


def _bare_name(phrase: str) -> str:
    """The name in a phrase, without the circumstance after it and without earlier words that have a particle."""
    words = _CIRCUMSTANCE["circumstance"].split(phrase, maxsplit=1)[0].split()
    particles = [at for at, word in enumerate(words[:-1]) if is_hangul(word[-1]) and korean.parted(word)[1]]
    return " ".join(words[particles[-1] + 1 if particles else 0 :])


def _is_other_version(new: frozenset[str], known: frozenset[str]) -> bool:
    """Whether the known text has the same name with another number: Kubernetes 1.27 and Kubernetes 1.22."""
    others = new - known
    return bool(new & known) and all(word[0].isdigit() for word in others) and any(word[0].isdigit() for word in known)


def ended(older: str, newer: str) -> Opposition | None:
    """The opposition if `newer` announces that the statement in `older` has changed, else None."""
    change = change_of(newer) if older != newer else None
    if change is None:
        return None
    opposed = opposes(older, newer)
    if opposed is not None:
        return Opposition("change", opposed.left, opposed.right)
    past = change_of(older)
    # What the older statement calls replaced has ended already.
    known, values = said_in(older) - (past.old - past.new if past else frozenset()), statement(older).values
    if not any(change.names):
        # Built with Angular; no longer uses Angular.
        told = statement(newer).values
        is_ended = bool(told) and said_in(newer) - empty_words() - _SAYING_NO <= known
        return Opposition("change", told[0].written, "") if is_ended else None
    if not change.new or change.new <= known:
        return None
    if change.old:
        # What says that the old thing is not used agrees with its end.
        is_held = change.old <= known and not is_denial(older)
        is_ended = is_held and (not change.about or bool(change.about & known))
    else:
        is_ended = bool(values) and (change.about <= known if change.about else _is_other_version(change.new, known))
    return Opposition("change", *change.names) if is_ended else None
