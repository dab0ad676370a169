"""The guardian's verdict on a proposal (D11, R12), and the impact of a change of a decision (D10-D14).

Both are deterministic. They depend only on strengths and explicit relations, never on text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from mnemarch.model.caller import Level
from mnemarch.model.decision import Decision, GuardianVerdict, Impact, ImpactNode, Relation, RelationType, Strength
from mnemarch.model.outcome import Verdict
from mnemarch.text import words

_EVERYWHERE = "global"
_NAMED_CHARS = 80
# The verdict on a change against a firm decision, and its name.
_FIRM = {Strength.AXIS: (Verdict.BLOCK, "an axis"), Strength.LOCK: (Verdict.WARN, "a lock")}


def judged(
    strength: Strength,
    base: Decision | None,
    constraining: Sequence[Decision],
    reached: Sequence[Decision],
    *,
    domain: str | None = None,
    level: Level | None = None,
) -> GuardianVerdict:
    """The guardian's verdict on a proposed decision.

    `base` is the decision that it revises. `constraining` are the decisions that bind it, and `reached` those that its
    change would reach. `domain` and `level` say where it would hold, if that differs from its base.
    """
    against: list[tuple[Verdict, str, str]] = []
    if base is not None:
        if base.strength in _FIRM:
            verdict, firm = _FIRM[base.strength]
            against.append((verdict, f"It revises {firm}: {_named(base)}.", base.id))
        if strength < base.strength:
            weaker = f"It would be weaker than what it replaces: {strength} instead of {base.strength}."
            against.append((Verdict.BLOCK, weaker, base.id))
        if base.strength > Strength.NORMAL:
            against += [(Verdict.WARN, loss, base.id) for loss in _losses(base, domain, level)]
    against += _bonds(constraining)
    against += [
        (Verdict.WARN, f"Its change reaches the {other.strength} {_named(other)}.", other.id)
        for other in reached
        if other.strength > Strength.NORMAL
    ]
    return _verdict(against)


def parting(base: Decision, constraining: Sequence[Decision]) -> GuardianVerdict:
    """The verdict on taking a decision out of force. An axis or a lock blocks it, as weakening one would."""
    against = list(_bonds(constraining))
    if base.strength in _FIRM:
        _, firm = _FIRM[base.strength]
        against.insert(0, (Verdict.BLOCK, f"It takes {firm} out of force: {_named(base)}.", base.id))
    return _verdict(against)


def _bonds(constraining: Sequence[Decision]) -> Iterator[tuple[Verdict, str, str]]:
    for other in constraining:
        if other.strength in _FIRM:
            verdict, firm = _FIRM[other.strength]
            yield verdict, f"{firm.capitalize()} constrains it: {_named(other)}.", other.id


def _verdict(against: Sequence[tuple[Verdict, str, str]]) -> GuardianVerdict:
    """The most severe verdict, with all reasons and the decisions that gave them."""
    verdicts = [verdict for verdict, _, _ in against]
    worst = next((verdict for verdict in (Verdict.BLOCK, Verdict.WARN) if verdict in verdicts), Verdict.ALLOW)
    return GuardianVerdict(
        type=worst,
        reasons=tuple(dict.fromkeys(reason for _, reason, _ in against)),
        evidence=tuple(dict.fromkeys(unit_id for _, _, unit_id in against)),
    )


def _losses(base: Decision, domain: str | None, level: Level | None) -> Iterator[str]:
    """Sentences about the domain and the level that the revision would no longer cover."""
    if domain not in (None, base.domain, _EVERYWHERE):
        yield f"It would apply only in domain {domain}, and no longer in {base.domain}."
    if level is not None and level < base.unit.level:
        yield f"It would apply only at {level} scope, and no longer in the whole {base.unit.level}."


def _named(decision: Decision) -> str:
    return f'"{words.in_a_line(decision.text, _NAMED_CHARS)}" ({decision.id}, version {decision.version})'


# Impact: a bounded search

# A change travels from source to target along these relations (`A CONSTRAINS B`: changing A reaches B), and from
# target to source along all others.
_WITH_IT = frozenset({RelationType.CONSTRAINS})
_ASKED_AT_ONCE = 200


def reached(relation: Relation, root: str) -> str | None:
    """The decision at the other end of a relation, if a change of `root` travels along it."""
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
    """Every decision that a change of `root` reaches, nearest first, each once and with one shortest path.

    `relations_of` returns the relations of some decisions. `is_seen` returns those decisions that this reader may see.
    The search is breadth first: each step asks once for the relations of all decisions at the same distance. A path
    ends at a decision that was reached before, or at a limit.
    """
    paths: dict[str, tuple[str, ...]] = {root: (root,)}
    nodes: list[ImpactNode] = []
    edge = [root]
    for distance in range(depth_max + 1):
        steps = _steps(edge, relations_of(edge), paths)
        edge = []
        for other in _seen(steps, is_seen):
            if distance == depth_max:
                return Impact(nodes=tuple(nodes), cut=f"the search ended after {depth_max} steps")
            if len(nodes) >= nodes_max:
                return Impact(nodes=tuple(nodes), cut=f"more than {nodes_max} decisions are reached")
            before, relation = steps[other]
            path = paths[other] = (*paths[before], other)
            nodes.append(ImpactNode(other, path, relation.type, relation.source, relation.target))
            edge.append(other)
        if not edge:
            break
    return Impact(nodes=tuple(nodes))


def _seen(others: Iterable[str], is_seen: Callable[[Sequence[str]], set[str]]) -> Iterator[str]:
    """The decisions that the reader may see, in order. They are asked for in batches, as the caller consumes them."""
    left = list(others)
    for start in range(0, len(left), _ASKED_AT_ONCE):
        some = left[start : start + _ASKED_AT_ONCE]
        seen = is_seen(some)
        yield from (other for other in some if other in seen)


def _steps(
    edge: Sequence[str], relations: Iterable[Relation], paths: dict[str, tuple[str, ...]]
) -> dict[str, tuple[str, Relation]]:
    """The decisions that one step from `edge` newly reaches, each with its predecessor and their relation."""
    at = {root: number for number, root in enumerate(edge)}
    newly_reached: dict[str, tuple[str, Relation]] = {}
    for relation in sorted(relations, key=lambda one: (one.type, one.source, one.target)):
        for root in dict.fromkeys((relation.source, relation.target)):
            other = reached(relation, root) if root in at else None
            if other is None or other in paths:
                continue
            if other not in newly_reached or at[root] < at[newly_reached[other][0]]:
                newly_reached[other] = (root, relation)
    return newly_reached
