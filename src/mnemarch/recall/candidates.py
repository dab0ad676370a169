"""Candidates for a question: by words from index and tail, by meaning from vectors, by place in a conversation."""

from __future__ import annotations

from mnemarch.errors import StoreUnavailable
from mnemarch.lazy import Lazy
from mnemarch.log.act import MOMENT_S
from mnemarch.model.caller import Level
from mnemarch.model.search import place, rarity
from mnemarch.model.unit import LIVE_STATES, Status
from mnemarch.recall.index import LiveIndex
from mnemarch.recall.scores import Term
from mnemarch.text.tokens import is_numbered_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from mnemarch.config import RecallRules
    from mnemarch.log.act import Log
    from mnemarch.model.caller import Caller
    from mnemarch.model.search import Sketch
    from mnemarch.model.unit import Searchable, Unit
    from mnemarch.ports import MeaningIndex, SearchIndex
    from mnemarch.recall.index import Newest
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.text import everyday
else:
    everyday = Lazy("mnemarch.text.everyday")

# A word in this many texts adds nothing beside rarer words, and a search for it reads every one of the texts.
_COMMON_MIN = 20_000
_SEARCHED_MIN = 3
# The vectors are updated in the background when they are this many positions behind.
_FOLLOWED_EVERY = 64
# Up to _GUESSES_MAX words with the same beginning replace a word that no text contains, at a lower weight.
_GUESSES_MAX = 20
_BEGINNING_MIN = 4
_BEGINNINGS = (0.7, 0.5)
_LONG_WORD_MIN = 5
_OF_A_GUESS = 0.7
# How many new units are checked for near-duplicates: the newest, after an import. Each check takes some 10 ms, and a
# command waits for it when it ends.
_CHECKED_MAX = 250
_DUPLICATE_WORDS_MAX = 8


_NOT_WIDER: dict[str, tuple[str, float]] = {}


def replaced_drafts(reader: Reader, caller: Caller, rules: RecallRules, k: int) -> frozenset[str]:
    """The ids of hypotheses that a commit replaced, at the levels that accept hypotheses (R2)."""
    scopes = [scope.key for scope in caller.scope.visible if scope.level < Level.PROJECT]
    limit = max(rules.candidates_min, k * rules.candidates_per_item)
    units = reader.units_replaced(scopes, kind=None, domain=None, limit=limit) if scopes and k else ()
    return frozenset(unit.id for unit in units if unit.superseded_from is Status.HYPOTHESIS)


class Finder(LiveIndex):
    """Searches one store. Safe to share between threads."""

    def __init__(
        self,
        log: Log,
        index: SearchIndex | None,
        meanings: MeaningIndex | None = None,
        *,
        shared: SearchIndex | None = None,
    ) -> None:
        super().__init__(log, index, shared)
        self._meanings = meanings
        self._followed = 0
        self._frequencies: dict[tuple[str, ...], int] = {}

    def catch_up(self, newest: Newest | None = None) -> None:
        with self._lock:
            super().catch_up(newest)
            self._frequencies.clear()

    # By words

    def terms(
        self,
        weights: Mapping[str, float],
        scope_keys: Sequence[str],
        *,
        spelling: bool,
        wider: dict[str, tuple[str, float]] = _NOT_WIDER,
    ) -> list[Term]:
        """Each word of a question with its weight in these scopes. Rare words weigh more.

        Words with the same beginning, and words near in meaning, replace a word that no text contains. A `wider` word
        counts as no rarer than the word that was asked.
        """
        with self._lock:
            documents = self.documents_in(scope_keys)
            terms = []
            rarities: dict[str, float] = {}
            self._count([*weights], scope_keys)
            # A numbered name that no text contains is searched by its parts alone.
            absent = {word for word in weights if is_numbered_name(word) and not self._frequency(word, scope_keys)}
            weights = {word: weight for word, weight in weights.items() if word not in absent}
            if spelling:
                wider = self._near(weights, scope_keys) | wider
            self._count([*wider], scope_keys)
            numbers = {word: number for number, word in enumerate(weights)}
            for word, weight in weights.items():
                words = [word]
                is_long = len(word) >= _LONG_WORD_MIN and word.isascii() and word.isalpha()
                if spelling and is_long and not self._frequency(word, scope_keys):
                    words = self._guesses(word, scope_keys)
                    weight *= _OF_A_GUESS
                seen = min(documents, sum([self._frequency(each, scope_keys) for each in words]))
                rarities[word] = rarity(seen, documents)
                terms.append(Term(words if seen else (), weight, rarities[word]))
            for word, (asked, weight) in wider.items():
                if seen := min(documents, self._frequency(word, scope_keys)):
                    least = min(rarities[asked], rarity(seen, documents))
                    terms.append(Term([word], weight, least, instead_of=numbers[asked]))
            return terms

    def _near(self, weights: Mapping[str, float], scope_keys: Sequence[str]) -> dict[str, tuple[str, float]]:
        """Words near in meaning to words that no text contains, each with the word that was asked and a weight."""
        return {
            other: (word, share * weight)
            for word, weight in weights.items()
            if not self._frequency(word, scope_keys)
            for other, share in everyday.near(word).items()
            if other not in weights
        }

    def _guesses(self, word: str, scope_keys: Sequence[str]) -> list[str]:
        """Words with the same beginning: the longest part, at least half, that any word shares."""
        for share in _BEGINNINGS:
            beginning = word[: max(_BEGINNING_MIN, round(share * len(word)))]
            if words := self.words_from(beginning, scope_keys, _GUESSES_MAX):
                return words
        return []

    def best(
        self, weights: Mapping[str, float], scope_keys: Sequence[str], *, limit: int, **within: Any
    ) -> list[tuple[float, Sketch]]:
        """The best units for weighted words by BM25, best first. The result doesn't depend on how much is indexed.

        `within` gives the `states` to search in, and optionally `kinds` and `domains`.
        """
        if not weights or limit <= 0:
            return []
        with self._lock:
            searched = self._searched(weights, scope_keys)
            best = []
            if len(self._tail):
                best = self._tail.best(*self._weighed(searched, scope_keys), scope_keys, limit=limit, **within)
            if self._index is not None:
                indexed = self._index.search(searched, scope_keys, limit=limit, **within)
                best += [(score, sketch) for score, sketch in indexed if sketch.id not in self._tail]
        best.sort(key=lambda item: (-item[0], item[1].id))
        return best[:limit]

    def _weighed(self, weights: Mapping[str, float], scope_keys: Sequence[str]) -> tuple[dict[str, float], float]:
        """The weight of each word in these scopes, and the mean length of a text."""
        documents = self.documents_in(scope_keys)
        self._count([*weights], scope_keys)
        rarities = {
            word: weight * rarity(min(documents, self._frequency(word, scope_keys)), documents)
            for word, weight in weights.items()
        }
        return rarities, self.mean_length()

    def _searched(self, weights: Mapping[str, float], scope_keys: Sequence[str]) -> dict[str, float]:
        """The words to search for. Words in thousands of texts are left out if enough other words remain."""
        seen = {word: self._frequency(word, scope_keys) for word in weights}
        rare = {word: weight for word, weight in weights.items() if seen[word] < _COMMON_MIN}
        if len(rare) >= min(_SEARCHED_MIN, len(weights)):
            return rare
        # A word in half of the texts adds nothing beside a rarer one.
        half = max(_COMMON_MIN, self.documents_in(scope_keys) // 2)
        telling = {word: weight for word, weight in weights.items() if seen[word] < half}
        return telling if any(seen[word] for word in telling) else dict(weights)

    def _frequency(self, word: str, scope_keys: Sequence[str]) -> int:
        asked = (word, *scope_keys)
        if asked not in self._frequencies:
            self._count([word], scope_keys)
        return self._frequencies[asked]

    def _count(self, words: Sequence[str], scope_keys: Sequence[str]) -> None:
        """Cache how many texts contain each word, since one question looks up the same words repeatedly."""
        unknown = [word for word in words if (word, *scope_keys) not in self._frequencies]
        indexed = self._index.frequencies(unknown, scope_keys) if self._index is not None and unknown else {}
        for word in unknown:
            known = self._tail.frequency(word, scope_keys) + indexed.get(word, 0)
            self._frequencies[word, *scope_keys] = known

    # By place in a conversation

    def around(
        self, sketches: Sequence[Sketch], hops: int, scope_keys: Sequence[str], *, states: Sequence[str]
    ) -> list[Sketch]:
        """The units up to `hops` turns before and after these in their sessions."""
        known = {sketch.place for sketch in sketches}
        places = {
            place(sketch.session, turn): None
            for sketch in sketches
            if sketch.session
            for turn in range(max(1, sketch.turn - hops), sketch.turn + hops + 1)
        }
        return self.at([each for each in places if each not in known], scope_keys, states=states)

    # By meaning

    def nearest(self, text: str, scope_keys: Sequence[str], **within: Any) -> dict[str, float]:
        """The units nearest in meaning with their cosine.

        If vectors are missing, a background run starts to make them, but only from the second question on: a process
        that asks one question ends before a model is loaded.
        """
        meanings = self._meanings
        if meanings is None:
            return {}
        if not meanings.ready():
            if self._questions > 1:
                meanings.follow(*self._log_to_follow())
            raise StoreUnavailable("not all vectors are made yet.", hint="Make them now: mnemarch reindex")
        self._followed = self._followed or meanings.position()
        if self._tail.position - self._followed > _FOLLOWED_EVERY:
            self._followed = self._tail.position
            meanings.follow(*self._log_to_follow())
        return dict(meanings.nearest(text, scope_keys, **within))

    def noise_for(self, text: str) -> float:
        """The cosine that unrelated texts have with this question in the current model."""
        return self._meanings.noise_for(text) if self._meanings is not None else 0.0

    def similarities(self, text: str, sketches: Sequence[Sketch]) -> dict[str, float]:
        """The cosine of each of these units that has a vector."""
        ids = [sketch.id for sketch in sketches]
        return self._meanings.similarities(text, ids) if self._meanings is not None else {}

    def embed_all(self, new_meanings: Callable[[], MeaningIndex | None] | None = None) -> None:
        """Update the vectors and load the model now. `new_meanings` creates the vectors' store if there is none."""
        if self._meanings is None and new_meanings is not None:
            self._meanings = new_meanings()
        if self._meanings is not None:
            self._meanings.catch_up(*self._log_to_follow())
            self._meanings.warm()

    def _log_to_follow(self) -> tuple[Callable[[int], Iterator[Searchable]], Callable[[], int]]:
        return self._changes_after, lambda: self._store.read(lambda reader: reader.position())

    # Near-duplicates. They are linked when units are indexed, so that no writer waits (G11, R6).

    def link_duplicates(self) -> None:
        """Link each new unit with the visible units that it repeats or contradicts in other words.

        A unit is new if it came after the last check, or after this process first read the index. If there are many,
        only the newest are checked.
        """
        if not self._store.writable:
            return
        self.catch_up()
        with self._lock:
            position = self._indexed_position() if self._checked_position is None else self._checked_position
            head = self._tail.position
        if head <= position:
            return
        from mnemarch.units.conflicts import DISPUTED_KINDS

        changed = [unit.id for unit in self._changes_after(position)][-_CHECKED_MAX:]
        units = self._store.read(lambda reader: reader.units(changed))
        for unit in (units[unit_id] for unit_id in changed if unit_id in units):
            if self._wants_local():  # A question arrived meanwhile.
                self.index_now()
            if unit.live and unit.kind in DISPUTED_KINDS and unit.provenance:
                self._link_duplicates_of(unit)
        self._checked_position = head

    def _link_duplicates_of(self, unit: Unit) -> None:
        """Open the links of one unit. A pair is linked once: the links are read again inside the act."""
        from mnemarch.model.caller import Actor, Caller
        from mnemarch.units.conflicts import DISPUTED_KINDS, compared, open_links

        # Compare with the units that the author sees at the place of the claim.
        author = Caller(Actor.system("duplicates"), unit.provenance[0].scope)
        rules = self._log.config.gate
        ids = self._duplicate_candidates(unit, author.visible_keys, rules.neighbours_max)
        candidates = self._store.read(lambda reader: reader.units(ids))
        others = [other for other in candidates.values() if other.live and other.kind in DISPUTED_KINDS]
        if compared(unit.content, others, rules):
            self._log.act(author, lambda act: open_links(act, act.known_unit(unit.id), ids), wait_s_max=MOMENT_S)

    def _duplicate_candidates(self, unit: Unit, scope_keys: Sequence[str], limit: int) -> list[str]:
        """The units that share most words with this one. The caller compares them to find repeats and opposites."""
        from mnemarch.text.tokens import query_tokens

        with self._lock:
            weights, _ = self._weighed(dict.fromkeys(query_tokens(unit.content), 1.0), scope_keys)
        telling = sorted(weights, key=lambda word: (-weights[word], word))[:_DUPLICATE_WORDS_MAX]
        # One more, because the unit finds itself.
        best = self.best(dict.fromkeys(telling, 1.0), scope_keys, states=LIVE_STATES, limit=limit + 1)
        return [sketch.id for _, sketch in best if sketch.id != unit.id]

    # Erasing and closing

    def forget_all(self, unit_ids: Sequence[str] = ()) -> None:
        """Drop the cached texts of all units and the vectors of the erased units."""
        if self._meanings is not None:
            self._meanings.erase(unit_ids)
        self.forget_tail()

    def close(self) -> None:
        super().close()
        if self._meanings is not None:
            self._meanings.close()
