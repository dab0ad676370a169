"""What a graph is made of, as its users see it (A3, A18, A19), and what a search or the end of a session gives."""

from __future__ import annotations

from mnemarch.errors import InvalidInput
from mnemarch.model.closed import Names
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from typing import Any, TypeVar

    T = TypeVar("T", bound="Names")


class NodeType(Names):
    QUERY = "query"
    ANSWER = "answer"
    FEEDBACK = "feedback"
    ENTITY = "entity"


class EdgeType(Names):
    SIMILAR_TO = "similar_to"
    RESPONDED_WITH = "responded_with"
    HAS_FEEDBACK = "has_feedback"
    REFERS_TO_ENTITY = "refers_to_entity"


def parsed(vocabulary: type[T], given: Any, what: str) -> T:
    """The member of a closed vocabulary that `given` names."""
    try:
        return vocabulary(given)
    except ValueError:
        known = ", ".join(str(member) for member in vocabulary)
        raise InvalidInput(f"{given!r} is no {what}.", hint=f"Use one of: {known}.") from None


@value
class Weights:
    """How often a node came up, and what feedback it got in all."""

    repeat: float
    feedback: float


@value
class Node:
    """One node as it stands; `about` holds what only its type has: a feedback's label, an entity's names.

    `embedding` is there if one node was asked for, it is a question, and its vector was needed so far.
    """

    id: str
    type: NodeType
    text: str | None
    canonical_key: str | None
    created_at: datetime
    last_access: datetime
    weights: Weights
    degree: int
    rank: float
    pinned: bool = False
    about: Mapping[str, Any] = {}
    embedding: Mapping[Any, float] | None = None


@value
class Edge:
    """One edge; its id is `from::type::to`."""

    id: str
    from_: str
    to: str
    type: EdgeType
    weight: float
    created_at: datetime
    last_access: datetime


@value
class GraphHit:
    """A question like the one that was asked; `from_` says in which graph: "session" or "agent"."""

    id: str
    score: float
    sim: float
    text: str
    canonical_key: str
    from_: str = ""


@value
class GraphStats:
    nodes: int
    edges: int


@value
class Promoted:
    """A question of a session in the agent's graph; `merged`: it, or one like it, was there already."""

    text: str
    session_node: str
    agent_node: str
    merged: bool


@value
class Finalized:
    """What the end of a session left: what went to the agent's graph, what was lowered there, and the checkpoint."""

    session_id: str
    promoted: tuple[Promoted, ...] = ()
    lowered: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    checkpoint: str | None = None
