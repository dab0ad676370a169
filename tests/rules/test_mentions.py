"""Mentions: an entity is meant by any spelling of its names, as whole words, and by the longest name alone."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fixtures.cases import cases
from fixtures.steps import steps
from mnemarch.errors import InvalidInput
from mnemarch.text.mentions import NAME_CHARS_MAX, Mentions

MENTIONED = cases("mentions", "mentioned")

NOT_MENTIONED = [*cases("mentions", "not mentioned"), ("결제", "결제" + "까지" * 7)]

SAMPLES = """
redis Redis redis's gateways payment_service PaymentService payment service pay 결제 결제는 서비스 결제서비스 주문서 팀
는 에이전트 OS src/auth.py src auth.py:12 ops@example.com v1.2 . , - -- _ : / ' " ( ) ... 의도 ² ½
"""
WORDS = st.sampled_from([*SAMPLES.split(), "\u0301", "\ud800"])
TEXTS = st.text(max_size=60) | st.lists(WORDS | st.sampled_from(["", " ", "\n"]), max_size=12).map("".join)
NAMES = (
    st.text(min_size=1, max_size=30)
    | st.lists(WORDS, min_size=1, max_size=4).map("".join)
    | st.lists(WORDS, min_size=1, max_size=4).map(" ".join)
)


def held(**names: list[str]) -> Mentions:
    known = Mentions()
    for entity_id, listed in names.items():
        known.add(entity_id, listed)
    return known


def mentions(names: list[str], text: str) -> bool:
    return held(entity=names).found_in(text) == ["entity"]


def test_a_name_is_found_in_its_spellings_and_before_what_may_follow() -> None:
    asked = [(name, form.format(text)) for name, text in MENTIONED for form in ("{}", "왜 {} ?")]
    assert [(name, text) for name, text in asked if not mentions([name], text)] == []


def test_a_name_is_not_found_in_another_word_or_identifier() -> None:
    asked = [(name, form.format(text)) for name, text in NOT_MENTIONED for form in ("{}", "why {} ?")]
    assert [(name, text) for name, text in asked if mentions([name], text)] == []


@pytest.mark.parametrize(("text", "expected"), cases("mentions", "inside a longer name no other is mentioned"))
def test_inside_a_longer_name_no_other_is_mentioned(text: str, expected: list[str]) -> None:
    known = held(domain=["결제"], svc=["결제 서비스"], any=["서비스"], redis=["Redis"], cluster=["Redis Cluster"])
    known.add("pay", ["payment service"])
    known.add("bus", ["service bus"])
    known.add("gate", ["gateway"])
    known.add("gates", ["gateways"])
    assert known.found_in(text) == expected


def test_entities_come_by_first_mention_and_once() -> None:
    known = held(pay=["Payment Service", "결제 서비스", "pay-svc"], db=["orders"], cache=["Redis"])
    assert known.found_in("Redis, orders, pay-svc, redis와 결제서비스") == ["cache", "db", "pay"]


def test_a_name_stays_when_another_of_its_size_goes() -> None:
    known = held(first=["server one"], second=["server two"])
    known.remove("first")
    assert known.found_in("server one, server two") == ["second"]


def test_a_name_of_two_entities_mentions_both() -> None:
    assert held(a=["Orders"], b=["orders"], c=["or ders"]).found_in("the orders") == ["a", "b", "c"]
    assert held(a=["Orders"], b=["orders"], c=["or ders"]).found_in("the or ders") == ["c"]


def test_adding_again_extends_and_removing_forgets() -> None:
    known = held(pay=["PaymentService"])
    known.add("pay", ["결제", "PaymentService"])
    known.add("other", ["payment service", "결재"])
    assert known.names_of("pay") == ["PaymentService", "결제"]
    assert known.found_in("결제 payment-service") == ["pay", "other"]
    known.remove("pay")
    known.remove("pay")
    assert known.names_of("pay") == []
    assert known.found_in("결제 payment-service 결재") == ["other"]
    known.remove("other")
    assert known.found_in("결제 payment-service 결재") == []
    known.add("pay", ["결제"])
    assert known.found_in("결제 payment-service 결재") == ["pay"]


@pytest.mark.parametrize(
    "name", ["", "  ", "...", "--", "_", "\u200b", "「」", "a" * (NAME_CHARS_MAX + 1), "\ufdfa" * 50]
)
def test_an_invalid_name_is_refused_and_nothing_is_added(name: str) -> None:
    known = Mentions()
    with pytest.raises(InvalidInput) as refused:
        known.add("x", ["fine", name])
    assert refused.value.hint
    assert known.names_of("x") == []
    assert known.found_in("fine") == []


def test_a_name_of_the_longest_size_is_found() -> None:
    name = "a " * (NAME_CHARS_MAX // 2 - 1) + "b"
    assert mentions([name], f"x {name} x")


@given(TEXTS, st.lists(NAMES, max_size=4))
def test_no_text_raises_and_only_known_entities_are_found(text: str, names: list[str]) -> None:
    known = Mentions()
    accepted = [str(at) for at, name in enumerate(names) if accepts(known, str(at), name)]
    found = known.found_in(text)
    assert set(found) <= set(accepted)
    assert len(found) == len(set(found))


@given(NAMES)
@example("'redis.'")
@example("--a")
@example("user_")
@example("İstanbul")
@example("ŉA")
@example("a-.")
@example("std::")
@example("a::.")
@example("a:::")
@example("a\u0345\u0301B")
@example("주문 서")
def test_a_name_alone_mentions_its_entity(name: str) -> None:
    known = Mentions()
    if accepts(known, "x", name):
        assert known.found_in(name) == ["x"]
        assert known.found_in(f" {name}\n") == ["x"]
        assert known.found_in(f"({name})") == ["x"]


@given(TEXTS, st.lists(NAMES, min_size=1, max_size=4), NAMES)
def test_another_entity_only_takes_mentions_by_being_mentioned_itself(text: str, names: list[str], other: str) -> None:
    known = Mentions()
    for at, name in enumerate(names):
        accepts(known, str(at), name)
    before = known.found_in(text)
    if accepts(known, "other", other):
        after = known.found_in(text)
        rest = [entity_id for entity_id in after if entity_id != "other"]
        assert set(rest) <= set(before)
        assert rest == before or "other" in after
        known.remove("other")
        assert known.found_in(text) == before


@given(st.lists(st.sampled_from(["payment", "service", "http", "pool", "v2"]), min_size=2, max_size=4), st.data())
def test_the_spellings_of_an_identifier_are_one_name(words: list[str], data: st.DataObject) -> None:
    camel = words[0] + "".join(map(str.capitalize, words[1:]))
    spellings = ["_".join(words), "-".join(words), " ".join(words), camel, "_".join(words).upper()]
    name, text = data.draw(st.sampled_from(spellings)), data.draw(st.sampled_from(spellings))
    assert mentions([name], f"see {text}, please")


@given(st.sampled_from(["결제 서비스 서버", "에이전트 OS 설계", "주문 데이터 창고"]), st.data())
def test_the_spacing_of_a_korean_name_does_not_count(name: str, data: st.DataObject) -> None:
    spaced = "".join(data.draw(st.sampled_from(["", " ", "\n "])) if part == " " else part for part in name)
    assert mentions([name], f"그 {spaced}에서는")
    assert mentions([spaced], f"그 {name}에서는")


def work(known: Mentions, text: str) -> int:
    """How many lines run for finding what the text mentions."""
    return steps(lambda: known.found_in(text), of="mentions")


HOSTILE = [
    *("a_", "a", "a ", "결제", "결제 ", "결제에서", "a.", "-", "_", "/a", "a'", "redis ", "a\u0301\u0323"),
    "\u0301\u0323",
]
HOSTILE += ["a a a aa ", "1,", "...", "결제서비스 ", ":1", "src/auth.py:1"]


@pytest.mark.parametrize("unit", HOSTILE)
def test_ten_times_the_text_takes_about_ten_times_the_steps(unit: str) -> None:
    known = held(
        a=["a", "a a", "a a a a b", "aa aa", "a" * NAME_CHARS_MAX],
        pay=["결제", "결제" * 50, "결제 서비스"],
        path=["src/auth.py", "1", "/a", "-a", "redis"],
    )
    small, large = (work(known, (unit * size)[:size]) for size in (1_000, 10_000))
    assert large <= 12 * small + 500


@pytest.mark.long
@pytest.mark.parametrize("unit", HOSTILE)
def test_a_text_of_100_kb_is_read_to_its_end(unit: str) -> None:
    known = held(a=["a"], pay=["결제", "결제" * 100], end=["the end"])
    assert "end" in known.found_in((unit * 100_000)[:100_000] + " the end")


def test_one_of_many_names_is_found() -> None:
    question = "why does payment service 7 time out when 결제 서비스가 redis를 부르면?"
    known = held(**{str(at): [f"payment service {at}", f"결제 서비스 {at}호기", f"redis-{at}"] for at in range(1_000)})
    assert known.found_in(question) == ["7"]


def accepts(known: Mentions, entity_id: str, name: str) -> bool:
    try:
        known.add(entity_id, [name])
    except InvalidInput:
        return False
    return True
