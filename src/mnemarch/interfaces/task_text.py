"""Text for the work of a task: verifications, failed attempts, ingested texts, episodes and core memory."""

from __future__ import annotations

from mnemarch.interfaces.show import INDENT, age, clean, json_text, quoted, short, table, unit_line, with_short_ids
from mnemarch.interfaces.text import redactions
from mnemarch.model.stamps import short_id
from mnemarch.text.words import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from mnemarch.interfaces.command import Call
    from mnemarch.learning.core import CoreSection, Turn
    from mnemarch.model.outcome import ApproachValidation, FailedApproach, Ingested, LoopVerdict, Promotion, TrustChange
    from mnemarch.model.search import Recalled
    from mnemarch.model.testrun import TestRun
    from mnemarch.model.unit import Unit

_LINE_CHARS = 240
_TESTS_SHOWN_MAX = 5


def _promotion(judged: Promotion, call: Call) -> str:
    lines = [*([] if judged.run is None else [_tests(judged.run)]), f"episode  {short_id(judged.episode_id)}"]
    if judged.set_aside:
        lines.append(f"aside    {_set_aside(judged.set_aside)}")
    if judged.skill_id is not None:
        lines.append(f"skill    {short_id(judged.skill_id)}")
    lines += [unit_line(unit, "raised ") for unit in judged.units]
    for refusal in judged.refused:
        lines.append(f"kept     {short_id(refusal.unit_id or '')}  by {refusal.rule}: {with_short_ids(refusal.reason)}")
    lines += [_trust(change) for change in judged.trust_changes]
    for request_id in judged.proposed:
        lines.append(f"decided  {short_id(request_id)}  waits in the inbox for a person or a lead")
    if judged.analyst:
        lines.append(f"analyst  {with_short_ids(judged.analyst)}")
    if not judged.units and not judged.refused:
        lines.append("no claim waits for these tests")
    return "\n".join([*lines, *(["", _verdict(judged.loop, call)] if judged.loop is not None else [])])


def _set_aside(tests: Sequence[str]) -> str:
    named = ", ".join(map(clean, tests[:_TESTS_SHOWN_MAX])) + ", …" * (len(tests) > _TESTS_SHOWN_MAX)
    return f"{counted(len(tests), 'test')} failed before this task began, and still fail: {named}. Not counted here."


def _tests(run: TestRun) -> str:
    counts = ", ".join(f"{number} {word}" for word, number in run.counts.items()) or f"exit code {run.exit_code}"
    return f"{'witnessed' if run.witnessed else 'reported'}  {counts}: {short(run.command)}"


def _trust(change: TrustChange) -> str:
    moved = f"{change.before:.2f} -> {change.after:.2f}"
    return f"trust    {short_id(change.unit_id)}  {moved} by {change.signal}, {change.status}"


def _approach(validation: ApproachValidation, _: Call) -> str:
    if validation.valid:
        return "not tried yet in this task"
    tried = f"tried already: {clean(validation.reason)}"
    return "\n".join([tried, *_failed(validation.failed_history), validation.suggestion])


def _verdict(judged: LoopVerdict, _: Call) -> str:
    count, kind = judged.details["count"], short(judged.details.get("line") or judged.details["error"])
    again = "  (told before: counted again once code or approach changed)" if judged.receipt.duplicate else ""
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
        last = age(approach.last_attempt_at)
        lines.append(f"{approach.attempt_count}x  {quoted(approach.approach)}  last {last}")
        lines += [f"    {short(reason)}" for reason in approach.failure_reasons]
    return lines


def _episodes(items: Sequence[Recalled], call: Call) -> str:
    error, query = call.options.error, call.options.query
    if not items and error:
        return f"No episode met {quoted(error.strip().splitlines()[-1])}, or anything like it."
    if not items:
        return f"No episode is about {quoted(query)}." if query else "No episodes yet: a verified task leaves one."
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
    return table(("id", "version", "status", "level", "by", "when", "text"), rows, "Nothing was ever written there.")


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
        lines += [f"  said {times} times"] if times > 1 else []
    return "\n".join([*lines, *redactions(ingested.receipt)])


def _no_unit(ingested: Ingested) -> str:
    return "left out" if ingested.bucket == "LEFT_OUT" else f"no unit ({ingested.bucket.lower()})"


def _all_ingested(everything: Sequence[Ingested], call: Call) -> str:
    if not everything:
        return "Nothing came in, and nothing waits in the log to be taken up."
    new = [ingested for ingested in everything if not ingested.receipt.duplicate]
    counts: dict[str, int] = {}
    for ingested in new:
        name = _no_unit(ingested) if ingested.unit is None else str(ingested.unit.kind)
        counts[name] = counts.get(name, 0) + 1
    known = len(everything) - len(new)
    summed = ", ".join(f"{count} {name}" for name, count in counts.items()) or "nothing new"
    before = f" ({known:,} taken in before)" if known else ""
    return "\n".join([f"ingested  {summed}{before}", *(ingested_text(ingested, call) for ingested in new)])


TEXTS: dict[str, Callable[[Any, Call], str]] = {
    "Promotion": _promotion,
    "ApproachValidation": _approach,
    "LoopVerdict": _verdict,
    "seat.failed_approaches": _attempts,
    "seat.mark_stuck": lambda _, call: f"stuck  {clean(call.seat.scope)}",
    "seat.clear_stuck": lambda _, call: f"cleared  {clean(call.seat.scope)}",
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
