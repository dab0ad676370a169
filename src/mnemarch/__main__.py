"""`python -m mnemarch`: the same as `mnemarch`."""

from mnemarch.interfaces.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
