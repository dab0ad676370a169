"""The embedder of questions: one question in other words stays near, another question in the same words does not."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemarch.embedding import NgramHashEmbedder, QuestionEmbedder, cosine, sparse
from mnemarch.errors import InvalidInput
from mnemarch.text.cache import forget_texts
from mnemarch.text.canonical import canonical

ENGLISH = "Which service retries a failed checkout, and how often?"
KOREAN = "결제가 실패하면 어떤 서비스가 API를 다시 호출하나요?"
TEXTS = [ENGLISH, KOREAN, "ab", "👍🏽 日本語 café ½ 10²", "lone \ud800 surrogate", "ᄀ ㄱㅏ 각", "how is it", "", "..."]
GOLDEN = {
    ENGLISH: "850664d2a91699eadf9e5291536bad226e2586dc3aea3a74a97128199dcf9059",
    KOREAN: "6ae029a2d624215f00ef33273a453b5246f779f559607c244c93ab6a5104bc2a",
}
mixed = st.text(max_size=80) | st.text(alphabet="aB1_ .'가나다를까OS하했ㄱ\u1100\u11a8\ud800日", max_size=60)


def digest(vector) -> str:
    """Every place and every bit of every weight."""
    return hashlib.sha256(",".join(f"{place}:{weight.hex()}" for place, weight in vector.items()).encode()).hexdigest()


def alike(left: str, right: str) -> float:
    embed = QuestionEmbedder().embed
    return cosine(embed(left), embed(right))


@pytest.mark.parametrize("text", [ENGLISH, KOREAN])
def test_the_vectors_are_these_bit_for_bit(text):
    assert digest(QuestionEmbedder().embed(text)) == GOLDEN[text]


def test_what_was_worked_out_of_words_is_kept_within_bounds_and_changes_nothing(monkeypatch):
    forget_texts()
    fresh = QuestionEmbedder().embed(ENGLISH)
    monkeypatch.setattr(sparse, "_KNOWN_MAX", 4)
    forget_texts()
    embedder = QuestionEmbedder()
    assert [embedder.embed(text) for text in TEXTS] == [QuestionEmbedder().embed(text) for text in TEXTS]
    assert embedder.embed(ENGLISH) == fresh
    assert 0 < len(sparse._known_words(embedder.seed, *embedder.ngram_range)) <= 4


def test_r16_erasing_a_text_empties_the_caches_of_its_words():
    embedder = QuestionEmbedder()
    embedder.embed("zanzibar")
    assert "zanzibar" in sparse._known_words(embedder.seed, *embedder.ngram_range)
    forget_texts()
    assert not sparse._known_words(embedder.seed, *embedder.ngram_range)


@given(mixed)
def test_the_same_text_has_the_same_bits_and_so_has_its_canonical_form(text):
    once, again = QuestionEmbedder().embed(text), QuestionEmbedder().embed(text)
    assert digest(once) == digest(again)
    assert digest(QuestionEmbedder().embed(canonical(text))) == digest(once)


def test_a_text_of_nothing_is_alike_to_nothing():
    for nothing in ("", "  ", "\n"):
        assert QuestionEmbedder().embed(nothing) == {}
    assert alike("", ENGLISH) == 0.0
    assert alike("...", "?!") == 0.0


def test_spacing_case_and_the_question_mark_change_nothing():
    for left, right in [
        ("에이전트OS 설계 문서 링크", "에이전트 os 설계 문서 링크"),
        ("결제 재시도는 어디서 하나요?", "결제재시도는 어디서하나요"),
        ("Where is  the Gateway?", "where is the gateway"),
    ]:
        assert QuestionEmbedder().embed(left) == QuestionEmbedder().embed(right)
        assert alike(left, right) == pytest.approx(1.0)


def test_who_does_it_to_whom_still_counts():
    for left, right in [
        ("Does the gateway call billing?", "Does billing call the gateway?"),
        ("게이트웨이가 결제를 호출하나요?", "결제가 게이트웨이를 호출하나요?"),
        (
            "Should the orders server start before the stock server?",
            "Should the stock server start before the orders server?",
        ),
        ("스테이징에서 운영으로 데이터를 옮기려면?", "운영에서 스테이징으로 데이터를 옮기려면?"),
    ]:
        assert 0.5 < alike(left, right) < 0.96


def test_whether_it_may_be_how_much_and_whence_still_count():
    for left, right in [
        ("Who can see the report of the billing team?", "Who can only see the report of the billing team?"),
        ("Who can see the report of the billing team?", "Who should see the report of the billing team?"),
        (
            "What happens if all tests pass on the release branch?",
            "What happens if any tests pass on the release branch?",
        ),
        ("How do I deploy the checkout service to staging?", "How do I deploy the checkout service to staging again?"),
        ("How do I move from the old API to the new one?", "How do I move to the old API from the new one?"),
    ]:
        assert 0.75 < alike(left, right) < 0.96


def test_articles_and_auxiliaries_count_little():
    for left, right in [
        ("How does checkout retry?", "How does the checkout retry?"),
        ("Where's the gateway of the checkout?", "Where is the gateway of the checkout?"),
    ]:
        assert alike(left, right) > 0.94


def test_what_is_asked_still_counts():
    for left, right in [
        ("Why do the nightly backups fail?", "When do the nightly backups fail?"),
        ("What's the reason of the nightly failures?", "Who's the reason of the nightly failures?"),
        ("운영 환경에서 토큰을 언제 검증하나요?", "운영 환경에서 토큰을 왜 검증하나요?"),
    ]:
        assert alike(left, right) < 0.96


@pytest.mark.parametrize("right", ["배포 어떻게 해요?", "배포를 어떻게 합니까"])
def test_particles_and_politeness_leave_a_korean_question_near(right):
    asked = "배포는 어떻게 하나요?"
    assert alike(asked, right) >= 0.75 > alike(asked, "환불은 어떻게 하나요?")


def test_function_words_and_inflections_leave_an_english_question_near():
    asked = "How do I deploy the service?"
    for right in ("How do we deploy this service?", "how can I deploy services"):
        assert alike(asked, right) >= 0.75 > alike(asked, "How do I refund the order?")


def test_it_brings_wordings_nearer_than_the_plain_one_does_and_leaves_other_questions_far():
    plain = NgramHashEmbedder().embed
    asked, reworded, other = "로그는 어디에 저장되나요?", "로그 저장 위치가 어디죠?", "캐시는 언제 비워지나요?"
    assert alike(asked, reworded) > cosine(plain(asked), plain(reworded)) + 0.1
    assert alike(asked, other) < 0.5


def test_the_state_of_the_plain_embedder_is_refused():
    with pytest.raises(InvalidInput, match="featuresVersion"):
        QuestionEmbedder().import_state(NgramHashEmbedder().export_state())
