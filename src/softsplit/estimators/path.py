"""Trees along a path of strengths, and their held-out predictions for reports."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from softsplit.estimators.base import CutShortWarning, model_settings, training_run
from softsplit.estimators.classifier import SoftTreeClassifier, fitted_classifier
from softsplit.estimators.row_reading import validated_rows
from softsplit.estimators.training_rows import training_rows
from softsplit.formulations import formulation_of, settings
from softsplit.formulations.base import COUNT_FRACTIONS, LOCAL_PART, SLOPE_FRACTIONS, fraction_grid
from softsplit.selection import assessment
from softsplit.selection.assessment import Assessment, PathTrainer
from softsplit.selection.fold_paths import solve_fold_path
from softsplit.selection.strengths import (
    Pair,
    PathScope,
    bound_grid,
    given_grid,
    grid_pairs,
    price,
    priced,
    shares_of,
    strength_unit,
    strengths_at,
)
from softsplit.settings.checks import is_auto
from softsplit.solvers import Budget, Solution
from softsplit.support.arguments import MOST_RUNS, one_of, positive_integer
from softsplit.support.interruption import never_lost
from softsplit.support.messages import unfit
from softsplit.support.options import late
from softsplit.support.parallel import one_blas_thread
from softsplit.support.row_budgets import ROWS
from softsplit.training.preparation import Prepared, prepare
from softsplit.training.progressive_sampling import sample_sizes
from softsplit.training.regularisation_path import solve_each, solve_path
from softsplit.training.run import watched


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
        return self.classifier.selected_features_

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

    def _repr_html_(self) -> str:
        return late("softsplit.report.notebook", "path_html")(self)

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
    by: Literal["strength", "n_features"] = "strength",
    scope: PathScope = "global",
    n_points: int = 14,
    keep: int = 3,
    sample_weight: Any = None,
) -> StrengthPathResult:
    """Trees for a whole range of strengths, from weak to strong, or of numbers of features.

    With loss="log" trees of all strengths are taken from the path of each start, and the best few
    at each strength are finished; no start is begun in the second half of a time limit. With
    loss="cost", or class rates, the weakest strength is solved by multistart; every other one
    starts from the best trees of its neighbour. Either is cheaper than separate fits and makes
    neighbouring trees alike.

    Parameters
    ----------
    X, y, sample_weight
        As in ``SoftTreeClassifier.fit``.
    estimator : SoftTreeClassifier, optional
        All other settings; its strength in the scope that is not walked stays as it is, except
        that under "count" a local strength "auto" stays a quarter of the global one. With its
        ``verbose``, each point is shown as it is found.
    strengths : sequence of float or "paper", optional
        Strengths to visit; "paper" is 2^-8 .. 2^5. By default ``n_points`` from the strength of
        Proposition 1, at which the all-zero tree is stationary, down to a thousandth of it
        (or the paper's, where the class rates leave no such bound); with loss="log", parts of the
        loss of a tree that uses no feature, under "count" from 0.0008 to 0.3.
    by : {"strength", "n_features"}
        With "n_features", the best trees of at most ``n_points``, ..., 2, 1 features
        (docs/sizes.md), all at one strength: that of the estimator or, where it is "auto", the
        weakest of the default grid, so that the number decides. It needs the penalty "count".
    scope : {"global", "local", "both"}
        Which strength is walked; "both" visits every pair of the grid.
    n_points : int
        Length of the default grid, or the largest number of features.
    keep : int
        Trees carried from one strength to the next; of no meaning where each start has a path.
    """
    if estimator is not None and not isinstance(estimator, SoftTreeClassifier):
        raise unfit("estimator", estimator, "must be a SoftTreeClassifier")
    base = clone(estimator) if estimator is not None else SoftTreeClassifier()
    if base.penalty is None:
        raise ValueError("penalty=None has no strength to walk along; name a penalty.")
    if scope not in ("local", "global", "both"):
        raise unfit("scope", scope, "must be 'local', 'global' or 'both'")
    if one_of("by", by, ("strength", "n_features")) == "n_features" and strengths is not None:
        raise ValueError("by='n_features' takes no strengths; set those of the estimator.")
    settings.make_scale(base.scale, auto=True)
    with never_lost(), one_blas_thread(), watched(base.verbose, Budget()) as around:
        around.working("preparing the rows")
        return _walked(X, y, base, strengths, by, scope, n_points, keep, sample_weight)


def _walked(
    X: Any,
    y: Any,
    base: SoftTreeClassifier,
    strengths: Any,
    by: str,
    scope: PathScope,
    n_points: int,
    keep: int,
    sample_weight: Any,
) -> StrengthPathResult:
    """``strength_path`` with the settings of ``base``, after its arguments were checked."""
    # 1. The problem, and the strengths or numbers of features to visit.
    run = training_run(base)
    prepared = prepare(model_settings(base, X), training_rows(base, X, y, sample_weight))
    run = run.adapted(prepared, partial(validated_rows, base))
    given = given_grid(strengths)
    n_points = positive_integer("n_points", n_points, MOST_RUNS)
    keep = positive_integer("keep", keep, MOST_RUNS)
    counts = prepared.problem.penalties.counts
    many = prepared.problem if prepared.n_rows > ROWS.row_sums else None
    run = run.ready(many, smooth=not counts)
    grid = bound_grid(prepared.problem, scope, n_points) if given is None else given
    points: list[PathPoint] = []
    follows = LOCAL_PART if counts and is_auto(base.local_strength) else 0.0
    pairs = grid_pairs(grid, scope, prepared.problem, follows)
    if by == "n_features":
        one, sizes = _weak(base, prepared), _numbers_of_features(prepared, n_points)
        pairs = [[one] * len(sizes)]
    wanted = sum(map(len, pairs))
    # 2. Each row of the grid is a path, walked from weak to strong.
    with watched(base.verbose, run.budget, wanted) as observer:
        for row in run.budget.while_left(pairs, at_least=1):
            along = [prepared.with_strengths(*pair) for pair in row]
            if by == "n_features":
                along = [one.with_features(n) for one, n in zip(along, sizes, strict=True)]
            problems = [point.problem for point in along]
            solutions = solve_path(
                problems, run.solver, n_starts=run.n_starts, seed=run.seed, budget=run.budget,
                keep=keep, n_jobs=run.n_jobs, observer=observer,
            )  # fmt: skip
            zero = run.solver.zero_threshold
            points += [
                PathPoint(*pair, solution, fitted_classifier(base, point, solution, zero))
                for pair, point, solution in zip(row, along, solutions, strict=False)
            ]
    # 3. What a limit or Ctrl-C has cut short is said.
    unfinished = sum(point.solution.status.cut_short for point in points)
    if len(points) < wanted or unfinished:
        reason = "interrupted" if run.budget.stopped else "the time limit was reached"
        reason += f"; {len(points)} of {wanted} points are returned"
        reason += f", {unfinished} of them as far as they had come." if unfinished else "."
        warnings.warn(CutShortWarning("strength_path", reason, run.budget.stopped), stacklevel=3)
    return StrengthPathResult(tuple(points))


def _weak(base: SoftTreeClassifier, prepared: Prepared) -> Pair:
    """Return the strengths of an estimator; for "auto", the weakest that are usual."""
    local, global_ = prepared.problem.penalties.strengths
    if is_auto(base.global_strength):
        global_ = COUNT_FRACTIONS[0] * strength_unit(prepared.problem)
        local = LOCAL_PART * global_ if is_auto(base.local_strength) else local
    return local, global_


def _numbers_of_features(prepared: Prepared, most: int) -> list[int]:
    """Return the numbers of features of a path by size, the largest first."""
    problem = prepared.problem
    if not problem.penalties.counts:
        raise ValueError("by='n_features' needs loss='log' and penalty='count'.")
    known = (
        problem.n_features if problem.feature_groups is None else len(problem.feature_groups.sizes)
    )
    least = 1 if problem.rules is None else max(1, len(problem.rules.required))
    return [*range(max(least, min(most, known, problem.limits.features or known)), least - 1, -1)]


class PathTrees(NamedTuple):
    """Trees along a path of strengths.

    Attributes
    ----------
    trees : list of SoftTreeClassifier
        Fitted, from weak to strong; fewer than asked for if the budget ran out.
    repeatable : bool
        Whether ``SoftTreeClassifier.fit`` with the parameters of one of them gives the same tree.
    """

    trees: list[SoftTreeClassifier]
    repeatable: bool


def path_trees(
    base: SoftTreeClassifier,
    X: Any,
    y: Any,
    fractions: Sequence[float],
    budget: Budget,
    *,
    n_starts: int | None = None,
    n_jobs: int | None = None,
) -> PathTrees:
    """Return fitted trees at each strength; strengths are rounded to the digits that are printed.

    By elimination on up to some thousand rows the tree of each strength is that of a fit from
    ``n_starts`` starts (default: those of ``base``); else each strength starts from the tree of the
    one before.
    """
    base = clone(base)
    run = replace(training_run(base), budget=budget)
    with one_blas_thread():
        # 1. The problem at each strength, rounded as it is printed.
        prepared = prepare(model_settings(base), training_rows(base, X, y, None))
        run = run.adapted(prepared, partial(validated_rows, base))
        shares = shares_of(*prepared.problem.penalties.strengths)
        found_at = [strengths_at(prepared.problem, shares, fraction) for fraction in fractions]
        along = [prepared.with_strengths(*priced(shares, price(*pair))) for pair in found_at]
        problems = [one.problem for one in along]
        # 2. Trees of a fit of their own where that is as cheap; else each from the one before.
        repeatable = run.solver.follows(problems[0]) and not sample_sizes(problems[0], run.solver)
        if repeatable:
            base.set_params(n_starts=n_starts or base.n_starts)
            solutions = solve_each(
                problems, run.solver, n_starts=base.n_starts, seed=run.seed, budget=budget,
                n_jobs=n_jobs,
            )  # fmt: skip
        else:
            solutions = solve_fold_path(prepared, shares, fractions, run, tight=True)
    zero = run.solver.zero_threshold
    trees = [fitted_classifier(base, *pair, zero) for pair in zip(along, solutions, strict=False)]
    return PathTrees(trees, repeatable and len(trees) == len(fractions))


def assess(
    base: SoftTreeClassifier,
    X: Any,
    y: Any,
    fractions: Sequence[float],
    *,
    n_jobs: int | None = None,
    budget: Budget | None = None,
    **options: Any,
) -> Assessment:
    """Judge the trees of a path beside majority class, L1 logistic regression, CART and boosting.

    All are judged on the same rows; ``options`` are those of ``selection.assessment.assess``.
    """
    base = clone(base)
    run = replace(training_run(base), n_jobs=n_jobs, budget=budget or Budget())
    rows = training_rows(base, X, y, None)
    settings, check = model_settings(base), partial(validated_rows, base)
    shares = shares_of(*prepare(settings, rows).problem.penalties.strengths)
    trainer = PathTrainer(settings, rows, shares, fractions, run, check)
    return assessment.assess(trainer, **options)


def strengths_on(base: SoftTreeClassifier, X: Any, y: Any) -> tuple[dict[str, float], float]:
    """The strengths of an estimator on these rows, also where they are "auto".

    By the names of its parameters, and together as a fraction of the unit of the rows.
    """
    base = clone(base)
    problem = prepare(model_settings(base), training_rows(base, X, y, None)).problem
    local, global_ = problem.penalties.strengths
    named = {"local_strength": local, "global_strength": global_}
    return named, (local + global_) / strength_unit(problem)


def usual_fractions(base: SoftTreeClassifier, count: int) -> list[float]:
    """Strengths from weak to strong for a path of an estimator's trees."""
    settings = model_settings(base)
    penalty = formulation_of(settings.loss).resolved(settings, n_classes=2).penalty
    return [*fraction_grid(count, COUNT_FRACTIONS if penalty == "count" else SLOPE_FRACTIONS)]
