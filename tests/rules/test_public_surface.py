"""What users import is pinned: a name comes or goes only on purpose."""

from __future__ import annotations

import subprocess
import sys

import pytest

import mnemarch

NAMES = [
    "Actor",
    "ActorKind",
    "Adopted",
    "Analysis",
    "AnalystFailed",
    "ApproachValidation",
    "Citation",
    "Claim",
    "Conflict",
    "Decision",
    "DecisionProposal",
    "Entry",
    "Event",
    "EventType",
    "FailedApproach",
    "Found",
    "Incompatible",
    "InvalidInput",
    "Kind",
    "Level",
    "LoopVerdict",
    "Memory",
    "MnemarchError",
    "NotAllowed",
    "NotFound",
    "Pack",
    "Promotion",
    "Reason",
    "Recalled",
    "Receipt",
    "Refused",
    "Scope",
    "Seat",
    "Status",
    "StoreCorrupt",
    "StoreError",
    "StoreUnavailable",
    "Stored",
    "Strength",
    "Swept",
    "Unit",
    "Verdict",
    "Withheld",
    "can_promote",
    "can_write",
    "open",
]
OPERATOR = ["seat", "audit", "rebuild", "prune", "janitor", "reindex", "stats", "doctor"]
OPERATOR += ["export", "import_", "backup", "close"]
VERBS = [
    "log",
    "log_many",
    "validate_approach",
    "fail",
    "failed_approaches",
    "mark_stuck",
    "clear_stuck",
    "remember",
    "remember_many",
    "verify",
    "promote",
    "adopt",
    "get",
    "units",
    "cite",
    "validate",
    "use",
    "approve",
    "reject",
    "supersede",
    "archive",
    "revive",
    "erase",
    "conflicts",
    "resolve",
    "explain",
    "history",
    "recall",
]


def test_the_public_names_are_these():
    assert sorted(mnemarch.__all__) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_there_and_documented(name):
    found = getattr(mnemarch, name)
    assert found is not None
    assert name in dir(mnemarch)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError):
        mnemarch.nothing  # noqa: B018 - the access is what is tested


@pytest.mark.parametrize("verb", OPERATOR)
def test_the_operators_verbs_are_there(verb):
    assert callable(getattr(mnemarch.Memory, verb))
    assert getattr(mnemarch.Memory, verb).__doc__ or verb in {"stats"}


@pytest.mark.parametrize("verb", VERBS)
def test_a_seats_verbs_are_there(verb):
    assert getattr(mnemarch.Seat, verb).__doc__


CHANGING = [
    "cite",
    "validate",
    "use",
    "approve",
    "reject",
    "supersede",
    "archive",
    "revive",
    "erase",
    "promote",
    "resolve",
]


@pytest.mark.parametrize("verb", CHANGING)
def test_r5_every_verb_that_changes_a_unit_takes_the_version_it_saw(verb):
    import inspect

    assert "expected_version" in inspect.signature(getattr(mnemarch.Seat, verb)).parameters


def test_every_error_is_a_mnemarch_error_with_a_hint():
    errors = [getattr(mnemarch, name) for name in NAMES if isinstance(getattr(mnemarch, name), type)]
    errors = [error for error in errors if issubclass(error, Exception)]
    assert len(errors) == 10
    for error in errors:
        assert issubclass(error, mnemarch.MnemarchError)
        more = {"rule": "R4"} if error is mnemarch.NotAllowed else {}
        made = error("What happened.", hint="What to do.", **more)
        assert (made.message, made.hint) == ("What happened.", "What to do.")
        assert str(made) == "What happened. What to do."


def test_the_contract_suite_can_be_imported_without_pytest():
    script = (
        "import sys\nsys.modules['pytest'] = None\nsys.modules['hypothesis'] = None\n"
        "from mnemarch.testing import StoreContract\nprint(StoreContract.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "StoreContract"), done.stderr
