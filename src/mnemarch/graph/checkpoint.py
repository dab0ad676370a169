"""Checkpoints (A27): the main nodes and edges of a session in a file, with all that is needed to go on from there."""

from __future__ import annotations

import os

from mnemarch.errors import InvalidInput, MnemarchError, StoreUnavailable
from mnemarch.graph import files, snapshot
from mnemarch.graph.node import EdgeType, NodeType
from mnemarch.graph.state import quotes
from mnemarch.model.json_text import json_needles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mnemarch.graph.engine import Engine
    from mnemarch.graph.provider import EmbeddingProvider
    from mnemarch.policy.heat import CheckpointConfig, GraphConfig

_NAME_CHARS_MAX = 120


def checkpoint_of(
    session: Engine, embedder: EmbeddingProvider, config: GraphConfig, top_k: int, now: int
) -> dict[str, Any]:
    """The hottest questions of a session, what belongs to them, and the edges among all these."""
    state = session.state
    whole = snapshot.record_of(state, session.vector_of, embedder, config, now)
    ranks = {query.id: query.rank(now, config.half_life_min) for query in state.of_type(NodeType.QUERY)}
    hottest = sorted(ranks, key=lambda id: (-ranks[id], id))[:top_k]
    order = {id: place for place, id in enumerate(hottest)}
    hot = order.keys()
    near = {edge["to"] for edge in whole["edges"] if edge["from"] in hot and edge["type"] != EdgeType.SIMILAR_TO}
    kept = hot | near
    nodes = whole.pop("nodes")
    return {
        **whole,
        "topQueries": sorted((node for node in nodes if node["id"] in hot), key=lambda node: order[node["id"]]),
        "around": [node for node in nodes if node["id"] in near],
        "edges": [edge for edge in whole["edges"] if edge["from"] in kept and edge["to"] in kept],
    }


def write(record: dict[str, Any], rules: CheckpointConfig, folder: str, name: str | None) -> str:
    """Put a checkpoint into its folder; gives its path. One without a name of its own never takes another's place."""
    stem = checked_name(name) if name is not None else f"{_spelled(record['sessionId'])}-{record['createdAt']}"
    path = os.path.join(folder, f"{stem.removesuffix('.json')}.json")
    try:
        if not os.path.isdir(folder):
            os.makedirs(folder)
            with open(os.path.join(folder, ".gitignore"), "w", encoding="utf-8") as file:
                file.write("*\n")  # They hold what was asked, which is nobody else's business.
    except OSError as error:
        raise StoreUnavailable(
            f"{folder} can't be made: {error.strerror}.", hint="Set checkpoint.out_dir to a folder you may write to."
        ) from None
    with files.held_folder(path):
        if name is None:
            path = _free(path)
        elif os.path.exists(path):
            files.read(path)  # What is no graph, or a later version's, is not overwritten.
        files.write(path, record, pretty=rules.pretty)
    return path


def _free(path: str) -> str:
    """The path, or one like it that no file has."""
    stem, number = path.removesuffix(".json"), 1
    while os.path.exists(path):
        number += 1
        path = f"{stem}-{number}.json"
    return path


def forget(folder: str, contents: Sequence[str]) -> int:
    """Take every node that quotes one of these texts out of the checkpoints in a folder; gives the files searched."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    paths = [os.path.join(folder, name) for name in names if name.endswith(".json")]
    unclean: list[str] = []
    for path in paths if contents else ():
        with files.held_folder(path):
            try:
                record = files.read(path)
            except MnemarchError:
                unclean += [path] if _still_quotes(path, contents) else []
                continue
            kept = _without(record, contents)
            if kept != record:
                files.write(path, kept)
    if unclean:
        raise StoreUnavailable(
            f"These can't be read as checkpoints, and quote what is to be erased: {', '.join(unclean)}.",
            hint="Remove them and erase again; nothing was erased yet.",
        )
    return len(paths)


def _still_quotes(path: str, contents: Sequence[str]) -> bool:
    return files.holds_any(path, [form.encode() for content in contents for form in json_needles(content)])


def _without(record: dict[str, Any], contents: Sequence[str]) -> dict[str, Any]:
    lists = [name for name in files.NODE_LISTS if name in record]
    gone = {node["id"] for name in lists for node in record[name] if quotes(node["text"], node["about"], contents)}
    kept = {name: [node for node in record[name] if node["id"] not in gone] for name in lists}
    edges = [edge for edge in record["edges"] if edge["from"] not in gone and edge["to"] not in gone]
    return record | kept | {"edges": edges}


def checked_name(name: Any) -> str:
    """A file's name that stays in its folder."""
    if not isinstance(name, str) or not name.strip() or name != _spelled(name):
        raise InvalidInput(
            f"{name!r} is no name for a checkpoint.",
            hint=f"Use letters, digits, '-', '_' and '.', at most {_NAME_CHARS_MAX} characters.",
        )
    return name


def _spelled(name: str) -> str:
    """A name with nothing in it that a file system would take for something else."""
    plain = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
    return plain.lstrip(".")[:_NAME_CHARS_MAX] or "session"
