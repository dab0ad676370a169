"""Files of hosts, changed whole or not at all, and a note of what each was before: that is the backup, too.

Where nothing is noted, or the file was changed since, Mnemarch's entries are known by their form.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress

from mnemarch import user
from mnemarch.errors import InvalidInput
from mnemarch.files import read_small, write_private, write_whole
from mnemarch.interfaces.install.forms import Entries, form_of
from mnemarch.model.stamps import blake2b
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_FILE_BYTES_MAX = 64 << 20


@value
class Change:
    """One file as it is, as it is to be, and as it is without Mnemarch's entries; None: it is not there."""

    path: str
    now: str | None
    then: str | None
    original: str | None


@value
class _Note:
    """What was noted of a file: its text before and after."""

    before: str | None
    after: str


def planned(path: str, entries: Entries, *, installs: bool) -> Change:
    """What installing or removing makes of a file."""
    form, now, note = form_of(path), text_of(path), _note_of(path)
    try:
        if now is None:
            original = None
        elif note is not None and now == note.after:
            original = note.before
        else:
            before = None if note is None else note.before
            original = entries.taken(now, form, before, is_noted=note is not None)
        then = original
        if installs:
            then = entries.put(original, form)
            if entries.taken(then, form, original, is_noted=True) != original:
                raise ValueError("its entries could not be taken out again exactly")
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} was left as it is: {error}.", hint="Correct it, then run this again.") from None
    return Change(path=path, now=now, then=then, original=original)


def carried_out(change: Change) -> None:
    """Write the file, or remove it, with the note that goes with it."""
    if text_of(change.path) != change.now:  # Hosts write their files, too.
        raise InvalidInput(f"{change.path} changed in this moment; it was left as it is.", hint="Run this again.")
    place, folder = _place_of(change.path), os.path.dirname(os.path.realpath(change.path))
    if change.then == change.original:
        if change.then is None:
            os.remove(change.path)
            _remove_made(folder)
        else:
            write_whole(change.path, change.then)
        for name in (place, f"{place}.json"):
            with suppress(FileNotFoundError):
                os.remove(name)
        return
    assert change.then is not None
    os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
    if change.original is not None:
        write_private(place, change.original.encode())
    write_private(f"{place}.json", json.dumps({"path": change.path, "after": change.then}).encode())
    _make(folder)
    write_whole(change.path, change.then)


def backup_of(path: str) -> str | None:
    """Where the text stands that the file had before, if it was there."""
    place = _place_of(path)
    return place if os.path.exists(place) else None


def text_of(path: str) -> str | None:
    """The text of a file, None if it isn't there. What is no text, or a link to nowhere, is refused."""
    try:
        return read_small(path, _FILE_BYTES_MAX).decode()
    except FileNotFoundError:
        if os.path.islink(path):
            raise InvalidInput(f"{path} is a link to nothing.", hint="Remove the link, or make its target.") from None
        return None
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not valid UTF-8; it was left as it is.", hint="Save it as UTF-8.") from None
    except OSError as error:
        raise InvalidInput(f"{path} can't be read: {error.strerror}.", hint="Check the path and its rights.") from None


def _place_of(path: str) -> str:
    """Where the file is noted: in the user's own state, since the folder of the memory may go first."""
    digest = blake2b(os.path.realpath(path).encode(errors="surrogateescape"), digest_size=8).hexdigest()
    return user.state_path_of(os.path.join("installed", f"{digest}-{os.path.basename(path)}"))


def _note_of(path: str) -> _Note | None:
    place = _place_of(path)
    noted = _json_of(f"{place}.json")
    return None if noted is None else _Note(before=text_of(place), after=noted["after"])


def _json_of(path: str) -> Any:
    try:
        return json.loads(read_small(path, _FILE_BYTES_MAX))
    except (OSError, ValueError):
        return None


def _make(folder: str) -> None:
    """Make a folder and those around it, and note which were made."""
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for each in reversed(missing):
        os.mkdir(each)
    if missing:
        _note_made({*_made(), *missing})


def _remove_made(folder: str) -> None:
    """Remove the folders that were made here, as far as they are empty."""
    made = _made()
    with suppress(OSError):
        while folder in made:
            os.rmdir(folder)
            made.remove(folder)
            folder = os.path.dirname(folder)
    _note_made(made)


def _made() -> set[str]:
    return set(_json_of(_made_path()) or ())


def _note_made(folders: set[str]) -> None:
    if folders:
        write_private(_made_path(), json.dumps(sorted(folders)).encode())
    else:
        with suppress(FileNotFoundError):
            os.remove(_made_path())


def _made_path() -> str:
    return user.state_path_of(os.path.join("installed", "folders.json"))
