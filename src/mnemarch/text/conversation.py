"""A text as a turn of a conversation: its speaker, its kind, its sketch for search, and how turns cohere. Pure.

A question or a greeting often has the words of a query, and rarely its answer. Turns about the speaker, about the past
or with a number are more likely to have it.

In a real conversation, neighbouring turns have the same subject, so search may use one to find the other. In a list of
unrelated statements it may not. Coherence is how many more words neighbours share than unrelated turns. It is measured
on a sample, for each project separately.
"""

from __future__ import annotations

from functools import cache, lru_cache
from math import log, sqrt

from mnemarch.model.json_text import from_json, to_json
from mnemarch.model.search import Sketch
from mnemarch.text.cache import BoundedCache, pattern
from mnemarch.text.english import NUMBERS, irregular_forms
from mnemarch.text.tokens import TOKENS_MAX, numbered_names, telling_tokens
from mnemarch.text.words import listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mnemarch.model.search import Sums
    from mnemarch.model.unit import Searchable

    # A word in lower case without the marks around it, and its signs.
    _Word = tuple[str, str]

# A change of meaning raises the version of the sketches in an index.
SKETCH_VERSION = 6
_SPEAKER = r"([^\W\d_][\w .'-]{0,30}): "
# All that a setting says after its name: "5s" in "Timeout: 5s".
_AMOUNT = r"\s*[~<>≤≥=]{0,2}[$€£¥₩]?\d[\w.,:/%-]*(?: \w{1,12}){0,2}[.!]?\s*\Z"
# The words that a role may be followed by as its value: "Owner: Dana". A person in that role says more.
_VALUE_WORDS_MAX = 2

# The signs of a turn, one character each.
ASKS, COURTESY, PERSONAL, EVENT, AMOUNT, TIME, LONG = "qgientl"

_COURTESIES, _PAST_ENDINGS = frozenset(listed("turns", "courtesies")), tuple(listed("turns", "past endings"))
# A longer sentence that begins with a courtesy is no mere courtesy.
_COURTESY_WORDS_MAX = 6
_NOTHING_SAID_MAX = 4
_LONG_MIN = 20
_ED_CHARS_MIN = 5
# Bounds the words that are read of a long text: its kind shows early.
_WORDS_MAX = 400
_AROUND = ".,;:!?\"'`()[]{}…。？！~*"
_ASKING = frozenset("?？")
_ENDING = frozenset(".!…。！?？")

_PAIRS_MIN = 50
_PAIRS_MAX = 512
_STRANGERS_MAX = 256
_SESSIONS_MAX = 64
# Added to both sides of the ratio, for words that two texts share by chance.
_BY_CHANCE = 0.02
# Shuffled conversations have a ratio of 1.0-1.3, real ones of 2.5 and more.
_NOTHING, _FULL = 1.2, 2.0
_FACTORS: list[int] = [31**place * 2_654_435_761 for place in range(8)]


def sketched(unit: Searchable) -> Sketch:
    """The sketch of a unit that an index stores: its words, its speaker, and its kind of turn."""
    speaker = speaker_of(unit.content)
    words = telling_tokens(unit.content, limit=TOKENS_MAX)
    return Sketch(unit, speaker, words, signs_of(unit.content, speaker), numbered_names(unit.content))


def speaker_of(text: str) -> str:
    """The speaker of a text in lower case, if the text begins with the name ("Mina: I moved to Busan")."""
    match = pattern(_SPEAKER).match(text) if ":" in text[:33] else None
    if match is None or pattern(_AMOUNT).match(text, match.end()):
        return ""
    name = match[1].casefold()
    is_setting = name.split()[-1] in listed("relations", "attributes", "measures", "korean one value")
    is_setting &= len(text[match.end() :].split()) <= _VALUE_WORDS_MAX
    return "" if is_setting or name in listed("english", "no speakers") else name


def signs_of(text: str, speaker: str = "") -> str:
    """The signs of a turn's kind. The name of its speaker at the beginning is skipped."""
    words = text[len(speaker) + 1 if speaker else 0 :].replace("\u2019", "'").split(None, _WORDS_MAX)[:_WORDS_MAX]
    stating, asks = _stating_words(words)
    if not stating:
        return ASKS if asks else COURTESY
    signs = {*"".join([signs for _, signs in stating])}
    if asks:
        signs.add(ASKS)
    if len(stating) <= _NOTHING_SAID_MAX:
        signs.add(COURTESY)
    if len(stating) >= _LONG_MIN:
        signs.add(LONG)
    return "".join(sorted(signs))


def _stating_words(written: list[str]) -> tuple[list[_Word], bool]:
    """The words without questions and short courtesies, and whether the text ends with a question."""
    words = [*map(_known_words.__getitem__, [word.strip(_AROUND) for word in written])]
    stating: list[_Word] = []
    start, asks = 0, False
    ends = [end for end, word in enumerate(written, start=1) if word[-1] in _ENDING]
    for end in [*ends, len(words)]:
        if end > start:
            asks = written[end - 1][-1] in _ASKING
            is_courtesy = end - start <= _COURTESY_WORDS_MAX and words[start][0] in _COURTESIES
            if not asks and not is_courtesy:
                stating += [word for word in words[start:end] if word[0]]
            start = end
    return stating, asks


@cache
def _signs() -> dict[str, str]:
    """The signs of words that are signs by themselves."""
    lists = {PERSONAL: "first person", EVENT: "events", AMOUNT: "amounts", TIME: "times"}
    words = [(word, sign) for sign, name in lists.items() for word in listed("turns", name)]
    words += [(word, EVENT) for word in irregular_forms()] + [(word, AMOUNT) for word in NUMBERS]
    signs: dict[str, str] = {}
    for word, sign in words:
        signs[word] = signs.get(word, "") + sign
    return signs


def _read(written: str) -> _Word:
    word = written.casefold()
    signs = _signs().get(word, "")
    if word.endswith("ed") and len(word) >= _ED_CHARS_MIN if word.isascii() else word.endswith(_PAST_ENDINGS):
        signs += EVENT
    if not word.isalpha() and any(map(str.isdigit, word)):
        signs += AMOUNT
    return word, signs


_known_words = BoundedCache(32_768, _read)


class Coherence:
    """Takes sketches in the order of the log, and samples pairs of neighbours and of strangers."""

    def __init__(self) -> None:
        self._samples: dict[str, _Sample] = {}

    def note(self, sketch: Sketch) -> None:
        if sketch.session and sketch.length:
            self._samples.setdefault(project_of(sketch.session), _Sample()).note(sketch)

    def sums(self, known: Mapping[str, Sums] | None = None) -> dict[str, Sums]:
        """The sums of this sample, added to those `known` from before. Older samples count less and less."""
        total = dict(known or {})
        for project, sample in self._samples.items():
            near, far, pairs = sample.sums()
            known_near, known_far, known_pairs = total.get(project, (0.0, 0.0, 0))
            kept = min(1.0, _PAIRS_MAX / known_pairs) if known_pairs else 0.0
            total[project] = (near + kept * known_near, far + kept * known_far, pairs + round(kept * known_pairs))
        return total


@lru_cache(_SESSIONS_MAX)
def project_of(session: str) -> str:
    """The project of a session key."""
    org, project, _ = from_json(session)
    return project_key(org, project)


def project_key(org: str, project: str | None) -> str:
    return to_json([org, project])


def weight_of(sums: Sums | None) -> float:
    """The weight of neighbours in search, from 0 to 1."""
    if sums is None or sums[2] < _PAIRS_MIN:
        return 0.0
    near, far, pairs = sums
    chance = _BY_CHANCE * pairs
    return min(1.0, max(0.0, ((near + chance) / (far + chance) - _NOTHING) / (_FULL - _NOTHING)))


class _Sample:
    """Pairs of neighbours, each with a stranger to one of them. If there are too many, every second one is dropped."""

    def __init__(self) -> None:
        self._newest: dict[str, Sketch] = {}
        self._strangers: list[Sketch] = []
        self._triples: list[tuple[Sketch, Sketch, Sketch]] = []
        self._stride = 1
        self._seen = 0

    def note(self, sketch: Sketch) -> None:
        before = self._newest.pop(sketch.session, None)
        self._newest[sketch.session] = sketch
        if len(self._newest) > _SESSIONS_MAX:
            del self._newest[next(iter(self._newest))]
        chance = _chance(sketch.id)
        if before is not None and before.turn == sketch.turn - 1 and self._strangers:
            self._seen += 1
            if self._seen % self._stride == 0:
                self._triples.append((sketch, before, self._strangers[chance % len(self._strangers)]))
            if len(self._triples) > _PAIRS_MAX:
                self._triples = self._triples[::2]
                self._stride *= 2
        if len(self._strangers) < _STRANGERS_MAX:
            self._strangers.append(sketch)
        elif chance % 3 == 0:
            self._strangers[chance // 3 % _STRANGERS_MAX] = sketch

    def sums(self) -> Sums:
        seen = {sketch.id: frozenset(sketch.distinct()) for triple in self._triples for sketch in triple}
        counted: dict[str, int] = {}
        for words in seen.values():
            for word in words:
                counted[word] = counted.get(word, 0) + 1
        weights = {word: log(1 + (len(seen) - count + 0.5) / (count + 0.5)) for word, count in counted.items()}
        near = far = 0.0
        for sketch, before, stranger in self._triples:
            near += _shared(seen[sketch.id], seen[before.id], weights)
            far += _shared(seen[sketch.id], seen[stranger.id], weights)
        return near, far, len(self._triples)


def _chance(unit_id: str) -> int:
    """A pseudo-random number that depends only on the id, so that the same log always gives the same sample."""
    last = reversed(unit_id.encode()[-8:])
    return (sum([byte * factor for byte, factor in zip(last, _FACTORS, strict=False)]) & 0xFFFFFFFF) >> 4


def _shared(left: frozenset[str], right: frozenset[str], weights: Mapping[str, float]) -> float:
    return sum([weights[word] for word in left & right]) / sqrt(max(1, len(left) * len(right)))
