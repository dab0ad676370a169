"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from mnemarch.files import write_whole


def no_room(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


class KilledError(BaseException):
    pass


def killed(*_: object) -> None:
    raise KilledError


def test_a_text_takes_the_place_of_what_was_there_byte_for_byte(tmp_path):
    path = tmp_path / "record.md"
    for text in ("first\r\nline\n", "둘째\n", ""):
        write_whole(str(path), text)
        assert path.read_bytes() == text.encode()
    assert os.listdir(tmp_path) == ["record.md"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize(("trouble", "raised"), [(no_room, OSError), (killed, KilledError)])
def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, step, trouble, raised):
    path = tmp_path / "record.md"
    path.write_text("as it was")
    with monkeypatch.context() as patched:
        patched.setattr(os, step, trouble)
        with pytest.raises(raised):
            write_whole(str(path), "as it would be")
    assert path.read_text() == "as it was"
    assert os.listdir(tmp_path) == ["record.md"]


def test_a_link_stays_a_link_and_a_file_keeps_its_rights(tmp_path):
    path, link = tmp_path / "record.md", tmp_path / "link.md"
    path.write_text("as it was")
    path.chmod(0o640)
    link.symlink_to("record.md")
    write_whole(str(link), "as it is")
    assert link.is_symlink()
    assert path.read_text() == "as it is"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
