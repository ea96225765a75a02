"""Fits after which the code that trains trees is compiled, for the tests that follow."""

from __future__ import annotations

FIRST_FITS = (
    (
        {"loss": "log", "time_limit": 600.0},
        {"loss": "cost", "solver": "decomposition"},
    ),
    ({"loss": "cost", "time_limit": 600.0},),
)
"""Settings for each of two processes, which compile about as long as one another.

With a time limit all that may be called is compiled, as no clock counts before that.
"""


def first_fits(number: int) -> None:
    """The fits of one of the processes."""
    from sklearn.datasets import load_iris

    from softsplit import SoftTreeClassifier

    X, y = load_iris(return_X_y=True)
    for settings in FIRST_FITS[number]:
        SoftTreeClassifier(**settings, n_starts=1, random_state=0).fit(X, y)
