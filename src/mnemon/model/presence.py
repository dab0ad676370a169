"""Who acts, and where: what a seat is bound to."""

from __future__ import annotations

from mnemon.model.actor import Actor, checked_id
from mnemon.model.event import Stream
from mnemon.model.scope import Scope


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

    @property
    def task_key(self) -> str | None:
        return self.scope_key if self.scope.task is not None else None
