"""The search index of the embedded store: derived data, shared through mmap, rebuilt when in doubt."""

from __future__ import annotations

import os
import time
from _thread import RLock  # as threading has it, which is a millisecond more to load
from contextlib import suppress

from mnemarch.errors import StoreUnavailable
from mnemarch.files import keep_rights, make_folder
from mnemarch.forks import Forkable, abandon, is_mine, watch
from mnemarch.lazy import Lazy
from mnemarch.model.json_text import from_json, to_json
from mnemarch.model.search import Sketch, Sums

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from tempfile import TemporaryDirectory
    from typing import Any

    import tantivy

    from mnemarch.model.unit import Searchable
    from mnemarch.text import conversation, tokens
else:
    tantivy = Lazy("tantivy")
    conversation = Lazy("mnemarch.text.conversation")
    tokens = Lazy("mnemarch.text.tokens")

_META = "#meta"
_HEAP_BYTES = 30_000_000
_OPEN_ATTEMPTS = 4
# Tantivy's error contains this word if another writer has the lock.
_BUSY = "LockBusy"
# 64 of the 128 bits of a scope's key identify it well enough.
_SCOPE_CHARS = 16
_NAP_S = 0.02
# Scores this close are equal: their parts are added in another order in another index.
_SAME_SCORE = 1e-4
# How many times more hits are read where many have the same score.
_TIED_MAX = 8
# Sketches are kept, since reading one takes longer than ranking it. This many take some 20 MB.
_SKETCHES_MAX = 32_768


class TantivyIndex(Forkable):
    """An index in a folder. Its position and its store's id are in the index itself, so they commit together."""

    def __init__(self, folder: str, store_id: str, event_at: Callable[[int], str]) -> None:
        self._folder = folder
        self._store_id = store_id
        self._event_at = event_at
        self._opened: tantivy.Index | None = None
        # The documents as of the last load, and the sketches of those that were read since, by segment and number.
        self._documents: tuple[tantivy.Searcher, dict[tuple[int, int], Sketch]] | None = None
        self._links: TemporaryDirectory[str] | None = None
        self._schema: Any = None
        self._meta: dict[str, Any] = {}
        # The size of each mapped file. Reading a mapped file that was truncated kills the process.
        self._sizes: dict[str, int] = {}
        # Held while tantivy may lock the folder. A child would inherit that lock and keep it.
        self._locking = RLock()
        watch(self)

    def _rest(self) -> bool:
        return not is_mine(self._locking) and self._locking.acquire(blocking=False)

    def _resume(self, *, in_child: bool, rested: bool) -> None:
        if in_child:  # The parent's threads may have been inside tantivy, whose locks we can't free.
            abandon((self._opened, self._documents, self._links))
            if self._links is not None:
                self._links._finalizer.detach()  # type: ignore[attr-defined]  # The parent's folder is not removed when a child ends.
            self._opened, self._documents, self._links, self._meta = None, None, None, {}
        if rested:
            self._locking.release()
        elif in_child:
            self._locking = RLock()

    # Opening

    def _index(self) -> tantivy.Index:
        opened = self._opened
        if opened is None:
            with self._locking:
                try:
                    opened = self._loaded(self._open())
                except (ValueError, OSError):  # The folder was deleted while it was being opened.
                    opened = self._loaded(self._created_anew())
                self._opened = opened
        return opened

    def _loaded(self, index: tantivy.Index) -> tantivy.Index:
        index.config_reader(reload_policy="manual")  # Otherwise a thread of tantivy's locks the folder at any time.
        self._load(index)
        return index

    def _load(self, index: tantivy.Index) -> None:
        """See the last commit of any process."""
        with self._locking:
            index.reload()
            self._documents = index.searcher(), {}
            paths = [os.path.join(self._folder, name) for name in os.listdir(self._folder)]
            self._sizes = {path: os.path.getsize(path) for path in paths if os.path.exists(path)}
            self._read_meta(index)

    def _open(self) -> tantivy.Index:
        self._schema = self._built_schema()
        if os.path.isdir(self._folder) and not os.access(self._folder, os.W_OK):
            return self._open_to_read()
        for attempt in range(_OPEN_ATTEMPTS):
            try:
                # Don't create parent folders: a memory that was moved leaves nothing behind.
                make_folder(self._folder)
                return tantivy.Index(self._schema, path=self._folder)
            except (ValueError, OSError) as error:
                if "denied" in str(error):  # A sandbox can deny it whatever the rights say.
                    return self._open_to_read()
                # Another process may be creating it right now.
                time.sleep(_NAP_S * attempt)
        # A damaged or foreign index is deleted; it can be made again from the store.
        return self._created_anew()

    def _open_to_read(self) -> tantivy.Index:
        """Open a read-only index. Tantivy needs a lock even to read, so it gets a folder of links to the files."""
        from tempfile import TemporaryDirectory

        try:
            self._links = TemporaryDirectory(prefix="mnemarch-index-", ignore_cleanup_errors=True)
            for name in os.listdir(self._folder):
                if not name.endswith(".lock"):
                    os.symlink(os.path.join(self._folder, name), os.path.join(self._links.name, name))
            return tantivy.Index(self._schema, path=self._links.name, reuse=True)
        except (ValueError, OSError) as error:
            raise self._unusable(f"read: {error}") from None

    def _created_anew(self) -> tantivy.Index:
        import shutil

        try:
            if os.path.isdir(self._folder):
                shutil.rmtree(self._folder, ignore_errors=True)  # Another process may do the same.
            elif os.path.exists(self._folder):
                os.remove(self._folder)
            make_folder(self._folder)
            return tantivy.Index(self._schema, path=self._folder)
        except (ValueError, OSError) as error:
            raise self._unusable(f"made: {error}") from None

    def _unusable(self, how: str) -> StoreUnavailable:
        return StoreUnavailable(f"The search index {self._folder} can't be {how}.", hint="Check the folder's rights.")

    def _built_schema(self) -> tantivy.Schema:
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
        for name in ("scope", "kind", "domain", "state", "place"):
            builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
        builder.add_text_field("body", tokenizer_name="whitespace", index_option="freq")
        # Words with their scope: how rare a word is must not depend on scopes that the reader can't see.
        builder.add_text_field("own", tokenizer_name="whitespace", index_option="basic")
        builder.add_bytes_field("sketch", stored=True, indexed=False)
        builder.add_text_field("meta", stored=True, tokenizer_name="raw", index_option="basic")
        return builder.build()

    def _read_meta(self, index: tantivy.Index) -> None:
        searcher = index.searcher()
        query = tantivy.Query.term_query(self._schema, "id", _META, "basic")
        hits = searcher.search(query, 1).hits
        meta = from_json(searcher.doc(hits[0][1])["meta"][0]) if hits else {}
        # The id of the event at the index's position shows whether the store was restored from a backup.
        ours = (
            meta.get("store") == self._store_id
            and meta.get("version") == conversation.SKETCH_VERSION
            and meta.get("event") == self._event_at(meta["position"])
        )
        self._meta = meta if ours else {}

    def refresh(self) -> None:
        try:
            self._load(self._index())
        except (ValueError, OSError):
            self._drop()

    def _is_truncated(self) -> bool:
        """Whether a mapped file was truncated. A deleted file stays readable for those who have it open."""
        for path, size in self._sizes.items():
            with suppress(FileNotFoundError):
                if os.stat(path).st_size < size and not path.endswith((".json", ".lock")):
                    return True
        return False

    def _drop(self) -> None:
        """Forget an index that was deleted or damaged while open. The next call opens or creates it."""
        self._opened = self._documents = None
        if self._links is not None:
            self._links.cleanup()
            self._links = None
        self._meta = {}

    # Reading

    def exists(self) -> bool:
        return os.path.isdir(self._folder)

    def position(self) -> int:
        if self._opened is not None and self._is_truncated():
            self._drop()
            if os.access(self._folder, os.W_OK):
                with self._locking:
                    self._created_anew()
        return int(self._about().get("position", 0))

    def documents(self) -> int:
        return max(0, self._read()[0].num_docs - 1) if self._about() else 0

    def _read(self) -> tuple[tantivy.Searcher, dict[tuple[int, int], Sketch]]:
        """The documents as of the last load, and the known sketches of them."""
        index = self._index()
        return self._documents or (index.searcher(), {})

    def _about(self) -> dict[str, Any]:
        self._index()
        return self._meta

    def coherence(self) -> Mapping[str, Sums]:
        return dict(self._about().get("coherence", {}))

    def words_from(self, beginning: str, scope_keys: Sequence[str], limit: int) -> list[str]:
        if not self._about():
            return []
        searcher = self._read()[0]
        return [
            word.partition(":")[2]
            for key in scope_keys
            for word, _ in searcher.terms_with_prefix("own", _owned(key, beginning), limit=limit)
        ]

    def mean_length(self) -> float:
        return float(self._about().get("tokens", 0)) / max(1, int(self._meta.get("added", 0)))

    def frequencies(self, words: Sequence[str], scope_keys: Sequence[str]) -> dict[str, int]:
        count = self._read()[0].doc_freq
        owners = [_owned(key, "") for key in scope_keys if self._meta and count("scope", key)]
        return {word: sum([count("own", owner + word) for owner in owners]) for word in words}

    def documents_in(self, scope_keys: Sequence[str]) -> int:
        count = self._read()[0].doc_freq
        return sum([count("scope", key) for key in scope_keys]) if self._meta else 0

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
        if not weights or limit <= 0 or not self._about():
            return []
        allowed = [("scope", scope_keys), ("state", states), ("kind", kinds), ("domain", domains)]
        either = ((tantivy.Occur.Should, self._weighted(word, weight)) for word, weight in weights.items())
        best = self._found(lambda: tantivy.Query.boolean_query([*either]), allowed, limit)
        if len(best) > limit:
            least = best[limit - 1][0] + _SAME_SCORE
            sure = sum(score > least for score, _ in best)
            best[sure:] = sorted(best[sure:], key=lambda hit: hit[1].id)[: limit - sure]
        return best

    def at(self, places: Sequence[str], scope_keys: Sequence[str], *, states: Sequence[str]) -> list[Sketch]:
        return self._named("place", places, scope_keys, states)

    def of(self, unit_ids: Sequence[str], scope_keys: Sequence[str], *, states: Sequence[str]) -> list[Sketch]:
        return self._named("id", unit_ids, scope_keys, states)

    def _named(
        self, field: str, names: Sequence[str], scope_keys: Sequence[str], states: Sequence[str]
    ) -> list[Sketch]:
        if not names or not self._about():
            return []
        allowed = [("scope", scope_keys), ("state", states)]
        return [sketch for _, sketch in self._found(lambda: self._one_of(field, names), allowed, len(names))]

    def _filters(self, allowed: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[Any, Any]] | None:
        """The terms that a document must have. None if no document has them."""
        searcher = self._read()[0]
        required = []
        for field, items in allowed:
            held = [item for item in items if searcher.doc_freq(field, item)]
            if items and not held:
                return None
            if held:
                required.append((tantivy.Occur.Must, self._one_of(field, held)))
        return required

    def _found(
        self, wanted: Callable[[], tantivy.Query], allowed: Sequence[tuple[str, Sequence[str]]], limit: int
    ) -> list[tuple[float, Sketch]]:
        """The best documents, best first, and those beyond `limit` that tie with the last of them."""
        filters = self._filters(allowed)
        if filters is None:
            return []
        query = tantivy.Query.boolean_query([*filters, (tantivy.Occur.Must, wanted())])
        searcher, known = self._read()
        if len(known) >= _SKETCHES_MAX:
            known.clear()
        best = []
        try:
            for score, at in _best_hits(searcher, query, limit):
                sketch = known.get(key := (at.segment_ord, at.doc))
                if sketch is None:
                    sketch = known[key] = Sketch.from_line(searcher.doc(at)["sketch"][0].decode())
                best.append((score, sketch))
        except (ValueError, OSError):
            self._drop()
            return []
        return best

    def _weighted(self, word: str, weight: float) -> tantivy.Query:
        query = tantivy.Query.term_query(self._schema, "body", word, "freq")
        return query if weight == 1.0 else tantivy.Query.boost_query(query, weight)

    def _one_of(self, field: str, allowed: Sequence[str]) -> tantivy.Query:
        """A filter without a score. It uses terms, since a term set would visit every allowed document."""
        terms = [tantivy.Query.term_query(self._schema, field, item, "basic") for item in allowed]
        either = [(tantivy.Occur.Should, term) for term in terms]
        chosen = terms[0] if len(terms) == 1 else tantivy.Query.boolean_query(either)
        return tantivy.Query.const_score_query(chosen, 0.0)

    # Writing

    def update(self, changes_after: Callable[[int], Iterable[Searchable]], *, rebuild: bool = False) -> bool:
        try:
            with self._locking:
                writer = self._writer()
                if writer is None:
                    return False
                try:
                    if self._write(writer, changes_after, rebuild):
                        self._write(writer, changes_after, True)
                finally:
                    writer.wait_merging_threads()  # Releases the lock, also after an error.
                keep_rights(self._folder)
                self._load(self._index())
        except (ValueError, OSError) as error:
            self._drop()
            raise StoreUnavailable(
                f"The search index {self._folder} can't be written: {error}.",
                hint="Check the disk and the folder's rights, then reindex. Until then, everything is still found.",
            ) from None
        return True

    def _writer(self, *, again: bool = True) -> tantivy.IndexWriter | None:
        """The index's only writer, or None while another process has it."""
        try:
            index = self._index()
            if self._links is not None:
                raise self._unusable("written from here")
            return index.writer(_HEAP_BYTES, 1)
        except (ValueError, OSError) as error:
            if _BUSY in str(error):
                return None
            if not again:
                raise
        self._drop()  # The folder was deleted: open or create it again.
        return self._writer(again=False)

    def _write(
        self, writer: tantivy.IndexWriter, changes_after: Callable[[int], Iterable[Searchable]], rebuild: bool
    ) -> bool:
        """Commit the changes and the new statistics. Returns whether the files may hold an erased text."""
        # Read again under the writer's lock: another process may have indexed or rebuilt meanwhile.
        self._load(self._index())
        rebuild = rebuild or not self._meta
        empty: dict[str, Any] = {"position": 0, "tokens": 0, "added": 0, "coherence": {}}
        meta = empty | ({} if rebuild else self._meta)
        if rebuild:
            writer.delete_all_documents()
        seen, has_erased = conversation.Coherence(), False
        for unit in changes_after(meta["position"]):
            if not rebuild:
                writer.delete_documents_by_term("id", unit.id)
                has_erased = has_erased or not unit.content
            if unit.content:
                sketch = conversation.sketched(unit)
                writer.add_document(_document(unit, sketch))
                meta["tokens"] += sketch.length
                meta["added"] += 1
                seen.note(sketch)
            meta["position"] = max(meta["position"], unit.changed_at)
        meta["coherence"] = seen.sums(meta["coherence"])
        version, event = conversation.SKETCH_VERSION, self._event_at(meta["position"])
        meta |= {"store": self._store_id, "version": version, "event": event}
        writer.delete_documents_by_term("id", _META)
        # A search makes an empty dictionary for each field that a segment lacks, so this document has every usual one.
        words = {name: [_META] for name in ("id", "scope", "state", "body", "own")}
        writer.add_document(tantivy.Document(meta=[to_json(meta)], **words))
        writer.commit()
        if rebuild:
            writer.garbage_collect_files()
        return has_erased

    def close(self) -> None:
        self._drop()


def _best_hits(searcher: Any, query: tantivy.Query, limit: int) -> list[tuple[float, Any]]:
    """The best hits, and those beyond `limit` that tie with the last of them.

    Which of them tantivy gives first depends on the order of indexing, so two machines would answer differently.
    """
    count = limit
    while True:
        count *= 2
        hits: list[tuple[float, Any]] = searcher.search(query, count, count=False).hits
        if len(hits) <= limit:
            return hits
        least = hits[limit - 1][0] - _SAME_SCORE
        if len(hits) < count or hits[-1][0] < least or count >= limit * _TIED_MAX:
            return [hit for hit in hits if hit[0] >= least]


def _document(unit: Searchable, sketch: Sketch) -> Any:
    body, owner = sketch.words, _owned(unit.scope_key, "")
    if " :" in body:
        body = " ".join([" ".join([word] * count) for word, count in sketch.counted()])
    return tantivy.Document(
        id=[unit.id],
        scope=[unit.scope_key],
        kind=[unit.kind],
        domain=[unit.domain],
        state=[unit.state],
        place=[sketch.place] if sketch.session else [],
        body=[body],
        own=[f" {owner}".join(["", *sketch.distinct()])],
        sketch=[sketch.to_line().encode()],
    )


def _owned(scope_key: str, word: str) -> str:
    return f"{scope_key[:_SCOPE_CHARS]}:{word}"
