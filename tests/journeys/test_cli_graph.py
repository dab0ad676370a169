"""`mnemarch graph`: a session's questions from the first to the last, in the terminal and as a picture."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import unicodedata
from itertools import combinations
from xml.etree import ElementTree

import pytest
from cli_session import Cli, shown_at_terminal

from mnemarch.graph import MemoryOrchestrator
from mnemarch.interfaces.pictures import GraphView, graph_svg, label

SVG = "{http://www.w3.org/2000/svg}"
QUESTION = "how does checkout retry?"
LIKE_IT = "how can the checkout retry?"
KOREAN = "결제 재시도는 몇 번 하나요?"
HOSTILE = 'Why <b>&amp; "x\\" fails\x1b[2J \x07\u202e?'
SESSION = ("--session", "s-1")


@pytest.fixture
def cli(tmp_path, monkeypatch, capsys) -> Cli:
    return Cli(tmp_path, monkeypatch, capsys)


def ask(cli: Cli, text: str = QUESTION, *more: str) -> str:
    return cli.ok("graph", "ask", text, *(more or SESSION))["id"]


def filled(cli: Cli) -> str:
    """A session with everything in it; gives the id of its hottest question."""
    query = ask(cli)
    ask(cli)
    ask(cli, LIKE_IT)
    ask(cli, KOREAN)
    cli.ok("graph", "answer", query, "--text", "Three times, with backoff.", *SESSION)
    cli.ok("graph", "feedback", query, "up", "--note", "딱 필요했던 답", *SESSION)
    cli.ok("graph", "entity", "checkout", "--alias", "결제", *SESSION)
    return query


def view_of(graph: MemoryOrchestrator) -> GraphView:
    store = graph.get_session_store("s")
    return GraphView("agent:a, session s", store.nodes(), store.edges())


# Answering


@pytest.mark.parametrize(
    ("first", "again"),
    [(QUESTION, "How does CHECKOUT retry"), ("에이전트OS 설계 문서 링크", "에이전트 os 설계 문서 링크")],
)
def test_a_question_is_new_once_and_known_from_then_on(cli, first, again):
    new = cli.ok("graph", "ask", first, *SESSION)
    known = cli.ok("graph", "ask", again, *SESSION)
    assert (new["known"], known["known"]) == (False, True)
    assert known["id"] == new["id"]
    assert known["node"]["weights"]["repeat"] == 2
    said = cli("graph", "ask", again, *SESSION).out
    assert said.startswith(f"known {new['id'][6:14]}  ")
    assert "asked 3×" in said


def test_a_question_is_told_which_ones_are_like_it_and_not_which_are_only_hot(cli):
    ask(cli)
    ask(cli, "the nightly export of invoices")
    asked = cli.ok("graph", "ask", LIKE_IT, *SESSION)
    assert [(hit["text"], hit["from"]) for hit in asked["similar"]] == [(QUESTION, "session")]


@pytest.mark.parametrize("act", [["ask", "x"], ["answer", "abcd", "--text", "x"], ["feedback", "abcd", "up"], ["end"]])
def test_what_belongs_to_a_session_needs_one(cli, act):
    run = cli.begun()("graph", *act)
    assert run.exit_code == 2
    assert "--session" in run.err
    assert "MNEMARCH_SESSION" in run.err


# Answers, feedback, entities


@pytest.mark.parametrize("cut", [slice(6, 10), slice(6, 14), slice(0, 12), slice(None)])
def test_a_question_is_named_by_any_beginning_of_its_id(cli, cut):
    query = ask(cli)
    assert cli.ok("graph", "feedback", query[cut], "up", *SESSION)["query"] == query


def test_an_id_that_could_be_two_questions_is_refused_with_both(cli):
    ids = ask(cli), ask(cli, KOREAN)
    run = cli("graph", "feedback", "query:", "up", *SESSION)
    assert run.exit_code == 2
    assert all(id in run.err for id in ids)


@pytest.mark.parametrize("given", ["0000000", "answer:0000"])
def test_an_id_that_names_no_question_is_wrong_use(cli, given):
    ask(cli)
    run = cli("graph", "feedback", given, "up", *SESSION)
    assert run.exit_code == 2
    assert "no question" in run.err
    assert "hint:" in run.err


def test_a_question_of_the_agents_own_graph_must_be_asked_here_first(cli):
    query = filled(cli)
    cli.ok("graph", "end", *SESSION)
    ask(cli, KOREAN, "--session", "s-2")
    assert "agent's own" in cli("graph", "feedback", query, "up", "--session", "s-2").err


def test_a_unit_can_be_the_answer_and_is_quoted(cli):
    unit = cli.unit_at("worktree")
    query = ask(cli)
    assert cli.ok("graph", "answer", query, "--unit", unit, *SESSION)["unit"] == unit
    shown = cli("graph", *SESSION).out
    assert f"unit {unit}" in shown
    assert "Checkout retries three times." in shown


def test_a_unit_that_is_not_there_answers_nothing(cli):
    query = ask(cli)
    run = cli("graph", "answer", query, "--unit", "01a1e10a-75ac-7d0c-9ca4-6a8510450e10", *SESSION, "--json")
    assert run.exit_code == 2
    assert run.json["error"]["type"] == "NotFound"
    assert len(cli.ok("graph", *SESSION)["nodes"]) == 1


def test_an_entity_is_the_sessions_or_the_agents(cli):
    ask(cli)
    here = cli.ok("graph", "entity", "checkout", "--alias", "결제", "--user", "user:kim", *SESSION)
    assert here["node"]["about"] == {"entity": "checkout", "users": ["user:kim"], "names": ["checkout", "결제"]}
    assert here["node"]["degree"] == 1
    assert cli.ok("graph")["nodes"] == []
    assert cli.ok("graph", "entity", "billing", "--text", "the billing service")["session"] is None
    assert [node["text"] for node in cli.ok("graph")["nodes"]] == ["the billing service"]
    assert "No question mentions: the billing service" in cli("graph").out


# Showing


def test_the_hottest_question_comes_first_with_all_that_belongs_to_it(cli):
    query = filled(cli)
    lines = cli("graph", *SESSION).out.splitlines()
    assert lines[0] == "agent:cli, session s-1  6 nodes, 6 edges"
    assert re.fullmatch(rf'█+░* 0\.\d\d  {query[6:14]}  "{re.escape(QUESTION)}"', lines[2])
    assert "asked 2×, feedback +1" in lines[3]
    below = [line.split(maxsplit=2) for line in lines[4:8]]
    assert [(kind, text) for kind, _, text in below[:3]] == [
        ("answer", '"Three times, with backoff."'),
        ("feedback", '"up: 딱 필요했던 답"'),
        ("entity", '"checkout (결제)"'),
    ]
    assert below[3][0] == "similar"
    assert LIKE_IT in below[3][2]


def test_the_colder_questions_are_counted(cli):
    for text in ("one pool", "two cache", "three export", "four login"):
        ask(cli, text)
    assert "… 3 questions more" in cli("graph", "--limit", "1", *SESSION).out
    assert "more" not in cli("graph", *SESSION).out
    assert len(cli.ok("graph", "--limit", "1", *SESSION)["nodes"]) == 1
    assert cli("graph", "--limit", "0", *SESSION).exit_code == 2


@pytest.mark.parametrize("where", [[], ["--session", "s-1"]])
def test_an_empty_graph_says_how_to_begin(cli, where):
    run = cli.begun()("graph", *where)
    assert run.exit_code == 0
    assert "mnemarch graph ask" in run.out
    assert cli.ok("graph", *where)["nodes"] == []
    assert cli.ok("graph", "sessions") == []


def test_the_json_has_whole_ids_and_edges_between_them(cli):
    query = filled(cli)
    graph = cli.ok("graph", *SESSION)
    assert (graph["agent"], graph["session"], graph["whole"]) == ("agent:cli", "s-1", {"nodes": 6, "edges": 6})
    ids = {node["id"] for node in graph["nodes"]}
    assert all(edge["from"] in ids and edge["to"] in ids for edge in graph["edges"])
    assert {edge["type"] for edge in graph["edges"]} == {
        "similar_to", "responded_with", "has_feedback", "refers_to_entity",
    }  # fmt: skip
    assert graph["nodes"][0]["id"] == query


def test_a_search_looks_in_the_session_and_in_what_the_agent_keeps(cli):
    filled(cli)
    cli.ok("graph", "end", *SESSION)
    ask(cli, "how often does checkout retry?", "--session", "s-2")
    hits = cli.ok("graph", "search", "checkout retry", "--session", "s-2")
    assert {hit["from"] for hit in hits} == {"session", "agent"}
    assert [hit["from"] for hit in cli.ok("graph", "search", "checkout retry", "--k", "1")] == ["agent"]
    assert "No question is like" in cli("graph", "search", "양자 얽힘").out


def test_a_narrow_terminal_folds_korean_by_its_width(cli):
    ask(cli, f"{KOREAN} 그리고 실패하면 누구에게 알림이 가나요, 담당 팀의 당직표는 어디에 있나요?")
    shown, _ = shown_at_terminal(["graph", *SESSION, "--actor", "agent:cli"], [], cli.home, COLUMNS="40", TERM="dumb")
    assert "당직표" in shown
    for line in shown.splitlines():
        assert sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in line) <= 40, line


def test_what_others_wrote_cannot_steer_the_terminal(cli):
    query = ask(cli, HOSTILE)
    cli.ok("graph", "feedback", query, "down", "--note", HOSTILE, *SESSION)
    for argv in ([], ["--svg"], ["search", HOSTILE], ["ask", HOSTILE]):
        said = cli("graph", *argv, *SESSION).out
        assert "fails" in said
        assert not {"\x1b", "\x07", "\u202e"} & set(said)


@pytest.mark.parametrize("argv", [["graph", "--help"], ["graph", "--session", "s-1"]])
def test_the_graph_is_loaded_when_it_is_used_and_numpy_when_it_is_searched(cli, argv):
    ask(cli)
    probe = (
        "import sys\nfrom mnemarch.interfaces.cli import main\n"
        f"main({argv!r})\nprint(*(name for name in sys.modules if name in ('numpy', 'mnemarch.graph')))"
    )
    done = subprocess.run([sys.executable, "-c", probe], cwd=cli.home, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].split() == (["mnemarch.graph"] if "--session" in argv else [])


# Pictures


def test_the_picture_is_xml_with_every_label_and_a_name(cli):
    filled(cli)
    ask(cli, HOSTILE)
    printed = cli("graph", "--svg", *SESSION).out
    assert printed.isascii()  # Whatever the encoding of standard output is.
    picture = ElementTree.fromstring(printed)
    assert picture.attrib["role"] == "img"
    assert picture.attrib["aria-label"] == "agent:cli, session s-1: 7 nodes, 6 edges"
    tips = [title.text for title in picture.iter(f"{SVG}title")]
    for text in (QUESTION, LIKE_IT, KOREAN, "Three times, with backoff.", "up: 딱 필요했던 답", "checkout (결제)"):
        assert any(text in tip for tip in tips), text
    assert any('Why <b>&amp; "x\\" fails' in tip for tip in tips)
    labels = " ".join(text.text for text in picture.iter(f"{SVG}text"))
    for text in (QUESTION, "딱 필요했던 답", "session s-1"):
        assert text in labels
    assert len(list(picture.iter(f"{SVG}g"))) == 7
    # Nothing that only a browser draws.
    assert {item.tag.removeprefix(SVG) for item in picture.iter()} == {"svg", "title", "rect", "path", "text", "g"}
    used = {name for item in picture.iter() for name in item.attrib}
    assert not used & {"style", "class", "text-anchor", "dominant-baseline", "paint-order", "href"}


@pytest.mark.parametrize("count", [1, 5, 30])
@pytest.mark.parametrize("wording", ["where is service {} number {} configured?", "{} 서비스 {} 설정은 어디에 있나요?"])
def test_no_two_cards_of_a_picture_overlap_and_none_sticks_out(count, wording):
    names = ("billing", "checkout", "login", "export", "search", "cache", "mail", "결제", "검색", "로그인")
    graph = MemoryOrchestrator("agent:a")
    for number in range(count):
        query = graph.upsert_query("s", wording.format(names[number % 10], number))
        if number % 3 == 0:
            graph.record_answer("s", query, f"in file {number}")
            graph.record_feedback("s", query, "up")
    graph.upsert_entity("ada", "billing", session_id="s")
    picture = ElementTree.fromstring(graph_svg(view_of(graph), count))
    cards = [
        [float(card.find(f"{SVG}rect").attrib[name]) for name in ("x", "y", "width", "height")]
        for card in picture.iter(f"{SVG}g")
    ]
    assert len(cards) >= count
    for (x, y, width, height), (other_x, other_y, other_width, other_height) in combinations(cards, 2):
        is_apart_x = x + width <= other_x or other_x + other_width <= x
        assert is_apart_x or y + height <= other_y or other_y + other_height <= y
    wide, high = float(picture.attrib["width"]), float(picture.attrib["height"])
    assert all(x >= 0 and y >= 0 and x + width <= wide and y + height <= high for x, y, width, height in cards)


def test_a_picture_holds_the_hottest_questions_and_says_so(cli):
    for number in range(25):
        ask(cli, f"where is service {number} configured?")
    assert "25 nodes" in (picture := cli("graph", "--svg", *SESSION).out)
    assert "the hottest are drawn, 20 nodes" in picture


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("short", ["short"]),
        ("결제 재시도는 몇 번 하나요?", ["결제 재시도는", "몇 번 하나요?"]),
        ("아주아주아주아주아주아주아주아주긴낱말", ["아주아주아주아", "주아주아주아…"]),
        ("one two three four five six seven", ["one two three", "four five six…"]),
    ],
)
def test_a_label_is_folded_between_words_and_cut(text, lines):
    assert label(text, 14) == lines


# The end


def test_the_end_says_what_was_promoted_and_where_the_checkpoint_is(cli):
    query = filled(cli)
    (session,) = cli.ok("graph", "sessions")
    assert (session["session"], session["nodes"], session["edges"]) == ("s-1", 6, 6)
    run = cli("graph", "end", "--name", "mine", *SESSION)
    assert run.exit_code == 0
    assert f'promoted  {query[6:14]}  "{QUESTION}" (new)' in run.out
    checkpoint = cli.home / ".agentos" / "checkpoints" / "mine.json"
    assert str(checkpoint) in run.out
    assert json.loads(checkpoint.read_text(encoding="utf-8"))["sessionId"] == "s-1"
    assert QUESTION in cli("graph").out


def test_a_session_can_end_without_a_trace(cli):
    filled(cli)
    ended = cli.ok("graph", "end", "--no-promote", "--no-checkpoint", *SESSION)
    assert (ended["promoted"], ended["checkpoint"]) == ([], None)
    assert cli.ok("graph")["nodes"] == []
    assert not (cli.home / ".agentos").exists()
    assert cli("graph", "end", "--no-checkpoint", "--name", "x", *SESSION).exit_code == 2


def test_a_session_with_nothing_hot_says_what_it_would_have_taken(cli):
    ask(cli)
    assert "promoted  nothing: it takes rank" in cli("graph", "end", *SESSION).out
