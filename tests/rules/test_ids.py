"""Ids: unique, version 7, and in order within a process."""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemarch.model.stamps import new_id

MANY = 5_000


def test_ids_of_one_process_are_unique_and_sort_in_the_order_they_were_made():
    made = [new_id() for _ in range(MANY)]
    assert made == sorted(set(made))


def test_an_id_is_a_uuid_of_version_7_made_now():
    before = time.time_ns() // 1_000_000
    parsed = uuid.UUID(new_id())
    assert parsed.version == 7
    assert parsed.variant == uuid.RFC_4122
    assert abs((parsed.int >> 80) - before) < 60_000


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=50))
def test_ids_keep_their_order_on_any_clock(times):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mnemarch.model.stamps._last_tick", 0)
        clock = iter(times)
        patch.setattr("time.time_ns", lambda: next(clock))
        made = [new_id() for _ in times]
    assert made == sorted(set(made))
    assert {uuid.UUID(id).version for id in made} == {7}


def test_a_clock_that_stands_still_or_goes_back_repeats_nothing(monkeypatch):
    now = time.time_ns()
    clock = iter([now] * 2_000 + [now - 3_600_000_000_000] * 2_000 + [0] * 1_000)
    monkeypatch.setattr("time.time_ns", lambda: next(clock))
    made = [new_id() for _ in range(MANY)]
    assert made == sorted(set(made))


def test_threads_never_make_the_same_id():
    with ThreadPoolExecutor(8) as pool:
        made = [id for batch in pool.map(lambda _: [new_id() for _ in range(1_000)], range(8)) for id in batch]
    assert len(set(made)) == 8_000


def test_processes_that_start_together_never_make_the_same_id():
    script = "from mnemarch.model.stamps import new_id\nprint(*(new_id() for _ in range(2000)))"
    running = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    made = [id for process in running for id in process.communicate()[0].split()]
    assert len(made) == len(set(made)) == 8_000


def test_a_forked_child_draws_other_random_bytes_than_its_parent():
    script = """
import os
from mnemarch.model.stamps import random_bytes
random_bytes()
reading, writing = os.pipe()
if os.fork() == 0:
    os._exit(os.write(writing, random_bytes()))
print(os.read(reading, 16) != random_bytes())
"""
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "True\n"
