"""Wrong arguments for the managers of learning: the error says what is wrong, and is never a raw Python error."""

from __future__ import annotations

import inspect
from collections import ChainMap
from types import MappingProxyType

import pytest

from mnemarch import MnemarchError
from mnemarch.errors import InvalidInput
from mnemarch.learning import (
    CodeRule,
    apply_rules,
    cleanup_weak_rules,
    detect_code_rules_from_patch,
    merge_duplicate_rules,
    reinforce_rule,
)

MANAGERS = ("working", "episodes", "knowledge", "rules", "core")
WRONG = (None, 5, -1, float("nan"), True, "", "x", b"x", [], [None], [5], ["x"], {}, {5: 5}, {"x": {1}}, object())
RIGHT = {"str": "x", "bool": True, "int": 1, "float": 0.5}
RULE = CodeRule(name="x", category="readability", before_pattern="$A == None", after_pattern="$A is None")


def public(manager):
    methods = inspect.getmembers(manager, inspect.ismethod)
    return {name: method for name, method in methods if not name.startswith("_")}


def calls(method):
    """The method with one argument wrong and the others right, for each argument and each wrong one."""
    taken = inspect.signature(method).parameters.values()
    needed = [each for each in taken if each.default is each.empty]
    right = {each.name: RIGHT.get(each.annotation, RULE if "Rule" in each.annotation else []) for each in needed}
    return [right | {each.name: item} for each in taken for item in WRONG]


def refusal(function, arguments):
    """The refusal, or None if the call is taken; anything else that is raised fails the test."""
    try:
        function(**arguments)
    except MnemarchError as error:
        return error
    return None


@pytest.mark.parametrize("name", MANAGERS)
def test_every_method_refuses_arguments_of_another_type(seats, name):
    methods = public(getattr(seats.agent(), name))
    assert methods
    answers = [refusal(method, arguments) for method in methods.values() for arguments in calls(method)]
    hints = [error.hint for error in answers if error is not None]
    assert hints
    assert all(hints)


FUNCTIONS = (
    *(apply_rules, cleanup_weak_rules, detect_code_rules_from_patch, merge_duplicate_rules),
    *(reinforce_rule, RULE.apply),
)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_every_function_does_too(function):
    hints = [error.hint for error in (refusal(function, arguments) for arguments in calls(function)) if error]
    assert hints
    assert all(hints)


def test_the_answer_says_which_argument_and_what_it_should_be(seats):
    seat = seats.agent()
    with pytest.raises(InvalidInput, match=r"path of track_file must be text, not 5\."):
        seat.working.track_file(5)
    with pytest.raises(InvalidInput, match=r"plan of init_task must be a list, not 'one step'\."):
        seat.working.init_task("x", plan="one step")
    with pytest.raises(InvalidInput, match=r"patterns of match_error_patterns_batch must be a list, not \[None\]"):
        seat.episodes.match_error_patterns_batch([None])
    with pytest.raises(InvalidInput, match=r"project of find_by_project must be text or None, not \[\]"):
        seat.episodes.find_by_project([])


def test_what_is_a_sequence_or_a_mapping_is_taken(seats):
    episodes = seats.agent().episodes
    for number, attributes in enumerate((MappingProxyType({"a": 1}), ChainMap({"a": 1}))):
        told = {"errors": ("KeyError: x",), "attributes": attributes}
        assert episodes.store(f"Mend the pool of shop {number}", success=True, **told).unit is not None
    with pytest.raises(InvalidInput, match="errors of store must be a list"):
        episodes.store("Mend it", success=True, errors="KeyError: x")
