"""Which answers a transaction's own writes may have changed: too few would be wrong, too many cost round trips."""

from __future__ import annotations

import pytest

from fixtures.cases import cases
from mnemarch.stores.sql.queries import Queries
from mnemarch.stores.sql.remote import Known

QUERIES = Queries(
    {
        "unit": "SELECT id, body FROM units WHERE id = :id;",
        "units": "SELECT id, body FROM units WHERE id IN (:ids);",
        "in_scope": "SELECT id FROM units WHERE scope_key = :scope_key;",
        "citing": "SELECT u.id FROM citations c JOIN units u ON u.id = c.unit_id WHERE u.id = :id;",
        "of_subject": "SELECT * FROM entries WHERE subject = :subject;",
        "put_unit": "INSERT INTO units (id) VALUES (:id);",
        "append": "INSERT INTO events (id) VALUES (:id);",
        "drop_unit": "DELETE FROM units WHERE root = :root;",
    }
)


def answer_after(write, row, name, **parameters):
    """What is known of a question after a write, if it was answered before."""
    known = Known(QUERIES)
    assert known.answer(name, parameters, note=True) == []
    known.learn([(key, [("row",)]) for key in known.questions])
    known.write(known.table_written(write), row)
    return known.answer(name, parameters, note=False)


@pytest.mark.parametrize(
    ("write", "row", "name", "parameters", "holds"),
    cases("known", "an answer holds unless a row that it asks for may have changed"),
)
def test_an_answer_holds_unless_a_row_that_it_asks_for_may_have_changed(write, row, name, parameters, holds):
    assert (answer_after(write, row, name, **parameters) is not None) is holds


def test_what_was_not_asked_yet_is_answered_by_nothing_and_asked_later():
    known = Known(QUERIES)
    rows = known.answer("unit", {"id": "a"}, note=True)
    assert (list(rows), bool(rows.fetchone()), rows.fetchone()[0]) == ([], False, 0)
    assert list(known.questions.values()) == [("unit", {"id": "a"})]
    known.learn([(key, []) for key in known.questions])
    assert known.answer("unit", {"id": "a"}, note=True).fetchone() is None
    assert not known.questions
