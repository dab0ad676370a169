"""A model that follows a script, on the loopback address: Anthropic's, OpenAI's two and Gemini's streams.

A script is a list of steps: a shell command, or a file to write with its text. After the last one the model says
"done". Which step comes next is told from the number of results in the request, so that a request that is sent twice
gets the same answer twice.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from shlex import quote
from typing import Any

Step = str | tuple[str, str]
WRITERS = ("Write", "write", "write_file")
SHELLS = ("Bash", "bash", "exec_command", "shell_command", "shell", "run_shell_command")


class ScriptedModel:
    """The server; `requests` has what every model request held, in order, as (path, body)."""

    def __init__(self, steps: list[Step]) -> None:
        self.steps = steps
        self.requests: list[tuple[str, dict[str, Any]]] = []
        handler = type("Handler", (_Handler,), {"model": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> ScriptedModel:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def turns(self) -> list[str]:
        """The requests of the agent itself, as text: those that offer a shell, which one for a title doesn't."""
        return [json.dumps(body, ensure_ascii=False) for _, body in self.requests if _tool_of(body, SHELLS)]

    def answer(self, body: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
        """A text, or the name of a tool and its input."""
        shell, writer, done = _tool_of(body, SHELLS), _tool_of(body, WRITERS), results_in(body)
        if shell is None or done >= len(self.steps):
            return "done", "", {}
        step = self.steps[done]
        if isinstance(step, str):
            return "", shell[0], _arguments(shell[1], _ran(step))
        path, text = step
        if writer is None:
            return "", shell[0], _arguments(shell[1], _ran(f"printf %s {quote(text)} > {path}"))
        names = {"file_path": path, "filePath": path, "path": path, "content": text, "file_text": text}
        return "", writer[0], _arguments(writer[1], names)


def _ran(command: str) -> dict[str, Any]:
    """What tools that run a command call it; Codex would not wait for its end unless it is told to."""
    return {"cmd": command, "command": command, "yield_time_ms": 30_000}


def _tools(body: dict[str, Any]) -> list[dict[str, Any]]:
    tools = []
    for tool in body.get("tools") or []:
        tools += tool.get("functionDeclarations") or [tool.get("function") or tool]
    return tools


def _tool_of(body: dict[str, Any], names: tuple[str, ...]) -> tuple[str, dict[str, Any]] | None:
    """The first tool with one of these names that a request offers, and the schema of its input."""
    for tool in _tools(body):
        if tool.get("name") in names:
            keys = ("input_schema", "parameters", "parametersJsonSchema")
            return tool["name"], next((tool[key] for key in keys if tool.get(key)), {})
    return None


def _arguments(schema: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """The values that the tool knows, and something for whatever else it requires."""
    known = schema.get("properties", {})
    arguments: dict[str, Any] = {name: content for name, content in values.items() if name in known}
    for name in schema.get("required", []):
        kind = known.get(name, {}).get("type")
        arguments.setdefault(name, {"number": 30, "integer": 30, "boolean": False}.get(kind, "run it"))
    return arguments


def results_in(body: dict[str, Any]) -> int:
    """How many results of tools a request carries, in any of the four forms."""
    results = sum(
        item.get("type") == "function_call_output" for item in body.get("input") or [] if isinstance(item, dict)
    )
    for message in body.get("messages") or []:
        content = message.get("content")
        results += message.get("role") == "tool"
        results += sum(part.get("type") == "tool_result" for part in content) if isinstance(content, list) else 0
    for content in body.get("contents") or []:
        results += sum("functionResponse" in part for part in content.get("parts", []))
    return results


class _Handler(BaseHTTPRequestHandler):
    model: ScriptedModel
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._send({})

    def do_GET(self) -> None:
        self._send({"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    def do_POST(self) -> None:
        try:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        except ValueError:
            body = {}
        path = self.path.partition("?")[0]
        if "count" in path.lower():
            return self._send({"input_tokens": 10, "totalTokens": 10})
        self.model.requests.append((path, body))
        for end, events in _DIALECTS.items():
            if path.endswith(end):
                is_streamed = body.get("stream") or "stream" in path
                chunks = list(events(*self.model.answer(body), bool(is_streamed)))
                return self._stream(chunks) if is_streamed else self._send(chunks[0][1])
        return self._send({})

    def _send(self, data: Any) -> None:
        content = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _stream(self, chunks: list[tuple[str, Any]]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for name, data in chunks:
            head = f"event: {name}\n" if name else ""
            text = data if isinstance(data, str) else json.dumps(data)
            self.wfile.write(f"{head}data: {text}\n\n".encode())
        self.close_connection = True


def _anthropic(text: str, tool: str, arguments: dict[str, Any], streamed: bool):
    block = {"type": "tool_use", "id": f"toolu_{_id()}", "name": tool, "input": arguments}
    block = block if tool else {"type": "text", "text": text}
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    stop = "tool_use" if tool else "end_turn"
    message = {"id": f"msg_{_id()}", "type": "message", "role": "assistant", "model": "scripted", "usage": usage}
    if not streamed:
        yield "", message | {"content": [block], "stop_reason": stop, "stop_sequence": None}
        return
    yield (
        "message_start",
        {
            "type": "message_start",
            "message": message | {"content": [], "stop_reason": None, "stop_sequence": None},
        },
    )
    empty = block | ({"input": {}} if tool else {"text": ""})
    yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": empty}
    delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
    delta = delta if tool else {"type": "text_delta", "text": text}
    yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": 0}
    ending = {"stop_reason": stop, "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 5}}
    yield "message_stop", {"type": "message_stop"}


def _responses(text: str, tool: str, arguments: dict[str, Any], streamed: bool):
    call = {"type": "function_call", "id": f"fc_{_id()}", "call_id": f"call_{_id()}", "name": tool}
    call |= {"arguments": json.dumps(arguments), "status": "completed"}
    said = {"type": "message", "id": f"msg_{_id()}", "role": "assistant", "status": "completed"}
    said |= {"content": [{"type": "output_text", "text": text, "annotations": []}]}
    item = call if tool else said
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15, "input_tokens_details": {"cached_tokens": 0}}
    usage["output_tokens_details"] = {"reasoning_tokens": 0}
    whole = {"id": f"resp_{_id()}", "object": "response", "status": "completed", "output": [item], "usage": usage}
    if not streamed:
        yield "", whole
        return
    begun = whole | {"status": "in_progress", "output": []}
    yield "response.created", {"type": "response.created", "response": begun}
    yield "response.output_item.added", {"type": "response.output_item.added", "output_index": 0, "item": item}
    yield "response.output_item.done", {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield "response.completed", {"type": "response.completed", "response": whole}


def _chat(text: str, tool: str, arguments: dict[str, Any], streamed: bool):
    call = {"index": 0, "id": f"call_{_id()}", "type": "function"}
    call |= {"function": {"name": tool, "arguments": json.dumps(arguments)}}
    said = (
        {"role": "assistant", "content": None, "tool_calls": [call]} if tool else {"role": "assistant", "content": text}
    )
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    stop = "tool_calls" if tool else "stop"
    base = {"id": f"chatcmpl-{_id()}", "created": 1, "model": "scripted"}
    if not streamed:
        choice = {"index": 0, "message": said, "finish_reason": stop}
        yield "", base | {"object": "chat.completion", "choices": [choice], "usage": usage}
        return
    chunk = base | {"object": "chat.completion.chunk"}
    yield "", chunk | {"choices": [{"index": 0, "delta": said, "finish_reason": None}]}
    yield "", chunk | {"choices": [{"index": 0, "delta": {}, "finish_reason": stop}]}
    yield "", chunk | {"choices": [], "usage": usage}
    yield "", "[DONE]"


def _gemini(text: str, tool: str, arguments: dict[str, Any], _: bool):
    part = {"functionCall": {"name": tool, "args": arguments, "id": f"call_{_id()}"}} if tool else {"text": text}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    yield "", {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"}


_DIALECTS = {
    "/messages": _anthropic,
    "/responses": _responses,
    "/chat/completions": _chat,
    "enerateContent": _gemini,
}
_count = iter(range(1, 1 << 30))


def _id() -> str:
    return f"scripted{next(_count):06d}"
