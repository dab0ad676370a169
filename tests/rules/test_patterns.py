"""Compiled patterns that are kept between processes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from mnemarch.text.words import Patterns

SOURCES = [
    r"(?i)<(\s*/?\s*)mnemarch-memory",
    r"(?P<latin>\w+)|(?P<hangul>[\u1100-\u11ff\uac00-\ud7a3]+)",
    r"(?ms)^a(?:b|c)*?$(?<!x)\Z",
    r"[^\W\d_]{2,}+(?=!)|(?P<q>['\"]).*?(?P=q)",
]
TEXT = "a\nabc </ mnemarch-memory 한글 'quoted' Word! 5"
PROGRAM = """
import json, sys
from mnemarch import lazy
found = []
for source in json.loads(sys.argv[1]):
    pattern = lazy.compiled(source)
    spans = [match.span() for match in pattern.finditer(sys.argv[2])]
    found.append([pattern.flags, pattern.groups, dict(pattern.groupindex), spans])
print(json.dumps([found, len(lazy._new)]))
lazy.keep_patterns()
"""


def asked(folder, sources=SOURCES, **environ):
    own = {name: item for name, item in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    own |= {"PYTHONPYCACHEPREFIX": str(folder)} | environ
    words = [sys.executable, "-c", PROGRAM, json.dumps(sources), TEXT]
    done = subprocess.run(words, env=own, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def by_re(source):
    pattern = re.compile(source)
    spans = [list(match.span()) for match in pattern.finditer(TEXT)]
    return [pattern.flags, pattern.groups, dict(pattern.groupindex), spans]


def kept(folder):
    return list(folder.rglob("*.codes"))


def test_a_kept_pattern_is_the_one_that_re_compiles_and_is_not_compiled_again(tmp_path):
    # Those that find secrets are among them: what is kept must not read a text otherwise.
    listed = (Patterns("secrets", "places", "no secrets", "signs"), Patterns("errors", "lines", "diagnostics", "names"))
    sources = [*SOURCES, *(source for patterns in listed for source in patterns.sources.values())]
    wanted = list(map(by_re, sources))
    assert asked(tmp_path, sources) == [wanted, len(sources)]
    assert asked(tmp_path, sources) == [wanted, 0]


@pytest.mark.parametrize("content", [b"", b"\x00" * 64, b"no marshal", None])
def test_a_torn_file_and_a_file_of_another_python_are_written_again(tmp_path, content):
    asked(tmp_path)
    (file,) = kept(tmp_path)
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2] if content is None else content)
    assert asked(tmp_path) == [list(map(by_re, SOURCES)), len(SOURCES)]
    assert asked(tmp_path) == [list(map(by_re, SOURCES)), 0]


def test_nothing_is_kept_where_python_keeps_no_bytecode(tmp_path):
    asked(tmp_path, PYTHONDONTWRITEBYTECODE="1")
    assert kept(tmp_path) == []
