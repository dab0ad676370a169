"""Cognify: a model analyses episodes within its budget, and key decisions go to the inbox (G8).

No model is called inside a transaction. Every call and its cost are logged.
"""

from __future__ import annotations

from mnemarch.errors import AnalystFailed, InvalidInput
from mnemarch.lazy import Lazy
from mnemarch.log.act import Act
from mnemarch.model.caller import Actor, Caller, Level, Scope
from mnemarch.model.event import EventType
from mnemarch.model.stamps import micros, timedelta
from mnemarch.model.unit import Kind, Unit
from mnemarch.model.upkeep import Cognified
from mnemarch.model.value import replace
from mnemarch.text.words import counted
from mnemarch.units.analysis import steps_of
from mnemarch.units.episode import WAITS, keep_analysis
from mnemarch.units.remember import Intake

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from mnemarch.decisions import decisions as deciding
    from mnemarch.decisions import proposals
    from mnemarch.learning.analyst import ApiModel, Usage
    from mnemarch.model.outcome import Promotion
    from mnemarch.services.engine import Engine
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.text import canonical as texts
    from mnemarch.text import choices as choosing
    from mnemarch.text.choices import Choice
    from mnemarch.units import finding

    Progress = Callable[[int], None]
else:
    # Most tasks decide nothing, and these take as long to load as a verification needs.
    deciding = Lazy("mnemarch.decisions.decisions")
    proposals = Lazy("mnemarch.decisions.proposals")
    texts = Lazy("mnemarch.text.canonical")
    choosing = Lazy("mnemarch.text.choices")
    finding = Lazy("mnemarch.units.finding")

_ANALYST = Actor.system("analyst")
_DAY = timedelta(days=1)
_CALLS_MAX = 10_000
_WAITING_MAX = 500
# After this many unusable answers about a task, the model is not asked about it again.
_FAILURES_MAX = 3
_FAILURES_WITHIN = timedelta(days=30)
_STORY = (EventType.LOGGED, EventType.ATTEMPT_FAILED, EventType.TASK_VERIFIED)
_PROPOSED_MAX = 3
_SUMMARY_CHARS_MAX = 1_000
_USED, _UNUSABLE, _AWAY = "used", "unusable", "away"


class MeteredModel:
    """The configured model, limited by a project's budget. Each call is logged in the project."""

    def __init__(self, engine: Engine, model: ApiModel, scope: Scope, about: str, *, patient: bool = True) -> None:
        self._engine, self._model, self._about = engine, model, about
        self._caller = Caller(_ANALYST, scope.at(Level.PROJECT if scope.project else Level.ORG))
        self._retries_max = None if patient else 0

    def answer(self, instruction: str, material: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        rules, log = self._model.rules, self._engine.log
        used = self._engine.store.read(lambda reader: usage_of(calls(reader, self._caller.scope, log.clock() - _DAY)))
        reply = self._model.ask(
            instruction,
            material,
            schema,
            tokens_left=rules.tokens_per_day_max - used.tokens,
            money_left=rules.money_per_day_max - used.money,
            retries_max=self._retries_max,
        )
        error = reply.error
        outcome = _USED if error is None else _AWAY if error.is_away else _UNUSABLE
        data = {
            "model": self._model.name,
            "about": self._about,
            "outcome": outcome,
            "input_tokens": reply.usage.input_tokens,
            "output_tokens": reply.usage.output_tokens,
            "money": round(reply.usage.money, 6),
        }
        text = f"{self._model.name}: {outcome}, {reply.usage.tokens} tokens" + (f". {error.message}" if error else "")
        if reply.usage.tokens or outcome != _AWAY:
            payload = {"kind": "model", "text": text, "data": data}
            log.act(self._caller, lambda act: act.record(EventType.LOGGED, payload))
        if error is not None:
            raise error
        assert reply.answer is not None
        return reply.answer


def calls(reader: Reader, scope: Scope, since: Any) -> list[Mapping[str, Any]]:
    """The logged calls of a project's model since a moment, newest first."""
    project = scope.at(Level.PROJECT if scope.project else Level.ORG)
    events = reader.events_back(
        project.key, types=[EventType.LOGGED], actor=str(_ANALYST), since=micros(since), limit=_CALLS_MAX
    )
    return [event.payload["data"] for event in events if event.payload]


def usage_of(made: Sequence[Mapping[str, Any]]) -> Usage:
    from mnemarch.learning.analyst import Usage

    names = Usage.__match_args__
    return sum((Usage(**{name: each[name] for name in names}) for each in made), Usage())


def _readable(episodes: Sequence[Unit], caller: Caller) -> list[Unit]:
    return [unit for unit in episodes if caller.may_read(unit.provenance[0].scope)]


def _all_waiting(reader: Reader, caller: Caller) -> list[Unit]:
    """The episodes of a project that wait for the model, newest first."""
    scope = caller.scope
    if scope.project is None:
        return []
    project = scope.at(Level.PROJECT).key
    episodes = reader.units_in([project], kind=Kind.EPISODE, live=True, limit=_WAITING_MAX)
    return [unit for unit in episodes if unit.attributes.get(WAITS)]


def told_of(engine: Engine, reader: Reader, caller: Caller) -> str:
    """A sentence about the model's calls and cost within a day, and waiting tasks. "" if no model is configured."""
    if engine.analyst is None:
        return ""
    rules, made = engine.analyst.rules, calls(reader, caller.scope, engine.log.clock() - _DAY)
    used, waits = usage_of(made), len(_readable(_all_waiting(reader, caller), caller))
    money = f", money {used.money:.4f} of {rules.money_per_day_max:g}" if used.money else ""
    tokens = f"tokens {used.tokens:,} of {rules.tokens_per_day_max:,}{money}"
    return f"{waits} waiting for {rules.model}; within a day: calls {len(made)}, {tokens}"


def analyse_waiting(
    engine: Engine,
    caller: Caller,
    *,
    limit: int = 20,
    only: str | None = None,
    patient: bool = True,
    progress: Progress | None = None,
) -> Cognified:
    """Have the model analyse waiting tasks. If it fails, a task keeps its rule-based analysis and waits on.

    Stops when the model is unavailable or the budget is spent. Skips tasks whose answers were unusable three times.
    """
    model = engine.analyst
    if model is None:
        return Cognified(stopped="No model is configured, so rules analyse the tasks.")
    engine.has_new_units = True
    now = engine.log.clock()
    all_waiting = engine.store.read(lambda reader: _all_waiting(reader, caller))
    waits = _readable(all_waiting, caller)
    made = engine.store.read(lambda reader: calls(reader, caller.scope, now - _FAILURES_WITHIN))
    failures = [each["about"] for each in made if each["outcome"] == _UNUSABLE]
    chosen = [unit for unit in waits if failures.count(unit.id) < _FAILURES_MAX and only in {None, unit.id}][:limit]
    kept: list[str] = []
    proposed: list[str] = []
    skills: list[str] = []
    stopped, unusable = "", []
    for unit in chosen:
        try:
            episode, skill_id = _analysed(engine, caller, model, unit, patient=patient)
        except AnalystFailed as error:
            if error.is_away:
                stopped = error.message
                break
            unusable.append(error.message)
            continue
        if episode is not None:
            kept.append(episode.id)
            skills += [skill_id] if skill_id else []
            proposed += propose_choices(engine, _author(episode, caller), episode)
        if progress is not None:
            progress(len(kept))
    after = engine.store.read(lambda reader: usage_of(calls(reader, caller.scope, now)))
    return Cognified(
        episodes=tuple(kept),
        skills=tuple(skills),
        proposed=tuple(proposed),
        waiting=len(waits) - len(kept),
        tokens=after.tokens,
        money=after.money,
        stopped=stopped or "; ".join(dict.fromkeys(unusable)) or _left(len(all_waiting) - len(waits), caller),
    )


def _left(count: int, caller: Caller) -> str:
    """A note about waiting tasks that this caller may not read, or ""."""
    if not count:
        return ""
    told = f"{counted(count, 'waiting task')} of this project can't be read by {caller.actor} here"
    return f"{told}. A person or an orchestrator can have all of them analysed: mnemarch cognify."


def _analysed(
    engine: Engine, caller: Caller, model: ApiModel, unit: Unit, *, patient: bool
) -> tuple[Unit | None, str | None]:
    """The episode with the model's analysis, and a skill's id or None. (None, None) if it was replaced meanwhile."""
    from mnemarch.learning.analyst import analysis_by_model

    author = _author(unit, caller)
    story = engine.store.read(lambda reader: list(reader.events_of_scope(author.scope_key, _STORY)))
    verified = max((at for at, event in enumerate(story) if event.type is EventType.TASK_VERIFIED), default=-1)
    run = (story[verified].payload or {}) if verified >= 0 else {}
    passed = bool(run.get("passed"))
    tests = (run.get("tests") or {}).get("pass" if passed else "fail", [])
    analysis = analysis_by_model(
        MeteredModel(engine, model, author.scope, unit.id, patient=patient),
        model.name,
        steps_of(story[:verified] if verified >= 0 else story),
        passed=passed,
        tests=tests,
        tokens_max=model.rules.material_tokens_max,
    )

    def keep(act: Act) -> tuple[Unit | None, str | None]:
        now = act.transaction.unit(unit.id)
        return keep_analysis(act, now, analysis) if now is not None and now.live else (None, None)

    return engine.log.act(author, keep, durable=True)


def _author(episode: Unit, caller: Caller) -> Caller:
    """The caller who did the task, in its scope. Results belong to that actor, and go if the actor is undone."""
    source = episode.provenance[0]
    return Caller(source.actor, source.scope, source.session, caller.root)


def propose_choices(engine: Engine, author: Caller, episode: Unit) -> list[str]:
    """Request a few decisions of a successful task in the inbox, each once, if the task gave a reason.

    Nothing is decided here, whoever did the task: a person or a lead decides.
    """
    choices = [choosing.choice_of(str(text)) for text in episode.attributes.get("key_decisions", ())]
    wanted = [choice for choice in choices if choice.why and choice.lasts]
    if not wanted or author.scope.project is None or not episode.attributes.get("success"):
        return []
    asked, known = engine.store.read(lambda reader: _asked_and_known(reader, author, wanted))
    left = _PROPOSED_MAX - sum(scope == author.scope for scope in asked)
    new = {texts.canonical(choice.what): choice for choice in wanted if texts.canonical(choice.what) not in known}
    made = [_requested(engine, author, choice, episode.id) for choice in list(new.values())[: max(left, 0)]]
    return [request_id for request_id in made if request_id is not None]


def _asked_and_known(reader: Reader, author: Caller, wanted: Sequence[Choice]) -> tuple[list[Scope], set[str]]:
    """The scopes of all requests so far, answered or not, and the texts that were requested or are known."""
    asked = proposals.texts_asked_for(reader, author.stream)
    told = [choice.what for choice in wanted if finding.live_with_same_text(reader, author.visible_keys, choice.what)]
    return [scope for scope, _ in asked], {texts.canonical(text) for text in (*(text for _, text in asked), *told)}


def _requested(engine: Engine, author: Caller, choice: Choice, episode_id: str) -> str | None:
    """The id of the request. None if the text can't be a decision, for instance because it is too long."""
    quote = f"Stated by {author.actor} in {author.scope}, a task that succeeded (episode {episode_id}): “{choice.text}”"
    reason = {"type": "other", "summary": choice.why[:_SUMMARY_CHARS_MAX]}
    decisions = deciding.Decisions(engine.log, author, Intake(engine.log, author, None))
    try:
        proposal = decisions.propose(choice.what, reason=reason, snapshots=[quote])
    except InvalidInput:
        return None
    return engine.log.act(author, lambda act: proposals.ask(act, proposal)).id


def followed_up(engine: Engine, caller: Caller, judged: Promotion, episode: Unit) -> Promotion:
    """The verification's answer after the follow-up: the model's analysis, if it is available, and proposals."""
    rules = engine.config.analyst
    if rules.at_verify and judged.passed and engine.analyst is not None:
        done = analyse_waiting(engine, caller, only=judged.episode_id, patient=False)
        if done.episodes:
            said = f"analysed by {rules.model}: {done.tokens} tokens"
            skill = done.skills[0] if done.skills else judged.skill_id
            return replace(judged, episode_id=done.episodes[0], skill_id=skill, proposed=done.proposed, analyst=said)
        judged = replace(judged, analyst=f"analysed by rules. {done.stopped}" if done.stopped else "")
    return replace(judged, proposed=tuple(propose_choices(engine, caller, episode)))
