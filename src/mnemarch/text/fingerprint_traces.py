"""Stack traces: of Python, and of the languages whose frames say `at`."""

from __future__ import annotations

from functools import cache

from mnemarch.lazy import Lazy
from mnemarch.model.value import replace
from mnemarch.text.fingerprint_masks import base_name, code_skeleton, is_library
from mnemarch.text.fingerprint_parts import Fault, indent, place, typed

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Sequence
else:
    re = Lazy("re")

# Which of them is raised for one fault depends on the version.
_SYNTAX_ERRORS = frozenset({"SyntaxError", "IndentationError", "TabError"})
# So many lines above the first frame may the type stand: messages have several lines.
_HEAD_LINES_MAX = 12
_MARGIN = " \t|+"


def python_faults(lines: Sequence[str]) -> list[Fault]:
    """The errors at the ends of tracebacks; of a chain the last."""
    faults: list[Fault] = []
    frames: list[tuple[str, str]] = []
    margin, shown = 0, ""
    for line in lines:
        text = line.lstrip(_MARGIN)
        frame = _python_frame().match(text)
        if frame is not None:
            frames.append((frame["file"], frame["function"] or ""))
            margin, shown = indent(line), ""
        elif not frames:
            # The last error is the one that ended the run; those before it were handled, or are told as its reason.
            if faults and _python_chain().match(text):
                faults.pop()
        elif text and _ends_a_traceback(text, indent(line) < margin, frames):
            faults.append(_python_fault(text, frames, shown))
            frames = []
        elif not shown and text.strip("^~ "):
            shown = text
    return faults


def _ends_a_traceback(text: str, is_outside: bool, frames: Sequence[tuple[str, str]]) -> bool:
    # A shown string may go on over lines of any indentation, and a log may have taken the indentation away.
    is_certain = is_outside and frames[-1][1] != ""
    return is_certain or _python_type().match(text) is not None


def _python_fault(text: str, frames: Sequence[tuple[str, str]], shown: str) -> Fault:
    fault = typed(text, ends_a_trace=True)
    if fault.kind in _SYNTAX_ERRORS:
        return _syntax_fault(text, base_name(frames[-1][0]), shown)
    return replace(fault, where=_python_place(frames))


def _syntax_fault(text: str, file: str, shown: str) -> Fault:
    """Known by the source line, since each version words it otherwise."""
    message = text.partition(":")[2].strip()
    # Of an f-string some versions show the expression alone, in a file of its own.
    if file == "<fstring>" or (message.startswith("f-string:") and shown.startswith("(")):
        file = "f-string"
    # What is never closed is reported where it opens, or at the end of the file.
    if _open_to_the_end().search(message):
        shown = ""
    return Fault(kind="SyntaxError", where=file, what=code_skeleton(shown))


def _python_place(frames: Sequence[tuple[str, str]]) -> str:
    """The innermost frame that is not in a library: file and function, never the line."""
    # Since 3.12 a comprehension has no frame of its own.
    telling = [frame for frame in frames if not frame[1].endswith("comp>")] or frames
    own = [frame for frame in telling if not is_library(frame[0])]
    file, function = (own or telling)[-1]
    return place(base_name(file), function)


def at_faults(lines: Sequence[str]) -> list[Fault]:
    """The errors of Java, JavaScript and C# traces; of "Caused by" the last, since frameworks wrap all they run."""
    faults: list[Fault] = []
    for above, frames in _at_traces(lines):
        head = _head(above)
        if _aside().search(head):
            continue
        fault = _stated(head, _at_place(above, frames))
        if faults and _cause().match(head):
            faults[-1] = replace(fault, where=fault.where or faults[-1].where)
        else:
            faults.append(fault)
    return faults


def _at_traces(lines: Sequence[str]) -> Iterator[tuple[list[str], list[str]]]:
    """For each trace the lines above its frames, and the frames without their `at`."""
    above: list[str] = []
    frames: list[str] = []
    is_cause = False
    for line in lines:
        frame = _at_frame().match(line)
        if frame is not None:
            frames.append(frame["rest"])
            continue
        if not line.strip():
            continue
        starts_cause = _cause().match(line) is not None
        if frames or (starts_cause and is_cause):
            yield above[-_HEAD_LINES_MAX:], frames
            above, frames, is_cause = [], [], False
        if starts_cause:
            above, is_cause = [], True
        above.append(line)
    if frames or is_cause:
        yield above[-_HEAD_LINES_MAX:], frames


def _head(above: Sequence[str]) -> str:
    """The line that states the error: the nearest that names a type, or else the nearest."""
    if above and _cause().match(above[0]):
        return above[0]
    return next((line for line in reversed(above) if _stated_type().search(line)), above[-1] if above else "")


def _stated(head: str, where: str) -> Fault:
    match = _stated_type().search(head)
    return typed(match["stated"] if match else head.strip(), where)


def _at_place(above: Sequence[str], frames: Sequence[str]) -> str:
    places = [_at_frame_place(frame) for frame in frames]
    own = next((place for place, is_foreign in places if not is_foreign), "")
    # A file that cannot be parsed has no frame; it is named above.
    named = next((match[1] for match in map(_file_and_line().match, above) if match), "")
    return own or base_name(named) or (places[0][0] if places else "")


def _at_frame_place(frame: str) -> tuple[str, bool]:
    """File and function, or class and method; and whether that is a library's."""
    call = _call().match(frame)
    function, location = (call["function"], call["location"]) if call else ("", frame)
    script = _script().match(location)
    if script is not None:
        file = script["file"]
        name = function.rsplit(".", 1)[-1]
        return place(base_name(file), "" if name == "<anonymous>" else name), is_library(file)
    method = _made_up_method().sub(r"\1", function.rsplit("/", 1)[-1])
    return ".".join(method.split(".")[-2:]), _foreign_package().match(method) is not None


@cache
def _python_frame() -> re.Pattern[str]:
    return re.compile(r'File "(?P<file>[^"]*)", line \d+(?:, in (?P<function>.+))?$')


@cache
def _python_chain() -> re.Pattern[str]:
    return re.compile(r"During handling of the above exception|The above exception was the direct cause")


@cache
def _python_type() -> re.Pattern[str]:
    return re.compile(r"[\w.]+(?:Error|Exception|Warning|Interrupt|Exit|Iteration|Group)(?::|$)")


@cache
def _open_to_the_end() -> re.Pattern[str]:
    return re.compile(r"was never closed|\bEOF\b|triple-quoted")


@cache
def _at_frame() -> re.Pattern[str]:
    # .NET translates the word.
    return re.compile(r"\s+(?:at|bei|à|в|위치:|場所)\s(?P<rest>(?=.*[(:]).*?)(?: \{)?$")


@cache
def _cause() -> re.Pattern[str]:
    return re.compile(r"\s*(?:\[\w+\]\s+)?Caused by: ")


@cache
def _aside() -> re.Pattern[str]:
    return re.compile(r"\[cause\]: |^\s*Suppressed: ")


@cache
def _stated_type() -> re.Pattern[str]:
    return re.compile(
        r"(?<![\w$.])(?P<stated>(?:[A-Za-z_][\w$]*+\.)*+(?:[A-Z][\w$]*)?(?:Error|Exception|Failure|Throwable|Rejection)"
        r"(?![\w$])(?:\s\[\w+\])?(?::.*)?)$"
    )


@cache
def _file_and_line() -> re.Pattern[str]:
    return re.compile(r"((?:file://|[A-Za-z]:)?[^\s:]+\.\w{1,5}):\d+$")


@cache
def _call() -> re.Pattern[str]:
    return re.compile(r"(?:async )?(?:new )?(?P<function>[^(]*?)(?: \[as [^\]]*\])?\s?\((?P<location>.*?)\)(?: .*)?$")


@cache
def _script() -> re.Pattern[str]:
    return re.compile(
        r"(?:async )?(?:file://)?(?P<file>.*?\.(?:[cm]?[jt]sx?|vue|svelte)|node:[\w/.]+)(?:\?[^:]*)?:\d+(?::\d+)?$"
    )


@cache
def _made_up_method() -> re.Pattern[str]:
    return re.compile(r"lambda\$(\w+)\$\d+|\$\$[\w$]+|\$\d+")


@cache
def _foreign_package() -> re.Pattern[str]:
    return re.compile(
        r"(?:java|javax|jakarta|jdk|sun|com\.sun|kotlin|kotlinx|scala|groovy|org\.(?:junit|opentest4j|assertj|hamcrest|mockito"
        r"|apache|eclipse|gradle|hibernate|postgresql|slf4j|springframework|testng)|com\.(?:fasterxml|mysql|zaxxer)|ch\.qos"
        r"|io\.(?:grpc|micrometer|netty|vertx)|reactor|System|Microsoft|Xunit|NUnit)\."
    )
