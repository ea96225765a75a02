"""Files that are written: whole or not at all, keeping what they were; nothing else is replaced."""

from __future__ import annotations

import errno
import os
import stat
import threading

import pytest

from softsplit.support.output_files import check_outputs, write_file

OLD, NEW = b"old", b"new\n"


@pytest.fixture
def umask():
    """Sets the umask; the old one comes back."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def mode(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def refusal(path) -> str:
    with pytest.raises(OSError, match=r"name another file\.$") as caught:
        write_file(path, NEW)
    assert "\n" not in str(caught.value) and repr(str(path)) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_permissions_of_the_umask(tmp_path, umask, mask):
    umask(mask)
    write_file(tmp_path / "new", NEW)
    assert mode(tmp_path / "new") == 0o666 & ~mask
    assert (tmp_path / "new").read_bytes() == NEW and names(tmp_path) == ["new"]


@pytest.mark.parametrize("given", [0o600, 0o640, 0o664, 0o444])
def test_a_file_keeps_its_permissions(tmp_path, umask, given):
    path = tmp_path / "kept"
    path.write_bytes(OLD)
    path.chmod(given)
    write_file(path, NEW)
    assert path.read_bytes() == NEW and mode(path) == given and names(tmp_path) == ["kept"]


def test_what_cannot_be_a_file_is_refused(tmp_path):
    assert "is a folder" in refusal(tmp_path)
    assert "in a folder that is not there" in refusal(tmp_path / "none" / "file")
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    assert "leads back to itself" in refusal(tmp_path / "one")
    assert names(tmp_path) == ["one", "two"] and (tmp_path / "one").is_symlink()


@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_is_written_into(tmp_path, linked):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    heard = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_file(link if linked else pipe, NEW)
    reader.join(300)
    assert heard == [NEW]
    assert stat.S_ISFIFO(pipe.stat().st_mode) and link.is_symlink()
    assert names(tmp_path) == ["link", "pipe"]


@pytest.mark.parametrize("step", ["os.replace", "os.chmod"])
@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()]
)
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, step, error):
    path = tmp_path / "kept"
    path.write_bytes(OLD)

    def fail(*_):
        raise error

    monkeypatch.setattr(step, fail)
    with pytest.raises(type(error)) as caught:
        write_file(path, NEW)
    assert path.read_bytes() == OLD and names(tmp_path) == ["kept"]
    if isinstance(error, OSError):
        assert caught.value.errno == errno.ENOSPC
        assert str(caught.value) == (
            f"{str(path)!r} cannot be written (No space left on device); name another file."
        )


def clash(outputs, inputs=None) -> str:
    with pytest.raises(ValueError, match=r"name another file\.$") as caught:
        check_outputs(outputs, inputs or {})
    return str(caught.value)


def test_outputs_must_not_be_inputs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "d.csv"
    data.write_bytes(OLD)
    (tmp_path / "link").symlink_to("d.csv")
    os.link(data, tmp_path / "hard")
    for name in ("d.csv", data, f"../{tmp_path.name}/d.csv", "link", "hard"):
        said = clash({"--model": name}, {"the table": "d.csv"})
        assert said == f"--model {str(name)!r} would overwrite the table; name another file."
    with data.open() as file:
        assert "standard input" in clash({"--model": data}, {"standard input": file.fileno()})
    other = tmp_path / "other"
    other.write_bytes(OLD)
    check_outputs({"--model": other, "--report": tmp_path / "new"}, {"the table": data})
    assert data.read_bytes() == OLD == other.read_bytes()


def test_outputs_must_not_be_one_another(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to("new")
    for name in ("new", tmp_path / "new", f"../{tmp_path.name}/new", "link"):
        said = clash({"--model": "new", "--report": name})
        assert "--report" in said and "would overwrite the file of --model" in said
    check_outputs({"--model": None, "--report": None}, {"the table": None})
    assert names(tmp_path) == ["link"]


def test_a_link_is_followed_and_stays(tmp_path):
    target, link, chain = tmp_path / "far" / "target", tmp_path / "link", tmp_path / "chain"
    target.parent.mkdir()
    target.write_bytes(OLD)
    link.symlink_to("far/target")
    chain.symlink_to(link)
    write_file(chain, NEW)
    assert chain.is_symlink() and link.is_symlink() and not target.is_symlink()
    assert target.read_bytes() == NEW
    assert names(tmp_path) == ["chain", "far", "link"] and names(target.parent) == ["target"]
