"""What a remote's address says of the repository behind it: one name, however it is reached, and never a credential."""

from __future__ import annotations

# The same servers under the names they answer to where only port 443 is open.
_ALIASES = {
    "ssh.github.com": "github.com",
    "www.github.com": "github.com",
    "altssh.gitlab.com": "gitlab.com",
    "altssh.bitbucket.org": "bitbucket.org",
}
# There `Acme/Shop` and `acme/shop` are one repository.
_CASELESS = frozenset({"github.com", "gitlab.com", "bitbucket.org", "codeberg.org"})


def remote_name(url: str) -> str | None:
    """Host and path, such as `github.com/acme/shop`; None for a folder of this machine and for nonsense."""
    url = _address(url)
    scheme, marked, rest = url.partition("://")
    if not marked:
        return _scp_name(url)
    if scheme.lower() == "file":
        return None
    return _url_name(rest)


def remote_folder(url: str) -> str | None:
    """The folder of this machine that a remote names, as it is written: it may be relative to the repository."""
    url = _address(url)
    if url[:7].lower() == "file://":
        return _decoded("/" + url[7:].partition("/")[2])
    return url if url and "://" not in url and not _is_scp(url) and "\0" not in url else None


def bare_name(name: str) -> str:
    """A repository's name without what only says that it is one."""
    return name.removesuffix(".git").removesuffix(".bundle") or name


def _address(url: str) -> str:
    """What a transport helper is given (`helper::address`), else the url itself."""
    url = url.strip()
    helper, marked, address = url.partition("::")
    if not marked or not helper.replace("-", "").replace("+", "").isalnum():
        return url
    # What is no url is a command line, which may hold anything.
    return address if "://" in address else ""


def _is_scp(url: str) -> bool:
    """Whether this is `host:path`; git's rule: a colon before any slash."""
    return ":" in url.partition("/")[0]


def _scp_name(url: str) -> str | None:
    if not _is_scp(url):
        return None
    before, colon, path = url.partition(":")
    if url.startswith("[") or "@[" in before:
        inside, _, after = url.partition("[")[2].partition("]")
        host, colon, path = inside, after[:1], after[1:]
        host = host if host.count(":") > 1 else host.partition(":")[0]
    elif "@" not in before and "@" in path.partition("/")[0]:
        # `user:password@host:path` is not what git reads, but somebody's password all the same.
        host, colon, path = url.rpartition("@")[2].partition(":")
    else:
        host = before
    return _joined(host.rpartition("@")[2], path) if colon else None


def _url_name(rest: str) -> str | None:
    # Some servers take a token as `?private_token=`.
    plain = rest.partition("?")[0].partition("#")[0]
    authority, _, path = plain.partition("/")
    # A password with an unescaped sign in it ends only at the last @; `/@scope/` is none.
    if "@" in rest[len(plain) :]:
        return None
    before, marked, after = path.rpartition("@")
    if marked and before and not before.endswith("/"):
        return _url_name(after)
    host, port = _split_port(authority.rpartition("@")[2])
    return _joined(host, _decoded(path)) if port.isdigit() or not port else None


def _split_port(place: str) -> tuple[str, str]:
    if place.startswith("["):
        host, _, port = place[1:].partition("]")
        return host, port.removeprefix(":")
    host, _, port = place.partition(":")
    return host, port


def _joined(host: str, path: str) -> str | None:
    host = host.lower().rstrip(".")
    host = _ALIASES.get(host, host)
    segments = [segment for segment in path.split("/") if segment not in {"", "."}]
    if not host or not _printable(host + path):
        return None
    if segments:
        segments[-1] = bare_name(segments[-1])
    name = "/".join([host, *segments])
    return name.lower() if host in _CASELESS else name


def _printable(text: str) -> bool:
    return all(character >= " " and character != "\x7f" for character in text)


def _decoded(text: str) -> str:
    """Without the %20s of a url."""
    first, *rest = text.encode("utf-8", "surrogateescape").split(b"%")
    parts = [first]
    for part in rest:
        try:
            parts += [bytes.fromhex(part[:2].decode("ascii")), part[2:]] if len(part) > 1 else [b"%", part]
        except ValueError:
            parts += [b"%", part]
    return b"".join(parts).decode("utf-8", "surrogateescape")
