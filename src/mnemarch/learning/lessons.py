"""Makes lessons from several episodes by comparing what worked with what failed (M6).

A lesson needs two episodes and a contrast. It begins with numbers, marks quotes of agents as quotes, and names the code
on which it rests.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import comb
from typing import Any

from mnemarch.learning import errors as telling
from mnemarch.learning.errors import EpisodeCluster, EpisodeClusterer, faults_in, quoted, succeeded, what_changed
from mnemarch.model.unit import Unit
from mnemarch.model.value import Frozen, Names
from mnemarch.text.edits import done_in, is_of_tests
from mnemarch.text.words import counted
from mnemarch.units.account import command_head
from mnemarch.units.analysis import is_worth_repeating
from mnemarch.witness import runner_of

_LISTED_MAX = 2
# The newest episodes of one fault that are compared.
_COMPARED_MAX = 60
# A difference is ignored if chance alone makes it more often than this.
_BY_CHANCE_MAX = 0.2
_SHARE_MIN = 0.6
_TOUCHED_MIN = 3
_AGAIN_MIN = 1.3
_ARGUMENT = re.compile(r"--?[A-Za-z][\w-]*|[A-Za-z_]\w*=")
# A line that points to another, missing line ("see the log") does not identify an error.
_SAYS_NOTHING = re.compile(
    r"(?i)(?::|\b(?:exit (?:code|status)|error) \d+|\bsee (?:the )?[^;]*\b(?:details|output|log|above))\W*\Z"
)


class Form(Names):
    """The kinds of lessons, the most useful first."""

    WORKED = "what worked"
    MISSING_STEP = "missing step"
    DEAD_END = "dead end"
    OPEN_PROBLEM = "open problem"
    HOT_SPOT = "hot spot"


IMPORTANCE = dict(zip(Form, (0.8, 0.7, 0.6, 0.5, 0.5), strict=True))


class Lesson(Frozen):
    """One lesson. `subject` identifies it across reflections; `advice` is what to do or to avoid.

    `episodes` are the newest first, `files` those on which the lesson rests.
    """

    subject: str
    form: Form
    advice: str
    content: str
    episodes: tuple[Unit, ...]
    succeeded: int
    failed: int
    files: tuple[str, ...] = ()


def is_same_advice(lesson: Lesson, form: object, advice: object) -> bool:
    """Whether a known lesson gives the same advice."""
    if form != lesson.form or not isinstance(advice, str):
        return False
    return lesson.advice == advice or telling.is_same(lesson.advice, advice)


class ReflectionGenerator:
    """Lessons from episodes by rules; at most one for a fault and one for a file."""

    def lessons(self, episodes: Sequence[Unit]) -> Iterator[Lesson]:
        """The lessons of these episodes, those about the most frequent faults first."""
        for cluster in EpisodeClusterer().clusters(episodes):
            lesson = self.of_fault(cluster)
            if lesson is not None:
                yield lesson
        yield from self.hot_spots(episodes)

    def of_fault(self, cluster: EpisodeCluster) -> Lesson | None:
        """The lesson of one fault; None if fewer than two episodes met it, or there is no contrast."""
        episodes = cluster.episodes[:_COMPARED_MAX]
        if len(episodes) < 2:
            return None
        met = {
            episode.id: [fault for fault in faults_in(episode) if fault.get("key") == cluster.key]
            for episode in episodes
        }
        clear = [episode for episode in episodes if not telling.became_of(episode, cluster.key)]
        won = [episode for episode in clear if telling.got_past(episode, cluster.key)]
        lost = [episode for episode in clear if not telling.got_past(episode, cluster.key)]
        failed = telling.failed_approaches(met)
        worked = {episode.id: said for episode in won if (said := telling.what_it_said(episode, cluster.key))}
        dead = [
            tries
            for tries in failed
            if len(tries) > 1 and not any(telling.is_same(tries[0], e) for e in worked.values())
        ]
        forms: list[tuple[Form, tuple[str, str] | None]] = [
            (Form.WORKED, _what_worked(worked, won, failed) if lost or failed else None),
            (Form.WORKED, _turn(met) or _changed_alike(won, lost, cluster.key)),
            (Form.MISSING_STEP, _missing_step(won, lost)),
            (Form.DEAD_END, vain := _again_in_vain(met)),
            (Form.DEAD_END, (dead[0][0], "") if dead else None),
            (Form.OPEN_PROBLEM, None if won else ("", _open_problem(met, failed))),
        ]
        of_use = (Form.WORKED, Form.MISSING_STEP) if _SAYS_NOTHING.search(cluster.line) else tuple(Form)
        found = [(form, said) for form, said in forms if said is not None and form in of_use]
        if not found:
            return None
        form, (advice, sentence) = found[0]
        of_newest = f"of the newest {len(episodes)} " if len(episodes) < len(cluster.episodes) else ""
        came = f"{of_newest}{_outcomes(won, lost, len(episodes))}"
        lines = [
            f"{_tasks(len(cluster.episodes))} met “{quoted(cluster.line)}”: {came}.",
            *([sentence] if sentence else []),
        ]
        instead = _went_on_with(met, advice, won) if found[0][1] is vain else ""
        lines += [instead] if instead else []
        if dead:
            listed = ", ".join(f"“{quoted(tries[0])}”" for tries in dead[:_LISTED_MAX])
            lines.append(f"Failed in {len(dead[0])} tasks, and none says that it worked: {listed}.")
        # One task's change is no rule, but it is a start for the next agent.
        changes = [told for episode in won if (told := what_changed(episode, cluster.key, episodes))]
        changes.sort(key=lambda told: advice not in told)
        lines += [f"In the newest it was gone{told}." for told in changes[:1]]
        files = _rests_on(won, lost, cluster.key)[:_LISTED_MAX]
        return Lesson(
            subject=f"fault:{cluster.key}",
            form=form,
            advice=advice,
            content=_text(lines, files, episodes),
            episodes=tuple(episodes),
            succeeded=len(won),
            failed=len(lost),
            files=tuple(files),
        )

    def hot_spots(self, episodes: Sequence[Unit]) -> Iterator[Lesson]:
        """The files whose tasks fail more often than others, beyond what chance would make."""
        lost = {episode.id for episode in episodes if not succeeded(episode)}
        touching: dict[str, list[Unit]] = {}
        for episode in episodes:
            for path in telling.listed(episode, "files"):
                touching.setdefault(path, []).append(episode)
        for path, touched in sorted(touching.items(), key=lambda item: (-len(item[1]), item[0])):
            failed = [episode for episode in touched if episode.id in lost]
            others, others_failed = len(episodes) - len(touched), len(lost) - len(failed)
            if len(touched) < _TOUCHED_MIN or len(failed) < 2 or not others:
                continue
            if _tail(len(episodes), len(lost), len(touched), len(failed)) > _BY_CHANCE_MAX / 2:
                continue
            met = Counter(
                line for each in failed for line in {quoted(str(fault.get("line", ""))) for fault in faults_in(each)}
            )
            lines = [
                f"{len(failed)} of the {len(touched)} tasks that touched {path} failed;"
                f" of the {_tasks(others)} that did not, {others_failed}."
            ]
            common = [f"“{line}” ({_tasks(count)})" for line, count in met.most_common(_LISTED_MAX) if count > 1]
            if common:
                lines.append(f"What they met there: {', '.join(common)}.")
            yield Lesson(
                subject=f"file:{path}",
                form=Form.HOT_SPOT,
                advice=path,
                content=_text(lines, [path], touched),
                episodes=tuple(touched),
                succeeded=len(touched) - len(failed),
                failed=len(failed),
                files=(path,),
            )


def _outcomes(won: Sequence[Unit], lost: Sequence[Unit], of: int) -> str:
    """The number of tasks that got past the fault, that failed, and in which a fix was not seen."""
    if not won and len(lost) == of:
        return "all failed"
    seen = telling.outcomes(won) if len(won) < of else telling.outcomes(won).replace(str(of), "all", 1)
    counts = {"failed": len(lost), "left open whether it was mended": of - len(won) - len(lost)}
    return ", ".join([seen, *(f"{count} {what}" for what, count in counts.items() if count)])


def _turn(met: Mapping[str, list[dict[str, Any]]]) -> tuple[str, str] | None:
    """The change that made a failing command work in two tasks or more, and the sentence that says so.

    It is an argument that the failing calls lacked, or else a command that was run in between.
    """
    failing = {
        part for faults in met.values() for fault in faults for part in _arguments(str(fault.get("command", "")))
    }
    turns = [[telling.texts(fault.get("then")) for fault in faults if fault.get("then")] for faults in met.values()]
    turns = [ends for ends in turns if ends]
    if len(turns) < 2:
        return None
    gained = Counter(
        part for ends in turns for part in {each for then in ends for each in _arguments(then[-1])} - failing
    )
    between = Counter(
        step for ends in turns for step in {each for then in ends for each in then[:-1] if is_worth_repeating(each)}
    )
    example = turns[0][-1][-1]
    part, count = max(gained.items(), key=lambda item: item[1], default=("", 0))
    if count > 1:
        example = next(then[-1] for ends in turns for then in ends if part in _arguments(then[-1]))
        says = f"`{quoted(command_head(example))}` worked with `{part}` in {_tasks(count)}"
        return part, f"{says}; every call that failed lacked it. For example: `{quoted(example)}`."
    step, count = max(between.items(), key=lambda item: item[1], default=("", 0))
    if count > 1:
        return step, f"In {_tasks(count)} it was gone after `{quoted(step)}`."
    return None


def _changed_alike(won: Sequence[Unit], lost: Sequence[Unit], key: str) -> tuple[str, str] | None:
    """The edit or command that most tasks made between the error and the pass, if it seldom failed elsewhere."""
    changed = _done(won, key, "change")
    counts = Counter(each for done in changed for each in done)
    best = max(counts, key=lambda each: (counts[each], " in `" in each, each), default="")
    fails = sum(best in done for done in _done(lost, key, "tried"))
    if counts[best] < max(2, _SHARE_MIN * len(changed)) or counts[best] <= 2 * fails:
        return None
    what = best if best.startswith("`") else f"an edit of {best}"
    also = f" It failed in {_tasks(fails)}." if fails else ""
    return best, f"In {_share(counts[best], len(won))} it was gone after {what}.{also}"


def _done(episodes: Sequence[Unit], key: str, name: str) -> list[set[str]]:
    """For each task, what it ran or edited while it had a fault; edits of tests are left out."""
    met = ([fault for fault in faults_in(episode) if fault.get("key") == key] for episode in episodes)
    done = [{done_in(text) for fault in faults for text in telling.texts(fault.get(name))} for faults in met]
    return [{each for each in did if each[:1] == "`" or not is_of_tests(each)} - {""} for did in done if did]


def _rests_on(won: Sequence[Unit], lost: Sequence[Unit], key: str) -> list[str]:
    """The files that every task changed to fix a fault; if no fix was seen, the files that all of them touched."""
    changed = _done(won, key, "change")
    if not changed:
        return telling.shared(won or lost, "files")
    files = [{each.partition(" in `")[0] for each in done if each[:1] != "`"} for done in changed]
    return sorted(set.intersection(*files)) if len(files) > 1 else []


def _again_in_vain(met: Mapping[str, list[dict[str, Any]]]) -> tuple[str, str] | None:
    """The command that was repeated and hardly ever worked, and the sentence that says so.

    Test runs do not count: they only show the result of an attempt.
    """
    called = [[head for fault in faults if (head := _called(fault))] for faults in met.values()]
    heads = Counter(head for each in called for head in each)
    head, calls = max(heads.items(), key=lambda item: item[1], default=("", 0))
    tasks = [faults for faults, each in zip(met.values(), called, strict=True) if head in each]
    worked = sum(any(fault.get("then") for fault in faults) for faults in tasks)
    if not head or len(tasks) < 2 or calls < _AGAIN_MIN * len(tasks) or worked > len(tasks) / 4:
        return None
    after = f"worked later in {worked or 'none'} of these {_tasks(len(tasks))}"
    return head, f"`{quoted(head)}` failed with it {calls} times and {after}: another call is unlikely to help."


def _called(fault: Mapping[str, Any]) -> str:
    """The program that failed; empty if it was a test run."""
    command = str(fault.get("command", ""))
    return "" if fault.get("test") or runner_of(command) is not None else command_head(command)


def _arguments(command: str) -> set[str]:
    """The options and the names of the arguments in a command line."""
    return {word.partition("=")[0] + "=" * ("=" in word) for word in command.split() if _ARGUMENT.match(word)}


def _what_worked(worked: Mapping[str, str], won: Sequence[Unit], failed: Sequence[list[str]]) -> tuple[str, str] | None:
    """The approach behind most successes, if two tasks used it and it seldom failed; and the sentence that says so.

    If no success was witnessed, the sentence says that it is only reported.
    """
    best = max(telling.grouped(worked.items()), key=len, default=[])
    fails = max((len(tries) for tries in failed if best and telling.is_same(tries[0], best[0])), default=0)
    if len(best) < 2 or len(best) <= 2 * fails:
        return None
    also = f" It failed in {_tasks(fails)}." if fails else ""
    is_seen = any(episode.attributes.get("witnessed") for episode in won)
    how = "What worked" if is_seen else "Said to have worked"
    return best[0], f"{how} in {_share(len(best), len(won))} that got past it: “{quoted(best[0])}”.{also}"


def _missing_step(won: Sequence[Unit], lost: Sequence[Unit]) -> tuple[str, str] | None:
    """The step that most successes took and no failure did, unless chance explains it; and the sentence."""
    if len(won) < 2 or not lost:
        return None
    for name, did in (("rules", "applied rule"), ("commands", "ran"), ("files", "touched")):
        counts = Counter(step for episode in won for step in telling.steps(episode, name))
        absent = {step for episode in lost for step in (*telling.steps(episode, name), *telling.failing(episode))}
        best = max(counts, key=lambda step: (step not in absent, counts[step], len(step)), default="")
        count = counts[best]
        if not best or best in absent or count < max(2, _SHARE_MIN * len(won)):
            continue
        if comb(len(won), count) / comb(len(won) + len(lost), count) <= _BY_CHANCE_MAX:
            who = _share(count, len(won)).capitalize()
            none = "none of those that failed did" if len(lost) > 1 else "the one that failed did not"
            return best, f"{who} that got past it {did} `{quoted(best)}`; {none}."
    return None


def _went_on_with(met: Mapping[str, list[dict[str, Any]]], head: str, won: Sequence[Unit]) -> str:
    """The way around a dead end: the command that tasks ran next, if one of these tasks succeeded."""
    nexts = {
        episode_id: {command_head(str(fault.get("next", ""))) for fault in faults} - {"", head}
        for episode_id, faults in met.items()
    }
    counts = Counter(step for steps in nexts.values() for step in steps)
    by_success = Counter(step for episode in won for step in nexts[episode.id])
    best = max(by_success, key=lambda step: (by_success[step] / counts[step], counts[step], step), default="")
    if not best or counts[best] < 2:
        return ""
    return f"{counts[best]} went on with `{quoted(best)}` instead, and {by_success[best]} of them got past it."


def _open_problem(met: Mapping[str, list[dict[str, Any]]], failed: Sequence[list[str]]) -> str:
    once = ", ".join([f"“{quoted(tries[0])}”" for tries in failed if len(tries) == 1][:_LISTED_MAX])
    heads = {_called(fault) for faults in met.values() for fault in faults}
    source = f" It came from `{quoted(*heads)}` each time." if len(heads) == 1 and all(heads) else ""
    return f"Nobody has solved it yet.{source}{f' Tried once, and failed: {once}.' if once else ''}"


def _text(lines: Sequence[str], files: Sequence[str], episodes: Sequence[Unit]) -> str:
    rests = [f"It rests on {' and '.join(files)}."] if files else []
    last = f"Last met on {max(episode.occurred_at for episode in episodes):%Y-%m-%d}."
    unverified = "Quotes are agents' words, not verified."
    return " ".join([*lines, *rests, last, unverified])


def _tail(all_: int, failed: int, drawn: int, hits: int) -> float:
    """The probability that at least `hits` of `drawn` tasks fail by chance."""
    most = min(failed, drawn)
    return sum(comb(failed, k) * comb(all_ - failed, drawn - k) for k in range(hits, most + 1)) / comb(all_, drawn)


def _share(count: int, total: int) -> str:
    return f"{count} of the {total}" if count < total else "both" if total == 2 else f"all {total}"


def _tasks(number: int) -> str:
    return counted(number, "task")
