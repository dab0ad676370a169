"""The entries of many sparse vectors, laid out to be compared with one: in lines, by feature, or just as they came.

Each way adds up what the rows have in common with a question, in single precision, by the row's number.
"""

from __future__ import annotations

from mnemarch.lazy import Lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np
else:
    np = Lazy("numpy")

ROOM_MIN = 64
# Lines are for the most frequent features: as many as fit into so many cells, and at least and at most so many.
_CELLS = 1 << 20
_LINES_MIN, _LINES_MAX = 128, 1_024
# A long line costs more than looking up a thirtieth of it, a short one less than anything that two rows share.
_FREQUENT_SHARE = 1 / 32
_FREQUENT_MIN = 2
# What is shorter is dealt with at one go, however often it has to be copied for that.
_SHORT_LINE = 1 << 14
_SHORT_MAX = 1 << 16


def doubled(column: Any) -> Any:
    return np.concatenate([column, np.zeros(len(column), column.dtype)])


class Lines:
    """The most frequent features, each with a weight for every row: only the lines that a question needs are read."""

    def __init__(self, counts: Any, rows: int) -> None:
        room = rows + rows // 8
        least = room * _FREQUENT_SHARE if room > _SHORT_LINE else _FREQUENT_MIN
        most = min(_LINES_MAX, max(_LINES_MIN, _CELLS // max(1, room)))
        frequent = np.flatnonzero(counts >= least)
        frequent = frequent[np.argsort(-counts[frequent], kind="stable")][:most]
        # Of each column its line, from 1 on; 0 is that of no column. The last stands for all columns that came later.
        self._line = np.zeros(len(counts) + 1, np.intp)
        self._line[frequent] = np.arange(1, len(frequent) + 1)
        self._spread = np.zeros((len(frequent) + 1, room), np.float32)
        # Where lines are copied to, to be multiplied.
        self._copy = np.zeros((ROOM_MIN, room), np.float32)

    def add(self, numbers: Any, places: Any, weights: Any) -> Any:
        """Take what goes into lines; gives which of the entries do not."""
        lines = self._line.take(places, mode="clip")
        mine = (lines > 0) & (numbers < self._spread.shape[1])
        self._spread[lines[mine], np.broadcast_to(numbers, mine.shape)[mine]] = weights[mine]
        return np.flatnonzero(~mine)

    def sums(self, columns: Any, weights: Any, size: int) -> Any:
        lines = self._line.take(columns, mode="clip")
        frequent = lines.nonzero()[0]
        lines, weights = lines[frequent], weights[frequent]
        room = self._spread.shape[1]
        if room <= _SHORT_LINE:
            while len(lines) > len(self._copy):
                self._copy = np.concatenate([self._copy, self._copy])
            found = weights @ np.take(self._spread, lines, axis=0, out=self._copy[: len(lines)], mode="clip")
        else:
            # Of long lines a copy would cost more than all the rest.
            found = np.zeros(room, np.float32)
            for line, weight in zip(lines.tolist(), weights, strict=True):
                found += np.multiply(self._spread[line], weight, out=self._copy[0])
        return found[:size] if size <= room else np.concatenate([found, np.zeros(size - room, np.float32)])


class Scanned:
    """Entries in the order they came: a question is compared with all of them (A25)."""

    def __init__(self) -> None:
        self._numbers = np.zeros(ROOM_MIN, np.int32)
        # As wide as an index is, so that looking up takes no conversion.
        self._places = np.zeros(ROOM_MIN, np.intp)
        self._weights = np.zeros(ROOM_MIN, np.float32)
        self._are_asked = np.zeros(ROOM_MIN, bool)
        self.count = 0

    def add(self, numbers: Any, places: Any, weights: Any) -> None:
        count = self.count + len(places)
        while count > len(self._places):
            self._numbers, self._places = doubled(self._numbers), doubled(self._places)
            self._weights, self._are_asked = doubled(self._weights), doubled(self._are_asked)
        added = slice(self.count, count)
        self._numbers[added], self._places[added], self._weights[added] = numbers, places, weights
        self.count = count

    def add_to(self, sums: Any, asked: Any) -> None:
        """Add what each row has in common with what is asked, given by column."""
        if not self.count:
            return
        are_asked = self._are_asked[: self.count]
        np.take(asked != 0, self._places[: self.count], out=are_asked, mode="clip")
        shared = are_asked.nonzero()[0]
        if len(shared):
            products = asked.take(self._places[shared]) * self._weights[shared]
            sums += np.bincount(self._numbers[shared], weights=products, minlength=len(sums))


class ByFeature:
    """Entries in the order of their features: a question is compared with those it shares one with (A8)."""

    def __init__(self, columns: int, numbers: Any, places: Any, weights: Any) -> None:
        # A short type is sorted by its digits, which is much faster.
        short = places.astype(np.uint16) if columns <= _SHORT_MAX else places
        order = np.argsort(short, kind="stable")
        self._numbers = numbers[order].astype(np.int32)
        self._weights = weights[order].astype(np.float32)
        # Of each column where it begins. The last stands for all columns that came later: they have nothing here.
        self._begins = np.concatenate([[0], np.cumsum(np.bincount(places, minlength=columns)), [len(places)]])

    def add_to(self, sums: Any, columns: Any, weights: Any) -> None:
        begins = self._begins.take(columns, mode="clip")
        counts = self._begins.take(columns + 1, mode="clip") - begins
        last = np.cumsum(counts)
        total = int(last[-1]) if len(last) else 0
        if not total:
            return
        if total <= _SHORT_LINE:
            at = np.repeat(begins - last + counts, counts) + np.arange(total)
            numbers, shared = self._numbers[at], self._weights[at]
        else:
            # Of long runs it is faster to copy each than to look up every entry.
            spans = [slice(*span) for span in zip(begins.tolist(), (begins + counts).tolist(), strict=True)]
            numbers = np.concatenate([self._numbers[span] for span in spans])
            shared = np.concatenate([self._weights[span] for span in spans])
        sums += np.bincount(numbers, weights=shared * np.repeat(weights, counts), minlength=len(sums))
