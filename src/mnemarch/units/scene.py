"""Reads everything about a test run from the store, the working tree and git, before the write transaction.

Git must not run while the store is locked.
"""

from __future__ import annotations

import os

from mnemarch.code import expectations, git
from mnemarch.code import tests as code_tests
from mnemarch.code.home import repository_around
from mnemarch.lazy import Lazy
from mnemarch.model.caller import Caller, Level
from mnemarch.model.event import Event, EventType
from mnemarch.model.stamps import UTC, datetime
from mnemarch.model.testrun import DEFAULT_BRANCH, Outcome, TestRecord, TestRun, base_name, forms_of, short_name
from mnemarch.model.unit import Citation, CitationKind, Claim, Kind, Status, Unit
from mnemarch.model.value import Frozen, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from mnemarch.code import citing
    from mnemarch.code.codebase import Codebase
    from mnemarch.code.expectations import Expectations
    from mnemarch.code.worktree import WorkTree
    from mnemarch.log.act import Log
    from mnemarch.ports import Store
    from mnemarch.stores.sql.reader import Reader
else:
    citing = Lazy("mnemarch.code.citing")

# Kinds that are not claims: episodes, core memory, items, and the kinds that `seat.decisions` governs.
NOT_CLAIMS = frozenset({Kind.EPISODE, Kind.EVIDENCE, Kind.DECISION, Kind.ANCHOR, Kind.POLICY, Kind.CORE, Kind.ITEM})
# Events that the gate judges and episodes tell. Other events, such as recalls, can be many times as many.
STAGED = (
    EventType.LOGGED,
    EventType.UNIT_REMEMBERED,
    EventType.CLAIM_REFUSED,
    EventType.ATTEMPT_FAILED,
    EventType.ATTEMPTS_CLEARED,
)
# A task may go on for months. These bound the entries that an account tells, and those that are searched for claims.
TOLD_MAX = 200
_LOOKED_THROUGH_MAX = 2_000
# Failing tests whose source is read.
_BODIES_MAX = 10
# Programs whose first argument is a script, and not a file to check.
_INTERPRETERS = frozenset({"sh", "bash", "python", "python3", "node", "ruby"})


class Task(Frozen):
    """The state of a task when it is judged.

    It has the live `claims`, the events of `refused` claims, the ids of units that `helped`, and the last `account`.
    It has the `log` only if an account is wanted or the task failed.
    """

    claims: Sequence[Unit]
    refused: Sequence[Event]
    helped: frozenset[str | None]
    account: Unit | None
    log: Sequence[Event] = ()

    @property
    def refused_claims(self) -> dict[str, Claim]:
        """The refused claims by their events. The next run may accept them."""
        return {event.id: Claim.from_json(event.payload["claim"]) for event in self.refused if event.payload}


class Met(Frozen):
    """What the store says of a run before it is judged; `position` is where the log ended then.

    - `began`: when the task began;
    - `units`: the units that cite a test of the run;
    - `code`: the units that the task met, each with a file that it cites;
    - `cited`: the tests that units cite;
    - `red`: the tests that fail now and failed before the task began, or that the task set aside earlier;
    - `logged`: if there are any of these, what the task logged.
    """

    position: int
    task: Task
    red: Sequence[TestRecord] = ()
    logged: Sequence[Event] = ()
    began: datetime | None = None
    units: Sequence[Unit] = ()
    code: Sequence[tuple[str, str]] = ()
    cited: Sequence[str] = ()


class TestSource(Frozen):
    """The source of a test: when its file was changed in this work, what it names, and what it expects.

    `expects` are digests, to be compared with those that a unit keeps.

    For a check, which is a command that counts as one test, `covers` lists the files and folders that it checks. ""
    stands for the whole tree.
    """

    __test__ = False

    changed_at: datetime | None = None
    names: frozenset[str] = frozenset()
    covers: tuple[str, ...] = ()
    expects: frozenset[str] = frozenset()
    expected: Expectations | None = None


class Scene(Frozen):
    """Where tests ran, and what the working tree says about them.

    - `places`: the worktree, and the default branch if that is checked out;
    - `tree`: a digest of the content that was tested;
    - `sources`: the source of each test that is cited by a unit whose status may rise;
    - `touched`: the ids of units that the task met and whose files this line of work changed;
    - `retaken`: for each unit its citations whose signature changed;
    - `renamed`: the new name of each test that is gone, or None;
    - `fuller`: the whole name of each test that was cited from a subfolder;
    - `set_aside`: failing tests that failed here before the task began, which count for nothing (R2);
    - `bodies`: hashes of the lines of failing tests;
    - `outdated`: the ids of units whose tests expect something else now than when they verified the unit, or than
      when it was claimed.
    """

    places: tuple[str, ...]
    tree: str = ""
    sources: Mapping[str, TestSource] = {}
    touched: frozenset[str] = frozenset()
    retaken: Mapping[str, list[Citation]] = {}
    renamed: Mapping[str, str | None] = {}
    fuller: Mapping[str, str] = {}
    set_aside: frozenset[str] = frozenset()
    bodies: Mapping[str, str] = {}
    outdated: frozenset[str] = frozenset()


def read_scene(store: Store, caller: Caller, codebase: Codebase | None, run: TestRun, *, account: bool) -> Met:
    """The store's data about a run that has just ended. Has the task's log if it failed, or with `account`."""

    def read(reader: Reader) -> Met:
        return _met(reader, caller, codebase, run, account)

    return store.read(lambda reader: reader.together(read))


def _met(reader: Reader, caller: Caller, codebase: Codebase | None, run: TestRun, account: bool) -> Met:
    position, task = reader.position(), task_of(reader, caller, log=account)
    if not account and not run.passed:
        task = replace(task, log=_since_success(reader, caller))
    red = _seen_red(reader, caller, run.named(Outcome.FAIL) if run.witnessed else ())
    logged = task.log
    if red and (not account or len(logged) >= TOLD_MAX):
        logged = reader.events_back(caller.scope_key, types=[EventType.LOGGED], limit=_LOOKED_THROUGH_MAX)
    if codebase is None:
        return Met(position, task, red, logged)
    return Met(
        position,
        task,
        red,
        logged,
        _began_at(reader, caller, codebase),
        units_citing_tests(reader, caller, [result.name for result in run.results]),
        reader.code_met(caller.scope_key),
        reader.tests_cited(caller.visible_keys) if run.witnessed else [],
    )


def _seen_red(reader: Reader, caller: Caller, failed: Sequence[str]) -> list[TestRecord]:
    """The newest witnessed failures of these tests that are older than the task, or that the task set aside."""
    if not failed:
        return []
    records = reader.tests(caller.stream, failed)
    runs = reader.runs_behind(caller.stream, failed, caller.scope_key)
    aside = {event.id: (event.payload or {}).get("set_aside", ()) for event in runs}
    first = next(reader.events_of_scope(caller.scope_key, STAGED, first=1), None)
    return [
        record
        for record in records
        if not record.passed
        and record.witnessed
        and (first is None or record.at < first.recorded_at or record.name in aside.get(record.event_id, ()))
    ]


def task_of(reader: Reader, caller: Caller, *, log: bool) -> Task:
    """The task that the gate judges, with the entries for an account if `log` is true."""
    here = caller.scope_key
    units = units_of_task(reader, caller)
    judged = list(reader.events_of_scope(here, (EventType.CLAIM_REFUSED, EventType.UNIT_USED)))
    return Task(
        claims=[unit for unit in units if unit.kind is not Kind.EPISODE],
        refused=[event for event in judged if event.type is EventType.CLAIM_REFUSED],
        helped=frozenset(event.subject for event in judged if (event.payload or {}).get("helped")),
        account=account_of(units),
        log=told_of(reader, caller) if log else (),
    )


def told_of(reader: Reader, caller: Caller, before: int | None = None) -> list[Event]:
    """The entries for a task's account, oldest first: the first one, which describes the task, and the newest.

    Only entries `before` a position are read.
    """
    first = list(reader.events_of_scope(caller.scope_key, STAGED, first=1))
    newest = reader.events_back(caller.scope_key, before=before, types=STAGED, limit=TOLD_MAX)[::-1]
    return newest if len(newest) < TOLD_MAX else [*first, *newest[1:]]


def newest_first(reader: Reader, scope_key: str, types: Sequence[EventType], limit: int) -> Iterator[Event]:
    """The newest events of a scope, read in growing pages for callers that usually need few."""
    before, page = None, reader.first_page
    while limit > 0:
        events = reader.events_back(scope_key, before=before, types=types, limit=min(page, limit))
        yield from events
        if len(events) < page:
            return
        before, limit, page = events[-1].position, limit - page, page * 4


def _since_success(reader: Reader, caller: Caller) -> list[Event]:
    """The events since the task's last success, oldest first and with the success. A failure is judged by them."""
    from mnemarch.units.account import is_success  # Only a failing run needs it.

    events: list[Event] = []
    for event in newest_first(reader, caller.scope_key, STAGED, TOLD_MAX):
        events.append(event)
        if is_success(event):
            break
    return events[::-1]


def account_of(units: Sequence[Unit]) -> Unit | None:
    """The last account among a task's live units. Other episodes, such as stories about the past, don't count."""
    return next((unit for unit in reversed(units) if unit.kind is Kind.EPISODE and "task_key" in unit.attributes), None)


def units_of_task(reader: Reader, caller: Caller) -> list[Unit]:
    """The live claims of a task, and its accounts."""
    but = NOT_CLAIMS - {Kind.EPISODE}
    return reader.claims_of_scope(caller.scope_key, but=but, kept_at=Level.PROJECT, last=_LOOKED_THROUGH_MAX)


def units_citing_tests(reader: Reader, caller: Caller, names: Iterable[str]) -> list[Unit]:
    """The visible claims that cite one of these tests by any of its names."""
    refs = {form for name in names for form in forms_of(name)}
    return reader.units_citing(caller.visible_keys, CitationKind.TEST, sorted(refs), live_but=NOT_CLAIMS)


def scene_of(log: Log, caller: Caller, codebase: Codebase | None, run: TestRun, met: Met) -> Scene:
    """The scene of a run that has just ended."""
    worktree = caller.scope.worktree
    if codebase is None:
        here = (worktree or DEFAULT_BRANCH,)
        return Scene(places=here, set_aside=_red_before(met, here, None))
    default = git.default_branch(codebase.root)
    is_default = worktree is None or git.head(codebase.root) is None or git.branch(codebase.root) == default
    places = tuple(dict.fromkeys((worktree or DEFAULT_BRANCH, *((DEFAULT_BRANCH,) if is_default else ()))))
    failed = run.named(Outcome.FAIL) if run.witnessed else ()
    ran = {form for result in run.results for form in (result.name, base_name(result.name))}
    since = _Since(codebase, met.began, log, is_default=is_default)
    missing = [name for name in met.cited if name not in ran and code_tests.is_missing(codebase.tree, name)]
    fuller = {name: whole for name in missing if (whole := _only_ending(name, ran)) is not None}
    rising: list[Unit | Claim] = [unit for unit in (*met.units, *met.task.claims) if _may_rise(unit)]
    rising += met.task.refused_claims.values()
    named = {item.ref for said in rising for item in said.citations if item.kind is CitationKind.TEST}
    named |= {name for name in ran if short_name(name) in named}  # A bare name is completed by this run.
    changed = {path for path in {path for _, path in met.code} if since.is_changed(path)}
    return Scene(
        places=places,
        tree=(git.tree_digest(codebase.root) or "") if run.witnessed else "",
        sources=since.sources({*named, *fuller.values()}),
        touched=frozenset(unit_id for unit_id, path in met.code if path in changed),
        retaken={unit.id: citing.retaken(unit.citations, codebase) for unit in met.units} if run.witnessed else {},
        renamed={name: code_tests.renamed_test(codebase, name) for name in missing if name not in fuller},
        fuller=fuller,
        set_aside=_red_before(met, places, codebase.tree),
        bodies={name: body for name in failed[:_BODIES_MAX] if (body := code_tests.body_hash(codebase.tree, name))},
        outdated=frozenset(
            unit.id for unit in met.units if expectations.still_expected(codebase.tree, unit.proof) is False
        ).union(_overtaken(met, codebase.tree)),
    )


def _overtaken(met: Met, tree: WorkTree) -> Iterator[str]:
    """The ids of claims, and of refused claims, whose tests have taken up another value before they verified them."""
    said: dict[str, Unit | Claim] = {unit.id: unit for unit in (*met.units, *met.task.claims) if unit.proof is None}
    said |= met.task.refused_claims
    return (id for id, claim in said.items() if expectations.is_overtaken(tree, claim))


def _red_before(met: Met, places: Sequence[str], tree: WorkTree | None) -> frozenset[str]:
    """The tests that failed in one of these places before the task began and have failed ever since.

    A test that the task is about is not among them: the task has not succeeded while it fails.
    """
    red = {record.name for record in met.red if record.place in places}
    return frozenset(red - _wanted(met.logged, red, tree)) if red else frozenset()


def _wanted(events: Iterable[Event], tests: Collection[str], tree: WorkTree | None) -> set[str]:
    """The tests that a task is about: it was asked for them, runs or edits them, or edits functions that they call."""
    from mnemarch.units.analysis import asked_for, is_edit, is_in, is_named, steps_of

    steps = steps_of(events)
    wanted, asked = asked_for(steps, tests)
    ran = "\n".join(str(step.data.get("command")) for step in steps if step.data.get("command"))
    edits = [step.data for step in steps if is_edit(step)]
    edited = {data.get("path") for data in edits}
    functions = {str(data.get("name")).rpartition(".")[2] for data in edits}
    for number, test in enumerate(sorted(set(tests) - wanted)):
        calls = (
            code_tests.called_in(code_tests.body_of(tree, test))
            if tree is not None and number < _BODIES_MAX
            else frozenset[str]()
        )
        is_called = not functions.isdisjoint(calls) or any(is_in(name, asked) for name in calls)
        if is_called or test.partition("::")[0] in edited or is_named(test, ran):
            wanted.add(test)
    return wanted


def _only_ending(name: str, ran: Iterable[str]) -> str | None:
    """The only test of a run whose full name ends with this name, which was cited from a subfolder. Else None."""
    whole = {base_name(each) for each in ran if base_name(each).endswith(f"/{name}")}
    return whole.pop() if len(whole) == 1 else None


def _may_rise(unit: Unit) -> bool:
    """Whether better evidence can still raise the unit. If not, the sources of its tests need no reading."""
    return unit.status is Status.HYPOTHESIS or (unit.proof is not None and not unit.proof.carries)


def _began_at(reader: Reader, caller: Caller, codebase: Codebase) -> datetime | None:
    """The time of the first log entry of the caller's task. None outside a task.

    In a repository without commits it is the time of the last earlier entry in the project: all later changes are new.
    """
    first = None if caller.task_key is None else next(reader.events_of_scope(caller.scope_key, first=1), None)
    if first is None or codebase.head() is not None or repository_around(codebase.root) is None:
        return None if first is None else first.recorded_at
    earlier = reader.events_back(caller.scope.at(Level.PROJECT), before=first.position, limit=1)
    return earlier[0].recorded_at if earlier else datetime.fromtimestamp(0, UTC)


def sources_of(log: Log, caller: Caller, codebase: Codebase, tests: Iterable[str]) -> dict[str, TestSource]:
    """The sources of these tests, read from the working tree."""
    began = log.store.read(lambda reader: _began_at(reader, caller, codebase))
    is_default = git.branch(codebase.root) == git.default_branch(codebase.root)
    return _Since(codebase, began, log, is_default=is_default).sources(tests)


class _Since:
    """Knows what changed in this work: since the branch left the default one, or on that one since the task began."""

    def __init__(self, codebase: Codebase, began: datetime | None, log: Log, *, is_default: bool) -> None:
        self._codebase = codebase
        self._began = began
        self._now = log.clock()
        # The commands that the project counts as tests.
        self._checks = log.config.witness.test_commands
        self._commit: str | None = None
        if is_default and codebase.head() is not None:
            before = None if began is None else f"--before={began.isoformat()}"
            wanted = ["rev-list", "-1", before, "HEAD"] if before else ["rev-parse", "--verify", "-q", "HEAD~1"]
            self._commit = git.git(codebase.root, wanted) or codebase.head()

    def sources(self, tests: Iterable[str]) -> dict[str, TestSource]:
        sources = {}
        for name in tests:
            check = next((each for each in self._checks if name == each or name.endswith(f"/{each}")), None)
            path = None if check else code_tests.file_of(self._codebase, name)
            if check is not None:
                sources[name] = TestSource(covers=self._covered(name.removesuffix(check).rstrip("/"), check))
            elif path is not None:
                text = code_tests.source_of(self._codebase, name, path)
                expects = expectations.expected_by(self._codebase.tree, name, path)
                expected = expectations.expectations_in(code_tests.body_of(self._codebase.tree, name, path), text)
                # A file from the future, as after a clock was set back, was changed by now.
                changed_at = min(self._modified_at(path) or self._now, self._now) if self.is_changed(path) else None
                names = code_tests.names_in(text, path)
                sources[name] = TestSource(changed_at=changed_at, names=names, expects=expects, expected=expected)
        return sources

    def _covered(self, folder: str, check: str) -> tuple[str, ...]:
        """The existing files and folders that a check names, or else the folder that it runs in."""
        program, *words = check.split()
        named = [word.rpartition("=")[2] for word in (words[1:] if program in _INTERPRETERS else words)]
        paths = [os.path.normpath(os.path.join(folder, word)) for word in named if not os.path.isabs(word)]
        there = [path for path in paths if os.path.exists(os.path.join(self._codebase.root, path))]
        return tuple("" if path == "." else path for path in there or [folder])

    def is_changed(self, path: str) -> bool:
        if self._codebase.head() is not None:
            return self._codebase.is_changed(path, self._commit)
        # Without git, the file's modification time decides.
        modified_at = self._modified_at(path)
        return self._began is not None and modified_at is not None and modified_at >= self._began

    def _modified_at(self, path: str) -> datetime | None:
        try:
            return datetime.fromtimestamp(os.stat(os.path.join(self._codebase.root, path)).st_mtime, UTC)
        except OSError:
            return None
