"""`rules`: learns code rules from commits, checks files with them, applies them; and the text for rules."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from math import ceil, log
from typing import Any

from mnemarch.errors import InvalidInput
from mnemarch.files import write_whole
from mnemarch.interfaces.command import DONE, REFUSED, STORE_TROUBLE, Answer, Call, Command, at_terminal
from mnemarch.interfaces.text import Counter, age, clean, diff_of, is_confirmed, table
from mnemarch.learning.code_rules import EMA_ALPHA, RuleHit, RuleStory
from mnemarch.learning.patches import FilePatch, commit_patches, commits_of, files_under
from mnemarch.learning.rule import CodeRule
from mnemarch.model.event import Event
from mnemarch.model.stamps import short_id
from mnemarch.text.words import counted
from mnemarch.verbs.types import FLAG, PATH, WORDS, Parameter

_SHOWN_MAX = 12


def _learn(call: Call) -> Answer:
    rules = call.seat.rules
    outcomes: dict[str, dict[str, CodeRule]] = {"new": {}, "confirmed": {}, "contradicted": {}}
    patches = repeated = 0
    with Counter("learning", "changed files") as progress:
        for patch in _patches(call):
            learned = rules.learn(patch.before, patch.after, path=patch.path, commit=patch.commit)
            patches, repeated = patches + 1, repeated + learned.repeated
            for name, known in outcomes.items():
                known |= {rule.id: rule for rule in getattr(learned, name)}
            if progress is not None:
                progress(patches)
    data = {"patches": patches, "repeated": repeated} | {name: list(known.values()) for name, known in outcomes.items()}
    return Answer(data, lambda: _learned_text(patches, repeated, outcomes))


def _patches(call: Call) -> Iterator[FilePatch]:
    """The patches of a commit, or of a range of commits."""
    root = call.seat.caller.root or os.getcwd()
    for commit in commits_of(root, call.options.what or "HEAD"):
        yield from commit_patches(root, commit)


def _learned_text(patches: int, repeated: int, outcomes: dict[str, dict[str, CodeRule]]) -> str:
    lines = [f"{counted(patches, 'changed file')} read"]
    for name, known in outcomes.items():
        lines += [f"{name:<13}{short_id(rule.id)}  {clean(rule.name)}" for rule in list(known.values())[:_SHOWN_MAX]]
        if len(known) > _SHOWN_MAX:
            lines.append(f"{name:<13}… {len(known) - _SHOWN_MAX} more")
    if repeated and not any(outcomes.values()):
        lines.append("Nothing new: these changes were read before.")
    elif not patches:
        lines.append("Nothing to learn from: no changed file is in a language that rules are learned from.")
    elif not any(outcomes.values()):
        lines.append("No rule: a rule needs a replacement of code that can be repeated elsewhere.")
    return "\n".join(lines)


def _check(call: Call) -> Answer:
    hits = {path: _hits(call, path) for path in _files(call)}
    data = [
        {"path": path, "line": hit.line, "rule": hit.rule.id, "before": hit.before, "after": hit.after}
        for path, found in hits.items()
        for hit in found
    ]
    return Answer(data, lambda: _check_text(hits, call), REFUSED if data else DONE)


def _hits(call: Call, path: str) -> list[RuleHit]:
    return call.seat.rules.check(_read(path), path, candidates=call.options.candidates)


def _check_text(hits: dict[str, list[RuleHit]], call: Call) -> str:
    lines: list[str] = []
    for path, found in hits.items():
        for hit in found:
            lines += [f"{clean(path)}:{hit.line}  {short_id(hit.rule.id)}  {clean(hit.rule.name)} ({hit.rule.status})"]
            lines += [f"  - {clean(line)}" for line in hit.before.splitlines()]
            lines += [f"  + {clean(line)}" for line in hit.after.splitlines()]
    return "\n".join(lines) or _none_applies(call, f" in {counted(len(hits), 'file')}")


def _none_applies(call: Call, where: str = "") -> str:
    if call.options.candidates:
        return f"No trusted or candidate rule applies{where}."
    waiting = sum(rule.status == "candidate" for rule in call.seat.rules.find_code_rules())
    more = f" {counted(waiting, 'rule is a candidate', 'rules are candidates')}: add --candidates." if waiting else ""
    return f"No trusted rule applies{where}.{more}"


def _apply(call: Call) -> Answer:
    changes: dict[str, tuple[str, str]] = {}
    for path in _files(call):
        before = _read(path)
        after = call.seat.rules.rewritten(before, path, candidates=call.options.candidates)
        if after != before and (why := _left_alone(path, call.options.paths)):
            print(f"note: {clean(path)} {why} and was not changed", file=sys.stderr)
        elif after != before:
            changes[path] = before, after
    if not changes:
        return Answer({"changed": []}, lambda: _none_applies(call))
    diff = "".join(diff_of(path, *texts) for path, texts in changes.items())
    if not (call.options.yes or _confirmed(diff, len(changes))):
        return Answer({"changed": [], "diff": diff}, lambda: "Nothing was changed.", REFUSED)
    changed, refused = [], []
    for path, (_, after) in changes.items():
        try:
            write_whole(path, after)
            changed.append(path)
        except OSError as error:
            refused.append(f"{path}: {error.strerror}")
    data = {"changed": changed, "refused": refused, "diff": diff}
    left = "".join(f"\nnot changed  {clean(each)}" for each in refused)
    words = f"{_safe(diff) * call.options.yes}Changed {counted(len(changed), 'file')}.{left}"
    return Answer(data, lambda: words, STORE_TROUBLE if refused else DONE)


def _left_alone(path: str, named: Sequence[str]) -> str:
    """The reason not to write a file, or "". The file's mode is checked too, since root may write everywhere."""
    target = os.path.realpath(path)
    roots = [os.path.realpath(root) for root in named]
    if not any(target == root or target.startswith(os.path.join(root, "")) for root in roots):
        return "leads out of the named folder"
    is_writable = os.stat(target).st_mode & 0o222 and os.access(target, os.W_OK)
    return "" if is_writable else "is read-only"


def _confirmed(diff: str, files: int) -> bool:
    sys.stderr.write(_safe(diff))
    if not at_terminal(sys.stdin):
        raise InvalidInput(
            f"{counted(files, 'file')} would change, and nobody is at a terminal to confirm it.", hint="Add --yes."
        )
    return is_confirmed(f"Change {counted(files, 'file')}?")


def _safe(diff: str) -> str:
    """The diff without control characters, which a file may have."""
    return "".join(f"{clean(line)}\n" for line in diff.splitlines())


def _files(call: Call) -> Iterable[str]:
    for path in call.options.paths:
        if not os.path.exists(path):
            raise InvalidInput(f"There is no {path!r}.", hint="Name a file or a folder.")
    return [file for path in call.options.paths for file in files_under(path)]


def _read(path: str) -> str:
    """A file's text, or "" with a note if it is not UTF-8."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except UnicodeDecodeError:
        print(f"note: {clean(path)} is not UTF-8 and was not changed", file=sys.stderr)
        return ""


_PATHS = Parameter("paths", PATH, "files or folders", many=True, metavar="PATH")
_CANDIDATES = Parameter("candidates", FLAG, "also apply rules that are not trusted yet", False)
COMMANDS = {
    "rules learn": Command(
        _learn,
        (Parameter("what", WORDS, "a commit, or a range A..B (default: HEAD)", None, "", metavar="COMMIT|RANGE"),),
        begins_memory=True,
    ),
    "rules check": Command(_check, (_PATHS, _CANDIDATES)),
    "rules apply": Command(
        _apply,
        (_PATHS, _CANDIDATES, Parameter("yes", FLAG, "don't ask; needed without a terminal", False)),
    ),
}


# Text


def _list_text(rules: Sequence[CodeRule], call: Call) -> str:
    rows = [(short_id(r.id), r.status, _surely(r), r.category, r.observation_count, clean(r.name)) for r in rules]
    is_chosen = any(vars(call.options).get(name) for name in ("category", "language", "confidence"))
    empty = "No code rules yet. Learn some: mnemarch rules learn HEAD~5..HEAD"
    empty = "No code rule matches. To list all: mnemarch rules" if is_chosen else empty
    return table(("id", "status", "sure", "category", "seen", "rule"), rows, empty)


def _cleaned_text(gone: Sequence[CodeRule], call: Call) -> str:
    left = len(call.seat.rules.find_code_rules())
    summed = f"{counted(left + len(gone), 'code rule')} looked at, {len(gone)} removed, {left} left"
    return "\n".join([summed, *(f"removed  {short_id(rule.id)}  {clean(rule.name)}" for rule in gone)])


def _rule_text(rule: CodeRule, call: Call) -> str:
    return _shown(call.seat.rules.explain(rule.id))


def _surely(rule: CodeRule) -> str:
    """The confidence, not rounded up to a trust that it has not reached."""
    rounded = f"{rule.confidence:.2f}"
    is_true = rule.status == "trusted" or float(rounded) < rule.promotion_threshold
    return rounded if is_true else f"{rule.confidence - 0.005:.2f}"


def _shown(story: RuleStory) -> str:
    rule = story.rule
    counted = f"{rule.success_count} right, {rule.failure_count} wrong"
    return "\n".join(
        [
            clean(rule.name),
            "",
            f"{rule.id}  {rule.status}, confidence {_surely(rule)}",
            f"{rule.category}{f' · {rule.tag}' if rule.tag else ''} · {', '.join(rule.languages)} · {counted}",
            *_missing_witness(story),
            "",
            *(f"- {clean(line)}" for line in rule.before_pattern.splitlines()),
            *(f"+ {clean(line)}" for line in rule.after_pattern.splitlines()),
        ]
    )


def _missing_witness(story: RuleStory) -> list[str]:
    """A line on what a candidate needs to be trusted; an agent's own word is not enough."""
    rule = story.rule
    if rule.status != "candidate":
        return []
    times = ceil(log((1 - rule.promotion_threshold) / (1 - rule.confidence)) / log(1 - EMA_ALPHA))
    seen = "by witnessed passing test runs in two or more tasks, or "
    return [
        f"It becomes trusted at {rule.promotion_threshold:.2f} on, when it was right {counted(times, 'more time')}:"
        f" {seen * (rule.category != 'security')}by a person's word (mnemarch rules judge {short_id(rule.id)} --worked)"
    ]


def _event_lines(event: Event) -> list[str]:
    payload = event.payload or {}
    where = " ".join(filter(None, [payload.get("path"), (payload.get("commit") or "")[:10]]))
    outcome = {True: "right", False: "wrong", None: "learned"}[payload.get("success")]
    where += f" ({payload['pattern'].replace('_', ' ')})" if payload.get("pattern") else ""
    lines = [
        "",
        clean(f"{outcome:<8} {age(event.recorded_at)} by {event.actor} {f'from {where}' if where else ''}").rstrip(),
    ]
    patch = payload.get("patch") or {}
    for mark, side in (("-", "before"), ("+", "after")):
        lines += [f"  {mark} {clean(line)}" for line in patch.get(side, "").splitlines()]
    return lines


TEXTS: dict[str, Callable[[Any, Call], str]] = {
    "rules.find_code_rules": _list_text,
    "rules.cleanup_weak_rules": _cleaned_text,
    "rules.get_code_rule": _rule_text,
    "rules.update_code_rule_confidence": _rule_text,
    "rules.explain": lambda story, _: "\n".join([_shown(story), *chain.from_iterable(map(_event_lines, story.events))]),
}
