"""What is taken away in a terminal: the command shows what would go, asks, and then does it."""

from __future__ import annotations

import sys

from mnemarch.interfaces import look
from mnemarch.interfaces.command import REFUSED, Answer, answered, at_terminal, performed, text_of
from mnemarch.interfaces.show import clean, is_confirmed, quoted, table
from mnemarch.model.event import Event
from mnemarch.model.stamps import short_id
from mnemarch.text.words import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from mnemarch.interfaces.command import Call
    from mnemarch.model.upkeep import Copy, Erased, Fate, Undone
    from mnemarch.verbs.types import Verb

_SHOWN_MAX = 20
_QUESTIONS = {"seat.erase": "Erase it for good?", "seat.undo": "Undo it?"}


def asked(verb: Verb, call: Call) -> Answer:
    """The verb's answer after a yes; its dry run where nobody can answer, or after a no."""
    if call.options.dry_run or call.options.yes:
        return answered(verb, call)
    wants_copies = call.given.pop("copies", False)
    call.given["dry_run"] = True
    preview = performed(verb, call)
    words = text_of(verb.name, preview, call, verb.gives)
    if not at_terminal(sys.stdin):
        unasked = f"{words}\nNothing was done: nobody is at a terminal to confirm it. Add --yes if it is meant."
        return Answer(preview, lambda: unasked, REFUSED)
    if words.startswith("nothing to undo"):
        return Answer(preview, lambda: words)
    sys.stderr.write(f"{words}\n")
    copies = getattr(preview, "copies", ())
    if not is_confirmed(_QUESTIONS[verb.name]):
        return Answer(preview, lambda: "Nothing was done.", REFUSED)
    if copies and (wants_copies or is_confirmed(f"And {counted(len(copies), 'copy', 'copies')}?")):
        call.given["copies"] = [copy.id for copy in copies]  # Those that were shown, and no later ones.
    call.given["dry_run"] = False
    return answered(verb, call)


def _erased(erased: Erased, call: Call) -> str:
    entries = counted(erased.events, "entry of the log", "entries of the log")
    if not erased.dry_run and not erased.events:
        return f"erased before  {clean(call.options.unit_id)}; {counted(erased.files, 'file')} cleaned once more"
    if erased.dry_run:
        units = [f"{short_id(unit.id)}  {quoted(unit.content)}" for unit in call.seat.units(ids=erased.units)]
        target = call.seat.show(call.options.unit_id)
        told = look.lines([target], call.seat) if isinstance(target, Event) else []
        lines = [f"would erase, with {entries} in all:", *(f"  {line}" for line in (*told, *units))]
    else:
        named = ", ".join(map(short_id, erased.units)) or short_id(call.options.unit_id)
        lines = [f"erased  {named}", f"  {entries} emptied, {counted(erased.files, 'file')} cleaned"]
    advice = "--copies erases them too" if erased.dry_run else "erase each by its id"
    kept = [f"note: {erased.kept}."] if erased.kept else []
    return "\n".join([*lines, *_copies(erased.copies, advice), *kept])


def _copies(copies: Sequence[Copy], advice: str) -> list[str]:
    if not copies:
        return []
    rows: list[Sequence[Any]] = [
        (short_id(copy.id), copy.what, copy.scope, copy.actor or "", quoted(copy.text)) for copy in copies[:_SHOWN_MAX]
    ]
    head = f"{counted(len(copies), 'copy', 'copies')} of the text elsewhere; {advice}:"
    more = [f"and {len(copies) - _SHOWN_MAX:,} more"] if len(copies) > _SHOWN_MAX else []
    return [head, table(("id", "what", "where", "by", "text"), rows, ""), *more]


def _undone(undone: Undone, _: Call) -> str:
    counts = (
        *((undone.claims, "claim"), (undone.requests, "request"), (undone.attempts, "failed attempt")),
        *((undone.rules, "code rule"), (undone.votes, "vote on habits")),
    )
    if not (undone.retired or undone.kept or undone.restored or any(number for number, _ in counts)):
        return f"nothing to undo: {undone.actor} wrote nothing here that is in force"
    if undone.reverted:
        lines = [f"reverted  {short_id(undone.id or '')}: {undone.actor} counts again"]
        head = counted(len(undone.retired), "unit is back", "units are back")
    else:
        lines = [f"{'would undo' if undone.dry_run else 'undid'}  {undone.actor}"]
        head = counted(len(undone.retired), "unit") + (" would go" if undone.dry_run else " retired")
    lines += [f"{head}{':' if undone.retired else ''}", *_fates(undone.retired)]
    if undone.restored:
        what = "as it had left them" if undone.reverted else "given back"
        lines += [f"{counted(len(undone.restored), 'unit')} of others {what}:", *_fates(undone.restored)]
    if undone.kept:
        lines += [f"{counted(len(undone.kept), 'unit stays', 'units stay')}:", *_fates(undone.kept)]
    if any(number for number, _ in counts):
        listed = ", ".join(counted(number, what) for number, what in counts if number)
        verb = "waiting again or counted" if undone.reverted else "no longer waiting or counted"
        lines.append(f"{verb}: {listed}")
    if undone.id and not undone.reverted:
        lines.append(f"take it back with: mnemarch undo --revert {short_id(undone.id)}")
    return "\n".join(lines)


def _fates(fates: Sequence[Fate]) -> list[str]:
    lines = [
        f"  {short_id(fate.unit_id)}  {clean(fate.label)} {quoted(fate.text)}"
        + (f": {clean(fate.why)}" if fate.why else "")
        for fate in fates[:_SHOWN_MAX]
    ]
    return [*lines, *([f"  and {len(fates) - _SHOWN_MAX:,} more"] if len(fates) > _SHOWN_MAX else [])]


TEXTS: dict[str, Callable[[Any, Call], str]] = {"Erased": _erased, "Undone": _undone}
