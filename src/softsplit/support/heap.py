"""Return freed memory to the operating system.

The allocator of glibc keeps freed blocks of up to 32 megabytes for later use. Where copies of a
table are allocated and freed repeatedly, the blocks that it keeps take as much memory as those in
use.
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
    """Return freed memory to the system, if the C library can; it takes milliseconds."""
    trim = _trim()
    if trim is not None:
        trim(0)
