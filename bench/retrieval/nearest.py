"""How long the nearest vectors take, beside one product with all of them; how many are missed; what a unit takes.

    python -m bench.retrieval.nearest [--units 100000]

The vectors are made here: each is a mixture of two of a few thousand topics, and a little of its own.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

import numpy as np

from mnemarch.embedding.vectors import Head, Rows, packed_of

_DIM, _TOPICS, _WANTED, _ROUNDS = 896, 3_000, 50, 40
_BLOCK = 50_000
_OWN = 0.3
RATIO_MAX, KEPT_MIN, BYTES_MAX = 0.5, 0.97, 1024


def main() -> int:
    parser = argparse.ArgumentParser("python -m bench.retrieval.nearest", description=__doc__)
    parser.add_argument("--units", type=int, default=100_000)
    units = parser.parse_args().units
    chance = np.random.default_rng(20_251)
    topics = chance.standard_normal((_TOPICS, _DIM), np.float32)
    rows, blocks = Rows(Head()), []
    for start in range(0, units, _BLOCK):
        block = _unit_rows(_around(chance, topics, min(_BLOCK, units - start)))
        rows.take(Head(), [(f"u{start + at}", "", "s", "s", "k", "d", packed_of(row)) for at, row in enumerate(block)])
        blocks.append(block)
    everything = np.concatenate(blocks)
    del blocks
    ours, floor, kept = [], [], []
    for question in _unit_rows(_around(chance, topics, _ROUNDS)):
        started = time.process_time()
        found = rows.nearest(question, _WANTED, (None, None, None, None))
        ours.append(time.process_time() - started)
        started = time.process_time()
        cosines = everything @ question
        floor.append(time.process_time() - started)
        nearest = {f"u{at}" for at in np.argpartition(cosines, -_WANTED)[-_WANTED:]}
        kept.append(len(nearest.intersection(unit for unit, _ in found)) / _WANTED)
    ours_ms, floor_ms = statistics.median(ours) * 1000, statistics.median(floor) * 1000
    ratio, share = ours_ms / floor_ms, statistics.fmean(kept)
    print(f"{units:,} vectors of {_DIM}: the nearest {_WANTED} in {ours_ms:.1f} ms of processor time")
    print(f"of one product with all ({floor_ms:.1f} ms): {ratio:.2f}, at most {RATIO_MAX}")
    print(
        f"of the true nearest: {share:.3f}, at least {KEPT_MIN}; {_DIM // 2} bytes a unit on disk, at most {BYTES_MAX}"
    )
    return 0 if ratio <= RATIO_MAX and share >= KEPT_MIN else 1


def _around(chance: np.random.Generator, topics: np.ndarray, count: int) -> np.ndarray:
    one, other = (topics[chance.integers(0, len(topics), count)] for _ in range(2))
    share = chance.uniform(0.2, 0.8, (count, 1)).astype(np.float32)
    return share * one + (1 - share) * other + _OWN * chance.standard_normal((count, _DIM), np.float32)


def _unit_rows(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


if __name__ == "__main__":
    sys.exit(main())
