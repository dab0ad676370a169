"""A memory that is served on a real socket, and seats of it over the network."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager

import uvicorn

import mnemarch.client
from mnemarch import Actor, Level, Scope
from mnemarch.interfaces.http import Tokens
from mnemarch.interfaces.http.app import Server


@contextmanager
def serving(server: Server):
    """The address of a server in this process, for as long as it is entered."""
    config = uvicorn.Config(server.app(), log_level="error", lifespan="off", timeout_graceful_shutdown=5)
    running = uvicorn.Server(config)
    server.closing = lambda: running.should_exit
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=running.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            running.should_exit = True
            thread.join()


@contextmanager
def remote(seats, url: str, tokens: Tokens):
    """The same seats, over the network: each with a token for its actor and project."""
    connected: dict[tuple[str, Scope], mnemarch.client.RemoteMemory] = {}
    local = seats.seat

    def seat(kind: str, name: str, scope: Scope | None = None, **where):
        if kind == "system":  # The program's own name is nobody's token.
            return local(kind, name, scope, **where)
        home = dict(zip(("org", "project", "worktree", "task"), seats.HOME.segments, strict=True))
        at = scope or Scope(**home | where)
        key = (f"{kind}:{name}", at.at(Level.PROJECT))
        if key not in connected:
            connected[key] = mnemarch.connect(url, tokens.create(Actor(kind, name), at, "admin", 1)[1])
        return connected[key].seat(worktree=at.worktree, task=at.task)

    seats.seat = seat
    yield seats
    for memory in connected.values():
        memory.close()
