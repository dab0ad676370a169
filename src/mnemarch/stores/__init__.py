"""Stores. Takes: events and rows. Gives: them back, durable and consistent; a search index made from them.

Never: knows a rule of the domain.
"""

from mnemarch.lazy import submodules_of

__getattr__ = submodules_of(globals())
