"""Reads episodes: their errors, how similar two errors are, which episodes met the same one, and what was tried."""

from __future__ import annotations

from collections import defaultdict
from math import log

from mnemarch.lazy import Lazy
from mnemarch.model.value import Frozen, replace
from mnemarch.text.cache import cached, pattern
from mnemarch.text.faults import message_skeleton
from mnemarch.text.fingerprint import fingerprint, telling_line
from mnemarch.text.words import counted, in_a_line
from mnemarch.units.account import command_head
from mnemarch.units.analysis import is_worth_repeating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from mnemarch.model.unit import Unit
    from mnemarch.text import approach as approaches
    from mnemarch.text.approach import Approach
else:
    approaches = Lazy("mnemarch.text.approach")

# Errors that are less similar have only words in common; the answer is then "no such episode".
ALIKE_MIN = 0.57
_TEST_CHARS_MAX = 200
# The weight of a match with only a part of the line.
_OF_PLAIN = 0.8
_OF_KEY, _OF_CORE, _OF_WORDS, _OF_LINE = 0.4, 0.25, 0.25, 0.1
# The errors to compare letter by letter: those with the rarest words in common, beside those with the same key.
_COMPARED_MAX = 60
_LINE_CHARS_MAX = 400
_FAULTS_MAX = 50
_QUOTED_CHARS_MAX = 160
_RUNNER = r"\A(?:(?:FAILED|ERROR|FAIL) \S+(?:::\S+| \S+)* - |E +)"
_ASIDE = r"[ ,.;:]*\([^()]*\)\W*\Z"


class SeenError(Frozen):
    """An error: its fingerprint's hash and core, and its most telling line, as it was printed."""

    key: str
    core: str
    line: str


def seen_error(text: str) -> SeenError:
    """The identity of an error output, and the line to quote."""
    made = fingerprint(text)
    return SeenError(key=made.hash, core=made.core, line=telling_line(text)[:_LINE_CHARS_MAX])


def faults_in(episode: Unit) -> list[dict[str, Any]]:
    """The faults in an episode's attributes. Attributes may come from anybody, so malformed ones are skipped."""
    faults: Any = episode.attributes.get("faults")
    return [fault for fault in faults if isinstance(fault, dict)] if isinstance(faults, list | tuple) else []


def errors_of(episode: Unit) -> list[SeenError]:
    """The errors that an episode met, in order; malformed ones are skipped.

    An episode keeps only the hash of the core, so the core is made again from the line.
    """
    pairs = [(fault.get("key"), fault.get("line")) for fault in faults_in(episode)[:_FAULTS_MAX]]
    return [
        replace(_as_line(line[:_LINE_CHARS_MAX]), key=key)
        for key, line in pairs
        if isinstance(key, str) and isinstance(line, str)
    ]


def what_changed(episode: Unit, key: str, others: Sequence[Unit] = ()) -> str:
    """The changes of a task before a fault was gone, and the test that met the fault; empty if unknown.

    It also says in how many of the other episodes the same change failed.
    """
    last = _last_fault(episode, key)
    change = texts(last.get("change"))
    if not change:
        return ""
    where = f" ({in_a_line(str(last['test']), _TEST_CHARS_MAX)})" if last.get("test") else ""
    met = [(each.id, fault) for each in others for fault in faults_in(each) if fault.get("key") == key]
    fails = {id for id, fault in met if set(change) <= set(texts(fault.get("tried")))} - {episode.id}
    return f"{where} after {', '.join(change)}{failed_in(len(fails))}"


def failed_in(fails: int) -> str:
    """A clause for something that worked once and failed elsewhere."""
    return f", which failed in {counted(fails, 'other task')}" if fails else ""


def _last_fault(episode: Unit, key: str) -> dict[str, Any]:
    return next((fault for fault in faults_in(episode)[::-1] if fault.get("key") == key), {})


@cached(20_000)
def _as_line(line: str) -> SeenError:
    made = fingerprint(line)
    return SeenError(key=made.hash, core=made.core, line=line)


def _plain(line: str) -> str:
    """The error in a line, without the test's name before it and parentheses at its end."""
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
    """The forms in which an error may be asked for, each with its weight: whole, its line, or a part of the line."""
    return {_as_line(_plain(error.line)): _OF_PLAIN} | {_as_line(error.line): 1.0, error: 1.0}


class KnownErrors:
    """The errors of many episodes, indexed for comparison with a new one."""

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
        """The owners of similar errors, each with the similarity and the error, best first.

        Similarities are absolute: they are not divided by the best one.
        """
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


class EpisodeCluster(Frozen):
    """Episodes that met one fault, the newest first; `line` is the error as it was last printed."""

    key: str
    line: str
    episodes: tuple[Unit, ...]


class EpisodeClusterer:
    """Groups episodes by equal fingerprints (M6). Merging similar fingerprints too would join different faults."""

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


# Facts of one episode, for reflection


def succeeded(episode: Unit) -> bool:
    return episode.attributes.get("success") is True


def got_past(episode: Unit, key: str) -> bool:
    """Whether a task got past a fault: the fault was seen to be gone, or the task succeeded."""
    return bool(_last_fault(episode, key).get("gone")) or succeeded(episode)


def became_of(episode: Unit, key: str) -> str:
    """The fate of a fault's test, if nothing shows that the fault was fixed; else empty."""
    return str(_last_fault(episode, key).get("unseen") or "")


def outcomes(won: Sequence[Unit]) -> str:
    """How many tasks got past a fault, and how many of these are only reported."""
    unseen = sum(not episode.attributes.get("witnessed") for episode in won)
    word = f"by {'its' if unseen == 1 else 'their'} own word"
    return f"{len(won)} got past it{f' {word}' if unseen == len(won) > 0 else f' ({unseen} {word})' if unseen else ''}"


def what_it_said(episode: Unit, key: str) -> str:
    """The approach, in the agent's words, by which a successful task fixed this fault."""
    said = _last_fault(episode, key).get("mended", episode.attributes.get("approach"))
    return said if isinstance(said, str) and not became_of(episode, key) else ""


def listed(episode: Unit, name: str) -> list[str]:
    return texts(episode.attributes.get(name))


def texts(items: Any) -> list[str]:
    return [item for item in items if isinstance(item, str) and item] if isinstance(items, list | tuple) else []


def failing(episode: Unit) -> set[str]:
    """The commands that failed in a task, whole and by their programs."""
    commands = [str(fault["command"]) for fault in faults_in(episode) if fault.get("command")]
    return {*commands, *map(command_head, commands)}


def failed_approaches(met: Mapping[str, list[dict[str, Any]]]) -> list[list[str]]:
    """The approaches that failed, each as a list of its wordings (one per task), the most tried first.

    A long thought is not an approach: only sentences that say what is tried count.
    """
    tried = (
        (episode_id, said)
        for episode_id, faults in met.items()
        for fault in faults
        if isinstance(said := fault.get("approach"), str) and _read(said).is_plan
    )
    return sorted(grouped(tried), key=len, reverse=True)


def grouped(said: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Groups the wordings of the same approach; each task counts once."""
    groups: list[dict[str, str]] = []
    for episode_id, text in said:
        group = next((each for each in groups if is_same(next(iter(each.values())), text)), None)
        if group is None:
            groups.append({episode_id: text})
        else:
            group.setdefault(episode_id, text)
    return [list(group.values()) for group in groups]


def steps(episode: Unit, name: str) -> set[str]:
    """The steps of a task. Commands count as a whole and by their first words, since the rest often names one case."""
    items = set(listed(episode, name))
    if name != "commands":
        return items
    telling = set(filter(is_worth_repeating, items))
    return telling | set(filter(None, map(command_head, telling)))


def shared(episodes: Sequence[Unit], name: str) -> list[str]:
    """The items that all of these episodes name, if there are at least two episodes."""
    named = [listed(episode, name) for episode in episodes]
    return [item for item in named[0] if all(item in each for each in named)] if len(named) > 1 else []


def quoted(text: str) -> str:
    """The beginning of what somebody wrote, on one line, with no quotes that could end the quote."""
    return in_a_line(text.replace("“", '"').replace("”", '"').replace("`", "'"), _QUOTED_CHARS_MAX)


@cached(4_096)
def _read(text: str) -> Approach:
    return approaches.approach(text)


def is_same(left: str, right: str) -> bool:
    return left == right or (bool(left and right) and approaches.same_approach(_read(left), _read(right)))
