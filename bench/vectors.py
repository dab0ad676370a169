"""Nearest vectors in each place that keeps them: p50 against the file beside a memory, and recall@10 against exact.

`python -m bench.vectors [vectors ...]`; 10,000 and 100,000 unless told. Vectors are made up: directions around a
thousand centres, 512 numbers each. PostgreSQL is a real server (`MNEMARCH_TEST_POSTGRES_URL` names another). Qdrant is
its engine behind the small server of the tests, written in Python, whose own round trip is told too;
`MNEMARCH_TEST_QDRANT_URL` names a real server.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import numpy as np

from fixtures import postgres, qdrant
from mnemarch.embedding.vectors import VectorFile
from mnemarch.model.caller import Stream
from mnemarch.model.unit import Searchable
from mnemarch.stores.postgres import PostgresStore
from mnemarch.stores.postgres.vectors import PgVectors
from mnemarch.stores.qdrant import EmbeddingMemoryStore

DIM, CENTRES, QUESTIONS, K, BATCH = 512, 1_000, 60, 10, 64
# A reader sees its project and its own task; most knowledge is the project's.
SCOPES = {"project and task": (["project", "task-1"], 0.90), "one small task": (["task-1"], 0.01)}


def directions(count: int, random: np.random.Generator, centres: np.ndarray) -> np.ndarray:
    rows = centres[random.integers(len(centres), size=count)] + 0.7 * random.standard_normal((count, DIM))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def made(number: int) -> Searchable:
    scope = "project" if number % 100 < 90 else f"task-{number % 100 - 89}"
    about = {"state": "trusted", "kind": "fact", "domain": "general", "session": None, "turn": 0}
    return Searchable(
        id=f"{number:08d}",
        scope_key=scope,
        content=str(number),
        occurred_at=0,
        importance=0.5,
        changed_at=number,
        **about,
    )


def fill(place, rows: np.ndarray) -> float:
    began = time.perf_counter()
    with place.alone():
        begun = place.begin(may_replace=True)
        for start in range(0, len(rows), BATCH):
            end = min(len(rows), start + BATCH)
            changes = [(made(number), rows[number]) for number in range(start, end)]
            assert place.save(begun, changes, end, complete=end == len(rows))
    return time.perf_counter() - began


def asked(place, questions: np.ndarray, scopes: list[str], truth: list[set[str]]) -> tuple[float, float]:
    """The median time of a question in ms, and the share of the true nearest that it finds."""
    within = (scopes, ["trusted"], None, None)
    place.nearest(questions[0], K, within)
    times, hits = [], 0
    for question, nearest in zip(questions, truth, strict=True):
        began = time.perf_counter()
        found = place.nearest(question, K, within)
        times.append(time.perf_counter() - began)
        hits += len(nearest & {id for id, _ in found})
    return statistics.median(times) * 1000, hits / (K * len(questions))


def exact(rows: np.ndarray, questions: np.ndarray, scopes: list[str]) -> list[set[str]]:
    packed = np.rint(rows * (127 / np.abs(rows).max(axis=1, keepdims=True))).astype(np.float32)
    packed /= np.linalg.norm(packed, axis=1, keepdims=True)
    allowed = np.array([made(number).scope_key in scopes for number in range(len(rows))]).nonzero()[0]
    return [{f"{allowed[at]:08d}" for at in np.argsort(-(packed[allowed] @ each))[:K]} for each in questions]


def measure(count: int, folder: str, server: qdrant.QdrantServer | None) -> None:
    random = np.random.default_rng(count)
    centres = random.standard_normal((CENTRES, DIM))
    rows, questions = directions(count, random, centres), directions(QUESTIONS, random, centres)
    store = PostgresStore(postgres.new_schema(postgres.server_url()))
    place_of = {
        "file": lambda: VectorFile(os.path.join(folder, str(count)), "bench", "store", lambda _: "", 5),
        "pgvector": lambda: PgVectors(store.of(Stream("acme", "shop")), "bench", lambda _: ""),
        "qdrant": lambda: EmbeddingMemoryStore(
            qdrant.server_url() or server.url,
            f"bench-{count}-{os.getpid()}",
            dim=lambda: DIM,
            lock=os.path.join(folder, "lock"),
        ),
    }
    truths = {name: exact(rows, questions, scopes) for name, (scopes, _) in SCOPES.items()}
    floors: dict[str, float] = {}
    for kind, open_place in place_of.items():
        place = open_place()
        seconds = fill(place, rows)
        if kind == "qdrant" and server is not None:
            for shard in server.collections.shards.values():
                shard.optimize()  # A server does so by itself, in the background.
        for name, (scopes, share) in SCOPES.items():
            ms, recall = asked(place, questions, scopes, truths[name])
            floors.setdefault(name, ms)
            print(
                f"{count:>9,} vectors  {kind:<9} {name:<17} ({share:.0%}): p50 {ms:7.2f} ms,"
                f" {ms / floors[name]:5.2f} x the file, recall@{K} {recall:.3f}"
            )
        print(f"{count:>9,} vectors  {kind:<9} filled with {count / seconds:,.0f} vectors/s", flush=True)
        place.close()
    store.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as own:
        os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_STATE_HOME"] = os.environ["XDG_CACHE_HOME"] = own
        server = None if qdrant.server_url() else qdrant.QdrantServer()
        try:
            for count in [int(each) for each in sys.argv[1:]] or [10_000, 100_000]:
                measure(count, own, server)
        finally:
            if server is not None:
                server.close()


if __name__ == "__main__":
    main()
