"""Which habits windows of 20 patches declare, and whether the whole code agrees.

    python -m bench.learning.habits REPOSITORY|OLD.whl:NEW.whl ...

A patch is a changed file of a commit, or of two releases of a package. The truth about a topic is the majority of the
newest code (200 files of it), where it is clear (a share of 0.6); a declaration against it, or of what is not clear,
is wrong. Of a long history eight windows are taken, evenly spread. Exits 1 if a limit is broken.
"""

from __future__ import annotations

import os
import random
import sys
import zipfile
from collections import Counter

from mnemarch.learning.habits import Tally, sentence_for, style_votes, tallies
from mnemarch.learning.patches import FilePatch, commit_patches, commits_of

WINDOW = 20
WINDOWS_MAX, FILES_MAX = 8, 200
CLEAR = 0.6
LIMITS = {"declared": 0.55, "naming": 0.80}


def sources(wheel: str) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as file:
        names = [name for name in file.namelist() if name.endswith(".py") and "_vendor" not in name]
        return {name: file.read(name).decode(errors="replace") for name in names}


def history(named: str) -> tuple[list[FilePatch], dict[str, str]]:
    """The patches, oldest first, and the newest code."""
    if ":" in named:
        old, new = (sources(wheel) for wheel in named.split(":"))
        changed = [path for path in sorted(new) if new[path] != old.get(path, "")]
        return [FilePatch(before=old.get(path, ""), after=new[path], path=path) for path in changed], new
    commits = commits_of(named, "HEAD~60..HEAD")
    patches = [patch for commit in commits for patch in commit_patches(named, commit) if patch.path.endswith(".py")]
    return patches, {patch.path: patch.after for patch in patches}


def windows_of(patches: list[FilePatch]) -> list[list[FilePatch]]:
    """The windows to look at: one after the other, or evenly spread if there are too many."""
    count = min(WINDOWS_MAX, len(patches) // WINDOW)
    spread = len(patches) > WINDOWS_MAX * WINDOW
    starts = [at * (len(patches) - WINDOW) // (count - 1) if spread else at * WINDOW for at in range(count)]
    return [patches[start : start + WINDOW] for start in starts]


def truth_of(newest: dict[str, str]) -> tuple[dict[str, str], dict[str, Tally]]:
    """The choice on each topic that is clear, and the counts."""
    paths = sorted(newest)
    chosen = paths if len(paths) <= FILES_MAX else random.Random(1).sample(paths, FILES_MAX)
    whole = {tally.topic: tally for tally in tallies(style_votes("", newest[path], path) for path in chosen)}
    clear = [tally for tally in whole.values() if tally.votes >= CLEAR * tally.of]
    return {tally.topic: tally.choice for tally in clear if sentence_for(tally.topic, tally.choice)}, whole


def main() -> int:
    windows = wrong = declared = possible = with_naming = 0
    for named in sys.argv[1:]:
        patches, newest = history(named)
        truth, whole = truth_of(newest)
        here: Counter[str] = Counter()
        for window in windows_of(patches):
            votes = [style_votes(patch.before, patch.after, patch.path) for patch in window]
            found = [tally for tally in tallies(votes) if tally.is_declared]
            against = [tally for tally in found if truth.get(tally.topic) != tally.choice]
            here.update(windows=1, declared=len(found), possible=len(truth), wrong=len(against))
            here["naming"] += any(tally.topic == "naming" for tally in found)
            for tally in against:
                print(f"  wrong from {window[0].path} on: {tally}, the whole: {whole.get(tally.topic)}")
        print(os.path.basename(named), len(patches), "patches", dict(here), truth)
        windows, wrong, with_naming = windows + here["windows"], wrong + here["wrong"], with_naming + here["naming"]
        declared, possible = declared + here["declared"], possible + here["possible"]
    shares = {"declared": declared / max(1, possible), "naming": with_naming / max(1, windows)}
    print(f"{windows} windows, {wrong} of {declared} wrong, " + ", ".join(f"{k} {v:.1%}" for k, v in shares.items()))
    return int(wrong > 0 or any(shares[name] < limit for name, limit in LIMITS.items()))


if __name__ == "__main__":
    sys.exit(main())
