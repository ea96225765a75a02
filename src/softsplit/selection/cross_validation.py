"""Trees of candidates along paths of strengths, judged on the folds of a cross-validation.

A strength is given as a fraction of the cost of the cheapest tree that uses no feature: under the
"l0" penalty a feature then enters if it saves about that part of all that could be saved. The same
fraction means the same on every fold, and under every scaling, steepness and depth.

On each fold a path is walked from the weakest strength to the strongest, each tree started from the
last one; nothing is searched for beyond that, so that many paths can be compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone

from softsplit.estimators.classifier import RunSettings, SoftTreeClassifier
from softsplit.problem.problem import TrainingProblem
from softsplit.selection.folds import Split
from softsplit.selection.scoreboard import Candidate, Mark, Scoreboard
from softsplit.selection.strengths import featureless_cost, strengths, with_strengths
from softsplit.solvers import Solution, Start, Status
from softsplit.support.arrays import FloatArray
from softsplit.support.parallel import n_workers
from softsplit.training.multistart import NoFeasibleTreeError, best_solution
from softsplit.training.walk import walk
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import predicted_classes
from softsplit.tree.scaling import scaled_rows

PATH_ITERATIONS = 200
"""Iterations of one descent, where the user sets no limit: what comes later is not worth the time
while trees are only compared."""

MORE_STARTS = 10
"""Times the starts where no usual one ends in a feasible tree."""

Scorer = Callable[..., float]
Task = tuple[Candidate, int]


@dataclass(frozen=True)
class TrainingData:
    """Validated rows; labels are positions in ``classes``; ``weighted`` if weights were given."""

    X: FloatArray
    labels: NDArray[np.int64]
    weight: FloatArray
    classes: NDArray[Any]
    weighted: bool

    @property
    def y(self) -> NDArray[Any]:
        named: NDArray[Any] = self.classes[self.labels]
        return named

    def part(self, rows: NDArray[np.intp]) -> TrainingData:
        return replace(self, X=self.X[rows], labels=self.labels[rows], weight=self.weight[rows])


@dataclass(frozen=True)
class Judge:
    """Walks the paths of candidates on the folds and keeps the marks.

    Parameters
    ----------
    base : SoftTreeClassifier
        All settings that are not chosen.
    data : TrainingData
    splits : list of (training rows, test rows)
    scorer : callable, optional
        scikit-learn scorer; accuracy if not given.
    run : RunSettings
    """

    base: SoftTreeClassifier
    data: TrainingData
    splits: Sequence[Split]
    scorer: Scorer | None
    run: RunSettings

    def evaluate(
        self, candidates: Sequence[Candidate], fractions: Sequence[float], board: Scoreboard
    ) -> None:
        """Add the marks of every candidate at every fraction to the board.

        A candidate that has marks at other strengths goes on from the trees there.
        """
        tasks = [(c, f) for f in range(len(self.splits)) for c in candidates]
        finished = self._run(tasks, tuple(fractions), board)
        for candidate, fold in tasks:  # in this order, whichever ended first
            marks = finished.get((candidate, fold), [])
            for fraction, mark in zip(fractions, marks, strict=False):
                board.add(candidate, fraction, fold, mark)

    def _run(
        self, tasks: Sequence[Task], fractions: tuple[float, ...], board: Scoreboard
    ) -> dict[Task, list[Mark]]:
        known = {task: board.known(*task) for task in tasks}
        finished: dict[Task, list[Mark]] = {}
        running: set[Task] = set()

        def run(task: Task) -> None:
            running.add(task)
            try:
                finished[task] = self.marks(*task, fractions, known[task])
            finally:
                running.discard(task)

        workers = n_workers(self.run.n_jobs, len(tasks))
        try:
            if workers == 1:
                for task in tasks:
                    run(task)
            elif self.run.solver.releases_gil:
                Parallel(n_jobs=workers, require="sharedmem")(delayed(run)(t) for t in tasks)
            else:
                parallel = Parallel(n_jobs=workers, prefer="processes")
                ends = parallel(
                    delayed(self.marks)(*task, fractions, known[task]) for task in tasks
                )
                finished.update(zip(tasks, ends, strict=True))
        except KeyboardInterrupt:
            self.run.budget.cancel.requested = True  # threads stop at their next look at it
            while running:
                time.sleep(0.01)
        return finished

    def marks(
        self,
        candidate: Candidate,
        fold: int,
        fractions: Sequence[float],
        known: Mapping[float, TreeParameters],
    ) -> list[Mark]:
        """Marks of the trees of one path on one fold; fewer if the budget ran out.

        With trees ``known`` at other strengths, each tree starts from the nearest of them.
        """
        if self.run.budget.exhausted:
            return []
        train, test = self.splits[fold]
        model, problem = _on_fold(configured(self.base, candidate), self.data.part(train))
        rows = _TestRows.of(model, self.data.part(test), self.scorer)
        marks = []
        began = time.perf_counter()
        for solution in self._path(model, problem, candidate, fractions, known):
            weights = solution.parameters.weights
            zero = np.abs(weights) <= self.run.solver.zero_threshold
            marks.append(
                Mark(
                    solution.parameters,
                    rows.score(solution),
                    float(np.sum(~np.all(zero, axis=1))),
                    float(np.sum(~zero)),
                    (time.perf_counter() - began) / len(fractions),
                )
            )
        return marks

    def _path(
        self,
        model: SoftTreeClassifier,
        problem: TrainingProblem,
        candidate: Candidate,
        fractions: Sequence[float],
        known: Mapping[float, TreeParameters],
    ) -> list[Solution]:
        """Trees to judge; none if no start, of more than usual, meets the class rates."""
        if known:
            at = [_nearest(known, fraction) for fraction in fractions]
            return whole_trees(
                [
                    settled(model, problem, candidate, fraction, [known[near]], self.run)
                    for fraction, near in zip(fractions, at, strict=True)
                    if not self.run.budget.exhausted
                ]
            )
        more = self.run._replace(n_starts=MORE_STARTS * self.run.n_starts)
        for run in (self.run, more):
            try:
                return whole_trees(trees(model, problem, candidate, fractions, run))
            except NoFeasibleTreeError:
                continue
        return []


def configured(base: SoftTreeClassifier, candidate: Candidate) -> SoftTreeClassifier:
    """The base with the settings of the candidate."""
    return clone(base).set_params(
        scale=candidate.scale,
        depth=candidate.depth,
        steepness=candidate.steepness,
        penalty=candidate.penalty,
    )


def trees(
    model: SoftTreeClassifier,
    problem: TrainingProblem,
    candidate: Candidate,
    fractions: Sequence[float],
    run: RunSettings,
) -> list[Solution]:
    """The trees along the path of a prepared model, up to where the budget ends."""
    unit = featureless_cost(problem)
    return walk(
        [with_strengths(problem, *strengths(candidate.scope, f * unit)) for f in fractions],
        model._adapted(run.solver),
        keep=1,
        n_starts=run.n_starts,
        seed=run.seed,
        budget=replace(run.budget, max_iter=run.budget.max_iter or PATH_ITERATIONS),
        thorough=False,
    )


def _nearest(known: Mapping[float, TreeParameters], fraction: float) -> float:
    """The next weaker strength whose tree is known, or the weakest of all."""
    weaker = [near for near in known if near <= fraction]
    return max(weaker) if weaker else min(known)


def settled(
    model: SoftTreeClassifier,
    problem: TrainingProblem,
    candidate: Candidate,
    fraction: float,
    starts: Sequence[TreeParameters],
    run: RunSettings,
) -> Solution:
    """The best of the trees that ``starts`` lead to at one strength."""
    unit = featureless_cost(problem)
    problem = with_strengths(problem, *strengths(candidate.scope, fraction * unit))
    budget = replace(run.budget, max_iter=run.budget.max_iter or PATH_ITERATIONS)
    solver = model._adapted(run.solver)
    found: list[Solution] = []
    for tree in starts:
        if not budget.exhausted or not any(s.status.usable for s in found):
            found.append(solver.solve(problem, Start(tree), budget))
    return best_solution(found, budget)


def whole_trees(found: Sequence[Solution]) -> list[Solution]:
    """The trees before the first that the budget cut short: that one is not judged."""
    cut = [s.status in (Status.INTERRUPTED, Status.TIME_LIMIT) for s in found]
    return list(found[: cut.index(True)] if any(cut) else found)


@dataclass(frozen=True)
class _TestRows:
    """Rows to score trees on; scaled once, for the path uses one scaling."""

    model: SoftTreeClassifier
    data: TrainingData
    scorer: Scorer | None
    scaled: FloatArray

    @classmethod
    def of(cls, model: SoftTreeClassifier, data: TrainingData, scorer: Scorer | None) -> _TestRows:
        return cls(model, data, scorer, scaled_rows(model.scaling_, data.X).T)

    def score(self, solution: Solution) -> float:
        if self.scorer is not None:
            fitted = self.model._fitted_with(0.0, 0.0, solution)
            known = self.data.weighted and takes_weights(self.scorer)
            weight = {"sample_weight": self.data.weight} if known else {}
            return float(self.scorer(fitted, self.data.X, self.data.y, **weight))
        if not np.any(self.data.weight):
            raise ValueError("a test fold holds no sample of positive weight; use other folds.")
        steepness = float(self.model.steepness)
        found = predicted_classes(solution.parameters, self.scaled, steepness)
        called = self.model.classes_[found]
        return float(np.average(called == self.data.y, weights=self.data.weight))


def _on_fold(
    model: SoftTreeClassifier, data: TrainingData
) -> tuple[SoftTreeClassifier, TrainingProblem]:
    """The model prepared for the training rows of a fold, and its problem.

    A class without such rows cannot be learned there: test rows of it count as errors.
    """
    present = np.zeros(len(data.classes), dtype=bool)
    present[data.labels[data.weight > 0]] = True
    if present.sum() < 2:
        raise ValueError("a training fold holds fewer than two classes; use other folds.")
    labels = data.labels
    if not np.all(present):
        model.set_params(**_for_classes(model, data.classes, present))
        labels = np.maximum(np.cumsum(present)[labels] - 1, 0)
    model.classes_ = data.classes[present]
    model.n_features_in_ = data.X.shape[1]
    return model, model._prepare_checked(data.X, labels, data.weight)


def _for_classes(
    model: SoftTreeClassifier, classes: NDArray[Any], present: NDArray[np.bool_]
) -> dict[str, Any]:
    """Costs, rates and class weights for the classes that a fold has rows to learn from."""
    kept = set(classes[present].tolist())
    settings: dict[str, Any] = {}
    if model.cost_matrix is not None:
        settings["cost_matrix"] = np.asarray(model.cost_matrix)[np.ix_(present, present)]
    for name in ("class_weight", "min_class_rate"):
        value = getattr(model, name)
        if isinstance(value, Mapping):
            settings[name] = {label: value[label] for label in value if label in kept}
        elif np.ndim(value) == 1:
            settings[name] = np.asarray(value)[present]
    return settings


def takes_weights(scorer: Scorer) -> bool:
    """Whether a scorer can be handed sample weights."""
    asked = getattr(scorer, "_accept_sample_weight", None)
    if asked is not None:
        return bool(asked())
    return "sample_weight" in signature(scorer).parameters
