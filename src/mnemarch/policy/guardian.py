"""What the guardian says of a proposal (D11, R12), and what a change of a decision reaches (D10-D14).

Both come from strength and explicit relations alone, never from text, and are the same every time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from mnemarch.model.caller import Level
from mnemarch.model.decision import Decision, GuardianVerdict, Impact, ImpactNode, Relation, RelationType, Strength
from mnemarch.model.outcome import Verdict
from mnemarch.text import words

_EVERYWHERE = "global"
_NAMED_CHARS = 80


def judged(
    strength: Strength,
    base: Decision | None,
    constraining: Sequence[Decision],
    reached: Sequence[Decision],
    *,
    domain: str | None = None,
    level: Level | None = None,
) -> GuardianVerdict:
    """`base` is what the proposal revises, `constraining` what binds it, `reached` what its change would touch.

    `domain` and `level` are where it would hold, if not where its base does.
    """
    against: list[tuple[Verdict, str, str]] = []
    if base is not None:
        if base.strength is Strength.AXIS:
            against.append((Verdict.BLOCK, f"It revises an axis: {_named(base)}.", base.id))
        elif base.strength is Strength.LOCK:
            against.append((Verdict.WARN, f"It revises a lock: {_named(base)}.", base.id))
        if strength < base.strength:
            weaker = f"It would stand weaker than what it replaces: {strength} instead of {base.strength}."
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
    """The same of taking a decision out of force: what goes stands weaker than anything that could replace it."""
    against = list(_bonds(constraining))
    if base.strength > Strength.NORMAL:
        firm = "an axis" if base.strength is Strength.AXIS else "a lock"
        against.insert(0, (Verdict.BLOCK, f"It takes {firm} out of force: {_named(base)}.", base.id))
    return _verdict(against)


def _bonds(constraining: Sequence[Decision]) -> Iterator[tuple[Verdict, str, str]]:
    for other in constraining:
        if other.strength is Strength.AXIS:
            yield Verdict.BLOCK, f"An axis constrains it: {_named(other)}.", other.id
        elif other.strength is Strength.LOCK:
            yield Verdict.WARN, f"A lock constrains it: {_named(other)}.", other.id


def _verdict(against: Sequence[tuple[Verdict, str, str]]) -> GuardianVerdict:
    """The worst of what was said, with all of it."""
    verdicts = [verdict for verdict, _, _ in against]
    worst = next((verdict for verdict in (Verdict.BLOCK, Verdict.WARN) if verdict in verdicts), Verdict.ALLOW)
    return GuardianVerdict(
        type=worst,
        reasons=tuple(dict.fromkeys(reason for _, reason, _ in against)),
        evidence=tuple(dict.fromkeys(unit_id for _, _, unit_id in against)),
    )


def _losses(base: Decision, domain: str | None, level: Level | None) -> Iterator[str]:
    """Where it would hold no longer."""
    if domain not in (None, base.domain, _EVERYWHERE):
        yield f"It would hold in domain {domain} alone, and no longer in {base.domain}."
    if level is not None and level < base.unit.level:
        yield f"It would hold at {level} scope alone, and no longer in the whole {base.unit.level}."


def _named(decision: Decision) -> str:
    return f'"{words.in_a_line(decision.text, _NAMED_CHARS)}" ({decision.id}, version {decision.version})'


# What a change of one decision reaches: never endless

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
                    id=other, path=paths[other], relation=relation.type, source=relation.source, target=relation.target
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
