"""Where a statement has its values: amounts, and what stands where a relation takes one value (R6).

A relation that takes one value is "stored in X", "is owned by X", "the default branch is X". A number or a name in the
subject (issue 100, `load_a`) is no value, and neither is what follows a verb that takes many (imports X).
"""

from __future__ import annotations

from functools import cache

from mnemarch.text import english, korean
from mnemarch.text.words import LIGHT_WORDS, inflected, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mnemarch.text.guarded import Piece

# Groups of opposites whose words are verbs that take a value: starts at, read from.
_VERBS_OF_GROUPS = frozenset({"start", "add", "read", "open", "keep", "has", "run", "show"})
_COPULAS = frozenset({"is", "are", "was", "were", "be"})
_OPENING = frozenset({"in", "on", "at", "during", "since", "for", "by"})
_DETERMINERS = frozenset({"a", "an", "the", "our", "its", "their", "your", "my", "this", "that"})
# A value is named in so many words, and a verb's preposition comes so soon.
_VALUE_PIECES_MAX, _OBJECT_PIECES_MAX = 4, 4
# So far back a subject is looked for.
_SUBJECT_PIECES_MAX = 12
_ADJECTIVE_ENDINGS = ("able", "ible", "ful", "less", "ous", "ive", "al", "ic", "ent", "ant", "ly", "er", "est")
_EVERY = frozenset({"every", "each"})
_TIMES = frozenset({"night", "morning", "evening", "weekday", "weekend"})
_MEANS = ("로", "으로")
_NAMING = ("word", "identifier", "quoted")
_TOPIC_MARKERS = frozenset({"은", "는", "이", "가", "에는", "에서는", "에선", "에도", "로는", "으로는"})


@cache
def word_set(section: str) -> frozenset[str]:
    return frozenset(listed("relations", section))


@cache
def _verbs(section: str) -> frozenset[str]:
    """The verbs of a section in every form."""
    bases = word_set(section)
    irregular = (form for form, base in english.irregular_forms().items() if base in bases)
    return frozenset(form for base in bases for form in inflected(f"{base}*")) | frozenset(irregular)


@cache
def _nouns(section: str) -> frozenset[str]:
    return word_set(section) | frozenset(f"{noun}s" for noun in word_set(section))


def parsed(found: tuple[Piece, ...]) -> tuple[tuple[Piece, ...], dict[int, int], dict[int, tuple[str, ...]]]:
    """The pieces, where each value begins and ends, and what stands in the topic for verbs of place."""
    found = _with_its_kind(found)
    slots = korean_slots(found) if has_hangul(found) else english_slots(found)
    return found, slots, _relation_verbs(found, slots)


def _with_its_kind(found: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """The pieces, in which the first telling one is no opposite if it tells which thing is meant: the public API."""
    first = next((at for at, piece in enumerate(found) if piece[2]), len(found))
    if first + 1 >= len(found) or found[first][0] != "opposite":
        return found
    _, _, _, written, particle = found[first]
    word = written.lower()
    if word not in _kinds() or not is_name(found[first + 1]):
        return found
    return (*found[:first], ("word", word, word, written, particle), *found[first + 1 :])


@cache
def _kinds() -> frozenset[str]:
    return frozenset(listed("opposites", "kinds"))


def _relation_verbs(found: Sequence[Piece], slots: dict[int, int]) -> dict[int, tuple[str, ...]]:
    """What stands in a topic for a verb that says where a thing is, or for the first piece of a value if none does."""
    relations: dict[int, tuple[str, ...]] = {}
    for begin in slots:
        before = [found[at][3].lower() for at in range(max(0, begin - 3), begin)]
        if word_set("places").isdisjoint(before):
            continue
        verb = next((at for at in range(max(0, begin - 3), begin) if found[at][3].lower() in _verbs("place")), None)
        if verb is not None:
            relations[verb] = ("@place",)
        elif not _COPULAS.isdisjoint(before[:-1]):
            relations[begin] = ("@place",)
    return relations


# English


def english_slots(found: Sequence[Piece]) -> dict[int, int]:
    """Where each value begins, with where it ends."""
    slots: dict[int, int] = {}
    words = [piece[3].lower() for piece in found]
    framed = 3 if words and words[0] in _OPENING else 0
    is_predicate = takes_many = False
    subject = _subject_slot(found, words)
    at = 0
    while at < len(found):
        if subject is not None and at == subject[0]:
            slots[at] = subject[1]
            at = subject[1]
            continue
        begin = _slot_after(found, words, at)
        if begin is not None and (end := _name_end(found, words, begin)) > begin:
            is_predicate = True
            slots[begin] = end
            at = end
            continue
        what = found[at][0]
        if words[at] in _COPULAS or words[at] in word_set("modals"):
            is_predicate = True
        elif what == "word" and at and words[at] in _verbs("many values"):
            is_predicate = takes_many = True
        elif (what == "number" and at >= framed and _is_amount(found, words, at, is_predicate, takes_many)) or (
            _is_date(found, words, at) and not takes_many and at >= framed and (is_predicate or at == len(found) - 1)
        ):
            slots[at] = at + 1
        at += 1
    return slots


def _subject_slot(found: Sequence[Piece], words: Sequence[str]) -> tuple[int, int] | None:
    """Where a subject is the value: only admins can, everyone can; Minji owns, nginx serves."""
    stops = word_set("modals") | _COPULAS
    verb = next((at for at, word in enumerate(words[: _VALUE_PIECES_MAX + 2]) if word in stops), 0)
    if verb > 1 and words[0] == "only":
        return 1, verb
    if verb and (words[0] in word_set("everybody") or (words[0] == "no" and verb == 1)):
        return 0, verb
    begin = _past_determiners(words, 0) or 0
    # In this form alone: is owned by is said of the thing.
    names = [at for at in range(begin + 1, min(len(words) - 1, begin + 4)) if words[at].endswith("s")]
    owner = next((at for at in names if words[at] in _verbs("owner")), 0)
    if owner and all(map(is_name, found[begin:owner])):
        return begin, owner
    return (0, 1) if 1 in names and words[1] in _verbs("served by") and _is_proper(found[0]) else None


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
    if written.startswith("#"):
        return False
    if at == 0 or not key[-1:].isdigit() or " " in written:
        return True
    before = found[at - 1]
    # "on 429" names a status, as "exit code 1" does.
    if words[at - 1] == "on" or words[at - 1] in _nouns("entities"):
        return False
    is_name = before[0] == "identifier" or (before[0] == "word" and before[3][:1].isupper())
    if not is_name or (at == 1 and words[0] in word_set("imperatives")):
        return True
    # A name with words before it is hardly the subject: the SDK targets Java 17.
    has_subject = is_predicate or sum(bool(piece[2]) for piece in found[max(0, at - _SUBJECT_PIECES_MAX) : at - 1]) > 1
    return has_subject and not takes_many


def _slot_after(found: Sequence[Piece], words: Sequence[str], at: int) -> int | None:
    """Where a value begins if the piece here is a relation that takes one."""
    what, word = found[at][0], words[at]
    if what not in ("word", "opposite"):
        return None
    if word in _COPULAS:
        return _complement(found, words, at)
    following = words[at + 1] if at + 1 < len(words) else ""
    if word in _verbs("use") and following not in word_set("slot prepositions") and _is_verb(words, at):
        return _past_determiners(words, at + 1)
    if (
        word in word_set("means")
        and at > 1
        and not any(each in _verbs("symptoms") for each in words[max(0, at - _SUBJECT_PIECES_MAX) : at])
    ):
        begin = _past_determiners(words, at + 1)
        return begin if begin is not None and _is_proper(found[begin]) else None
    is_listed = word in _verbs("one value") and (at == 0 or words[at - 1] not in _DETERMINERS)
    is_participle = (
        (word.endswith("ed") or word in english.irregular_forms())
        and at > 0
        and word not in _verbs("many values")
        and what == "word"
    )
    if is_listed or is_participle:
        for prep in range(at + 1, min(len(found), at + 2 + (_OBJECT_PIECES_MAX if is_listed else 0))):
            if words[prep] in word_set("slot prepositions" if is_listed else "manner prepositions"):
                begin = _past_determiners(words, prep + 1)
                # "for orders" is a circumstance, "for 30 days" is an amount.
                return None if words[prep] == "for" else begin
            if words[prep] in word_set("boundaries") | _verbs("many values") or found[prep][0] == "number":
                break
    return None


def _is_verb(words: Sequence[str], at: int) -> bool:
    """Whether a word that may be a noun, too, is the verb here: not after an article or a preposition."""
    return at == 0 or words[at - 1] not in _DETERMINERS | {"of", "in", "per", "each", "every", "on"}


def _complement(found: Sequence[Piece], words: Sequence[str], at: int) -> int | None:
    begin = at + 1
    while begin < len(found) and (
        found[begin][0] == "negation" or words[begin] in word_set("adverbs") or words[begin] in _DETERMINERS
    ):
        begin += 1
    if begin >= len(found):
        return None
    if words[begin] in word_set("places") and begin + 1 < len(found):
        begin = _past_determiners(words, begin + 1) or begin
        return begin if _is_proper(found[begin]) or (found[begin][0] == "word" and begin == len(found) - 1) else None
    what = found[begin][0]
    if _is_proper(found[begin]):
        return begin
    is_plain = what == "word" and not words[begin].endswith(("ed", "ing")) and words[begin] not in LIGHT_WORDS
    if not is_plain or begin + 1 < len(found) - 1:
        return None
    # `User.id` is an integer: what is named in code has one type.
    is_typed = words[begin - 1] in ("a", "an") and found[at - 1][0] in ("identifier", "quoted")
    subject = words[max(0, at - _SUBJECT_PIECES_MAX) : at]
    is_noun = words[begin - 1] in ("a", "an") or not _is_adjective(words[begin])
    is_named = is_noun and not _nouns("attributes").isdisjoint(subject)
    return begin if is_typed or is_named else None


def _is_proper(piece: Piece) -> bool:
    return piece[0] in ("quoted", "identifier") or (piece[0] == "word" and piece[3][:1].isupper())


def _is_adjective(word: str) -> bool:
    return word in word_set("adjectives") or word.endswith(_ADJECTIVE_ENDINGS)


def _past_determiners(words: Sequence[str], at: int) -> int | None:
    while at < len(words) and words[at] in _DETERMINERS:
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
        is_kind = words[end] in _kinds() and end + 1 < len(found) and found[end + 1][0] in _NAMING
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
        if (what == "number" and _is_korean_amount(found, parts, at, takes_many)) or found[at][1] in word_set(
            "korean dates"
        ):
            slots[at] = at + 1
        elif found[at][1] in word_set("korean limits") or (
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
    """Where the last verb begins: the last piece that no negation or ending follows."""
    at = len(found) - 1
    while at > 0 and (found[at][0] == "negation" or (found[at][0] == "opposite" and not found[at][2])):
        at -= 1
    # 저장 한다: the noun is what is done.
    is_carrier = at > 0 and not found[at][2] and found[at - 1][0] == "word" and is_hangul(found[at - 1][1])
    return at - 1 if is_carrier and not korean.parted(found[at - 1][1])[1] else at


def _is_korean_amount(found: Sequence[Piece], parts: Sequence[tuple[str, str]], at: int, takes_many: bool) -> bool:
    particle = parts[at][1]
    # 승인 두 개가 필요하다: what is counted is no subject.
    is_counted = at > 0 and particle in ("이", "가") and not _is_plain_number(found[at])
    if particle in _TOPIC_MARKERS and not is_counted:
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
    # 42번 마이그레이션은: the number tells which one.
    is_ordinal = found[at][3].endswith("번") and following[1] in _TOPIC_MARKERS
    return not (at == 0 and (is_ordinal or following[0] in word_set("korean entities")))


def _is_plain_number(piece: Piece) -> bool:
    return piece[1][-1:].isdigit() and " " not in piece[3]


def _korean_name(
    found: Sequence[Piece], parts: Sequence[tuple[str, str]], verb: int, takes_many: bool
) -> tuple[int, int]:
    """Where the one value begins and ends that the predicate takes; nowhere if it takes none or many."""
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
        is_noun = found[last][1].endswith(("다", "예요", "에요")) or korean.is_copula(parts[last][1])
        is_noun = is_noun and found[last][1] not in word_set("korean adjectives")
        is_verbal = found[last][1].endswith(("한다", "하다", "된다", "합니다", "됩니다", "있다", "없다", "는다"))
        if begin == last and found[last][0] == "number":
            return 0, 0
        if is_foreign or (has_attribute and is_noun and not is_verbal):
            return (begin, last + 1) if last - topic <= _VALUE_PIECES_MAX else (0, 0)
    at = verb - 1
    is_verb = found[verb][0] == "word" or found[verb][1][:-1] in _VERBS_OF_GROUPS if verb >= 0 else False
    if at < 0 or not is_verb:
        return 0, 0
    # GraphQL로 API를 호출한다: what it is done with stands before what it is done to.
    at -= at > 0 and parts[at][1] in ("을", "를") and parts[at - 1][1] in _MEANS and not is_hangul(found[at - 1][1])
    is_means = parts[at][1] in _MEANS and found[verb][1].startswith(tuple(listed("relations", "korean means")))
    if takes_many and not is_means:
        return 0, 0
    is_use = parts[at][1] in ("을", "를") and found[verb][1].startswith(tuple(listed("relations", "korean use")))
    # 정적 파일은 nginx가 서빙한다: whoever does it is the value.
    is_use |= parts[at][1] in ("이", "가") and -1 < topic < at and found[verb][1].endswith(("한다", "합니다", "했다"))
    if not is_use and (parts[at][1] not in word_set("korean slots") or found[at][0] == "opposite"):
        return 0, 0
    begin = at
    while begin > 1 and at - begin < _VALUE_PIECES_MAX - 1 and not parts[begin - 1][1] and is_name(found[begin - 1]):
        begin -= 1
    return (begin, at + 1) if begin or is_use else (0, 0)


def without_particle(piece: Piece) -> tuple[str, str]:
    """A piece without its particle, and the particle."""
    if piece[0] in ("word", "opposite") and is_hangul(piece[1]):
        return korean.parted(piece[1])
    return piece[3], piece[4]


def is_name(piece: Piece) -> bool:
    return piece[0] in _NAMING or piece[0] == "number"


def is_hangul(text: str) -> bool:
    return "가" <= text[:1] <= "힣"


def has_hangul(found: Sequence[Piece]) -> bool:
    return any(piece[4] or "가" <= piece[1][:1] <= "힣" for piece in found)
