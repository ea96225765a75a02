"""Multistart descents on the expected cost, and basin hopping around the best trees.

Read in this order:

    run            descents on one problem, within a budget of time and iterations
    stages         what a run is made of: warm-up, race, approach, polish
    perturbations  ways to leave the basin of a tree
    search         basin hopping (Wales and Doye, 1997)
    solver         the solver: starts, stages, search, exact leaves
"""

from softsplit.solvers.basin_hopping.solver import BasinHoppingSolver

__all__ = ["BasinHoppingSolver"]
