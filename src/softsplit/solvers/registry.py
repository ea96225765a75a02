"""Solvers by name: that of the core, and those that options provide."""

from __future__ import annotations

from collections.abc import Callable, Collection

from softsplit.solvers.base import Solver
from softsplit.solvers.basin_hopping.solver import NativeSolver
from softsplit.support import options
from softsplit.support.messages import shown

SOLVERS: dict[str, Callable[[], Solver]] = {"native": NativeSolver}
"""Solvers of the core by name; ``options`` names further ones."""

SOLVER_PARTS = ("solve", "name", "start_rules", "rivals", "releases_gil", "zero_threshold")


def make_solver(solver: str | Solver, *, excluded: Collection[str] = ()) -> Solver:
    """The solver of that name, unless it is ``excluded``, or the solver object itself."""
    if isinstance(solver, str):
        known = [name for name in (*SOLVERS, *options.provided("solvers")) if name not in excluded]
        if solver not in known:
            raise ValueError(
                f"solver {solver!r} is unknown; choose one of {', '.join(map(repr, known))} or "
                "pass a solver object."
            )
        make = SOLVERS[solver] if solver in SOLVERS else options.load("solvers", solver)
        made: Solver = make()
        return made
    missing = [name for name in SOLVER_PARTS if not hasattr(solver, name)]
    if isinstance(solver, type):
        raise ValueError(f"solver must be an object, not a class; pass {solver.__name__}().")
    if missing:
        raise ValueError(
            f"solver must be a name or an object with {', '.join(missing)}, got {shown(solver)}."
        )
    return solver
