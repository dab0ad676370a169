"""The table of kinds: complete, and the only place that says what a kind means."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mnemarch.log.projection import project
from mnemarch.model.caller import Scope
from mnemarch.model.event import WITHOUT_EFFECT, EventType
from mnemarch.model.unit import DecayPolicy, Kind
from mnemarch.policy.kinds import KINDS, KindRules
from mnemarch.recall.question import INTENTS

BUCKETS = {"PROFILE", "PREFERENCE", "EPISODIC", "SEMANTIC", "FACT"}


def test_every_kind_has_a_row_and_no_row_is_of_an_unknown_kind():
    assert set(KINDS) == {str(kind) for kind in Kind}


@pytest.mark.parametrize("kind", Kind)
def test_a_row_names_only_what_exists(kind):
    rules = KINDS[kind]
    assert rules.bucket is None or rules.bucket in BUCKETS
    assert set(rules.intents) <= INTENTS.keys() - {"GENERAL"}
    assert DecayPolicy(rules.decay_policy)
    assert rules.pruned_by in {None, "reward", "success_rate"}


def test_m1_every_bucket_has_a_kind():
    assert {rules.bucket for rules in KINDS.values()} - {None} == BUCKETS


def test_m5_each_intent_prefers_the_kinds_of_its_buckets():
    assert {intent.name: set(intent.kinds) for intent in INTENTS.values()} == {
        "PROFILE": {"profile"},
        "PREFERENCE": {"preference"},
        "RECALL": {"episode"},
        "KNOWLEDGE": {"semantic", "fact"},
        "DEBUG": {"episode", "semantic"},
        "GENERAL": set(),
    }


def test_g24_only_episodes_and_skills_are_pruned():
    assert {name for name, rules in KINDS.items() if rules.pruned_by} == {"episode", "skill"}


def test_what_disputes_also_merges():
    """A kind whose units can contradict each other has one unit for one text: else it would contradict itself."""
    assert all(rules.merges for rules in KINDS.values() if rules.disputes)


def test_a_row_without_its_bucket_is_refused():
    with pytest.raises(TypeError):
        KindRules()


class Untouched:
    """A transaction that nobody may use."""

    def __getattr__(self, name):
        raise AssertionError(f"{name} was called")


class FakeEvent:
    def __init__(self, type):
        self.id, self.type, self.payload, self.subject = "e-1", type, {}, "u-1"
        self.scope, self.recorded_at = Scope(project="p"), datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("type", EventType)
def test_r1_exactly_the_events_without_effect_leave_the_projections_alone(type):
    if type in WITHOUT_EFFECT:
        project(Untouched(), FakeEvent(type))
    else:
        with pytest.raises((AssertionError, KeyError)):
            project(Untouched(), FakeEvent(type))


def test_r1_an_unknown_event_type_is_not_passed_over():
    with pytest.raises(AssertionError, match="handled nowhere"):
        project(Untouched(), FakeEvent("unit.beamed"))
