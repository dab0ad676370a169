"""What an episode tells a reflection. Anybody can import one: what does not fit is left out."""

from __future__ import annotations

from mnemarch.learning.errors import faults_in
from mnemarch.text.approach import approach as read_approach
from mnemarch.text.approach import same_approach
from mnemarch.text.cache import cached
from mnemarch.text.words import in_a_line
from mnemarch.units.account import command_head
from mnemarch.units.analysis import is_worth_repeating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from mnemarch.model.unit import Unit
    from mnemarch.text.approach import Approach

_QUOTED_CHARS_MAX = 160


def succeeded(episode: Unit) -> bool:
    return episode.attributes.get("success") is True


def what_it_said(episode: Unit, key: str) -> str:
    """What the task that succeeded tried, in its own words, when this fault of it went: last of all, or before."""
    met = [fault for fault in faults_in(episode) if fault.get("key") == key]
    said = (met[-1] if met else {}).get("mended", episode.attributes.get("approach"))
    return said if isinstance(said, str) else ""


def listed(episode: Unit, name: str) -> list[str]:
    return texts(episode.attributes.get(name))


def texts(items: Any) -> list[str]:
    return [item for item in items if isinstance(item, str) and item] if isinstance(items, list | tuple) else []


def lines_in(episode: Unit) -> list[str]:
    return [str(fault.get("line", "")) for fault in faults_in(episode)]


def failing(episode: Unit) -> set[str]:
    """The commands that failed in a task, whole and by their programs."""
    commands = [str(fault["command"]) for fault in faults_in(episode) if fault.get("command")]
    return {*commands, *map(command_head, commands)}


def failed_approaches(met: Mapping[str, list[dict[str, Any]]]) -> list[list[str]]:
    """What was tried against a fault and failed: for each approach its wordings, one a task; the most tried first.

    Only what says in a sentence what is tried: a long thought is no approach.
    """
    tried = (
        (episode_id, said)
        for episode_id, faults in met.items()
        for fault in faults
        if isinstance(said := fault.get("approach"), str) and _read(said).is_plan
    )
    return sorted(grouped(tried), key=len, reverse=True)


def grouped(said: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Approaches that are the same, in whatever words; each task counts once."""
    groups: list[dict[str, str]] = []
    for episode_id, text in said:
        group = next((each for each in groups if is_same(next(iter(each.values())), text)), None)
        if group is None:
            groups.append({episode_id: text})
        else:
            group.setdefault(episode_id, text)
    return [list(group.values()) for group in groups]


def steps(episode: Unit, name: str) -> set[str]:
    """What the task did: commands whole, and by what they begin with, since the rest often names one case."""
    items = set(listed(episode, name))
    if name != "commands":
        return items
    telling = set(filter(is_worth_repeating, items))
    return telling | set(filter(None, map(command_head, telling)))


def shared(episodes: Sequence[Unit], name: str) -> list[str]:
    """What all of these episodes name, if there are two."""
    named = [listed(episode, name) for episode in episodes]
    return [item for item in named[0] if all(item in each for each in named)] if len(named) > 1 else []


def quoted(text: str) -> str:
    """The beginning of what somebody wrote, on one line, with no quotes that could end the quote."""
    return in_a_line(text.replace("“", '"').replace("”", '"').replace("`", "'"), _QUOTED_CHARS_MAX)


@cached(4_096)
def _read(text: str) -> Approach:
    return read_approach(text)


def is_same(left: str, right: str) -> bool:
    return left == right or (bool(left and right) and same_approach(_read(left), _read(right)))
