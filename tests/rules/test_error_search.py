"""How errors are compared with errors that episodes met."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fixtures.cases import cases
from mnemarch.learning import EpisodeClusterer
from mnemarch.learning.errors import ALIKE_MIN, KnownErrors, errors_of, seen_error
from mnemarch.model.caller import Scope
from mnemarch.model.unit import Kind, Status, Trust, Unit

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TRACE = 'Traceback (most recent call last):\n  File "/home/{}/shop/pay.py", line {}, in pay\n    total + tax\n{}'
TYPE_ERROR = "TypeError: unsupported operand type(s) for +: 'int' and 'NoneType'"
POOL_ERROR = "ConnectionError: pool of host db-1 timed out after 31 s"


def episode(id: str, *errors: str, **attributes: object) -> Unit:
    faults = [{"key": seen_error(error).key, "line": seen_error(error).line} for error in errors]
    return Unit(
        id=id,
        kind=Kind.EPISODE,
        content=f"Task {id} failed.",
        scope=Scope(project="shop"),
        domain="global",
        status=Status.HYPOTHESIS,
        trust=Trust(confidence=0.5, since=NOW),
        importance=0.5,
        citations=(),
        provenance=(),
        occurred_at=NOW,
        recorded_at=NOW,
        attributes={"faults": faults} | attributes,
    )


def known(*episodes: Unit) -> KnownErrors:
    return KnownErrors((unit.id, error) for unit in episodes for error in errors_of(unit))


POOL = known(episode("a", TRACE.format("ada", 12, TYPE_ERROR)), episode("b", POOL_ERROR))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TRACE.format("bo", 99, TYPE_ERROR), "a"),
        (TYPE_ERROR, "a"),
        ("ConnectionError: pool of host db-7 timed out after 2 s", "b"),
    ],
)
def test_the_same_fault_is_found_whatever_its_values(error: str, expected: str) -> None:
    assert next(iter(POOL.alike(seen_error(error)))) == expected


@pytest.mark.parametrize(
    "error", ["KeyError: 'colour'", "disk quota exceeded on /dev/sda1", "", "결제 서버가 응답하지 않음"]
)
def test_a_fault_that_nobody_met_is_not_found(error: str) -> None:
    assert POOL.alike(seen_error(error)) == {}


def test_a_score_does_not_depend_on_what_else_is_known() -> None:
    alone = known(episode("b", POOL_ERROR)).alike(seen_error("ConnectionError: refused"), 0.0)
    assert alone["b"][0] < ALIKE_MIN


def test_the_line_to_quote_names_the_error_and_stays_as_it_was_printed() -> None:
    output = f"{TRACE.format('ada', 12, POOL_ERROR)}\nmake: *** [test] leaving"
    assert seen_error(output).line == POOL_ERROR


def test_episodes_are_grouped_by_fault_and_the_newest_tells_it() -> None:
    newer = POOL_ERROR.replace("31", "60")
    episodes = [episode("1", POOL_ERROR), episode("2", TYPE_ERROR, newer), episode("3", "KeyError: 'colour'")]
    clusters = EpisodeClusterer().clusters(episodes)
    assert [unit.id for unit in clusters[0].episodes] == ["2", "1"]
    assert clusters[0].line == newer
    assert len(clusters) == 3


@pytest.mark.parametrize("faults", [None, "x", 7, [None], [{"key": 1, "line": "x"}], [{"key": "x"}], {"key": "x"}])
def test_attributes_that_somebody_made_up_are_no_errors(faults: object) -> None:
    assert errors_of(episode("a", faults=faults)) == []


NEAR = cases("error_search", "near")


@pytest.mark.parametrize(("one", "other"), [*NEAR, *(pair[::-1] for pair in NEAR)])
def test_an_error_is_found_by_a_part_of_its_line_and_the_exact_one_comes_first(one, other):
    others = ["KeyError: 'x'", "ConnectionError: refused", "ValueError: bad amount", "RuntimeError: loop is closed"]
    known = [("near", seen_error(one)), *((text, seen_error(text)) for text in others)]
    assert list(KnownErrors(known).alike(seen_error(other))) == ["near"]
    assert list(KnownErrors([*known, ("exact", seen_error(other))]).alike(seen_error(other)))[:2] == ["exact", "near"]
