"""Which statements oppose each other (R6): the pairs that no rule was tuned on, and what must always hold."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemarch.text.canonical import canonical_key
from mnemarch.text.changes import change_of, ended
from mnemarch.text.opposition import breaks, opposes
from mnemarch.text.statements import statement, topic_key
from mnemarch.units.same_text import is_reworded

PAIRS = Path(__file__).parent.parent / "fixtures" / "statements.txt"
WORDS = (
    "The API uses Redis is not stored in `a_b` from 3 to 30s now no longer instead of port 8080 every Monday switched"
    " replaced with 세션은 에서 로 대신 더 이상 Postgres에 저장한다 하지 않는다 쓴다 이다 5번 것 수 있다"
)
STATEMENTS = st.lists(st.sampled_from(WORDS.split(" ")), max_size=12).map(" ".join) | st.text(max_size=40)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Tried raising the timeout to 30 s; still failed", "Tried raising the timeout to 60 s; still failed"),
        ("타임아웃을 30초로 올려 시도했지만 실패했다", "타임아웃을 60초로 올려 시도했지만 실패했다"),
    ],
)
def test_two_tries_are_two_events(a, b):
    assert opposes(a, b) is None
    assert opposes("The timeout is 30 s", "The timeout is 60 s") is not None


def pairs_in(path: Path) -> dict[str, list[tuple[str, str]]]:
    pairs: dict[str, list[tuple[str, str]]] = {}
    label = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            label = line.strip("[]")
        elif line and not line.startswith("#"):
            _, first, second = line.split("\t")
            pairs.setdefault(label, []).append((first, second))
    return pairs


def held_out() -> dict[str, list[tuple[str, str]]]:
    every = pairs_in(PAIRS).items()
    return {label: [pair for pair in pairs if zlib.crc32("\t".join(pair).encode()) % 2] for label, pairs in every}


def test_r6_the_pairs_of_the_other_half_are_told_apart():
    pairs = held_out()
    assert len(pairs["opposing"]) + len(pairs["compatible"]) > 100
    flagged = {
        label: sum(bool(opposes(a, b) or ended(a, b)) for a, b in of_label) / len(of_label)
        for label, of_label in pairs.items()
    }
    assert flagged["opposing"] >= 0.95
    assert flagged["compatible"] <= 0.03
    assert not [(a, b) for a, b in pairs["opposing"] if canonical_key(a) == canonical_key(b)]


def test_r6_what_is_worded_differently_is_found_without_false_alarms():
    pairs = pairs_in(PAIRS.with_name("statements_worded.txt"))
    flagged = {label: [pair for pair in pairs[label] if opposes(*pair) or ended(*pair)] for label in pairs}
    assert len(flagged["opposing"]) >= 0.68 * len(pairs["opposing"])
    assert flagged["compatible"] == []


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Use npm", "Use yarn"),
        ("We use pytest", "We use unittest"),
        ("Background jobs run on Celery", "We use Sidekiq for background jobs"),
        ("Emails are sent with tracking pixels", "Emails are sent without tracking pixels"),
        ("Set `DEBUG=1` in CI", "Set `DEBUG=0` in CI"),
        ("The rate limit is 100 requests per minute", "The rate limit is 100 requests per second"),
        ("캐시를 쓴다 😀", "캐시를 쓰지 않는다"),
        ("로그에 이메일을 남긴다 (운영)", "로그에 이메일을 남기지 않는다 (운영)"),
        ("Always use pnpm, never npm", "Use npm, not pnpm"),
        ("Merge with rebase, never with squash", "Merge with squash, never with rebase"),
        ("Avoid mocks in tests", "Use mocks in tests"),
        ("Errors are reported to Sentry", "Errors are reported to Rollbar"),
        ("We support Node 18 and up", "We support Node 22 and up"),
        ("We release every two weeks", "We release every month"),
        ("Only maintainers merge to main", "Anyone may merge to main"),
        ("재시작해도 세션이 유지된다", "재시작하면 세션이 사라진다"),
        ("주문 번호는 디비가 만든다", "주문 번호는 클라이언트가 만든다"),
        ("계획 회의는 월요일이다", "계획 회의는 수요일이다"),
        ("데일리는 9시 30분이다", "데일리는 10시다"),
        ("worker-1 has 4 GB", "worker-1 has 8 GB"),
        ("The leader is db-1", "The leader is db-2"),
    ],
)
def test_r6_one_thing_chosen_done_or_said_two_ways_is_a_conflict(left, right):
    assert topic_key(left) == topic_key(right)
    assert opposes(left, right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("The worker retries failed jobs automatically.", "Failed jobs are not retried by the worker."),
        ("The admin API requires a bearer token.", "No token is needed for the admin API."),
        ("Webhooks are not signed", "Webhooks are signed with HMAC"),
        ("Background jobs time out after 15 minutes.", "The timeout of background jobs is 10 minutes."),
        ("Main database is PostgreSQL.", "MySQL is the main database."),
        ("The dev server listens on port 3000.", "The dev server runs on port 5173."),
        ("The old snapshots are kept", "We delete old snapshots"),
        ("Config is read from `config.yaml`", "Configuration is read from `settings.toml`"),
        ("재시도는 최대 세 번 한다.", "재시도는 최대 다섯 번까지 한다."),
        ("The docs are built with Sphinx", "MkDocs builds the docs"),
        ("`find` returns `None` for unknown ids", "`find` raises `KeyError` for unknown ids"),
        ("업로드 파일은 S3에 둔다", "업로드 파일은 로컬 디스크에 보관한다"),
        ("감사 로그는 90일 동안 보관한다.", "감사 로그 보관 기간은 1년이다."),
    ],
)
def test_r6_what_is_said_in_other_words_or_with_more_of_them_is_compared(left, right):
    assert opposes(left, right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Tests need Docker", "Unit tests do not need Docker"),
        ("The gateway times out after 10 seconds", "The mobile gateway times out after 60 seconds"),
        ("The worker has 4 threads", "The worker pool has 12 threads"),
        ("Emails are sent through Mailgun", "In production, emails are sent through SES"),
        ("The client retries after 10 seconds", "The client retries three times"),
        ("The service depends on Redis", "The service depends on Postgres"),
        ("We deploy to Render", "We deploy from the `release` branch"),
        ("Feature flags live in LaunchDarkly", "Feature flags are disabled by default"),
        ("`load_users` returns a list", "`load_user` returns a dict"),
        ("테스트는 병렬로 돌린다", "통합 테스트는 병렬로 돌리지 않는다"),
    ],
)
def test_r6_an_exception_a_narrower_case_and_two_things_are_no_conflict(left, right):
    assert opposes(left, right) is None


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Never block the event loop", "Don't block the event loop"),
        ("Ask Dana about billing", "Ask Lee about search"),
        ("The bug was seen in Chrome", "The bug was seen in Firefox"),
        ("이 함수는 경고가 난다", "이 함수는 에러가 난다"),
        ("월요일에는 배포한다", "금요일에는 배포하지 않는다"),
    ],
)
def test_r6_two_ways_to_say_it_and_two_things_are_none(left, right):
    assert opposes(left, right) is None


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Sessions are stored in Redis", "We switched from Redis to Postgres for sessions"),
        ("The parser accepts tabs", "The parser no longer accepts tabs"),
        ("Docs are built with Sphinx", "We replaced Sphinx with MkDocs for docs"),
        ("The admin UI is built with Angular", "The admin UI no longer uses Angular"),
        ("The limit is 10", "The limit is now 20"),
        ("세션은 Redis에 저장한다", "세션 저장소를 Redis에서 Postgres로 바꿨다"),
        ("파서는 탭을 읽는다", "파서는 더 이상 탭을 읽지 않는다"),
    ],
)
def test_r6_an_announced_change_ends_what_it_changed(older, newer):
    assert ended(older, newer).kind == "change"
    assert ended(newer, older) is None
    assert ended("Invoices are printed at night", newer) is None


@given(STATEMENTS, STATEMENTS)
def test_an_opposition_is_the_same_from_either_side(left, right):
    ours, theirs = opposes(left, right), opposes(right, left)
    assert (ours is None) == (theirs is None)
    assert ours is None or (ours.kind, ours.left, ours.right) == (theirs.kind, theirs.right, theirs.left)


@given(STATEMENTS)
def test_nothing_opposes_or_ends_itself(text):
    assert opposes(text, text) is None
    assert ended(text, text) is None
    assert change_of(text) is None or statement(text)


@pytest.mark.parametrize(
    ("text", "rule", "is_broken"),
    [
        ("Money is stored as floats", "All money is stored as integers in cents", True),
        ("Store money as floats", "All money is stored as integers in cents", True),
        ("금액은 실수로 저장한다", "모든 금액은 센트 단위 정수로 저장한다", True),
        ("Payments are retried 3 times", "Payments are never retried", True),
        ("Money is stored as integers", "All money is stored as integers in cents", False),
        ("All prices are stored as floats", "All money is stored as integers in cents", False),
        ("Use tabs", "Rule 1: use spaces", False),
        ("lock number 8: builds are reproducible", "lock number 7: builds are reproducible", False),
    ],
)
def test_r12_a_rule_is_broken_by_what_is_said_of_more_or_less_than_it(text, rule, is_broken):
    assert bool(breaks(text, rule)) is is_broken
    assert bool(breaks(rule, text)) is is_broken


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("The gateway uses Envoy", "The gateway uses mutual TLS"),
        ("The build uses Docker", "The build uses a layer cache"),
        ("The dashboard uses Vue", "The dashboard uses Frobnitz"),
        ("Use npm", "Use Postgres"),
        ("The worker runs on Kubernetes", "The worker uses Celery"),
        ("The call at 10:15 took 220 ms", "The call at 10:20 took 640 ms"),
        ("`run()` returns a list", "`run()` raises ValueError"),
        ("The crash happens in Firefox", "The crash happens in Safari"),
        ("워커는 Redis를 사용한다", "워커는 메모리 2GB를 사용한다"),
        ("iOS ✅", "iOS ❌"),
        ("The port of service-1 is 8001", "The port of service-2 is 8002"),
        ("worker-1 has 4 GB", "worker-2 has 8 GB"),
        ("v1 retries 3 times", "v2 retries 5 times"),
        ("service-1의 포트는 8001이다", "service-2의 포트는 8002이다"),
    ],
)
def test_r6_names_of_two_kinds_and_things_of_a_series_go_together(left, right):
    assert (opposes(left, right), ended(left, right), ended(right, left)) == (None, None, None)
    assert not is_reworded(left, right)


@pytest.mark.parametrize("noun", ["Fact", "Shard", "Row", "Widget", "Server", "Node", "Gate", "Milestone"])
@pytest.mark.parametrize("said", ["stands alone", "is slow", "builds the image", "has a printer", "was skipped"])
def test_r6_things_that_are_told_apart_by_their_numbers_do_not_dispute(noun, said):
    assert opposes(f"{noun} 3 {said}", f"{noun} 4 {said}") is None


def test_r12_a_rule_is_broken_by_nothing_that_is_compatible():
    assert not [pair for pair in held_out()["compatible"] if breaks(*pair)]
