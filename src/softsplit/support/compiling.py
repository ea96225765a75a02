"""How compiled functions are made: flags, and a cache that never serves stale code.

Numba keeps compiled functions on disk and looks only at a function's own file to see whether it
has changed. Ours call one another across files, so a change in one file must reach all: the stamp
of every cache entry covers all source files of the package that compile something.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba as nb

logger = logging.getLogger(__name__)

try:
    from softsplit.support.compile_notice import listen
except ImportError:  # another numba, which has no such events
    logger.debug("nobody will be told of compiling.")
else:
    listen()

try:
    from softsplit.support.compile_cache import keep_on_disk
except ImportError:  # another numba, whose own files and narrower stamp serve

    def keep_on_disk(dispatcher: Any, stamp: tuple[str, int]) -> None:
        dispatcher.enable_caching()


@cache
def source_stamp() -> tuple[str, int]:
    """Hash of the package's sources, in the form of a numba cache stamp."""
    digest = hashlib.sha256()
    root = Path(__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        text = path.read_bytes()
        if b"compiled" in text:
            digest.update(path.relative_to(root).as_posix().encode() + text)
    return digest.hexdigest(), 0


def is_on_disk(dispatcher: Any) -> bool:
    """Whether the cache holds a compiled form of a function; True where nobody can tell."""
    entries: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    try:
        return len(entries._load_index()) > 0
    except (AttributeError, OSError):  # another numba, no cache, or nothing is compiled at all
        return True


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile on first use, cached on disk, without the interpreter lock.

    Fused multiply-adds are allowed, reordering is not: the bits of a result do not depend on how
    loops are cut into tiles. Division by zero gives infinity, as in numpy.
    """
    return _compiled(function, {"contract", "nsz"})


def compiled_plainly(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same with every operation rounded by itself, so that numpy can give the same bits."""
    return _compiled(function, False)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """A part of every compiled function that calls it, and compiled as that one is."""
    return _compiled(function, False, inline="always")


def in_python(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function as it is written, for arrays of numpy."""
    written: Callable[..., Any] = getattr(function, "py_func", function)
    return written


def _compiled(
    function: Callable[..., Any], fastmath: set[str] | bool, **others: Any
) -> Callable[..., Any]:
    dispatcher = nb.njit(nogil=True, error_model="numpy", fastmath=fastmath, **others)(function)
    if hasattr(dispatcher, "enable_caching"):  # without NUMBA_DISABLE_JIT
        keep_on_disk(dispatcher, source_stamp())
    return dispatcher
