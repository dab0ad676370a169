"""Which habits windows of 20 patches declare, and whether the whole code agrees.

    python -m bench.learning.habits REPOSITORY|OLD.whl:NEW.whl ...

A patch is a changed file of a commit, or of two releases of a package. The truth about a topic is the majority of the
newest code, where it is clear (a share of 0.6); a declaration against it is wrong. Exits 1 if a limit is broken.
"""

from __future__ import annotations

import os
import sys
import zipfile
from collections import Counter

from mnemarch.learning.patches import FilePatch, commit_patches, commits_of
from mnemarch.learning.preferences import style_votes, tallies

WINDOW = 20
CLEAR = 0.6
LIMITS = {"declared": 0.55, "naming": 0.80}


def sources(wheel: str) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as file:
        names = [name for name in file.namelist() if name.endswith(".py")]
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


def main() -> int:
    windows = wrong = declared = possible = with_naming = 0
    for named in sys.argv[1:]:
        patches, newest = history(named)
        whole = {tally.topic: tally for tally in tallies(style_votes("", text, path) for path, text in newest.items())}
        truth = {topic: tally.choice for topic, tally in whole.items() if tally.votes >= CLEAR * tally.of}
        votes = [style_votes(patch.before, patch.after, patch.path) for patch in patches]
        here: Counter[str] = Counter()
        for start in range(0, len(votes) - WINDOW + 1, WINDOW):
            found = [tally for tally in tallies(votes[start : start + WINDOW]) if tally.is_declared]
            against = [tally for tally in found if truth.get(tally.topic) != tally.choice]
            here.update(windows=1, declared=len(found), possible=len(truth), wrong=len(against))
            here["naming"] += any(tally.topic == "naming" for tally in found)
            for tally in against:
                print(f"  wrong in {start}: {tally}, the whole: {whole.get(tally.topic)}")
        print(os.path.basename(named), len(patches), "patches", dict(here), truth)
        windows, wrong, with_naming = windows + here["windows"], wrong + here["wrong"], with_naming + here["naming"]
        declared, possible = declared + here["declared"], possible + here["possible"]
    shares = {"declared": declared / max(1, possible), "naming": with_naming / max(1, windows)}
    print(f"{windows} windows, {wrong} of {declared} wrong, " + ", ".join(f"{k} {v:.1%}" for k, v in shares.items()))
    return int(wrong > 0 or any(shares[name] < limit for name, limit in LIMITS.items()))


if __name__ == "__main__":
    sys.exit(main())
