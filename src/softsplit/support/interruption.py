"""Ctrl-C that Python would drop.

An exception in a destructor or in a callback of compiled code is printed and forgotten, and Ctrl-C
may fall there. While ``never_lost`` is in force it is noted as well, and raised
again at the next look at a budget.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread

_noted: list[int] = []


@contextmanager
def never_lost() -> Iterator[None]:
    """Note interruptions, unless somebody else sees to them; raise at the end what was dropped."""
    usual = signal.default_int_handler
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is not usual:
        yield
        return

    def note(number: int, frame: object) -> None:
        _noted.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, note)
    try:
        yield
        raise_again()
    finally:
        signal.signal(signal.SIGINT, usual)
        seen()


def seen() -> None:
    """Forget interruptions that were caught: the work stops because of them."""
    _noted.clear()


def raise_again() -> None:
    """Raise an interruption that nobody has seen; only in the main thread, as Python does."""
    if _noted and current_thread() is main_thread():
        seen()
        raise KeyboardInterrupt


def is_interruption(error: BaseException) -> bool:
    """Whether Ctrl-C is at the root of an error.

    Numba runs a little Python where arguments go in and results come out of compiled code; there
    an interruption becomes a SystemError.
    """
    root: BaseException | None = error
    while root is not None and not isinstance(root, KeyboardInterrupt):
        root = root.__cause__
    return root is not None
