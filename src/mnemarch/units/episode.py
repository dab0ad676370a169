"""Creates the episode of a verified task, and a skill if a success repeats (G7-G10)."""

from __future__ import annotations

from mnemarch.code.worktree import standing_edits
from mnemarch.log.act import Act, Log, receipt_for
from mnemarch.model.caller import ActorKind, Caller, Level
from mnemarch.model.event import Event, EventType
from mnemarch.model.json_text import canonical_json
from mnemarch.model.outcome import RULES, Analysis, Promotion
from mnemarch.model.testrun import Outcome, TestResult, TestRun
from mnemarch.model.unit import KEPT_AS, REPEATED, Citation, CitationKind, Claim, Kind, LinkType, Unit
from mnemarch.model.value import replace
from mnemarch.text.edits import netted
from mnemarch.units.account import (
    KEPT_CHARS_MAX,
    KEPT_MAX,
    Account,
    account_in,
    cut,
    failed_approaches,
    faults_shown,
    left_open,
    named,
    read_error,
    text_of,
    with_edits_of_others,
)
from mnemarch.units.analysis import (
    TROUBLE,
    LoggedStep,
    analysed,
    asked_for,
    edits_told,
    is_edit,
    is_worth_repeating,
    steps_of,
    task_described,
    without_runs_set_aside,
)
from mnemarch.units.conflicts import link_units, resembling
from mnemarch.units.finding import live_with_same_text, refusal_to_repeat
from mnemarch.units.remember import record_unit
from mnemarch.units.scene import TOLD_MAX, Scene, account_of, newest_first, told_of, units_of_task
from mnemarch.units.status import change, practise, retire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from mnemarch.stores.sql.reader import Reader


_CITED_LOGS_MAX = 20
_CITED_TESTS_MAX = 20
_DECISIONS_MAX = 50
_COMPARED_EPISODES_MAX = 200
# Attribute of episodes that wait for analysis by the configured model, and the fewest steps that are worth it.
WAITS = "analysis_waits"
_ANALYSED_STEPS_MIN = 2
_OF_AN_ANALYSIS = frozenset({"critique", "reward", "key_decisions", "analyst", WAITS})
_BY_MODEL = "\nCritique by "
_SIMILAR_EPISODES_MAX = 3
_UNITS_AFTER_MAX = 2_000
_ENDS = (EventType.TASK_VERIFIED, EventType.UNIT_REMEMBERED, EventType.ATTEMPT_FAILED)


def read_ahead(staged: Sequence[Event]) -> None:
    """Parse a task's entries and errors before the write transaction, so that other writers don't wait for it."""
    for step in steps_of(staged):
        if step.kind.lower() in TROUBLE:
            read_error(step.text)


def consolidate(log: Log, caller: Caller) -> Promotion | None:
    """Write the episode of the last test run, or of failures that were only reported, if nothing tells of them yet.

    None if there is nothing to write.
    """

    def read(reader: Reader) -> tuple[int, Event | None, list[Event], Unit | None]:
        judged, before = _unaccounted(reader, caller), account_of(units_of_task(reader, caller))
        if judged is None:
            return reader.position(), None, [], before
        end = judged.position + (judged.type is EventType.ATTEMPT_FAILED)
        return reader.position(), judged, told_of(reader, caller, end), before

    position, judged, staged, before = log.store.read(lambda reader: reader.together(read))
    if judged is None:
        return None
    read_ahead(staged)

    def keep(act: Act) -> Promotion | None:
        is_known = act.transaction.position() == position
        last, story, told = (judged, staged, before) if is_known else read(act.transaction)[1:]
        return None if last is None else _keep_last(act, last, story, told)

    return log.act(caller, keep, durable=True, together=True)


def _unaccounted(reader: Reader, caller: Caller) -> Event | None:
    """The last test run, if no account came after it, or the last failure of a task that has no run to be judged by."""
    failed: Event | None = None
    for event in newest_first(reader, caller.scope_key, _ENDS, _UNITS_AFTER_MAX if caller.scope.task else 0):
        if event.type is EventType.TASK_VERIFIED:
            return None if event.erased else event
        # The content of an erased entry is unknown, so it is not told again.
        if event.erased:
            return None
        if event.type is EventType.ATTEMPT_FAILED:
            failed = failed or event
        elif account := account_in(event):
            return None if account["attributes"].get("success") else failed
    return failed


def _keep_last(act: Act, judged: Event, staged: Sequence[Event], before: Unit | None) -> Promotion:
    assert judged.payload is not None
    last, run = judged.payload, TestRun(runner="", command="", results=(), witnessed=False)
    if judged.type is EventType.TASK_VERIFIED:
        run = TestRun(
            runner=last["runner"],
            command=last["command"],
            results=tuple(TestResult(name, Outcome(said)) for said, names in last["tests"].items() for name in names),
            exit_code=last["exit_code"],
            witnessed=last["witnessed"],
            commit=last["commit"],
        )
    scene, passed = Scene((), last.get("tree", ""), set_aside=frozenset(last.get("set_aside", ()))), last.get("passed")
    episode, skill_id = keep_episode(act, staged, before, passed is True, run, scene, None)
    return Promotion(
        episode_id=episode.id,
        skill_id=skill_id,
        units=(),
        refused=(),
        receipt=receipt_for(judged),
        witnessed=run.witnessed,
        passed=passed is True,
    )


def keep_episode(
    act: Act,
    staged: Sequence[Event],
    before: Unit | None,
    passed: bool,
    run: TestRun,
    scene: Scene,
    given: Analysis | None,
) -> tuple[Unit, str | None]:
    """Replace the account `before` by a new episode, linked to similar ones; perhaps also make a skill (G9-G11)."""
    logged = [event for event in staged if event.type is EventType.LOGGED and not event.erased]
    steps, tests = steps_of(logged), run.without(scene.set_aside).named(Outcome.PASS if passed else Outcome.FAIL)
    standing = standing_edits(act.caller.root, netted(edits_told(logged)))
    told = [event for event in staged if (standing or {}).get(event.id, True)]
    succeeded = passed if given is None else given.success
    log = with_edits_of_others(act.transaction, act.caller, told) if succeeded else told
    story = without_runs_set_aside(steps_of(log)) if scene.set_aside else steps_of(log)
    described = cut(task_described(steps) or "")
    task = described or cut(next((step.text for step in steps if step.text.strip()), ""))
    others = _episodes(act) if task else []
    worked, last = run.command if passed and run.witnessed else "", before if len(staged) >= TOLD_MAX else None
    faults, said = faults_shown(act.caller.root, log, worked, run if succeeded else None, scene.tree, others, last)
    is_seen = not faults or "unseen" not in faults[-1]
    turn = faults[-1].get("change", ()) if faults and "test" in faults[-1] else None
    draft = given or analysed(story, passed, 0, turn)
    if (unseen := left_open(faults, run)) and asked_for(steps, unseen)[0]:
        draft = replace(draft, success=False, score=0.0)
    account = Account(
        name=_name(act),
        passed=passed,
        success=draft.success,
        steps=steps,
        faults=faults,
        failed_approaches=failed_approaches(staged),
        approach=said if said and succeeded and is_seen else None,
        tests=tests,
        set_aside=sorted(scene.set_aside),
        commit=run.commit,
        # A critique that only says "no logged error" is left out.
        critique=cut(draft.critique) if given or (story and draft.score < 1) else "",
        analyst=draft.analyst,
    )
    tests_cited = [Citation.test(name) for name in tests[:_CITED_TESTS_MAX] if passed]
    claim = Claim(
        content=text_of(account),
        kind=Kind.EPISODE,
        level=Level.PROJECT,
        citations=(*(Citation.log(event.id) for event in logged[-_CITED_LOGS_MAX:]), *tests_cited),
        importance=0.6 if draft.success else 0.5,
        attributes=_attributes(act, account, draft, task)
        | _traces(act, account, staged)
        | _waiting(act, draft, story)
        | {"witnessed": run.witnessed or act.caller.actor.kind is ActorKind.HUMAN}
        | ({} if standing is None else {"standing": [id for id, stands in standing.items() if stands]}),
    )
    episode = _updated(act, claim, before)
    repeated = _relate(act, episode, others)
    is_repeated = draft.is_repeatable if given else repeated and is_worth_repeating(draft.extracted_code)
    is_repeated = is_repeated and draft.success and is_seen and episode.attributes["witnessed"]
    return episode, _skill(act, draft, described, episode, repeated) if is_repeated else None


def keep_analysis(act: Act, episode: Unit, analysis: Analysis) -> tuple[Unit, str | None]:
    """The episode with a model's analysis. The critique is added and attributed to the model (G8).

    The model does not change whether the task succeeded; only the verification says that.
    """
    claim = Claim(
        content=f"{episode.content}{_BY_MODEL}{analysis.analyst}, not verified: {analysis.critique}",
        kind=Kind.EPISODE,
        level=Level.PROJECT,
        citations=episode.citations,
        importance=episode.importance,
        attributes={name: each for name, each in episode.attributes.items() if name != WAITS}
        | {"critique": analysis.critique, "reward": analysis.score, "analyst": analysis.analyst}
        | {"key_decisions": list(analysis.key_decisions)},
    )
    others = _episodes(act)
    newer = _superseding(act, claim, episode, f"analysed by {analysis.analyst}")
    repeated = _relate(act, newer, others)
    # The model only says that the task is repeatable. Earlier episodes must show that it was repeated (G10).
    if not (repeated and analysis.success and analysis.is_repeatable and episode.attributes.get("success")):
        return newer, None
    return newer, _skill(act, analysis, str(episode.attributes["task"]), newer, repeated)


def _waiting(act: Act, analysis: Analysis, story: Sequence[LoggedStep]) -> dict[str, Any]:
    """The analyst's name, and a mark if the configured model still has to analyse the task."""
    waits = bool(act.config.analyst.api) and analysis.analyst == RULES and len(story) >= _ANALYSED_STEPS_MIN
    return {"analyst": analysis.analyst} | ({WAITS: True} if waits else {})


def _attributes(act: Act, account: Account, analysis: Analysis, task: str) -> dict[str, Any]:
    steps = account.steps
    return {
        "task": task or account.name,
        "task_key": act.caller.scope_key,
        "critique": cut(analysis.critique),
        "reward": analysis.score,
        "success": analysis.success,
        "input": cut(canonical_json(steps[0].data.get("context", _without_flags(steps[0])) if steps else {})),
        "output": cut(canonical_json(analysis.result)),
        "key_decisions": [cut(decision) for decision in analysis.key_decisions[:_DECISIONS_MAX]],
        "tests": list(account.tests),
        "commit": account.commit,
    }


def _without_flags(step: LoggedStep) -> dict[str, Any]:
    return {name: item for name, item in step.data.items() if name != "ingest"}


def _traces(act: Act, account: Account, staged: Sequence[Event]) -> dict[str, Any]:
    """The faults, approaches, commands, files and symbols of the task, in order. Lessons are made of these (M6)."""
    steps = account.steps
    symbols = [f"{step.data['path']}:{step.data['name']}" for step in steps if {"path", "name"} <= step.data.keys()]
    return {
        "faults": list(account.faults),
        "failed_approaches": _last(reversed(account.failed_approaches)),
        "approach": account.approach,
        "commands": _last(named(step, "command", "command") for step in steps if not step.data.get("exit")),
        "files": _last(named(step, "path", "file") for step in steps),
        "symbols": _last(symbols),
        "steps": len(steps),
        "seconds": round((act.now - staged[0].recorded_at).total_seconds(), 1) if staged else 0.0,
        "agent": str(act.caller.actor),
        "rules": _last(step.data.get("rule") for step in steps),
        "patches": sum(map(is_edit, steps)),
    }


def _last(items: Iterable[object]) -> list[str]:
    """The newest distinct texts among the items, in order."""
    texts = [item[:KEPT_CHARS_MAX] for item in items if isinstance(item, str) and item.strip()]
    return list(dict.fromkeys(reversed(texts)))[:KEPT_MAX][::-1]


def _episodes(act: Act) -> list[Unit]:
    """The accounts of tasks, which live at the project's level. Episodes that agents tell live below it."""
    project = act.caller.scope.at(Level.PROJECT).key
    return act.transaction.units_in([project], kind=Kind.EPISODE, live=True, limit=_COMPARED_EPISODES_MAX, shared=True)


def _relate(act: Act, episode: Unit, others: Sequence[Unit]) -> list[Unit]:
    """Link an episode to similar ones (G11). Returns those that succeeded in the same way (G10).

    Tasks are compared by their descriptions, or else by the first entry of their logs. `others` is empty for a task
    without a log.
    """
    others = [unit for unit in others if unit.id not in (episode.id, episode.supersedes)]
    tasks = [replace(unit, content=str(unit.attributes.get("task") or unit.content)) for unit in others]
    similar = resembling(str(episode.attributes["task"]), tasks, act.config.gate)
    for other, similarity in similar[:_SIMILAR_EPISODES_MAX]:
        link_units(act, episode.id, other.id, LinkType.SIMILAR_TO, similarity, "similar episode")
    return [other for other, _ in similar if _is_repeated(episode, other)]


def _is_repeated(episode: Unit, earlier: Unit) -> bool:
    """Whether a success repeats an earlier similar one: the same command worked, or the tasks differ in no value.

    Both verifications must be witnessed. An agent's report does not count (R21).
    """
    was_seen = all(unit.attributes.get("witnessed") for unit in (episode, earlier))
    if not earlier.attributes.get("success") or not was_seen:
        return False
    from mnemarch.text.guarded import differences

    ran, ran_before = (unit.attributes.get("commands") or () for unit in (episode, earlier))
    if any(is_worth_repeating(command) for command in set(ran).intersection(ran_before)):
        return True
    return not differences(*(str(unit.attributes["task"]) for unit in (episode, earlier)))


def _skill(act: Act, analysis: Analysis, task: str, episode: Unit, repeated: Sequence[Unit]) -> str | None:
    """Create the skill of repeated tasks, or count a further success of a known one. Returns its id.

    None if no step is worth repeating, or if the skill was rejected.
    """
    if not is_worth_repeating(analysis.extracted_code):
        return None
    name = cut(analysis.suggested_skill_name or "skill")
    code = cut(analysis.extracted_code or "")
    claim = Claim(
        content=f"{name}: {task}\n{code}".strip() if task else f"{name}\n{code}".strip(),
        kind=Kind.SKILL,
        level=Level.PROJECT,
        citations=(
            *(item for item in episode.citations if item.kind is CitationKind.TEST),
            *(Citation.log(unit.provenance[0].event_id) for unit in (episode, *repeated[:_CITED_LOGS_MAX])),
        ),
        importance=0.7,
        attributes={
            KEPT_AS: REPEATED,
            "name": name,
            "code": code,
            "successes": len(repeated) + 1,
            "failures": 0,
            "success_rate": 1.0,
            "episode": episode.id,
        },
    )
    visible = act.caller.visible_keys
    same = live_with_same_text(act.transaction, visible, claim.content)
    known = [unit for unit in same if unit.kind is Kind.SKILL]
    if not known:
        # The same steps are the same skill, even if the task is worded differently.
        skills = act.transaction.units_in(visible, kind=Kind.SKILL, live=True, limit=_COMPARED_EPISODES_MAX)
        known = [unit for unit in skills if unit.attributes.get("code") == code]
    if not known:
        if refusal_to_repeat(act, claim) is not None:
            return None
        event, _ = record_unit(act, claim, None)
        return event.subject
    is_own = known[0].provenance[0].scope == act.caller.scope
    use = act.transaction.use(known[0].id, act.caller.scope_key)
    if not is_own and (use is None or not use.credited):
        practise(act, known[0])
    return known[0].id


def _updated(act: Act, claim: Claim, before: Unit | None) -> Unit:
    """The task's only episode. A new account supersedes the old one, at the project's level (R2)."""
    if (
        before is not None
        and before.content.partition(_BY_MODEL)[0] == claim.content
        and not _tells_more(claim, before)
    ):
        return before
    return _superseding(act, claim, before, "a newer episode of the same task")


def _superseding(act: Act, claim: Claim, before: Unit | None, reason: str) -> Unit:
    event, _ = record_unit(act, claim, None)
    episode = act.known_unit(event.subject)
    if before is None:
        return episode
    retire(act, before, episode.id, reason)
    return change(act, EventType.UNIT_SUPERSEDING, episode, {"old": before.id, "set": {"supersedes": before.id}})


def _tells_more(claim: Claim, before: Unit) -> bool:
    """Whether a new account differs from the old one. Fields from a model's analysis of the same text don't count."""
    old, left_alone = before.attributes, {"seconds"}
    if before.content.startswith(f"{claim.content}{_BY_MODEL}"):
        left_alone |= _OF_AN_ANALYSIS
    elif before.content != claim.content:
        return True
    return any(each != old.get(name) for name, each in claim.attributes.items() if name not in left_alone)


def _name(act: Act) -> str:
    scope = act.caller.scope
    return f"Task {scope.task}" if scope.task is not None else f"Worktree {scope.worktree}"
