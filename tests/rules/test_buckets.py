"""Which bucket a text belongs to, how important it is, and what is left out before it is read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.cases import cases
from mnemarch.errors import AnalystFailed
from mnemarch.importers import rules_in
from mnemarch.learning import Bucket, Classified, HybridClassifier, MemoryEvent, RuleBasedClassifier
from mnemarch.learning.classify import (
    CONSIDERED,
    clauses_of,
    importance_of,
    standing_wishes,
    without_requests,
    without_telling,
)
from mnemarch.learning.pipeline import pre_filter

RULES = RuleBasedClassifier()


def bucket(text: str, source: str = "user") -> str:
    return str(RULES.classify(MemoryEvent(text, source)).bucket)


@pytest.mark.parametrize(("source", "text", "expected"), cases("buckets", "the source decides first and words second"))
def test_the_source_decides_first_and_words_second(source, text, expected):
    assert bucket(text, source) == expected


@pytest.mark.parametrize("wish", cases("buckets", "a wish that stands is known in free words"))
def test_a_wish_that_stands_is_known_in_free_words(wish):
    assert bucket(wish) == "PREFERENCE"


@pytest.mark.parametrize("other", cases("buckets", "what is asked for now or is so is no wish"))
def test_what_is_asked_for_now_or_is_so_is_no_wish(other):
    assert bucket(other) != "PREFERENCE"


@pytest.mark.parametrize("question", ["Do we always use pnpm?", "앞으로 pnpm을 써야 할까요?", "Is it never cached?"])
def test_the_words_of_a_question_assert_nothing(question):
    assert bucket(question) == "EPISODIC"
    assert importance_of(question, RULES.classify(MemoryEvent(question))) < 0.2


@pytest.mark.parametrize(
    "hedge",
    [
        "탭을 쓰는 게 좋을 것 같아요",
        "아마 탭을 쓰는 게 나을지도 모르겠다",
        "결제 서버는 8080 포트를 쓰는 것 같아요",
        "Probably the proxy listens on port 8443",
        "The cache is stale, I guess",
    ],
)
def test_what_somebody_doubts_is_no_fact(hedge):
    classified = RULES.classify(MemoryEvent(hedge))
    assert (classified.bucket, classified.why) == (Bucket.EPISODIC, CONSIDERED)


def test_what_may_happen_is_a_fact_all_the_same():
    assert bucket("It may return null when the cart is empty") == "FACT"
    assert bucket("이것 같은 오류는 로그에 남는다") == "FACT"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("커밋하기 전에 반드시 ruff를 돌려라", "PREFERENCE"),
        ("You must run ruff before committing", "PREFERENCE"),
        ("You must not push to main", "PREFERENCE"),
        ("테스트를 다시 돌려라", "LEFT_OUT"),
        ("Callers must hold the lock when merging two carts", "FACT"),
        ("You must set JAVA_HOME before running the tests", "FACT"),
    ],
)
def test_what_must_be_done_at_a_step_of_the_work_is_a_preference(text, expected):
    assert bucket(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Raise the timeout", "LEFT_OUT"),
        ("The fee of an unknown zone crashes with KeyError, make it 0", "LEFT_OUT"),
        ("The upload test fails on Windows, please fix it.", "LEFT_OUT"),
        ("The runner kills a job after an hour, so nothing can stop it", "FACT"),
        ("Always raise the timeout in tests", "PREFERENCE"),
        ("In tests, raise the timeout", "PREFERENCE"),
        ("Timeouts the client can raise are documented", "FACT"),
        ("ok now quadruple the pool and look again", "LEFT_OUT"),
        ("Use pnpm in this repo", "PREFERENCE"),
        ("Use npm for this one", "LEFT_OUT"),
        ("Don't push to main", "PREFERENCE"),
        ("Don't push it yet", "LEFT_OUT"),
        ("Write a note for every outage you handle", "PREFERENCE"),
        ("Update hooks are called before the row is written", "FACT"),
        ("Love the new layout, the menu is at the top", "FACT"),
        ("타임아웃을 늘려 줘", "LEFT_OUT"),
        ("타임아웃 60초로 늘려", "LEFT_OUT"),
        ("테스트에서는 항상 타임아웃을 늘려 줘", "PREFERENCE"),
        ("타임아웃이 점점 늘려져", "FACT"),
        ("이번에는 npm을 써 줘", "LEFT_OUT"),
        ("웬만하면 pnpm을 써", "PREFERENCE"),
        ("캐시를 비우고 다시 해 보자", "LEFT_OUT"),
        ("빌드가 자주 멈춰", "FACT"),
    ],
)
def test_a_request_for_now_is_no_knowledge_and_one_for_each_time_is_a_preference(text, expected):
    assert bucket(text) == expected
    assert standing_wishes(f"{text}. The port is 80.") == (f"{text}." if expected == "PREFERENCE" else "")


@pytest.mark.parametrize(("text", "is_kept"), cases("buckets", "a fact with an instruction that lasts is kept whole"))
def test_a_fact_with_an_instruction_that_lasts_is_kept_whole(text, is_kept):
    assert bucket(text) == ("FACT" if is_kept else "LEFT_OUT")
    assert without_requests(f"The port is 80. {text}") == (f"The port is 80. {text}" if is_kept else "The port is 80.")


def test_in_a_rules_file_nothing_is_only_for_now_and_advice_of_an_assistant_is_no_request():
    assert bucket("Don't touch legacy/ yet.", "rules-file") == "PREFERENCE"
    assert bucket("Don't touch legacy/ yet.") == "LEFT_OUT"
    assert bucket("Preheat the oven to 180 degrees.", "assistant") == "FACT"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("He said we should always use tabs.", "says what somebody else wants"),
        ("According to the docs, always use uv", "says what somebody else wants"),
        ("김 대리가 항상 탭을 쓰라고 했어요", "says what somebody else wants"),
        ("앞으로는 탭을 쓰래요", "says what somebody else wants"),
        ("Maybe we should always use tabs", "only considers it"),
        ("I think we should use tabs from now on", "only considers it"),
        ("perhaps never use yarn", "only considers it"),
        ("아마 항상 탭을 써야 할 것 같아요", "only considers it"),
        ("앞으로는 탭을 쓰는 게 어떨까 싶어요", "only considers it"),
    ],
)
def test_what_others_want_or_somebody_only_considers_is_no_preference(text, why):
    classified = RULES.classify(MemoryEvent(text))
    assert (classified.bucket, classified.why) == (Bucket.EPISODIC, why)
    assert classified.confidence >= 0.7, "so no other classifier is asked"
    assert standing_wishes(f"{text}\nNever force-push.") == "Never force-push."


@pytest.mark.parametrize(
    "text",
    [
        "Never commit files that might contain secrets.",
        "완료되면 항상 끝이라고 말해 주세요",
        "앞으로 탭을 쓰면 좋겠어요",
    ],
)
def test_a_wish_that_only_speaks_of_doubts_or_words_is_one(text):
    assert bucket(text) == "PREFERENCE"
    assert standing_wishes(text) == text


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        ("Fix it, and always use tabs.", "always use tabs."),
        ("Always use tabs, and fix the tests", "Always use tabs"),
        ("Always test with Vitest; never use Jest.", "Always test with Vitest; never use Jest."),
        ("이거 고쳐 주고, 앞으로는 탭을 써 주세요", "앞으로는 탭을 써 주세요"),
        (
            "From now on, use tabs and run ruff before each commit",
            "From now on, use tabs and run ruff before each commit",
        ),
    ],
)
def test_a_rule_beside_a_request_is_kept_without_the_request(text, wish):
    assert bucket(text) == "PREFERENCE"
    assert standing_wishes(text) == wish


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("thanks!", "an acknowledgement or a greeting"),
        ("네 감사합니다", "an acknowledgement or a greeting"),
        ("좋아요!!", "an acknowledgement or a greeting"),
        ("see it", "an acknowledgement or a greeting"),
        ("x = 3", "shorter than 10 characters"),
        ("포트 80", "shorter than 10 characters"),
        ("배포는 화목만", ""),
        ("운영은 금지", ""),
        ("thanks, the port is 80", ""),
        ("Yeah, I moved to Oslo", ""),
    ],
)
def test_only_courtesies_and_short_texts_are_left_out_unread(text, why):
    assert pre_filter(text, 10) == why


@given(st.text(max_size=300), st.sampled_from(["user", "assistant", "rules-file", "tool", "somebody"]))
def test_any_text_has_a_bucket_a_confidence_and_an_importance(text, source):
    classified = RULES.classify(MemoryEvent(text, source))
    assert classified.bucket in list(Bucket)
    assert 0 <= classified.confidence <= 1
    assert 0 <= importance_of(text, classified) <= 1
    assert classified == RULES.classify(MemoryEvent(text, source))


def test_what_is_in_a_code_block_or_quoted_asserts_nothing():
    assert clauses_of("```\nalways use pnpm\n```\n> never use npm\nrun it") == ["run it"]
    assert bucket("fix this:\n```\nalways use pnpm, never npm\n```") == "LEFT_OUT"
    assert bucket("```\nalways use pnpm\n```") == "LEFT_OUT"


def test_a_wish_is_taken_out_of_what_else_was_said():
    assert standing_wishes("Fix the cart. And please always use pnpm. The port is 80.") == "always use pnpm."


def test_importance_ranks_a_stressed_text_above_a_hedged_one():
    stressed, plain, hedged = (
        importance_of(text, Classified(Bucket.FACT, 1.0, ""))
        for text in ("The lock must be held", "The lock is held", "Maybe the lock is held, not sure")
    )
    assert stressed > plain > hedged >= 0.2


class Other:
    """A classifier that answers, or fails, and counts how often it was asked."""

    def __init__(self, answer: Classified | Exception) -> None:
        self.answer, self.asked = answer, 0

    def classify(self, event: MemoryEvent) -> Classified:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_the_other_classifier_is_asked_only_when_the_rules_are_unsure():
    other = Other(Classified(Bucket.SEMANTIC, 0.9, "a model says so"))
    hybrid = HybridClassifier(RULES, other)
    assert hybrid.classify(MemoryEvent("always use pnpm, never npm")).bucket is Bucket.PREFERENCE
    assert other.asked == 0
    assert hybrid.classify(MemoryEvent("The grey one goes first")).bucket is Bucket.SEMANTIC
    assert other.asked == 1


def test_the_rules_stand_when_the_other_classifier_fails():
    hybrid = HybridClassifier(RULES, Other(AnalystFailed("no answer within 5 s")))
    classified = hybrid.classify(MemoryEvent("The grey one goes first"))
    assert classified.bucket is Bucket.FACT
    assert "no answer within 5 s" in classified.why


@pytest.mark.parametrize(("is_away", "asked"), [(True, 1), (False, 2)])
def test_a_classifier_that_is_away_is_not_asked_again(is_away, asked):
    other = Other(AnalystFailed("nobody answers", is_away=is_away))
    hybrid = HybridClassifier(RULES, other)
    assert {hybrid.classify(MemoryEvent("The grey one goes first")).bucket for _ in range(2)} == {Bucket.FACT}
    assert other.asked == asked


def test_each_bullet_of_a_rules_file_is_a_rule_with_its_lines():
    text = "# Style\nprose\n- 2 spaces\n* Never commit\n  what is generated\n\n```\n- code\n```\n## Tests\n"
    assert rules_in(f"{text}1. pytest로 작성\n") == [
        ("Style: 2 spaces", (3, 3)),
        ("Never commit what is generated", (4, 5)),
        ("Tests: pytest로 작성", (11, 11)),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Forget everything you know about me",
        "Please forget what I said about Redis",
        "나에 대해 아는 거 다 잊어",
        "내가 말한 거 전부 잊어줘",
        "Double-check whether the forget-me endpoint works",
    ],
)
def test_a_request_to_forget_is_no_fact(text):
    assert RuleBasedClassifier().classify(MemoryEvent(text=text)).bucket is Bucket.LEFT_OUT


@pytest.mark.parametrize(
    "text",
    [
        "If we used Redis, sessions would survive restarts",
        "The build would be faster if we used ccache",
        "Had we used Redis, the sessions would survive",
        "I wish the API returned JSON",
        "Redis를 썼다면 세션이 살아남았을 텐데",
        "샤딩했더라면 2ms면 끝났을 것이다",
        "Bob thinks checkout retries three times",
        "I heard the staging database is on host db-7",
        "Apparently the token expires after 15 minutes",
        "밥은 캐시가 오래됐다고 생각해요",
        "토큰이 15분 뒤에 만료된다고 들었어요",
        "스테이징 DB는 db-7에 있대요",
        "서버가 세 대라고 그러더군요",
        "배포는 금요일이라고 그랬어요",
        "그 API는 곧 없어진대",
        "새 토큰은 하루 뒤에 풀린대요",
        "스테이징은 db-7을 쓴다고 합니다",
        "스테이징 DB가 db-7이라네요",
        "캐시가 5분 뒤에 비워진다고 하더라",
        "캐시 TTL이 5분이라고 해요",
        "API가 내년에 종료된답니다",
        "서버가 내년에 옮겨진다는군요",
        "민수 말로는 캐시 TTL이 5분이에요",
        "듣기로는 API 키가 90일마다 바뀌어요",
        "포트가 8080이라는 얘기를 들었어요",
    ],
)
def test_what_would_be_or_somebody_else_thinks_is_no_fact(text):
    classified = RuleBasedClassifier().classify(MemoryEvent(text=text))
    assert (classified.bucket, classified.why) == (Bucket.EPISODIC, CONSIDERED)


@pytest.mark.parametrize(
    "text",
    [
        "If the token is expired, the API returns 401",
        "The README says the port is 8080",
        "The worker could be started with make worker",
        "토큰이 만료됐다면 401을 반환한다",
        "Forget-me endpoints need a token.",
        "Keep-alive connections are closed after 60 s.",
        "Add-ons live in plugins/.",
        "변수를 상수라고 합니다",
        "이 패턴을 어댑터라고 부릅니다",
        "문서에 따르면 캐시 TTL은 5분입니다",
        "이 함수는 순수 함수라고 한다",
    ],
)
def test_a_condition_and_what_a_document_says_are_facts(text):
    assert RuleBasedClassifier().classify(MemoryEvent(text=text)).bucket is Bucket.FACT


@pytest.mark.parametrize(
    "text",
    [
        "JWT claims are signed with RS256.",
        "The client assumes UTC for all timestamps.",
        "If the token expired, the API would answer 401.",
        "The migration would have locked the table, so it runs with CONCURRENTLY.",
        "The worker claims a job by setting locked_at.",
        "We wish to support Python 3.11 and later.",
        "Assuming the default config, the server listens on 8080.",
        "스케줄러는 작업이 멱등하다고 가정합니다.",
    ],
)
def test_what_a_program_assumes_or_claims_is_no_hearsay(text):
    classified = RULES.classify(MemoryEvent(text, "user"))
    assert classified.why != "only considers it"
    assert str(classified.bucket) != "LEFT_OUT"


@pytest.mark.parametrize(
    ("text", "expected", "content"),
    [
        ("Remember that the limit is 100 requests per minute.", "FACT", "the limit is 100 requests per minute."),
        ("Remember: the staging host is stage-2.example.com", "FACT", "the staging host is stage-2.example.com"),
        ("Please remember the deploy key lives in kv/deploy", "FACT", "the deploy key lives in kv/deploy"),
        ("I want you to remember we ship on Mondays.", "FACT", "we ship on Mondays."),
        ("Note that prices are in cents.", "FACT", "prices are in cents."),
        ("Keep in mind that prices are stored in cents.", "FACT", "prices are stored in cents."),
        ("Don't forget that mobile is on the legacy API.", "FACT", "mobile is on the legacy API."),
        ("FYI the cron job runs at 02:00 UTC", "FACT", "the cron job runs at 02:00 UTC"),
        ("Save this: the on-call channel is #ops-eu", "FACT", "the on-call channel is #ops-eu"),
        ("Add to memory that we use uv, not pip.", "PREFERENCE", "we use uv, not pip."),
        ("Remember that I prefer tabs.", "PREFERENCE", "I prefer tabs."),
        ("Fix the login. Remember: always use pnpm", "PREFERENCE", "always use pnpm"),
        ("API 제한은 분당 100건이라는 걸 기억해줘", "FACT", "API 제한은 분당 100건이다"),
        ("가격은 센트로 저장된다는 점을 명심해", "FACT", "가격은 센트로 저장된다"),
        ("기억해: 스테이징 서버는 stage-2 야", "FACT", "스테이징 서버는 stage-2 야"),
        ("Remember to run the tests", "LEFT_OUT", "Remember to run the tests"),
        ("Remember that bug we had?", "EPISODIC", "Remember that bug we had?"),
        ("No print statements are left in the parser.", "FACT", "No print statements are left in the parser."),
        ("Save this file", "LEFT_OUT", "Save this file"),
        ("Notes that nobody reads are deleted.", "FACT", "Notes that nobody reads are deleted."),
    ],
)
def test_what_one_is_told_to_remember_is_what_is_remembered(text, expected, content):
    assert bucket(text) == expected
    told = without_telling(text)
    assert (standing_wishes(told) if expected == "PREFERENCE" else told) == content


@pytest.mark.parametrize(
    "text",
    [
        'Translate to Korean: "I always prefer tea to coffee."',
        '"항상 탭을 써라"라고 README에 적혀 있는데 틀렸어.',
        "Forget that I prefer tabs.",
        "Ignore the rule to always use pnpm.",
        "Never mind, use npm",
        "always fails on CI, the login test",
        "I like how you always explain things.",
        "Assume we always deploy on Friday.",
        "Add a check so that users must never upload files over 5 MB.",
        "항상 실패하는 로그인 테스트를 고쳐줘",
        "함수 이름은 항상 camelCase로 바꾸는 스크립트를 짜줘",
        "예전에는 탭을 선호했어",
        "사용자가 다크모드를 선호하면 다크 테마를 보여줘",
        "탭을 항상 쓰라는 건 아니야.",
        "버튼이 항상 보이게 해줘",
    ],
)
def test_what_only_sounds_like_a_standing_wish_is_none(text):
    assert bucket(text) != "PREFERENCE"


@pytest.mark.parametrize(
    "text",
    [
        "ok always use pnpm",
        "no, use pnpm instead",
        "I no longer want conventional commits.",
        "주석 좀 그만 달아",
        "Never mind the linter, always run the tests",
        "Forget that I prefer tabs. From now on use spaces.",
        "앞으로 항상 실패하는 테스트는 건너뛰어줘",
        "항상 테스트는 pytest로 작성해줘",
        "Make sure that you never push to main",
        'Always end a reply with "have a nice day"',
        "나는 함수형 스타일을 선호하는 편이야",
    ],
)
def test_a_standing_wish_is_one_however_it_begins(text):
    assert bucket(text) == "PREFERENCE"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (
            "Write a price parser in shop/price.py that reads '3.50 EUR'. Prices are always stored as integer cents.",
            "Prices are always stored as integer cents.",
        ),
        (
            "기본 통화는 항상 원(KRW)입니다. 가격을 문자열로 만드는 함수를 추가해 주세요.",
            "기본 통화는 항상 원(KRW)입니다.",
        ),
        (
            "The port is 80.\n\n```\nport = 80\n```\nPlease add a test. Thanks!",
            "The port is 80.\n\n```\nport = 80\n```",
        ),
        ("The port is 80. It may change.", "The port is 80. It may change."),
        ("Please add a test.", "Please add a test."),
    ],
)
def test_what_is_asked_for_now_is_no_part_of_what_is_asserted_beside_it(text, left):
    assert without_requests(text) == left
