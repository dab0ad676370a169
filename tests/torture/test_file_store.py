"""The same torture for a memory in files: many processes of one clone, kill -9, and a race to begin."""

from __future__ import annotations

import os

import pytest
from test_kill import test_every_acknowledged_event_survives_a_kill  # noqa: F401
from test_many_processes import test_nothing_is_lost_when_many_processes_log_at_once as log_at_once

import mnemarch
from mnemarch import Actor, Scope


@pytest.fixture
def folder(tmp_path):
    return f"file://{tmp_path}/memory"


def test_processes_that_begin_a_memory_at_once_are_one_writer(together, folder, full, checked, tmp_path):
    log_at_once(together, folder, full, checked)
    assert len(os.listdir(tmp_path / "memory" / "log")) == 1


def test_a_read_answers_while_a_stopped_process_holds_the_lock(folder, tmp_path, clock):
    seat = (Actor.human("h"), Scope(project="p"))
    with mnemarch.open(folder, clock=clock) as memory, mnemarch.open(folder, clock=clock) as other:
        memory.seat(*seat).remember("The lion sleeps")
        store = other._engine.store

        def work(_):
            (journal,) = (tmp_path / "memory" / "log").glob("*/*.jsonl")
            os.utime(journal)  # As if a pull had touched it: the reader would have to read it first.
            return memory.seat(*seat).recall("what does the lion do?").items[0].unit.content

        assert store.write(work) == "The lion sleeps"
