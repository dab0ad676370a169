"""Moving: `copy`, a memory into another store; and what an import brought in, in words."""

from __future__ import annotations

from mnemarch.errors import NotAllowed
from mnemarch.interfaces.command import Answer, Command
from mnemarch.interfaces.show import Counter, clean, quoted
from mnemarch.model.stamps import short_id
from mnemarch.text.words import counted
from mnemarch.verbs.types import WORDS, Parameter, help_of
from mnemarch.wiring import copy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mnemarch.interfaces.command import Call
    from mnemarch.model.caller import Actor
    from mnemarch.model.event import Event
    from mnemarch.model.outcome import Imported
    from mnemarch.model.upkeep import Copied, ImportedClaims

_PROBLEMS_MAX, _UNITS_MAX, _READ_MAX = 20, 20, 1_000


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


def _imported(done: ImportedClaims, _: Call) -> str:
    rest = f"{done.known:,} are known here, {done.left_out:,} are left out (decisions, preferences, what was rejected)"
    verb = "would import" if done.dry_run else "imported"
    lines = [f"{verb}  {counted(done.units, 'unit')} of {done.format} as claims; {rest}"]
    lines += [f"  {quoted(text)}" for text in done.texts]
    lines += [f"  and {done.units - len(done.texts):,} more"] if done.units > len(done.texts) else []
    if not (done.units or done.known or done.left_out or done.problems):
        lines.append(f"Nothing in it can be read as {done.format}: another format may fit (--from).")
    if done.replacing:
        lines.append(f"{done.replacing:,} of them replace what an earlier import brought, once a person accepts them.")
    lines += [f"removed: {', '.join(done.redacted)}"] if done.redacted else []
    if done.problems:
        lines.append(f"not read: {len(done.problems):,}")
        lines += [f"  {clean(each.place)}: {clean(each.says)}" for each in done.problems[:_PROBLEMS_MAX]]
        more = len(done.problems) - _PROBLEMS_MAX
        lines += [f"  and {more:,} more (--json lists them all)"] if more > 0 else []
    if done.units and not done.dry_run:
        lines.append(f"They are recalled as [IMPORTED] until a person says: mnemarch accept {short_id(done.id)}")
    is_own = done.format == "mnemarch"
    return "\n".join([*lines, *(["If this is your own memory, moved here: mnemarch import FILE --restore"] * is_own)])


def brought(event: Event, call: Call) -> list[str]:
    """What an import brought and nobody has judged, if the entry is of one."""
    units = call.seat.units(status="hypothesis", level="project", limit=_READ_MAX)
    mine = [unit for unit in units if unit.attributes.get("import") == event.id]
    lines = [f"  {short_id(unit.id)}  {quoted(unit.content)}" for unit in reversed(mine[-_UNITS_MAX:])]
    more = [f"  and {len(mine) - _UNITS_MAX:,} more"] if len(mine) > _UNITS_MAX else []
    return ["", f"it brought, and nobody has judged: {len(mine):,}", *lines, *more] if mine else []


def _restored(done: Imported, _: Call) -> str:
    return f"restored  {done.events:,} events, {done.skipped:,} were here already"


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
TEXTS: dict[str, Callable[[Any, Call], str]] = {"Imported": _restored, "ImportedClaims": _imported}
