"""One graph by itself: what becomes one node, what is linked, what feedback does, and who has to go (A2-A9).

What each act changes, and in which order a search tells, is compared with a plain model in test_graph_model.py.
"""

from __future__ import annotations

import pytest

from fixtures.cases import cases
from mnemarch.embedding.sparse import QuestionEmbedder, cosine
from mnemarch.errors import InvalidInput, NotFound
from mnemarch.graph import EdgeType, GraphConfig, GraphStats, GraphStore, NodeType

ENGLISH = ("How do I deploy the checkout service?", "How can we deploy the checkout service?")
KOREAN = ("결제 서비스를 어떻게 배포하나요?", "결제 서비스는 어떻게 배포해요?")
UNLIKE = ("Where are old invoices archived?", "송장은 어디에 보관되나요?")
LANGUAGES = pytest.mark.parametrize("pair", [ENGLISH, KOREAN], ids=["english", "korean"])
API_KEY = "sk-ant-api03-" + "Zx9Qw7Er5Ty3Ui1Op8" * 4


def likeness(pair):
    embedder = QuestionEmbedder()
    return cosine(embedder.embed(pair[0]), embedder.embed(pair[1]))


@pytest.fixture
def made(clock):
    def make(**config):
        return GraphStore(GraphConfig(**config), clock=clock)

    return make


@pytest.fixture
def store(made):
    return made()


class Words:
    """An embedder to reckon with: a text is its words, each as long as any other."""

    def embed(self, text):
        return dict.fromkeys(text.casefold().split(), 1.0)


def everything(store):
    record = store.to_snapshot()
    return record["nodes"], record["edges"], record["decayedAt"]


def weights(store, id):
    found = store.node(id).weights
    return found.repeat, found.feedback


# A9, A4, R6


@LANGUAGES
def test_A9_tau_dup_merges_and_tau_sim_links(made, pair):
    alike = likeness(pair)
    merging = made(tau_dup=alike - 0.001, tau_sim=0.1)
    assert merging.upsert_query(pair[0]) == merging.upsert_query(pair[1])
    assert merging.stats() == GraphStats(nodes=1, edges=0)
    linking = made(tau_dup=alike + 0.001, tau_sim=alike - 0.001)
    first, second = map(linking.upsert_query, pair)
    (edge,) = linking.edges()
    assert {edge.from_, edge.to} == {first, second}
    assert (edge.type, edge.weight) == (EdgeType.SIMILAR_TO, pytest.approx(alike))
    apart = made(tau_dup=alike + 0.001, tau_sim=alike + 0.001)
    for text in pair:
        apart.upsert_query(text)
    assert apart.stats() == GraphStats(nodes=2, edges=0)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("에이전트OS 설계 문서 링크", "에이전트 os 설계 문서 링크"),
        ("결제 서비스를 어떻게 배포하나요?", "결제서비스를 어떻게 배포 하나요"),
        ("How do I deploy checkout?", "  HOW do i deploy   checkout!  "),
        ("ﬁle uploads", "file uploads"),
    ],
)
def test_A9_one_canonical_key_is_one_node_however_it_is_spelled(store, one, other):
    assert store.upsert_query(one) == store.upsert_query(other)
    (node,) = store.nodes()
    assert node.text == one
    assert node.weights.repeat == 2.0


@pytest.mark.parametrize("words", ["{} region-{}", "{}결제 {}구역"])
def test_A9_a_thousand_nodes_and_four_thousand_edges_are_held_and_no_more(clock, words):
    store = GraphStore({"tau_sim": 0.2, "tau_dup": 1.0, "similar_max": 16}, Words(), clock=clock)
    for number in range(1_100):
        store.upsert_query(words.format(f"s{number}", f"r{number % 40}"))
    assert store.stats() == GraphStats(nodes=1_000, edges=4_000)
    text = words.format("s1099", "r19")
    assert store.search_similar_queries(text)[0].text == text


GUARDED = cases("graph_store", "guarded")


@pytest.mark.parametrize(("one", "other"), GUARDED)
@pytest.mark.parametrize("tau_dup", [0.96, 0.5, 0.0])
def test_r6_a_number_a_negation_or_an_identifier_is_never_merged_away(made, one, other, tau_dup):
    store = made(tau_dup=tau_dup, tau_sim=0.0)
    first, second = store.upsert_query(one), store.upsert_query(other)
    assert first != second
    assert store.known_query(one) == first
    assert store.known_query(other) == second
    assert store.state.are_linked(first, EdgeType.SIMILAR_TO, second)


TRACEBACK = "\n".join(
    f'  File "/srv/app/checkout/{name}.py", line {line}, in {name}_handler\n    return self.{name}(order, provider)'
    for line, name in enumerate(["retry", "charge", "refund", "settle", "notify"], 40)
)
LONG = (
    "When the payment provider answers slowly and the pool is exhausted, and the queue of pending orders grows because "
    "workers wait for a free connection, which component should be changed so that customers keep every order while a "
    "deployment runs on the cluster, and is it {} in the report of the release team?"
)
NEARLY = [
    ("How do I move from the old API to the new one?", "How do I move to the old API from the new one?"),
    ("Does the stock service call the orders service?", "Does the orders service call the stock service?"),
    (f"Summarize it.\n{TRACEBACK}", f"Delete it.\n{TRACEBACK}"),
    (f"이 오류를 고쳐 줘\n{TRACEBACK}", f"이 오류를 무시해 줘\n{TRACEBACK}"),
    (LONG.format("legal"), LONG.format("illegal")),
    (LONG.format("staging"), LONG.format("production")),
    (
        "Can my service account read the secrets of the billing service?",
        "Can your service account read the secrets of the billing service?",
    ),
    (
        "관리자만 결제 서비스의 운영 비밀을 볼트에서 읽을 수 있나요?",
        "관리자도 결제 서비스의 운영 비밀을 볼트에서 읽을 수 있나요?",
    ),
    (
        "백업 서버에서 운영 데이터베이스의 로그 파일을 복사하는 방법은 무엇인가요?",
        "백업 서버로 운영 데이터베이스의 로그 파일을 복사하는 방법은 무엇인가요?",
    ),
    (
        "작업자가 재시작할 때 체크아웃 서비스의 연결 풀을 비워야 하나요?",
        "작업자가 재시작할 때 체크아웃 서비스의 연결 풀을 비워도 되나요?",
    ),
    ("친구한테 들었나요?", "친구한테서 들었나요?"),
    (
        "내보내기가 실패할 때 주문 서비스가 재고 서비스를 먼저 호출하고 백업이 끝나지 않았다면 어떤 경보를 받나요?",
        "내보내기가 실패할 때 재고 서비스가 주문 서비스를 먼저 호출하고 백업이 끝나지 않았다면 어떤 경보를 받나요?",
    ),
]


@pytest.mark.parametrize(("one", "other"), NEARLY)
def test_questions_that_differ_in_one_telling_word_are_alike_and_not_one(made, one, other):
    store = made()
    first, second = store.upsert_query(one), store.upsert_query(other)
    assert first != second
    assert store.state.are_linked(first, EdgeType.SIMILAR_TO, second)
    assert store.known_query(other) == second


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("How does checkout retry after a failed payment?", "how does the checkout retry after a failed payment"),
        (LONG.format("named"), LONG.format("named").replace("a deployment", "the deployment")),
        (
            "Which of the services restarts after the migration of the database?",
            "Which of the services restart after the migration of the database?",
        ),
    ],
)
def test_an_article_or_an_ending_makes_no_other_question(made, one, other):
    store = made()
    assert store.upsert_query(one) == store.upsert_query(other)


@pytest.mark.parametrize(
    ("config", "one", "other"),
    [
        ({"tau_dup": 0.9, "tau_sim": 0.5}, "now deploy the app", "deploy the app now"),
        ({"tau_dup": 0.5}, "deploy the app", "deploy the server"),
    ],
    ids=["an embedder that does not know better", "merging asks for less than linking"],
)
def test_what_is_alike_enough_is_merged(clock, config, one, other):
    store = GraphStore(config, Words(), clock=clock)
    assert store.upsert_query(one) == store.upsert_query(other)


def test_r6_past_a_nearer_one_that_differs_a_question_is_merged_with_the_one_that_does_not(clock):
    store = GraphStore({"tau_dup": 0.5, "tau_sim": 0.5}, Words(), clock=clock)
    five = store.upsert_query("retry the payment 5 times now please")
    three = store.upsert_query("retry the payment 3 times")
    assert store.upsert_query("retry the payment 3 times now please") == three != five


@LANGUAGES
def test_a_wording_that_was_merged_once_is_known_by_its_key_afterwards(made, clock, pair):
    store = made(tau_dup=likeness(pair) - 0.001, tau_sim=0.1)
    first = store.upsert_query(pair[0])
    store.upsert_query(pair[1])

    class Silent:
        def embed(self, text):
            raise AssertionError("a key was known, and a vector was asked for")

    store.embedder = Silent()
    assert store.upsert_query(pair[1]) == first
    assert store.known_query(pair[1].upper()) == first
    assert store.node(first).weights.repeat == 3.0
    assert store.node(first).text == pair[0]


def test_two_texts_with_one_key_are_two_nodes_if_the_texts_differ(store, monkeypatch):
    from mnemarch.graph import store as module

    monkeypatch.setattr(module, "canonical_key", lambda text: "the same for all")
    one = store.upsert_query("How do I deploy checkout?")
    other = store.upsert_query("Where are old invoices archived?")
    assert one != other
    assert store.upsert_query("where are old invoices archived") == other


# R15


def test_r15_feedback_weighs_on_its_question_and_spreads_to_those_like_it(clock):
    store = GraphStore({"tau_sim": 0.99, "tau_dup": 1.0}, Words(), clock=clock)
    a, b, c, d, e = map(store.upsert_query, ("one", "two", "three", "four", "five"))
    for ends, weight in (((a, b), 0.8), ((b, c), 0.9), ((c, d), 1.0), ((e, a), 2.5)):
        store.link(*ends, "similar_to", weight)
    store.record_feedback(a, "up")
    assert [weights(store, id)[1] for id in (a, b, c, d, e)] == pytest.approx([1.0, 0.4, 0.18, 0.0, 0.5])
    store.record_feedback(a, "retry")
    assert [weights(store, id)[1] for id in (a, b, c, d, e)] == pytest.approx([0.5, 0.2, 0.09, 0.0, 0.25])
    store.record_feedback(c, "down")
    assert [weights(store, id)[1] for id in (a, b, c, d, e)] == pytest.approx([0.32, -0.25, -0.91, -0.5, 0.25])


def test_answers_are_shared_by_questions_and_told_by_frequency(store):
    one, other = store.upsert_query(ENGLISH[0]), store.upsert_query(UNLIKE[0])
    script = store.record_answer(one, "Run deploy.sh")
    unit = store.record_answer(one, unit_id="01UNIT")
    assert store.record_answer(one, "run deploy.sh") == script
    assert store.record_answer(other, "Run deploy.sh") == script
    assert [node.id for node in store.answers(one)] == [script, unit]
    assert store.node(unit).about["unit"] == "01UNIT"
    assert store.node(unit).text is None
    assert store.node(script).degree == 2
    assert store.node(script).weights.repeat == 3.0


@pytest.mark.parametrize("given", [{}, {"text": "a", "unit_id": "b"}, {"text": " "}, {"unit_id": ""}, {"text": 5}])
def test_an_answer_is_a_text_or_a_unit(store, given):
    id = store.upsert_query(ENGLISH[0])
    before = everything(store)
    with pytest.raises(InvalidInput):
        store.record_answer(id, **given)
    assert everything(store) == before


# A30


ENTITIES = pytest.mark.parametrize(
    ("names", "mentioning", "silent"),
    [
        (("checkout-service", ["checkout"]), "How is the Checkout Service deployed?", "How are invoices archived?"),
        (("결제서비스", ["페이먼츠"]), "결제 서비스를 어떻게 배포하나요?", "송장은 어디에 보관되나요?"),
        (("결제서비스", ["페이먼츠"]), "페이먼츠의 로그는 어디 있나요?", "송장은 어디에 보관되나요?"),
    ],
)


@ENTITIES
def test_a30_questions_before_and_after_are_linked_to_the_entity_they_mention(store, names, mentioning, silent):
    before = store.upsert_query(mentioning)
    quiet = store.upsert_query(silent)
    thing = store.upsert_entity("ada", names[0], aliases=names[1])
    after = store.upsert_query(mentioning + " v2")
    for query, expected in ((before, True), (after, True), (quiet, False)):
        assert store.state.are_linked(query, EdgeType.REFERS_TO_ENTITY, thing) is expected
    assert store.entities_in(mentioning) == [thing]
    assert store.entities_in(silent) == []
    assert store.node(thing).type is NodeType.ENTITY


def test_a30_an_entity_is_one_for_all_users_and_its_names_add_up(store):
    thing = store.upsert_entity("ada", "checkout", "The checkout service", ["cart"])
    assert store.upsert_entity("bob", "checkout", aliases=["basket", "cart"]) == thing
    node = store.node(thing)
    assert node.about["users"] == ["ada", "bob"]
    assert node.about["names"] == ["checkout", "The checkout service", "cart", "basket"]
    assert (node.text, node.weights.repeat) == ("The checkout service", 2.0)
    assert store.entities_in("is the basket empty?") == [thing]


@pytest.mark.parametrize(
    "given",
    [
        {"aliases": [" "]},
        {"aliases": "cart"},
        {"aliases": ["?!"]},
        {"aliases": [f"name{number}" for number in range(64)]},
        {"text": ""},
        {"text": 5},
    ],
)
def test_a30_an_entity_with_a_name_that_names_nothing_is_refused_and_changes_nothing(store, given):
    store.upsert_query("Where is checkout?")
    store.upsert_entity("ada", "checkout")
    before = everything(store)
    with pytest.raises(InvalidInput):
        store.upsert_entity("bob", "checkout", **given)
    assert everything(store) == before
    assert store.node(store.entities_in("checkout")[0]).about["users"] == ["ada"]


# A23


def test_a23_a_pinned_and_a_well_connected_node_stay_however_cold(made, clock):
    store = made(max_nodes=5, protect_min_degree=2)
    pinned = store.upsert_query(UNLIKE[0])
    store.pin(pinned)
    hub = store.upsert_query(ENGLISH[0])
    for text in ("By hand", "By robot"):
        store.pin(store.record_answer(hub, text))
    for day in range(20):
        clock.advance(days=1)
        store.upsert_query(f"What happened on day{day} of the month?")
        assert store.has(pinned)
        assert store.has(hub)
        assert store.stats().nodes <= 5
    store.pin(pinned, False)
    store.upsert_query("And now something else entirely")
    assert not store.has(pinned)


def test_a_graph_in_which_all_must_stay_says_so_and_is_unchanged(made):
    store = made(max_nodes=2)
    for text in UNLIKE:
        store.pin(store.upsert_query(text))
    before = everything(store)
    with pytest.raises(InvalidInput, match="full") as refused:
        store.upsert_query(ENGLISH[0])
    assert "max_nodes" in refused.value.hint
    assert everything(store) == before
    with pytest.raises(InvalidInput, match="full"):
        store.record_feedback(store.upsert_query(UNLIKE[0]), "up")


# A24


def test_a24_weights_are_lowered_by_themselves_when_it_is_time_to(clock):
    store = GraphStore({"half_life_min": 60, "decay_every_min": 60}, Words(), clock=clock)
    a = store.upsert_query("one")
    store.adjust_weights(a, repeat_delta=3)
    clock.advance(minutes=59)
    store.pin(a)
    assert weights(store, a) == (4.0, 0.0)
    clock.advance(minutes=1)
    store.pin(a)
    assert weights(store, a) == (2.0, 0.0)


# Nominations


def test_an_answer_to_a_similar_question_is_a_candidate_unless_it_got_bad_feedback(store):
    id = store.upsert_query(ENGLISH[0])
    store.record_answer(id, unit_id="01HELPED")
    store.record_answer(id, "a text is no unit")
    assert store.nominated(ENGLISH[1]) == {"01HELPED": pytest.approx(likeness(ENGLISH))}
    assert store.nominated(ENGLISH[0]) == {"01HELPED": pytest.approx(1.0)}
    assert store.nominated(UNLIKE[0]) == {}
    store.record_feedback(id, "down")
    assert store.nominated(ENGLISH[0]) == {}
    store.record_feedback(id, "up")
    assert set(store.nominated(ENGLISH[0])) == {"01HELPED"}


# What is refused


def test_what_is_no_question_is_refused(store):
    for wrong in ("", "  \n", None, 5, "x" * 65_537, "\ud800"):
        with pytest.raises(InvalidInput) as refused:
            store.upsert_query(wrong)
        assert refused.value.hint
    assert store.stats() == GraphStats(nodes=0, edges=0)


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda store, one, other: store.record_feedback(one, "great"), InvalidInput),
        (lambda store, one, other: store.record_feedback(one, None), InvalidInput),
        (lambda store, one, other: store.record_feedback(one, ["up"]), InvalidInput),
        (lambda store, one, other: store.record_feedback(one, "up", ""), InvalidInput),
        (lambda store, one, other: store.record_feedback("query:none", "up"), NotFound),
        (lambda store, one, other: store.record_feedback(other, "up"), InvalidInput),
        (lambda store, one, other: store.record_answer("query:none", "x"), NotFound),
        (lambda store, one, other: store.link(one, one, "similar_to"), InvalidInput),
        (lambda store, one, other: store.link(one, other, "similar_to"), InvalidInput),
        (lambda store, one, other: store.link(other, one, "responded_with"), InvalidInput),
        (lambda store, one, other: store.link(one, "query:none", "similar_to"), NotFound),
        (lambda store, one, other: store.link(one, other, "likes"), InvalidInput),
        (lambda store, one, other: store.link(one, other, "responded_with", 0), InvalidInput),
        (lambda store, one, other: store.link(one, other, "responded_with", -1), InvalidInput),
        (lambda store, one, other: store.link(one, other, "responded_with", float("nan")), InvalidInput),
        (lambda store, one, other: store.link(one, other, "responded_with", True), InvalidInput),
        (lambda store, one, other: store.adjust_weights(one, feedback_delta=float("inf")), InvalidInput),
        (lambda store, one, other: store.adjust_weights(one, repeat_delta="1"), InvalidInput),
        (lambda store, one, other: store.adjust_weights("query:none"), NotFound),
        (lambda store, one, other: store.pin("query:none"), NotFound),
        (lambda store, one, other: store.node("query:none"), NotFound),
        (lambda store, one, other: store.edges("query:none"), NotFound),
        (lambda store, one, other: store.answers(other), InvalidInput),
        (lambda store, one, other: store.nodes("person"), InvalidInput),
        (lambda store, one, other: store.upsert_entity("", "x"), InvalidInput),
        (lambda store, one, other: store.upsert_entity("ada", ""), InvalidInput),
        (lambda store, one, other: store.entities_in(None), InvalidInput),
        (lambda store, one, other: store.nominated(None), InvalidInput),
        *(
            (lambda store, one, other, k=k: store.search_similar_queries("anything", k), InvalidInput)
            for k in (-1, 10_001, 2.5, None, True, "3")
        ),
    ],
)
def test_a_wrong_call_is_told_what_to_do_and_changes_nothing(store, act, error):
    one = store.upsert_query(ENGLISH[0])
    other = store.record_answer(one, "By hand")
    before, revision = everything(store), store.revision
    with pytest.raises(error) as refused:
        act(store, one, other)
    assert refused.value.hint
    assert everything(store) == before
    assert store.revision == revision


@pytest.mark.parametrize("wrong", [5, {"max_node": 5}, {"max_nodes": 1}, "big"])
def test_settings_that_are_none_are_refused(wrong):
    with pytest.raises(InvalidInput) as refused:
        GraphStore(wrong)
    assert refused.value.hint


def test_weights_that_grow_beyond_all_bounds_stay_numbers(store, clock, tmp_path):
    id = store.upsert_query(ENGLISH[0])
    for _ in range(3):
        store.adjust_weights(id, feedback_delta=1.7e308, repeat_delta=1.7e308)
    store.save_to_file(tmp_path / "graph.json")
    again = GraphStore.load_from_file(tmp_path / "graph.json", GraphStore(clock=clock))
    assert everything(again) == everything(store)


def test_r18_vectors_made_before_an_embedder_learned_are_made_again(clock):
    from mnemarch.embedding.sparse import BagOfWordsEmbedder

    texts = ["deploy checkout service", "deploy billing service", "archive old invoices"]
    embedder = BagOfWordsEmbedder()
    store = GraphStore({"tau_dup": 1.0, "tau_sim": 0.9}, embedder, clock=clock)
    for text in texts:
        store.upsert_query(text)
    assert store.search_similar_queries("deploy invoices service")
    embedder.learn([*texts, "deploy it", "deploy them"])
    fresh = GraphStore({"tau_dup": 1.0, "tau_sim": 0.9}, embedder, clock=clock)
    for text in texts:
        fresh.upsert_query(text)
    asked = "deploy invoices service"
    assert store.search_similar_queries(asked) == fresh.search_similar_queries(asked)
    assert [node["embedding"] for node in store.to_snapshot()["nodes"]] == [
        node["embedding"] for node in fresh.to_snapshot()["nodes"]
    ]


def test_a30_a_long_text_describes_an_entity_and_is_no_name_of_it(store):
    thing = store.upsert_entity("ada", "payments-api", "The service that takes payments. " * 10)
    assert store.node(thing).about["names"] == ["payments-api"]
    assert (store.node(thing).text or "").startswith("The service")


def test_a18_a_question_that_was_compared_has_its_vector(store):
    id = store.upsert_query("how does checkout retry?")
    assert store.node(id).embedding == store.embedder.embed("how does checkout retry?")
