"""The tree of the chosen settings on all rows, and what the end of a choice is called."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from softsplit.estimators.base import CutShortWarning, profiled
from softsplit.estimators.classifier import fitted_classifier
from softsplit.estimators.row_reading import know_table
from softsplit.formulations.settings import SIZE_LIMITS
from softsplit.problem.size_limits import SizeLimits, tree_size
from softsplit.selection.candidates import CandidateSearch
from softsplit.selection.fold_paths import configured, refit_from, solve_fold_path
from softsplit.selection.rare_classes import prediction_costs
from softsplit.selection.scoreboard import Candidate, Key
from softsplit.selection.strengths import (
    GIVEN_DIGITS,
    PRINTED_DIGITS,
    SHARES,
    price,
    priced,
    strengths_at,
)
from softsplit.settings.checks import is_auto
from softsplit.solvers import Budget
from softsplit.training.best import NoFeasibleTreeError
from softsplit.training.preparation import Prepared, prepare
from softsplit.training.rows import Rows, TrainingRows
from softsplit.training.run import End, Run, decided, joined

# Part of a time limit that goes to the comparison; the rest is for the tree on all rows.
SEARCH_SHARE = 0.8

# Part that the tree on all rows gets even if the comparison took more than its own.
LEAST_SHARE = 0.05

# What the tree on all rows gets after Ctrl-C: the user waits, and the trees of the folds, from
# which it begins, are good already.
LAST_SECONDS = 0.25

# Part of the time of the tree on all rows in which factors of rare classes are compared.
DECISION_SHARE = 0.3


def search_budget(whole: Budget) -> Budget:
    """The part of the time that goes to the comparison; Ctrl-C ends both."""
    limit = whole.time_limit
    return whole if limit is None else replace(whole, time_limit=SEARCH_SHARE * limit)


def refit_budget(whole: Budget) -> Budget:
    """For the tree on all rows: an interrupted comparison still ends with one, at once."""
    left, limit = LAST_SECONDS if whole.stopped else None, whole.time_limit
    if limit is not None and not whole.stopped:
        left = max(limit - whole.elapsed, LEAST_SHARE * limit)
    return Budget(whole.max_iter, whole.tol, left)


def cut_short(what: str, budget: Budget, stacklevel: int) -> str:
    """Warn that a budget ended the choice; return the end. ``what`` follows the reason."""
    reason = "interrupted" if budget.stopped else "the time limit was reached"
    warning = CutShortWarning("SoftTreeClassifierCV", f"{reason}{what}", budget.stopped)
    warnings.warn(warning, stacklevel=stacklevel + 1)
    return (End.INTERRUPTED if budget.stopped else End.TIME_LIMIT).value


def compared_alone(search: CandidateSearch, rows: TrainingRows) -> Rows | None:
    """The rows that were compared, with their names, where they are not all; None where they are.

    Nor are they taken of tables that are sparse or elsewhere.
    """
    few = search.trainer.rows
    if type(rows) is not Rows or search.trainer.soft_targets is not None:
        return None
    if len(few.labels) >= np.count_nonzero(rows.weight):
        return None
    return replace(few, names=rows.names, coding=rows.coding)


def at_readable_strengths(
    prepared: Prepared, candidate: Candidate, fraction: float, given: bool
) -> tuple[Prepared, tuple[float, float]]:
    """The problem at readable strengths, and these; those that were ``given`` have more digits."""
    shares = SHARES[candidate.scope]
    strength = price(*strengths_at(prepared.problem, shares, fraction))
    local, global_ = priced(shares, strength, GIVEN_DIGITS if given else PRINTED_DIGITS)
    return prepared.with_strengths(local, global_), (local, global_)


def within_limits(estimator: Any) -> bool:
    """Whether the fitted tree of an estimator is within its limits of size."""
    tree = estimator.tree_
    coding = tree.table_coding
    asked = tree.parameters.weights if tree.walk is None else tree.walk.coefficients.T
    kept = np.zeros((len(coding.names), asked.shape[1]), dtype=bool)
    np.logical_or.at(kept, np.array(coding.places)[coding.homes], asked != 0)
    limits = SizeLimits(*(getattr(estimator, name) for name in SIZE_LIMITS))
    return limits.allow(tree_size(kept, None))


def train_chosen(
    estimator: Any, chosen: Key, search: CandidateSearch, rows: TrainingRows, run: Run
) -> None:
    """Train the chosen tree on all rows, from the trees that the folds ended with.

    They are why it was chosen; a start of its own might end in another optimum. After Ctrl-C in the
    comparison it is trained on the rows that were compared: of many, preparing all takes seconds.
    The fitted attributes of ``estimator``, a ``SoftTreeClassifierCV``, are set.
    """
    candidate, fraction = chosen
    stopped = search.trainer.run.budget.stopped  # the user waits
    few = compared_alone(search, rows) if stopped else None
    if few is not None:
        rows, search = few, replace(search, n_rows=0)
    # 1. What the trees of the folds say: costs that decide, scores for prediction sets, starts.
    folds = dict(sorted(search.board.folds.get(chosen, {}).items()))
    costs = _prediction_costs(estimator, candidate, folds, search, run.budget)
    held_out = None if stopped or not folds else search.trainer.held_out(candidate, folds, costs)
    fraction, trees = search.on_all_rows(candidate, fraction)
    if search.trainer.large or compared_alone(search, rows) is not None:
        search.trainer.memory.clear()
    # 2. All rows, with the probabilities of a teacher where one was chosen.
    soft_targets, estimator.targets_ = search.trainer.soft_targets, None
    if soft_targets is not None and candidate.teacher > 0:
        assert isinstance(rows, Rows)
        rows = soft_targets.taught(rows, candidate.teacher)
        estimator.targets_ = rows.targets
    settings = replace(search.trainer.settings, cost_matrix=costs)
    prepared = prepare(configured(settings, candidate), rows)
    prepared, starts = search.trainer.starts(prepared, trees)
    # 3. The tree.
    run, shares = run.adapted(prepared, search.trainer.check), SHARES[candidate.scope]
    if starts:
        solution = refit_from(starts, prepared, shares, fraction, run, grow=not stopped)
    else:
        solution = solve_fold_path(prepared, shares, [fraction], run)[0]
    given = estimator.strengths is not None
    prepared, strengths = at_readable_strengths(prepared, candidate, fraction, given)
    if not solution.status.usable and prepared.problem.rate_limits is not None:
        raise NoFeasibleTreeError(
            "no tree of the chosen settings meets the requirements on rates on all rows; widen "
            "a bound, or add depths."
        )
    solution = decided(prepared, joined(prepared, solution, run), run)
    # 4. Fitted attributes; what was given is part of the settings, though nothing was chosen there.
    tree = fitted_classifier(
        estimator, prepared, solution, run.solver.zero_threshold, run.budget.is_over
    )
    tree.tree_ = replace(profiled(tree.tree_, rows), held_out=held_out)
    estimator.best_estimator_, estimator.tree_ = tree, tree.tree_
    know_table(estimator, tree.tree_, named=prepared.named)
    if solution.screening is not None:
        estimator.screening_ = solution.screening
    names = ("class_weight", "min_class_rate", "constraints", "fairness")
    stated = {name: getattr(estimator, name) for name in names}
    stated = {name: v for name, v in stated.items() if v is not None and not is_auto(v)}
    estimator.best_params_ = candidate.parameters(*strengths) | stated
    if search.trainer.kinds:
        kinds = estimator.feature_types or {}
        estimator.best_params_["feature_types"] = {**kinds, **search.trainer.kinds}
    if candidate.formulation.decides_by_cost:
        estimator.best_params_["cost_matrix"] = costs
    if estimator.end_ == End.COMPLETE.value:
        estimator.end_ = tree.end_
    if run.budget.exhausted and not search.trainer.run.budget.exhausted:  # else it was said
        what = " while the chosen tree was trained on all rows; the best so far is kept."
        estimator.end_ = cut_short(what, run.budget, stacklevel=4)


def _prediction_costs(
    estimator: Any, candidate: Candidate, folds: Any, search: CandidateSearch, budget: Budget
) -> Any:
    """Costs that decide at prediction: those given, or such that rare classes are called.

    After Ctrl-C they are those given: the others take a second. Under a time limit they get a part
    of the ``budget`` of the tree on all rows.
    """
    chosen = candidate.formulation.decides_by_cost and estimator.rare_classes != "argmax"
    given = estimator.cost_matrix
    if given is not None or not chosen or not folds or search.trainer.run.budget.stopped:
        return given
    if budget.time_limit is not None:
        budget = replace(budget, time_limit=DECISION_SHARE * budget.time_limit)
    factors = search.trainer.decision_factors(candidate, folds, budget)
    return None if factors is None else prediction_costs(factors)
