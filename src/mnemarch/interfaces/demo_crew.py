"""The demo's processes: started together, held at barriers, heard as they report."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading

from mnemarch.errors import StoreUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Self

_SILENCE_S_MAX = 120


class Member:
    """One process, and everything it has said so far."""

    def __init__(self, name: str, script: dict[str, Any]) -> None:
        self.name = name
        self.script = script
        self.said: list[dict[str, Any]] = []
        self.at = "on the way"
        self.process = subprocess.Popen(  # noqa: S603 - our own module, no shell
            [sys.executable, "-m", "mnemarch.interfaces.demo_agent", json.dumps(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            cwd=script["root"],
            env=os.environ | {"PYTHONIOENCODING": "utf-8"},
        )

    def saying(self, message: str, what: str | None = None) -> list[dict[str, Any]]:
        return [one for one in self.said if one["say"] == message and (what is None or one.get("what") == what)]

    @property
    def receipts(self) -> list[dict[str, Any]]:
        """Every receipt it was handed, in order."""
        holders = (one.get("outcome") or one.get("promotion") or one for one in self.said)
        return [holder["receipt"] for holder in holders if holder.get("receipt")]


class Crew:
    """Several processes that meet at the same barriers."""

    def __init__(self, scripts: dict[str, dict[str, Any]]) -> None:
        self._heard: queue.Queue[tuple[Member, dict[str, Any] | None]] = queue.Queue()
        self.members = [Member(name, script) for name, script in scripts.items()]
        for member in self.members:
            threading.Thread(target=self._listen, args=(member,), daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            process = member.process
            if process.poll() is None:
                process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()

    def _listen(self, member: Member) -> None:
        assert member.process.stdout is not None
        for line in member.process.stdout:
            self._heard.put((member, json.loads(line)))
        self._heard.put((member, None))

    def until(self, place: str) -> None:
        """Listen until everybody waits at this barrier, or (with "end") has ended well."""
        while not all(member.at == place for member in self.members):
            try:
                member, message = self._heard.get(timeout=_SILENCE_S_MAX)
            except queue.Empty:
                raise StoreUnavailable(f"No agent spoke for {_SILENCE_S_MAX} s.", hint="Run it again.") from None
            if message is None:
                member.at = "end"
                self._check_end(member)
            elif message["say"] == "waiting":
                member.at = message["at"]
            else:
                member.said.append(message)

    def go(self) -> None:
        """Let everybody past the barrier at once."""
        for member in self.members:
            member.at = "on the way"
        for member in self.members:
            assert member.process.stdin is not None
            member.process.stdin.write("go\n")
            member.process.stdin.flush()

    @staticmethod
    def _check_end(member: Member) -> None:
        if member.process.wait() != 0:
            assert member.process.stderr is not None
            last = (member.process.stderr.read().strip().splitlines() or ["it said nothing"])[-1]
            raise StoreUnavailable(f"{member.name} broke off: {last}", hint="Run mnemarch doctor.")


def receipts_of(members: Sequence[Member]) -> list[dict[str, Any]]:
    return [receipt for member in members for receipt in member.receipts]
