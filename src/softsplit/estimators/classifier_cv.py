"""The estimator that chooses a tree by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from softsplit.estimators.alternatives import LOG_LOSS, Alternative, Alternatives
from softsplit.estimators.base import SoftTreeBase, all_or_nothing, model_settings, training_run
from softsplit.estimators.chosen import (
    at_readable_strengths,
    compared_alone,
    cut_short,
    refit_budget,
    search_budget,
    train_chosen,
    within_limits,
)
from softsplit.estimators.classifier import fitted_classifier
from softsplit.estimators.row_reading import validated_rows
from softsplit.formulations import formulation_of
from softsplit.formulations import settings as parse
from softsplit.formulations.settings import SIZE_LIMITS
from softsplit.selection import teachers
from softsplit.selection.alternatives import Compared, TreeSignature
from softsplit.selection.candidates import CandidateSearch
from softsplit.selection.cross_validation import FoldTrainer
from softsplit.selection.folds import make_groups, make_splits, names_rows, to_compare
from softsplit.selection.held_out import Scoring, price_share, price_unit
from softsplit.selection.scoreboard import PRICES, Candidate, Key, Scoreboard
from softsplit.selection.strengths import (
    SHARES,
    Axes,
    different_scales,
    make_axes,
    make_depths,
    make_fractions,
    make_scorer,
    price,
    strength_unit,
)
from softsplit.selection.teachers import SoftTargets, make_teacher, soft_targets_of
from softsplit.settings.checks import is_auto
from softsplit.settings.parameter import documented
from softsplit.settings.table import SEARCH, ChoiceParameters
from softsplit.solvers import Budget
from softsplit.support.arguments import positive_integer
from softsplit.support.interruption import never_lost
from softsplit.support.messages import shown, visible
from softsplit.support.parallel import one_blas_thread
from softsplit.support.row_budgets import ROWS
from softsplit.training.best import NoFeasibleTreeError
from softsplit.training.points import wanted
from softsplit.training.preparation import Prepared, prepare
from softsplit.training.rows import Rows, TrainingRows
from softsplit.training.run import End, Run, watched
from softsplit.training.wide import WideRows
from softsplit.variables import Coding, levels_of_numbers

# Folds where ``cv`` is left to the library.
FOLDS = 5

# The same with more than ``RowBudgets.halved`` rows: two are judged first, two at the end.
FOLDS_OF_MANY = 4

# Times that such folds are made with up to ``REPEATED_ROWS`` rows.
REPEATS = 2

# With so few rows a choice depends on how the folds fall, and more of them are cheap.
REPEATED_ROWS = 150

# Cells of training rows that are remembered for alternatives: 32 megabytes.
KEPT_CELLS = 4_000_000


@documented(*SEARCH)
@dataclass(kw_only=True, eq=False, repr=False)
class SoftTreeClassifierCV(ChoiceParameters, SoftTreeBase):
    """Soft tree whose depth, scaling, strength and ridge are chosen by cross-validation.

    Candidates are compared along paths of strengths on every fold: by likelihood (``loss="log"``)
    elimination gives the trees of all strengths at once; by cost paths are walked from weak to
    strong, each tree started from the last one. One setting after the other is varied around the
    best so far (scaling, penalty, scope, depth for as long as deeper trees pay, steepness) at a few
    strengths; one that is clearly behind after two folds is left there (by likelihood; with more
    than 3,000 rows all are, and the two best are judged on the other folds), and the best one or
    two are judged at all strengths and ridges (with more than 3,000 rows, at the default strengths
    around the best ones). The tree that is kept is trained on all rows, also from the trees that
    the chosen settings led to on the folds. Of more than 10,000 rows (25,000 with a teacher, fewer
    where there are more than 100 columns or the loss is the cost) the folds are made of that many,
    each class by its share, where ``cv`` is a number and there are no groups; the strength, a
    fraction of the loss, then falls by the root of 10,000 / rows.

    Parameters
    ----------
    **parameters
        Those of ``softsplit.settings.table``.

    Attributes
    ----------
    best_estimator_ : SoftTreeClassifier
        The tree on all rows.
    tree_ : TreeModel
        The same tree; ``coef_``, ``intercept_``, ``selected_features_`` and all other attributes of
        a fitted ``SoftTreeClassifier`` that tell of its tree are there too.
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
    coding_, screening_
        Only if X was more than plain numbers, as in ``SoftTreeClassifier``.
    n_splits_, n_repeats_, n_compared_ : int
        Number of folds, how many times they were made, and of how many rows.
    feature_price_ : float
        What a feature had to lower the held-out log-loss by, as a part of that without features,
        where trees are compared by it.
    targets_ : array of shape (n_samples, n_classes), or None
        Class probabilities that the tree on all rows was trained on, where a teacher was chosen:
        ``SoftTreeClassifier(**best_params_).fit(X, y, targets=targets_)`` trains on the same.
    end_ : str
        How it ended: "complete", "interrupted", "time_limit" or "max_iter".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from softsplit import SoftTreeClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> chosen = SoftTreeClassifierCV(random_state=0).fit(X, y)
    >>> bool(chosen.score(X, y) > 0.9)
    True
    """

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, sensitive: Any = None
    ) -> Self:
        """Compare candidates on the folds of X and y, and train the chosen one on all rows.

        ``groups`` (n_samples,) names what samples belong to, a patient say: no group is both
        trained and tested on, whether ``cv`` is a number or a splitter that knows groups.
        ``sensitive`` as in ``SoftTreeClassifier``.
        """
        with never_lost(), all_or_nothing(self), watched(self.verbose, Budget()) as around:
            around.working("preparing the rows")
            given = X, y, sample_weight, groups, sensitive
            if not self._meets_limits_without(*given):
                self._fit(*given)
        return self

    def _meets_limits_without(self, *given: Any) -> bool:
        """Whether the tree that is chosen without limits of size is within them; it is kept then.

        A limit that a tree meets already thus changes nothing. Within a time limit, which a second
        choice might pass, limits of size hold from the start.
        """
        limits = {n: getattr(self, n) for n in SIZE_LIMITS if getattr(self, n) is not None}
        asked = self.time_limit is not None or self.required is not None
        if not limits or asked or self.loss != "log" or not is_auto(self.penalties):
            return False
        for name, most in limits.items():
            positive_integer(name, most)
        self.set_params(**dict.fromkeys(limits))
        try:
            self._fit(*given)
        finally:
            self.set_params(**limits)
        self.best_estimator_.set_params(**limits)
        met = within_limits(self)
        if not met and self.end_ == End.INTERRUPTED.value:
            raise KeyboardInterrupt("no tree was within the limits of size yet")
        return met

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any, sensitive: Any) -> None:
        # 1. Parameters, then rows: those to compare settings on, and all.
        run = training_run(self)
        axes = make_axes(
            self.loss, self.scales, self.penalties, self.scopes, self.steepnesses, self.ridges
        )
        formulation = formulation_of(self.loss)
        with one_blas_thread():
            rows, all_rows = self._rows(X, y, sample_weight, sensitive)
        # 2. What is compared: the first settings say what strengths, depths and scalings mean.
        dense = rows.dense and rows.X.size > ROWS.halved_cells
        if is_auto(self.scales) and (rows.bends or dense):
            axes["scale"] = formulation.choice.bent_scales or axes["scale"]
        first = {name: axes[name][0] for name in ("scale", "steepness", "penalty", "ridge")}
        with one_blas_thread():
            whole = prepare(model_settings(self, X, **first), all_rows)
        unit = strength_unit(whole.problem)
        trainer = self._trainer(whole, rows, run, make_groups(groups, len(rows.labels)))
        n_rows = min(whole.n_rows, len(trainer.rows.labels))
        loss = unit / whole.problem.row_unit * n_rows / whole.n_rows
        given = self.strengths, self.n_strengths
        feature = price(*SHARES[axes["scope"][0]])
        fractions = make_fractions(*given, unit * feature, loss, formulation)
        axes["depth"] = make_depths(
            self.depths, len(rows.classes), n_rows, formulation.choice, self.max_questions,
            trainer.rows.X.shape[1],
        )  # fmt: skip
        axes["scale"] = different_scales(axes["scale"], trainer.rows)
        trainer, axes["teacher"] = self._taught(trainer, rows, all_rows)
        codings = self._levels(all_rows) if rows is all_rows else None
        # 3. Machine code is made ready before the time of a limit counts.
        smooth = not whole.problem.penalties.counts or len(axes["penalty"]) > 1
        summed = whole.n_rows > ROWS.row_sums
        run = run.ready(whole.problem if summed else None, smooth=smooth)
        n_all = whole.n_rows if self.strengths is None else 0
        del whole  # a copy of all rows
        trainer = replace(trainer, run=replace(run, budget=search_budget(run.budget)))
        self.n_splits_ = len(trainer.splits)
        self.feature_price_ = PRICES[self._selection] * price_share(trainer.rows)
        # 4. The comparison, and the chosen tree on all rows.
        with watched(self.verbose, run.budget) as observer, one_blas_thread():
            search = CandidateSearch(
                replace(trainer, observer=observer),
                Scoreboard(self.n_splits_, price_unit(trainer.rows)),
                fractions,
                observer,
                n_all,
                self._selection,
                given=self.strengths is not None or not is_auto(self.n_strengths),
            )
            if codings is not None:
                search.levelled = search.trainer.levelled(*codings)
            search.run(axes)
            if codings is not None and search.trainer is search.levelled:
                all_rows, self.coding_ = rows.recoded(*codings), codings[1]
            chosen = self._choose(search, axes, all_rows)
            observer.working("training the chosen tree on all rows")
            run = replace(run, budget=refit_budget(run.budget))
            with run.budget.interruptible():
                train_chosen(self, chosen, search, all_rows, run)
                self._remember_candidates(search, chosen, all_rows)
                return
            # Ctrl-C came outside the solver, which sees to it itself.
            if trainer.run.budget.stopped:
                raise KeyboardInterrupt  # the second one: it is to end now
            train_chosen(self, chosen, search, all_rows, run)
            self._remember_candidates(search, chosen, all_rows)

    def _levels(self, rows: TrainingRows) -> tuple[Coding, Coding] | None:
        """The coding of the rows, and that with levels in place of whole numbers of few values,
        where they may be tried.

        What is said of columns speaks of numbers.
        """
        said = self.groups is not None or rows.rules is not None or rows.monotone is not None
        if type(rows) is not Rows or not isinstance(rows.X, np.ndarray):
            return None
        if said or rows.rated is not None or not formulation_of(self.loss).choice.scores_rows:
            return None
        coding = rows.coding
        if coding is None:
            numbered = [f"x{j}" for j in range(rows.X.shape[1])]
            names = numbered if rows.names is None else rows.names.tolist()
            coding = Coding.of_numbers(names, np.median(rows.X, axis=0), rows.names is not None)
        kinds = self.feature_types or {}
        kept = {name if isinstance(name, str) else coding.names[name] for name in kinds}
        levels = levels_of_numbers(coding, rows.X, rows.weight, kept)
        return None if levels is None else (coding, levels)

    def _remember_candidates(
        self, search: CandidateSearch, chosen: Key, rows: TrainingRows
    ) -> None:
        """Remember trees for ``alternatives``; pickles and copies leave them out."""
        self.__dict__.pop("_compared", None)
        if not isinstance(rows, Rows) or isinstance(rows, WideRows) or rows.X.size > KEPT_CELLS:
            return
        own = TreeSignature.of(self.weights_, self._homes(rows))
        self._compared = Compared.of(search, chosen, own, rows.groups), rows

    def _homes(self, rows: Rows) -> Any:
        """The variable of each column of the tree; one in points has columns of its own."""
        coding = self.tree_.coding
        return coding.homes if coding is not None and coding.pointed else rows.groups

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        state.pop("_compared", None)
        return state

    @property
    def _measure(self) -> str:
        """What the choice compares, in words."""
        if self.scoring is None:
            scores = formulation_of(self.loss).choice.scores_rows
            return LOG_LOSS if scores else "accuracy"
        return visible(self.scoring) if isinstance(self.scoring, str) else "score"

    def alternatives(self, n: int = 5, *, time_limit: float | None = None) -> Alternatives:
        """Trees about as good as the chosen one, with other features or another structure.

        They are trees that the folds of the choice ended with, at settings no more than one
        standard error worse than the chosen ones on the same held-out rows, trained on all rows;
        those least like the chosen tree come first. Where these are too few, trees without one of
        the weightiest features of the chosen tree follow, if they are as close to it on the same
        folds, and then trees with all its features and more.

        Trees and rows of the choice are remembered until the estimator is copied, pickled or saved,
        if the rows have no more than four million cells.

        Parameters
        ----------
        n : int, default=5
            There may be fewer.
        time_limit : float, optional
            Seconds after which those that were found are returned; so does Ctrl-C.

        Returns
        -------
        Alternatives
            A sequence of ``Alternative``: each has a fitted ``tree``. It prints as a short list,
            and ``to_frame()`` makes a table of it.
        """
        check_is_fitted(self, "tree_")
        count = positive_integer("n", n)
        if "_compared" not in vars(self):
            raise ValueError(
                "the compared trees are not kept here: copies and model files do not have them, "
                "nor do searches on tables that are sparse, on a cluster or of more than "
                f"{KEPT_CELLS:,} cells; fit again, on fewer rows if need be."
            )
        compared, rows = self._compared
        costs = self.best_estimator_.cost_matrix
        settings = replace(compared.trainer.settings, cost_matrix=costs)
        compared = replace(compared, trainer=replace(compared.trainer, settings=settings))
        run = training_run(self)  # its code is ready since the choice
        run = replace(run, budget=replace(Budget(tol=run.budget.tol), time_limit=time_limit))
        others: list[Alternative] = []
        with one_blas_thread(), run.budget.interruptible():
            weights, homes = self.weights_, self._homes(rows)
            own, largest = TreeSignature.of(weights, homes), TreeSignature.largest(weights, homes)
            for met, solution, prepared in compared.trees(rows, own, largest, run):
                prepared, _ = at_readable_strengths(
                    prepared, met.candidate, met.fraction, self.strengths is not None
                )
                tree = fitted_classifier(self, prepared, solution, run.solver.zero_threshold)
                others.append(Alternative.of(tree, self, met.behind, met.error, self._measure))
                if len(others) == count:
                    break
        itself, stopped = Alternative.of(self, self, 0.0, 0.0), run.budget.stopped
        return Alternatives(tuple(others), itself, count, stopped)

    def _trainer(self, whole: Prepared, rows: Rows, run: Run, groups: Any) -> FoldTrainer:
        """What trains on folds; scorers get plain arrays, so that no tree there has names."""
        coding, rows = rows.coding, rows.nameless()
        judged = self.scoring is None and formulation_of(self.loss).choice.scores_rows
        most = ROWS.compared if self.teacher is None else ROWS.taught
        if self.teacher is None and rows.dense:
            plain = rows.X.shape[1] if coding is None else int(np.sum(~coding.hinges))
            cells = formulation_of(self.loss).choice.compared_cells
            most = min(most, max(ROWS.halved, cells // plain))
        cv = self.cv
        if is_auto(cv):
            many = judged and min(len(rows.labels), most) > ROWS.halved
            cv = FOLDS_OF_MANY if many else FOLDS
        if not names_rows(cv):
            groups = None if groups is None else groups[rows.weight > 0]
            rows = rows.counted()  # rows that count nothing change no fold
            rows = rows if groups is not None else to_compare(rows, cv, most)
        self.n_compared_ = len(rows.labels)
        few = judged and groups is None and self.n_compared_ <= REPEATED_ROWS
        self.n_repeats_ = REPEATS if is_auto(self.cv) and few else 1
        return FoldTrainer(
            settings=whole.settings,
            scoring=Scoring(make_scorer(self, self.scoring), judged),
            rows=rows,
            coding=coding,
            pointed=wanted(whole),
            splits=make_splits(cv, rows.X, rows.y, run.seed, groups, self.n_repeats_),
            run=run,
            check=partial(validated_rows, self),
        )

    def _taught(
        self, trainer: FoldTrainer, rows: Rows, all_rows: TrainingRows
    ) -> tuple[FoldTrainer, Sequence[float]]:
        """What trains on folds, with what a teacher says, and its weights to compare."""
        teacher, n_compared = self.teacher, len(trainer.rows.labels)
        if teacher is None:
            return trainer, (0.0,)
        plain = type(rows) is Rows and rows is all_rows
        whole = plain and n_compared >= int(np.count_nonzero(rows.weight))
        if is_auto(teacher) and not (whole and formulation_of(self.loss).choice.scores_rows):
            return trainer, (0.0,)
        if not whole:
            raise ValueError(
                f"a teacher is for tables of up to {ROWS.taught:,} rows in memory that are not "
                "sparse; leave teacher at None."
            )
        weights = (0.0, *(teachers.AUTO_WEIGHTS if is_auto(teacher) else teachers.WEIGHTS))
        if not isinstance(teacher, str) and not hasattr(teacher, "fit"):
            targets = parse.make_targets("teacher", teacher, rows.classes, rows.weight)
            known = targets if n_compared == len(targets) else targets[rows.weight > 0]
            return replace(trainer, soft_targets=SoftTargets("given probabilities", known)), weights
        model, columns = make_teacher(teacher, trainer.run.seed), np.arange(rows.X.shape[1])
        if rows.coding is not None:
            columns = np.flatnonzero(~rows.coding.hinges)
        soft_targets = soft_targets_of(model, trainer.rows, trainer.splits, trainer.run, columns)
        return replace(trainer, soft_targets=soft_targets), weights

    @property
    def _selection(self) -> str:
        return "default" if is_auto(self.selection) else self.selection

    def _choose(
        self, search: CandidateSearch, axes: Axes, rows: TrainingRows
    ) -> tuple[Candidate, float]:
        """The chosen candidate and strength; sets what is told about the choice."""
        board, budget = search.board, search.trainer.run.budget
        if not board.folds and budget.stopped:
            raise KeyboardInterrupt("nothing was compared yet, so that there is no tree to keep")
        self.cv_results_ = board.table(self._selection)
        self.end_ = End.COMPLETE.value
        if budget.exhausted:
            outcome = f"the choice is among the {len(board.folds)} trees that were compared by then"
            if not board.folds:
                outcome = "nothing was compared, and the first settings are used; raise time_limit"
            elif budget.stopped and compared_alone(search, rows) is not None:
                outcome += f", trained on the {len(search.trainer.rows.labels):,} rows of its folds"
            self.end_ = cut_short(f"; {outcome}.", budget, stacklevel=4)
        if not board.folds and not budget.exhausted:
            asked = ("min_class_rate", "constraints", "fairness", "monotone")
            given = {name: getattr(self, name) for name in asked}
            named = [name for name, v in given.items() if v is not None and not is_auto(v)]
            raise NoFeasibleTreeError(
                f"no candidate met {' and '.join(named) or 'the constraints'} on any fold; loosen "
                "what is asked for, or add depths."
            )
        if not board.folds:
            self.best_index_, self.best_score_ = -1, float("nan")
            first = Candidate(**{name: values[0] for name, values in axes.items()})
            return first, search.fractions[len(search.fractions) // 2]
        if not np.isfinite(board.mean(board.best())):
            raise ValueError(
                f"scoring {shown(self.scoring)} gave no number on any fold; choose another scorer."
            )
        chosen = board.chosen(self._selection)
        self.best_index_ = list(board.folds).index(chosen)
        self.best_score_ = board.mean(chosen)
        search.tell(chosen, chosen=True)
        return chosen
