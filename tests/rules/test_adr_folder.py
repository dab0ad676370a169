"""Folders of decision records: who takes the place of whom, and what a change of standing does to a text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemarch.decisions.adr_edit import restated
from mnemarch.decisions.adr_matter import mark_in, marked, matter_of, text_of
from mnemarch.decisions.adr_read import read_adr
from mnemarch.decisions.adr_record import AdrLink, AdrRecord
from mnemarch.decisions.adr_succession import Force, bonds, places
from mnemarch.model.value import replace


def record(number, status="accepted", **links):
    """A record that says `supersedes=[1, 2]` and the like of others."""
    told = [AdrLink(relation, str(each)) for relation, numbers in links.items() for each in numbers]
    return AdrRecord(number=number, title=f"r{number}", status=status, decision="D", links=tuple(told))


def placed(*records):
    return {place.name: place for place in places({f"{one.number}.md": one for one in records})}


# Who takes the place of whom


def test_a_record_comes_after_what_it_supersedes_and_else_by_number():
    order = placed(record(4), record(3, superseded_by=[5]), record(1, supersedes=[3]), record(5), record(2))
    assert list(order) == ["2.md", "3.md", "1.md", "4.md", "5.md"]


def test_one_of_several_predecessors_is_the_base_and_each_is_so_once():
    found = placed(record(1), record(2), record(3, supersedes=[1, 2]), record(4, supersedes=[1]))
    assert (found["3.md"].base, found["4.md"].base) == ("1.md", None)
    assert found["3.md"].older == ("1.md", "2.md")
    assert [place.force for place in found.values()] == [Force.ENDED, Force.ENDED, Force.HOLDS, Force.HOLDS]


def test_in_a_circle_nothing_is_in_force_and_what_follows_it_is():
    found = placed(
        record(1, "superseded", superseded_by=[2]),
        record(2, "superseded", superseded_by=[3]),
        record(3, supersedes=[2], superseded_by=[1]),
        record(4, supersedes=[3]),
        record(5, superseded_by=[5]),
    )
    assert [found[f"{number}.md"].force for number in (1, 2, 3)] == [Force.NEVER] * 3
    assert (found["4.md"].force, found["4.md"].base) == (Force.HOLDS, None)
    assert found["5.md"].force is Force.ENDED


@pytest.mark.parametrize("status", ["", "accepted", "approved", "adopted", "implemented", "active", "decided", "done"])
def test_what_was_decided_is_in_force(status):
    assert placed(record(1, status))["1.md"].force is Force.HOLDS


@pytest.mark.parametrize("status", ["deprecated", "obsolete", "retired", "withdrawn", "superseded"])
def test_what_was_ended_was_in_force_once(status):
    assert placed(record(1, status))["1.md"].force is Force.ENDED


@pytest.mark.parametrize("status", ["proposed", "draft", "rfc", "pending", "rejected", "declined", "on hold", "blue"])
def test_what_was_not_decided_is_not_in_force_and_ends_nothing(status):
    found = placed(record(1), record(2, status, supersedes=[1]))
    assert (found["1.md"].force, found["2.md"].force) == (Force.HOLDS, Force.NEVER)
    assert status in found["2.md"].why


graphs = st.lists(
    st.tuples(
        st.sampled_from(["accepted", "proposed", "superseded", "deprecated", ""]),
        st.lists(st.integers(0, 9), max_size=3),
        st.lists(st.integers(0, 9), max_size=3),
    ),
    max_size=10,
)


@given(graphs)
@pytest.mark.long
@settings(max_examples=300)
def test_any_folder_has_one_order(graph):
    records = [
        record(number, status, supersedes=older, superseded_by=newer)
        for number, (status, older, newer) in enumerate(graph)
    ]
    found = placed(*records)
    assert found == placed(*reversed(records))
    assert set(found) == {f"{one.number}.md" for one in records}
    seen = set()
    for name, place in found.items():
        assert set(place.older) <= seen
        seen.add(name)
        assert place.base is None or place.base in place.older
        assert place.force is not Force.HOLDS or not place.newer
    bases = [place.base for place in found.values() if place.base is not None]
    assert len(bases) == len(set(bases))
    for bond in bonds({f"{one.number}.md": one for one in records}):
        assert bond.source != bond.target


def test_a_long_chain_is_ordered_like_a_short_one():
    """Were the work to grow with the square of the length, this would take an hour."""
    length = 20_000
    found = placed(*(record(number, superseded_by=[number + 1]) for number in range(length)))
    assert [place.base for place in found.values()] == [None, *(f"{number}.md" for number in range(length - 1))]


# A text restated

HEADS = {
    "section": "# 1. T\n\nDate: 2024-01-31\n\n## Status\n\n{status}\n\n## Context\n\nC\n\n## Decision\n\nD\n",
    "list": "# 1. T\n\n## Status\n\n* {status}\n* Amended by ADR-9\n\n## Context\n\nC\n\n## Decision\n\nD\n",
    "korean": "# 3. 결제\n\n- 상태: {status}\n- 날짜: 2024년 3월 5일\n\n## 맥락\n\n배경.\n\n## 결정\n\n세 번만.\n",
    "bold": "# 3. T\n\n**Status:** {status}\n**Date:** 5 May 2024\n\n## Context\n\nC\n\n## Decision\n\nD\n",
    "front": '---\nstatus: "{status}" # so it is\ndate: 2024-01-31\n---\n\n# T\n\n## Decision Outcome\n\nD\n',
    "other": "# 1. T\n\nStatus: {status}\n\n**Context.** C\n\n**Decision.** D\n",
}
heads = pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
ENDINGS = {"lf": ("\n", ""), "crlf": ("\r\n", ""), "bom": ("\n", "\ufeff")}
endings = pytest.mark.parametrize(("ending", "mark"), ENDINGS.values(), ids=ENDINGS)
LINKS = (AdrLink("depends_on", "0002-b.md", "2. 둘"), AdrLink("supersedes", "0004-d.md", "4. d"))


@heads
@endings
@pytest.mark.parametrize("status", ["Accepted", "승인됨"])
def test_a_link_more_leaves_every_line_as_it_was(head, ending, mark, status):
    text = mark + head.format(status=status).replace("\n", ending)
    new = restated(text, "accepted", LINKS)
    assert set(read_adr(new).links) == {*read_adr(text).links, *LINKS}
    assert (new.count("\r"), new.startswith("\ufeff")) == (new.count("\n") if "\r" in ending else 0, bool(mark))
    left = iter(new.splitlines())
    assert all(line in left for line in text.splitlines()), "in the same order, with lines between them"
    assert len(new.splitlines()) <= len(text.splitlines()) + 2 * len(LINKS)


@heads
@endings
def test_another_status_changes_the_line_that_tells_it(head, ending, mark):
    text = mark + head.format(status="Accepted").replace("\n", ending)
    new = restated(text, "superseded", [AdrLink("superseded_by", "0002-b.md", "2. b")])
    assert read_adr(new).status == "superseded"
    told = [line for line in new.splitlines() if line not in text.splitlines()]
    assert len(told) == 1
    assert "uperseded by" in told[0]
    assert len(new.splitlines()) == len(text.splitlines())
    assert read_adr(restated(text, "deprecated", [])).status == "deprecated"


@pytest.mark.parametrize("head", [HEADS["korean"], HEADS["front"], HEADS["section"]])
def test_a_status_told_in_korean_is_told_in_korean_again(head):
    text = head.format(status="승인됨")
    new = restated(text, "superseded", [AdrLink("superseded_by", "0002-b.md", "2. 둘")])
    assert "[2. 둘](0002-b.md)에 의해 대체됨" in new
    assert (read_adr(new).status, len(new.splitlines())) == ("superseded", len(text.splitlines()))
    assert "폐기됨" in restated(text, "deprecated", [])


@pytest.mark.parametrize("status", ["partially superseded", "to be deprecated"])
def test_what_is_partly_or_not_yet_ended_is_in_force(status):
    assert placed(record(1, status))["1.md"].force is Force.HOLDS


def test_a_dated_status_stays_as_history():
    text = HEADS["section"].format(status="Accepted (2024-01-31)").replace("Date: 2024-01-31\n\n", "")
    new = restated(text, "deprecated", [])
    assert "Accepted (2024-01-31)\n\nDeprecated\n" in new
    assert (read_adr(new).status, read_adr(new).date) == ("deprecated", "2024-01-31")


def test_endings_that_differ_from_line_to_line_stay():
    text = "# 1. T\r\n\n## Status\r\n\nAccepted\r\n\n## Context\n\nC\r\r\n## Decision\n\nD"
    new = restated(text, "accepted", LINKS[:1])
    assert new.replace("\r\nDepends on [2. 둘](0002-b.md)\r\n", "") == text


MARKS = ["\n## Status\n", "\n## Decision\n", "accepted", "\n", "\r\n", "---\n", "status: x\n", "* Status: accepted\n"]
MARKS += ["# T\n", "```\n", "<!--", "-->", "\ufeff", "대체됨", "superseded by ADR-7", "Date: 2024-01-31\n", "a"]


@given(st.lists(st.sampled_from(MARKS)).map("".join), st.sampled_from(["accepted", "superseded", "deprecated"]))
@pytest.mark.long
@settings(max_examples=300)
def test_any_text_can_be_restated(text, status):
    link = AdrLink("superseded_by" if status == "superseded" else "amends", "0002-b.md", "2. b")
    back = read_adr(restated(text, status, [link]))
    assert link in back.links
    assert back.status == status or "superseded" in {back.status, read_adr(text).status}


# What a record decides


@pytest.mark.parametrize(
    ("title", "decision", "text"),
    [
        ("Use it", "We will.", "Use it\n\nWe will."),
        ("Use it", "Use it", "Use it"),
        ("Use it", "Use it\nnow", "Use it\nnow"),
        ("Use it", "", "Use it"),
        ("", "We will.", "We will."),
        ("Keep", 'Chosen option: "A", because B.\n\nAnd more.', 'Keep\n\nChosen option: "A", because B.\n\nAnd more.'),
        ("a" * 119 + "…", "a" * 200, "a" * 200),
    ],
)
def test_a_decision_says_what_was_decided_and_all_of_it_once(title, decision, text):
    assert text_of(AdrRecord(title=title, decision=decision)) == text


def test_what_a_record_decides_is_not_its_standing():
    one = read_adr(HEADS["section"].format(status="Accepted"))
    other = replace(read_adr(HEADS["section"].format(status="Superseded by ADR-7"), "0009-x.md"), number=9)
    assert matter_of(one) == matter_of(other)
    assert matter_of(one) != matter_of(read_adr(HEADS["section"].replace("\nD\n", "\nd\n").format(status="Accepted")))
    assert matter_of(one) != matter_of(read_adr(HEADS["section"].format(status="Accepted") + "\n## Notes\n\nN\n"))


@pytest.mark.parametrize("head", [HEADS["section"], HEADS["front"], HEADS["other"]])
def test_a_mark_is_found_again_and_changes_nothing(head):
    text = head.format(status="Accepted")
    new = marked(text, "01a1e2e4-f0fd-7124-a8b1-2ab301f7a952")
    assert mark_in(read_adr(new)) == "01a1e2e4-f0fd-7124-a8b1-2ab301f7a952"
    assert mark_in(read_adr(text)) is None
    assert matter_of(read_adr(new)) == matter_of(read_adr(text))
    assert re.sub(r"\n\n<!-- mnemarch: \S+ -->", "", new) == text
