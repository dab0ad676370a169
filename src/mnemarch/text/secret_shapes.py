"""Secrets that are known by their shape alone: the prefixes and lengths that issuers give their keys and tokens."""

from __future__ import annotations

from functools import cache

from mnemarch.lazy import Lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
else:
    re = Lazy("re")

# Kind, and the shape of the secret. A shape is tried only when its family's sign is in the text, and no shape may
# start inside a longer word. None has an upper bound where a rest could be left standing.
_SHAPES: dict[str, str] = {
    "github-token": r"gh[pousr]_[A-Za-z0-9_]{30,}|github_pat_[A-Za-z0-9_]{22,}",
    "stripe-key": r"[sr]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{20,}",
    "npm-token": r"npm_[A-Za-z0-9]{30,}",
    "huggingface-token": r"hf_[A-Za-z0-9]{30,}",
    "digitalocean-token": r"do[opr]_v1_[a-f0-9]{40,}",
    "linear-key": r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}",
    "notion-token": r"secret_[A-Za-z0-9]{40,}|ntn_[A-Za-z0-9]{40,}",
    "docker-token": r"dckr_[po]at_[A-Za-z0-9_-]{20,}",
    "gitlab-token": r"gl(?:pat|ptt|dt|rt|cbt|soat|agent|imt|ft|oas|wt)-[A-Za-z0-9_.-]{20,}",
    "slack-token": r"xox[abeposr](?:\.xox[bp])?-[A-Za-z0-9-]{10,}|xapp-\d-[A-Za-z0-9-]{10,}",
    "anthropic-key": r"sk-ant-[A-Za-z0-9_-]{20,}",
    "openrouter-key": r"sk-or-v1-[A-Za-z0-9]{32,}",
    "openai-key": r"sk-(?:proj|svcacct|admin|None)-(?=[a-z_-]{0,64}?(?:[A-Z0-9]|[a-z]{20}))[A-Za-z0-9_-]{20,}"
    r"|sk-[A-Za-z0-9]{20,}",
    "google-oauth": r"GOCSPX-[A-Za-z0-9_-]{20,}|ya29\.[A-Za-z0-9_-]{20,}",
    "pypi-token": r"pypi-AgE[A-Za-z0-9_-]{20,}",
    "postman-key": r"PMAK-[a-f0-9]{24}-[a-f0-9]{30,}",
    "age-key": r"AGE-SECRET-KEY-1[0-9A-Za-z]{50,}",
    "sendgrid-key": r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    "vault-token": r"hv[sbr]\.[A-Za-z0-9_-]{20,}",
    "terraform-token": r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{40,}",
    "discord-token": r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",
    "slack-webhook": r"https?://hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}",
    "discord-webhook": r"https?://(?:\w{1,10}\.)?discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{5,}/[A-Za-z0-9_-]{20,}",
    "telegram-token": r"\d{8,10}:AA[A-Za-z0-9_-]{32,}",
    "aws-access-key": r"A[KSB]IA[A-Z0-9]{16}(?![A-Za-z0-9])",
    "google-api-key": r"AIza[0-9A-Za-z_-]{35,}",
    "databricks-token": r"dapi[a-f0-9]{32}(?:-\d)?(?![A-Za-z0-9])",
    "twilio-key": r"SK[0-9a-f]{32}(?![A-Za-z0-9])",
    "jwt": r"eyJ[A-Za-z0-9_-]{6,}+\.[A-Za-z0-9_-]{6,}+\.[A-Za-z0-9_-]{6,}",
}
# Shapes whose name stays: the secret is the first group.
_NAMED_SHAPES: dict[str, str] = {
    "azure-key": r"(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{32,}={0,2})"
    r"|(?<![A-Za-z])sig=([A-Za-z0-9%+/]{30,}={0,2})",
    "azure-secret": r"(?<![A-Za-z0-9])([A-Za-z0-9_.~-]{3}8Q~[A-Za-z0-9_.~-]{31,})",
}
_UNDERSCORED = (
    "github-token stripe-key npm-token huggingface-token digitalocean-token linear-key notion-token docker-token"
)
_HYPHENATED = (
    "gitlab-token slack-token anthropic-key openrouter-key openai-key google-oauth pypi-token postman-key age-key"
)
_DOTTED = "google-oauth sendgrid-key vault-token terraform-token discord-token"
_LITERALS = {
    "IA": "aws-access-key",
    "AIza": "google-api-key",
    "dapi": "databricks-token",
    "SK": "twilio-key",
    "eyJ": "jwt",
}
# Literals that need a rare character: one look for it saves the look for them.
_RARE_LITERALS = {
    ":": {":AA": "telegram-token", "://hooks.slack.": "slack-webhook", "discord": "discord-webhook"},
    "=": {"Key=": "azure-key", "sig=": "azure-key"},
    "~": {"8Q~": "azure-secret"},
}


def shapes_in(text: str) -> list[tuple[int, int, str]]:
    """From, to and kind of each secret that its shape gives away."""
    return [
        (*match.span(match.lastindex or 0), kind)
        for kind in dict.fromkeys(_kinds_to_try(text))
        for match in _shape(kind).finditer(text)
    ]


def _kinds_to_try(text: str) -> list[str]:
    """The kinds whose sign is in the text; most texts have none, so this is what an ordinary text costs."""
    kinds: list[str] = []
    if "_" in text and (_underscore_sign().search(text) or "dckr_" in text):
        kinds += _UNDERSCORED.split()
    if "-" in text and _hyphen_sign().search(text):
        kinds += _HYPHENATED.split()
    if "." in text and _dot_sign().search(text):
        kinds += _DOTTED.split()
    for literal in _LITERALS:
        if literal in text:
            kinds.append(_LITERALS[literal])
    for rare in _RARE_LITERALS:
        if rare in text:
            kinds += [kind for literal, kind in _RARE_LITERALS[rare].items() if literal in text]
    return kinds


def is_placeholder(secret: str) -> bool:
    """Whether it only stands for a secret: a reference, a mask, a word such as `password` or `changeme`."""
    return _placeholder().match(secret) is not None


def looks_random(secret: str) -> bool:
    """Whether it is no word: it has digits and letters, or capitals past its first letter, and is no placeholder."""
    if is_placeholder(secret):
        return False
    has_digit = _digit().search(secret) is not None
    return (has_digit and _letter().search(secret) is not None) or secret[1:] != secret[1:].lower() or "=" in secret


@cache
def _shape(kind: str) -> re.Pattern[str]:
    named = _NAMED_SHAPES.get(kind)
    return re.compile(named or rf"(?<![A-Za-z0-9])(?:{_SHAPES[kind]})")


@cache
def _underscore_sign() -> re.Pattern[str]:
    # What follows is looked at first: few names go on for so long without another underscore.
    endings = ["gh[pousr]_", "_pat_", "k_live_", "k_test_", "whsec_", "npm_", "hf_", "_v1_", "lin_api_"]
    endings += ["lin_oauth_", "secret_", "ntn_"]
    return re.compile(f"_(?=[A-Za-z0-9+/-]{{8}})(?:{'|'.join(f'(?<={ending})' for ending in endings)})")


@cache
def _hyphen_sign() -> re.Pattern[str]:
    endings = ["sk-", "xox[abeposr]-", "xapp-", "GOCSPX-", "pypi-", "PMAK-", "-KEY-"]
    endings += [
        "glpat-",
        "glptt-",
        "gldt-",
        "glrt-",
        "glcbt-",
        "glsoat-",
        "glagent-",
        "glimt-",
        "glft-",
        "gloas-",
        "glwt-",
    ]
    return re.compile(f"-(?:{'|'.join(f'(?<={ending})' for ending in endings)})[A-Za-z0-9]")


@cache
def _dot_sign() -> re.Pattern[str]:
    endings = ["SG", "hv[sbr]", "ya29"]
    known = "|".join(rf"(?<={ending}\.)[A-Za-z0-9_-]{{6}}" for ending in endings)
    return re.compile(rf"\.(?:{known}|atlasv1\.|(?<=[A-Za-z0-9_-]{{24}}\.)[A-Za-z0-9_-]{{6}}\.)")


@cache
def _placeholder() -> re.Pattern[str]:
    words = "password|passwd|passphrase|pass|pwd|secret|token|api[_-]?key|key|changeme|change[_-]me|example|placeholder"
    words += "|redacted|none|null|nil|undefined|true|false|required|optional|enabled|disabled|hidden|masked|foobar|todo"
    before = "your|my|the|some|a|an|new|old|user|db|test|fake|dummy|sample|insert|enter"
    return re.compile(
        r"\[REDACTED:|\$[A-Za-z_{(]|%[A-Za-z_(]|\{\{|\{[A-Za-z_][\w.]*\}|<|[@#]\{|\[[A-Za-z_-]+\]\Z|[xX*.•_#…-]+\Z"
        rf"|(?:(?:{before})[_-]?){{0,3}}(?:{words})(?:[_-]?here)?\Z"
        r"|(?:your|insert|enter|replace|example|placeholder|dummy|redacted)[_-]",
        re.IGNORECASE,
    )


@cache
def _digit() -> re.Pattern[str]:
    return re.compile("[0-9]")


@cache
def _letter() -> re.Pattern[str]:
    return re.compile("[A-Za-z]")
