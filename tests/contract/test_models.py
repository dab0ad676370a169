"""Models through the real SDKs, over a socket: what they answer, how they fail, what it costs, where a key goes."""

from __future__ import annotations

import json

import pytest
from model_server import BODIES, ModelServer, anthropic_body, openai_body

from mnemarch.config import AnalystRules
from mnemarch.learning.analyst import ApiModel, misfit

SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "number"}, "words": {"type": "array", "items": {"type": "string"}}},
    "required": ["score", "words"],
    "additionalProperties": False,
}
GOOD = json.dumps({"score": 0.5, "words": ["a"]})
SOON = {"retry-after-ms": "1"}
KEY = "key-of-this-test-alone"


@pytest.fixture
def server():
    started = ModelServer()
    yield started
    started.close()


@pytest.fixture(params=["openai", "anthropic"])
def api(request):
    return request.param


def rules(server, api, **settings) -> AnalystRules:
    usual = {"price_input": 1.0, "price_output": 10.0, "timeout_s": 5.0, "retries_max": 1}
    return AnalystRules(api=api, model="fake-1", base_url=server.url, **(usual | settings))


def asked(server, api, *script, key=KEY, left=None, **settings):
    server.script = list(script)
    return ApiModel(rules(server, api, **settings), key).ask("Say it.", "some data", SCHEMA, **(left or {}))


def test_an_answer_of_the_schema_comes_with_what_it_cost(server, api):
    reply = asked(server, api, BODIES[api](GOOD))
    assert reply.answer == {"score": 0.5, "words": ["a"]}
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.money) == (1000, 200, 0.003)
    [(path, headers, body)] = server.requests
    assert path == {"openai": "/v1/chat/completions", "anthropic": "/v1/v1/messages"}[api]
    assert headers["authorization" if api == "openai" else "x-api-key"].endswith(KEY)
    form = body["response_format"]["json_schema"] if api == "openai" else body["output_config"]["format"]
    assert form["schema"] == SCHEMA
    assert body["max_tokens"] == 2000


@pytest.mark.parametrize(
    "bad",
    [
        "not JSON",
        "{",
        "[1]",
        "[" * 10_000,
        '{"score": 1}',
        '{"score": "high", "words": []}',
        '{"score": NaN, "words": []}',
        '{"score": true, "words": []}',
        '{"score": 1, "words": [], "verified": true}',
    ],
)
def test_an_answer_that_does_not_fit_is_asked_for_once_more(server, api, bad):
    repaired = asked(server, api, BODIES[api](bad), BODIES[api](f"```json\n{GOOD}\n```"))
    assert repaired.answer is not None
    assert repaired.usage.tokens == 2400
    assert "can't be used" in server.requests[1][2]["messages"][-1]["content"]
    server.requests.clear()
    failed = asked(server, api, BODIES[api](bad))
    assert (failed.answer, failed.error.is_away, len(server.requests)) == (None, False, 2)
    assert failed.usage.tokens == 2400


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again_after_the_wait_it_names(server, api, status):
    reply = asked(server, api, (status, SOON, {"error": {"message": "busy"}}), BODIES[api](GOOD))
    assert reply.answer is not None
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ((429, SOON, {"error": {"message": "slow down"}}), "status 429"),
        ((429, {"retry-after": "100000"}, {}), "status 429"),
        ((500, SOON, b"<html>oops"), "status 500"),
        ((401, {}, {"error": {"message": f"bad key {KEY}"}}), "status 401"),
        ((302, {"location": "http://127.0.0.1:9/"}, b""), "status 302"),
        ((200, SOON, b'{"choices": [{"message"'), "not an answer of its API"),
        ((200, SOON, b"\xff\xfe"), "not an answer of its API"),
        ((200, SOON, {"choices": [], "content": 5}), "not an answer of its API"),
        ((200, SOON, []), "not an answer of its API"),
    ],
)
def test_a_server_that_fails_is_away_and_its_error_tells_no_key(server, api, step, says):
    reply = asked(server, api, step)
    assert reply.error.is_away
    assert says in reply.error.message
    assert KEY not in str(reply.error)


@pytest.mark.parametrize(
    ("trouble", "says"),
    [
        ("silence", "did not answer within 0.3 s"),
        ((200, {}, "drip"), "did not answer within 0.3 s"),
        ((200, {}, "cut"), "can't be reached"),
    ],
    ids=str,
)
def test_a_server_that_hangs_drips_or_breaks_off_is_given_up(server, api, trouble, says):
    reply = asked(server, api, trouble, timeout_s=0.3, retries_max=0)
    assert reply.error.is_away
    assert says in reply.error.message


def test_an_address_where_nobody_listens_is_away(api):
    closed = ModelServer()
    closed.close()
    assert asked(closed, api, {}, retries_max=0).error.is_away


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (openai_body(None, refusal="I can't."), "refused"),
        (openai_body("", "content_filter"), "refused"),
        (openai_body('{"sco', "length"), "cut off"),
        (openai_body(""), "empty"),
        (anthropic_body("", "refusal"), "refused"),
        (anthropic_body('{"sco', "max_tokens"), "cut off"),
        (anthropic_body(""), "empty"),
    ],
)
def test_a_refusal_or_a_cut_answer_is_unusable_and_not_asked_for_again(server, body, says):
    reply = asked(server, "openai" if "choices" in body else "anthropic", body)
    assert says in reply.error.message
    assert (reply.error.is_away, len(server.requests), reply.usage.tokens) == (False, 1, 1200)


def test_without_a_count_of_tokens_an_estimate_is_charged(server):
    reply = asked(server, "openai", openai_body(GOOD, usage=None))
    assert reply.usage.input_tokens > 50
    assert reply.usage.output_tokens > 5


@pytest.mark.parametrize("left", [{"tokens_left": 2_000}, {"money_left": 0.02}])
def test_nothing_is_asked_that_may_go_over_the_budget(server, api, left):
    reply = asked(server, api, BODIES[api](GOOD), left=left)
    assert "budget" in reply.error.message
    assert (server.requests, reply.usage.tokens) == ([], 0)


def test_no_key_and_no_header_from_the_environment_is_sent_unless_it_was_handed_in(server, api, monkeypatch):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "env-secret")
    for name in ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.setenv(name, "x-secret: env-secret\nAuthorization: env-secret")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    assert asked(server, api, BODIES[api](GOOD), key=None).answer is not None
    assert asked(server, api, BODIES[api](GOOD)).answer is not None
    without, with_key = (headers for _, headers, _ in server.requests)
    assert "env-secret" not in str(without) + str(with_key)
    assert "authorization" not in without
    assert "x-api-key" not in without
    assert KEY in str(with_key)


def test_a_redirect_is_not_followed(server, api):
    other = ModelServer()
    other.script = [BODIES[api](GOOD)]
    try:
        reply = asked(server, api, (307, {"location": f"{other.url}/chat/completions"}, b""))
        assert reply.error.is_away
        assert other.requests == []
    finally:
        other.close()


def test_a_missing_sdk_says_what_to_install(server, api, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, api, None)
    assert asked(server, api, {}).error.hint == f"Install it with: pip install 'mnemarch[{api}]'"


def test_a_choice_outside_of_its_list_is_a_misfit():
    assert misfit("c", {"type": "string", "enum": ["a", "b"]}, "it") == "it must be one of a, b"


@pytest.mark.parametrize(
    ("trouble", "settings"),
    [("silence", {"timeout_s": 0.3, "retries_max": 0}), ((200, SOON, []), {"retries_max": 0})],
    ids=["no answer in time", "not an answer of its API"],
)
def test_what_may_have_been_charged_is_counted(server, api, trouble, settings):
    reply = asked(server, api, trouble, **settings)
    assert reply.usage.input_tokens > 50
    assert reply.usage.money == reply.usage.input_tokens / 1_000_000


@pytest.mark.parametrize("wait", ["61", "100000", "Wed, 21 Oct 2076 07:28:00 GMT", "-1", "soon"])
def test_nobody_waits_for_a_server_that_asks_for_more_than_a_minute(server, api, wait):
    reply = asked(server, api, (429, {"retry-after": wait}, {}), BODIES[api](GOOD))
    assert (reply.error.is_away, len(server.requests)) == (True, 1)
