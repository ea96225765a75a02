"""Memory that was freed, given back to the system.

The allocator of glibc keeps freed arrays of up to 32 megabytes each for later use. Where copies of
a table are made and freed by turns, what it keeps is soon as large as what is held.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache


@cache
def _trim() -> Callable[[int], int] | None:
    """The function of the C library that gives memory back; None where it has none."""
    if not sys.platform.startswith("linux"):
        return None
    found: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return found


def give_back() -> None:
    """Give freed memory back to the system, where the C library can; it takes milliseconds."""
    trim = _trim()
    if trim is not None:
        trim(0)
