"""Handles each event of a host: tells the agent what it should know, then records what happened."""

from __future__ import annotations

import os
from contextlib import suppress

from mnemarch.code import git
from mnemarch.errors import NotAllowed, NotFound
from mnemarch.interfaces.hooks import hosts
from mnemarch.interfaces.hooks.sessions import Session
from mnemarch.lazy import Lazy
from mnemarch.log.act import Entry
from mnemarch.memory import Memory, worktree_in
from mnemarch.model.caller import Actor, Scope
from mnemarch.model.stamps import blake2b, short_id
from mnemarch.model.value import replace
from mnemarch.seat.systems import DEFERRED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from mnemarch.code.home import Home
    from mnemarch.interfaces.hooks.hosts import HookEvent
    from mnemarch.model.outcome import LoopVerdict, Promotion
    from mnemarch.model.search import Pack
    from mnemarch.model.testrun import TestRun
    from mnemarch.seat import Seat
    from mnemarch.text import prompt as prompts

    Later = Callable[[], object]
    # Sends the host its answer; None if there is nothing to tell.
    Say = Callable[[dict[str, Any] | None], None]
else:
    prompts = Lazy("mnemarch.text.prompt")

_ABOUT = (
    "Mnemarch is this repository's shared memory. Prompts, edits and commands are recorded automatically, and test"
    ' runs verify claims. To tell others: mnemarch remember "..." --cite test:NAME (or file:PATH).'
    ' To ask: mnemarch recall "...". If MCP tools of Mnemarch are there, they do the same.'
)
_NOTICE = "<task-notification>"
_PROMPT_CHARS_MAX = 16_000
_SAID_CHARS_MAX = 4_000
_WARNING_TOKENS = 300
_ANCHORED_MAX = 6
_SHOWN_CHARS = 120
_SORTS_OF_BRANCH = ("bug", "bugfix", "chore", "docs", "feat", "feature", "fix", "hotfix", "refactor", "release", "test")
# The rule that keeps a verified unit in its worktree. The agent is told, since it can add a better test.
_LOCAL_ONLY = "R20"
_PATHS = ("file_path", "filePath", "path", "absolute_path", "notebook_path")
_BEFORE = ("old_string", "oldString", "old_str")
_AFTER = ("new_string", "newString", "new_str", "content", "contents", "file_text", "new_source")
_PATCHES = ("patch", "patchText", "input", "command")
_PATCHED = ("*** Update File: ", "*** Add File: ", "*** Delete File: ")
# An edit with a longer side is kept without its text: half an edit would teach a wrong rule.
_SIDE_CHARS_MAX = 20_000
_COMMAND_CHARS_MAX = 4_000
_FILE_CHARS_MAX = 1_000_000
_ERROR_CHARS_MAX = 2_000
_WORDS_MAX = 60
# Signs of a shell command that changes files.
_EDITS = ("sed -i", "rm ", "mv ", "cp ", "tee ", "truncate ", "patch ", "git checkout", "git restore", "git apply", ">")


class Moment:
    """One event of one session, with its memory and its seat."""

    def __init__(self, event: HookEvent, session: Session, memory: Memory, home: Home) -> None:
        self.event, self.session, self.memory, self.home = event, session, memory, home
        self.rules = memory.config.hook
        # Writes that run after the answer was sent.
        self.later: list[Later] = []
        self.seat = self._seat()

    @property
    def domain(self) -> str | None:
        """The domain of this event's folder in the settings; of several matches the longest."""
        here = _path_in(self.event.cwd, self.home.root, self.event.cwd) + "/"
        named = [folder for folder in self.rules.domains if here.startswith(f"{folder.strip('/')}/")]
        return self.rules.domains[max(named, key=len)] if named else None

    def _seat(self) -> Seat:
        """The seat of this event. The actor is the host, followed by the subagent's type if there is one.

        The task is that of MNEMARCH_TASK, else the host's, else the branch, else the session.
        """
        event, home = self.event, self.home
        name = f"{event.host.actor}/{event.agent}" if event.agent else event.host.actor
        settings: dict[str, Any] = {
            part: event.environ.get(f"MNEMARCH_{part.upper()}") for part in ("org", "project", "worktree", "task")
        }
        where: dict[str, Any] = {
            "project": self.memory.config.project or home.project,
            "worktree": worktree_in(self.memory, home),
            "task": event.task or git.task_branch(home.root) or event.session,
        }
        where |= {part: setting for part, setting in settings.items() if setting}
        return self.memory.seat(Actor.agent(name), Scope(**where), session=event.session, root=home.root)


# Handlers: each returns the text for the agent


def start(moment: Moment) -> str:
    """The binding decisions and the units for this task; a resumed session gets only new ones.

    After a compaction the agent gets everything again, since it has forgotten it.
    """
    session, rules = moment.session, moment.rules
    session.clean()
    known = session.listed("shown") if moment.event.payload.get("source") == "resume" else []
    session.change(lambda state: state.update(shown=known, warned=[], met=[]))
    if rules.reports and "CLAUDE_ENV_FILE" in moment.event.environ:
        with suppress(OSError):  # The context is still handed over if the folder can't be written.
            _have_reports_written(moment.session.reports)
    if not rules.start_tokens:
        return ""
    room = rules.start_tokens - prompts.estimated_tokens(_ABOUT)
    pack = moment.seat.context(_task_in_words(moment), max(room, 1), domain=moment.domain, without=known)
    _shown(moment, pack)
    return pack.text if known else f"{_ABOUT}\n{pack.text}".strip()


def _task_in_words(moment: Moment) -> str:
    """The words of the task's name and, in a continued session, the last prompt: a question for recall."""
    task = moment.seat.scope.task
    named = ""
    if task is not None and task != moment.event.session:
        sort, _, rest = task.partition("/")
        # "fix" in fix/login describes no task.
        telling = rest if sort in _SORTS_OF_BRANCH else task
        named = " ".join("".join(char if char.isalnum() else " " for char in telling).split())
    if moment.event.payload.get("source") not in {"resume", "compact", "fork"}:
        return named
    return " ".join([named, *_prompts(moment, 1)]).strip()


def _prompts(moment: Moment, count: int) -> list[str]:
    """The last prompts of this session from the log, newest first."""
    texts = []
    for entry_id in reversed(moment.session.listed("prompts")[-count:]):
        with suppress(NotFound):
            entry: Any = moment.seat.show(entry_id)
            texts += [str(entry.payload["text"])] if entry.payload else []
    return texts


def _have_reports_written(folder: str) -> None:
    """Place a test recorder for the commands of this session, since a terse run names no passed tests."""
    from mnemarch.witness.run import place_recorder

    os.makedirs(folder, mode=0o700, exist_ok=True)
    place_recorder(folder)


def prompt(moment: Moment) -> str:
    """The units that match the prompt well and were not shown yet; "" if there are none."""
    if moment.event.prompt.lstrip().startswith(_NOTICE):
        return ""
    # People paste recalled text into prompts; it is not recorded as new.
    own = prompts.without_fenced(moment.event.prompt).strip()[:_PROMPT_CHARS_MAX]
    if not own:
        return ""
    if moment.rules.records:
        # The prompt is classified at the end of the turn, when nobody waits for the hook.
        moment.later.append(lambda: _log_prompt(moment, own))
    if not moment.rules.prompt_tokens:
        return ""
    known = moment.session.listed("shown")
    pack = moment.seat.context(own, moment.rules.prompt_tokens, domain=moment.domain, without=known, floor="auto")
    _shown(moment, pack)
    return pack.text


def _log_prompt(moment: Moment, text: str) -> None:
    """Log a prompt. A bare question never becomes a unit: recall would return it as its own answer."""
    from mnemarch.text.conversation import ASKS, signs_of

    tells = signs_of(text) != ASKS
    receipt = moment.seat.log("user", text, data=DEFERRED if tells else None)

    def note(state: dict[str, Any]) -> None:
        state["asked"] = tells or state.get("asked", False)
        state["prompts"] = [*state.get("prompts", ()), receipt.event_id][-_ANCHORED_MAX:]

    moment.session.change(note)


def before_tool(moment: Moment) -> str:
    """Warnings: units about the files that will change (once a session), and an edit or approach that failed before."""
    event, session, root = moment.event, moment.session, moment.home.root
    if event.tool_kind == "shell":
        _forget_report(moment.session.reports)
    lines: list[str] = []
    warned = set(session.listed("warned"))
    paths = [path for path in _paths_changed(event, root) if path not in warned]
    items = moment.seat.about(paths) if paths else []
    if items:
        from mnemarch.model.search import Found
        from mnemarch.recall.context import packed

        found = Found(items=tuple(items), withheld=(), intent="")
        text = packed(found, _WARNING_TOKENS, prompts.estimated_tokens, None).text
        lines += [f"Before you change {', '.join(paths)}:", text] if text else []
        session.add("warned", paths)
    failed = session.listed("failed_edits")
    again = [edit["path"] for edit in _edits_of(event, root) if failed and set(_digests_of([edit])) & set(failed)]
    if again:
        lines.append(f"CAREFUL. This very edit of {again[0]} was made before, and the tests failed after it.")
    approach = str(event.input.get("description") or "") if failed or session.state.get("failures") else ""
    if approach:
        valid = moment.seat.validate_approach(approach)
        lines += [] if valid.valid else [f"{valid.reason} {valid.suggestion}"]
    return "\n".join(lines)


def after_tool(moment: Moment) -> str:
    """Log the tool call. A test run verifies the task's claims; after a failure the agent gets the verdict (S6)."""
    event, rules, root, seat = moment.event, moment.rules, moment.home.root, moment.seat
    entries = _entries_of(event, root) if rules.records else []
    if entries:
        seat.log_many(entries)
    moment.session.add("edits", _digests_of(_edits_of(event, root)))
    run = _run_in(moment) if rules.verifies else None
    if run is None or not run.ran:
        return ""
    judged = seat.verify(run=run, account=False)
    if judged.passed:
        moment.session.change(lambda state: state.update(edits=[], failed_edits=[], failures=0, untold=True))
        return "\n".join([*_raised(judged), *_trust_changed(judged)])
    failed = [*moment.session.listed("failed_edits"), *moment.session.listed("edits")]
    moment.session.change(lambda state: state.update(edits=[], failed_edits=failed[-100:], failures=1, untold=True))
    return "\n".join([*_verdict(moment, judged.loop), *_trust_changed(judged)])


def _verdict(moment: Moment, loop: LoopVerdict | None) -> list[str]:
    """The verdict's instruction and, once a session, other tasks' episodes about the error, fenced as data."""
    if loop is None:
        return []
    error = loop.details["error_hash"]
    if not loop.seen_before or error in moment.session.listed("met"):
        return [loop.instruction] if loop.instruction else []
    moment.session.add("met", [error])
    return [*filter(None, [loop.instruction]), prompts.fenced([prompts.entry("[EPISODE]", loop.seen_before)])]


def _raised(judged: Promotion) -> list[str]:
    """Lines about the units that the run verified, for the agent that claimed them."""
    from mnemarch.policy.loops import quoted

    local = {refused.unit_id: [refused.reason] for refused in judged.refused if refused.rule == _LOCAL_ONLY}
    lines: list[str] = []
    for unit in judged.units:
        lines += [f"The tests verified, for {unit.level}: {quoted(unit.content)}", *local.get(unit.id, ())]
    if judged.set_aside:
        lines.append(f"Not counted, because they failed before this task began: {', '.join(judged.set_aside[:5])}")
    return lines


def _trust_changed(judged: Promotion) -> list[str]:
    """Lines about the other trust changes of this run (R2)."""
    raised = {unit.id for unit in judged.units}
    changes = [change for change in judged.trust_changes if change.unit_id not in raised]
    return [f"Unit {short_id(c.unit_id)}: trust {c.before:.2f} to {c.after:.2f} ({c.signal})." for c in changes]


def compact(moment: Moment) -> str:
    """Keep the prompts word for word as evidence behind an anchor, to be found after the compaction (D1)."""
    if moment.event.host.name == "gemini" or not moment.rules.records:  # Gemini sends this before every model call.
        return ""
    asked = _prompts(moment, _ANCHORED_MAX)
    if not asked:
        return ""
    decisions = moment.seat.decisions
    snapshot = "\n".join(
        ["Asked in this session, the newest first:", *(f"- {text[:_SAID_CHARS_MAX]}" for text in asked)]
    )

    def keep() -> None:
        evidence = decisions.add_evidence(snapshot, ["compaction"])
        if evidence.mentions > 1:
            return  # No prompt has come since an earlier compaction.
        hint = f"Before a compaction in task {moment.seat.scope.task}: {asked[0][:_SHOWN_CHARS]}"
        anchor, earlier = decisions.add_anchor(hint, evidence.id, "entrypoint"), moment.session.state.get("anchor")
        moment.session.change(lambda state: state.update(anchor=anchor.id))
        with suppress(NotAllowed, NotFound):  # Another actor uses the anchor, or it was erased.
            if earlier:
                moment.seat.withdraw(earlier, "a later compaction of the same session")

    moment.later.append(keep)
    return ""


def stop(moment: Moment) -> str:
    """Turn the prompts into claims, log the agent's last message, and keep the task's episode.

    Test runs were judged when they happened. The answer is empty, since a host would take a text as a reason to go on.
    """
    said = prompts.without_fenced(moment.event.said).strip()[:_SAID_CHARS_MAX]
    if said and moment.rules.records and not moment.event.payload.get("stop_hook_active"):
        moment.later.append(lambda: moment.seat.log("assistant", said))
    # The prompts belong to the main agent, so the end of a subagent leaves them.
    if moment.session.state.get("asked") and moment.event.name != "subagent_stop":
        moment.later.append(lambda: _take_up_prompts(moment))
    if moment.session.state.get("untold"):
        moment.later.append(lambda: _consolidate(moment))
    return ""


def _consolidate(moment: Moment) -> None:
    moment.seat.consolidate()
    moment.session.change(lambda state: state.update(untold=False))


def _take_up_prompts(moment: Moment) -> None:
    from mnemarch.learning.classify import RuleBasedClassifier

    moment.seat.ingest_many([], classifier=RuleBasedClassifier())
    moment.session.change(lambda state: state.update(asked=False))


def _shown(moment: Moment, pack: Pack) -> None:
    """Note the units that were shown in full or are covered by a shown episode, so that none is shown twice."""
    from mnemarch.recall.context import TOLD_ELSEWHERE

    told = [each.unit_id for each in pack.left_out if each.reason == TOLD_ELSEWHERE]
    units = [item.unit for item in (*pack.binding, *pack.items)]
    whole = [unit.id for unit in units if unit.content.splitlines()[-1] in pack.text]
    moment.session.add("shown", [*whole, *told])


def perform(event: HookEvent, home: Home, memory: Memory, place: str, say: Say) -> None:
    """Handle an event: tell the agent first, then record."""
    session = Session(place, event.session, event.host.name)
    if not session.admits(event):
        return
    moment = Moment(event, session, memory, home)
    text = HANDLERS[event.name](moment)
    told = hosts.answer(event, text)
    say(told)
    if told is not None:
        session.gave(event.name, len(text.encode(errors="replace")))
    for record in moment.later:
        record()


HANDLERS = {
    "start": start,
    "prompt": prompt,
    "before_tool": before_tool,
    "after_tool": after_tool,
    "compact": compact,
    "stop": stop,
    "subagent_stop": stop,
    "end": stop,
}


# Tool calls as log entries (commands, edits, files) and as test runs


def _edits_of(event: HookEvent, root: str) -> list[dict[str, Any]]:
    """The edits of a tool call: each has its path from the root, and either both sides or a patch."""
    told = event.input
    said = [each for name in _PATCHES if isinstance(each := told.get(name), str) and "*** Begin Patch" in each]
    if said:
        patch = said[0]
        paths = [
            line.removeprefix(mark).strip() for line in patch.splitlines() for mark in _PATCHED if mark in line[:17]
        ]
        return [{"path": _path_in(path, root, event.cwd), "patch": patch[:_SIDE_CHARS_MAX]} for path in paths]
    named = _text(told, _PATHS)
    if not named or event.tool_kind != "edit":
        return []
    path, parts = _path_in(named, root, event.cwd), told.get("edits")
    several = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return [{"path": path, **_sides(part)} for part in several or [dict(told)]]


def _entries_of(event: HookEvent, root: str) -> list[Entry]:
    """The log entries of a finished tool call."""
    if event.tool_kind == "shell":
        command = _text(event.input, ("command", "cmd"))[:_COMMAND_CHARS_MAX]
        data: dict[str, Any] = {"command": command, "exit": event.exit}
        if event.exit:
            data["error"] = event.output[-_ERROR_CHARS_MAX:]
        kept = {name: item for name, item in data.items() if item is not None}
        return [Entry(kind="command", text=command, data=kept), *_edited(event, root)] if command.strip() else []
    if event.tool_kind == "read":
        path = _text(event.input, _PATHS)
        inside = _path_in(path, root, event.cwd) if path else ""
        return [Entry(kind="file", text=inside, data={"path": inside})] if inside else []
    return [] if "Failure" in event.native else _edited(event, root)


def _edited(event: HookEvent, root: str) -> list[Entry]:
    """The log entries of a tool call's edits, each with the function or class around it, if known."""
    entries = []
    for edit in _edits_of(event, root):
        name = _name_in(root, edit["path"], edit["after"]) if edit.get("before") else ""
        entries.append(Entry(kind="edit", text=edit["path"], data=edit | ({"name": name} if name else {})))
    return entries


def _name_in(root: str, path: str, part: str) -> str:
    from mnemarch.text.edits import enclosing_name

    whole = os.path.join(root, path)
    if os.path.isabs(path) or not os.path.isfile(whole):
        return ""
    try:
        with open(whole, encoding="utf-8") as file:
            return enclosing_name(file.read(_FILE_CHARS_MAX), part)
    except (OSError, ValueError):
        return ""


def _digests_of(edits: list[dict[str, Any]]) -> list[str]:
    """A digest of each edit that tells its texts. Equal edits have equal digests; going back is another edit."""
    said = [[str(edit.get(name) or "") for name in ("path", "before", "after", "patch")] for edit in edits]
    texts = ["\0".join(each) for each in said if any(each[1:])]
    return [blake2b(text.encode(errors="replace"), digest_size=10).hexdigest() for text in texts]


def _paths_changed(event: HookEvent, root: str) -> list[str]:
    """The files that a tool is about to change. For a shell command that edits: the existing files that it names."""
    paths = [edit["path"] for edit in _edits_of(event, root)]
    command = _text(event.input, ("command", "cmd")) if event.tool_kind == "shell" else ""
    if any(word in command for word in _EDITS):
        words = (word.strip("'\"`();|&<>") for word in command.split()[:_WORDS_MAX])
        named = (_path_in(word, root, event.cwd) for word in words if word and word[0] != "-")
        paths += [path for path in named if os.path.isfile(os.path.join(root, path))]
    return list(dict.fromkeys(paths))


def _path_in(path: str, root: str, cwd: str) -> str:
    """The path from the root of the working tree, or the absolute path if it lies outside."""
    whole = os.path.normpath(os.path.join(cwd, path))
    for base in (root, os.path.realpath(root)):
        if whole.startswith(f"{base}{os.sep}"):
            return whole[len(base) + 1 :].replace(os.sep, "/")
    return whole


def _run_in(moment: Moment) -> TestRun | None:
    """The test run of a command, or None if it ran no tests. A report of the runner supplies the tests if it exists."""
    event, root, reports = moment.event, moment.home.root, moment.session.reports
    configured = moment.memory.config.witness.test_commands
    command = _text(event.input, ("command", "cmd"))
    if event.tool_kind != "shell" or not command.strip():
        return None
    from mnemarch.witness import runner_of

    if runner_of(command, configured) is None:  # Most commands run no tests and load nothing more.
        return None
    from mnemarch.witness.output import from_output

    seen = from_output(
        command,
        event.exit,
        event.output,
        cwd=event.cwd,
        root=root,
        configured=configured,
        awaited=moment.seat.awaited_tests,
    )
    if seen is None or not os.path.exists(os.path.join(reports, "results.jsonl")):
        return seen
    from mnemarch.witness.reports import written_to

    try:
        _, results = written_to(reports, root)
    except (OSError, ValueError, LookupError):
        results = []
    _forget_report(reports)
    own = tuple(result for result in results if not result.name.startswith("../"))
    return replace(seen, results=own) if own else seen


def _forget_report(reports: str) -> None:
    """Remove an earlier run's report, so that the next run does not read it."""
    with suppress(OSError):
        os.remove(os.path.join(reports, "results.jsonl"))


def _sides(told: Mapping[str, Any]) -> dict[str, str]:
    before, after = _text(told, _BEFORE), _text(told, _AFTER)
    return {} if max(len(before), len(after)) > _SIDE_CHARS_MAX else {"before": before, "after": after}


def _text(told: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """The first of these fields with a text. The words of a list count as one text."""
    items = [told.get(name) for name in names]
    texts = (" ".join(map(str, item)) if isinstance(item, list) else item for item in items)
    return next((text for text in texts if isinstance(text, str) and text), "")
