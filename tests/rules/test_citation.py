"""Citations: what they point to survives every way of writing them down (S9)."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mnemarch import Citation, InvalidInput
from mnemarch.model.unit import CitationKind

names = st.text(min_size=1, max_size=12).filter(
    lambda text: text.strip() and not any("\ud800" <= character <= "\udfff" for character in text)
)
plain = names.filter(lambda text: "#L" not in text and "::" not in text and not text.endswith(":") and text[0] != ":")
lines = st.tuples(st.integers(1, 9999), st.integers(0, 99)).map(lambda pair: (pair[0], pair[0] + pair[1]))
citations = st.one_of(
    names.map(Citation.commit),
    names.map(Citation.log),
    names.map(Citation.human),
    names.map(Citation.test),
    plain.map(Citation.file),
    st.builds(Citation.file, plain, lines),
    st.builds(Citation.symbol, plain, plain),
)


@given(citations)
def test_a_citation_reads_back_as_it_is_written(citation):
    assert Citation.parse(str(citation)) == citation


@given(st.one_of(citations, st.builds(Citation.commit, names, names)))
def test_a_citation_survives_json(citation):
    assert Citation.from_json(json.loads(json.dumps(citation.to_json()))) == citation


@pytest.mark.parametrize("name", ["Foo::bar", "a::b::c", "Foo.bar"])
def test_a_symbol_inside_a_class_or_module_reads_back(name):
    citation = Citation.symbol("src/lib.rs", name)
    assert Citation.parse(str(citation)) == citation
    assert Citation.parse(str(citation)).ref == "src/lib.rs"


@pytest.mark.parametrize("text", ["symbol:a.py::pay", "symbol:a.py#pay", "symbol:a.py:pay"])
def test_a_symbol_is_read_however_it_is_joined_to_its_file(text):
    assert Citation.parse(text) == Citation.symbol("a.py", "pay")


@pytest.mark.parametrize("text", ["file:a.py#L3-L9", "file:a.py#L3-9", "file:a.py:3-9"])
def test_lines_are_read_however_they_are_joined_to_their_file(text):
    assert Citation.parse(text) == Citation.file("a.py", (3, 9))


@pytest.mark.parametrize("text", ["symbol:a.py", "symbol:a.py::", "symbol:::pay", "symbol:"])
def test_a_symbol_without_file_or_name_is_refused_with_the_form(text):
    with pytest.raises(InvalidInput) as caught:
        Citation.parse(text)
    assert "symbol:PATH::NAME" in caught.value.hint


@given(st.text(max_size=30) | st.builds("file:a{}#L{}".format, st.text(max_size=3), st.text(max_size=5)))
@example("file:a.py#L²")
@example("file:a.py#L0")
@example("file:a.py#L9-L1")
@example("symbol:a.py")
@example("symbol:::")
@example("file:")
@example("test:")
@example("human:\ud800")
def test_any_text_is_a_citation_or_refused_in_words(text):
    with suppress(InvalidInput):
        assert isinstance(Citation.parse(text), Citation)


@pytest.mark.parametrize("maker", [Citation.commit, Citation.log, Citation.human, Citation.test, Citation.file])
@pytest.mark.parametrize("ref", ["", "  ", "\ud800", None, 5, b"x"])
def test_a_citation_of_nothing_is_refused(maker, ref):
    with pytest.raises(InvalidInput) as caught:
        maker(ref)
    assert caught.value.hint


@pytest.mark.parametrize("outcome", ["fail", "", None, "PASS", True])
def test_s9_only_a_passing_test_can_be_cited(outcome):
    with pytest.raises(InvalidInput):
        Citation.test("test_a", outcome=outcome)


@pytest.mark.parametrize("span", [(0, 1), (2, 1), (-1, 1), "4-5", 4, (4,), (), (1, 2, 3), ("1", "2"), (1.0, 2)])
def test_lines_must_be_a_range(span):
    with pytest.raises(InvalidInput):
        Citation.file("a.py", span)


def test_a_citation_made_by_hand_is_of_a_known_kind():
    """Whatever is accepted must behave as its kind everywhere: `is CitationKind.HUMAN` guards a person's word."""
    for kind in CitationKind:
        assert Citation(str(kind), "alice").kind is kind
    for unknown in ("nonsense", "", None):
        with pytest.raises(InvalidInput):
            Citation(unknown, "alice")


def test_the_detail_of_a_citation_can_not_pass_it_off_as_another():
    citation = Citation(CitationKind.LOG, "e-1", (("kind", "human"), ("ref", "alice")))
    assert Citation.from_json(citation.to_json()).kind is CitationKind.LOG
