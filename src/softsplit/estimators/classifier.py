"""The estimator that trains one tree with given parameters."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn, Self

from sklearn.base import clone

from softsplit.estimators.base import (
    CutShortWarning,
    SoftTreeBase,
    all_or_nothing,
    keep,
    model_settings,
    training_run,
)
from softsplit.estimators.row_reading import validated_rows
from softsplit.estimators.training_rows import taught_rows
from softsplit.formulations import settings
from softsplit.settings.parameter import documented
from softsplit.settings.table import CLASSIFIER, SingleTreeParameters
from softsplit.solvers import Budget, Solution
from softsplit.support.interruption import never_lost
from softsplit.support.parallel import one_blas_thread
from softsplit.training.preparation import Prepared, prepare
from softsplit.training.run import End, Outcome, train, watched


@documented(*CLASSIFIER)
@dataclass(kw_only=True, eq=False, repr=False)
class SoftTreeClassifier(SingleTreeParameters, SoftTreeBase):
    """Sparse multivariate randomized classification tree.

    At branch t a sample goes left with probability F(steepness * (x . a_t / p - mu_t)), F the
    logistic function, and every leaf holds class probabilities. Training minimises the log-loss
    plus sparsity penalties. With ``loss="cost"`` the model is that of the paper: one class per
    leaf, the expected misclassification cost plus penalties, and a minimum rate of correct
    classification for every class. What "auto" means depends on the loss.

    Parameters
    ----------
    **parameters
        Those of ``softsplit.settings.table``.

    Attributes
    ----------
    tree_ : TreeModel
        The tree with its scaling, classes and names, from which most attributes below are read.
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        Only if X had column names that are all strings.
    coding_ : Coding
        Only if X was more than plain numbers: its variables, and the columns that each became.
        ``weights_``, ``coef_`` and ``tree_`` speak of those columns, ``selected_features_`` and
        ``feature_importances_`` of the columns of X.
    screening_ : Screening
        Only if X was a wide sparse matrix: the columns that the tree was trained on, and what those
        outside would still change; see docs/tables.md.
    weights_ : array of shape (n_features, n_branches)
    thresholds_ : array of shape (n_branches,)
    leaf_classes_ : array of shape (n_classes, n_leaves)
        The tree in the units the solver saw, in heap order: the children of branch t are 2t + 1
        (left) and 2t + 2; leaves from left to right.
    leaf_distributions_ : array of shape (n_classes, n_leaves)
        Class shares in each leaf, of which ``predict_proba`` is a mixture: those of the training
        rows that reach it, with one row of the overall shares added. After training by likelihood
        ``leaf_classes_`` itself.
    coef_ : array of shape (n_branches, n_features)
    intercept_ : array of shape (n_branches,)
        The splits in original units: a sample goes left at branch t with probability
        F(steepness * (x . coef_[t] + intercept_[t])). With ``scale="quantile"`` x stands for the
        ranks of the features, ``scaling_.transform(X)``, numbers from 0 to 1.
    scaling_ : Scaling
        Features to scaled units (``transform``), and a scaled value of feature j back to its
        original unit (``to_original``).
    objective_ : float
    solution_ : Solution
        The kept run with its status and first-order residuals. Its ``search`` holds how many
        different trees were found, how often the kept one, and why the search stopped;
        ``print(tree.solution_.search)`` gives a sentence. It is None with many rows, where starts
        use samples.
    starts_ : list of Solution
        One per start; ``solution_`` may be better than the best of them.
    local_sparsity_, global_sparsity_ : float
        Percentage of zero coefficients, and of features that no split uses.
    selected_features_ : array of int
        Indices of the features in use.
    feature_importances_ : array of shape (n_features_in_,)
        How much each feature moves the answers on the training rows, as shares of one: the change
        of class probabilities if the probabilities at a split were replaced by their mean, divided
        among its features by |weight| * spread. The formula is in ``softsplit.fitted.importance``.
    n_iter_ : int
        Iterations of the kept run.
    end_ : str
        Why training ended: "complete", "interrupted", "time_limit" or "max_iter".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from softsplit import SoftTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = SoftTreeClassifier(random_state=0).fit(X, y)
    >>> bool(tree.score(X, y) > 0.9), len(tree.selected_features_)
    (True, 2)
    """

    @property
    def alternatives(self) -> NoReturn:
        """Only a search has them: ``SoftTreeClassifierCV.alternatives``."""
        raise AttributeError(
            "a single fit compares no other trees: choose one with SoftTreeClassifierCV, whose "
            "alternatives() are trees about as good."
        )

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, targets: Any = None, sensitive: Any = None
    ) -> Self:
        """Train on X (n_samples, n_features) and labels y (n_samples,).

        X is a matrix of numbers, or a table with text, categories, truth values, dates and missing
        values. Samples of weight zero are the same as absent ones. ``targets`` (n_samples,
        n_classes), if given, are class probabilities that the tree is trained to predict in place
        of the labels, those of another model say; a column for each class of y, in sorted order.
        ``sensitive`` holds columns that ``fairness`` and ``constraints`` name and that are no
        features: a table, or a single column.
        """
        with (
            never_lost(),
            all_or_nothing(self),
            one_blas_thread(),
            watched(self.verbose, Budget()) as around,
        ):
            # 1. Parameters and rows, and the problem that they state.
            around.working("preparing the rows")
            settings.make_scale(self.scale, auto=True)
            run = training_run(self)
            rows = self._rows(X, y, sample_weight, sensitive)[1]
            rows = rows if targets is None else taught_rows(rows, targets)
            prepared = prepare(model_settings(self, X), rows)
            # 2. Machine code, before the time of a limit counts; then training.
            around.working("loading numerical code")
            run = run.adapted(prepared, partial(validated_rows, self))
            run = run.ready(prepared.problem, smooth=not prepared.problem.penalties.counts)
            around.working("finishing the tree")
            with watched(self.verbose, run.budget) as observer:
                outcome = train(prepared, run, observer)
            # 3. The tree; Ctrl-C while it is made keeps it.
            kept = partial(keep, self, prepared, rows=rows, stop=run.budget.is_over)
            zero, stopped = run.solver.zero_threshold, run.budget.stopped
            with run.budget.interruptible():
                kept(outcome, zero)
            if run.budget.stopped and not stopped:  # the tree is there: keeping it takes a moment
                outcome = replace(outcome, end=End.INTERRUPTED)
                kept(outcome, zero)
            if outcome.warning:
                interrupted = outcome.end is End.INTERRUPTED
                reason = f"{outcome.warning}."
                warnings.warn(
                    CutShortWarning("SoftTreeClassifier", reason, interrupted), stacklevel=2
                )
        return self


def fitted_classifier(
    base: SoftTreeBase,
    prepared: Prepared,
    solution: Solution,
    zero_threshold: float,
    stop: Callable[[], bool] = lambda: False,
) -> SoftTreeClassifier:
    """A fitted classifier that holds ``solution``, with the other parameters of ``base``.

    Points are searched until ``stop`` says so.
    """
    names = SoftTreeClassifier().get_params(deep=False)
    given = {n: v for n, v in base.get_params(deep=False).items() if n in names}
    tree = clone(SoftTreeClassifier(**{**given, **prepared.settings.parameters()}))
    keep(tree, prepared, Outcome.alone(solution), zero_threshold, stop=stop)
    return tree
