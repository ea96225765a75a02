"""Solvers of the training problem: what they promise, and the ones there are."""

from __future__ import annotations

from collections.abc import Callable

from softsplit.solvers.base import Budget, Solution, Solver, Start, Status
from softsplit.solvers.decomposition.nodes import NodeDecomposition
from softsplit.solvers.ipopt.solver import IpoptSolver
from softsplit.solvers.native.solver import NativeSolver
from softsplit.solvers.registry import WHOLE_TREE_SOLVERS, make_solver

SOLVERS: dict[str, Callable[[], Solver]] = {
    **WHOLE_TREE_SOLVERS,
    "decomposition": NodeDecomposition,
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
