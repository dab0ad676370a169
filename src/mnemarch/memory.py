"""Memory: an open memory, and what belongs to its operator. Everything else is done from a seat."""

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
    """Use it with `with`, or close it."""

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
        """A place to act from: who, and where. Cheap, stateless, safe to share between threads."""
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
        """Check every hash chain, every row made of the log, and that its end is where this machine saw it last.

        What an audit has seen and nobody changed since is not checked again, unless `full`. `accept` takes the log as
        it ends now: after an older copy was put back on purpose.
        """
        from mnemarch.log.audit import audited

        return audited(self._engine.store, self._engine.remembered, progress, full=full, accept=accept)

    def verify_receipt(self, receipt: Receipt | Mapping[str, Any]) -> ReceiptCheck:
        """Whether the entry that a receipt was given for is still in the log, as it was."""
        from mnemarch.log.audit import checked_receipt
        from mnemarch.model.event import Receipt

        return checked_receipt(self._engine.store, Receipt.of(receipt))

    def rebuild(self, progress: Progress | None = None) -> Rebuild:
        """Recreate every projection from the log alone and compare digests. Writers wait meanwhile."""
        from mnemarch.log.projection import rebuild

        return self._engine.store.write(lambda transaction: rebuild(transaction, progress), durable=True)

    def reindex(self, progress: Progress | None = None, *, meaning: bool = False) -> int:
        """Make the search index anew; gives the number of documents. If interrupted, the old one stays.

        With `meaning` the sentence model of `mnemarch[semantic]` reads every unit too, and from then on its vectors
        take part in every recall, unless `recall.semantic` is "". On PostgreSQL it does so for every project.
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
        """Archive old episodes and skills of little worth (G24, R13); a dry run only says which."""
        from mnemarch.units.life import pruned

        return pruned(self._engine.log, dry_run=dry_run)

    def janitor(self, seat: Seat, progress: Progress | None = None) -> Swept:
        """Check every unit of the seat's project that cites code: archive what is gone, revive what is back (R11)."""
        from mnemarch.services.janitor import Views

        root = seat.caller.root
        if root is None:
            raise InvalidInput(
                "A sweep compares the memory with code, and this seat has no working tree.",
                hint=Hint("name the root"),
            )
        engine = self._engine.of(seat.caller.stream)
        return engine.janitor.sweep(Views(engine.codebase(root), seat.scope), progress)

    def cognify(self, seat: Seat, limit: int = 20, progress: Progress | None = None) -> Cognified:
        """Have the configured model analyse the tasks of the seat's project that wait for it (G8)."""
        from mnemarch.services.analysis import analyse_waiting

        count = checked_count(limit, "limit", _WAITING_MAX)
        return analyse_waiting(self._engine.of(seat.caller.stream), seat.caller, limit=count, progress=progress)

    def maintain(self, seat: Seat, *, dry_run: bool = False, progress: Progress | None = None) -> Maintained:
        """Do the nightly maintenance (G24): retention, the janitor, lessons, index, files, log, audit; say what it did.

        A step that fails is told, and the others are done all the same. Of two processes the second is refused.
        """
        from mnemarch.services.maintenance import maintained

        self._engine.has_new_units = True
        return maintained(self._engine, seat.caller, dry_run=dry_run, progress=progress)

    def doctor(self) -> list[Finding]:
        """Check the memory with a real write and a real recall, and say in words what is wrong."""
        from mnemarch.doctor import PLACE, examined

        return examined(self._engine, self.seat(Actor.agent("doctor"), Scope(**PLACE)))

    def export(self, path: str | os.PathLike[str], progress: Progress | None = None) -> int:
        """Write the whole log as JSON lines; gives the number of events. An existing file is not overwritten."""
        from mnemarch.log.transfer import export_file

        _refuse_existing(os.fspath(path))
        return export_file(self._engine.store, os.fspath(path), progress)

    def import_(self, path: str | os.PathLike[str], progress: Progress | None = None) -> Imported:
        """Read an export back: the same ids, hashes and state. Events that are here already are skipped.

        The whole file is checked before the first event is stored.
        """
        from mnemarch.log.transfer import restore

        engine = self._engine
        engine.has_new_units = True
        imported, erased = restore(engine.store, os.fspath(path), self.config.limits.data_bytes_max, progress)
        if erased:
            engine.forget_erased(erased)
        return imported

    def copy_to(self, target: Memory, progress: Progress | None = None) -> Copied:
        """Bring the whole log into another store, and compare the two. If interrupted, it goes on when called again.

        The target is empty, or an earlier copy that is continued.
        """
        from mnemarch.log.copying import Copying

        there = target._engine
        if there.store.id == self._engine.store.id and not is_another_file(self._engine.place, there.place):
            raise InvalidInput("The source and the target are one store.", hint="Name another target.")
        copying = Copying(self._engine.store, there.store, progress)
        try:
            copied = copying.run()
        finally:
            if copying.erased:
                there.forget_erased(copying.erased)
        # Without a look for duplicates, as closing has it: links of its own would make the target another log.
        there.finder.index_patiently(self.config.store.lock_wait_s_max, rebuild=copying.began_anew)
        return copied

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the database, consistent, while others write. An existing file is not overwritten."""
        _refuse_existing(os.fspath(path))
        self._engine.store.backup(os.fspath(path))
        if os.path.basename(os.path.dirname(os.path.abspath(path))) == FOLDER:
            sign(os.path.dirname(os.path.abspath(path)))  # It is a memory of this user's, like the one it came from.

    def close(self, *, indexes: bool | None = None) -> None:
        """Close everything. A long unindexed tail is indexed first, so that the next process starts fast.

        With `indexes` it is looked for even if nothing is new; or not at all, where somebody waits.
        """
        self._engine.close(indexes=indexes)


def _refuse_existing(path: str) -> None:
    if os.path.exists(path):
        raise InvalidInput(f"{path!r} exists.", hint="Choose another name; nothing was overwritten.")
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise InvalidInput(f"There is no folder for {path!r}.", hint="Make the folder first.")


def worktree_in(memory: Memory, home: Home) -> str | None:
    """The name of a working tree in a memory; where clones share it, with the clone's (R3)."""
    if home.worktree is None or not memory._engine.store.is_shared:
        return home.worktree
    from mnemarch.code.clones import clone_at, in_clone

    return in_clone(home.worktree, clone_at(home.root))
