"""Functions that compiled functions call: translated once, made into machine code with each caller.

Numba optimises every function by itself and turns it into machine code, and does so again, with all
that it calls, for each function that calls it: what lies four calls deep is worked on five times.
Here a function that is called by compiled code (a *part*) stops at numba's translation to LLVM;
only what Python calls (a *whole*) is optimised, once, together with its parts.

The steps of numba's compiler that are replaced are no public interface. They are the same in the
versions named here; with any other one, functions are compiled as numba does it.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import register_pass
from numba.core.environment import lookup_environment
from numba.core.typed_passes import NativeLowering

FIRST, LAST = (0, 60), (0, 68)
"""Versions of numba whose compiler is known."""

if not FIRST <= numba.version_info.short <= LAST:
    raise ImportError(f"the compiler of numba {numba.__version__} is not known.")


class PartLibrary(JITCodeLibrary):
    """The translation of a part and of all that it calls."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Done by the whole that this is linked into."""
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """The same."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class PartLowering(NativeLowering):
    """Translate a function, and let compiled callers know it; nobody else can call it."""

    _name = "softsplit_part_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = state.flags.no_cpython_wrapper = True
        super().run_pass(state)
        made = state["cr"]
        place = _dynfunc.make_function(
            made.fndesc.lookup_module(), state.func_id.func_name, "", 0, made.env, (state.library,)
        )
        state.targetctx.insert_user_function(place, made.fndesc, [state.library])
        state["cr"] = made._replace(cfunc=place)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class WholeLowering(NativeLowering):
    """Machine code of a function and its parts, each of which finds its constants."""

    _name = "softsplit_whole_lowering"

    def run_pass(self, state: Any) -> bool:
        super().run_pass(state)
        codegen = state.targetctx.codegen()
        for variable in state.library._final_module.global_variables:
            known = lookup_environment(variable.name)
            if known is not None:
                codegen.set_env(variable.name, known)
        return True


class PartCompiler(Compiler):
    """Of what compiled functions call."""

    def define_pipelines(self) -> list[Any]:
        return _with(PartLowering, super().define_pipelines())


class WholeCompiler(Compiler):
    """Of what Python calls."""

    def define_pipelines(self) -> list[Any]:
        return _with(WholeLowering, super().define_pipelines())


def _with(lowering: type[NativeLowering], pipelines: list[Any]) -> list[Any]:
    for pipeline in pipelines:
        pipeline.passes = [
            (lowering if step is NativeLowering else step, told) for step, told in pipeline.passes
        ]
        pipeline.finalize()
    return pipelines
