"""A small log of searchable changes, and a dense model that costs nothing, for tests of what follows a log."""

from __future__ import annotations

import numpy as np

from mnemarch.embedding import DenseSearch, NgramHashEmbedder
from mnemarch.errors import StoreUnavailable
from mnemarch.model.unit import Searchable
from mnemarch.model.value import replace


class FoldedEmbedder:
    """Hashed n-grams as a dense model: real similarities, no file, no time."""

    def __init__(self, name: str = "folded", dim: int = 64) -> None:
        self.id = f"{name}/{dim}"
        self.dim = dim
        self.calls: list[list[str]] = []
        self._sparse = NgramHashEmbedder((2, 4), dim)

    def embed(self, texts):
        self.calls.append(list(texts))
        rows = np.zeros((len(texts), self.dim), np.float32)
        for at, text in enumerate(texts):
            for place, weight in self._sparse.embed(text if text.strip() else "").items():
                rows[at, place] = weight
        return rows

    @property
    def texts(self) -> list[str]:
        return [text for call in self.calls for text in call]


def unit(number: int, content: str | None = None, **changes) -> Searchable:
    made = Searchable(
        id=f"0190{number:04x}-0000-7000-8000-{number:012x}",
        scope_key="here",
        state="trusted",
        kind="fact",
        domain="general",
        session=None,
        turn=0,
        content=f"unit number {number} says {number * 7919}" if content is None else content,
        occurred_at=0,
        importance=0.5,
        changed_at=number,
    )
    return replace(made, **changes)


class Log:
    """A store's searchable changes, as the ports give them."""

    def __init__(self, *units: Searchable) -> None:
        self.units = {each.id: each for each in units}
        self.read: list[int] = []

    def put(self, each: Searchable) -> None:
        self.units[each.id] = replace(each, changed_at=self.head() + 1)

    def head(self) -> int:
        return max((each.changed_at for each in self.units.values()), default=0)

    def after(self, position: int):
        self.read.append(position)
        yield from sorted(
            (each for each in self.units.values() if each.changed_at > position), key=lambda each: each.changed_at
        )


class Interrupting(FoldedEmbedder):
    """Runs something when it has been asked so often."""

    def __init__(self, at: int, what, **how) -> None:
        super().__init__(**how)
        self.at, self.what = at, what

    def embed(self, texts):
        found = super().embed(texts)
        if len(self.calls) == self.at:
            self.what()
        return found


def caught_up(search: DenseSearch, log: Log):
    return search.catch_up(log.after, log.head)


def log_of(last: int) -> Log:
    """The units from 1 to `last`."""
    return Log(*map(unit, range(1, last + 1)))


def followed(search: DenseSearch, log: Log) -> None:
    search.follow(log.after, log.head)
    search.wait()


def found(search: DenseSearch, **within) -> list[str]:
    """All units that are found at all, by id."""
    return sorted(id for id, _ in search.nearest("unit", None, limit=1_000, **within))


def fail() -> None:
    raise StoreUnavailable("The endpoint is away.", hint="Wait.")
