"""Testing. Takes: a way to make a store. Gives: tests of the contract of all stores. Never: imports pytest.

    from mnemarch.testing import StoreContract

    class TestMyStore(StoreContract):
        def make_store(self, tmp_path):
            return MyStore(tmp_path / "memory")

Any test runner will do that passes `tmp_path` to the test methods.
"""

from __future__ import annotations

from pathlib import Path

from mnemarch.ports import Store
from mnemarch.testing.builders import HOSTILE_NAMES, made_link, made_unit, recorded
from mnemarch.testing.log import LogContract, TransactionContract
from mnemarch.testing.projections import ProjectionContract

__all__ = ["HOSTILE_NAMES", "StoreContract", "made_link", "made_unit", "recorded"]


class StoreContract(TransactionContract, LogContract, ProjectionContract):
    """The contract of `mnemarch.ports.Store`, `Reader` and `Transaction`."""

    def make_store(self, tmp_path: Path) -> Store:
        """Return a new, empty store. `tmp_path` is a folder for this test alone."""
        raise NotImplementedError
