"""Text for the log, for `status` and for the work of a task. Each log entry gets a sentence."""

from __future__ import annotations

import sys

from mnemarch import user
from mnemarch.errors import NotFound
from mnemarch.interfaces.command import Answer, answered, at_terminal, text_of
from mnemarch.interfaces.text import (
    INDENT,
    age,
    clean,
    fields,
    json_text,
    meaning_line,
    quoted,
    redactions,
    short,
    table,
    unit_line,
    when,
    with_short_ids,
)
from mnemarch.lazy import lines_beside
from mnemarch.model.caller import ActorKind, Scope
from mnemarch.model.stamps import short_id
from mnemarch.text.words import counted
from mnemarch.verbs.types import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from mnemarch.interfaces.command import Call
    from mnemarch.learning.core import CoreSection, Turn
    from mnemarch.model.event import Event
    from mnemarch.model.outcome import (
        ApproachValidation,
        Dispute,
        Explanation,
        FailedApproach,
        Ingested,
        LoopVerdict,
        Overview,
        Promotion,
        TaskUnderWay,
        TrustChange,
    )
    from mnemarch.model.search import Recalled
    from mnemarch.model.testrun import TestRun
    from mnemarch.model.unit import Unit
    from mnemarch.seat import Seat
    from mnemarch.verbs.types import Verb

_TAIL = 20
_NEW_PAGE = 100
_POLL_S = 0.5
_LISTED_MAX = 5
_WIDTH_MAX = 100
_SAID_CHARS_MAX = 160
_WORDS_CHARS_MAX = 60

# The sentence for each type of entry. `unit` is the entry's unit; `_parts` makes the other parts.
SENTENCES = dict(line.split(" ", 1) for line in lines_beside(__file__, "log.txt"))
# For a signal that was counted before, and for a new count of the cases behind a unit.
_TRUST_KEPT = "updated {unit} without a change of trust"
_RELATIONS = {"contradicts": "contradicts", "duplicates": "repeats", "similar_to": "resembles"}
_LINE_CHARS = 240
_TESTS_SHOWN_MAX = 5


class _Parts(dict[str, str]):
    """The parts of a sentence; missing parts are empty."""

    def __missing__(self, name: str) -> str:
        return ""


_STATES = ("open", "blocked", "stuck", "verified")


def sentence(event: Event, contents: Mapping[str, str]) -> str:
    """The sentence for an entry. `contents` has the texts of the units that the reader may see, by id."""
    payload = event.payload
    if payload is None:
        return f"{event.type} (erased)"
    parts = _parts(event, payload, contents)
    is_trust_kept = event.type == "unit.validated" and not parts["confidence"]
    words = (_TRUST_KEPT if is_trust_kept else SENTENCES[event.type]).format_map(parts)
    return short(words.removesuffix(" ()"), _SAID_CHARS_MAX)


def _parts(event: Event, payload: dict[str, Any], contents: Mapping[str, str]) -> _Parts:
    """The parts of an entry's sentence: texts of the payload, units for their ids, and derived texts."""

    def named(id: str | None) -> str:
        words = contents.get(id or "", "")
        return f"{quoted(short(words, _WORDS_CHARS_MAX))} ({short_id(id)})" if id and words else short_id(id or "")

    holders = ("unit", "link", "claim", "proposal", "rule")
    inner: Any = next((payload[name] for name in holders if payload.get(name)), {})
    texts = payload | (inner if isinstance(inner, dict) else {})
    parts = _Parts({name: str(item) for name, item in texts.items() if isinstance(item, str | int)})
    changes = payload.get("set") or {}
    trust = changes.get("trust") or texts.get("trust") or changes
    parts |= {
        name: named(texts.get(name)) for name in ("new", "old", "target", "link") if isinstance(texts.get(name), str)
    }
    parts["member"] = named(inner) if isinstance(inner, str) else ""
    parts["unit"] = named(event.subject)
    parts["reason"] = parts["reason"].rstrip(". ")
    parts["rule"] = "" if parts["rule"] in parts["reason"] else parts["rule"]
    parts["claim"] = quoted(short(parts["content"], _WORDS_CHARS_MAX))
    parts["cited"] = ", ".join(f"{each['kind']}:{each['ref']}" for each in payload.get("cite", ()))
    parts["because"] = ", ".join(map(str, payload.get("because", ()))) or "its evidence"
    parts["relation"] = _RELATIONS.get(parts["type"], parts["type"])
    parts["confidence"] = f"{trust['confidence']:.2f}" if "confidence" in trust else ""
    parts["level"] = str(Scope.of(changes["scope"]).level) if "scope" in changes else ""
    parts["count"] = counted(len(payload.get("units", ())), "unit")
    parts["tests"] = _tests(payload)
    verdict = payload.get("verdict")
    parts["verdict"] = str(verdict["type"]) if verdict else "passed" if payload.get("passed") else "failed"
    return parts


def _tests(payload: Mapping[str, Any]) -> str:
    tests = payload.get("tests", ())
    names = [name for each in tests.values() for name in each] if isinstance(tests, dict) else list(tests)
    count = "no test named" if not names else names[0] if len(names) == 1 else f"{len(names)} tests"
    return f"{count} ({'witnessed' if payload.get('witnessed') else 'reported'})"


def lines(events: Sequence[Event], seat: Seat) -> list[str]:
    """One line for each entry, oldest first: time, id, actor, place, sentence."""
    subjects = dict.fromkeys(event.subject for event in events if event.subject and ":" not in event.subject)
    contents = {unit.id: unit.content for unit in seat.units(ids=list(subjects), limit=max(1, len(subjects)))}
    return [
        f"{when(event.recorded_at)}  {short_id(event.id)}  {clean(event.actor)}  {_where(event.scope)}  "
        f"{sentence(event, contents)}"
        for event in sorted(events, key=lambda event: event.position)
    ]


def _where(scope: Scope) -> str:
    inner = [segment for segment in (scope.worktree, scope.task) if segment is not None]
    return clean("/".join(inner) or scope.level)


# Reading the log


def read_log(verb: Verb, call: Call) -> Answer:
    """The newest entries; with --follow also new ones as they come."""
    wanted = {
        parameter.name: call.arguments[parameter.name] for parameter in verb.takes if parameter.name in call.arguments
    }
    # A typed --task or --worktree filters the log. As a variable, it only describes the reader.
    wanted |= {name: place for name in ("task", "worktree") if (place := getattr(call.places, name)) is not None}
    limit = wanted.pop("limit", _TAIL)
    if call.options.follow:
        _follow(call, wanted, limit)
        return Answer(None, lambda: "", is_printed=True)
    events = call.seat.events(limit=limit, **wanted)
    return Answer(events, lambda: text_of(verb.name, events, call, verb.gives))


def _follow(call: Call, wanted: dict[str, Any], limit: int) -> None:
    """Print the newest entries, then new ones as they come, until Ctrl-C. Others may write between any two reads."""
    from mnemarch.services.overview import NewsOf

    try:
        news = NewsOf(call.seat)
        position = _newest(call)
        _print([event for event in call.seat.events(limit=limit, **wanted) if event.position <= position], call)
        while True:
            news.wait(_POLL_S)
            if (newest := _newest(call)) > position:
                page = call.seat.events(**wanted | {"beyond": position, "limit": _NEW_PAGE})
                _print(page, call)
                last = page[-1].position if page else 0
                position = last if len(page) == _NEW_PAGE else max(last, newest)
    except KeyboardInterrupt:
        return


def _newest(call: Call) -> int:
    return max((event.position for event in call.seat.events(limit=1)), default=0)


def _print(events: Sequence[Event], call: Call) -> None:
    import json

    ordered = sorted(events, key=lambda event: event.position)
    out = [json.dumps(to_json(event)) for event in ordered] if call.places.json else lines(ordered, call.seat)
    for line in out:
        print(line)
    sys.stdout.flush()


def explained(verb: Verb, call: Call) -> Answer:
    """Explain a unit, or the outcome of an ingested log entry."""
    try:
        return answered(verb, call)
    except NotFound as missing:
        try:
            ingested = call.seat.ingested(call.options.unit_id)
        except NotFound:
            raise missing from None
    return Answer(ingested, lambda: text_of("seat.ingested", ingested, call, "Ingested"))


def _shown(what: Explanation | Dispute | Event, call: Call) -> str:
    """Text for `show`: a unit's explanation, a conflict or merge proposal with its sides, or a whole log entry."""
    from mnemarch.model.outcome import Dispute, Explanation

    if isinstance(what, Explanation):
        return text_of("seat.explain", what, call, "Explanation")
    return text_of("seat.conflicts", [what], call) if isinstance(what, Dispute) else _event(what, call)


def _event(event: Event, call: Call) -> str:
    import json

    from mnemarch.learning.pipeline import INGEST

    (line,) = lines([event], call.seat)
    payload = "(erased)" if event.payload is None else json.dumps(event.payload, ensure_ascii=False, indent=2)
    pairs: list[tuple[str, object]] = [("id", event.id), ("type", event.type), ("number", f"{event.seq} in the log")]
    pairs += [(name, item) for name, item in (("about", event.subject), ("session", event.session)) if item]
    is_ingested = INGEST in ((event.payload or {}).get("data") or {})
    more = ["", ingested_text(call.seat.ingested(event.id), call)] if is_ingested else []
    if (event.payload or {}).get("kind") == "import":
        from mnemarch.interfaces.operate import brought

        more += brought(event, call)
    return "\n".join([line, "", fields(pairs), "", clean(payload), *more])


# Status


def _status(seen: Overview, call: Call) -> str:
    from shutil import get_terminal_size

    width = min(get_terminal_size((80, 24)).columns, _WIDTH_MAX)
    return "\n".join(_fitted(line, width) for line in _overview(seen, call))


def _overview(seen: Overview, call: Call) -> Iterator[str]:
    from mnemarch.services.overview import NEWS_MAX

    is_read_only = "" if seen.writable else "   (read-only from here)"
    yield f"project    {clean(seen.project or '(none)')}{is_read_only}"
    yield f"memory     {clean(call.address or call.home.folder)}"
    unnamed = user.person() is None and at_terminal(sys.stdin) and at_terminal(sys.stdout) and user.host() is None
    yield f"you act as {clean(str(call.actor))}{'; mnemarch init asks who you are' if unnamed else ''}"
    sees_all = seen.is_complete or call.actor.kind is not ActorKind.AGENT
    if not sees_all:
        yield "           An agent sees no other tasks. A person or a lead sees them all."
    worktrees = [(clean(each.name), clean(each.branch or "-"), each) for each in seen.worktrees]
    yield from _chapter(
        "worktrees",
        [
            (name, branch, counted(each.agents, "agent"), counted(each.tasks, "task")) if sees_all else (name, branch)
            for name, branch, each in worktrees
        ],
        "",
    )
    yield from _chapter(
        "at work, last hour",
        [(clean(each.actor), _where(each.scope), age(each.last_at)) for each in seen.agents],
        "nobody" if sees_all else "nobody that an agent can see",
    )
    states = [f"{sum(task.state == state for task in seen.tasks)} {state}" for state in _STATES]
    shown = ", ".join(each for each in states if each != "0 blocked")
    yield from _chapter(f"tasks, last day: {shown}", [*map(_task, seen.tasks)], "")
    yield from _chapter(
        f"learned, last day: {len(seen.learned)}{' or more' if len(seen.learned) >= NEWS_MAX else ''}",
        [(short_id(unit.id), str(unit.status), quoted(unit.content)) for unit in seen.learned],
        "",
    )
    yield ""
    conflicts = f"{counted(seen.open_conflicts, 'open conflict')} among them"
    if sees_all:
        yield f"waiting    {seen.waiting}{'' if seen.is_complete else ' or more'} for a person or a lead, {conflicts}"
    else:
        yield f"waiting    {seen.waiting} in this worktree and task, {conflicts}"
    if seen.analyst:
        yield f"analyst    {clean(seen.analyst)}"
    yield f"index      {seen.indexed:,} units, {seen.unindexed:,} newer ones are searched directly"
    yield f"meaning    {meaning_line(seen)}"


def _task(task: TaskUnderWay) -> tuple[str, ...]:
    return (task.state, _where(task.scope), age(task.last_at), quoted(task.reason) if task.reason else "")


def _chapter(head: str, rows: Sequence[Sequence[str]], empty: str) -> Iterator[str]:
    """A heading and a few aligned rows; wide characters count as two columns."""
    from rich.cells import cell_len, set_cell_size

    if not rows and not empty and ":" not in head:
        return
    yield ""
    yield head
    shown = rows[:_LISTED_MAX]
    widths = [max(map(cell_len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        cells = (set_cell_size(cell, width) for cell, width in zip(row, widths, strict=True))
        yield f"{INDENT}{'  '.join(cells)}".rstrip()
    if len(rows) > _LISTED_MAX:
        yield f"{INDENT}and {len(rows) - _LISTED_MAX} more"
    if not rows and empty:
        yield f"{INDENT}{empty}"


def _fitted(line: str, columns: int) -> str:
    from rich.cells import cell_len, set_cell_size

    return line if cell_len(line) <= columns else f"{set_cell_size(line, columns - 1).rstrip()}…"


# The work of a task: verifications, failed attempts, ingested texts, episodes and core memory


def _promotion(judged: Promotion, call: Call) -> str:
    lines = [*([] if judged.run is None else [_run(judged.run)]), f"episode  {short_id(judged.episode_id)}"]
    if judged.set_aside:
        lines.append(f"aside    {_set_aside(judged.set_aside)}")
    if judged.skill_id is not None:
        lines.append(f"skill    {short_id(judged.skill_id)}")
    lines += [unit_line(unit, "raised ") for unit in judged.units]
    for refusal in judged.refused:
        lines.append(f"kept     {short_id(refusal.unit_id or '')}  by {refusal.rule}: {with_short_ids(refusal.reason)}")
    lines += [_trust(change) for change in judged.trust_changes]
    for request_id in judged.proposed:
        lines.append(f"decided  {short_id(request_id)}  waits in the inbox for a person or an orchestrator")
    if judged.analyst:
        lines.append(f"analyst  {with_short_ids(judged.analyst)}")
    if not judged.units and not judged.refused:
        lines.append("no claim of this task waits for these tests")
    return "\n".join([*lines, *(["", _verdict(judged.loop, call)] if judged.loop is not None else [])])


def _set_aside(tests: Sequence[str]) -> str:
    named = ", ".join(map(clean, tests[:_TESTS_SHOWN_MAX])) + ", …" * (len(tests) > _TESTS_SHOWN_MAX)
    return f"{counted(len(tests), 'test')} failed before this task began, and still fail: {named}. Not counted here."


def _run(run: TestRun) -> str:
    counts = ", ".join(f"{number} {word}" for word, number in run.counts.items()) or f"exit code {run.exit_code}"
    return f"{'witnessed' if run.witnessed else 'reported'}  {counts}: {short(run.command)}"


def _trust(change: TrustChange) -> str:
    moved = f"{change.before:.2f} -> {change.after:.2f}"
    return f"trust    {short_id(change.unit_id)}  {moved} by {change.signal}, {change.status}"


def _approach(validation: ApproachValidation, _: Call) -> str:
    if validation.valid:
        return "not tried in this task yet"
    return "\n".join([clean(validation.reason), *_failed(validation.failed_history), validation.suggestion])


def _verdict(judged: LoopVerdict, _: Call) -> str:
    count, kind = judged.details["count"], short(judged.details.get("line") or judged.details["error"])
    again = "  (as before; it counts again once the code or the approach changes)" if judged.receipt.duplicate else ""
    lines = [f"{judged.type}  {'first time' if count == 1 else f'seen {count} times'}: {kind}{again}"]
    if judged.instruction:
        lines += ["", clean(judged.instruction)]
    if judged.seen_before:
        lines += ["", clean(judged.seen_before)]
    return "\n".join([*lines, *redactions(judged.receipt)])


def _attempts(attempts: Mapping[str, Any], _: Call) -> str:
    stuck = attempts["stuck"]
    lines = [f"stuck: {clean(stuck)}"] if stuck is not None else []
    return "\n".join([*lines, *_failed(attempts["failed"])]) or "No approach has failed here since the last success."


def _failed(approaches: Sequence[FailedApproach]) -> list[str]:
    lines = []
    for approach in approaches:
        lines.append(f"{approach.attempt_count}x  {quoted(approach.approach)}  last {age(approach.last_attempt_at)}")
        lines += [f"    {short(reason)}" for reason in approach.failure_reasons]
    return lines


def _episodes(items: Sequence[Recalled], call: Call) -> str:
    error, query = call.options.error, call.options.query
    if not items and error:
        return f"No episode has {quoted(error.strip().splitlines()[-1])} or a similar error."
    if not items:
        return f"No episode is about {quoted(query)}." if query else "No episodes yet. A verified task creates one."
    lines = []
    for item in items:
        score = f"score {item.score:.2f}  " if item.why else ""
        lines.append(f"{item.label} {short_id(item.unit.id)}  {score}{age(item.unit.occurred_at)}")
        lines += [f"    {short(line, _LINE_CHARS)}" for line in item.unit.content.splitlines() if line.strip()]
        lines += [f"    note: {clean(note)}" for note in item.notes]
    return "\n".join(lines)


def _section(section: CoreSection, _: Call) -> str:
    state = f"version {section.version}" if section.version else "empty"
    lines = [f"{clean(section.name)}  {state}, {section.room:,} characters left"]
    for unit in section.entries:
        lines.append(f"{INDENT}{short_id(unit.id)}  {unit.level}, {clean(unit.author)}, {age(unit.recorded_at)}")
        lines += [f"{INDENT * 2}{clean(line)}" for line in unit.content.splitlines()]
    return "\n".join(lines)


def _history(units: Sequence[Unit], _: Call) -> str:
    rows = []
    for unit in units:
        rest = unit.status, unit.level, unit.author, age(unit.recorded_at), unit.content
        rows.append((short_id(unit.id), unit.attributes["number"], *rest))
    return table(("id", "version", "status", "level", "by", "when", "text"), rows, "This section never had an entry.")


def _turns(turns: Sequence[Turn], _: Call) -> str:
    rows = [(short_id(turn.id), turn.kind, turn.actor, age(turn.at), turn.text) for turn in turns]
    return table(("id", "kind", "by", "when", "text"), rows, "Nothing found.")


def ingested_text(ingested: Ingested, _: Call) -> str:
    unit, entry = ingested.unit, short_id(ingested.receipt.event_id)
    if unit is None:
        lines = [f"{_no_unit(ingested)}  {with_short_ids(ingested.reason)}", f"  it stays in the log as entry {entry}"]
    else:
        times = sum(citation.kind == "log" for citation in unit.citations)
        lines = [unit_line(unit, str(unit.kind)), f"  from entry {entry}: {with_short_ids(ingested.reason)}"]
        lines += [f"  stated {times} times"] if times > 1 else []
    return "\n".join([*lines, *redactions(ingested.receipt)])


def _no_unit(ingested: Ingested) -> str:
    return "left out" if ingested.bucket == "LEFT_OUT" else f"no unit ({ingested.bucket.lower()})"


def _all_ingested(everything: Sequence[Ingested], call: Call) -> str:
    if not everything:
        return "There was nothing to ingest, and nothing waits in the log."
    new = [ingested for ingested in everything if not ingested.receipt.duplicate]
    counts: dict[str, int] = {}
    for ingested in new:
        name = _no_unit(ingested) if ingested.unit is None else str(ingested.unit.kind)
        counts[name] = counts.get(name, 0) + 1
    known = len(everything) - len(new)
    summed = ", ".join(f"{count} {name}" for name, count in counts.items()) or "nothing new"
    before = f" ({known:,} ingested before)" if known else ""
    return "\n".join([f"ingested  {summed}{before}", *(ingested_text(ingested, call) for ingested in new)])


# Keyed as in `text`.
TEXTS: dict[str, Callable[[Any, Call], str]] = {
    "list[Event]": lambda events, call: (
        "\n".join(lines(events, call.seat)) or "Nothing was recorded that can be seen from here."
    ),
    "seat.show": _shown,
    "seat.status": _status,
    "Promotion": _promotion,
    "ApproachValidation": _approach,
    "LoopVerdict": _verdict,
    "seat.failed_approaches": _attempts,
    "seat.mark_stuck": lambda _, call: f"stuck  {clean(call.seat.scope.task or call.seat.scope)}",
    "seat.clear_stuck": lambda _, call: f"cleared  {clean(call.seat.scope.task or call.seat.scope)}",
    "Ingested": ingested_text,
    "list[Ingested]": _all_ingested,
    "episodes.search": _episodes,
    "CoreSection": _section,
    "list[CoreSection]": lambda sections, call: "\n\n".join(_section(section, call) for section in sections),
    "core.history": _history,
    "list[Turn]": _turns,
    "core.tools": lambda tools, _: json_text(tools),
    "str": lambda text, _: clean(text),
}
