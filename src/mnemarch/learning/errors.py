"""Errors compared with errors seen before: what identifies one, how alike two are, and which episodes met the same."""

from __future__ import annotations

from collections import defaultdict
from math import log

from mnemarch.model.value import replace, value
from mnemarch.text.cache import cached, pattern
from mnemarch.text.fingerprint import fingerprint, telling_line
from mnemarch.text.fingerprint_skeleton import message_skeleton

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from mnemarch.model.unit import Unit

# Below it two errors have only words in common: "no such episode" is the answer.
ALIKE_MIN = 0.57
# Two errors are as surely one by a part of their lines.
_OF_PLAIN = 0.8
_OF_KEY, _OF_CORE, _OF_WORDS, _OF_LINE = 0.4, 0.25, 0.25, 0.1
# So many are compared letter by letter: those that share the key, or the most telling words.
_COMPARED_MAX = 60
_LINE_CHARS_MAX = 400
_FAULTS_MAX = 50
_RUNNER = r"\A(?:(?:FAILED|ERROR|FAIL) \S+(?:::\S+| \S+)* - |E +)"
_ASIDE = r"[ ,.;:]*\([^()]*\)\W*\Z"


@value
class SeenError:
    """An error: its fingerprint's hash and core, and the line that tells it, as it was printed."""

    key: str
    core: str
    line: str


def seen_error(text: str) -> SeenError:
    """What identifies an error output, and the line to quote."""
    made = fingerprint(text)
    return SeenError(key=made.hash, core=made.core, line=telling_line(text)[:_LINE_CHARS_MAX])


def faults_in(episode: Unit) -> list[dict[str, Any]]:
    """The faults among an episode's attributes, which may come from anybody: what is none is left out."""
    faults: Any = episode.attributes.get("faults")
    return [fault for fault in faults if isinstance(fault, dict)] if isinstance(faults, list | tuple) else []


def errors_of(episode: Unit) -> list[SeenError]:
    """The errors that an episode met, in order. Attributes may come from anybody: what doesn't fit is left out.

    Of the core it keeps only the hash: the core of the line stands for it.
    """
    pairs = [(fault.get("key"), fault.get("line")) for fault in faults_in(episode)[:_FAULTS_MAX]]
    return [
        replace(_as_line(line[:_LINE_CHARS_MAX]), key=key)
        for key, line in pairs
        if isinstance(key, str) and isinstance(line, str)
    ]


def what_changed(episode: Unit, key: str) -> str:
    """What a task changed before a fault of it was gone, and which test it met it in; empty if that is not known."""
    last: dict[str, Any] = next((fault for fault in faults_in(episode)[::-1] if fault.get("key") == key), {})
    change = last.get("change")
    if not isinstance(change, list) or not change:
        return ""
    where = f" ({last['test']})" if last.get("test") else ""
    return f"{where} after {', '.join(map(str, change))}"


@cached(20_000)
def _as_line(line: str) -> SeenError:
    made = fingerprint(line)
    return SeenError(key=made.hash, core=made.core, line=line)


def _plain(line: str) -> str:
    """What a line says of the error alone: not which test failed by it, nor what stands in parentheses at its end."""
    return pattern(_ASIDE).sub("", pattern(_RUNNER).sub("", line.strip())) or line


@cached(20_000)
def _trigrams(text: str) -> frozenset[str]:
    padded = f"  {text.lower()} "
    return frozenset(padded[at : at + 3] for at in range(len(padded) - 2))


def dice(left: str, right: str) -> float:
    """How many trigrams two texts share, from 0 to 1."""
    ours, theirs = _trigrams(left), _trigrams(right)
    return 2 * len(ours & theirs) / (len(ours) + len(theirs))


@cached(20_000)
def _words(error: SeenError) -> frozenset[str]:
    text = f"{error.core} {message_skeleton(error.line)}"
    return frozenset(word.lower() for word in pattern(r"[^\W\d_]+").findall(text))


def _views(error: SeenError) -> dict[SeenError, float]:
    """What an error is known by, with how much that counts: a person often has the last line alone, or a part of it."""
    return {_as_line(_plain(error.line)): _OF_PLAIN} | {_as_line(error.line): 1.0, error: 1.0}


class KnownErrors:
    """Errors by whoever met them, ready to be compared with a new one."""

    def __init__(self, errors: Iterable[tuple[str, SeenError]]) -> None:
        views: dict[tuple[str, SeenError], float] = {}
        for who, error in errors:
            for view, share in _views(error).items():
                views.setdefault((who, view), share)
        self._errors, self._shares = list(views), list(views.values())
        self._by_key: dict[str, list[int]] = defaultdict(list)
        self._by_word: dict[str, list[int]] = defaultdict(list)
        for number, (_, error) in enumerate(self._errors):
            self._by_key[error.key].append(number)
            for word in _words(error):
                self._by_word[word].append(number)
        self._sizes = [sum(map(self._weight, _words(error))) for _, error in self._errors]

    def _weight(self, word: str) -> float:
        return log(1 + (len(self._errors) + 1) / (len(self._by_word.get(word, ())) + 1))

    def alike(self, error: SeenError, least: float = ALIKE_MIN) -> dict[str, tuple[float, SeenError]]:
        """Who met an error like this one, with how alike and which, best first. Nothing is scaled by the best."""
        best: dict[str, tuple[float, SeenError]] = {}
        plain = _plain(error.line)
        asked = [(error, 1.0), *([(_as_line(plain), _OF_PLAIN)] if plain != error.line else [])]
        for view, share in asked:
            for who, score, known in self._compared(view):
                if score * share >= max(least, best.get(who, (0.0,))[0]):
                    best[who] = score * share, known
        return dict(sorted(best.items(), key=lambda item: (-item[1][0], item[0])))

    def _compared(self, error: SeenError) -> Iterator[tuple[str, float, SeenError]]:
        shared: dict[int, float] = defaultdict(float)
        for word in _words(error):
            weight = self._weight(word)
            for number in self._by_word.get(word, ()):
                shared[number] += weight
        size = sum(map(self._weight, _words(error)))
        overlaps = {number: weight / (size + self._sizes[number] - weight) for number, weight in shared.items()}
        same = self._by_key.get(error.key, ())
        nearest = sorted(overlaps, key=lambda number: (-overlaps[number], -number))[:_COMPARED_MAX]
        for number in {*same, *nearest}:
            who, known = self._errors[number]
            yield (
                who,
                self._shares[number]
                * (
                    _OF_KEY * (known.key == error.key)
                    + _OF_CORE * (1.0 if known.key == error.key else dice(known.core, error.core))
                    + _OF_WORDS * overlaps.get(number, 0.0)
                    + _OF_LINE * dice(known.line, error.line)
                ),
                known,
            )


@value
class EpisodeCluster:
    """Episodes that met one fault, the newest first; `line` is the error as it was last printed."""

    key: str
    line: str
    episodes: tuple[Unit, ...]


class EpisodeClusterer:
    """Groups episodes by fingerprint alone (M6): merging near fingerprints too would join faults that differ."""

    def clusters(self, episodes: Iterable[Unit]) -> list[EpisodeCluster]:
        """One cluster a fault, the largest first; an episode that met several faults is in several clusters."""
        lines: dict[str, str] = {}
        members: dict[str, dict[str, Unit]] = defaultdict(dict)
        for episode in sorted(episodes, key=lambda unit: unit.id, reverse=True):
            for error in errors_of(episode):
                lines.setdefault(error.key, error.line)
                members[error.key][episode.id] = episode
        clusters = [EpisodeCluster(key, lines[key], tuple(units.values())) for key, units in members.items()]
        return sorted(clusters, key=lambda cluster: (-len(cluster.episodes), cluster.key))
