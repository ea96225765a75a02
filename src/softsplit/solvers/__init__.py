"""Solvers of the training problem: what they promise, and the ones of the core."""

from __future__ import annotations

from softsplit.solvers.base import Budget, Solution, Solver, Start, Status
from softsplit.solvers.basin_hopping.solver import BasinHoppingSolver
from softsplit.solvers.elimination.solver import EliminationSolver
from softsplit.solvers.registry import make_solver

__all__ = [
    "BasinHoppingSolver",
    "Budget",
    "EliminationSolver",
    "Solution",
    "Solver",
    "Start",
    "Status",
    "make_solver",
]
