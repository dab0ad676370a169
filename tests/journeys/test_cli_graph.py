"""`mnemarch graph`: what a session asked, in the terminal and as a picture."""

from __future__ import annotations

import re
import subprocess
import sys
import unicodedata
from itertools import combinations
from xml.etree import ElementTree

import pytest
from cli_session import Cli, shown_at_terminal

from mnemarch.graph import MemoryOrchestrator
from mnemarch.interfaces.graph import GraphView, graph_svg, label

SVG = "{http://www.w3.org/2000/svg}"
QUESTION = "how does checkout retry?"
LIKE_IT = "how can the checkout retry?"
KOREAN = "결제 재시도는 몇 번 하나요?"
HOSTILE = 'Why <b>&amp; "x\\" fails\x1b[2J \x07\u202e?'
SESSION = ("--session", "s-1")


def filled(cli: Cli) -> str:
    """A session with everything in it; gives the id of its hottest question."""
    with cli.seat("agent:cli") as seat:
        graph = seat.graph
        query = graph.upsert_query("s-1", QUESTION)
        for text in (QUESTION, LIKE_IT, KOREAN):
            graph.upsert_query("s-1", text)
        graph.record_answer("s-1", query, "Three times, with backoff.")
        graph.record_feedback("s-1", query, "up", "딱 필요했던 답")
        graph.upsert_entity("agent:cli", "checkout", aliases=["결제"], session_id="s-1")
    return query


def ask(cli: Cli, *texts: str) -> str:
    with cli.seat("agent:cli") as seat:
        return [seat.graph.upsert_query("s-1", text) for text in texts][-1]


def view_of(graph: MemoryOrchestrator) -> GraphView:
    store = graph.get_session_store("s")
    return GraphView("agent:a, session s", store.nodes(), store.edges())


def test_a_unit_can_be_the_answer_and_is_quoted(cli):
    unit = cli.unit_at("worktree")
    with cli.seat("agent:cli") as seat:
        seat.graph.record_answer("s-1", seat.graph.upsert_query("s-1", QUESTION), unit_id=unit)
    shown = cli("graph", *SESSION).out
    assert f"unit {unit}" in shown
    assert "Checkout retries three times." in shown


def test_an_entity_that_no_question_mentions_is_told(cli):
    with cli.seat("agent:cli") as seat:
        seat.graph.upsert_entity("user:kim", "billing", "the billing service")
    assert [node["text"] for node in cli.ok("graph")["nodes"]] == ["the billing service"]
    assert "No question mentions: the billing service" in cli("graph").out


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
    ask(cli, "one pool", "two cache", "three export", "four login")
    assert "… 3 questions more" in cli("graph", "--limit", "1", *SESSION).out
    assert "more" not in cli("graph", *SESSION).out
    assert len(cli.ok("graph", "--limit", "1", *SESSION)["nodes"]) == 1
    assert cli("graph", "--limit", "0", *SESSION).exit_code == 2


@pytest.mark.parametrize("where", [[], ["--session", "s-1"]])
def test_an_empty_graph_says_so_and_the_sessions_under_way_are_named(cli, where):
    run = cli.begun()("graph", *where)
    assert run.exit_code == 0
    assert "no questions yet" in run.out
    assert cli.ok("graph", *where)["nodes"] == []
    with cli.seat("agent:cli") as seat:
        seat.graph.upsert_query("s-2", QUESTION)
    assert "--session ID): s-2" in cli("graph", *where).out
    assert cli.ok("graph", *where)["sessions"] == ["s-2"]


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


def test_a_narrow_terminal_folds_korean_by_its_width(cli):
    ask(cli, f"{KOREAN} 그리고 실패하면 누구에게 알림이 가나요, 담당 팀의 당직표는 어디에 있나요?")
    shown, _ = shown_at_terminal(
        ["graph", *SESSION, "--actor", "agent:cli"], [], cli.home, COLUMNS="40", LINES="24", TERM="dumb"
    )
    assert "당직표" in shown
    for line in shown.splitlines():
        assert sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in line) <= 40, line


def test_what_others_wrote_cannot_steer_the_terminal(cli):
    query = ask(cli, HOSTILE)
    with cli.seat("agent:cli") as seat:
        seat.graph.record_feedback("s-1", query, "down", HOSTILE)
    for argv in ([], ["--svg"]):
        said = cli("graph", *argv, *SESSION).out
        assert "fails" in said
        assert not {"\x1b", "\x07", "\u202e"} & set(said)


@pytest.mark.parametrize("argv", [["graph", "--help"], ["graph", "--session", "s-1"]])
def test_the_graph_is_loaded_when_it_is_used_and_numpy_when_it_is_searched(cli, argv):
    ask(cli, QUESTION)
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
    ask(cli, *(f"where is service {number} configured?" for number in range(25)))
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
