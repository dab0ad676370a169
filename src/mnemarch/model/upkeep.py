"""What the program does by itself: what a reflection, a model's analysis and a maintenance answer."""

from __future__ import annotations

from mnemarch.model.unit import Unit
from mnemarch.model.value import value


@value
class Reflected:
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


@value
class Step:
    """One step of a maintenance: whether it was done, and what came of it or what went wrong."""

    name: str
    ok: bool
    says: str
    seconds: float


@value
class Maintained:
    """What a maintenance did, step by step, or would do in a dry run."""

    steps: tuple[Step, ...]
    dry_run: bool

    @property
    def ok(self) -> bool:
        return all(step.ok for step in self.steps)


@value
class Cognified:
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
