"""What a test expects in place of what a claim says."""

from __future__ import annotations

import re

import pytest

from mnemarch.code.expectations import expectations_in, other_value

TRIES = "def test_retry():\n    assert checkout.TRIES == 5\n"
EMPTY = "def test_parse_empty():\n    with pytest.raises(ValueError):\n        parse('')\n"
TIMEOUT = "def test_timeout():\n    assert settings.timeout_ms == 30_000\n"
BROKEN = "def test_broken_token():\n    assert login('x').status_code == 401\n"
VALID = "def test_empty_cart():\n    assert is_valid([]) is True\n"
GO = "func TestRetry(t *testing.T) {\n\tif got := Retries(); got != 5 {\n\t\tt.Fatal(got)\n\t}\n}"
JEST = "it('keeps items', () => {\n  expect(cart.items.length).toBe(12);\n});"
NODE = "test('retries', () => { assert.equal(retries(), 5); });"
RUST = "fn retry_works() {\n    assert_eq!(retries(), 5);\n}"
JUNIT = "void retries() {\n    assertEquals(5, client.retries());\n}"


def seen(claim, source):
    name = next(iter(re.findall(r"(?:def|func|fn|void) (\w+)|'([^']+)'", source)), ("", ""))
    return other_value(claim, "".join(name), expectations_in(source, source))


@pytest.mark.parametrize(
    ("claim", "source", "expected"),
    [
        ("Checkout retries 8 times", TRIES, "5"),
        ("결제는 8번 재시도한다", TRIES.replace("checkout", "payment.retry"), "5"),
        ("retries 8 times", GO, "5"),
        ("retries 8 times", NODE, "5"),
        ("retries 8 times", RUST, "5"),
        ("The client retries 8 times", JUNIT, "5"),
        ("The cart keeps 20 items", JEST, "12"),
        ("Checkout retries six times", TRIES, "5"),
        ("Checkout tries four times", "def test_tries():\n    assert checkout.tries == 5\n", "5"),
        ("checkout.TRIES is 6", TRIES, "5"),
        ("checkout.TRIES는 6이다", TRIES, "5"),
        ("결제는 여섯 번 재시도한다", TRIES, "5"),
        ("The timeout is 20 seconds", TIMEOUT, "30_000"),
        ("parse returns None on empty input", EMPTY, "ValueError"),
        ("parse는 빈 입력에 None을 반환한다", EMPTY, "ValueError"),
        ("parse raises KeyError on empty input", EMPTY, "ValueError"),
        ("A broken token is answered by 404", BROKEN, "401"),
        ("깨진 토큰에는 404로 응답한다", BROKEN, "401"),
        ("is_valid returns False", VALID, "True"),
        ("is_valid는 항상 False를 반환한다", VALID, "True"),
    ],
)
def test_a_test_that_compares_with_another_value_says_something_else(claim, source, expected):
    assert seen(claim, source) == expected


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("Checkout retries five times", TRIES),
        ("결제는 다섯 번 재시도한다", TRIES.replace("checkout", "payment.retry")),
        ("Checkout does not retry 8 times", TRIES),
        ("Invoices are kept for 8 years", TRIES),
        ("Checkout retries 8 times", TRIES.replace("== 5", "== 5  # of 8")),
        ("Checkout retries 8 times", TRIES.replace("==", "!=")),
        ("Checkout retries 8 times", TRIES.replace("assert", "x =")),
        ("The timeout is 30 seconds", TIMEOUT),
        ("타임아웃은 0.5분이다", TIMEOUT),
        ("parse raises ValueError on empty input", EMPTY),
        ("parse raises an error and returns nothing", EMPTY),
        ("parse raises UnicodeError on empty input", EMPTY),
        ("parse raises ParseError on empty input", EMPTY),
        ("parse rejects empty input", EMPTY),
        ("Login is limited to 5 attempts", BROKEN),
        ("Login answers 401 to a broken token", BROKEN),
        ("is_valid returns True for an empty cart", VALID),
        ("is_valid returns False for a full cart", VALID + "    assert is_valid([1]) is False\n"),
        # A result that is computed from an example says nothing about a number of the rule.
        ("A page has 20 items", "def test_page():\n    assert len(page(range(45), 3).items) == 5\n"),
        ("A page has 20 items", "def test_page():\n    last = page(range(45), 3)\n    assert len(last.items) == 5\n"),
        ("The discount is 10 %", "def test_discount():\n    assert price(CART) == 90\n"),
        ("The discount is 10 %", "def test_vip_discount(cart):\n    assert cart.discount == 90\n"),
        ("Checkout retries for 8 seconds", "def test_attempts():\n    assert checkout.retries == 3\n"),
        ("Checkout retries four times", "def test_attempts():\n    assert checkout.attempts == 5\n"),
        ("The pool size is at most 50", "def test_pool_size():\n    assert pool.size == 10\n"),
        ("The pool size may grow to 50", "def test_pool_size():\n    assert pool.size == 10\n"),
        ("풀 크기는 50 미만이다", "def test_pool_size():\n    assert pool.size == 10\n"),
        ("The key size is 256 bits", "def test_key_size():\n    assert key.size == 32\n"),
        ("is_valid returns False for members", VALID),
        ("멤버이면 is_valid는 False를 반환한다", VALID),
        ("A token is answered with 200 when it is fresh", BROKEN),
        ("Names over 17 characters are cut", "def test_names():\n    assert names.characters == 18\n"),
        ("The shop TAX is 19%", "def test_tax():\n    assert shop.TAX == 0.19\n"),
        ("The upload limit is 10 MiB", "def test_upload_limit():\n    assert shop.upload_limit == 10485760\n"),
        ("The port is 255", "def test_port():\n    assert settings.port == 0xff\n"),
        ("As of 2024 the plans are counted", "def test_plans():\n    assert shop.plans == 5\n"),
        ("fetch fails if the server returns 503", "def test_fetch():\n    assert run().exit_code == 4\n"),
        ("The hook answers 200 in the end", "def test_hook():\n    assert order.status == 'paid'\n"),
        ("The API returns 404 rows", BROKEN),
        ("delete returns True only if it was there", "def test_delete():\n    assert delete('x') is False\n"),
        ("checkout gives up after 3 tries", "def test_try():\n    with raises(ConnectionError):\n        try_it()\n"),
        ("Returns are accepted for 14 days", "def test_return():\n    with raises(ValueError):\n        give_back()\n"),
        ("load turns an OSError into its own", "def test_load():\n    with raises(RuntimeError):\n        load()\n"),
        ("The batch is written in 8 parts", "def test_batch():\n    assert batch.commits == 1\n"),
        ("", TRIES),
        ("Checkout retries 8 times", ""),
    ],
)
def test_a_test_that_may_well_show_a_claim_does_not_oppose_it(claim, source):
    assert seen(claim, source) == ""
