"""Shared by all tests: a fixed clock, a memory on each store, and seats to act from."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

import mnemarch
from fixtures import postgres
from mnemarch import Actor, Citation, Scope, user
from mnemarch.model.caller import Caller
from mnemarch.seat import Seat

if "PYTEST_XDIST_WORKER" in os.environ:
    # Coverage has begun here; the processes that tests start must be as bare as a user's.
    for name in [name for name in os.environ if name.startswith("COVERAGE_")]:
        del os.environ[name]

# A runner started in the background may ignore Ctrl-C, and so would every process that a test interrupts.
for ignored in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, signal.default_int_handler if ignored is signal.SIGINT else signal.SIG_DFL)

# A memory waits for the disk at each commit. What a test writes goes with it, so it is written to memory where there is
# room for it; TMPDIR says otherwise.
if "TMPDIR" not in os.environ and os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 4 << 30:
    os.environ["TMPDIR"] = tempfile.tempdir = "/dev/shm"

# The developer's own configuration, and the coding agent that runs the tests, must not show in any test: not in its
# process, nor in those that it starts. Here ada is who uses the computer, and these are her orchestrators.
for name in user._HOSTS.keys() & os.environ.keys():
    del os.environ[name]
_OWN = tempfile.TemporaryDirectory(prefix="mnemarch-tests-")
# What can be made again, the workers of a run share with the process that starts them: a model takes seconds to unpack.
_OWNED = ("CONFIG", "STATE") if "PYTEST_XDIST_WORKER" in os.environ else ("CONFIG", "STATE", "CACHE")
os.environ |= {f"XDG_{name}_HOME": os.path.join(_OWN.name, name.lower()) for name in _OWNED}
user.keep_person("ada")
Path(user.path_of("orchestrators")).write_text("lead\nci\n")

# `MNEMARCH_TEST_STORES=postgres` runs on PostgreSQL what else runs on the stores of one machine.
STORES = tuple(os.environ.get("MNEMARCH_TEST_STORES", "in_memory sqlite files").split())

settings.register_profile(
    "mnemarch",
    deadline=None,
    database=None,
    max_examples=200 if os.environ.get("MNEMARCH_TORTURE") == "full" else 40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("mnemarch")


def pytest_addoption(parser):
    parser.addoption("--rewrite", action="store_true", help="pin what test_characterisation.py gets now")
    parser.addoption("--every-store", action="store_true", help="run each test of a memory on every store, not on one")


def pytest_generate_tests(metafunc):
    """Whatever store a memory stands on, the same code answers: each test runs on one of them, chosen by its name.

    What a store itself promises, all of them are asked (test_stores.py).
    """
    if "store_kind" in metafunc.fixturenames:
        every = metafunc.config.getoption("--every-store")
        chosen = crc32(metafunc.definition.name.encode()) % len(STORES)
        metafunc.parametrize("store_kind", STORES if every else STORES[chosen : chosen + 1])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Torture, and what is marked `long`, runs untraced: it takes long enough, and other tests run the same lines."""
    if item.get_closest_marker("long") is None and "torture" not in item.path.parts:
        return (yield)
    trace = sys.gettrace()
    sys.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(trace)


@pytest.fixture(scope="session", autouse=True)
def few_plugins():
    """The pytest that a test starts loads no plugin of ours: these take six times as long as its tests."""
    ours = ("hypothesispytest", "anyio", "langsmith_plugin", "platformdirs", "schemathesis")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTEST_ADDOPTS", " ".join(f"-p no:{name}" for name in ours))
        yield


class FixedClock:
    """A clock that moves only when a test moves it, forward or back."""

    def __init__(self, now: datetime = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **delta: float) -> None:
        self.now += timedelta(**delta)


def own_seat(memory: mnemarch.Memory, actor: Actor, scope: Scope, root: str | None = None) -> Seat:
    """A seat for any actor, also the program itself."""
    caller = Caller(actor, scope, root=root)
    return Seat(memory._engine.of(caller.stream), caller)


class Seats:
    """Seats of one memory, by kind of actor; all in one place unless told otherwise."""

    HOME = Scope(org="acme", project="shop", worktree="main", task="T-1")

    def __init__(self, memory: mnemarch.Memory, **home: str) -> None:
        self.memory = memory
        self.home = home

    def seat(self, kind: str, name: str, scope: Scope | None = None, **where):
        at = scope or Scope(
            **(dict(zip(("org", "project", "worktree", "task"), self.HOME.segments, strict=True)) | self.home | where)
        )
        return own_seat(self.memory, Actor(kind, name), at, self.memory._engine.root)

    def agent(self, name: str = "coder-1", **where):
        return self.seat("agent", name, **where)

    def orchestrator(self, name: str = "boss-1", **where):
        return self.seat("orchestrator", name, **where)

    def human(self, name: str = "alice", **where):
        return self.seat("human", name, **where)

    def system(self, name: str = "mnemarch", **where):
        return self.seat("system", name, **where)

    def vouched(self, content: str, level: str = "project", **where):
        """What remembering gives when a person states it and vouches for it."""
        return self.human(**where).remember(content, level=level, citations=[Citation.human("alice")])

    def saw(self, *tests: str, passed: bool = True, turned: bool = True, **where):
        """What a verification gives after a person handed in a runner's report of these tests.

        With `turned`, what passes failed first: it turned green in that task, so it is about its claims (R20).
        """
        for outcome in (False, True) if passed and turned else (passed,):
            lines = [f"{'' if outcome else 'not '}ok {n} - {name}" for n, name in enumerate(tests, start=1)]
            with tempfile.NamedTemporaryFile("w", suffix=".tap") as report:
                report.write("\n".join(["TAP version 13", f"1..{len(tests)}", *lines, ""]))
                report.flush()
                last = self.human("ci", **where).verify(report=report.name)
        return last

    def events(self) -> list[mnemarch.Event]:
        """The whole log."""
        return self.memory._engine.store.read(lambda reader: list(reader.events()))


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def settings_of_memory() -> None:
    """What the memory of a test is configured with, if a file says more than the defaults."""


@pytest.fixture
def memory(request, store_kind, tmp_path, clock, settings_of_memory):
    """A memory on a store."""
    if store_kind == "postgres":
        target = request.getfixturevalue("postgres_url")
        (tmp_path / "home").mkdir()
        request.getfixturevalue("monkeypatch").chdir(tmp_path / "home")  # The code is looked for here.
    else:
        target = {"in_memory": ":memory:", "files": f"file://{tmp_path}/home"}.get(store_kind, tmp_path / "home")
    with mnemarch.open(target, clock=clock, config=settings_of_memory) as opened:
        yield opened


@pytest.fixture
def postgres_url():
    """The URL of an empty schema on a real PostgreSQL server."""
    server = postgres.server_url()
    url = postgres.new_schema(server)
    yield url
    if "MNEMARCH_TEST_POSTGRES_URL" in os.environ:
        postgres.drop_schema(url)


@pytest.fixture
def disk(tmp_path, clock):
    """A memory in a folder."""
    with mnemarch.open(tmp_path / "home", clock=clock) as opened:
        yield opened


@pytest.fixture
def seats(memory) -> Seats:
    return Seats(memory)


@pytest.fixture(scope="session")
def seats_of() -> type[Seats]:
    """How to make seats of a memory that a test opens itself."""
    return Seats


@pytest.fixture
def agent(seats):
    return seats.agent()


@pytest.fixture
def orchestrator(seats):
    return seats.orchestrator()


@pytest.fixture
def human(seats):
    return seats.human()


@pytest.fixture
def lead(seats):
    return seats.orchestrator()
