"""What the tortured processes do: `python workers.py <job> <folder> ...`. Each line they print is a promise kept."""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import signal
import sys
import traceback

import mnemarch
from mnemarch import Actor, Citation, Claim, Conflict, Scope

SCOPE = Scope(org="acme", project="shop", worktree="main", task="T-1")


def seat_of(memory, kind="agent", name="coder", **where):
    return memory.seat(
        Actor(kind, name), Scope(**(dict(zip(Scope.__match_args__, SCOPE.segments, strict=True)) | where))
    )


def say(**told):
    """One line, whole or not at all: a pipe takes it in one write."""
    os.write(1, (json.dumps(told) + "\n").encode())


def ready():
    """Tell the test that this process is set up, and wait until all are."""
    say(ready=True)
    sys.stdin.readline()


def log(folder, name, count):
    """Log `count` entries and acknowledge each once its receipt is there."""
    with mnemarch.open(folder) as memory:
        seat = seat_of(memory, name=f"coder-{name}")
        for number in range(int(count)):
            receipt = seat.log("thought", f"{name}:{number}", key=f"{name}:{number}")
            say(event_id=receipt.event_id, seq=receipt.seq, text=f"{name}:{number}")


def log_together(folder, name, count):
    """As `log`, started together with the others, and with one line at the end: 64 pipes are slower than SQLite."""
    ready()
    receipts = []
    with mnemarch.open(folder) as memory:
        seat = seat_of(memory, name=f"coder-{name}")
        for number in range(int(count)):
            receipt = seat.log("thought", f"{name}:{number}")
            receipts.append([receipt.seq, receipt.event_id])
    say(receipts=receipts)


def keep_together(folder, name, count):
    """Append to one section of core memory and correct what was appended, started together with the others."""
    ready()
    with mnemarch.open(folder) as memory:
        core = seat_of(memory, name=f"coder-{name}").core
        for number in range(int(count)):
            core.core_memory_append("project", f"<{name}:{number}?>")
            core.core_memory_replace("project", f"<{name}:{number}?>", f"<{name}:{number}>")
    say(done=True)


def fail_together(folder, name, count):
    """Fail the same way `count` times, started together with the others, each a little differently said."""
    ready()
    counts = []
    with mnemarch.open(folder) as memory:
        seat = seat_of(memory, name=f"coder-{name}")
        for number in range(int(count)):
            said = f"TimeoutError: pool of size {name} timed out after {number}.5 s at 0x7f{name}{number}ab"
            verdict = seat.fail(said, approach=f"raise the pool size to {10 + number}")
            counts.append([verdict.details["count"], verdict.details["approach_count"], str(verdict.type)])
    say(counts=counts)


def decide_together(folder, name, root, rounds):
    """Revise one decision again and again, each time from the version in force; tell how often it won and lost."""
    won = lost = 0
    with mnemarch.open(folder) as memory:
        desk = seat_of(memory, "orchestrator", f"lead-{name}").decisions
        given = [desk.add_evidence(f"what {name} saw").id]
        ready()
        for number in range(int(rounds)):
            why = {"type": "risk", "summary": f"round {number}"}
            text = f"decided by {name} in round {number}"
            try:
                seen = desk.in_force(root).id
                desk.commit(desk.propose(text, reason=why, evidence=given, revises=seen))
                won += 1
            except Conflict as conflict:
                lost += conflict.current is not None and conflict.actual_version > conflict.expected_version
    say(won=won, lost=lost)


def live(folder, name):
    """Do a bit of everything until killed, acknowledging what is durable."""
    memory = mnemarch.open(folder)
    agent = seat_of(memory, name=f"coder-{name}", task=f"T-{name}")
    human = seat_of(memory, "human", "alice", task=f"T-{name}")
    number = 0
    while True:
        number += 1
        receipt = agent.log("thought", f"{name}:{number}")
        say(event_id=receipt.event_id, seq=receipt.seq)
        stored = agent.remember(f"Thing {name} {number} weighs {number} grams", level="worktree")
        say(event_id=stored.receipt.event_id, unit=stored.unit.id)
        if number % 3 == 0:
            human.approve(stored.unit.id)
            say(approved=stored.unit.id)
        if number % 5 == 0:
            agent.recall("thing weighs grams")
            say(event_id=agent.verify(True, tests=[f"test_{number}"]).receipt.event_id)
        if number % 7 == 0:
            human.erase(stored.unit.id, "privacy")
            say(erased=stored.unit.id)


def revise(folder, name, unit_id, version):
    """Revise one unit from the version that everybody saw."""
    memory = mnemarch.open(folder)
    boss = seat_of(memory, "orchestrator", f"boss-{name}")
    new = boss.remember(f"Revision by {name} of {unit_id}", level="worktree").unit
    ready()
    try:
        boss.supersede(new.id, unit_id, f"reason of {name}", expected_version=int(version))
        say(won=True, new=new.id)
    except Conflict as error:
        say(won=False, new=new.id, actual=error.actual_version, current=error.current and error.current.id)
    memory.close()


def remember(folder, name, content):
    with mnemarch.open(folder) as memory:
        seat = seat_of(memory, name=f"coder-{name}")
        ready()
        stored = seat.remember(content, level="worktree")
        say(unit=stored.unit.id, merged=stored.merged, conflicts=[item.id for item in stored.conflicts])


def recall(folder, query, task="T-9"):
    """Answer each query that is asked, with one memory held open."""
    with mnemarch.open(folder) as memory:
        seat = seat_of(memory, name="reader", task=task)
        say(ready=True, found=[item.unit.content for item in seat.recall(query, k=20).items])
        for line in sys.stdin:
            say(found=[item.unit.content for item in seat.recall(line.strip(), k=20).items])


def open_only(folder):
    """Open, look, and say what happened: for files that are broken."""
    try:
        memory = mnemarch.open(folder)
        try:
            check = memory.audit()
            seat = seat_of(memory)
            seat.recall("anything")
            seat.log("thought", "x")
            say(ok=check.ok, events=check.events, check=memory._engine.store.check())
        finally:
            memory.close()
    except mnemarch.MnemarchError as error:
        say(error=type(error).__name__, message=error.message, hint=error.hint)


READS = (
    ["recall", "zebra"],
    ["context", "zebra"],
    ["units"],
    ["conflicts"],
    ["log", "--tail", "1"],
    ["status"],
    ["get", "UNIT"],
    ["explain", "UNIT"],
    ["history", "UNIT"],
    ["show", "UNIT"],
)
WRITES = (["log", "thought", "x"], ["remember", "y"], ["reindex"], ["rebuild"], ["verify", "--", "pytest", "--version"])


def write_and_wait(folder):
    """Write something to find, some of it indexed, and keep the memory open until the test says so."""
    with mnemarch.open(folder) as memory:
        seat_of(memory).remember("The lion sleeps", level="worktree")
        memory.reindex()
        say(unit=seat_of(memory).remember("The zebra is here", level="worktree").unit.id)
        sys.stdin.readline()


def read_only(folder, unit_id):
    """Every command that reads, and some that write, as nobody in a folder that may only be read."""
    import tempfile

    with tempfile.TemporaryDirectory() as elsewhere:
        # Everything is loaded before the rights to the interpreter's own files may be gone.
        with mnemarch.open(elsewhere) as memory:
            known = seat_of(memory).remember("The zebra is here", level="worktree").unit.id
        for argv in (["trust", "--yes"], *READS, *WRITES):
            ran(argv, elsewhere, known)
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65_534)
        os.setuid(65_534)
    with tempfile.TemporaryDirectory() as own:
        os.environ["XDG_CONFIG_HOME"] = own
        ran(["trust", "--yes"], folder, unit_id)  # For another user it is another's memory.
        for argv in (*READS, *WRITES):
            say(reads=argv in READS, **ran(argv, folder, unit_id))


def ran(argv, folder, unit_id):
    """What a command answers there."""
    import contextlib
    import io

    from mnemarch.interfaces.cli import main

    typed = [unit_id if word == "UNIT" else word for word in argv]
    where = ("--org", SCOPE.org, "--project", SCOPE.project, "--worktree", SCOPE.worktree, "--task", SCOPE.task)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*where, "--store", folder, "--root", folder, "--actor", "agent:a", *typed])
    return {"argv": argv, "code": code, "out": out.getvalue(), "err": err.getvalue()}


def fill(folder, limit, how):
    """Write until the disk is full: no file may grow beyond `limit` bytes."""
    import resource

    memory = mnemarch.open(folder)
    seat = seat_of(memory)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    number = 0
    try:
        while number < 20_000:
            number += 1
            if how == "log":
                say(event_id=seat.log("thought", f"{number} " + "x" * 2_000).event_id)
            else:
                claims = [Claim(content=f"Thing{number}x{n} weighs {n} grams " + "y" * 500) for n in range(40)]
                for stored in seat.remember_many(claims):
                    say(event_id=stored.receipt.event_id)
                seat.recall("weighs grams")
        say(error=None)
    except mnemarch.MnemarchError as error:
        say(error=type(error).__name__, hint=error.hint)
    try:
        seat.log("thought", "once more " + "x" * 2_000)
    except mnemarch.MnemarchError as error:
        say(again=type(error).__name__)
    try:
        memory.close()
        say(closed=True)
    except mnemarch.MnemarchError as error:
        say(closed=type(error).__name__)


def forked(folder, order):
    """Fork with the memory open: both go on writing, and close in either order."""
    memory = mnemarch.open(folder)
    seat = seat_of(memory)
    seat.remember("The forked memory is one memory")
    seat.recall("forked memory")
    here, there = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        for number in range(50):
            say(event_id=seat.log("thought", f"child {number}").event_id)
        os.write(there[1], b"x")
        os.read(here[0], 1)
        for number in range(50, 60):
            say(event_id=seat.log("thought", f"child {number}").event_id)
        say(found=len(seat.recall("forked memory").items))
        memory.close()
        os._exit(0)
    for number in range(50):
        say(event_id=seat.log("thought", f"parent {number}").event_id)
    os.read(there[0], 1)
    if order == "parent first":
        memory.close()
        os.write(here[1], b"x")
        _, status = os.waitpid(child, 0)
    else:
        os.write(here[1], b"x")
        _, status = os.waitpid(child, 0)
        for number in range(50, 60):
            say(event_id=seat.log("thought", f"parent {number}").event_id)
        memory.close()
    say(status=status)


def fork_busy(folder, count, how):
    """Fork again and again while four threads use the memory; tell what became of each child."""
    import multiprocessing
    import threading

    memory = mnemarch.open(folder)
    seat = memory.seat(Actor.agent("coder"), SCOPE, session="s")
    seat.remember("The forked memory is one memory", level="worktree")
    graph, stop = seat.graph, threading.Event()

    def child(number):
        signal.alarm(20)  # A hang is a death by SIGALRM.
        try:
            found = [item.unit.content for item in seat.recall("forked memory").items]
            assert "The forked memory is one memory" in found, found
            stored = seat.remember(f"Child {number} was here", level="worktree")
            graph.upsert_query("s", f"What does child {number} know?")
            say(event_id=stored.receipt.event_id)
            os._exit(0)
        except BaseException:  # noqa: BLE001 - told to the test
            traceback.print_exc()
            os._exit(1)

    def busy(work):
        number = 0
        while not stop.is_set():
            number += 1
            work(number)

    works = (
        lambda _: seat.recall("forked memory"),
        lambda number: seat.remember(f"Thread wrote {number}", level="worktree"),
        lambda number: graph.upsert_query("s", f"What is number {number}?"),
        lambda number: seat.log("thought", f"parent {number}", key=f"parent {number}"),
    )
    threads = [threading.Thread(target=busy, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    statuses = []
    for number in range(int(count)):
        if how == "multiprocessing":
            process = multiprocessing.get_context("fork").Process(target=child, args=(number,))
            process.start()
            process.join()
            statuses.append(process.exitcode)
            continue
        pid = os.fork()
        if pid == 0:
            child(number)
        statuses.append(os.waitpid(pid, 0)[1])
    stop.set()
    for thread in threads:
        thread.join()
    memory.close()
    say(statuses=statuses)


def interrupted(folder, rounds, seed):
    """Be interrupted at any moment of a write, again and again; tell what went wrong."""
    import random

    moments, interrupts, wrong, armed = random.Random(int(seed)), 0, [], False

    def interrupt(*_):
        if armed:
            raise KeyboardInterrupt

    def ignored(given):
        """Within a callback of the interpreter itself an interrupt is printed, and goes no further."""
        if given.exc_type is not KeyboardInterrupt:
            sys.__unraisablehook__(given)

    sys.unraisablehook = ignored
    signal.signal(signal.SIGALRM, interrupt)
    with mnemarch.open(folder) as memory:
        seat, human = seat_of(memory), seat_of(memory, "human", "alice")
        unit = seat.remember("The first is here", level="worktree").unit
        acts = (
            lambda n: seat.log("thought", f"interrupted {n}"),
            lambda n: seat.remember(f"Interrupt {n} came", level="worktree"),
            lambda n: human.erase(seat.remember(f"Erased {n}", level="worktree").unit.id, "privacy"),
            lambda n: seat.verify(True, tests=[f"test_{n}"]),
            lambda n: seat.recall("interrupt"),
        )
        for number in range(int(rounds)):
            try:
                armed = True
                signal.setitimer(signal.ITIMER_REAL, moments.random() ** 2 * 0.02 + 1e-6)
                acts[number % len(acts)](number)
                armed = False
            except KeyboardInterrupt:
                armed = False
                interrupts += 1
            try:
                say(event_id=seat.log("thought", f"after {number}").event_id)
            except BaseException as error:  # noqa: BLE001 - told to the test
                wrong.append([number, repr(error)])
        wrong += [] if seat.get(unit.id).live and not memory._engine.store._lent() else ["lost"]
    say(interrupts=interrupts, wrong=wrong)


ODD = ("a-" * 14_000, "\u0000", "가" * 9_000, "((((" * 3_000, "\u202e" + "x" * 500, "e\u0301" * 4_000, "🙂" * 3_000)


def mixed(folder, name, seed):
    """Do everything until standard input ends; open the memory again whenever it disappeared."""
    import faulthandler
    import random
    import select

    moments, number, memory, armed = random.Random(int(seed)), 0, None, False

    def interrupt(*_):
        if armed:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)  # Also where a shell's background job would ignore it.
    faulthandler.enable()
    # Once the loading of one written in C was interrupted, the process can't load it again.
    for loaded in ("numpy", "Stemmer", "tantivy", "xxhash", "ast_grep_py"):
        importlib.import_module(loaded)
    say(ready=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        number += 1
        try:
            armed = True
            if memory is None:
                # A memory that is not there would be begun: none may be moved away between the question and the act.
                with open(os.path.join(folder, "gate"), "w") as gate:
                    fcntl.flock(gate, fcntl.LOCK_SH)
                    if not os.path.exists(os.path.join(folder, ".mnemarch", "memory.db")):
                        continue
                    memory = mnemarch.open(folder)
            mixed_act(memory, name, number, moments)
            armed = False
        except KeyboardInterrupt:
            armed = False
            say(interrupted=number)
        except mnemarch.StoreUnavailable as error:
            armed = False
            say(unavailable=error.message[-60:])
            memory = memory and memory.close()
        except mnemarch.InvalidInput:
            say(refused=number)
        except Exception as error:  # noqa: BLE001 - told to the test
            armed = False
            say(wrong=f"{name}: {error!r}", trace=traceback.format_exc()[-1500:])
        armed = False
    if memory is not None:
        memory.close()


def mixed_act(memory, name, number, moments):
    seat = memory.seat(Actor.agent(name), Scope(project="p", worktree="w", task=f"{name}-{number // 20}"), session=name)
    act = moments.randrange(10)
    if act < 3:
        say(event_id=seat.log("thought", f"{name} {number} {moments.choice(ODD)}").event_id)
    elif act < 5:
        stored = seat.remember(f"{name} found that thing{number} weighs {number} grams", level="worktree")
        say(event_id=stored.receipt.event_id)
    elif act == 5:
        seat.recall(moments.choice([*ODD, "which thing weighs most?", f"thing{number - 3}"]))
        say(recalled=number)
    elif act == 6:
        say(event_id=seat.verify(True, tests=[f"test_{number}"]).receipt.event_id)
    elif act == 7:
        seat.graph.upsert_query(name, f"what is number {number}?")
        say(asked=number)
    elif act == 8:
        unit = seat.remember(f"{name} secret {number}", level="worktree").unit
        memory.seat(Actor.human("alice"), seat.scope).erase(unit.id, "privacy")
        say(erased=unit.id)
    else:
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.alarm(80)
            try:
                say(event_id=seat.log("thought", f"child of {name} {number}").event_id)
                seat.recall("thing weighs")
            except mnemarch.StoreUnavailable as error:
                say(unavailable=error.message[-60:])
            os._exit(0)
        status = 0
        while True:
            try:
                status = os.waitpid(pid, 0)[1]
                break
            except KeyboardInterrupt:
                continue
            except ChildProcessError:
                break  # It had ended when the interrupt came, before its status was told.
        say(**({"forked": number} if status == 0 else {"wrong": f"a child ended with {status}"}))


def offline(folder):
    """Every name lookup and every socket fails: nothing may notice."""
    import socket

    def refuse(*_, **__):
        raise OSError("no network here")

    socket.getaddrinfo = socket.gethostbyname = socket.create_connection = refuse
    socket.socket = refuse
    with mnemarch.open(folder) as memory:
        agent = seat_of(memory)
        agent.log("plan", "x")
        agent.remember("Checkout retries three times", citations=[Citation.test("t")])
        promotion = agent.verify(True, tests=["t"])
        found = agent.recall("checkout retries")
        say(verified=len(promotion.units), found=len(found.items), ok=memory.audit().ok, same=memory.rebuild().same)


def index_and_vanish(folder, count):
    """Leave while the index is still being made in the background."""
    memory = mnemarch.open(folder)
    seat = seat_of(memory)
    seat.remember_many([Claim(content=f"Thing{n} weighs {n} grams") for n in range(int(count))])
    say(found=len(seat.recall("weighs grams", k=5).items))


def twice(folder, other, how):
    """One process, more than one memory on a folder; another process comes and goes in between."""
    import subprocess

    first = mnemarch.open(folder)
    seat = seat_of(first, name="first")
    seat.log("thought", "before")
    if how == "opened twice":
        second = mnemarch.open(folder)
        seat_of(second, name="second").log("thought", "by the second")
    elif how == "opened and closed":
        mnemarch.open(folder).close()
    elif how == "erased":
        unit = seat.remember("The seaside house has a turquoise door").unit
        seat_of(first, "human", "alice").erase(unit.id, "privacy")
    else:
        first.doctor()

    def come_and_go(name):
        command = [sys.executable, __file__, "log", folder, name, "1"]
        os.write(1, subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)

    come_and_go(other)
    say(event_id=seat.log("thought", "after").event_id)
    come_and_go(other + "-again")
    say(event_id=seat.log("thought", "at the end").event_id, ok=first.audit().ok)
    first.close()


QUESTIONS = ("Where do invoices go?", "결제는 어떻게 하나요?", "Which port has redis?", "로그는 어디에 쌓이나요?")


def graph_of(memory):
    return memory.seat(Actor.agent("coder"), SCOPE, session="s").graph


def judge(folder, count):
    """Judge questions of one session, and acknowledge each judgement."""
    with mnemarch.open(folder) as memory:
        graph = graph_of(memory)
        ready()
        for number in range(int(count)):
            text = QUESTIONS[number % len(QUESTIONS)]
            graph.record_feedback("s", graph.upsert_query("s", text), "up")
            say(judged=text)


def weights(folder):
    """Tell the weights of every question of the session."""
    with mnemarch.open(folder) as memory:
        nodes = graph_of(memory).get_session_store("s").nodes("query")
        say(weights={node.text: [node.weights.repeat, node.weights.feedback] for node in nodes})


def save_graph(path, count):
    from mnemarch.graph import GraphStore

    store = GraphStore({"tau_sim": 0.1})
    ready()
    for number in range(int(count)):
        store.upsert_query(f"{QUESTIONS[number % 4]} {number}")
        store.save_to_file(path)
        say(saved=number + 1)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
