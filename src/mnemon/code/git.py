"""What Mnemon asks of git, through the `git` program."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_WAIT_S_MAX = 20


def git(root: str, arguments: Sequence[str]) -> str | None:
    """The output of a git command in `root`, or None if git, the repository or the thing asked for isn't there."""
    import subprocess

    # GIT_DIR and friends would point every call at one repository, whatever folder it is about.
    environment = {name: item for name, item in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(  # noqa: S603 - fixed program, arguments never pass through a shell
            ["git", "-C", root, *arguments],  # noqa: S607 - git is found where the user's shell finds it
            capture_output=True,
            env=environment | {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"},
            timeout=_WAIT_S_MAX,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else None


def head(root: str) -> str | None:
    """The commit that is checked out in `root`."""
    return git(root, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])


def full_hash(root: str, commit: str) -> str | None:
    """The whole hash of a commit that exists in the repository of `root`."""
    if commit.startswith("-"):
        return None
    return git(root, ["rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"])
