"""Tokens: who may come over the network, as whom, in which project, with which rights, and until when.

They stand in a file of the user's own, outside of every repository: an agent that may write there can't let itself in.
Of each only a digest is stored.
"""

from __future__ import annotations

import json
import os
import secrets
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from secrets import compare_digest

from mnemarch import user
from mnemarch.errors import InvalidInput, NotFound, StoreUnavailable
from mnemarch.files import locked, read_small, write_private
from mnemarch.interfaces.tools import PROFILES
from mnemarch.model.caller import Actor, Scope
from mnemarch.model.stamps import blake2b
from mnemarch.model.value import value
from mnemarch.policy.admission import checked_name
from mnemarch.policy.permissions import require_outsider

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_FILE_BYTES_MAX = 1_000_000
_WAIT_S_MAX = 5.0
_DAYS_MAX = 3_650
_BEGINNING = "mnm"


@value
class Token:
    """One token: what it lets in, until when; `digest` is that of its secret."""

    id: str
    digest: str
    actor: str
    org: str
    project: str
    profile: str
    expires_at: str

    def allows(self, profile: str) -> bool:
        return PROFILES.index(self.profile) >= PROFILES.index(profile)

    def is_over(self, now: datetime) -> bool:
        return now >= datetime.fromisoformat(self.expires_at)


class Tokens:
    """The tokens of one memory, by the folder it is in. What another process changes is seen at the next request."""

    def __init__(self, folder: str, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        name = blake2b(os.path.realpath(folder).encode(errors="surrogateescape"), digest_size=16).hexdigest()
        self._path = user.path_of(os.path.join("tokens", f"{name}.json"))
        self._clock = clock
        self._read: tuple[object, dict[str, Token]] = (None, {})

    def create(self, actor: Actor, scope: Scope, profile: str, days: int) -> tuple[Token, str]:
        """A new token, and its text, which nothing but this answer has."""
        require_outsider(actor)
        checked_name(actor.id, "an actor's id")
        if profile not in PROFILES:
            raise InvalidInput(f"There is no profile {profile!r}.", hint=f"Use {', '.join(PROFILES)}.")
        if not 0 < days <= _DAYS_MAX:
            raise InvalidInput(f"A token lasts 1 to {_DAYS_MAX} days, not {days}.", hint="Write --days 90, say.")
        if scope.project is None:
            raise InvalidInput("A token is for one project.", hint="Add --project NAME.")
        id, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
        token = Token(
            id=id,
            digest=sha256(secret.encode()).hexdigest(),
            actor=str(actor),
            org=scope.org,
            project=scope.project,
            profile=profile,
            expires_at=(self._clock() + timedelta(days=days)).isoformat(),
        )
        self._change(lambda tokens: tokens | {id: token})
        return token, f"{_BEGINNING}_{id}_{secret}"

    def revoke(self, id: str) -> Token:
        token = self.all().get(id)
        if token is None:
            raise NotFound(f"There is no token {id!r} for this memory.", hint="mnemarch token list shows them.")
        self._change(lambda tokens: {name: each for name, each in tokens.items() if name != id})
        return token

    def named_by(self, text: str) -> Token | None:
        """The token of this text, if there is one and its time is not over."""
        beginning, _, rest = text.partition("_")
        id, _, secret = rest.partition("_")
        token = self.all().get(id) if beginning == _BEGINNING else None
        digest = sha256(secret.encode(errors="replace")).hexdigest()
        is_it = token is not None and compare_digest(digest, token.digest) and self.is_valid(token)
        return token if is_it else None

    def is_valid(self, token: Token) -> bool:
        """Whether it still lets in."""
        return self.all().get(token.id) == token and not token.is_over(self._clock())

    def all(self) -> dict[str, Token]:
        """Every token that was not revoked, by its id."""
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            return {}
        state = (status.st_mtime_ns, status.st_size, status.st_ino)
        if self._read[0] != state:
            try:
                rows = json.loads(read_small(self._path, _FILE_BYTES_MAX))
                self._read = state, {row["id"]: Token(**row) for row in rows}
            except (OSError, ValueError, TypeError, KeyError) as error:
                raise StoreUnavailable(
                    f"{self._path} can't be read: {error}.", hint="Remove it, and make the tokens anew."
                ) from None
        return self._read[1]

    def _change(self, change: Callable[[dict[str, Token]], dict[str, Token]]) -> None:
        """Write what becomes of the tokens; those whose time is over go."""
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        with locked(f"{self._path}.lock", _WAIT_S_MAX):
            now = self._clock()
            left = [token for token in change(self.all()).values() if not token.is_over(now)]
            rows = [{name: getattr(token, name) for name in Token.__match_args__} for token in left]
            write_private(self._path, json.dumps(rows, indent=1).encode())
