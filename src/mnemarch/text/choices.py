"""Finds choices: the sentences of a text that state a decision, with their reasons if given. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from mnemarch.model.value import Frozen
from mnemarch.text.cache import cached
from mnemarch.text.words import Patterns

_PATTERNS = Patterns("choices", "patterns")
_TEXT_CHARS_MAX = 8_000
# A longer sentence is data, not prose.
_SENTENCE_CHARS_MAX = 400
_WORDS_MIN = 2
_MARKS = " \t,;:.。—–-()"


class Choice(Frozen):
    """A choice: the sentence that states it, the chosen thing, and the reason, which may be empty.

    `lasts` is false for a mere next step of the current task, which others need not know.
    """

    text: str
    what: str
    why: str = ""
    lasts: bool = True


@cached(1_024)
def choices_in(text: str) -> list[Choice]:
    """The choices in a text. Questions, conditions and attempts are no choices."""
    return list(_choices(text))


def choice_of(text: str, why: str = "") -> Choice:
    """The choice in a text that is a choice as a whole, such as an entry that was logged as a decision."""
    sentence = " ".join(text.split())
    what, reason = _parts(sentence[:_SENTENCE_CHARS_MAX], None)
    return _choice(f"{sentence} (because {why})" if why else sentence, what, why or reason)


def _choices(text: str) -> Iterator[Choice]:
    lines = text[:_TEXT_CHARS_MAX].splitlines()
    parts = [" ".join(part.split()) for line in lines for part in _PATTERNS["sentence end"].split(line)]
    sentences = [part for part in parts if part]
    for at, sentence in enumerate(sentences):
        begin = _begin_of_choice(sentence) if len(sentence) <= _SENTENCE_CHARS_MAX else None
        if begin is None:
            continue
        what, why = _parts(sentence, begin)
        after = sentences[at + 1] if at + 1 < len(sentences) else ""
        opening = None if why else _PATTERNS["next reason"].match(after)
        if opening and len(after) <= _SENTENCE_CHARS_MAX:
            sentence, why = f"{sentence} {after}", after[opening.end() :]
        yield _choice(sentence, what, why)


def _begin_of_choice(sentence: str) -> int | None:
    """The offset of the words that state a choice, or None."""
    # A cheap search first: most sentences state no choice.
    if not _PATTERNS["cue"].search(sentence) or _PATTERNS["undecided"].search(sentence):
        return None
    for choice in _PATTERNS["choice"].finditer(sentence):
        clause = sentence[: choice.start()].rpartition(",")[2]
        if not _PATTERNS["hedge"].search(clause):
            return choice.start()
    return None


def _parts(sentence: str, begin: int | None) -> tuple[str, str]:
    """The chosen thing and the reason.

    An English reason comes after the choice, or before it with a comma. A Korean reason comes before it.
    """
    korean = list(_PATTERNS["때문"].finditer(sentence, 0, len(sentence) if begin is None else begin + 1))
    reason = _PATTERNS["because"].search(sentence)
    if reason and reason.start() > 0:
        return sentence[: reason.start()], sentence[reason.end() :]
    if reason and "," in sentence:
        why, _, what = sentence[reason.end() :].partition(",")
        return what, why
    if korean:
        return sentence[korean[-1].end() :], sentence[: korean[-1].end()]
    aside = _PATTERNS["aside"].search(sentence)
    return (sentence[: aside.start()], sentence[aside.end() :]) if aside else (sentence, "")


def _choice(text: str, what: str, why: str) -> Choice:
    named = what.strip(_MARKS)
    opening = _PATTERNS["opening"].match(named)
    rest = named[opening.end() :].strip(_MARKS) if opening else ""
    if named != rest and len(rest.split()) >= _WORDS_MIN:
        named = rest[:1].upper() + rest[1:]
    lasts = len(named.split()) >= _WORDS_MIN and not _PATTERNS["next step"].search(named)
    return Choice(text=text, what=named, why=why.strip(_MARKS), lasts=lasts)
