"""A fitted estimator: what follows from its tree, and its predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from softsplit.estimators.row_reading import checked_rows
from softsplit.fitted.conformal import checked_confidence, known_scores
from softsplit.fitted.model import TreeHolder, TreeModel
from softsplit.fitted.ranges import far_warning
from softsplit.solvers import Status
from softsplit.support.arguments import precision
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import warn_user
from softsplit.tree.scaling import Scaling


class FittedTree(TreeHolder, BaseEstimator):
    """All that follows from ``tree_``, which ``fit`` sets.

    Attributes that follow from it are properties, and not there before: ``hasattr`` says so.
    """

    @property
    def scaling_(self) -> Scaling:
        """Features to scaled units and back."""
        return self.tree_.scaling

    @property
    def weights_(self) -> FloatArray:
        """Weights in scaled units, (n_features, n_branches)."""
        return self.tree_.parameters.weights

    @property
    def thresholds_(self) -> FloatArray:
        """Thresholds in scaled units, (n_branches,)."""
        return self.tree_.parameters.thresholds

    @property
    def coef_(self) -> FloatArray:
        """Coefficients in original units, (n_branches, n_features)."""
        return self.tree_.splits[0]

    @property
    def intercept_(self) -> FloatArray:
        """Intercepts in original units, (n_branches,)."""
        return self.tree_.splits[1]

    @property
    def local_sparsity_(self) -> float:
        """Percentage of coefficients that are zero."""
        return self.tree_.local_sparsity

    @property
    def global_sparsity_(self) -> float:
        """Percentage of features that no split uses."""
        return self.tree_.global_sparsity

    @property
    def selected_features_(self) -> NDArray[np.intp]:
        """Indices of the columns of X in use."""
        return self.tree_.selected_columns

    @property
    def feature_importances_(self) -> FloatArray:
        """How much each column of X moves the answers on the training rows, as shares of one."""
        return self._known("column_importances")

    @property
    def objective_(self) -> float:
        """Expected cost plus penalties on the training rows."""
        return self._known("objective")

    @property
    def n_iter_(self) -> int:
        """Iterations of the run that was kept."""
        return self._known("n_iter")

    def _known(self, name: str) -> Any:
        """What a tree that comes from a file need not know."""
        value = getattr(self.tree_, name)
        if value is None:
            raise AttributeError(f"this tree does not know its {name.removeprefix('column_')}.")
        return value

    def leaf_proba(self, X: Any) -> FloatArray:
        """Probability of ending in each leaf, shape (n_samples, n_leaves)."""
        rows = checked_rows(self, X)
        return self.tree_.leaf_proba(rows)

    def branch_proba(self, X: Any) -> FloatArray:
        """Probability of going left at each branch, shape (n_samples, n_branches)."""
        rows = checked_rows(self, X)
        return self.tree_.gates(rows).T

    def node_visits(self, X: Any) -> FloatArray:
        """Where samples go, (n_samples, n_nodes): the decision path, or probabilities of nodes.

        They are probabilities where ``predict`` is the class of the mixture.
        """
        rows = checked_rows(self, X)
        return self.tree_.visits(rows).T

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Node of the leaf at which each sample arrives, shape (n_samples,).

        Nodes are numbered from 0, the root; the children of node t are 2 t + 1 and 2 t + 2. Where
        ``predict`` is the class of the mixture, it is the most probable leaf.
        """
        rows = checked_rows(self, X)
        return self.tree_.arrive(rows) + self.tree_.topology.n_branches

    def decision_path(self, X: Any) -> csr_matrix:
        """Nodes on the way to that leaf, a sparse indicator of shape (n_samples, n_nodes)."""
        levels = [self.apply(X)]
        while np.any(levels[-1]):
            levels.append((levels[-1] - 1) // 2)
        nodes = np.array(levels[::-1]).T
        indptr = np.arange(len(nodes) + 1) * nodes.shape[1]
        shape = (len(nodes), 2 * self.tree_.topology.n_branches + 1)
        return csr_matrix((np.ones(nodes.size), nodes.ravel(), indptr), shape=shape)

    def __getstate__(self) -> dict[str, Any]:
        """The status of a solution by its name: skops knows no enums."""
        state: dict[str, Any] = super().__getstate__()
        return _map_solutions(state, lambda s: replace(s, status=s.status.name))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(_map_solutions(state, _with_status))


class ClassTree(FittedTree):
    """What follows from a tree that predicts classes."""

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes in order."""
        return self.tree_.classes

    @property
    def leaf_classes_(self) -> FloatArray:
        """What training put in each leaf: its class, or class shares, (n_classes, n_leaves)."""
        return self.tree_.parameters.leaf_values

    @property
    def leaf_distributions_(self) -> FloatArray:
        """Share of each class in each leaf, which probabilities are made of."""
        return self.tree_.leaf_shares

    def predict_proba(self, X: Any, *, dtype: DTypeLike = np.float64) -> FloatArray:
        """Probability of each class, in the order of ``classes_``.

        With ``dtype=np.float32`` answers take half the memory; they are those of double precision,
        rounded. Rows of single precision are taken as they are either way.
        """
        rows = checked_rows(self, X)
        warn_far(self.tree_, rows)
        return self.tree_.predict_proba(rows, precision("dtype", dtype))

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithm of ``predict_proba``; an underflow counts as the smallest float."""
        return np.log(np.maximum(self.predict_proba(X), np.finfo(float).tiny))

    def decision_function(self, X: Any) -> FloatArray:
        """How clearly each class is predicted: log-odds of the second of two, else logarithms.

        They belong to ``predict``, which says the second of two classes where they are positive,
        and of several the one where they are largest. For a tree that says the most probable class
        they are those of ``predict_proba``, shifted by the costs where a cost matrix decides. Where
        costs or class rates of the training call a leaf by another class than its most frequent
        one, they are those of being called each class.
        """
        rows = checked_rows(self, X)
        tree = self.tree_
        factors = tree.class_factors
        consistent = factors is not None and bool(np.all(factors == 1.0))
        clear = tree.predict_proba(rows) if consistent else tree.votes(rows)
        clear = np.maximum(clear, np.finfo(float).tiny)
        # A quotient of different numbers is never rounded to one: signs are those of ``predict``.
        return np.log(clear[:, 1] / clear[:, 0] if clear.shape[1] == 2 else clear)

    def predict(self, X: Any) -> NDArray[Any]:
        """Class of each sample.

        It is the class of the leaf at which the printed questions lead (``decision="walk"``, the
        default with loss "log"). With ``decision="mixture"`` it is the class of least expected
        cost, or the most probable one, over all leaves. Where costs or class rates gave a leaf
        another class than its most frequent one, it need not be the largest of ``predict_proba``.
        """
        rows = checked_rows(self, X)
        warn_far(self.tree_, rows)
        return self.tree_.calls(rows)

    def predict_set(
        self, X: Any, confidence: float = 0.9, class_conditional: bool = False
    ) -> NDArray[np.bool_]:
        """Classes that each sample may have at this confidence, (n_samples, n_classes).

        A matrix of truth values in the order of ``classes_``: the class of a new sample is among
        those that are true in at least the share ``confidence`` of all cases. A set of one class is
        a sure answer; several classes, or none, are cases for a person. The tree compares with
        held-out samples: those of the folds of ``SoftTreeClassifierCV``, or those of ``calibrate``
        (``softsplit.fitted.conformal``).

        Parameters
        ----------
        X : rows
        confidence : float, default=0.9
            Between 0 and 1.
        class_conditional : bool, default=False
            Whether the share is to hold for the samples of each class; sets are larger.
        """
        confidence = checked_confidence(confidence)
        check_is_fitted(self, "tree_")
        known = known_scores(self.tree_.held_out)
        return known.sets(self.predict_proba(X), confidence, class_conditional=class_conditional)


def _map_solutions(state: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a copy of the state of an estimator with ``change`` applied to its solutions."""
    changed = dict(state)
    if "solution_" in state:
        changed["solution_"] = change(state["solution_"])
    if "starts_" in state:
        changed["starts_"] = [change(solution) for solution in state["starts_"]]
    return changed


def _with_status(solution: Any) -> Any:
    """Return a solution of a pickle with its ``Status`` instead of the name of the status."""
    try:
        return replace(solution, status=Status[solution.status])
    except (KeyError, AttributeError, TypeError):
        raise ValueError(
            "this pickle was made by another version of softsplit and cannot be read by this one; "
            "use save_model and load_model for files that last."
        ) from None


def warn_far(tree: TreeModel, X: FloatArray) -> None:
    """Give a ``FarOutsideWarning`` if rows have values far outside of the training range."""
    warning = far_warning(tree, X)
    if warning is not None:
        warn_user(warning)
