"""What the library advises a program, in the words of the command line: options and commands instead of calls."""

from __future__ import annotations

import re

_BEGIN_SESSION = "mnemarch graph ask TEXT --session ID"
# What a hint says to a program, and what it says to whoever typed a command.
_PHRASES = (
    ("Take a seat with Scope(..., task=...).", "Add --task ID, or set MNEMARCH_TASK."),
    ("Take a seat with root='path/of/the/worktree'.", "Run it inside the working tree, or add --root FOLDER."),
    ("Take a seat in that task, or one of the project without a task.", "Add that --task ID, or leave --task out."),
    ("Scope(project=..., worktree=..., task=...).", "Add --project NAME."),
    ("List them with conflicts().", "List them: mnemarch conflicts, or mnemarch proposals."),
    ("Name it: adopt(..., commit='HASH').", "Say what was merged: --commit HASH."),
    ("adopt('feat-login'), from a seat in its project.", "mnemarch adopt feat-login --project NAME"),
    ("seat.decisions.propose(..., revises=id), then commit.", "mnemarch decide TEXT --revises ID"),
    ('Use Citation.test("..."), Citation.log(id), ...', "Write test:NAME, file:PATH, symbol:PATH::NAME, log:ID, ..."),
    ("Say with which error it failed: error='...'.", "Say with which error it failed: --error TEXT."),
    ("Pass error and approach with passed=False.", "--error and --approach go with --failed."),
    ("ask again with upsert_query.", f"ask it again: {_BEGIN_SESSION}"),
    ("Begin another with upsert_query.", f"Begin another: {_BEGIN_SESSION}"),
    ("upsert_query begins one.", f"{_BEGIN_SESSION} begins one."),
    ("Give text=... or unit_id=..., one of the two.", "Give --text TEXT or --unit UNIT, one of the two."),
    ('Use ("thought", "text") or Entry(...).', 'Write {"kind": "thought", "text": "..."}.'),
    ("datetime.now(UTC), say.", "2026-01-31T09:30Z, say."),
    ("Give the fields of mnemarch.Analysis.", 'Use {"critique": "...", "score": 0.8, "key_decisions": ["..."]}, say.'),
    ("Erase them along with it: quoting=True.", "Erase them along with it: --quoting."),
    ("Take a seat whose scope names a task.", "Add --task ID."),
    ("Take a seat whose scope names a worktree.", "Add --worktree NAME."),
    ("Take a seat whose scope names a project.", "Add --project NAME."),
)
# Where a hint speaks to both, what it says to a program goes: "(override='why', --override WHY)".
_FOR_BOTH = re.compile(r"(?:\w+\(\.\.\.\)|\w+=(?:\[\.\.\.\]|'[^']*')), (?=--)|^.*\), or: (?=--|mnemarch )")
_PYTHON = re.compile(r"\w\((?!s\))|\b\w+=(?:\.\.\.|['\"\[]|True|False|None)")


def for_command_line(hint: str) -> str:
    """The hint as one can follow it at a prompt; what would still need a program points to the help."""
    for said, typed in _PHRASES:
        hint = hint.replace(said, typed)
    hint = _FOR_BOTH.sub("", hint)
    return "See: mnemarch --help" if is_python(hint) else hint


def is_python(text: str) -> bool:
    """Whether a text shows a call or a keyword argument."""
    return _PYTHON.search(text) is not None
