"""Decision records in Markdown: what is read, that nothing is lost, and what another form can hold."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemarch.decisions.adr import file_name, is_adr
from mnemarch.decisions.adr_read import read_adr
from mnemarch.decisions.adr_record import AdrLink, AdrRecord
from mnemarch.decisions.adr_write import write_adr
from mnemarch.errors import InvalidInput
from mnemarch.model.value import replace

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

KOREAN_MADR = """\
---
status: 제안됨
date: 2024-06-01
decision-makers: 김하나, 이두리
---

# 색인은 버려도 된다

## 맥락과 문제 정의

색인이 깨지면 어떻게 하나?

## 고려한 선택지

* 다시 만든다
* 고친다

## 결정 결과

선택한 옵션: "다시 만든다", 왜냐하면 언제나 맞기 때문이다.

### 결과

* 좋은 점: 단순하다
"""

OURS = """\
# 15. Withheld is not archived

**Context.** A working tree is often half edited.

**Decision.** Recall checks the tree:

- a file holds as long as it exists;
- lines hold wherever they stand.

**Given up.** What was never committed is gone.
"""

BARE_TEMPLATE = (
    "---\nstatus:\ndate: \ndecision-makers: \n---\n\n# {short title}\n\n## Context and Problem Statement\n\n\n\n"
)
BARE_TEMPLATE += (
    "## Considered Options\n\n* <!-- option -->\n\n## Decision Outcome\n\n\n   \n   \n## More Information\n\n"
)

SAMPLES = {
    "nygard": NYGARD,
    "madr 4": MADR_4,
    "madr 2": MADR_2,
    "korean": KOREAN,
    "korean madr": KOREAN_MADR,
    "ours": OURS,
    "bare": BARE_TEMPLATE,
}
samples = pytest.mark.parametrize("text", SAMPLES.values(), ids=SAMPLES)


def status_of(written: str) -> str:
    return read_adr(f"# 1. T\n\n## Status\n\n{written}\n\n## Decision\n\nD\n").status


def links_of(written: str) -> list[tuple[str, str, str]]:
    links = read_adr(f"# 1. T\n\n## Status\n\n{written}\n\n## Decision\n\nD\n").links
    return [(link.relation, link.target, link.label) for link in links]


# What is read


def test_a_nygard_record_is_read_whole():
    record = read_adr(NYGARD)
    assert (record.form, record.number, record.title) == ("nygard", 12, "Keep the event log in SQLite")
    assert (record.status, record.date, record.deciders) == ("accepted", "2024-01-31", ())
    assert record.context.startswith("Files were torn")
    assert record.context.endswith("40 ms for each append.")
    assert "### What we measured" in record.context
    assert record.decision == "We will write every event in one transaction."
    assert record.consequences == "* One writer at a time.\n* Backups are one file."
    assert record.links == (
        AdrLink("supersedes", "0003-keep-the-event-log-in-files.md", "3. Keep the event log in files"),
        AdrLink("amended_by", "0015-two-readers.md", "15. Two readers"),
    )


def test_sections_and_preamble_are_the_text_as_written():
    record = read_adr(NYGARD)
    assert record.preamble == "# 12. Keep the event log in SQLite\n\nDate: 2024-01-31\n\n"
    assert [heading for heading, _ in record.sections] == [
        "## Status",
        "## Context",
        "### What we measured",
        "## Decision",
        "## Consequences",
    ]
    assert record.sections[3] == ("## Decision", "\nWe will write every event in one transaction.\n\n")


def test_a_madr_4_record_is_read_whole():
    record = read_adr(MADR_4, "docs/decisions/0006-search-with-tantivy.md")
    assert (record.form, record.number, record.title) == ("madr", 6, "Search with tantivy")
    assert (record.status, record.date, record.deciders) == ("accepted", "2024-03-05", ("Ada Park", "Bo Lee"))
    assert record.drivers == ("Starts within 40 ms", "Needs no server, not even a local one")
    assert record.options == ("tantivy", "SQLite FTS5", "grep")
    assert (record.chosen, record.because) == ("tantivy", "it opens fast and ranks well")
    assert record.decision == 'Chosen option: "tantivy", because it opens fast\nand ranks well.'
    assert record.consequences.startswith("* Good, because a cold query")
    assert record.consequences.endswith("dependency")
    assert record.links == (AdrLink("refines", "0004-no-daemon.md", "ADR-0004"),)


def test_a_madr_2_record_is_read_whole():
    record = read_adr(MADR_2)
    assert (record.form, record.number, record.status, record.date) == ("madr", None, "superseded", "2023-05-07")
    assert record.deciders == ("Dana", "Eun")
    assert record.consequences.startswith("### Positive Consequences")
    assert "The time can be read" in record.consequences
    assert record.links == (
        AdrLink("superseded_by", "0009-use-ulid.md", "ADR-0009"),
        AdrLink("refined_by", "0007-salted-ids.md", "ADR-0007"),
        AdrLink("relates_to", "0002-ids-are-opaque.md", "ADR-0002"),
    )


def test_a_korean_record_is_read_whole():
    record = read_adr(KOREAN)
    assert (record.form, record.number, record.title) == ("nygard", 7, "캐시는 한 곳에 둔다")
    assert (record.status, record.date) == ("accepted", "2024-05-07")
    assert record.context == "여러 에이전트가 같은 값을 따로 보관했다."
    assert record.decision == "캐시를 한 프로세스에만 둔다."
    assert record.consequences == "첫 호출은 느려진다."
    assert record.links == (AdrLink("supersedes", "0003-캐시.md", "ADR-0003"),)


def test_a_korean_madr_is_read_whole():
    record = read_adr(KOREAN_MADR)
    assert (record.form, record.status, record.deciders) == ("madr", "proposed", ("김하나", "이두리"))
    assert record.options == ("다시 만든다", "고친다")
    assert (record.chosen, record.because) == ("다시 만든다", "언제나 맞기 때문이다")
    assert record.consequences == "* 좋은 점: 단순하다"


def test_a_korean_title_may_be_a_section():
    record = read_adr(
        "## 제목\n\n12. 캐시를 쓴다\n\n## 상태\n\n초안\n\n## 맥락(context)\n\n느리다.\n\n## 결정\n\n쓴다.\n"
    )
    assert (record.number, record.title, record.status, record.context) == (12, "캐시를 쓴다", "draft", "느리다.")


def test_our_own_form_is_read_by_its_bold_words():
    record = read_adr(OURS)
    assert (record.form, record.number, record.title) == ("other", 15, "Withheld is not archived")
    assert record.context == "A working tree is often half edited."
    assert record.decision.endswith("- lines hold wherever they stand.")
    assert record.consequences == "What was never committed is gone."


@pytest.mark.parametrize(
    ("written", "status"),
    [
        ("Accepted", "accepted"),
        ("accepted", "accepted"),
        ("✅ Accepted", "accepted"),
        ("**Accepted**", "accepted"),
        ("_Proposed_", "proposed"),
        ("* Accepted", "accepted"),
        ("Accepted (2024-01-31)", "accepted"),
        ("2024-01-31: accepted", "accepted"),
        ("Status: Rejected", "rejected"),
        ("Accepted by the board after long talks about money", "accepted"),
        ("Accepted 2024-01-31. It resolves what the plan left open.", "accepted"),
        ("<!-- proposed | accepted -->\nDeprecated", "deprecated"),
        ("~~Proposed~~ Accepted", "accepted"),
        ("~~Accepted~~\n\nRejected", "rejected"),
        ("Proposed\n\nAccepted", "accepted"),
        ("Superceded by [13. New](0013-new.md)", "superseded"),
        ("Accepted\n\nSuperseded by [13. New](0013-new.md)", "superseded"),
        ("Superseded by ADR-0013\n\nAccepted on 2024-01-31", "superseded"),
        ("Superseded by [ADR-10](0010-x.md) (2026-05-14) — the need became clear", "superseded"),
        ("Accepted, superseded by ADR-13", "superseded"),
        ("Accepted\n\nAmends [3. Old](0003-old.md)", "accepted"),
        ("Accepted\n\nRejected options are listed below, with the reasons why we did not take them.", "accepted"),
        ("Amends [3. Old](0003-old.md)", ""),
        ("Proposed | Accepted | Deprecated", ""),
        ("Proposed by Bob\n\nPartially superseded by [ADR-31](0031-x.md)", "proposed"),
        ("Largely superseded by [ADR-31](0031-x.md)", ""),
        ("- [ ] Proposed\n- [x] Accepted\n- [ ] Rejected", "accepted"),
        ("On hold", "on hold"),
        ("🚧 WIP", "wip"),
        ("accepted\n\nDeprecated since 2025", "deprecated"),
        ("Proposed by Bob\n\nAccepted by the board", "accepted"),
        ("Draft → **Approved** (2024-01-31)", "approved"),
        ("Approved by @cto, 31 January 2024", "approved"),
        ("Adopted", "adopted"),
        ("Implemented in v2.3", "implemented"),
        ("Active", "active"),
        ("Decided ✅", "decided"),
        ("Done.", "done"),
        ("**In effect** since March 2024", "in effect"),
        ("The decision is accepted.", "accepted"),
        ("☐ Proposed ☑ Accepted", "accepted"),
        ("✔️ Accepted - 2024-01-02 - Bo Lee", "accepted"),
        ("RFC", "rfc"),
        ("Pending", "pending"),
        ("Declined", "declined"),
        ("Obsolete since v3", "obsolete"),
        ("Retired", "retired"),
        ("Withdrawn by its author", "withdrawn"),
        ("Replaced by [13. New](0013-new.md)", "superseded"),
        ("Accepted\n\nActive users asked for it.", "accepted"),
        ("Accepted\n\nPending work is listed below.", "accepted"),
        ("승인", "accepted"),
        ("✔️ 채택", "accepted"),
        ("확정 (2024년 5월 7일)", "accepted"),
        ("승인되었습니다", "accepted"),
        ("제안", "proposed"),
        ("검토중", "proposed"),
        ("검토 중", "proposed"),
        ("제안됨\n\n승인됨", "accepted"),
        ("거부", "rejected"),
        ("반려", "rejected"),
        ("폐기", "deprecated"),
        ("대체됨", "superseded"),
        ("승인됨", "accepted"),
        ("폐기됨 (2024-01-31)", "deprecated"),
        ("ADR-0013으로 대체됨", "superseded"),
        ("더 이상 사용되지 않음", "deprecated"),
        ("승인 대기", "pending"),
        ("승인 대기 중", "pending"),
        ("승인대기", "pending"),
        ("승인 예정 (2024-05-07)", "pending"),
        ("승인 전", "pending"),
        ("승인 검토 중", "pending"),
        ("승인 불가", "승인 불가"),
        ("승인 대기\n\n승인됨", "accepted"),
        ("적용 중", "implemented"),
        ("폐기 예정", "to be deprecated"),
        ("사용 중단 검토 중", "to be deprecated"),
        ("일부 대체됨", "partially superseded"),
        ("To be deprecated in v3", "to be deprecated"),
        ("Will be replaced", "to be deprecated"),
        ("Pending approval by the board", "pending"),
        ("Awaiting approval", "pending"),
        ("Not yet accepted by everybody", "pending"),
        ("Not accepted by any of the boards", "not accepted by any of the boards"),
        ("Partially superseded", "partially superseded"),
        ("Superseded (partly)", "partially superseded"),
        ("Superseded (partly) by [13. New](0013-new.md)", ""),
        ("Accepted, to be superseded by ADR-13", "accepted"),
        ("", ""),
    ],
)
def test_a_status_is_known_however_it_is_dressed(written, status):
    assert status_of(written) == status


@pytest.mark.parametrize(
    ("written", "links"),
    [
        ("Superseded by ADR-0013", [("superseded_by", "13", "ADR-0013")]),
        ("Superseded by 13", [("superseded_by", "13", "13")]),
        ("Superseded by #13", [("superseded_by", "13", "13")]),
        ("Superseded by [ADR-13](../adr/0013-new.md)", [("superseded_by", "../adr/0013-new.md", "ADR-13")]),
        ("Supersedes [13. New]()", [("supersedes", "13", "13. New")]),
        ("superseded by 0013-new.md", [("superseded_by", "0013-new.md", "0013-new.md")]),
        ("Replaces [a](a.md), [b](b.md) and ADR 5",
         [("supersedes", *end) for end in (("a.md", "a"), ("b.md", "b"), ("5", "ADR 5"))]),
        ("Accepted. Supersedes ADR-3, amended by ADR-9", [("supersedes", "3", "ADR-3"), ("amended_by", "9", "ADR-9")]),
        ("Depends on [4](0004-x.md)", [("depends_on", "0004-x.md", "4")]),
        ("Partly superseded by [4](0004-x.md)", [("partially_superseded_by", "0004-x.md", "4")]),
        ("Superseded (partly) by [4](0004-x.md)", [("partially_superseded_by", "0004-x.md", "4")]),
        ("Superseded in part by ADR-4", [("partially_superseded_by", "4", "ADR-4")]),
        ("To be superseded by ADR-4", [("to_be_superseded_by", "4", "ADR-4")]),
        ("ADR-4로 대체 예정", [("to_be_superseded_by", "4", "ADR-4")]),
        ("[4](0004-x.md)에 의해 일부 대체됨", [("partially_superseded_by", "0004-x.md", "4")]),
        ("ADR-4를 일부 대체함", [("partially_supersedes", "4", "ADR-4")]),
        ("Driven by [4](0004-x.md)", [("driven_by", "0004-x.md", "4")]),
        ("Accepted in [PR 12](https://git.example/pr/12)", []),
        ("Superseded on 2024-01-31", []),
        ("Accepted 2024-01-31", []),
        ("Supersedes [캐시](<0003 캐시.md>)", [("supersedes", "0003 캐시.md", "캐시")]),
        ("Supersedes [c](0003-%EC%BA%90.md)", [("supersedes", "0003-캐.md", "c")]),
        ("ADR-0013으로 대체됨", [("superseded_by", "13", "ADR-0013")]),
        ("[ADR-13](n.md)에 의해 대체되었다", [("superseded_by", "n.md", "ADR-13")]),
        ("ADR-3을 대체한다", [("supersedes", "3", "ADR-3")]),
        ("```\nSupersedes ADR-3\n```", []),
    ],
)  # fmt: skip
def test_links_are_read_with_their_relation(written, links):
    assert links_of(written) == links


def test_links_stand_in_front_matter_and_head_too():
    front = "---\nsupersedes: [3, ADR-4]\ndepends-on: 0005-x.md\n---\n"
    text = f"{front}# T\n\n- Amends: ADR-6\n- 관련: ADR-0008(자동 응답)\n\n## Decision\n\nD\n"
    assert [(link.relation, link.target) for link in read_adr(text).links] == [
        ("supersedes", "3"),
        ("supersedes", "4"),
        ("depends_on", "0005-x.md"),
        ("amends", "6"),
        ("relates_to", "8"),
    ]


def test_a_notice_below_the_title_supersedes_a_record_without_status():
    record = read_adr(
        "# T\n\n> **Superseded by [ADR-0003](./0003-x.md) in May.**\n\n## Context\n\nC\n\n## Decision\n\nD\n"
    )
    assert record.status == "superseded"
    assert record.links == (AdrLink("superseded_by", "0003-x.md", "ADR-0003"),)


@pytest.mark.parametrize(
    ("heading", "number", "title"),
    [
        ("# 12. Use SQLite", 12, "Use SQLite"),
        ("# 0012 - Use SQLite", 12, "Use SQLite"),
        ("# 0008 — Use SQLite", 8, "Use SQLite"),
        ("# ADR-0012: Use SQLite", 12, "Use SQLite"),
        ("# ADR 12 Use SQLite", 12, "Use SQLite"),
        ("# [ADR-012] Use SQLite", 12, "Use SQLite"),
        ("# ADR: Use SQLite", None, "Use SQLite"),
        ("# 제목: 캐시", None, "캐시"),
        ("# 12-factor apps", None, "12-factor apps"),
        ("# 3 tiers are enough", None, "3 tiers are enough"),
        ("# 2.0 at last", None, "2.0 at last"),
        ("# Use C# ##", None, "Use C#"),
        ("# 5. Status", 5, "Status"),
        ("12. Use SQLite\n==============", 12, "Use SQLite"),
        ("Use SQLite\n---", None, "Use SQLite"),
    ],
)
def test_number_and_title_come_from_the_heading(heading, number, title):
    record = read_adr(f"{heading}\n\n## Status\n\nAccepted\n\n## Decision\n\nD\n")
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
    assert read_adr("# Use it\n", name).number == number


@pytest.mark.parametrize(
    ("written", "date"),
    [
        ("2024-01-31", "2024-01-31"),
        ("2024/1/5", "2024-01-05"),
        ("31 January 2024", "2024-01-31"),
        ("Jan 31, 2024", "2024-01-31"),
        ("2024년 1월 31일", "2024-01-31"),
        ("2024-01-31T10:00:00Z", "2024-01-31"),
        ("2024-02-31", "2024-02-31"),
        ("31/01/2024", "31/01/2024"),
        ("some day", "some day"),
    ],
)
def test_a_date_is_iso_where_it_can_be(written, date):
    assert read_adr(f"# T\n\nDate: {written}\n\n## Status\n\nAccepted (2020-02-02)\n").date == date


def test_a_date_may_stand_beside_the_status():
    assert read_adr("# T\n\n## Status\n\nAccepted (2024-01-31)\n").date == "2024-01-31"


@pytest.mark.parametrize(
    ("written", "chosen", "because"),
    [
        ('Chosen option: "A", because it is B.', "A", "it is B"),
        ('Chosen option: "A", because\nit is\nB', "A", "it is B"),
        ("Chosen option: **A**, because B!", "A", "B!"),
        ('**Chosen option:** "A" because B...', "A", "B..."),
        ('Chosen option: **"A b c"**\n\n1. More', "A b c", ""),
        ("**Chosen option: A — on Azure**, branded as the backbone.", "A — on Azure", ""),
        ("Chosen option: Option A, because B.\nThere is less risk.", "Option A", "B. There is less risk"),
        ('Chosen option: "A". It is good.', "A", ""),
        ("Chosen option: \"Include in 'More'\", because B", "Include in 'More'", "B"),
        ('Chosen option: "the "best" one", because B', 'the "best" one', "B"),
        ('Chosen option: "A", because:\n\n* b\n* c', "A", "* b\n* c"),
        ("선택한 대안: “가”, 왜냐하면 나", "가", "나"),
        ("We chose nothing.", "", ""),
    ],
)
def test_the_choice_and_its_reason_are_read(written, chosen, because):
    record = read_adr(f"# T\n\n## Decision Outcome\n\n{written}\n\n### Consequences\n\n* Good, because it works\n")
    assert (record.chosen, record.because) == (chosen, because)


def test_options_may_be_headings():
    assert read_adr(
        "# T\n\n## Considered Options\n\n### A\n\n* good\n\n### B\n\n## Decision Outcome\n\nA\n"
    ).options == ("A", "B")
    assert read_adr(
        "# T\n\n## Decision Outcome\n\nA\n\n## Pros and Cons of the Options\n\n### A\n\n### B\n"
    ).options == ("A", "B")


def test_names_in_an_option_are_no_parts_of_the_record():
    record = read_adr(
        "# T\n\n## Options\n\n### A\n\n#### Decision\n\nno\n\n#### Status\n\nRejected\n\n## Decision\n\nyes\n"
    )
    assert (record.decision, record.status) == ("yes", "")


@pytest.mark.parametrize("fence", ["```", "~~~", "````", "```md", "  ```"])
def test_no_heading_stands_inside_a_fence(fence):
    closing = fence.strip().removesuffix("md")
    block = f"{fence}\n## Decision\n~~\n``\n{closing}\n"
    record = read_adr(f"# 1. T\n\n## Status\n\nAccepted\n\n## Context\n\n{block}after\n\n## Decision\n\nreal\n")
    assert record.decision == "real"
    assert record.context.endswith("after")


def test_no_heading_stands_in_a_comment_or_in_code():
    text = "# T\n\n<!--\n## Decision\n\nno\n-->\n\n    ## Decision\n\n## Context\n\nC\n\n## Decision\n\nyes\n"
    assert [heading for heading, _ in read_adr(text).sections] == ["## Context", "## Decision"]


def test_setext_headings_are_headings():
    text = "1. Use it\n=========\n\nStatus\n------\n\nAccepted\n\nContext\n---\nC\n\nDecision\n---\n\nD\n\n"
    text += "- a\n---\n\nx | y\n--- | ---\n\ntwo\nlines\n---\n"
    record = read_adr(text)
    assert (record.form, record.number, record.title) == ("nygard", 1, "Use it")
    assert (record.status, record.context) == ("accepted", "C")
    assert record.sections[0] == ("Status\n------", "\nAccepted\n\n")
    assert len(record.sections) == 3
    assert write_adr(record) == text


def test_all_headings_may_be_of_one_level_and_numbered():
    record = read_adr("# ADR 3: T\n\n# 1. Status\n\nDraft\n\n# 2. Context\n\nC\n\n# 3. Decision:\n\nD\n")
    assert (record.number, record.title, record.status, record.context, record.decision) == (3, "T", "draft", "C", "D")


def test_front_matter_is_a_small_yaml_read_strictly():
    text = """---
# a comment
status: 'it''s accepted'   # not this
date: "2024-01-31"
deciders:
  - "Park, Ada"
  - Bo # the other
nested:
  deep: 1
block: |
  status: rejected
---
# T

## Decision Outcome

D
"""
    record = read_adr(text)
    assert record.status == "it s accepted"
    assert (record.date, record.deciders) == ("2024-01-31", ("Park, Ada", "Bo"))
    assert write_adr(record) == text


@pytest.mark.parametrize("text", ["---\n\n# 1. T\n\nSome words.\n\n---\n\nMore\n", "---\nstatus: accepted\n# 1. T\n"])
def test_a_rule_is_no_front_matter(text):
    assert read_adr(text).title == "T"


def test_line_endings_and_marks_do_not_matter():
    assert read_adr("\ufeff" + NYGARD.replace("\n", "\r\n")) == read_adr(NYGARD)
    assert read_adr(MADR_4.replace("\n", "\r")) == read_adr(MADR_4)


def test_missing_sections_are_empty():
    record = read_adr("# 1. T\n\n## Decision\n\nD\n")
    assert (record.form, record.status, record.context, record.consequences, record.links) == ("other", "", "", "", ())
    assert read_adr("") == AdrRecord(form="other")


# Nothing is lost


@samples
def test_a_record_is_written_as_it_was_read(text):
    assert write_adr(read_adr(text)) == text
    assert write_adr(read_adr(text, "0099-any-name.md")) == text


MARKS = [
    *"#-=*|>[](){}:\"'` \n\n\n\t~",
    "# ",
    "## ",
    "\n## Status\n",
    "\n## Decision\n",
    "\n### Consequences\n",
    "---\n",
]
MARKS += [
    "```",
    "<!--",
    "-->",
    "**Context.** ",
    "Status: ",
    "Date: ",
    "2024-01-31",
    "accepted",
    "superseded by ",
    "ADR-7",
]
MARKS += [
    "[a](b.md)",
    "[a](<b c>)",
    "Chosen option: ",
    "because ",
    "대체됨",
    "상태",
    "\r\n",
    "\x00",
    "\ud800",
    "\u2028",
    "12. ",
]
anything = st.text() | st.lists(st.sampled_from(MARKS)).map("".join)


@given(anything, st.sampled_from(["", "0012-x.md", "\ud800", "README.md", "/"]))
@pytest.mark.long
@settings(max_examples=400)
def test_any_text_is_read_and_comes_back(text, name):
    record = read_adr(text, name)
    unified = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    written = write_adr(record)
    assert written.removesuffix("\n") == unified.removesuffix("\n")
    assert replace(read_adr(written, name), preamble="", sections=()) == replace(record, preamble="", sections=())
    is_adr(text, name)
    assert file_name(record)


@given(anything, st.sampled_from(["nygard", "madr", "other"]))
@pytest.mark.long
@settings(max_examples=200)
def test_any_text_is_converted_to_any_form(text, form):
    record = read_adr(text)
    back = read_adr(write_adr(record, form), file_name(record))
    assert form == "other" or record.form == form or back.form == form
    assert (back.date, back.deciders) == (record.date, record.deciders)


words = st.text("abcdefgh ijk가나다라é日", min_size=1, max_size=20).map(str.strip).filter(bool)
sentences = st.builds("We {}.".format, words)
bodies = st.lists(
    st.one_of(
        sentences,
        sentences.map("* {}\n* more".format),
        sentences.map("### {}\n\ntext".format),
        st.just("```\n## Status\n\nRejected\n```"),
        st.just("> quoted\n> # twice"),
        st.just("    # code"),
    ),
    max_size=3,
).map("\n\n".join)
numbers = st.integers(0, 9999)
files = st.builds("{:04}-{}.md".format, numbers, words.map(lambda text: text.replace(" ", "-")))
links = st.one_of(
    st.builds(
        AdrLink,
        st.sampled_from(["supersedes", "amends", "amended_by", "relates_to", "depends_on", "clarifies", "driven_by"]),
        files,
        words | st.builds("{}. {}".format, numbers, words) | st.sampled_from(["a [b] c", "back\\slash"]),
    ),
    st.builds(lambda relation, number: AdrLink(relation, str(number), f"ADR-{number:04}"), st.just("amends"), numbers),
)
dates = st.dates().filter(lambda day: 1900 <= day.year <= 2099).map(lambda day: day.isoformat())


@st.composite
def records(draw) -> AdrRecord:
    status = draw(st.sampled_from(["proposed", "accepted", "rejected", "deprecated", "superseded", "draft", ""]))
    found = draw(st.lists(links, max_size=3, unique=True))
    if status == "superseded":
        found = [AdrLink("superseded_by", draw(files), draw(words)), *found]
    chosen = draw(st.just("") | words)
    because = draw(words) if chosen else ""
    decision = draw(bodies)
    if chosen:
        decision = f'Chosen option: "{chosen}", because {because}.' + (f"\n\n{decision}" if decision else "")
        because = " ".join(because.split())
        chosen = " ".join(chosen.split())
    return AdrRecord(
        form=draw(st.sampled_from(["nygard", "madr"])),
        number=draw(numbers),
        title=" ".join(draw(words).split()),
        status=status,
        date=draw(st.just("") | dates),
        deciders=tuple(draw(st.lists(words.map(lambda text: " ".join(text.split())), max_size=3))),
        context=draw(bodies),
        decision=decision,
        consequences=draw(bodies),
        drivers=tuple(" ".join(item.split()) for item in draw(st.lists(words, max_size=3))),
        options=tuple(" ".join(item.split()) for item in draw(st.lists(words, max_size=3))),
        chosen=chosen,
        because=because,
        links=tuple(replace(link, label=" ".join(link.label.split())) for link in found),
    )


def said(record: AdrRecord) -> AdrRecord:
    """What the fields say, without the text and in no order of links."""
    ordered = tuple(sorted(set(record.links), key=repr))
    return replace(record, form="", sections=(), preamble="", links=ordered)


@given(records())
@pytest.mark.long
@settings(max_examples=200)
def test_fields_written_in_their_own_form_are_read_back(record):
    text = write_adr(record)
    back = read_adr(text, file_name(record))
    assert back.form == record.form
    assert said(back) == said(record)
    assert write_adr(back) == text


@given(records(), st.sampled_from(["nygard", "madr", "other"]))
@pytest.mark.long
@settings(max_examples=200)
def test_another_form_says_the_same(record, form):
    read = read_adr(write_adr(record), file_name(record))
    text = write_adr(read, form)
    back = read_adr(text, file_name(record))
    if form != "other":
        assert back.form == form
    assert said(back) == said(read)
    assert write_adr(back) == text
    assert said(read_adr(write_adr(back, record.form), file_name(record))) == said(read)


# Another form

WORD = re.compile(r"\w+")
NAMES = frozenset(
    WORD.findall(
        "12 15 Date date Status status decision Decision makers Context Problem and Statement Outcome More Information "
        "Accepted accepted superseded May Given up 배경 맥락과 문제 정의 결정 결과 상태 날짜 고려한 선택지 승인됨 "
        "제안됨 을 대체함 2024년 5월 7일 7"
    )
)


@pytest.mark.parametrize(("text", "form"), list(product(SAMPLES.values(), ["nygard", "madr", "other"])))
def test_a_converted_sample_keeps_its_fields(text, form):
    record = read_adr(text)
    back = read_adr(write_adr(record, form), file_name(record))
    assert said(back) == said(record)


@samples
@pytest.mark.parametrize("form", ["nygard", "madr", "other"])
def test_a_converted_sample_keeps_every_word(text, form):
    """Only how a form names its parts, the status and the date may be put otherwise."""
    lost = set(WORD.findall(text)) - set(WORD.findall(write_adr(read_adr(text, "0042-x.md"), form)))
    assert lost <= NAMES


def test_a_madr_becomes_nygard_with_the_rest_in_extra_sections():
    written = write_adr(read_adr(MADR_4, "0006-x.md"), "nygard")
    assert written.startswith(
        "# 6. Search with tantivy\n\nDate: 2024-03-05\n\nDeciders: Ada Park, Bo Lee\n\n## Status\n\nAccepted\n"
    )
    headings = [line for line in written.split("\n") if line.startswith("## ")]
    assert headings == [
        "## Status",
        "## Context",
        "## Decision Drivers",
        "## Considered Options",
        "## Decision",
        "## Consequences",
        "## Confirmation",
        "## Pros and Cons of the Options",
        "## More Information",
    ]
    assert "consulted: Cy\ninformed:\n  - the whole team\n" in written
    assert "  * with trigrams" in written


def test_a_nygard_becomes_a_madr_with_front_matter():
    written = write_adr(read_adr(NYGARD), "madr")
    assert written.startswith(
        "---\nstatus: accepted\ndate: 2024-01-31\n---\n\n"
        "# Keep the event log in SQLite\n\n## Context and Problem Statement\n"
    )
    assert "## Decision Outcome\n\nWe will write" in written
    assert "### Consequences\n\n* One writer" in written
    assert (
        "## More Information\n\n* Supersedes [3. Keep the event log in files](0003-keep-the-event-log-in-files.md)\n"
        in written
    )


def test_remarks_on_the_status_are_kept_in_another_form():
    text = NYGARD.replace(
        "Accepted\n", "Proposed (2023-12-01)\n\nAccepted\n\nThe board took two evenings over it.\n", 1
    )
    record = read_adr(text)
    assert record.status == "accepted"
    written = write_adr(record, "madr")
    assert "The board took two evenings over it." in written
    assert "Proposed (2023-12-01)" in written
    assert read_adr(written).status == "accepted"


@pytest.mark.parametrize("form", ["nygard", "madr", "other"])
@pytest.mark.parametrize("deciders", [("Park, Ada", "Bo"), ("Park, Ada",), ('The "A" team', "- Bo"), ("a: b #c",)])
def test_names_with_marks_in_them_come_back(deciders, form):
    record = AdrRecord(number=1, title="T", deciders=deciders, decision="D", context="C")
    assert read_adr(write_adr(record, form)).deciders == deciders


@pytest.mark.parametrize("form", ["nygard", "madr", "other"])
def test_a_choice_without_words_gets_its_sentence(form):
    record = AdrRecord(number=1, title="T", context="C", decision="More.", chosen='the "best"', because="it is fast")
    back = read_adr(write_adr(record, form))
    assert (back.chosen, back.because) == ('the "best"', "it is fast")
    assert back.decision == 'Chosen option: "the "best"", because it is fast.\n\nMore.'


@pytest.mark.parametrize(
    "link",
    [
        AdrLink("superseded_by", "13"),
        AdrLink("amends", "13", "that one"),
        AdrLink("amends", "a (b).md", "x"),
        AdrLink("amends", "100%25 #1.md", "y"),
        AdrLink("amends", "https://x.example/0003-a.md#b", "[3]"),
        AdrLink("driven_by", "0003-<a>.md", "z"),
    ],
)
@pytest.mark.parametrize("form", ["nygard", "madr", "other"])
def test_odd_links_come_back(link, form):
    record = AdrRecord(number=1, title="T", status="accepted", context="C", decision="D", links=(link,))
    (back,) = read_adr(write_adr(record, form)).links
    assert back == (link if link.label else replace(link, label="ADR-0013"))


def test_an_open_fence_does_not_swallow_what_is_written_after_it():
    record = AdrRecord(number=1, title="T", status="accepted", context="```\nopen", decision="D <!--\n<!--\nno end")
    back = read_adr(write_adr(record))
    assert (back.context, back.consequences) == ("```\nopen\n```", "")
    assert back.decision.endswith("-->")


def test_high_headings_in_a_body_do_not_become_sections():
    record = AdrRecord(number=1, title="T", status="accepted", context="a\n\n# Status\n\nRejected", decision="D")
    back = read_adr(write_adr(record))
    assert (back.status, back.context) == ("accepted", "a\n\n### Status\n\nRejected")


def test_a_form_nobody_knows_is_refused():
    with pytest.raises(InvalidInput, match="rfc"):
        write_adr(read_adr(NYGARD), "rfc")


# Changed records


def test_a_changed_status_changes_nothing_else():
    record = read_adr(NYGARD)
    successor = AdrLink("superseded_by", "0020-new.md", "20. New")
    written = write_adr(replace(record, status="superseded", links=(*record.links, successor)))
    assert written == NYGARD.replace(
        "Accepted\n\nSupersedes [3. Keep the event log in files](0003-keep-the-event-log-in-files.md)\n\n"
        "Amended by [15. Two readers](0015-two-readers.md)\n",
        "Supersedes [3. Keep the event log in files](0003-keep-the-event-log-in-files.md)\n\n"
        "Amended by [15. Two readers](0015-two-readers.md)\n\nSuperseded by [20. New](0020-new.md)\n",
    )


def test_a_changed_status_of_a_madr_stays_in_the_front_matter():
    record = read_adr(MADR_4)
    successor = AdrLink("superseded_by", "0020-new.md", "ADR-0020")
    written = write_adr(replace(record, status="superseded", links=(*record.links, successor)))
    assert written.startswith(
        "---\nstatus: superseded by [ADR-0020](0020-new.md)\ndate: 2024-03-05\n"
        "decision-makers: Ada Park, Bo Lee\nconsulted: Cy\n"
    )
    assert written.partition("\n# ")[2] == MADR_4.partition("\n# ")[2]


def test_a_status_is_added_where_none_was():
    text = "# 1. T\n\nDate: 2024-01-31\n\n## Context\n\nC\n\n## Decision\n\nD\n\n## Notes\n\nN\n"
    written = write_adr(replace(read_adr(text), status="rejected"))
    assert written == text.replace("## Context", "## Status\n\nRejected\n\n## Context")


def test_a_changed_body_changes_one_section():
    for text in (NYGARD, MADR_4, KOREAN):
        record = read_adr(text)
        written = write_adr(replace(record, consequences="None."))
        assert read_adr(written).consequences == "None."
        assert written.replace("None.", record.consequences) == text


@pytest.mark.parametrize("text", [NYGARD, MADR_4, MADR_2, KOREAN, KOREAN_MADR, OURS])
@given(records())
@settings(max_examples=20)
def test_whatever_is_changed_is_written(text, other):
    changed = replace(
        other, form=read_adr(text).form, preamble=read_adr(text).preamble, sections=read_adr(text).sections
    )
    back = read_adr(write_adr(changed), file_name(changed))
    known = set(read_adr(text).links)
    assert set(changed.links) - known == set(back.links) - known
    assert replace(said(back), links=(), options=()) == replace(said(changed), links=(), options=())


# File names, and which files are records


@pytest.mark.parametrize(
    ("number", "title", "name"),
    [
        (12, "Keep the event log in SQLite", "0012-keep-the-event-log-in-sqlite.md"),
        (7, "캐시는 한 곳에 둔다", "0007-캐시는-한-곳에-둔다.md"),
        (1, "Use C++ / Rust: why not?", "0001-use-c-rust-why-not.md"),
        (12345, "É à la carte", "12345-é-à-la-carte.md"),
        (0, "../../etc/passwd\x00", "0000-etc-passwd.md"),
        (3, "!?", "0003-decision.md"),
        (10**200, "Much", "100000000000-much.md"),
        (None, "CON", "decision-con.md"),
        (None, "", "decision.md"),
    ],
)  # fmt: skip
def test_a_file_is_named_for_number_and_title(number, title, name):
    assert file_name(AdrRecord(number=number, title=title)) == name


@given(st.text(), st.none() | st.integers(0))
def test_a_file_name_is_safe_everywhere(title, number):
    name = file_name(AdrRecord(number=number, title=title))
    assert name.endswith(".md")
    assert len(name.encode()) <= 143
    assert not set(name) & set('/\\:*?"<>|\x00 ')
    assert name.isprintable()
    assert name[0] not in ".-~"
    assert not name[:-3].endswith((".", " ", "-"))
    assert file_name(AdrRecord(number=number, title=title)) == name


@pytest.mark.parametrize(
    ("text", "name", "verdict"),
    [
        (NYGARD, "0012-keep.md", True),
        (MADR_2, "doc/adr/0005-use.md", True),
        (KOREAN, "0007-캐시.md", True),
        (OURS, "0015-withheld.md", True),
        (NYGARD, "", True),
        (NYGARD, "0007-template-engine.md", True),
        (NYGARD, "0008-index-the-events.md", True),
        ("# 9. The parts\n\nNo sections at all.\n", "0009-the-parts.md", True),
        ("# 9. The parts\n\nNo sections at all.\n", "0010-other.md", False),
        (NYGARD, "README.md", False),
        (NYGARD, "docs/adr/readme.ko.md", False),
        (NYGARD, "index.md", False),
        (NYGARD, "template.md", False),
        (NYGARD, "adr-template-bare-minimal.md", False),
        (NYGARD, "0000-adr-template.md", False),
        (NYGARD, "ADR_TEMPLATE.md", False),
        (NYGARD, "0012-keep.txt", False),
        (BARE_TEMPLATE, "0001-x.md", False),
        (NYGARD.replace("12. Keep the event log in SQLite", "NUMBER. TITLE"), "", False),
        ("# Decisions\n\n```\n# 1. T\n\n## Status\n\n## Decision\n```\n", "list.md", False),
        ("# Notes\n\n## Status\n\nfine\n", "notes.md", False),
        ("", "", False),
    ],
)
def test_records_are_told_from_other_files(text, name, verdict):
    assert is_adr(text, name) is verdict


LONG = ["## a\n", "a\n---\n", "[", "\\[", "[a](b ", "[a](b.md) ", "<!--", "<!-- -->", "```\n", "\n* a", " ", "#", "-"]
LONG += [
    "ADR-1 ",
    "superseded by 3 ",
    "**",
    "**Context.** a\n",
    "a.md.",
    "Date: x\n",
    "~~",
    "because ",
    '"',
    "0",
    "대체",
]
STARTS = ["", "# 1. T\n\n## Status\n\n", '---\ndeciders: ["', "# T\n\n## Decision\n\nChosen option: ", "# "]


@pytest.mark.long
@pytest.mark.parametrize("piece", LONG)
def test_a_long_text_is_read_like_a_short_one(piece):
    """The work grows with the length: were it with its square, this would take hours."""
    for start in STARTS:
        text = start + piece * (200_000 // len(piece))
        record = read_adr(text)
        assert (
            record.preamble + "".join(f"{heading}\n{body}" for heading, body in record.sections)
        ).strip() == text.strip()


def test_a_record_of_a_megabyte_is_written_as_it_was_read():
    text = NYGARD + "\nMore. [a](b.md)\n" * 60_000
    assert len(text) > 1_000_000
    assert write_adr(read_adr(text)) == text
