"""What an operator does: counts, checks, copies, retention."""

from __future__ import annotations

import os
import sys

from mnemarch.errors import InvalidInput
from mnemarch.interfaces import show
from mnemarch.interfaces.command import DONE, STORE_TROUBLE, Answer, Command
from mnemarch.interfaces.json_form import to_json
from mnemarch.interfaces.progress import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser

    from mnemarch.interfaces.command import Call
    from mnemarch.model.outcome import LogCheck


def _nothing_more(parser: ArgumentParser) -> None:
    """These take only which memory."""


def _one_path(parser: ArgumentParser) -> None:
    parser.add_argument("path", metavar="FILE", help="the file")


def _stats(call: Call) -> Answer:
    stats = call.memory.stats()

    def counts(by: object) -> str:
        return ", ".join(f"{count:,} {name}" for name, count in sorted(dict(by).items())) or "none"  # type: ignore[call-overload]

    def text() -> str:
        return show.fields(
            [
                ("events", f"{stats.events:,} in {stats.projects} projects"),
                ("units", f"{stats.units:,}"),
                ("  by status", counts(stats.by_status)),
                ("  by kind", counts(stats.by_kind)),
                ("  by level", counts(stats.by_level)),
                ("conflicts", f"{stats.open_conflicts} open"),
                ("index", f"{stats.indexed:,} documents, {stats.unindexed:,} still in the tail"),
                ("on disk", f"{stats.bytes_on_disk:,} bytes, format {stats.format_version}"),
            ]
        )

    return Answer(data=stats, text=text)


def _audit(call: Call) -> Answer:
    with counted("auditing", "events") as progress:
        check = call.memory.audit(progress)

    def text() -> str:
        if check.ok:
            return f"The log holds: {check.events:,} events, every hash chain unbroken."
        return _broken(check)

    return Answer(data=check, text=text, exit_code=DONE if check.ok else STORE_TROUBLE)


def _broken(check: LogCheck) -> str:
    return (
        f"The log is broken at event {check.first_broken}: {show.clean(check.problem)}.\n"
        f"{check.events:,} events before it hold. Restore a backup, or import an export into a new memory."
    )


def _rebuild(call: Call) -> Answer:
    with counted("rebuilding", "events") as progress:
        rebuild = call.memory.rebuild(progress)
    with counted("auditing", "events") as progress:
        check = call.memory.audit(progress)

    def text() -> str:
        digests = f"  before  {rebuild.digest_before}\n  after   {rebuild.digest_after}"
        came = "The same state" if rebuild.same else "Another state"
        then = "." if rebuild.same else "; what the log says stands now."
        lines = [f"{came} came out of {rebuild.events:,} events{then}", digests]
        return "\n".join(lines if check.ok else [*lines, f"But the log is not as it was written. {_broken(check)}"])

    return Answer(
        data={**to_json(rebuild), "audit": check},
        text=text,
        exit_code=DONE if rebuild.same and check.ok else STORE_TROUBLE,
    )


def _reindex(call: Call) -> Answer:
    with counted("indexing", "units") as progress:
        documents = call.memory.reindex(progress)
    return Answer(data={"documents": documents}, text=lambda: f"indexed  {documents:,} units")


def _prune_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--apply", action="store_true", help="archive them; without it this only says which")


def _prune(call: Call) -> Answer:
    pruned = call.memory.prune(dry_run=not call.options.apply)

    def text() -> str:
        verb = "would archive" if pruned.dry_run else "archived"
        lines = [f"{verb}  {len(pruned.units)} units, {pruned.kept} kept", *(f"  {id}" for id in pruned.units)]
        return "\n".join([*lines, "Add --apply to do it."] if pruned.dry_run and pruned.units else lines)

    return Answer(data=pruned, text=text)


def _export_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("path", metavar="FILE|-", help="the file; - writes to standard output")


def _export(call: Call) -> Answer:
    path = call.options.path
    if path == "-":
        return _exported(call)
    with counted("exporting", "events") as progress:
        events = call.memory.export(path, progress)
    return Answer(
        data={"path": os.path.abspath(path), "events": events}, text=lambda: f"exported  {events:,} events to {path}"
    )


def _exported(call: Call) -> Answer:
    """The export on standard output, whole or not at all: nothing is written there before it is complete."""
    if call.options.json:
        raise InvalidInput("The export and --json both want standard output.", hint="Name a file, or leave --json out.")
    from shutil import copyfileobj
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="mnemarch-") as folder:
        path = os.path.join(folder, "log.jsonl")
        with counted("exporting", "events") as progress:
            events = call.memory.export(path, progress)
        with open(path, "rb") as file:
            sys.stdout.flush()
            copyfileobj(file, sys.stdout.buffer)
    return Answer(data=None, text=lambda: "", aside=lambda: f"exported  {events:,} events")


def _import(call: Call) -> Answer:
    _check_readable(call.options.path)
    with counted("importing", "events") as progress:
        done = call.memory.import_(call.options.path, progress)
    return Answer(data=done, text=lambda: f"imported  {done.events:,} events, {done.skipped:,} were here already")


def _check_readable(path: str) -> None:
    """Before a memory is made for it."""
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise InvalidInput(
            f"{path!r} can't be read: {error.strerror}.", hint="Give a file that export wrote."
        ) from None


def _backup(call: Call) -> Answer:
    path = call.options.path
    if path == "-":
        raise InvalidInput("A backup is a database, and no stream.", hint="Name a file, or use: mnemarch export -")
    call.memory.backup(path)
    size = os.path.getsize(path)
    return Answer(
        data={"path": os.path.abspath(path), "bytes": size}, text=lambda: f"backed up  {size:,} bytes to {path}"
    )


COMMANDS = {
    "stats": Command(
        description="Counts and sizes of the whole memory.",
        examples=("mnemarch stats", "mnemarch stats --json"),
        arguments=_nothing_more,
        run=_stats,
    ),
    "audit": Command(
        description="Walk every hash chain of the log; name the first entry that does not hold, with exit code 3.",
        examples=("mnemarch audit",),
        arguments=_nothing_more,
        run=_audit,
    ),
    "rebuild": Command(
        description=(
            "Drop everything derived, recreate it from the log alone, and compare digests. Writers wait meanwhile.\n"
            "Exit code 3 if the digests differ: what was derived had gone wrong, and is right now. Then the log is\n"
            "audited, since what was changed in it by hand is rebuilt as it stands: exit code 3 if it does not hold."
        ),
        examples=("mnemarch rebuild",),
        arguments=_nothing_more,
        run=_rebuild,
    ),
    "reindex": Command(
        description="Make the search index anew from the units. Interrupted, the old one stays.",
        examples=("mnemarch reindex",),
        arguments=_nothing_more,
        run=_reindex,
    ),
    "prune": Command(
        description="Archive episodes and skills that are old and of little worth. No event is ever deleted.",
        examples=("mnemarch prune", "mnemarch prune --apply"),
        arguments=_prune_arguments,
        run=_prune,
    ),
    "export": Command(
        description="Write the whole log as JSON lines, ids and hashes included. An existing file is not overwritten.",
        examples=("mnemarch export memory.jsonl", "mnemarch export - | gzip > memory.jsonl.gz"),
        arguments=_export_arguments,
        run=_export,
    ),
    "import": Command(
        description="Read an export back: the same ids, hashes and state. What is already here is skipped.",
        examples=("mnemarch import memory.jsonl --store restored",),
        arguments=_one_path,
        run=_import,
        begins_memory=True,
    ),
    "backup": Command(
        description="Copy the database, consistent, while others write. An existing file is not overwritten.",
        examples=("mnemarch backup memory-backup.db",),
        arguments=_one_path,
        run=_backup,
    ),
}
