"""The answers of the operator's verbs: reflection, an analysis, maintenance, erasure, undoing an actor, moving."""

from __future__ import annotations

from mnemarch.model.caller import Actor, Scope
from mnemarch.model.unit import Unit
from mnemarch.model.value import Frozen


class Pruned(Frozen):
    """What retention archived, or would in a dry run, and how many candidates it kept."""

    units: tuple[str, ...]
    kept: int
    dry_run: bool


class Reflected(Frozen):
    """What a reflection made of so many episodes: the lessons that are new or changed, and those that it retired.

    `changed` counts the former in a dry run too; `unchanged` ones stand as they did. `complete`: no budget ended it;
    if one did, the next goes on.
    """

    episodes: int
    lessons: tuple[Unit, ...]
    retired: tuple[Unit, ...]
    changed: int
    unchanged: int
    complete: bool
    dry_run: bool = False


class Step(Frozen):
    """One step of a maintenance: whether it was done, and what came of it or what went wrong."""

    name: str
    ok: bool
    says: str
    seconds: float


class Maintained(Frozen):
    """What a maintenance did, step by step, or would do in a dry run."""

    steps: tuple[Step, ...]
    dry_run: bool

    @property
    def ok(self) -> bool:
        return all(step.ok for step in self.steps)


class Cognified(Frozen):
    """What a model analysed: the episodes it added to, the skills and proposals that came of it, and what it cost.

    `waiting` tasks are as the rules analysed them. `stopped` says why, if not all that were chosen went through.
    """

    episodes: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    proposed: tuple[str, ...] = ()
    waiting: int = 0
    tokens: int = 0
    money: float = 0.0
    stopped: str = ""


class Copy(Frozen):
    """Another place with an erased text: a unit or an entry of the log, what kind of thing, where, and by whom."""

    id: str
    what: str
    scope: Scope
    actor: Actor | None
    text: str


class Erased(Frozen):
    """What an erasure removed, or with `dry_run` would remove: units, payloads of the log; and the files it cleaned.

    `copies` are the places that still have the text: those that the caller may read and erase, and nothing of others.
    """

    units: tuple[str, ...]
    events: int
    files: int = 0
    copies: tuple[Copy, ...] = ()
    dry_run: bool = False
    # Where the text may still be, out of the store's reach.
    kept: str = ""


class Fate(Frozen):
    """What undoing an actor does to a unit: it goes, or it stays because of `why`."""

    unit_id: str
    label: str
    text: str
    why: str = ""


class Undone(Frozen):
    """What undoing an actor retired, or with `dry_run` would retire; reverted by its `id`.

    Units that rest on the actor alone go, others are kept with the reason; `restored` are units of others that it had
    retired, approved or judged alone, and that are again what they were without it. `claims` are those that waited in
    the inbox, `requests` those for decisions, `attempts` the failures that no longer count, `rules` those of code that
    nobody else bore out, `votes` those on habits of the project.
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
    """What a copy brought into its target: `events` now, `skipped` were there from an earlier one.

    Both stores have the same heads of `streams` and one `digest` of everything made of the log. `behind` counts what
    was written to the source since.
    """

    events: int
    skipped: int
    streams: int
    digest: str
    behind: int = 0


class Problem(Frozen):
    """What could not be read of something imported, and where it stands: a line, an item, a file."""

    place: str
    says: str


class ImportedClaims(Frozen):
    """What an import took as claims, or with `dry_run` would take; `id` names them in the inbox.

    `known` ones are here already. `left_out` ones are of other kinds, were rejected here, or repeat recalled memory.
    `replacing` are among the `units`: their source changed them since an earlier import. `texts` are the first ones.
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
