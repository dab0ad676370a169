"""Searches episodes by the error that they met, by what was done, and by words (M10-M12)."""

from __future__ import annotations

import math
from _thread import allocate_lock  # the same as threading.Lock, and loads a millisecond faster
from collections import OrderedDict
from functools import cached_property
from time import monotonic

from mnemarch.errors import InvalidInput
from mnemarch.lazy import Lazy
from mnemarch.learning import errors as telling
from mnemarch.learning.errors import ALIKE_MIN, KnownErrors, dice, errors_of, seen_error
from mnemarch.model.search import Recalled
from mnemarch.model.stamps import short_id
from mnemarch.model.unit import FAULT, TRUSTED, Claim, Kind, Unit
from mnemarch.policy.admission import checked_count, checked_list, checked_text, typed_methods
from mnemarch.policy.kinds import TIER_KEPT
from mnemarch.policy.loops import quoted
from mnemarch.policy.trust import aged, label_of
from mnemarch.text.words import counted
from mnemarch.units.gate import Gate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any

    from mnemarch.code.codebase import CodeView
    from mnemarch.embedding import sparse
    from mnemarch.log.act import Log
    from mnemarch.model.caller import Caller
    from mnemarch.model.outcome import Refused, Stored
    from mnemarch.model.unit import Citation
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.text import tokens
    from mnemarch.units.remember import Intake

    # Matching units: the id, the score, and the parts of the score.
    Scores = list[tuple[str, float, dict[str, float]]]
else:
    # Loaded late: only a search needs these, and the check at every failure must be fast.
    sparse = Lazy("mnemarch.embedding.sparse")
    tokens = Lazy("mnemarch.text.tokens")

_TEXT_BYTES_MAX = 1_048_576
_FOUND_MAX = 1_000
# The newest episodes that a search compares with.
_EPISODES_MAX = 5_000
_SAME_FAULT_MAX = 40
_READERS_MAX = 8
# Texts below this score have only a few words in common.
_SIMILAR_MIN = 0.15
_SHOWN_MAX = 2


class _Library:
    """The live episodes of some scopes at a position of the log, indexed for comparison."""

    def __init__(self, position: int, episodes: Sequence[Unit]) -> None:
        self.position = position
        self.episodes = {episode.id: episode for episode in episodes}

    @cached_property
    def errors(self) -> KnownErrors:
        episodes = self.episodes.items()
        return KnownErrors((unit_id, error) for unit_id, episode in episodes for error in errors_of(episode))

    @cached_property
    def embedder(self) -> sparse.BagOfWordsEmbedder:
        embedder = sparse.BagOfWordsEmbedder()
        embedder.learn(episode.content for episode in self.episodes.values())
        return embedder

    @cached_property
    def vectors(self) -> dict[str, sparse.SparseVector[str]]:
        return {unit_id: self.embedder.embed(episode.content) for unit_id, episode in self.episodes.items()}

    @cached_property
    def words(self) -> dict[str, frozenset[str]]:
        return {
            unit_id: frozenset(tokens.telling_tokens(episode.content)) for unit_id, episode in self.episodes.items()
        }


class EpisodeCaches:
    """Caches that the seats of one memory share. They hold for one position of the log; a later write empties them."""

    def __init__(
        self, cache_size: int = 100, cache_ttl_seconds: float = 300, clock: Callable[[], float] = monotonic
    ) -> None:
        self.similarity = TimedCache(cache_size, cache_ttl_seconds, clock)
        self.embedding = TimedCache(cache_size, cache_ttl_seconds, clock)
        self._libraries: dict[tuple[str, ...], _Library] = {}
        self._position = -1

    def library(self, reader: Reader, scope_keys: Sequence[str]) -> _Library:
        position = reader.position()
        if position != self._position or len(self._libraries) >= _READERS_MAX:
            self.drop()
            self._position = position
        key = tuple(scope_keys)
        library = self._libraries.get(key)
        if library is None:
            live = reader.units_in(scope_keys, kind=Kind.EPISODE, live=True, limit=_EPISODES_MAX)
            library = self._libraries[key] = _Library(position, live)
        return library

    def drop(self, pattern: str | None = None) -> int:
        """Drop the answers whose key contains this text, or everything. Returns how many answers were dropped."""
        if pattern is None:
            self._libraries = {}
        return self.similarity.drop(pattern) + self.embedding.drop(pattern)


@typed_methods
class EpisodicMemoryManager:
    """The episodes of the tasks that a caller may see. Searching records nothing."""

    def __init__(
        self,
        log: Log,
        caller: Caller,
        intake: Intake,
        *,
        code: Callable[[], CodeView] | None = None,
        caches: EpisodeCaches | None = None,
        cache_size: int = 100,
        cache_ttl_seconds: float = 300,
    ) -> None:
        self._log = log
        self._caller = caller
        self._intake = intake
        self._code = code
        self._caches = caches or EpisodeCaches(cache_size, cache_ttl_seconds)

    def store(
        self,
        task: str,
        *,
        success: bool,
        errors: Sequence[str] = (),
        approach: str | None = None,
        failed_approaches: Sequence[str] = (),
        citations: Sequence[Citation] = (),
        attributes: Mapping[str, Any] | None = None,
    ) -> Stored | Refused:
        """Store an episode of work that was not verified here. It passes the gate like any claim.

        `approach` is what worked in the end. A task that was verified here already has its episode.
        """
        named = checked_text(task, "The task", self._log.config.limits.text_bytes_max)
        met = [seen_error(checked_text(error, "An error", _TEXT_BYTES_MAX)) for error in checked_list(errors, "errors")]
        failed = [str(item) for item in checked_list(failed_approaches, "failed_approaches")]
        sentences = {
            f"{named.rstrip('.')}: {'succeeded' if success else 'failed'}.": True,
            f"The last of its errors: “{met[-1].line if met else ''}”.": met,
            f"Tried, and failed: {', '.join(f'“{item}”' for item in failed)}.": failed,
            f"What worked, as it was said: “{approach}”.": approach,
        }
        own = {
            "task": named,
            "task_key": self._caller.scope_key,
            "success": bool(success),
            "witnessed": False,
            "reward": float(bool(success)),
            "faults": [{"key": error.key, "line": error.line} for error in met],
            "approach": approach,
            "failed_approaches": failed,
            "agent": str(self._caller.actor),
        }
        content = "\n".join(sentence for sentence, is_told in sentences.items() if is_told)
        cited = tuple(checked_list(citations, "citations"))
        claim = Claim(content=content, kind=Kind.EPISODE, citations=cited, attributes={**(attributes or {}), **own})
        return self._intake.remember([claim])[0]

    # By an error

    def search(self, error: str | None = None, query: str | None = None, limit: int = 20) -> list[Recalled]:
        """The episodes that met an error or match a question, best first. Without either, the newest."""
        checked_count(limit, "limit", _FOUND_MAX)
        if error is not None and query is not None:
            raise InvalidInput("An error and a question are two searches.", hint="Ask for one of them.")
        if error is not None:
            return self._by_error(error, limit, use_fuzzy=True)
        if query is not None:
            return self.hybrid_search(query, top_k=limit)
        newest = self._library().episodes
        scores: Scores = [(unit_id, 1.0, {}) for unit_id in newest]
        return self._log.store.read(lambda reader: self._admitted(reader, scores, limit, self._library().episodes))

    def find_by_error_pattern(
        self, error_type: str | None, error_message: str, use_fuzzy: bool = True, top_k: int = 10
    ) -> list[Unit]:
        """The episodes that met this error or a similar one, most similar first.

        The message may be a whole output with its trace. Without `use_fuzzy`, only equal fingerprints match.
        """
        found = self._by_error(told_error(error_type, error_message), top_k, use_fuzzy=use_fuzzy)
        return [item.unit for item in found]

    def match_error_patterns_batch(self, patterns: Sequence[tuple[str | None, str]]) -> list[list[Unit]]:
        """Call `find_by_error_pattern` for several pairs of type and message. The results are in order."""
        return [self.find_by_error_pattern(*pattern) for pattern in checked_list(patterns, "patterns")]

    def _by_error(self, text: str, limit: int, *, use_fuzzy: bool) -> list[Recalled]:
        checked_count(limit, "top_k", _FOUND_MAX)
        error = seen_error(checked_text(text, "The error", _TEXT_BYTES_MAX))

        def compared(library: _Library) -> Scores:
            alike = library.errors.alike(error, ALIKE_MIN)
            return [
                (who, score, {"fingerprint": float(met.key == error.key)})
                for who, (score, met) in alike.items()
                if use_fuzzy or met.key == error.key
            ]

        return self._found(("error", error.key, error.line, use_fuzzy), compared, limit)

    def last_time(self, fault: str, reader: Reader | None = None, met: Sequence[Unit] | None = None) -> str:
        """The lesson about a fault, or how it went in other tasks that met it; empty if none did.

        `fault` is a fingerprint's hash. `met` are the newest units that cite it, if already read. This is one lookup in
        an index, since every failure calls it.
        """
        if reader is None:
            return self._log.store.read(lambda reader: self.last_time(fault, reader))
        keys = self._caller.visible_keys
        units = reader.newest_citing(keys, FAULT, fault, _SAME_FAULT_MAX, live=True) if met is None else met
        others = {unit.id: unit for unit in units if _tells_of_others(unit, self._caller.scope_key)}
        if not others:
            return ""
        items = self._admitted(reader, [(unit_id, 1.0, {}) for unit_id in others], _SAME_FAULT_MAX, others)
        known = [item for item in items if item.unit.kind is not Kind.EPISODE]
        if not known:
            return told_before([item.unit for item in items], fault)
        first = min(known, key=lambda item: item.unit.kind)  # Verified facts come before lessons.
        is_fact, unit = first.unit.kind is Kind.FACT, first.unit
        text = quoted(unit.content) if is_fact else unit.content
        return f"{first.label} {text} See {'unit' if is_fact else 'lesson'} {short_id(unit.id)}."

    # By what was done

    def find_similar(self, query: str, top_k: int = 10) -> list[Unit]:
        """The episodes most similar to a task or a question."""
        return [item.unit for item in self.hybrid_search(query, top_k=top_k)]

    def find_similar_batch(self, queries: Sequence[str], max_concurrency: int = 5) -> list[list[Unit]]:
        """Call `find_similar` for several questions, some concurrently. The results are in order."""
        asked = checked_list(queries, "queries")
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(max(1, checked_count(max_concurrency, "max_concurrency", 64))) as pool:
            return list(pool.map(self.find_similar, asked))

    def find_by_semantic_similarity(self, query_text: str, top_k: int = 10) -> list[Unit]:
        """The episodes with the most similar words, weighted by inverse document frequency."""
        return [item.unit for item in self.hybrid_search(query_text, None, 1.0, 0.0, 0.0, top_k)]

    def find_by_project(self, project: str | None = None, top_k: int = 50) -> list[Unit]:
        """The newest episodes of the caller's project. For another project the list is empty (R3)."""
        if project not in {None, self._caller.scope.project}:
            return []
        return [item.unit for item in self.search(limit=top_k)]

    def hybrid_search(
        self,
        query_text: str,
        error_type: str | None = None,
        semantic_weight: float = 0.4,
        fuzzy_weight: float = 0.3,
        keyword_weight: float = 0.3,
        top_k: int = 10,
    ) -> list[Recalled]:
        """The episodes most similar to a text: by rare words, by trigrams (of task and errors), and by shared words.

        The weights are relative to each other. Each score is from 0 to 1. `error_type` is the type of an error in the
        text.
        """
        weights = {"semantic": semantic_weight, "fuzzy": fuzzy_weight, "keyword": keyword_weight}
        if not all(0 <= weight < math.inf for weight in weights.values()) or not 0 < sum(weights.values()) < math.inf:
            raise InvalidInput("The weights must be numbers from 0, and not all of them 0.", hint="Try 0.4, 0.3, 0.3.")
        query = checked_text(query_text, "The query", _TEXT_BYTES_MAX)
        told = told_error(error_type, query)
        checked_count(top_k, "top_k", _FOUND_MAX)

        def compared(library: _Library) -> Scores:
            vector = self._caches.embedding.answer((library.embedder.id, query), lambda: library.embedder.embed(query))
            words = frozenset(tokens.telling_tokens(query))
            scores: Scores = []
            for episode in library.episodes.values():
                lines = [error.line for error in errors_of(episode)]
                why = {
                    "semantic": sparse.cosine(vector, library.vectors[episode.id]),
                    "fuzzy": max(
                        dice(query, str(episode.attributes.get("task", ""))), *(dice(told, line) for line in lines), 0.0
                    ),
                    "keyword": len(words & library.words[episode.id]) / len(words) if words else 0.0,
                }
                score = sum(weight * why[name] for name, weight in weights.items()) / sum(weights.values())
                if score >= _SIMILAR_MIN:
                    scores.append((episode.id, score, why))
            return sorted(scores, key=lambda one: (-one[1], one[0]))

        return self._found(("hybrid", query, error_type, *weights.values()), compared, top_k)

    # Caches

    def invalidate_cache(self, pattern: str | None = None) -> int:
        """Drop the cached answers whose key contains this text, or all. Returns their number."""
        return self._caches.drop(pattern)

    def get_cache_stats(self) -> dict[str, dict[str, float]]:
        """The size and the hit rate of both caches."""
        return {
            "similarity_cache": self._caches.similarity.stats(),
            "embedding_cache": self._caches.embedding.stats(),
        }

    # What may be handed out

    def _library(self) -> _Library:
        keys = self._caller.visible_keys
        return self._log.store.read(lambda reader: self._caches.library(reader, keys))

    def _found(self, asked: tuple[Any, ...], compared: Callable[[_Library], Scores], limit: int) -> list[Recalled]:
        library = self._library()
        key = (library.position, *asked, *self._caller.visible_keys)
        scores: Scores = self._caches.similarity.answer(key, lambda: compared(library))
        return self._log.store.read(lambda reader: self._admitted(reader, scores, limit, library.episodes))

    def _admitted(self, reader: Reader, scores: Scores, limit: int, known: Mapping[str, Unit]) -> list[Recalled]:
        """The first units that the cognitive gate admits. The code may have changed since they were scored."""
        now, rules = self._log.clock(), self._log.config.trust
        gate = Gate(now, None, self._code, self._caller.actor)
        gate.reader = reader
        items: list[Recalled] = []
        for start in range(0, len(scores), max(1, limit)):
            batch = {unit_id: (score, TIER_KEPT, why) for unit_id, score, why in scores[start : start + limit]}
            for unit, notes in gate.admitted([known[unit_id] for unit_id in batch if unit_id in known], {}):
                items.append(Recalled(aged(unit, now, rules), *batch[unit.id], label="", notes=notes))
            if len(items) >= limit:
                break
        items = items[:limit]
        contested = reader.contested([item.unit.id for item in items], self._caller.visible_keys)
        return [_labelled(item, contested, gate.elsewhere) for item in items]


def _labelled(item: Recalled, contested: set[str], elsewhere: Collection[str]) -> Recalled:
    unit_id = item.unit.id
    label = label_of(item.unit, is_contested=unit_id in contested, is_elsewhere=unit_id in elsewhere)
    return Recalled(item.unit, item.score, item.tier, item.why, label, item.notes, unit_id in elsewhere)


def told_error(error_type: str | None, message: str) -> str:
    """Type and message as one text, as a program prints them. A type that is in the message is not repeated."""
    if not error_type or error_type in message:
        return message
    return f"{error_type}: {message}"


def _tells_of_others(unit: Unit, task_key: str) -> bool:
    """Whether a unit is the episode of another task, a lesson, or a verified fact about an error."""
    if unit.kind is Kind.EPISODE:
        return unit.attributes.get("task_key") != task_key
    return unit.is_derived if unit.kind is Kind.SEMANTIC else unit.kind is Kind.FACT and unit.status in TRUSTED


def told_before(episodes: Sequence[Unit], fault: str) -> str:
    """A report on a fault in other tasks: the numbers, what worked, what changed before it was gone, what failed."""
    if not episodes:
        return ""
    became = [text for episode in episodes if (text := telling.became_of(episode, fault))]
    mended = [unit for unit in episodes if telling.got_past(unit, fault) and not telling.became_of(unit, fault)]
    # Witnessed episodes come before reported ones.
    worked = sorted(mended, key=lambda episode: not episode.attributes.get("witnessed"))
    line = f"Seen before in {counted(len(episodes), 'other task')}, of which {telling.outcomes(worked)}."
    if became:
        line += (
            f" In {len(became)} nothing shows that it was mended: its test was {' or '.join(dict.fromkeys(became))}."
        )
    said = next((episode for episode in worked if episode.attributes.get("approach")), None)
    told = next((episode for episode in worked if telling.what_changed(episode, fault)), said)
    tried = {episode.id: telling.listed(episode, "failed_approaches") for episode in episodes}
    if said is not None:
        approach = str(said.attributes["approach"])
        same = {each for tries in tried.values() for each in tries if telling.is_same(each, approach)}
        fails = sum(not same.isdisjoint(tries) for id, tries in tried.items() if id != said.id)
        line += f" What worked, as it was said: {quoted(approach)}{telling.failed_in(fails)}."
        tried = {id: [each for each in tries if each not in same] for id, tries in tried.items()}
    if told is not None and (changed := telling.what_changed(told, fault, episodes)):
        line += f" It was gone there{changed}."
    if failed := list(dict.fromkeys(each for tries in tried.values() for each in tries))[:_SHOWN_MAX]:
        line += f" What failed: {', '.join(map(quoted, failed))}."
    return f"{line} See episode {short_id((told or (worked or episodes)[0]).id)}."


# The newest answers (M11)


class TimedCache:
    """The most recently used answers. Each expires `ttl_s` seconds after it was made."""

    def __init__(self, size_max: int, ttl_s: float, clock: Callable[[], float] = monotonic) -> None:
        self._size_max, self._ttl_s, self._clock = size_max, ttl_s, clock
        self._answers: OrderedDict[tuple[Any, ...], tuple[float, Any]] = OrderedDict()
        self._lock = allocate_lock()
        self._hits = self._misses = 0

    def answer(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """The cached answer for the key, or the result of `make`, which is then cached."""
        with self._lock:
            known = self._answers.get(key)
            if known is not None and self._clock() - known[0] < self._ttl_s:
                self._answers.move_to_end(key)
                self._hits += 1
                return known[1]
            self._misses += 1
        made = make()
        with self._lock:
            self._answers[key] = self._clock(), made
            self._answers.move_to_end(key)
            while len(self._answers) > self._size_max:
                self._answers.popitem(last=False)
        return made

    def drop(self, pattern: str | None = None) -> int:
        """Drop the answers whose key contains this text, or all. Returns how many were dropped."""
        with self._lock:
            gone = [key for key in self._answers if pattern is None or any(pattern in str(part) for part in key)]
            for key in gone:
                del self._answers[key]
            return len(gone)

    def stats(self) -> dict[str, float]:
        asked = self._hits + self._misses
        return {
            "size": len(self._answers),
            "size_max": self._size_max,
            "ttl_seconds": self._ttl_s,
            "hits": self._hits,
            "misses": self._misses,
            "hit_rate": self._hits / asked if asked else 0.0,
        }
