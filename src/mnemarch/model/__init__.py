"""Model. Takes: plain values. Gives: the frozen values that every other part speaks in. Never: does anything."""

from mnemarch.lazy import submodules_of

__getattr__ = submodules_of(globals())
