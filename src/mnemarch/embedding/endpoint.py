"""An embedder for OpenAI-compatible embeddings endpoints, with the standard library alone."""

from __future__ import annotations

import json
import time
from functools import cache
from random import random

from mnemarch.embedding.dense import sound, vectors_of
from mnemarch.errors import InvalidInput, StoreUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from email.message import Message
    from typing import Any
    from urllib.request import OpenerDirector

    from mnemarch.embedding.dense import Vectors


# Statuses after which a retry may succeed. Other refusals are final.
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_FIRST_WAIT_S, _WAIT_S_MAX = 0.5, 30.0
_BATCH_MAX, _ATTEMPTS_MAX, _TEXT_CHARS_MAX = 64, 4, 8_000
_DETAIL_CHARS_MAX = 300
_ABOUT_KEYS = frozenset({401, 403})
_HINTS = {
    401: "Check the API key.",
    403: "Check what the API key may do.",
    404: "Check base_url (it usually ends in /v1) and the model's name.",
}


class EndpointEmbedder:
    """Posts batches to `base_url`/embeddings, and retries after a wait if the server is busy or unreachable.

    `withheld` explains why an existing key was not sent. It is the hint if the server demands a key.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str | None = None,
        dim: int | None = None,
        timeout_s: float = 30.0,
        *,
        withheld: str = "",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._url = _url(base_url)
        if not model or timeout_s <= 0 or (dim is not None and dim < 1):
            raise InvalidInput(
                f"Model {model!r}, dim {dim!r} and timeout_s {timeout_s!r} make no embedder.",
                hint="Name the model; the numbers must be above 0.",
            )
        if api_key is not None and not (api_key.isascii() and api_key.isprintable()):
            raise InvalidInput("The API key has invalid characters.", hint="Give only the key, in one line.")
        self._model = model
        self._api_key = api_key
        self._dim = dim
        self._timeout_s = timeout_s
        self._withheld = withheld
        self._sleep = sleep

    @property
    def id(self) -> str:
        """The model's name, without the server: every server of a model gives equal vectors."""
        return f"endpoint/{self._model}"

    @property
    def dim(self) -> int:
        """The configured length of a vector, or the length of a first answer."""
        if self._dim is None:
            self._dim = len(self._answered(["dimension"])[0])
        return self._dim

    def embed(self, texts: Sequence[str]) -> Vectors:
        return vectors_of(texts, self._in_batches, self.dim, f"{self._model} at {self._url}")

    def _in_batches(self, texts: list[str]) -> list[list[float]]:
        sent = [sound(text, _TEXT_CHARS_MAX) for text in texts]
        starts = range(0, len(sent), _BATCH_MAX)
        return [row for start in starts for row in self._answered(sent[start : start + _BATCH_MAX])]

    def _answered(self, texts: list[str]) -> list[list[float]]:
        body = json.dumps({"model": self._model, "input": texts, "encoding_format": "float"}).encode()
        trouble = ""
        for attempt in range(_ATTEMPTS_MAX):
            try:
                return self._rows(self._posted(body), len(texts))
            except _AnotherTimeError as passing:
                trouble = passing.args[0]
                if attempt + 1 < _ATTEMPTS_MAX:
                    wait_s = min(_WAIT_S_MAX, max(passing.wait_s, _FIRST_WAIT_S * 2**attempt))
                    # Random extra time keeps callers that were refused together from retrying together.
                    self._sleep(wait_s * (1 + random() / 4))  # noqa: S311
        raise StoreUnavailable(
            f"{self._url} did not embed {len(texts)} texts in {_ATTEMPTS_MAX} attempts: {trouble}.",
            hint="Check that it runs and can be reached. The texts are embedded when it answers again.",
        )

    def _posted(self, body: bytes) -> bytes:
        from http.client import HTTPException
        from urllib.error import HTTPError
        from urllib.request import Request

        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "mnemarch"}
        if self._api_key:
            headers["Authorization"] = f"Bearer {self._api_key}"
        request = Request(self._url, body, headers)  # noqa: S310 - `_url` lets http and https through only
        give_up_at = time.monotonic() + self._timeout_s
        try:
            with _opener().open(request, timeout=self._timeout_s) as response:
                return _read(response, give_up_at)
        except HTTPError as error:
            with error:
                refusal = self._refusal(error.code, error.headers, _detail(error))
            raise refusal from None
        except (OSError, HTTPException) as error:
            raise _AnotherTimeError(str(error) or type(error).__name__) from None

    def _refusal(self, status: int, headers: Message, detail: str) -> Exception:
        if self._api_key:
            detail = detail.replace(self._api_key, "***")
        if status in _PASSING:
            asked = headers.get("Retry-After") or ""  # A date is ignored.
            return _AnotherTimeError(f"status {status} {detail}".strip(), float(asked) if asked.isdecimal() else 0.0)
        moved = f"It says to ask {headers.get('Location')} instead." if 300 <= status < 400 else ""
        withheld = self._withheld if status in _ABOUT_KEYS else ""
        return InvalidInput(
            f"{self._url} refused with status {status}: {detail or 'no reason given'}.",
            hint=withheld or _HINTS.get(status) or moved or "Check the model's name and that it embeds.",
        )

    def _rows(self, answer: bytes, texts: int) -> list[list[float]]:
        """The vectors in the order of the texts. The answer may have a different order."""
        try:
            rows = {item["index"]: item["embedding"] for item in json.loads(answer)["data"]}
            ordered = [rows[at] for at in range(texts)]
            if len(rows) == texts and all(isinstance(row, list) and row for row in ordered):
                return ordered
        except (ValueError, KeyError, TypeError, RecursionError):
            pass
        raise InvalidInput(
            f"{self._url} answered {texts} texts with something that is not a list of as many embeddings.",
            hint="Check base_url: an OpenAI-compatible /v1/embeddings is needed.",
        )


class _AnotherTimeError(Exception):
    """The request failed now and may succeed later."""

    def __init__(self, trouble: str, wait_s: float = 0.0) -> None:
        super().__init__(trouble)
        self.wait_s = wait_s


def _url(base_url: str) -> str:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(base_url.strip())
        plain = bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        parts, plain = urlsplit(""), False
    if not plain or parts.scheme not in {"http", "https"} or parts.query or parts.fragment:
        raise InvalidInput(
            "base_url must be a plain http or https address.",
            hint='Give one such as "http://localhost:11434/v1", and the key apart.',
        )
    path = parts.path.rstrip("/")
    if not path.endswith("/embeddings"):
        path = f"{path or '/v1'}/embeddings"
    return f"{parts.scheme}://{parts.netloc}{path}"


@cache
def _opener() -> OpenerDirector:
    from urllib.request import HTTPRedirectHandler, build_opener

    class Staying(HTTPRedirectHandler):
        """Follows no redirects, which would send texts and the key to another host."""

        def redirect_request(self, *_: object) -> None:
            return None

    return build_opener(Staying)


def _read(response: Any, give_up_at: float) -> bytes:
    """The whole answer, within the time limit. The socket's own timeout restarts with each byte."""
    chunks: list[bytes] = []
    while chunk := response.read1(1 << 16):
        chunks.append(chunk)
        if time.monotonic() > give_up_at:
            raise _AnotherTimeError("the answer took too long")
    if response.length:
        raise _AnotherTimeError("the answer broke off")
    return b"".join(chunks)


def _detail(error: Any) -> str:
    """The server's explanation of its refusal, in one short line."""
    try:
        text = " ".join(error.read(4 * _DETAIL_CHARS_MAX).decode("utf-8", "replace").split())
    except OSError:
        return ""
    return text[:_DETAIL_CHARS_MAX]
