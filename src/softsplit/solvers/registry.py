"""Solvers by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from softsplit.ipopt.solver import IpoptSolver
from softsplit.solvers.base import Solver
from softsplit.solvers.basin_hopping.solver import NativeSolver
from softsplit.support.messages import shown

WHOLE_TREE_SOLVERS: dict[str, Callable[[], Solver]] = {
    "native": NativeSolver,
    "ipopt": lambda: IpoptSolver(strategy="substituted"),
    "ipopt-explicit": lambda: IpoptSolver(strategy="explicit"),
}
"""Those that move all variables at once, and can serve inside a decomposition."""


SOLVER_PARTS = ("solve", "name", "start_rules", "rivals", "releases_gil", "zero_threshold")


def make_solver(
    solver: str | Solver, known: Mapping[str, Callable[[], Solver]] = WHOLE_TREE_SOLVERS
) -> Solver:
    """The solver of that name, or the solver object itself."""
    if isinstance(solver, str):
        if solver not in known:
            raise ValueError(
                f"solver {solver!r} is unknown; choose one of {', '.join(map(repr, known))} or "
                "pass a solver object."
            )
        return known[solver]()
    missing = [name for name in SOLVER_PARTS if not hasattr(solver, name)]
    if isinstance(solver, type):
        raise ValueError(f"solver must be an object, not a class; pass {solver.__name__}().")
    if missing:
        raise ValueError(
            f"solver must be a name or an object with {', '.join(missing)}, got {shown(solver)}."
        )
    return solver
