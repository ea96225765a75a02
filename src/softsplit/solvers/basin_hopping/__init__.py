"""Our own solver: compiled descents, and a search around the best trees."""

from softsplit.solvers.basin_hopping.solver import NativeSolver

__all__ = ["NativeSolver"]
