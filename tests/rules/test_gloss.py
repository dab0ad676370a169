"""Korean word by word in English, for a model that knows no Korean."""

from collections import Counter

import pytest

from mnemarch.text.korean import english_of
from mnemarch.text.words import entries


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
