"""Where a Qdrant server is, and whether it could be asked: known without loading its client, which takes a second."""

from __future__ import annotations

from mnemarch.errors import InvalidInput

_SCHEMES = {"qdrant": "http", "qdrants": "https"}
_PORT = 6333


def require_client() -> None:
    from importlib.util import find_spec

    if find_spec("qdrant_client") is None:
        raise InvalidInput("Qdrant needs its client, which is not installed.", hint="pip install 'mnemarch[qdrant]'")


def http_address(url: str) -> str:
    """The http or https address that a `qdrant://host:port` or, with TLS, `qdrants://host:port` stands for."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url.strip())
        plain = bool(parts.hostname) and not (parts.query or parts.fragment) and parts.path in {"", "/"}
        port = parts.port or _PORT
    except ValueError:
        parts, plain, port = urlsplit(""), False, 0
    if not plain or "@" in parts.netloc or parts.scheme not in _SCHEMES:
        raise InvalidInput(
            "That is no address of a Qdrant server.",
            hint="Write qdrant://host:6333, or qdrants:// with TLS; the key comes from MNEMARCH_QDRANT_KEY.",
        )
    host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else parts.hostname
    return f"{_SCHEMES[parts.scheme]}://{host}:{port}"
