"""The contract over the network: tests of the verbs themselves, asked from seats of a served memory; and the schema."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

import pytest
import schemathesis
from http_session import remote, serving
from hypothesis import Phase, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

import mnemarch
from mnemarch import Actor, Scope
from mnemarch.interfaces.http.app import Server
from mnemarch.interfaces.http.tokens import Tokens

EXAMPLES = 30 if os.environ.get("MNEMARCH_TORTURE") == "full" else 1
# Tests of the contract that hold word for word over the network.
TAKEN = {
    "test_verbs": """
        test_g2_a_logged_entry_keeps_its_text_actor_scope_and_time
        test_a_batch_is_logged_whole_and_in_order_or_not_at_all
        test_a_key_for_other_content_is_a_conflict_and_stores_nothing
        test_r5_two_agents_with_the_same_fact_get_one_unit_with_two_provenances
        test_r6_text_that_recall_handed_out_is_a_mention_and_neither_provenance_nor_a_new_unit
        test_r2_a_test_citation_counts_from_the_moment_a_verification_recorded_it
        test_r2_a_forged_citation_is_no_persons_word
        test_s10_rule_3_verified_and_reused_by_three_distinct_tasks_is_published
        test_r4_acting_on_an_invisible_unit_is_not_found_for_every_actor
        test_r14_the_callers_own_analysis_is_kept""",
    "test_conflicts": "test_r6_opposed_statements_of_one_batch_open_a_conflict",
    "test_context": "test_only_what_was_packed_counts_as_handed_out",
    "test_core_memory": """
        test_a_section_holds_what_was_appended_and_replaced
        test_r5_a_change_of_another_version_than_the_one_seen_is_a_conflict""",
    "test_decisions": """
        test_d5_a_stale_base_is_refused_with_both_versions
        test_a_proposal_committed_again_gives_the_same_decision
        test_what_holds_in_a_worktree_does_not_bind_the_project
        test_a_change_travels_the_way_each_relation_says""",
}
sys.path.append(str(Path(__file__).parents[1] / "contract"))
for module, names in TAKEN.items():
    globals().update({name: getattr(import_module(module), name) for name in names.split()})


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with mnemarch.open(":memory:") as none_yet:
        server = Server(none_yet, Tokens(str(tmp_path_factory.mktemp("tokens"))), rate=10_000)
        with serving(server) as server.url:
            yield server


@pytest.fixture
def memory(clock):
    with mnemarch.open(":memory:", clock=clock) as opened:
        yield opened


@pytest.fixture
def seats(memory, seats_of, server):
    server.memory = memory
    with remote(seats_of(memory), server.url, server.tokens) as seats:
        yield seats


def test_no_request_makes_the_server_fail_or_answer_beside_its_schema(tmp_path):
    with mnemarch.open(":memory:") as memory:
        server = Server(memory, Tokens(str(tmp_path)), rate=1e6, closing=lambda: True)
        text = server.tokens.create(Actor.human("ada"), Scope(project="shop"), "admin", 1)[1]
        described = schemathesis.openapi.from_asgi("/openapi.json", server.app())
        operations = list(described.get_all_operations())
        assert len(operations) > 50
        for operation in operations:

            @given(case=operation.ok().as_strategy())
            @settings(max_examples=EXAMPLES, derandomize=EXAMPLES == 1, phases=[Phase.generate])
            def check(case):
                # A body of the right form may still be refused: an id that names nothing, a text that is too short.
                case.call_and_validate(
                    headers={"Authorization": f"Bearer {text}"}, excluded_checks=[positive_data_acceptance]
                )

            check()
