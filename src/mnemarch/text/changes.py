"""Announced changes: the change that a text announces, and the statements that it ends (R6)."""

from __future__ import annotations

from mnemarch.model.value import Frozen
from mnemarch.text import korean
from mnemarch.text.cache import cached
from mnemarch.text.guarded import pieces
from mnemarch.text.opposition import Opposition, opposes
from mnemarch.text.slots import has_hangul
from mnemarch.text.statements import STATEMENT_CHARS_MAX, empty_words, said_in, statement
from mnemarch.text.words import Patterns, is_hangul

_CIRCUMSTANCE = Patterns("relations", "asides")
# The words of negations and verbs of use, in the form in which they are compared.
_SAYING_NO = frozenset({"not", "un", "prefer+", "prefer-"})
_CHANGES = {"english": Patterns("relations", "changes"), "korean": Patterns("relations", "korean changes")}


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
            names = _name(named.get("old") or ""), _name(named.get("new") or "")
            old, new = (said_in(each) - empty_words() for each in names)
            about = said_in(text[: match.start()] + " ".join(named.values()) + text[match.end() :])
            return Change(old, new, about - old - new - empty_words() if named else frozenset(), names)
    return None


def _name(phrase: str) -> str:
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
    known, values = said_in(older), statement(older).values
    if not any(change.names):
        # Built with Angular; no longer uses Angular.
        told = statement(newer).values
        is_ended = bool(told) and said_in(newer) - empty_words() - _SAYING_NO <= known
        return Opposition("change", told[0].written, "") if is_ended else None
    if not change.new or change.new <= known:
        return None
    if change.old:
        is_ended = change.old <= known and (not change.about or bool(change.about & known))
    else:
        is_ended = bool(values) and (change.about <= known if change.about else _is_other_version(change.new, known))
    return Opposition("change", *change.names) if is_ended else None
