"""Who acts, and where: what a seat is bound to."""

from __future__ import annotations

from mnemarch.model.actor import Actor, checked_id
from mnemarch.model.digest import blake2b
from mnemarch.model.event import Stream
from mnemarch.model.json_text import to_json
from mnemarch.model.scope import Scope

GRAPH_PREFIX = "graph:"


class Presence:
    """An actor in a scope, in a session, at a working tree. Its keys are made once, since every act needs them."""

    __slots__ = ("actor", "root", "scope", "scope_key", "session", "stream", "visible_keys")

    def __init__(self, actor: Actor, scope: Scope, session: str | None = None, root: str | None = None) -> None:
        self.actor = actor
        self.scope = scope
        self.session = None if session is None else checked_id(session, "a session")
        self.root = root
        self.stream = Stream(scope.org, scope.project)
        self.scope_key = scope.key
        self.visible_keys = tuple(seen.key for seen in scope.visible)

    def graph_subject(self, session: str | None = None) -> str:
        """What this actor's graph is called in the log: that of a session, or its own, which is one in a project."""
        named = to_json([self.scope.org, self.scope.project, str(self.actor), session])
        return GRAPH_PREFIX + blake2b(named.encode(), digest_size=16).hexdigest()

    @property
    def task_key(self) -> str | None:
        return self.scope_key if self.scope.task is not None else None
