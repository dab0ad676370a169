"""Actors, scopes (task < worktree < project < org), and callers, which are actors in scopes (G5, G22, R3)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from mnemarch.errors import Hint, InvalidInput
from mnemarch.model.json_text import to_json
from mnemarch.model.stamps import blake2b
from mnemarch.model.value import Frozen, Names, Ranks, member_of

GRAPH_PREFIX = "graph:"


class ActorKind(Names):
    AGENT = "agent"
    ORCHESTRATOR = "orchestrator"
    HUMAN = "human"
    SYSTEM = "system"


class Actor(Frozen):
    """An agent, an orchestrator, a human or the system itself (G22). Its text form is `kind:id`."""

    kind: ActorKind
    id: str

    def __check__(self) -> None:
        object.__setattr__(self, "kind", member_of(ActorKind, self.kind, "kind of actor"))
        checked_id(self.id, "an actor's id")

    @staticmethod
    @lru_cache(maxsize=1024)
    def parse(text: str) -> Actor:
        kind, separator, name = str(text).partition(":")
        if not separator:
            raise InvalidInput(f"{text!r} is not an actor.", hint="Write kind:id, for example agent:coder-1.")
        return Actor(member_of(ActorKind, kind, "kind of actor"), name)

    from_json = parse

    def to_json(self) -> str:
        return str(self)

    @classmethod
    def agent(cls, id: str) -> Actor:
        return cls(ActorKind.AGENT, id)

    @classmethod
    def orchestrator(cls, id: str) -> Actor:
        return cls(ActorKind.ORCHESTRATOR, id)

    @classmethod
    def human(cls, id: str) -> Actor:
        return cls(ActorKind.HUMAN, id)

    @classmethod
    def system(cls, id: str = "mnemarch") -> Actor:
        return cls(ActorKind.SYSTEM, id)

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}"


def checked_id(id: object, what: str) -> str:
    """Return `id` if it is a non-empty string that UTF-8 can encode. No character in it has a special meaning."""
    says, hint = "must be a non-empty string, not", "Give it a name."
    try:
        if isinstance(id, str) and id.strip():
            id.encode()
            return id
    except UnicodeEncodeError:
        says, hint = "is not valid Unicode:", "Pass decoded text."
    raise InvalidInput(f"{what[0].upper()}{what[1:]} {says} {id!r}.", hint=hint)


GATE = Actor.orchestrator("gate")
# The name of the doctor's own sessions, tasks and places, where nobody works.
DOCTOR = "mnemarch-doctor"


class Level(Ranks):
    TASK = 1
    WORKTREE = 2
    PROJECT = 3
    ORG = 4

    @classmethod
    def parse(cls, name: str | int | Level) -> Level:
        if type(name) is cls:
            return name
        try:
            return cls[name.upper()] if isinstance(name, str) else cls(name)
        except (KeyError, TypeError, ValueError):
            raise InvalidInput(f"{name!r} is not a level.", hint="Use one of: task, worktree, project, org.") from None

    from_json = parse

    def to_json(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return self.name.lower()


def can_promote(source: Level | str, target: Level | str) -> bool:
    """Whether a promotion goes strictly upward (G6). It may skip a level."""
    return Level.parse(source) < Level.parse(target)


class Scope(Frozen):
    """An address `(org, project, worktree, task)`. Its level is the narrowest segment that is set."""

    org: str = "default"
    project: str | None = None
    worktree: str | None = None
    task: str | None = None

    def __check__(self) -> None:
        checked_id(self.org, "an org")
        for name in ("project", "worktree", "task"):
            segment = getattr(self, name)
            if segment is not None:
                checked_id(segment, f"a {name}")
        if self.project is None and (self.worktree or self.task):
            raise InvalidInput("A worktree or task needs its project.", hint=Hint("name the project"))

    @property
    def level(self) -> Level:
        if self.task is not None:
            return Level.TASK
        if self.worktree is not None:
            return Level.WORKTREE
        return Level.PROJECT if self.project is not None else Level.ORG

    def at(self, level: Level) -> Scope:
        """This address cut off at `level`."""
        level = Level.parse(level)
        if level < self.level or (level is Level.WORKTREE and self.worktree is None):
            raise InvalidInput(f"{self} has no {level}.", hint=Hint("name the level", level=level))
        return _scope_of(
            self.org,
            self.project if level <= Level.PROJECT else None,
            self.worktree if level <= Level.WORKTREE else None,
            self.task if level <= Level.TASK else None,
        )

    @property
    def visible(self) -> tuple[Scope, ...]:
        """The scopes that a reader in this scope may see, narrowest first: its own task, worktree, project and org."""
        narrowest_first = zip(Level, self.segments[::-1], strict=True)
        return tuple(self.at(level) for level, segment in narrowest_first if segment is not None)

    @property
    def segments(self) -> list[str | None]:
        return [self.org, self.project, self.worktree, self.task]

    @property
    def key(self) -> str:
        """A hash that identifies this address. It is unambiguous for all characters in the segments."""
        return _key_of(self.org, self.project, self.worktree, self.task)

    @staticmethod
    def of(segments: Sequence[str | None]) -> Scope:
        """The scope with these segments. Scopes are cached, since a process uses the same few repeatedly."""
        return _scope_of(*segments)

    from_json = of

    def to_json(self) -> list[str | None]:
        return self.segments

    def __str__(self) -> str:
        return " / ".join(segment for segment in self.segments if segment is not None)


@lru_cache(maxsize=1024)
def _key_of(*segments: str | None) -> str:
    return blake2b(to_json(segments).encode(), digest_size=16).hexdigest()


@lru_cache(maxsize=1024)
def _scope_of(*segments: str | None) -> Scope:
    return Scope(*segments)  # type: ignore[arg-type]


class Stream(Frozen):
    """One hash chain of the log: that of a project, or of an org itself.

    `writer` is set in stores where each clone writes a chain of its own.
    """

    org: str
    project: str | None
    writer: str = ""

    # Written out for speed: streams are looked up on every append.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self._name == other._name

    def __hash__(self) -> int:
        return hash((self.org, self.project, self.writer))

    @property
    def _name(self) -> tuple[str, str | None, str]:
        return self.org, self.project, self.writer

    @property
    def shared(self) -> Stream:
        """The stream of the project or org, without a writer."""
        return Stream(self.org, self.project) if self.writer else self

    def __str__(self) -> str:
        named = self.org if self.project is None else f"{self.org} / {self.project}"
        return f"{named} ({self.writer})" if self.writer else named


class Caller:
    """An actor in a scope, in a session, at a working tree. Its keys are computed once, since every act needs them."""

    __slots__ = ("actor", "root", "scope", "scope_key", "session", "stream", "visible_keys")

    def __init__(self, actor: Actor, scope: Scope, session: str | None = None, root: str | None = None) -> None:
        self.actor = actor
        self.scope = scope
        self.session = None if session is None else checked_id(session, "a session")
        self.root = root
        self.stream = Stream(scope.org, scope.project)
        self.scope_key = scope.key
        self.visible_keys = tuple(seen.key for seen in scope.visible)

    @property
    def inspects(self) -> bool:
        """Whether this caller may inspect all worktrees and tasks of its project: a person or an orchestrator (R3)."""
        return self.scope.project is not None and self.actor.kind in {ActorKind.HUMAN, ActorKind.ORCHESTRATOR}

    def may_read(self, scope: Scope) -> bool:
        """Whether content of this scope is visible to this caller, or open to its inspection."""
        is_below = (scope.org, scope.project) == (self.scope.org, self.scope.project)
        return scope.key in self.visible_keys or (self.inspects and is_below)

    def graph_subject(self, session: str | None = None) -> str:
        """The log subject of the graph of a session or, without one, of this actor's graph in the project."""
        named = to_json([self.scope.org, self.scope.project, str(self.actor), session])
        return GRAPH_PREFIX + blake2b(named.encode(), digest_size=16).hexdigest()

    @property
    def task_key(self) -> str | None:
        return self.scope_key if self.scope.task is not None else None
