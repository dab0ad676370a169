"""Which unit may supersede which (R4, R8)."""

import pytest

from mnemarch import NotAllowed, Status


def test_r8_a_narrow_unit_cannot_replace_a_wide_one(seats):
    wide = seats.vouched("Deploys run on Tuesdays").unit
    narrow = seats.agent().remember("Deploys run on Thursdays", level="task").unit
    with pytest.raises(NotAllowed) as caught:
        seats.human().supersede(narrow.id, wide.id, "heard so")
    assert caught.value.rule == "R8"
    assert seats.agent().get(wide.id).status is Status.VERIFIED


def test_r8_a_verified_unit_of_the_same_level_replaces_it(seats):
    human = seats.human()
    old, new = (seats.vouched(f"Deploys run on {day}").unit for day in ("Tuesdays", "Thursdays"))
    assert human.supersede(new.id, old.id, "moved").supersedes == old.id
    assert human.get(old.id).superseded_by == new.id
