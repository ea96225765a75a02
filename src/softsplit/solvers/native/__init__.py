"""Our own solver: compiled descents, and a search around the best trees."""

from softsplit.solvers.native.solver import NativeSolver

__all__ = ["NativeSolver"]
