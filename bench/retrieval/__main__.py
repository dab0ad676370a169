"""How well recall finds, on sets that nobody here wrote.

    python -m bench.retrieval [--sets locomo,ko_parakqc] [--variants default,bm25] [--limit 100] [--keep FOLDER]

Prints one table a set and writes bench/out/retrieval.json and .png. Exits 1 if a limit is broken, 2 without data.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict

from bench.retrieval import likeness, sets, tables
from bench.retrieval.limits import limits
from bench.retrieval.loading import loaded
from bench.retrieval.picture import drawn
from bench.retrieval.progress import Progress
from bench.retrieval.running import Answered, answered, summary
from bench.retrieval.tables import Rows
from bench.retrieval.variants import BASELINES, DEFAULT, NAMES

_OUT = os.path.join(os.path.dirname(os.path.dirname(__file__)), "out")
_ALL_SETS = (*sets.RETRIEVAL, *sets.PAIRS)


def main() -> int:
    options = _options()
    absent = sets.missing(options.sets)
    if absent is not None:
        print(absent, file=sys.stderr)
        return 2
    results: dict[str, Rows] = {}
    screen = tables.console()
    screen.print(tables.legend(), markup=False, highlight=False)
    is_whole = True
    for name in options.sets:
        rows = results[name] = {}
        title = name
        try:
            title = _pairs(name, rows) if name in sets.PAIRS else _retrieval(name, rows, options)
        except KeyboardInterrupt:
            title, is_whole = f"{name}, interrupted", False
        tables.show(screen, title, tables.set_table(rows))
        if not is_whole:
            break
    found = limits(results)
    tables.show(screen, "limits", tables.limit_table(found))
    if not is_whole:
        return 130
    _write(results, [asdict(limit) | {"holds": limit.holds} for limit in found], options.limit)
    return 0 if all(limit.holds for limit in found) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m bench.retrieval", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", type=_some_of(_ALL_SETS), default=_ALL_SETS, help=", ".join(_ALL_SETS))
    parser.add_argument("--variants", type=_some_of(NAMES), default=NAMES, help=", ".join(NAMES))
    parser.add_argument("--limit", type=int, help="ask only so many questions of each set, spread over it")
    parser.add_argument("--keep", metavar="FOLDER", help="keep the loaded memories there, and use those that are")
    return parser.parse_args()


def _some_of(known: Sequence[str]) -> Callable[[str], list[str]]:
    def chosen(text: str) -> list[str]:
        names = text.split(",")
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
        return [name for name in known if name in names]

    return chosen


def _retrieval(name: str, rows: Rows, options: argparse.Namespace) -> str:
    """Fill in the rows of one set, the default first since the others are compared with it; gives a title."""
    given = sets.retrieval(name)
    questions = (
        given.questions[:: max(1, -(-len(given.questions) // options.limit))] if options.limit else given.questions
    )
    with tempfile.TemporaryDirectory(prefix="mnemarch-bench-") as scratch:
        with Progress(f"{name}: loading", len(given.turns)) as progress:
            held = loaded(given, options.keep or scratch, progress)
        default: list[Answered] | None = None
        for variant in sorted(options.variants, key=lambda variant: variant != DEFAULT):
            with Progress(f"{name}: {variant}", len(questions)) as progress:
                found = answered(variant, held, questions, progress)
            default = found if variant == DEFAULT else default
            is_timed = variant not in BASELINES
            rows[variant] = "not installed" if found is None else summary(found, default, timed=is_timed)
    return f"{name}: {len(questions):,} questions, {held}"


def _pairs(name: str, rows: Rows) -> str:
    given = sets.pairs(name)
    for likeness_name, auc in likeness.aucs(given).items():
        rows[likeness_name] = "not installed" if auc is None else {"AUC": auc}
    return f"{name}: {len(given.pairs):,} pairs"


def _write(results: dict[str, Rows], found: list[dict[str, object]], limit: int | None) -> None:
    os.makedirs(_OUT, exist_ok=True)
    with open(os.path.join(_OUT, "retrieval.json"), "w", encoding="utf-8") as file:
        json.dump({"sets": results, "limits": found, "questions_max": limit}, file, indent=2)
    if not drawn(results, os.path.join(_OUT, "retrieval.png")):
        print("No picture: matplotlib is not installed (pip install -e '.[bench]').", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
