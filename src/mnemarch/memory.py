"""Memory and Seat: every verb, in the order of the data's path. The stations do the work; here it can be read."""

from __future__ import annotations

import os
from itertools import islice

from mnemarch.errors import InvalidInput, NotFound, StoreUnavailable
from mnemarch.lazy import Lazy
from mnemarch.ledger.act import Ledger
from mnemarch.model.actor import Actor, checked_id
from mnemarch.model.event import EventType
from mnemarch.model.instant import checked_instant
from mnemarch.model.presence import Presence
from mnemarch.model.scope import Level, Scope
from mnemarch.model.value import replace
from mnemarch.policy.admission import checked_count, checked_list, checked_name, checked_text
from mnemarch.policy.trust import confidence_at
from mnemarch.staging.append import Entry, append

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from threading import Thread
    from typing import Any, Self, TypeVar

    from mnemarch import doctor
    from mnemarch.code import codebase, git, sightings, tree
    from mnemarch.code.codebase import Codebase
    from mnemarch.code.view import CodeView
    from mnemarch.config import Config
    from mnemarch.decisions import decisions as deciding
    from mnemarch.decisions.decisions import Decisions
    from mnemarch.gate import promote as promotion
    from mnemarch.gate import verify as verification
    from mnemarch.graph import log_keeper, orchestrator
    from mnemarch.graph.orchestrator import MemoryOrchestrator
    from mnemarch.ledger import audit, replay, standing, transfer
    from mnemarch.ledger.act import Act
    from mnemarch.loops import detector
    from mnemarch.loops.detector import CircularFixDetector
    from mnemarch.model import citation as citations_model
    from mnemarch.model import claim as claims_model
    from mnemarch.model import outcome
    from mnemarch.model import unit as units_model
    from mnemarch.model.citation import Citation
    from mnemarch.model.claim import Claim
    from mnemarch.model.decision import Loaded
    from mnemarch.model.event import Event, Receipt
    from mnemarch.model.found import Found, Pack
    from mnemarch.model.outcome import (
        Adopted,
        Analysis,
        Dispute,
        Erased,
        Explanation,
        Finding,
        Imported,
        LogCheck,
        Promotion,
        Pruned,
        Rebuild,
        Refused,
        Stats,
        Stored,
        Swept,
    )
    from mnemarch.model.unit import Kind, Status, Unit
    from mnemarch.model.verdict import ApproachValidation, FailedApproach, LoopVerdict
    from mnemarch.policy import claims as admission
    from mnemarch.policy import retention
    from mnemarch.ports import MeaningIndex, Reader, SearchIndex, Store
    from mnemarch.published import disputes, evidence, explain, janitor, retirement, succession
    from mnemarch.published import remember as remembering
    from mnemarch.recall import answer, context, finder, near
    from mnemarch.text import fence, kept, token_count

    T = TypeVar("T")
    Progress = Callable[[int], None]
else:
    # Each is loaded when first used: a process that only logs must not pay for what recall needs.
    admission = Lazy("mnemarch.policy.claims")
    answer = Lazy("mnemarch.recall.answer")
    audit = Lazy("mnemarch.ledger.audit")
    citations_model = Lazy("mnemarch.model.citation")
    context = Lazy("mnemarch.recall.context")
    fence = Lazy("mnemarch.text.fence")
    token_count = Lazy("mnemarch.text.token_count")
    claims_model = Lazy("mnemarch.model.claim")
    codebase = Lazy("mnemarch.code.codebase")
    deciding = Lazy("mnemarch.decisions.decisions")
    detector = Lazy("mnemarch.loops.detector")
    disputes = Lazy("mnemarch.published.disputes")
    doctor = Lazy("mnemarch.doctor")
    evidence = Lazy("mnemarch.published.evidence")
    explain = Lazy("mnemarch.published.explain")
    finder = Lazy("mnemarch.recall.finder")
    git = Lazy("mnemarch.code.git")
    janitor = Lazy("mnemarch.published.janitor")
    kept = Lazy("mnemarch.text.kept")
    log_keeper = Lazy("mnemarch.graph.log_keeper")
    near = Lazy("mnemarch.recall.near")
    orchestrator = Lazy("mnemarch.graph.orchestrator")
    outcome = Lazy("mnemarch.model.outcome")
    promotion = Lazy("mnemarch.gate.promote")
    remembering = Lazy("mnemarch.published.remember")
    replay = Lazy("mnemarch.ledger.replay")
    retention = Lazy("mnemarch.policy.retention")
    retirement = Lazy("mnemarch.published.retirement")
    sightings = Lazy("mnemarch.code.sightings")
    standing = Lazy("mnemarch.ledger.standing")
    succession = Lazy("mnemarch.published.succession")
    transfer = Lazy("mnemarch.ledger.transfer")
    tree = Lazy("mnemarch.code.tree")
    units_model = Lazy("mnemarch.model.unit")
    verification = Lazy("mnemarch.gate.verify")

_PAGE_MAX = 10_000
_CODEBASES_MAX = 64
_GRAPHS_MAX = 64
_LOOKED_AT_MAX = 4_096
_SWEEP_S_MAX = 10.0
_REASON_BYTES_MAX = 4_096
_SIMILAR_EPISODES_MAX = 3
_TOKENS_MAX = 10_000_000
# An item with its head is seldom shorter, so that more need not be looked for.
_TOKENS_OF_AN_ITEM = 40
_ITEMS_MIN = 8


class Memory:
    """A store and what belongs to its operator. Everything else is done from a seat."""

    def __init__(
        self,
        store: Store,
        *,
        index: SearchIndex | None,
        meanings: MeaningIndex | None = None,
        config: Config,
        clock: Callable[[], datetime],
        root: str | None,
    ) -> None:
        self._store = store
        self._index = index
        self._meanings = meanings
        self._root = root
        self.config = config
        self._clock = clock
        self._ledger = Ledger(store, clock, config)
        self._searching: finder.Finder | None = None
        self._codebases: dict[str, Codebase] = {}
        self._graphs: dict[tuple[str, str, str | None], MemoryOrchestrator] = {}
        self._looked_at: dict[str, tuple[int, str | None]] = {}
        self._sweeps: list[Thread] = []
        self._has_new_units = False
        self._closed = False

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
        given: tuple[Any, Any] = (actor, scope)
        if not isinstance(given[0], Actor) or not isinstance(given[1], Scope):
            raise InvalidInput(
                "A seat needs an Actor and a Scope.", hint='mem.seat(Actor.agent("coder-1"), Scope(project="shop"))'
            )
        named = {"an actor's id": actor.id, "an org": scope.org, "a project": scope.project}
        named |= {"a worktree": scope.worktree, "a task": scope.task, "a session": session}
        for what, name in named.items():
            if name is not None:
                checked_name(name, what)
        tree = self._root if root is None else os.path.abspath(os.fspath(root))
        return Seat(self, Presence(actor, scope, session, tree))

    def now(self) -> datetime:
        """The time by this memory's clock."""
        return self._clock()

    @property
    def _finder(self) -> finder.Finder:
        if self._searching is None:
            self._searching = finder.Finder(self._store, self._index, self.config.store, self._meanings)
        return self._searching

    def _codebase(self, root: str) -> Codebase:
        """The code at that root. It is kept: what was parsed there need not be parsed again."""
        found = self._codebases.get(root)
        if found is None:
            if len(self._codebases) >= _CODEBASES_MAX:
                self._codebases.clear()
            found = self._codebases[root] = codebase.Codebase(root)
        return found

    def _graph(self, presence: Presence) -> MemoryOrchestrator:
        """The graphs of an actor. They are kept: what was read from the log need not be read again."""
        place = str(presence.actor), presence.scope_key, presence.session
        found = self._graphs.get(place)
        if found is None:
            if len(self._graphs) >= _GRAPHS_MAX:
                self._graphs.clear()
            found = self._graphs[place] = orchestrator.MemoryOrchestrator(
                place[0],
                self.config.graph,
                keeper_of=lambda session: log_keeper.LogKeeper(self._ledger, presence, session),
                root=self._root,
                keeps_files=self._root is not None,
            )
        return found

    def _sweep(self, presence: Presence, units: Sequence[Unit]) -> None:
        """Archive in the background what the code no longer bears out; each version is looked at once a commit."""
        if presence.root is None or not self._store.writable:
            return
        views = janitor.Views(self._codebase(presence.root), presence.scope)
        seen = {unit.id: (unit.version, view.commit) for unit in units if unit.live and (view := views.of(unit))}
        new = [unit for unit in units if unit.id in seen and self._looked_at.get(unit.id) != seen[unit.id]]
        if not new:
            return
        from threading import Thread

        if len(self._looked_at) >= _LOOKED_AT_MAX:
            self._looked_at = {}
        self._looked_at |= seen
        sweep = Thread(target=self._sweep_now, args=(new, views), name="mnemarch-janitor", daemon=True)
        try:
            sweep.start()
        except RuntimeError:
            return  # No thread is to be had, as at the end of the process: the janitor will see to it.
        self._sweeps = [thread for thread in self._sweeps if thread.is_alive()] + [sweep]

    def _sweep_now(self, units: Sequence[Unit], views: janitor.Views) -> None:
        if not janitor.sweep_all(self._ledger, units, views):
            for unit in units:
                self._looked_at.pop(unit.id, None)

    # What the operator does

    def audit(self, progress: Progress | None = None) -> LogCheck:
        """Walk every hash chain; names the first entry that does not hold."""
        return self._store.read(lambda reader: audit.checked_chain(reader.events(), reader.heads(), progress))

    def rebuild(self, progress: Progress | None = None) -> Rebuild:
        """Recreate every projection from the log alone and compare digests. Writers wait meanwhile."""
        return self._store.write(lambda transaction: replay.rebuild(transaction, progress), durable=True)

    def reindex(self, progress: Progress | None = None) -> int:
        """Make the search index anew; gives the number of documents. Interrupted, the old one stays."""
        self._finder.index_patiently(self.config.store.lock_wait_s_max, progress)
        self._finder.embed_all()
        return self._finder.documents()

    def stats(self) -> Stats:
        counts = self._store.read(lambda reader: reader.counts())
        return outcome.Stats(
            events=counts["total"]["events"],
            units=sum(counts["status"].values()),
            by_status=counts["status"],
            by_kind=counts["kind"],
            by_level={str(Level(int(level))): count for level, count in counts["level"].items()},
            projects=counts["total"]["streams"],
            open_conflicts=counts["total"]["open_conflicts"],
            indexed=self._finder.documents(),
            unindexed=self._finder.pending(),
            bytes_on_disk=self._store.bytes_on_disk(),
            format_version=self._store.format_version,
        )

    def prune(self, dry_run: bool = True) -> Pruned:
        """Archive old, worthless episodes and skills (G24, R13); a dry run only says which."""
        kinds = (units_model.Kind.EPISODE, units_model.Kind.SKILL)
        found = self._store.read(lambda reader: list(reader.units_of_kinds(kinds)))
        pruned, kept = retention.prunable(found, self._clock(), self.config.retention)
        if not dry_run:
            for unit in pruned:
                self._prune_one(unit)
        return outcome.Pruned(units=tuple(unit.id for unit in pruned), kept=kept, dry_run=dry_run)

    def janitor(self, seat: Seat, progress: Progress | None = None) -> Swept:
        """Look at every unit of the seat's project that cites code: archive what is gone, revive what came back (R11).

        A worktree's units are judged in that worktree, the project's on its default branch.
        """
        root = seat.presence.root
        if root is None:
            raise InvalidInput(
                "A sweep compares the memory with code, and this seat has no working tree.",
                hint="Take a seat with root='path/of/the/worktree'.",
            )
        return janitor.swept(self._ledger, janitor.Views(self._codebase(root), seat.scope), progress)

    def _prune_one(self, unit: Unit) -> None:
        reason = "retention: old and of little worth (G24)"
        presence = Presence(Actor.system("retention"), unit.scope)
        self._ledger.act(presence, lambda act: retirement.prune(act, unit.id, reason))

    def doctor(self) -> list[Finding]:
        """Look the memory over with a real write and a real recall, and say in words what is wrong."""
        return doctor.examined(self, self._store)

    def export(self, path: str | os.PathLike[str], progress: Progress | None = None) -> int:
        """Write the whole log as JSON lines; gives the number of events. An existing file is not overwritten."""
        target = os.fspath(path)
        self._refuse_existing(target)
        try:
            with open(target + ".partial", "w", encoding="utf-8") as file:
                count = self._store.read(lambda reader: transfer.write_export(reader.events(), file.write, progress))
            os.replace(target + ".partial", target)
        except OSError as error:
            raise StoreUnavailable(
                f"{target} can't be written: {error.strerror}.", hint="Choose another place."
            ) from None
        return count

    def import_(self, path: str | os.PathLike[str], progress: Progress | None = None) -> Imported:
        """Read an export back: the same ids, hashes and state. What is already here is skipped.

        The whole file is checked before the first event is stored.
        """
        self._has_new_units = True
        try:
            with open(os.fspath(path), encoding="utf-8") as file:
                transfer.checked_header(file.readline())
                self._store.read(lambda reader: transfer.checked_export(enumerate(file, start=2), reader))
                file.seek(0)
                file.readline()
                return self._import_lines(enumerate(file, start=2), progress)
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(
                f"{os.fspath(path)!r} can't be read: {error}.", hint="Give a file that export wrote."
            ) from None

    def _import_lines(self, lines: Iterator[tuple[int, str]], progress: Progress | None) -> Imported:
        events = skipped = streams = 0
        gone: list[str] = []
        while chunk := list(islice(lines, max(1, self.config.limits.batch_max))):
            done, erased = self._import_chunk(chunk)
            events, skipped = events + done.events, skipped + done.skipped
            streams = max(streams, done.streams)
            gone += erased
            if progress is not None:
                progress(events + skipped)
        if gone:
            self._forget_for_good(gone)
        return outcome.Imported(events=events, skipped=skipped, streams=streams)

    def _import_chunk(self, lines: list[tuple[int, str]]) -> tuple[Imported, list[str]]:
        return self._store.write(lambda transaction: transfer.import_batch(transaction, lines))

    def _erasing(self) -> log_keeper.Erasing:
        return log_keeper.Erasing(orchestrator.checkpoint_folder(self.config.graph, self._root))

    def _forget_for_good(self, unit_ids: Sequence[str], contents: Sequence[str] = ()) -> int:
        """Leave nothing of what was erased in the index, the files or this process; gives the files searched (R16)."""
        self._graphs.clear()  # They are read anew from the log.
        kept.forget_texts()
        self._finder.forget_all(unit_ids)
        self._finder.index_patiently(self.config.store.lock_wait_s_max)
        return self._store.scrub(contents)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the database, consistent, while others write. An existing file is not overwritten."""
        self._refuse_existing(os.fspath(path))
        self._store.backup(os.fspath(path))

    @staticmethod
    def _refuse_existing(path: str) -> None:
        if os.path.exists(path):
            raise InvalidInput(f"{path!r} exists.", hint="Choose another name; nothing was overwritten.")
        if not os.path.isdir(os.path.dirname(path) or "."):
            raise InvalidInput(f"There is no folder for {path!r}.", hint="Make the folder first.")

    def close(self) -> None:
        """Let everything go; a long unindexed tail is indexed first, so that the next process starts fast."""
        if self._closed:
            return
        self._closed = True
        for sweep in self._sweeps:
            sweep.join(_SWEEP_S_MAX)
        try:
            if self._searching is not None or self._has_new_units:
                self._finder.close()
        finally:
            self._store.close()
            self._codebases.clear()  # And with them the git processes that answered for them.


class Seat:
    """Who acts, and where: the only way in. It holds nothing but its memory and its presence."""

    __slots__ = ("_memory", "presence")

    def __init__(self, memory: Memory, presence: Presence) -> None:
        self._memory = memory
        self.presence = presence

    @property
    def actor(self) -> Actor:
        return self.presence.actor

    @property
    def scope(self) -> Scope:
        return self.presence.scope

    def _act(self, work: Callable[[Act], T], *, durable: bool = False) -> T:
        return self._memory._ledger.act(self.presence, work, durable=durable)

    def _read(self, work: Callable[[Reader], T]) -> T:
        return self._memory._store.read(work)

    # 1. Staging: append freely

    def log(
        self,
        kind: str,
        text: str,
        *,
        data: Mapping[str, Any] | None = None,
        key: str | None = None,
        occurred_at: datetime | None = None,
        session: str | None = None,
    ) -> Receipt:
        """Append to the log; the receipt comes once the event is durable."""
        entry = Entry(kind=kind, text=text, data=data, key=key, occurred_at=occurred_at, session=session)
        return self._act(lambda act: append(act, entry))

    def log_many(self, entries: Iterable[Entry | Mapping[str, Any] | tuple[str, str]]) -> list[Receipt]:
        """Append several entries in one transaction: all of them, or none."""
        whole = [_entry(given) for given in entries]
        return self._act(lambda act: [append(act, entry) for entry in whole])

    @property
    def loops(self) -> CircularFixDetector:
        """Whether this seat's task goes round in circles."""
        return detector.CircularFixDetector(self._memory._ledger, self.presence)

    @property
    def decisions(self) -> Decisions:
        """What was decided, why, whether it still holds, and what changing it would reach."""
        return deciding.Decisions(self._memory._ledger, self.presence, lambda claim: self.remember_many([claim])[0])

    @property
    def graph(self) -> MemoryOrchestrator:
        """What this actor asks and learns, session by session, kept in the log (A1)."""
        return self._memory._graph(self.presence)

    def validate_approach(self, approach: str) -> ApproachValidation:
        """Whether an approach has not failed yet in this task; to be asked before acting. Nothing is recorded."""
        return self.loops.validate_approach(None, approach)

    def fail(self, error: str, *, approach: str | None = None, key: str | None = None) -> LoopVerdict:
        """Record that something failed, and after which approach; the verdict says whether to go on."""
        return self.loops.check(error, approach=approach, key=key)

    def failed_approaches(self) -> list[FailedApproach]:
        """What was tried in this task and failed, since it last succeeded or was cleared."""
        return self.loops.get_failed_approaches()

    def mark_stuck(self, reason: str) -> Receipt:
        """Call the task stuck: every further attempt is blocked until a person clears it."""
        return self.loops.mark_subtask_stuck(None, reason)

    def clear_stuck(self, reason: str) -> Receipt:
        """Let the task start anew; for a person or an orchestrator."""
        return self.loops.clear(None, reason)

    def remember(
        self,
        content: str,
        *,
        kind: Kind | str = "fact",
        level: Level | str | None = None,
        domain: str = "global",
        citations: Sequence[Citation] = (),
        importance: float = 0.5,
        occurred_at: datetime | None = None,
        session: str | None = None,
        key: str | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> Stored | Refused:
        """Claim something. It becomes a unit, joins one that says the same, or is refused by a rule."""
        given: Any = citations
        claim = claims_model.Claim(
            content=content,
            kind=kind,
            level=level,
            domain=domain,
            citations=given,
            importance=importance,
            occurred_at=occurred_at,
            session=session,
            key=key,
            attributes={} if attributes is None else attributes,
        )
        return self.remember_many([claim])[0]

    def remember_many(self, claims: Iterable[Claim], progress: Progress | None = None) -> list[Stored | Refused]:
        """Claim many things in order, a few hundred to a transaction. All are checked before the first is stored.

        More than `limits.batch_max` claims are an import: each is still compared with what says the same or the same
        but for numbers, names and negations, but near-duplicates in other words are not searched for.
        """
        self._memory._has_new_units = True
        whole = [self._checked(claim) for claim in claims]
        self._read(lambda reader: self._check_evidence(reader, whole))
        whole = [self._with_sightings(claim) for claim in whole]
        size = max(1, self._memory.config.limits.batch_max)
        outcomes: list[Stored | Refused] = []
        for start in range(0, len(whole), size):
            outcomes += self._remembered(whole[start : start + size], search=len(whole) <= size)
            if progress is not None:
                progress(len(outcomes))
        return [self._current(answered) for answered in outcomes]

    def _check_evidence(self, reader: Reader, claims: Sequence[Claim]) -> None:
        """Refuse what cites nothing real before anything is stored, so that a wrong claim stops the whole call."""
        for claim in claims:
            standing.check_citations(reader, self.presence, claim.citations)

    def _remembered(self, claims: Sequence[Claim], *, search: bool) -> list[Stored | Refused]:
        if not search:
            return self._act(lambda act: [remembering.remember(act, claim) for claim in claims])
        around = near.Neighbourhood(self._memory._finder, self._memory.config.gate.neighbours_max)
        glances = [around.glance(claim.content, self.presence.visible_keys) for claim in claims]

        def work(act: Act) -> list[Stored | Refused]:
            return [
                remembering.remember(act, claim, around.near(act.transaction, glance))
                for claim, glance in zip(claims, glances, strict=True)
            ]

        return self._act(work)

    def _checked(self, claim: Claim) -> Claim:
        checked = admission.checked_claim(claim, self.scope, self._memory.config.limits.text_bytes_max)
        if fence.has_fence(checked.content):
            checked = replace(checked, content=self._without_recalled(checked.content))
        return replace(checked, citations=tuple(map(self._in_tree, checked.citations)), seen=())

    def _in_tree(self, citation: Citation) -> Citation:
        """The citation as the working tree completes it; what is known of a file there is not read again for each."""
        root = self.presence.root
        if root is None or citation.kind not in citations_model.OF_CODE:
            return tree.checked_in_tree(citation, root)
        return tree.checked_in_tree(citation, root, self._memory._codebase(root).tree)

    def _with_sightings(self, claim: Claim) -> Claim:
        """The claim with what its text, and the events it cites, name in the working tree."""
        root = self.presence.root
        logged = [item.ref for item in claim.citations if item.kind == "log"]
        # A file's name has a dot inside, nearly always; most texts have none and need no further look.
        if root is None or not (logged or "." in claim.content.rstrip(".\n ").replace(". ", " ")):
            return claim
        events = self._read(lambda reader: [reader.event(event_id) for event_id in logged])
        data = [(event.payload or {}).get("data") for event in events if event is not None]
        return replace(claim, seen=sightings.sightings(self._memory._codebase(root), claim.content, data))

    def _without_recalled(self, content: str) -> str:
        """What a claim says beyond the context it was given; if nothing, the first unit it repeats, as an echo (R6)."""
        own = fence.without_fenced(content).strip()
        if own:
            return own
        for unit_id in fence.ids_in(content):
            unit = self._read(lambda reader, unit_id=unit_id: reader.unit(unit_id))  # type: ignore[misc]
            if unit is not None and unit.live and unit.scope.key in self.presence.visible_keys:
                return str(unit.content)
        raise InvalidInput("This is only recalled memory, which is not stored again.", hint="Say what is new in it.")

    # 2. Gate: verify is what triggers promotion

    def verify(
        self,
        passed: bool,
        *,
        tests: Sequence[str] = (),
        commit: str | None = None,
        analysis: Analysis | Mapping[str, Any] | None = None,
        error: str | None = None,
        approach: str | None = None,
    ) -> Promotion:
        """Report how the task's verification went: the gate judges what it staged, and an episode is kept.

        Of a failure, say with which `error` and after which `approach`, and the answer's `loop` tells whether to go on.
        """
        if not isinstance(passed, bool):
            raise InvalidInput(
                f"passed must be True or False, not {passed!r}.", hint="verify(passed=True, tests=[...])"
            )
        self._memory._has_new_units = True
        names = [checked_text(name, "A test's name", _REASON_BYTES_MAX) for name in checked_list(tests, "tests")]
        whole = self._whole_hash(commit)
        hands = verification.Hands(
            remember=remembering.remember, record_unit=remembering.record_unit, relate=self._relate_episode
        )
        if passed and not (error is None and approach is None):
            raise InvalidInput("A success has no error to report.", hint="Pass error and approach with passed=False.")
        if approach is not None and error is None:
            raise InvalidInput("What came of the approach?", hint="Say with which error it failed: error='...'.")

        count = None if error is None else self.loops.counting(error, approach)

        def judge(act: Act) -> Promotion:
            judged = verification.verify(act, passed=passed, tests=names, commit=whole, analysis=analysis, hands=hands)
            if passed:
                self.loops.settle(act)
            return replace(judged, loop=None if count is None else count(act))

        judged = self._act(judge, durable=True)
        return replace(judged, units=tuple(self._aged(unit) for unit in judged.units))

    def _whole_hash(self, commit: str | None) -> str | None:
        if commit is None:
            return None
        checked = tree.checked_in_tree(citations_model.Citation.commit(commit), self.presence.root)
        return checked.ref

    def _relate_episode(self, act: Act, episode: Unit) -> int:
        """Link an episode to those like it (G11); gives how many of them succeeded."""
        others = [
            unit
            for unit in act.transaction.units_in(act.presence.visible_keys, kind=units_model.Kind.EPISODE, limit=200)
            if unit.id != episode.id and unit.live
        ]
        task = str(episode.attributes["task"])
        tasks = [replace(unit, content=str(unit.attributes.get("task") or unit.content)) for unit in others]
        alike = disputes.meetings(task, tasks, act.config.gate)
        for meeting in alike[:_SIMILAR_EPISODES_MAX]:
            remembering.link_episodes(act, episode.id, meeting.other.id, meeting.similarity)
        return sum(bool(meeting.other.attributes.get("success")) for meeting in alike)

    def promote(
        self, unit_id: str, to: Level | str = Level.PROJECT, *, expected_version: int | None = None
    ) -> Stored | Refused:
        """Move a unit to a wider level, through the gate."""
        level = Level.parse(to)
        self.scope.at(level)
        return self._current(self._act(lambda act: self._promoted(act, unit_id, level, expected_version), durable=True))

    def adopt(self, worktree: str | None = None, *, commit: str | None = None) -> Adopted:
        """Take over into the project what a worktree verified, each unit through the gate, once its branch is merged.

        `commit` says what was merged if the worktree's folder is gone.
        """
        name = checked_id(worktree, "a worktree") if worktree is not None else self.scope.worktree
        if name is None or self.scope.project is None:
            raise InvalidInput("Which worktree?", hint="adopt('feat-login'), from a seat in its project.")
        self._check_merged(name, self._whole_hash(commit))
        there = Scope(org=self.scope.org, project=self.scope.project, worktree=name)
        seat = Seat(self._memory, Presence(self.actor, there, self.presence.session, self.presence.root))
        found = self._read(lambda reader: reader.units_in([there.key], live=True, limit=_PAGE_MAX))
        trusted = [unit for unit in reversed(found) if unit.status in units_model.TRUSTED]
        answers = [seat.promote(unit.id, Level.PROJECT) for unit in trusted]
        return outcome.Adopted(
            worktree=name,
            units=tuple(answer.unit for answer in answers if isinstance(answer, outcome.Stored)),
            refused=tuple(answer for answer in answers if isinstance(answer, outcome.Refused)),
        )

    def _check_merged(self, worktree: str, commit: str | None) -> None:
        root = self.presence.root
        if root is None:
            raise InvalidInput(
                "Whether a branch is merged is asked of git, and this seat has no working tree.",
                hint="Take a seat with root='path/of/the/worktree'.",
            )
        code = self._memory._codebase(root)
        folder = code.worktrees().get(worktree)
        here = None if folder is None else git.head(folder)
        tips = [tip for tip in (commit, here) if tip is not None]
        target = git.default_branch(root)
        if not tips or target is None:
            raise InvalidInput(
                f"What worktree {worktree!r} was merged with can't be told.", hint="Name it: adopt(..., commit='HASH')."
            )
        for tip in tips:
            if not code.history.is_merged(tip, target):
                raise InvalidInput(
                    f"Worktree {worktree!r} at {tip[:12]} is not merged into {target} yet.",
                    hint="Merge its branch first, or promote single units.",
                )

    @staticmethod
    def _promoted(act: Act, unit_id: str, level: Level, expected_version: int | None) -> Stored | Refused:
        """Through the gate, and then among its new neighbours: whom it contradicts there is said at once (R5)."""
        answered = promotion.promote(act, unit_id, level, expected_version)
        if isinstance(answered, outcome.Stored) and not answered.merged:
            return remembering.disputed(act, answered)
        return answered

    # 3. Published: the life of a unit

    def get(self, unit_id: str) -> Unit:
        """The unit as it stands now, its confidence decayed to this moment."""
        return self._aged(self._stored(unit_id))

    def units(
        self,
        *,
        kind: Kind | str | None = None,
        status: Status | str | None = None,
        level: Level | str | None = None,
        domain: str | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> list[Unit]:
        """What this seat can see, newest first; `after` is the last id of the page before."""
        checked_count(limit, "limit", _PAGE_MAX)
        found = self._read(
            lambda reader: reader.units_in(
                self.presence.visible_keys,
                kind=None if kind is None else units_model.Kind.parse(kind),
                status=None if status is None else units_model.Status.parse(status),
                level=None if level is None else Level.parse(level),
                domain=None if domain is None else checked_id(domain, "a domain"),
                limit=limit,
                before=None if after is None else checked_id(after, "a unit's id"),
            )
        )
        return [self._aged(unit) for unit in found]

    def cite(self, unit_id: str, citation: Citation, *, expected_version: int | None = None) -> Unit:
        """Add evidence to a unit; what it points to is checked."""
        if not isinstance(citation, citations_model.Citation):
            raise InvalidInput(f"{citation!r} is no citation.", hint='Use Citation.test("..."), Citation.log(id), ...')
        checked = self._in_tree(citation)
        return self._aged(self._act(lambda act: evidence.cite(act, unit_id, checked, expected_version)))

    def validate(self, unit_id: str, signal: str, *, expected_version: int | None = None) -> float:
        """Raise or lower a unit's confidence by one signal; gives the new confidence (G18)."""
        given = admission.checked_signal(signal)
        return self._act(lambda act: evidence.validate(act, unit_id, given, expected_version)).confidence

    def use(self, unit_id: str, *, expected_version: int | None = None) -> Unit:
        """Say that this task used a unit; each task counts once towards publishing it."""
        return self._aged(self._act(lambda act: evidence.use(act, unit_id, expected_version)))

    def approve(self, unit_id: str, *, expected_version: int | None = None) -> Unit:
        """A yes; a human's is evidence."""
        return self._aged(self._act(lambda act: evidence.approve(act, unit_id, expected_version), durable=True))

    def reject(self, unit_id: str, reason: str, *, expected_version: int | None = None) -> Unit:
        """A no, and why: the unit leaves recall."""
        why = self._reason(reason)
        return self._aged(self._act(lambda act: evidence.reject(act, unit_id, why, expected_version), durable=True))

    def supersede(self, new_id: str, old_id: str, reason: str, *, expected_version: int | None = None) -> Unit:
        """Put one unit in the place of another; `expected_version` is the old one's. Gives the new unit."""
        why = self._reason(reason)
        commit = self._head()
        return self._aged(
            self._act(
                lambda act: succession.supersede(act, new_id, old_id, why, commit, expected_version), durable=True
            )
        )

    def archive(self, unit_id: str, reason: str, *, expected_version: int | None = None) -> Unit:
        """Take a unit out of recall; it can be revived."""
        why = self._reason(reason)
        return self._aged(self._act(lambda act: retirement.archive(act, unit_id, why, expected_version)))

    def revive(self, unit_id: str, reason: str, *, expected_version: int | None = None) -> Unit:
        """Bring an archived unit back."""
        why = self._reason(reason)
        return self._aged(self._act(lambda act: retirement.revive(act, unit_id, why, expected_version)))

    def erase(self, unit_id: str, reason: str, *, quoting: bool = False, expected_version: int | None = None) -> Erased:
        """Delete the content of a unit, or of an entry of the log, for good: from the log to the last file (R16).

        Units that say it within statements of their own are named, and nothing is erased, unless they are meant too.
        """
        why = self._reason(reason)
        graphs = self._memory._erasing()
        removal = self._act(
            lambda act: retirement.erase(act, unit_id, why, expected_version, graphs, quoting=quoting), durable=True
        )
        searched = removal.files + self._memory._forget_for_good(removal.units, removal.contents)
        return outcome.Erased(units=removal.units, events=removal.events, files_searched=searched)

    def conflicts(self) -> list[Dispute]:
        """The open contradictions that this seat can see."""
        return self._read(lambda reader: succession.open_disputes(reader, self.presence.visible_keys, "contradicts"))

    def proposals(self) -> list[Dispute]:
        """Near-duplicates that wait for somebody to merge them (resolve) or let them be."""
        return self._read(lambda reader: succession.open_disputes(reader, self.presence.visible_keys, "duplicates"))

    def resolve(
        self,
        conflict_id: str,
        *,
        winner: str | None = None,
        both: bool = False,
        reason: str,
        expected_version: int | None = None,
    ) -> Dispute:
        """Decide a conflict or a merge proposal: the winner replaces the other side, seen at `expected_version`.

        With `both` there is no winner: the two do not exclude each other, and stay as they are.
        """
        why = self._reason(reason)
        if (winner is None) != bool(both) or (both and expected_version is not None):
            raise InvalidInput(
                "A dispute is resolved for a winner, or for both sides as they are.",
                hint="Pass winner='unit id', or both=True and no version.",
            )
        if winner is None:
            return self._act(lambda act: succession.let_both_hold(act, conflict_id, why), durable=True)
        commit = self._head()
        return self._act(
            lambda act: succession.resolve(act, conflict_id, winner, why, commit, expected_version), durable=True
        )

    def explain(self, unit_id: str) -> Explanation:
        """Where from, who, when true, how sure and why, replaced by what, used by whom."""
        unit = self._stored(unit_id)
        now = self._memory._clock()
        rules = self._memory.config.trust
        told = self._read(
            lambda reader: explain.explained(reader, unit, self.presence.stream, self.presence.visible_keys, now, rules)
        )
        view = self._code_view(None, None) if unit.is_bound_to_code else None
        bearing = None if view is None else view().bearings([unit]).get(unit.id)
        if bearing is None:
            return told
        return replace(told, here=(*((bearing.reason,) if bearing.reason else ()), *bearing.notes))

    def history(self, unit_id: str) -> list[Event]:
        """The unit's events, oldest first, without what they tell of units that this seat may not see."""
        self._stored(unit_id)
        return self._read(lambda reader: explain.told(reader, unit_id, self.presence.visible_keys))

    # 4. Recall

    def recall(
        self,
        query: str,
        k: int = 8,
        *,
        kinds: Sequence[Kind | str] | None = None,
        domain: str | None = None,
        phase: str | None = None,  # noqa: ARG002 - routes work, never filters memory (D17)
        at_commit: str | None = None,
        as_of: datetime | None = None,
    ) -> Found:
        """The units that answer a question, in order, with reasons; and what was withheld, and why.

        They hold in the code that is checked out where the seat is; `at_commit` looks at another commit, `as_of` back
        in time.
        """
        found = self._found(query, k, kinds, domain, at_commit, as_of)
        return replace(found, notes=(*found.notes, *self._handed([item.unit.id for item in found.items])))

    # 5. Context

    def context(
        self,
        query: str,
        tokens: int = 2_000,
        *,
        count: Callable[[str], int] | None = None,
        kinds: Sequence[Kind | str] | None = None,
        domain: str | None = None,
        phase: str | None = None,  # noqa: ARG002 - routes work, never filters memory (D17)
        at_commit: str | None = None,
        as_of: datetime | None = None,
    ) -> Pack:
        """What answers a question, as one text for a model that fits a budget of tokens; `count` is its tokenizer."""
        checked_count(tokens, "tokens", _TOKENS_MAX)
        k = min(self._memory.config.recall.k_max, _ITEMS_MIN + tokens // _TOKENS_OF_AN_ITEM)
        is_now = kinds is None and as_of is None and at_commit is None
        first = self.decisions.load(domain) if is_now else ()
        found = self._found(query, k, kinds, domain, at_commit, as_of, first)
        pack = context.packed(found, tokens, count or token_count.estimated_tokens, self._memory._clock())
        return replace(pack, notes=(*found.notes, *self._handed([item.unit.id for item in pack.items])))

    def _found(
        self,
        query: str,
        k: int,
        kinds: Sequence[Kind | str] | None,
        domain: str | None,
        at_commit: str | None,
        as_of: datetime | None,
        first: Sequence[Loaded] = (),
    ) -> Found:
        """What answers a question, behind what is to be known first."""
        given: Any = query
        if not isinstance(given, str):
            raise InvalidInput(
                f"A query is text, not {type(given).__name__}.", hint="recall('how does checkout retry?')"
            )
        checked_count(k, "k", self._memory.config.recall.k_max)
        recall = answer.Recall(
            self._memory._store,
            self._memory._finder,
            self.presence,
            kinds=[units_model.Kind.parse(kind) for kind in checked_list(kinds or (), "kinds")],
            domain=None if domain is None else checked_id(domain, "a domain"),
            as_of=None if as_of is None else checked_instant(as_of, "as_of"),
            now=self._memory._clock(),
            rules=self._memory.config.recall,
            code=self._code_view(at_commit, as_of),
            nominate=self._nominations() if as_of is None and at_commit is None else None,
        )
        found = recall.answer(query, k)
        if first:
            found = context.after(first, found, recall.admitted)
        if recall.unsettled and at_commit is None:
            self._memory._sweep(self.presence, recall.unsettled)
        return replace(found, items=tuple(replace(item, unit=self._aged(item.unit)) for item in found.items))

    def _nominations(self) -> Callable[[str], dict[str, float]] | None:
        """What this actor's graph suggests for a question; None if it has no graph."""
        subject = self.presence.graph_subject()
        if self._read(lambda reader: next(reader.events_of_subject(subject, last=1), None)) is None:
            return None
        return lambda text: self.graph.nominated(self.presence.session, text)

    def _code_view(self, at_commit: str | None, as_of: datetime | None) -> Callable[[], CodeView] | None:
        """How to see the code as this seat sees it; None where there is none to see."""
        commit = self._whole_hash(at_commit)
        root, project = self.presence.root, self.scope.project
        if root is None:
            return None
        if commit is not None:
            return lambda: self._memory._codebase(root).view_at(project, commit)
        # What was true at another time was true at another commit: then time alone decides.
        return lambda: self._memory._codebase(root).view(project, by_commit=as_of is None)

    def _handed(self, unit_ids: list[str]) -> tuple[str, ...]:
        """Record what was handed out: a task's reuse is counted from it, and an echo is known by it (R2, R6)."""
        if not unit_ids:
            return ()
        key = self.presence.scope_key
        noted = self._read(lambda reader: reader.noted_uses(unit_ids, key))
        new = [unit_id for unit_id in unit_ids if unit_id not in noted]
        if not new:
            return ()
        try:
            self._act(lambda act: act.record(EventType.RECALLED, {"units": new}))
        except StoreUnavailable as error:
            return (f"The store can't be written, so this recall was not recorded: {error.message}",)
        return ()

    # Shared by the verbs

    def _stored(self, unit_id: str) -> Unit:
        """The unit as it is stored, if this seat may see it."""
        unit = self._read(lambda reader: reader.unit(checked_id(unit_id, "a unit's id")))
        if unit is None or unit.scope.key not in self.presence.visible_keys:
            raise NotFound(f"No unit {unit_id!r} here.", hint="Check the id, and that the seat's scope can see it.")
        return unit

    def _aged(self, unit: Unit) -> Unit:
        """The unit with its confidence as of now; nothing is written by reading (R7)."""
        now = confidence_at(unit.trust, self._memory._clock(), self._memory.config.trust)
        return unit if now == unit.trust.confidence else replace(unit, trust=replace(unit.trust, confidence=now))

    def _current(self, answered: Stored | Refused) -> Stored | Refused:
        if isinstance(answered, outcome.Stored):
            return replace(answered, unit=self._aged(answered.unit))
        return answered

    def _reason(self, reason: str) -> str:
        return checked_text(reason, "The reason", _REASON_BYTES_MAX)

    def _head(self) -> str | None:
        """The commit checked out where the seat is, if it is in a repository."""
        return None if self.presence.root is None else git.head(self.presence.root)


def _entry(given: Entry | Mapping[str, Any] | tuple[str, str]) -> Entry:
    if isinstance(given, Entry):
        return given
    try:
        return Entry(*given) if isinstance(given, tuple) else Entry(**given)
    except TypeError as error:
        raise InvalidInput(
            f"{given!r} is no log entry: {error}.", hint='Use ("thought", "text") or Entry(...).'
        ) from None
