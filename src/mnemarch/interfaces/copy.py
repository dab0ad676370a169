"""`copy`: a memory into another store."""

from __future__ import annotations

from mnemarch.errors import NotAllowed
from mnemarch.interfaces.command import Answer, Command
from mnemarch.interfaces.show import Counter, clean
from mnemarch.text.words import counted
from mnemarch.verbs.types import WORDS, Parameter, help_of
from mnemarch.wiring import copy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.interfaces.command import Call
    from mnemarch.model.caller import Actor
    from mnemarch.model.upkeep import Copied


def require_person(actor: Actor, what: str, instead: str = "") -> None:
    """Whoever brings a log in vouches for it: what it calls verified or approved counts as it stands (R4)."""
    if actor.kind != "human":
        raise NotAllowed(
            f"{actor} may not {what}: what it calls verified or approved would count there (R4).",
            rule="R4",
            hint=f"A person can, with --actor human:NAME{instead}.",
        )


def _copy(call: Call) -> Answer:
    require_person(call.actor, "copy a memory")
    source, target = call.options.source, call.options.target
    with Counter("copying", "events") as progress:
        done = copy(source, target, progress=progress)
    return Answer(done, lambda: _text(done, source, target))


def _text(done: Copied, source: str, target: str) -> str:
    before = f"; {done.skipped:,} were there from before" if done.skipped else ""
    lines = [
        f"copied    {counted(done.events, 'event')} of {counted(done.streams, 'stream')}{before}",
        f"verified  every chain ends alike, and all that is made of the log has one digest: {done.digest[:16]}",
    ]
    if done.behind:
        lines.append(
            f"Meanwhile {counted(done.behind, 'event')} came to {clean(source)}: copy again to bring them over."
        )
    if "://" in target:
        lines.append("To work with it from now on, name it in mnemarch.toml: [store] url")
    return "\n".join(lines)


COMMANDS = {
    "copy": Command(
        *help_of("copy"),
        _copy,
        (
            Parameter("source", WORDS, "the memory: its folder, or its address", metavar="FROM"),
            Parameter("target", WORDS, "where to: a folder, or an address", metavar="TO"),
        ),
    )
}
