"""Claims that cite a test which says something else: how many are seen, and how many true ones are held back.

`python -m bench.claims` reads bench/claims.jsonl: tests as real suites have them, each with claims that it shows and
claims that it contradicts, in English and Korean, written without a look at the rule. Exits 1 if a limit is broken.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from mnemarch.code.codebase import Codebase
from mnemarch.code.expectations import expectations_in, other_value
from mnemarch.code.tests import body_of, source_of

# To hold back a true claim is worse than to let a false one pass, which cites its test for everybody to read.
HELD_BACK_MAX = 0.01
_FILE = Path(__file__).with_suffix(".jsonl")


def main() -> int:
    counts = {"shown": [0, 0], "opposed": [0, 0]}
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        path, test = record["file"], f"{record['file']}::{record['test']}"
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
            Path(folder, path).write_text(record["source"], encoding="utf-8")
            codebase = Codebase(folder)
            expected = expectations_in(body_of(codebase.tree, test, path), source_of(codebase, test, path))
        for label, count in counts.items():
            answers = [other_value(claim, test, expected) for claim in record[label]]
            count[0] += len(list(filter(None, answers)))
            count[1] += len(answers)
    (held, shown), (seen, opposed) = counts["shown"], counts["opposed"]
    print(f"claims that the test shows:       {held} of {shown} held back (limit {HELD_BACK_MAX:.0%})")
    print(f"claims that the test contradicts: {seen} of {opposed} seen")
    return int(held / shown > HELD_BACK_MAX)


if __name__ == "__main__":
    sys.exit(main())
