"""Settings: every name is known, every type checked, every number usable."""

from __future__ import annotations

import pytest

from fixtures.cases import cases
from mnemarch import InvalidInput
from mnemarch.checkout import load
from mnemarch.config import Config, GateRules, RecallRules, config_from
from mnemarch.model.value import replace
from mnemarch.policy.trust import RetentionRules, TrustRules

BAD = cases("config", "bad")

# Well formed, and still without sense: the setting, what is wrong, and what is allowed.
SENSELESS = [
    *cases("config", "senseless"),
    ({"limits": {"data_bytes_max": 10**12}}, "limits.data_bytes_max", 10**12, "to 1000000000"),
    (
        {"recall": {"weight_similarity": 0, "weight_recency": 0.0, "weight_importance": 0}},
        "recall.weight_importance",
        (0, 0.0, 0),
        "above 0 for one of them",
    ),
]


@pytest.mark.parametrize(("settings", "name", "given", "allowed"), SENSELESS, ids=lambda each: str(each)[:60])
def test_what_makes_no_sense_is_refused_with_its_name_and_what_is_allowed(settings, name, given, allowed):
    with pytest.raises(InvalidInput) as caught:
        config_from(settings)
    for part in (name, allowed, f"not {given!r}"):
        assert part in caught.value.message
    assert "configuration.md" in caught.value.hint


def test_every_number_and_choice_has_a_check():
    for section in ("limits", "gate", "trust", "retention", "recall", "loops", "decisions", "store"):
        for field in type(getattr(Config(), section)).__match_args__:
            with pytest.raises(InvalidInput, match=f"{section}.{field}"):
                config_from({section: {field: object()}})


@pytest.mark.parametrize(
    "make",
    [
        lambda: GateRules(tau_dup=7),
        lambda: RecallRules(k_max=0),
        lambda: Config(trust=TrustRules(initial_draft=5.0)),
        lambda: Config(retention=RetentionRules(keep_per_task_min=-1)),
        lambda: Config(gate={"tau_dup": 0.9}),
        lambda: replace(Config(), recall=None),
    ],
)
def test_what_is_made_in_python_is_held_to_the_same(make):
    with pytest.raises(InvalidInput, match="must be"):
        make()


def test_the_ends_of_every_range_are_allowed():
    config = config_from(
        {
            "gate": {"tau_dup": 0.78, "neighbours_max": 0},
            "trust": {"minimum": 0, "maximum": 1, "initial_draft": 0, "initial_verified": 1.0},
            "recall": {"weight_similarity": 0, "weight_recency": 0, "semantic": "http://models/v1#small"},
            "store": {"lock_wait_s_max": 0, "index_tail_max": 0, "index_at_close_min": 0},
        }
    )
    assert config.gate.tau_dup == config.gate.tau_sim
    assert config.recall.semantic == "http://models/v1#small"


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
            "gate": {"tau_sim": 0},
            "trust": {"boosts": {"tests_passed": 0.5}, "decay_per_month": {"stable": 0}, "initial_draft": 0.2},
        }
    )
    assert config.project == "shop"
    assert config.limits.text_bytes_max == 100
    assert config.limits.data_bytes_max == Config().limits.data_bytes_max
    assert config.gate.tau_sim == 0
    assert config.trust.boosts["tests_passed"] == 0.5
    assert config.trust.boosts["pr_merged"] == 0.3
    assert config.trust.initial_draft == 0.2
    assert Config().trust.boosts["tests_passed"] == 0.2


def test_a_file_is_read_from_its_folder(tmp_path):
    assert load(str(tmp_path)) == Config()
    (tmp_path / "mnemarch.toml").write_text('[store]\ndurability = "power"\n', encoding="utf-8")
    assert load(str(tmp_path)).store.durability == "power"


@pytest.mark.parametrize("content", [b"[store\n", b"\xff\xfe", b"store = \n", b"[recall]\nhalf_life_hours = nan\n"])
def test_a_file_that_can_not_be_read_is_refused_in_words(tmp_path, content):
    (tmp_path / "mnemarch.toml").write_bytes(content)
    with pytest.raises(InvalidInput) as caught:
        load(str(tmp_path))
    assert caught.value.hint


def test_a_folder_in_the_place_of_the_file_is_refused_in_words(tmp_path):
    (tmp_path / "mnemarch.toml").mkdir()
    with pytest.raises(InvalidInput):
        load(str(tmp_path))
