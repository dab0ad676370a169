"""Testing. Takes: a way to make a store. Gives: tests of the contract every store must keep. Never: imports pytest.

    from mnemarch.testing import StoreContract

    class TestMyStore(StoreContract):
        def make_store(self, tmp_path):
            return MyStore(tmp_path / "memory")

A runner that passes `tmp_path` to the test methods is enough.
"""

from __future__ import annotations

from pathlib import Path

from mnemarch.ports import Store
from mnemarch.testing.builders import HOSTILE_NAMES, made_link, made_unit, recorded
from mnemarch.testing.log import LogContract, TransactionContract
from mnemarch.testing.projections import ProjectionContract

__all__ = ["HOSTILE_NAMES", "StoreContract", "made_link", "made_unit", "recorded"]


class StoreContract(TransactionContract, LogContract, ProjectionContract):
    """Every promise of `mnemarch.ports.Store`, `Reader` and `Transaction`."""

    def make_store(self, tmp_path: Path) -> Store:
        """A new, empty store; `tmp_path` is a folder of the test's own."""
        raise NotImplementedError
