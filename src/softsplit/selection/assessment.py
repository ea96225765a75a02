"""Held-out predictions of the trees along a path of strengths, and of other methods.

Strengths are fractions of a unit (strengths.py). With few rows, cross-validation predicts every row
once; with many, a fifth is held out and all methods are trained on the same part of the rest. The
baselines (baselines.py) predict the same rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, train_test_split

from softsplit.formulations.model_settings import ModelSettings
from softsplit.formulations.rates import RatedRows
from softsplit.formulations.settings import class_weights
from softsplit.selection.baselines import (
    BASELINES,
    TITLES,
    Trained,
    train_baseline,
)
from softsplit.selection.fold_paths import prepare_fold, solve_fold_path, whole_trees
from softsplit.selection.strengths import Pair
from softsplit.support.arrays import FloatArray
from softsplit.support.parallel import (
    in_threads,
    n_threads,
    n_workers,
    one_blas_thread,
)
from softsplit.training.fitted_tree import fitted_tree
from softsplit.training.rows import Rows
from softsplit.training.run import CheckRows, Run

NOT_JUDGED = -1
HELD_OUT = 0.2
FOREIGN = r"sklearn\.|softsplit\.selection\.baselines"
"""Modules whose warnings are about other methods."""

Codes = NDArray[np.int64]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Judged:
    """Predictions of one method for held-out rows.

    Attributes
    ----------
    calls : array of int, shape (n_rows,)
        Predicted classes; -1 where the work was cut short.
    proba : array of shape (n_rows, n_classes)
    features : float
        Number of features in use, averaged over the folds.
    """

    calls: Codes
    proba: FloatArray
    features: float = 0.0

    @property
    def complete(self) -> bool:
        """Whether every row was predicted."""
        return bool(np.all(self.calls != NOT_JUDGED))


@dataclass(frozen=True)
class Assessment:
    """Held-out predictions of all methods.

    Attributes
    ----------
    labels : array of int, shape (n_rows,)
        True classes of the held-out rows.
    trees : tuple of Judged
        Of the trees along the path.
    baselines : dict of Judged
        By name: "majority", "logistic", "cart" and "boosting".
    n_folds : int
        1 if a fifth was held out.
    n_trained : int
        Approximate number of rows that each model was trained on.
    rated : RatedRows, optional
        Cells of the held-out rows and the requirements on rates, if there are any.
    rows : array of int, shape (n_rows,), optional
        Which of the training rows were held out, in ascending order.
    """

    labels: Codes
    trees: tuple[Judged, ...]
    baselines: dict[str, Judged]
    n_folds: int
    n_trained: int
    rated: RatedRows | None = None
    rows: Codes | None = None

    def judged(self, point: int) -> bool:
        """Whether every row was predicted at this point."""
        return self.trees[point].complete


@dataclass(frozen=True)
class PathTrainer:
    """Trains the trees of a path on a part of the rows.

    Parameters
    ----------
    settings : ModelSettings
    rows : Rows
    shares : pair of float
        Parts of a strength that are local and global.
    fractions : sequence of float
        Strengths from weak to strong.
    run : Run
    check : callable
        Validates rows that the user gave to the solver.
    """

    settings: ModelSettings
    rows: Rows
    shares: Pair
    fractions: Sequence[float]
    run: Run
    check: CheckRows

    @property
    def n_classes(self) -> int:
        return len(self.rows.classes)

    def predict(self, train: Codes, test: Codes) -> list[tuple[Codes, FloatArray]]:
        """Train on some rows and return classes and probabilities of the test rows by strength.

        There are fewer than strengths if the time ran out.
        """
        rows, tested = self.rows.fold(train, test)
        present = np.flatnonzero(rows.present())
        if len(present) < 2:  # nothing to learn: all rows are of one class
            sure = np.zeros((len(test), self.n_classes))
            sure[:, present] = 1.0
            return [(np.full(len(test), present[0]), sure)] * len(self.fractions)
        if self.run.budget.exhausted:
            return []
        prepared = prepare_fold(self.settings, rows)
        run = self.run.adapted(prepared, self.check)
        solutions = whole_trees(solve_fold_path(prepared, self.shares, self.fractions, run))
        said = []
        for solution in solutions:
            tree = fitted_tree(prepared, solution, run.solver.zero_threshold)
            X, proba = tree.recoded(tested.X, rows.coding), np.zeros((len(test), self.n_classes))
            proba[:, present] = tree.predict_proba(X)
            said.append((present[tree.predict_index(X)], proba))
        return said

    @cached_property
    def _straight(self) -> NDArray[np.intp]:
        """Columns of the rows that are no hinges."""
        hinges = np.zeros(self.rows.X.shape[1], dtype=bool)
        return np.flatnonzero(~(hinges if self.rows.coding is None else self.rows.coding.hinges))

    def columns(self, train: Codes, test: Codes) -> tuple[FloatArray, Codes, FloatArray, Any]:
        """What a baseline is trained on: the same rows as the trees, and class weights."""
        own, other = self.rows.fold(train, test)
        straight = self._straight
        return own.X[:, straight], own.labels, other.X[:, straight], self.class_weights(train)

    def n_used(self, columns: NDArray[np.intp]) -> int:
        """Number of columns of the table among those that a baseline uses."""
        if self.rows.coding is not None:  # several coded columns belong to one of the table
            columns = np.array(self.rows.coding.places)[
                self.rows.coding.homes[self._straight[columns]]
            ]
        return len(np.unique(columns))

    def class_weights(self, train: Codes) -> FloatArray:
        """Weight of a row of each class in the training of the trees, (n_classes,)."""
        given = self.settings.class_weight
        if given is None:
            return np.ones(self.n_classes)
        counts = np.bincount(self.rows.labels[train], minlength=self.n_classes)
        return class_weights(given, self.rows.classes, np.maximum(counts, 1).astype(float))


BaselineTask = tuple[str, int]
"""The name of a baseline, and the fold on which it is judged."""


def assess(
    trainer: PathTrainer,
    *,
    n_folds: int = 5,
    seed: int = 0,
    held_out: bool = False,
    most_trained: int | None = None,
    say: Say = lambda _: None,
    baselines: bool = True,
    between: Callable[[], None] = lambda: None,
    worker: Executor | None = None,
) -> Assessment:
    """Predict held-out rows with the trees of a path and then with the baselines.

    An interruption, or the end of the time, ends the work; the result holds what was predicted by
    then. Baselines are judged in the order of ``BASELINES``.

    Parameters
    ----------
    trainer : PathTrainer
    n_folds, seed : int
    held_out : bool
        Whether a fifth of the rows is held out, instead of folds.
    most_trained : int, optional
        Most rows to train on.
    say : callable
        Receives a line about every step of the work.
    baselines : bool
        Whether the other methods are judged too.
    between : callable
        Called when the trees were judged, before the other methods take their time.
    worker : Executor, optional
        Trains baselines from the beginning, while this process trains the trees.
    """
    rows, budget = trainer.rows, trainer.run.budget
    labels = rows.labels
    splits = _held_out(labels, seed) if held_out else _splits(labels, n_folds, seed)
    splits = [(_some(train, most_trained, seed), test) for train, test in splits]
    shape = (len(labels), trainer.n_classes)
    trees = [_empty(shape) for _ in trainer.fractions]
    judged_folds: list[int] = []

    def judge_trees(fold: int) -> None:
        train, test = splits[fold]
        for judged, (calls, proba) in zip(trees, trainer.predict(train, test), strict=False):
            judged.calls[test], judged.proba[test] = calls, proba
        judged_folds.append(fold)
        if len(judged_folds) < len(splits):
            say(f"judging trees on held-out rows: {_part(len(judged_folds), splits)}")

    workers = n_workers(trainer.run.n_jobs, len(splits))
    threads = max(1, n_threads(trainer.run.n_jobs) // workers)
    tasks = [(name, fold) for name in BASELINES if baselines for fold in range(len(splits))]
    sent: dict[BaselineTask, Future[Trained]] = {}
    trained: dict[BaselineTask, Trained] = {}

    def judge_baseline(task: BaselineTask) -> None:
        if not budget.exhausted and (task not in sent or sent[task].cancel()):
            name, fold = task
            say(f"judging for comparison: {TITLES[name]}, {_part(fold, splits)}")
            trained[task] = train_baseline(name, *trainer.columns(*splits[fold]), seed, threads)

    with budget.interruptible(), one_blas_thread(), warnings.catch_warnings():
        # Slow convergence at the weakest strength, rare classes.
        warnings.filterwarnings("ignore", module=FOREIGN)
        # 1. The worker begins with the first baseline; its rows are those of this process.
        say(f"judging trees on held-out rows: {_part(0, splits)}")
        if worker is not None:
            with suppress(BrokenExecutor):
                for name, fold in tasks:
                    arguments = name, *trainer.columns(*splits[fold]), seed, threads
                    sent[name, fold] = worker.submit(train_baseline, *arguments)
        # 2. The trees of all folds.
        in_threads(judge_trees, range(len(splits)), workers, budget.stop)
        between()
        # 3. This process begins with the last baseline, and takes what the worker has not begun.
        beside = workers if worker is None else max(1, workers - 1)
        in_threads(judge_baseline, tasks if worker is None else tasks[::-1], beside, budget.stop)
        # 4. What the worker has; where it has died, this process does its work.
        for task, future in list(sent.items()):
            while task not in trained and not budget.exhausted:
                with suppress(TimeoutError):
                    if isinstance(future.exception(timeout=0.05), BrokenExecutor):
                        del sent[task]
                        judge_baseline(task)
                    else:
                        trained[task] = future.result()
    for future in sent.values():
        future.cancel()
    judged_rows = np.sort(np.concatenate([test for _, test in splits]))
    return Assessment(
        labels=labels[judged_rows],
        trees=tuple(_of(judged, 0.0, judged_rows) for judged in trees),
        baselines={
            name: _of(*_put_together(name, splits, trained, trainer), judged_rows)
            for name in BASELINES
        },
        n_folds=len(splits),
        n_trained=int(np.mean([len(train) for train, _ in splits])),
        rated=None if rows.rated is None else rows.rated.part(judged_rows),
        rows=judged_rows,
    )


def _put_together(
    name: str,
    splits: Sequence[tuple[Codes, Codes]],
    trained: Mapping[BaselineTask, Trained],
    trainer: PathTrainer,
) -> tuple[Judged, float]:
    """What a baseline predicted for all rows, and its mean number of columns."""
    judged = _empty((len(trainer.rows.labels), trainer.n_classes))
    used = np.zeros(len(splits))
    for fold, (_, test) in enumerate(splits):
        if (name, fold) in trained:
            proba = trained[name, fold].proba
            judged.proba[test] = proba
            judged.calls[test] = _calls(proba, trainer.settings.cost_matrix)
            used[fold] = trainer.n_used(trained[name, fold].used)
    return judged, float(np.mean(used))


def _part(fold: int, splits: Sequence[Any]) -> str:
    return "all at once" if len(splits) == 1 else f"part {fold + 1} of {len(splits)}"


def _empty(shape: tuple[int, int]) -> Judged:
    return Judged(np.full(shape[0], NOT_JUDGED, dtype=np.int64), np.zeros(shape))


def _of(judged: Judged, features: float, rows: Codes) -> Judged:
    return Judged(judged.calls[rows], judged.proba[rows], features)


def _calls(proba: FloatArray, costs: Any) -> Codes:
    """Return the most probable class, or that of least expected cost under a cost matrix."""
    if costs is None:
        return np.argmax(proba, axis=1)
    return np.argmin(proba @ np.asarray(costs, dtype=float), axis=1)


def _some(train: Codes, most: int | None, seed: int) -> Codes:
    if most is None or len(train) <= most:
        return train
    return np.sort(np.random.default_rng(seed).permutation(train)[:most])


def _held_out(labels: Codes, seed: int) -> list[tuple[Codes, Codes]]:
    strata = labels if np.bincount(labels).min() >= 2 else None
    train, test = train_test_split(
        np.arange(len(labels)), test_size=HELD_OUT, stratify=strata, random_state=seed
    )
    return [(np.sort(train), np.sort(test))]


def _splits(labels: Codes, n_folds: int, seed: int) -> list[tuple[Codes, Codes]]:
    largest = int(np.max(np.bincount(labels)))
    folds = StratifiedKFold(max(2, min(n_folds, largest)), shuffle=True, random_state=seed)
    with warnings.catch_warnings():  # a class too rare for some folds counts as wrong there
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return list(folds.split(labels, labels))
