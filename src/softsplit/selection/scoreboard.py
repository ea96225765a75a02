"""Scores of candidates over the folds of a cross-validation, and the choice among them.

A row is one candidate at one strength; it has a score, a number of features and a number of nonzero
coefficients for every fold.

Where every held-out row has a value, minus its log-loss (held_out.py), quality and size are traded
at a stated price. The row is chosen that has the lowest

    mean log-loss  +  price x unit x size,      size = features + terms beyond the third

with the unit the log-loss of a tree without features, less with thousands of rows: a feature must
save ``price`` parts of all that there is to save, and one of cost c (``feature_costs``) c times
that. The selections are points on this one trade
(``PRICES``). It has the form of the training objective, a loss and a strength per feature. A
tolerance in standard errors is so large for few rows that anything passes, and so small for many
that nothing does. A term beyond the first four of a question (``ChoiceRules.readable_terms``)
counts as one more feature: a second question is easier to read than ten more terms. Of trees in
whole points the one with the lowest sum is taken where a feature costs ``LOOKED_UP`` times as much.

Where folds have one score each, of any scale, the sparsest row is taken that is no more than some
standard errors worse than the best (``ERRORS``). There are two such errors, and a row must be
within both: that of the best score itself, and that of the difference,

    mean_f(d_f) <= errors x min(sqrt(var_f(b_f) / n_folds), sqrt(var_f(d_f) / n_folds))

with d_f = b_f - s_f, and b_f and s_f the scores of the best and of the row on fold f. Rows are
judged on the same folds, so that a hard fold lowers both scores and their difference has the
smaller error; but a row that is good on some folds and fails on others would pass by the second
error alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from softsplit.formulations import Formulation, formulation_of
from softsplit.support.arrays import FloatArray, mean_and_error
from softsplit.training.pointed_parts import PointedParts
from softsplit.tree.parameters import TreeParameters

PRICES = {"best": 0.0, "default": 0.0025, "one_se": 0.005, "sparse": 0.008}
"""What a feature costs in the choice, as a part of the log-loss without features, by selection."""

LOOKED_UP = 2.0
"""Times its price that a feature costs in points: a person looks each of them up."""

ERRORS = {"best": 0.0, "default": 1.0, "one_se": 1.0, "sparse": 2.0}
"""Standard errors over folds by which a sparser tree may be worse, by selection."""

CLEAR = 0.02
"""A difference of mean values that counts, however large its standard error is: of few samples it
is so large that nothing would."""


class Candidate(NamedTuple):
    """Settings of a tree, apart from the strength of its penalty."""

    scale: str
    depth: int
    steepness: Any
    penalty: str
    scope: str
    loss: Any = "cost"
    ridge: float = 0.0
    teacher: float = 0.0
    points: bool | str = False

    @property
    def family(self) -> Candidate:
        """Candidates with the same races: they differ in ridge, or points."""
        return self._replace(ridge=0.0, points=False)

    @property
    def formulation(self) -> Formulation:
        """Everything that depends on the loss."""
        return formulation_of(self.loss)

    def parameters(self, local: float, global_: float) -> dict[str, Any]:
        """Return the settings as parameters of ``SoftTreeClassifier``."""
        names = ("scale", "depth", "steepness", "penalty", "loss")
        parameters = {name: getattr(self, name) for name in names}
        if self.formulation.tunes_ridge:
            parameters["ridge"] = self.ridge
        if self.points == "fine":
            parameters["points"] = self.points
        strengths = {"local_strength": local, "global_strength": global_}
        return parameters | strengths

    @property
    def label(self) -> str:
        """The settings as a line of text."""
        last = self.formulation.label(self.steepness, self.ridge)
        usual = self.formulation.choice.axes
        varied = [
            f"{name} {value}"
            for name, value in (("scope", self.scope), ("penalty", self.penalty))
            if value != usual[f"{name}s" if name == "scope" else "penalties"][0]
        ]
        if self.teacher > 0:
            varied.append(f"teacher {self.teacher:g}")
        return ", ".join([f"depth {self.depth}", f"{self.scale} scaling", last, *varied])


class Valued(NamedTuple):
    """Held-out rows of a fold: value of the tree on each, and their weights."""

    values: FloatArray
    weights: FloatArray


class FoldScore(NamedTuple):
    """One tree on one fold; with ``parts`` in whole points, whose sizes and scores these are."""

    tree: TreeParameters
    score: float
    n_features: float
    n_coefficients: float
    seconds: float
    samples: Valued | None = None
    long_terms: float = 0.0
    price: float = 0.0
    parts: PointedParts | None = None


Key = tuple[Candidate, float]
"""A candidate, and its strength as a fraction of the cost of a tree that uses no feature."""


@dataclass
class Scoreboard:
    """Scores by row and fold; rows are compared once all of their folds are scored.

    ``unit`` is that of prices (``price_unit`` of held_out.py). Candidates in ``not_deeper``, one
    level deeper than the best one and not clearly better, are told, but compared no more.
    """

    n_folds: int
    unit: float = 1.0
    folds: dict[Key, dict[int, FoldScore]] = field(default_factory=dict)
    not_deeper: set[Candidate] = field(default_factory=set)
    _pooled: dict[Key, tuple[FloatArray, FloatArray] | None] = field(default_factory=dict)
    _worth: dict[Key, float] = field(default_factory=dict)
    _sizes: dict[Key, tuple[float, ...]] = field(default_factory=dict)

    def add(self, candidate: Candidate, fraction: float, fold: int, score: FoldScore) -> None:
        for known in (self._pooled, self._worth, self._sizes):
            known.pop((candidate, fraction), None)
        self.folds.setdefault((candidate, fraction), {})[fold] = score

    def rows(self) -> list[Key]:
        """Return the rows scored on every fold, or on most folds if there are none.

        Trees in points are compared with each other alone.
        """
        known = {
            key: folds
            for key, folds in self.folds.items()
            if key[0] not in self.not_deeper and not key[0].points
        }
        most = max((len(folds) for folds in known.values()), default=0)
        return [key for key, folds in known.items() if len(folds) == most]

    def pointed(self) -> list[Key]:
        """Return the rows of trees in whole points."""
        return [key for key in self.folds if key[0].points]

    def trees(self, key: Key) -> list[TreeParameters]:
        """Return the trees of a row, fold by fold."""
        folds = self.folds.get(key, {})
        return [folds[fold].tree for fold in sorted(folds)]

    def known(self, candidate: Candidate, fold: int) -> dict[float, TreeParameters]:
        """Return the trees of a candidate on a fold, by strength."""
        return {
            fraction: folds[fold].tree
            for (other, fraction), folds in self.folds.items()
            if other == candidate and fold in folds
        }

    def values(self, key: Key, name: str) -> FloatArray:
        """One number per fold, (n_folds,); nan where a score is missing."""
        folds = self.folds[key]
        return np.array(
            [getattr(folds[f], name) if f in folds else np.nan for f in range(self.n_folds)]
        )

    def mean(self, key: Key, name: str = "score") -> float:
        """Return the mean over the folds that have a number; minus infinity if none has."""
        values = _numbers(self.values(key, name))
        return float(np.mean(values)) if len(values) else -np.inf

    def worth(self, key: Key) -> float:
        """Return what rows are compared by: mean value of held-out rows, or mean score."""
        if key not in self._worth:
            value = self._samples(key)
            self._worth[key] = (
                self.mean(key) if value is None else float(value[1] @ value[0] / value[1].sum())
            )
        return self._worth[key]

    def _samples(self, key: Key) -> tuple[FloatArray, FloatArray] | None:
        """Return values and weights of all held-out rows, fold by fold; None if there are none."""
        if key not in self._pooled:
            folds = self.folds[key]
            known = [folds[f].samples for f in sorted(folds)]
            parts = [one for one in known if one is not None]
            self._pooled[key] = None
            if parts and len(parts) == len(known):
                values, weights = (np.concatenate([one[i] for one in parts]) for i in (0, 1))
                self._pooled[key] = values, weights
        return self._pooled[key]

    def best(self, keys: Sequence[Key] | None = None, price: float = 0.0) -> Key:
        """Return the row with the highest mean score, the sparsest of equals.

        Where held-out rows have values, ``price`` is that of its size.
        """
        return min(self.rows() if keys is None else keys, key=lambda key: self._order(key, price))

    def _order(self, key: Key, price: float) -> tuple[float, ...]:
        return (-round(self.net(key, price), 12), *self._sparsity(key))

    def chosen(self, selection: str) -> Key:
        """Return the row of the trade, of trees in points if there are any."""
        pointed = self.pointed()
        if not pointed:
            return self.traded(selection)
        return self.best(pointed, LOOKED_UP * PRICES[selection])

    def traded(self, selection: str) -> Key:
        """Return the row of the trade; of scored folds, the sparsest row close to the best."""
        best = self.best()
        if self.valued(best):
            known = [key for key in self.rows() if np.isfinite(self.worth(key))]
            return self.best(known, PRICES[selection])
        near = (
            key
            for key in self.rows()
            if np.isfinite(self.worth(key)) and self.close(key, best, ERRORS[selection])
        )
        return min(near, key=self._sparsity, default=best)

    def valued(self, key: Key) -> bool:
        """Whether held-out rows have values, one by one."""
        return self._samples(key) is not None

    def size(self, key: Key) -> float:
        """Return the mean number of features, each at its price (``feature_costs``), with terms
        beyond the first three of a question."""
        return self.mean(key, "price") + self.mean(key, "long_terms")

    def net(self, key: Key, price: float) -> float:
        """Return what rows are chosen by: ``worth`` less the price of the size, if it has one."""
        if not self.valued(key):
            return self.worth(key)
        return self.worth(key) - price * self.unit * self.size(key)

    def close(self, key: Key, best: Key, errors: float = 1.0) -> bool:
        """Whether a row is worse than the best by at most ``errors`` standard errors."""
        ours, theirs = self._samples(key), self._samples(best)
        if ours is not None and theirs is not None and len(ours[0]) == len(theirs[0]):
            return _near(theirs[0] - ours[0], ours[1], errors)
        scores = self.values(best, "score")
        differences = scores - self.values(key, "score")
        known = np.isfinite(differences)
        if known.sum() < 2:
            return bool(np.all(differences[known] <= 0))
        spread = min(np.std(scores[known], ddof=1), np.std(differences[known], ddof=1))
        error = errors * spread / np.sqrt(known.sum())
        return bool(np.mean(differences[known]) <= error + 1e-12)

    def behind(self, key: Key, other: Key) -> tuple[float, float]:
        """Return how much worse a row is than another on the same held-out rows, and the standard
        error of that; of scored folds, over folds."""
        ours, theirs = self._samples(key), self._samples(other)
        if ours is not None and theirs is not None and len(ours[0]) == len(theirs[0]):
            return mean_and_error(theirs[0] - ours[0], ours[1])
        differences = _numbers(self.values(other, "score") - self.values(key, "score"))
        return (
            mean_and_error(differences, np.ones(len(differences)))
            if len(differences)
            else (np.nan, np.nan)
        )

    def hopeful(self, candidate: Candidate, n_folds: int, price: float = 0.0) -> bool:
        """Whether a candidate, judged on the first folds, is within one error of the best there.

        It is compared at its own best strength with the best row of all; both are judged on the
        samples of these folds alone, less the ``price`` of their sizes.
        """
        here = [key for key in self.folds if key[0] == candidate]
        known = self.rows()
        if not here or not known or here[0] in known:
            return True
        best = self._first(self.best(known, price), n_folds, price)
        ours = [self._first(key, n_folds, price) for key in here]
        if best is None or any(one is None or len(one[0]) != len(best[0]) for one in ours):
            return True
        top = max((one for one in ours if one), key=lambda one: np.average(one[0], weights=one[1]))
        return _near(best[0] - top[0], best[1])

    def _first(self, key: Key, n_folds: int, price: float) -> tuple[FloatArray, FloatArray] | None:
        """Return values, less the price of the size, and weights of rows of the first folds."""
        parts = [self.folds[key][f].samples for f in range(n_folds) if f in self.folds[key]]
        if len(parts) < n_folds or any(one is None for one in parts):
            return None
        known = [one for one in parts if one is not None]
        values, weights = (np.concatenate([one[i] for one in known]) for i in (0, 1))
        return values - price * self.unit * self.size(key), weights

    def leaders(self, count: int, price: float = 0.0) -> list[Candidate]:
        """Return up to ``count`` candidates whose best rows are within one error of the best.

        Rows are ordered by their worth less the ``price`` of their size.
        """
        complete = self.rows()
        rows: dict[Candidate, list[Key]] = {}
        for key in complete:
            rows.setdefault(key[0], []).append(key)

        tops = (self.best(keys, price) for keys in rows.values())
        best = sorted(tops, key=lambda key: self._order(key, price))
        return [key[0] for key in best[:count] if self.close(key, best[0])]

    def _sparsity(self, key: Key) -> tuple[float, ...]:
        """Return the sort key, least first: features, depth, coefficients per branch, rounded.

        Among equals the weakest strength is the safest: under a strong one the same tree may be an
        optimum hardly better than the empty tree, and lose to it on other rows.
        """
        if key not in self._sizes:
            self._sizes[key] = self._size(key)
        return self._sizes[key]

    def _size(self, key: Key) -> tuple[float, ...]:
        depth = key[0].depth
        if self.valued(key):  # saturated branches do not count
            return (
                np.rint(self.size(key)),
                np.rint(self.mean(key, "n_coefficients")),
                -round(self.worth(key), 12),
                depth,
                key[1],
            )
        return (
            np.rint(self.mean(key, "price")),
            depth,
            np.rint(self.mean(key, "n_coefficients") / (2**depth - 1)),
            -round(self.mean(key), 12),
            key[1],
        )

    def table(self, selection: str = "best") -> dict[str, Any]:
        """``cv_results_``: a column per array, a row per candidate and strength.

        Where held-out rows have values, trees are compared by ``mean_test_log_loss``, and
        ``selection`` takes the one with the lowest ``priced_log_loss``.
        """
        keys = list(self.folds)
        table: dict[str, Any] = {
            f"param_{name}": np.array([getattr(key[0], name) for key in keys])
            for name in Candidate._fields
        }
        table["param_strength_fraction"] = np.array([key[1] for key in keys])
        table["params"] = [key[0]._asdict() | {"strength_fraction": key[1]} for key in keys]
        scores = np.array([self.values(key, "score") for key in keys]).reshape(-1, self.n_folds)
        for f in range(self.n_folds):
            table[f"split{f}_test_score"] = scores[:, f]
        means = np.array([self.mean(key) for key in keys])
        table["mean_test_score"] = np.where(np.isfinite(means), means, np.nan)
        known = [_numbers(row) for row in scores]
        table["std_test_score"] = np.array([np.std(row) if len(row) else np.nan for row in known])
        if keys and self.valued(keys[0]):
            table["mean_test_log_loss"] = np.array([-self.worth(key) for key in keys])
            price = PRICES[selection]
            table["priced_log_loss"] = np.array([-self.net(key, price) for key in keys])
        for name in ("n_features", "n_coefficients"):
            table[f"mean_{name}"] = np.array([self.mean(key, name) for key in keys])
        table["mean_fit_time"] = np.array([self.mean(key, "seconds") for key in keys])
        table["n_splits_done"] = np.array([len(self.folds[key]) for key in keys])
        table["rank_test_score"] = rankdata(-np.round(means, 12), method="min").astype(np.int64)
        return table


def _near(differences: FloatArray, weights: FloatArray, errors: float = 1.0) -> bool:
    """Whether the mean difference is at most ``errors`` standard errors, and at most CLEAR."""
    mean, error = mean_and_error(differences, weights)
    return mean <= min(errors * error, CLEAR) + 1e-12


def _numbers(values: FloatArray) -> FloatArray:
    return values[np.isfinite(values)]
