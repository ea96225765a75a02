"""Teachers: class probabilities of another classifier, mixed with the labels that a tree learns.

    target_ik = (1 - weight) [y_i = k] + weight t_ik

A label says which class a row is of; a teacher's probabilities t_ik say how sure one can be, and so
tell a clear row from one that noise has put there. A tree that is trained on the mixture needs
fewer features for the same quality. The weight is chosen with the other settings, on held-out rows
and their true labels.

No row is taught by a model that has seen it, nor by one that has seen the held-out rows of its
fold. Folds are put into at most ``blocks`` blocks, and for each pair of blocks p, q a model is
trained on the rows of all others:

    training rows of block q, in a fold of block p      the model without p and q
    rows of block q, for the tree on all rows           the mean of the models without q

With five folds these are ten models, whatever kind of classifier they are. A forest of few trees is
less sure than it could be, and boosting surer: probabilities are raised to the power with the
lowest log-loss on the labels of the rows that are taught, and made to sum to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.utils.validation import has_fit_parameter

from softsplit.selection.folds import Split
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import unfit
from softsplit.support.parallel import in_threads
from softsplit.training.rows import Rows
from softsplit.training.run import Run

BLOCKS = 5
"""Most blocks of folds: ten models."""

FOREST_TREES = 30
"""Trees of each forest; a row is taught by four times as many in the tree on all rows."""

AUTO_TREES = 15
"""Extremely randomised trees of each forest where the teacher is left to the library: on seven
data sets their mean log-loss is .346 in 0.3 s, that of ``FOREST_TREES`` .352 in 0.7 s."""

LEAF_ROWS = 2
"""Rows of a leaf of a forest at least: probabilities are smoother than with one."""

BOOSTING_ROUNDS = 60
"""Rounds of boosting: a teacher need not be the best, and small tables overfit with more."""

WEIGHTS = (0.5, 0.8)
"""Weights of a named teacher that are compared with none."""

AUTO_WEIGHTS = (0.5,)
"""The same where the teacher is left to the library: each costs as much as a depth."""

POWERS = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)
"""Powers that make a teacher less sure or surer."""

LEAST_PROBABILITY = 0.01
"""Smaller probabilities of a teacher count as zero: each costs as much as a row."""


@dataclass(frozen=True)
class SoftTargets:
    """Class probabilities by a teacher.

    Attributes
    ----------
    name : str
        The teacher, in words.
    whole : array of shape (n_rows, n_classes)
        For the tree on all rows.
    folds : list of arrays, optional
        For the training rows of each fold; those of ``whole`` if there are none.
    """

    name: str
    whole: FloatArray
    folds: Sequence[FloatArray] | None = None

    def taught(self, rows: Rows, weight: float) -> Rows:
        """Return all rows with labels and probabilities mixed as targets."""
        counted, n_classes = rows.weight > 0, len(rows.classes)
        shares = self.whole if len(self.whole) < len(counted) else self.whole[counted]
        targets = np.zeros((len(counted), n_classes))
        targets[counted] = _mixed(np.eye(n_classes)[rows.labels[counted]], shares, weight)
        return rows.taught(targets)

    def taught_fold(self, rows: Rows, fold: int, train: NDArray[np.intp], weight: float) -> Rows:
        """Return the training rows of a fold with mixed targets."""
        shares = self.whole[train] if self.folds is None else self.folds[fold]
        labels = np.where(rows.weight > 0, rows.labels, 0)  # undefined otherwise
        return rows.taught(_mixed(np.eye(len(rows.classes))[labels], shares, weight))


def _mixed(labels: FloatArray, shares: FloatArray, weight: float) -> FloatArray:
    return (1.0 - weight) * labels + weight * shares


def make_teacher(teacher: Any, seed: int) -> Any:
    """Return the classifier that a name stands for, or the one given.

    Raises
    ------
    ValueError
        If ``teacher`` is neither.
    """
    if isinstance(teacher, str) and teacher == "auto":
        return ExtraTreesClassifier(AUTO_TREES, min_samples_leaf=LEAF_ROWS, random_state=seed)
    if isinstance(teacher, str) and teacher == "forest":
        return RandomForestClassifier(FOREST_TREES, min_samples_leaf=LEAF_ROWS, random_state=seed)
    if isinstance(teacher, str) and teacher == "boosting":
        return HistGradientBoostingClassifier(
            max_iter=BOOSTING_ROUNDS, early_stopping=False, random_state=seed
        )
    if not hasattr(teacher, "predict_proba") or not is_classifier(teacher):
        raise unfit(
            "teacher",
            teacher,
            "must be None, 'auto', 'forest', 'boosting', a classifier with "
            "predict_proba, or class probabilities (n_samples, n_classes)",
        )
    return teacher


def soft_targets_of(
    teacher: Any, rows: Rows, splits: Sequence[Split], run: Run, columns: NDArray[np.intp]
) -> SoftTargets:
    """Return the probabilities that a teacher gives to rows that it has not seen.

    Parameters
    ----------
    teacher : classifier
    rows : Rows
    splits : list of (training rows, test rows)
        Each row is tested on once, or folds are repeated one after the other.
    run : Run
        Its ``n_jobs`` models are trained side by side.
    columns : int array
        Columns that the teacher sees: hinges are no news to a forest.
    """
    n_rows, n_tested = len(rows.labels), sum(len(test) for _, test in splits)
    repeats = max(1, n_tested // n_rows)
    n_folds = len(splits) // repeats
    answers = [
        _partition(teacher, rows, splits[n_folds * r : n_folds * (r + 1)], run, columns)
        for r in range(repeats)
        if n_folds > 2 and len(splits) == n_folds * repeats
    ]
    if not answers:
        raise ValueError(NEEDS_FOLDS)
    whole = np.mean([one[1] for one in answers], axis=0)
    folds = [fold for one in answers for fold in one[0]]
    whole = _calibrated(whole, rows.labels, rows.weight)
    return SoftTargets(type(teacher).__name__, whole, folds)


NEEDS_FOLDS = (
    "a teacher needs at least three folds in which each row is tested once; give cv as a number, "
    "or the teacher's probabilities."
)


def _partition(
    teacher: Any, rows: Rows, splits: Sequence[Split], run: Run, columns: NDArray[np.intp]
) -> tuple[list[FloatArray], FloatArray]:
    """Return the probabilities for each of some folds that part the rows, and for all rows."""
    n_rows, n_classes, n_folds = len(rows.labels), len(rows.classes), len(splits)
    tested = np.concatenate([test for _, test in splits])
    if len(tested) != n_rows or len(np.unique(tested)) != n_rows:
        raise ValueError(NEEDS_FOLDS)
    blocks = np.arange(n_folds) % BLOCKS
    block = np.empty(n_rows, dtype=np.intp)
    for fold, (_, test) in enumerate(splits):
        block[test] = blocks[fold]
    pairs = [
        (p, q)
        for p, q in combinations_with_replacement(range(int(blocks.max()) + 1), 2)
        if p < q or np.count_nonzero(blocks == p) > 1
    ]
    answers = {pair: np.zeros((n_rows, n_classes)) for pair in pairs}

    def learn(pair: tuple[int, int]) -> None:
        out = np.isin(block, pair)
        train, test = np.flatnonzero(~out), np.flatnonzero(out)
        answers[pair][test] = _answers(clone(teacher), *rows.fold(train, test), columns)

    in_threads(learn, pairs, run.workers(n_rows, len(pairs)), run.budget.stop)
    folds, whole = [], np.zeros((n_rows, n_classes))
    for fold, (train, _) in enumerate(splits):
        answer = np.empty((len(train), n_classes))
        for q in np.unique(block[train]).tolist():
            low, high = sorted((int(blocks[fold]), q))
            here = block[train] == q
            answer[here] = answers[low, high][train[here]]
        folds.append(_calibrated(answer, rows.labels[train], rows.weight[train]))
    for p, q in (pair for pair in pairs if pair[0] < pair[1]):
        whole += answers[p, q]
    return folds, whole


def _answers(model: Any, own: Rows, other: Rows, columns: NDArray[np.intp]) -> FloatArray:
    """Train on some rows and return the probabilities of others, (n_rows, n_classes)."""
    weight = {}
    if own.weighted and has_fit_parameter(model, "sample_weight"):
        weight = {"sample_weight": own.weight}
    model.fit(own.X[:, columns], own.labels, **weight)
    shares = np.zeros((len(other.labels), len(own.classes)))
    shares[:, model.classes_] = model.predict_proba(other.X[:, columns])
    return shares


def _calibrated(proba: FloatArray, labels: NDArray[np.int64], weight: FloatArray) -> FloatArray:
    """Return the power of probabilities that suits the labels, without very small ones."""
    least, counted = LEAST_PROBABILITY, np.flatnonzero(weight > 0)
    proba = proba / proba.sum(axis=1, keepdims=True)

    def loss(shares: FloatArray) -> float:
        known = np.maximum(shares[counted, labels[counted]], least)
        return float(-weight[counted] @ np.log(known))

    best = min((_raised(proba, power) for power in POWERS), key=loss)
    kept = np.where(best < least, 0.0, best)
    return kept / kept.sum(axis=1, keepdims=True)


def _raised(shares: FloatArray, power: float) -> FloatArray:
    raised = shares**power
    return raised / raised.sum(axis=1, keepdims=True)
