"""The estimator that trains one tree with given parameters."""

from __future__ import annotations

import warnings
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
    taught_rows,
    training_run,
)
from softsplit.estimators.row_reading import validated_rows
from softsplit.formulations import settings
from softsplit.solvers import Budget, Solution
from softsplit.support.interruption import never_lost
from softsplit.support.parallel import one_blas_thread
from softsplit.training.preparation import Prepared, prepare
from softsplit.training.run import End, Outcome, train, watched


@dataclass(kw_only=True, eq=False, repr=False)
class SoftTreeClassifier(SoftTreeBase):
    """Sparse multivariate randomized classification tree.

    At branch t a sample goes left with probability F(steepness * (x . a_t / p - mu_t)), F the
    logistic function, and every leaf holds class probabilities. Training minimises the log-loss
    plus sparsity penalties. With ``loss="cost"`` the model is that of the paper: one class per
    leaf, the expected misclassification cost plus penalties, and a minimum rate of correct
    classification for every class. What "auto" means depends on the loss.

    Parameters
    ----------
    depth : int or "auto", default="auto"
        Depth of the tree. "auto" is the smallest with a leaf per class, and with loss "log" one
        more, up to depth six: branches that do not lower the objective are pruned.
    penalty : {"count", "l1", "l0", "power", "inverse_power", "log", "auto"} or None, default="auto"
        Penalty on coefficients (local) and on features (global): their number ("count"), their
        size ("l1"), or a concave approximation of the number. "auto" is "count" with loss "log"
        (with a solver that cannot count, such as "ipopt", it is "l0"), and the "l0" of the paper
        with loss "cost".
    local_strength, global_strength : float or "auto", default="auto"
        Strength of the penalty on single coefficients (local) and on features across the tree
        (global). "auto" is:
        - loss "log", global: 0.6 % of the log-loss of a tree without features (or of two even
          classes, if that is less). Beyond 1,000 rows it falls with the square root of their
          number. It is at least a quarter of log p + log(n) / 2, so that the best of p columns of
          noise does not enter a tree of n rows.
        - loss "log", local: a quarter of the global strength with the penalty "count", else 0.
        - loss "cost": 0 for both.
    sharpness : float, default=5.0
        alpha of the "l0" penalty 1 - exp(-alpha u).
    exponent, offset : float, default=0.5 and 1e-5
        q and epsilon of "power" (u + epsilon)^q, "inverse_power" and "log".
    steepness : float or "auto", default="auto"
        gamma of loss "cost", the slope of the splits; 512 for "auto". With loss "log" weights are
        unbounded and absorb it.
    cost_matrix : array of shape (n_classes, n_classes), optional
        Cost of predicting a class (column) for a sample of another class (row); 0.5 for every
        error if not given. With loss "log" it is not used in training; ``predict`` returns the
        class of least expected cost.
    decision : {"auto", "walk", "mixture"}, default="auto"
        How ``predict`` decides. "walk": yes or no at every printed question, then the class of the
        leaf, so that the tree can be followed by hand; questions and probabilities are rounded to
        the digits that are printed. "mixture": the most probable class, over all leaves. "auto" is
        "walk" with loss "log", and "mixture", the rule of the paper, with loss "cost".
    class_weight : dict or "balanced", optional
        Factors on the costs of each class, or on the weights of its rows with loss "log". Unlike
        ``sample_weight`` they do not act on scaling, knots of curves and imputed values, so that
        the same factors give another tree. Costs below a millionth of the largest are treated as
        zero.
    min_class_rate : float, sequence, dict or "auto", default="auto"
        Least expected share of each class that must be classified correctly; "auto" is 0.1 with
        loss "cost", and 0 with loss "log".
    constraints : RateConstraint or list of them, optional
        Least or largest expected rates of a class on chosen rows; ``min_class_rate`` is a case of
        it. See docs/requirements.md.
    fairness : Parity, EqualOpportunity, EqualizedOdds or list of them, optional
        Largest difference of the expected rates of a class between the groups of a column. The
        bound holds on the training rows, also for the decisions of the walk where such a walk is
        found (``tree_.rates`` says both). See docs/requirements.md.
    solver : str or solver object, default="native"
        "native", "ipopt" or "ipopt-explicit" (the last two need ``softsplit[ipopt]``), or
        "decomposition", which trains a few nodes at a time: ``NodeDecomposition(...)``.
    n_starts : int, default=10
        Number of starts; the tree with the lowest objective is kept. With loss "cost" the native
        solver then searches around the best ones by basin hopping (``effort``).
    max_iter : int, optional
        Iterations per start; the solver's default if not given.
    tol : float, default=1e-6
        Tolerance of the first-order conditions.
    time_limit : float, optional
        Seconds for all starts together. Compiling and loading code do not count.
    scale : {"minmax", "quantile", "standard", "none", "auto"}, bool or None, default="auto"
        How features are scaled inside ``fit``. "minmax" maps their range to [0, 1]; "standard"
        maps mean -+ 3 standard deviations there, so that outliers do not compress the others;
        "quantile" maps each value to its rank among the training values, which suits skewed
        features (values outside the training range are clipped). "none" leaves X unscaled; with
        loss "cost", thresholds and weights still lie in [-1, 1], and ``steepness`` is per unit of
        X. True is "minmax", False and
        None "none". "auto" is "standard" with loss "log", and "minmax" with loss "cost".
    n_jobs : int, optional
        Number of starts that run in parallel; with more than 20,000 rows (50,000 with loss "cost")
        the last descents use as many threads. If it is not given: all cores with more than 4,000
        rows, or where a start takes seconds; otherwise one. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
    verbose : int, default=0
        With 1 or more, show on standard error what runs now, how far it is and how long still: in
        a terminal a line that is rewritten, below a line for each start; in a notebook a bar;
        elsewhere a line every ten seconds. Each start is also logged at level INFO of the logger
        "softsplit".
    loss : "log", "cost" or a loss object, default="log"
        Training loss. "log" is the negative log-likelihood of the classes, "cost" the expected
        misclassification cost of the paper; an object must have the parts of
        ``softsplit.problem.loss.Loss``.
    engine : "memory" or callable, default="memory"
        Where the training rows are kept during training. "memory" is the memory of this process;
        a function of the rows returns another engine (``softsplit.engines.base.RowEngine``).
    ridge : float, default=1.0
        Factor of half the sum of squared weights, which is added to the log-loss. Weights are
        changes of log-odds per standard deviation of a feature.
    feature_types : dict, optional
        Types of columns of a table, by name or position, that override what ``fit`` infers:
        "number", "category", "ordered" or "ordered: low < mid < high", "date", "date: hour,
        weekday" or "date: since signup", "keep" for a column that it would drop (an identifier,
        free text), or "drop". See docs/tables.md.
    groups : sequence of sequences or False, optional
        Columns of X, by names or positions, that are selected together: the global penalty counts
        such a group as one feature, as it does all columns that a variable of a table becomes.
        With False every column of the problem is a feature of its own.
    max_features : int, optional
        Most columns of X that the tree may use; a group counts as one. With this and the next two
        the tree is the best one that was found within the limits, not a larger one that was cut:
        see docs/sizes.md. They need loss "log" with penalty "count"; strengths apply as usual, so
        that the tree may be smaller than the limits.
    max_terms : int, optional
        Most columns of X in one question, counted in the same way.
    max_questions : int, optional
        Most questions, which are branches that look at a column.
    required : sequence, optional
        Columns of X, by names or positions, that must be in the tree. They have no price in the
        penalty. See docs/requirements.md, also for the next three.
    forbidden_together : sequence of pairs, optional
        Pairs of columns of which one at most may be in the tree.
    at_most_one : sequence of sequences, optional
        Sets of columns of which one at most may be in the tree. To forbid a column altogether,
        leave it out of X or give it the type "drop" (``feature_types``).
    feature_costs : dict, optional
        What it costs to measure columns of X, by name or position, as a multiple of the price of an
        ordinary column: a column of cost c that all rows need counts as c features, in the
        objective and in a choice by cross-validation; of a cost above 1, what is above 1 counts by
        the share of the rows on whose way a question asks for the column. Columns that are not
        named cost 1; 0 is allowed. ``expected_cost`` tells what a case costs.
    curves : "auto", False or int, default="auto"
        Number of knots at which the effect of a number may bend: beside the column x a split may
        weigh max(x - knot, 0). Knots are rounded quantiles of the training rows;
        numbers of few values have none. All columns of a number count as one feature, each as a
        coefficient.
        "auto" is one knot, the median, and from 2,000 rows on three, the quartiles, with loss
        "log", the native solver and no quantile scaling; there are none otherwise, nor for wide
        sparse matrices and tensors. See docs/tables.md.
    monotone : mapping of columns to "+" or "-", optional
        Effects that must have a sign, as in ``{"arrears": "+", "income": "-"}``: all else equal,
        the probability of the second class never falls (rises) when the column rises, and nor
        does the predicted class, for all inputs. Of several classes, ``{"age": {"malignant":
        "+"}}`` names one, and ``{"age": "+"}`` takes them in the order of ``classes_``
        (first-order stochastic dominance). For numbers and ordered columns; see
        docs/requirements.md and ``check_monotone``.
    effort : {"fast", "balanced", "thorough"} or float, default="balanced"
        Work of the native solver as a multiple of the default: 0.2, 1 and 5 by name. With loss
        "cost" the search stops when the estimated chance of a better tree is below a threshold
        divided by ``effort``, so that with the same seed more effort never ends higher; with loss
        "log" every start compares ``effort`` times as many trees. ``solution_.search`` says how
        the search ended.
    device : str, optional
        "cuda" (or "cuda:1", ...) keeps the training rows on a GPU, "cpu" runs the same code without
        one; both need ``softsplit[gpu]``. Rows given in single precision stay so there. None is the
        compiled code of this process, unless X is a tensor on a GPU. See docs/gpu.md.

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

    depth: int | str = "auto"
    penalty: str | None = "auto"
    local_strength: float | str = "auto"
    global_strength: float | str = "auto"
    ridge: float = 1.0
    steepness: float | str = "auto"
    scale: str | bool | None = "auto"

    @property
    def alternatives(self) -> NoReturn:
        """Only a search has them: ``SoftTreeClassifierCV.alternatives``."""
        raise AttributeError(
            "a single fit compares no other trees: choose one with SoftTreeClassifierCV, whose "
            "alternatives() are trees about as good."
        )

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        targets: Any = None,
        sensitive: Any = None,
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
            around.working("preparing the rows")
            settings.make_scale(self.scale, auto=True)
            run = training_run(self)
            rows = self._rows(X, y, sample_weight, sensitive)[1]
            rows = rows if targets is None else taught_rows(rows, targets)
            prepared = prepare(model_settings(self, X), rows)
            around.working("loading numerical code")
            run = run.adapted(prepared, partial(validated_rows, self))
            run = run.ready(prepared.problem, smooth=not prepared.problem.penalties.counts)
            around.working("finishing the tree")
            with watched(self.verbose, run.budget) as observer:
                outcome = train(prepared, run, observer)
            kept = partial(keep, self, prepared, rows=rows)
            zero, stopped = run.solver.zero_threshold, run.budget.stopped
            with run.budget.interruptible():
                kept(outcome, zero, hurried=run.budget.exhausted)
            if run.budget.stopped and not stopped:  # the tree is there: keeping it takes a moment
                outcome = replace(outcome, end=End.INTERRUPTED)
                kept(outcome, zero, hurried=True)
            if outcome.warning:
                interrupted = outcome.end is End.INTERRUPTED
                said = CutShortWarning("SoftTreeClassifier", f"{outcome.warning}.", interrupted)
                warnings.warn(said, stacklevel=2)
        return self


def fitted_classifier(
    base: SoftTreeBase,
    prepared: Prepared,
    found: Solution,
    zero_threshold: float,
    *,
    importances: bool = True,
    hurried: bool = False,
) -> SoftTreeClassifier:
    """A fitted classifier that holds ``found``, with the other parameters of ``base``.

    ``importances`` and ``hurried`` as of ``Prepared.tree``.
    """
    names = SoftTreeClassifier().get_params(deep=False)
    given = {n: v for n, v in base.get_params(deep=False).items() if n in names}
    made = clone(SoftTreeClassifier(**{**given, **prepared.settings.parameters()}))
    outcome = Outcome.alone(found)
    keep(made, prepared, outcome, zero_threshold, importances=importances, hurried=hurried)
    return made
