"""What the program does by itself, in words: reflections and maintenance, also again and again."""

from __future__ import annotations

import json
import sys
import time

from mnemarch.errors import StoreUnavailable
from mnemarch.interfaces.command import Answer, answered
from mnemarch.interfaces.show import clean, said, wrapped
from mnemarch.model.stamps import short_id
from mnemarch.policy.labels import label_of
from mnemarch.verbs.wire import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from typing import Any

    from mnemarch.interfaces.command import Call
    from mnemarch.model.upkeep import Maintained, Reflected
    from mnemarch.verbs.types import Verb


def _reflected(done: Reflected, _: Call) -> str:
    would = "would be " if done.dry_run else ""
    counts = f"{done.changed} {would}new or changed, {done.unchanged} unchanged, {len(done.retired)} {would}retired"
    lines = [f"reflected  {done.episodes} episodes; lessons: {counts}"]
    for unit in done.lessons:
        lines += ["", f"{label_of(unit)} {short_id(unit.id)}  {unit.attributes['form']}"]
        lines.append(wrapped(clean(unit.content), "  "))
    for unit in done.retired:
        lines += ["", f"retired  {short_id(unit.id)}  {said(unit.content)}"]
    return "\n".join([*lines, *([] if done.complete else ["", "There is more: mnemarch reflect goes on from here."])])


def _maintained(night: Maintained, _: Call) -> str:
    width = max(len(step.name) for step in night.steps)
    lines = [
        f"{'✓' if step.ok else '✗'} {step.name:<{width}}  {clean(step.says)} ({step.seconds:.1f} s)"
        for step in night.steps
    ]
    return "\n".join([*lines, *(["Nothing was changed."] if night.dry_run else [])])


def again_and_again(verb: Verb, call: Call, every: timedelta) -> Answer:
    """The verb now and then every so often, each answer printed when it is there; Ctrl-C ends it, a busy store not."""
    while True:
        try:
            answer = answered(verb, call)
            line = json.dumps(to_json(answer.data), ensure_ascii=False) if call.places.json else f"{answer.text()}\n"
            print(line, flush=True)
        except StoreUnavailable as error:
            print(f"mnemarch: {error}", file=sys.stderr, flush=True)
        time.sleep(every.total_seconds())


TEXTS: dict[str, Callable[[Any, Call], str]] = {"Reflected": _reflected, "Maintained": _maintained}
