"""Episodes and skills: what the gate itself keeps of a verified task (G7-G11)."""

from __future__ import annotations

from mnemarch.model.caller import Level
from mnemarch.model.citation import Citation, CitationKind
from mnemarch.model.event import EventType
from mnemarch.model.json_text import canonical_json
from mnemarch.model.unit import Claim, Kind, LinkType
from mnemarch.model.value import replace
from mnemarch.policy.promotion import warranted
from mnemarch.text.fence import without_fenced
from mnemarch.units.account import Account, cut, task_described, text_of
from mnemarch.units.analysis import LoggedStep, analysed
from mnemarch.units.comparison import compared
from mnemarch.units.conflicts import link_units
from mnemarch.units.rejections import refusal_to_repeat
from mnemarch.units.remember import record_unit
from mnemarch.units.same_text import live_with_same_text
from mnemarch.units.status import passed_tests, practise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mnemarch.log.act import Act
    from mnemarch.model.event import Event
    from mnemarch.model.outcome import Analysis
    from mnemarch.model.unit import Unit

_CITED_LOGS_MAX = 20
_DECISIONS_MAX = 50
_COMPARED_EPISODES_MAX = 200
_SIMILAR_EPISODES_MAX = 3


def keep_episode(
    act: Act,
    staged: Sequence[Event],
    passed: bool,
    tests: Sequence[str],
    commit: str | None,
    given: Analysis | None,
) -> tuple[Unit, str | None]:
    """Keep what happened (G9), linked to similar episodes (G11), and a skill if it works repeatedly (G10)."""
    logged = [event for event in staged if event.type is EventType.LOGGED and not event.erased]
    steps = [_step(event) for event in logged]
    level = Level.WORKTREE if act.presence.scope.worktree is not None else Level.TASK
    draft = given or analysed(steps, passed, 0)
    account = Account(
        name=_name(act),
        passed=passed,
        success=draft.success,
        steps=steps,
        failed_approaches=_failed_approaches(staged),
        tests=tests,
        commit=commit,
        # That no error was logged says little.
        critique=cut(draft.critique) if given or (steps and draft.score < 1) else "",
        is_own_critique=given is not None,
    )
    # Two tasks are compared by what is known of them, if only by how their logs begin.
    described = cut(task_described(steps) or "")
    task = described or cut(next((step.text for step in steps if step.text.strip()), ""))
    cited = [Citation.log(event.id) for event in logged[-_CITED_LOGS_MAX:]]
    if passed:
        cited += [Citation.test(name) for name in tests]
    claim = Claim(
        content=text_of(account),
        kind=Kind.EPISODE,
        level=level,
        citations=tuple(cited),
        importance=0.6 if draft.success else 0.5,
        attributes=_attributes(act, account, draft, task),
    )
    episode = _kept(act, claim)
    # Tasks that nothing describes resemble each other only in that.
    similar_successes = _relate(act, episode) if task else 0
    # Without a similar success the analysis stays the same, and a long log need not be read again.
    analysis = draft if given or not similar_successes else analysed(steps, passed, similar_successes)
    if not (analysis.success and analysis.is_repeatable):
        return episode, None
    return episode, _skill(act, analysis, described, level, episode, similar_successes)


def _attributes(act: Act, account: Account, analysis: Analysis, task: str) -> dict[str, Any]:
    steps = account.steps
    return {
        "task": task or account.name,
        "task_key": act.presence.scope_key,
        "critique": cut(analysis.critique),
        "reward": analysis.score,
        "success": analysis.success,
        "input": cut(canonical_json(steps[0].data.get("context", dict(steps[0].data)) if steps else {})),
        "output": cut(canonical_json(analysis.result)),
        "key_decisions": [cut(decision) for decision in analysis.key_decisions[:_DECISIONS_MAX]],
        "tests": list(account.tests),
        "commit": account.commit,
    }


def _relate(act: Act, episode: Unit) -> int:
    """Link an episode to similar ones (G11); gives how many of them succeeded."""
    visible = act.presence.visible_keys
    episodes = act.transaction.units_in(visible, kind=Kind.EPISODE, limit=_COMPARED_EPISODES_MAX)
    others = [unit for unit in episodes if unit.id != episode.id and unit.live]
    tasks = [replace(unit, content=str(unit.attributes.get("task") or unit.content)) for unit in others]
    similar = compared(str(episode.attributes["task"]), tasks, act.config.gate)
    for each in similar[:_SIMILAR_EPISODES_MAX]:
        link_units(act, episode.id, each.other.id, LinkType.SIMILAR_TO, each.similarity, "similar episode")
    return sum(bool(each.other.attributes.get("success")) for each in similar)


def _skill(act: Act, analysis: Analysis, task: str, level: Level, episode: Unit, successes: int) -> str | None:
    """One skill for what is the same: a further success counts for it. A rejected skill is not made again."""
    name = cut(analysis.suggested_skill_name or "skill")
    code = cut(analysis.extracted_code or "")
    claim = Claim(
        content=f"{name}: {task}\n{code}".strip() if task else f"{name}\n{code}".strip(),
        kind=Kind.SKILL,
        level=level,
        citations=tuple(item for item in episode.citations if item.kind is CitationKind.TEST),
        importance=0.7,
        attributes={
            "name": name,
            "code": code,
            "successes": successes + 1,
            "failures": 0,
            "success_rate": 1.0,
            "episode": episode.id,
        },
    )
    same = live_with_same_text(act.transaction, act.presence.visible_keys, claim.content)
    known = [unit for unit in same if unit.kind is Kind.SKILL]
    if not known:
        return _kept(act, claim).id if refusal_to_repeat(act, claim) is None else None
    use = act.transaction.use(known[0].id, act.presence.scope_key)
    if use is None or not use.credited:
        practise(act, known[0])
    return known[0].id


def _kept(act: Act, claim: Claim) -> Unit:
    """The gate's own record of what happened: no writer's permission is asked for it."""
    status = warranted(claim.citations, passed_tests(act, claim.citations))
    event, _ = record_unit(act, claim, status)
    return act.known_unit(event.subject)


def _step(event: Event) -> LoggedStep:
    payload = event.payload or {}
    # What recall handed to a task is not what it did: an episode must not keep it again (R6).
    text = without_fenced(payload.get("text", ""))
    return LoggedStep(kind=payload.get("kind", ""), text=text, data=payload.get("data") or {})


def _failed_approaches(staged: Sequence[Event]) -> list[str]:
    payloads = [event.payload for event in staged if event.type is EventType.ATTEMPT_FAILED and event.payload]
    return [cut(payload["approach"]) for payload in reversed(payloads) if payload["approach"]]


def _name(act: Act) -> str:
    scope = act.presence.scope
    return f"Task {scope.task}" if scope.task is not None else f"Worktree {scope.worktree}"
