"""The life of a unit, done from a seat; and what the operator of a memory does."""

from __future__ import annotations

from mnemarch.verbs.path import CITATIONS, LEVELS, PROGRESS_SHOWN, REASON, UNIT, VERSION, version_of
from mnemarch.verbs.types import (
    CITATION,
    EXAMPLE_ID,
    FLAG,
    ID,
    KIND,
    LEVEL,
    NUMBER,
    OTHER_ID,
    PATH,
    SEAT,
    SIGNAL,
    STATUS,
    WORDS,
    Parameter,
    Verb,
)

_SIGNALS = "tests_passed, pr_merged, repeated_success, tests_failed, pr_reverted, contradicted; human_... from a human"
_FILE = Parameter("path", PATH, "the file")
_QUOTING = Parameter("quoting", FLAG, "and units that say it in statements of their own", False)
_DRY_RUN = Parameter("dry_run", FLAG, "archive them; without it this only says which", True, "--apply")

KNOWLEDGE = (
    Verb("seat.get", (UNIT,), "Unit", "read", "Show one unit as it is now. Its confidence is decayed to this moment."),
    Verb(
        "seat.units",
        (
            "*",
            Parameter("kind", KIND, "fact, preference, episode, skill, ...", None),
            Parameter("status", STATUS, "hypothesis, verified, published, deprecated or archived", None),
            Parameter("level", LEVEL, LEVELS, None),
            Parameter("domain", WORDS, "what they are about", None, metavar="NAME"),
            Parameter("limit", NUMBER, "how many (default: 50)", 50),
            Parameter("after", ID, "the last id of the page before", None, metavar="UNIT"),
        ),
        "list[Unit]",
        "read",
        "List the units that can be seen from here, newest first.",
        ("mnemarch units --status verified --level project", f"mnemarch units --limit 20 --after {EXAMPLE_ID}"),
    ),
    Verb(
        "seat.explain",
        (UNIT,),
        "Explanation",
        "read",
        "Tell where a unit is from, how sure it is, why, and who used it. Of its evidence ✓ counts, … not yet.",
    ),
    Verb("seat.history", (UNIT,), "list[Event]", "read", "List the events of a unit, oldest first."),
    Verb("seat.conflicts", (), "list[Dispute]", "read", "List the open contradictions that can be seen from here."),
    Verb("seat.proposals", (), "list[Dispute]", "read", "List near-duplicates that wait to be merged (resolve)."),
    Verb(
        "seat.resolve",
        (
            Parameter("conflict_id", ID, "the whole id of the conflict or the proposal"),
            "*",
            Parameter("winner", ID, "the unit that stands", None, metavar="UNIT"),
            Parameter("both", FLAG, "both hold: neither excludes the other", False),
            REASON,
            version_of("the unit that loses"),
        ),
        "Dispute",
        says="Decide a conflict or a merge proposal. The --winner replaces the other side; --both keeps the two.",
        examples=(
            f'mnemarch resolve {EXAMPLE_ID} --winner {OTHER_ID} --reason "measured it" --actor human:ada',
            f'mnemarch resolve {EXAMPLE_ID} --both --reason "two releases" --actor human:ada',
        ),
    ),
    Verb(
        "seat.cite",
        (UNIT, Parameter("citation", CITATION, CITATIONS), "*", VERSION),
        "Unit",
        says="Add evidence to a unit. What it points to is checked: a commit, file or log entry must exist.",
    ),
    Verb(
        "seat.use",
        (UNIT, "*", VERSION),
        "Unit",
        says="Say that this task used a unit. Each task counts once; three tasks publish a verified unit.",
    ),
    Verb(
        "seat.validate",
        (UNIT, Parameter("signal", SIGNAL, _SIGNALS), "*", VERSION),
        "float",
        says="Raise or lower a unit's confidence by one signal. The signals of a person come only from a human.",
    ),
    Verb("seat.approve", (UNIT, "*", VERSION), "Unit", says="Say yes to a unit. A human's yes is evidence."),
    Verb("seat.reject", (UNIT, REASON, "*", VERSION), "Unit", says="Say no to a unit, and why: it leaves recall."),
    Verb(
        "seat.supersede",
        (
            Parameter("new_id", ID, "the whole id of the unit that takes the place", metavar="NEW"),
            Parameter("old_id", ID, "the whole id of the unit that is replaced", metavar="OLD"),
            REASON,
            "*",
            version_of("the old unit"),
        ),
        "Unit",
        says="Put one unit in the place of another. Only one successor can win.",
    ),
    Verb("seat.archive", (UNIT, REASON, "*", VERSION), "Unit", says="Take a unit out of recall. `revive` undoes it."),
    Verb("seat.revive", (UNIT, REASON, "*", VERSION), "Unit", says="Bring an archived unit back to the status it had."),
    Verb(
        "seat.erase",
        (UNIT, REASON, "*", _QUOTING, VERSION),
        "Erased",
        "admin",
        "Delete the content of a unit, or of a log entry, for good. From the log, the units, the search index and the"
        " files. Units that say it in statements of their own are named, and nothing is erased, unless --quoting. The"
        " hashes stay, so the log can still be audited. It asks first; where nobody can answer it needs --yes.",
    ),
)

OPERATE = (
    Verb(
        "memory.doctor",
        (),
        "list[Finding]",
        "admin",
        "Check the memory with a real write and a real recall. Says what to do; exit code 3 if anything failed.",
    ),
    Verb("memory.stats", (), "Stats", "read", "Give counts and sizes of the whole memory."),
    Verb(
        "memory.audit",
        (PROGRESS_SHOWN,),
        "LogCheck",
        "read",
        "Check every hash chain of the log. Names the first entry that does not hold, with exit code 3.",
    ),
    Verb(
        "memory.rebuild",
        (PROGRESS_SHOWN,),
        "Rebuild",
        "admin",
        "Recreate everything derived from the log, and compare digests. Writers wait meanwhile. Exit code 3 if the"
        " digests differ (what was derived had gone wrong, and is right now), or if the log itself was changed.",
    ),
    Verb("memory.reindex", (PROGRESS_SHOWN,), "int", "admin", "Make the search index anew from the units."),
    Verb(
        "memory.janitor",
        (Parameter("seat", SEAT, "whose project"), PROGRESS_SHOWN),
        "Swept",
        "admin",
        "Archive what cites code that is gone; revive what is back. A worktree's units are judged in that worktree, the"
        " project's on its default branch.",
    ),
    Verb(
        "memory.prune",
        (_DRY_RUN,),
        "Pruned",
        "admin",
        "Archive old episodes and skills of little worth. A dry run unless --apply. No event is ever deleted.",
        ("mnemarch prune", "mnemarch prune --apply"),
    ),
    Verb(
        "memory.export",
        (Parameter("path", PATH, "the file; - writes to standard output", metavar="FILE|-"), PROGRESS_SHOWN),
        "int",
        "admin",
        "Write the whole log as JSON lines, ids and hashes included. An existing file is not overwritten.",
        ("mnemarch export memory.jsonl", "mnemarch export - | gzip > memory.jsonl.gz"),
    ),
    Verb(
        "memory.import_",
        (_FILE, PROGRESS_SHOWN),
        "Imported",
        "admin",
        "Read an export back: the same ids, hashes and state. What is already here is skipped.",
        command="import",
    ),
    Verb("memory.backup", (_FILE,), "None", "admin", "Copy the database, consistent, while others write."),
    Verb("memory.now", (), "datetime", "read", "Give the time by this memory's clock.", command=None),
    Verb("memory.close", (), "None", "", "Close everything.", command=None),
)
