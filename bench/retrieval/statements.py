"""Statements as an engineer would note them, made from word lists: any number, all different, the same on every run."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

_THINGS = """
invoice order session token cart payment webhook report upload audit search stock shipment refund coupon profile
login queue cache index ledger schema tenant quota rate price discount catalog image video message mailbox calendar
contract employee payroll warehouse supplier carrier route vehicle sensor reading alert metric trace span digest
signature certificate password secret permission role policy rule gate review comment branch commit release deploy
pipeline artifact container cluster shard replica snapshot backup archive stream topic partition consumer producer
batch job schedule retry timeout lock lease cursor page filter query migration column table row document template
translation locale currency tax region address customer visitor survey campaign banner subscription plan trial
"""
_DOES = """
retries caches validates batches signs rounds queues compresses throttles encrypts copies merges splits rejects delays
flushes rotates truncates duplicates archives restores indexes paginates escapes normalises serialises streams locks
drops reorders skips measures counts samples forwards redirects rewrites renders polls refreshes
"""
_HOW = """
stale nightly partial expired nested unsigned oversized pending failed shared remote local empty legacy internal public
hidden sorted broken manual urgent frozen regional archived encrypted temporary orphaned signed minor default
"""
_CAUSES = (
    "the driver gives up early",
    "the vendor changed its limits",
    "two workers raced for it",
    "the clock of the host drifts",
    "memory ran out at night",
    "nobody cleared the flag",
    "the old client still asks for it",
    "the proxy cuts long requests",
    "a test relied on the order",
    "the disk was nearly full",
    "finance asked for it",
    "the specification says so",
)
_TEAMS = """
Mina Jonas Priya Tomas Aiko Lena Omar Ruth Diego Sana Erik Wei platform billing search mobile growth security
"""
_WORDS = {words: words.split() for words in (_THINGS, _DOES, _HOW, _TEAMS)}


@dataclass(frozen=True)
class Statement:
    """One note, and a question that it answers."""

    text: str
    question: str


def statements(count: int, seed: int = 20_251) -> list[Statement]:
    """Common words are common and names are rare, as in real notes, so that a question finds few of them."""
    chance = random.Random(seed)
    return [_statement(chance, number) for number in range(count)]


def _statement(chance: random.Random, number: int) -> Statement:
    one, other, third, left, right = (_some(chance, _WORDS[_THINGS]) for _ in range(5))
    does, how, team = (_some(chance, _WORDS[words]) for words in (_DOES, _HOW, _TEAMS))
    cause = _some(chance, _CAUSES)
    name, ticket = f"{left}_{right}", f"{one[:2].upper()}-{number}"
    form, few = chance.randrange(4), chance.randrange(2, 900)
    if form == 0:
        text = f"{one} service {does} every {how} {other} in {name}.py since {cause}, see {ticket}"
    elif form == 1:
        text = f"{team} found that {name} {does} the {how} {other} of each {third} because {cause} ({ticket})"
    elif form == 2:
        text = f"Before a {one} {does} its {other}, call {name}() on the {how} {third}: {cause}, {ticket}"
    else:
        text = f"{name} keeps {few} {how} {other} entries for {team}; it {does} {one} when {cause}, {ticket}"
    return Statement(text, f"what do we know about {name} that {does} the {how} {other}?")


def _some(chance: random.Random, words: Sequence[str]) -> str:
    return words[int(len(words) * chance.random() ** 1.5)]
