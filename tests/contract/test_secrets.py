"""Secrets never reach the disk, and the receipt says what was taken out."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest

import mnemarch
from mnemarch import Actor, Citation, Claim, Entry, Scope
from mnemarch.config import config_from

# Put together here, so that no scanner mistakes this file for a leak.
AWS = "AKIA" + "IOSFODNN7" + "ZQXWVUT"
GITHUB = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
URL = "postgresql://admin:" + "s3cr3tPassw0rd" + "@db.example.com/shop"
TOLD = "my password is " + "qwer9878zz"
KOREAN = "API 키: " + "9f86d081884c7d659a2f"
SECRETS = {
    "aws": (AWS, AWS),
    "github": (GITHUB, GITHUB),
    "url": (URL, "s3cr3tPassw0rd"),
    "told": (TOLD, "qwer9878zz"),
    "korean": (KOREAN, "9f86d081884c7d659a2f"),
}


def bytes_on_disk(folder):
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def memory(home):
    with mnemarch.open(home) as memory:
        yield memory


@pytest.fixture
def seat(memory):
    return memory.seat(Actor.agent("a"), Scope(project="p", worktree="w", task="t"))


WAYS = {
    "log text": lambda seat, text: seat.log("tool", f"ran with {text} ok"),
    "log kind": lambda seat, text: seat.log(f"kind {text}", "text"),
    "log data": lambda seat, text: seat.log("tool", "ran", data={"out": [text, {"deep": text}]}),
    "log data key": lambda seat, text: seat.log("tool", "ran", data={text: 1}),
    "log data tuple": lambda seat, text: seat.log("tool", "ran", data={"args": ("run", text)}),
    "log data deep tuple": lambda seat, text: seat.log("tool", "ran", data={"args": [({"x": (text,)},)]}),
    "log data json": lambda seat, text: seat.log(
        "tool", "ran", data={"raw": json.dumps({"out": text}, ensure_ascii=False)}
    ),
    "log_many": lambda seat, text: seat.log_many([Entry("tool", "x"), Entry("tool", f"y {text}")]),
    "log key": lambda seat, text: seat.log("tool", "ran", key=f"run-{text}"),
    "log session": lambda seat, text: seat.log("tool", "ran", session=f"s-{text}"),
    "remember": lambda seat, text: seat.remember(f"The key is {text} now"),
    "remember attributes": lambda seat, text: seat.remember("Some fact", attributes={"a": [text]}),
    "remember attributes tuple": lambda seat, text: seat.remember("Some fact", attributes={"a": (text,)}),
    "remember domain": lambda seat, text: seat.remember("Some fact", domain=f"d {text}"),
    "remember citation": lambda seat, text: seat.remember("Some fact", citations=[Citation.test(f"test[{text}]")]),
    "remember refused": lambda seat, text: seat.remember(f"The key is {text} now", level="project"),
    "remember_many": lambda seat, text: seat.remember_many([Claim(content=f"The key is {text} now")]),
    "verify tests": lambda seat, text: seat.verify(True, tests=[f"test[{text}]"]),
    "verify analysis": lambda seat, text: seat.verify(
        True, analysis={"critique": f"used {text}", "result": {"x": text}, "key_decisions": [text]}
    ),
    "cite": lambda seat, text: seat.cite(seat.remember("Some fact").unit.id, Citation.test(f"t-{text}")),
    "recall": lambda seat, text: seat.recall(f"what is {text}"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_secret_never_reaches_the_disk(home, memory, way):
    for project, (text, _) in SECRETS.items():
        seat = memory.seat(Actor.agent("a"), Scope(project=project, worktree="w", task="t"))
        seat.remember("An innocent fact to search for")
        with suppress(mnemarch.InvalidInput):  # Refused is as good as redacted.
            WAYS[way](seat, text)
        seat.recall("innocent fact")
    memory.reindex()
    kept = bytes_on_disk(home)
    assert [secret for secret, (_, hidden) in SECRETS.items() if hidden.encode() in kept] == []
    assert memory.audit().ok
    assert memory.rebuild().same


@pytest.mark.parametrize("secret", SECRETS)
def test_the_receipt_lists_the_redacted_kinds(seat, secret):
    text, hidden = SECRETS[secret]
    for receipt in (
        seat.log("tool", f"ran with {text}"),
        seat.log("tool", "ran", data={"out": text}),
        seat.remember(f"The key is {text} now").receipt,
        seat.remember(f"Another key is {text} now", level="project").receipt,
    ):
        assert receipt.redacted
        assert all(isinstance(kind, str) and hidden not in kind for kind in receipt.redacted)
    (unit,) = seat.units()
    assert hidden not in unit.content
    assert "[REDACTED" in unit.content
    assert seat.log("tool", "nothing to hide").redacted == ()


def test_a_key_stands_for_the_redacted_entry_too(seat):
    first = seat.log("tool", f"ran with {AWS}", key="k")
    again = seat.log("tool", f"ran with {AWS}", key="k")
    assert again.duplicate
    assert again.event_id == first.event_id
    claim = seat.remember(f"The key is {AWS} now", key="r")
    assert seat.remember(f"The key is {AWS} now", key="r").receipt.event_id == claim.receipt.event_id


def test_an_assigned_password_in_data_is_taken_out(home, seat):
    seat.log("tool", "ran", data={"env": {"DB_PASSWORD": "hunter2" + "-swordfish-9"}})
    seat.verify(True, analysis={"result": {"password": "hunter2" + "-swordfish-9"}})
    assert b"swordfish-9" not in bytes_on_disk(home)


def test_a_refused_reason_and_a_policy_refusal_keep_secrets_out(home, memory, seat):
    unit = seat.remember("Some fact").unit
    human = memory.seat(Actor.human("h"), seat.scope)
    human.reject(unit.id, f"it held {GITHUB}")
    with pytest.raises(mnemarch.NotAllowed):
        seat.archive(unit.id, f"it held {GITHUB}")
    assert GITHUB.encode() not in bytes_on_disk(home)


def test_text_without_secrets_is_not_redacted(seat):
    text = "The token bucket holds 40 tokens; the secret of good retries is jitter (see password-reset.md)"
    receipt = seat.log("note", text)
    assert receipt.redacted == ()
    assert seat.remember(text).unit.content == text


def test_a_secret_in_a_text_over_the_limit_is_not_in_the_error(home):
    with mnemarch.open(home, config=config_from({"limits": {"text_bytes_max": 100}})) as memory:
        seat = memory.seat(Actor.agent("a"), Scope(project="p", task="t"))
        with pytest.raises(mnemarch.InvalidInput) as caught:
            seat.log("tool", AWS * 10)
        assert AWS not in str(caught.value)
    assert AWS.encode() not in bytes_on_disk(home)
