"""`mnemarch mcp`: serves the tools by the Model Context Protocol, over standard input or over HTTP.

A host starts one server for each session. It ends when its input ends, on an interrupt, and when its parent is gone.
"""

from __future__ import annotations

import os
import secrets
import signal
import sys
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from mnemarch import __version__, user
from mnemarch.code.git import task_branch
from mnemarch.errors import InvalidInput, MnemarchError, NotFound
from mnemarch.interfaces.command import DONE, Answer, Call, Command
from mnemarch.interfaces.hooks import local_place
from mnemarch.interfaces.text import json_text
from mnemarch.interfaces.tools import Reply, Tool, called, checked, refused_to, tools_for, words
from mnemarch.lazy import Lazy
from mnemarch.verbs.types import FLAG, NUMBER, WORDS, Parameter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    import mcp_types as types
    from mcp.server.lowlevel import Server

else:
    types = Lazy("mcp_types")

_PARENT_EVERY_S = 2.0
# Another server may answer the hooks and end before this one. This is the interval of attempts to take over.
_HOOKS_EVERY_S = 20.0
_MAINTAIN_AFTER_S = 60
_LOOPBACK = "127.0.0.1"
# The fields of a request's `_meta` in which hosts name the conversation.
_SESSION_FIELDS = ("sessionId", "threadId")
_UNIT, _DECISIONS, _CORE_TEXT = "mnemarch://unit/", "mnemarch://decisions", "mnemarch://core"
_BEGINNING = "start_task"
_PROMPTS = (_BEGINNING, "finish_task")


class _Desk:
    """Answers the requests of hosts with the tools of one profile. `call` leads to the memory.

    Each verb runs in a thread, since it waits for the disk or computes while other requests must go on.
    """

    def __init__(self, call: Call, profile: str, denied: list[str]) -> None:
        self.call = call
        self.profile = profile
        self.tools = tools_for(profile, denied)
        self._opening = Lock()
        self.is_maintaining = False
        self._hooks = ExitStack()

    def answers_hooks(self) -> bool:
        """Answer the hooks of this repository from now on. Returns False if another server does, or if it fails."""
        from mnemarch.interfaces.hooks import serving

        with suppress(MnemarchError, OSError), ExitStack() as stack:  # Hooks work without a server.
            if stack.enter_context(serving(self.call.home.folder, self.call.url)):
                self._hooks = stack.pop_all()
                return True
        return False

    def maintain_if_due(self) -> None:
        """Run the maintenance if it has not run for a day, so that agents learn from edits without a person's help."""
        from mnemarch.services.maintenance import is_due

        call = self.call
        with suppress(MnemarchError, OSError):  # Another process maintains the memory, or it can't be opened.
            if call.is_absent or call.is_on_server or not is_due(local_place(call.store or call.home.folder)):
                return
            with self._opening:
                call.open()
            self.is_maintaining = True
            call.memory.maintain(call.seat)
        self.is_maintaining = False

    def leave(self, code: int) -> None:
        """End this process at once. During maintenance the memory is in use and stays open; the store survives that."""
        self.close_hooks()
        if not self.is_maintaining:
            self.call.close()
        os._exit(code)

    def close_hooks(self) -> None:
        """Stop answering hooks, after the received ones are recorded."""
        self._hooks.close()

    def _reply(self, name: str, arguments: dict[str, Any], session: str | None) -> Reply:
        if name not in self.tools:
            raise refused_to(name, self.profile)
        tool = self.tools[name]
        given = checked(tool, arguments)
        with self._asked(session, given, begins=not tool.is_reading) as call:
            return called(tool, call)

    @contextmanager
    def _asked(self, session: str | None, given: dict[str, Any], *, begins: bool = False) -> Iterator[Call]:
        """A call for one conversation. Its task is the branch, else the session. `begins` creates a missing memory."""
        session = session or user.session()
        with self._opening:
            is_absent = not begins and self.call.is_absent
            if not is_absent:
                self.call.open()
        call = self.call.again(given, session, task_branch(self.call.home.root) or session)
        try:
            if is_absent:
                call.answer_from_nothing()
            yield call
        finally:
            if is_absent:
                call.close()

    def _resource(self, uri: str, session: str | None) -> str:
        with self._asked(session, {}) as call:
            if uri == _DECISIONS:
                return json_text(call.seat.decisions.active())
            if uri == _CORE_TEXT:
                return call.seat.core.compiled()
            if uri.startswith(_UNIT):
                return json_text(call.seat.explain(uri.removeprefix(_UNIT)))
        raise NotFound(f"There is no resource {uri}.", hint=f"They are {_DECISIONS}, {_CORE_TEXT} and {_UNIT}ID.")

    # Requests

    async def list_tools(self, _context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in self.tools.values()])

    async def call_tool(self, context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        session = _session_in(context.meta)
        try:
            reply = await _in_thread(partial(self._reply, params.name, params.arguments or {}, session))
        except MnemarchError as error:
            return types.CallToolResult(content=[_text(_said(error))], is_error=True)
        return types.CallToolResult(content=[_text(reply.text)], structured_content=reply.data)

    async def list_resources(self, _context: Any, _params: Any) -> types.ListResourcesResult:
        decisions = types.Resource(uri=_DECISIONS, name="decisions", description="The decisions in force.")
        core = types.Resource(uri=_CORE_TEXT, name="core", description="Core memory, as it is in a prompt.")
        return types.ListResourcesResult(resources=[decisions, core])

    async def list_templates(self, _context: Any, _params: Any) -> types.ListResourceTemplatesResult:
        unit = types.ResourceTemplate(uri_template=f"{_UNIT}{{id}}", name="unit", description="A unit's source.")
        return types.ListResourceTemplatesResult(resource_templates=[unit])

    async def read_resource(self, context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        try:
            text = await _in_thread(partial(self._resource, str(params.uri), _session_in(context.meta)))
        except MnemarchError as error:
            raise _wrong(_said(error)) from None
        kind = "text/plain" if str(params.uri) == _CORE_TEXT else "application/json"
        part = types.TextResourceContents(uri=params.uri, mime_type=kind, text=text)
        return types.ReadResourceResult(contents=[part])

    async def list_prompts(self, _context: Any, _params: Any) -> types.ListPromptsResult:
        task = types.PromptArgument(name="task", description="the task", required=True)
        takes = {_BEGINNING: [task]}
        told = {name: words(f"prompt {name}").partition(". ")[0] for name in _PROMPTS}
        prompts = [types.Prompt(name=name, description=told[name], arguments=takes.get(name)) for name in _PROMPTS]
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(self, context: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name not in _PROMPTS:
            raise _wrong(f"There is no prompt {params.name!r}. They are {', '.join(_PROMPTS)}.")
        text = words(f"prompt {params.name}").partition(". ")[2]
        if params.name == _BEGINNING:
            task = (params.arguments or {}).get("task", "")
            asked = {"query": task or "the task"}
            pack = await _in_thread(partial(self._reply, "context", asked, _session_in(context.meta)))
            text = f"{task}\n\n{pack.text}\n\n{text}"
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=_text(text))])


async def _in_thread(work: Callable[[], Any]) -> Any:
    from anyio import to_thread

    return await to_thread.run_sync(work)


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _said(error: MnemarchError) -> str:
    return f"{error.message} {error.hint_for('tool')}".strip()


def _wrong(problem: str) -> Exception:
    from mcp.shared.exceptions import MCPError

    return MCPError(types.INVALID_PARAMS, problem)


def _server(desk: _Desk) -> Server[Any]:
    from mcp.server.lowlevel import Server

    return Server(
        "mnemarch",
        version=__version__,
        title="Mnemarch",
        instructions=words("instructions for models" if desk.profile != "core" else "instructions for core memory"),
        on_list_tools=desk.list_tools,
        on_call_tool=desk.call_tool,
        on_list_resources=desk.list_resources,
        on_list_resource_templates=desk.list_templates,
        on_read_resource=desk.read_resource,
        on_list_prompts=desk.list_prompts,
        on_get_prompt=desk.get_prompt,
    )


def _described(tool: Tool) -> types.Tool:
    hints = types.ToolAnnotations(
        read_only_hint=tool.is_reading, destructive_hint=False, idempotent_hint=tool.is_reading, open_world_hint=False
    )
    return types.Tool(
        name=tool.name,
        description=tool.says,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=hints,
    )


def _session_in(meta: Any) -> str | None:
    """The conversation that a request names, or None if its host names none."""
    fields: dict[str, Any] = dict(meta or {})
    return next((fields[name] for name in _SESSION_FIELDS if isinstance(fields.get(name), str) and fields[name]), None)


# Running


def _end_on_signals(desk: _Desk) -> None:
    """End the process on a signal. The SDK would end its streams and then wait for input that may never come."""

    def end(number: int, _frame: FrameType | None) -> None:
        desk.leave(DONE if number == signal.SIGTERM else 128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)


async def _while_parent_lives(desk: _Desk) -> None:
    """End the process when its parent is gone: a killed host may leave the pipe open in another process."""
    from anyio import sleep

    parent = os.getppid()
    while os.getppid() == parent:
        await sleep(_PARENT_EVERY_S)
    desk.leave(DONE)


async def _answer_hooks(desk: _Desk) -> None:
    from anyio import sleep

    while not desk.answers_hooks():
        await sleep(_HOOKS_EVERY_S)


async def _maintain_when_quiet(desk: _Desk, after_s: float) -> None:
    from anyio import sleep, to_thread

    await sleep(after_s)
    await to_thread.run_sync(desk.maintain_if_due, abandon_on_cancel=True)


async def _serve_stdio(desk: _Desk, maintain_after_s: float) -> None:
    from anyio import create_task_group
    from mcp.server.stdio import stdio_server

    server = _server(desk)
    async with create_task_group() as tasks, stdio_server() as (reading, writing):
        tasks.start_soon(_while_parent_lives, desk)
        if desk.profile != "read":
            tasks.start_soon(_answer_hooks, desk)
        if maintain_after_s >= 0:
            tasks.start_soon(_maintain_when_quiet, desk, maintain_after_s)
        await server.run(reading, writing, server.create_initialization_options())
        if desk.is_maintaining:
            desk.leave(DONE)
        desk.close_hooks()
        tasks.cancel_scope.cancel()


def _serve_http(desk: _Desk, port: int) -> None:
    import uvicorn

    token = os.environ.get("MNEMARCH_MCP_TOKEN") or secrets.token_urlsafe(32)
    if "MNEMARCH_MCP_TOKEN" not in os.environ:
        print(f"token: {token}", file=sys.stderr)
    print(f"mnemarch mcp listens on http://{_LOOPBACK}:{port}/mcp", file=sys.stderr, flush=True)
    app = _Guard(_server(desk).streamable_http_app(json_response=True, host=_LOOPBACK), token)
    uvicorn.run(app, host=_LOOPBACK, port=port, log_level="warning", access_log=False)


class _Guard:
    """Passes on only requests with the token, since every program on this computer can reach the port."""

    def __init__(self, app: Any, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not secrets.compare_digest(given, self._expected):
                headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body", "body": b"Send the token that mnemarch mcp printed.\n"})
                return
        await self._app(scope, receive, send)


def _mcp(call: Call) -> Answer:
    options = call.options
    desk = _Desk(call, options.profile, list(options.deny))
    if options.tools:
        tools = desk.tools.values()
        listed = [{"name": one.name, "description": one.says, "input_schema": one.input_schema} for one in tools]
        return Answer(listed, lambda: "\n".join(map(_line, tools)))
    try:
        import anyio
        import mcp  # noqa: F401 - only whether it is there
    except ImportError:
        raise InvalidInput(
            "The MCP server needs a part that is not installed.", hint="Install it: pip install 'mnemarch[mcp]'"
        ) from None
    if options.http is not None:
        _serve_http(desk, options.http)
    else:
        _end_on_signals(desk)
        anyio.run(_serve_stdio, desk, -1 if options.profile == "read" else options.maintain_after)
    return Answer(None, str, is_printed=True)


def _line(tool: Tool) -> str:
    return f"{tool.name:<10} {tool.says.partition('. ')[0].removesuffix('.')}"


COMMANDS = {
    "mcp": Command(
        _mcp,
        (
            Parameter("profile", WORDS, "which tools: read, work (default), admin or core", "work", metavar="NAME"),
            Parameter("deny", WORDS, "a tool to leave out, whatever the profile", (), many=True, metavar="TOOL"),
            Parameter("http", NUMBER, "serve HTTP on this port of the loopback address", None, metavar="PORT"),
            Parameter(
                "maintain_after",
                NUMBER,
                "do the nightly maintenance after so many seconds, once a day; -1 is never (default: 60)",
                _MAINTAIN_AFTER_S,
                metavar="SECONDS",
            ),
            Parameter("tools", FLAG, "only list the tools", False),
        ),
        begins_memory=True,
    ),
}
