"""Commands of several acts (`decisions show`, `graph ask`): which one was typed, and that it takes what was given."""

from __future__ import annotations

from mnemarch.errors import InvalidInput
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping

    from mnemarch.interfaces.command import Answer, Call


@value
class Act:
    """One act: the arguments it takes, which of the command's options it heeds, and what it does."""

    run: Callable[[Call], Answer]
    arguments: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    begins_memory: bool = False


def acted(call: Call, command: str, acts: Mapping[str, Act], options: frozenset[str]) -> Answer:
    """Run the act that was typed. An option of another act would be silently ignored, so it is refused."""
    typed = call.options
    if typed.act not in acts:
        raise InvalidInput(f"{command} knows no {typed.act!r}.", hint=f"Use one of: {', '.join(acts)}.")
    act = acts[typed.act]
    if len(typed.arguments) != len(act.arguments):
        wanted = f"mnemarch {command} {typed.act} {' '.join(act.arguments)}".strip()
        raise InvalidInput(f"{command} {typed.act} takes {len(act.arguments)} argument(s).", hint=f"Type: {wanted}")
    _refuse_others(typed, command, act, options)
    call.begins_memory = act.begins_memory
    return act.run(call)


def _refuse_others(typed: Namespace, command: str, act: Act, options: frozenset[str]) -> None:
    others = sorted(name for name in options.difference(act.options) if _is_given(getattr(typed, name)))
    if others:
        heeded = ", ".join(map(_option, act.options)) or "none of its own"
        raise InvalidInput(
            f"{command} {typed.act} takes no {', '.join(map(_option, others))}.", hint=f"Its options: {heeded}."
        )


def _is_given(item: object) -> bool:
    # Not by its truth: 0 is given.
    return item is not None and item is not False and item != "" and item != []


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
