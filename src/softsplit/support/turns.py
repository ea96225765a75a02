"""Work that is done once on a machine, by whichever process has the turn; files say what is done.

A piece of work is done when its file holds the key: the versions and the machine that it was done
for. Whose turn it is, is a lock on another file, which the system lets go of when a process ends,
however it ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

LOOK = 0.05
"""Seconds between two looks at what others are doing."""


@dataclass(frozen=True)
class Turns:
    """Pieces of work whose state is kept in a folder."""

    folder: Path
    key: str

    def is_done(self, piece: str) -> bool:
        with suppress(OSError, UnicodeDecodeError):
            return self._file(piece, "done").read_text("utf-8") == self.key
        return False

    def note(self, piece: str) -> None:
        """From now on it is done; where nothing can be written it will be done again."""
        with suppress(OSError):
            self._file(piece, "done").write_text(self.key, "utf-8")

    @contextmanager
    def turn(self, piece: str) -> Iterator[bool]:
        """Whether nobody else is at it; nobody else will be, within the block.

        Where files cannot be locked it is always one's turn.
        """
        try:
            file = self._file(piece, "lock").open("a")
        except OSError:
            yield True
            return
        with file:
            yield _lock(file)

    def work(
        self, pieces: Mapping[str, Callable[[], None]], patience: float, *, backwards: bool = False
    ) -> None:
        """Have all pieces done: those that others are at are waited for, but not for ever.

        Two processes that begin at different ends meet late.
        """
        left, waited = list(pieces)[:: -1 if backwards else 1], 0.0
        while left := [name for name in left if not self._is_over(name, pieces[name])]:
            if waited > patience:
                return
            time.sleep(LOOK)
            waited += LOOK

    def _is_over(self, piece: str, call: Callable[[], None]) -> bool:
        """Whether it is done, after a try to do it."""
        if self.is_done(piece):
            return True
        with self.turn(piece) as mine:
            if mine and not self.is_done(piece):
                call()
                self.note(piece)
            return mine

    def _file(self, piece: str, what: str) -> Path:
        return self.folder / f"softsplit-{piece}.{what}"


def _lock(file: IO[str]) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows
        return _lock_on_windows(file)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _lock_on_windows(file: IO[str]) -> bool:
    import msvcrt

    try:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError:
        return False
    return True
