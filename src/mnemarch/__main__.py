"""`mnemarch`, also as `python -m mnemarch`. A hook comes with every tool call, so it loads no command line."""

import gc
import os
import sys

_NEWLY_MADE_MAX = 50_000
# Without these no thread runs and nothing is registered for the end.
_WAITED_FOR = {"atexit", "threading"}


def main() -> int:
    # A process of one command: what is garbage goes with it, unless it runs for long.
    gc.set_threshold(_NEWLY_MADE_MAX)
    try:
        if sys.argv[1:2] == ["hook"] and {"-h", "--help"}.isdisjoint(sys.argv):
            from mnemarch.interfaces.hook import run

            code = run(sys.argv[2:])
            _keep_patterns()
            os._exit(code)  # All is written and closed, and nobody waits for modules to be taken down.
        from mnemarch.interfaces import cli

        code = cli.main()
        if sys.stdout is not None and sys.modules.keys().isdisjoint(_WAITED_FOR):
            sys.stdout.flush()
            _keep_patterns()
            os._exit(code)
        return code
    finally:
        _keep_patterns()
        gc.freeze()  # The interpreter would look through everything once more as it ends.


def _keep_patterns() -> None:
    if "mnemarch.patterns" in sys.modules:
        sys.modules["mnemarch.patterns"].keep()


if __name__ == "__main__":
    raise SystemExit(main())
