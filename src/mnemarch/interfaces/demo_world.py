"""The tiny shop that the demo's agents work on: a real git repository with two worktrees, and tests that really run."""

from __future__ import annotations

import os
import shutil

from mnemarch.code.git import git, head
from mnemarch.model.value import value

PROJECT = "shop"
TESTS = "tests/test_shop.py"

_FILES = {
    "mnemarch.toml": f'project = "{PROJECT}"\n',
    "shop/__init__.py": '"""A tiny shop."""\n',
    "shop/checkout.py": '''"""Paying, refunding and pricing."""

TRIES_MAX = 3


class PaymentTimeout(Exception):
    """The bank did not answer in time."""


def pay(charge):
    """Charge a card; a timed-out payment is tried again."""
    for _ in range(TRIES_MAX):
        try:
            return charge()
        except PaymentTimeout:
            continue
    raise PaymentTimeout


def refund(minor_units):
    if not isinstance(minor_units, int):
        raise TypeError("money is counted in whole minor units")
    return -minor_units


def cart_total(prices):
    return int(sum(prices))


def order(stock, item, charge):
    stock[item] -= 1
    charge()


def voucher(code, known):
    return known.get(code.casefold())


def price_after(price, coupons):
    """Only the best coupon counts."""
    return price - max(coupons, default=0)
''',
    TESTS: """import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from shop import checkout


def test_retry():
    tries = []

    def charge():
        tries.append(1)
        raise checkout.PaymentTimeout

    try:
        checkout.pay(charge)
    except checkout.PaymentTimeout:
        pass
    assert len(tries) == 3


def test_refund_in_minor_units():
    assert checkout.refund(1250) == -1250


def test_cart_total_is_cut_off():
    assert checkout.cart_total([1000.6, 2000.3]) == 3000


def test_stock_first():
    stock = {"cup": 1}
    seen = []
    checkout.order(stock, "cup", lambda: seen.append(stock["cup"]))
    assert seen == [0]


def test_voucher_ignores_case():
    assert checkout.voucher("SPRING", {"spring": 5}) == 5


def test_coupons_combine():
    assert checkout.price_after(100, [10, 5]) == 85
""",
}


@value
class World:
    """Where everything is. `in_git` is False where the git program is missing: then the worktrees are plain copies."""

    folder: str
    desk: str
    other_desk: str
    commit: str | None
    in_git: bool


def made_world(folder: str) -> World:
    """Write the shop, commit it, and add the worktree the agents share and the one a newcomer reads from."""
    for path, text in _FILES.items():
        target = os.path.join(folder, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)
    desks = [os.path.join(folder, ".worktrees", name) for name in ("feat-checkout", "feat-receipts")]
    in_git = _committed(folder) and all(_worktree(folder, desk) for desk in desks)
    if not in_git:
        for desk in desks:
            shutil.copytree(os.path.join(folder, "shop"), os.path.join(desk, "shop"), dirs_exist_ok=True)
            shutil.copytree(os.path.join(folder, "tests"), os.path.join(desk, "tests"), dirs_exist_ok=True)
    return World(
        folder=folder, desk=desks[0], other_desk=desks[1], commit=head(folder) if in_git else None, in_git=in_git
    )


def _committed(folder: str) -> bool:
    who = ["-c", "user.name=demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgsign=false"]
    steps = (["init", "--quiet"], ["add", *_FILES], [*who, "commit", "--quiet", "--no-verify", "-m", "A tiny shop"])
    return all(git(folder, step) is not None for step in steps)


def _worktree(folder: str, desk: str) -> bool:
    branch = os.path.basename(desk).replace("-", "/", 1)
    return git(folder, ["worktree", "add", "--quiet", "-b", branch, desk]) is not None


def holding(folder: str, needle: str) -> list[str]:
    """The files below `folder` that hold this text, in any case: an index keeps words in lower case."""
    wanted = needle.encode().lower()
    found = []
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            with open(path, "rb") as file:
                if wanted in file.read().lower():
                    found.append(path)
    return sorted(found)
