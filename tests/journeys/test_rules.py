"""Code rules as a team uses them: learned from commits and edits, judged, checked, applied, erased."""

from __future__ import annotations

import subprocess
import sys

import pytest
from cli_session import Cli

import mnemarch
from fixtures.repositories import commit, repository
from mnemarch import Actor, InvalidInput, NotAllowed, NotFound, Scope
from mnemarch.learning import CodeRule, detect_code_rules_from_patch
from mnemarch.model.testrun import Outcome, TestResult, TestRun
from mnemarch.model.value import replace

NONE = ("if cart == None:\n    go()\n", "if cart is None:\n    go()\n")
OLD = "import subprocess\n\n\ndef run(cmd):\n    return subprocess.run(cmd, universal_newlines=True)\n"
USES = "import subprocess\n\nsubprocess.run(['마켓'], check=True, universal_newlines=True)\n"
M21 = [
    *("id", "project_id", "name", "description", "category", "before_pattern", "after_pattern", "pattern_type"),
    *("languages", "confidence", "observation_count", "success_count", "failure_count"),
    *("min_confidence_threshold", "promotion_threshold", "created_at", "updated_at"),
]


@pytest.fixture
def memory():
    with mnemarch.open(":memory:") as opened:
        yield opened


def seat(memory, actor: str = "agent:coder-1", project: str = "shop"):
    return memory.seat(Actor.parse(actor), Scope(project=project, worktree="main", task="T-1"))


def test_a_patch_teaches_a_candidate_and_later_patches_bear_it_out_or_contradict_it(memory):
    rules = seat(memory).rules
    [rule] = rules.learn(*NONE, path="shop/cart.py").new
    assert (rule.status, rule.category, rule.before_pattern) == ("candidate", "null_safety", "$A == None")
    again = rules.learn("x = a.b == None\n", "x = a.b is None\n")
    assert [(one.id, round(one.confidence, 9), one.success_count) for one in again.confirmed] == [(rule.id, 0.6, 1)]
    against = rules.learn("y = c == None\n", "y = not c\n")
    assert [(one.id, one.failure_count) for one in against.contradicted] == [(rule.id, 1)]
    assert rules.get_code_rule(rule.id[24:32]).confidence == pytest.approx(0.48)


def test_the_same_change_counts_once_whoever_hands_it_in(memory):
    seat(memory).rules.learn(*NONE)
    again = seat(memory, "agent:other").rules.learn(*NONE)
    assert (again.new, again.confirmed, again.repeated) == ((), (), 1)
    assert seat(memory).rules.learn("x = 1\n", "x = 1\n").repeated == 0
    [rule] = seat(memory).rules.find_code_rules()
    assert rule.observation_count == 1


def test_the_same_change_in_another_file_is_another_observation(memory):
    rules = seat(memory).rules
    rules.learn(*NONE, path="a.py")
    assert [rule.success_count for rule in rules.learn(*NONE, path="b.py").confirmed] == [1]
    assert rules.learn(*NONE, path="b.py").repeated == 1
    assert rules.learn(*NONE).repeated == 1, "it may be either of them"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('fail(x, hint="say what it was")\n', 'fail(x, hint="say what it is")\n'),
        ('a = ["1", "2", "3", "4", "5", "6", "7"]\n', 'a = [*("1", "2", "3"), *("4", "5", "6"), "7"]\n'),
    ],
)
def test_an_edit_that_can_not_come_again_is_kept_as_no_rule(memory, before, after):
    assert detect_code_rules_from_patch(before, after)
    assert seat(memory).rules.learn(before, after).new == ()


PASSED = TestRun("pytest", "pytest", (TestResult("test_a", Outcome.PASS),), exit_code=0, witnessed=True)
IS_NONE = ("x{0} = a{0} == None\n", "x{0} = a{0} is None\n")


def taught(folder, *, patch=IS_NONE, tasks=2, run=PASSED, place="m.py", kept=True):
    """The status of a rule after agents of two names made its edit nine times, and their tasks passed."""
    with mnemarch.open(folder) as memory:
        for number in range(9):
            scope = Scope(project="shop", worktree="main", task=f"T-{number % tasks}")
            agent = memory.seat(Actor.agent(f"coder-{number % 2}"), scope)
            before, after = (side.format(number) for side in patch)
            if kept:
                (folder / "m.py").write_text(after)
            data = {"path": place, "before": before, "after": after}
            agent.log("edit", place, data=data)
            agent.verify(run=run) if run else agent.verify(passed=True)
            agent.knowledge.learn_from_edits()
        return {rule.status for rule in agent.rules.find_code_rules()}


def test_a_rule_is_trusted_by_seen_successes_of_two_tasks_or_by_a_person(memory, tmp_path):
    assert taught(tmp_path) == {"trusted"}
    patches = [[side.format(number) for side in IS_NONE] for number in range(9)]
    for number, patch in enumerate(patches[:8]):
        seat(memory, f"agent:coder-{number % 2}").rules.learn(*patch)
    [rule] = seat(memory).rules.find_code_rules()
    assert (rule.status, rule.success_count) == ("candidate", 7)
    seat(memory, "human:ada").rules.learn(*patches[8])
    assert seat(memory).rules.get_code_rule(rule.id).status == "trusted"


YAML = ("a{0} = yaml.safe_load(f{0})\n", "a{0} = yaml.load(f{0}, Loader=yaml.UnsafeLoader)\n")


@pytest.mark.parametrize(("patch", "judge", "success"), [(YAML, "human:ada", False), (YAML, "orchestrator:lead", True)])
def test_a_rule_that_was_called_wrong_or_is_about_security_waits_for_a_person(memory, patch, judge, success):
    def learn(numbers):
        for number in numbers:
            seat(memory, f"agent:coder-{number % 2}").rules.learn(*(side.format(number) for side in patch))

    learn(range(9))
    [rule] = seat(memory).rules.find_code_rules()
    seat(memory, judge).rules.update_code_rule_confidence(rule.id, success)
    learn(range(9, 14))
    assert seat(memory).rules.get_code_rule(rule.id).status == "candidate"
    seat(memory, "human:kim").rules.update_code_rule_confidence(rule.id, True)
    assert seat(memory).rules.get_code_rule(rule.id).status == "trusted"


@pytest.mark.parametrize(
    ("setting", "statuses"),
    [
        ({"run": None}, {"candidate"}),
        ({"tasks": 1}, {"candidate"}),
        ({"kept": False}, set()),
        ({"place": "../m.py"}, set()),
        ({"place": "/etc/m.py"}, set()),
        ({"patch": ("get(u{0}, verify=True)\n", "get(u{0}, verify=False)\n")}, {"candidate"}),
    ],
)
def test_words_files_that_are_not_there_and_weaker_security_make_no_trusted_rule(tmp_path, setting, statuses):
    repository(tmp_path / "shop", README_md="")
    assert taught(tmp_path / "shop", **setting) == statuses


def test_undoing_an_actor_takes_the_rules_that_it_alone_taught_and_revert_brings_them_back(memory):
    human = seat(memory, "human:kim")
    for other, patch in (("agent:coder-1", NONE), ("agent:other", ("os.open(a, m=1)\n", "io.open(a)\n"))):
        seat(memory, other).rules.learn(*patch)
    seat(memory, "agent:third").rules.learn("z = q == None\n", "z = q is None\n")
    undone = human.undo("agent:other", reason="wrong")
    assert (undone.rules, human.undo("agent:coder-1", reason="wrong").rules) == (1, 0)
    assert [rule.before_pattern for rule in human.rules.find_code_rules()] == ["$A == None"]
    human.revert(undone.id)
    assert len(human.rules.find_code_rules()) == 2
    assert memory.audit().ok


def test_rules_belong_to_their_project(memory):
    [rule] = seat(memory).rules.learn(*NONE).new
    other = seat(memory, project="mill").rules
    assert other.find_code_rules() == []
    with pytest.raises(NotFound, match="No code rule"):
        other.get_code_rule(rule.id)


def test_the_table_has_exactly_the_columns_of_m21_and_comes_out_of_the_log_again(memory):
    rules = seat(memory).rules
    rules.learn(*NONE)
    rules.learn("x = a.b == None\n", "x = a.b is None\n")
    store = memory._engine.log.store
    before = store.read(lambda reader: reader.code_rules(rules._project_id))
    assert [list(row) for row in before] == [M21]
    assert memory.rebuild().same
    assert store.read(lambda reader: reader.code_rules(rules._project_id)) == before


@pytest.mark.parametrize("what", ["the rule", "the evidence", "a text that the patch quotes"])
def test_erasing_what_taught_a_rule_erases_the_rule(memory, what):
    human = seat(memory, "human:kim")
    text = "if customer_kim_minji == None:\n    go()\n"
    entry = seat(memory).log("tool_output", "edited" if what == "the evidence" else text.strip())
    [rule] = seat(memory).rules.learn(text, text.replace("== None", "is None"), evidence=entry.event_id).new
    seat(memory).rules.learn("x = a == None\n", "x = a is None\n")
    human.erase(rule.id if what == "the rule" else entry.event_id, "personal data")
    assert human.rules.find_code_rules() == []
    assert memory.rebuild().same
    assert memory.audit().ok
    if what != "the evidence":
        assert not any("customer_kim" in (event.body or "") for event in human.events(types=["rule"]))


def test_no_byte_of_an_erased_rule_is_left_in_the_files(tmp_path):
    with mnemarch.open(tmp_path) as memory:
        human = seat(memory, "human:kim")
        for name in ("kim_minji", "lee_sora"):
            human.rules.learn(f"x = fetch(a, old_{name}=1)\n", f"x = fetch(a, new_{name}=1)\n")
        [rule] = [one for one in human.rules.find_code_rules() if "kim_minji" in one.before_pattern]
        human.erase(rule.id, "personal data")
        files = [path.read_bytes() for path in (tmp_path / ".mnemarch").glob("memory.db*")]
    assert (any(b"kim_minji" in file for file in files), any(b"lee_sora" in file for file in files)) == (False, True)


def test_a_patch_with_a_secret_teaches_nothing(memory):
    key = "AKIA" + "IOSFODNN7EXAMPLZ"
    assert seat(memory).rules.learn(f"login('{key}') == None\n", f"login('{key}') is None\n").new == ()


def test_an_agent_proposes_and_people_judge_write_and_clean(memory):
    agent, human = seat(memory).rules, seat(memory, "human:kim").rules
    [rule] = agent.learn(*NONE).new
    own = CodeRule(name="use load", category="readability", before_pattern="old($A)", after_pattern="new($A)")
    with pytest.raises(NotAllowed):
        agent.save_code_rule(own)
    with pytest.raises(NotAllowed):
        agent.update_code_rule_confidence(rule.id, True)
    kept = human.save_code_rule(own)
    assert human.save_code_rule(own) == human.get_code_rule(kept.id)
    with pytest.raises(InvalidInput, match="parse"):
        human.save_code_rule(CodeRule(name="x", category="readability", before_pattern="def (", after_pattern="$A"))
    with pytest.raises(InvalidInput, match="ema_alpha"):
        human.update_code_rule_confidence(kept.id, False, ema_alpha=5)
    for _ in range(3):
        human.update_code_rule_confidence(kept.id, False)
    with pytest.raises(NotAllowed):
        agent.cleanup_weak_rules()
    assert [one.id for one in human.cleanup_weak_rules()] == [kept.id]
    assert [one.id for one in human.find_code_rules()] == [rule.id]
    assert human.find_similar_rules(rule.name, rule.category) == human.find_code_rules()


@pytest.mark.parametrize(
    "wrong",
    [
        *({"confidence": number} for number in ("a", 7, -1, float("nan"), None)),
        *({"promotion_threshold": "x"}, {"observation_count": "a"}, {"success_count": -1}, {"failure_count": 2**70}),
        *({"name": name} for name in ("", 5, "a\x1b[31m", "x" * 100_000)),
        *({"category": "nope"}, {"pattern_type": "bogus"}, {"languages": ()}, {"languages": ("python", "cobol")}),
        *({"description": 5}, {"before_pattern": None}),
    ],
    ids=str,
)
def test_m21_a_rule_with_a_wrong_column_is_refused_and_the_others_stay(memory, wrong):
    human = seat(memory, "human:kim").rules
    own = CodeRule(name="use load", category="readability", before_pattern="old($A)", after_pattern="new($A)")
    with pytest.raises(InvalidInput):
        human.save_code_rule(replace(own, **wrong))
    kept = human.save_code_rule(own)
    assert [rule.id for rule in human.find_code_rules()] == [kept.id]
    assert memory.audit().ok


@pytest.fixture
def cli(tmp_path, monkeypatch, capsys) -> Cli:
    cli = Cli(tmp_path, monkeypatch, capsys)
    repository(cli.home, old__py=OLD, uses__py=USES)
    commit(cli.home, "two", old__py=OLD.replace("universal_newlines", "text"))
    return cli


def test_a_persons_own_history_teaches_rules_in_one_command(cli):
    learned = cli.ok("rules", "learn")
    [rule] = learned["new"]
    assert (learned["patches"], rule["category"]) == (1, "readability")
    assert cli.ok("rules", "learn", "HEAD~1..HEAD")["new"] == []
    assert "Nothing new: these changes were read before." in cli("rules", "learn").out
    assert "No code rule matches." in cli("rules", "--category", "security").out
    assert [one["id"] for one in cli.ok("rules")] == [rule["id"]]
    assert "universal_newlines" in cli("rules", "explain", rule["id"]).out
    assert cli.ok("rules", "explain", rule["id"])["events"][0]["type"] == "rule.learned"


def test_only_a_trusted_rule_is_checked_and_applied_and_nothing_is_written_before_a_yes(cli):
    [rule] = cli.ok("rules", "learn")["new"]
    assert cli("rules", "check", ".").exit_code == 0
    shown = cli("rules", "check", ".", "--candidates")
    assert (shown.exit_code, "uses.py:3" in shown.out) == (1, True)
    assert "+ subprocess.run(['마켓'], check=True, text=True)" in shown.out
    for _ in range(5):
        cli.ok("rules", "judge", rule["id"], "--worked", "--actor", "human:ada")
    refused = cli("rules", "apply", ".")
    assert (refused.exit_code, "--yes" in refused.err) == (2, True)
    assert (cli.home / "uses.py").read_text(encoding="utf-8") == USES
    assert cli.ok("rules", "apply", ".", "--yes")["changed"] == ["./uses.py"]
    assert (cli.home / "uses.py").read_text(encoding="utf-8") == USES.replace("universal_newlines", "text")


def test_clean_says_how_many_rules_it_looked_at_and_removed(cli):
    [rule] = cli.ok("rules", "learn")["new"]
    assert cli("rules", "clean").out == "1 code rule looked at, 0 removed, 1 left\n"
    for _ in range(3):
        cli.ok("rules", "judge", rule["id"], "--failed", "--actor", "human:ada")
    first, second = cli("rules", "clean", "--actor", "human:ada").out.splitlines()
    assert first == "1 code rule looked at, 1 removed, 0 left"
    assert second.startswith(f"removed  {rule['id'][24:32]}")


def test_show_and_explain_say_how_a_candidate_becomes_trusted(cli):
    [rule] = cli.ok("rules", "learn", "--actor", "agent:coder-1")["new"]
    for command in ("show", "explain"):
        out = cli("rules", command, rule["id"]).out
        assert "when it was right 5 more times: by witnessed passing test runs in two or more tasks, or" in out
        assert f"by a person's word (mnemarch rules judge {rule['id'][24:32]} --worked)" in out
    assert "1 rule is a candidate: add --candidates." in cli("rules", "check", ".").out
    assert "1 rule is a candidate: add --candidates." in cli("rules", "apply", ".").out
    for left in range(4, -1, -1):
        judged = cli("rules", "judge", rule["id"], "--worked", "--actor", "human:ada").out
        assert (f"right {left} more time" in judged) == (left > 0)
        assert ("confidence 0.80" in judged, " 0.80 " in cli("rules").out) == (False, False)
    assert "trusted, confidence 0.84" in judged


def test_a_file_in_another_encoding_is_left_alone_byte_for_byte(cli):
    [rule] = cli.ok("rules", "learn")["new"]
    cli.ok("rules", "judge", rule["id"], "--worked", "--actor", "human:ada")
    written = USES.replace("마켓", "caf\xe9").encode("latin-1")
    (cli.home / "uses.py").write_bytes(written)
    run = cli("rules", "apply", ".", "--candidates", "--yes")
    assert (run.exit_code, "not UTF-8" in run.err) == (0, True)
    assert (cli.home / "uses.py").read_bytes() == written


def test_a_link_out_of_the_folder_and_a_read_only_file_are_left_alone_and_named(cli, tmp_path_factory):
    cli.ok("rules", "learn")
    outside = tmp_path_factory.mktemp("elsewhere") / "outside.py"
    outside.write_text(USES, encoding="utf-8")
    (cli.home / "link.py").symlink_to(outside)
    (cli.home / "inner.py").symlink_to("uses.py")
    locked = cli.home / "locked.py"
    locked.write_text(USES, encoding="utf-8")
    locked.chmod(0o444)
    run = cli("rules", "apply", ".", "--candidates", "--yes")
    assert "note: ./link.py leads out of the named folder and was not changed" in run.err
    assert "note: ./locked.py is read-only and was not changed" in run.err
    assert {file.read_text(encoding="utf-8") for file in (outside, locked)} == {USES}
    assert "universal_newlines" not in (cli.home / "uses.py").read_text(encoding="utf-8")
    assert (run.exit_code, (cli.home / "inner.py").is_symlink()) == (0, True)
    cli.ok("rules", "apply", "link.py", "--candidates", "--yes")
    assert "universal_newlines" not in outside.read_text(encoding="utf-8")


def test_a_commit_that_is_not_there_is_wrong_use(cli):
    assert [cli("rules", "learn", name).exit_code for name in ("nope", "HEAD..nope", "HEAD~20..HEAD")] == [2, 2, 2]


def test_a_recall_loads_nothing_of_learning(cli):
    code = "import sys; from mnemarch.interfaces.cli import main; main(['recall', 'x', '--project', 'p']);"
    code += "sys.exit(any('mnemarch.learning' in name for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], cwd=cli.home, capture_output=True).returncode == 0
