"""Fits after which the code that trains trees is compiled, for the tests that follow."""

from __future__ import annotations

FIRST_FITS = {"log": ("native",), "cost": ("native", "decomposition")}
"""Solvers by loss: each loss has a descent of its own, and one process compiles it."""


def first_fit(loss: str) -> None:
    from sklearn.datasets import load_iris

    from softsplit import SoftTreeClassifier

    X, y = load_iris(return_X_y=True)
    for solver in FIRST_FITS[loss]:
        # Whatever may be called is compiled before a time limit counts.
        tree = SoftTreeClassifier(loss=loss, solver=solver, n_starts=1, time_limit=600.0)
        tree.set_params(random_state=0).fit(X, y)
