"""What a seat does along the data's path: stage, notice loops, pass the gate, recall."""

from __future__ import annotations

from mnemarch.verbs.types import (
    CITATION,
    EXAMPLE_ID,
    FLAG,
    ID,
    INSTANT,
    KIND,
    LEVEL,
    NUMBER,
    OBJECT,
    OUTPUT,
    PROGRESS,
    PYTHON,
    SHARE,
    TEXT,
    WORDS,
    Parameter,
    Verb,
    record_type,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mnemarch.model.unit import Claim

CITATIONS = "commit:HASH, log:ID, human:NAME, test:NAME, file:PATH[#L1-L9] or symbol:PATH::NAME"
LEVELS = "task, worktree, project or org"

UNIT = Parameter("unit_id", ID, "the whole id of the unit", metavar="UNIT")
REASON = Parameter("reason", WORDS, "why; it is kept in the log", flag="--reason", metavar="WHY")
KEY = Parameter("key", WORDS, "idempotency key: the same key again gives the first answer", None, metavar="KEY")
SESSION = Parameter("session", WORDS, "the conversation it belongs to", None, offered=False)
PROGRESS_SHOWN = Parameter("progress", PROGRESS, default=None)
_COMMIT = Parameter("commit", WORDS, "the commit that was verified, or merged", None, metavar="HASH")
_WHY = Parameter("reason", WORDS, "why", metavar="REASON")


def version_of(what: str) -> Parameter:
    return Parameter("expected_version", NUMBER, f"the version of {what} that you saw; a conflict if it moved on", None)


VERSION = version_of("the unit")

_ENTRY = (
    Parameter("kind", WORDS, "thought, tool_output, error, decision, ...", metavar="KIND"),
    Parameter("text", TEXT, "what to log; - or nothing reads standard input", piped=True),
    "*",
    Parameter("data", OBJECT, "an object that goes with it", None),
    KEY,
    Parameter("occurred_at", INSTANT, "when it happened, if not now", None),
    SESSION,
)
_CLAIM = (
    Parameter("content", TEXT, "what to remember; - or nothing reads standard input", piped=True),
    "*",
    Parameter("kind", KIND, "fact (default), preference, profile, semantic, skill, ...", "fact"),
    Parameter("level", LEVEL, f"{LEVELS} (default: the narrowest of the seat)", None),
    Parameter("domain", WORDS, "what it is about (default: global)", "global", metavar="NAME"),
    Parameter("citations", CITATION, f"{CITATIONS}; repeatable", (), "--cite", many=True),
    Parameter("importance", SHARE, "0 to 1 (default: 0.5)", 0.5),
    Parameter("occurred_at", INSTANT, "since when it is true, if not now", None),
    SESSION,
    KEY,
    Parameter("attributes", OBJECT, "more about it, by name", None, offered=False),
)
_FADING = Parameter("decay_policy", WORDS, "how its confidence fades", None)


def _claim(**fields: Any) -> Claim:
    from mnemarch.model.unit import Claim

    return Claim(**fields)


ENTRY = record_type("log entry", _ENTRY, '{"kind": "thought", "text": "..."}')
CLAIM = record_type("claim", (*_CLAIM, _FADING), '{"content": "...", "kind": "fact"}', _claim)

_QUERY = Parameter("query", WORDS, "a question or some words, in English or Korean", metavar="QUERY")
_ABOUT = (
    Parameter("kinds", KIND, "only this kind; repeatable", None, "--kind", many=True),
    Parameter("domain", WORDS, "only this domain, and global", None, metavar="NAME"),
    Parameter("phase", WORDS, "the stage of the work; it filters nothing", None, offered=False),
    Parameter("at_commit", WORDS, "what holds at that commit, not at the one checked out", None, metavar="HASH"),
    Parameter("as_of", INSTANT, "what was true at that moment", None),
)

STAGE = (
    Verb(
        "seat.log",
        _ENTRY,
        "Receipt",
        says="Append a thought, a tool's output, anything, to the log. Secrets are taken out first.",
        examples=(
            'mnemarch log thought "The pool is exhausted before the retry" --task T-42',
            "pytest 2>&1 | mnemarch log tool_output - --task T-42 --key run-7",
        ),
    ),
    Verb(
        "seat.log_many",
        (
            Parameter(
                "entries",
                ENTRY,
                "on standard input, one a line: {kind, text, data?, key?, occurred_at?}",
                many=True,
                piped=True,
            ),
        ),
        "list[Receipt]",
        says="Append several entries in one transaction: all of them, or none.",
        examples=("mnemarch log --batch --task T-42 < entries.jsonl",),
        command="log --batch",
    ),
    Verb(
        "seat.remember",
        _CLAIM,
        "Stored | Refused",
        says="Claim something: it becomes a unit, joins one, or is refused. A refusal (exit code 1) names its rule."
        " Without evidence that counts (a passed test, a human's word) it is a hypothesis, seen where it was made."
        " Agents write in their task and worktree, a person at --level project: see mnemarch policy.",
        examples=(
            'mnemarch remember "Checkout retries" --cite test:t.py::test_retry --task T-42 --actor agent:coder-1',
            'mnemarch remember "We deploy on Tuesdays" --level project --cite human:ada --actor human:ada',
        ),
    ),
    Verb(
        "seat.remember_many",
        (
            Parameter(
                "claims",
                CLAIM,
                "on standard input, one a line: {content, kind?, level?, citations?, ...}",
                many=True,
                piped=True,
            ),
            PROGRESS_SHOWN,
        ),
        "list[Stored | Refused]",
        says="Claim many things in order. All are checked before the first is stored.",
        examples=("mnemarch remember --batch --task T-42 --actor agent:coder-1 < claims.jsonl",),
        command="remember --batch",
    ),
)

LOOPS = (
    Verb(
        "seat.validate_approach",
        (Parameter("approach", TEXT, "what you are about to try; - reads standard input"),),
        "ApproachValidation",
        "read",
        "Ask before acting: has this approach already failed here? In other words it counts too. Exit code 1 if so.",
        ('mnemarch approach "raise the pool size" --task T-42',),
        "approach",
    ),
    Verb(
        "seat.fail",
        (
            Parameter("error", OUTPUT, "the error; - or nothing reads standard input", piped=True),
            "*",
            Parameter("approach", WORDS, "what was tried before it", None),
            KEY,
        ),
        "LoopVerdict",
        says="Report a failure; the verdict says whether to go on. WARN: an error came back after another (A, B, A), or"
        " an approach that already failed. BLOCK (exit code 1), with an instruction for the agent: the third time of"
        " the same error or approach. Until then ALLOW. A verified success clears it.",
        examples=(
            'mnemarch fail "ConnectionError: pool timed out" --approach "raise the pool size" --task T-42',
            'pytest > out.txt 2>&1 || mnemarch fail - --approach "raise the pool size" --task T-42 < out.txt',
        ),
    ),
    Verb(
        "seat.failed_approaches",
        (),
        "list[FailedApproach]",
        "read",
        "List what was tried in this task and failed. Since it last succeeded or was cleared.",
        command="attempts",
    ),
    Verb(
        "seat.mark_stuck",
        (_WHY,),
        "Receipt",
        says="Call a task stuck: every further attempt is blocked. A person or an orchestrator clears it.",
        examples=('mnemarch stuck "needs the staging password" --task T-42',),
        command="stuck",
    ),
    Verb(
        "seat.clear_stuck",
        (_WHY,),
        "Receipt",
        says="Let a stuck task start anew; for a person or an orchestrator. The failures so far are forgotten.",
        examples=('mnemarch stuck --clear "I raised the quota" --task T-42 --actor human:kim',),
        command="stuck --clear",
    ),
)

GATE = (
    Verb(
        "seat.verify",
        (
            Parameter("passed", FLAG, "whether the verification passed", flag="--passed|--failed"),
            "*",
            Parameter("tests", WORDS, "a test that ran; repeatable", (), "--test", many=True, metavar="NAME"),
            _COMMIT,
            Parameter("analysis", OBJECT, "your own: critique, score, key_decisions, ...", None),
            Parameter("error", OUTPUT, "of a failure: the error; - reads standard input", None),
            Parameter("approach", WORDS, "of a failure: what was tried before it", None),
        ),
        "Promotion",
        says="Report how a task's verification went; the gate judges it. On success what cites a passed test is raised;"
        " what is kept down is named with its rule. A failure keeps an episode and raises nothing. Without a --task it"
        " is the worktree's own; outside of a repository a --task (or --worktree) is needed.",
        examples=(
            "mnemarch verify --passed --test tests/test_checkout.py::test_retry --task T-42",
            'mnemarch verify --failed --task T-42 --analysis \'{"critique": "the fix broke refunds"}\'',
            'pytest > out.txt 2>&1 || mnemarch verify --failed --task T-42 --error - --approach "more tries" < out.txt',
        ),
    ),
    Verb(
        "seat.promote",
        (UNIT, Parameter("to", LEVEL, "worktree, project (default) or org", "project"), "*", VERSION),
        "Stored | Refused",
        says="Move a unit to a wider level. Project and org take only verified knowledge.",
        examples=(f"mnemarch promote {EXAMPLE_ID} --to project --actor orchestrator:lead",),
    ),
    Verb(
        "seat.adopt",
        (
            Parameter("worktree", WORDS, "whose units (default: the seat's own)", None, "", metavar="WORKTREE"),
            "*",
            _COMMIT,
        ),
        "Adopted",
        says="Take over into the project what a merged worktree verified. What the gate refuses names its rule (exit"
        " code 1). If the worktree's folder is gone, --commit says what was merged.",
        examples=("mnemarch adopt feat-login --actor orchestrator:lead",),
    ),
)

RECALL = (
    Verb(
        "seat.recall",
        (_QUERY, Parameter("k", NUMBER, "how many at most (default: 8)", 8, "-k"), "*", *_ABOUT),
        "Found",
        "read",
        "Find the units that answer a question, with reasons. Trusted knowledge comes before hypotheses. What matched"
        " but may not be handed out is listed as withheld.",
        (
            'mnemarch recall "how does checkout retry?"',
            'mnemarch recall "결제 재시도" -k 3 --kind fact --task T-42',
            'mnemarch recall "deploy day" --as-of 2026-01-31T00:00Z --json',
        ),
    ),
    Verb(
        "seat.context",
        (
            _QUERY,
            Parameter("tokens", NUMBER, "the budget (default: 2000)", 2_000),
            "*",
            Parameter("count", PYTHON, "counts the tokens of a text", None),
            *_ABOUT,
        ),
        "Pack",
        "read",
        "Give the same as one text for a model, within a token budget. Whole units in recall's order, fenced as data."
        " Standard output is that text alone; its size, or that nothing was found, is said on stderr.",
        (
            'mnemarch context "fix the checkout retry" --tokens 1500',
            'mnemarch context "결제 재시도" --task T-42 --json',
        ),
    ),
)
