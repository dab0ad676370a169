"""Where a test is, what its source names, and whether a claim is about that."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from fixtures.repositories import commit, git, made, worktree
from mnemarch import Citation
from mnemarch.code.codebase import Codebase
from mnemarch.code.expectations import expected_by, still_expected
from mnemarch.code.tests import Place, file_of, is_about, is_missing, names_in, place_of, renamed_test, source_of
from mnemarch.code.worktree import WorkTree
from mnemarch.model.unit import Proof

PAYMENTS = (Path(__file__).parents[1] / "fixtures" / "payments.txt").read_text(encoding="utf-8")
TYPESCRIPT = """import { login } from "../src/user-store";
describe("auth", () => {
  it("logs in", () => { expect(login("ada")).toBe(true); });
});
"""
GO = """package auth
import "testing"
func TestLogin(t *testing.T) { t.Run("twice", func(t *testing.T) { Login() }) }
"""
RUST = "mod tests {\n    use crate::auth::login;\n    #[test]\n    fn login_works() { login(); }\n}\n"


def names_in_test(codebase, test):
    path = file_of(codebase, test)
    return frozenset() if path is None else names_in(source_of(codebase, test, path), path)


@pytest.fixture
def shop(tmp_path):
    folder = made(tmp_path / "shop")
    files = {"tests/test_payments.py": PAYMENTS, "web/auth.test.ts": TYPESCRIPT, "auth/auth_test.go": GO}
    for path, text in (files | {"src/auth.rs": RUST, "src/pay.py": "def refund(a): ...\n"}).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    commit(folder, "begin")
    return folder


@pytest.mark.parametrize(
    ("name", "path", "steps"),
    [
        ("tests/test_a.py::TestX::test_b[a::b/c.py]", "tests/test_a.py", ("TestX", "test_b")),
        ("tests/test_a.py", "tests/test_a.py", ()),
        ("web/auth.test.ts > auth > logs in", "web/auth.test.ts", ("auth", "logs in")),
        ("shop/auth.TestLogin/twice", "", ("shop", "auth", "TestLogin", "twice")),
    ],
)
def test_a_name_is_a_file_and_the_steps_in_it(name, path, steps):
    assert place_of(name) == Place(path, steps)


def test_a_test_names_what_its_function_uses_and_not_what_its_file_imports_for_others(shop):
    names = names_in_test(Codebase(str(shop)), "tests/test_payments.py::test_refund[refund]")
    assert {"refund", "pay", "shop.pay", "account", "login", "shop.auth", "payments"} <= names
    assert names.isdisjoint({"charge", "unrelated", "helpers", "cpu_count"})
    assert "cpu_count" in names_in_test(Codebase(str(shop)), "tests/test_payments.py::TestPool::test_size")


def test_a_title_is_looked_for_as_a_whole(shop):
    (shop / "web/cart.test.js").write_text("test('cart holds twenty items', () => check(MAX_ITEMS));\n")
    (shop / "web/cart.js").write_text("// A cart holds items, at most twenty.\n")
    assert file_of(Codebase(str(shop)), "web::cart holds twenty items") == "web/cart.test.js"


@pytest.mark.parametrize(
    ("name", "path", "named"),
    [
        ("web/auth.test.ts > auth > logs in", "web/auth.test.ts", {"login", "user-store", "auth"}),
        ("example.com/shop/auth.TestLogin/twice", "auth/auth_test.go", {"Login", "auth"}),
        ("auth::tests::login_works", "src/auth.rs", {"login", "auth"}),
        ("tests.test_payments::test_charge", "tests/test_payments.py", {"charge", "pay"}),
        ("test_charge", "tests/test_payments.py", {"charge"}),
        ("nothing_like_this", None, set()),
    ],
)
def test_the_names_of_other_runners_lead_to_the_source_too(shop, name, path, named):
    code = Codebase(str(shop))
    assert file_of(code, name) == path
    assert named <= names_in_test(code, name)


@pytest.mark.parametrize(
    ("text", "citations", "about"),
    [
        ("refunds are whole", [Citation.symbol("src/pay.py", "refund")], True),
        ("refunds are whole", [Citation.file("shop/pay.py")], True),
        ("the gate", [Citation.file("shop/auth/__init__.py")], True),
        ("`refund` gives all of it back", [], True),
        ("`refund`는 전액을 돌려준다", [], True),
        ("Payments.refund() gives all of it back", [], True),
        ("refunds are whole", [Citation.file("src/stock.py")], False),
        ("A refund is whole", [], False),
        ("A refund of a payment is whole", [], True),
        ("결제의 환불은 전액이다", [], True),
        ("환불은 전액이다", [], False),
        ("돼지는 정오에 난다", [], False),
        ("`assert` and `self` are words of Python", [], False),
        ("Pigs fly at noon", [Citation.test("tests/test_payments.py::test_refund")], False),
    ],
)
def test_a_claim_has_to_cite_or_name_what_the_test_names(shop, text, citations, about):
    names = names_in_test(Codebase(str(shop)), "tests/test_payments.py::test_refund")
    assert is_about(names, text, citations) is about


@pytest.mark.parametrize("text", ["결제 정산주기는 사흘이다", "The payment period is three days"])
def test_a_test_with_a_korean_name_is_about_a_claim_in_either_language(text):
    assert is_about(frozenset({"payments", "test_정산주기_기간", "test_period"}), text, [])
    assert not is_about(frozenset({"payments", "test_timeout"}), text, [])


def test_a_file_is_changed_by_its_branch_its_edits_and_when_it_is_new(shop, tmp_path):
    folder = worktree(shop, tmp_path / "wt", "-b", "feature")
    code = Codebase(str(folder))
    test = folder / "tests/test_payments.py"
    assert not code.is_changed("tests/test_payments.py")
    test.write_text(PAYMENTS + "# edited\n")
    assert code.is_changed("tests/test_payments.py")
    edited = commit(folder, "on the branch")
    assert code.is_changed("tests/test_payments.py")
    assert not code.is_changed("tests/test_payments.py", since=edited)
    (folder / "tests/test_new.py").write_text("def test_new(): ...\n")
    assert code.is_changed("tests/test_new.py")
    assert not code.is_changed("web/auth.test.ts")
    assert not Codebase(str(tmp_path)).is_changed("anything.py"), "a plain folder knows of no change"


def test_a_tree_lacks_a_test_whose_file_or_function_it_does_not_have(shop):
    tree = Codebase(str(shop)).tree
    there = ["test_refund", "test_refund[refund]", "TestPool::test_size", "TestPool::test_inherited"]
    assert not any(is_missing(tree, f"tests/test_payments.py::{name}") for name in there)
    assert not is_missing(tree, "web/auth.test.ts > auth > whatever")
    assert not is_missing(tree, "no file named")
    assert is_missing(tree, "tests/test_payments.py::test_gone")
    assert is_missing(tree, "tests/test_other.py::test_refund")


def test_a_test_is_followed_that_was_renamed_with_its_file_in_one_commit(shop):
    old, small = (
        "tests/test_luck.py::test_luck",
        "from shop.pay import pay\n\n\ndef test_luck():\n    assert pay(3) == 3\n",
    )
    commit(shop, "small", **{"tests/test_luck__py": small})
    git(shop, "rm", "-q", "tests/test_luck.py")
    files = {"test_chance": "test_pays_three_times_before_it_gives_up_on_luck", "test_else": "test_other"}
    texts = {f"tests/{file}__py": small.replace("test_luck", name) for file, name in files.items()}
    texts["tests/test_else__py"] = texts["tests/test_else__py"].replace("3", "4")
    commit(shop, "both names", **texts)
    commit(shop, "later", more__txt="1")
    assert (
        renamed_test(Codebase(str(shop)), old)
        == "tests/test_chance.py::test_pays_three_times_before_it_gives_up_on_luck"
    )
    commit(shop, "a twin of it", **{"tests/test_else__py": texts["tests/test_chance__py"]})
    assert renamed_test(Codebase(str(shop)), old) is None


def test_a_renamed_test_is_followed_in_a_renamed_file_and_by_its_body(shop):
    code = Codebase(str(shop))
    old = "tests/test_payments.py::test_charge"
    assert renamed_test(code, old) is None, "it is there"
    path = shop / "tests/test_payments.py"
    path.write_text(PAYMENTS.replace("test_charge", "test_charges_once"))
    assert renamed_test(code, old) == "tests/test_payments.py::test_charges_once"
    commit(shop, "renamed the function")
    assert renamed_test(code, old) == "tests/test_payments.py::test_charges_once"
    git(shop, "mv", "tests/test_payments.py", "tests/test_money.py")
    commit(shop, "renamed the file")
    code = Codebase(str(shop))
    assert (
        renamed_test(code, "tests/test_payments.py::test_refund[refund]") == "tests/test_money.py::test_refund[refund]"
    )
    assert renamed_test(code, old) == "tests/test_money.py::test_charges_once"
    (shop / "tests/test_money.py").write_text("def test_else():\n    assert 2\n")
    commit(shop, "all gone")
    assert renamed_test(Codebase(str(shop)), old) is None


@pytest.mark.parametrize(
    ("test", "path", "text"),
    [
        ("adds tax", "cart.test.js", "test('adds tax', () => { assert.equal(total([10]), 12); });\n"),
        ("총합에 세금을 더한다", "cart.test.js", "test('총합에 세금을 더한다', () => { equal(total([10]), 12); });\n"),
        ("test_tax", "test_cart.py", "def test_tax():\n    assert total([10]) == 12\n"),
        (
            "taxes",
            "CartTest.java",
            "class CartTest {\n  @Test void taxes() {\n    assertEquals(12, total());\n  }\n}\n",
        ),
    ],
)
def test_what_a_test_expects_is_known_also_where_its_name_says_no_file(tmp_path, test, path, text):
    (tmp_path / path).write_text(text)
    tree = WorkTree(str(tmp_path))
    expects = " ".join(expected_by(tree, test, path))
    proof = Proof(by=(f"test:{test}",), witnessed=True, at=datetime.now(UTC), expects=expects)
    assert still_expected(tree, proof) is True
    (tmp_path / path).write_text(text.replace("12", "13"))
    assert still_expected(WorkTree(str(tmp_path)), proof) is False
    (tmp_path / path).unlink()
    assert still_expected(WorkTree(str(tmp_path)), proof) is None
