"""`mnemarch`, also as `python -m mnemarch`. A hook comes with every tool call, so it loads no command line."""

import sys


def main() -> int:
    if sys.argv[1:2] == ["hook"] and {"-h", "--help"}.isdisjoint(sys.argv):
        import gc

        from mnemarch.interfaces.hook import run

        gc.disable()  # What is garbage goes with the process.
        return run(sys.argv[2:])
    from mnemarch.interfaces import cli

    return cli.main()


if __name__ == "__main__":
    raise SystemExit(main())
