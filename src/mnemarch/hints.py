"""What to do next, in the words of each interface: `errors.Hint` names an advice, and `hints.txt` words it.

`{part}` stands for a part that the error fills in.
"""

from __future__ import annotations

from mnemarch.lazy import paragraphs_beside

INTERFACES = ("python", "command line")
WORDS = paragraphs_beside(__file__, "hints.txt")
