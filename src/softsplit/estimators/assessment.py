"""Trees along a path of strengths, to look at and to judge, from an estimator and its rows.

Strengths are given as fractions of a unit, the cost of the cheapest tree that uses no feature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from sklearn.base import clone

from softsplit.estimators.base import model_settings, training_rows, training_run
from softsplit.estimators.classifier import SoftTreeClassifier, fitted_classifier
from softsplit.estimators.fitted import validated_rows
from softsplit.formulations import formulation_of
from softsplit.formulations.base import COUNT_FRACTIONS, SLOPE_FRACTIONS, fraction_grid
from softsplit.selection import assessment
from softsplit.selection.assessment import Assessment, PathTrainer
from softsplit.selection.cross_validation import solve_fold_path
from softsplit.selection.strengths import shares_of, strength_unit, strengths_at
from softsplit.solvers import Budget
from softsplit.support.parallel import one_blas_thread
from softsplit.training.preparation import prepare


def path_trees(
    base: SoftTreeClassifier, X: Any, y: Any, fractions: Sequence[float], budget: Budget
) -> list[SoftTreeClassifier]:
    """Fitted trees at each strength, from weak to strong; fewer if the budget ran out."""
    base = clone(base)
    run = replace(training_run(base), budget=budget)
    with one_blas_thread():
        prepared = prepare(model_settings(base), training_rows(base, X, y, None))
        run = run.adapted(prepared, partial(validated_rows, base))
        shares = shares_of(*prepared.problem.penalties.strengths)
        found = solve_fold_path(prepared, shares, fractions, run, tight=True)
    pairs = [strengths_at(prepared.problem, shares, fraction) for fraction in fractions]
    return [
        fitted_classifier(base, prepared.with_strengths(*pair), solution, run.solver.zero_threshold)
        for pair, solution in zip(pairs, found, strict=False)
    ]


def assess(
    base: SoftTreeClassifier,
    X: Any,
    y: Any,
    fractions: Sequence[float],
    *,
    n_folds: int = 5,
    seed: int = 0,
    n_jobs: int | None = None,
    held_out: bool = False,
    most_trained: int | None = None,
    budget: Budget | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Assessment:
    """Judge the trees of a path beside majority class, L1 logistic regression, CART and boosting.

    All are judged on the same rows: in folds, or with ``held_out`` on a fifth. An interruption
    ends the work: what was judged by then is told.
    """
    base = clone(base)
    run = replace(training_run(base), n_jobs=n_jobs, budget=budget or Budget())
    rows = training_rows(base, X, y, None)
    settings, check = model_settings(base), partial(validated_rows, base)
    shares = shares_of(*prepare(settings, rows).problem.penalties.strengths)
    trainer = PathTrainer(settings, rows, shares, fractions, run, check)
    return assessment.assess(
        trainer, n_folds=n_folds, seed=seed, held_out=held_out, most_trained=most_trained, say=say
    )


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
