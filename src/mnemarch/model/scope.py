"""Where something holds: task < worktree < project < org (G5, R3)."""

from __future__ import annotations

from functools import lru_cache

from mnemarch.errors import Hint, InvalidInput
from mnemarch.model.actor import checked_id
from mnemarch.model.closed import Ranks
from mnemarch.model.digest import blake2b
from mnemarch.model.json_text import to_json
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Level(Ranks):
    TASK = 1
    WORKTREE = 2
    PROJECT = 3
    ORG = 4

    @classmethod
    def parse(cls, name: str | int | Level) -> Level:
        try:
            return cls[name.upper()] if isinstance(name, str) else cls(name)
        except (KeyError, TypeError, ValueError):
            raise InvalidInput(f"{name!r} is no level.", hint="Use one of: task, worktree, project, org.") from None

    def __str__(self) -> str:
        return self.name.lower()


def can_promote(source: Level | str, target: Level | str) -> bool:
    """G6: strictly upward; skipping a level is allowed, sideways and down are not."""
    return Level.parse(source) < Level.parse(target)


@value
class Scope:
    """An address `(org, project, worktree, task)` down to its deepest level set."""

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
        """The addresses a reader here may see, narrowest first: its own task, worktree, project and org."""
        levels = (Level.TASK, Level.WORKTREE, Level.PROJECT, Level.ORG)
        present = (self.task, self.worktree, self.project, self.org)
        return tuple(self.at(level) for level, segment in zip(levels, present, strict=True) if segment is not None)

    @property
    def segments(self) -> list[str | None]:
        return [self.org, self.project, self.worktree, self.task]

    @property
    def key(self) -> str:
        """A fixed-size name of exactly this address: equal only for equal segments, whatever characters they hold."""
        return _key_of(self.org, self.project, self.worktree, self.task)

    @staticmethod
    def of(segments: Sequence[str | None]) -> Scope:
        """The scope with these segments; the few that a process meets again and again are kept."""
        return _scope_of(*segments)

    def __str__(self) -> str:
        return " / ".join(segment for segment in self.segments if segment is not None)


@lru_cache(maxsize=1024)
def _key_of(*segments: str | None) -> str:
    return blake2b(to_json(segments).encode(), digest_size=16).hexdigest()


@lru_cache(maxsize=1024)
def _scope_of(*segments: str | None) -> Scope:
    return Scope(*segments)  # type: ignore[arg-type]
