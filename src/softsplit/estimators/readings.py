"""What a fitted estimator says of its tree beside predictions, and changed copies of it."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from softsplit.advice.explanation import Explanation, explain
from softsplit.advice.limits import AdviceLimits
from softsplit.advice.monotone_check import MonotoneCheck, check_monotone
from softsplit.estimators.fitted import FittedTree
from softsplit.estimators.row_reading import checked_rows, read_rows, tree_labels
from softsplit.estimators.stability import Stability, resampled_stability
from softsplit.fitted.calibration import calibrated
from softsplit.fitted.edits import Edit
from softsplit.fitted.model import holder_of, tree_of
from softsplit.fitted.pruning import simplified_model
from softsplit.reading.case_costs import CaseCosts, arriving_shares
from softsplit.reading.frame import tree_frame
from softsplit.reading.hard import HardTree
from softsplit.reading.partial_dependence import SetColumn, mean_answers, spread_values
from softsplit.reading.shapley import ShapleyValues, shapley_values
from softsplit.solvers import Budget
from softsplit.support.arguments import positive_integer
from softsplit.support.inputs import refuse_masked
from softsplit.support.messages import unfit
from softsplit.support.options import late
from softsplit.variables import CodedRows
from softsplit.variables.columns import Columns, column_costs


class ReadableTree(FittedTree):
    """A fitted tree: readings of it, and copies that are simplified, calibrated or edited."""

    def calibrate(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """A copy whose probabilities fit rows that the tree was not trained on.

        One number, the temperature, makes the shares of all leaves sharper or flatter, so that the
        log-loss on these rows is least; questions and ``predict`` stay as they are (the formula is
        in ``softsplit.fitted.calibration``). ``predict_set`` of the copy compares with these rows,
        for which its coverage is a theorem: give some hundred. Of a search it is the chosen tree.

        Parameters
        ----------
        X, y : rows and their classes
        sample_weight : array of shape (n_samples,), optional
            How many rows each stands for.
        """
        rows = checked_rows(self, X)
        twin = copy.copy(holder_of(self))
        labels = tree_labels(twin.tree_, y, len(rows))
        weight = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, float)
        if weight.shape != labels.shape or not np.all(weight >= 0) or not np.sum(weight) > 0:
            raise ValueError(
                f"sample_weight must hold a number of at least 0 for each of the {len(rows)} rows."
            )
        twin.tree_ = calibrated(twin.tree_, rows, labels, weight)
        return twin

    def explain(
        self,
        x: Any,
        *,
        fixed: Any = (),
        ranges: Any = None,
        only_decrease: Any = (),
        only_increase: Any = (),
    ) -> Explanation:
        """Why the tree says what it says about one row.

        The explanation prints as text: class probabilities, the splits on the way to the most
        probable leaf with their terms, and for each feature the smallest change within its
        training range that changes the predicted class. Of a number: the splits on the way, and
        the formula of the leaf term by term, with the interval where held-out rows are known.

        Parameters
        ----------
        x : array of shape (n_features,), or X with a single row
        fixed : list of columns, optional
            What stays as it is in the changes that are looked for: ["age"].
        ranges : dict, optional
            Where values may move, within their training ranges: {"bmi": (18, 35)}, with None for an
            open end; of a category the allowed levels.
        only_decrease, only_increase : lists of columns, optional
            What may only become smaller, or larger.
        """
        limits = AdviceLimits.of(fixed, ranges, only_decrease, only_increase)
        if hasattr(x, "to_frame") and getattr(x, "ndim", 2) == 1:
            x = x.to_frame().T.infer_objects()  # a row of a frame
        elif not hasattr(x, "columns"):
            refuse_masked("x", x, of="column")
            x = x if isinstance(x, CodedRows) or issparse(x) else _as_rows(x)
        check_is_fitted(self, "tree_")
        rows = read_rows(self, x)
        if len(rows) != 1:
            raise ValueError(
                f"explain takes one row of a table, such as X.iloc[5], got {len(rows)}."
            )
        tree = tree_of(self, numbers=True)
        if isinstance(rows, CodedRows):
            return explain(tree, rows.X[0], rows.cells, limits)
        return explain(tree, rows[0].astype(np.float64, copy=False), (), limits)

    def partial_dependence(self, X: Any, columns: Any, *, grid_resolution: int = 100) -> Bunch:
        """Mean class probabilities, or number, over rows with one or two columns set to values.

        The figures are those of ``sklearn.inspection.partial_dependence(kind="average")``, with the
        rows read once; here there is one line for each class, also of two.

        Parameters
        ----------
        X : rows
        columns : name, number, or list of one or two of them
        grid_resolution : int, default=100
            Values of a column of numbers, evenly spread over the middle 90 % of its values; a
            column with fewer different values is set to each of them.

        Returns
        -------
        Bunch
            ``grid_values``, the values of each column, and ``average``, of shape (n_classes,
            n_values of each column); for a number 1 in place of n_classes.
        """
        count = positive_integer("grid_resolution", grid_resolution)
        tree = tree_of(self, numbers=True)
        frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
        listed = list(columns) if isinstance(columns, list | tuple) else [columns]
        if not 1 <= len(listed) <= 2:
            raise unfit("columns", columns, "must name one or two columns of X")
        # For each column: the values it is set to, and the features that it becomes for them.
        known = Columns(list(map(str, frame.columns)))
        rows, grids, settings = checked_rows(self, X), [], []
        for column in listed:
            # 1. Values of the column over its range, or all its levels.
            place = known.place("columns", column)
            values = frame.iloc[:, place]
            if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
                grid = spread_values(values.to_numpy(dtype=float, na_value=np.nan), count)
            else:
                grid = np.sort(values.dropna().unique())
            # 2. The features that it becomes for them, and their places among the coded columns.
            asked = frame.iloc[np.zeros(len(grid), dtype=np.intp)].reset_index(drop=True)
            asked[asked.columns[place]] = grid
            read = checked_rows(self, asked if isinstance(X, pd.DataFrame) else asked.to_numpy())
            homes = np.arange(read.shape[1])
            if tree.coding is not None:
                homes = np.array(tree.coding.places, dtype=np.intp)[tree.coding.homes]
            features = np.flatnonzero((homes == place) & tree.columns_in_use)
            grids.append(grid)
            settings.append(SetColumn(features, read[:, features]))
        average = mean_answers(tree, np.asarray(rows, dtype=float), settings)
        return Bunch(grid_values=grids, average=average)

    def expected_cost(self, X: Any, *, feature_costs: Any = None, per_row: bool = False) -> Any:
        """What it costs on average to answer the questions for a row of X.

        A column is measured when a question on the way of the row needs it, and paid once, at the
        cost that ``feature_costs`` gives it, or 1. Where ``predict`` is the class of the mixture,
        it is the mean over the ways, each with its probability.

        Parameters
        ----------
        X : rows
        feature_costs : dict, optional
            Costs in place of those that the tree was trained with.
        per_row : bool, default=False
            Return the cost of each row, (n_samples,), instead of the mean.
        """
        rows, tree = checked_rows(self, X), tree_of(self, numbers=True)
        if feature_costs is not None:
            tree = replace(tree, column_costs=column_costs(feature_costs, tree.column_names))
        costs = arriving_shares(tree, rows) @ CaseCosts.of(tree).of_leaves
        return costs if per_row else float(np.mean(costs))

    def shapley_values(self, X: Any, background: Any) -> ShapleyValues:
        """Exact Shapley values of the columns of X for the class probabilities, or the number.

        What a column adds to the probabilities of a row, or to its number, averaged over all orders
        in which columns are made known; unknown ones are those of the background rows
        (interventional values). The values of a row and ``base`` add up to its ``predict_proba``,
        or ``predict``. Columns that the tree does not use have 0.

        Parameters
        ----------
        X : rows to explain
        background : rows to compare with
            A hundred rows of the training table, say; time is in proportion to them, and doubles
            with each column that the tree uses.
        """
        rows, others = checked_rows(self, X), checked_rows(self, background)
        return shapley_values(tree_of(self, numbers=True), rows, others)

    def check_monotone(self, column: Any, sign: Any = None) -> MonotoneCheck:
        """Prove for all inputs that a column has a monotone effect, or find rows against it.

        What is checked is that, all else equal, neither ``predict_proba`` nor (of trees that
        predict by their walk, and of two classes) ``predict`` goes the wrong way when the column
        rises. Missing values are left out: rows are compared in which the column is known.

        Parameters
        ----------
        column : str or int
            Name or position of a column of X.
        sign : "+", "-" or mapping of classes to them, optional
            As in the parameter ``monotone``. By default what the tree was trained for, or else
            the sign that the effect has in the mean.

        Returns
        -------
        MonotoneCheck
            With ``holds`` (None: not decided), ``proved``, ``rows`` (two rows that contradict it)
            and ``reason``.
        """
        return check_monotone(tree_of(self), column, sign)

    def to_hard_tree(self) -> HardTree:
        """The tree with every split a plain yes or no; ``agreement(X)`` says how alike they are."""
        return HardTree(tree_of(self), partial(checked_rows, self))

    def simplify(self, X: Any = None, *, tol: float = 1e-9) -> Any:
        """A copy of the fitted ``SoftTreeClassifier`` without branches that decide nothing.

        Class probabilities are the same to within ``tol``, for every input, and so are the
        classes except where two are tied to within ``tol``. With ``X``, branches are removed as
        well that these rows do not need: for them, and only them, classes are the same without
        exception and probabilities within ``tol``. The copy keeps what is known of the training
        (``solution_``, ``starts_``, ``objective_``). Of a search it is the chosen tree.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), optional
        tol : float, default=1e-9
            At most one; raise it with ``X`` to remove branches that hardly matter.
        """
        if not isinstance(tol, int | float) or not 0 <= tol <= 1:
            raise unfit("tol", tol, "must be a number from 0 to 1")
        rows = None if X is None else checked_rows(self, X)
        twin = copy.copy(holder_of(self))
        twin.tree_ = simplified_model(twin.tree_, float(tol), rows)
        return twin

    @property
    def edits_(self) -> list[Edit]:
        """What was changed by hand, each with its date and reason."""
        return list(self.tree_.edits.listed)

    def edit(self, *, date: str | None = None) -> Any:
        """A copy of the tree, with verbs that change it by hand and chain.

        ``drop_feature``, ``round_weights``, ``set_threshold``, ``set_weight``, ``set_leaf``,
        ``prune`` and ``rename``; see ``EditedTree``. It is a fitted tree itself. Of a search it is
        a copy of the chosen tree.

        Parameters
        ----------
        date : str, optional
            Day that is noted with the edits, as "2026-11-18"; today if not given.
        """
        check_is_fitted(self, "tree_")
        return late("softsplit.estimators.edited", "edited")(self, date)

    def refit(
        self,
        X: Any,
        y: Any,
        *,
        keep: str = "structure",
        sample_weight: Any = None,
        reason: str | None = None,
        date: str | None = None,
    ) -> Any:
        """A copy of the tree, trained again on new rows with what is to be kept of it.

        Its loss on these rows is not higher than that of the tree as it is; where nothing better
        is found, the tree stays as it is. The list of edits says that it was refitted.

        Parameters
        ----------
        X, y : rows and their classes, those that the tree knows
        keep : {"structure", "edited", "features"}, default="structure"
            "structure": questions and their features stay, and all numbers are fitted. "edited":
            so do the numbers that were set by hand (``edit``). "features": a new tree is trained
            that may use the columns of this one, with its parameters.
        sample_weight : array of shape (n_samples,), optional
        reason, date : str, optional
            As of the edits.
        """
        check_is_fitted(self, "tree_")
        refitted = late("softsplit.estimators.edited", "refit")
        return refitted(self, X, y, keep, sample_weight, reason, date)

    def to_frame(self) -> pd.DataFrame:
        """The tree as a table: one row per question and leaf, in the order of the text.

        Columns: ``node``, ``parent``, ``depth``, ``answer`` (by which a node is reached),
        ``question`` and ``condition``; of a leaf ``class``, ``rows`` (of training that arrive) and
        its probability of each class. Nodes are numbered as in ``apply``.
        """
        return tree_frame(tree_of(self, numbers=True))

    def stability(
        self,
        X: Any,
        y: Any,
        *,
        n_resamples: int = 20,
        random_state: int = 0,
        time_limit: float | None = None,
    ) -> Stability:
        """How often features, pairs of them and questions come back in resamples of the rows.

        A tree with the settings of this one is trained on each resample: as many rows of every
        class as there are, drawn with replacement. Of a search nothing is chosen again.

        Parameters
        ----------
        X, y : rows and their classes
            Those that the tree was fitted to.
        n_resamples : int, default=20
        random_state : int, default=0
        time_limit : float, optional
            Seconds after which no further resample is made, if there are two.

        Returns
        -------
        Stability
            It prints as a short list; ``to_frame("features")``, ``to_frame("pairs")`` and
            ``to_frame("questions")`` are tables.
        """
        check_is_fitted(self, "tree_")
        count = positive_integer("n_resamples", n_resamples)
        return resampled_stability(self, X, y, count, random_state, Budget(time_limit=time_limit))

    def report(self, X: Any, y: Any, path: Any = None, **options: Any) -> Any:
        """One page about this tree: its picture, how good it is on held-out rows, other trees.

        A notebook shows it by itself; ``save(path)`` writes it to a file.

        Parameters
        ----------
        X, y : rows and their classes
            Those that the tree was fitted to.
        path : path, optional
            Write the page there.
        **options
            As in ``softsplit.report``: name, seed, n_jobs, time_limit, page_rows, held_out, by and
            refer.
        """
        check_is_fitted(self, "tree_")
        return late("softsplit.report.anywhere", "report")(self, X, y, path, **options)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """In a notebook: the tree itself once there is one, before that the parameters."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle and hasattr(self, "tree_"):
            bundle["text/html"] = late("softsplit.report.notebook", "tree_html")(self)
        return bundle

    def _repr_html_(self) -> str | None:
        return self._repr_mimebundle_().get("text/html")


def _as_rows(x: Any) -> NDArray[Any]:
    """A row, or a table of one; cells keep their types."""
    row = np.asarray(x)
    if row.dtype.kind in "USO":
        row = np.asarray(x, dtype=object)
    return row[None, :] if row.ndim == 1 else row
