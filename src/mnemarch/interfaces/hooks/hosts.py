"""The hosts as data: their names for events, tools and fields, and the form of answers to them. Pure."""

from __future__ import annotations

from mnemarch.model.json_text import from_json
from mnemarch.model.value import Frozen
from mnemarch.text.cache import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# The hosts' names for each event. If a payload has no name, the first of the fields in _TOLD_BY decides.
EVENTS = {
    "start": "SessionStart sessionStart session.created",
    "prompt": "UserPromptSubmit userPromptSubmitted BeforeAgent beforeSubmitPrompt chat.message",
    "before_tool": "PreToolUse preToolUse BeforeTool tool.execute.before",
    "after_tool": "PostToolUse PostToolUseFailure postToolUse postToolUseFailure AfterTool tool.execute.after",
    "compact": "PreCompact preCompact PreCompress experimental.session.compacting",
    "stop": "Stop agentStop stop AfterAgent session.idle",
    "subagent_stop": "SubagentStop subagentStop",
    "end": "SessionEnd sessionEnd dispose",
}
_EVENT_OF = {word: event for event, words in EVENTS.items() for word in (event, *words.split())}
_TOLD_BY = {
    "toolResult": "after_tool",
    "toolName": "before_tool",
    "prompt": "prompt",
    "reason": "end",
    "source": "start",
}
_FIELDS = {
    "event": "hook_event_name hookEventName event",
    "session": "session_id sessionId conversation_id sessionID",
    "agent": "agent_type agentType subagent_type",
    "agent_id": "agent_id agentId",
    "tool": "tool_name toolName tool",
    "input": "tool_input toolArgs args",
    "output": "tool_response tool_result toolResult tool_output output error",
    "tool_id": "tool_use_id toolUseId toolCallId callID",
    "prompt": "prompt text",
    "turn": "prompt_id turn_id generation_id timestamp",
    "said": "last_assistant_message prompt_response",
    "task": "task_id taskId",
}
_TOOLS = {
    "shell": "bash shell local_shell exec_command run_shell_command run_in_terminal run_terminal_cmd powershell",
    "edit": "edit write multiedit notebookedit write_file replace create str_replace apply_patch edit_file create_file"
    " replace_string_in_file insert_edit_into_file",
    "read": "read view read_file",
}
_TOOL_OF = {word: kind for kind, words in _TOOLS.items() for word in words.split()}
_TEXTS = ("stdout", "stderr", "output", "llmContent", "text_result_for_llm", "textResultForLlm", "text", "content")
_EXITS = ("exit", "exitCode", "exit_code")
_TEXT_DEPTH_MAX = 4
# Gemini puts a hook's context before the prompt; it is cut off.
_HANDED = r"(?s)\A(?:<hook_context>.*?</hook_context>\s*)+"
_FAILED = r"\AExit code (\d+)\n"
# Every pattern of an exit code contains this text. An output without it is not searched.
_EXIT_SIGN = "xit "


class Host(Frozen):
    """One host. `actor` is the name of its agents in the log.

    `context` is the place where the host looks for context: `nested` in hookSpecificOutput, at the `top`, or in `both`.
    `key` is the name of the context there. `before_tools` tells whether the host takes context before a tool runs.
    `exit` is the pattern of the exit code in a command's output, `exit_else` the exit code if nothing matches, and
    `label` the pattern of a label before the output.
    """

    name: str
    actor: str
    context: str = "nested"
    key: str = "additionalContext"
    before_tools: bool = True
    exit: str = ""
    exit_else: int | None = None
    label: str = ""


HOSTS = {
    host.name: host
    for host in (
        Host("claude-code", "claude-code", exit=_FAILED, exit_else=0),
        Host("codex", "codex"),
        # Copilot reads the top, but before a tool the nested place, as does a Claude Code started from its shell.
        Host("copilot", "copilot-cli", context="both", exit=r"completed with exit code (\d+)>\s*\Z"),
        Host(
            "gemini",
            "gemini-cli",
            before_tools=False,
            exit=r"(?m)^Exit Code: (\d+)",
            exit_else=0,
            label=r"(?m)^Output: ",
        ),
        Host("opencode", "opencode", context="top"),
        Host("cursor", "cursor", context="top", key="additional_context", before_tools=False),
        Host("vscode", "vscode"),
    )
}
# Fields that only one host sends, and variables that hosts set for the programs they start; the first match counts.
_PAYLOAD_SIGNS = {"cursor_version": "cursor", "hookEventName": "vscode", "turn_id": "codex"}
# Part of the name of Codex's transcripts: the only sign of Codex at the start and the end of a session.
_ROLLOUT = "/rollout-"
_VARIABLES = {
    "COPILOT_CLI": "copilot",
    "GEMINI_SESSION_ID": "gemini",
    "GEMINI_CLI": "gemini",
    "OPENCODE": "opencode",
    "CURSOR_VERSION": "cursor",
    "CLAUDE_PROJECT_DIR": "claude-code",
    "CLAUDECODE": "claude-code",
}
# Hosts that also run the hooks in other hosts' files, by their own rules.
_READ_OTHERS = {"copilot": ("claude-code", "vscode"), "cursor": ("claude-code",), "vscode": ("claude-code", "copilot")}


class HookEvent(Frozen):
    """One event under Mnemarch's names. `native` is the host's name of the event. `exit` is the exit code of a command,
    if known. `environ` has the variables of the process that the host started.
    """

    host: Host
    name: str
    native: str
    session: str
    cwd: str
    payload: Mapping[str, Any]
    agent: str = ""
    agent_id: str = ""
    tool: str = ""
    tool_kind: str = ""
    tool_id: str = ""
    input: Mapping[str, Any] = {}
    output: str = ""
    exit: int | None = None
    prompt: str = ""
    turn: str = ""
    said: str = ""
    task: str = ""
    environ: Mapping[str, str] = {}


def host_of(named: str | None, payload: Mapping[str, Any], environ: Mapping[str, str]) -> Host:
    """The host that sent the payload: the named host, unless signs show a host that also runs the named one's hooks."""
    by_payload = next((name for sign, name in _PAYLOAD_SIGNS.items() if sign in payload), None)
    if _ROLLOUT in str(payload.get("transcript_path")):
        by_payload = "codex"
    by_variable = next((name for sign, name in _VARIABLES.items() if environ.get(sign)), None)
    seen = by_payload or by_variable
    if named is None or named not in HOSTS or named in _READ_OTHERS.get(seen or "", ()):
        return HOSTS[seen or "claude-code"]
    return HOSTS[named]


def read(host: Host, payload: Mapping[str, Any], cwd: str, environ: Mapping[str, str]) -> HookEvent | None:
    """The event of a payload, or None if it is not handled."""
    field = {name: _first(payload, words.split()) for name, words in _FIELDS.items()}
    native = str(field["event"] or "")
    name = _EVENT_OF.get(native) or next((event for sign, event in _TOLD_BY.items() if sign in payload), None)
    if name is None or (native and native not in _EVENT_OF):
        return None
    tool = str(field["tool"] or "")
    roots = payload.get("workspace_roots")
    where = payload.get("cwd") or (roots[0] if isinstance(roots, list) and roots else "") or cwd
    printed, exit_code = _result(host, field["output"], payload, is_failure="Failure" in native)
    return HookEvent(
        host=host,
        name=name,
        native=native,
        session=str(field["session"] or ""),
        cwd=str(where),
        payload=payload,
        agent=str(field["agent"] or "") if field["agent_id"] or name == "subagent_stop" else "",
        agent_id=str(field["agent_id"] or ""),
        tool=tool,
        tool_kind=_TOOL_OF.get(tool.lower(), ""),
        tool_id=str(field["tool_id"] or ""),
        input=_mapping(field["input"]),
        output=printed,
        exit=exit_code,
        prompt=_typed(str(field["prompt"] or "")) if name == "prompt" else "",
        turn=str(field["turn"] or ""),
        said=str(field["said"] or ""),
        task=str(field["task"] or ""),
        environ=environ,
    )


def answer(event: HookEvent, text: str) -> dict[str, Any] | None:
    """The answer that makes the host pass the text to its agent; None if the host would not pass it."""
    host = event.host
    if not text or (event.name == "before_tool" and not host.before_tools):
        return None
    at_top = {} if host.context == "nested" else {host.key: text}
    inside = {"hookSpecificOutput": {"hookEventName": event.native, host.key: text}}
    return at_top | ({} if host.context == "top" else inside)


def _typed(prompt: str) -> str:
    return pattern(_HANDED).sub("", prompt) if "<hook_context>" in prompt else prompt


def _first(payload: Mapping[str, Any], names: list[str]) -> Any:
    return next((payload[name] for name in names if payload.get(name) is not None), None)


def _mapping(item: Any) -> Mapping[str, Any]:
    """A tool's input; some hosts send it as JSON text."""
    if isinstance(item, str):
        try:
            item = from_json(item)
        except ValueError:
            return {"input": item}
    return item if isinstance(item, dict) else {}


def _result(host: Host, output: Any, payload: Mapping[str, Any], *, is_failure: bool) -> tuple[str, int | None]:
    """A tool's output, and its exit code if the host tells it."""
    if isinstance(output, str) and output[:1] == "{":
        output = _mapping(output) or output
    record = output if isinstance(output, dict) else {}
    text = _text(output, 0)
    inner = record.get("metadata")
    for holder in (record, inner if isinstance(inner, dict) else {}, payload):
        number = _first(holder, list(_EXITS))
        if isinstance(number, int) and not isinstance(number, bool):
            return text, number
    told = pattern(host.exit).search(text) if host.exit and _EXIT_SIGN in text else None
    # A background command is still running, and an interrupted one has no result.
    is_open = any(record.get(name) for name in ("interrupted", "backgroundTaskId")) or payload.get("is_interrupt")
    code = int(told[1]) if told else 1 if is_failure else host.exit_else
    for mark, sign in ((host.label, "Output: "), (_FAILED, _EXIT_SIGN)):
        text = pattern(mark).sub("", text) if mark and sign in text else text
    return text, None if is_open else code


def _text(item: Any, depth: int) -> str:
    """The text in a tool's answer, however it is wrapped."""
    if isinstance(item, str):
        return item
    inside = [item[name] for name in _TEXTS if name in item] if isinstance(item, dict) else item
    parts = inside if isinstance(inside, list) and depth <= _TEXT_DEPTH_MAX else ()
    return "\n".join(filter(None, (_text(part, depth + 1) for part in parts)))
