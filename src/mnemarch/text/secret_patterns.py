"""What secrets look like that have no shape of their own: what stands before them, and what only looks like one.

The shapes of known keys and tokens are in data/secrets.txt. The patterns after a name are for lower case. Lengths are
bounded wherever a long run could be read again and again.
"""

from __future__ import annotations

KEY_BEGIN = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
# A header that is quoted in prose has no key after it.
KEY_BODY = r"[ \t]*(?:\\+[rn]|\r?\n|[A-Za-z0-9+/]{16})(?=[\s\S])"
KEY_END = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
URL_LOGIN = r"""://[^\s:/?#@"'<>`]{0,128}:([^\s/"'<>`]{1,256})@"""
# The word that starts it, and a pattern whose last group is the token.
AUTHORIZATIONS = (
    (
        "authorization",
        r"""(?i)authorization\\{0,2}["']?\s{0,4}[:=]\s{0,4}\\{0,2}["']?"""
        r"(?:(?:bearer|basic|token|apikey)\s{1,4}([A-Za-z0-9._~+/=-]{8,})|([A-Za-z0-9_~+=-]{20,}))",
    ),
    ("bearer ", r"(?i)bearer\s{1,4}((?=[A-Za-z._~+/=-]*[0-9])[A-Za-z0-9._~+/=-]{16,})"),
)

# The names of secrets. A key is secret only after a word that says what it opens.
KEYS = ("key", "키")
SECRET_KEYS = (
    *("api", "access", "private", "secret", "encryption", "signing", "master", "auth", "account", "shared"),
    *("액세스", "엑세스", "접근", "비밀", "시크릿", "개인", "인증", "암호화", "서명", "마스터", "서비스"),
)
PASSWORDS = ("pass", "pw", "비밀번호", "비번", "패스", "암호")
ASSIGNED_NAMES = ("pass", "pw", "secret", "token", "auth", "key")
TOLD_NAMES = ("passw", "passphrase", "passcode", "pw", "secret", "token", "key")
KOREAN_NAMES = ("비밀번호", "비번", "패스워드", "암호", "토큰", "시크릿", "키")
_KOREAN_NAME = "|".join(KOREAN_NAMES)
# Only a secret is read beyond this length, or many names in one long run would each read all of it.
RUN_MAX = 512

# The rest of an assigned name, its closing quote, and the sign of assignment; or a space, after a flag.
ASSIGNMENT = (
    rf"(?:pass(?:w(?:or)?d|phrase|code)|pwd|(?<![a-z])pw|secret|token|key|auth|{_KOREAN_NAME})"
    r"(?:[_-]?(?:access|key|token|secret|base|value|string|hash|admin|root|user|db|b64|hex|[0-9]{1,2})){0,3}+s?"
    r"""(?:\\{0,3}["'`])?(?:(?P<assigned>[ \t]{0,8}(?:=>|:=|=(?!=)|:(?!:))[ \t]{0,8})|[ ](?=\S))"""
)
FLAG = r"(?<!\S)--[A-Za-z-]{0,36}\Z"
# Outside quotes an equals sign is padding at the end or the next assignment.
ASSIGNED_VALUE = (
    r"[bBfFrRuU]{0,2}\\{0,3}"
    r"""(?:"(?P<double>[^"\s\\]{8,}+)\\{0,3}"|'(?P<single>[^'\s\\]{8,}+)\\{0,3}'|`(?P<back>[^`\s\\]{8,}+)\\{0,3}`)"""
    rf"|(?P<bare>[!#-%(-+\--:?-\[\]^_a-{{}}~]{{6,{RUN_MAX}}}+(?:={{1,2}}(?=[\s,;&)\]}}]|\Z))?)"
)
REST_OF_ASSIGNED = r"""[^\s"'`,;<>\\|&]*"""

_ASIDE = r"[ ]?\([^()\n]{1,30}\)"
_PURPOSE = r"[ ](?:for|of|to|on|in|at|from|we|i|you|he|she|they|that)(?:[ ][\w'’./-]{1,24}){1,5}?"
_BE = (
    rf"(?:{_PURPOSE})?[ ](?:is|was|are|were|be|has[ ]been)"
    r"(?:[ ](?:now|still|just|currently|always|set|changed|reset|rotated)){0,2}(?:[ ](?:to|as))?(?=[ :=])"
)
_PARTICLE = "[은는이가도](?:[ ](?:현재|지금|이제|아직|여전히|계속|그냥))?"
# The rest of a name in a sentence, what it is for, and the words or signs that say what it is.
TELLING = (
    rf"(?:passw(?:or)?d|passphrase|passcode|(?<![a-z])pwd?|secret|token|key|{_KOREAN_NAME})"
    r"(?:[ _]?(?:값|value|string))?s?"
    rf"(?:[ ]?(?:->|→|：)|{_ASIDE}[ ]?[:=]"
    rf"|(?:{_ASIDE})?(?:{_PARTICLE}|{_BE}|['’]s(?=[ ])|(?P<toward>[을를]|[ ]to(?=[ ])))[ ]?[:=]?)[ \t]{{0,4}}"
)
CHANGING = r"(?:set|chang|rotat|updat)\w*(?:[ ][\w'’-]+){0,3}[ ]?\Z"
_BARE = r"[!#-&(-+\--:=?-\[\]^_a-{}~]"
TOLD_VALUE = rf"""[“‘「『]?(?:["'`](?P<quoted>[^"'`\s\\]{{8,{RUN_MAX}}})["'`]|(?P<bare>{_BARE}{{8,{RUN_MAX}}}))"""
REST_OF_TOLD = _BARE + "*"

# What only stands for a secret: a variable, a mask, a word such as `password` or `changeme`.
PLACEHOLDER = (
    r"(?i)\[REDACTED:|\$[A-Za-z_{(]|%[A-Za-z_(]|\{\{|\{[A-Za-z_][\w.]*\}|<|[@#]\{|\[[A-Za-z_-]+\]\Z|[xX*.•_#…-]+\Z"
    r"|(?:(?:your|my|the|some|a|an|new|old|user|db|test|fake|dummy|sample|insert|enter)[_-]?){0,3}"
    r"(?:password|passwd|passphrase|pass|pwd|secret|token|api[_-]?key|key|changeme|change[_-]me|example|placeholder"
    r"|redacted|none|null|nil|undefined|true|false|required|optional|enabled|disabled|hidden|masked|foobar|todo)"
    r"(?:[_-]?here)?\Z"
    r"|(?:your|insert|enter|replace|example|placeholder|dummy|redacted)[_-]"
)
# Where a secret is kept: an address, a path, an environment variable. Or a keyboard shortcut.
REFERENCE = (
    r"[A-Za-z][A-Za-z0-9+.-]{1,20}://|\.{0,2}/|~/|[A-Za-z]:\\|[a-z_.-]+/[a-z_.-]+\d{0,3}(?:/[a-z_.-]+\d{0,3})*\Z"
    r"|(?:process\.env|os\.environ|os\.getenv|env|secrets|vars?|config|settings|self|this|arn|vault|op|ref|file)[.:(\[]"
    r"|(?i:ctrl|alt|shift|cmd|meta)[+-]"
)
FILE = (
    r"[\w./@-]{1,200}\.(?:pem|key|crt|cer|p12|json|ya?ml|tsx?|jsx?|py|env|txt|toml|cfg|ini|conf|go|rs|java|kt|md|lock"
    r"|db|sh|rb|php)"
)
CALL = r"[A-Za-z_$][\w$.]*[(\[{]|[(\[{]"
DOTTED = r"[A-Za-z_]\w*(?:\??\.[A-Za-z_]\w*)+"
WORDS = r"[A-Za-z]+\d{0,2}(?:[_.:-](?:[A-Za-z]+\d{0,2}|\d{1,2}))*"
HYPHENATED = r"[A-Za-z]+\d{0,2}(?:[.:-][A-Za-z]+\d{0,2})+|v?\d+(?:\.\d+)+\S*"
EMAIL = r"[\w.+-]+@[\w-]+\.[\w.]+"
TYPE_NAME = r"[A-Z][A-Za-z]*(?:8|16|32|64|128|256|512)[A-Za-z]*"
CONSTANT = r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"
# A name with a number to it: token2, ci-token-3, invalid:401.
NUMBERED_NAME = r"[A-Za-z]+\d{0,2}(?:[-_.:/#@+][A-Za-z]+\d{0,2}|[-_.:/#]\d{1,5})*"
NUMBERED_WORD = r"[A-Za-z]+[:/#]\d{1,5}"
AWS_FORM = r"(?![0-9a-fA-F]+\Z)[A-Za-z0-9/+=]{40}"
LETTER_AND_DIGIT_OR_SIGN = r"(?=[^a-zA-Z]*[a-zA-Z])(?=[^0-9!@#$%^&*+=?~]*[0-9!@#$%^&*+=?~])"
LETTER_NEXT_TO_DIGIT = r"[A-Za-z][^A-Za-z0-9]*[0-9]|[0-9][^A-Za-z0-9]*[A-Za-z]"
SIGN_BETWEEN_LETTERS = r"[A-Za-z][!@#$%^]+[A-Za-z]"
# Words of the trade that have digits in them: they are prose, alone and in compounds (sha256-hashed).
TERM = (
    r"(?i)(?<![A-Za-z0-9])"
    r"(?:(?:(?:hmac)?(?:sha|md|blake|argon|bcrypt|scrypt|pbkdf|hkdf)|aes|des|rsa|dsa|[hrep]s|ed|secp|curve|chacha|poly"
    r"|base|utf|rfc|oauth|ipv|http|tls|u?int|float|python|node|java|gpt|x|v|s)-?\d+(?:url|id|[dik])?"
    r"|k8s|2fa|(?:cl|[opr])\d+k)(?![A-Za-z0-9])"
)
# Numbers that say how much, how long, when or which one: 32-byte, 3600seconds, 3rd-party, 2024-01-31.
MEASURE = (
    r"(?i)\d+[-_]?(?:bits?|bytes?|chars?|characters?|digits?|letters?|words?|tokens?|hours?|hrs?|min(?:ute)?s?"
    r"|sec(?:ond)?s?|ms|days?|weeks?|months?|years?|times?|[kmg]i?b|percent)(?![A-Za-z0-9])"
    r"|\d{1,3}-[a-z]+(?:-[a-z]+)*\Z|\d[a-z]{2}-[a-z]+|v?\d+(?:[.:/-]\d+)+|[A-Z]{2,10}[-#]\d+\Z"
)
