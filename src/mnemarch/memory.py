"""Memory: an open memory, with the operator's verbs. Seats have all other verbs."""

from __future__ import annotations

import os

from mnemarch.checkout import sign
from mnemarch.code.home import FOLDER, Home, top_of
from mnemarch.errors import Hint, InvalidInput
from mnemarch.files import is_another_file
from mnemarch.model.caller import Actor, Caller, Scope
from mnemarch.policy.admission import checked_count, checked_name
from mnemarch.policy.permissions import require_outsider
from mnemarch.seat import Seat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from typing import Any, Self

    from mnemarch.model.event import Receipt
    from mnemarch.model.outcome import Finding, Imported, LogCheck, Rebuild, ReceiptCheck, Stats, Swept
    from mnemarch.model.upkeep import Cognified, Copied, Maintained, Pruned
    from mnemarch.services.engine import Engine

    Progress = Callable[[int], None]


_WAITING_MAX = 500


class Memory:
    """An open memory. Use it in a `with` statement, or close it."""

    def __init__(self, engine: Engine) -> None:
        self.config = engine.config
        self._engine = engine

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def seat(
        self,
        actor: Actor,
        scope: Scope,
        *,
        session: str | None = None,
        root: str | os.PathLike[str] | None = None,
    ) -> Seat:
        """A seat for an actor in a scope. It is cheap, stateless, and safe to share between threads."""
        unchecked: tuple[Any, Any] = (actor, scope)
        if not isinstance(unchecked[0], Actor) or not isinstance(unchecked[1], Scope):
            raise InvalidInput(
                "A seat needs an Actor and a Scope.", hint='mem.seat(Actor.agent("coder-1"), Scope(project="shop"))'
            )
        require_outsider(actor)
        names = {"an actor's id": actor.id, "an org": scope.org, "a project": scope.project}
        names |= {"a worktree": scope.worktree, "a task": scope.task, "a session": session}
        for what, name in names.items():
            if name is not None:
                checked_name(name, what)
        tree = self._engine.root if root is None else top_of(os.path.abspath(os.fspath(root)))
        caller = Caller(actor, scope, session, tree)
        return Seat(self._engine.of(caller.stream), caller)

    def now(self) -> datetime:
        """The time by this memory's clock."""
        return self._engine.log.clock()

    def audit(self, full: bool = False, accept: bool = False, progress: Progress | None = None) -> LogCheck:
        """Check every hash chain, every projected row, and that the log was not set back since this machine saw it.

        Parts that an earlier audit checked and nobody changed are skipped, unless `full`. `accept` accepts the current
        end of the log, after an older copy was restored on purpose.
        """
        from mnemarch.log.audit import audited

        return audited(self._engine.store, self._engine.remembered, progress, full=full, accept=accept)

    def verify_receipt(self, receipt: Receipt | Mapping[str, Any]) -> ReceiptCheck:
        """Whether the entry of a receipt is still in the log, unchanged."""
        from mnemarch.log.audit import checked_receipt
        from mnemarch.model.event import Receipt

        return checked_receipt(self._engine.store, Receipt.of(receipt))

    def rebuild(self, progress: Progress | None = None) -> Rebuild:
        """Recreate all projections from the log alone, and compare their digests. Writers wait meanwhile."""
        from mnemarch.log.projection import rebuild

        return self._engine.store.write(lambda transaction: rebuild(transaction, progress), durable=True)

    def reindex(self, progress: Progress | None = None, *, meaning: bool = False) -> int:
        """Rebuild the search index. Returns the number of documents. If interrupted, the old index stays.

        With `meaning`, the sentence model of `mnemarch[semantic]` also makes a vector of every unit. From then on,
        recall uses the vectors, unless `recall.semantic` is "". On PostgreSQL this covers every project.
        """
        documents = 0
        for engine in self._engine.everywhere():
            if meaning and engine.vectors is None:
                raise InvalidInput("A memory without a folder keeps no vectors.", hint="Open it in a folder.")
            engine.finder.index_patiently(self.config.store.lock_wait_s_max, progress)
            engine.finder.embed_all(engine.begin_meanings if meaning else None)
            documents += engine.finder.documents()
        return documents

    def stats(self) -> Stats:
        """Counts and sizes."""
        return self._engine.stats()

    def prune(self, dry_run: bool = True) -> Pruned:
        """Archive old episodes and skills of low worth (G24, R13). A dry run only lists them."""
        from mnemarch.units.life import pruned

        return pruned(self._engine.log, dry_run=dry_run)

    def janitor(self, seat: Seat, progress: Progress | None = None) -> Swept:
        """Check all units of the seat's project that cite code (R11).

        A unit is archived if its code is gone, and revived if its code is back.
        """
        from mnemarch.services.janitor import Views

        root = seat.caller.root
        if root is None:
            raise InvalidInput(
                "A sweep compares the memory with code, but this seat has no working tree.",
                hint=Hint("name the root"),
            )
        engine = self._engine.of(seat.caller.stream)
        return engine.janitor.sweep(Views(engine.codebase(root), seat.scope), progress)

    def cognify(self, seat: Seat, limit: int = 20, progress: Progress | None = None) -> Cognified:
        """Analyse the waiting tasks of the seat's project with the configured model (G8)."""
        from mnemarch.services.analysis import analyse_waiting

        count = checked_count(limit, "limit", _WAITING_MAX)
        return analyse_waiting(self._engine.of(seat.caller.stream), seat.caller, limit=count, progress=progress)

    def maintain(self, seat: Seat, *, dry_run: bool = False, progress: Progress | None = None) -> Maintained:
        """Run the nightly maintenance (G24): retention, janitor, lessons, index, files, log, audit.

        A failed step is reported, and the others still run. A second process that starts it meanwhile is refused.
        """
        from mnemarch.services.maintenance import maintained

        self._engine.has_new_units = True
        return maintained(self._engine, seat.caller, dry_run=dry_run, progress=progress)

    def doctor(self) -> list[Finding]:
        """Check the memory with a real write and a real recall. The findings say in words what is wrong."""
        from mnemarch.doctor import PLACE, examined

        return examined(self._engine, self.seat(Actor.agent("doctor"), Scope(**PLACE)))

    def export(self, path: str | os.PathLike[str], progress: Progress | None = None) -> int:
        """Write the whole log as JSON lines. Returns the number of events. An existing file is not overwritten."""
        from mnemarch.log.transfer import export_file

        _refuse_existing(os.fspath(path))
        return export_file(self._engine.store, os.fspath(path), progress)

    def import_(self, path: str | os.PathLike[str], progress: Progress | None = None) -> Imported:
        """Restore an export, with the same ids, hashes and state. Events that exist already are skipped.

        The whole file is checked before the first event is stored.
        """
        from mnemarch.log.transfer import restore
        from mnemarch.services.merging import Merging

        engine = self._engine
        engine.has_new_units = True
        settle = Merging(self.config, engine.log.clock).settle
        imported, erased = restore(engine.store, os.fspath(path), self.config.limits.data_bytes_max, settle, progress)
        if erased:
            engine.forget_erased(erased)
        return imported

    def copy_to(self, target: Memory, progress: Progress | None = None) -> Copied:
        """Copy the whole log into another store, and compare the two. A repeated call continues an interrupted copy.

        The target must be empty, or an earlier copy.
        """
        from mnemarch.log.transfer import Copying

        there = target._engine
        if there.store.id == self._engine.store.id and not is_another_file(self._engine.place, there.place):
            raise InvalidInput("The source and the target are the same store.", hint="Name another target.")
        copying = Copying(self._engine.store, there.store, progress)
        try:
            copied = copying.run()
        finally:
            if copying.erased:
                there.forget_erased(copying.erased)
        # Unlike at closing, duplicates are not linked: new links would make the target's log differ from the source's.
        there.finder.index_patiently(self.config.store.lock_wait_s_max, rebuild=copying.began_anew)
        return copied

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Write a consistent copy of the database, while others write. An existing file is not overwritten."""
        _refuse_existing(os.fspath(path))
        self._engine.store.backup(os.fspath(path))
        if os.path.basename(os.path.dirname(os.path.abspath(path))) == FOLDER:
            sign(os.path.dirname(os.path.abspath(path)))  # The copy is this user's memory, as its source is.

    def close(self, *, indexes: bool | None = None) -> None:
        """Close everything. A long unindexed tail is indexed first, so that the next process starts fast.

        `indexes=True` checks for such a tail even if this process wrote nothing; False skips the indexing.
        """
        self._engine.close(indexes=indexes)


def _refuse_existing(path: str) -> None:
    if os.path.exists(path):
        raise InvalidInput(f"{path!r} exists.", hint="Nothing was overwritten. Choose another name.")
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise InvalidInput(f"There is no folder for {path!r}.", hint="Create the folder first.")


def worktree_in(memory: Memory, home: Home) -> str | None:
    """The name of a working tree in a memory. If clones share the memory, it includes the clone's name (R3)."""
    if home.worktree is None or not memory._engine.store.is_shared:
        return home.worktree
    from mnemarch.code.home import clone_at, in_clone

    return in_clone(home.worktree, clone_at(home.root))
