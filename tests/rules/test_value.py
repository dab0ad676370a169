"""A `Frozen` class has the meaning of a frozen dataclass."""

from __future__ import annotations

import copy
import json
import pickle
from datetime import UTC, datetime

import pytest

from mnemarch import (
    Actor,
    Analysis,
    Citation,
    Claim,
    Entry,
    Found,
    InvalidInput,
    Kind,
    Level,
    Reason,
    Receipt,
    Scope,
    Status,
)
from mnemarch.config import Config
from mnemarch.errors import Conflict, Hint, NotAllowed
from mnemarch.model.caller import Stream
from mnemarch.model.unit import Provenance, Signal, Trust
from mnemarch.model.value import Frozen, replace
from mnemarch.testing import made_link, made_unit


class Point(Frozen):
    """Two numbers."""

    x: int
    y: int = 2

    @property
    def total(self) -> int:
        return self.x + self.y


class Checked(Frozen):
    x: int

    def __check__(self) -> None:
        if self.x < 0:
            raise ValueError("negative")


VALUES = [
    Point(1),
    Actor.human("alice"),
    Scope(org="a", project="b"),
    Stream("a", None),
    Citation.symbol("a.py", "b"),
    Receipt(event_id="e", seq=1, hash="h"),
    Claim(content="x", attributes={"a": [1]}),
    Entry(kind="thought", text="x", data={"a": 1}, occurred_at=datetime(2026, 1, 1, tzinfo=UTC)),
    Analysis(success=True, critique="", score=1.0, result={"a": 1}),
    Found(items=(), withheld=(), intent="GENERAL"),
    made_unit(attributes={"a": {"b": 1}}),
    made_link("l", "a", "b"),
    Config(),
]
ids = [type(item).__name__ for item in VALUES]


@pytest.mark.parametrize("item", VALUES, ids=ids)
def test_a_value_is_frozen(item):
    name = type(item).__match_args__[0]
    for change in (lambda: setattr(item, name, 1), lambda: setattr(item, "other", 1), lambda: delattr(item, name)):
        with pytest.raises(AttributeError):
            change()
    assert not hasattr(item, "__dict__")


@pytest.mark.parametrize("item", VALUES, ids=ids)
@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda item: pickle.loads(pickle.dumps(item)), replace],
    ids=["copy", "deepcopy", "pickle", "replace"],
)
def test_a_copy_equals_its_original(item, copied):
    again = copied(item)
    assert again == item
    assert type(again) is type(item)


@pytest.mark.parametrize(
    "error",
    [
        InvalidInput("Nothing is there.", hint=Hint("verify")),
        NotAllowed("agent:a may not.", rule="G23", hint="Ask."),
        Conflict("It changed.", hint="Read it.", expected_version=1, actual_version=2, current=made_unit()),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_reaches_another_process_whole(error):
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.hint) == (type(error), str(error), error.hint)
    assert {**vars(again), "advice": ""} == {**vars(error), "advice": ""}


@pytest.mark.parametrize("item", VALUES, ids=ids)
def test_equal_values_hash_alike_or_not_at_all(item):
    try:
        first = hash(item)
    except TypeError:
        return
    assert hash(replace(item)) == first


def test_equality_is_by_class_and_fields():
    class Other(Frozen):
        x: int
        y: int = 2

    assert Point(1) == Point(1, 2) == Point(x=1, y=2) == Point(y=2, x=1)
    assert Point(1) != Point(2)
    assert Point(1) != Other(1)
    assert Point(1) != (1, 2)
    assert Point(1) != None  # noqa: E711 - the operator is what is tested
    assert hash(Point(1)) == hash(Point(1, 2))
    assert {Point(1): "a"}[Point(1)] == "a"


def test_it_shows_its_fields():
    assert repr(Point(1)) == "Point(x=1, y=2)"
    assert repr(Actor.agent("a")).startswith("Actor(kind=")
    assert Point.__doc__ == "Two numbers."
    assert Point(1).total == 3


def test_it_matches_by_position():
    match Point(3, 4):
        case Point(x, y):
            assert (x, y) == (3, 4)


@pytest.mark.parametrize(
    ("positional", "named", "told"),
    [((), {}, "x"), ((), {"y": 1}, "x"), ((1,), {"z": 1}, "z"), ((1,), {"x": 1}, "x"), ((1, 2, 3), {}, "3")],
)
def test_missing_unknown_and_repeated_arguments_are_refused_by_name(positional, named, told):
    with pytest.raises(TypeError, match=told):
        Point(*positional, **named)


def test_replace_changes_only_the_named_fields_and_checks_again():
    assert replace(Point(1), y=5) == Point(1, 5)
    with pytest.raises(TypeError):
        replace(Point(1), z=5)
    with pytest.raises(ValueError, match="negative"):
        replace(Checked(1), x=-1)
    with pytest.raises(ValueError, match="negative"):
        Checked(-1)


def test_a_default_is_not_shared_between_values():
    """Changing what one claim holds must not change what the next one starts with."""
    Claim(content="a").attributes["leak"] = 1
    assert Claim(content="b").attributes == {}


@pytest.mark.parametrize("times", [1, 100], ids=["made once", "made often"])
def test_the_first_and_the_hundredth_value_of_a_class_behave_the_same(times):
    class Part(Frozen):
        name: str
        size: int = 3
        marks: dict[str, int] = {}  # noqa: RUF012 - copied for each value

        def __check__(self) -> None:
            if not self.name:
                raise ValueError("no name")

    made = [Part("a") for _ in range(times)]
    made[0].marks["x"] = 1
    assert Part("a").marks == {}
    assert Part(name="b", marks={"y": 1}) == Part("b", 3, {"y": 1})
    with pytest.raises(ValueError, match="no name"):
        Part("")
    for wrong in (lambda: Part(), lambda: Part("a", other=1), lambda: Part("a", name="b"), lambda: Part(1, 2, {}, 4)):
        with pytest.raises(TypeError):
            wrong()


AT = datetime(2026, 1, 1, tzinfo=UTC)
RECORDS = [
    Citation.file("a.py", (1, 2)),
    Trust(confidence=0.5, since=AT, validation_source=Signal.PR_MERGED, last_validated_at=AT, validation_count=2),
    Provenance(actor=Actor.agent("a"), scope=Scope(project="p"), event_id="e", at=AT),
    Claim(content="x", kind=Kind.FACT, level=Level.PROJECT, citations=(Citation.test("t"),), occurred_at=AT),
    Reason("risk", "why"),
    made_unit(attributes={"a": {"b": 1}}, superseded_from=Status.VERIFIED, valid_to=AT),
    made_link("l", "a", "b"),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_comes_back_from_its_json_form(record):
    stored = json.loads(json.dumps(record.to_json()))
    assert type(record).from_json(stored) == record
    assert stored == record.to_json()


def test_a_record_is_stored_by_its_json_names_and_without_what_is_not_stored():
    trust = RECORDS[1].to_json()
    assert set(trust) == {"confidence", "since", "decay", "source", "validated_at", "count"}
    assert trust["since"] == 1_767_225_600_000_000
    assert RECORDS[2].to_json() == {
        "actor": "agent:a",
        "scope": ["default", "p", None, None],
        "event": "e",
        "at": 1_767_225_600_000_000,
        "session": None,
    }
    assert "key" not in Claim(content="x", key="k").to_json()
    assert "superseded_from" not in made_unit().to_json()
    assert made_unit().to_json()["valid_to"] is None


def test_a_record_with_an_unknown_field_is_refused():
    with pytest.raises(TypeError):
        Citation.from_json({"kind": "log", "ref": "x", "detail": {}, "weight": 1})


def test_a_vocabulary_refuses_an_unknown_name_with_its_members():
    with pytest.raises(InvalidInput, match="'x' is not a kind of unit") as caught:
        Kind.parse("x")
    assert "fact" in caught.value.hint
