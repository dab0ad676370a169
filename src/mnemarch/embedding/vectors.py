"""Dense vectors by unit id in a folder: derived, shared through mmap; whatever is damaged counts as empty."""

from __future__ import annotations

import os
from itertools import islice

from mnemarch.embedding import vector_files as files
from mnemarch.embedding.vector_files import Generation, VectorView, graph, keys_of, rebuilt, take_out
from mnemarch.errors import InvalidInput, StoreUnavailable
from mnemarch.files import holds_any, locked
from mnemarch.lazy import Lazy
from mnemarch.model.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    import numpy as np

    from mnemarch.embedding.dense import Vectors
    from mnemarch.model.unit import Searchable
else:
    np = Lazy("numpy")

_LOCK = "write.lock"
_READ_ATTEMPTS = 5
# So many of the removed vectors are searched for in the written file; they stand for all.
_PROOFS_MAX = 3


class Changes(dict[str, "tuple[Searchable | None, Any]"]):
    """What a save has to do, by unit id: (unit, vector) to store, (unit, None) to relabel, (None, None) to remove.

    The last change of a unit counts.
    """

    def put(self, unit: Searchable, vector: Any) -> None:
        """Store the unit's vector and labels. A vector of zeros is none."""
        self[unit.id] = (unit, vector) if vector.any() else (None, None)

    def relabel(self, unit: Searchable) -> None:
        """Change only the unit's labels: its scope, state, kind or domain. A removed unit has none."""
        waiting, vector = self.get(unit.id, (unit, None))
        if waiting is not None:
            self[unit.id] = unit, vector

    def remove(self, *unit_ids: str) -> None:
        self.update(dict.fromkeys(unit_ids, (None, None)))


class VectorIndex:
    """The vectors of one embedder for one store. Every call sees the last whole save of any process."""

    def __init__(
        self,
        folder: str,
        embedder_id: str,
        *,
        store_id: str = "",
        event_at: Callable[[int], str] | None = None,
        lock_wait_s_max: float = 30.0,
    ) -> None:
        self.folder = folder
        self.embedder_id = embedder_id
        self._empty = VectorView(Generation(embedder_id=embedder_id, store_id=store_id), folder)
        self._event_at = event_at or (lambda _: "")
        self._lock_wait_s_max = lock_wait_s_max
        self._view = self._empty
        self._seen: bytes | None = None
        # Checksums of files that were verified once, or written here.
        self._whole: dict[str, str] = {}

    # Reading

    def position(self) -> int:
        """Every change up to here has its vector. 0 for an index that is new, lost or damaged."""
        return self._current().generation.position

    def complete(self) -> bool:
        """Whether it ever had the vectors of all units; before, it knows only the oldest."""
        return self._current().generation.complete

    def __len__(self) -> int:
        return self._current().generation.count

    def lacks(self, unit: Searchable) -> str:
        """What is missing of this unit: its "vector", only its "labels", or "" nothing."""
        return self._current().lacks(unit)

    def search(
        self,
        vector: Vectors,
        k: int,
        *,
        made_by: str,
        scope_keys: Sequence[str] | None = None,
        states: Sequence[str] = (),
        kinds: Sequence[str] = (),
        domains: Sequence[str] = (),
    ) -> list[tuple[str, float]]:
        """The `k` units nearest to `vector` with their cosine, best first: of these scopes (states, kinds, domains)."""
        view = self._current()
        query = self._query(view, vector, made_by)
        if query is None or k <= 0:
            return []
        labels = {"scope": scope_keys, "state": states or None, "kind": kinds or None, "domain": domains or None}
        return view.nearest_within(query, k, view.within(labels))

    def similarities(self, vector: Vectors, unit_ids: Iterable[str], *, made_by: str) -> dict[str, float]:
        """The cosine of `vector` with each of these units that has a vector here."""
        view = self._current()
        query = self._query(view, vector, made_by)
        if query is None:
            return {}
        rows = view.rows_of(unit_ids)
        return dict(view.compared(query, rows, len(rows)))

    def _query(self, view: VectorView, vector: Vectors, made_by: str) -> Any:
        """The vector in comparable form; None if it is zero, or if there is nothing to compare with."""
        if made_by != self.embedder_id:
            raise InvalidInput(
                f"A vector of {made_by} can't be compared with those of {self.embedder_id}.",
                hint="Embed the question with the index's embedder.",
            )
        if not view.generation.count:
            return None
        query = np.ascontiguousarray(vector, np.float32)
        if query.shape != (view.generation.dim,) or not np.isfinite(query).all():
            raise InvalidInput(
                f"A vector of shape {query.shape} can't be compared with vectors of {view.generation.dim} numbers.",
                hint="Give one vector of finite numbers, as the embedder makes them.",
            )
        return query if query.any() else None

    def refresh(self) -> None:
        """Read everything anew, also whether the store is still the same."""
        self._seen = None

    def _current(self) -> VectorView:
        """The last whole save, read anew when another process replaced it."""
        for _ in range(_READ_ATTEMPTS):
            seen = files.naming(self.folder)
            if seen == self._seen:
                return self._view
            view = self._read(seen)
            # Missing files may have been replaced between the two reads.
            if view is not self._empty or seen == files.naming(self.folder):
                self._view, self._seen = view, seen
                return view
        return self._empty

    def _read(self, content: bytes) -> VectorView:
        named = files.generation_from(content)
        ours = self._empty.generation
        if named is None or (named.embedder_id, named.store_id) != (ours.embedder_id, ours.store_id):
            return self._empty
        # Another event at this position: the store went back meanwhile (a backup was restored).
        if named.event != self._event_at(named.position):
            return self._empty
        try:
            whole = all(self._is_whole(name, named.sums[name]) for name in (named.vectors, named.rows) if named.count)
            return VectorView(named, self.folder) if whole else self._empty
        except (OSError, ValueError, KeyError, RuntimeError):
            return self._empty

    def _is_whole(self, name: str, total: str) -> bool:
        if self._whole.get(name) != total:
            self._whole[name] = files.checksum(os.path.join(self.folder, name))
        return self._whole[name] == total

    # Writing

    def save(self, changes: Changes, *, after: int, position: int, complete: bool = True, settled: bool = True) -> bool:
        """Write the changes from `after` to `position` together with the position, or nothing.

        False if the index is no longer at `after`: it was lost meanwhile, and has to be made from the beginning.
        `settled`: nothing read from the log before now is still to be saved. Until then the index remembers what was
        erased meanwhile, so that no vector made from an old read brings it back.
        """
        with self._writing():
            view = self._current()
            if view.generation.position < after:
                return False
            struck = view.generation.struck
            changes.remove(*struck)
            written = replace(self._written(view, changes), position=position, event=self._event_at(position))
            self._name(replace(written, complete=complete, struck=() if settled else struck))
        return True

    def erase(self, unit_ids: Iterable[str]) -> None:
        """Remove all traces of these units from the files (R16)."""
        changes = Changes()
        changes.remove(*unit_ids)
        with self._writing():
            written = self._written(self._current(), changes)
            self._name(replace(written, struck=tuple(dict.fromkeys((*written.struck, *changes)))))

    def close(self) -> None:
        """Let the files go; the next call opens them again."""
        self._view, self._seen = self._empty, None

    def _writing(self) -> Any:
        return locked(os.path.join(self.folder, _LOCK), self._lock_wait_s_max)

    def _name(self, generation: Generation) -> None:
        try:
            files.write_generation(self.folder, generation)
            files.drop_unnamed(self.folder, generation)
        except OSError as error:
            raise self._unwritten(error) from None
        self._whole = dict(generation.sums)
        self._seen = None

    def _written(self, view: VectorView, changes: Changes) -> Generation:
        """The next generation, with its files written but not yet named. An unchanged file is kept."""
        put = _storable(view, changes)
        labels = {unit.id: unit for unit, vector in changes.values() if unit is not None and vector is None}
        gone = view.rows_of((*put, *(unit_id for unit_id, (unit, _) in changes.items() if unit is None)))
        moved = view.rows_of(labels)
        after = replace(view.generation, number=view.generation.number + 1)
        if not (put or len(gone) or len(moved)):
            return after
        relabelled = [labels[unit_id] for unit_id in view.ids_of(moved)]
        rows = view.rows_with([unit for unit, _ in put.values()] + relabelled, np.concatenate([gone, moved]))
        if not len(rows):
            return replace(after, count=0, dim=0, vectors="", rows="", sums={})
        try:
            if put or len(gone):
                after = self._with_vectors(after, view, put, gone, rows)
            name = files.new_name(after.number, files.ROWS_END)
            np.save(os.path.join(self.folder, name), rows, allow_pickle=False)
            sums = {after.vectors: after.sums[after.vectors], name: files.sealed(os.path.join(self.folder, name))}
        except (OSError, RuntimeError) as error:
            raise self._unwritten(error) from None
        return replace(after, count=len(rows), rows=name, sums=sums)

    def _with_vectors(
        self,
        after: Generation,
        view: VectorView,
        put: dict[str, tuple[Searchable, Any]],
        gone: Any,
        rows: Any,
    ) -> Generation:
        name = files.new_name(after.number, files.VECTORS_END)
        path = os.path.join(self.folder, name)
        added = [np.asarray(vector, np.float32) for _, vector in put.values()]
        dim = view.generation.dim or len(added[0])
        if wrong := {vector.shape for vector in added} - {(dim,)}:
            raise InvalidInput(
                f"Vectors of shape {sorted(wrong)} don't belong to {self.embedder_id}, which has {dim} numbers.",
                hint="One embedder makes vectors of one length: give another one another id.",
            )
        index = graph(dim)
        if view.generation.count:
            index.load(os.path.join(self.folder, view.generation.vectors))
        alone = (row for row in gone.tolist() if view.is_alone(row, rows))
        lost = view.vectors_of(list(islice(alone, _PROOFS_MAX)))
        take_out(index, view.keys_of(gone))
        if added:
            index.add(keys_of(put), np.stack(added), threads=1)
        index.save(path)
        if len(lost) and holds_any(path, [vector.tobytes() for vector in lost]):
            rebuilt(index, rows["key"]).save(path)
        return replace(after, dim=dim, vectors=name, sums={name: files.sealed(path)})

    def _unwritten(self, error: Exception) -> StoreUnavailable:
        return StoreUnavailable(
            f"The vectors in {self.folder} can't be written: {error}.", hint="Check the disk and the folder's rights."
        )


def _storable(view: VectorView, changes: Changes) -> dict[str, tuple[Searchable, Any]]:
    """The vectors that can be stored. A unit whose key another one has gets none, and is still found by words."""
    put = {unit.id: (unit, vector) for unit, vector in changes.values() if unit is not None and vector is not None}
    taken = view.taken(put)
    by_key = dict(zip(keys_of(put).tolist(), put, strict=True))
    return {unit_id: put[unit_id] for unit_id in by_key.values() if unit_id not in taken}
