"""A word to the user when the numerical code has to be compiled first.

Where numba's cache is empty the first fit waits for it, and says so before (``of_a_first_fit``).
Whatever else is compiled is noticed: numba tells of every function that it did not find in the
cache, before it turns to it and after; one that calls others has them done in between, each with
events of its own.
"""

from __future__ import annotations

import time
from typing import Any

from numba.core.event import Listener, register

from softsplit.support.messages import announce

PATIENCE = 2.0
"""Seconds of compiling after which it is worth a word."""

NOTICE = "compiling numerical code for its first use here."
FIRST_FIT = "compiling numerical code for its first use here, once: about {} seconds."
"""With two processes, on the two cores that they take at least."""


class CompileNotice(Listener):
    """Says once that functions of this package are being compiled, if that takes long."""

    def __init__(self) -> None:
        self._depth = 0
        self._began = self._spent = 0.0
        self._said = False

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            if not _is_ours(event):
                return
            self._began = time.perf_counter()
        self._depth += 1
        self._look()

    def on_end(self, event: Any) -> None:
        if self._depth == 0:
            return
        self._look()
        self._depth -= 1
        if self._depth == 0:
            self._spent += time.perf_counter() - self._began

    def _look(self) -> None:
        if not self._said and self._spent + time.perf_counter() - self._began >= PATIENCE:
            self.say(NOTICE)

    def say(self, notice: str) -> None:
        """Say it now; nothing else is said later."""
        self._said = True
        announce(notice)


def _is_ours(event: Any) -> bool:
    function = getattr((event.data or {}).get("dispatcher"), "py_func", None)
    return getattr(function, "__module__", "").startswith("softsplit.")


_of_this_process = CompileNotice()


def listen() -> None:
    """Watch all compiling of this process from now on."""
    register("numba:compile", _of_this_process)


def of_a_first_fit(seconds: int) -> None:
    """Say that a fit waits for the compiler, and how long."""
    _of_this_process.say(FIRST_FIT.format(seconds))
