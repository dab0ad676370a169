"""Formats output: JSON for programs; for terminals safe text, tables, wrapped lines and a progress counter."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from mnemarch.interfaces.command import at_terminal
from mnemarch.model.stamps import short_id
from mnemarch.text.cache import pattern
from mnemarch.verbs.wire import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from mnemarch.model.outcome import Overview, Stats
    from mnemarch.model.unit import Unit

_SHOWN_CHARS = 96
_LAST_COLUMN_MIN = 12
# Columns with ids are never cut, since a cut id can't be copied.
_NEVER_CUT = frozenset({"id", "to", "leads to", "session"})
_SERVER_OPTIONS = frozenset({"host", "hostaddr", "port"})
INDENT = "  "
_ID = r"(?<!['\w-])[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}(?![\w-])"
_CLEAR_LINE = "\r\x1b[K"
# Others wrote the stored texts: these must not move the cursor, recolour the screen or reverse the text's direction.
_CONTROLS = dict.fromkeys(
    (*(code for code in range(0xA0) if not 0x20 <= code < 0x7F), *range(0x202A, 0x202F), *range(0x2066, 0x206A)), "�"
)
_KEPT = {ord("\n"): "\n", ord("\t"): "    "}


def clean(text: object) -> str:
    """Text that is safe to print on a terminal, line breaks kept."""
    return str(text).translate(_CONTROLS | _KEPT)


def with_short_ids(text: object) -> str:
    """A message with its ids shortened. An id in quotes stays whole, since somebody typed it."""
    return pattern(_ID).sub(lambda match: short_id(match[0]), clean(text))


def short(text: object, chars_max: int = _SHOWN_CHARS) -> str:
    """The beginning of a text, on one line."""
    line = clean(" ".join(str(text).split()))
    return line if len(line) <= chars_max else line[: chars_max - 1] + "…"


def is_confirmed(question: str) -> bool:
    """Whether the person at the terminal says yes."""
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def quoted(content: str) -> str:
    return f'"{short(content)}"' if content else "(erased)"


def age(moment: datetime) -> str:
    """The time since a moment, in one unit: "3 h ago"."""
    seconds = (datetime.now(UTC) - moment).total_seconds()
    if seconds < 0:
        return "in the future"
    for name, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {name} ago"
    return "just now"


def when(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"


def fields(pairs: Iterable[tuple[str, object]]) -> str:
    """One line for each name and value, with the values aligned."""
    rows = [(name, clean(item)) for name, item in pairs]
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join(f"{name:<{width}}  {item}" for name, item in rows)


def table(headers: Sequence[str], rows: Sequence[Sequence[object]], empty: str) -> str:
    """A table with aligned columns, drawn for a terminal and plain for a pipe. Long texts belong in the last column."""
    if not rows:
        return empty
    cells = [[clean(cell).replace("\n", " ") for cell in row] for row in rows]
    if at_terminal(sys.stdout):
        return _drawn(headers, cells)
    widths = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (headers, *cells)
    )


def _drawn(headers: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    *before_last, last = [max(map(cell_len, column)) for column in zip(headers, *cells, strict=True)]
    room = console.width - sum(width + 2 for width in before_last)
    if room < (last if headers[-1] in _NEVER_CUT else _LAST_COLUMN_MIN):
        return "\n".join(_stacked(headers, row) for row in cells)
    drawn = Table(box=None, header_style="bold underline", pad_edge=False, padding=(0, 2, 0, 0))
    for header in headers[:-1]:
        drawn.add_column(header, no_wrap=True)
    drawn.add_column(headers[-1], overflow="fold")
    for row in cells:
        drawn.add_row(*map(Text, row))
    with console.capture() as capture:
        console.print(drawn)
    return capture.get().rstrip("\n")


def _stacked(headers: Sequence[str], row: Sequence[str]) -> str:
    """One row on several lines, for a terminal too narrow for its columns: the id, the short cells, the last cell."""
    *before, last = zip(headers, row, strict=True)
    ids = [cell for header, cell in before if header in _NEVER_CUT]
    # A number needs its header to be understood.
    short_ones = "  ".join(
        f"{header} {cell}" if cell.isdigit() else cell for header, cell in before if header not in _NEVER_CUT and cell
    )
    whole, below = (ids[:1], [*ids[1:], short_ones]) if ids else ([short_ones], [])
    lines = [*whole, *(f"{INDENT}{part}" for part in below if part)]
    rest = f"{INDENT}{last[1]}" if last[0] in _NEVER_CUT else wrapped(last[1])
    return "\n".join([*lines, rest] if last[1] else lines)


def wrapped(text: str, indent: str = INDENT) -> str:
    """A text with an indent; on a terminal it is wrapped to the width, with every line indented."""
    if not at_terminal(sys.stdout):
        return f"{indent}{text}"
    from rich.console import Console
    from rich.text import Text

    console = Console()
    lines = Text(text).wrap(console, max(_LAST_COLUMN_MIN, console.width - len(indent)))
    return "\n".join(f"{indent}{line.plain.rstrip()}" for line in lines)


def unit_line(unit: Unit, first: str) -> str:
    return f"{first}  {short_id(unit.id)}  {unit.status} {unit.confidence:.2f}  {unit.level}  {quoted(unit.content)}"


class Counter:
    """Shows the progress of long work on stderr. It is silent if stderr is no terminal."""

    def __init__(self, doing: str, what: str) -> None:
        self._doing, self._what = doing, what
        self._is_watched = at_terminal(sys.stderr)

    def __enter__(self) -> Callable[[int], None] | None:
        self._write(f"{self._doing} ...")
        return (lambda done: self._write(f"{self._doing}: {done:,} {self._what}")) if self._is_watched else None

    def __exit__(self, *_: object) -> None:
        self._write("")

    def _write(self, line: str) -> None:
        if self._is_watched:
            sys.stderr.write(f"{_CLEAR_LINE}{line}")
            sys.stderr.flush()


def json_text(data: Any) -> str:
    """A JSON document for standard output. It is ASCII unless the output is UTF-8, so that no character is lost."""
    import json

    ascii_only = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    return json.dumps(to_json(data), ensure_ascii=ascii_only, indent=2)


def meaning_line(seen: Stats | Overview) -> str:
    """The state of search by meaning."""
    if seen.meaning == "on":
        return f"{seen.vectors:,} vectors, {seen.without_vector:,} units still without"
    return clean(seen.meaning)


def without_password(url: str) -> str:
    """An address without name and password. Of its options only the server's host and port stay."""
    scheme, _, rest = url.partition("://")
    place, _, options = rest.partition("?")
    where = "&".join(option for option in options.split("&") if option.partition("=")[0] in _SERVER_OPTIONS)
    return f"{scheme}://{place.rpartition('@')[2]}{where and f'?{where}'}" if rest else ""
