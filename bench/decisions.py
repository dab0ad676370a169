"""What decisions cost as they grow: the same questions in a memory of 1,000 and of 100,000, with ten old versions each.

    python -m bench.decisions [--decisions 100000] [--versions 10] [--rounds 200]

Both memories are real ones on disk. They are filled through the store's own transaction (`put_unit` with a standing,
`put_relation`; 5,000 rows a commit) and not through `propose` and `commit`, whose million events would take an hour:
the rows that are read are the same. What is measured goes through the public API. Prints one table, writes
bench/out/decisions.json and exits with 1 if a limit is broken.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from itertools import islice

import mnemarch
from bench.spine import ratio, shown, texts
from mnemarch import Actor, Scope
from mnemarch.decisions import guard
from mnemarch.model.caller import Level
from mnemarch.model.decision import Reason, Relation, RelationType, Strength, VersionKey
from mnemarch.model.stamps import new_id
from mnemarch.model.unit import DecayPolicy, Kind, Provenance, Status, Trust, Unit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from mnemarch.ports import Store
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.stores.sql.transaction import Transaction

HERE = os.path.dirname(__file__)
SMALL = 1_000
AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LEAD = Actor.orchestrator("lead")
SCOPE = Scope(org="acme", project="shop", worktree="main", task="T-1")
WHY = Reason("performance", "so that it stays fast")

# Four domains grow with the memory. What holds everywhere, a small domain with anchors, policies: as many in both.
DOMAINS = ("runtime", "coding", "wms", "ui")
QUIET = "billing"
GLOBALS, QUIETS, POLICIES, ANCHORS = 40, 20, 20, 50
# One axis and two locks in ten.
STRENGTHS = (Strength.AXIS, Strength.LOCK, Strength.LOCK, *[Strength.NORMAL] * 7)

# Each cluster is one cycle after another: a tree of three branches whose leaves all lead back to its top.
CLUSTER = 101
EDGES_OF_CLUSTER = 168
EDGES_MAX = 100_000
BATCH = 5_000

RATIO_MAX = 3.0
LIMITED = ("active(domain)", "load(domain", "in_force")
REACHED = "impact, 100 reached"
IMPACT_MS_MAX = 20.0


class Made:
    """What a memory was filled with. `tops` are decisions that each reach one hundred others."""

    def __init__(self) -> None:
        self.roots: list[str] = []
        self.in_force: list[str] = []
        self.tops: list[str] = []
        self.hub = ""
        self.rows = 0
        self.edges = 0


def unit(id: str, kind: Kind, content: str, *, scope: Scope, domain: str = "global", **more: Any) -> Unit:
    return Unit(
        id=id,
        kind=kind,
        content=content,
        scope=scope,
        domain=domain,
        status=more.pop("status", Status.VERIFIED),
        trust=Trust(confidence=0.6, since=AT, decay_policy=DecayPolicy.MANUAL_ONLY),
        importance=0.5,
        citations=(),
        provenance=(Provenance(actor=LEAD, scope=SCOPE, event_id=id, at=AT),),
        occurred_at=AT,
        recorded_at=AT,
        **more,
    )


def decision_rows(made: Made, count: int, versions: int) -> Iterator[tuple[Unit, VersionKey | None]]:
    """Every version of every decision, one decision after the other: what is in force lies far apart in the file."""
    said = texts(count)
    for number in range(count):
        if number < GLOBALS + QUIETS:
            domain = "global" if number < GLOBALS else QUIET
        else:
            domain = DOMAINS[number % len(DOMAINS)]
        # One in ten is decided for the whole org.
        scope = SCOPE.at(Level.ORG if number % 10 == 3 else Level.PROJECT)
        strength = STRENGTHS[number // len(DOMAINS) % len(STRENGTHS)]
        root = before = new_id()
        made.roots.append(root)
        for version in range(1, versions + 2):
            id = root if version == 1 else new_id()
            standing = VersionKey(root=root, number=version, strength=strength.rank)
            attributes = {
                "root": root,
                "version": version,
                "strength": str(strength),
                "reason": WHY.to_json(),
                "evidence": [root],
            }
            last = version == versions + 1
            yield (
                unit(
                    id,
                    Kind.DECISION,
                    f"{said[number]}, version {version}",
                    scope=scope,
                    domain=domain,
                    status=Status.VERIFIED if last else Status.DEPRECATED,
                    supersedes=None if version == 1 else before,
                    attributes=attributes,
                ),
                standing,
            )
            before = id
        made.in_force.append(before)


def guiding_rows(made: Made) -> Iterator[tuple[Unit, VersionKey | None]]:
    """Policies of the org, and anchors of the quiet domain that lead to decisions of others."""
    for number in range(POLICIES):
        yield unit(new_id(), Kind.POLICY, f"principle {number}", scope=SCOPE.at(Level.ORG)), None
    for number in range(ANCHORS):
        attributes = {"target": made.in_force[-1 - number], "anchor_kind": "gotcha"}
        hint = f"see also {number}"
        yield unit(new_id(), Kind.ANCHOR, hint, scope=SCOPE, domain=QUIET, attributes=attributes), None


def relations(made: Made) -> Iterator[Relation]:
    """Clusters that each reach one hundred from any of theirs, and one hub that all of their tops depend on."""
    types = tuple(RelationType)
    made.hub, *others = made.roots
    edges = 0
    for start in range(0, len(others) - CLUSTER + 1, CLUSTER):
        if edges + EDGES_OF_CLUSTER > EDGES_MAX:
            break
        nodes = others[start : start + CLUSTER]
        made.tops.append(nodes[0])
        # As a change travels: down the tree, and from each leaf to the top.
        steps = [(nodes[(child - 1) // 3], nodes[child]) for child in range(1, CLUSTER)]
        steps += [(leaf, nodes[0]) for leaf in nodes[(CLUSTER - 2) // 3 + 1 :]]
        for number, (changed, reached) in enumerate([*steps, (made.hub, nodes[0])]):
            type = types[number % len(types)]
            source, target = (changed, reached) if type is RelationType.CONSTRAINS else (reached, changed)
            edges += 1
            yield Relation(source=source, type=type, target=target, id=new_id())
    made.edges = edges


def batches(rows: Iterable[Any]) -> Iterator[list[Any]]:
    left = iter(rows)
    while batch := list(islice(left, BATCH)):
        yield batch


def put_units(batch: list[tuple[Unit, VersionKey | None]]) -> Callable[[Transaction], None]:
    def work(transaction: Transaction) -> None:
        for one, standing in batch:
            transaction.put_unit(one, canonical_key=None, topic_key=None, searchable_at=None, version_key=standing)

    return work


def put_relations(batch: list[Relation]) -> Callable[[Transaction], None]:
    def work(transaction: Transaction) -> None:
        for relation in batch:
            transaction.put_relation(relation)

    return work


def filled(store: Store, count: int, versions: int) -> Made:
    made = Made()
    for rows in (decision_rows(made, count, versions), guiding_rows(made)):
        for batch in batches(rows):
            store.write(put_units(batch))
            made.rows += len(batch)
            print(f"\r{made.rows:,} rows", end="", file=sys.stderr)
    for related in batches(relations(made)):
        store.write(put_relations(related))
    print(f", {made.edges:,} relations", file=sys.stderr)
    return made


class Counting:
    """A reader that counts the rows it gives."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.rows: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        asked = getattr(self._reader, name)

        def answer(*given: Any, **named: Any) -> Any:
            found = asked(*given, **named)
            self.rows[name] += len(found) if isinstance(found, list | dict | set) else found is not None
            return found

        return answer


class Bench:
    """One filled memory and every question that is put to it, by name; each gives what it found."""

    def __init__(self, memory: mnemarch.Memory, count: int, versions: int) -> None:
        self._store = memory._engine.store
        self.made = made = filled(self._store, count, versions)
        self.seat = seat = memory.seat(LEAD, SCOPE)
        desk = seat.decisions
        person = memory.seat(Actor.human("ann"), SCOPE).decisions
        given = [desk.add_evidence("The benchmark says so", level="project").id]
        chosen = random.Random(7)
        some = chosen.sample(made.roots, 500)
        later = [one.id for one in chosen.sample(desk.active(DOMAINS[0], limit=10_000)[:-50], 50)]
        tops = made.tops

        def revised(number: int) -> object:
            proposal = person.propose(f"anew {number}", reason=WHY, evidence=given, revises=some[number % len(some)])
            return person.commit(proposal, override="for the benchmark")

        def of(items: list[str], number: int) -> str:
            return items[number % len(items)]

        self.questions: dict[str, Callable[[int], Any]] = {
            "active(domain), a page of 50": lambda number: desk.active(DOMAINS[number % 4]),
            "active(domain), a later page of 50": lambda number: desk.active(DOMAINS[0], after=of(later, number)),
            "load(domain), 200": lambda number: desk.load(DOMAINS[number % 4]),
            "load(domain), small, with anchors": lambda _: desk.load(QUIET),
            "load(domain, around), 200": lambda number: desk.load(DOMAINS[0], around=of(tops, number)),
            "in_force(id)": lambda number: desk.in_force(of(some, number)),
            "recall without a question": lambda number: seat.recall("", domain=DOMAINS[number % 4]).items,
            "history(id)": lambda number: desk.history(of(some, number)),
            "broken_anchors()": lambda _: desk.broken_anchors(),
            REACHED: lambda number: desk.impact(of(tops, number)).nodes,
            "impact of the hub, cut at 1,000": lambda _: desk.impact(made.hub).cut,
            "propose + commit of a revision": revised,
        }

    def rows_of_impact(self) -> int:
        """How many rows are read to find the hundred decisions that one reaches."""

        def work(reader: Reader) -> int:
            counting: Any = Counting(reader)
            radius, _ = guard.blast_radius(counting, self.seat.caller, self.made.tops[0], depth_max=16, nodes_max=1_000)
            assert (len(radius.nodes), radius.cut) == (CLUSTER - 1, None)
            return int(counting.rows.total())

        return self._store.read(work)


def spent_ms(work: Callable[[int], object], number: int) -> float:
    started = time.perf_counter()
    work(number)
    return (time.perf_counter() - started) * 1e3


def measured(small: Bench, large: Bench, rounds: int) -> dict[str, dict[str, float]]:
    """Every question to both memories in turn, so that whatever else the machine does slows both."""
    results: dict[str, dict[str, float]] = {}
    gc.disable()
    for name, ask in large.questions.items():
        floor = small.questions[name]
        for number in range(3):
            found, same = ask(number), floor(number)
            # An answer of another size would be no comparison; what the hub reaches is not the same part of both.
            assert not isinstance(found, list | tuple) or len(found) == len(same), (name, len(found), len(same))
        pairs = [(spent_ms(ask, number), spent_ms(floor, number)) for number in range(3, 3 + rounds)]
        ours, floors = ([pair[side] / 1e3 for pair in pairs] for side in (0, 1))
        results[name] = ratio(ours, floors, limit=RATIO_MAX if name.startswith(LIMITED) else None)
        gc.collect()
    results["impact, 100 reached: p50, ms"] = {"value": results[REACHED]["ours_ms"], "limit": IMPACT_MS_MAX}
    rows = large.rows_of_impact()
    results["impact, 100 reached: rows read / of 1,000"] = {"value": rows / small.rows_of_impact(), "limit": 1.0}
    results["impact, 100 reached: rows read"] = {"value": rows}
    results["rows of units"] = {"value": large.made.rows}
    results["relations"] = {"value": large.made.edges}
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decisions", type=int, default=100_000)
    parser.add_argument("--versions", type=int, default=10, help="earlier versions of each")
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        homes = [os.path.join(folder, name) for name in ("small", "large")]
        with mnemarch.open(homes[0]) as one, mnemarch.open(homes[1]) as other:
            small, large = (
                Bench(memory, count, options.versions) for memory, count in ((one, SMALL), (other, options.decisions))
            )
            results = measured(small, large, options.rounds)
    os.makedirs(os.path.join(HERE, "out"), exist_ok=True)
    with open(os.path.join(HERE, "out", "decisions.json"), "w", encoding="utf-8") as file:
        json.dump(results, file, indent=2)
    return shown(results)


if __name__ == "__main__":
    sys.exit(main())
