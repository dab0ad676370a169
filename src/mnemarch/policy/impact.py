"""What a change of one decision reaches (D10-D14, R12): explicit relations only, never text, never endless. Pure."""

from __future__ import annotations

from mnemarch.model.decision import Impact, ImpactNode, RelationType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from mnemarch.model.decision import Relation

# Of these a change travels from source to target (`A CONSTRAINS B`: changing A reaches B), of all others back.
_WITH_IT = frozenset({RelationType.CONSTRAINS})
_ASKED_AT_ONCE = 200


def reached(relation: Relation, root: str) -> str | None:
    """The other side of a relation, if a change of `root` travels along it."""
    if relation.type in _WITH_IT:
        return relation.target if relation.source == root else None
    return relation.source if relation.target == root else None


def impact(
    root: str,
    relations_of: Callable[[Sequence[str]], Iterable[Relation]],
    is_seen: Callable[[Sequence[str]], set[str]],
    *,
    depth_max: int,
    nodes_max: int,
) -> Impact:
    """Every decision that a change of `root` reaches, nearest first, each once and by one shortest path.

    `relations_of` gives the relations at some decisions, `is_seen` those of some that this reader may be told of. Each
    step asks once for the relations of all decisions at the same distance, and no further than a limit lets it; a
    decision met again ends that path.
    """
    paths: dict[str, tuple[str, ...]] = {root: (root,)}
    nodes: list[ImpactNode] = []
    edge = [root]
    for _ in range(depth_max):
        steps = _steps(edge, relations_of(edge), paths)
        edge = []
        for other in _seen(steps, is_seen):
            if len(nodes) >= nodes_max:
                return Impact(nodes=tuple(nodes), cut=f"more than {nodes_max} decisions are reached")
            before, relation = steps[other]
            paths[other] = (*paths[before], other)
            nodes.append(
                ImpactNode(
                    id=other,
                    path=paths[other],
                    relation=relation.type,
                    source=relation.source,
                    target=relation.target,
                )
            )
            edge.append(other)
        if not edge:
            return Impact(nodes=tuple(nodes))
    beyond = _steps(edge, relations_of(edge), paths)
    is_cut = next(_seen(beyond, is_seen), None) is not None
    return Impact(nodes=tuple(nodes), cut=f"the search ended {depth_max} steps away" if is_cut else None)


def _seen(others: Iterable[str], is_seen: Callable[[Sequence[str]], set[str]]) -> Iterator[str]:
    """Those that may be told of, in order; asked about as far as somebody wants to know."""
    left = list(others)
    for start in range(0, len(left), _ASKED_AT_ONCE):
        some = left[start : start + _ASKED_AT_ONCE]
        seen = is_seen(some)
        yield from (other for other in some if other in seen)


def _steps(
    edge: Sequence[str], relations: Iterable[Relation], known: dict[str, tuple[str, ...]]
) -> dict[str, tuple[str, Relation]]:
    """What is reached from the edge in one step and was not before, with where from and by which relation."""
    at = {root: number for number, root in enumerate(edge)}
    found: dict[str, tuple[str, Relation]] = {}
    for relation in sorted(relations, key=lambda one: (one.type, one.source, one.target)):
        for root in dict.fromkeys((relation.source, relation.target)):
            other = reached(relation, root) if root in at else None
            if other is None or other in known:
                continue
            if other not in found or at[root] < at[found[other][0]]:
                found[other] = (root, relation)
    return found
