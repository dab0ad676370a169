"""Who acts: an agent, an orchestrator, a human or the system itself."""

from __future__ import annotations

from functools import lru_cache

from mnemarch.errors import InvalidInput
from mnemarch.model.closed import Names
from mnemarch.model.value import value


class ActorKind(Names):
    AGENT = "agent"
    ORCHESTRATOR = "orchestrator"
    HUMAN = "human"
    SYSTEM = "system"


@value
class Actor:
    """One actor (G22); written `kind:id`."""

    kind: ActorKind
    id: str

    def __check__(self) -> None:
        object.__setattr__(self, "kind", _actor_kind(self.kind))
        checked_id(self.id, "an actor's id")

    @staticmethod
    def parse(text: str) -> Actor:
        return _parsed(text)

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


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Actor:
    kind, separator, name = str(text).partition(":")
    if not separator:
        raise InvalidInput(f"{text!r} names no actor.", hint="Write kind:id, for example agent:coder-1.")
    return Actor(_actor_kind(kind), name)


def _actor_kind(name: str) -> ActorKind:
    try:
        return ActorKind(name)
    except ValueError:
        raise InvalidInput(f"{name!r} is no kind of actor.", hint=f"Use one of: {', '.join(ActorKind)}.") from None


def checked_id(id: object, what: str) -> str:
    """`id` if it can name something: a non-empty string that UTF-8 can hold; every character is only a character."""
    if not isinstance(id, str) or not id.strip():
        raise InvalidInput(
            f"{what[0].upper()}{what[1:]} must be a non-empty string, not {id!r}.", hint="Give it a name."
        )
    try:
        id.encode()
    except UnicodeEncodeError:
        raise InvalidInput(
            f"{what[0].upper()}{what[1:]} is not valid Unicode: {id!r}.", hint="Pass decoded text."
        ) from None
    return id
