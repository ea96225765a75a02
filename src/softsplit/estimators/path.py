"""Choosing a strength: trees along a path of strengths, each warm-started from its neighbour."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from softsplit.estimators.classifier import SoftTreeClassifier
from softsplit.selection.strengths import PathScope, _default_grid, _given, _pairs, with_strengths
from softsplit.solvers import Solution
from softsplit.support.arguments import MOST_RUNS, positive_integer
from softsplit.support.convergence import CutShortWarning
from softsplit.support.interruption import never_lost
from softsplit.support.messages import shown
from softsplit.training.walk import walk


@dataclass(frozen=True)
class PathPoint:
    """One tree of a path."""

    local_strength: float
    global_strength: float
    solution: Solution
    classifier: SoftTreeClassifier

    @property
    def selected_features(self) -> NDArray[np.intp]:
        """Indices of the features in use."""
        features: NDArray[np.intp] = self.classifier.selected_features_
        return features

    def __repr__(self) -> str:
        return (
            f"PathPoint(local_strength={self.local_strength:.6g}, "
            f"global_strength={self.global_strength:.6g}, cost={self.solution.cost:.6g}, "
            f"n_features={len(self.selected_features)})"
        )


@dataclass(frozen=True)
class StrengthPathResult:
    """The trees along a path, from weak to strong; ``points[i].classifier`` is fitted."""

    points: tuple[PathPoint, ...]

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: int) -> PathPoint:
        return self.points[index]

    def __repr__(self) -> str:
        return f"StrengthPathResult of {len(self)} trees\n{self.to_frame().to_string()}"

    def to_frame(self) -> pd.DataFrame:
        """One row per point: strengths, objective, cost, sparsity, number of features."""
        return pd.DataFrame(
            {
                "local_strength": [p.local_strength for p in self.points],
                "global_strength": [p.global_strength for p in self.points],
                "objective": [p.solution.objective for p in self.points],
                "cost": [p.solution.cost for p in self.points],
                "local_sparsity": [p.classifier.local_sparsity_ for p in self.points],
                "global_sparsity": [p.classifier.global_sparsity_ for p in self.points],
                "n_features": [len(p.selected_features) for p in self.points],
                "status": [p.solution.status.name for p in self.points],
            }
        )


def strength_path(
    X: Any,
    y: Any,
    *,
    estimator: SoftTreeClassifier | None = None,
    strengths: Sequence[float] | Literal["paper"] | None = None,
    scope: PathScope = "global",
    n_points: int = 14,
    keep: int = 3,
    sample_weight: Any = None,
) -> StrengthPathResult:
    """Trees for a whole range of strengths, from weak to strong.

    The weakest strength is solved by multistart; every other one starts from the best trees of its
    neighbour, which is cheaper than separate fits and makes neighbouring trees alike.

    Parameters
    ----------
    X, y, sample_weight
        As in ``SoftTreeClassifier.fit``.
    estimator : SoftTreeClassifier, optional
        All other settings; its strength in the scope that is not walked stays as it is. With
        its ``verbose``, each point is shown as it is found.
    strengths : sequence of float or "paper", optional
        Strengths to visit; "paper" is 2^-8 .. 2^5. By default ``n_points`` from the strength of
        Proposition 1, at which the all-zero tree is stationary, down to a thousandth of it
        (or the paper's, where the class rates leave no such bound).
    scope : {"global", "local", "both"}
        Which strength is walked; "both" visits every pair of the grid.
    n_points : int
        Length of the default grid.
    keep : int
        Trees carried from one strength to the next.
    """
    if estimator is not None and not isinstance(estimator, SoftTreeClassifier):
        raise ValueError(f"estimator must be a SoftTreeClassifier, got {shown(estimator)}.")
    base = clone(estimator) if estimator is not None else SoftTreeClassifier()
    if base.penalty is None:
        raise ValueError("penalty=None has no strength to walk along; name a penalty.")
    if scope not in ("local", "global", "both"):
        raise ValueError(f"scope must be 'local', 'global' or 'both', got {shown(scope)}.")
    run = base._run_settings()
    problem = base._prepare(X, y, sample_weight)
    run = run._replace(solver=base._adapted(run.solver))
    given = _given(strengths)
    n_points = positive_integer("n_points", n_points, MOST_RUNS)
    keep = positive_integer("keep", keep, MOST_RUNS)
    run = base._made_ready(run)
    grid = _default_grid(problem, scope, n_points) if given is None else given
    points: list[PathPoint] = []
    pairs = _pairs(grid, scope, problem)
    wanted = sum(map(len, pairs))
    with never_lost(), base._watched(run.budget, wanted) as observer:
        for row in pairs:
            if points and run.budget.exhausted:
                break
            found = walk(
                [with_strengths(problem, *pair) for pair in row],
                run.solver,
                keep=keep,
                n_starts=run.n_starts,
                seed=run.seed,
                budget=run.budget,
                n_jobs=run.n_jobs,
                observer=observer,
            )
            points += [
                PathPoint(*pair, solution, base._fitted_with(*pair, solution, problem.samples))
                for pair, solution in zip(row, found, strict=False)
            ]
    if len(points) < wanted:
        interrupted = run.budget.cancel.requested
        reason = "interrupted" if interrupted else "the time limit was reached"
        said = f"{reason}; {len(points)} of {wanted} points are returned."
        warnings.warn(CutShortWarning("strength_path", said, interrupted), stacklevel=2)
    return StrengthPathResult(tuple(points))
