"""Solvers by name: that of the core, and those that options provide."""

from __future__ import annotations

from collections.abc import Callable, Collection

from softsplit.solvers.base import Solver
from softsplit.solvers.basin_hopping.solver import BasinHoppingSolver
from softsplit.support import options
from softsplit.support.messages import unfit

SOLVERS: dict[str, Callable[[], Solver]] = {"native": BasinHoppingSolver}
"""Solvers of the core by name; ``options`` names further ones. Where the loss is known, its
formulation says which solver "native" is."""


def make_solver(solver: str | Solver, *, excluded: Collection[str] = ()) -> Solver:
    """Return the solver of that name, unless it is ``excluded``, or the solver object itself."""
    if isinstance(solver, str):
        known = [name for name in (*SOLVERS, *options.provided("solvers")) if name not in excluded]
        if solver not in known:
            raise ValueError(
                f"solver {solver!r} is unknown; choose one of {', '.join(map(repr, known))} or "
                "pass a solver object."
            )
        make = SOLVERS[solver] if solver in SOLVERS else options.load("solvers", solver)
        return make()
    if isinstance(solver, type):
        raise ValueError(f"solver must be an object, not a class; pass {solver.__name__}().")
    if not isinstance(solver, Solver):
        raise unfit(
            "solver",
            solver,
            "must be a name or an object of a subclass of softsplit.solvers.Solver",
        )
    return solver
