"""Cross-validation of candidates: regularisation paths (fold_paths.py) on every fold, scored on
held-out rows.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from softsplit.engines.sparse import SparseRows
from softsplit.fitted.conformal import HeldOutScores
from softsplit.formulations.model_settings import ModelSettings
from softsplit.selection.fold_memory import FoldMemory
from softsplit.selection.fold_paths import (
    best_trees,
    configured,
    fold_paths,
    nearest_strength,
    prepare_fold,
    problems_along,
    refit_from,
    solve_fold_path,
    whole_trees,
    with_ridge,
)
from softsplit.selection.folds import Split
from softsplit.selection.held_out import Scoring, TestedTree, TestRows
from softsplit.selection.rare_classes import decision_factors
from softsplit.selection.scoreboard import Candidate, FoldScore, Key, Scoreboard
from softsplit.selection.strengths import SHARES, Pair
from softsplit.selection.teachers import SoftTargets
from softsplit.solvers.base import Budget, Solution
from softsplit.support.arrays import FloatArray
from softsplit.support.parallel import in_threads
from softsplit.support.row_budgets import ROWS
from softsplit.training.best import NoFeasibleTreeError
from softsplit.training.fitted_tree import pointed_parts
from softsplit.training.observer import Observer
from softsplit.training.preparation import Prepared
from softsplit.training.rows import Rows
from softsplit.training.run import CheckRows, Run
from softsplit.tree.parameters import TreeParameters
from softsplit.variables import Coding, levelled_columns

FIRST_FOLDS = 2
"""Folds on which settings compete, where the best of them alone is judged on the others."""

GROWN_DEPTH = 4
"""From this depth on, of many rows, each tree is grown from that of the depth before and competes
with no other start: those hardly ever won there. Shallower trees always race, since no single split
begins to separate a chessboard."""


Task = tuple[tuple[Candidate, ...], int]
"""A family of candidates, and a fold."""


@dataclass(frozen=True)
class FoldTrainer:
    """Trains the paths of candidates on the folds and scores their trees.

    Parameters
    ----------
    settings : ModelSettings
        Settings that are not chosen.
    rows : Rows
    splits : list of (training rows, test rows)
    scoring : Scoring
    run : Run
    check : callable
        Validates rows that the user gave to the solver.
    coding : Coding, optional
        How the columns were made of the variables of a table.
    kinds : dict
        Columns whose numbers are taken as levels, as of ``feature_types``.
    pointed : bool
        Whether the chosen tree will be in whole points.
    soft_targets : SoftTargets, optional
        Class probabilities by a teacher, which candidates mix with the labels.
    observer : Observer
        Is told of every fold.
    """

    settings: ModelSettings
    rows: Rows
    splits: Sequence[Split]
    scoring: Scoring
    run: Run
    check: CheckRows
    coding: Coding | None = None
    kinds: Mapping[Any, str] = field(default_factory=dict)
    pointed: bool = False
    soft_targets: SoftTargets | None = None
    observer: Observer = field(default_factory=Observer)
    memory: FoldMemory = field(default_factory=FoldMemory)

    @property
    def large(self) -> bool:
        """Whether copies of the rows are made for the first folds only (``halved_cells``)."""
        return self.rows.dense and self.rows.X.size > ROWS.halved_cells

    @property
    def many(self) -> bool:
        """Whether settings compete on the first folds alone (``RowBudgets.halved``)."""
        return len(self.rows.labels) > ROWS.halved or self.large

    def _keeps(self, candidate: Candidate, fold: int) -> bool:
        """Whether the problem and the paths of a fold are kept for other candidates."""
        choice = candidate.formulation.choice
        return choice.scores_rows and not (self.large and fold >= FIRST_FOLDS)

    def levelled(self, numbers: Coding, levels: Coding) -> FoldTrainer:
        """Return what trains on the same rows, now coded as ``levels``, with the same folds."""
        return replace(
            self,
            rows=self.rows.recoded(numbers, levels).nameless(),
            coding=levels,
            kinds=levelled_columns(numbers, levels),
            memory=FoldMemory(),
        )

    def fold_rows(self, fold: int) -> tuple[Rows, Rows]:
        """Return training and test rows of a fold; cached where coding them takes work."""
        if fold in self.memory.rows:
            return self.memory.rows[fold]
        pair = self.rows.fold(*self.splits[fold])
        if self.rows.costly_folds:
            self.memory.rows[fold] = pair
        return pair

    def _on_fold(
        self, candidate: Candidate, fold: int, *, once: bool = False
    ) -> tuple[Prepared, TestRows]:
        """Return the problem of a fold and its test rows; cached for each candidate.

        With ``once`` the result is not cached where copies of the rows are large.
        """
        key = (candidate, fold)
        if key not in self.memory.prepared:
            own, other = self.fold_rows(fold)
            if self.soft_targets is not None and candidate.teacher > 0:
                train = self.splits[fold][0]
                own = self.soft_targets.taught_fold(own, fold, train, candidate.teacher)
            settings, alike = configured(self.settings, candidate), self.memory.alike(*key)
            if alike is not None:  # at another depth
                prepared = prepare_fold(settings, own, alike[0].placed)
                tested = replace(alike[1], prepared=prepared)
            else:
                prepared = prepare_fold(settings, own)
                tested = TestRows.of(prepared, other, self.scoring)
            if not self._keeps(candidate, fold) or (once and self.large):
                return prepared, tested
            self.memory.prepared[key] = prepared, tested
        prepared, tested = self.memory.prepared[key]
        return prepared, tested.without_walk_rows()

    def starts(
        self, prepared: Prepared, trees: Mapping[int, TreeParameters]
    ) -> tuple[Prepared, list[TreeParameters]]:
        """Return the problem of all rows, with every column that trees of folds use, and those
        trees as starts.

        Trees of folds that lack a class are not used.
        """
        known = {f: t for f, t in trees.items() if t.n_groups == len(prepared.classes)}
        if not isinstance(prepared.problem.rows, SparseRows):  # all columns are there
            return prepared, list(known.values())
        return prepared.taking([(t, self.fold_rows(f)[0].within) for f, t in known.items()])

    def decision_factors(
        self, candidate: Candidate, scores: Mapping[int, FoldScore], budget: Budget
    ) -> Any:
        """Return factors on the probabilities of rare classes (rare_classes.py).

        Factors that are not tried within the ``budget`` are not looked at.
        """
        trees: list[TestedTree] = []

        def predicted(costs: FloatArray) -> NDArray[np.intp]:
            if not trees:
                trees.extend(self._tested(candidate, *fold) for fold in scores.items())
            return np.concatenate([tree.predicted(costs) for tree in trees])

        held_out = np.concatenate([self._positions(f) for f in scores])
        labels, weight = self.rows.labels[held_out], self.rows.weight[held_out]
        n_classes = len(self.rows.classes)
        return decision_factors(predicted, n_classes, labels, weight, lambda: budget.exhausted)

    def _tested(self, candidate: Candidate, fold: int, score: FoldScore) -> TestedTree:
        """A tree at the test rows of its fold, when the search has ended."""
        tested = self._on_fold(candidate.family, fold, once=True)[1]
        return tested.routed(score.tree) if score.parts is None else tested.pointed(score.parts)

    def _positions(self, fold: int) -> NDArray[np.intp]:
        """The held-out rows of a fold."""
        return np.arange(len(self.rows.labels))[self.splits[fold][1]]

    def held_out(
        self, candidate: Candidate, scores: Mapping[int, FoldScore], costs: Any = None
    ) -> HeldOutScores:
        """Return the scores of all held-out rows, each by the tree of its fold (conformal.py).

        Rows that are held out several times count as one altogether. ``costs`` are those that
        decide at prediction.
        """
        costs = None if costs is None else np.asarray(costs, dtype=float)
        trees = [self._tested(candidate, *fold) for fold in scores.items()]
        proba = np.vstack([tree.probabilities(costs) for tree in trees])
        rows = np.concatenate([self._positions(f) for f in scores])
        labels, weight = self.rows.labels[rows], self.rows.weight[rows]
        counted = weight / min(1.0, float(weight[weight > 0].mean()))
        return HeldOutScores.of(proba, labels, counted / np.bincount(rows)[rows])

    def evaluate(
        self,
        candidates: Sequence[Candidate],
        fractions: Sequence[float],
        board: Scoreboard,
        folds: Sequence[int] | None = None,
    ) -> None:
        """Add the scores of every candidate at every fraction to the board, on some folds or all.

        A candidate that has scores at other strengths goes on from the trees there. Candidates
        that differ in their ridge only are a family, whose trees are found together.
        """
        families: dict[Candidate, list[Candidate]] = {}
        for candidate in candidates:
            families.setdefault(candidate._replace(ridge=0.0), []).append(candidate)
        chosen = range(len(self.splits)) if folds is None else folds
        tasks = [(tuple(f), fold) for fold in chosen for f in families.values()]
        finished = self._run(tasks, tuple(fractions), board)
        for family, fold in tasks:  # a fixed order, whichever ended first
            pairs = [(fraction, one) for fraction in fractions for one in family]
            for (fraction, one), score in zip(
                pairs, finished.get((family, fold), []), strict=False
            ):
                board.add(one, fraction, fold, score)

    def _run(
        self, tasks: Sequence[Task], fractions: tuple[float, ...], board: Scoreboard
    ) -> dict[Task, list[FoldScore]]:
        known = {task: board.known(task[0][0], task[1]) for task in tasks}
        late = not board.folds
        finished: dict[Task, list[FoldScore]] = {}

        def run(task: Task) -> None:
            finished[task] = self.scores(*task, fractions, known[task], late=late)
            self.observer.part_ended()

        # Where copies of the rows are large, folds side by side would hold more of them.
        threads = self.rows.dense and self.run.solver.releases_gil and not self.large
        n_cells = self.rows.X.size * len(self.rows.classes) if threads else 0
        workers = self.run.workers(len(self.rows.labels), len(tasks), n_cells)
        with self.run.budget.interruptible():
            if workers == 1 or self.run.solver.releases_gil:
                in_threads(run, tasks, workers, self.run.budget.stop)
            else:
                parallel = Parallel(n_jobs=workers, prefer="processes")
                unseen = replace(self, observer=Observer())  # one that shows things stays here
                ends = parallel(
                    delayed(unseen.scores)(*task, fractions, known[task]) for task in tasks
                )
                finished.update(zip(tasks, ends, strict=True))
        return finished

    def scores(
        self,
        family: Sequence[Candidate],
        fold: int,
        fractions: Sequence[float],
        known: Mapping[float, TreeParameters],
        *,
        late: bool = True,
    ) -> list[FoldScore]:
        """Return the scores of the trees of a path on one fold; fewer if the budget ended.

        At each fraction there is a tree for each candidate of the family. Each tree starts from the
        nearest of the trees ``known`` at other strengths, if there are any. Unless ``late``, no
        tree is judged after Ctrl-C: the user waits, and there are others to choose from.
        """
        if self.run.budget.exhausted:
            return []
        prepared, tested = self._on_fold(family[0].family, fold)
        scores: list[FoldScore] = []
        began = time.perf_counter()
        seen: dict[bytes, FoldScore] = {}
        for solution in self._path(prepared, family, fold, fractions, known):
            if self.run.budget.stopped and not late:
                break
            weights = solution.parameters.weights
            # Neighbouring strengths often have the same tree.
            key = weights.tobytes() + solution.parameters.thresholds.tobytes()
            if key not in seen:
                used = np.abs(weights) > self.run.solver.zero_threshold
                n_used, n_nonzero = prepared.problem.n_used(used), float(np.count_nonzero(used))
                score, valued = tested.judged(tested.routed(solution.parameters))
                long = family[0].formulation.choice.long_terms(
                    used, prepared.problem.feature_groups
                )
                seen[key] = FoldScore(
                    solution.parameters, score, n_used, n_nonzero, 0.0, valued, long,
                    prepared.problem.price(used) - prepared.problem.unneeded(solution.parameters),
                )  # fmt: skip
            scores.append(seen[key])
        each = (time.perf_counter() - began) / max(len(scores), 1)
        return [score._replace(seconds=each) for score in scores]

    def judge_points(self, key: Key, board: Scoreboard, form: bool | str) -> None:
        """Add the trees of a row in whole points to the board, those of all folds or none.

        ``form`` is that of the parameter ``points``.

        Where folds are made several times, those of the first time are enough.
        """
        candidate, fraction = key
        repeats = max(1, sum(len(test) for _, test in self.splits) // len(self.rows.labels))
        first = len(self.splits) // repeats
        folds = {fold: score for fold, score in board.folds[key].items() if fold < first}
        scores: dict[int, FoldScore] = {}

        def judge(fold: int) -> None:
            scores[fold] = self._in_points(candidate, fold, folds[fold], form)
            self.observer.part_ended()

        workers = self.run.workers(len(self.rows.labels), len(folds))
        with self.run.budget.interruptible():
            in_threads(judge, sorted(folds), workers, self.run.budget.stop)
        if len(scores) == len(folds):
            board.folds[candidate._replace(points=form), fraction] = scores

    def _in_points(
        self, candidate: Candidate, fold: int, score: FoldScore, form: bool | str
    ) -> FoldScore:
        """Return the score of the tree of a fold in whole points; as it is where it has none."""
        began = time.perf_counter()
        prepared, tested = self._on_fold(candidate.family, fold, once=True)
        coding = self.coding if prepared.coding is None else prepared.coding
        settings = replace(prepared.settings, points=form)
        whole = with_ridge(replace(prepared, coding=coding, settings=settings), candidate)
        parts = pointed_parts(whole, score.tree, 1, self.run.budget.is_over)
        if parts is None:
            return score
        tree = tested.pointed(parts)
        value, samples = tested.judged(tree)
        asked = tree.plain[1].coefficients != 0.0
        used = parts.marks(asked.T) > 0
        problem, choice = prepared.problem, candidate.formulation.choice
        return FoldScore(
            score.tree, value, problem.n_used(used), float(np.count_nonzero(asked)),
            score.seconds + time.perf_counter() - began, samples,
            choice.long_terms(used, problem.feature_groups), problem.price(used), parts,
        )  # fmt: skip

    def _path(
        self,
        prepared: Prepared,
        family: Sequence[Candidate],
        fold: int,
        fractions: Sequence[float],
        known: Mapping[float, TreeParameters],
    ) -> list[Solution]:
        """Return trees to score, up to the first strength at which none meets the class rates."""
        run = self.run.adapted(prepared, self.check)
        shares, ridges = SHARES[family[0].scope], [candidate.ridge for candidate in family]
        if run.solver.follows(prepared.problem):
            key = (family[0].family, fold)
            paths = self.memory.paths.get(key)
            if paths is None:
                shallower = self.memory.shallower(*key)
                grown = len(shallower) if self.many and family[0].depth >= GROWN_DEPTH else 0
                paths = fold_paths(prepared, run, shallower, grown=grown)
                if self._keeps(*key):
                    self.memory.paths[key] = paths
            problems = problems_along(prepared, shares, fractions, ridges)
            return whole_trees(best_trees(paths, problems, run.budget))
        walked = [
            self._walked(with_ridge(prepared, one), shares, fractions, known, run) for one in family
        ]
        return [tree for trees in zip(*walked, strict=False) for tree in trees]

    @staticmethod
    def _walked(
        prepared: Prepared,
        shares: Pair,
        fractions: Sequence[float],
        known: Mapping[float, TreeParameters],
        run: Run,
    ) -> list[Solution]:
        """Return the trees of a path that is solved with warm starts."""
        trees: list[Solution] = []
        with suppress(NoFeasibleTreeError):  # drops the candidate, not the fit
            if not known:
                return whole_trees(solve_fold_path(prepared, shares, fractions, run))
            for fraction in run.budget.while_left(fractions):
                near = [known[nearest_strength(known, fraction)]]
                trees.append(refit_from(near, prepared, shares, fraction, run))
        return whole_trees(trees)
