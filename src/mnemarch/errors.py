"""The errors, each with a hint on what to do.

MnemarchError
├── InvalidInput        the call itself is wrong; nothing was changed
├── NotFound            no such thing, or none that this seat may see
├── NotAllowed          the policy forbids this act to this actor at this level
├── Conflict            somebody else changed it first; carries both versions
├── AnalystFailed       the analyst (a model, or a caller's own analysis) gave nothing usable
└── StoreError
    ├── StoreUnavailable    locked for too long, read-only, disk full, unreachable: nothing half-written
    ├── StoreCorrupt        truncated, damaged, or not a Mnemarch database at all
    └── Incompatible        written by a newer Mnemarch; left untouched
"""

from __future__ import annotations

from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


INTERFACES = ("python", "command line", "tool")


@cache
def advice() -> dict[str, list[str]]:
    """All hints by name, each in the words of the interfaces. The error fills in each `{part}`.

    A hint without words for tools uses those of the command line.
    """
    from mnemarch.lazy import paragraphs_beside

    return paragraphs_beside(__file__, "hints.txt")


class Hint:
    """A hint by its name, with the parts to fill in. `hints.txt` has its words for each interface."""

    __slots__ = ("name", "parts")

    def __init__(self, name: str, **parts: object) -> None:
        self.name = name
        self.parts = parts

    def worded(self, interface: str) -> str:
        known = advice()[self.name]
        words = (known + known[-1:])[INTERFACES.index(interface)]
        for part, content in self.parts.items():
            words = words.replace(f"{{{part}}}", str(content))
        return words


class MnemarchError(Exception):
    """Root of all errors that Mnemarch raises on purpose. `hint` says what to do next in a Python program."""

    def __init__(self, message: str, *, hint: str | Hint = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = hint

    @property
    def hint(self) -> str:
        return self.hint_for("python")

    def hint_for(self, interface: str) -> str:
        """What to do next, in the words of an interface: python, command line or tool."""
        return self.advice if isinstance(self.advice, str) else self.advice.worded(interface)

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()

    def __reduce__(self) -> tuple[Any, ...]:
        # A pool of processes hangs or breaks on an error that it can't pickle. By default, the class would be called.
        return type(self).__new__, (type(self), self.message), self.__dict__


class InvalidInput(MnemarchError):
    """The call itself is wrong: correct it as the hint says and call again."""


class NotFound(MnemarchError):
    """No such thing, or none that this seat may see: check the id and the seat's scope."""


class NotAllowed(MnemarchError):
    """The policy forbids this act: ask an actor that may, or write at a narrower level."""

    def __init__(self, message: str, *, rule: str, hint: str | Hint = "") -> None:
        super().__init__(message, hint=hint)
        self.rule = rule


class Conflict(MnemarchError):
    """Somebody else changed it first: read `current`, decide again, and repeat with its version."""

    def __init__(
        self,
        message: str,
        *,
        hint: str | Hint = "",
        expected_version: int | None = None,
        actual_version: int | None = None,
        current: Any = None,
        proposed: Any = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.expected_version = expected_version
        self.actual_version = actual_version
        self.current = current
        self.proposed = proposed


class AnalystFailed(MnemarchError):
    """The analysis is unusable: hand in another one, or none to let the rules analyse.

    `is_away`: the model did not answer at all. A later attempt may succeed.
    """

    def __init__(self, message: str, *, hint: str | Hint = "", is_away: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.is_away = is_away


class StoreError(MnemarchError):
    """Root of all errors of the store."""


class StoreUnavailable(StoreError):
    """The store can't be reached or written now. Nothing was half-written."""


class StoreCorrupt(StoreError):
    """The store's file is damaged or foreign: restore a backup, or rebuild from an export."""

    def __init__(self, message: str, *, hint: str | Hint = "", event_id: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.event_id = event_id


class Incompatible(StoreError):
    """The store was written by a newer Mnemarch: upgrade Mnemarch; the file was left untouched."""
