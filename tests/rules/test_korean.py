"""Korean words without particles, endings and auxiliary verbs, and their English."""

from __future__ import annotations

from collections import Counter
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.cases import cases
from mnemarch.text.korean import english_of, features, fine_features, is_suffix, pairs, stem
from mnemarch.text.tokens import tokens
from mnemarch.text.words import entries

NOUNS = """
설정 오류 서버 로그인 파일 데이터 테스트 문서 회사 시간 재시도 냉장고 결제 배포 정책 사용자 비밀번호 브랜치 커밋 함수
변수 캐시 회의 나라 학교 친구 이메일 일정 고양이 바다 여행 부산 병원 어머니 컴퓨터 음악 영화 생일 주말 가격 주소 화면
목록 질문 기억 세션 토큰 인덱스 알림 메시지 대기열 한도 연결 복구 이유 방법 순서 크기 길이 나이 아이 결과 효과 의자
남자 라면 하나 어제 오늘
"""
VERBS = """
알려줘 알려주세요 봤다 본다 했습니다 먹었어요 몰라 빨랐다 고쳐줘 배포되었다 재시도하면 느려졌다 있었다 없는데
"""
AFTER_ANY = "에 에서 의 도 까지 부터 에게 한테 처럼 보다 마다 밖에 에서는 에서도 입니다"
AFTER_VOWEL = f"{AFTER_ANY} 가 는 를 와 로 랑 라도 라는"
AFTER_CONSONANT = f"{AFTER_ANY} 이 은 을 과 으로 이랑 이라도 이라는"
GLUED = "를 을 에서 에서는 하면 했다 입니다 로 까지 의 은"

syllables = st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3)
jamo = st.characters(min_codepoint=0x1100, max_codepoint=0x11FF) | st.characters(
    min_codepoint=0x3130, max_codepoint=0x318F
)
joined = st.tuples(
    st.sampled_from((NOUNS + VERBS).split()),
    st.lists(st.sampled_from(f"{AFTER_VOWEL} {AFTER_CONSONANT}".split()), max_size=4),
).map(lambda parts: parts[0] + "".join(parts[1]))


@given(st.text(syllables, min_size=1, max_size=40) | joined)
def test_a_stem_of_a_stem_is_itself(word):
    assert stem(stem(word)) == stem(word)


@given(st.text(syllables, min_size=1, max_size=40) | joined)
def test_a_stem_is_never_empty_and_never_longer_and_begins_with_the_same_consonant(word):
    bare = stem(word)
    assert 1 <= len(bare) <= len(word)
    assert normalize("NFD", bare)[0] == normalize("NFD", word)[0]


@given(st.text(st.characters() | jamo | syllables, min_size=1, max_size=40))
def test_anything_has_a_stem_and_features(text):
    assert stem(text)
    assert stem(stem(text)) == stem(text)
    assert features(text)[0] == "^" + stem(text)[0]
    assert set(features(text)) < set(fine_features(text))
    assert is_suffix(text) == (stem("가나" + text) == "가나")


@pytest.mark.parametrize(("word", "bare"), cases("hangul", "a word has this stem"))
def test_a_word_has_this_stem(word, bare):
    assert stem(word) == bare


@pytest.mark.parametrize(
    "forms",
    [
        *(
            "알려줘 알려주세요 알려줄래 알려 알렸다 알린다",
            "설정을 설정에서는 설정 설정이 설정으로 설정했다 설정하면 설정된",
            "봤다 본다 봐요 보았다 봅니다 보면서",
        ),
        *(
            "재시도 재시도를 재시도한다 재시도했다 재시도하지만 재시도할",
            "걸린다 걸렸다 걸려요 걸립니다",
            "냉장고 냉장고를 냉장고에서",
        ),
        "배포 배포됐다 배포되었다 배포된다 배포합니다 배포하세요",
    ],
)
def test_the_forms_of_a_word_have_the_same_features(forms):
    assert len({tuple(features(form)) for form in forms.split()}) == 1


@pytest.mark.parametrize("noun", NOUNS.split())
def test_a_noun_is_found_with_any_particle_that_it_can_have(noun):
    has_final = (ord(noun[-1]) - 0xAC00) % 28 != 0
    for particle in (AFTER_CONSONANT if has_final else AFTER_VOWEL).split():
        assert features(noun)[0] == features(noun + particle)[0], particle


@pytest.mark.parametrize("noun", ["친구", "편지", "반지", "인가"])
def test_a_noun_with_only_is_the_noun(noun):
    assert set(features(noun)) & set(features(noun + "만"))


@pytest.mark.parametrize(("left", "right"), [("설정", "설명"), ("서버", "서울"), ("봤다", "갔다"), ("있다", "없다")])
def test_other_words_stay_apart(left, right):
    assert features(left) != features(right)


def test_the_features_are_the_marked_beginning_and_the_pairs_of_the_stem():
    assert features("데이터베이스에서") == ["^데", "데이", "이터", "터베", "베이", "이스"]
    assert features("값") == ["^값"]
    assert pairs("가") == pairs("") == []


def test_fine_features_keep_the_word_as_it_is_written():
    assert {"~^설", "~정을"} <= set(fine_features("설정을"))
    assert {"설", "정"} <= set(fine_features("설정을"))
    assert set(fine_features("설정을")) != set(fine_features("설정은"))


@pytest.mark.parametrize("suffix", GLUED.split())
def test_what_is_glued_to_a_foreign_word_is_no_word_of_its_own(suffix):
    assert is_suffix(suffix)
    assert tokens(f"API{suffix}") == ["api"]
    assert tokens(f"commit{suffix}") == ["commit"]


@pytest.mark.parametrize(("text", "found"), [("OS팀", ["os", "^팀"]), ("3시", ["3", "^시"]), ("10개", ["10", "^개"])])
def test_a_word_glued_to_a_foreign_word_or_a_number_stays(text, found):
    assert tokens(text) == found


def test_a_word_without_end_is_left_as_it_is():
    for word in ("설" * 32 + "을", "가나다라" * 10_000 + "에서는"):
        assert stem(word) == word
    assert stem("설" * 31 + "을") == "설" * 31


@pytest.mark.parametrize(
    "text", ["ㅋㅋㅋ", "ㅏ", "ㅠㅠ", "가ㅋ", "ᄀ", "ᆨᆨ", "한글abc", "a를", "語를", "👍를", "\u1161\u11ab다"]
)
def test_jamo_and_mixed_text_have_a_stem(text):
    assert stem(text)
    assert features(text)
    assert tokens(text)


def test_a_decomposed_word_has_the_stem_of_the_composed_one():
    assert stem(normalize("NFD", "설정에서는")) == "설정"
    assert tokens(normalize("NFD", "설정에서는")) == tokens("설정에서는")


# English


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("port 80", "port 80"),
        ("the λ of the Poisson process is 3", "the λ of the Poisson process is 3"),
        ("로그인에 다섯 번 실패하면 계정이 15분 동안 잠긴다.", "login five failure account 15 minute during lock ."),
        ("orders-api는 자바 21", "orders-api java 21"),
        # What follows is read too, and what comes after a part that is not known is left alone.
        ("결제내역을", "payment details"),
        ("결제모드설정", "payment"),
        # A word of one syllable counts alone, not at the beginning of another.
        ("돈을", "money"),
        ("돈까스", ""),
        ("支払いは三回", ""),
        ("", ""),
    ],
)
def test_a_text_as_an_english_model_reads_it(text, english):
    assert english_of(text) == english


def test_each_korean_word_has_one_english():
    rows = [line.split() for line in entries("gloss", "words")]
    counted = Counter(word for _, *words in rows for word in words)
    assert [word for word, count in counted.items() if count > 1] == []
    assert all("가" <= letter <= "힣" for word in counted for letter in word)
    assert all(english.isascii() and words for english, *words in rows)
