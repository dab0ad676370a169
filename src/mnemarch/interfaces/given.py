"""The former name of `arguments`."""

from mnemarch.interfaces.arguments import text_given

__all__ = ["text_given"]
