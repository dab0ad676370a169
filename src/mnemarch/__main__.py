"""`mnemarch`, also as `python -m mnemarch`. A hook runs at every tool call, so it does not load the command line."""

import gc
import os
import sys

from mnemarch.lazy import keep_patterns

_NEWLY_MADE_MAX = 50_000
# Without these modules, no thread runs and no exit handler is registered.
_WAITED_FOR = {"atexit", "threading"}


def main() -> int:
    # A process runs one command, and garbage is freed at its end. A long run still collects.
    gc.set_threshold(_NEWLY_MADE_MAX)
    try:
        if sys.argv[1:2] == ["hook"] and {"-h", "--help"}.isdisjoint(sys.argv):
            from mnemarch.interfaces.hooks import run

            code = run(sys.argv[2:])
            keep_patterns()
            os._exit(code)  # Everything is written and closed, so the teardown of modules is skipped.
        from mnemarch.interfaces import cli

        code = cli.main()
        if sys.stdout is not None and sys.modules.keys().isdisjoint(_WAITED_FOR):
            sys.stdout.flush()
            keep_patterns()
            os._exit(code)
        return code
    finally:
        keep_patterns()
        gc.freeze()  # Spare the collection of all objects at the interpreter's exit.


if __name__ == "__main__":
    raise SystemExit(main())
