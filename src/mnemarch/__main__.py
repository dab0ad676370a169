"""`python -m mnemarch`: the same as `mnemarch`."""

from mnemarch.interfaces.cli import main

raise SystemExit(main())
