"""Finds the values of a statement: amounts, and names in the place where a relation takes one value (R6).

A relation that takes one value is "stored in X", "is owned by X", "the default branch is X". A number or a name in the
subject (issue 100, `load_a`) is no value, and neither is what follows a verb that takes many (imports X).
"""

from __future__ import annotations

from functools import cache

from mnemarch.text import english, korean
from mnemarch.text.cache import pattern
from mnemarch.text.words import LIGHT_WORDS, inflected, is_hangul, kinds_of, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mnemarch.text.guarded import Piece

# Groups of opposites whose words are verbs that take a value: starts at, read from.
_VERBS_OF_GROUPS = frozenset({"start", "add", "read", "open", "keep", "has", "run", "show"})
# The most pieces of a value's name.
_VALUE_PIECES_MAX = 4
_NAMING = ("word", "identifier", "quoted")
_MEANS = ("로", "으로")
_TOPIC_MARKERS = frozenset({"은", "는", "이", "가", "에는", "에서는", "에선", "에도", "로는", "으로는"})
# Verbs for what happens to a thing, and not for acts: 난다, 걸린다, 남는다.
_HAPPENS = r"\S*[난된진린인긴온]다|(?:남는|맞는|죽는|든|뜬)다"
_SYLLABLE_FINALS, _FINAL_NIEUN = 28, 4

COPULAS = frozenset({"is", "are", "was", "were", "be"})
_OPENING = frozenset({"in", "on", "at", "during", "since", "for", "by"})
DETERMINERS = frozenset({"a", "an", "the", "our", "its", "their", "your", "my", "this", "that"})
_PLAIN_VERB_ENDS = ("해", "돼", "줘", "요")
_BEFORE_A_NOUN = DETERMINERS | {"of", "in", "per", "each", "every", "on"}
_ARTICLES = (["a"], ["an"])
_HAVING = frozenset({"with", "without"})
# How far behind a verb its preposition may stand.
_OBJECT_PIECES_MAX = 4
# How many pieces back a subject is searched.
_SUBJECT_PIECES_MAX = 12
_EVERY = frozenset({"every", "each"})
_TIMES = frozenset({"night", "morning", "evening", "weekday", "weekend"})
_CALLS = frozenset({"call", "run", "invoke", "execute"})
# 18 and up, 3.9 or later.
_ONWARDS = frozenset({"up", "later", "newer", "higher", "above", "older", "earlier", "lower", "below"})


@cache
def word_set(section: str) -> frozenset[str]:
    return frozenset(listed("relations", section))


def without_particle(piece: Piece) -> tuple[str, str]:
    """A piece without its particle, and the particle."""
    if piece[0] in ("word", "opposite") and is_hangul(piece[1]):
        return korean.parted(piece[1])
    return piece[3], piece[4]


def is_name(piece: Piece) -> bool:
    return piece[0] in _NAMING or piece[0] == "number"


def has_hangul(found: Sequence[Piece]) -> bool:
    return any(piece[4] or is_hangul(piece[1]) for piece in found)


# English


@cache
def _verb_forms(section: str) -> frozenset[str]:
    """The verbs of a section in every form."""
    bases = word_set(section)
    irregular = (form for form, base in english.irregular_forms().items() if base in bases)
    return frozenset(form for base in bases for form in inflected(f"{base}*")) | frozenset(irregular)


@cache
def _nouns(section: str) -> frozenset[str]:
    return word_set(section) | frozenset(f"{noun}s" for noun in word_set(section))


@cache
def _kinds_of_things() -> frozenset[str]:
    return frozenset(listed("opposites", "kinds"))


def english_slots(found: Sequence[Piece]) -> dict[int, int]:
    """The start of each value, mapped to its end."""
    words = [piece[1] if piece[0] == "word" else _word_of(piece) for piece in found]
    telling, relating = _telling(), _relating()
    framed = 3 if words and words[0] in _OPENING and words[1:2] not in (["least"], ["most"]) else 0
    is_predicate = takes_many = False
    begin, slot_end = _subject_slot(found, words)
    slots = {begin: slot_end} if slot_end else {}
    for at, word in enumerate(words):
        what = found[at][0]
        if at < slot_end or (what == "word" and word not in telling and not word.endswith("ed")):
            continue
        is_relation = what in ("word", "opposite") and (word in relating or word.endswith("ed"))
        start = _slot_after(found, words, at) if is_relation else None
        if start is not None and (end := _name_end(found, words, start)) > start:
            is_predicate = True
            slots[start] = slot_end = end
            continue
        is_last = at == len(found) - 1
        is_free = at >= framed and not takes_many
        is_unit = is_predicate and is_last and words[at - 1] in ("in", "per") and word in english.UNITS
        if is_unit or (is_free and (is_predicate or is_last) and _is_date(found, words, at)):
            slots[at] = at + 1
        elif word in COPULAS or word in word_set("modals"):
            is_predicate = True
        elif what == "word" and at and word in _verb_forms("many values") and words[at - 1] not in DETERMINERS:
            is_predicate = takes_many = True
        elif what == "number" and at >= framed and _is_amount(found, words, at, is_predicate, takes_many):
            slots[at] = at + 1
    return slots


def _word_of(piece: Piece) -> str:
    """The word of a piece: the last one of "not use", which is one piece, and none for the negation in "without"."""
    what, key, _, written, _ = piece
    if what == "opposite":
        return written.lower().rpartition(" ")[2]
    word = written.lower()
    return "" if key == "un" and word == "without" else word


def _subject_slot(found: Sequence[Piece], words: Sequence[str]) -> tuple[int, int]:
    """The begin and end of a subject that is the value: only admins can, everyone can; Minji owns, nginx serves.

    (0, 0) if the subject is none.
    """
    first = words[0] if words else ""
    if first in ("only", "no") or first in word_set("everybody"):
        verbs = COPULAS | word_set("modals") - {"to"}
        verb = next((at for at, each in enumerate(words[: _VALUE_PIECES_MAX + 2]) if each in verbs), 0)
        if first == "only" and len(words) > 2 and verb != 1:
            return 1, verb or 2
        if verb and (first in word_set("everybody") or (first == "no" and verb == 1)):
            return 0, verb
    begin = _past_determiners(words, 0) or 0
    # In this form alone: is owned by is said of the thing.
    names = [at for at in range(begin + 1, min(len(words) - 1, begin + 4)) if words[at].endswith("s")]
    for at in names:
        if words[at] in _verb_forms("owner") and all(map(is_name, found[begin:at])):
            return begin, at
    if begin + 1 in names and words[begin + 1] in _verb_forms("served by") and _is_proper(found[begin]):
        return begin, begin + 1
    # GitHub Actions builds the image: what a known tool does, another may do.
    size = next((size for size in (2, 1) if names and kinds_of(" ".join(words[:size]))), 0)
    is_done = size in names and words[size] in _verb_forms("done by")
    return (0, size) if is_done and words[size + 1] not in word_set("slot prepositions") else (0, 0)


def _is_date(found: Sequence[Piece], words: Sequence[str], at: int) -> bool:
    if words[at] in word_set("dates"):
        return True
    before = words[at - 1] if at else ""
    return (found[at][3] == "May" and (before in _OPENING or found[at - 1][0] == "number")) or (
        before in _EVERY and (words[at] in english.UNITS or words[at] in _TIMES)
    )


def _is_amount(found: Sequence[Piece], words: Sequence[str], at: int, is_predicate: bool, takes_many: bool) -> bool:
    """Whether a number is an amount or a version, and not the name of one of many: issue 12."""
    key, written = found[at][1], found[at][3]
    # Issue #12, v1 retries, the port of service-1.
    is_joined = not is_predicate and at > 1 and found[at - 1][1] == "sum-" and key.isdigit()
    if written.startswith("#") or is_joined or (at == 0 and key.startswith("v")):
        return False
    # The call at 10:15 took 220 ms: the time tells which one.
    if ":" in key and not is_predicate and words[at - 1] == "at" and at + 1 < len(found):
        return any(word in _verb_forms("one value") for word in words[:at])
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
    """Every word after which a value may begin, except for -ed forms."""
    verbs = _verb_forms("use") | _verb_forms("one value") | _verb_forms("takes place")
    return verbs | COPULAS | _CALLS | {"with", "as"} | word_set("means") | frozenset(english.irregular_forms())


@cache
def _telling() -> frozenset[str]:
    """Every word that is a value or leads to one, except for -ed forms."""
    dates = word_set("dates") | english.UNITS.keys() | _TIMES | {"may"}
    return _relating() | word_set("modals") | _verb_forms("many values") | dates


@cache
def _ending_an_object() -> frozenset[str]:
    """The words that never stand between a verb and its preposition."""
    return word_set("boundaries") | _verb_forms("many values")


def _slot_after(found: Sequence[Piece], words: Sequence[str], at: int) -> int | None:
    """The place where a value begins after the relation here. None if it takes none."""
    word = words[at]
    if word in COPULAS:
        return _complement(found, words, at)
    following = words[at + 1] if at + 1 < len(words) else ""
    is_code = at + 1 < len(found) and found[at + 1][0] in ("quoted", "identifier")
    # A word may be a verb or a noun: behind an article or a preposition it is a noun.
    is_noun = at > 0 and words[at - 1] in _BEFORE_A_NOUN
    # Call `save()` to persist a draft; to persist a draft, call `save()`; prefix branches with feat/.
    has_purpose = word in _CALLS and ((at == 0 and words[2:3] == ["to"]) or words[0] == "to")
    if is_code and (has_purpose or (word in ("with", "as") and at + 2 == len(found))):
        return at + 1
    if not following and at + 2 < len(words):
        following = words[at + 2]
    if word in _verb_forms("use") and following not in word_set("slot prepositions") and not is_noun:
        return _past_determiners(words, at + 1)
    if (
        word in word_set("means")
        and at > 1
        and not any(each in _verb_forms("symptoms") for each in words[max(0, at - _SUBJECT_PIECES_MAX) : at])
    ):
        begin = _past_determiners(words, at + 1)
        return begin if begin is not None and _is_proper(found[begin]) else None
    is_listed = word in _verb_forms("one value") and (at == 0 or words[at - 1] not in DETERMINERS)
    is_listed |= word in _verb_forms("takes place") and following == "in" and _is_planned(found, words, at)
    if not is_listed:
        return _after_participle(found, words, at)
    for prep in range(at + 1, min(len(found), at + 2 + _OBJECT_PIECES_MAX)):
        if words[prep] in word_set("slot prepositions"):
            # "for orders" is a circumstance, "for 30 days" is an amount; "with an id" tells which rows are meant.
            is_attribute = prep > at + 2 and words[prep] in _HAVING and words[prep + 1 : prep + 2] in _ARTICLES
            return None if words[prep] == "for" or is_attribute else _past_determiners(words, prep + 1)
        if words[prep] in _ending_an_object() or found[prep][0] == "number":
            break
    return None


def _is_planned(found: Sequence[Piece], words: Sequence[str], at: int) -> bool:
    """Whether the thing that takes place is named, and is no fault: validation happens in the controller."""
    return at > 0 and bool(found[at - 1][2]) and _nouns("symptom nouns").isdisjoint(words[:at])


def _after_participle(found: Sequence[Piece], words: Sequence[str], at: int) -> int | None:
    """The place of a value after another -ed form: hashed with, formatted as; reported to Sentry, if it is a name."""
    # "without" is two pieces.
    after = at + 1 + (words[at + 1 : at + 2] == [""])
    word, preposition = words[at], words[after] if after < len(words) else ""
    is_participle = found[at][0] == "word" and at > 0 and (word.endswith("ed") or word in english.irregular_forms())
    if not is_participle or preposition == "for" or preposition not in word_set("slot prepositions"):
        return None
    begin = _past_determiners(words, after + 1)
    if begin is None:
        return None
    takes_many = word in _verb_forms("many values")
    if preposition in word_set("manner prepositions") and not takes_many:
        return begin
    return begin if _is_proper(found[begin]) and (preposition in ("to", "as") or not takes_many) else None


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
        is_last |= words[begin] in _kinds_of_things() and begin == len(found) - 2 and found[begin + 1][0] in _NAMING
        return begin if _is_proper(found[begin]) or is_last else None
    what = found[begin][0]
    if _is_proper(found[begin]):
        return begin
    is_plain = what == "word" and not words[begin].endswith(("ed", "ing")) and words[begin] not in LIGHT_WORDS
    if not is_plain or begin + 1 < len(found) - 1:
        return None
    # `User.id` is an integer: a name in code has one type.
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
    while end < len(found) and end - begin - hyphens < _VALUE_PIECES_MAX:
        # eu-west-1
        if begin < end < len(found) - 1 and found[end][3] == "-" and is_name(found[end + 1]):
            hyphens += 1
            end += 2
            continue
        # As local time, but not: to staging first.
        is_kind = words[end] in _kinds_of_things() and end + 1 < len(found) and found[end + 1][0] in _NAMING
        is_boundary = words[end] in word_set("boundaries") and found[end][3] not in ("and", "or", "May")
        if not (is_name(found[end]) or is_kind) or is_boundary:
            break
        end += 1
    return end


# Korean


def korean_slots(found: Sequence[Piece]) -> dict[int, int]:
    slots: dict[int, int] = {}
    parts = [without_particle(piece) for piece in found]
    verb = _final_verb(found)
    takes_many = any(found[verb][1].startswith(word) for word in listed("relations", "korean many values"))
    for at, (what, *_) in enumerate(found):
        is_date = parts[at][0] in word_set("korean dates") and parts[at][1] not in _TOPIC_MARKERS
        if is_date or (what == "number" and _is_korean_amount(found, parts, at, takes_many)):
            slots[at] = at + 1
        elif found[at][1] in word_set("everybody") or (
            is_name(found[at]) and parts[at][1].endswith("만") and what != "number"
        ):
            begin = at
            while (
                begin and not parts[begin - 1][1] and is_name(found[begin - 1]) and at - begin < _VALUE_PIECES_MAX - 1
            ):
                begin -= 1
            slots[begin] = at + 1
    begin, end = _korean_name(found, parts, verb, takes_many)
    if end > begin:
        slots = {at: to for at, to in slots.items() if not begin <= at < end}
        slots[begin] = end
    return slots


def _final_verb(found: Sequence[Piece]) -> int:
    """The place of the last verb: the last piece that no negation or ending follows."""
    at = len(found) - 1
    while at > 0 and (found[at][0] == "negation" or found[at][1] == "것" or found[at][::2][:2] == ("opposite", "")):
        at -= 1
    # 저장 한다: the noun is what is done.
    is_carrier = at > 0 and not found[at][2] and found[at - 1][0] == "word" and is_hangul(found[at - 1][1])
    return at - 1 if is_carrier and not korean.parted(found[at - 1][1])[1] else at


def _is_korean_amount(found: Sequence[Piece], parts: Sequence[tuple[str, str]], at: int, takes_many: bool) -> bool:
    particle = parts[at][1]
    # 승인 두 개가 필요하다: a counted thing is no subject.
    is_counted = at > 0 and particle in ("이", "가") and not _is_plain_number(found[at])
    # service-1의 포트는: the number names the owner.
    if (particle in _TOPIC_MARKERS and not is_counted) or (particle == "의" and _is_plain_number(found[at])):
        return False
    if at and _is_plain_number(found[at]):
        before = found[at - 1]
        if parts[at - 1][0].lower() in word_set("korean entities") | word_set("entities") and not parts[at - 1][1]:
            return False
        if takes_many and before[0] in ("word", "identifier") and not is_hangul(before[1]):
            return False
    following = parts[at + 1] if at + 1 < len(parts) else ("", "")
    is_glued = not particle and found[at][3][-1:] not in " "
    if is_glued and following[1] in _TOPIC_MARKERS and following[0] in word_set("korean entities"):
        return False
    # 42번 마이그레이션은, 10시 15분 호출은: the number tells which one.
    is_ordinal = (found[at][3].endswith("번") or ":" in found[at][1]) and following[1] in _TOPIC_MARKERS
    is_ordinal |= found[at][3].endswith("번째")
    return not (at == 0 and (is_ordinal or following[0] in word_set("korean entities")))


def _is_plain_number(piece: Piece) -> bool:
    return piece[1][-1:].isdigit() and " " not in piece[3]


def _korean_name(
    found: Sequence[Piece], parts: Sequence[tuple[str, str]], verb: int, takes_many: bool
) -> tuple[int, int]:
    """The begin and end of the one value that the predicate takes. (0, 0) if it takes none or many."""
    topic = min((at for at in range(verb) if parts[at][1] in ("은", "는")), default=-1)
    last = len(found) - 1
    # FIFO가 아니다 denies FIFO다.
    denies = last > 0 and found[last][0] == "negation" and found[last][3][:2] in ("아니", "아닌", "아닙", "아님")
    if denies and parts[last - 1][1] in ("이", "가") and last - 1 > topic >= 0:
        last -= 1
        parts = [*parts[:last], (parts[last][0], "이다")]
    if is_name(found[last]) and topic >= 0:
        begin = topic + 1
        while begin < last and parts[begin][0] in word_set("korean adverbs"):
            begin += 1
        is_foreign = (found[last][0] != "word" or not is_hangul(found[last][1])) and korean.is_copula(parts[last][1])
        has_attribute = any(word in word_set("korean one value") for word, _ in parts[: topic + 1])
        has_attribute |= parts[last][0] in word_set("korean one value") and begin < last
        has_attribute |= found[topic][0] in ("identifier", "quoted") and begin == last
        # A verb takes words with particles, and may end in 해: VPN으로 접속해.
        is_bare = not any(particle for _, particle in parts[begin:]) and not found[last][1].endswith(_PLAIN_VERB_ENDS)
        is_noun = found[last][1].endswith("다") or korean.is_noun_copula(found[last][1]) or is_bare
        is_noun |= korean.is_copula(parts[last][1])
        is_noun &= found[last][1] not in word_set("korean adjectives")
        is_verbal = found[last][1].endswith(("한다", "하다", "된다", "합니다", "됩니다", "있다", "없다", "는다"))
        if begin == last and found[last][0] == "number":
            return 0, 0
        if is_foreign or (has_attribute and is_noun and not is_verbal):
            return (begin, last + 1) if last - topic <= _VALUE_PIECES_MAX else (0, 0)
    at = verb - 1
    while at > 0 and found[at][1] in word_set("korean adverbs"):
        at -= 1
    is_verb = found[verb][0] == "word" or found[verb][1][:-1] in _VERBS_OF_GROUPS if verb >= 0 else False
    if at < 0 or not is_verb:
        return 0, 0
    # GraphQL로 API를 호출한다: the means stands before the object.
    is_done_with = at > 0 and parts[at][1] in ("을", "를") and parts[at - 1][1] in _MEANS
    is_done_with = is_done_with and not is_hangul(found[at - 1][1])
    at -= is_done_with
    is_means = parts[at][1] in _MEANS and found[verb][1].startswith(tuple(listed("relations", "korean means")))
    if takes_many and not is_means:
        return 0, 0
    is_use = parts[at][1] in ("을", "를") and found[verb][1].startswith(tuple(listed("relations", "korean use")))
    # 정적 파일은 nginx가 서빙한다: the agent is the value.
    is_use |= parts[at][1] in ("이", "가") and -1 < topic < at and _is_done(found[verb])
    if not is_use and (parts[at][1] not in word_set("korean slots") or found[at][0] == "opposite"):
        return 0, 0
    begin = at
    while begin > 1 and at - begin < _VALUE_PIECES_MAX - 1 and not parts[begin - 1][1] and _names(found[begin - 1]):
        begin -= 1
    return (begin, at + 1) if begin or is_use or is_done_with else (0, 0)


def _is_done(piece: Piece) -> bool:
    """Whether a predicate is an act of somebody: 맡는다, 만든다, 배포했다, 실행한다; but not 높다 or 난다."""
    if piece[0] == "opposite":
        return piece[1][:-1] == "run"
    verb = piece[1]
    is_present = verb.endswith("다") and (ord(verb[-2:][0]) - ord("가")) % _SYLLABLE_FINALS == _FINAL_NIEUN
    return (is_present or verb.endswith(("합니다", "했다"))) and pattern(_HAPPENS).fullmatch(verb) is None


def _names(piece: Piece) -> bool:
    """Whether a piece may be part of a name: 공개 저장소 is a name, though 공개 has an opposite."""
    return is_name(piece) or piece[3] in listed("opposites", "kinds")
