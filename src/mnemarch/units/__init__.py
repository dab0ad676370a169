"""Units. Takes: claims, evidence, and acts on units. Gives: units, or refusals with the rule that refused.

Never: searches; appends an event but through `Act.record`.
"""

from mnemarch.lazy import submodules_of

__getattr__ = submodules_of(globals())
