"""The answers of operators' verbs: reflection, analysis, maintenance, erasure, undoing an actor, copies, imports."""

from __future__ import annotations

from mnemarch.model.caller import Actor, Scope
from mnemarch.model.unit import Unit
from mnemarch.model.value import Frozen


class Pruned(Frozen):
    """The units that retention archived, or would archive in a dry run, and the number of candidates that it kept."""

    units: tuple[str, ...]
    kept: int
    dry_run: bool


class Reflected(Frozen):
    """The result of a reflection on `episodes` episodes: the new or changed lessons, and the retired ones.

    `changed` counts the new or changed lessons, in a dry run too. `complete` is false if a budget ended the
    reflection; the next one continues.
    """

    episodes: int
    lessons: tuple[Unit, ...]
    retired: tuple[Unit, ...]
    changed: int
    unchanged: int
    complete: bool
    dry_run: bool = False


class Step(Frozen):
    """One step of a maintenance: whether it succeeded, and its result or its error."""

    name: str
    ok: bool
    says: str
    seconds: float


class Maintained(Frozen):
    """The steps of a maintenance, or the steps that a dry run would take."""

    steps: tuple[Step, ...]
    dry_run: bool

    @property
    def ok(self) -> bool:
        return all(step.ok for step in self.steps)


class Cognified(Frozen):
    """The result of a model's analysis: the episodes that it extended, new skills and proposals, and the cost.

    `waiting` counts tasks that have only the analysis of the rules. `stopped` says why the analysis ended early, if so.
    """

    episodes: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    proposed: tuple[str, ...] = ()
    waiting: int = 0
    tokens: int = 0
    money: float = 0.0
    stopped: str = ""


class Copy(Frozen):
    """Another place that holds an erased text: a unit or a log entry, with its kind, scope and actor."""

    id: str
    what: str
    scope: Scope
    actor: Actor | None
    text: str


class Erased(Frozen):
    """The units, log payloads and files that an erasure removed or cleaned, or with `dry_run` would.

    `copies` are places that still hold the text. It lists only places that the caller may read and erase.
    """

    units: tuple[str, ...]
    events: int
    files: int = 0
    copies: tuple[Copy, ...] = ()
    dry_run: bool = False
    # Places outside the store that may still hold the text.
    kept: str = ""


class Fate(Frozen):
    """The effect of undoing an actor on a unit: it is retired, or kept because of `why`."""

    unit_id: str
    label: str
    text: str
    why: str = ""


class Undone(Frozen):
    """The result of undoing an actor, or with `dry_run` the result it would have. `id` reverts it.

    `retired` units rest on the actor alone; `kept` ones have a reason to stay. `restored` are units of others that the
    actor alone had retired, approved or judged; that effect is removed. The counts are of claims in the inbox, requests
    for decisions, failed `attempts` that no longer count, code `rules` that nobody else confirmed, and `votes` on
    habits of the project.
    """

    id: str | None
    actor: Actor
    retired: tuple[Fate, ...]
    kept: tuple[Fate, ...]
    restored: tuple[Fate, ...] = ()
    claims: int = 0
    requests: int = 0
    attempts: int = 0
    rules: int = 0
    votes: int = 0
    dry_run: bool = False
    reverted: bool = False


class Copied(Frozen):
    """The result of copying a store: `events` were copied, and `skipped` ones existed from an earlier copy.

    Both stores have the same heads of `streams`, and the same `digest` of the projections. `behind` counts events that
    were written to the source since.
    """

    events: int
    skipped: int
    streams: int
    digest: str
    behind: int = 0


class Problem(Frozen):
    """A part of an import that could not be read: the place (a line, an item, a file), and the error."""

    place: str
    says: str


class ImportedClaims(Frozen):
    """The claims that an import took, or with `dry_run` would take. `id` names them in the inbox.

    `known` counts claims that exist already. `left_out` counts those of other kinds, those rejected here, and those
    that repeat recalled memory. `replacing` counts the `units` that their source changed since an earlier import.
    `texts` are the first texts.
    """

    id: str
    units: int
    known: int
    left_out: int
    replacing: int = 0
    format: str = ""
    texts: tuple[str, ...] = ()
    redacted: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    dry_run: bool = False
