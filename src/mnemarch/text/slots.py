"""Where a statement has its values: amounts, and what stands where a relation takes one value (R6).

A relation that takes one value is "stored in X", "is owned by X", "the default branch is X". A number or a name in the
subject (issue 100, `load_a`) is no value, and neither is what follows a verb that takes many (imports X).
"""

from __future__ import annotations

from functools import cache

from mnemarch.text import amounts, english
from mnemarch.text.slots_korean import NAMING, VALUE_PIECES_MAX, is_name, word_set
from mnemarch.text.words import LIGHT_WORDS, inflected, kinds_of, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mnemarch.text.guarded import Piece

COPULAS = frozenset({"is", "are", "was", "were", "be"})
_OPENING = frozenset({"in", "on", "at", "during", "since", "for", "by"})
DETERMINERS = frozenset({"a", "an", "the", "our", "its", "their", "your", "my", "this", "that"})
_ARTICLES = (["a"], ["an"])
_HAVING = frozenset({"with", "without"})
# A verb's preposition comes so soon.
_OBJECT_PIECES_MAX = 4
# So far back a subject is looked for.
_SUBJECT_PIECES_MAX = 12
_ADJECTIVE_ENDINGS = ("able", "ible", "ful", "less", "ous", "ive", "al", "ic", "ent", "ant", "ly", "er", "est")
_EVERY = frozenset({"every", "each"})
_TIMES = frozenset({"night", "morning", "evening", "weekday", "weekend"})
_CALLS = frozenset({"call", "run", "invoke", "execute"})
# 18 and up, 3.9 or later.
_ONWARDS = frozenset({"up", "later", "newer", "higher", "above", "older", "earlier", "lower", "below"})


@cache
def verb_forms(section: str) -> frozenset[str]:
    """The verbs of a section in every form."""
    bases = word_set(section)
    irregular = (form for form, base in english.irregular_forms().items() if base in bases)
    return frozenset(form for base in bases for form in inflected(f"{base}*")) | frozenset(irregular)


@cache
def _nouns(section: str) -> frozenset[str]:
    return word_set(section) | frozenset(f"{noun}s" for noun in word_set(section))


@cache
def kinds_of_things() -> frozenset[str]:
    return frozenset(listed("opposites", "kinds"))


def english_slots(found: Sequence[Piece]) -> dict[int, int]:
    """Where each value begins, with where it ends."""
    slots: dict[int, int] = {}
    words = [word_of(piece) for piece in found]
    framed = 3 if words and words[0] in _OPENING and words[1:2] not in (["least"], ["most"]) else 0
    subject = _subject_slot(found, words)
    at = 0
    while at < len(found):
        if subject is not None and at == subject[0]:
            slots[at] = subject[1]
            at = subject[1]
            continue
        begin = _slot_after(found, words, at)
        if begin is not None and (end := _name_end(found, words, begin)) > begin:
            slots[begin] = end
            at = end
            continue
        what = found[at][0]
        if at >= framed and (_is_amount(found, words, at) if what == "number" else _is_date(words, at)):
            slots[at] = at + 1
        at += 1
    return slots


def word_of(piece: Piece) -> str:
    """The word of a piece: of "not use", which is one piece, the last; of the negation in "without" none."""
    what, key, _, written, _ = piece
    if what == "opposite":
        return written.lower().rpartition(" ")[2]
    word = written.lower()
    return "" if key == "un" and word == "without" else word


def _subject_slot(found: Sequence[Piece], words: Sequence[str]) -> tuple[int, int] | None:
    """Where a subject is the value: only admins can, everyone can; Minji owns, nginx serves."""
    stops = (word_set("modals") | COPULAS) - {"to"}
    verb = next((at for at, word in enumerate(words[: VALUE_PIECES_MAX + 2]) if word in stops), 0)
    if words[:1] == ["only"] and len(words) > 2 and verb != 1:
        return 1, verb or 2
    if verb and (words[0] in word_set("everybody") or (words[0] == "no" and verb == 1)):
        return 0, verb
    begin = _past_determiners(words, 0) or 0
    # In this form alone: is owned by is said of the thing.
    names = [at for at in range(begin + 1, min(len(words) - 1, begin + 4)) if words[at].endswith("s")]
    owner = next((at for at in names if words[at] in verb_forms("owner")), 0)
    if owner and all(map(is_name, found[begin:owner])):
        return begin, owner
    if begin + 1 in names and words[begin + 1] in verb_forms("served by") and _is_proper(found[begin]):
        return begin, begin + 1
    # GitHub Actions builds the image: what a known tool does, another may do.
    size = next((size for size in (2, 1) if kinds_of(" ".join(words[:size]))), 0)
    is_done = size in names and words[size] in verb_forms("done by")
    return (0, size) if is_done and words[size + 1] not in word_set("slot prepositions") else None


def _is_amount(found: Sequence[Piece], words: Sequence[str], at: int) -> bool:
    """Whether a number says how much, or what version is meant, and does not name one of many: issue 12, worker-1."""
    is_joined = at > 0 and found[at - 1][1] == "sum-" and at + 1 < len(words)
    is_name = at > 0 and words[at - 1] in _nouns("entities") and words[at][0].isdigit()
    return not (found[at][3].startswith("#") or is_joined or is_name)


def _is_date(words: Sequence[str], at: int) -> bool:
    return words[at] in word_set("dates") or (
        at > 0 and (words[at - 1] in _EVERY or at + 1 == len(words)) and words[at] in amounts.PERIODS
    )


@cache
def _relating() -> frozenset[str]:
    """Every word after which a value may begin, but for the -ed forms: most words are none of them."""
    verbs = verb_forms("use") | verb_forms("one value")
    return verbs | COPULAS | frozenset(english.irregular_forms())


def _slot_after(found: Sequence[Piece], words: Sequence[str], at: int) -> int | None:
    """Where a value begins if the piece here is a relation that takes one."""
    what, word = found[at][0], words[at]
    if what not in ("word", "opposite") or not (word in _relating() or word.endswith("ed")):
        return None
    if word in COPULAS:
        return _complement(found, words, at)
    following = words[at + 1] if at + 1 < len(words) else ""
    if not following and at + 2 < len(words):
        following = words[at + 2]
    if word in verb_forms("use") and following not in word_set("slot prepositions") and _is_verb(words, at):
        return _past_determiners(words, at + 1)
    is_listed = word in verb_forms("one value") and (at == 0 or words[at - 1] not in DETERMINERS)
    if not is_listed:
        return _after_participle(found, words, at)
    for prep in range(at + 1, min(len(found), at + 2 + _OBJECT_PIECES_MAX)):
        if words[prep] in word_set("slot prepositions"):
            # "for orders" is a circumstance, "for 30 days" is an amount.
            return None if words[prep] == "for" else _past_determiners(words, prep + 1)
        if words[prep] in word_set("boundaries") | verb_forms("many values") or found[prep][0] == "number":
            break
    return None


def _after_participle(found: Sequence[Piece], words: Sequence[str], at: int) -> int | None:
    """Where a value begins after any other -ed form: hashed with, formatted as; reported to Sentry, if it is a name."""
    # "without" is two pieces.
    after = at + 1 + (words[at + 1 : at + 2] == [""])
    word, preposition = words[at], words[after] if after < len(words) else ""
    is_participle = found[at][0] == "word" and at > 0 and (word.endswith("ed") or word in english.irregular_forms())
    if not is_participle or preposition == "for" or preposition not in word_set("slot prepositions"):
        return None
    begin = _past_determiners(words, after + 1)
    if begin is None:
        return None
    takes_many = word in verb_forms("many values")
    if preposition in word_set("manner prepositions") and not takes_many:
        return begin
    return begin if _is_proper(found[begin]) and (preposition in ("to", "as") or not takes_many) else None


def _is_verb(words: Sequence[str], at: int) -> bool:
    """Whether a word that may be a noun, too, is the verb here: not after an article or a preposition."""
    return at == 0 or words[at - 1] not in DETERMINERS | {"of", "in", "per", "each", "every", "on"}


def _complement(found: Sequence[Piece], words: Sequence[str], at: int) -> int | None:
    begin = at + 1
    while begin < len(found) and (
        found[begin][0] == "negation" or words[begin] in word_set("adverbs") or words[begin] in DETERMINERS
    ):
        begin += 1
    if begin >= len(found):
        return None
    if words[begin] in word_set("places") and begin + 1 < len(found):
        begin = _past_determiners(words, begin + 1) or begin
        is_last = found[begin][0] == "word" and begin == len(found) - 1
        # In local time.
        is_last |= words[begin] in kinds_of_things() and begin == len(found) - 2 and found[begin + 1][0] in NAMING
        return begin if _is_proper(found[begin]) or is_last else None
    what = found[begin][0]
    if _is_proper(found[begin]):
        return begin
    is_plain = what == "word" and not words[begin].endswith(("ed", "ing")) and words[begin] not in LIGHT_WORDS
    if not is_plain or begin + 1 < len(found) - 1:
        return None
    # `User.id` is an integer: what is named in code has one type.
    is_typed = words[begin - 1] in ("a", "an") and found[at - 1][0] in ("identifier", "quoted")
    subject = words[max(0, at - _SUBJECT_PIECES_MAX) : at]
    is_noun = words[begin - 1] in ("a", "an") or not (found[-1][3].islower() and _is_adjective(words[-1]))
    is_named = is_noun and not _nouns("attributes").isdisjoint(subject)
    return begin if is_typed or is_named else None


def _is_proper(piece: Piece) -> bool:
    return piece[0] in ("quoted", "identifier") or (piece[0] == "word" and piece[3][:1].isupper())


def _is_adjective(word: str) -> bool:
    return word in word_set("adjectives") or word.endswith(_ADJECTIVE_ENDINGS)


def _past_determiners(words: Sequence[str], at: int) -> int | None:
    while at < len(words) and words[at] in DETERMINERS:
        at += 1
    return at if at < len(words) else None


def _name_end(found: Sequence[Piece], words: Sequence[str], begin: int) -> int:
    end = begin
    # What a function returns may be none, true or false.
    if words[begin - 1] in ("return", "returns", "returned") and not found[begin][2]:
        end = min(len(found), begin + 2)
    hyphens = 0
    while end < len(found) and end - begin - hyphens < VALUE_PIECES_MAX:
        # eu-west-1
        if begin < end < len(found) - 1 and found[end][3] == "-" and is_name(found[end + 1]):
            hyphens += 1
            end += 2
            continue
        # As local time, but not: to staging first.
        is_kind = words[end] in kinds_of_things() and end + 1 < len(found) and found[end + 1][0] in NAMING
        is_boundary = words[end] in word_set("boundaries") and found[end][3] not in ("and", "or", "May")
        if not (is_name(found[end]) or is_kind) or is_boundary:
            break
        end += 1
    return end
