"""The time a text takes grows with its length and not with the square, whatever it says: no text stops others."""

from __future__ import annotations

import gc
import importlib
import inspect
import json
import os
import pkgutil
import re
from math import inf
from pathlib import Path
from time import process_time

import pytest

import mnemarch.text
from mnemarch import InvalidInput, checkout
from mnemarch.recall.question import dates_in, without_frame
from mnemarch.text import approach, conversation, faults, guarded, korean, mentions
from mnemarch.text.cache import forget_texts
from mnemarch.text.edits import Edit
from mnemarch.text.tokens import query_tokens
from mnemarch.witness.run import GoText, runner_of

FIXTURES = Path(__file__).parent.parent / "fixtures"
# Half of the longest text that anybody may store, and a sixteenth of that.
SHORT, LONG = 2_048, 32_768
GROWTH_MAX = 64
# A long text in this time is fast, however it grows.
SECONDS_FAST = 0.02
TRIES = 4


def _public() -> dict[str, object]:
    found = {}
    for each in pkgutil.iter_modules(mnemarch.text.__path__):
        module = importlib.import_module(f"mnemarch.text.{each.name}")
        for name, item in vars(module).items():
            own = getattr(inspect.unwrap(item), "__module__", None) == module.__name__ if callable(item) else False
            if own and not name.startswith("_"):
                found[f"{each.name}.{name}"] = item
    return found


PUBLIC = _public() | {"question.dates_in": dates_in, "question.without_frame": without_frame}
VALUES = {name for name, item in PUBLIC.items() if "positional" in inspect.signature(item).parameters}


def _mentioned(text: str) -> object:
    known = mentions.Mentions()
    known.add("a", ["a", "a a", "가", "결제 서비스", "un", "not", "--force", "password"])
    return known.found_in(text)


def _similar(text: str) -> object:
    return approach.similarity(approach.approach(text), approach.approach(f"not {text}"))


# How those are called that don't take one text.
CALLS = {
    "approach.same_approach": _similar,
    "approach.similarity": _similar,
    "guarded.polarity": lambda text: PUBLIC["guarded.polarity"](guarded.pieces(text), guarded.pieces(f"not {text}")),
    "conversation.project_key": lambda text: conversation.project_key(text, text),
    "edits.netted": lambda text: PUBLIC["edits.netted"](
        [Edit((0,), "m.py", "", text), Edit((1,), "m.py", text, f"{text} ")]
    ),
    "edits.told_edit": lambda text: PUBLIC["edits.told_edit"](Edit((), "m.py", text, f"not {text}")),
    "words.some_of": lambda text: PUBLIC["words.some_of"]([text, text], 1),
    "words.in_a_line": lambda text: PUBLIC["words.in_a_line"](text, 80),
    "everyday.widened": lambda text: PUBLIC["everyday.widened"](text, dict.fromkeys(query_tokens(text), 1.0)),
    "faults.in_test": lambda text: faults.in_test(faults.Fault(text, text), text),
    "korean.is_other_grammar": lambda text: korean.is_other_grammar(text, f"가{text[::-1]}"),
    "mentions.Mentions": _mentioned,
    "opposition.ended": lambda text: PUBLIC["opposition.ended"](text, f"no longer {text}"),
    "prompt.fenced": lambda text: PUBLIC["prompt.fenced"]([text, text]),
    "secrets.redacted_tree": lambda text: PUBLIC["secrets.redacted_tree"](
        {"a": text, "password": text, text: [text]}, set()
    ),
    "slots.english_slots": lambda text: PUBLIC["slots.english_slots"](guarded.pieces(text)),
    "slots.korean_slots": lambda text: PUBLIC["slots.korean_slots"](guarded.pieces(f"가 {text}")),
    "statements.kinds_in": lambda text: PUBLIC["statements.kinds_in"](guarded.pieces(text)),
    "slots.has_hangul": lambda text: PUBLIC["slots.has_hangul"](guarded.pieces(text)),
}
EXEMPT = {
    **dict.fromkeys(VALUES, "holds what was read"),
    **dict.fromkeys(("cache.BoundedCache", "cache.cached", "cache.forget_texts", "words.counted"), "takes no text"),
    **dict.fromkeys(("cache.pattern", "words.Patterns"), "compiles patterns of the program"),
    **dict.fromkeys(
        (
            "words.entries",
            "words.grouped",
            "words.inflected",
            "words.line_of",
            "words.listed",
            "words.opposites",
            "words.kinds_of",
            "clauses.roots",
            "clauses.words_of",
            "slots.word_set",
        ),
        "reads the program's own tables",
    ),
    **dict.fromkeys(
        ("korean.is_barred", "korean.is_obliged", "korean.number_key", "korean.reduction_before"),
        "takes a match of the pattern that `pieces` reads by",
    ),
    **dict.fromkeys(
        (
            *("slots.is_name", "slots.without_particle"),
            *("statements.said_by", "statements.words_of", "clauses.root_of_piece"),
        ),
        "takes one piece of those that `pieces` reads",
    ),
    **dict.fromkeys(
        ("conversation.Coherence", "conversation.project_of", "conversation.weight_of"),
        "takes what an index keeps",
    ),
    **dict.fromkeys(
        ("clauses.Clauses",),
        "takes what `frame_of` reads",
    ),
    "conversation.sketched": "takes a unit, whose text `telling_tokens` reads",
}

# Before, what is repeated (a number for each %d), and after: what makes a pattern of `text/` look far or come back.
HOSTILE = [tuple(json.loads(line)) for line in (FIXTURES / "hostile_texts.jsonl").read_text().splitlines()]


def _text(form: tuple[str, str, str], size: int) -> str:
    before, run, after = form
    if "%d" in run:
        return "".join([run.replace("%d", str(number)) for number in range(size // len(run))])
    return f"{before}{run * (size // len(run))}{after}"


def _call(name: str):
    if name in CALLS:
        return CALLS[name]
    function = PUBLIC[name]
    needed = [each for each in inspect.signature(function).parameters.values() if each.default is each.empty]
    kinds = [str(each.annotation) for each in needed]
    if kinds == ["Sequence[str]"]:
        return lambda text: function([faults.cut(line) for line in text.splitlines()])
    assert set(kinds) == {"str"}, f"say in CALLS how {name} is called, or in EXEMPT why it need not be"
    is_stream = "Iterator" in str(inspect.signature(function).return_annotation)
    return lambda text: (
        list(function(text)) if is_stream else function(*([text] if len(kinds) == 1 else [text, f"not {text}"]))
    )


MEASURED = sorted(
    name
    for name, item in PUBLIC.items()
    if name not in EXEMPT and (name in CALLS or inspect.signature(item).parameters)
)


def _seconds(call, text: str, repeats: int = 1) -> float:
    took = []
    for _ in range(repeats):
        forget_texts()
        start = process_time()
        call(text)
        took.append(process_time() - start)
    return min(took)


def _growth(call, form: tuple[str, str, str], tries_max: int = TRIES) -> float:
    """How many times as long a long text takes as one of a sixteenth: 16 is linear, 256 the square.

    The limit lies in the middle of the two, so a busy machine would have to slow down every run of the long text four
    times, and none of the short one.
    """
    short, long = inf, inf
    for _ in range(tries_max):
        long = min(long, _seconds(call, _text(form, LONG)))
        if long < SECONDS_FAST:
            return 0.0
        short = min(short, _seconds(call, _text(form, SHORT), 3))
        if long <= GROWTH_MAX * short:
            break
    return long / short


def _some_of(forms: list[tuple[str, str, str]], name: str) -> list[tuple[str, str, str]]:
    """All of them in a full run; else a twelfth, another one for each function."""
    return forms if os.environ.get("MNEMARCH_TORTURE") == "full" else forms[MEASURED.index(name) % 12 :: 12]


@pytest.mark.long
@pytest.mark.parametrize("name", MEASURED)
def test_the_time_grows_with_the_length_and_not_with_the_square(name):
    call = _call(name)
    call("warm up: `a_b` is 가 not password=abc 1")
    gc.disable()
    try:
        growths = {form: _growth(call, form) for form in _some_of(HOSTILE, name)}
    finally:
        gc.enable()
    assert {form: round(growth) for form, growth in growths.items() if growth > GROWTH_MAX} == {}


@pytest.mark.parametrize(("pattern", "is_too_fast"), [(r"(?:a*b)?", False), (r"a*b", True)], ids=["linear", "square"])
def test_the_measure_tells_the_square_from_a_line(pattern, is_too_fast):
    looked_for = re.compile(pattern)

    def call(text):
        return looked_for.search(text) if is_too_fast else [looked_for.match(text) for _ in range(20)]

    assert (_growth(call, ("", "a", ""), 1) > GROWTH_MAX) == is_too_fast


def test_every_public_name_of_the_texts_folder_is_measured_or_says_why_not():
    assert EXEMPT.keys() <= PUBLIC.keys()
    assert CALLS.keys() <= PUBLIC.keys()
    takes_nothing = {
        name for name, item in PUBLIC.items() if name not in EXEMPT and not inspect.signature(item).parameters
    }
    assert takes_nothing | EXEMPT.keys() | set(MEASURED) == PUBLIC.keys()
    for name in MEASURED:
        _call(name)


@pytest.mark.parametrize("name", MEASURED)
def test_no_text_is_nested_too_deep(name):
    for run in ("un", "non", "(", "[", "{", '"', "'(", "not ", "안 ", "가(", "un-"):
        _call(name)(run * 4_000)


def test_a_file_that_is_nested_too_deep_is_refused_and_a_line_is_shown_as_it_is(tmp_path):
    deep = "[" * 100_000
    (tmp_path / "mnemarch.toml").write_text(f"a = {deep}")
    (tmp_path / "log.jsonl").write_text(f'{{"mnemarch": "export", "version": 2}}\n{deep}')
    (tmp_path / "package.json").write_text(deep)
    with pytest.raises(InvalidInput):
        checkout.load(str(tmp_path))
    with mnemarch.open(":memory:") as memory, pytest.raises(InvalidInput):
        memory.import_(tmp_path / "log.jsonl")
    assert runner_of(["npm", "test"], str(tmp_path)).runner == ""
    shown = GoText(str(tmp_path / "report")).text(f"{deep}\n[]\n".encode())
    assert shown.decode() == f"{deep}\n[]\n"
