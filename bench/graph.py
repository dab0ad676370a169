"""What a graph costs: asking and searching at the size of a session, its memory, and a search in 100,000 questions.

    python -m bench.graph [--nodes 100000] [--rounds 400]

Times are medians; the floor is embedding the question.
The large graph is filled by taking its steps, as it would be read back from a log: asking 100,000 questions one by one
would take minutes and leave the same graph. Prints one table, writes bench/out/graph.json and exits with 1 if a limit
is broken.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time

from bench.spine import shown
from mnemarch.graph import GraphConfig, GraphStore
from mnemarch.text.canonical import canonical_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = os.path.dirname(__file__)
NODES, EDGES = 1_000, 4_000
UPSERT_MS_MAX, SEARCH_MS_MAX, LARGE_MS_MAX, MEMORY_MB_MAX = 1.0, 0.3, 6.0, 60.0
AT = 1_780_000_000_000_000

# Enough words for as many different questions as are wanted, about as alike as those of one team are.
WORDS = {
    "things": """
    checkout login search billing stock shipping report session upload audit cart refund invoice token worker queue
    cache index migration backup gateway webhook scheduler tenant export import retry timeout pool lock branch release
    schema profile avatar locale currency coupon warehouse picking label tracking ledger payout dispute receipt
    """,
    "deeds": "fail stop retry block restart grow shrink expire leak hang return vanish duplicate overflow drift lag",
    "korean": """
    결제 로그인 검색 정산 재고 배송 보고서 세션 업로드 감사 장바구니 환불 송장 토큰 작업자 대기열 캐시 색인 이전 백업
    게이트웨이 웹훅 예약 고객 내보내기 가져오기 재시도 시간초과 잠금 배포 스키마 프로필 통화 쿠폰 창고 라벨 추적
    """,
}
THINGS, DEEDS, KOREAN_THINGS = (WORDS[name].split() for name in ("things", "deeds", "korean"))
FRAMES = (
    "Why does the {a} {d} after the {b} in step {n}?",
    "How do we keep the {a} from the {b} when the {c} has to {d}?",
    "Where is the {a} of the {b} configured for {c} {n}?",
    "What happens to the {a} if the {b} and the {c} {d}?",
)
KOREAN_FRAMES = (
    "{a} 다음에 {b} 작업이 왜 {n}번 멈추나요?",
    "{a} 설정은 {b} 쪽에서 어떻게 바꾸나요?",
    "{c} 중에 {a} 값이 사라지면 {b}는 어떻게 되나요?",
)


def questions(seed: int) -> Iterator[str]:
    """Plausible questions, two English ones to a Korean, the same on every run."""
    chance = random.Random(seed)
    while True:
        korean = chance.random() < 1 / 3
        things = KOREAN_THINGS if korean else THINGS
        a, b, c = chance.sample(things, 3)
        frame = chance.choice(KOREAN_FRAMES if korean else FRAMES)
        yield frame.format(a=a, b=b, c=c, d=chance.choice(DEEDS), n=chance.randrange(1, 1_000))


def session_graph() -> GraphStore:
    """A full session: as many nodes and edges as it has room for, so that every new question has to make room."""
    store = GraphStore()
    asked = questions(1)
    while store.stats().nodes < NODES:
        store.upsert_query(next(asked))
    chance = random.Random(2)
    ids = [node.id for node in store.nodes("query")]
    while store.stats().edges < EDGES:
        store.link(*chance.sample(ids, 2), "similar_to", 0.5 + chance.random())
    return store


def large_graph(nodes: int) -> GraphStore:
    store = GraphStore(GraphConfig(max_nodes=2 * nodes))
    steps = []
    asked = questions(3)
    known: set[str] = set()
    while len(known) < nodes:
        text = next(asked)
        key = canonical_key(text)
        if key not in known:
            known.add(key)
            steps += [["add", f"query:{key}", "query", text, key, AT, {}], ["weigh", f"query:{key}", 1.0, 0.0, AT]]
    store.replay(steps)
    return store


def timed(work: Callable[[str], object], texts: Iterator[str], rounds: int) -> list[float]:
    times = []
    for _ in range(rounds):
        text = next(texts)
        began = time.perf_counter()
        work(text)
        times.append(time.perf_counter() - began)
    return times


def row(times: list[float], limit: float, floor: list[float]) -> dict[str, float]:
    """The median in milliseconds, and that of the floor."""
    median_ms, floor_ms = statistics.median(times) * 1000, statistics.median(floor) * 1000
    return {"value": median_ms, "of_fastest": min(times) * 1000, "floor_ms": floor_ms, "limit": limit}


def memory_mb() -> float:
    """What a session's graph takes in a process of its own, numpy included, above that of a bare Python."""
    code = "import sys\nif {full}:\n from bench.graph import session_graph\n kept = session_graph()\n"
    code += " kept.search_similar_queries('Why does the checkout hang?')\n"
    code += "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmRSS')))"
    bare, full = (
        int(subprocess.run([sys.executable, "-c", code.format(full=full)], check=True, capture_output=True).stdout)
        for full in (False, True)
    )
    return (full - bare) / 1024


def measured(nodes: int, rounds: int) -> dict[str, dict[str, float]]:
    store = session_graph()
    embedding = timed(store.embedder.embed, questions(4), rounds)
    upserts = timed(store.upsert_query, questions(5), rounds)
    searches = timed(store.search_similar_queries, questions(6), rounds)
    large = large_graph(nodes)
    large.search_similar_queries("Why does the checkout hang?")  # Vectors are made when they are first needed.
    large_searches = timed(large.search_similar_queries, questions(7), rounds // 4)
    return {
        "upsert ms, 1,000 nodes": row(upserts, UPSERT_MS_MAX, embedding),
        "search ms, 1,000 nodes": row(searches, SEARCH_MS_MAX, embedding),
        "memory MB, 1,000 nodes / 4,000 edges": {"value": memory_mb(), "limit": MEMORY_MB_MAX},
        f"search ms, {nodes:,} nodes": row(large_searches, LARGE_MS_MAX, embedding),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=400)
    options = parser.parse_args()
    results = measured(options.nodes, options.rounds)
    os.makedirs(os.path.join(HERE, "out"), exist_ok=True)
    with open(os.path.join(HERE, "out", "graph.json"), "w", encoding="utf-8") as file:
        json.dump(results, file, indent=2)
    return shown(results)


if __name__ == "__main__":
    sys.exit(main())
