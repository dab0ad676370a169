"""What changes between two Korean texts that are nearly the same: whether it may change the sense."""

from __future__ import annotations

from difflib import SequenceMatcher

# What may come, go or stand for each other: the topic and the subject, the object, the possessive, politeness.
_FREE = (
    frozenset(["", "은", "는", "이", "가"]),
    frozenset(["", "을", "를"]),
    frozenset(["", "의"]),
    frozenset(["", "요", "좀"]),
)
# Longer stretches are not compared letter by letter, which takes the square of their length.
_COMPARED_MAX = 400


def is_other_grammar(text: str, other: str) -> bool:
    """Whether syllables of Hangul differ between two canonical texts, other than freely."""
    if text.isascii() and other.isascii():
        return False
    ours, theirs = _parted(text, other)
    if max(len(ours), len(theirs)) > _COMPARED_MAX:
        return _has_hangul(ours + theirs)
    changes = SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes()
    return any(_tells(ours[a:b], theirs[c:d]) for tag, a, b, c, d in changes if tag != "equal")


def _parted(text: str, other: str) -> tuple[str, str]:
    """The two without what they begin and end with alike."""
    begin = _alike(text, other)
    ours, theirs = text[begin:], other[begin:]
    end = _alike(ours[::-1], theirs[::-1])
    return ours[: len(ours) - end], theirs[: len(theirs) - end]


def _alike(text: str, other: str) -> int:
    """How many letters two texts begin with together."""
    pairs = enumerate(zip(text, other, strict=False))
    return next((at for at, (ours, theirs) in pairs if ours != theirs), min(len(text), len(other)))


def _tells(left: str, right: str) -> bool:
    gone, come = left.strip(), right.strip()
    if not _has_hangul(gone + come):
        return False
    return not any(gone in free and come in free for free in _FREE)


def _has_hangul(text: str) -> bool:
    return any("\uac00" <= letter <= "\ud7a3" for letter in text)
