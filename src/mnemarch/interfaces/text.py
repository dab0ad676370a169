"""Answers in words: how each result looks to a person who does not ask for JSON."""

from __future__ import annotations

from mnemarch.interfaces import dispute_text
from mnemarch.interfaces.show import age, clean, fields, meaning_line, quoted, said, short, table, unit_line, when
from mnemarch.model.search import UNRECORDED
from mnemarch.model.stamps import short_id
from mnemarch.text.words import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from mnemarch.interfaces.command import Call
    from mnemarch.model import event, outcome, search, testrun, unit, upkeep

    Outcome = outcome.Stored | outcome.Refused
    Text = Callable[[Any, Call], str]

_RECALLED_CHARS = 240


def _receipt(receipt: event.Receipt, _: Call) -> str:
    first = "known already" if receipt.duplicate else "logged"
    return "\n".join([f"{first}  {short_id(receipt.event_id)}  #{receipt.seq}", *redactions(receipt)])


def redactions(receipt: event.Receipt | None) -> list[str]:
    if receipt is None or not receipt.redacted:
        return []
    return [f"  redacted: {', '.join(receipt.redacted)} (it never reached the disk)"]


def _receipts(receipts: Sequence[event.Receipt], _: Call) -> str:
    new = sum(not receipt.duplicate for receipt in receipts)
    redacted = sum(bool(receipt.redacted) for receipt in receipts)
    return f"logged  {new} entries, {len(receipts) - new} known already, {redacted} with secrets taken out"


def _outcome(first: str) -> Text:
    def text(outcome: Outcome, call: Call) -> str:
        from mnemarch.model.outcome import Refused

        return _refused(outcome, call) if isinstance(outcome, Refused) else _stored(outcome, first)

    return text


def _stored(stored: outcome.Stored, first: str) -> str:
    unit = stored.unit
    lines = [unit_line(unit, "joined" if stored.merged else first)]
    if stored.merged:
        lines.append(f"  known already: {len(unit.provenance)} voices, {unit.mentions} mentions")
    if stored.receipt.duplicate:
        lines.append("  this key was used before; nothing new was stored")
    lines += redactions(stored.receipt)
    lines += dispute_text.opened(stored)
    return "\n".join(lines)


def _refused(refusal: outcome.Refused, call: Call) -> str:
    actor = call.seat.actor
    lines = [f"refused by {refusal.rule}: {said(refusal.reason)}"]
    if refusal.receipt is not None:
        lines.append(f"  it stays in the log as event {short_id(refusal.receipt.event_id)}")
    if actor.kind == "human" and refusal.rule.startswith("G23") and call.given.keys() & {"content", "claims"}:
        lines.append(f"  a person writes at --level project, with a word of their own: --cite human:{clean(actor.id)}")
        lines.append("  what an agent found out is its own to say: --actor agent:NAME")
    return "\n".join([*lines, *redactions(refusal.receipt)])


def _outcomes(outcomes: Sequence[Outcome], call: Call) -> str:
    from mnemarch.model.outcome import Refused

    refusals = [outcome for outcome in outcomes if isinstance(outcome, Refused)]
    joined = sum(outcome.merged for outcome in outcomes if not isinstance(outcome, Refused))
    new = len(outcomes) - len(refusals) - joined
    counts = f"stored  {new} new, {joined} joined to known units, {len(refusals)} refused"
    return "\n".join([counts, *(_refused(refusal, call) for refusal in refusals)])


def _promotion(judged: outcome.Promotion, call: Call) -> str:
    lines = [*([] if judged.run is None else [_tests(judged.run)]), f"episode  {short_id(judged.episode_id)}"]
    if judged.skill_id is not None:
        lines.append(f"skill    {short_id(judged.skill_id)}")
    lines += [unit_line(unit, "raised ") for unit in judged.units]
    for refusal in judged.refused:
        lines.append(f"kept     {short_id(refusal.unit_id or '')}  by {refusal.rule}: {said(refusal.reason)}")
    lines += [_trust(change) for change in judged.trust_changes]
    for request_id in judged.proposed:
        lines.append(f"decided  {short_id(request_id)}  waits in the inbox for a person or a lead")
    if judged.analyst:
        lines.append(f"analyst  {said(judged.analyst)}")
    if not judged.units and not judged.refused:
        lines.append("no claim waits for these tests" if judged.passed else "no claim is raised by a run that failed")
    return "\n".join([*lines, *(["", _verdict(judged.loop, call)] if judged.loop is not None else [])])


def _tests(run: testrun.TestRun) -> str:
    counts = ", ".join(f"{number} {word}" for word, number in run.counts.items()) or f"exit code {run.exit_code}"
    return f"{'witnessed' if run.witnessed else 'reported'}  {counts}: {short(run.command)}"


def _inbox(items: Sequence[outcome.InboxItem], call: Call) -> str:
    if not items:
        return "Nothing waits."
    lines = []
    for item in items:
        lines.append(f"{short_id(item.id)}  {item.what}: {clean(item.subject)}")
        lines += [f"    {said(text)}" for text in (item.evidence, item.why) if text]
    seen = call.seat.status()
    more = seen.waiting - len(items)
    lines += ["", f"{more} more: mnemarch inbox --limit {len(items) + more}"] if more > 0 else []
    lines += [] if seen.is_complete else ["", "Older ones of the same authors are listed when these are settled."]
    return "\n".join([*lines, "", "mnemarch accept ITEM... or mnemarch decline ITEM... --reason WHY"])


def _settled(items: Sequence[outcome.Settled], _: Call) -> str:
    lines = []
    for item in items:
        lines.append(f"{clean(item.answer)}  {item.what}  {short_id(item.id)}")
        lines += [unit_line(item.unit, "  now  ")] if item.unit is not None else []
    return "\n".join(lines)


def _trust(change: outcome.TrustChange) -> str:
    moved = f"{change.before:.2f} -> {change.after:.2f}"
    return f"trust    {short_id(change.unit_id)}  {moved} by {change.signal}, {change.status}"


def _approach(validation: outcome.ApproachValidation, _: Call) -> str:
    if validation.valid:
        return "not tried yet in this task"
    tried = f"tried already: {clean(validation.reason)}"
    return "\n".join([tried, *_failed(validation.failed_history), validation.suggestion])


def _verdict(judged: outcome.LoopVerdict, _: Call) -> str:
    count, kind = judged.details["count"], short(judged.details["error"])
    again = "  (told before, not counted again)" if judged.receipt.duplicate else ""
    lines = [f"{judged.type}  {'first time' if count == 1 else f'seen {count} times'}: {kind}{again}"]
    if judged.instruction:
        lines += ["", clean(judged.instruction)]
    if judged.seen_before:
        lines += ["", clean(judged.seen_before)]
    return "\n".join([*lines, *redactions(judged.receipt)])


def _attempts(attempts: Mapping[str, Any], _: Call) -> str:
    stuck = attempts["stuck"]
    lines = [f"stuck: {clean(stuck)}"] if stuck is not None else []
    return "\n".join([*lines, *_failed(attempts["failed"])]) or "Nothing has failed here since the last success."


def _failed(approaches: Sequence[outcome.FailedApproach]) -> list[str]:
    lines = []
    for approach in approaches:
        last = age(approach.last_attempt_at)
        lines.append(f"{approach.attempt_count}x  {quoted(approach.approach)}  last {last}")
        lines += [f"    {short(reason)}" for reason in approach.failure_reasons]
    return lines


def _unit(one: unit.Unit, _: Call) -> str:
    pairs: list[tuple[str, object]] = [
        ("id", one.id),
        ("kind", one.kind),
        ("status", f"{one.status}, confidence {one.confidence:.2f}, version {one.version}"),
        ("scope", f"{one.scope} ({one.level})"),
        ("domain", one.domain),
        ("said by", ", ".join(str(source.actor) for source in one.provenance) or "nobody any more"),
        ("when", f"{when(one.occurred_at)} ({age(one.occurred_at)})"),
        ("cites", ", ".join(map(str, one.citations)) or "nothing"),
        ("used by", f"{one.uses} tasks"),
    ]
    rest = ("supersedes", "superseded_by", "contradiction_note", "archive_reason", "erased_at")
    pairs += [(name.replace("_", " "), getattr(one, name)) for name in rest if getattr(one, name) is not None]
    return f"{clean(one.content) or '(erased)'}\n\n{fields(pairs)}"


def _changed(first: str) -> Text:
    return lambda unit, _: f"{unit_line(unit, first)}  v{unit.version}"


def _units(units: Sequence[unit.Unit], _: Call) -> str:
    rows = [
        (short_id(one.id), one.kind, f"{one.status} {one.confidence:.2f}", one.level, quoted(one.content))
        for one in units
    ]
    return table(("id", "kind", "status", "level", "content"), rows, "No units can be seen from here.")


def _explanation(explanation: outcome.Explanation, _: Call) -> str:
    unit = explanation.unit
    lines = [
        clean(unit.content) or "(erased)",
        f"{unit.kind} · {unit.status} · confidence {explanation.confidence_now:.2f} · {unit.level} {clean(unit.scope)}"
        f" · domain {clean(unit.domain)} · version {unit.version}",
        unit.id,
        "",
    ]
    for name, items in _chapters(explanation):
        lines += [f"{name if number == 0 else '':<10}{item}" for number, item in enumerate(items)]
    return "\n".join(lines)


def _chapters(told: outcome.Explanation) -> Iterator[tuple[str, list[str]]]:
    faded = told.confidence_now != told.confidence_stored
    yield "said by", [f"{voice.actor} in {voice.scope} on {when(voice.at)}" for voice in told.provenance]
    yield "imported", _origin(told.unit.attributes)
    yield "evidence", [f"{'✓' if counts else '…'} {clean(cited)}" for cited, counts in told.citations] or ["nothing"]
    yield "status", [f"{told.unit.status}: {clean(told.status_reason)}"]
    yield "trust", [*map(clean, told.why_confidence)]
    yield "", [f"{told.confidence_now:.2f} today, by decay since the last validation"] if faded else []
    yield "valid", [told.valid]
    yield "here", [clean(note) for note in told.here]
    yield "related", [*map(clean, told.related)]
    yield "disputes", [dispute_text.state(dispute, told.unit.id) for dispute in told.disputes]
    yield "used by", [clean(", ".join(told.used_by))] if told.used_by else ["no task yet"]
    yield "history", [f"#{event.seq}  {when(event.recorded_at)}  {event.type}  {event.actor}" for event in told.history]


def _origin(known: Mapping[str, Any]) -> list[str]:
    """Where something imported comes from, as far as its source told."""
    if "import_from" not in known:
        return []
    told = [known["import_from"], known.get("import_at"), *(f"#{tag}" for tag in known.get("import_tags", ()))]
    who = [f"by {known['import_author']}"] if "import_author" in known else []
    return [clean(", ".join(filter(None, [*told, *who]))), clean(f"brought in by {known.get('kept_by')}")]


def _related(relations: Sequence[outcome.Related], _: Call) -> str:
    lines = [f"{clean(each.sentence)}\n   {short(each.unit.content, _RECALLED_CHARS)}" for each in relations]
    return "\n".join(lines) or "Nothing is related to it."


def _found(answer: search.Found, call: Call) -> str:
    lines = [f"{item.label} {short_id(item.unit.id)}  {short(item.unit.content)}" for item in answer.binding]
    lines = ["binding", *(f"  {line}" for line in lines), ""] if lines else []
    lines += [] if answer.items else [f"Nothing found for {quoted(call.options.query)} from here."]
    for rank, item in enumerate(answer.items, start=1):
        lines += _recalled(rank, item)
    if answer.withheld:
        withheld = (f"  {short_id(each.unit_id)}  {_with_short_ids(each.reason)}" for each in answer.withheld)
        lines += ["", "withheld", *withheld]
    return "\n".join([*lines, *(note for note in _notes(answer.notes) if UNRECORDED not in note)])


def _notes(notes: Sequence[str]) -> list[str]:
    return [f"note: {clean(note)}" for note in notes]


def _with_short_ids(reason: str) -> str:
    return clean(" ".join(short_id(word) if word.count("-") == 4 else word for word in reason.split(" ")))


def _recalled(rank: int, item: search.Recalled) -> list[str]:
    why = ", ".join(f"{name} {share:.2f}" for name, share in item.why.items())
    unit = item.unit
    return [
        f"{rank}. {item.label} {short(unit.content, _RECALLED_CHARS)}",
        f"   score {item.score:.2f} ({why})  {unit.kind}  {unit.level}  {age(unit.occurred_at)}",
        f"   {short_id(unit.id)}",
        *(f"   note: {clean(note)}" for note in item.notes),
    ]


def _about_pack(pack: search.Pack, call: Call) -> str:
    """What is to be said of a context and is no part of it."""
    left = f", {len(pack.left_out)} left out" if pack.left_out else ""
    bind = f" and {len(pack.binding)} that bind" if pack.binding else ""
    size = f"{counted(len(pack.items), 'unit')}{bind}, {pack.tokens} of {pack.budget} tokens{left}"
    first = size if pack.text else f"Nothing found for {quoted(call.options.query)} that fits."
    return "\n".join([first, *_notes(pack.notes)])


def _stats(stats: outcome.Stats, _: Call) -> str:
    def counts(by: Mapping[Any, int]) -> str:
        return ", ".join(f"{count:,} {name}" for name, count in sorted(by.items())) or "none"

    return fields(
        [
            ("events", f"{stats.events:,} in {stats.projects} projects"),
            ("units", f"{stats.units:,}"),
            ("  by status", counts(stats.by_status)),
            ("  by kind", counts(stats.by_kind)),
            ("  by level", counts(stats.by_level)),
            ("conflicts", f"{stats.open_conflicts} open"),
            ("index", f"{stats.indexed:,} documents, {stats.unindexed:,} still in the tail"),
            ("meaning", meaning_line(stats)),
            ("on disk", f"{stats.bytes_on_disk:,} bytes, format {stats.format_version}"),
        ]
    )


def _cognified(done: upkeep.Cognified, _: Call) -> str:
    cost = f", {done.money:.4f} by the configured prices" if done.money else ""
    lines = [f"{len(done.episodes)} analysed, {done.waiting} still waiting, {done.tokens:,} tokens{cost}"]
    lines = lines if done.episodes or done.waiting or done.tokens else []
    lines += [f"episode  {short_id(each)}" for each in done.episodes]
    lines += [f"skill    {short_id(each)}" for each in done.skills]
    lines += [f"decided  {short_id(each)}  waits in the inbox for a person or a lead" for each in done.proposed]
    return "\n".join([*lines, *([f"stopped  {said(done.stopped)}"] if done.stopped else [])])


def _audit(check: outcome.LogCheck, _: Call) -> str:
    if check.ok:
        return (
            f"The log holds: {check.events:,} events, every hash chain unbroken, and what is stored is what they say."
        )
    return f"The audit fails at {clean(check.first_broken)}: {clean(check.problem)}.\n{check.hint}"


def _rebuild(rebuild: Mapping[str, Any], call: Call) -> str:
    came = "The same state" if rebuild["same"] else "Another state"
    then = "." if rebuild["same"] else "; what the log says stands now."
    lines = [
        f"{came} came out of {rebuild['events']:,} events{then}",
        f"  before  {rebuild['digest_before']}",
        f"  after   {rebuild['digest_after']}",
    ]
    check = rebuild["audit"]
    return "\n".join(lines if check.ok else [*lines, f"But the log is not as it was written. {_audit(check, call)}"])


def _swept(swept: outcome.Swept, _: Call) -> str:
    done = f"{swept.archived:,} archived, {swept.revived:,} revived, {swept.moved:,} moved"
    lines = [f"checked  {swept.checked:,} units: {done}"]
    if swept.moved:
        lines.append("moved: the file they cite has another name, and they cite it by that now")
    if swept.skipped:
        lines.append(f"{swept.skipped:,} can't be judged from here (another project, or a worktree that is gone)")
    return "\n".join(lines)


def _pruned(pruned: upkeep.Pruned, _: Call) -> str:
    verb = "would archive" if pruned.dry_run else "archived"
    lines = [f"{verb}  {len(pruned.units)} units, {pruned.kept} kept", *(f"  {short_id(id)}" for id in pruned.units)]
    return "\n".join([*lines, "Add --apply to do it."] if pruned.dry_run and pruned.units else lines)


def _findings(findings: Sequence[outcome.Finding], _: Call) -> str:
    lines = []
    for finding in findings:
        lines.append(f"{'✓' if finding.ok else '✗'} {clean(finding.what)}")
        lines += [f"    {clean(finding.hint)}"] if finding.hint else []
    return "\n".join(lines)


# By verb, where its words are its own; else by what it gives.
TEXTS: dict[str, Text] = {
    "Receipt": _receipt,
    "list[Receipt]": _receipts,
    "Stored | Refused": _outcome("stored"),
    "seat.promote": _outcome("promoted"),
    "list[Stored | Refused]": _outcomes,
    "Promotion": _promotion,
    "ApproachValidation": _approach,
    "LoopVerdict": _verdict,
    "list[InboxItem]": _inbox,
    "list[Settled]": _settled,
    "seat.withdraw": _changed("withdrawn"),
    "seat.failed_approaches": _attempts,
    "seat.mark_stuck": lambda _, call: f"stuck  {clean(call.seat.scope)}",
    "seat.clear_stuck": lambda _, call: f"cleared  {clean(call.seat.scope)}",
    "seat.get": _unit,
    "Unit": _changed("changed"),
    "seat.cite": _changed("cited"),
    "seat.use": _changed("used"),
    "seat.approve": _changed("approved"),
    "seat.reject": _changed("rejected"),
    "seat.supersede": _changed("superseding"),
    "seat.archive": _changed("archived"),
    "seat.revive": _changed("revived"),
    "seat.validate": lambda to, _: f"validated  {short_id(to['unit_id'])}  confidence {to['confidence']:.2f}",
    "list[Unit]": _units,
    "seat.conflicts": dispute_text.listed("conflict"),
    "seat.proposals": dispute_text.listed("proposal"),
    "Dispute": dispute_text.resolved,
    "Explanation": _explanation,
    "list[Related]": _related,
    "Found": _found,
    "Pack": lambda pack, _: clean(pack.text),
    "about Found": lambda answer, _: "\n".join(_notes([note for note in answer.notes if UNRECORDED in note])),
    "about Pack": _about_pack,
    "Stats": _stats,
    "Cognified": _cognified,
    "LogCheck": _audit,
    "ReceiptCheck": lambda check, _: f"{short_id(check.event_id)}  {check.says}",
    "memory.rebuild": _rebuild,
    "memory.reindex": lambda index, _: f"indexed  {index['documents']:,} units",
    "Swept": _swept,
    "Pruned": _pruned,
    "memory.export": lambda file, call: f"exported  {file['events']:,} events to {call.options.path}",
    "memory.backup": lambda file, call: f"backed up  {file['bytes']:,} bytes to {call.options.path}",
    "list[Finding]": _findings,
}
