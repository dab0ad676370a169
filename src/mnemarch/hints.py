"""What to do next, in the words of each interface: `errors.Hint` names an advice, and this table words it.

`{part}` stands for a part that the error fills in.
"""

from __future__ import annotations

INTERFACES = ("python", "command line")

WORDS = {
    "name the task": ("Take a seat with Scope(..., task=...).", "Add --task ID, or set MNEMARCH_TASK."),
    "name the project": ("Scope(project=..., worktree=..., task=...).", "Add --project NAME."),
    "name the level": ("Take a seat whose scope names a {level}.", "Add --{level} NAME."),
    "name the root": (
        "Take a seat with root='path/of/the/worktree'.",
        "Run it inside the working tree, or add --root FOLDER.",
    ),
    "name that task or none": (
        "Take a seat in that task, or one of the project without a task.",
        "Add that --task ID, or leave --task out.",
    ),
    "list the conflicts": ("List them with conflicts().", "List them: mnemarch conflicts, or mnemarch proposals."),
    "name what was merged": ("Name it: adopt(..., commit='HASH').", "Say what was merged: --commit HASH."),
    "name the worktree": (
        "adopt('feat-login'), from a seat in its project.",
        "mnemarch adopt feat-login --project NAME",
    ),
    "revise the decision": (
        "seat.decisions.propose(..., revises=id), then commit.",
        "mnemarch decide TEXT --revises ID",
    ),
    "make a decision": ("seat.decisions.commit(seat.decisions.propose(...)).", "mnemarch decide"),
    "give a reason": (
        'Use Reason("risk", "why, in a sentence", tradeoff=None).',
        'Add --type risk --reason "why, in a sentence".',
    ),
    "give evidence": (
        "Give the id of evidence (add_evidence(...)), or its words (snapshots=[...]).",
        "Give the id of evidence (--evidence ID), or its words (--snapshot TEXT).",
    ),
    "give evidence from here": (
        "If it was kept in a task, commit from that task's seat, or give its text as a snapshot (snapshots=[...]).",
        "If it was kept in a task, commit it with that --task, or give its text: --snapshot TEXT.",
    ),
    "override the guardian": (
        "{who} can commit it with a reason (override='why'); or propose what leaves these standing.",
        "{who} can commit it with a reason (--override WHY); or propose what leaves these standing.",
    ),
    "say why": ("Say why: override='why'.", "Say why: --override WHY."),
    "cite": (
        'Use Citation.test("..."), Citation.log(id), ...',
        "Write test:NAME, file:PATH, symbol:PATH::NAME, log:ID, ...",
    ),
    "claim": ('Use Claim(content="...").', 'Write {"content": "...", "kind": "fact"}.'),
    "log entry": ('Use ("thought", "text") or Entry(...).', 'Write {"kind": "thought", "text": "..."}.'),
    "name the error": ("Say with which error it failed: error='...'.", "Say with which error it failed: --error TEXT."),
    "only of a failure": ("Pass error and approach with passed=False.", "--error and --approach go with --failed."),
    "verify": ("verify(passed=True, tests=[...])", "mnemarch verify --passed --test NAME"),
    "winner or both": (
        "Pass winner='unit id', or both=True and no version.",
        "Add --winner UNIT, or --both and no --expected-version.",
    ),
    "erase what quotes it": (
        "Nothing was erased. Erase them along with it: quoting=True.",
        "Nothing was erased. Erase them along with it: --quoting.",
    ),
    "analysis": (
        "Give the fields of mnemarch.Analysis.",
        'Use {"critique": "...", "score": 0.8, "key_decisions": ["..."]}, say.',
    ),
    "instant": ("datetime.now(UTC), say.", "2026-01-31T09:30Z, say."),
    "ask a question": ("recall('how does checkout retry?')", 'mnemarch recall "how does checkout retry?"'),
    "ask it again": (
        "It may have been evicted: ask again with upsert_query.",
        "It may have been evicted: ask it again: mnemarch graph ask TEXT --session ID",
    ),
    "begin another session": (
        "Begin another with upsert_query.",
        "Begin another: mnemarch graph ask TEXT --session ID",
    ),
    "begin a session": ("upsert_query begins one.", "mnemarch graph ask TEXT --session ID begins one."),
    "text or unit": (
        "Give text=... or unit_id=..., one of the two.",
        "Give --text TEXT or --unit UNIT, one of the two.",
    ),
}
