"""The MCP server as hosts use it: the SDK's own client, over pipes and over HTTP, in both eras of the protocol."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import anyio
import httpx2
import jsonschema
import pytest

import mnemarch
from fixtures.cases import cases
from mnemarch import Actor, Claim, InvalidInput, Scope
from mnemarch.interfaces.tools import CORE_TOOLS, TOOLS, tools_for
from mnemarch.model.stamps import short_id
from mnemarch.services.maintenance import is_due

ERAS = ["auto", "legacy"]


@pytest.fixture
def shop(tmp_path):
    """A repository with a branch of its own, as a worktree would have it."""
    for command in (["init", "-q"], ["checkout", "-q", "-b", "feat/retry"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    (tmp_path / "checkout.py").write_text("RETRIES = 3\n")
    return tmp_path


def environment(**more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")}
    return kept | {"CLAUDECODE": "1"} | more


def server(shop: Path, *options: str, **more: str):
    arguments = ["-m", "mnemarch", "mcp", *options]
    return mcp().StdioServerParameters(command=sys.executable, args=arguments, env=environment(**more), cwd=str(shop))


def mcp():
    """The SDK, imported when it is used: every worker of a test run collects this file, and it takes long to load."""
    return import_module("mcp")


def web_client(url, web, mode):
    streams = import_module("mcp.client.streamable_http").streamable_http_client(url, http_client=web)
    return mcp().Client(streams, mode=mode)


def in_session(parameters, work, mode="auto"):
    async def main():
        async with mcp().Client(parameters, mode=mode) as client:
            return await work(client)

    return anyio.run(main)


def text(result) -> str:
    return result.content[0].text


@pytest.mark.parametrize("mode", ERAS)
def test_an_agent_begins_learns_fails_and_verifies_by_tools_alone(shop, mode):
    async def work(client):
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["recall"].annotations.read_only_hint
        assert not tools["remember"].annotations.read_only_hint

        async def call(name, **arguments):
            result = await client.call_tool(name, arguments)
            assert not result.is_error, text(result)
            jsonschema.validate(result.structured_content, tools[name].output_schema)
            return result

        assert text(await call("context", query="retries of checkout")) == "Nothing is known about this yet."
        assert not (shop / ".mnemarch").exists()
        stored = await call("remember", content="Checkout retries 3 times", citations=["file:checkout.py"])
        assert stored.structured_content["unit"]["status"] == "hypothesis"
        for kind in tools["remember"].input_schema["properties"]["kind"]["enum"]:
            assert "unit" in (await call("remember", content=f"Of a {kind}", kind=kind)).structured_content
        found = await call("recall", query="how often does checkout retry?")
        assert [item["text"] for item in found.structured_content["items"]] == ["Checkout retries 3 times"]
        assert "<mnemarch-memory" in text(found)
        assert (await call("attempt", approach="raise the pool size")).structured_content["valid"]
        for size in (20, 30, 40):
            (shop / "pool.py").write_text(f"SIZE = {size}\n")
            approach = f"raise the pool size to {size}"
            verdict = await call("attempt", approach=approach, error="TimeoutError: pool timed out")
        assert verdict.structured_content["verdict"] == "BLOCK"
        assert verdict.structured_content["instruction"]
        await call("log", kind="thought", text="다시 시도", data={"pool": 20})
        await call("feedback", unit_id=stored.structured_content["unit"]["id"], helped=True)
        asked = await call(
            "decide", text="Pools are of size 20", reason={"type": "risk", "summary": "one size"}, snapshots=["so"]
        )
        assert asked.structured_content["refused"] == "R12"
        assert (await call("verify", passed=True, tests=["tests/test_a.py::test_b"])).structured_content["passed"]
        told = await call("explain", id=stored.structured_content["unit"]["id"])
        assert "file:checkout.py" in told.structured_content["evidence"]

    in_session(server(shop), work, mode)
    with mnemarch.open(shop) as memory:
        person = memory.seat(mnemarch.Actor.human("ada"), mnemarch.Scope(project=shop.name))
        assert {str(event.actor) for event in person.events()} >= {"agent:claude-code"}
        assert {event.scope.task for event in person.events() if event.scope.task} == {"feat/retry"}
        assert ["Pools are of size 20" in item.subject for item in person.inbox()].count(True) == 1


WRONG = cases("mcp", "wrong")


def test_a_wrong_call_is_answered_with_what_to_do(shop):
    async def work(client):
        return [await client.call_tool(name, arguments) for name, arguments, _ in WRONG]

    for result, (_, _, says) in zip(in_session(server(shop), work), WRONG, strict=True):
        assert result.is_error, says
        assert says in text(result)


def test_resources_and_prompts_tell_what_is_decided_and_known(shop):
    async def work(client):
        unit = (await client.call_tool("remember", {"content": "Checkout retries 3 times"})).structured_content["unit"]
        decisions = await client.read_resource("mnemarch://decisions")
        explained = await client.read_resource(f"mnemarch://unit/{unit['id']}")
        prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
        begun = await client.get_prompt("start_task", {"task": "checkout retries"})
        return json.loads(decisions.contents[0].text), explained.contents[0].text, prompts, begun

    decided, explained, prompts, begun = in_session(server(shop), work)
    assert decided == []
    assert "Checkout retries 3 times" in explained
    assert prompts == ["start_task", "finish_task"]
    assert "Checkout retries 3 times" in begun.messages[0].content.text


def test_a_recall_costs_little_however_much_was_decided_and_names_what_is_too_long(shop):
    with mnemarch.open(shop) as memory:
        person = memory.seat(Actor.human("ada"), Scope(project=shop.name), root=str(shop))
        long = person.remember("Checkout " + "waits for the bank and then asks it once more. " * 500).unit
        person.remember("Checkout retries three times")
        for number in range(40):
            text_of_it = f"Service {number} owns table {number}\n\n" + "It alone writes there. " * 100
            reason = {"type": "risk", "summary": "two writers"}
            person.decisions.commit(person.decisions.propose(text_of_it, reason=reason, snapshots=["incident"]))
    found = in_session(server(shop), lambda client: client.call_tool("recall", {"query": "how often checkout retries"}))
    assert len(text(found)) < 12_000
    assert len(json.dumps(found.structured_content)) < 15_000
    assert "Checkout retries three times" in text(found)
    assert "Service 0 owns table 0" in text(found)
    assert text(found).endswith(f"Too long to be shown here. Call explain for each: {short_id(long.id)}.")
    assert text(found).count("more binding") == 1


def test_a_profile_has_its_tools_and_a_denial_wins(shop):
    read, work, admin = (set(tools_for(profile)) for profile in ("read", "work", "admin"))
    assert read < work < admin == {tool.name for tool in TOOLS}
    assert all(tool.is_reading for tool in tools_for("read").values())
    assert "remember" not in tools_for("admin", ["remember"])
    with pytest.raises(InvalidInput, match="no tool 'rmember'"):
        tools_for("work", ["rmember"])
    with pytest.raises(InvalidInput, match="no profile"):
        tools_for("root")

    async def names(client):
        return {tool.name for tool in (await client.list_tools()).tools}

    assert in_session(server(shop, "--profile", "read", "--deny", "recall"), names) == read - {"recall"}


@pytest.mark.parametrize("mode", ERAS)
def test_the_tools_of_core_memory_are_a_profile(shop, mode):
    async def work(client):
        names = [tool.name for tool in (await client.list_tools()).tools]
        told = await client.call_tool("core_memory_append", {"section": "human", "content": "이름은 Ada"})
        wrong = await client.call_tool("core_memory_append", {"section": "mood", "content": "x"})
        return names, text(told), text(wrong), (await client.read_resource("mnemarch://core")).contents[0].text

    names, told, wrong, compiled = in_session(server(shop, "--profile", "core"), work, mode)
    assert set(names) == {tool.name for tool in CORE_TOOLS}
    assert told.startswith("Done. Section human")
    assert "mood" in wrong
    assert "이름은 Ada" in compiled
    assert "<mnemarch-memory" in compiled


# Ten with MNEMARCH_TORTURE=full: each is a process to start.
CLIENTS = 10 if os.environ.get("MNEMARCH_TORTURE") == "full" else 4


def test_many_clients_at_once_lose_nothing(shop):
    async def write(number):
        async with mcp().Client(server(shop, CLAUDE_CODE_SESSION_ID=f"s-{number}")) as client:
            for each in range(4):
                result = await client.call_tool("log", {"kind": "note", "text": f"{number}-{each}"})
                assert not result.is_error, text(result)

    async def main():
        async with anyio.create_task_group() as tasks:
            for number in range(CLIENTS):
                tasks.start_soon(write, number)

    anyio.run(main)
    with mnemarch.open(shop) as memory:
        person = memory.seat(mnemarch.Actor.human("ada"), mnemarch.Scope(project=shop.name))
        events = person.events(types=["logged"], limit=100)
        assert {event.payload["text"] for event in events} == {
            f"{n}-{each}" for n in range(CLIENTS) for each in range(4)
        }
        assert {event.session for event in events} == {f"s-{number}" for number in range(CLIENTS)}


def started(shop, *options, **kwargs):
    command = [sys.executable, "-m", "mnemarch", "mcp", *options]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=shop, env=environment(**kwargs), text=True, **pipes)


def greeted(process):
    """A server that has answered, so that it is surely in its loop."""
    parameters = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": parameters}) + "\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    assert "attempt" in answer["result"]["instructions"]
    return process


@pytest.mark.parametrize("how", ["its input ends", "it is interrupted", "it is terminated"])
def test_a_server_goes_when(shop, how):
    process = greeted(started(shop))
    if how == "its input ends":
        process.stdin.close()
    else:
        process.send_signal(signal.SIGINT if how == "it is interrupted" else signal.SIGTERM)
    assert process.wait(timeout=30) == (130 if how == "it is interrupted" else 0)
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()


def ended(process):
    process.stdin.close()
    code = process.wait(timeout=60)
    for stream in (process.stdout, process.stderr):
        stream.close()
    return code


def test_a_quiet_server_does_the_maintenance_of_the_day(shop):
    with mnemarch.open(shop) as memory:
        seat = memory.seat(Actor.agent("claude-code"), Scope(project="shop", task="T-1"), root=str(shop))
        seat.log("user", "Make the checkout retry.")
        seat.verify(passed=True, tests=["tests/test_checkout.py::test_retries"], account=False)
    mark = shop / ".mnemarch" / "maintained"
    for wait_s in ("-1", "0"):
        process = greeted(started(shop, "--maintain-after", wait_s))
        end = time.monotonic() + 60
        while wait_s == "0" and time.monotonic() < end and is_due(str(mark.parent)):
            time.sleep(0.05)
        assert ended(process) == 0
        assert mark.exists() == (wait_s == "0")
    with mnemarch.open(shop) as memory:
        person = memory.seat(Actor.human("ada"), Scope(project="shop"), root=str(shop))
        [episode] = person.units(kind="episode")
    # What a session that was killed did not tell.
    assert episode.attributes["task"] == "Make the checkout retry."
    two_days_ago = time.time() - 2 * 86_400
    os.utime(mark, (two_days_ago, two_days_ago))
    assert is_due(str(mark.parent))


def test_a_server_that_maintains_goes_when_its_input_ends(shop):
    with mnemarch.open(shop) as memory:
        seat = memory.seat(Actor.human("ada"), Scope(project="shop"), root=str(shop))
        # Nothing here is like anything else: comparing texts is not what takes this long.
        seat.remember_many([Claim(content=f"{number**9:x}") for number in range(1_000)])
    assert ended(greeted(started(shop, "--maintain-after", "0"))) == 0
    with mnemarch.open(shop) as memory:
        assert memory.audit().ok
        assert memory.stats().units == 1_000


def test_a_server_goes_when_its_host_was_killed_and_the_pipe_stays_open(shop):
    """The host is a process between: it starts the server on pipes that this test holds open."""
    host = (
        "import subprocess, sys, time\n"
        "server = subprocess.Popen([sys.executable, '-m', 'mnemarch', 'mcp'])\n"
        "print(server.pid, file=sys.stderr, flush=True)\n"
        "time.sleep(600)\n"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", host], cwd=shop, env=environment(), text=True, **pipes)
    pid = int(process.stderr.readline())
    greeted(process)
    # Killed in the middle of a call.
    call = {"name": "log", "arguments": {"kind": "note", "text": "x"}}
    process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}) + "\n")
    process.stdin.flush()
    process.kill()
    process.wait()
    end = time.monotonic() + 30
    while time.monotonic() < end and Path(f"/proc/{pid}").exists() and _state(pid) != "Z":
        time.sleep(0.1)
    assert not Path(f"/proc/{pid}").exists() or _state(pid) == "Z"
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


@pytest.fixture
def listening(shop):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = started(shop, "--http", str(port), MNEMARCH_MCP_TOKEN="t-0-k-e-n")
    for line in process.stderr:
        if "listens on" in line:
            break
    url = f"http://127.0.0.1:{port}/mcp"
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    yield url
    process.terminate()
    process.communicate(timeout=30)


@pytest.mark.parametrize("mode", ERAS)
def test_over_http_only_who_has_the_token_is_let_in(listening, mode):
    async def main():
        headers = {"Authorization": "Bearer t-0-k-e-n"}
        async with (
            httpx2.AsyncClient(headers=headers) as web,
            web_client(listening, web, mode) as client,
        ):
            stored = await client.call_tool("remember", {"content": "Checkout retries 3 times"})
            return stored.structured_content["unit"]["text"]

    assert anyio.run(main) == "Checkout retries 3 times"
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "t-0-k-e-n"}):
        answer = httpx2.post(listening, headers=headers, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        assert answer.status_code == 401
    strange = {"Authorization": "Bearer t-0-k-e-n", "Host": "evil.example", "Accept": "application/json"}
    assert httpx2.post(listening, headers=strange, json={}).status_code in {403, 421}


@pytest.mark.parametrize("mode", ERAS)
def test_ten_clients_over_http_lose_nothing_and_one_that_breaks_off_disturbs_nobody(shop, listening, mode):
    port = int(listening.rpartition(":")[2].partition("/")[0])
    half = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer t-0-k-e-n\r\nContent-Length: 900\r\n\r\n{"

    async def write(number):
        with socket.create_connection(("127.0.0.1", port)) as broken:
            broken.sendall(half)
            broken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        headers = {"Authorization": "Bearer t-0-k-e-n"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as web,
            web_client(listening, web, mode) as client,
        ):
            for each in range(3):
                result = await client.call_tool("log", {"kind": "note", "text": f"{number}-{each}"})
                assert not result.is_error, text(result)

    async def main():
        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(write, number)

    anyio.run(main)
    with mnemarch.open(shop) as memory:
        person = memory.seat(mnemarch.Actor.human("ada"), mnemarch.Scope(project=shop.name))
        told = {event.payload["text"] for event in person.events(types=["logged"], limit=100)}
        assert told == {f"{number}-{each}" for number in range(10) for each in range(3)}
