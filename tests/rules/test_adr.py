"""Decision records in Markdown: what is read, and what is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mnemarch
from fixtures.cases import cases
from mnemarch import Actor, Reason, Scope
from mnemarch.interfaces.adr import superseded
from mnemarch.interfaces.adr.record import file_name, new_record, read_record, record_in, titled, with_status

NYGARD, MADR_4, MADR_2, KOREAN = (
    (Path(__file__).parents[1] / "fixtures" / "records" / f"{name}.md").read_text(encoding="utf-8")
    for name in ("nygard", "madr_4", "madr_2", "korean")
)


def record_with(status):
    return read_record(f"# 1. T\n\n## Status\n\n{status}\n\n## Decision\n\nD\n")


@pytest.mark.parametrize(
    ("text", "number", "title", "status", "decision", "summary", "cost", "links"),
    [
        (NYGARD, 12, "Keep the event log in SQLite", "accepted", "We will write", "Files were torn", "* One writer",
         [("supersedes", "0003-keep-the-event-log-in-files.md")]),
        (MADR_4, 42, "Search with tantivy", "accepted", "Chosen option:", "How do we find", "* Good, because a cold",
         [("supersedes", "0004-no-daemon.md")]),
        (MADR_2, 42, "Use UUIDv7 as ids", "superseded", "Chosen option:", "Ids should sort", "* Ranges are cheap",
         [("superseded_by", "0009-use-ulid.md")]),
        (KOREAN, 7, "캐시는 한 곳에 둔다", "accepted", "캐시를 한 프로세스에만", "여러 에이전트가", "첫 호출은",
         [("supersedes", "0003-캐시.md")]),
    ],
    ids=["nygard", "madr 4", "madr 2", "korean"],
)  # fmt: skip
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_a_record_is_read(text, number, title, status, decision, summary, cost, links, ending):
    record = read_record(text.replace("\n", ending), "0042-x.md")
    assert (record.number, record.title, record.status) == (number, title, status)
    assert record.decision.startswith(decision)
    assert record.text == f"{title}\n\n{record.decision}"
    assert record.reason.summary.startswith(summary)
    assert record.reason.tradeoff.startswith(cost)
    assert list(record.links) == links


@pytest.mark.parametrize(
    ("title", "decision", "is_repeated"),
    [
        ("캐시는 Valkey를 쓴다", "캐시는 Valkey를 쓴다. 클라이언트는 그대로 둔다.", True),
        ("Use Valkey", "Use Valkey for the cache.", True),
        ("캐시", "캐시는 Valkey를 쓴다.", False),
        ("Use Valkey", "Use Valkeys.", False),
    ],
)
def test_a_title_that_the_decision_repeats_is_told_once(title, decision, is_repeated):
    record = read_record(f"# 3. {title}\n\n## Status\n\nAccepted\n\n## Decision\n\n{decision}\n")
    assert record.text == (decision if is_repeated else f"{title}\n\n{decision}")


def test_a_record_without_sections_decides_all_that_it_says():
    record = read_record("# 15. Stale is not archived\n\nStatus: accepted\n\nRecall **checks** the tree.\n")
    assert (record.status, record.text) == ("accepted", "Stale is not archived\n\nRecall **checks** the tree.")


@pytest.mark.parametrize(
    "text",
    [
        "# 15. Stale\n\nStatus: accepted\n\n**Context.** It moves.\n\n**Decision.**\n\n- Look.\n\n**결과:** Slow.\n",
        "# 15. Stale\n\nStatus: accepted\n\n**맥락:** It moves.\n\n__결정__: - Look.\n\n**결과**: Slow.\n",
    ],
)
def test_a_paragraph_that_begins_with_the_name_of_a_section_is_one(text):
    record = read_record(text)
    assert (record.status, record.status_in, record.text) == ("accepted", "head", "Stale\n\n- Look.")
    assert (record.context, record.consequences) == ("It moves.", "Slow.")


@pytest.mark.parametrize("heading", ["The decision", "What we decided", "Resolution", "해결책", "How it will work"])
@pytest.mark.parametrize("why", ["Context", "Why", "문제"])
def test_what_was_decided_is_read_under_whatever_heading(heading, why):
    record = read_record(
        f"# 4. Reports\n\n- Status: accepted\n\n## {why}\n\nSlow.\n\n## {heading}\n\nUse ClickHouse.\n"
    )
    assert record.decision.endswith("Use ClickHouse.")
    assert "Slow" not in record.text
    assert record.reason.summary == "Slow."


# Each status, and how it may be written.
STATUSES = dict(cases("adr", "statuses"))


@pytest.mark.parametrize(
    ("written", "status"), [(one, status) for status, written in STATUSES.items() for one in written.split(" ¦ ")]
)
def test_a_status_is_known_however_it_is_dressed(written, status):
    assert record_with(written).status == status


@pytest.mark.parametrize(
    ("holds", "was_decided", "statuses"),
    [
        (True, True, ["accepted", ""]),
        (False, True, ["deprecated", "superseded"]),
        (False, False, ["proposed", "rejected", "on hold", "승인 대기"]),
    ],
)
def test_a_status_tells_whether_a_record_is_in_force(holds, was_decided, statuses):
    records = map(record_with, statuses)
    assert {(record.holds, record.was_decided) for record in records} == {(holds, was_decided)}


@pytest.mark.parametrize(("written", "links"), cases("adr", "links are read with their relation"))
def test_links_are_read_with_their_relation(written, links):
    assert list(map(list, record_with(written).links)) == links


def test_links_stand_in_front_matter_and_head_too():
    record = read_record(
        "---\nsupersedes: ADR-4\n---\n# T\n\n> **Superseded by [6](./0006-x.md)**\n\n## Decision\n\nD\n"
    )
    assert (record.status, record.links) == ("superseded", (("supersedes", "4"), ("superseded_by", "0006-x.md")))


@pytest.mark.parametrize(("heading", "number", "title"), cases("adr", "number and title come from the heading"))
def test_number_and_title_come_from_the_heading(heading, number, title):
    record = read_record(f"{heading}\n\n## Status\n\nAccepted\n\n## Decision\n\nD\n")
    assert (record.number, record.title) == (number, title)


@pytest.mark.parametrize(
    ("name", "number"),
    [("0012-use.md", 12), ("ADR0012.md", 12), ("12.md", 12), ("2024-01-31-use.md", None), ("use-2-phase.md", None)],
)
def test_the_number_may_come_from_the_file_name(name, number):
    assert read_record("# Use it\n", name).number == number


@pytest.mark.parametrize(
    ("front", "status"),
    [
        ("---\n# a comment\nstatus: 'accepted'   # not this\nnested:\n  deep: 1\n---\n", "accepted"),
        ('---\nstatus: "Superseded by [ADR-5](0005-x.md)"\n---\n', "superseded"),
        ("---\nblock: |\n  status: rejected\n---\n", ""),
        ("---\n\nA rule, and words.\n\n---\n", ""),
    ],
    ids=["quoted", "link", "block", "a rule"],
)
def test_only_simple_lines_of_front_matter_are_read(front, status):
    record = read_record(f"{front}# T\n\n## Decision Outcome\n\nD\n")
    assert (record.status, record.decision) == (status, "D")


@pytest.mark.parametrize(
    "block",
    ["```md\n## Decision\n\nno\n```", "<!--\n## Decision\n\nno\n-->", "    ## Decision", "- a\n\n  ## Decision"],
)
def test_no_section_begins_in_code_or_a_comment_or_a_list(block):
    record = read_record(f"# 1. T\n\n## Context\n\n{block}\n\nafter\n\n## Decision\n\nyes\n")
    assert (record.decision, record.context) == ("yes", f"{block}\n\nafter")


@pytest.mark.parametrize(
    ("text", "name", "verdict"),
    [
        (NYGARD, "0012-keep.md", True),
        (MADR_2, "use.md", True),
        (KOREAN, "0007-캐시.md", True),
        (NYGARD, "0007-template-engine.md", True),
        (NYGARD, "0008-index-the-events.md", True),
        ("# 9. The parts\n\nNo sections at all.\n", "0009-the-parts.md", True),
        ("# 9. The parts\n\nNo sections at all.\n", "0010-other.md", False),
        (NYGARD, "README.md", False),
        (NYGARD, "readme.ko.md", False),
        (NYGARD, "adr-template-bare-minimal.md", False),
        (NYGARD, "0000-adr-template.md", False),
        (NYGARD, "0012-keep.txt", False),
        (NYGARD.replace("12. Keep the event log in SQLite", "{short title}"), "0001-x.md", False),
        ("# Decisions\n\n```\n# 1. T\n\n## Status\n\n## Decision\n```\n", "list.md", False),
        ("# Notes\n\n## Status\n\nfine\n", "notes.md", False),
        ("", "x.md", False),
    ],
)
def test_records_are_told_from_other_files(text, name, verdict):
    assert (record_in(text, name) is not None) is verdict


def test_who_supersedes_whom_is_known_whichever_side_says_it():
    said = {1: "accepted", 2: "Supersedes ADR-1", 3: "Superseded by 4.md", 4: "Superseded by ADR-9, supersedes ADR-4"}
    records = {f"{number}.md": read_record(f"# {number}. T\n\n## Status\n\n{one}\n") for number, one in said.items()}
    assert superseded(records) == {"1.md": set(), "2.md": {"1.md"}, "3.md": set(), "4.md": {"3.md"}}


# What is written

HEADS = {
    "section": "# 1. T\n\nDate: 2024-01-31\n\n## Status\n\n{status}\n\n## Context\n\nC\n\n## Decision\n\nD\n",
    "list": "# 1. T\n\n## Status\n\n* {status}\n\n## Context\n\nC\n\n## Decision\n\nD\n",
    "korean": "# 3. 결제\n\n- 상태: {status}\n- 날짜: 2024년 3월 5일\n\n## 맥락\n\n배경.\n\n## 결정\n\n세 번만.\n",
    "bold": "# 3. T\n\n**Status:** {status}\n**Date:** 5 May 2024\n\n## Context\n\nC\n\n## Decision\n\nD\n",
    "front": '---\nstatus: "{status}" # so it is\ndate: 2024-01-31\n---\n\n# T\n\n## Decision Outcome\n\nD\n',
    "no sections": "# 1. T\n\nStatus: {status}\n\n**Context.** C\n\n**Decision.** D\n",
}
ENDINGS = {"lf": ("\n", ""), "crlf": ("\r\n", ""), "bom": ("\n", "\ufeff")}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
@pytest.mark.parametrize(("ending", "mark"), ENDINGS.values(), ids=ENDINGS)
@pytest.mark.parametrize(("old", "new"), [("Accepted", "uperseded by [2. 둘]"), ("승인됨", "에 의해 대체됨")])
def test_another_status_changes_the_line_that_tells_it_in_its_language(head, ending, mark, old, new):
    text = mark + head.format(status=old).replace("\n", ending)
    ended = with_status(text, "superseded", "[2. 둘](0002-b.md)")
    record = read_record(ended)
    assert (record.status, record.links) == ("superseded", (("superseded_by", "0002-b.md"),))
    assert record.content == read_record(text).content
    before, after = text.split(ending), ended.split(ending)
    (told,) = (line for line in after if line not in before)
    assert new in told
    assert len(before) == len(after), "every other line stays"
    assert read_record(with_status(text, "deprecated")).status == "deprecated"
    assert read_record(with_status(ended, "accepted")).status == "accepted"


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("# 1. T\n\n**Decision.** D", "# 1. T\n\nStatus: Deprecated\n\n**Decision.** D"),
        ("# 1. T\r\n\n## Status\n\nAccepted\r\r\n## Decision\n\nD", "## Status\n\nDeprecated\r\r\n## Decision\n\nD"),
    ],
    ids=["none was told", "endings that differ"],
)
def test_a_status_is_put_in_or_added_and_nothing_else_changes(text, new):
    assert new in with_status(text, "deprecated")


MARKS = ["\n## Status\n", "\n## Decision\n", "accepted", "\n", "\r\n", "---\n", "status: x\n", "* Status: accepted\n"]
MARKS += ["# T\n", "```\n", "<!--", "-->", "\ufeff", "대체됨", "superseded by ADR-7", "Date: 2024-01-31\n", "a", "\x00"]
anything = st.text() | st.lists(st.sampled_from(MARKS)).map("".join)


@given(anything, st.sampled_from(["accepted", "superseded", "deprecated"]))
@pytest.mark.long
@settings(max_examples=300)
def test_any_text_is_read_and_gets_its_status_or_is_left_alone(text, status):
    record_in(text, "0001-x.md")
    new = with_status(text, status, "[2](0002-b.md)" if status == "superseded" else "")
    if new is not None:
        back = read_record(new)
        assert (back.status, back.content) == (status, read_record(text).content)


@pytest.mark.long
@pytest.mark.parametrize(
    "piece", ["## a\n", "a\n---\n", "[a](b ", "<!--", "```\n", "\n* a", "#", "~~", "대체", "a.md "]
)
@pytest.mark.parametrize("start", ["", "# 1. T\n\n## Status\n\n", '---\ndeciders: ["'])
def test_a_long_text_is_read_like_a_short_one(start, piece):
    """The work grows with the length: were it with its square, this would take many minutes."""
    text = start + piece * (20_000 // len(piece))
    assert len(read_record(text).content) <= 2 * len(text)


@pytest.fixture(scope="module")
def decide():
    with mnemarch.open(":memory:") as memory:
        desk = memory.seat(Actor.orchestrator("lead"), Scope(project="shop")).decisions
        yield lambda text, **why: desk.commit(
            desk.propose(text, reason=Reason("risk", **({"summary": "why"} | why)), snapshots=["seen"])
        )


@pytest.mark.parametrize("text", ["T\n\n## Status\n\nRejected", "T\n\n```\nopen", "T\n\n<!-- open", "T\n\nx\n---"])
def test_a_text_that_would_break_the_outline_is_quoted(decide, text):
    decision = decide(text, summary=text, tradeoff=text)
    record = read_record(new_record(decision, 7))
    assert record.status == "accepted"
    for said in (record.text, record.context, record.consequences):
        assert said.replace("> ", "").replace(">", "") == text


@given(st.text(), st.integers(0))
def test_a_file_name_is_safe_everywhere(title, number):
    name = file_name(number % 10**9, titled(title))
    assert name.endswith(".md")
    assert len(name.encode()) <= 143
    assert not set(name) & set('/\\:*?"<>|\x00 ')
    assert name.isprintable()
