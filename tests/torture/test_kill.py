"""kill -9 at any moment: acknowledged writes are there, no file is torn, and the next process continues."""

from __future__ import annotations

import random
import subprocess
import sys
import time

from workers import seat_of

import mnemarch


def test_every_acknowledged_event_survives_a_kill(worker, folder, full, checked):
    rounds, seed = (100, 7) if full else (6, 7)
    moments = random.Random(seed)
    acknowledged = set()
    approved, erased = set(), set()
    for number in range(rounds):
        workers = [worker("live", folder, f"{number}x{name}") for name in range(3)]
        for _ in range(moments.randrange(1, 25)):
            assert workers[0].line() is not None
        # The kill comes after a line of one worker, so at a random moment of the others and of its next verb.
        for one in workers:
            for line in one.killed():
                for key, seen in (("event_id", acknowledged), ("approved", approved), ("erased", erased)):
                    seen.update({line[key]} if key in line else ())
        with mnemarch.open(folder) as memory:
            check = memory.audit()
            assert check.ok, check.problem
            events = {event.id for event in memory._engine.store.read(lambda reader: list(reader.events()))}
            assert acknowledged <= events
            if number % 5 == 0:
                assert memory.rebuild().same
    events = checked()
    assert acknowledged <= set(events)
    assert len(acknowledged) > rounds
    with mnemarch.open(folder) as memory:
        units = memory._engine.store.read(lambda reader: reader.units(approved | erased))
        assert set(units) == approved | erased
        assert all(unit.content == "" for unit in units.values() if unit.id in erased)
        # An erasure may have happened without having been acknowledged; and what was reused is published by now.
        kept = [unit for unit in units.values() if unit.id in approved and unit.content]
        assert all(str(unit.status) in {"verified", "published"} for unit in kept)


def test_a_kill_in_the_middle_of_a_rebuild_or_a_reindex_changes_nothing(worker, folder, full):
    told = worker("index_and_vanish", folder, 300).done()
    assert told
    with mnemarch.open(folder) as memory:
        digest = memory.rebuild().digest_before
    script = (
        "import mnemarch, sys\nm = mnemarch.open(sys.argv[1])\nprint('go', flush=True)\n"
        "while True:\n    m.rebuild()\n    m.reindex()\n"
    )
    moments = random.Random(3)
    for _ in range(20 if full else 2):
        process = subprocess.Popen([sys.executable, "-c", script, str(folder)], stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(moments.random() * 0.2)  # Not to wait for anything: to kill it at any moment.
        process.kill()
        process.communicate()
        with mnemarch.open(folder) as memory:
            rebuilt = memory.rebuild()
            assert rebuilt.digest_before == rebuilt.digest_after == digest
            seat = seat_of(memory, name="a")
            assert seat.recall("thing7 weighs").items[0].unit.content == "Thing7 weighs 7 grams"
            digest = memory.rebuild().digest_before  # What recall handed to the task is part of the state.
