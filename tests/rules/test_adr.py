"""Decision records in Markdown: what is read, what is written, and who takes the place of whom."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mnemarch
from mnemarch import Actor, Reason, Scope
from mnemarch.interfaces.adr.exporting import file_name, new_record, with_status
from mnemarch.interfaces.adr.imported import places
from mnemarch.interfaces.adr.record import Force, is_as_exported, read_record, record_in, titled

NYGARD = """\
# 12. Keep the event log in SQLite

Date: 2024-01-31

## Status

Accepted

Supersedes [3. Keep the event log in files](0003-keep-the-event-log-in-files.md)

Amended by [15. Two readers](0015-two-readers.md)

## Context

Files were torn when two writers met.

```markdown
## Status

Rejected
```

### What we measured

40 ms for each append.

## Decision

We will write every event in one transaction.

## Consequences

* One writer at a time.
* Backups are one file.
"""

MADR_4 = """\
---
status: "accepted"
date: 2024-03-05
decision-makers: [Ada Park, Bo Lee]
consulted: Cy
informed:
  - the whole team
---

# Search with tantivy

## Context and Problem Statement

How do we find a unit among a million?

<!-- This is an optional element. Feel free to remove. -->
## Decision Drivers

* Starts within 40 ms
* Needs no server,
  not even a local one

## Considered Options

* tantivy
* SQLite FTS5
  * with trigrams
* grep

## Decision Outcome

Chosen option: "tantivy", because it opens fast
and ranks well.

### Consequences

* Good, because a cold query is quick
* Bad, because it is one more dependency

### Confirmation

A benchmark runs each night.

## Pros and Cons of the Options

### tantivy

* Good, because Rust

### SQLite FTS5

* Neutral, because it is there already

#### Consequences

None to speak of.

## More Information

Refines [ADR-0004](./0004-no-daemon.md#why). See [the bench](https://bench.example/run).
"""

MADR_2 = """\
# Use UUIDv7 as ids

* Status: superseded by [ADR-0009](0009-use-ulid.md) <!-- optional -->
* Deciders: Dana, Eun
* Date: 7 May 2023

Technical Story: TICKET-7

## Context and Problem Statement

Ids should sort by time.

## Considered Options

* UUIDv4
* UUIDv7

## Decision Outcome

Chosen option: "UUIDv7", because it sorts.

### Positive Consequences <!-- optional -->

* Ranges are cheap

### Negative Consequences <!-- optional -->

* The time can be read

## Links <!-- optional -->

* Refined by [ADR-0007](0007-salted-ids.md)
* [ADR-0002](0002-ids-are-opaque.md)
"""

KOREAN = """\
# 7. 캐시는 한 곳에 둔다

날짜: 2024년 5월 7일

## 상태

✅ **승인됨**

[ADR-0003](0003-캐시.md)을 대체함

## 배경

여러 에이전트가 같은 값을 따로 보관했다.

## 결정

캐시를 한 프로세스에만 둔다.

## 결과

첫 호출은 느려진다.
"""

OURS = """\
# 15. Withheld is not archived

**Context.** A working tree is often half edited.

**Decision.** Recall checks the tree:

- a file holds as long as it exists;
- lines hold wherever they stand.

**Given up.** What was never committed is gone.
"""


def record_with(status):
    return read_record(f"# 1. T\n\n## Status\n\n{status}\n\n## Decision\n\nD\n")


def links_of(record):
    return [(link.relation, link.target) for link in record.links]


# What is read


@pytest.mark.parametrize(
    ("text", "number", "title", "status", "decision", "summary", "cost", "links"),
    [
        (NYGARD, 12, "Keep the event log in SQLite", "accepted", "We will write", "Files were torn", "* One writer",
         [("supersedes", "0003-keep-the-event-log-in-files.md"), ("refined_by", "0015-two-readers.md")]),
        (MADR_4, 42, "Search with tantivy", "accepted", "Chosen option:", "it opens fast and ranks well",
         "* Good, because a cold query", [("refines", "./0004-no-daemon.md")]),
        (MADR_2, 42, "Use UUIDv7 as ids", "superseded", "Chosen option:", "it sorts", "### Positive Consequences",
         [("superseded_by", "0009-use-ulid.md"), ("refined_by", "0007-salted-ids.md")]),
        (KOREAN, 7, "캐시는 한 곳에 둔다", "accepted", "캐시를 한 프로세스에만", "여러 에이전트가", "첫 호출은",
         [("supersedes", "0003-캐시.md")]),
        (OURS, 15, "Withheld is not archived", "", "Recall checks the tree:", "A working tree", "What was never", []),
    ],
    ids=["nygard", "madr 4", "madr 2 and log4brains", "korean", "run-in"],
)  # fmt: skip
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_a_record_is_read(text, number, title, status, decision, summary, cost, links, ending):
    record = read_record(text.replace("\n", ending), "docs/0042-x.md")
    assert (record.number, record.title, record.status) == (number, title, status)
    assert record.decision.startswith(decision)
    assert record.text == f"{title}\n\n{record.decision}"
    assert record.reason.summary.startswith(summary)
    assert record.reason.tradeoff.startswith(cost)
    assert links_of(record) == links


# Each status, and how it may be written.
STATUSES = {
    "accepted": (
        "Accepted ¦ accepted ¦ ✅ Accepted ¦ **Accepted** ¦ * Accepted ¦ Accepted (2024-01-31) ¦ "
        "2024-01-31: accepted ¦ Accepted by the board after long talks about money ¦ "
        "Accepted 2024-01-31. It resolves what the plan left open. ¦ ~~Proposed~~ Accepted ¦ "
        "Proposed\n\nAccepted ¦ Accepted\n\nAmends [3. Old](0003-old.md) ¦ "
        "Accepted\n\nRejected options are listed below, with the reasons why we did not take them. ¦ "
        "- [ ] Proposed\n- [x] Accepted\n- [ ] Rejected ¦ Proposed by Bob\n\nAccepted by the board ¦ "
        "The decision is accepted. ¦ ☐ Proposed ☑ Accepted ¦ ✔️ Accepted - 2024-01-02 - Bo Lee ¦ "
        "Accepted\n\nActive users asked for it. ¦ Accepted\n\nPending work is listed below. ¦ 승인 ¦ "
        "✔️ 채택 ¦ 확정 (2024년 5월 7일) ¦ 승인되었습니다 ¦ 제안됨\n\n승인됨 ¦ 승인됨 ¦ 승인 대기\n\n승인됨 ¦ "
        "Accepted, to be superseded by ADR-13"
    ),
    "proposed": "_Proposed_ ¦ Proposed by Bob\n\nPartially superseded by [ADR-31](0031-x.md) ¦ 제안 ¦ 검토중 ¦ 검토 중",
    "rejected": "Status: Rejected ¦ ~~Accepted~~\n\nRejected ¦ 거부 ¦ 반려",
    "deprecated": (
        "<!-- proposed | accepted -->\nDeprecated ¦ accepted\n\nDeprecated since 2025 ¦ 폐기 ¦ "
        "폐기됨 (2024-01-31) ¦ 더 이상 사용되지 않음"
    ),
    "superseded": (
        "Superceded by [13. New](0013-new.md) ¦ Accepted\n\nSuperseded by [13. New](0013-new.md) ¦ "
        "Superseded by ADR-0013\n\nAccepted on 2024-01-31 ¦ "
        "Superseded by [ADR-10](0010-x.md) (2026-05-14) — the need became clear ¦ "
        "Accepted, superseded by ADR-13 ¦ Replaced by [13. New](0013-new.md) ¦ 대체됨 ¦ ADR-0013으로 대체됨"
    ),
    "": (
        "Amends [3. Old](0003-old.md) ¦ Proposed | Accepted | Deprecated ¦ "
        "Largely superseded by [ADR-31](0031-x.md) ¦ Superseded (partly) by [13. New](0013-new.md) ¦ "
    ),
    "on hold": "On hold",
    "wip": "🚧 WIP",
    "approved": "Draft → **Approved** (2024-01-31) ¦ Approved by @cto, 31 January 2024",
    "adopted": "Adopted",
    "implemented": "Implemented in v2.3 ¦ 적용 중",
    "active": "Active",
    "decided": "Decided ✅",
    "done": "Done.",
    "in effect": "**In effect** since March 2024",
    "rfc": "RFC",
    "pending": (
        "Pending ¦ 승인 대기 ¦ 승인 대기 중 ¦ 승인대기 ¦ 승인 예정 (2024-05-07) ¦ 승인 전 ¦ 승인 검토 중 ¦ "
        "Pending approval by the board ¦ Awaiting approval ¦ Not yet accepted by everybody"
    ),
    "declined": "Declined",
    "obsolete": "Obsolete since v3",
    "retired": "Retired",
    "withdrawn": "Withdrawn by its author",
    "승인 불가": "승인 불가",
    "to be deprecated": "폐기 예정 ¦ 사용 중단 검토 중 ¦ To be deprecated in v3 ¦ Will be replaced",
    "partially superseded": "일부 대체됨 ¦ Partially superseded ¦ Superseded (partly)",
    "not accepted by any of the boards": "Not accepted by any of the boards",
}


@pytest.mark.parametrize(
    ("written", "status"), [(one, status) for status, written in STATUSES.items() for one in written.split(" ¦ ")]
)
def test_a_status_is_known_however_it_is_dressed(written, status):
    assert record_with(written).status == status


@pytest.mark.parametrize(
    ("written", "links"),
    [
        ("Superseded by ADR-0013", [("superseded_by", "13")]),
        ("Superseded by #13", [("superseded_by", "13")]),
        ("Superseded by [ADR-13](../adr/0013-new.md)", [("superseded_by", "../adr/0013-new.md")]),
        ("superseded by 0013-new.md", [("superseded_by", "0013-new.md")]),
        ("Replaces [a](a.md), [b](b.md) and ADR 5",
         [("supersedes", end) for end in ("a.md", "b.md", "5")]),
        ("Accepted. Supersedes ADR-3, amended by ADR-9", [("supersedes", "3"), ("refined_by", "9")]),
        ("Depends on [4](0004-x.md)", [("depends_on", "0004-x.md")]),
        ("Partly superseded by [4](0004-x.md)", [("refined_by", "0004-x.md")]),
        ("Superseded (partly) by [4](0004-x.md)", [("refined_by", "0004-x.md")]),
        ("Superseded in part by ADR-4", [("refined_by", "4")]),
        ("To be superseded by ADR-4", []),
        ("ADR-4로 대체 예정", []),
        ("[4](0004-x.md)에 의해 일부 대체됨", [("refined_by", "0004-x.md")]),
        ("ADR-4를 일부 대체함", [("refines", "4")]),
        ("Driven by [4](0004-x.md)", []),
        ("Accepted in [PR 12](https://git.example/pr/12)", []),
        ("Superseded on 2024-01-31", []),
        ("Supersedes [캐시](<0003 캐시.md>)", [("supersedes", "0003 캐시.md")]),
        ("Supersedes [c](0003-%EC%BA%90.md)", [("supersedes", "0003-캐.md")]),
        ("ADR-0013으로 대체됨", [("superseded_by", "13")]),
        ("[ADR-13](n.md)에 의해 대체되었다", [("superseded_by", "n.md")]),
        ("ADR-3을 대체한다", [("supersedes", "3")]),
        ("```\nSupersedes ADR-3\n```", []),
    ],
)  # fmt: skip
def test_links_are_read_with_their_relation(written, links):
    assert links_of(record_with(written)) == links


def test_links_stand_in_front_matter_and_head_too():
    front = "---\nsupersedes: ADR-4\ndepends-on: 0005-x.md\n---\n"
    links = [("supersedes", "4"), ("depends_on", "0005-x.md"), ("refines", "6")]
    assert links_of(read_record(f"{front}# T\n\n- Amends: ADR-6\n\n## Decision\n\nD\n")) == links


def test_a_notice_below_the_title_supersedes_a_record_without_status():
    record = read_record(
        "# T\n\n> **Superseded by [ADR-3](./0003-x.md) in May.**\n\n## Context\n\nC\n\n## Decision\n\nD\n"
    )
    assert (record.status, links_of(record)) == ("superseded", [("superseded_by", "./0003-x.md")])


@pytest.mark.parametrize(
    ("heading", "number", "title"),
    [
        ("# 12. Use SQLite", 12, "Use SQLite"),
        ("# 0012 - Use SQLite", 12, "Use SQLite"),
        ("# ADR-0012: Use SQLite", 12, "Use SQLite"),
        ("# [ADR-012] Use SQLite", 12, "Use SQLite"),
        ("# ADR: Use SQLite", None, "Use SQLite"),
        ("# 제목: 캐시", None, "캐시"),
        ("# 12-factor apps", None, "12-factor apps"),
        ("# 3 tiers are enough", None, "3 tiers are enough"),
        ("# Use C# ##", None, "Use C#"),
        ("# 5. Status", 5, "Status"),
        ("12. Use SQLite\n==============", 12, "Use SQLite"),
        ("Use SQLite\n---", None, "Use SQLite"),
    ],
)
def test_number_and_title_come_from_the_heading(heading, number, title):
    record = read_record(f"{heading}\n\n## Status\n\nAccepted\n\n## Decision\n\nD\n")
    assert (record.number, record.title) == (number, title)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("0012-use.md", 12),
        ("docs/adr/adr-012-use.md", 12),
        (r"docs\ADR0012.md", 12),
        ("12.md", 12),
        ("2024-01-31-use.md", None),
        ("20240131-use.md", None),
        ("use-2-phase-commit.md", None),
        ("", None),
    ],
)
def test_the_number_may_come_from_the_file_name(name, number):
    assert read_record("# Use it\n", name).number == number


@pytest.mark.parametrize(
    ("front", "status"),
    [
        ("---\n# a comment\nstatus: 'accepted'   # not this\nnested:\n  deep: 1\n---\n", "accepted"),
        ('---\nstatus: "Superseded by [ADR-5](0005-x.md)"\ndate:\n...\n', "superseded"),
        ("---\nblock: |\n  status: rejected\n---\n", ""),
        ("---\nstatus: rejected\n\n", "rejected"),
        ("---\n\nA rule, and words.\n\n---\n", ""),
    ],
    ids=["quoted", "dots", "block", "not closed", "a rule"],
)
def test_only_simple_lines_of_front_matter_are_read(front, status):
    record = read_record(f"{front}# T\n\n## Decision Outcome\n\nD\n")
    assert (record.status, record.decision) == (status, "D")


@pytest.mark.parametrize(
    "block",
    [
        "```md\n## Decision\n\nno\n```",
        "~~~\n## Decision\n~~~",
        "<!--\n## Decision\n\nno\n-->",
        "    ## Decision",
        "- a\n\n  ## Decision",
    ],
)
def test_no_section_begins_in_code_or_a_comment_or_a_list(block):
    record = read_record(f"# 1. T\n\n## Context\n\n{block}\n\nafter\n\n## Decision\n\nyes\n")
    assert (record.decision, record.context) == ("yes", f"{block}\n\nafter")


def test_sections_may_be_underlined_of_one_level_and_numbered():
    underlined = "Status\n------\n\nAccepted\n\nContext\n---\nC\n\nDecision\n---\n\nD\n"
    numbered = "# ADR 3: T\n\n# 1. Status\n\nAccepted\n\n# 2. Context\n\nC\n\n# 3. Decision:\n\nD\n"
    for record in (read_record(f"3. T\n====\n\n{underlined}"), read_record(numbered)):
        said = (record.number, record.title, record.status, record.context, record.decision)
        assert said == (3, "T", "accepted", "C", "D")


def test_names_inside_an_option_are_no_sections_of_the_record():
    record = read_record("# T\n\n## Options\n\n### A\n\n#### Decision\n\nno\n\n## Decision\n\nyes\n")
    assert record.decision == "yes"


@pytest.mark.parametrize(
    ("text", "name", "verdict"),
    [
        (NYGARD, "0012-keep.md", True),
        (MADR_2, "doc/adr/0005-use.md", True),
        (KOREAN, "0007-캐시.md", True),
        (OURS, "0015-withheld.md", True),
        (NYGARD, "0007-template-engine.md", True),
        (NYGARD, "0008-index-the-events.md", True),
        ("# 9. The parts\n\nNo sections at all.\n", "0009-the-parts.md", True),
        ("# 9. The parts\n\nNo sections at all.\n", "0010-other.md", False),
        (NYGARD, "README.md", False),
        (NYGARD, "docs/adr/readme.ko.md", False),
        (NYGARD, "adr-template-bare-minimal.md", False),
        (NYGARD, "0000-adr-template.md", False),
        (NYGARD, "ADR_TEMPLATE.md", False),
        (NYGARD, "0012-keep.txt", False),
        (NYGARD.replace("12. Keep the event log in SQLite", "{short title}"), "0001-x.md", False),
        (NYGARD.replace("12. Keep the event log in SQLite", "NUMBER. TITLE"), "x.md", False),
        ("# Decisions\n\n```\n# 1. T\n\n## Status\n\n## Decision\n```\n", "list.md", False),
        ("# Notes\n\n## Status\n\nfine\n", "notes.md", False),
        ("", "x.md", False),
    ],
)
def test_records_are_told_from_other_files(text, name, verdict):
    assert (record_in(text, name) is not None) is verdict


def test_what_a_record_decides_is_not_where_it_stands():
    text = HEADS["section"]
    one, other = (read_record(text.format(status=status)) for status in ("Accepted", "Superseded by ADR-7"))
    assert one.content == other.content
    assert one.content != read_record(text.replace("\nD\n", "\nd\n").format(status="Accepted")).content
    assert one.content != read_record(text.format(status="Accepted") + "\n## Notes\n\nN\n").content


# What is written

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


LINK = "[2. 둘](0002-b.md)"


@heads
@endings
@pytest.mark.parametrize(("old", "new"), [("Accepted", "uperseded by [2. 둘]"), ("승인됨", "에 의해 대체됨")])
def test_another_status_changes_the_line_that_tells_it_in_its_language(head, ending, mark, old, new):
    text = mark + head.format(status=old).replace("\n", ending)
    ended = with_status(text, "superseded", LINK)
    assert (read_record(ended).status, ("superseded_by", "0002-b.md") in links_of(read_record(ended))) == (
        "superseded",
        True,
    )
    before, after = text.split(ending), ended.split(ending)
    (told,) = (line for line in after if line not in before)
    assert new in told or (old == "승인됨" and head == HEADS["other"])
    assert len(before) == len(after), "every other line stays"
    assert read_record(with_status(text, "deprecated")).status == "deprecated"
    assert read_record(with_status(ended, "accepted")).status == "accepted"


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("# 1. T\n\n**Context.** C\n\n**Decision.** D", "# 1. T\n\nStatus: Deprecated\n\n**Context.** C"),
        (HEADS["section"].format(status="Accepted (2024-01-31)"), "\nAccepted (2024-01-31)\n\nDeprecated\n\n## Con"),
        ("# 1. T\r\n\n## Status\n\nAccepted\r\r\n## Decision\n\nD", "## Status\n\nDeprecated\r\r\n## Decision\n\nD"),
    ],
    ids=["none was told", "a dated one stays as history", "endings that differ"],
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
    new = with_status(text, status, LINK if status == "superseded" else "")
    if new is not None:
        back = read_record(new)
        assert (back.status, back.content) == (status, read_record(text).content)


@pytest.mark.long
@pytest.mark.parametrize(
    "piece", ["## a\n", "a\n---\n", "[a](b ", "<!--", "```\n", "\n* a", "#", "**Context.** a\n", "~~", "대체"]
)
@pytest.mark.parametrize("start", ["", "# 1. T\n\n## Status\n\n", '---\ndeciders: ["'])
def test_a_long_text_is_read_like_a_short_one(start, piece):
    """The work grows with the length: were it with its square, this would take hours."""
    text = start + piece * (60_000 // len(piece))
    assert len(read_record(text).body) <= 2 * len(text)


@pytest.fixture(scope="module")
def decide():
    with mnemarch.open(":memory:") as memory:
        desk = memory.seat(Actor.orchestrator("lead"), Scope(project="shop")).decisions
        yield lambda text, **why: desk.commit(
            desk.propose(text, reason=Reason("risk", **({"summary": "why"} | why)), snapshots=["seen"])
        )


@pytest.mark.parametrize("form", ["nygard", "madr"])
@pytest.mark.parametrize(
    "text",
    [
        "Use SQLite\n\nIn WAL mode",
        "결제는 세 번만 재시도한다",
        "Retry: three\nSecond line",
        "12. is a number\n\nand 13 too",
        "word " * 60 + "THE END\nand more",
        "Use C#\n\n```\n# no heading\n```",
        "a: b #c [d]",
    ],
)
def test_a_decision_is_read_back_from_its_record(decide, text, form):
    decision = decide(text, summary="bank", tradeoff="slow")
    written = new_record(decision, 7, form, "accepted", [("depends_on", "[2. b](0002-b.md)")])
    assert is_as_exported(written)
    assert not is_as_exported(written.replace("slow", "fast"))
    record = read_record(written, "0007-x.md")
    assert (record.text, record.reason.summary, record.reason.tradeoff) == (decision.text, "bank", "slow")
    assert (record.status, record.mark, links_of(record)) == ("accepted", decision.id, [("depends_on", "0002-b.md")])


@pytest.mark.parametrize("form", ["nygard", "madr"])
@pytest.mark.parametrize("text", ["T\n\n## Status\n\nRejected", "T\n\n```\nopen", "T\n\n<!-- open", "T\n\nx\n---"])
def test_a_text_that_would_break_the_outline_is_quoted(decide, text, form):
    decision = decide(text, summary=text, tradeoff=text)
    record = read_record(new_record(decision, 7, form, "accepted"))
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


# Who takes the place of whom


def record(number, status="accepted", **links):
    """A record that says `supersedes=[1, 2]` and the like of others."""
    told = [f"{relation.replace('_', ' ')} ADR-{each}" for relation, numbers in links.items() for each in numbers]
    text = "\n\n".join([f"# {number}. r{number}", "## Status", status, *told, "## Decision", "D"])
    return number, read_record(text)


def placed(*records):
    return places({f"{number}.md": one for number, one in records})


def test_a_record_comes_after_what_it_supersedes_and_else_by_number():
    order = placed(record(4), record(3, superseded_by=[5]), record(1, supersedes=[3]), record(5), record(2))
    assert list(order) == ["2.md", "3.md", "4.md", "1.md", "5.md"]
    assert [order[name].older for name in ("1.md", "5.md")] == [("3.md",)] * 2
    assert order["3.md"].newer == ("1.md", "5.md")


def test_a_circle_is_refused_with_all_that_supersedes_it():
    order = placed(
        record(1, "superseded", superseded_by=[2]),
        record(2, supersedes=[1], superseded_by=[1]),
        record(3, supersedes=[2]),
        record(4, superseded_by=[1]),
        record(5, superseded_by=[5]),
    )
    assert [order[f"{number}.md"].force for number in (1, 2, 3)] == [Force.NEVER] * 3
    assert [order[f"{number}.md"].force for number in (4, 5)] == [Force.ENDED] * 2


@pytest.mark.parametrize(
    ("force", "statuses"),
    [
        (Force.HOLDS, ["accepted", "approved", "active", "done", "partially superseded", "to be deprecated"]),
        (Force.ENDED, ["deprecated", "obsolete", "retired", "withdrawn", "superseded"]),
        (Force.NEVER, ["proposed", "draft", "rfc", "pending", "rejected", "declined", "on hold", "blue"]),
    ],
)
def test_a_status_tells_whether_a_record_is_in_force_and_ends_others(force, statuses):
    for status in statuses:
        found = placed(record(1), record(2, status, supersedes=[1]))
        assert found["2.md"].force is force
        assert found["1.md"].force is (Force.HOLDS if force is Force.NEVER else Force.ENDED)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["accepted", "proposed", "superseded", "deprecated"]),
            st.lists(st.integers(0, 9), max_size=3),
            st.lists(st.integers(0, 9), max_size=3),
        ),
        max_size=10,
    )
)
@pytest.mark.long
@settings(max_examples=200)
def test_any_folder_has_one_order(graph):
    records = [record(number, one, supersedes=old, superseded_by=new) for number, (one, old, new) in enumerate(graph)]
    order = placed(*records)
    assert list(order.items()) == list(placed(*reversed(records)).items())
    assert len(order) == len(records)
    seen = set()
    for name, place in order.items():
        assert seen.issuperset(place.older)
        assert place.force is not Force.HOLDS or not place.newer
        seen.add(name)


def test_a_long_chain_is_ordered_like_a_short_one():
    """Were the work to grow with the square of the length, this would take an hour."""
    length = 5_000
    order = placed(*(record(number, superseded_by=[number + 1]) for number in range(length)))
    assert [place.older for place in order.values()] == [(), *((f"{number}.md",) for number in range(length - 1))]
