"""How compiled functions are declared: what they are compiled with, and for whom.

A declaration costs nothing. Numba, which takes half a second to load, is loaded where a function is
called for the first time (machine_code.py): who asks about a few rows never waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, update_wrapper
from inspect import signature
from threading import RLock
from typing import Any

from softsplit.support.interruption import is_interruption

_one_at_a_time = RLock()


class Compiled:
    """A function that is compiled when it is first called, for the types that it is called with.

    Compiled functions that call it find numba's form of it by the attributes that numba looks for.

    Attributes
    ----------
    py_func : callable
        The function as it is written.
    shared : bool
        Whether Python and compiled functions call it alike.
    targetoptions : dict
        What numba is told of it.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        fastmath: set[str] | bool,
        shared: bool = False,
        **others: Any,
    ) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self.shared = shared
        self.targetoptions = options(fastmath) | others

    def __call__(self, *arguments: Any) -> Any:
        return self.dispatcher(*arguments)

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's form for Python, with its compiled signatures."""
        from softsplit.support.machine_code import dispatcher_of

        with _one_at_a_time:
            known, part = vars(self).get("dispatcher"), self.part if self.shared else None
            return known or dispatcher_of(self.py_func, self.targetoptions, part)

    @cached_property
    def part(self) -> Any:
        """Numba's form for other compiled functions; None where it is the same."""
        from softsplit.support.machine_code import part_of

        with _one_at_a_time:
            return vars(self).get("part") or part_of(self.py_func, self.targetoptions)

    @property
    def _numba_type_(self) -> Any:
        return (self.part or self.dispatcher)._numba_type_

    def __reduce__(self) -> str:
        name: str = self.py_func.__qualname__  # pickled by name, as functions are
        return name


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile on first use, cached on disk, without the interpreter lock.

    Fused multiply-adds are allowed, reordering is not: the bits of a result do not depend on how
    loops are cut into tiles. Division by zero gives infinity, as in numpy.
    """
    return Compiled(function, {"contract", "nsz"})


def shared(function: Callable[..., Any]) -> Callable[..., Any]:
    """``compiled``, of functions that compiled functions call and Python too.

    Both have the same translation. Without it there would be two, which take twice the time.
    """
    return Compiled(function, {"contract", "nsz"}, shared=True)


def compiled_uncounted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a function that makes no arrays: references to those it is handed do not count.

    Numba counts them atomically wherever an array is handed on or sliced. For functions that are
    called once for each row of a small matrix that takes longer than what they do.
    """
    return Compiled(function, {"contract", "nsz"}, _nrt=False)


def shared_uncounted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for one that Python calls too."""
    return Compiled(function, {"contract", "nsz"}, shared=True, _nrt=False)


def compiled_sums(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for loops that add up: numbers may be added side by side, in an order of their own.

    That order follows from the length of the loop alone.
    """
    return Compiled(function, {"contract", "nsz", "reassoc"}, _nrt=False)


def compiled_plainly(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same with every operation rounded by itself, so that numpy can give the same bits."""
    return Compiled(function, False)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """A part of every compiled function that calls it, and compiled as that one is."""
    return Compiled(function, False, inline="always")


def compiled_by_type(
    implementations: Mapping[type, Callable[..., Any]], *, makes_arrays: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A function for compiled callers whose code depends on the type of its first argument.

    That argument is a named tuple; the decorated function gives name, signature and documentation.
    Numba takes the implementation for the type at hand and compiles no other. References are
    counted by those that make arrays, and in between only where such an array is returned.
    """

    def decorate(declared: Callable[..., Any]) -> Callable[..., Any]:
        from numba.extending import overload

        from softsplit.support.machine_code import PART

        names = ", ".join(signature(declared).parameters)

        def chosen(first: Any, *others: Any) -> Any:  # where nothing is compiled
            return implementations[type(first)](first, *others)

        def choose(kind: Any) -> Callable[..., Any]:
            return _calling(implementations[kind.instance_class], names)

        stub = _calling(chosen, names)
        choose_with_names = _calling(lambda first, *_: choose(first), names)
        told: Any = PART | options({"contract", "nsz"}) | {"_nrt": makes_arrays}
        overload(stub, jit_options=told)(choose_with_names)
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


def options(fastmath: set[str] | bool) -> dict[str, Any]:
    """Those of every function: numba would compile what is left open as the caller is."""
    return {
        "nogil": True, "error_model": "numpy", "fastmath": fastmath, "no_cfunc_wrapper": True,
        "_nrt": True,
    }  # fmt: skip
