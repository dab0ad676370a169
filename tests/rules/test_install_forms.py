"""What is put into a host's file can be taken out again, to the byte, whatever else is in it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemarch.interfaces.install.forms import HOSTS, Entries, parsed_json

WITH_HOOKS = [name for name, host in HOSTS.items() if host.hooks is not None]
COMMAND = ["/opt/my tools/mnemarch"]
names = st.sampled_from(["hooks", "mcpServers", "mcp", "servers", "SessionStart", "Stop", "version", "키", 'a"b\\'])
leaves = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8))
documents = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3))
hooks = st.dictionaries(
    st.sampled_from(["SessionStart", "Stop", "stop", "AfterTool", "Mine"]), st.lists(documents, max_size=2), max_size=3
)


@st.composite
def json_files(draw):
    """The text of a settings file: with hooks and servers of its own, comments, trailing commas, any line ends."""
    data = {"theme": 0} | draw(st.dictionaries(names, documents, max_size=3)) | {"hooks": draw(hooks)}
    for key in ("mcpServers", "mcp", "servers"):
        data[key] = draw(st.dictionaries(st.sampled_from(["other", "키"]), documents, max_size=2))
    for key in draw(st.sets(st.sampled_from(["hooks", "mcpServers", "mcp", "servers"]))):
        del data[key]
    text = json.dumps(data, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 2, 4, "\t"])))
    if "\n" in text:
        text = text.replace("{\n", draw(st.sampled_from(["{\n", "{ // one\n", "{\n/* two */\n"])))
        text = text.replace("}\n", draw(st.sampled_from(["}\n", "} // end\n", "},\n"])) if "}\n" in text else "}\n")
        text = text.replace("\n}", draw(st.sampled_from(["\n}", " // last\n}", "\n\n}", ",\n}"])))
    text = text.replace("{}", draw(st.sampled_from(["{}", "{ }", "{\n}", "{ /* none */ }"])))
    text = text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
    return draw(st.sampled_from(["", "\ufeff", "// mine\n"])) + text + draw(st.sampled_from(["", "\n", "\n\n"]))


def is_json(text: str) -> bool:
    try:
        return isinstance(parsed_json(text).value, dict)
    except ValueError:
        return False


def entries_of(host: str) -> Entries:
    return Entries(host=HOSTS[host], name=host, command=COMMAND, has_hooks=True, has_server=True)


EDITS = {
    "nothing": lambda text: text,
    "a comment above": lambda text: "// above\n" + text.removeprefix("\ufeff"),
    "another value": lambda text: text.replace('"theme": 0', '"theme": {"a": [1, 2]}'),
    "a new first member": lambda text: text.replace('"theme"', '"new": {"hooks": [3]},\n "theme"', 1),
    "a member after": lambda text: text.replace('"theme": 0', '"theme": 0,  "after": 1', 1),
}


@settings(max_examples=50)
@given(host=st.sampled_from(WITH_HOOKS), text=json_files().filter(is_json), edit=st.sampled_from(sorted(EDITS)))
def test_an_edit_between_putting_and_taking_is_all_that_stays(host, text, edit):
    entries = entries_of(host)
    data = parsed_json(text).value
    written = entries.put(text, "json")
    assert parsed_json(written).value.keys() >= data.keys() | {"hooks", HOSTS[host].server_key}
    assert entries.put(entries.taken(written, "json", text, is_noted=True), "json") == written
    assert entries.taken(EDITS[edit](written), "json", text, is_noted=True) == EDITS[edit](text)


@pytest.mark.parametrize("host", WITH_HOOKS)
def test_what_was_reformatted_or_never_noted_is_known_by_its_form(host):
    entries = entries_of(host)
    mine = {"keep": 1, "hooks": {"Mine": [{"hooks": [{"command": "mnemarch hook"}]}]}}
    written = entries.put(json.dumps(mine), "json")
    reformatted = json.dumps(json.loads(written), indent=7)
    assert json.loads(entries.taken(reformatted, "json", None, is_noted=False)) == mine
    assert entries.taken(entries.put(None, "json"), "json", None, is_noted=False) is None


def test_a_handler_that_the_user_put_beside_ours_stays():
    entries = entries_of("claude-code")
    written = json.loads(entries.put(None, "json"))
    written["hooks"]["Stop"][0]["hooks"].append({"type": "command", "command": "say done"})
    rest = json.loads(entries.taken(json.dumps(written), "json", None, is_noted=True))
    assert rest == {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}}


@pytest.mark.parametrize(
    "server",
    [
        {"command": "mnemarch", "args": ["mcp"]},
        {"type": "stdio", "command": "/opt/mnemarch", "args": ["mcp"], "env": {}},
    ],
)
def test_a_server_that_the_user_added_by_hand_is_neither_changed_nor_removed(server):
    text = json.dumps({"mcpServers": {"mnemarch": server}})
    entries = entries_of("claude-code")
    written = entries.put(entries.taken(text, "json", None, is_noted=False), "json")
    assert json.loads(written)["mcpServers"]["mnemarch"] == server
    assert entries.taken(written, "json", text, is_noted=True) == text


def test_uninstall_removes_our_server_even_if_the_user_changed_it():
    entries = entries_of("claude-code")
    written = json.loads(entries.put(None, "json"))
    written["mcpServers"]["mnemarch"]["env"] = {"MNEMARCH_TASK": "T-1"}
    assert entries.taken(json.dumps(written), "json", None, is_noted=True) is None


TOML = [
    "",
    "model = 'gpt'",
    "# mine\nmodel = 'gpt'\n\n[mcp_servers.other]\ncommand = 'x'\n",
    "[mcp_servers]\n",
    "a = 1\r\n[b]\r\nc = 2\r\n",
    "[[things]]\nname = '''\n[mcp_servers.mnemarch]\n'''\n",
]
TOML_EDITS = {
    "nothing": lambda text: text,
    "a line above": lambda text: "# above\nz = 0\n" + text,
    "a table below": lambda text: text + ("\n" if text and text[-1] != "\n" else "") + "\n# mine too\n[new]\nkey = 1\n",
}


@pytest.mark.parametrize("edit", TOML_EDITS)
@pytest.mark.parametrize("text", TOML)
def test_a_table_of_toml_is_taken_out_again(text, edit):
    entries = entries_of("codex")
    written = entries.put(text, "toml")
    assert f'command = "{COMMAND[0]}"' in written
    change = TOML_EDITS[edit]
    if "'''" in text:
        with pytest.raises(ValueError, match="can't be removed safely"):
            entries.taken(change(written), "toml", text, is_noted=True)
    else:
        assert entries.taken(change(written), "toml", text, is_noted=True) == change(text)


def test_what_the_user_added_to_our_table_goes_with_it_and_their_own_table_stays():
    entries = entries_of("codex")
    refined = entries.put("a = 1\n", "toml") + 'startup_timeout_sec = 9\n[mcp_servers.mnemarch.env]\nA = "b"\n'
    assert entries.taken(refined, "toml", "a = 1\n", is_noted=True) == "a = 1\n"
    own = '[mcp_servers.mnemarch]\ncommand = "mnemarch"\nargs = ["mcp"]\n'
    assert entries.put(own, "toml") == own
    assert entries.taken(own, "toml", None, is_noted=False) == own


@pytest.mark.parametrize(
    "text", ['{"hooks": []}', '{"hooks": {"Stop": {}}}', '{"mcpServers": 3}', "[]", "{", "{'a': 1}", '{"a": 1 "b": 2}']
)
def test_a_file_of_another_form_is_refused(text):
    with pytest.raises(ValueError, match=r"not (JSON|an object|a list)"):
        entries_of("claude-code").put(text, "json")


def test_a_file_nested_without_end_is_refused():
    with pytest.raises(ValueError, match="not JSON"):
        parsed_json("[" * 100_000)
