"""What a run shows: a table for each set, and at the end what holds and what is broken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.retrieval.limits import Limit
from bench.retrieval.variants import DEFAULT, MEANING, NAMES

_SHARES = ("R@1", "R@5", "R@10", "R@20", "all@5", "MRR", "NDCG@10", "sessions R@10", "AUC")
_NUMBERS = ("words@10", "p50 ms", "p95 ms")
# Each variant with its numbers, or with why it has none.
Rows = dict[str, dict[str, Any] | str]
_COLUMNS = {
    "R@k": "the share of the gold turns among the first k items, averaged over questions",
    "all@5": "every gold turn among the first 5",
    "sessions R@10": "the share of the gold sessions among the first 10 sessions of 50 items",
    "words@10": "words, split at spaces, of the first 10 items: what a reader has to read",
    "ms": "one whole recall of 50 items, on a copy of the memory that nobody has read from",
}
_WIDE = 160


def console() -> Console:
    """As wide as the terminal, or wide enough for a file."""
    wide = Console()
    return wide if wide.is_terminal else Console(width=_WIDE)


def show(screen: Console, title: str, table: Table) -> None:
    screen.print(title, style="bold", highlight=False)
    if table.row_count:
        screen.print(table)


def set_table(rows: Rows) -> Table:
    """The rows of one set, in the order of the variants; one that could not run says so."""
    present = {measure for row in rows.values() if isinstance(row, dict) for measure in row}
    shares = [measure for measure in _SHARES if measure in present]
    numbers = [measure for measure in _NUMBERS if measure in present]
    table = Table()
    table.add_column("variant", no_wrap=True)
    for measure in (*shares, *numbers):
        table.add_column(measure, justify="right")
    if "delta" in present:
        table.add_column("R@10 to default [95 %]", no_wrap=True)
    # The default was measured first and stands among the others.
    for name in [name for name in NAMES if name in rows] if DEFAULT in rows else rows:
        row = rows[name]
        if isinstance(row, str):
            table.add_row(f"{name}: {row}", style="dim")
            continue
        cells = [f"{row[measure]:.3f}" if measure in row else "" for measure in shares]
        cells += [f"{row[measure]:,.1f}" if measure in row else "" for measure in numbers]
        table.add_row(name, *cells, *([_delta(row)] if "delta" in present else []))
    return table


def _delta(row: Mapping[str, Any]) -> str:
    if "delta" not in row:
        return ""
    delta, low, high = row["delta"]
    return f"{delta:+.3f} [{low:+.3f}, {high:+.3f}]".replace("[", r"\[", 1)


def legend() -> str:
    """What the names of rows and columns mean."""
    return "\n".join(f"  {name}: {meaning}" for name, meaning in (_COLUMNS | MEANING).items())


def limit_table(found: Sequence[Limit]) -> Table:
    """What this run could judge."""
    table = Table("set", "measure", "default", "at least", "by", "")
    for limit in found:
        mark = "[green]holds[/]" if limit.holds else "[red]broken[/]"
        table.add_row(limit.set, limit.measure, f"{limit.value:.3f}", f"{limit.least:.3f}", limit.by, mark)
    return table
