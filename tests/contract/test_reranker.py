"""A reranker: a small model of our own, made here, orders what words found; without it nothing is lost."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import mnemarch
from mnemarch import Actor, Scope
from mnemarch.config import config_from

WORTH = {"[PAD]": 0.0, "[UNK]": 0.0, "friday": 5.0, "tuesday": -5.0}
FACTS = (
    "Deploys of the payment service happen on Tuesday.",
    "Deploys of the payment service happen on Friday.",
    "Deploys of the payment service happen after lunch.",
)
QUESTION = "when do deploys of the payment service happen?"
_INT64, _FLOAT = TensorProto.INT64, TensorProto.FLOAT


def _saved(folder, nodes, *, outputs=1, also=()):
    """A model of these nodes from token ids to `logits`, and the tokenizer that it goes with."""
    table = np.array([[worth] * outputs for worth in WORTH.values()], np.float32)
    graph = helper.make_graph(
        nodes,
        "worth",
        [helper.make_tensor_value_info(name, _INT64, ["n", "l"]) for name in ("input_ids", "attention_mask")],
        [helper.make_tensor_value_info("logits", _FLOAT, None)],
        [numpy_helper.from_array(table, "table"), numpy_helper.from_array(np.array([1]), "axis"), *also],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "model.onnx")
    tokenizer = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": {word: id for id, word in enumerate(WORTH)}, "unk_token": "[UNK]"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))


def _worth_of_words(outputs="logits"):
    return [
        helper.make_node("Gather", ["table", "input_ids"], ["worths"]),
        helper.make_node("ReduceSum", ["worths", "axis"], [outputs], keepdims=0),
    ]


def _endless():
    """Nodes that count to 2**40 before they answer."""
    more = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Add", ["sum", "sum"], ["doubled"])],
        "body",
        [
            helper.make_tensor_value_info("round", _INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("sum", _FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("doubled", _FLOAT, None),
        ],
    )
    rounds = numpy_helper.from_array(np.array(2**40), "rounds")
    go = numpy_helper.from_array(np.array(True), "start")
    nodes = [*_worth_of_words("first"), helper.make_node("Loop", ["rounds", "start", "first"], ["logits"], body=more)]
    return nodes, [rounds, go]


@pytest.fixture
def recalled(tmp_path):
    """Ask one question of a memory with a reranker: the texts in order, with their reasons, and the notes."""

    def ask(question=QUESTION, **rules):
        config = config_from({"recall": {"rerank": "model", **rules}})
        with mnemarch.open(tmp_path, config=config) as memory:
            seat = memory.seat(Actor.agent("coder"), Scope(project="shop", task="t1"))
            for fact in FACTS:
                seat.remember(fact)
            found = seat.recall(question)
            return [(item.unit.content, item.why) for item in found.items], found.notes

    (tmp_path / "model").mkdir()
    return ask


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_reranker_orders_what_words_found_and_why_says_so(tmp_path, recalled, outputs):
    # Of two outputs the first says "does not fit": with equal ones no text is better than another.
    _saved(tmp_path / "model", _worth_of_words(), outputs=outputs)
    items, notes = recalled()
    assert not notes
    if outputs == 1:
        assert [text for text, _ in items] == [FACTS[1], FACTS[2], FACTS[0]]
        assert items[0][1]["rerank"] > items[1][1]["rerank"] > 0
        assert "rerank" not in items[2][1]
        for _, why in items:
            assert why["similarity"] == pytest.approx(
                sum(part for name, part in why.items() if name not in ("similarity", "recency", "importance"))
            )
    else:
        assert not any("rerank" in why for _, why in items)


def test_without_a_setting_there_is_no_reranker(recalled):
    items, notes = recalled(rerank="")
    assert len(items) == 3
    assert not notes
    assert not any("rerank" in why for _, why in items)


def test_a_model_that_takes_too_long_is_stopped_and_the_usual_order_stays(tmp_path, recalled):
    nodes, constants = _endless()
    _saved(tmp_path / "model", nodes, also=constants)
    usual, _ = recalled(rerank="")
    items, notes = recalled(rerank_s_max=0.2)
    assert [text for text, _ in items] == [text for text, _ in usual]
    assert "Reranked 0 of the first 3" in notes[0]


def _no_model(folder):
    (folder / "tokenizer.json").write_text("{}")


def _no_onnx(folder):
    _saved(folder, _worth_of_words())
    (folder / "model.onnx").write_bytes(b"not a model")


def _three_answers(folder):
    _saved(folder, _worth_of_words(), outputs=3)


def _other_inputs(folder):
    _saved(folder, _worth_of_words())
    model = onnx.load(folder / "model.onnx")
    model.graph.input.append(helper.make_tensor_value_info("pixels", _INT64, ["n", "l"]))
    onnx.save(model, folder / "model.onnx")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [(_no_model, "model.onnx"), (_no_onnx, "failed"), (_three_answers, "shape (3, 3)"), (_other_inputs, "pixels")],
)
def test_a_model_that_fails_leaves_the_usual_order_and_the_answer_says_so(tmp_path, recalled, spoil, said):
    spoil(tmp_path / "model")
    usual, _ = recalled(rerank="")
    items, notes = recalled()
    assert [text for text, _ in items] == [text for text, _ in usual]
    assert notes[0].startswith("Not reranked: ")
    assert said in notes[0]
    assert "\n" not in notes[0]


def test_what_is_trusted_stays_first_whatever_a_model_says(tmp_path):
    (tmp_path / "model").mkdir()
    _saved(tmp_path / "model", _worth_of_words())
    config = config_from({"recall": {"rerank": "model"}})
    with mnemarch.open(tmp_path, config=config) as memory:
        agent = memory.seat(Actor.agent("coder"), Scope(project="shop", task="t1"))
        person = memory.seat(Actor.human("mina"), Scope(project="shop", task="t1"))
        agent.remember(FACTS[1])
        person.remember(FACTS[0])
        assert [item.unit.content for item in agent.recall(QUESTION).items] == [FACTS[0], FACTS[1]]
