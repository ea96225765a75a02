"""How compiled functions are made: flags, and a cache that never serves stale code.

Numba keeps compiled functions on disk and looks only at a function's own file to see whether it
has changed. Ours call one another across files, so a change in one file must reach all: the stamp
of every cache entry covers all source files of the package that compile something.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping
from functools import cache, update_wrapper
from inspect import signature
from pathlib import Path
from typing import Any

import numba as nb
from numba.extending import overload

from softsplit.support.interruption import is_interruption

logger = logging.getLogger(__name__)

try:
    from softsplit.support.compile_notice import listen
except ImportError:  # another numba, which has no such events
    logger.debug("there will be no word about compiling.")
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
    """Whether the cache holds a compiled form of a function; True where that cannot be told."""
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


def compiled_uncounted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a function that makes no arrays: references to those it is handed do not count.

    Numba counts them atomically wherever an array is handed on or sliced. For functions that are
    called once for each row of a small matrix that takes longer than what they do.
    """
    return _compiled(function, {"contract", "nsz"}, _nrt=False)


def compiled_plainly(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same with every operation rounded by itself, so that numpy can give the same bits."""
    return _compiled(function, False)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """A part of every compiled function that calls it, and compiled as that one is."""
    return _compiled(function, False, inline="always")


def compiled_by_type(
    implementations: Mapping[type, Callable[..., Any]],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A function for compiled callers whose code depends on the type of its first argument.

    That argument is a named tuple; the decorated function gives name, signature and documentation.
    Numba takes the implementation for the type at hand and compiles no other.
    """

    def decorate(declared: Callable[..., Any]) -> Callable[..., Any]:
        names = ", ".join(signature(declared).parameters)

        def chosen(first: Any, *others: Any) -> Any:  # where nothing is compiled
            return implementations[type(first)](first, *others)

        def choose(kind: Any) -> Callable[..., Any]:
            return _calling(implementations[kind.instance_class], names)

        stub = _calling(chosen, names)
        choose_with_names = _calling(lambda first, *_: choose(first), names)
        options: Any = _options({"contract", "nsz"})
        overload(stub, jit_options=options)(choose_with_names)
        return update_wrapper(stub, declared)

    return decorate


def _calling(function: Callable[..., Any], names: str) -> Callable[..., Any]:
    """A function of these parameters that hands them on: numba compares parameters by name."""
    space: dict[str, Any] = {"function": function}
    exec(f"def caller({names}):\n    return function({names})", space)
    caller: Callable[..., Any] = space["caller"]
    return caller


def from_python(make: Callable[[Any], Any], bundle: Any) -> Any:
    """What a compiled function makes of a bundle of arrays.

    Numba runs a little Python for it. An interruption in there comes out as another error.
    """
    try:
        return make(bundle)
    except SystemError as error:
        if is_interruption(error):
            raise KeyboardInterrupt from None
        raise


def in_python(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function as it is written, for arrays of numpy."""
    written: Callable[..., Any] = getattr(function, "py_func", function)
    return written


def _compiled(
    function: Callable[..., Any], fastmath: set[str] | bool, **others: Any
) -> Callable[..., Any]:
    dispatcher = nb.njit(**(_options(fastmath) | others))(function)
    if hasattr(dispatcher, "enable_caching"):  # without NUMBA_DISABLE_JIT
        keep_on_disk(dispatcher, source_stamp())
    return dispatcher


def _options(fastmath: set[str] | bool) -> dict[str, Any]:
    """Said of every function: numba would compile what is left open as the caller is."""
    return {
        "nogil": True, "error_model": "numpy", "fastmath": fastmath, "no_cfunc_wrapper": True,
        "_nrt": True,
    }  # fmt: skip
