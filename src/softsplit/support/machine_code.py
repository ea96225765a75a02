"""Compiled functions by numba, in a cache that never serves stale code.

Numba keeps compiled functions on disk and looks only at a function's own file to see whether it
has changed. Ours call one another across files, so a change in one file must reach all: the stamp
of every cache entry covers all source files of the package that compile something.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache, update_wrapper
from inspect import signature
from pathlib import Path
from typing import Any

import numba as nb
from numba.core.types import unliteral

from softsplit.support.compile_notice import listen
from softsplit.support.turns import Turns

listen()

try:
    from softsplit.support.compile_cache import keep_on_disk
except ImportError:  # another numba, whose own files and narrower stamp serve

    def keep_on_disk(dispatcher: Any, stamp: tuple[str, int]) -> None:
        dispatcher.enable_caching()


try:
    from softsplit.support.compile_steps import PartCompiler, WholeCompiler
except ImportError:  # another numba: all functions are wholes
    PART: dict[str, Any] = {}
    WHOLE: dict[str, Any] = {}
else:
    PART, WHOLE = {"pipeline_class": PartCompiler}, {"pipeline_class": WholeCompiler}


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


def dispatcher_of(function: Callable[..., Any], options: dict[str, Any], part: Any = None) -> Any:
    """Numba's form of a function for Python; its machine code is kept on disk.

    Where there is a ``part`` it only calls that one, under the name of the function.
    """
    written = function if part is None else _calling(part, function)
    dispatcher = nb.njit(**WHOLE, **options)(written)
    if hasattr(dispatcher, "enable_caching"):  # without NUMBA_DISABLE_JIT
        keep_on_disk(dispatcher, source_stamp())
    return dispatcher


def _calling(part: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    names = ", ".join(signature(function).parameters)
    space: dict[str, Any] = {"part": part}
    exec(f"def caller({names}):\n    return part({names})", space)
    made: Callable[..., Any] = update_wrapper(space["caller"], function)
    place = function.__code__
    made.__code__ = made.__code__.replace(  # by which the file in the cache is named
        co_filename=place.co_filename, co_firstlineno=place.co_firstlineno
    )
    return made


def part_of(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Numba's form of a function for other compiled functions, where that is another one.

    Numbers that are written out where it is called, as a 0 may be, count as any others: numba would
    translate the function for each of them.
    """
    if not PART:
        return None
    part = nb.njit(**PART, **options)(function)
    if hasattr(part, "get_call_template"):  # without NUMBA_DISABLE_JIT
        chosen = part.get_call_template
        part.get_call_template = lambda args, kws: chosen(tuple(map(unliteral, args)), kws)
    return part


def turns(function: Any) -> Turns | None:
    """What is compiled on this machine, kept where a function is; None if that is nowhere."""
    dispatcher: Any = getattr(function, "dispatcher", None)
    folder = getattr(getattr(dispatcher, "stats", None), "cache_path", None)
    if folder is None:  # there is none, or nothing is compiled at all
        return None
    machine = dispatcher.targetctx.codegen().magic_tuple()
    return Turns(Path(folder), f"{nb.__version__} {source_stamp()[0]} {machine}")
