"""Who types: a person, an orchestrator that a person named, or an agent; and what of a checkout the person accepts."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from mnemarch import checkout, user
from mnemarch.code.home import FOLDER
from mnemarch.errors import InvalidInput, NotAllowed
from mnemarch.interfaces import show
from mnemarch.interfaces.command import REFUSED, Answer, Command, at_terminal
from mnemarch.model.caller import Actor, ActorKind
from mnemarch.policy.admission import checked_name
from mnemarch.policy.permissions import require_outsider
from mnemarch.verbs.types import FLAG, Parameter, help_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.checkout import Foreign
    from mnemarch.interfaces.command import Call

_RULE = "R4"
_NO_CI = ("", "0", "false")


def actor_of(named: str | None, *, may_ask: bool = True) -> Actor:
    """Who acts, and whether they may say so (R4). A terminal is no proof of a person: a person confirms it once."""
    host = user.host()
    if named is None:
        if host is not None:
            return Actor.agent(host)
        person = _person(may_ask=may_ask) if _is_interactive() else None
        return Actor.agent("cli") if person is None else Actor.human(person)
    actor = Actor.parse(named)
    require_outsider(actor)
    if actor.kind is ActorKind.HUMAN:
        _require_person(actor, host)
    elif actor.kind is ActorKind.ORCHESTRATOR and not user.may_orchestrate(actor.id, host):
        whose = "" if host is None else f" for {host}, which started this process"
        line = actor.id if host is None else f"{actor.id} @{host}"
        raise NotAllowed(
            f"{actor} is not named in your own configuration{whose} (rule {_RULE}: a person names the orchestrators).",
            rule=_RULE,
            hint=f"A person adds this line to {user.path_of('orchestrators')}: {show.clean(line)}",
        )
    return actor


def _is_interactive() -> bool:
    return at_terminal(sys.stdin) and at_terminal(sys.stdout)


def _require_person(actor: Actor, host: str | None) -> None:
    if host is not None:
        raise NotAllowed(
            f"{actor} can't be named here: {host} started this process (rule {_RULE}: agents don't act as people).",
            rule=_RULE,
            hint="The person types it in a terminal of their own.",
        )
    confirmed = _person(actor.id) if _is_interactive() else user.person()
    if confirmed is None:
        raise NotAllowed(
            f"{actor} has not been confirmed (rule {_RULE}: a person says once, at a terminal, who they are).",
            rule=_RULE,
            hint="Type mnemarch init in a terminal.",
        )
    if actor.id != confirmed:
        raise NotAllowed(
            f"{actor} is not who uses this computer: that is {confirmed} (rule {_RULE}: none acts as another).",
            rule=_RULE,
            hint=f"Leave out --actor. If the name is wrong, correct it in {user.path_of('person')}.",
        )


def _person(proposal: str | None = None, *, may_ask: bool = True) -> str | None:
    """The person who uses this computer; asked once, and remembered. None if they are not known."""
    name = user.person()
    if name is not None or not may_ask or os.environ.get("CI", "") not in _NO_CI:
        return name
    proposal = proposal or _proposed_name()
    sys.stderr.write(f"Who are you? Your word is evidence, so this is asked once. [{show.clean(proposal)}] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer:
        raise InvalidInput("Nobody said who they are.", hint="Answer with a name, or add --actor agent:NAME.")
    typed = answer.strip()
    if typed and not user.is_name(typed):
        print(
            f"note: {show.quoted(typed)} is no name; this acts as agent:cli. Say who you are: mnemarch init",
            file=sys.stderr,
        )
        return None
    name = checked_name(typed or proposal, "a name")
    if not user.keep_person(name):
        print(f"note: {user.path_of('person')} can't be written; it will be asked again", file=sys.stderr)
    return name


def _proposed_name() -> str:
    """The user's name by git's own configuration, not the repository's; else by their login."""
    from mnemarch.code.git import git

    for setting in ("user.name", "user.email"):
        name = git(os.path.expanduser("~"), ["config", "--global", "--get", setting])
        if name:
            return name
    from getpass import getuser

    try:
        return getuser()
    except (KeyError, OSError):  # In a container nothing but the user's number may be known.
        return f"uid-{os.getuid()}"


def _trust(call: Call) -> Answer:
    folder = call.home.folder
    if call.options.revoke:
        places = [os.path.join(folder, name) for name in (checkout.SETTINGS, FOLDER)]
        url = call.store or checkout.file_url(folder)
        if url.startswith(checkout.FILE_SCHEME):
            places.append(checkout.file_folder(url, folder if call.store is None else os.getcwd()))
        count = sum(map(_revoked, places))
        return Answer({"revoked": count}, lambda: f"revoked  {count} that you had accepted in {folder}")
    waiting = checkout.waiting(folder, call.store)
    shown = "\n".join(map(_described, waiting)) or f"Nothing in {folder} waits for your word."
    data = {"waiting": [{"path": one.path, "why": one.why} for one in waiting], "accepted": False}
    if call.options.show or not waiting:
        return Answer(data, lambda: shown)
    _require_user(call.options.yes)
    if not call.options.yes and not show.is_confirmed(f"{shown}\nAccept it?"):
        return Answer(data, lambda: "Nothing was accepted.", REFUSED)
    for one in waiting:
        user.accept(one.path, one.content)
    lines = [*map(_accepted, waiting), *_left_behind(folder)]
    return Answer(data | {"accepted": True}, lambda: "\n".join(lines))


def _revoked(path: str) -> int:
    """Forget every yes to what stands at this place, and that this user has worked there since; gives their number."""
    count = user.revoke(path)
    if count:
        with suppress(FileNotFoundError, NotADirectoryError):
            os.remove(os.path.join(path, checkout.LOCAL, checkout.MAKER))
    return count


def _left_behind(folder: str) -> list[str]:
    """What to do with what was remembered before the settings were accepted, which name another memory."""
    place = os.path.join(folder, FOLDER)
    if not checkout.load(folder).store.url or not os.path.exists(os.path.join(place, "memory.db")):
        return []
    return [
        f"{place} has what was remembered before, and is not searched any more. To take it along:",
        f"  mnemarch copy {folder} ../before; mnemarch export ../before.jsonl --store ../before",
        "  mnemarch import ../before.jsonl",
    ]


def _accepted(one: checkout.Foreign) -> str:
    is_for_good = one.content == checkout.FILE_SCHEME.encode()
    return f"accepted  {one.path}, {'with all that comes into it' if is_for_good else 'until it changes'}"


def _require_user(is_confirmed: bool) -> None:
    host = user.host()
    if host is not None:
        raise NotAllowed(
            f"{host} started this process, and what came with a checkout is for a person to accept (rule {_RULE}).",
            rule=_RULE,
            hint="The person types it in a terminal of their own: mnemarch trust",
        )
    if not is_confirmed and not _is_interactive():
        raise InvalidInput("Nobody is at a terminal to confirm it.", hint="Add --yes if it is meant.")


def _described(foreign: Foreign) -> str:
    return "\n".join([foreign.path, *(f"  {show.clean(line)}" for line in foreign.why.splitlines())])


COMMANDS = {
    "trust": Command(
        *help_of("trust"),
        _trust,
        (
            Parameter("show", FLAG, "only show what would be obeyed", False),
            Parameter("revoke", FLAG, "forget what was accepted here", False),
            Parameter("yes", FLAG, "don't ask; needed where nobody is at a terminal", False),
        ),
    )
}
