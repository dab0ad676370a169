"""The search index of a tenant in its own database, for processes that have none on their machine.

It finds candidates by the rarest words of a question and scores them like every index. It can miss a text that shares
only common words with a long question.
"""

from __future__ import annotations

from xxhash import xxh3_64_intdigest

from mnemarch.model.json_text import from_json, to_json
from mnemarch.model.search import Sketch, Sums, bm25, rarity
from mnemarch.stores.postgres.sessions import Session, as_json, queries_of
from mnemarch.stores.postgres.views import tenants_of
from mnemarch.text.conversation import SKETCH_VERSION, Coherence, sketched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from mnemarch.model.unit import Searchable
    from mnemarch.stores.postgres.store import PostgresStore

_TEXTS = queries_of("search.sql")
# Search uses this many of the rarest words, and more as long as few texts contain them.
_WANTED_MIN, _FEW_TEXTS = 3, 2_000
# How many texts the server compares, and how many of each state are scored here.
_LOOKED_AT_MAX, _SCORED_MAX = 5_000, 400
# The size of a transaction, and of a round trip.
_UNITS_MAX, _PAGE, _COUNTED_MAX = 50_000, 1_000, 10_000
# In place of a word: counts all texts of a scope.
_ALL = ""


class DatabaseIndex:
    """One tenant's index. Answers are cached until `refresh`; newer texts are in the tail anyway."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        assert store.stream is not None
        self._org, self._tenant = tenants_of(store.stream)[0], store.tenant
        self.refresh()

    def refresh(self) -> None:
        self._known: tuple[int, dict[str, Any]] | None = None
        self._counts: dict[tuple[str, str], int] = {}
        self._candidates: tuple[Any, list[Sketch]] = (None, [])

    def _asked(self, name: str, /, **parameters: Any) -> list[Any]:
        return self._store.aside(lambda session: self._ask(session, name, **parameters).fetchall())

    def _ask(self, session: Session, name: str, /, **parameters: Any) -> Any:
        return session.execute(_TEXTS[name], {"tenant": self._tenant, **parameters})

    def _head(self) -> tuple[int, dict[str, Any]]:
        """The index's position and statistics; nothing if it was made by another version of the word rules."""
        if self._known is None:
            rows = [row for row in self._asked("head") if row[0] == SKETCH_VERSION]
            self._known = (int(rows[0][1]), from_json(rows[0][2])) if rows else (0, {})
        return self._known

    # Reading

    def exists(self) -> bool:
        return bool(self.position())

    def position(self) -> int:
        return self._head()[0]

    def documents(self) -> int:
        return int(self._head()[1].get("documents", 0))

    def mean_length(self) -> float:
        return float(self._head()[1].get("tokens", 0)) / max(1, self.documents())

    def coherence(self) -> Mapping[str, Sums]:
        return dict(self._head()[1].get("coherence", {}))

    def words_from(self, beginning: str, scope_keys: Sequence[str], limit: int) -> list[str]:
        if not self.documents():
            return []
        ends = {"low": beginning, "high": f"{beginning}\U0010ffff"}
        return [word for (word,) in self._asked("words_from", scopes=list(scope_keys), limit=limit, **ends)]

    def frequencies(self, words: Sequence[str], scope_keys: Sequence[str]) -> dict[str, int]:
        if not self.documents():
            return dict.fromkeys(words, 0)
        counts = self._counts  # Another thread's `refresh` may replace it meanwhile.
        if unknown := [word for word in (*words, _ALL) if any((key, word) not in counts for key in scope_keys)]:
            rows = self._asked("frequencies", scopes=list(scope_keys), words=unknown)
            counts |= {(key, word): 0 for key in scope_keys for word in unknown}
            counts |= {(key, word): units for key, word, units in rows}
        return {word: sum(counts[key, word] for key in scope_keys) for word in words}

    def documents_in(self, scope_keys: Sequence[str]) -> int:
        return self.frequencies([_ALL], scope_keys)[_ALL]

    def search(
        self,
        weights: Mapping[str, float],
        scope_keys: Sequence[str],
        *,
        states: Sequence[str],
        kinds: Sequence[str] = (),
        domains: Sequence[str] = (),
        limit: int,
    ) -> list[tuple[float, Sketch]]:
        seen = self.frequencies([*weights], scope_keys)
        documents = self.documents_in(scope_keys)
        rarest = sorted((word for word in weights if seen[word]), key=lambda word: (seen[word], word))
        if not rarest or limit <= 0:
            return []
        weighed = {word: weights[word] * rarity(min(documents, seen[word]), documents) for word in rarest}
        scored = [
            (bm25(sketch, weighed, self.mean_length()), sketch)
            for sketch in self._alike(weighed, seen, scope_keys, kinds, domains)
            if sketch.state in states and sketch.scope_key in scope_keys
        ]
        scored.sort(key=lambda item: (-item[0], item[1].id))
        return scored[:limit]

    def _alike(
        self,
        weighed: Mapping[str, float],
        seen: Mapping[str, int],
        scope_keys: Sequence[str],
        kinds: Sequence[str],
        domains: Sequence[str],
    ) -> list[Sketch]:
        """The candidates of all states. Recall asks for each state apart; the database is asked only once.

        `words` begin with the rarest.
        """
        texts, wanted = 0, list[str]()
        for word in weighed:
            texts += seen[word]
            if len(wanted) < _WANTED_MIN or texts <= _FEW_TEXTS:
                wanted.append(word)
        question = (tuple(weighed.items()), tuple(scope_keys), tuple(kinds), tuple(domains))
        if self._candidates[0] != question:
            rows = self._asked(
                "candidates",
                wanted=_numbers(wanted, scope_keys),
                asked=_numbers([*weighed], scope_keys),
                weights=[*weighed.values()] * len(scope_keys),
                kinds=list(kinds),
                domains=list(domains),
                looked_at=_LOOKED_AT_MAX,
                most=_SCORED_MAX,
            )
            self._candidates = question, [Sketch.from_line(line) for (line,) in rows]
        return self._candidates[1]

    def at(self, places: Sequence[str], scope_keys: Sequence[str], *, states: Sequence[str]) -> list[Sketch]:
        return self._named("at", places, scope_keys, states)

    def of(self, unit_ids: Sequence[str], scope_keys: Sequence[str], *, states: Sequence[str]) -> list[Sketch]:
        return self._named("of", unit_ids, scope_keys, states)

    def _named(
        self, query: str, names: Sequence[str], scope_keys: Sequence[str], states: Sequence[str]
    ) -> list[Sketch]:
        rows = self._asked(query, names=list(names)) if names and self.documents() else ()
        sketches = [Sketch.from_line(line) for (line,) in rows]
        return [sketch for sketch in sketches if sketch.state in states and sketch.scope_key in scope_keys]

    # Writing

    def update(self, changes_after: Callable[[int], Iterable[Searchable]], *, rebuild: bool = False) -> bool:
        is_done: bool | None = False
        while is_done is False:
            is_done = self._store.aside(
                lambda session: self._take_in(session, changes_after, rebuild=rebuild), writes=True
            )
        self.refresh()
        return bool(is_done)

    def _take_in(
        self, session: Session, changes_after: Callable[[int], Iterable[Searchable]], *, rebuild: bool
    ) -> bool | None:
        """Index what changed, in one transaction. True if nothing is left, None if another process is indexing.

        A rebuild is one transaction, so that others see the old index until it is done.
        """
        self._ask(session, "new_set", version=SKETCH_VERSION)
        row = self._ask(session, "alone").fetchone()
        if row is None or row[0] > SKETCH_VERSION:  # Another process is indexing, or a newer version made the index.
            return None
        rebuild = rebuild or row[0] != SKETCH_VERSION
        if rebuild:
            self._ask(session, "drop_texts")
            self._ask(session, "drop_words")
        position, about = (0, {}) if rebuild else (int(row[1]), from_json(row[2]))
        taking = _Taking(about)
        is_done = True
        page: dict[str, Searchable] = {}
        for units, unit in enumerate(changes_after(position)):
            # Changes of one position stay in one transaction.
            if units >= _UNITS_MAX and not rebuild and unit.changed_at > position:
                is_done = False
                break
            page[unit.id] = unit
            position = max(position, unit.changed_at)
            if len(page) >= _PAGE:
                self._put(session, page, taking)
                page = {}
        self._put(session, page, taking)
        self._count(session, taking.counts)
        self._ask(session, "reach", version=SKETCH_VERSION, position=str(position), about=to_json(taking.about()))
        return is_done

    def _put(self, session: Session, page: Mapping[str, Searchable], taking: _Taking) -> None:
        if not page:
            return
        for (line,) in self._ask(session, "take_out", ids=[*page]):
            taking.note(Sketch.from_line(line), -1)
        if erased := [unit.id for unit in page.values() if not unit.content and unit.scope_key == self._org]:
            self._ask(session, "forget", ids=erased)
        rows = []
        for unit in page.values():
            if unit.content:
                sketch = sketched(unit)
                taking.note(sketch, 1)
                place = sketch.place if unit.session else None
                words = ",".join(map(str, _numbers(sketch.distinct(), [unit.scope_key])))
                named: dict[str, Any] = {"id": unit.id, "scope_key": unit.scope_key, "state": unit.state}
                named |= {"kind": unit.kind, "domain": unit.domain, "place": place}
                rows.append({**named, "words": f"{{{words}}}", "sketch": sketch.to_line()})
        self._ask(session, "put", rows=as_json(rows))

    def _count(self, session: Session, counts: Mapping[tuple[str, str], int]) -> None:
        changed = sorted((key, word, count) for (key, word), count in counts.items() if count)
        for start in range(0, len(changed), _COUNTED_MAX):
            scopes, words, numbers = map(list, zip(*changed[start : start + _COUNTED_MAX], strict=True))
            self._ask(session, "count", scopes=scopes, words=words, counts=numbers)
        if fewer := [word for _, word, count in changed if count < 0]:
            self._ask(session, "forget_words", words=fewer)

    def close(self) -> None:
        """Nothing to close: the connections belong to the store."""


class _Taking:
    """How one transaction changes the counts of an index."""

    def __init__(self, about: dict[str, Any]) -> None:
        self._about = about
        self._tokens, self._documents = about.get("tokens", 0), about.get("documents", 0)
        self._coherence = Coherence()
        self.counts: dict[tuple[str, str], int] = {}

    def note(self, sketch: Sketch, more: int) -> None:
        self._tokens += more * sketch.length
        self._documents += more
        for word in (_ALL, *sketch.distinct()):
            key = sketch.scope_key, word
            self.counts[key] = self.counts.get(key, 0) + more
        if more > 0:
            self._coherence.note(sketch)

    def about(self) -> dict[str, Any]:
        coherence = self._coherence.sums(self._about.get("coherence"))
        return {"tokens": self._tokens, "documents": self._documents, "coherence": coherence}


def _numbers(words: Sequence[str], scope_keys: Sequence[str]) -> list[int]:
    """A signed 64-bit number for each word in each scope."""
    return [xxh3_64_intdigest(f"{key}:{word}".encode()) - (1 << 63) for key in scope_keys for word in words]
