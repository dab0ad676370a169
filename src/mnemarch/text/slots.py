"""Where a statement has its values: amounts, and what stands where a relation takes one value (R6).

A relation that takes one value is "stored in X", "is owned by X", "the default branch is X". A number or a name in the
subject (issue 100, `load_a`) is no value, and neither is what follows a verb that takes many (imports X).
"""

from __future__ import annotations

from functools import cache

from mnemarch.text import english
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
# How many pieces after a verb its preposition may come.
_OBJECT_PIECES_MAX = 4
# How many pieces back a subject is searched.
_SUBJECT_PIECES_MAX = 12
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
    """The start of each value, mapped to its end."""
    slots: dict[int, int] = {}
    words = [word_of(piece) for piece in found]
    framed = 3 if words and words[0] in _OPENING and words[1:2] not in (["least"], ["most"]) else 0
    is_predicate = takes_many = False
    subject = _subject_slot(found, words)
    at = 0
    while at < len(found):
        if subject is not None and at == subject[0]:
            slots[at] = subject[1]
            at = subject[1]
            continue
        what, word = found[at][0], words[at]
        if what == "word" and word not in _telling() and not word.endswith("ed"):
            at += 1
            continue
        begin = _slot_after(found, words, at)
        if begin is not None and (end := _name_end(found, words, begin)) > begin:
            is_predicate = True
            slots[begin] = end
            at = end
            continue
        is_last = at == len(found) - 1
        is_free = at >= framed and not takes_many
        is_unit = is_predicate and is_last and words[at - 1] in ("in", "per") and word in english.UNITS
        if is_unit or (is_free and _is_date(found, words, at) and (is_predicate or is_last)):
            slots[at] = at + 1
        elif word in COPULAS or word in word_set("modals"):
            is_predicate = True
        elif what == "word" and at and word in verb_forms("many values") and words[at - 1] not in DETERMINERS:
            is_predicate = takes_many = True
        elif what == "number" and at >= framed and _is_amount(found, words, at, is_predicate, takes_many):
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
    first, modals = words[: VALUE_PIECES_MAX + 2], word_set("modals")
    verb = next((at for at, each in enumerate(first) if each != "to" and (each in COPULAS or each in modals)), 0)
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


def _is_date(found: Sequence[Piece], words: Sequence[str], at: int) -> bool:
    if words[at] in word_set("dates"):
        return True
    before = words[at - 1] if at else ""
    return (found[at][3] == "May" and (before in _OPENING or found[at - 1][0] == "number")) or (
        before in _EVERY and (words[at] in english.UNITS or words[at] in _TIMES)
    )


def _is_amount(found: Sequence[Piece], words: Sequence[str], at: int, is_predicate: bool, takes_many: bool) -> bool:
    """Whether a number says how much, or what version is meant, and does not name one of many: issue 12."""
    key, written = found[at][1], found[at][3]
    # Issue #12, v1 retries, the port of service-1.
    is_joined = not is_predicate and at > 1 and found[at - 1][1] == "sum-" and key.isdigit()
    if written.startswith("#") or is_joined or (at == 0 and key.startswith("v")):
        return False
    # The call at 10:15 took 220 ms: the time tells which one.
    if ":" in key and not is_predicate and words[at - 1] == "at" and at + 1 < len(found):
        return any(word in verb_forms("one value") for word in words[:at])
    if at == 0 or not key[-1:].isdigit() or " " in written:
        return True
    before = found[at - 1]
    # "on 429" names a status, as "exit code 1" does; "on 12 May" a date.
    is_day = at + 1 < len(words) and (found[at + 1][3] == "May" or words[at + 1] in word_set("dates"))
    if (words[at - 1] == "on" and not is_day) or (
        # We run three replicas: no run 3.
        words[at - 1] in _nouns("entities")
        and words[at - 2 : at - 1] not in (["we"], ["you"], ["to"], ["must"], ["should"])
    ):
        return False
    is_name = before[0] == "identifier" or (before[0] == "word" and before[3][:1].isupper())
    if not is_name or (at == 1 and words[0] in word_set("imperatives")):
        return True
    # A name with words before it is hardly the subject: the SDK targets Java 17.
    has_subject = is_predicate or sum(bool(piece[2]) for piece in found[max(0, at - _SUBJECT_PIECES_MAX) : at - 1]) > 1
    is_bound = words[at + 1 : at + 2] in (["or"], ["and"]) and not _ONWARDS.isdisjoint(words[at + 2 : at + 3])
    return has_subject and (is_bound or not takes_many)


@cache
def _relating() -> frozenset[str]:
    """Every word after which a value may begin, but for the -ed forms."""
    verbs = verb_forms("use") | verb_forms("one value") | verb_forms("takes place")
    return verbs | COPULAS | _CALLS | {"with", "as"} | word_set("means") | frozenset(english.irregular_forms())


@cache
def _telling() -> frozenset[str]:
    """Every word that is a value or leads to one, but for the -ed forms."""
    dates = word_set("dates") | english.UNITS.keys() | _TIMES | {"may"}
    return _relating() | word_set("modals") | verb_forms("many values") | dates


def _slot_after(found: Sequence[Piece], words: Sequence[str], at: int) -> int | None:
    """Where a value begins if the piece here is a relation that takes one."""
    what, word = found[at][0], words[at]
    if what not in ("word", "opposite") or not (word in _relating() or word.endswith("ed")):
        return None
    if word in COPULAS:
        return _complement(found, words, at)
    following = words[at + 1] if at + 1 < len(words) else ""
    is_code = at + 1 < len(found) and found[at + 1][0] in ("quoted", "identifier")
    # Call `save()` to persist a draft; to persist a draft, call `save()`; prefix branches with feat/.
    has_purpose = word in _CALLS and ((at == 0 and words[2:3] == ["to"]) or words[0] == "to")
    if is_code and (has_purpose or (word in ("with", "as") and at + 2 == len(found))):
        return at + 1
    if not following and at + 2 < len(words):
        following = words[at + 2]
    if word in verb_forms("use") and following not in word_set("slot prepositions") and _is_verb(words, at):
        return _past_determiners(words, at + 1)
    if (
        word in word_set("means")
        and at > 1
        and not any(each in verb_forms("symptoms") for each in words[max(0, at - _SUBJECT_PIECES_MAX) : at])
    ):
        begin = _past_determiners(words, at + 1)
        return begin if begin is not None and _is_proper(found[begin]) else None
    is_listed = word in verb_forms("one value") and (at == 0 or words[at - 1] not in DETERMINERS)
    is_listed |= word in verb_forms("takes place") and following == "in" and _is_planned(found, words, at)
    if not is_listed:
        return _after_participle(found, words, at)
    for prep in range(at + 1, min(len(found), at + 2 + _OBJECT_PIECES_MAX)):
        if words[prep] in word_set("slot prepositions"):
            # "for orders" is a circumstance, "for 30 days" is an amount; "with an id" tells which rows are meant.
            is_attribute = prep > at + 2 and words[prep] in _HAVING and words[prep + 1 : prep + 2] in _ARTICLES
            return None if words[prep] == "for" or is_attribute else _past_determiners(words, prep + 1)
        if words[prep] in word_set("boundaries") | verb_forms("many values") or found[prep][0] == "number":
            break
    return None


def _is_planned(found: Sequence[Piece], words: Sequence[str], at: int) -> bool:
    """Whether what takes place is named, and is no fault: validation happens in the controller."""
    return at > 0 and bool(found[at - 1][2]) and _nouns("symptom nouns").isdisjoint(words[:at])


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
    is_named = not _nouns("attributes").isdisjoint(subject)
    return begin if is_typed or is_named else None


def _is_proper(piece: Piece) -> bool:
    return piece[0] in ("quoted", "identifier") or (piece[0] == "word" and piece[3][:1].isupper())


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
