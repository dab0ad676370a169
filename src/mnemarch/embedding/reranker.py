"""A cross-encoder from disk (`mnemarch[rerank]`): it reads a question and a text together."""

from __future__ import annotations

import os
import time
from _thread import allocate_lock

from mnemarch.embedding.dense import sound
from mnemarch.errors import StoreUnavailable
from mnemarch.lazy import Lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import numpy as np
else:
    np = Lazy("numpy")

MODEL, TOKENIZER = "model.onnx", "tokenizer.json"
_BATCH_MAX = 4
_TOKENS_MAX = 512
# More than fills the model's window in any language.
_TEXT_CHARS_MAX = 4_000
_PADDING = ("[PAD]", "<pad>")


class OnnxReranker:
    """The model in one folder, as sentence-transformers and Optimum export it. Safe to share between threads.

    The first call loads it, which nothing can interrupt; after `seconds_max` a call gives what it has.
    """

    def __init__(self, folder: str, seconds_max: float) -> None:
        self._folder = folder
        self._seconds_max = seconds_max
        self._model: tuple[Any, Any] | None = None
        self._loading = allocate_lock()

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """A number for each text, the higher the better. Fewer than there are texts if time is up."""
        from threading import Timer

        deadline = time.monotonic() + self._seconds_max
        session, tokenizer = self._loaded()
        import onnxruntime  # type: ignore[import-untyped, import-not-found, unused-ignore]

        options = onnxruntime.RunOptions()
        timer = Timer(deadline - time.monotonic(), lambda: setattr(options, "terminate", True))
        timer.daemon = True
        timer.start()
        question = sound(question, _TEXT_CHARS_MAX)
        scores: list[float] = []
        try:
            for start in range(0, len(texts), _BATCH_MAX):
                if time.monotonic() >= deadline:
                    break
                pairs = [(question, sound(text, _TEXT_CHARS_MAX)) for text in texts[start : start + _BATCH_MAX]]
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
            import onnxruntime
            import tokenizers  # type: ignore[import-not-found, unused-ignore]
        except ImportError:
            raise StoreUnavailable(
                "the reranker's packages are not installed.", hint="Install them: pip install 'mnemarch[rerank]'"
            ) from None
        paths = [os.path.join(self._folder, name) for name in (MODEL, TOKENIZER)]
        if absent := [path for path in paths if not os.path.isfile(path)]:
            raise StoreUnavailable(
                f"there is no {absent[0]}.", hint=f"recall.rerank names a folder with {MODEL} and {TOKENIZER}."
            )
        options = onnxruntime.SessionOptions()
        # As with the sentence encoder: more threads wait for cores that other agents use.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        try:
            session = onnxruntime.InferenceSession(paths[0], options, providers=["CPUExecutionProvider"])
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
    """One number for each text: the model's only one, or how far "fits" is ahead of "does not fit"."""
    rows: Any = np.asarray(answer, np.float64)
    rows = rows.reshape(texts, -1) if texts and rows.size % texts == 0 else rows
    if rows.shape not in {(texts, 1), (texts, 2)} or not np.isfinite(rows).all():
        raise StoreUnavailable(f"the model gave an array of shape {rows.shape} for {texts} texts.")
    column: list[float] = (rows[:, -1] - (rows[:, 0] if rows.shape[1] == 2 else 0.0)).tolist()
    return column
