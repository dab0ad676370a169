"""One peer on given texts. Runs in the peers' own environment, as a script: nothing of Mnemarch is imported here.

    python peer.py mem0|chroma INPUT.json FOLDER

The input holds texts, the scope of each, and for each scope questions. Prints the milliseconds of each answer as JSON.
Every peer gets the same vectors: a plain hash of words and parts of words, since a model would need a download.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
import zlib
from collections.abc import Callable
from typing import Any

DIMENSIONS = 384
ITEMS = 10
_WARM = 20
_CHUNK = 2_000

# From a scope and a question to the texts found.
Ask = Callable[[str, str], list[str]]


def embedded(text: str) -> list[float]:
    vector = [0.0] * DIMENSIONS
    for word in text.lower().split():
        for part in (word, *(word[at : at + 3] for at in range(len(word) - 2))):
            place = zlib.crc32(part.encode())
            vector[place % DIMENSIONS] += 1.0 if place & 0x8000_0000 else -1.0
    length = math.sqrt(sum(weight * weight for weight in vector)) or 1.0
    return [weight / length for weight in vector]


def chroma(texts: list[str], scopes: list[str], folder: str) -> Ask:
    import chromadb  # type: ignore[import-not-found]
    from chromadb.config import Settings  # type: ignore[import-not-found]

    client = chromadb.PersistentClient(folder, settings=Settings(anonymized_telemetry=False))
    held = client.create_collection("bench", metadata={"hnsw:space": "cosine"}, embedding_function=None)
    for start in range(0, len(texts), _CHUNK):
        chunk = texts[start : start + _CHUNK]
        held.add(
            ids=[str(start + place) for place in range(len(chunk))],
            documents=chunk,
            embeddings=[embedded(text) for text in chunk],
            metadatas=[{"scope": scope} for scope in scopes[start : start + _CHUNK]],
        )
        progress(start + len(chunk), len(texts))

    def ask(scope: str, question: str) -> list[str]:
        found = held.query(query_embeddings=[embedded(question)], n_results=ITEMS, where={"scope": scope})
        return list(found["documents"][0])

    return ask


def mem0(texts: list[str], scopes: list[str], folder: str) -> Ask:
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": folder, "OPENAI_API_KEY": "unused"}
    from mem0 import Memory  # type: ignore[import-not-found]

    store = {"path": os.path.join(folder, "qdrant"), "embedding_model_dims": DIMENSIONS, "on_disk": True}
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": os.path.join(folder, "history.db"),
        }
    )
    memory.embedding_model = Vectors()
    for number, (text, scope) in enumerate(zip(texts, scopes, strict=True), start=1):
        memory.add(text, user_id=scope, infer=False)
        if number % 100 == 0:
            progress(number, len(texts))

    def ask(scope: str, question: str) -> list[str]:
        found = memory.search(question, filters={"user_id": scope}, top_k=ITEMS, threshold=0.0)
        return [item["memory"] for item in found["results"]]

    return ask


class Vectors:
    """The same vectors where mem0 expects a model."""

    config = None

    def embed(self, text: str, _action: str | None = None) -> list[float]:
        return embedded(text)

    def embed_batch(self, texts: list[str], _action: str | None = None) -> list[list[float]]:
        return [embedded(text) for text in texts]


def progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{sys.argv[1]}: loading {done:,} of {total:,}\x1b[K", end="", file=sys.stderr, flush=True)


def main() -> None:
    name, path, folder = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        given: dict[str, Any] = json.load(file)
    started = time.perf_counter()
    ask = {"chroma": chroma, "mem0": mem0}[name](given["texts"], given["scopes"], folder)
    loaded_s = time.perf_counter() - started
    results: dict[str, Any] = {"loaded_s": loaded_s, "scopes": {}}
    for scope, questions in given["questions"].items():
        for question, _ in questions[:_WARM]:
            ask(scope, question)
        ms, found = [], 0
        for question, text in questions[_WARM:]:
            started = time.perf_counter()
            items = ask(scope, question)
            ms.append((time.perf_counter() - started) * 1000)
            found += text in items
        results["scopes"][scope] = {"ms": ms, "found": found / len(ms)}
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
