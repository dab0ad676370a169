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
from fixtures.cases import cases
from mnemarch import Actor, Scope
from mnemarch.interfaces.http import Tokens
from mnemarch.interfaces.http.app import Server

EXAMPLES = 30 if os.environ.get("MNEMARCH_TORTURE") == "full" else 1
# Tests of the contract that hold word for word over the network.
TAKEN = cases("http_contract", "taken")
sys.path.append(str(Path(__file__).parents[1] / "contract"))
globals().update({name: getattr(import_module(module), name) for module, name in TAKEN})


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
