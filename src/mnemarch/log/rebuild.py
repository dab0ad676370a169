"""The projections from the log alone (R1): recreate them, and prove that nothing changed."""

from __future__ import annotations

from hashlib import sha256

from mnemarch.log.projection import project
from mnemarch.model.outcome import Rebuild

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mnemarch.ports import Reader, Transaction


def digest(reader: Reader) -> str:
    """One hash over every projection row."""
    total = sha256()
    for row in reader.rows():
        total.update(row.encode())
        total.update(b"\n")
    return total.hexdigest()


def rebuild(transaction: Transaction, progress: Callable[[int], None] | None = None) -> Rebuild:
    """Drop and fold again, inside one transaction: an interrupted rebuild leaves everything as it was."""
    before = digest(transaction)
    transaction.clear_projections()
    position = folded = 0
    while page := list(transaction.events(after=position, limit=1000)):
        for event in page:
            project(transaction, event)
        position = page[-1].position
        folded += len(page)
        if progress is not None:
            progress(folded)
    return Rebuild(digest_before=before, digest_after=digest(transaction), events=folded)
