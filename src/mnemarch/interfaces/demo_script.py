"""What the demo's agents will do and say. What becomes of it is the memory's business."""

from __future__ import annotations

from mnemarch.interfaces.demo_world import PROJECT, TESTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mnemarch.interfaces.demo_world import World

WORKTREE, OTHER_WORKTREE = "feat-checkout", "feat-receipts"
SHARED = "Checkout tries a timed-out payment three times, then gives up."
RETRY_TEST = f"{TESTS}::test_retry"
_FAILING_TEST = f"{TESTS}::test_coupons_combine"
_KNOWN = (
    ("Refunds are booked in whole minor units, never in floats.", f"{TESTS}::test_refund_in_minor_units"),
    ("장바구니 합계는 원 단위로 반올림하지 않고 버린다.", f"{TESTS}::test_cart_total_is_cut_off"),
    ("Stock is reserved before the card is charged.", f"{TESTS}::test_stock_first"),
    ("A voucher code is checked without regard to case.", f"{TESTS}::test_voucher_ignores_case"),
)
REVISIONS = (
    "Checkout tries a timed-out payment three times with growing pauses, then gives up.",
    "Checkout tries a timed-out payment three times and tells the customer, then gives up.",
)
OPPOSED = ("A declined card must be tried again.", "A declined card must not be tried again.")
_UNPROVEN = "The price cache is probably warm after the first request."
TOO_WIDE = "Every project of this shop charges before it ships."
PERSONAL_NAME = "Quillfeather"
PERSONAL = f"Mina {PERSONAL_NAME} of 12 Elm Row asked for her parcels at the back door."
QUESTIONS = ("what happens when a payment times out?", "장바구니 합계 반올림")


def scripts_for(world: World, agents: int, events: int, pause_s_max: float, secret: str) -> dict[str, dict[str, Any]]:
    """Who does what. The last one's test fails; the parts are dealt out so that any number of agents plays all."""
    scripts: dict[str, dict[str, Any]] = {}
    for number in range(agents):
        known = _KNOWN[number :: agents - 1] if number < agents - 1 else ()
        tests = [RETRY_TEST, *(test for _, test in known)] if number < agents - 1 else [_FAILING_TEST]
        scripts[f"coder-{number + 1}"] = {
            "store": world.folder,
            "root": world.desk,
            "commit": world.commit,
            "actor": f"agent:coder-{number + 1}",
            "scope": {"project": PROJECT, "worktree": WORKTREE, "task": f"T-{number + 1}"},
            "goal": f"Settle {', '.join(test.partition('::')[2] for test in tests)}",
            "events": events,
            "pause_s_max": pause_s_max,
            "claims": [
                _claim("shared", SHARED, [f"test:{RETRY_TEST}"]),
                *(_claim("known", content, [f"test:{test}"]) for content, test in known),
            ],
            "logs": [],
            "tests": tests,
        }
    cast = list(scripts.values())
    supported = ["symbol:shop/checkout.py::pay"]
    for number, content in enumerate(OPPOSED):
        cast[number]["claims"].append(_claim("opposed", content, supported))
    cast[0]["claims"].append(_claim("unproven", _UNPROVEN, []))
    cast[1]["claims"].append(_claim("personal", PERSONAL, []))
    cast[2 % agents]["claims"].append(_claim("too wide", TOO_WIDE, [], level="project"))
    cast[-1]["claims"].append(_claim("failing", "Coupons can be combined.", [f"test:{_FAILING_TEST}"]))
    cast[3 % agents]["logs"].append({"what": "secret", "kind": "tool_output", "text": f"deploying with {secret}"})
    retried = {"what": "retry", "kind": "result", "text": "pushed the branch", "key": "push-1"}
    cast[4 % agents]["logs"] += [retried, retried]
    return scripts


def revisions_of(world: World, unit_id: str) -> dict[str, dict[str, Any]]:
    """Two orchestrators with two better wordings of one unit."""
    return {
        f"lead-{number}": {
            "store": world.folder,
            "root": world.desk,
            "actor": f"orchestrator:lead-{number}",
            "scope": {"project": PROJECT, "worktree": WORKTREE},
            "revise": {"unit": unit_id, "content": content, "citations": [f"test:{RETRY_TEST}"]},
        }
        for number, content in enumerate(REVISIONS, start=1)
    }


def _claim(what: str, content: str, citations: list[str], level: str = "worktree") -> dict[str, Any]:
    return {"what": what, "content": content, "citations": citations, "level": level}
