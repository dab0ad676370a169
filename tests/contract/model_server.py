"""A stand-in for a vendor's API: a real HTTP server on a loopback socket that records its requests.

It speaks OpenAI's chat completions and Anthropic's messages; it is no model.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

FAKE = {"x-fake-model": "yes"}


def openai_body(
    text: Any, finish: str = "stop", refusal: str | None = None, usage: Any = (1000, 200)
) -> dict[str, Any]:
    counted = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)} if usage else None
    message = {"role": "assistant", "content": text, "refusal": refusal}
    return {
        "id": "fake-1",
        "object": "chat.completion",
        "created": 1,
        "model": "fake",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": counted,
    }


def anthropic_body(text: Any, finish: str = "end_turn", usage: Any = (1000, 200)) -> dict[str, Any]:
    return {
        "id": "fake-1",
        "type": "message",
        "role": "assistant",
        "model": "fake",
        "content": [{"type": "text", "text": text}],
        "stop_reason": finish,
        "stop_sequence": None,
        "usage": {"input_tokens": usage[0], "output_tokens": usage[1]},
    }


BODIES = {"openai": openai_body, "anthropic": anthropic_body}


class ModelServer:
    """`script` are the answers in order, the last for ever: (status, headers, body), a body, or what is done to the
    connection: "silence", "drip", "cut"."""

    def __init__(self) -> None:
        self.script: list[Any] = []
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self._over = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                sent = {name.lower(): value for name, value in self.headers.items()}
                server.requests.append((self.path, sent, body))
                step = server.script.pop(0) if len(server.script) > 1 else server.script[0]
                step = step(body) if callable(step) else step
                if step == "silence":
                    server._over.wait(5)
                    self.close_connection = True
                    return
                status, headers, answer = step if isinstance(step, tuple) else (200, {}, step)
                content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                if answer in ("cut", "drip"):
                    content = b'{"choices": [' + b" " * 4_000
                self.send_response(status)
                for name, value in ({"content-type": "application/json"} | FAKE | headers).items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                if answer == "drip":
                    for at in range(len(content)):
                        if server._over.wait(0.02):
                            break
                        self.wfile.write(content[at : at + 1])
                        self.wfile.flush()
                    self.close_connection = True
                    return
                self.wfile.write(content[:100] if answer == "cut" else content)
                self.close_connection = answer == "cut"

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._http.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
