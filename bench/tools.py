"""What the tools of the MCP server cost a model in tokens: the list, and answers beside the raw JSON of the verb."""

from __future__ import annotations

import json
import tempfile
from types import SimpleNamespace

import mnemarch
from mnemarch.interfaces.command import Call
from mnemarch.interfaces.text import json_text
from mnemarch.interfaces.tools import CORE, called, checked, tools_for
from mnemarch.text.prompt import estimated_tokens

PLACES = ("actor", "org", "project", "worktree", "task", "session", "store", "root", "json")
FACTS = 12
ASKED = [
    ("context", {"query": "how does module 3 retry?", "tokens": 600}),
    ("recall", {"query": "how does module 3 retry?"}),
    ("remember", {"content": "Module 99 retries twice"}),
    ("attempt", {"approach": "raise the pool size", "error": "TimeoutError: pool timed out"}),
    ("log", {"kind": "note", "text": "tried"}),
    ("verify", {"passed": True, "tests": ["tests/test_a.py::test_b"]}),
    (
        "decide",
        {
            "text": "Retries stay below four",
            "reason": {"type": "risk", "summary": "The queue fills"},
            "snapshots": ["It filled on Monday"],
        },
    ),
    ("explain", {"id": "{unit}"}),
    ("feedback", {"unit_id": "{unit}", "helped": True}),
    ("core_memory_append", {"section": "persona", "content": "I keep answers short."}),
    ("core_memory_replace", {"section": "persona", "old": "short", "new": "very short"}),
    ("archival_memory_insert", {"content": "The shop sells lamps."}),
    ("archival_memory_search", {"query": "lamps"}),
    ("conversation_search", {"query": "tried"}),
]


def main() -> None:
    for profile in ("read", "work", "admin", CORE):
        tools = tools_for(profile).values()
        listed = [{"name": one.name, "description": one.says, "inputSchema": one.input_schema} for one in tools]
        typed = [{**entry, "outputSchema": one.output_schema} for entry, one in zip(listed, tools, strict=True)]
        costs = (estimated_tokens(json.dumps(each)) for each in (listed, typed))
        print("tool list, profile {:<6} {:>6} tokens, {:>6} with output schemas".format(profile, *costs))
    with tempfile.TemporaryDirectory() as folder:
        places = dict.fromkeys(PLACES) | {"actor": "agent:bench", "task": "T-1", "root": folder, "store": folder}
        call = Call(SimpleNamespace(), {}, places=SimpleNamespace(**places), begins_memory=True)
        for number in range(FACTS):
            call.seat.remember(f"Module {number} of the shop retries {number} times before it gives up.")
        unit = call.seat.recall("how does module 3 retry?").items[0].unit.id
        offered = tools_for("work") | tools_for(CORE)
        for name, arguments in ASKED:
            given = {key: unit if item == "{unit}" else item for key, item in arguments.items()}
            reply = called(offered[name], call.again(checked(offered[name], given), None, None))
            text, data = estimated_tokens(reply.text), estimated_tokens(json.dumps(reply.data, ensure_ascii=False))
            print(f"{name:<23} text {text:>5} tokens, structured {data:>5}")
        untried = offered.keys() - dict(ASKED)
        assert not untried, untried
        found = call.seat.recall("how does module 3 retry?")
        print(f"the same recall as the JSON of the verb: {estimated_tokens(json_text(found))} tokens")
        call.close()
    print(f"mnemarch {mnemarch.__version__}; estimated by its own rule, which errs upwards")


if __name__ == "__main__":
    main()
