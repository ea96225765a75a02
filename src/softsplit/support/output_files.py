"""Files that are written: as a whole or not at all, and never over what is still needed."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping

PathName = str | os.PathLike[str]

# Links to links that are followed, as many as Linux does.
MOST_LINKS = 40


def write_file(path: PathName, content: bytes) -> None:
    """Write a file, which is replaced as a whole or not at all.

    A link is followed and stays. A file that was there keeps its permissions, a new one gets those
    of the umask. What is no regular file (a pipe, a device, standard output by its name) is never
    replaced: the content is written into it.
    """
    check_target(path)
    name = os.fsdecode(path)
    try:
        stream = _stream(name)
        if stream is None:
            _replace(os.path.realpath(name), content)
        else:
            with open(stream, "wb") as file:
                file.write(content)
    except OSError as error:
        why = error.strerror or str(error).removesuffix(".")
        told = type(error)(f"{name!r} cannot be written ({why}); name another file.")
        told.errno = error.errno
        raise told from None


def check_target(path: PathName) -> None:
    """Refuse what cannot be a file to write to."""
    name, place = os.fsdecode(path), os.path.realpath(path)
    if os.path.isdir(name):
        raise IsADirectoryError(f"{name!r} is a folder; name another file.")
    if os.path.exists(name):
        return
    if os.path.islink(place):
        raise OSError(f"{name!r} is a link that leads back to itself; name another file.")
    if not os.path.isdir(os.path.dirname(place)):
        raise FileNotFoundError(
            f"{name!r} is in a folder that is not there; make it, or name another file."
        )


def check_outputs(
    outputs: Mapping[str, PathName | None], inputs: Mapping[str, PathName | int | None]
) -> None:
    """Refuse, before any work, outputs that cannot be written or would overwrite what is needed.

    Parameters
    ----------
    outputs : what each file is called in a sentence, and its path
    inputs : the same for files that are read; an integer is an open descriptor
    """
    taken = dict(inputs)
    for option, path in outputs.items():
        if path is None:
            continue
        check_target(path)
        for what, other in taken.items():
            if other is not None and _same_file(path, other):
                raise ValueError(
                    f"{option} {os.fsdecode(path)!r} would overwrite {what}; name another file."
                )
        taken[f"the file of {option}"] = path


def _same_file(first: PathName, second: PathName | int) -> bool:
    """Whether writing one destroys the other; what is no regular file keeps nothing anyway."""
    try:
        one, other = os.stat(first), os.stat(second)
    except OSError:  # one of them is not there yet
        return not isinstance(second, int) and _place(first) == _place(second)
    return stat.S_ISREG(one.st_mode) and os.path.samestat(one, other)


def _place(path: PathName) -> str:
    """The full name of a file; where file systems ignore case, so does this."""
    place = os.path.realpath(os.fsdecode(path))
    return place.casefold() if sys.platform in ("darwin", "win32") else place


def _stream(name: str) -> int | None:
    """A descriptor for what is written into; None for a regular file, there or to be made."""
    number = _descriptor(name)
    if number is not None:
        return os.dup(number)
    if os.path.exists(name) and not os.path.isfile(name):
        return os.open(name, os.O_WRONLY)
    return None


def _descriptor(name: str) -> int | None:
    """The number that names such as /dev/stdout and /dev/fd/3 stand for.

    Where standard output is led to a file, these are links to that file, which is open and must
    not be replaced under its writer.
    """
    open_files = {os.path.realpath(folder) for folder in ("/dev/fd", "/proc/self/fd")}
    step = os.path.abspath(name)
    for _ in range(MOST_LINKS):
        folder, last = os.path.split(step)
        if last.isdecimal() and os.path.realpath(folder) in open_files:
            return int(last)
        if not os.path.islink(step):
            break
        step = os.path.join(folder, os.readlink(step))
    return None


def _replace(target: str, content: bytes) -> None:
    """Write beside the target and move it there; a reader never sees half a file."""
    before = os.stat(target) if os.path.exists(target) else None
    beside = os.path.join(os.path.dirname(target), f".softsplit-{os.urandom(8).hex()}")
    # The umask acts on a new file; one that will be given permissions is private until then.
    mode = 0o666 if before is None else 0o600
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with open(handle, "wb") as file:
            file.write(content)
        if before is not None:
            _hand_over(beside, before)
        os.replace(beside, target)
    except BaseException:
        os.unlink(beside)
        raise


def _hand_over(name: str, before: os.stat_result) -> None:
    """Give a file the owner, the group and the permissions of another.

    Where the group cannot be kept, its permissions are not given to another one.
    """
    mode = stat.S_IMODE(before.st_mode) & 0o777
    now = os.stat(name)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        for owner in (before.st_uid, -1):
            try:
                os.chown(name, owner, before.st_gid)
                break
            except OSError:
                continue
        else:
            mode &= 0o707
    os.chmod(name, mode)
