"""The scikit-learn estimator: validate, scale, train, store."""

from __future__ import annotations

import time
import warnings
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from softsplit.engines.compiled import CompiledRows
from softsplit.engines.samples import Samples
from softsplit.estimators.fitted import FittedTreeMixin
from softsplit.problem.problem import TrainingProblem
from softsplit.reading.summary import FeatureSummary
from softsplit.solvers import Budget, Solution, Solver, Status
from softsplit.solvers.decomposition import NodeDecomposition
from softsplit.support.all_or_nothing import all_or_nothing
from softsplit.support.arguments import MOST_RUNS, drawn_seed, positive_integer, positive_number
from softsplit.support.arrays import FloatArray
from softsplit.support.convergence import CutShortWarning
from softsplit.support.inputs import (
    made_floats,
    refuse_infinite,
    refuse_masked,
    refuse_mixed_labels,
    refuse_text,
)
from softsplit.support.interruption import never_lost
from softsplit.training import settings
from softsplit.training.multistart import NoFeasibleTreeError, hop, multistart
from softsplit.training.observer import Observer
from softsplit.training.warm_up import make_ready, warm_up_samples
from softsplit.tree.scaling import Scaling, fit_scaling, scaled_rows


class RunSettings(NamedTuple):
    """How to train, apart from what."""

    solver: Solver
    n_starts: int
    n_jobs: int | None
    seed: int
    budget: Budget


class SoftTreeClassifier(FittedTreeMixin, ClassifierMixin, BaseEstimator):
    """Sparse multivariate randomized classification tree.

    At branch t a sample goes left with probability F(steepness * (x . a_t / p - mu_t)), F the
    logistic function; each leaf carries a class. Training minimises the expected
    misclassification cost plus sparsity penalties under a minimum rate of correct
    classification for every class.

    Parameters
    ----------
    depth : int or "auto", default="auto"
        Depth of the tree; "auto" is the smallest depth with a leaf per class.
    penalty : {"l1", "l0", "power", "inverse_power", "log"} or None, default="l0"
        What is summed over coefficients (local) and over features (global): their size, or a
        concave function that comes close to counting the nonzero ones.
    local_strength, global_strength : float, default=0.0
        Strength of the penalty on single coefficients, and on features across the tree.
    sharpness : float, default=5.0
        alpha of the "l0" penalty 1 - exp(-alpha u).
    exponent, offset : float, default=0.5 and 1e-5
        q and epsilon of "power" (u + epsilon)^q, "inverse_power" and "log".
    steepness : float, default=512.0
        gamma: how sharply a split decides.
    cost_matrix : array of shape (n_classes, n_classes), optional
        Cost of calling a sample of class (row) another class (column); 0.5 for every error if
        not given.
    class_weight : dict or "balanced", optional
        Factors on the costs of each class. Costs below a millionth of the dearest count as zero.
    min_class_rate : float, sequence or dict, default=0.1
        Least expected share of each class that must be classified correctly.
    solver : str or solver object, default="native"
        "native", "ipopt" or "ipopt-explicit" (the last two need ``softsplit[ipopt]``), or
        "decomposition", which trains a few nodes at a time: ``NodeDecomposition(...)``.
    n_starts : int, default=10
        Starts; the tree with the lowest objective is kept. The native solver then searches
        around it, which may lower the objective further.
    max_iter : int, optional
        Iterations per start; the solver's default if not given.
    tol : float, default=1e-6
        Tolerance of the first-order conditions.
    time_limit : float, optional
        Seconds for all starts together. Machine code is made or loaded before they count.
    scale : {"minmax", "quantile", "standard", "none"}, bool or None, default="minmax"
        How features are scaled inside ``fit``. "minmax" maps their range to [0, 1]; "standard"
        maps mean -+ 3 standard deviations there, so that far values do not squeeze the others;
        "quantile" maps each value to its rank among the training values, which cuts skewed
        features finely wherever the data are (values outside the training range count as its
        ends). "none" takes X as it is; thresholds and weights are confined to [-1, 1] all the
        same, and ``steepness`` counts per scaled unit. True is "minmax", False and None "none".
    n_jobs : int, optional
        Starts that run side by side. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
    verbose : int, default=0
        With 1 or more, progress on standard error: a line for each start as it ends, and in a
        terminal or notebook a live line with what runs now, the time gone, and the time left
        under a ``time_limit``. Nothing else depends on it. Whatever it is, each start is logged
        at level INFO of the logger "softsplit".

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        Only if X had column names that are all strings.
    weights_ : array of shape (n_features, n_branches)
    thresholds_ : array of shape (n_branches,)
    leaf_classes_ : array of shape (n_classes, n_leaves)
        The tree in the units the solver saw, in heap order: the children of branch t are 2t + 1
        (left) and 2t + 2; leaves from left to right.
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
        The kept run with its status and first-order residuals.
    starts_ : list of Solution
        One per start; ``solution_`` may be better than the best of them.
    local_sparsity_, global_sparsity_ : float
        Percentage of zero coefficients, and of features that no split uses.
    selected_features_ : array of int
        Indices of the features in use.
    feature_importances_ : array of shape (n_features_in_,)
        How much each feature moves the answers on the training rows, as shares of one: the change
        of class probabilities if a split were replaced by a coin, divided among its features by
        |weight| * spread. The formula is in ``softsplit.reading.importance``.
    n_iter_ : int
        Iterations of the kept run.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from softsplit import SoftTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = SoftTreeClassifier(global_strength=1.0, random_state=0).fit(X, y)
    >>> bool(tree.score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        depth: int | str = "auto",
        penalty: str | None = "l0",
        local_strength: float = 0.0,
        global_strength: float = 0.0,
        sharpness: float = 5.0,
        exponent: float = 0.5,
        offset: float = 1e-5,
        steepness: float = 512.0,
        cost_matrix: ArrayLike | None = None,
        class_weight: Any = None,
        min_class_rate: Any = 0.1,
        solver: str | Solver = "native",
        n_starts: int = 10,
        max_iter: int | None = None,
        tol: float = 1e-6,
        time_limit: float | None = None,
        scale: str | bool | None = "minmax",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.depth = depth
        self.penalty = penalty
        self.local_strength = local_strength
        self.global_strength = global_strength
        self.sharpness = sharpness
        self.exponent = exponent
        self.offset = offset
        self.steepness = steepness
        self.cost_matrix = cost_matrix
        self.class_weight = class_weight
        self.min_class_rate = min_class_rate
        self.solver = solver
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.tol = tol
        self.time_limit = time_limit
        self.scale = scale
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on X (n_samples, n_features) and labels y (n_samples,).

        Samples of weight zero are the same as absent ones.
        """
        with never_lost(), all_or_nothing(self):
            run = self._run_settings()
            problem = self._prepare(X, y, sample_weight)
            run = self._made_ready(run)
            run = run._replace(solver=self._adapted(run.solver))
            with self._watched(run.budget) as observer:
                self.starts_ = multistart(
                    problem,
                    run.solver,
                    n_starts=run.n_starts,
                    seed=run.seed,
                    budget=run.budget,
                    n_jobs=run.n_jobs,
                    observer=observer,
                )
                best = self._search(problem, run, observer)
            try:
                self._store(best, run.solver.zero_threshold, problem.samples)
            except KeyboardInterrupt:  # the tree is there; what is told of it takes a moment
                run.budget.cancel.requested = True
                self._store(best, run.solver.zero_threshold, problem.samples)
            self._warn(run.budget)
        return self

    def _watched(self, budget: Budget, n_points: int = 0) -> AbstractContextManager[Observer]:
        """Whoever looks on while a fit, or a path of ``n_points``, runs."""
        if not settings.make_verbose(self.verbose):
            return nullcontext(Observer())
        from softsplit.training.progress import (
            ConsoleProgress,  # with Rich, which others need not load
        )

        return ConsoleProgress(budget, n_points)

    def _run_settings(self) -> RunSettings:
        """Everything about how to train, checked before any work is done; its clock runs."""
        settings.make_scale(self.scale)
        settings.make_verbose(self.verbose)
        solver = settings.make_solver(self.solver)
        if self._budget().time_limit is not None:
            warm_up_samples()
        return RunSettings(
            solver=solver,
            n_starts=positive_integer("n_starts", self.n_starts, MOST_RUNS),
            n_jobs=settings.make_jobs(self.n_jobs),
            seed=drawn_seed(self.random_state),
            budget=self._budget(),
        )

    def _made_ready(self, run: RunSettings) -> RunSettings:
        """The settings of a run whose code is compiled; its clock has not counted that.

        To be called when all input is known to be sound: on a new installation it takes a while.
        """
        began = time.perf_counter()
        make_ready(run.solver, timed=run.budget.time_limit is not None)
        spent = time.perf_counter() - began
        return run._replace(budget=replace(run.budget, began=run.budget.began + spent))

    def _adapted(self, solver: Solver) -> Solver:
        """The solver with any rows of the user's that it looks at scaled and coded."""
        if not isinstance(solver, NodeDecomposition):
            return solver
        return solver.adapted(self._other_rows, self.classes_)

    def _other_rows(self, X: Any) -> FloatArray:
        """Rows that need not be training rows, in the units of the splits."""
        return scaled_rows(self.scaling_, self._check(X))

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> TrainingProblem:
        """Validate and scale; the training problem of these parameters."""
        X, labels, weight = self._validate(X, y, sample_weight)
        return self._prepare_checked(X, labels, weight)

    def _prepare_checked(
        self, X: FloatArray, labels: NDArray[np.int64], weight: FloatArray
    ) -> TrainingProblem:
        """The same for validated rows, whose labels are positions in ``classes_``."""
        self.scaling_ = self._fitted_scaling(X, weight)
        problem = self._problem(X, labels, weight)
        self._summary = FeatureSummary.of(X, weight, problem.samples.mean)
        return problem

    def _fitted_scaling(self, X: FloatArray, weight: FloatArray) -> Scaling:
        """The scaling for the rows of positive weight."""
        counted = weight > 0
        if not np.all(counted):
            X, weight = X[counted], weight[counted]
        return fit_scaling(settings.make_scale(self.scale), X, weight)

    def _fitted_with(
        self, local: float, overall: float, found: Solution, samples: Samples | None = None
    ) -> Self:
        """A fitted copy that holds ``found``, for prepared estimators.

        Without the training rows it has no ``feature_importances_``.
        """
        copy = clone(self).set_params(local_strength=local, global_strength=overall)
        for name in ("classes_", "n_features_in_", "feature_names_in_", "scaling_", "_summary"):
            if hasattr(self, name):
                setattr(copy, name, getattr(self, name))
        copy.starts_ = [found]
        copy._store(found, settings.make_solver(self.solver).zero_threshold, samples)
        return copy

    def _budget(self) -> Budget:
        limit = self.time_limit
        return Budget(
            max_iter=None if self.max_iter is None else positive_integer("max_iter", self.max_iter),
            tol=positive_number("tol", self.tol),
            time_limit=None if limit is None else positive_number("time_limit", limit),
        )

    def _validate(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[FloatArray, NDArray[np.int64], FloatArray]:
        """Checked X, class indices and weights; sets classes_."""
        refuse_text(X)
        refuse_masked("y", y)
        with made_floats():
            # Single precision stays as it is: training makes the only copy in double precision,
            # of the scaled rows.
            X, y = validate_data(
                self, X, y, dtype=[np.float64, np.float32], order="C", ensure_all_finite=False
            )
        refuse_infinite(X, getattr(self, "feature_names_in_", None))
        refuse_mixed_labels(y)
        check_classification_targets(y)
        weight = settings.make_weights(
            _check_sample_weight(
                settings.make_numbers("sample_weight", sample_weight),
                X,
                dtype=np.float64,
                ensure_non_negative=True,
            )
        )
        self.classes_ = np.unique(y[weight > 0])
        if len(self.classes_) < 2:
            raise ValueError(
                f"y holds {'one class' if len(self.classes_) else 'no class'} of positive weight; "
                "a classifier needs samples of at least two classes."
            )
        # Rows of zero weight may carry labels that are no class; their index is never used.
        labels = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
        return X, labels, weight

    def _problem(
        self, X: FloatArray, labels: NDArray[np.int64], weight: FloatArray
    ) -> TrainingProblem:
        samples = Samples.from_arrays(
            X, labels, len(self.classes_), weight, self.scaling_.transform
        )
        return TrainingProblem(
            rows=CompiledRows(samples),
            topology=settings.make_topology(self.depth, len(self.classes_)),
            loss=settings.make_loss(
                self.cost_matrix, self.class_weight, self.classes_, samples.class_totals
            ),
            penalties=settings.make_penalties(
                self.penalty,
                self.local_strength,
                self.global_strength,
                sharpness=self.sharpness,
                exponent=self.exponent,
                offset=self.offset,
            ),
            minimum_rates=settings.make_rates(self.min_class_rate, self.classes_),
            steepness=settings.make_steepness(self.steepness),
        )

    def _search(self, problem: TrainingProblem, run: RunSettings, observer: Observer) -> Solution:
        """The best tree, after a search around the best starts."""
        try:
            return hop(
                problem,
                run.solver,
                self.starts_,
                seed=run.seed,
                budget=run.budget,
                observer=observer,
            )
        except NoFeasibleTreeError as error:
            if run.budget.exhausted:
                raise
            raise _name_rates(error, problem, self.starts_, self.classes_) from None

    def _warn(self, budget: Budget) -> None:
        """Say what kept the fit from ending by itself."""
        cut = self.solution_.status in (Status.MAX_ITER, Status.TIME_LIMIT)
        made = len(self.starts_)
        if budget.cancel.requested:
            message = f"interrupted; the best of {made} starts so far is kept"
        elif made < self.n_starts:
            message = f"{Status.TIME_LIMIT.value}; {made} of {self.n_starts} starts were made"
        elif cut:
            message = self.solution_.status.value
        else:
            return
        said = CutShortWarning("SoftTreeClassifier", f"{message}.", budget.cancel.requested)
        warnings.warn(said, stacklevel=3)

    def _check(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        refuse_text(X)
        with made_floats():
            # Single precision stays as it is: whoever computes makes doubles of a few rows.
            checked: FloatArray = validate_data(
                self, X, dtype=[np.float64, np.float32], reset=False, ensure_all_finite=False
            )
        refuse_infinite(checked, getattr(self, "feature_names_in_", None))
        return checked


def _name_rates(
    error: NoFeasibleTreeError,
    problem: TrainingProblem,
    solutions: list[Solution],
    classes: NDArray[Any],
) -> ValueError:
    """Say which class's rate was out of reach, if that is what failed."""
    closest = min(solutions, key=lambda solution: solution.violation)
    rates = problem.rates(closest.parameters)
    worst = int(np.argmax(problem.minimum_rates - rates))
    if problem.minimum_rates[worst] <= rates[worst]:
        return error
    return NoFeasibleTreeError(
        f"no start met min_class_rate {problem.minimum_rates[worst]:g} for class "
        f"{classes.tolist()[worst]!r} (the closest reached {rates[worst]:.3g}); lower "
        "min_class_rate, or raise depth or n_starts."
    )
