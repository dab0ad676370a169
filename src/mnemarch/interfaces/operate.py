"""The operator's commands: text for their results, confirmation of an erasure or an undo, and `copy`."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from mnemarch.errors import InvalidInput, MnemarchError, NotAllowed, NotFound, StoreUnavailable
from mnemarch.interfaces import work_text
from mnemarch.interfaces.command import (
    REFUSED,
    Answer,
    Call,
    Command,
    answered,
    at_terminal,
    exit_code_of,
    performed,
    shaped,
    text_of,
)
from mnemarch.interfaces.text import (
    Counter,
    clean,
    fields,
    is_confirmed,
    meaning_line,
    quoted,
    table,
    with_short_ids,
    wrapped,
)
from mnemarch.model import upkeep
from mnemarch.model.caller import Actor
from mnemarch.model.event import Event
from mnemarch.model.outcome import Finding, LogCheck, Stats, Swept
from mnemarch.model.stamps import short_id
from mnemarch.policy.trust import label_of
from mnemarch.text.words import counted
from mnemarch.verbs.types import WORDS, Parameter, Verb, to_json
from mnemarch.wiring import copy

_SHOWN_MAX = 20
_READ_MAX = 1_000
_QUESTIONS = {"seat.erase": "Erase it for good?", "seat.undo": "Undo it?"}


def _stats(stats: Stats, _: Call) -> str:
    def counts(by: Mapping[Any, int]) -> str:
        return ", ".join(f"{count:,} {name}" for name, count in sorted(by.items())) or "none"

    return fields(
        [
            ("events", f"{stats.events:,} in {counted(stats.projects, 'project')}"),
            ("units", f"{stats.units:,}"),
            ("  by status", counts(stats.by_status)),
            ("  by kind", counts(stats.by_kind)),
            ("  by level", counts(stats.by_level)),
            ("conflicts", f"{stats.open_conflicts} open"),
            ("index", f"{stats.indexed:,} units, {stats.unindexed:,} newer ones are searched directly"),
            ("meaning", meaning_line(stats)),
            ("on disk", f"{stats.bytes_on_disk:,} bytes, format {stats.format_version}"),
        ]
    )


def _cognified(done: upkeep.Cognified, _: Call) -> str:
    cost = f", {done.money:.4f} by the configured prices" if done.money else ""
    lines = [f"{len(done.episodes)} analysed, {done.waiting} still waiting, {done.tokens:,} tokens{cost}"]
    if not (done.episodes or done.waiting or done.tokens):
        lines = [] if done.stopped else ["No task of this project waits for the model."]
    lines += [f"episode  {short_id(each)}" for each in done.episodes]
    lines += [f"skill    {short_id(each)}" for each in done.skills]
    lines += [f"decided  {short_id(each)}  waits in the inbox for a person or a lead" for each in done.proposed]
    return "\n".join([*lines, *([f"stopped  {with_short_ids(done.stopped)}"] if done.stopped else [])])


def _audit(check: LogCheck, _: Call) -> str:
    if check.ok:
        return f"The log is intact: {check.events:,} events, no hash chain is broken, and the stored rows match."
    return f"The audit fails at {clean(check.first_broken)}: {clean(check.problem)}.\n{check.hint}"


def _rebuild(rebuild: Mapping[str, Any], call: Call) -> str:
    came = "The same state" if rebuild["same"] else "Another state"
    then = "." if rebuild["same"] else "; the state now is what the log says."
    lines = [
        f"{came} came out of {rebuild['events']:,} events{then}",
        f"  before  {rebuild['digest_before']}",
        f"  after   {rebuild['digest_after']}",
    ]
    check = rebuild["audit"]
    return "\n".join(lines if check.ok else [*lines, f"But the log was changed. {_audit(check, call)}"])


def _swept(swept: Swept, _: Call) -> str:
    done = f"{swept.archived:,} archived, {swept.revived:,} revived, {swept.moved:,} moved"
    lines = [f"checked  {swept.checked:,} units: {done}"]
    if swept.moved:
        lines.append("moved: the cited file has a new name, and the units cite that now")
    if swept.skipped:
        lines.append(f"{swept.skipped:,} can't be checked from here (another project, or a worktree that is gone)")
    return "\n".join(lines)


def _pruned(pruned: upkeep.Pruned, _: Call) -> str:
    verb = "would archive" if pruned.dry_run else "archived"
    lines = [f"{verb}  {len(pruned.units)} units, {pruned.kept} kept", *(f"  {short_id(id)}" for id in pruned.units)]
    return "\n".join([*lines, "To archive them, add --apply."] if pruned.dry_run and pruned.units else lines)


def _findings(findings: Sequence[Finding], _: Call) -> str:
    lines = []
    for finding in findings:
        lines.append(f"{'✓' if finding.ok else '✗'} {clean(finding.what)}")
        lines += [f"    {clean(finding.hint)}"] if finding.hint else []
    return "\n".join(lines)


def _reflected(done: upkeep.Reflected, _: Call) -> str:
    would = "would be " if done.dry_run else ""
    counts = f"{done.changed} {would}new or changed, {done.unchanged} unchanged, {len(done.retired)} {would}retired"
    lines = [f"reflected  {counted(done.episodes, 'episode')}; lessons: {counts}"]
    for unit in done.lessons:
        lines += ["", f"{label_of(unit)} {short_id(unit.id)}  {unit.attributes['form']}"]
        lines.append(wrapped(clean(unit.content), "  "))
    for unit in done.retired:
        lines += ["", f"retired  {short_id(unit.id)}  {with_short_ids(unit.content)}"]
    return "\n".join([*lines, *([] if done.complete else ["", "There is more. To continue: mnemarch reflect"])])


def _maintained(night: upkeep.Maintained, _: Call) -> str:
    width = max(len(step.name) for step in night.steps)
    lines = [
        f"{'✓' if step.ok else '✗'} {step.name:<{width}}  {clean(step.says)} ({step.seconds:.1f} s)"
        for step in night.steps
    ]
    return "\n".join([*lines, *(["Nothing was changed."] if night.dry_run else [])])


def maintained(verb: Verb, call: Call) -> Answer:
    """Run the verb once. With --every, repeat it at that interval until Ctrl-C and print each answer at once."""
    every: timedelta | None = call.arguments.pop("every", None)
    if every is None:
        return answered(verb, call)
    while True:
        try:
            answer = answered(verb, call)
            line = json.dumps(to_json(answer.data), ensure_ascii=False) if call.places.json else f"{answer.text()}\n"
            print(line, flush=True)
        except StoreUnavailable as error:
            print(f"mnemarch: {error}", file=sys.stderr, flush=True)
        time.sleep(every.total_seconds())


# Commands that do more than their verb


def doctor(verb: Verb, call: Call) -> Answer:
    """The doctor's findings. A memory that can't be opened is a finding; a missing memory is an error."""
    try:
        findings = performed(verb, call)
        # A scope without units is no fault of the memory, so the note is not a failure.
        findings += [Finding(ok=True, what=note) for note in call.empty_scope_hint()]
        from mnemarch.interfaces import install

        findings += install.findings(call)
    except NotFound:
        raise
    except MnemarchError as error:
        findings = [Finding(ok=False, what=error.message, hint=error.hint_for("command line"))]
    return shaped(verb, call, findings, exit_code_of(findings))


def rebuilt(verb: Verb, call: Call) -> Answer:
    rebuild = performed(verb, call)
    with Counter("auditing", "events") as progress:
        check = call.memory.audit(progress=progress)
    return shaped(verb, call, {**to_json(rebuild), "audit": check}, exit_code_of([rebuild, check]))


def exported(verb: Verb, call: Call) -> Answer:
    path = call.options.path
    if path != "-":
        events = performed(verb, call)
        return shaped(verb, call, {"path": os.path.abspath(path), "events": events})
    if call.places.json:
        raise InvalidInput("The export and --json both need standard output.", hint="Name a file, or leave --json out.")
    from shutil import copyfileobj
    from tempfile import TemporaryDirectory

    # The export is written to stdout only when it is complete.
    with TemporaryDirectory(prefix="mnemarch-") as folder:
        call.arguments["path"] = os.path.join(folder, "log.jsonl")
        events = performed(verb, call)
        with open(call.arguments["path"], "rb") as file:
            sys.stdout.flush()
            copyfileobj(file, sys.stdout.buffer)
    return Answer(None, lambda: "", aside=lambda: f"exported  {events:,} events")


def imported(verb: Verb, call: Call) -> Answer:
    path = os.path.expanduser(call.options.path)
    if not os.access(path, os.R_OK):  # This check comes before a memory is created.
        problem = "No such file or folder" if not os.path.lexists(path) else "Permission denied"
        raise InvalidInput(f"{path!r} can't be read: {problem}.", hint="Check its name and its rights.")
    if verb.name == "memory.import_":
        require_person(call.seat.actor, "restore an export", "; without --restore it is imported as claims")
    return answered(verb, call)


def backed_up(verb: Verb, call: Call) -> Answer:
    path = call.options.path
    if path == "-":
        raise InvalidInput("A backup is a database file, not a stream.", hint="Name a file, or use: mnemarch export -")
    performed(verb, call)
    return shaped(verb, call, {"path": os.path.abspath(path), "bytes": os.path.getsize(path)})


# Erasing and undoing


def asked(verb: Verb, call: Call) -> Answer:
    """Show the dry run, ask for confirmation, and run the verb after a yes."""
    if call.options.dry_run or call.options.yes:
        return answered(verb, call)
    wants_copies = call.arguments.pop("copies", False)
    call.arguments["dry_run"] = True
    preview = performed(verb, call)
    words = text_of(verb.name, preview, call, verb.gives)
    if words.startswith("nothing to undo"):
        return Answer(preview, lambda: words)
    if not at_terminal(sys.stdin):
        unasked = f"{words}\nNothing was done, because nobody is at a terminal to confirm it. To confirm, add --yes."
        return Answer(preview, lambda: unasked, REFUSED)
    sys.stderr.write(f"{words}\n")
    copies = getattr(preview, "copies", ())
    if not is_confirmed(_QUESTIONS[verb.name]):
        return Answer(preview, lambda: "Nothing was done.", REFUSED)
    if copies and (wants_copies or is_confirmed(f"And {counted(len(copies), 'copy', 'copies')}?")):
        call.arguments["copies"] = [copy.id for copy in copies]  # Only the copies that were shown.
    call.arguments["dry_run"] = False
    return answered(verb, call)


def _erased(erased: upkeep.Erased, call: Call) -> str:
    entries = counted(erased.events, "entry of the log", "entries of the log")
    places = counted(erased.files, "table" if call.is_on_server else "file")
    if not erased.dry_run and not erased.events:
        return f"erased before  {clean(call.options.unit_id)}; {places} cleaned once more"
    if erased.dry_run:
        units = [f"{short_id(unit.id)}  {quoted(unit.content)}" for unit in call.seat.units(ids=erased.units)]
        target = call.seat.show(call.options.unit_id)
        entry = work_text.lines([target], call.seat) if isinstance(target, Event) else []
        lines = [f"would erase, with {entries} in all:", *(f"  {line}" for line in (*entry, *units))]
    else:
        named = ", ".join(map(short_id, erased.units)) or short_id(call.options.unit_id)
        lines = [f"erased  {named}", f"  {entries} emptied, {places} cleaned"]
    advice = "--copies erases them too" if erased.dry_run else "erase each by its id"
    kept = [f"note: {erased.kept}."] if erased.kept else []
    return "\n".join([*lines, *_copies(erased.copies, advice), *kept])


def _copies(copies: Sequence[upkeep.Copy], advice: str) -> list[str]:
    if not copies:
        return []
    rows: list[Sequence[Any]] = [
        (short_id(copy.id), copy.what, copy.scope, copy.actor or "", quoted(copy.text)) for copy in copies[:_SHOWN_MAX]
    ]
    head = f"{counted(len(copies), 'copy', 'copies')} of the text elsewhere; {advice}:"
    more = [f"and {len(copies) - _SHOWN_MAX:,} more"] if len(copies) > _SHOWN_MAX else []
    return [head, table(("id", "what", "where", "by", "text"), rows, ""), *more]


def _undone(undone: upkeep.Undone, _: Call) -> str:
    counts = (
        *((undone.claims, "claim"), (undone.requests, "request"), (undone.attempts, "failed attempt")),
        *((undone.rules, "code rule"), (undone.votes, "vote on habits")),
    )
    if not (undone.retired or undone.restored or any(number for number, _ in counts)):
        alone = " and rests on it alone" if undone.kept else ""
        return f"nothing to undo: {undone.actor} wrote nothing here that is still in force{alone}"
    if undone.reverted:
        lines = [f"reverted  {short_id(undone.id or '')}: {undone.actor} counts again"]
        head = counted(len(undone.retired), "unit is back", "units are back")
    else:
        lines = [f"{'would undo' if undone.dry_run else 'undid'}  {undone.actor}"]
        head = counted(len(undone.retired), "unit") + (" would go" if undone.dry_run else " retired")
    lines += [f"{head}{':' if undone.retired else ''}", *_fates(undone.retired)]
    if undone.restored:
        what = "as that actor left them" if undone.reverted else "given back"
        lines += [f"{counted(len(undone.restored), 'unit')} of others {what}:", *_fates(undone.restored)]
    if undone.kept:
        lines += [f"{counted(len(undone.kept), 'unit stays', 'units stay')}:", *_fates(undone.kept)]
    if any(number for number, _ in counts):
        listed = ", ".join(counted(number, what) for number, what in counts if number)
        verb = "waiting again or counted" if undone.reverted else "no longer waiting or counted"
        lines.append(f"{verb}: {listed}")
    if undone.id and not undone.reverted:
        lines.append(f"to revert this: mnemarch undo --revert {short_id(undone.id)}")
    return "\n".join(lines)


def _fates(fates: Sequence[upkeep.Fate]) -> list[str]:
    lines = [
        f"  {short_id(fate.unit_id)}  {clean(fate.label)} {quoted(fate.text)}"
        + (f": {clean(fate.why)}" if fate.why else "")
        for fate in fates[:_SHOWN_MAX]
    ]
    return [*lines, *([f"  and {len(fates) - _SHOWN_MAX:,} more"] if len(fates) > _SHOWN_MAX else [])]


# Copying and importing


def require_person(actor: Actor, what: str, instead: str = "") -> None:
    """Raise unless the actor is a person: the verifications and approvals of a log that comes in would count (R4)."""
    if actor.kind != "human":
        raise NotAllowed(
            f"{actor} may not {what}: its verifications would count there (R4).",
            rule="R4",
            hint=f"A person can, with --actor human:NAME{instead}.",
        )


def _copy(call: Call) -> Answer:
    require_person(call.actor, "copy a memory")
    source, target = call.options.source, call.options.target
    with Counter("copying", "events") as progress:
        done = copy(source, target, progress=progress)
    return Answer(done, lambda: _text(done, source, target))


def _text(done: upkeep.Copied, source: str, target: str) -> str:
    before = f"; {done.skipped:,} were there from before" if done.skipped else ""
    lines = [
        f"copied    {counted(done.events, 'event')} of {counted(done.streams, 'stream')}{before}",
        f"verified  both have the same chains, and the same digest of everything derived: {done.digest[:16]}",
    ]
    if done.behind:
        lines.append(
            f"Meanwhile {counted(done.behind, 'event')} came to {clean(source)}. To copy them too, run this again."
        )
    if "://" in target:
        lines.append("To use the copy from now on, name it in mnemarch.toml: [store] url")
    return "\n".join(lines)


def _imported(done: upkeep.ImportedClaims, call: Call) -> str:
    from mnemarch.interfaces.adr import holds_records

    rest = f"known here: {done.known:,}; left out: {done.left_out:,} (decisions, preferences, what was rejected)"
    verb = "would import" if done.dry_run else "imported"
    lines = [f"{verb}  {counted(done.units, 'unit')} of {done.format} as claims; {rest}"]
    lines += [f"  {quoted(text)}" for text in done.texts]
    lines += [f"  and {done.units - len(done.texts):,} more"] if done.units > len(done.texts) else []
    if not (done.units or done.known or done.left_out or done.problems):
        lines.append(f"Nothing in it can be read as {done.format}. Name another format with --from.")
    if done.replacing:
        lines.append(f"{done.replacing:,} of them replace units of an earlier import, once a person accepts them.")
    lines += [f"removed: {', '.join(done.redacted)}"] if done.redacted else []
    if done.problems:
        lines.append(f"not read: {len(done.problems):,}")
        lines += [f"  {clean(each.place)}: {clean(each.says)}" for each in done.problems[:_SHOWN_MAX]]
        more = len(done.problems) - _SHOWN_MAX
        lines += [f"  and {more:,} more (--json lists them all)"] if more > 0 else []
    if done.units and not done.dry_run:
        lines.append(
            f"They are recalled as [IMPORTED] until a person accepts them: mnemarch accept {short_id(done.id)}"
        )
    if done.format == "markdown" and holds_records(call.arguments["path"]):
        lines.append(
            f"It holds decision records. As decisions: mnemarch decisions import {clean(call.arguments['path'])}"
        )
    is_own = done.format == "mnemarch"
    return "\n".join([*lines, *(["If this is your own memory, moved here: mnemarch import FILE --restore"] * is_own)])


def brought(event: Event, call: Call) -> list[str]:
    """Lines about the units of an import that nobody has judged."""
    units = call.seat.units(status="hypothesis", level="project", limit=_READ_MAX)
    mine = [unit for unit in units if unit.attributes.get("import") == event.id]
    lines = [f"  {short_id(unit.id)}  {quoted(unit.content)}" for unit in reversed(mine[-_SHOWN_MAX:])]
    more = [f"  and {len(mine) - _SHOWN_MAX:,} more"] if len(mine) > _SHOWN_MAX else []
    return ["", f"imported, and judged by nobody yet: {len(mine):,}", *lines, *more] if mine else []


COMMANDS = {
    "copy": Command(
        _copy,
        (
            Parameter("source", WORDS, "the memory: its folder, or its address", metavar="FROM"),
            Parameter("target", WORDS, "the copy: a folder, or an address", metavar="TO"),
        ),
    )
}
TEXTS: dict[str, Callable[[Any, Call], str]] = {
    "Stats": _stats,
    "Cognified": _cognified,
    "LogCheck": _audit,
    "ReceiptCheck": lambda check, _: f"{short_id(check.event_id)}  {check.says}",
    "memory.rebuild": _rebuild,
    "memory.reindex": lambda index, _: f"indexed  {index['documents']:,} units",
    "Swept": _swept,
    "Pruned": _pruned,
    "memory.export": lambda file, call: f"exported  {file['events']:,} events to {call.options.path}",
    "memory.backup": lambda file, call: f"backed up  {file['bytes']:,} bytes to {call.options.path}",
    "list[Finding]": _findings,
    "Reflected": _reflected,
    "Maintained": _maintained,
    "Erased": _erased,
    "Undone": _undone,
    "Imported": lambda done, _: f"restored  {done.events:,} events, {done.skipped:,} were here already",
    "ImportedClaims": _imported,
}
