"""`log` and `remember`: what comes in."""

from __future__ import annotations

from mnemarch.interfaces import show
from mnemarch.interfaces.command import Answer, Command, exit_code_of
from mnemarch.interfaces.given import instant_given, json_lines_given, json_object, text_given

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from typing import Any

    from mnemarch.interfaces.command import Call
    from mnemarch.model.unit import Claim


def _log_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("kind", nargs="?", metavar="KIND", help="thought, tool_output, error, decision, ...")
    parser.add_argument("text", nargs="?", metavar="TEXT|-", help="what to log; - or nothing reads standard input")
    parser.add_argument("--data", metavar="JSON|@FILE", help="an object that goes with it")
    parser.add_argument("--key", help="idempotency key: the same key again gives the first receipt")
    parser.add_argument("--occurred-at", metavar="ISO", help="when it happened, if not now")
    parser.add_argument("--batch", action="store_true", help="read JSON lines {kind, text, data?, key?, occurred_at?}")


def _log(call: Call) -> Answer:
    options = call.options
    if options.batch:
        return _log_batch(call)
    if options.kind is None:
        from mnemarch.errors import InvalidInput

        raise InvalidInput("What kind of entry is it?", hint='mnemarch log thought "The pool is exhausted"')
    text = text_given(options.text)
    receipt = call.seat.log(
        options.kind,
        text,
        data=None if options.data is None else json_object(options.data, "--data"),
        key=options.key,
        occurred_at=instant_given(options.occurred_at, "--occurred-at"),
    )
    return Answer(data=receipt, text=lambda: show.receipt(receipt))


def _log_batch(call: Call) -> Answer:
    _refuse_single(call)
    entries = [_timed(number, record) for number, record in json_lines_given()]
    receipts = call.seat.log_many(entries)
    new = sum(not receipt.duplicate for receipt in receipts)
    redacted = sum(bool(receipt.redacted) for receipt in receipts)
    return Answer(
        data=receipts,
        text=lambda: f"logged  {new} entries, {len(receipts) - new} known already, {redacted} with secrets taken out",
    )


def _timed(number: int, record: dict[str, Any]) -> dict[str, Any]:
    from mnemarch.log.append import Entry

    _refuse_unknown(record, Entry.__match_args__, f"Line {number}: no log entry", '{"kind": "thought", "text": "..."}')
    return record | {"occurred_at": instant_given(record.get("occurred_at"), f"Line {number}: occurred_at")}


def _refuse_single(call: Call) -> None:
    """A batch says everything in its lines: an option beside it would be silently ignored."""
    single = {name for name, given in vars(call.options).items() if name in _SINGLE and given not in (None, [])}
    if single:
        from mnemarch.errors import InvalidInput

        named = ", ".join(sorted(single))
        raise InvalidInput(f"--batch takes no {named} beside it.", hint="Write it into each JSON line.")


def _refuse_unknown(record: dict[str, Any], known: tuple[str, ...], what: str, example: str) -> None:
    unknown = sorted(record.keys() - set(known))
    if unknown:
        from mnemarch.errors import InvalidInput

        raise InvalidInput(f"{what}: it has {', '.join(unknown)}.", hint=f"{example}, say; also: {', '.join(known)}.")


_SINGLE = {
    *("kind", "text", "data", "key", "occurred_at"),
    *("level", "domain", "cite", "importance"),
}


def _remember_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("text", nargs="?", metavar="TEXT|-", help="what to remember; - or nothing reads standard input")
    parser.add_argument("--kind", help="fact (default), preference, profile, semantic, skill, ...")
    parser.add_argument("--level", help="task, worktree, project or org (default: the seat's deepest)")
    parser.add_argument("--domain", help="what it is about (default: global)")
    parser.add_argument(
        "--cite",
        action="append",
        default=[],
        metavar="CITATION",
        help="commit:HASH, log:ID, human:NAME, test:NAME, file:PATH[#L1-L9] or symbol:PATH::NAME; repeatable",
    )
    parser.add_argument("--importance", type=float, help="0 to 1 (default: 0.5)")
    parser.add_argument("--occurred-at", metavar="ISO", help="since when it is true, if not now")
    parser.add_argument("--key", help="idempotency key: the same key again gives the first answer")
    parser.add_argument(
        "--batch", action="store_true", help="read JSON lines {content, kind?, level?, domain?, citations?, ...}"
    )


def _remember(call: Call) -> Answer:
    if call.options.batch:
        return _remember_batch(call)
    options = call.options
    record = {
        "content": text_given(options.text),
        "kind": options.kind,
        "level": options.level,
        "domain": options.domain,
        "citations": options.cite,
        "importance": options.importance,
        "occurred_at": options.occurred_at,
        "key": options.key,
    }
    claim = _claim({name: item for name, item in record.items() if item is not None}, "")
    outcome = call.seat.remember_many([claim])[0]
    return Answer(
        data=outcome,
        text=lambda: show.outcome(outcome, actor=call.seat.actor),
        exit_code=exit_code_of(outcome),
    )


def _remember_batch(call: Call) -> Answer:
    from mnemarch.interfaces.progress import counted
    from mnemarch.model.outcome import Refused

    _refuse_single(call)
    claims = [_claim(record, f"Line {number}: ") for number, record in json_lines_given()]
    with counted("remembering", "claims") as progress:
        outcomes = call.seat.remember_many(claims, progress)
    refused = [outcome for outcome in outcomes if isinstance(outcome, Refused)]
    joined = sum(outcome.merged for outcome in outcomes if not isinstance(outcome, Refused))

    def text() -> str:
        stored = len(outcomes) - len(refused) - joined
        counts = f"stored  {stored} new, {joined} joined to known units, {len(refused)} refused"
        return "\n".join([counts, *(show.refused(outcome, call.seat.actor) for outcome in refused)])

    return Answer(data=outcomes, text=text, exit_code=exit_code_of(*outcomes))


def _claim(record: dict[str, Any], where: str) -> Claim:
    from mnemarch.errors import InvalidInput
    from mnemarch.model.citation import Citation
    from mnemarch.model.unit import Claim

    _refuse_unknown(record, Claim.__match_args__, f"{where}no claim", '{"content": "...", "kind": "fact"}')
    cited = record.get("citations", [])
    if not isinstance(cited, list) or not all(isinstance(item, str) for item in cited):
        raise InvalidInput(f"{where}citations must be a list of texts.", hint='["test:tests/test_a.py::test_b"], say.')
    read = {
        "citations": tuple(map(Citation.parse, cited)),
        "occurred_at": instant_given(record.get("occurred_at"), f"{where}occurred_at"),
    }
    try:
        return Claim(**record | read)
    except TypeError as error:
        raise InvalidInput(f"{where}no claim: {error}.", hint='{"content": "...", "kind": "fact"}, say.') from None


COMMANDS = {
    "log": Command(
        description="Append to the log, freely. The receipt comes once it is durable; secrets are taken out first.",
        examples=(
            'mnemarch log thought "The pool is exhausted before the retry" --task T-42',
            "pytest 2>&1 | mnemarch log tool_output - --task T-42 --key run-7",
            "mnemarch log --batch --task T-42 < entries.jsonl",
        ),
        arguments=_log_arguments,
        run=_log,
        begins_memory=True,
    ),
    "remember": Command(
        description=(
            "Claim something. It becomes a unit, joins one that says the same, or is refused (exit code 1) by a rule.\n"
            "Without evidence that counts (a passed test, a human's word) it is a hypothesis, seen where it was made.\n"
            "Agents write in their task and worktree, a person at --level project: see mnemarch policy."
        ),
        examples=(
            'mnemarch remember "Checkout retries" --cite test:t.py::test_retry --task T-42 --actor agent:coder-1',
            'mnemarch remember "We deploy on Tuesdays" --level project --cite human:ada --actor human:ada',
            "mnemarch remember --batch --task T-42 --actor agent:coder-1 < claims.jsonl",
        ),
        arguments=_remember_arguments,
        run=_remember,
        begins_memory=True,
    ),
}
