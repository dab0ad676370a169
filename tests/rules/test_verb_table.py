"""The table of verbs says what the classes say, and every interface follows it."""

from __future__ import annotations

import inspect

import pytest

from mnemarch import InvalidInput, Memory, Seat
from mnemarch.decisions import Decisions
from mnemarch.interfaces import cli
from mnemarch.interfaces.tools import TOOLS
from mnemarch.learning import CodeRules, CoreMemory, EpisodicMemoryManager
from mnemarch.verbs import SECTIONS, VERBS, types
from mnemarch.verbs.types import REQUIRED, Parameter, Type, Verb, help_of, read, schema_of

# Every verb of these has a row; of the episodes, those that are commands.
WHOLE = {"memory": Memory, "seat": Seat, "decisions": Decisions, "rules": CodeRules, "core": CoreMemory}
OWNERS = WHOLE | {"episodes": EpisodicMemoryManager}
# It does nothing but give the place to act from.
NO_VERBS = {"memory.seat"}
TYPES = [each for each in vars(types).values() if isinstance(each, Type)]


def functions():
    return {
        f"{owner}.{name}": function
        for owner, cls in OWNERS.items()
        for name, function in inspect.getmembers(cls, inspect.isfunction)
        if not name.startswith("_")
    }


def test_every_public_verb_has_one_row_and_no_row_is_of_anything_else():
    names = [verb.name for verb in VERBS]
    assert len(names) == len(set(names))
    whole = {name for name in functions() if name.partition(".")[0] in WHOLE}
    assert whole - NO_VERBS <= set(names) <= functions().keys() - NO_VERBS


def test_a_row_has_the_signature_of_its_verb():
    known = functions()
    for verb in VERBS:
        signature = inspect.signature(known[verb.name])
        real = [parameter for parameter in signature.parameters.values() if parameter.name != "self"]
        assert [parameter.name for parameter in verb.takes] == [parameter.name for parameter in real], verb.name
        for row, parameter in zip(verb.takes, real, strict=True):
            default = REQUIRED if parameter.default is parameter.empty else parameter.default
            is_level = row.type is types.LEVEL and default is not None
            assert row.default == (str(default) if is_level else default), (verb.name, row.name)
        assert signature.return_annotation == verb.gives, verb.name


def test_a_row_is_complete():
    for verb in VERBS:
        assert verb.profile in {"read", "work", "admin", ""}, verb.name
        assert help_of(verb.name)[0].endswith("."), verb.name
        schema = schema_of(verb.takes)
        assert set(schema["required"]) <= schema["properties"].keys(), verb.name
        if verb.command is not None:
            assert all(each.says for each in verb.takes if each.type.read is not None), verb.name


def test_every_help_text_is_of_a_verb_or_of_a_command():
    groups = {f"group {name.split()[0]}" for name in cli.command_names()}
    overview = {"first steps", "who and where", "exit codes"}
    assert set(types.help_texts()) <= {verb.name for verb in VERBS} | set(cli.command_names()) | groups | overview


@pytest.mark.parametrize("type", [each for each in TYPES if each.read], ids=lambda type: type.name)
def test_what_a_type_can_not_read_is_refused_with_a_hint(type):
    forms = type.schema().get("anyOf", [type.schema()])
    assert {form.get("type", "string") for form in forms} <= {"string", "integer", "number", "boolean", "object"}
    for wrong in (object(), ["x"]):
        with pytest.raises(InvalidInput) as refused:
            type.read(wrong, "--it")
        assert refused.value.hint


@pytest.mark.parametrize(
    ("type", "text", "content"),
    [
        (types.NUMBER, "8", 8),
        (types.NUMBER, 8, 8),
        (types.SHARE, "0.5", 0.5),
        (types.LEVEL, "project", 3),
        (types.SIGNAL, "pr_merged", "pr_merged"),
        (types.RELATION, "depends-on", "DEPENDS_ON"),
        (types.OBJECT, '{"a": 1}', {"a": 1}),
        (types.OBJECT, {"a": 1}, {"a": 1}),
        (types.FLAG, True, True),
    ],
)
def test_a_type_reads_text_and_json_alike(type, text, content):
    assert read(Parameter("it", type), text, "it") == content
    assert read(Parameter("it", type, many=True), [text], "it") == [content]


@pytest.mark.parametrize(
    ("type", "text"), [(types.NUMBER, "many"), (types.SIGNAL, "applause"), (types.INSTANT, "2026-01-31T09:30")]
)
def test_a_wrong_text_is_refused_with_what_would_be_right(type, text):
    with pytest.raises(InvalidInput) as refused:
        type.read(text, "--it")
    assert text in refused.value.message
    assert refused.value.hint


def test_a_verb_that_is_added_to_the_table_is_on_the_command_line(monkeypatch, capsys, tmp_path):
    def shout(self, text, *, times=1, progress=None):
        """A toy."""
        return {"shouted": text.upper() * times, "by": self.actor}

    takes = (
        Parameter("text", types.WORDS, "what to shout"),
        Parameter("times", types.NUMBER, "how often", 1),
        Parameter("progress", types.PROGRESS, default=None),
    )
    toy = Verb("seat.shout", "work", "dict[str, Any]", takes)
    monkeypatch.setitem(types.help_texts(), "seat.shout", ["Shout a text. Loudly."])
    section = next(iter(SECTIONS))
    monkeypatch.setattr(Seat, "shout", shout, raising=False)
    monkeypatch.setitem(SECTIONS, section, (*SECTIONS[section], toy))
    monkeypatch.setattr(cli, "VERBS", (*VERBS, toy))
    monkeypatch.chdir(tmp_path)
    assert cli.main(["init"]) == 0
    capsys.readouterr()

    assert cli.main(["shout", "hey ", "--times", "2", "--actor", "agent:a"]) == 0
    assert "shouted  HEY HEY" in capsys.readouterr().out
    assert cli.main(["shout", "hey", "--json"]) == 0
    assert '"shouted": "HEY"' in capsys.readouterr().out
    for wrong in (["shout"], ["shout", "a", "b"], ["shout", "a", "--times", "x"], ["shout", "a", "--loud"]):
        assert cli.main(wrong) == 2
        assert "hint: " in capsys.readouterr().err
    assert cli.main(["shout", "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(part in shown for part in ("Loudly.", "--times N", "how often", 'mnemarch shout "..."'))
    assert cli.main(["--help"]) == 0
    assert "  shout           Shout a text.\n" in capsys.readouterr().out


@pytest.mark.parametrize("words", ["standard input", "repeatable", "--"])
def test_a_model_is_told_nothing_that_holds_only_in_a_shell(words):
    told = {f"{tool.name} {parameter.name}": parameter.says for tool in TOOLS for parameter in tool.takes}
    assert [name for name, says in told.items() if words in says] == []
