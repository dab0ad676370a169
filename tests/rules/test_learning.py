"""Code rules from patches: what is learned, what is refused, what is changed; categories; line changes."""

from __future__ import annotations

import subprocess
import sys
from textwrap import indent

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mnemarch.errors import InvalidInput
from mnemarch.learning import (
    CodeRule,
    apply_rules,
    cleanup_weak_rules,
    detect_code_rules_from_patch,
    merge_duplicate_rules,
    pattern_category,
    reinforce_rule,
)
from mnemarch.learning.detect import joint_rules
from mnemarch.learning.patches import name_of, pieces
from mnemarch.learning.rule import form_of
from mnemarch.learning.trees import LANGUAGES, parsed
from mnemarch.learning.working import counted_lines, line_changes

RUN = (
    "import subprocess\nx = subprocess.run(a, stdout=subprocess.PIPE, stderr=subprocess.PIPE)\n",
    "import subprocess\nx = subprocess.run(a, capture_output=True)\n",
)


def only_rule(before: str, after: str, language: str = "python") -> CodeRule:
    [rule] = detect_code_rules_from_patch(before, after, language)
    assert rule.apply(before) == after
    assert rule.apply(after) == after
    return rule


@pytest.mark.parametrize(
    ("patch", "elsewhere", "becomes"),
    [
        (("if x == None:\n    go()\n", "if x is None:\n    go()\n"), "y = a.b == None\n", "y = a.b is None\n"),
        (RUN, "subprocess.run(c, stderr=subprocess.PIPE, check=True, stdout=subprocess.PIPE)\n",
         "subprocess.run(c, check=True, capture_output=True)\n"),
        (("for x in y:\n    yield x\n", "yield from y\n"), "for 값 in f(1):\n    yield 값\n", "yield from f(1)\n"),
        (("class A(Old):\n    pass\n", "class A(New):\n    pass\n"), 'class B(Old):\n    """다\n  x"""\n',
         'class B(New):\n    """다\n  x"""\n'),
        (("a = not x == y\n", "a = x != y\n"), "b = not f() == (yield)\n", "b = f() != (yield)\n"),
        (("v = Optional[X]\n", "v = X | None\n"), "w = Optional[int].mro\n", "w = (int | None).mro\n"),
        (("import way\np = way.join(a, b)\n", "from pathlib import Path\nimport way\np = Path(a) / b\n"),
         "import way\nq = way.join(c, d)\n", "from pathlib import Path\nimport way\nq = Path(c) / d\n"),
        (("y = dict([(a, b) for a, b in c])\n", "y = {a: b for a, b in c}\n"),
         "x = f'{dict([(k, v) for k, v in w])}'\n", "x = f'{ {k: v for k, v in w}}'\n"),
    ],
)  # fmt: skip
def test_a_rule_does_elsewhere_what_its_patch_did(patch, elsewhere, becomes):
    assert only_rule(*patch).apply(elsewhere) == becomes


@pytest.mark.parametrize(
    ("language", "patch", "elsewhere", "becomes"),
    [
        ("typescript", ("const a = b.indexOf(x) !== -1;\n", "const a = b.includes(x);\n"),
         "if (c.d.indexOf(y + 1) !== -1) { z(); }\n", "if (c.d.includes(y + 1)) { z(); }\n"),
        ("go", ("b, err := ioutil.ReadFile(p)\n", "b, err := os.ReadFile(p)\n"),
         "package m\nfunc g() { c, e := ioutil.ReadFile(q) }\n", "package m\nfunc g() { c, e := os.ReadFile(q) }\n"),
        ("java", ("assertTrue(a.equals(b));\n", "assertEquals(b, a);\n"),
         "class T { void t() { assertTrue(x.y().equals(z)); } }\n",
         "class T { void t() { assertEquals(z, x.y()); } }\n"),
        ("rust", ("fn f() { let x = a.get(0).unwrap(); }\n", "fn f() { let x = a.first().unwrap(); }\n"),
         "fn g() { h(b.c.get(0)); }\n", "fn g() { h(b.c.first()); }\n"),
    ],
)  # fmt: skip
def test_other_languages_are_learned_by_the_same_code(language, patch, elsewhere, becomes):
    assert only_rule(*patch, language).apply(elsewhere) == becomes


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1\n", "x = 1  # one\n"),
        ("import os\n", ""),
        ("a()\n", "a()\nb()\n"),
        ("total = a\n", "total = b\n"),
        ("def (:\n", "def f():\n"),
        ("x = (1)\n", "x = 1\n"),
    ],
)
def test_what_can_not_be_repeated_gives_no_rule(before, after):
    assert detect_code_rules_from_patch(before, after) == []


def test_a_rule_is_silent_where_its_name_comes_from_elsewhere():
    before = "from subprocess import run\nrun(a, universal_newlines=True)\n"
    rule = only_rule(before, before.replace("universal_newlines", "text"))
    assert rule.apply("from foo import run\nrun(b, universal_newlines=True)\n").count("universal_newlines") == 1
    assert rule.apply("run(b, universal_newlines=True)\n") == "run(b, text=True)\n"


def test_an_import_that_nothing_uses_any_more_is_removed_with_the_call():
    before = "from old import load\nx = load(a)\n"
    rule = only_rule(before, "from new import fetch\nx = fetch(a)\n")
    assert rule.apply("from old import load, save\nload(b)\nsave(c)\n") == (
        "from new import fetch\nfrom old import save\nfetch(b)\nsave(c)\n"
    )


def test_a_fragment_of_a_file_is_completed_and_given_back_as_it_was():
    rule = only_rule("    except IOError as e:\n", "    except OSError as e:\n")
    assert (
        rule.apply("try:\n    a()\nexcept IOError as x:\n    b()\n") == "try:\n    a()\nexcept OSError as x:\n    b()\n"
    )


def test_a_common_form_is_not_taken_from_one_patch():
    [rule] = detect_code_rules_from_patch("x = a.get(b, None)\n", "x = a.get(b)\n")
    library = "def f(self):\n    return self.name, self.value\n"
    assert rule.apply(library) == library


def taught(*patches: tuple[str, str]) -> list[CodeRule]:
    """The rules of each patch, and those that it shares with an earlier one."""
    rules = [rule for patch in patches for rule in detect_code_rules_from_patch(*patch)]
    for at, patch in enumerate(patches):
        earlier = {str(number): each for number, each in enumerate(patches[:at])}
        rules += [rule for rule, _ in joint_rules(patch, earlier, "python")]
    return rules


def test_two_patches_have_more_in_common_than_either_shows_and_a_wrong_rule_is_dropped():
    patches = {"a": ("os.open(a, mode=1)\n", "io.open(a)\n"), "b": ("os.open(b, mode='w')\n", "io.open(b)\n")}
    rules = taught(*patches.values())
    assert apply_rules(rules, "os.open(c, mode=None)\n", "python") == "os.open(c, mode=None)\n"
    assert {apply_rules(rules, before, "python") for before, _ in patches.values()} == {"io.open(a)\n", "io.open(b)\n"}
    contradicted = patches | {"c": ("os.open(c, mode=1)\n", "os.open(c, mode=2)\n")}
    joint = joint_rules(contradicted.pop("a"), contradicted, "python")
    assert all(rule.apply("os.open(c, mode=1)\n") != "io.open(c)\n" for rule, _ in joint)


ZONE = "from django.utils import timezone\n"
OFFSET = "from zones import FixedOffset\n"


@pytest.mark.parametrize(
    ("patch", "left_alone"),
    [
        (RUN, "subprocess.run(c, stdout=subprocess.PIPE, stderr=subprocess.PIPE, capture_output=x)\n"),
        (RUN, "subprocess.run(c, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)\n"),
        ((f"import datetime\n{ZONE}do(timezone.utc)\n", f"import datetime\n{ZONE}do(datetime.timezone.utc)\n"),
         f"{ZONE}do(timezone.utc)\n"),
        ((OFFSET, "from datetime import timezone\n"), f"{OFFSET}made = FixedOffset(2)\n"),
        (('x = "{}".format(a)\n', 'x = f"{a}"\n'), """y = "{}".format(b["c"])\n"""),
        (("class A(B):\n    x = 1\nadmin.register(M, A)\n", "@admin.register(M)\nclass A(B):\n    x = 1\n"),
         "class C(D):\n    x = super(C)\nadmin.register(M, C)\n"),
    ],
    ids=["a keyword twice", "unknown keywords", "an absent import", "an import in use", "a quote in a string",
         "a block that names what is around it"],
)  # fmt: skip
def test_a_rule_leaves_alone_what_it_would_break(patch, left_alone):
    assert only_rule(*patch).apply(left_alone) == left_alone


def test_what_is_called_or_passed_is_no_variable_however_many_patches_there_are():
    patches = [
        ("one.run(a, stdout=PIPE, stderr=PIPE)\n", "one.run(a, capture_output=True)\n"),
        ("two(b, stdout=PIPE, stderr=PIPE)\n", "two(b, capture_output=True)\n"),
    ]
    other = "three(c, stdout=PIPE, stderr=PIPE)\n"
    assert apply_rules(taught(*patches), other, "python") == other


def test_two_patches_drop_nothing_unknown():
    dropping = [(f"old(x).send({sent})\n", "new(x).send()\n") for sent in ("1 + a", "f(b)")]
    assert apply_rules(taught(*dropping), "old(x).send(k[0])\n", "python") == "old(x).send(k[0])\n"


def test_code_that_is_nested_too_deep_is_left_alone():
    deep = "x = " + "f(" * 400 + "a == None" + ")" * 400 + "\n"
    assert detect_code_rules_from_patch(deep, deep.replace("== None", "is None")) == []
    assert only_rule("y = a == None\n", "y = a is None\n").apply(deep) == deep


@settings(deadline=None, max_examples=60)
@given(st.text(alphabet="abx=().,:\n [1'\"+$", max_size=60), st.text(alphabet="abx=().,:\n [1'\"+$", max_size=60))
def test_whatever_is_learned_turns_before_into_after_and_any_text_is_survived(before, after):
    rules = detect_code_rules_from_patch(before, after)
    made = apply_rules(rules, before, "python")
    if rules:
        assert parsed(made, "python").root.hash == parsed(after, "python").root.hash


@given(st.lists(st.booleans(), max_size=30))
def test_confidence_is_a_moving_average_that_stays_between_0_and_1(outcomes):
    rule = CodeRule(name="r", category="readability", before_pattern="a($A)", after_pattern="b($A)")
    for outcome in outcomes:
        before, rule = rule.confidence, reinforce_rule(rule, outcome)
        assert rule.confidence == pytest.approx(0.2 * outcome + 0.8 * before)
    assert 0 <= rule.confidence <= 1
    assert (rule.success_count, rule.failure_count) == (outcomes.count(True), outcomes.count(False))


def test_five_successes_make_a_rule_trusted_and_three_failures_weak():
    rule = CodeRule(name="r", category="readability", before_pattern="a($A)", after_pattern="b($A)")
    after = {True: rule, False: rule}
    for outcome, times in ((True, 5), (False, 3)):
        for _ in range(times):
            after[outcome] = reinforce_rule(after[outcome], outcome)
    assert (rule.status, after[True].status, after[False].status) == ("candidate", "trusted", "weak")
    assert cleanup_weak_rules([rule, *after.values()]) == [rule, after[True]]
    [merged] = merge_duplicate_rules([rule, after[True]])
    assert (merged.confidence, merged.success_count) == (after[True].confidence, 5)


@pytest.mark.parametrize(
    ("before", "after", "category", "tag"),
    [
        ("get(u, verify=False)\n", "get(u, verify=True)\n", "security", ""),
        ("raise IOError(x)\n", "raise OSError(x)\n", "error_handling", "api"),
        ("go(x == None)\n", "go(x is None)\n", "null_safety", ""),
        ("y = sorted(x)[0]\n", "y = min(x)\n", "performance", ""),
        ("for line in f.readlines():\n    go(line)\n", "for line in f:\n    go(line)\n", "performance", ""),
        ("make(path, 644)\n", "make(path, 0o644)\n", "security", "correctness"),
        ("total = order.total + tax\n", "total = (order.total or 0) + tax\n", "null_safety", ""),
        ("round(x, None)\n", "round(x)\n", "readability", ""),
        ("log.warn(x)\n", "log.warning(x)\n", "readability", "api"),
    ],
)
def test_a_rule_has_one_of_five_categories_and_perhaps_a_tag(before, after, category, tag):
    rule = only_rule(before, after)
    assert (rule.category, rule.tag) == (category, tag)


BODY = "def f(a, b):\n    c = a * 3 + b\n    if c > b:\n        c = c - a\n    return c\n"


@pytest.mark.parametrize(
    ("category", "after"),
    [
        ("type_hints", BODY.replace("(a, b)", "(a: int, b: int | None) -> int")),
        ("rename", BODY.replace("c", "total")),
        ("restructure", "x = 1\n" + BODY),
        ("extract_constant", "RATE = 3\n" + BODY.replace("3", "RATE")),
        ("extract_method", BODY.replace("a * 3 + b", "g(a, b)") + "def g(a, b):\n    return a * 3 + b\n"),
        ("simplify", BODY.replace("    if c > b:\n        c = c - a\n", "")),
    ],
)
def test_a_code_pattern_is_told_by_its_structure(category, after):
    before = BODY + "x = 1\n" if category == "restructure" else BODY
    assert pattern_category(before, after) == category
    assert pattern_category(before, before + "# no change\n") is None
    assert pattern_category(before, before.replace("c > b", "c < b")) is None


def test_a_rule_is_named_by_its_patterns_or_where_they_are_long_by_what_differs():
    assert only_rule("if x == None:\n    go()\n", "if x is None:\n    go()\n").name == "$A == None → $A is None"
    long = "report = build_the_yearly_report(customers, invoices, {})\n"
    assert only_rule(long.format("retries=None"), long.format("retries=0, is_draft=True")).name == (
        "build_the_yearly_report(…, retries=None, …) → build_the_yearly_report(…, retries=0, is_draft=True, …)"
    )
    guarded = "if {}:\n    raise MissingInvoice(customer, customer.newest_invoice_of_this_year)\n"
    before, after = (guarded.format(each) for each in ("customer.invoice == None", "customer.invoice is None"))
    assert name_of(before, after) == ("if customer.invoice == None: raise… → if customer.invoice is None: raise…")


def test_the_variables_of_two_patches_are_counted_from_one_and_are_no_others():
    patches = [(f"return {one}[{key}]\n", f"return {one}.get({key}, 0)\n")
               for one, key in (("cart['codes']", "code"), ("order['fees']", "order['zone']"))]  # fmt: skip
    [(rule, _)] = joint_rules(patches[0], {"other": patches[1]}, "python")
    assert rule.before_pattern == "return $X_1[$STRING_1][$X_2]"
    assert all(rule.apply(before) == after for before, after in patches)


def test_a_rule_whose_new_side_has_a_variable_of_its_own_is_none():
    assert form_of("f($A)", "g($A)", "python") is not None
    assert form_of("f($A)", "g($B)", "python") is None


def test_a_language_without_a_table_is_named_with_those_that_have_one():
    with pytest.raises(InvalidInput, match="cobol") as raised:
        detect_code_rules_from_patch("a", "b", "cobol")
    assert all(language in raised.value.hint for language in LANGUAGES)


@pytest.mark.parametrize(
    ("before", "after", "source"),
    [
        ("$A.split($$$ARGS_1)[0]", "$A.split(maxsplit=1, $$$ARGS_1)[0]", 'a.split(",")[0]\n'),
        ("'{}'.format($A)", "f'{$A}'", "'{}'.format(lambda: 1)\n"),
        pytest.param(
            *("'{}'.format($A)", "f'{$A}'", "f'{\"{}\".format(x)}'\n"),
            marks=pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python reads it since 3.12"),
        ),
    ],
)
def test_what_python_would_not_read_is_not_written(before, after, source):
    rule = CodeRule(name="x", category="readability", before_pattern=before, after_pattern=after)
    assert rule.apply(source) == source
    assert rule.apply("a.split()[0]\n'{}'.format(x)\n") != "a.split()[0]\n'{}'.format(x)\n"


SLEEP = "time.sleep($A)", "await asyncio.sleep($A)"
UNWRAP = "$A.unwrap()", "$A?"
STOP = "raise Stop", "break"
GIVE = "out.append($A)", "yield $A"


@pytest.mark.parametrize(
    ("language", "patterns", "source", "is_applied"),
    [
        ("python", SLEEP, "async def f():\n    time.sleep(1)\n", True),
        ("python", SLEEP, "def f():\n    time.sleep(1)\n", False),
        ("python", SLEEP, "async def f():\n    def g():\n        time.sleep(1)\n", False),
        ("python", SLEEP, "async def f():\n    return lambda: time.sleep(1)\n", False),
        ("python", SLEEP, "class A:\n    x = [time.sleep(2)]\n", False),
        ("python", SLEEP, "time.sleep(1)\n", False),
        ("python", STOP, "while a:\n    if b:\n        raise Stop\n", True),
        ("python", STOP, "def f():\n    raise Stop\n", False),
        ("python", STOP, "for a in b:\n    def f():\n        raise Stop\n", False),
        ("python", GIVE, "def f():\n    yield 1\n    out.append(2)\n", True),
        ("python", GIVE, "def f():\n    out.append(2)\n", False),
        ("rust", UNWRAP, "fn f() -> io::Result<i32> {\n    let x = y.unwrap();\n    Ok(x)\n}\n", True),
        ("rust", UNWRAP, "fn main() {\n    let x = y.unwrap();\n}\n", False),
        ("rust", UNWRAP, "fn f() -> Result<V, E> {\n    v.map(|q| q.unwrap())\n}\n", False),
        ("typescript", ("wait($A)", "await wait($A)"), "const f = async () => { wait(1); };\n", True),
        ("typescript", ("wait($A)", "await wait($A)"), "async function f() { a.map(b => wait(b)); }\n", False),
    ],
)
def test_what_ends_or_halts_a_function_or_loop_is_written_only_inside_of_one(language, patterns, source, is_applied):
    before, after = patterns
    rule = CodeRule(name="x", category="readability", before_pattern=before, after_pattern=after, languages=(language,))
    made = apply_rules([rule], source, language, is_file=True)
    assert (made != source) == is_applied
    if language == "python":
        compile(made, "made.py", "exec")


@pytest.mark.parametrize(("body", "is_applied"), [("{ f(y); }", True), ("{ if (!y) return; f(y); }", False)])
def test_what_ends_a_function_is_not_moved_out_of_it(body, is_applied):
    rule = CodeRule(
        name="x",
        category="readability",
        before_pattern="$A.forEach($NAME_1 => { $$$BODY_1; });",
        after_pattern="for (const $NAME_1 of $A) { $$$BODY_1; }",
        languages=("typescript",),
    )
    source = f"ys.forEach(y => {body});\n"
    assert (rule.apply(source) != source) == is_applied


LOOP = "for i in range(len({0})):\n    print({0}[i])\n"


@pytest.mark.parametrize(
    ("source", "is_applied"),
    [
        (LOOP.format("ys"), True),
        ("x = 1\n" + LOOP.format("ys") + "print(x)\n", False),
        ("def f(x):\n    return x\n\n\ndef g(ys):\n" + indent(LOOP.format("ys"), "    "), True),
        ("def f(ys, x):\n" + indent(LOOP.format("ys"), "    ") + "    return x\n", False),
        (LOOP.format("x"), False),
    ],
)
def test_a_name_that_a_rule_brings_in_takes_the_place_of_no_other(source, is_applied):
    rule = only_rule(LOOP.format("xs"), "for x in xs:\n    print(x)\n")
    assert (apply_rules([rule], source, "python", is_file=True) != source) == is_applied


def test_a_rule_with_await_applies_only_in_async_functions():
    rule = only_rule("time.sleep(1)\n", "await asyncio.sleep(1)\n")
    assert rule.apply("async def f():\n    time.sleep(1)\n") == "async def f():\n    await asyncio.sleep(1)\n"
    assert rule.apply("def f():\n    time.sleep(1)\n") == "def f():\n    time.sleep(1)\n"


def test_a_file_that_python_compiles_is_one_that_it_compiles_afterwards():
    rule = CodeRule(name="x", category="readability", before_pattern="old($A)", after_pattern="None = $A")
    named = CodeRule(name="y", category="readability", before_pattern="same($A)", after_pattern="nonlocal_($A)")
    own = CodeRule(name="z", category="readability", before_pattern="take($A)", after_pattern="nonlocal $A")
    source = "def f(a):\n    old(a)\n    take(a)\n    same(a)\n"
    assert apply_rules([rule], source, "python", is_file=True) == source
    assert apply_rules([own], source, "python", is_file=True) == source
    assert "nonlocal_(a)" in apply_rules([named], source, "python", is_file=True)


@pytest.mark.parametrize(
    ("language", "source", "is_applied"),
    [
        ("python", "old(\n    # why\n    a)\n", False),
        ("python", "old(a)  # why\n", True),
        ("python", "old('#a')\n", True),
        ("typescript", "old(/* why */ a)\n", False),
        ("typescript", "old(a) // why\n", True),
    ],
)
def test_no_comment_is_dropped_where_they_are_to_be_kept(language, source, is_applied):
    patterns = {"before_pattern": "old($A)", "after_pattern": "new($A)"}
    rule = CodeRule(name="x", category="readability", languages=(language,), **patterns)
    applied = apply_rules([rule], source, language, is_file=True)
    assert applied == (source.replace("old", "new") if is_applied else source)


def test_a_file_is_cut_into_the_statements_that_changed():
    before = "import os\n\n\ndef f(p):\n    os.x(p)\n    return p\n\n\ndef g(q):\n    return q == None\n"
    after = before.replace("os.x(p)", "os.y(p)").replace("== None", "is None")
    assert pieces(before, after, "python") == [
        ("import os\nos.x(p)\n", "import os\nos.y(p)\n"),
        ("return q == None\n", "return q is None\n"),
    ]


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.lists(st.sampled_from(["a", "b", "c", "다", "", "\f", "a\rb", "\u2028"]), max_size=12),
        min_size=2,
        max_size=2,
    )
)
@example([["a\f", "b"], ["a", "b"]])
def test_line_changes_are_those_of_git(tmp_path_factory, sides):
    folder = tmp_path_factory.mktemp("lines")
    texts = ["\n".join(lines) for lines in sides]
    for name, text in zip("xy", texts, strict=True):
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    command = ["git", "diff", "--no-index", "--numstat", "--minimal", "x", "y"]
    shown = subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout.split()
    assert line_changes(*texts) == (int(shown[0]) if shown else 0, int(shown[1]) if shown else 0)


@pytest.mark.parametrize(
    ("old", "new", "counted"), [("a", "a\nb", (1, 0)), ("a\nb\nc", "x", (0, 2)), ("a\nb", "c\nd", (0, 0))]
)
def test_the_formula_counts_newlines_only(old, new, counted):
    assert counted_lines(old, new) == counted


BUG_FIXES = [
    ("if amount < 0:\n    stop()\n", "if amount <= 0:\n    stop()\n"),
    ("if i > len(items):\n    stop()\n", "if i >= len(items):\n    stop()\n"),
    ("connect(timeout=30)\n", "connect(timeout=60)\n"),
    ("while low < high - 1:\n    step()\n", "while low < high:\n    step()\n"),
    ("if i < len(items):\n    stop()\n", "if i < len(items) - 1:\n    stop()\n"),
    ('mode = "fast"\n', 'mode = "safe"\n'),
    ("ok = a and b\n", "ok = a or b\n"),
]


@pytest.mark.parametrize(("before", "after"), [*BUG_FIXES[:2], *BUG_FIXES[3:5]])
def test_a_bound_that_was_mended_is_no_rule_in_the_same_words_either(before, after):
    assert detect_code_rules_from_patch(before, after) == []


@pytest.mark.parametrize(
    ("source", "is_changed"),
    [("x = '%s' % a\n", True), ("x = '%s' % (a,)\n", False), ("x = '%s' % (a, b)\n", False)],
)
@pytest.mark.parametrize("after", ["msg = f'{name}'\n", "msg = str(name)\n", "msg = '{}'.format(name)\n"])
def test_a_tuple_that_is_formatted_is_several_values(after, source, is_changed):
    assert (only_rule("msg = '%s' % name\n", after).apply(source) != source) == is_changed


RUST = "fn f(x: Option<i32>) {{\n    let y = {};\n}}\n"
MATCH = "match x {{\n        Some(v) => v,\n        None => {},\n    }}"


@pytest.mark.parametrize(
    ("arm", "is_changed"), [("other(2)", True), ("return", False), ("return 5", False), ("other(g()?)", False)]
)
def test_what_ends_a_function_is_not_moved_into_another(arm, is_changed):
    before, after = RUST.format(MATCH.format("other(1)")), RUST.format("x.unwrap_or_else(|| other(1))")
    source = RUST.format(MATCH.format(arm))
    assert (only_rule(before, after, "rust").apply(source) != source) == is_changed


@pytest.mark.parametrize(("before", "after"), BUG_FIXES)
def test_a_bug_fix_is_no_habit(seats, before, after):
    for rule in detect_code_rules_from_patch(before, after):
        assert "$" not in rule.before_pattern, "it stays as it is written"
    learned = seats.agent().rules.learn(before, after, path="shop.py")
    assert (learned.new, seats.agent().rules.find_code_rules()) == ((), [])


HABITS = [
    ("x = a == None\n", "x = a is None\n", "python"),
    (
        "key = rsa.generate_private_key(65537, key_size=1024)\n",
        "key = rsa.generate_private_key(65537, key_size=2048)\n",
        "python",
    ),
    ("if type(a) == int:\n    f()\n", "if type(a) is int:\n    f()\n", "python"),
    ("if err == io.EOF {\n\treturn\n}\n", "if errors.Is(err, io.EOF) {\n\treturn\n}\n", "go"),
]


@pytest.mark.parametrize(("before", "after", "language"), HABITS)
def test_a_habit_is_learned_from_one_patch(before, after, language):
    assert "$" in only_rule(before, after, language).before_pattern


@pytest.mark.parametrize(
    ("before", "after", "other", "language"),
    [
        (
            "if err == io.EOF {\n\treturn\n}\n",
            "if errors.Is(err, io.EOF) {\n\treturn\n}\n",
            "if a == b {\n\tf()\n}\n",
            "go",
        ),
        ("if x < 0 {\n\treturn\n}\n", "if x <= 0 {\n\treturn\n}\n", "if y < 7 {\n\tf()\n}\n", "go"),
        ("const x = a == b;\n", "const x = a === b;\n", "const y = c == d;\n", "typescript"),
    ],
)
def test_operators_alone_are_no_rule_where_no_other_code_is_known(before, after, other, language):
    rules = detect_code_rules_from_patch(before, after, language)
    assert apply_rules(rules, other, language) == other


PARENTHESES = [
    (
        "const x = a.at(0);\n",
        "const x = a[0];\n",
        "typescript",
        "const y = (b || c).at(0);\n",
        "const y = (b || c)[0];\n",
    ),
    ("const x = parseInt(a);\n", "const x = Number(a);\n", "typescript", "parseInt((a, b));\n", "Number((a, b));\n"),
    (
        "const x = parseInt(a);\n",
        "const x = Number(a);\n",
        "typescript",
        "parseInt((a), (b));\n",
        "Number((a), (b));\n",
    ),
    (
        "const x = f(a)!;\n",
        "const x = f(a) as string;\n",
        "typescript",
        "let y = f(b)!.length;\n",
        "let y = (f(b) as string).length;\n",
    ),
    (
        "const x = _.isNil(a);\n",
        "const x = a == null;\n",
        "typescript",
        "let y = () => _.isNil({});\n",
        "let y = () => ({} == null);\n",
    ),
    ("x = first(a)\n", "x = a[0]\n", "python", "y = first(b or c)\n", "y = (b or c)[0]\n"),
    ("let x = max(a, b);\n", "let x = a.max(b);\n", "rust", "let y = max(-1, e);\n", "let y = (-1).max(e);\n"),
    (
        "int x = Objects.sum(a, b);\n",
        "int x = a + b;\n",
        "java",
        "int y = 2 * Objects.sum(c, d);\n",
        "int y = 2 * (c + d);\n",
    ),
]


@pytest.mark.parametrize(("before", "after", "language", "source", "made"), PARENTHESES)
def test_a_rewrite_never_changes_what_an_operator_holds(before, after, language, source, made):
    assert only_rule(before, after, language).apply(source) == made


def test_a_rewrite_that_an_operator_would_take_apart_gets_parentheses_or_is_left_out():
    """A person may write any rule: this one says `a + b` where a product may stand."""
    rule = CodeRule(name="x", category="readability", before_pattern="$A * two", after_pattern="$A + $A")
    for source in ("x = c * two * d\n", "x = (c * two) ** 2\n", "x = -c * two\n", "x = c.d * two\n"):
        [before] = (eval_text(source),)
        assert eval_text(rule.apply(source)) == before, rule.apply(source)


def eval_text(source: str) -> object:
    names = {"two": 2, "d": 5, "c": type("C", (int,), {"d": 7})(3)}
    return eval(source.partition("=")[2], {}, names)


def test_rules_of_two_languages_are_two_rules(seats):
    python, go = (
        CodeRule(name="x", category="readability", before_pattern="f($A)", after_pattern="g($A)", languages=(language,))
        for language in ("python", "go")
    )
    assert merge_duplicate_rules([python, go]) == [python, go]
    [merged] = merge_duplicate_rules([python, python])
    assert merged.observation_count == 2
    rules = seats.human(worktree=None, task=None).rules
    assert rules.save_code_rule(python).id != rules.save_code_rule(go).id
    assert rules.save_code_rule(go).languages == ("go",)


def calls_of(function, *arguments) -> int:
    """How many functions a call calls: a measure of work that a busy machine can't move."""
    count = 0

    def counted(frame, event, argument) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counted)
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return count


def test_a_long_list_costs_as_much_as_it_is_long():
    def patch(size: int) -> tuple[str, str]:
        before = "x = [" + ",\n".join(f"f({number})" for number in range(size)) + "]\n"
        return before, before.replace("f(7)", "g(7)")

    detect_code_rules_from_patch(*patch(10))
    small, large = (calls_of(detect_code_rules_from_patch, *patch(size)) for size in (100, 400))
    assert large < 6 * small


def test_a_line_that_a_program_wrote_is_not_read():
    before = "x = [" + ", ".join(f"f({number})" for number in range(12_000)) + "]\n"
    assert calls_of(detect_code_rules_from_patch, before, before.replace("f(7)", "g(7)")) < 2_000
    assert calls_of(only_rule(*RUN).apply, before) < 2_000
