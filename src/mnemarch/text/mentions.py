"""Which entities a text mentions: their names in any spelling, spacing and case, as whole words, with particles.

A text is read as one glued string, without spaces and without the hyphens and underscores inside words, so that
every spelling of a name is the same piece of it; where the text had a gap is looked at only where a name is found.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cache
from unicodedata import category

from mnemarch.errors import InvalidInput
from mnemarch.lazy import Lazy
from mnemarch.model.value import Frozen
from mnemarch.text.cache import pattern
from mnemarch.text.canonical import composed, one_typography
from mnemarch.text.words import listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mnemarch.text import korean
else:
    korean = Lazy("mnemarch.text.korean")

NAME_CHARS_MAX = 200

# The group is what is glued over, as white space is; at an end of a word (--force, user_) it is a mark like others.
_PARTS = r"[가-힣]+|[^\W_가-힣]+|((?<=[^\W_])(?:_++|-)(?=[^\W_]))|\S"
# URLParser is url and parser; APIs is one word.
_HUMPS = r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])(?![A-Z]s(?![a-z]))"
# What makes a name a path, an address or a number of parts, which is matched as it is written.
_ADDRESS = r"[/\\@:]|\w\.\w|^\.\w"
_LINE_NUMBER = r"(?::\d+(?:-\d+)?)+"

# What joins words to one identifier; a longer run of it is a ruler or a row of dots.
_JOINTS = frozenset("-./:\\@#")
_JOINT_CHARS_MAX = 3
_IN_ADDRESSES = frozenset("?=&%")
_PLURAL_LETTERS_MIN = 4
# Longer than any chain of particles (으로부터까지라고는요).
_TAIL_CHARS_MAX = 12

# How a verb made of the noun goes on: 결제했다 says an act, not the thing. 하고 is also a particle.
_OF_VERBS = "하한합해했할함되된됩돼됐될됨시습스"
# Nothing but a polite 요 follows these, so that 의도 and 도로 are words and no particles.
_LAST = "은는이가을를의도나야"
_AFTER_A_VOWEL = "는를가와라랑란나야였예죠네거든"
_AFTER_A_CONSONANT = "은을과으"
_FINAL_RIEUL = 8


class Mentions:
    """The names of entities, and which of the entities a text mentions."""

    def __init__(self) -> None:
        self._names: dict[str, dict[str, None]] = {}
        self._spelled: dict[str, dict[tuple[_Name, str], None]] = {}
        # For the first two characters of glued names the sizes that names had, the largest first.
        self._sizes: dict[str, list[int]] = {}

    def add(self, entity_id: str, names: Iterable[str]) -> None:
        """Let the entity go by these names too; if one of them can't be a name, none is added."""
        read = {name: _read_name(name) for name in names}
        self._names.setdefault(entity_id, {}).update(dict.fromkeys(read))
        for name in read.values():
            sizes = self._sizes.setdefault(name.glued[:2], [])
            if len(name.glued) not in sizes:
                sizes.append(len(name.glued))
                sizes.sort(reverse=True)
            self._spelled.setdefault(name.glued, {})[name, entity_id] = None

    def remove(self, entity_id: str) -> None:
        """Forget the entity and its names; one that is not known is forgotten already."""
        for name in {_read_name(name) for name in self._names.pop(entity_id, ())}:
            del self._spelled[name.glued][name, entity_id]
            if not self._spelled[name.glued]:
                del self._spelled[name.glued]

    def names_of(self, entity_id: str) -> list[str]:
        """The names the entity was added with, in that order; none for an entity that is not known."""
        return list(self._names.get(entity_id, ()))

    def found_in(self, text: str) -> list[str]:
        """The ids of the entities the text mentions, by first mention; inside a longer name there is no other."""
        if not self._spelled:
            return []
        read = _Glued(_folded(_level(text)))
        found: dict[str, None] = {}
        end = 0
        for index, at in enumerate(read.starts):
            if read.glued[at : at + 2] in self._sizes or read.glued[at] in self._spelled:
                span_end, entity_ids = self._longest_at(read, index)
                if span_end > end:
                    end = span_end
                    found.update(dict.fromkeys(entity_ids))
        return list(found)

    def _longest_at(self, read: _Glued, index: int) -> tuple[int, list[str]]:
        """Where the longest name that starts here ends, and whose it is; (0, []) if there is none."""
        at, begin = read.starts[index], read.places[index]
        if not _may_begin(read.folded, begin):
            return 0, []
        for size in (*self._sizes.get(read.glued[at : at + 2], ()), 1):
            alike = self._spelled.get(read.glued[at : at + size])
            if alike is None or at + size > len(read.glued):
                continue
            end = read.place_after(at + size)
            whose = [
                entity_id
                for name, entity_id in alike
                if _is_spelled(name, read, at, begin, end) and _is_ended(name, read.folded, begin, end)
            ]
            if whose:
                return end, whose
        return 0, []


class _Name(Frozen):
    """A name as it is compared: the glued text, a bit for each place where a gap may be, and the text if it counts."""

    glued: str
    bounds: int
    literal: str


class _Glued:
    """A folded text, the same glued, and where its words and marks start: glued, and in the folded text."""

    def __init__(self, folded: str) -> None:
        self.folded = folded
        self.starts: list[int] = []
        self.places: list[int] = []
        # Those starts before which something was glued over.
        self.gaps: list[int] = []
        parts: list[str] = []
        size = end = 0
        for match in pattern(_PARTS).finditer(folded):
            if match.lastindex is not None:
                continue
            part, place = match[0], match.start()
            if place != end and size:
                self.gaps.append(size)
            self.starts.append(size)
            self.places.append(place)
            parts.append(part)
            size += len(part)
            end = place + len(part)
        self.glued = "".join(parts)

    def place_after(self, end: int) -> int:
        """Where in the folded text the first `end` glued characters end."""
        last = bisect_left(self.starts, end) - 1
        return self.places[last] + end - self.starts[last]


def _read_name(name: str) -> _Name:
    # Quotes around a name and a stop after it are no part of it.
    level = " ".join(_level(name[: NAME_CHARS_MAX + 1]).split()).lstrip(" \"'`").rstrip(" \"'`.,;:!?")
    folded = _folded(level)
    size = max(len(name), len(folded))
    if size > NAME_CHARS_MAX:
        raise InvalidInput(
            f"The name {name[:40]!r}… has {size} characters, and at most {NAME_CHARS_MAX} are allowed.",
            hint="Give a short name, and keep the description in the entity's text.",
        )
    if not any(map(str.isalnum, folded)):
        raise InvalidInput(f"The name {name!r} holds no letter and no digit.", hint="Give a name that can be read.")
    read = _Glued(folded)
    if pattern(_ADDRESS).search(folded):
        return _Name(read.glued, 0, folded)
    bounds = sum(1 << gap for gap in read.gaps)
    if len(level) == len(folded):
        for hump in pattern(_HUMPS).finditer(level):
            word = bisect_left(read.places, hump.start() + 1) - 1
            bounds |= 1 << (read.starts[word] + hump.start() - read.places[word])
    return _Name(read.glued, bounds & ~1, "")


def _is_spelled(name: _Name, read: _Glued, at: int, begin: int, end: int) -> bool:
    """Whether the name, found glued, has no gap where it may have none; next to Hangul spacing varies freely."""
    if name.literal:
        return " ".join(read.folded[begin:end].split()) == name.literal
    last = len(name.glued) - 1
    for gap in read.gaps[bisect_left(read.gaps, at + 1) : bisect_left(read.gaps, at + last + 1)]:
        within = gap - at
        if name.bounds >> within & 1:
            continue
        if not (_is_hangul(name.glued[within - 1]) or _is_hangul(name.glued[within])):
            return False
        # 주문 서로 is not 주문서 with a particle.
        if within == last and _is_hangul(name.glued[last]):
            return False
    return True


def _is_ended(name: _Name, folded: str, begin: int, end: int) -> bool:
    """Whether a word ends with the name, but for what may be attached to it."""
    if _is_hangul(name.glued[-1]):
        return _may_end_in_hangul(folded, begin, end, alone=len(name.glued) == 1)
    if _is_path(name) and (line := pattern(_LINE_NUMBER).match(folded, end)):
        end = line.end()
    if folded[end : end + 1] == "s" and _has_plural(name):
        end += 1
    if name.literal and folded[end : end + 1] in _IN_ADDRESSES and _is_word(folded[end + 1 : end + 2]):
        return False
    return _may_end(folded, end)


def _is_path(name: _Name) -> bool:
    return any(mark in name.literal for mark in "./\\") and "://" not in name.literal


def _has_plural(name: _Name) -> bool:
    word = name.glued
    return len(word) >= _PLURAL_LETTERS_MIN and word.isascii() and word.isalpha() and not name.bounds


def _may_begin(folded: str, begin: int) -> bool:
    """Whether a name may start here: not inside a word or an identifier."""
    if not begin:
        return True
    first, before = folded[begin], folded[begin - 1]
    if _is_hangul(first):
        return not _is_hangul(before)
    if not _is_word(first):
        return _is_hangul(before) or not (_is_word(before) or before in "-./\\")
    if _is_word(before):
        return False
    if before == "'":
        return not _is_latin(folded[max(begin - 2, 0) : begin - 1])
    if before == ",":
        return not (first.isdigit() and folded[max(begin - 2, 0) : begin - 1].isdigit())
    at = begin
    while at and begin - at <= _JOINT_CHARS_MAX and folded[at - 1] in _JOINTS:
        at -= 1
    joint = folded[at:begin]
    if not joint or _is_pause(joint):
        return True
    beyond = folded[at - 1] if at else ""
    if _is_word(beyond):
        return _is_hangul(beyond) and "-" not in joint
    # A bullet, a handle, a channel; but no option and no path.
    return joint in ("-", ":", "@", "#")


def _may_end(folded: str, end: int) -> bool:
    """Whether a name that ends in a Latin letter, a digit or a mark may end here."""
    tail = _hangul_at(folded, end)
    if tail:
        return _is_particles(tail, "") or (len(tail) <= _TAIL_CHARS_MAX and korean.is_suffix(tail))
    after = folded[end : end + 1]
    beyond = folded[end + 1 : end + 2]
    if _is_word(after):
        return False
    if not _is_word(folded[end - 1]):
        return True
    if after == "'":
        return not _is_latin(beyond) or (beyond == "s" and not _is_latin(folded[end + 2 : end + 3]))
    if after == ",":
        return not (folded[end - 1].isdigit() and beyond.isdigit())
    if after == "#" or (after == "+" and beyond == "+"):
        return False
    stop = end
    while stop - end <= _JOINT_CHARS_MAX and folded[stop : stop + 1] in _JOINTS:
        stop += 1
    joint, beyond = folded[end:stop], folded[stop : stop + 1]
    if not joint or _is_pause(joint) or not _is_word(beyond):
        return True
    return _is_hangul(beyond) and "-" not in joint


def _may_end_in_hangul(folded: str, begin: int, end: int, *, alone: bool) -> bool:
    tail = _hangul_at(folded, end)
    if tail and not _is_particles(tail, folded[end - 1]):
        return False
    if not alone:
        return True
    stop = end + len(tail)
    return not (begin and _is_word(folded[begin - 1])) and not _is_word(folded[stop : stop + 1])


def _is_pause(joint: str) -> bool:
    return len(joint) > _JOINT_CHARS_MAX or (len(joint) > 1 and not joint.strip("."))


def _hangul_at(folded: str, at: int) -> str:
    """The Hangul that starts here, up to where it is too long for particles."""
    stop = at
    while stop - at <= _TAIL_CHARS_MAX and _is_hangul(folded[stop : stop + 1]):
        stop += 1
    return folded[at:stop]


def _is_particles(tail: str, before: str) -> bool:
    """Whether the tail is a chain of particles, each in the form that follows the sound before it."""
    if len(tail) > _TAIL_CHARS_MAX:
        return False
    for size in range(1, len(tail) + 1):
        particle, rest = tail[:size], tail[size:]
        if particle not in _particles() or not _agrees(particle, before):
            continue
        if not rest or rest == "요" or (particle[-1] not in _LAST and _is_particles(rest, particle[-1])):
            return True
    return False


@cache
def _particles() -> frozenset[str]:
    particles = {suffix for suffix in korean.suffixes() if suffix[0] not in _OF_VERBS}
    return frozenset(particles | {"하고"}).union(listed("korean", "name particles"))


def _agrees(particle: str, before: str) -> bool:
    """Whether the particle is the one after this syllable: 주문이 and 결제가, so that 주문가 is another word."""
    if not _is_hangul(before):
        return True
    final = (ord(before) - ord("가")) % 28
    if particle == "이" or particle[0] in _AFTER_A_CONSONANT:
        return final != 0
    if particle[0] == "로":
        return final in (0, _FINAL_RIEUL)
    return final == 0 or particle[0] not in _AFTER_A_VOWEL


def _is_hangul(character: str) -> bool:
    return "가" <= character <= "힣"


def _is_word(character: str) -> bool:
    # Vowel signs and accents that compose with nothing are no letters to `isalnum`.
    return character.isalnum() or character == "_" or (character > "\u02ff" and category(character)[0] == "M")


def _is_latin(character: str) -> bool:
    return _is_word(character) and not _is_hangul(character)


def _level(text: str) -> str:
    """The text in NFKC, dashes and quotes made alike, what can't be seen dropped."""
    return text if text.isascii() else composed(text.translate(_typography()))


def _folded(level: str) -> str:
    return level.lower() if level.isascii() else composed(level.casefold())


@cache
def _typography() -> dict[int, str | None]:
    return one_typography() | {ord("ʼ"): "'"}
