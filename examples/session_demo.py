"""A session from its first question to its end: what merges, what helps, what the agent keeps (A29).

    python examples/session_demo.py

It needs no memory, no key and no network, and leaves one file: .agentos/checkpoints/session-demo.json.
"""

from __future__ import annotations

import os
import sys

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mnemarch.graph import Edge, EdgeType, GraphHit, GraphStore, MemoryOrchestrator, Node, NodeType

SESSION, NEXT_SESSION = "demo", "the-day-after"

QUESTIONS = [
    "How does checkout retry after a failed payment?",
    "Where is the retry limit configured?",
    "Why is the nightly export slow?",
    "에이전트OS 설계 문서 링크",
    "결제 실패 후 재시도는 몇 번 하나요?",
]
# The same again, in other letters or words; and one that only looks the same.
AGAIN = [
    "how does the checkout retry after a failed payment",
    "에이전트 os 설계 문서 링크",
    "결제 실패 후 재시도는 몇 번 하나요",
    "Why is the nightly export so slow?",
    "Why is the nightly export not slow?",
]
SEARCHES = ["checkout retry after failed payments", "결제 재시도 몇 번?", "nightly export is slow"]

console = Console(highlight=False, width=None if sys.stdout.isatty() else 118)


def main() -> int:
    agent = MemoryOrchestrator("agent:demo")
    session = agent.get_session_store(SESSION)

    heading(1, "Questions become nodes; the same question in other letters is the same node")
    ids = ask(agent, session, [*QUESTIONS, *AGAIN])
    checkout, limit, export, _, payment = (ids[text] for text in QUESTIONS)

    heading(2, "Answers, feedback and an entity; questions that are alike share what was learnt")
    agent.record_answer(SESSION, checkout, "Three times, with exponential backoff.")
    agent.record_answer(SESSION, limit, "In config/checkout.toml, under [retry].")
    agent.record_answer(SESSION, payment, "세 번, 지수 백오프로 재시도합니다.")
    agent.record_feedback(SESSION, checkout, "up", "exactly what I needed")
    agent.record_feedback(SESSION, payment, "up", "바로 찾던 답")
    agent.record_feedback(SESSION, export, "down", "the answer was about another export")
    agent.upsert_entity("user:kim", "checkout", aliases=["결제", "retry limit"], session_id=SESSION)
    tell_heat(session)

    heading(3, "The session ends: what was hot goes over to the agent's own graph")
    queries, edges = session.nodes(NodeType.QUERY), session.edges()
    in_session = {text: agent.search(SESSION, text, 3) for text in SEARCHES}
    elsewhere = {text: agent.search(NEXT_SESSION, text, 3) for text in SEARCHES}
    done = agent.finalize_session(SESSION, checkpoint_name="session-demo")
    tell_promotion(queries, {one.session_node for one in done.promoted})

    heading(4, "The same searches before and after that")
    after = {text: agent.search(NEXT_SESSION, text, 3) for text in SEARCHES}
    console.print(side_by_side(in_session, elsewhere, after))

    heading(5, "The checkpoint, read back by another orchestrator")
    assert done.checkpoint is not None
    return tell_checkpoint(done.checkpoint, queries, edges, after)


def heading(number: int, text: str) -> None:
    console.print(f"\n[bold cyan]{number}  {escape(text)}[/bold cyan]")


def ask(agent: MemoryOrchestrator, session: GraphStore, texts: list[str]) -> dict[str, str]:
    """The node of each question."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("question", "became", ""):
        table.add_column(header, overflow="fold")
    ids: dict[str, str] = {}
    for text in texts:
        id = agent.upsert_query(SESSION, text)
        known = next((asked for asked, node in ids.items() if node == id), None)
        ids[text] = id
        near = [edge for edge in session.edges(id) if edge.type is EdgeType.SIMILAR_TO]
        if known is not None:
            became, which = "[green]the same as[/green]", known
        elif near:
            other = near[0].to if near[0].from_ == id else near[0].from_
            became, which = f"similar {near[0].weight:.2f}", session.node(other).text or ""
        else:
            became, which = "new", ""
        table.add_row(escape(text), became, escape(which))
    console.print(table)
    return ids


def tell_heat(session: GraphStore) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("rank", "asked", "feedback", "edges", "question"):
        table.add_column(header, justify="left" if header == "question" else "right", overflow="fold")
    for node in session.nodes(NodeType.QUERY):
        weights = node.weights
        facts = f"{node.rank:.2f}", f"{weights.repeat:g}x", f"{weights.feedback:+.2f}", str(node.degree)
        table.add_row(*facts, escape(node.text or ""))
    console.print(table)


def tell_promotion(queries: list[Node], promoted: set[str]) -> None:
    for node in queries:
        if node.id in promoted:
            console.print(f"   [green]promoted[/green]  {escape(node.text or '')}")
        else:
            why = "found wanting" if node.weights.feedback < 0 else f"only {node.degree} edges"
            console.print(f"   [dim]left      {escape(node.text or '')} ({why})[/dim]")


def side_by_side(*columns: dict[str, list[GraphHit]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_lines=True, caption="In the session its own get 0.05 more.")
    for header in ("search", "before, in the session", "before, in another session", "after, in another session"):
        table.add_column(header, overflow="fold")
    for text in SEARCHES:
        table.add_row(escape(text), *(told(column[text]) for column in columns))
    return table


def told(hits: list[GraphHit]) -> str:
    return "\n".join(f"{hit.score:.2f} {escape(hit.text)}" for hit in hits) or "nothing"


def tell_checkpoint(path: str, queries: list[Node], edges: list[Edge], after: dict[str, list[GraphHit]]) -> int:
    """Whether what mattered came back; if not, the demo fails."""
    restored = GraphStore.load_from_file(path)
    same_queries = {node.id for node in queries} & {node.id for node in restored.nodes(NodeType.QUERY)}
    same_edges = {edge.id for edge in edges} & {edge.id for edge in restored.edges()}
    console.print(f"   {escape(os.path.relpath(path))}")
    console.print(
        f"   {len(same_queries)} of {len(queries)} questions and {len(same_edges)} of {len(edges)} edges came back"
    )
    best = restored.search_similar_queries(SEARCHES[0], 1)[0]
    console.print(f"   {escape(SEARCHES[0])} → {best.score:.2f} {escape(best.text)}")
    whole = (len(same_queries), len(same_edges)) == (len(queries), len(edges))
    return 0 if whole and best.text == after[SEARCHES[0]][0].text else 1


if __name__ == "__main__":
    sys.exit(main())
