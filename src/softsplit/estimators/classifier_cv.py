"""The estimator that chooses a tree by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import check_scoring, get_scorer_names

from softsplit.estimators.chosen import ChosenTreeMixin
from softsplit.estimators.classifier import RunSettings, SoftTreeClassifier
from softsplit.selection.candidates import Search
from softsplit.selection.cross_validation import Judge, TrainingData, configured, settled, trees
from softsplit.selection.folds import make_splits, names_rows
from softsplit.selection.scoreboard import SELECTIONS, Candidate, Scoreboard
from softsplit.selection.strengths import SHARES, featureless_cost, strengths
from softsplit.solvers import Budget, Solver
from softsplit.support.all_or_nothing import all_or_nothing
from softsplit.support.arguments import MOST_RUNS, positive_integer, positive_number
from softsplit.support.arrays import FloatArray
from softsplit.support.convergence import CutShortWarning
from softsplit.support.interruption import never_lost
from softsplit.support.messages import shown
from softsplit.support.parallel import one_blas_thread
from softsplit.training import settings
from softsplit.training.multistart import NoFeasibleTreeError
from softsplit.tree.parameters import Topology

SMALLEST_FRACTION, LARGEST_FRACTION = 0.002, 0.25
"""Ends of the default grid: from a tree that is hardly penalised to one or two features."""

ROWS_PER_LEAF = 50
"""Beyond one level more than the classes need, trees are not made deeper on their own than leaves
this number of rows, on average."""

SEARCH_SHARE = 0.8
"""Part of a time limit that goes to the comparison; the rest is for the tree on all rows."""


class SoftTreeClassifierCV(ChosenTreeMixin, ClassifierMixin, BaseEstimator):
    """Soft tree whose depth, scaling, steepness and strength are chosen by cross-validation.

    Candidates are compared along paths of strengths that are walked from weak to strong on every
    fold, each tree started from the last one. One setting after the other is varied around the best
    so far (scaling, penalty, scope, depth for as long as deeper trees pay, steepness) at a few
    strengths; the best one or two candidates are then judged at all strengths. The tree that is
    kept is trained on all rows, from the trees that the chosen settings led to on the folds.

    Parameters
    ----------
    depths : "auto" or sequence of int, default="auto"
        Depths to choose from. "auto" begins with the smallest that has a leaf per class, goes one
        level further, and on while leaves hold 50 rows on average. After the second, a depth is
        tried only if the one before it was better than all others by more than one standard error.
    scales : sequence of {"minmax", "quantile", "standard", "none"}
        Scalings of the features; see ``SoftTreeClassifier``.
    steepnesses : sequence of float
        Values of gamma.
    penalties : sequence of str, default=("l0",)
    scopes : sequence of {"global", "local", "both"}, default=("global",)
        What the penalty is put on: features, single coefficients, or half on each.
    strengths : sequence of float, optional
        Strengths of the penalty for a tree on all rows; on a fold they are lowered in proportion to
        the cost there. By default ``n_strengths`` from 0.002 to 0.25 of the cost
        of a tree that uses no feature.
    n_strengths : int, default=8
    selection : {"one_se", "best"}, default="one_se"
        "best" takes the highest mean score; "one_se" the sparsest tree that is at most one standard
        error below it (both that of the best score and that of the difference over the folds).
        Sparser means fewer features, then less depth, then fewer nonzero coefficients a branch.
    scoring : str or callable, optional
        Any scikit-learn scorer; accuracy if not given. Sample weights are handed to it if it takes
        them.
    cv : int, splitter or iterable of splits, default=5
        A number means stratified shuffled folds, fewer if every class is smaller than that.
    cost_matrix, class_weight, min_class_rate, sharpness, exponent, offset, solver, tol
        As in ``SoftTreeClassifier``.
    n_starts : int, default=1
        Starts of each path.
    max_iter : int, optional
        Iterations of each descent; 200 if not given: more do not make the choice better.
    time_limit : float, optional
        Seconds for everything. What was compared by then decides; the last fifth is kept for the
        tree on all rows. Machine code is made or loaded before they count.
    n_jobs : int, optional
        Paths that are walked side by side. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
    verbose : int, default=0
        With 1 or more, a line on standard error for each candidate.

    Attributes
    ----------
    best_estimator_ : SoftTreeClassifier
        The tree on all rows; ``coef_``, ``intercept_``, ``selected_features_``, ``weights_``,
        ``thresholds_``, ``leaf_classes_``, ``local_sparsity_`` and ``global_sparsity_`` are its.
    best_params_ : dict
        Settings of ``SoftTreeClassifier`` that were chosen.
    best_index_ : int
        The row of ``cv_results_`` that was chosen.
    best_score_ : float
        Its mean score over the folds.
    cv_results_ : dict of arrays
        A row per candidate and strength, as in ``GridSearchCV``; give it to ``pandas.DataFrame``.
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        Only if X had column names that are all strings.
    n_splits_ : int
        Number of folds.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from softsplit import SoftTreeClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> chosen = SoftTreeClassifierCV(random_state=0).fit(X, y)
    >>> bool(chosen.score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        depths: Sequence[int] | str = "auto",
        scales: Sequence[str] = ("minmax", "quantile"),
        steepnesses: Sequence[float] = (512.0, 128.0),
        penalties: Sequence[str] = ("l0",),
        scopes: Sequence[str] = ("global",),
        strengths: Sequence[float] | None = None,
        n_strengths: int = 8,
        selection: str = "one_se",
        scoring: Any = None,
        cv: Any = 5,
        sharpness: float = 5.0,
        exponent: float = 0.5,
        offset: float = 1e-5,
        cost_matrix: ArrayLike | None = None,
        class_weight: Any = None,
        min_class_rate: Any = 0.1,
        solver: str | Solver = "native",
        n_starts: int = 1,
        max_iter: int | None = None,
        tol: float = 1e-6,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.depths = depths
        self.scales = scales
        self.steepnesses = steepnesses
        self.penalties = penalties
        self.scopes = scopes
        self.strengths = strengths
        self.n_strengths = n_strengths
        self.selection = selection
        self.scoring = scoring
        self.cv = cv
        self.sharpness = sharpness
        self.exponent = exponent
        self.offset = offset
        self.cost_matrix = cost_matrix
        self.class_weight = class_weight
        self.min_class_rate = min_class_rate
        self.solver = solver
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.tol = tol
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Compare candidates on the folds of X and y, and train the chosen one on all rows."""
        with never_lost(), all_or_nothing(self):
            self._fit(X, y, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        axes = self._axes()
        base = self._base(axes)
        run = base._run_settings()
        whole = base._prepare(X, y, sample_weight)
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(base, name):
                setattr(self, name, getattr(base, name))
            elif hasattr(self, name):  # other rows, of an earlier fit, had names
                delattr(self, name)
        axes["depth"] = self._depths(len(self.classes_), whole.samples.n_rows)
        unit = featureless_cost(whole)
        fractions = self._fractions(unit)
        judge = self._judge(base, X, y, sample_weight, run)
        axes["scale"] = _different_scales(axes["scale"], judge.data.X)
        run, judge = base._made_ready(run), replace(judge, run=base._made_ready(judge.run))
        self.n_splits_ = len(judge.splits)
        with base._watched(run.budget) as observer, one_blas_thread():
            search = Search(judge, Scoreboard(self.n_splits_), fractions, observer)
            search.run(axes)
            chosen = self._choose(search, axes)
            budget = self._refit_budget(run.budget)
            try:
                self._refit(*chosen, search, (X, y, sample_weight), budget)
            except KeyboardInterrupt:  # outside the solver, which sees to it itself
                if search.judge.run.budget.cancel.requested:
                    raise  # the second one: it is to end now
                budget.cancel.requested = True
                self._refit(*chosen, search, (X, y, sample_weight), budget)

    def _axes(self) -> dict[str, Sequence[Any]]:
        """Values of the settings to choose from, checked; depths come later, with the classes."""
        if not isinstance(self.selection, str) or self.selection not in SELECTIONS:
            raise ValueError(f"selection must be 'one_se' or 'best', got {shown(self.selection)}.")
        scales = _values("scales", self.scales)
        penalties = _values("penalties", self.penalties)
        scopes = _values("scopes", self.scopes)
        for scale in scales:
            settings.make_scale(scale)
        for penalty in penalties:
            if penalty is None or penalty not in settings.PENALTIES:
                raise ValueError(
                    f"penalties holds {shown(penalty)}, which has no strength to choose."
                )
        for scope in scopes:
            if scope not in SHARES:
                raise ValueError(
                    f"scopes must be of 'global', 'local', 'both', got {shown(scope)}."
                )
        gammas = [settings.make_steepness(s) for s in _values("steepnesses", self.steepnesses)]
        return {
            "scale": scales,
            "depth": (),
            "steepness": gammas,
            "penalty": penalties,
            "scope": scopes,
        }

    def _depths(self, n_classes: int, n_rows: int) -> list[int]:
        smallest = Topology.for_classes(n_classes).depth
        if not isinstance(self.depths, str):
            depths = sorted({positive_integer("depths", d) for d in _values("depths", self.depths)})
            if depths[0] < smallest:
                raise ValueError(
                    f"depths holds {depths[0]}, but {n_classes} classes need depth {smallest} at "
                    "least: each class needs a leaf."
                )
            return depths
        if self.depths != "auto":
            raise ValueError(
                f"depths must be 'auto' or a sequence of integers, got {shown(self.depths)}."
            )
        deepest = max(smallest + 1, int(np.log2(max(n_rows / ROWS_PER_LEAF, 1))))
        return list(range(smallest, deepest + 1))

    def _fractions(self, unit: float) -> tuple[float, ...]:
        """Strengths in units of the cost without features, in ascending order."""
        if self.strengths is None:
            count = positive_integer("n_strengths", self.n_strengths, MOST_RUNS)
            return tuple(np.geomspace(SMALLEST_FRACTION, LARGEST_FRACTION, count).tolist())
        given = _values("strengths", self.strengths)
        values = sorted({positive_number("strengths", s, zero=True) for s in given})
        return tuple(value / unit for value in values)

    def _base(self, axes: dict[str, Sequence[Any]]) -> SoftTreeClassifier:
        """A tree with all that is not chosen, and the first of what is."""
        return SoftTreeClassifier(
            scale=axes["scale"][0],
            steepness=axes["steepness"][0],
            penalty=axes["penalty"][0],
            sharpness=self.sharpness,
            exponent=self.exponent,
            offset=self.offset,
            cost_matrix=self.cost_matrix,
            class_weight=self.class_weight,
            min_class_rate=self.min_class_rate,
            solver=self.solver,
            n_starts=self.n_starts,
            max_iter=self.max_iter,
            tol=self.tol,
            time_limit=self.time_limit,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
            verbose=self.verbose,
        )

    def _judge(
        self, base: SoftTreeClassifier, X: Any, y: Any, sample_weight: Any, run: RunSettings
    ) -> Judge:
        checked, labels, weight = base._validate(X, y, sample_weight)
        if not names_rows(self.cv):
            counted = weight > 0  # rows that count nothing change no fold
            checked, labels, weight = checked[counted], labels[counted], weight[counted]
        data = TrainingData(checked, labels, weight, self.classes_, sample_weight is not None)
        scorer = self._scorer(base)
        limit = run.budget.time_limit
        if limit is not None:
            run = run._replace(budget=replace(run.budget, time_limit=SEARCH_SHARE * limit))
        return Judge(base, data, make_splits(self.cv, data.X, data.y, run.seed), scorer, run)

    def _scorer(self, base: SoftTreeClassifier) -> Any:
        scoring = self.scoring
        if scoring is None:
            return None
        name = scoring if isinstance(scoring, str) else ""
        if not callable(scoring) and name not in get_scorer_names():
            close = get_close_matches(name, get_scorer_names(), n=1)
            hint = f"did you mean {close[0]!r}?" if close else "try 'balanced_accuracy'."
            raise ValueError(
                f"scoring must be None, a callable or the name of a scorer of scikit-learn, got "
                f"{shown(scoring)}; {hint}"
            )
        return check_scoring(base, scoring=scoring)

    def _choose(self, search: Search, axes: dict[str, Sequence[Any]]) -> tuple[Candidate, float]:
        """The chosen candidate and strength; sets what is told about the choice."""
        board, budget = search.board, search.judge.run.budget
        if not board.marks and budget.cancel.requested:
            raise KeyboardInterrupt
        self.cv_results_ = board.table()
        if budget.exhausted:
            interrupted = budget.cancel.requested
            reason = "interrupted" if interrupted else "the time limit was reached"
            outcome = f"the choice is among the {len(board.marks)} trees that were compared by then"
            if not board.marks:
                outcome = "nothing was compared, and the first settings are used; raise time_limit"
            said = f"{reason}; {outcome}."
            warnings.warn(CutShortWarning("SoftTreeClassifierCV", said, interrupted), stacklevel=4)
        if not board.marks and not budget.exhausted:
            raise NoFeasibleTreeError(
                "no candidate met the class rates on any fold; lower min_class_rate, or add depths."
            )
        if not board.marks:
            self.best_index_, self.best_score_ = -1, float("nan")
            first = Candidate(**{name: values[0] for name, values in axes.items()})
            return first, search.fractions[len(search.fractions) // 2]
        if not np.isfinite(board.mean(board.best())):
            raise ValueError(
                f"scoring {shown(self.scoring)} gave no number on any fold; choose another scorer."
            )
        chosen = board.chosen("best" if self.selection == "best" else "one_se")
        self.best_index_ = list(board.marks).index(chosen)
        self.best_score_ = board.mean(chosen)
        part = f"strength {chosen[1]:.3g} of the cost without features"
        search.tell(f"chosen: {chosen[0].label}, {part}", chosen)
        return chosen

    def _refit_budget(self, whole: Budget) -> Budget:
        """A budget of its own: an interrupted comparison still ends with a tree."""
        limit, left = self.time_limit, None
        if limit is not None:
            left = max(limit - whole.elapsed, (1 - SEARCH_SHARE) * limit)
        return Budget(whole.max_iter, whole.tol, left)

    def _refit(
        self,
        candidate: Candidate,
        fraction: float,
        search: Search,
        rows: tuple[Any, Any, Any],
        budget: Budget,
    ) -> None:
        """Train the chosen tree on all rows, from the trees that the folds ended with.

        They are why it was chosen; a start of its own might end in another optimum.
        """
        run = search.judge.run._replace(budget=budget)
        model = configured(search.judge.base, candidate)
        problem = model._prepare(*rows)
        starts = [
            tree
            for tree in search.board.trees((candidate, fraction))
            if tree.leaf_classes.shape[0] == len(self.classes_)  # a fold may lack a class
        ]
        if starts:
            found = settled(model, problem, candidate, fraction, starts, run)
        else:
            found = trees(model, problem, candidate, [fraction], run)[0]
        local, overall = strengths(candidate.scope, fraction * featureless_cost(problem))
        self.best_estimator_ = model._fitted_with(local, overall, found, problem.samples)
        self.best_params_ = {
            "scale": candidate.scale,
            "depth": candidate.depth,
            "steepness": candidate.steepness,
            "penalty": candidate.penalty,
            "local_strength": local,
            "global_strength": overall,
        }
        if budget.exhausted and not search.judge.run.budget.exhausted:  # else it has been said
            interrupted = budget.cancel.requested
            reason = "interrupted" if interrupted else "the time limit was reached"
            said = (
                f"{reason} while the chosen tree was trained on all rows; the best so far is kept."
            )
            warnings.warn(CutShortWarning("SoftTreeClassifierCV", said, interrupted), stacklevel=4)


def _different_scales(scales: Sequence[str], X: FloatArray) -> Sequence[str]:
    """Leaves out "quantile" where it does what "minmax" does: no column has three values."""
    if not {"minmax", "quantile"} <= set(scales):
        return scales
    if not np.all((X.min(axis=0) == X) | (X.max(axis=0) == X)):
        return scales
    return [scale for scale in scales if scale != "quantile"]


def _values(name: str, given: Any) -> list[Any]:
    """A nonempty list, each value once."""
    if isinstance(given, str) or not np.iterable(given):
        raise ValueError(f"{name} must be a sequence, got {shown(given)}.")
    try:
        values = list(dict.fromkeys(given))
    except TypeError:  # a list or an array in a place of one value
        raise ValueError(f"{name} must be a flat sequence, got {shown(given)}.") from None
    if not values:
        raise ValueError(f"{name} is empty; name at least one value.")
    return values
