"""The life of a unit, done from a seat; and what the operator of a memory does."""

from __future__ import annotations

from mnemarch.verbs.path import LEVELS, OTHER_ID, PROGRESS_SHOWN, REASON, UNIT, VERSION, version_of
from mnemarch.verbs.types import (
    CITATION,
    EXAMPLE_ID,
    FLAG,
    ID,
    KIND,
    LEVEL,
    NUMBER,
    PATH,
    SEAT,
    SIGNAL,
    STATUS,
    WORDS,
    Parameter,
    Verb,
)

_CITATIONS = "commit:HASH, log:ID, human:NAME, test:NAME, file:PATH[#L1-L9] or symbol:PATH::NAME"
_SIGNALS = (
    "tests_passed, pr_merged, human_approved, repeated_success, tests_failed, pr_reverted, human_rejected or "
    "contradicted"
)
_FILE = Parameter("path", PATH, "the file")


KNOWLEDGE = (
    Verb(
        "seat.get",
        (UNIT,),
        "Unit",
        "read",
        says="Show one unit as it is now. Its confidence is decayed to this moment.",
    ),
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
        says="List the units that can be seen from here, newest first.",
        examples=(
            "mnemarch units --status verified --level project",
            f"mnemarch units --kind episode --limit 20 --after {EXAMPLE_ID}",
        ),
    ),
    Verb(
        "seat.explain",
        (UNIT,),
        "Explanation",
        "read",
        says="Tell where a unit is from, how sure it is, why, and who used it. Of its evidence ✓ counts, … not yet.",
    ),
    Verb("seat.history", (UNIT,), "list[Event]", "read", says="List the events of a unit, oldest first."),
    Verb(
        "seat.conflicts", (), "list[Dispute]", "read", says="List the open contradictions that can be seen from here."
    ),
    Verb("seat.proposals", (), "list[Dispute]", "read", says="List near-duplicates that wait to be merged (resolve)."),
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
        says=(
            "Decide a conflict or a merge proposal. The --winner stands and replaces the other side; or --both"
            " hold, stay as they are, and are not opposed to each other again."
        ),
        examples=(
            f'mnemarch resolve {EXAMPLE_ID} --winner {OTHER_ID} --reason "measured it" --actor human:ada',
            f'mnemarch resolve {EXAMPLE_ID} --both --reason "two releases" --actor human:ada',
        ),
    ),
    Verb(
        "seat.cite",
        (UNIT, Parameter("citation", CITATION, _CITATIONS), "*", VERSION),
        "Unit",
        says="Add evidence to a unit. What it points to is checked: a commit, file or log entry must exist.",
        examples=(
            f"mnemarch cite {EXAMPLE_ID} test:tests/test_checkout.py::test_retry",
            f"mnemarch cite {EXAMPLE_ID} file:src/checkout.py#L10-L20",
        ),
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
        examples=(
            f"mnemarch validate {EXAMPLE_ID} pr_merged",
            f"mnemarch validate {EXAMPLE_ID} tests_failed --expected-version 3",
        ),
    ),
    Verb(
        "seat.approve",
        (UNIT, "*", VERSION),
        "Unit",
        says="Say yes to a unit. A human's yes is evidence and verifies it.",
    ),
    Verb(
        "seat.reject",
        (UNIT, REASON, "*", VERSION),
        "Unit",
        says="Say no to a unit, and why: it leaves recall. An approval brings it back.",
        examples=(f'mnemarch reject {EXAMPLE_ID} --reason "true only before the rewrite" --actor human:ada',),
    ),
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
        says="Put one unit in the place of another. In one step: only one successor can win.",
        examples=(f'mnemarch supersede {EXAMPLE_ID} {OTHER_ID} --reason "limit raised" --expected-version 2',),
    ),
    Verb(
        "seat.archive",
        (UNIT, REASON, "*", VERSION),
        "Unit",
        says="Take a unit out of recall. Nothing is lost; `revive` brings it back.",
        examples=(f'mnemarch archive {EXAMPLE_ID} --reason "the module is gone" --actor system:janitor',),
    ),
    Verb(
        "seat.revive",
        (UNIT, REASON, "*", VERSION),
        "Unit",
        says="Bring an archived unit back to the status it had.",
        examples=(f'mnemarch revive {EXAMPLE_ID} --reason "the module is back" --actor human:ada',),
    ),
    Verb(
        "seat.erase",
        (
            UNIT,
            REASON,
            "*",
            Parameter("quoting", FLAG, "and units that say it in statements of their own", False),
            VERSION,
        ),
        "Erased",
        "admin",
        says=(
            "Delete the content of a unit, or of a log entry, for good. From the log, the units, the search index"
            " and the files. Units that say it in statements of their own are named, and nothing is erased, unless"
            " --quoting says that they are meant too. The hashes stay, so the log can still be audited. It asks"
            " first; where nobody can answer it needs --yes."
        ),
        examples=(f'mnemarch erase {EXAMPLE_ID} --reason "personal data" --yes --actor human:ada',),
    ),
)

OPERATE = (
    Verb(
        "memory.doctor",
        (),
        "list[Finding]",
        "admin",
        says=(
            "Check the memory with a real write and a real recall. Says what is wrong and what to do. Exit code 3"
            " if anything failed."
        ),
    ),
    Verb("memory.stats", (), "Stats", "read", says="Counts and sizes of the whole memory."),
    Verb(
        "memory.audit",
        (PROGRESS_SHOWN,),
        "LogCheck",
        "read",
        says="Check every hash chain of the log. Names the first entry that does not hold, with exit code 3.",
    ),
    Verb(
        "memory.rebuild",
        (PROGRESS_SHOWN,),
        "Rebuild",
        "admin",
        says=(
            "Recreate everything derived from the log, and compare digests. Writers wait meanwhile. Exit code 3"
            " if the digests differ: what was derived had gone wrong, and is right now. Then the log is audited,"
            " since what was changed in it by hand is rebuilt as it stands: exit code 3 if it does not hold."
        ),
    ),
    Verb(
        "memory.reindex",
        (PROGRESS_SHOWN,),
        "int",
        "admin",
        says="Make the search index anew from the units. If it is interrupted, the old one stays.",
    ),
    Verb(
        "memory.janitor",
        (Parameter("seat", SEAT, "whose project"), PROGRESS_SHOWN),
        "Swept",
        "admin",
        says=(
            "Archive what cites code that is gone; revive what is back. Compares every unit that cites a file or"
            " a symbol with what is committed. A worktree's units are judged in that worktree, the project's on"
            " its default branch."
        ),
    ),
    Verb(
        "memory.prune",
        (Parameter("dry_run", FLAG, "archive them; without it this only says which", True, "--apply"),),
        "Pruned",
        "admin",
        says="Archive old episodes and skills of little worth. A dry run unless --apply. No event is ever deleted.",
        examples=("mnemarch prune", "mnemarch prune --apply"),
    ),
    Verb(
        "memory.export",
        (Parameter("path", PATH, "the file; - writes to standard output", metavar="FILE|-"), PROGRESS_SHOWN),
        "int",
        "admin",
        says="Write the whole log as JSON lines, ids and hashes included. An existing file is not overwritten.",
        examples=("mnemarch export memory.jsonl", "mnemarch export - | gzip > memory.jsonl.gz"),
    ),
    Verb(
        "memory.import_",
        (_FILE, PROGRESS_SHOWN),
        "Imported",
        "admin",
        says="Read an export back: the same ids, hashes and state. What is already here is skipped.",
        examples=("mnemarch import memory.jsonl --store restored",),
        command="import",
    ),
    Verb(
        "memory.backup",
        (_FILE,),
        "None",
        "admin",
        says="Copy the database, consistent, while others write. An existing file is not overwritten.",
    ),
    Verb("memory.now", gives="datetime", profile="read", says="The time by this memory's clock.", command=None),
    Verb("memory.close", profile="", says="Close everything.", command=None),
)
