"""The `njit` options every compiled function uses, and where its machine code is kept.

A declaration costs nothing. Numba, which takes half a second to load, is imported when a compiled
function is called for the first time: predictions for a few rows never wait for it.

Beyond numba's public interface this module uses

- a compiler pipeline that optimises a function once, together with all it calls (``pipelines``),
- files with checksums in place of numba's cache files (``CheckedFiles``),
- options without documentation (``_nrt``, ``no_cfunc_wrapper``).

In a version of numba that is not known each of these is left out: the functions are then those of
plain ``njit(cache=True)``, which compile longer and give the same results.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, cached_property, partial, update_wrapper
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

from softsplit.support.messages import announce

KNOWN_NUMBA = ((0, 60), (0, 68))
"""First and last version of numba whose compiler pipeline is as ``pipelines`` expects it."""

PUBLIC_OPTIONS = {"nogil", "error_model", "fastmath", "inline"}
"""Documented options of ``njit``; all others are passed on if this numba knows them."""

_dispatcher_lock = RLock()


@cache
def can_compile() -> bool:
    """Whether numba is installed; whoever only predicts may do without it."""
    return find_spec("numba") is not None


# --- declarations -----------------------------------------------------------------------------


class Compiled:
    """A function that is compiled when it is first called, for the types of its arguments.

    Compiled functions that call it find numba's form of it in ``_numba_type_``.

    Attributes
    ----------
    py_func : callable
        The Python function.
    targetoptions : dict
        The options of ``njit``.
    """

    def __init__(
        self, function: Callable[..., Any], fastmath: set[str] | bool, **others: Any
    ) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self.targetoptions = options(fastmath) | others

    def __call__(self, *arguments: Any) -> Any:
        return self.dispatcher(*arguments)

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's dispatcher for calls from Python."""
        with _dispatcher_lock:  # threads that come to it together share one
            return vars(self).get("dispatcher") or _make_dispatcher(self)

    @cached_property
    def part(self) -> Any:
        """Numba's dispatcher for calls from compiled functions."""
        with _dispatcher_lock:
            return vars(self).get("part") or _make_part(self)

    @property
    def _numba_type_(self) -> Any:
        return self.part._numba_type_

    def __reduce__(self) -> str:
        return self.py_func.__qualname__  # pickled by name, as functions are


def options(fastmath: set[str] | bool) -> dict[str, Any]:
    """Return the ``njit`` options of every function; none is left to be inherited from a caller."""
    return {
        "nogil": True, "error_model": "numpy", "fastmath": fastmath, "no_cfunc_wrapper": True,
        "_nrt": True,
    }  # fmt: skip


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile on first use, cache on disk, release the interpreter lock.

    LLVM may contract multiplications and additions into fused ones, but not reorder sums, so the
    bits of a result do not depend on the length of tiles. Division by zero gives infinity, as in
    numpy.
    """
    return Compiled(function, {"contract", "nsz"})


def compiled_uncounted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that allocates no arrays, without reference counts.

    Numba counts references atomically wherever an array is passed or sliced. In functions that are
    called once per row of a small matrix the counting takes longer than the work.
    """
    return Compiled(function, {"contract", "nsz"}, _nrt=False)


def compiled_sums(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop that adds up and may be vectorised: LLVM may reorder its sums.

    The order depends only on the length of the loop.
    """
    return Compiled(function, {"contract", "nsz", "reassoc"}, _nrt=False)


def compiled_plainly(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile with every operation rounded by itself, so that numpy gives the same bits."""
    return Compiled(function, False)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Inline a function into each compiled caller; the options of the caller apply."""
    return Compiled(function, False, inline="always")


def compiled_by_type(
    implementations: Mapping[type, Callable[..., Any]],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Overload a function on the type of its first argument, a named tuple.

    The decorated function supplies name, parameters and documentation. Numba compiles only the
    implementation for the type at hand.
    """

    def decorate(declared: Callable[..., Any]) -> Callable[..., Any]:
        from numba.extending import overload

        def by_type(first: Any, *others: Any) -> Any:  # in Python, with NUMBA_DISABLE_JIT
            return implementations[type(first)](first, *others)

        def choose(first: Any, *others: Any) -> Callable[..., Any]:
            return in_python(implementations[first.instance_class])

        jit_options: Any = pipelines().part | _known(options({"contract", "nsz"}))
        overload(by_type, jit_options=jit_options, strict=False)(choose)
        return update_wrapper(by_type, declared)

    return decorate


def in_python(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the Python function behind a compiled one."""
    return getattr(function, "py_func", function)


# --- dispatchers ------------------------------------------------------------------------------


def _make_dispatcher(function: Compiled) -> Any:
    """Return numba's dispatcher for calls from Python."""
    import numba

    jit_options = pipelines().whole | _known(function.targetoptions)
    dispatcher: Any = numba.njit(**jit_options)(function.py_func)
    if hasattr(dispatcher, "enable_caching"):  # not with NUMBA_DISABLE_JIT
        keep_on_disk(dispatcher, source_stamp())
    return dispatcher


def _make_part(function: Compiled) -> Any:
    """Return numba's dispatcher for calls from compiled functions.

    Literal arguments, such as a 0, count as any other number of their type: numba would translate
    the function once for each literal. Without a pipeline of its own a part is a whole.
    """
    if not pipelines().part:
        return function.dispatcher
    import numba
    from numba.core.types import unliteral

    part: Any = numba.njit(**pipelines().part, **_known(function.targetoptions))(function.py_func)
    if hasattr(part, "get_call_template"):  # not with NUMBA_DISABLE_JIT
        chosen = part.get_call_template
        part.get_call_template = lambda args, kws: chosen(tuple(map(unliteral, args)), kws)
    return part


def _known(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that this numba knows."""
    try:
        from numba.core.options import DefaultOptions as Known
    except ImportError:
        Known = object  # type: ignore[misc,assignment]
    return {n: v for n, v in given.items() if n in PUBLIC_OPTIONS or hasattr(Known, n)}


# --- pipelines --------------------------------------------------------------------------------


class Pipelines(NamedTuple):
    """Options of ``njit`` that name a compiler pipeline; empty for numba's own.

    Attributes
    ----------
    part : dict
        For functions that compiled functions call.
    whole : dict
        For functions that Python calls.
    """

    part: dict[str, Any]
    whole: dict[str, Any]


@cache
def pipelines() -> Pipelines:
    """Return pipelines that optimise each function once, or numba's own if that is not possible.

    Numba optimises every function by itself, and again within each function that calls it: what
    lies four calls deep is optimised five times. With these pipelines a function that compiled
    functions call (a *part*) stops at its translation to LLVM, and only a function that Python
    calls (a *whole*) is optimised, once, linked with its parts.
    """
    try:
        return _linked_pipelines()
    except (ImportError, AttributeError, TypeError):
        return Pipelines({}, {})


def _linked_pipelines() -> Pipelines:
    """Derive both pipelines from numba's; an error if its internals are not as expected."""
    import numba
    from numba import _dynfunc  # type: ignore[attr-defined]
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler
    from numba.core.compiler_machinery import register_pass
    from numba.core.environment import lookup_environment
    from numba.core.typed_passes import NativeLowering

    first, last = KNOWN_NUMBA
    if not first <= numba.version_info.short <= last:
        raise ImportError(f"the compiler of numba {numba.__version__} is not known.")

    class PartLibrary(JITCodeLibrary):
        """LLVM code of a part and of all it calls; the whole it is linked into optimises it."""

        def _optimize_functions(self, ll_module: Any) -> None:
            ll_module.data_layout = self._codegen._data_layout

        def _optimize_final_module(self) -> None:
            pass

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

    @register_pass(mutates_CFG=True, analysis_only=False)
    class PartLowering(NativeLowering):
        """Translate a function to LLVM and make it known to compiled callers only."""

        _name = "softsplit_part_lowering"

        def run_pass(self, state: Any) -> bool:
            state.library = PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            state.flags.no_compile = state.flags.no_cpython_wrapper = True
            super().run_pass(state)
            made, library, name = state["cr"], state.library, state.func_id.func_name
            place = _dynfunc.make_function(
                made.fndesc.lookup_module(), name, "", 0, made.env, (library,)
            )
            state.targetctx.insert_user_function(place, made.fndesc, [library])
            state["cr"] = made._replace(cfunc=place)
            return True

    @register_pass(mutates_CFG=True, analysis_only=False)
    class WholeLowering(NativeLowering):
        """Compile a function with its parts, and hand each part its environment of constants."""

        _name = "softsplit_whole_lowering"

        def run_pass(self, state: Any) -> bool:
            super().run_pass(state)
            codegen = state.targetctx.codegen()
            for variable in state.library._final_module.global_variables:
                known = lookup_environment(variable.name)
                if known is not None:
                    codegen.set_env(variable.name, known)
            return True

    def compiler(lowering: type[NativeLowering]) -> type[Compiler]:
        class Replaced(Compiler):
            def define_pipelines(self) -> list[Any]:
                made: list[Any] = super().define_pipelines()
                for pipeline in made:
                    pipeline.passes = [
                        (lowering if step is NativeLowering else step, why)
                        for step, why in pipeline.passes
                    ]
                    pipeline.finalize()
                return made

        return Replaced

    return Pipelines(
        {"pipeline_class": compiler(PartLowering)}, {"pipeline_class": compiler(WholeLowering)}
    )


# --- files ------------------------------------------------------------------------------------


@cache
def source_stamp() -> tuple[str, int]:
    """Return a hash of the sources that compile something, as a stamp of numba's cache.

    Numba only looks at a function's own file to see whether it has changed. Compiled functions
    call one another across files, so a change in one file must invalidate all, and so does a change
    of the named tuples that they take. Other files do not count.
    """
    digest = hashlib.sha256()
    root = Path(__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        text = path.read_bytes()
        mathematics = path.relative_to(root).parts[0] in ("engines", "problem", "solvers", "tree")
        if b"support.compiling import" in text or (mathematics and b"NamedTuple" in text):
            digest.update(path.relative_to(root).as_posix().encode() + text)
    return digest.hexdigest(), 0


def keep_on_disk(dispatcher: Any, stamp: tuple[str, int]) -> None:
    """Load machine code of ``dispatcher`` from disk, and save what is compiled.

    Where nothing can be written, machine code serves only the process that compiled it.
    """
    try:
        dispatcher.enable_caching()
    except RuntimeError:  # numba finds no folder that it may write
        _warn_once("there is no folder for it")
        return
    with suppress(AttributeError):  # otherwise numba's own files serve
        cache = dispatcher._cache
        cache._cache_file = CheckedFiles(cache._cache_file, stamp)
        cache.save_overload = partial(_save_whole, cache.save_overload)


def _save_whole(save: Callable[[Any, Any], None], kinds: Any, overload: Any) -> None:
    """Save machine code, unless Ctrl-C fell where LLVM hands over its object file.

    An exception is dropped there (interruption.py), and without the file numba raises an error that
    has nothing to do with the interruption. The code itself is whole, and runs in this process.
    """
    if getattr(overload.library, "_compiled_object", b"") is not None:
        save(kinds, overload)


@cache
def _warn_once(reason: str) -> None:
    announce(
        f"compiled code cannot be kept on disk ({reason}), and every new process will compile "
        "anew; make room, or name a folder in NUMBA_CACHE_DIR."
    )


class CheckedFiles:
    """The cache files of one function, in the folder and under the names that numba chose.

    Numba pickles an index and the machine code of every function and trusts what it reads: it
    rebuilds the types in an index before it compares versions, and runs a truncated or changed
    file. Here each file begins with a hash of numba's version, the stamp of the sources and the
    content; a file whose hash differs is ignored, and the function is compiled anew.

    Numba calls ``load``, ``save`` and ``flush``.
    """

    def __init__(self, chosen: Any, stamp: tuple[str, int]) -> None:
        self.stamp = stamp
        self._version: str = chosen._version
        self._pickled: Callable[[Any], bytes] = chosen._dump
        self._index = Path(chosen._index_path)

    def load(self, key: Any) -> Any:
        """Return what ``save`` was given for a signature, or None."""
        name = self._load_index().get(key)
        return None if name is None else self._read(self._index.with_name(name))

    def save(self, key: Any, data: Any) -> None:
        """Save the machine code for one signature, in a file that is named after the signature.

        Numba numbers the files. Two processes that compile a function for different signatures at
        the same time would use the same number, and one would run the code of the other.
        """
        name = f"{self._index.stem}.{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.nbc"
        try:
            self._write(self._index.with_name(name), data)
            self._write(self._index, self._load_index() | {key: name})
        except OSError as error:
            _warn_once(error.strerror or "the disk cannot be written")

    def flush(self) -> None:
        """Forget all signatures."""
        self._write(self._index, {})

    def _load_index(self) -> dict[Any, str]:
        return self._read(self._index) or {}

    def _read(self, path: Path) -> Any:
        """Return the content of a file, or None if it is absent, stale or damaged."""
        try:
            stored = path.read_bytes()
        except OSError:
            return None
        n = hashlib.sha256().digest_size
        return pickle.loads(stored[n:]) if stored[:n] == self._digest(stored[n:]) else None

    def _write(self, path: Path, value: Any) -> None:
        """Replace a file as a whole: other processes may be reading it."""
        content = self._pickled(value)
        beside = path.with_name(f"{path.name}.tmp.{os.urandom(8).hex()}")
        try:
            beside.write_bytes(self._digest(content) + content)
            beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise

    def _digest(self, content: bytes) -> bytes:
        return hashlib.sha256(f"{self._version} {self.stamp}\n".encode() + content).digest()


def place_on_disk(function: Any) -> tuple[Path, str] | None:
    """Return where machine code is kept, and a key of versions, sources and processor.

    None if it is kept nowhere, or if numba's internals are not as expected.
    """
    try:
        import numba

        dispatcher = function.dispatcher
        folder = dispatcher.stats.cache_path
        machine = dispatcher.targetctx.codegen().magic_tuple()
    except AttributeError:
        return None
    key = f"{numba.__version__} {source_stamp()[0]} {machine}"
    return None if folder is None else (Path(folder), key)
