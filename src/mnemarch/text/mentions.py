"""Finds the entities that a text mentions: their names as whole words, in any spelling, spacing and case.

Each name is one pattern. It is tried only if the text without gaps contains the name without gaps.
"""

from __future__ import annotations

from functools import cache

from mnemarch.errors import InvalidInput
from mnemarch.lazy import Lazy
from mnemarch.model.value import Frozen
from mnemarch.text.cache import cached, pattern
from mnemarch.text.canonical import composed, one_typography
from mnemarch.text.words import is_hangul, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator

    from mnemarch.text import korean
else:
    korean = Lazy("mnemarch.text.korean")

NAME_CHARS_MAX = 200

# URLParser is url and parser; APIs is one word.
_HUMPS = r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])(?![A-Z]s(?![a-z]))"
# A name with one of these is a path, an address or a number with several parts. It is matched as written.
_ADDRESS = r"[/\\@:]|\w\.\w|^\.\w"
_GAPS = r"[\s_-]+"
_PLURAL_LETTERS_MIN = 4
_HANGUL = r"[가-힣]*"
# A name is no part of a longer identifier: src/auth.py, pay-svc, it's, 1,024, C++. Next to Hangul, a slash or a dot
# separates two words: 카프카/Redis.
_BEGINS = r"(?<!\w)(?<!\w[-.:\\@#'])(?<![\\.])(?<!^/)(?<![^가-힣]/)(?<!::)(?<!\d,)(?<!--)"
_ENDS = r"(?![^\W가-힣])(?![-:\\@'#]\w)(?![./][^\W가-힣])(?!::|://|\+\+|#)(?!,\d)"
_ENDS_OF_ADDRESS = rf"{_ENDS}(?![?=&%]\w)"
# Syllables that make a verb of the noun: 결제했다 is an act, and not the thing. 하고 is also a particle.
_OF_VERBS = "하한합해했할함되된됩돼됐될됨시습스"
# Only a polite 요 follows these, so 의도 and 도로 are words and no particles.
_LAST = "은는이가을를의도나야"
# Longer than any chain of particles (으로부터까지라고는요).
_TAIL_CHARS_MAX = 12


class _Name(Frozen):
    """A name to search for: without gaps, and as a pattern."""

    glued: str
    pattern: str


class Mentions:
    """The names of entities, and which of the entities a text mentions."""

    def __init__(self) -> None:
        self._names: dict[str, dict[str, _Name]] = {}

    def add(self, entity_id: str, names: Iterable[str]) -> None:
        """Add names to an entity. If one of them is invalid, none is added."""
        read = {name: _read_name(name) for name in names}
        self._names.setdefault(entity_id, {}).update(read)

    def remove(self, entity_id: str) -> None:
        """Remove the entity and its names, if it is known."""
        self._names.pop(entity_id, None)

    def names_of(self, entity_id: str) -> list[str]:
        """The names of the entity in the order they were added. Empty for an unknown entity."""
        return list(self._names.get(entity_id, ()))

    def found_in(self, text: str) -> list[str]:
        """The ids of the entities that the text mentions, by first mention. Names inside longer names don't count."""
        folded = _folded(_level(text))
        glued = pattern(_GAPS).sub("", folded)
        spans = sorted(
            (begin, -end, entity_id)
            for entity_id, names in self._names.items()
            for name in names.values()
            if name.glued in glued
            for begin, end in _places(name, folded)
        )
        mentioned: dict[str, None] = {}
        last = (0, 0)
        for begin, end, entity_id in spans:
            if end < last[1] or (begin, end) == last:
                last = begin, end
                mentioned[entity_id] = None
        return list(mentioned)


def _read_name(name: str) -> _Name:
    # Remove quotes around the name and punctuation after it, but for the colons of std::.
    whole = " ".join(_level(name[: NAME_CHARS_MAX + 1]).split()).lstrip(" \"'`")
    level = whole.rstrip(" \"'`.,;:!?")
    level += "::" if whole.startswith("::", len(level)) else ""
    folded = _folded(level)
    size = max(len(name), len(folded))
    if size > NAME_CHARS_MAX:
        raise InvalidInput(
            f"The name {name[:40]!r}… has {size} characters, and at most {NAME_CHARS_MAX} are allowed.",
            hint="Give a short name, and keep the description in the entity's text.",
        )
    if not any(map(str.isalnum, folded)):
        raise InvalidInput(f"The name {name!r} holds no letter and no digit.", hint="Give a name that can be read.")
    return _Name(pattern(_GAPS).sub("", folded), _pattern_of(level, folded))


def _pattern_of(level: str, folded: str) -> str:
    from re import escape

    is_address = (
        pattern(_ADDRESS).search(folded) is not None or not (folded[0] + folded[-1]).replace("_", "-").isalnum()
    )
    body = r"\s+".join(map(escape, folded.split()))
    plural = ""
    begins, ends = _BEGINS, _ENDS_OF_ADDRESS if is_address else _ENDS
    if not is_address:
        words = pattern(_GAPS).split(_folded(pattern(_HUMPS).sub(" ", level)))
        spelled = r"(?:\s+|[_-]+)?".join(map(escape, words))
        # Next to Hangul spacing varies freely; but 주문 서로 is not 주문서 with a particle.
        body = pattern(r"(?<=[가-힣])(?=\w.)|(?<=\w)(?=[가-힣].)").sub(r"\\s*", spelled) + f"|{body}"
        is_plain = folded.isascii() and folded.isalpha() and len(words) == 1
        plural = "s?" if is_plain and len(folded) >= _PLURAL_LETTERS_MIN else ""
    elif "://" not in folded:
        body += r"(?::\d+(?:-\d+)?)*"
    if not folded[0].isalnum():
        begins = r"(?<![\w./\\-])"
    elif is_hangul(folded[0]) and len(folded) > 1:
        begins = "(?<![가-힣])"
    if is_hangul(folded[-1]):
        ends = "" if len(folded) > 1 else r"(?!\w)"
    return f"{begins}(?P<name>{body}){plural}(?:'s|'(?=[가-힣]))?(?P<tail>{_HANGUL}){ends}"


def _places(name: _Name, folded: str) -> Iterator[tuple[int, int]]:
    """The places where a text has the name with at most particles attached."""
    for match in _compiled(name.pattern).finditer(folded):
        is_latin = not is_hangul(match["name"][-1])
        if _is_particles(match["tail"]) or (is_latin and korean.is_suffix(match["tail"][:_TAIL_CHARS_MAX])):
            yield match.span("name")


@cached(256)
def _compiled(source: str) -> re.Pattern[str]:
    """A pattern made of a user's words. The cache drops it when they are erased."""
    from re import compile as compile_pattern

    return compile_pattern(source)


def _is_particles(tail: str) -> bool:
    """Whether the tail is a chain of particles."""
    if not tail or len(tail) > _TAIL_CHARS_MAX:
        return not tail
    parts = ((tail[:size], tail[size:]) for size in range(1, len(tail) + 1))
    return any(
        particle in _particles() and (rest in ("", "요") or (particle[-1] not in _LAST and _is_particles(rest)))
        for particle, rest in parts
    )


@cache
def _particles() -> frozenset[str]:
    particles = {suffix for suffix in korean.suffixes() if suffix[0] not in _OF_VERBS}
    return frozenset(particles | {"하고"}).union(listed("korean", "name particles"))


def _level(text: str) -> str:
    """The text in NFKC, with uniform dashes and quotes, and without invisible characters."""
    return text if text.isascii() else composed(text.translate(_typography()))


def _folded(level: str) -> str:
    return level.lower() if level.isascii() else composed(level.casefold())


@cache
def _typography() -> dict[int, str | None]:
    return one_typography() | {ord("ʼ"): "'"}
