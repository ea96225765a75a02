"""A fitted tree as plain data, with what follows from it, also for rows of X.

score     z_t = a_t . scaled(x) / p - mu_t                    (n_branches, n_rows)
gate      p_t = F(steepness z_t), the probability of left
reach     of a node: the product of the gates above it        (n_nodes, n_rows)
answer    V_leaf = its class shares, V_t = p_t V_left + (1 - p_t) V_right
class     that of the leaf at which the walk arrives (walk.py), or without a walk the one with the
          most votes, which are mixed like the answer
number    of a tree whose leaves predict numbers (leaf_numbers.py): that of this leaf, or mixed

Readers that serve both kinds of trees ask for ``answers`` (what the columns of ``surface`` are),
``surface`` (probabilities, or the number) and ``calls`` (what ``predict`` returns).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from softsplit.fitted.conformal import HeldOutScores
from softsplit.fitted.edits import NO_EDITS, Edits
from softsplit.fitted.leaf_numbers import LeafNumbers
from softsplit.fitted.leaf_shares import (
    consistency_bound,
    consistent_with,
    cost_factors,
    decision_gains,
)
from softsplit.fitted.profile import TableProfile
from softsplit.fitted.rates import RateRecord
from softsplit.fitted.row_pass import RowPlan
from softsplit.fitted.summary import FeatureSummary
from softsplit.fitted.walk import Walk
from softsplit.support.arrays import FloatArray
from softsplit.support.options import late
from softsplit.tree.parameters import Topology, TreeParameters
from softsplit.tree.routing import gate_probabilities, node_reach
from softsplit.tree.scaling import Scaling, scaled_rows
from softsplit.tree.sparsity import global_sparsity, local_sparsity, selected_features
from softsplit.variables import Coding, MonotoneEffects
from softsplit.variables.variable import DATE, NUMBER


@dataclass(frozen=True)
class TreeModel:
    """A fitted tree as plain data, and what it says about rows.

    Attributes
    ----------
    parameters : TreeParameters
        The tree in scaled units.
    steepness : float
    scaling : Scaling
    classes : array of shape (n_classes,)
        Empty where leaves predict ``numbers``; ``leaf_values`` are then the means of the leaves.
    feature_names : tuple of str
    summary : FeatureSummary
    zero_threshold : float
        Weights up to this size are zero to a reader; see ``Solver.zero_threshold``.
    importances : array of shape (n_features,), optional
        See ``softsplit.fitted.importance``; where the training rows were at hand.
    objective : float, optional
    n_iter : int, optional
        What training ended with, and after how many iterations, as far as it is known.
    distributions : array of shape (n_classes, n_leaves), optional
        Class shares of the training rows that reach each leaf, of a tree whose ``leaf_values`` say
        what to predict there; see ``softsplit.fitted.leaf_shares``. None: ``leaf_values`` are
        shares.
    call_costs : array of shape (n_classes, n_classes), optional
        What it costs to predict k (column) for class y (row), where the prediction is that of least
        expected cost. None: costs were part of the training, or it is the most probable class.
    coding : Coding, optional
        How the features were made of the variables of a table. None: they are its columns.
    target : str, optional
        What the classes are classes of, if it has a name.
    walk : Walk, optional
        The questions that decide the class, as they are printed; see ``softsplit.fitted.walk``.
        None: the class is that of the mixture over all leaves.
    held_out : HeldOutScores, optional
        What the tree said about rows that it was not trained on; see
        ``softsplit.fitted.conformal``.
    edits : Edits
        Changes by hand; see ``softsplit.editing.edit``.
    column_costs : array of shape (n_columns,), optional
        What it costs to measure each column of the table, if something was said about it; see
        ``softsplit.reading.case_costs``.
    monotone : MonotoneEffects, optional
        The monotone effects that the tree was trained for; see ``softsplit.fitted.monotone``.
    rates : tuple of RateRecord
        What was required of rates (``constraints``, ``fairness``) and what holds on the training
        rows.
    profile : TableProfile, optional
        How the training rows are distributed; see ``softsplit.fitted.profile``.
    numbers : LeafNumbers, optional
        What leaves predict where the target is a number; see ``softsplit.fitted.leaf_numbers``.
    """

    parameters: TreeParameters
    steepness: float
    scaling: Scaling
    classes: NDArray[Any]
    feature_names: tuple[str, ...]
    summary: FeatureSummary
    zero_threshold: float = 0.0
    importances: FloatArray | None = None
    objective: float | None = None
    n_iter: int | None = None
    distributions: FloatArray | None = None
    call_costs: FloatArray | None = None
    coding: Coding | None = None
    target: str | None = None
    walk: Walk | None = None
    held_out: HeldOutScores | None = None
    edits: Edits = NO_EDITS
    column_costs: FloatArray | None = None
    monotone: MonotoneEffects | None = None
    rates: tuple[RateRecord, ...] = ()
    profile: TableProfile | None = None
    numbers: LeafNumbers | None = None

    def recoded(self, X: Any, trained: Coding | None) -> Any:
        """Return rows in the columns of training, coded as ``trained``, in those of this tree."""
        if self.coding is None or not self.coding.pointed:
            return X
        return self.coding.recoded(X, trained or self.table_coding.with_lookups({}))

    def __getstate__(self) -> dict[str, Any]:
        """What was worked out is left out of pickles and copies."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def topology(self) -> Topology:
        return self.parameters.topology

    @cached_property
    def splits(self) -> tuple[FloatArray, FloatArray]:
        """Coefficients (n_branches, n_features) and intercepts (n_branches,), original units."""
        return self.scaling.splits(self.parameters)

    @property
    def local_sparsity(self) -> float:
        """Percentage of coefficients that are zero."""
        return local_sparsity(self.parameters.weights, self.zero_threshold)

    @property
    def global_sparsity(self) -> float:
        """Percentage of features, or of variables of a table, that no split uses."""
        if self.coding is None and self.numbers is None:
            return global_sparsity(self.parameters.weights, self.zero_threshold)
        return 100.0 * (1 - len(self.selected_columns) / self.table_coding.n_candidates)

    @property
    def selected_features(self) -> NDArray[np.intp]:
        """Indices of the features in use, by questions or by leaves."""
        asked = selected_features(self.parameters.weights, self.zero_threshold)
        return asked if self.numbers is None else np.union1d(asked, self.numbers.features)

    @cached_property
    def features_of_values(self) -> NDArray[np.intp]:
        """The features in use that are numbers or dates: of numbers that bend, the value.

        Look-ups are none: their points do not grow beyond the training values.
        """
        used, coding = self.selected_features, self.coding
        if coding is None:
            return used
        values_of = np.where(
            coding.hinges, np.array(coding.firsts)[coding.homes], np.arange(len(coding.homes))
        )
        kinds = (NUMBER, DATE)
        return np.array(
            [
                j
                for j in np.unique(values_of[used])
                if (own := coding.variables[coding.homes[j]]).kind in kinds and not own.lookups
            ],
            dtype=np.intp,
        )

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns of the table that rows come in, by their names."""
        return self.feature_names if self.coding is None else self.coding.names

    @property
    def selected_variables(self) -> NDArray[np.intp]:
        """Variables in use, by their places among those of the coding."""
        features = self.selected_features
        return features if self.coding is None else np.unique(self.coding.homes[features])

    @property
    def selected_columns(self) -> NDArray[np.intp]:
        """Indices of the columns of the table that are in use."""
        used = self.selected_variables
        if self.coding is None:
            return used
        return np.unique(np.array(self.coding.places, dtype=np.intp)[used])

    @property
    def column_importances(self) -> FloatArray | None:
        """Importances of the columns of the table: those of their features together."""
        if self.coding is None or self.importances is None:
            return self.importances
        places = np.array(self.coding.places, dtype=np.intp)[self.coding.homes]
        return np.bincount(places, self.importances, len(self.coding.names)).astype(float)

    @cached_property
    def table_coding(self) -> Coding:
        """The coding; for plain numbers one in which missing values count as the training mean."""
        if self.coding is not None:
            return self.coding
        middles = [
            self.scaling.to_original(j, float(mean))
            for j, mean in enumerate(self.summary.scaled_mean)
        ]
        return Coding.of_numbers(self.feature_names, np.array(middles))

    @property
    def labels(self) -> list[Any]:
        """The classes as plain Python values."""
        return list(self.classes.tolist())

    @cached_property
    def columns_in_use(self) -> NDArray[np.bool_]:
        """Which columns of the problem bear on a question or a leaf, (n_features,)."""
        used: NDArray[np.bool_] = np.any(self.parameters.weights, axis=1)
        if self.numbers is not None:
            used[self.numbers.features] = True
        if self.walk is not None:  # its questions are rounded
            used |= np.any(self.walk.coefficients, axis=0)
        return used

    @cached_property
    def variables_in_use(self) -> list[int]:
        """Variables of ``table_coding`` in ``columns_in_use``, by their places there."""
        return np.unique(self.table_coding.homes[self.columns_in_use]).tolist()

    @property
    def leaf_shares(self) -> FloatArray:
        """How likely a row in each leaf is of each class, (n_classes, n_leaves)."""
        return self.parameters.leaf_values if self.distributions is None else self.distributions

    @cached_property
    def leaf_votes(self) -> FloatArray:
        """What each leaf adds to the votes of each class, (n_classes, n_leaves).

        Of a tree trained for costs they are its classes: costs and class rates were part of the
        training. Otherwise they are the shares, or what each prediction saves under a cost matrix.
        """
        if self.distributions is not None or self.call_costs is None:
            return self.parameters.leaf_values
        return decision_gains(self.call_costs).T @ self.parameters.leaf_values

    def decision_threshold(self, k: int) -> float:
        """The probability from which on a tree of two classes predicts class k."""
        costs = self.call_costs
        if costs is None or self.distributions is not None:
            return 0.5
        miss = float(costs[k, 1 - k] - costs[k, k])
        alarm = float(costs[1 - k, k] - costs[1 - k, 1 - k])
        return alarm / (alarm + miss) if alarm + miss > 0 else 0.5

    @cached_property
    def leaf_predictions(self) -> NDArray[np.intp]:
        """Position of the class that is predicted in each leaf, (n_leaves,)."""
        if self.walk is not None:
            return self.walk.classes
        return np.argmax(self.leaf_votes, axis=0)

    def used(self, branch: int) -> NDArray[np.intp]:
        """Features of a split, the weightiest first; of equally weighty ones the first column."""
        size = np.abs(self.parameters.weights[:, branch])
        # Equal but for rounding errors: the first is the unit of the printed sum.
        order = np.argsort(-np.round(size / max(float(size.max()), 1e-300), 10), kind="stable")
        return order[size[order] > self.zero_threshold]

    def with_parameters(
        self, parameters: TreeParameters, distributions: FloatArray | None = None
    ) -> TreeModel:
        """Another tree in the place of this one; features that it does not use have no share."""
        shares = self.importances
        if shares is not None:
            shares = used_shares(shares, parameters.weights)
        return replace(
            self,
            parameters=parameters,
            importances=shares,
            distributions=distributions,
            profile=None if self.profile is None else self.profile.of_another_tree(),
        )

    def with_names(
        self, names: Sequence[str] | None = None, class_names: Sequence[Any] | None = None
    ) -> TreeModel:
        """The same tree with other names for its features, its classes or both.

        Of a tree in points, or for a matrix of numbers that bend, ``names`` are those of the
        columns of X.
        """
        changed: dict[str, Any] = {}
        coding = self.coding
        bent = coding is not None and (coding.pointed or (coding.of_matrices and not coding.plain))
        if names is not None and coding is not None and bent and len(names) == len(coding.names):
            changed["coding"] = coding.renamed(names)
            names = changed["coding"].column_names
        columns = coding.names if coding is not None and bent else self.feature_names
        for what, given, known in (
            ("feature", names, self.feature_names if "coding" in changed else columns),
            ("class", class_names, self.classes),
        ):
            if given is not None and len(given) != len(known):
                many = "features" if what == "feature" else "classes"
                raise ValueError(f"{what}_names holds {len(given)} names for {len(known)} {many}.")
        if names is not None:
            changed["feature_names"] = tuple(map(str, names))
        if class_names is not None:
            changed["classes"] = np.array([str(name) for name in class_names], dtype=object)
        return replace(self, **changed) if changed else self

    def scaled(self, X: FloatArray) -> FloatArray:
        """Rows in scaled units; columns that the tree does not use may be 0."""
        used = np.any(self.parameters.weights, axis=1)
        return scaled_rows(self.scaling, X, used)

    @cached_property
    def _plan(self) -> RowPlan:
        return RowPlan.of(self.parameters, self.steepness, self.scaling)

    def scores(self, X: FloatArray) -> FloatArray:
        """z_t of every row, (n_branches, n_rows)."""
        return self._plan.scores(X).T

    def gates(self, X: FloatArray) -> FloatArray:
        """Probability of going left, (n_branches, n_rows)."""
        return gate_probabilities(self.scores(X), self.steepness)[0]

    def reach(self, X: FloatArray) -> FloatArray:
        """Probability of getting to each node, branches and then leaves, (n_nodes, n_rows)."""
        gates = self.gates(X)
        return node_reach(gates, 1.0 - gates)

    def leaf_proba(self, X: FloatArray) -> FloatArray:
        """Probability of ending in each leaf, (n_rows, n_leaves)."""
        return self._plan.leaf_proba(X)

    def predict_proba(
        self,
        X: FloatArray,
        dtype: DTypeLike = np.float64,
        *,
        predicted: NDArray[np.intp] | None = None,
    ) -> FloatArray:
        """Probability of each class, (n_rows, n_classes), in double or single precision.

        They are consistent with the predicted class where ``class_factors`` are known;
        ``predicted`` are the classes at the end of the walk, if the caller knows them.
        """
        factors = self.class_factors
        if factors is None:
            return self._plan.class_proba(X, self.leaf_shares, dtype)
        proba = self._plan.class_proba(X, self.leaf_shares)
        if self.walk is None:
            rows = np.flatnonzero(proba.max(axis=1) <= self.consistency_bound)
            predicted = self.predict_index(X[rows])
            apart = np.argmax(proba[rows] * factors, axis=1) != predicted
            rows = rows[apart]
        else:  # all rows, of which no copy is made
            predicted = self.predict_index(X) if predicted is None else predicted
            apart = np.argmax(proba * factors, axis=1) != predicted
            rows = np.flatnonzero(apart)
        if len(rows):
            proba[rows] = consistent_with(proba[rows], predicted[apart], factors)
        return proba.astype(dtype, copy=False)

    @cached_property
    def class_factors(self) -> FloatArray | None:
        """f with f_k p_k largest for the predicted class k; None if there are no such factors.

        They are 1 where the most probable class is predicted. Under a cost matrix of two classes,
        or one whose rows are f_y for every error, they are the costs. Of a tree trained for costs
        there are none where a leaf has another class than its most frequent one. Nor has a tree of
        several classes with monotone effects any, as what is lowered would not be monotone, nor a
        tree under requirements on rates: these hold for the mixture as it is.
        """
        n_classes = len(self.classes)
        if self.rates or (self.monotone is not None and n_classes > 2):
            return None
        if self.distributions is not None:
            own = self.leaf_shares[self.leaf_predictions, np.arange(len(self.leaf_predictions))]
            return np.ones(n_classes) if np.all(own >= self.leaf_shares.max(axis=0)) else None
        if self.walk is None:
            return None  # the class is that of the mixture as it is
        return np.ones(n_classes) if self.call_costs is None else cost_factors(self.call_costs)

    @cached_property
    def consistency_bound(self) -> float:
        """Without a walk: up to this largest probability another class may be predicted."""
        return consistency_bound(self.leaf_shares, self.leaf_predictions) + 1e-9

    def votes(self, X: FloatArray) -> FloatArray:
        """Shares of the votes for each class, (n_rows, n_classes); most for the predicted one."""
        votes = self._plan.class_proba(X, self.leaf_votes)
        return votes if self.walk is None else consistent_with(votes, self.predict_index(X))

    def arrive(self, X: FloatArray) -> NDArray[np.intp]:
        """The leaf of each row: that of the walk, or without one the most probable leaf."""
        if self.walk is not None:
            return self.walk.leaves(X, self.scaling)
        return np.argmax(self.leaf_proba(X), axis=1)

    def visits(self, X: FloatArray) -> FloatArray:
        """Where rows go, (n_nodes, n_rows): 1 on the way of the walk, or the reach of each node."""
        if self.walk is None:
            return self.reach(X)
        node, n_branches = self.arrive(X) + self.topology.n_branches, self.topology.n_branches
        visits = np.zeros((2 * n_branches + 1, len(X)))
        for _ in range(self.topology.depth + 1):
            visits[node, np.arange(len(X))] = 1.0
            node = (node - 1) // 2
        return visits

    def check_monotone(self, column: Any, sign: Any = None) -> Any:
        """Prove or refute a monotone effect; see ``softsplit.advice.monotone_check``."""
        return late("softsplit.advice.monotone_check", "check_monotone")(self, column, sign)

    @property
    def answers(self) -> tuple[str, ...]:
        """What the columns of ``surface`` are: the classes, or the target."""
        return (self.target or "y",) if self.numbers is not None else tuple(map(str, self.labels))

    def surface(self, X: FloatArray) -> FloatArray:
        """Class probabilities, or the predicted number, of each row, (n_rows, n_answers)."""
        return self.predict_proba(X) if self.numbers is None else self.calls(X)[:, None]

    def calls(self, X: FloatArray) -> NDArray[Any]:
        """What is predicted for each row: the label of a class, or a number."""
        if self.numbers is None:
            labels: NDArray[Any] = self.classes[self.predict_index(X)]
            return labels
        values = self.numbers.values(X)
        if self.walk is not None:
            return values[self.arrive(X), np.arange(values.shape[1])]
        return np.asarray((self.leaf_proba(X).T * values).sum(axis=0))

    def predict_index(self, X: FloatArray) -> NDArray[np.intp]:
        """Position in ``classes`` of the predicted class, (n_rows,)."""
        if self.walk is not None:
            return self.walk.classes[self.arrive(X)]
        return np.argmax(self._plan.class_proba(X, self.leaf_votes), axis=1)


def used_shares(shares: FloatArray, weights: FloatArray) -> FloatArray:
    """Importances of a tree with these weights: features that it does not use lose theirs."""
    unused = ~np.any(weights, axis=1)
    if not np.any(shares[unused]):
        return shares
    kept = np.where(unused, 0.0, shares)
    return kept / kept.sum() if kept.sum() > 0 else kept


# --- estimators that hold a tree -----------------------------------------------------------------


class TreeHolder:
    """An estimator that has a tree, ``tree_``, once it is fitted."""

    tree_: TreeModel


def holder_of(estimator: Any, *, numbers: bool = False) -> Any:
    """The fitted estimator itself, or the one that a search has chosen.

    Trees that predict numbers are for readers who say that they serve ``numbers`` too.
    """
    chosen = getattr(estimator, "best_estimator_", estimator)
    if isinstance(chosen, TreeHolder) and hasattr(chosen, "tree_"):
        if not numbers:
            refuse_numbers(chosen.tree_)
        return chosen
    from sklearn.utils.validation import check_is_fitted

    if chosen is estimator and hasattr(estimator, "cv"):  # a search that may not have chosen yet
        check_is_fitted(estimator)
    if not isinstance(chosen, TreeHolder):
        last = "; pass its last step, pipeline[-1]" if hasattr(estimator, "steps") else ""
        raise TypeError(f"a SoftTreeClassifier is needed, got {type(estimator).__name__}{last}.")
    check_is_fitted(chosen, "tree_")
    return chosen


def tree_of(estimator: Any, *, numbers: bool = False) -> TreeModel:
    """The tree of a fitted estimator, or of the one that a search has chosen."""
    return holder_of(estimator, numbers=numbers).tree_


def refuse_numbers(tree: TreeModel) -> None:
    """Raise a ValueError where a reader of classes is given a tree that predicts numbers."""
    if tree.numbers is not None:
        raise ValueError(
            "this is for trees that predict classes, and the tree predicts a number; "
            "docs/regression.md lists what such trees have."
        )
