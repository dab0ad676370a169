"""How one fault is worded by several versions of a language, made one wording."""

from __future__ import annotations

from functools import cache

from mnemarch.lazy import Lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
else:
    re = Lazy("re")

# The interpreter words these and words them anew; the type says as much.
_SAID_BY_THE_TYPE = frozenset({"NameError", "RecursionError", "UnboundLocalError", "ZeroDivisionError"})
# What Python said in one version between 3.6 and 3.14, and what stands for all of them here.
_REWORDED = {
    "TypeError": (
        (r"must be str, not \w+\Z", "can only concatenate str"),
        (r"(can only concatenate \w+) \(not .*", r"\1"),
        (r"object\(\) takes no parameters", "f() takes no arguments"),
        (r"\w+\(\) takes no arguments", "f() takes no arguments"),
        (r"(is an invalid keyword argument for) .*", r"\1"),
        (r"can't (?:take floor or mod of|mod) complex numbers?\.?", "unsupported operand type(s) for divmod(): ''"),
        (r"is not a container or iterable", "is not iterable"),
        (r"cannot use .{1,80} as an? .{1,20} \((unhashable type: .*)\)", r"\1"),
    ),
    "AttributeError": (
        (r"can't (set|delete) attribute.*", r"attribute cannot be \1"),
        (r"property .* object has no setter", "attribute cannot be set"),
        (r"property .* object has no deleter", "attribute cannot be deleted"),
        (r" and no __dict__ for setting new attributes", ""),
        (r"\bpartially initialized (?=module)", ""),
    ),
    "ImportError": ((r"(cannot import name \S+).*", r"\1"),),
    "ValueError": ((r"\(expected (?:at least )?\d+(?:, got \d+)?\)", ""),),
}


def one_wording(message: str, kind: str) -> str:
    """The message without hints, without the modules of functions, and as any version might have said it."""
    if kind in _SAID_BY_THE_TYPE:
        return ""
    message = _hints().sub("", message)
    if kind == "TypeError":
        message = _qualified_calls().sub(r"\1()", message)
    for pattern, wording in _rewordings(kind):
        message = pattern.sub(wording, message)
    return message


@cache
def _rewordings(kind: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern), wording) for pattern, wording in _REWORDED.get(kind, ()))


@cache
def _hints() -> re.Pattern[str]:
    return re.compile(
        r"\.?\s(?:Did you (?:mean|forget)|Maybe you meant|Perhaps you forgot|Or did you)\b.*"
        r"|\s\((?:most likely|consider|did you|hint)\b[^()]*\)"
        # What was given instead is a value.
        r"|,\s(?:not|but got|got|found)\s[^,\s]{1,60}$"
    )


@cache
def _qualified_calls() -> re.Pattern[str]:
    return re.compile(r"(?<![\w.<>])(?:[\w<>]++\.)++(\w+)\(\)")
