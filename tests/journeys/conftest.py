"""What the journeys share."""

from __future__ import annotations

import pytest
from cli_session import Cli


@pytest.fixture
def cli(tmp_path, monkeypatch, capsys) -> Cli:
    return Cli(tmp_path, monkeypatch, capsys)
