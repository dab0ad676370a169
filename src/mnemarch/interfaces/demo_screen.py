"""How the demo looks: drawn and alive on a terminal, plain lines in a log."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from mnemarch.interfaces.show import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mnemarch.interfaces.demo_crew import Member
    from mnemarch.interfaces.demo_proof import Proof

_PLAIN_WIDTH = 118
_BEAT_S = 0.9
_BAR_CELLS = 30


class Screen:
    """Where the story is told. With `aside` it goes to stderr, for stdout belongs to the answer."""

    def __init__(self, *, aside: bool, hurry: bool) -> None:
        stream = sys.stderr if aside else sys.stdout
        on_terminal = bool(stream.isatty())
        self._console = Console(file=stream, highlight=False, width=None if on_terminal else _PLAIN_WIDTH)
        self._beat_s = _BEAT_S if on_terminal and not hurry else 0.0

    def title(self, text: str, under: str) -> None:
        self._console.print(f"\n[bold]{escape(text)}[/bold]\n[dim]{escape(under)}[/dim]")

    def act(self, number: int, title: str) -> None:
        """A new part of the story, after a moment to read the last."""
        time.sleep(self._beat_s)
        self._console.print(f"\n[bold cyan]{number}  {escape(title)}[/bold cyan]")

    def tell(self, who: str, what: str, *, then: str = "", style: str = "green") -> None:
        """One thing that happened: who, what, and what the memory answered."""
        self._console.print(f"   [bold]{escape(who):<12}[/bold] {escape(clean(what))}", soft_wrap=True)
        if then:
            self._console.print(f"   {'':<12} [{style}]→ {escape(clean(then))}[/{style}]", soft_wrap=True)

    def block(self, text: str) -> None:
        """The output of a command, as it is."""
        for line in text.splitlines():
            self._console.print(f"      [dim]{escape(clean(line))}[/dim]", soft_wrap=True)

    @contextmanager
    def crowd(self, members: Sequence[Member], events_each: int) -> Iterator[None]:
        """Everybody at work: a live view on a terminal; elsewhere, how it ended."""

        def drawn() -> Table:
            return _crowd_table(members, events_each)

        if not self._console.is_terminal:
            yield
            self._console.print(drawn())
            return
        with Live(get_renderable=drawn, console=self._console, refresh_per_second=12):
            yield

    def proofs(self, proofs: Sequence[Proof]) -> None:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("")
        table.add_column("claim", style="bold")
        table.add_column("what was counted", overflow="fold")
        for proof in proofs:
            mark = "[bold green]✓[/bold green]" if proof.ok else "[bold red]✗[/bold red]"
            table.add_row(mark, escape(proof.claim), escape(proof.counted))
        self._console.print(table)


def _crowd_table(members: Sequence[Member], events_each: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 2))
    for header, justify in (
        ("agent", "left"),
        ("process", "right"),
        ("task", "left"),
        ("receipts", "right"),
        ("", "left"),
    ):
        table.add_column(header, justify=justify)  # type: ignore[arg-type]
    for member in members:
        count = len(member.receipts)
        cells = min(_BAR_CELLS, _BAR_CELLS * count // max(1, events_each))
        bar = "█" * cells + "░" * (_BAR_CELLS - cells)
        table.add_row(
            f"[bold]{escape(member.name)}[/bold]",
            str(member.process.pid),
            escape(str(member.script["scope"].get("task", ""))),
            str(count),
            f"[cyan]{bar}[/cyan]",
        )
    return table
