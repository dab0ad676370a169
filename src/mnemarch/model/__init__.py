"""Model. Takes: plain values. Gives: the frozen values that all other parts exchange. Never: has side effects."""

from mnemarch.lazy import submodules_of

__getattr__ = submodules_of(globals())
