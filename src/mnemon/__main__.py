"""`python -m mnemon`: the same as `mnemon`."""

from mnemon.interfaces.cli import main

raise SystemExit(main())
