"""Services. Takes: an engine and a caller. Gives: what needs several rooms at once: an answer, an erasure, the inbox.

Never: has a rule that a room below could have.
"""

from mnemarch.lazy import submodules_of

__getattr__ = submodules_of(globals())
