"""Multistart descents on the expected cost, and basin hopping around the best trees."""

from softsplit.solvers.basin_hopping.solver import BasinHoppingSolver

__all__ = ["BasinHoppingSolver"]
