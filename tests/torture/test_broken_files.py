"""Files that are cut, foreign, newer, read-only or full: an error in words, and not a byte changed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

import mnemarch
from mnemarch import Actor, Claim, Scope
from mnemarch.checkout import sign
from mnemarch.config import config_from

SCOPE = Scope(org="acme", project="shop", worktree="main", task="T-1")


@cache
def template(count):
    """A memory of so many units with its index, made once and only to be copied."""
    folder = tempfile.TemporaryDirectory(prefix="mnemarch-tests-")
    with mnemarch.open(folder.name) as memory:
        seat = memory.seat(Actor.agent("a"), SCOPE)
        seat.remember_many([Claim(content=f"Thing{n} weighs {n} grams") for n in range(count)])
        seat.recall("weighs")
        memory.reindex()
    return folder


def filled(folder, count=60):
    shutil.copytree(template(count).name, folder)
    return folder / ".mnemarch" / "memory.db"


def refused(worker, folder, *errors):
    """What a process says that can't use the memory: one of these errors, with what to do."""
    (told,) = worker("open_only", folder).done()
    assert told["error"] in errors
    assert told["hint"]
    return told


def files(place):
    return {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()}


CUTS = {
    "everything": lambda size: 0,
    "one byte": lambda size: 1,
    "ten bytes": lambda size: 10,
    "the header alone": lambda size: 100,
    "half a page": lambda size: 2048,
    "one page": lambda size: 4096,
    "mid-page": lambda size: size // 2 + 1000,
    "half of it": lambda size: size // 2 // 4096 * 4096,
    "the last page": lambda size: size - 4096,
    "the last byte": lambda size: size - 1,
}


@pytest.mark.parametrize("cut", CUTS)
def test_a_truncated_file_is_corrupt_and_left_alone(worker, folder, cut):
    path = filled(folder)
    whole = path.read_bytes()
    path.write_bytes(whole[: CUTS[cut](len(whole))])
    before = files(path.parent)
    refused(worker, folder, "StoreCorrupt")
    assert files(path.parent)["memory.db"] == before["memory.db"]
    path.write_bytes(whole)
    assert worker("open_only", folder).done()[0]["ok"]


def killed(folder):
    """A memory as a kill leaves it: most of it only in the write-ahead log."""
    script = (
        "import mnemarch, os, sys\nm = mnemarch.open(sys.argv[1])\n"
        "m.seat(mnemarch.Actor.agent('a'), mnemarch.Scope(project='p', task='t')).log('note', 'x')\nos._exit(0)"
    )
    subprocess.run([sys.executable, "-c", script, str(folder)], check=True)
    return folder / ".mnemarch" / "memory.db"


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("gone", [True, False])
def test_an_emptied_file_beside_its_log_is_a_loss_and_nothing_is_deleted(worker, folder, marked, gone):
    path = killed(folder)
    assert path.with_name("memory.db-wal").stat().st_size
    whole = path.read_bytes()
    path.unlink() if gone else path.write_bytes(b"")
    if not marked:
        path.with_name("memory.db-made").unlink()
    before = files(path.parent)
    assert "-wal" in refused(worker, folder, "StoreCorrupt")["hint"]
    assert files(path.parent) == before
    path.write_bytes(whole)
    with mnemarch.open(folder) as memory:
        assert memory.stats().events == 1


def test_a_memory_without_its_mark_gets_it_when_it_is_next_opened(worker, folder):
    """As one is that was killed while it was made, or restored from a backup."""
    path = filled(folder, count=1)
    mark = path.with_name("memory.db-made")
    mark.unlink()
    assert worker("open_only", folder).done()[0]["ok"]
    assert mark.exists()
    path.write_bytes(b"")
    refused(worker, folder, "StoreCorrupt")
    assert path.read_bytes() == b""


@pytest.mark.parametrize("content", [b"hello\n", b"\x00" * 5000, b"SQLite format 3\x00", os.urandom(8192), b"{}"])
def test_a_file_that_is_no_database_is_corrupt_and_left_alone(worker, folder, content):
    place = folder / ".mnemarch"
    place.mkdir(parents=True)
    sign(str(place))
    (place / "memory.db").write_bytes(content)
    refused(worker, folder, "StoreCorrupt")
    assert (place / "memory.db").read_bytes() == content


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_somebody_elses_database_is_corrupt_and_left_alone(worker, folder, mode):
    place = folder / ".mnemarch"
    place.mkdir(parents=True)
    sign(str(place))
    connection = sqlite3.connect(place / "memory.db")
    connection.execute(f"PRAGMA journal_mode = {mode}")
    connection.execute("CREATE TABLE events (precious)")
    connection.execute("INSERT INTO events VALUES ('data')")
    connection.commit()
    connection.close()
    before = (place / "memory.db").read_bytes()
    refused(worker, folder, "StoreCorrupt")
    assert (place / "memory.db").read_bytes() == before


def test_a_newer_format_is_incompatible_and_left_alone(worker, folder):
    path = filled(folder)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    before = path.read_bytes()
    assert "999" in refused(worker, folder, "Incompatible")["message"]
    assert path.read_bytes() == before


@pytest.mark.parametrize("place", [0.2, 0.5, 0.8])
def test_a_page_of_garbage_is_an_error_in_words(worker, folder, place):
    path = filled(folder, count=400)
    whole = bytearray(path.read_bytes())
    start = int(len(whole) * place) // 4096 * 4096
    whole[start : start + 4096] = os.urandom(4096)
    path.write_bytes(bytes(whole))
    (told,) = worker("open_only", folder).done()
    # A page that nothing asked for is found by the engine's own check, which the doctor runs.
    assert told.get("error") == "StoreCorrupt" or told.get("ok") is False or told.get("check")


def test_a_folder_in_the_place_of_the_file_is_an_error_in_words(worker, folder):
    (folder / ".mnemarch" / "memory.db").mkdir(parents=True)
    refused(worker, folder, "StoreUnavailable", "StoreCorrupt")


def test_a_file_in_the_place_of_the_folder_is_an_error_in_words(worker, folder):
    folder.mkdir()
    (folder / ".mnemarch").write_text("x", encoding="utf-8")
    refused(worker, folder, "StoreUnavailable", "StoreCorrupt", "InvalidInput")


# The index can always be made again


def harm_everything(place, harm):
    for path in sorted(place.rglob("*")):
        if path.is_file():
            harm(path)


def harm_segments(place, harm):
    harm_everything(place, lambda path: path.suffix not in {".json", ".lock"} and harm(path))


def halve(path):
    os.truncate(path, path.stat().st_size // 2)


HARMS = {
    "deleted": lambda place: shutil.rmtree(place),
    "emptied": lambda place: [path.unlink() for path in place.iterdir() if path.is_file()],
    "no meta": lambda place: (place / "meta.json").unlink(),
    "garbage meta": lambda place: (place / "meta.json").write_bytes(b"\xff garbage"),
    "meta of another": lambda place: (place / "meta.json").write_text("{}", encoding="utf-8"),
    "garbage managed": lambda place: (place / ".managed.json").write_bytes(b"garbage"),
    "all truncated": lambda place: harm_everything(place, halve),
    "all empty": lambda place: harm_everything(place, lambda path: os.truncate(path, 0)),
    "segments garbage": lambda place: harm_segments(place, lambda path: path.write_bytes(os.urandom(300))),
    "segments truncated": lambda place: harm_segments(place, halve),
    "segments gone": lambda place: harm_segments(place, Path.unlink),
    "a file": lambda place: (shutil.rmtree(place), place.write_text("x", encoding="utf-8")),
    "stale lock": lambda place: (place / ".tantivy-writer.lock").write_text("", encoding="utf-8"),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_broken_index_is_made_again_and_recall_is_right(worker, folder, harm):
    filled(folder, count=200)
    HARMS[harm](folder / ".mnemarch" / "index")
    reader = worker("recall", folder, "thing7 weighs", "T-1")
    told = reader.line()
    reader.done()
    assert told["found"][0] == "Thing7 weighs 7 grams"
    with mnemarch.open(folder) as memory:
        assert memory.reindex() == 200
        seat = memory.seat(Actor.agent("a"), SCOPE)
        assert seat.recall("thing150 weighs").items[0].unit.content == "Thing150 weighs 150 grams"
        stats = memory.stats()
        assert (stats.indexed, stats.unindexed) == (200, 0)


def test_an_index_deleted_under_a_running_process_changes_no_answer(worker, folder):
    filled(folder, count=200)
    reader = worker("recall", folder, "thing7 weighs", "T-1")
    assert reader.line()["found"][0] == "Thing7 weighs 7 grams"
    shutil.rmtree(folder / ".mnemarch" / "index")
    assert reader.ask("thing8 weighs")["found"][0] == "Thing8 weighs 8 grams"
    with mnemarch.open(folder) as memory:
        memory.seat(Actor.agent("a"), SCOPE).remember("Thing999 weighs 999 grams")
    assert reader.ask("thing999 weighs")["found"][0] == "Thing999 weighs 999 grams"
    reader.done()


def test_an_index_of_another_memory_is_not_believed(worker, folder, tmp_path):
    filled(folder, count=100)
    other = tmp_path / "other"
    with mnemarch.open(other) as memory:
        memory.seat(Actor.agent("a"), SCOPE).remember("A quite different zebra")
        memory.seat(Actor.agent("a"), SCOPE).recall("zebra")
        memory.reindex()
    shutil.rmtree(folder / ".mnemarch" / "index")
    shutil.copytree(other / ".mnemarch" / "index", folder / ".mnemarch" / "index")
    with mnemarch.open(folder) as memory:
        seat = memory.seat(Actor.agent("a"), SCOPE)
        assert seat.recall("thing7 weighs").items[0].unit.content == "Thing7 weighs 7 grams"
        assert seat.recall("zebra").items == ()


# Disks


READ_ONLY = {
    "closed": lambda writer, _: (writer.go(), writer.done()),
    "killed, with a log that was not folded in": lambda writer, _: writer.killed(),
    "killed, and its shared memory is gone": lambda writer, place: (
        writer.killed(),
        (place / "memory.db-shm").unlink(),
    ),
    "open in another process": lambda *_: None,
}


@pytest.mark.parametrize("is_folder_shut", [True, False], ids=["a folder", "a file"])
@pytest.mark.parametrize("state", READ_ONLY)
def test_a_read_only_memory_is_read_completely_and_never_written(worker, state, is_folder_shut):
    # Not under pytest's own folder, which nobody but its owner may enter.
    folder = Path(tempfile.mkdtemp(prefix="mnemarch-readonly-"))
    place = folder / ".mnemarch"
    writer = worker("write_and_wait", folder)
    try:
        unit_id = writer.line()["unit"]
        READ_ONLY[state](writer, place)
        for path in [*folder.rglob("*"), folder]:
            path.chmod((0o555 if is_folder_shut else 0o777) if path.is_dir() else 0o444)
        before = files(place)
        runs = worker("read_only", folder, unit_id).done()
        assert files(place) == before
        for run in runs:
            assert run["code"] == (0 if run["reads"] else 3), run
            is_told = not run["reads"] or run["argv"][0] in {"recall", "context"}
            assert ("can't be written" in run["err"]) == is_told, run
        said = {run["argv"][0]: run for run in runs if run["reads"]}
        assert all("zebra" in said[name]["out"] for name in ("recall", "context", "units", "get", "explain", "show"))
        assert said["recall"]["err"].count("\n") == 1
        assert "(read-only from here)" in said["status"]["out"]
    finally:
        for path in [folder, *folder.rglob("*")]:
            path.chmod(stat.S_IRWXU)
        shutil.rmtree(folder)


@pytest.mark.parametrize("how", ["log", "remember"])
@pytest.mark.parametrize("limit", [400_000, 1_000_000, 3_000_000])
def test_a_full_disk_is_an_error_in_words_and_leaves_nothing_half_written(worker, folder, how, limit, checked):
    filled(folder, count=5)
    told = worker("fill", folder, limit, how).done()
    acknowledged = [item["event_id"] for item in told if "event_id" in item]
    failed = next(item for item in told if "error" in item)
    assert failed["error"] == "StoreUnavailable"
    assert failed["hint"]
    assert told[-1].get("closed")
    events = checked()
    assert set(acknowledged) <= set(events)
    with mnemarch.open(folder) as memory:
        memory.seat(Actor.agent("a"), SCOPE).log("thought", "there is room again")
        assert memory.audit().ok


def test_a_lock_that_is_held_for_too_long_is_an_error_in_words(folder):
    path = filled(folder, count=1)
    config = config_from({"store": {"lock_wait_s_max": 0.2}})
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        with mnemarch.open(folder, config=config) as memory:
            seat = memory.seat(Actor.agent("a"), SCOPE)
            with pytest.raises(mnemarch.StoreUnavailable) as caught:
                seat.log("thought", "x")
            assert caught.value.hint
            assert "locked" in caught.value.message
            assert seat.recall("weighs").items
            holder.execute("ROLLBACK")
            seat.log("thought", "x")
    finally:
        holder.close()


def test_a_write_ahead_log_left_by_a_crash_is_taken_in(worker, folder, tmp_path, checked):
    """The database and its log as a crash leaves them, copied while a process still had them open."""
    with mnemarch.open(folder) as memory:
        seat = memory.seat(Actor.agent("a"), SCOPE)
        receipts = [seat.log("thought", f"n{n}") for n in range(50)]
        copy = tmp_path / "copy"
        (copy / ".mnemarch").mkdir(parents=True)
        for name in ("maker", "memory.db", "memory.db-wal"):
            subprocess.run(["cp", folder / ".mnemarch" / name, copy / ".mnemarch" / name], check=True)
    with mnemarch.open(copy) as memory:
        assert memory.audit().ok
        events = {event.id for event in memory._engine.store.read(lambda reader: list(reader.events()))}
        assert events == {receipt.event_id for receipt in receipts}


def test_on_a_full_disk_what_is_known_can_still_be_read(tmp_path):
    with mnemarch.open(tmp_path) as memory:
        seat = memory.seat(Actor.human("ada"), Scope(project="shop", worktree="main"))
        seat.remember("The port is 9090")
    script = (
        "import resource, mnemarch\n"
        "from mnemarch import Actor, Scope\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        f"with mnemarch.open({str(tmp_path)!r}) as memory:\n"
        "    seat = memory.seat(Actor.human('ada'), Scope(project='shop', worktree='main'))\n"
        "    print(seat.recall('which port?').items[0].unit.content)\n"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert told.stdout.strip() == "The port is 9090", told.stderr
