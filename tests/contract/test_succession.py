"""What may take the place of what (R4, R8)."""

import pytest

from mnemarch import Citation, NotAllowed, Status


def test_r8_a_narrow_unit_cannot_replace_a_wide_one(seats):
    human = seats.human()
    wide = human.remember("Deploys run on Tuesdays", level="project", citations=[Citation.human(human.actor.id)]).unit
    narrow = seats.agent().remember("Deploys run on Thursdays", level="task").unit
    with pytest.raises(NotAllowed) as caught:
        seats.human().supersede(narrow.id, wide.id, "heard so")
    assert caught.value.rule == "R8"
    assert seats.agent().get(wide.id).status is Status.VERIFIED


def test_r8_a_verified_unit_of_the_same_level_replaces_it(seats):
    human = seats.human()
    vouched = [Citation.human(human.actor.id)]
    old = human.remember("Deploys run on Tuesdays", level="project", citations=vouched).unit
    new = human.remember("Deploys run on Thursdays", level="project", citations=vouched).unit
    assert human.supersede(new.id, old.id, "moved").supersedes == old.id
    assert human.get(old.id).superseded_by == new.id
