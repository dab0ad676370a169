"""The names that users import are pinned, so that none is added or removed by accident."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import mnemarch
import mnemarch.learning
from mnemarch.decisions import Decisions
from mnemarch.graph import GraphStore, MemoryOrchestrator
from mnemarch.learning import CoreMemory, EpisodicMemoryManager, WorkingMemoryManager
from mnemarch.learning.knowledge import SemanticMemoryManager
from mnemarch.loops import CircularFixDetector

PUBLIC = """
    Actor ActorKind Analysis AnalystFailed ApproachValidation Citation Claim Conflict Decision DecisionProposal
    Entry Event EventType FailedApproach Found Incompatible Ingested InvalidInput Kind Level LoopVerdict Memory
    MnemarchError NotAllowed NotFound Pack Promotion Reason Recalled Receipt Refused Scope Seat Status
    StoreCorrupt StoreError StoreUnavailable Stored Strength Swept Unit Verdict Withheld can_promote can_write
    connect copy open
"""
NAMES = PUBLIC.split()
# Every name of a class that has no underscore: what users call, and (second) what only our own rooms do.
SURFACES = {
    mnemarch.Memory: (
        "audit backup close cognify copy_to doctor export import_ janitor maintain now prune rebuild reindex seat "
        "stats verify_receipt",
        "",
    ),
    mnemarch.Seat: (
        "log log_many ingest ingest_many ingest_file ingested validate_approach fail failed_approaches mark_stuck "
        "clear_stuck remember remember_many about awaited_tests consolidate "
        "verify promote reflect inbox accept decline import_claims get units cite validate use approve reject withdraw "
        "supersede archive revive erase undo revert conflicts proposals resolve explain related history events status "
        "show recall context actor scope loops decisions graph rules working core episodes knowledge items",
        "caller",
    ),
    Decisions: (
        "accept_request active add_anchor add_evidence add_policy broken_anchors check commit decline_request domains "
        "get history impact in_force load propose relate relations requests unrelate",
        "",
    ),
    EpisodicMemoryManager: (
        "store search find_similar find_similar_batch find_by_error_pattern match_error_patterns_batch find_by_project "
        "find_by_semantic_similarity hybrid_search invalidate_cache get_cache_stats",
        "last_time",
    ),
    SemanticMemoryManager: (
        "add_bug_pattern match_bug_pattern add_code_pattern preferences learn_from_edits learn_from_episode"
        " get_relevant_knowledge",
        "",
    ),
    CircularFixDetector: (
        "check clear detect_repeated_approach get_failed_approaches hash_error mark_subtask_stuck stuck_reason "
        "validate_approach",
        "counting failures settle",
    ),
    MemoryOrchestrator: (
        "finalize_session gc_sessions get_active_sessions get_agent_store get_session_store record_answer "
        "record_feedback restore_session search upsert_entity upsert_query",
        "nominated running_session",
    ),
    WorkingMemoryManager: (
        "add_hypothesis consolidate current init_task record_decision record_step track_file track_symbol",
        "",
    ),
    CoreMemory: (
        "archival_memory_insert archival_memory_search call compiled conversation_search core_memory_append "
        "core_memory_replace history sections tools",
        "",
    ),
    GraphStore: (
        "adjust_weights answers decay edges entities_in from_snapshot known_query link load_from_file node nodes pin "
        "record_answer record_feedback save_to_file search_similar_queries stats to_snapshot upsert_entity "
        "upsert_query",
        "answer ask bring change change_with has join node_for nominated reading replay reset sessions table "
        "take_steps vector_of vertex",
    ),
}
# Their members, or their names, say what they are.
WITHOUT_DOCSTRING = {"ActorKind", "Kind", "Level", "Status", "Verdict", "actor", "scope", "stats"}


def test_the_public_names_are_these():
    assert sorted(mnemarch.__all__) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_there_and_documented(name):
    assert getattr(mnemarch, name).__doc__ or name in WITHOUT_DOCSTRING
    assert name in dir(mnemarch)


@pytest.mark.parametrize("package", [mnemarch, mnemarch.learning], ids=lambda package: package.__name__)
def test_type_checkers_are_told_of_the_same_names(package, pytestconfig):
    stub = Path(package.__file__).with_suffix(".pyi")
    names = sorted((home, name) for name, home in package._HOME_OF.items())
    version = "\n__version__: str\n" if hasattr(package, "__version__") else ""
    made = "".join(f"from {home} import {name} as {name}\n" for home, name in names) + version
    if pytestconfig.getoption("--rewrite"):
        stub.write_text(made, encoding="utf-8")
    assert stub.read_text(encoding="utf-8") == made, "it is made anew with --rewrite"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError):
        mnemarch.nothing  # noqa: B018 - the access is what is tested


@pytest.mark.parametrize("surface", SURFACES, ids=lambda surface: surface.__name__)
def test_a_surface_has_exactly_these_names_each_documented(surface):
    for_users, for_us = (set(names.split()) for names in SURFACES[surface])
    assert {name for name in dir(surface) if not name.startswith("_")} == for_users | for_us
    assert {name for name in for_users if not getattr(surface, name).__doc__} <= WITHOUT_DOCSTRING


CHANGING = {
    *("cite", "validate", "use", "approve", "reject", "supersede", "archive", "revive", "erase", "promote"),
    "resolve",
}


@pytest.mark.parametrize("verb", sorted(CHANGING))
def test_r5_every_verb_that_changes_a_unit_takes_the_version_it_saw(verb):
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
