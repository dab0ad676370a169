"""What to do next, in the words of each interface: `errors.Hint` names an advice, and `hints.txt` words it.

`{part}` stands for a part that the error fills in. What tools have no words for is said to them as to the command line.
"""

from __future__ import annotations

from mnemarch.lazy import paragraphs_beside

INTERFACES = ("python", "command line", "tool")
WORDS = paragraphs_beside(__file__, "hints.txt")
