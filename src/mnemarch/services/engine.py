"""Engine: the parts that all seats of an open memory share: log, search, code, graphs and janitor."""

from __future__ import annotations

from functools import cached_property

from mnemarch.errors import StoreUnavailable
from mnemarch.log.act import Log
from mnemarch.model.caller import Caller, Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from typing import Any

    from mnemarch.code.codebase import Codebase
    from mnemarch.config import Config
    from mnemarch.graph.orchestrator import MemoryOrchestrator
    from mnemarch.learning.analyst import ApiModel
    from mnemarch.learning.episodic import EpisodeCaches
    from mnemarch.log.chain import RememberedLog
    from mnemarch.model.outcome import Stats
    from mnemarch.model.unit import Unit
    from mnemarch.ports import MeaningIndex, Reranker, SearchIndex, Store, Vectors
    from mnemarch.recall.candidates import Finder
    from mnemarch.services.janitor import Janitor

    OpenIndex = Callable[[], SearchIndex]
    # A tenant's store, the search index on this machine, the one in the database, and the vectors.
    OpenTenant = Callable[[Stream], tuple[Store, OpenIndex, SearchIndex, Vectors]]

_CODEBASES_MAX = 64
_GRAPHS_MAX = 64


class Engine:
    """The shared parts of one memory. Each is created on first use, so a process that only logs loads none."""

    def __init__(
        self,
        store: Store,
        *,
        index: OpenIndex | None,
        shared_index: SearchIndex | None = None,
        meanings: MeaningIndex | None = None,
        vectors: Vectors | None,
        place: str | None = None,
        config: Config,
        clock: Callable[[], datetime],
        root: str | None,
        remembered: RememberedLog | None = None,
        analyst: ApiModel | None = None,
        reranker: Reranker | None = None,
        tenant: OpenTenant | None = None,
    ) -> None:
        self.config = config
        self.store = store
        self.remembered = remembered
        self.analyst = analyst
        self.reranker = reranker
        self.log = Log(store, clock, config)
        self.root = root
        # Set by every caller that may write units. Then `close` checks for units to index.
        self.has_new_units = False
        self._open_index, self._shared_index = index, shared_index
        self._given_meanings = meanings
        self.vectors = vectors
        # The folder that holds the memory's files, if there is one.
        self.place = place
        self._codebases: dict[str, Codebase] = {}
        self._graphs: dict[tuple[str, str, str | None], MemoryOrchestrator] = {}
        self._closed = False
        self._tenant = tenant
        self._tenants: dict[Stream, Engine] = {}

    def of(self, stream: Stream) -> Engine:
        """The engine for a stream: this one, unless the store keeps tenants apart."""
        if self._tenant is None:
            return self
        engine = self._tenants.get(stream)
        if engine is None:
            store, index, shared_index, vectors = self._tenant(stream)
            engine = Engine(
                store,
                index=index,
                shared_index=shared_index,
                vectors=vectors,
                config=self.config,
                clock=self.log.clock,
                root=self.root,
                analyst=self.analyst,
                reranker=self.reranker,
            )
            engine = self._tenants.setdefault(stream, engine)
        return engine

    def everywhere(self) -> list[Engine]:
        """The engines of all streams if the store keeps tenants apart, or else this one. Needs the operator's role.

        An empty store has the engine of the default org, so that search by meaning can be enabled there.
        """
        if self._tenant is None:
            return [self]
        streams = self.store.read(lambda reader: dict.fromkeys(stream.shared for stream in reader.heads()))
        return [self.of(stream) for stream in streams or [Stream("default", None)]]

    @cached_property
    def _meanings(self) -> MeaningIndex | None:
        return self._given_meanings or (self.vectors.search() if self.vectors is not None else None)

    @cached_property
    def finder(self) -> Finder:
        from mnemarch.recall.candidates import Finder

        index = None if self._open_index is None else self._open_index()
        return Finder(self.log, index, self._meanings, shared=self._shared_index)

    @cached_property
    def janitor(self) -> Janitor:
        from mnemarch.services.janitor import Janitor

        return Janitor(self.log)

    @cached_property
    def episodes(self) -> EpisodeCaches:
        from mnemarch.learning.episodic import EpisodeCaches

        return EpisodeCaches()

    def codebase(self, root: str) -> Codebase:
        """The code at a root. Cached, so that nothing is parsed twice."""
        codebase = self._codebases.get(root)
        if codebase is None:
            from mnemarch.code.codebase import Codebase

            if len(self._codebases) >= _CODEBASES_MAX:
                self._codebases.clear()
            codebase = self._codebases[root] = Codebase(root, is_shared=self.store.is_shared)
        return codebase

    def graph(self, caller: Caller) -> MemoryOrchestrator:
        """The graphs of an actor. Cached, so that the log is not read twice."""
        key = str(caller.actor), caller.scope_key, caller.session
        graph = self._graphs.get(key)
        if graph is None:
            from mnemarch.graph.orchestrator import MemoryOrchestrator
            from mnemarch.graph.sharing import LogKeeper

            if len(self._graphs) >= _GRAPHS_MAX:
                self._graphs.clear()
            graph = self._graphs[key] = MemoryOrchestrator(
                key[0],
                self.config.graph,
                keeper_of=lambda session: LogKeeper(self.log, caller, session),
                root=self.root,
                keeps_files=self.root is not None,
                scope=caller.scope,
            )
        return graph

    @property
    def checkpoint_folder(self) -> str:
        """The folder for checkpoints of graphs."""
        from mnemarch.graph.orchestrator import checkpoint_folder

        return checkpoint_folder(self.config.graph, self.root)

    def sweep_in_background(self, caller: Caller, units: Sequence[Unit]) -> None:
        """Have the janitor check units that the caller's code seems to contradict."""
        if caller.root is None or not self.store.writable:
            return
        from mnemarch.services.janitor import Views

        self.janitor.sweep_in_background(Views(self.codebase(caller.root), caller.scope), units)

    def forget_erased(self, unit_ids: Sequence[str]) -> int:
        """Remove erased content from the indexes, the files and this process. Returns the number of cleaned files."""
        from mnemarch.text.cache import forget_texts

        self._graphs.clear()  # They are read again from the log.
        vars(self).pop("episodes", None)
        forget_texts()
        trouble = None
        for engine in self.everywhere():
            places = [engine.finder.forget_all, *([engine.vectors.erase] if engine.vectors is not None else [])]
            for erase in places if unit_ids else ():
                try:
                    erase(unit_ids)
                except StoreUnavailable as error:
                    trouble = error  # Clean the rest even if the vector server is away.
            engine.finder.forget_tail()
            engine.finder.index_patiently(self.config.store.lock_wait_s_max)
        files = self.store.scrub()
        if trouble is not None:
            raise StoreUnavailable(
                f"The content was erased, but its vector was not: {trouble.message}",
                hint="It is removed when the vectors catch up with the log. To be sure, erase it again.",
            )
        return files

    def begin_meanings(self) -> MeaningIndex | None:
        """Enable search by meaning."""
        if self.vectors is not None:
            self._meanings = self.vectors.search(begin=True)
        return self._meanings

    def meaning(self) -> dict[str, Any]:
        """The state of the vectors: how many units have one, how many wait for one, and a status text."""
        vectors = waiting = 0
        says = "off"
        try:
            for engine in self.everywhere():
                meanings = engine._meanings
                if meanings is not None:
                    position = meanings.position()
                    vectors += meanings.count()
                    waiting += engine.store.read(lambda reader, at=position: reader.searchable_count_after(at))  # type: ignore[misc]
                    says = "on"
        except StoreUnavailable as error:
            says = error.message
        return {"vectors": vectors, "without_vector": waiting, "meaning": says}

    def stats(self) -> Stats:
        """Counts and sizes."""
        from mnemarch.model.caller import Level
        from mnemarch.model.outcome import Stats

        counts = self.store.read(lambda reader: reader.counts())
        return Stats(
            events=counts["total"]["events"],
            units=sum(counts["status"].values()),
            by_status=counts["status"],
            by_kind=counts["kind"],
            by_level={str(Level(int(level))): count for level, count in counts["level"].items()},
            projects=counts["total"]["streams"],
            open_conflicts=counts["total"]["open_conflicts"],
            indexed=sum(engine.finder.documents() for engine in self.everywhere()),
            unindexed=sum(engine.finder.pending() for engine in self.everywhere()),
            bytes_on_disk=self.store.query("size")[0][0],
            format_version=self.store.format_version,
            **self.meaning(),
        )

    def close(self, *, indexes: bool | None = None) -> None:
        """Close everything, after indexing a long unindexed tail. `indexes` overrides whether to look for one."""
        if self._closed:
            return
        self._closed = True
        for tenant in self._tenants.values():
            tenant.close()
        if "janitor" in vars(self):
            self.janitor.wait()
        try:
            if "finder" in vars(self) or (self.has_new_units if indexes is None else indexes):
                self.finder.close()
            if self.remembered is not None:
                self.remembered.follow(self.store)
        except StoreUnavailable:
            pass  # Units are found without the index too, and the next act would report a missing file.
        finally:
            self.log.close()
            self.store.close()
            self._codebases.clear()  # This also ends their git processes.
