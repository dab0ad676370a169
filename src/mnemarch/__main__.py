"""`mnemarch`, also as `python -m mnemarch`. A hook comes with every tool call, so it loads no command line."""

import gc
import sys

_NEWLY_MADE_MAX = 50_000


def main() -> int:
    # A process of one command: what is garbage goes with it, unless it runs for long.
    gc.set_threshold(_NEWLY_MADE_MAX)
    try:
        if sys.argv[1:2] == ["hook"] and {"-h", "--help"}.isdisjoint(sys.argv):
            from mnemarch.interfaces.hook import run

            return run(sys.argv[2:])
        from mnemarch.interfaces import cli

        return cli.main()
    finally:
        if "mnemarch.patterns" in sys.modules:
            sys.modules["mnemarch.patterns"].keep()
        gc.freeze()  # The interpreter would look through everything once more as it ends.


if __name__ == "__main__":
    raise SystemExit(main())
