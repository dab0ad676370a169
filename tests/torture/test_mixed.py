"""Everything at once: kills, stops, forks, interrupts, moved folders, odd texts and erasures, on one memory.

Small by default; ten minutes with MNEMARCH_TORTURE=full, or as many seconds as MNEMARCH_TORTURE_S says.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import re
import shutil
import signal
import threading
import time

import mnemarch

SECONDS = float(os.environ.get("MNEMARCH_TORTURE_S", 0))
# A worker that says nothing for so long hangs; a stopped one may keep the others waiting for lock_wait_s_max.
SILENCE_S_MAX = 90.0
AGENTS = 4


SWALLOWED = re.compile(
    r"^Exception ignored in: .*\n(?:Traceback .*\n)?"
    r"(?:  .*importlib.*\n|  .*workers\.py.*\n    raise .*\n)+KeyboardInterrupt: ?\n",
    re.MULTILINE,
)


class Crew:
    """The workers under way, what they acknowledged, and who hangs."""

    def __init__(self, worker, folder, seed):
        self.worker, self.folder, self.seed = worker, folder, seed
        self.names = 0
        self.told, self.counts, self.wrong = [], {}, []
        self.members = [self.hired() for _ in range(AGENTS)]

    def hired(self):
        self.names += 1
        member = self.worker("mixed", self.folder, f"m{self.names}", self.seed + self.names)
        os.set_blocking(member.process.stdout.fileno(), False)
        member.heard_at, member.rest, member.has_begun = time.monotonic(), b"", False
        return member

    def listen(self):
        """Collect the output of the processes, and replace those that ended."""
        for place, member in enumerate(self.members):
            try:
                said = os.read(member.process.stdout.fileno(), 1 << 20)
            except BlockingIOError:
                said = None
            if said:
                member.heard_at, member.has_begun = time.monotonic(), True
                *lines, member.rest = (member.rest + said).split(b"\n")
                self.note(lines)
            elif said == b"":
                self.ended(member)
                self.members[place] = self.hired()
            elif time.monotonic() - member.heard_at > SILENCE_S_MAX:
                self.signalled(member, signal.SIGABRT)  # It says where it hangs.
                member.heard_at = time.monotonic()

    def note(self, lines):
        for line in lines:
            told = json.loads(line)
            self.told.append(told)
            for key in told:
                self.counts[key] = self.counts.get(key, 0) + 1
            self.wrong += [told["wrong"]] if "wrong" in told else []

    def ended(self, member):
        code = member.process.wait()
        # Python passes over an interrupt inside a callback of its own, and says so: nothing of ours was interrupted.
        err = SWALLOWED.sub("", member.process.stderr.read())
        if code not in {0, -signal.SIGKILL} or "Traceback" in err:
            self.wrong.append(f"worker ended with {code}: {err[-2000:]}")
        member.close()

    def signalled(self, member, *signals):
        for each in signals:
            if member.process.poll() is None:
                os.kill(member.process.pid, each)

    def dismissed(self):
        """Let everybody end, and hear them out."""
        for member in self.members:
            os.set_blocking(member.process.stdout.fileno(), True)
            if not member.process.stdin.closed:
                member.process.stdin.close()
            watch = threading.Timer(SILENCE_S_MAX, self.signalled, (member, signal.SIGABRT))
            watch.start()
            *lines, _ = (member.rest + member.process.stdout.buffer.read()).split(b"\n")
            watch.cancel()
            self.note(lines)
            self.ended(member)


def test_nothing_is_lost_hung_or_wrong_when_everything_happens_at_once(worker, folder, full, checked, capsys):
    seconds = SECONDS or (600.0 if full else 8.0)
    moments = random.Random(11)
    with mnemarch.open(folder):
        pass
    crew = Crew(worker, folder, 11)
    attacks = dict.fromkeys(("killed", "stopped", "interrupted", "index removed", "index broken", "moved"), 0)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(moments.random() * 0.3)  # Not to wait for anything: to attack at any moment.
        crew.listen()
        attack = moments.choices(list(attacks), weights=(5, 4, 12, 1, 2, 1))[0]
        attacks[attack] += 1
        member = moments.choice(crew.members)
        if attack == "killed":
            crew.signalled(member, signal.SIGKILL)
        elif attack == "stopped":
            crew.signalled(member, signal.SIGSTOP)
            time.sleep(moments.random() * 2.0)
            crew.signalled(member, signal.SIGCONT)
        elif attack == "interrupted" and member.has_begun:
            crew.signalled(member, signal.SIGINT)
        elif attack == "index removed":
            shutil.rmtree(folder / ".mnemarch" / "index", ignore_errors=True)
        elif attack == "index broken":
            for path in (folder / ".mnemarch" / "index").glob("*.idx"):
                path.unlink(missing_ok=True)
        elif attack == "moved":  # Away and back: nobody may begin an empty memory in between.
            with open(folder / "gate", "w") as gate:
                fcntl.flock(gate, fcntl.LOCK_EX)
                os.rename(folder / ".mnemarch", folder / "elsewhere")
                time.sleep(moments.random() * 0.2)
                assert not (folder / ".mnemarch" / "memory.db").exists()
                shutil.rmtree(folder / ".mnemarch", ignore_errors=True)
                os.rename(folder / "elsewhere", folder / ".mnemarch")
    crew.dismissed()
    events = checked()
    acknowledged = {told["event_id"] for told in crew.told if "event_id" in told}
    lost = acknowledged - set(events)
    with capsys.disabled():
        told = f"{seconds:g} s: {len(acknowledged)} acknowledged, {len(lost)} lost, {crew.counts}, attacks {attacks}"
        print(f"\n{told}")  # noqa: T201 - the numbers of the run
    assert lost == set()
    assert not crew.wrong, "\n".join(crew.wrong)
    assert len(acknowledged) > 20
    erased = {told["erased"] for told in crew.told if "erased" in told}
    with mnemarch.open(folder) as memory:
        units = memory._engine.store.read(lambda reader: reader.units(erased))
    assert all(unit.content == "" for unit in units.values())
