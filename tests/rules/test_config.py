"""Settings: every name is known, every type checked, every number usable."""

from __future__ import annotations

import math

import pytest

from mnemon import InvalidInput
from mnemon.config import Config, config_from, load

BAD = [
    {"limit": {}},
    {"limits": {"text_bytes": 5}},
    {"limits": {"text_bytes_max": "5"}},
    {"limits": {"text_bytes_max": 5.5}},
    {"limits": {"text_bytes_max": True}},
    {"limits": {"text_bytes_max": -1}},
    {"limits": 5},
    {"limits": "text_bytes_max"},
    {"gate": {"reuse_min": None}},
    {"gate": {"tau_sim": "high"}},
    {"gate": {"tau_sim": math.nan}},
    {"recall": {"weight_recency": math.nan}},
    {"recall": {"weight_recency": math.inf}},
    {"recall": {"half_life_hours": 0}},
    {"recall": {"half_life_hours": math.nan}},
    {"store": {"durability": "sometimes"}},
    {"store": {"durability": 5}},
    {"store": {"lock_wait_s_max": -1}},
    {"trust": {"boosts": {"tests_pased": 0.1}}},
    {"trust": {"boosts": {"tests_passed": "0.1"}}},
    {"trust": {"boosts": {"tests_passed": math.nan}}},
    {"trust": {"boosts": 5}},
    {"trust": {"decay_per_month": {"sometimes": 0.1}}},
    {"trust": {"decay_per_month": {"stable": 1.5}}},
    {"trust": {"decay_per_month": {"stable": -0.1}}},
    {"trust": {"minimum": "low"}},
    {"trust": {"minimum": 0.9, "maximum": 0.2}},
    {"trust": {"nothing": 1}},
    {"trust": 5},
    {"policy": 5},
    {"project": 5},
    {"project": ""},
    {"retention": {"age_days_max": 1.5}},
    {"retention": []},
]


@pytest.mark.parametrize("settings", BAD, ids=str)
def test_what_is_wrong_is_refused_in_words(settings):
    with pytest.raises(InvalidInput) as caught:
        config_from(settings)
    assert caught.value.message
    assert caught.value.hint


def test_nothing_set_means_the_defaults():
    assert config_from({}) == Config()


def test_what_is_set_holds_and_the_rest_stays():
    config = config_from(
        {
            "project": "shop",
            "limits": {"text_bytes_max": 100},
            "gate": {"tau_sim": 1},
            "trust": {"boosts": {"tests_passed": 0.5}, "decay_per_month": {"stable": 0}, "initial_draft": 0.2},
        }
    )
    assert config.project == "shop"
    assert config.limits.text_bytes_max == 100
    assert config.limits.data_bytes_max == Config().limits.data_bytes_max
    assert config.gate.tau_sim == 1
    assert config.trust.boosts["tests_passed"] == 0.5
    assert config.trust.boosts["pr_merged"] == 0.3
    assert config.trust.initial_draft == 0.2
    assert Config().trust.boosts["tests_passed"] == 0.2


def test_a_file_is_read_from_its_folder(tmp_path):
    assert load(str(tmp_path)) == Config()
    (tmp_path / "mnemon.toml").write_text('[store]\ndurability = "power"\n', encoding="utf-8")
    assert load(str(tmp_path)).store.durability == "power"


@pytest.mark.parametrize("content", [b"[store\n", b"\xff\xfe", b"store = \n", b"[recall]\nhalf_life_hours = nan\n"])
def test_a_file_that_can_not_be_read_is_refused_in_words(tmp_path, content):
    (tmp_path / "mnemon.toml").write_bytes(content)
    with pytest.raises(InvalidInput) as caught:
        load(str(tmp_path))
    assert caught.value.hint


def test_a_folder_in_the_place_of_the_file_is_refused_in_words(tmp_path):
    (tmp_path / "mnemon.toml").mkdir()
    with pytest.raises(InvalidInput):
        load(str(tmp_path))
