"""Solvers of the training problem: what they promise, and the ones there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from softsplit.ipopt.solver import IpoptSolver
from softsplit.solvers.base import Budget, Solution, Solver, Start, Status
from softsplit.solvers.basin_hopping.solver import NativeSolver
from softsplit.solvers.registry import WHOLE_TREE_SOLVERS, make_solver

if TYPE_CHECKING:
    from softsplit.decomposition.nodes import NodeDecomposition


def _decomposition() -> Solver:
    from softsplit.decomposition.nodes import NodeDecomposition

    return NodeDecomposition()


SOLVERS: dict[str, Callable[[], Solver]] = {
    **WHOLE_TREE_SOLVERS,
    "decomposition": _decomposition,
}
"""All solvers that an estimator knows by name."""

__all__ = [
    "SOLVERS",
    "Budget",
    "IpoptSolver",
    "NativeSolver",
    "NodeDecomposition",
    "Solution",
    "Solver",
    "Start",
    "Status",
    "make_solver",
]


def __getattr__(name: str) -> Any:
    """Load a decomposition when it is first used: it is an estimator of scikit-learn's kind."""
    if name != "NodeDecomposition":
        raise AttributeError(f"module 'softsplit.solvers' has no attribute {name!r}")
    from softsplit.decomposition.nodes import NodeDecomposition

    return NodeDecomposition
