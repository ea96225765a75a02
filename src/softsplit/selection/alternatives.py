"""Trees beside the chosen one: other features or another structure, about as good.

A cross-validation has met many trees: those of all folds, at all strengths of all candidates. Of
the rows of its board that are no more than one standard error worse than the chosen row on the same
held-out rows, the trees of all folds are looked at. Two trees are *different* if they use other
features, or ask another number of questions. Of the different ones a few are picked one by one:
the next is the one least like those before, by the Jaccard distance of features

    distance(A, B) = 1 - |A and B| / |A or B|,

and of equals the one of the better row. Each is then trained on all rows from where its fold left
it, which leaves its features and structure nearly always as they were.

Where these are too few, the weightiest features of the chosen tree are left out one by one: trees
without the feature are trained on the same folds, at the settings of the chosen one, and count if
they are within one standard error of it on the same held-out rows. Trees that use all features of
the chosen one and more come last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from softsplit.selection.candidates import CandidateSearch
from softsplit.selection.cross_validation import FoldTrainer
from softsplit.selection.fold_memory import FoldMemory
from softsplit.selection.fold_paths import configured, refit_from
from softsplit.selection.scoreboard import Candidate, FoldScore, Key, Scoreboard
from softsplit.selection.strengths import SHARES
from softsplit.solvers.base import Solution
from softsplit.support.arrays import FloatArray
from softsplit.training.preparation import Prepared, prepare
from softsplit.training.rows import Rows
from softsplit.training.run import Run
from softsplit.tree.parameters import TreeParameters

CLOSE = 1.0
"""Standard errors by which a row may be worse than the chosen one on the same held-out rows."""

GROWTH = 1.5
"""An alternative has at most this multiple of the features of the chosen tree, and ``more``: a
reader who wants more of them asks for another ``selection``."""

MORE_FEATURES = 2
"""A tree of one feature has alternatives of up to three."""

LARGE = 1
"""Trees with more features than the chosen one and so many come after all others."""

LEFT_OUT = 6
"""Features of the chosen tree that are left out at most: all folds are trained for each."""

FIRST_FOLDS = 2
"""Folds after which a tree without a feature is dropped if it is ``CLEARLY_BEHIND`` there."""

CLEARLY_BEHIND = 2.0
"""Standard errors that are clearly behind."""

REMEMBERED = 24
"""Trees that are remembered; some become equal once they are trained on all rows."""


Groups = NDArray[np.intp] | None


@dataclass(frozen=True)
class TreeSignature:
    """What a reader tells trees apart by: the features in use, and the number of questions."""

    features: frozenset[int]
    n_questions: int

    @classmethod
    def of(cls, weights: FloatArray, groups: Groups) -> TreeSignature:
        """Of weights (n_features, n_branches); features of a group count as one."""
        used = np.flatnonzero(np.any(weights != 0, axis=1))
        homes = used if groups is None else groups[used]
        return cls(frozenset(homes.tolist()), int(np.count_nonzero(np.any(weights != 0, axis=0))))

    @staticmethod
    def largest(weights: FloatArray, groups: Groups) -> dict[int, float]:
        """Return the largest weight of each feature in use."""
        homes = np.arange(len(weights)) if groups is None else groups
        sizes = np.abs(weights).max(axis=1)
        return {int(f): float(sizes[homes == f].max()) for f in np.unique(homes[sizes > 0])}

    def distance(self, other: TreeSignature) -> float:
        """Jaccard distance of features; a little more than 0 for another number of questions."""
        every = self.features | other.features
        apart = 1.0 - len(self.features & other.features) / len(every) if every else 0.0
        return apart if apart or self.n_questions == other.n_questions else 1e-6


@dataclass(frozen=True, eq=False)
class AlternativeCandidate:
    """A tree of a fold that may be an alternative.

    Attributes
    ----------
    candidate : Candidate
    fraction : float
        Its strength on all rows.
    tree : TreeParameters
    looks : TreeSignature
    behind, error : float
        How much worse its row is than the chosen one on held-out rows, and the standard error.
    """

    candidate: Candidate
    fraction: float
    tree: TreeParameters
    looks: TreeSignature
    behind: float
    error: float


def alternative_candidates(
    search: CandidateSearch, chosen: Key, own: TreeSignature, groups: Groups
) -> list[AlternativeCandidate]:
    """Return trees of rows close to ``chosen``, least alike first; at most ``REMEMBERED``.

    ``own`` is the chosen tree as it was trained on all rows, and ``groups`` (n_features,) are the
    groups of features, if there are any.
    """
    board, chosen = search.board, _free(chosen)
    if chosen not in board.folds:
        return []
    most = GROWTH * len(own.features) + MORE_FEATURES
    pool: dict[TreeSignature, AlternativeCandidate] = {}
    for key in board.rows():
        # 1. Settings that are as good as the chosen one.
        if not np.isfinite(board.worth(key)) or not board.close(key, chosen, CLOSE):
            continue
        behind, error = board.behind(key, chosen)
        for tree in board.trees(key):
            if tree.n_groups < len(search.trainer.rows.classes):
                continue  # a class was absent from the fold
            # 2. Of trees that look alike, the best one.
            looks = TreeSignature.of(tree.weights, groups)
            known = pool.get(looks)
            if (
                looks != own
                and 0 < len(looks.features) <= most
                and (known is None or behind < known.behind)
            ):
                fraction, _ = search.on_all_rows(*key)
                pool[looks] = AlternativeCandidate(key[0], fraction, tree, looks, behind, error)
    taken: list[AlternativeCandidate] = []
    seen = [own]
    while pool and len(taken) < REMEMBERED:
        looks = max(
            pool,
            key=lambda one: (
                not one.features > own.features,
                len(one.features) <= len(own.features) + LARGE,
                min(one.distance(other) for other in seen),
                -pool[one].behind,
            ),
        )
        taken.append(pool.pop(looks))
        seen.append(looks)
    return taken


def _free(key: Key) -> Key:
    """The row of the same trees before they were put in points: others are compared with it."""
    return key[0]._replace(points=False), key[1]


@dataclass(frozen=True)
class Compared:
    """What is remembered of a choice.

    Attributes
    ----------
    chosen : (Candidate, float)
        The chosen row of the board.
    folds : dict of FoldScore
        Its trees.
    met : list of AlternativeCandidate
    trainer : FoldTrainer
    on_all_rows : float
        The chosen strength on all rows.
    """

    chosen: Key
    folds: dict[int, FoldScore]
    met: list[AlternativeCandidate]
    trainer: FoldTrainer
    on_all_rows: float

    @classmethod
    def of(
        cls, search: CandidateSearch, chosen: Key, own: TreeSignature, groups: Groups
    ) -> Compared:
        """Remember a search; rows and problems of its folds are dropped."""
        return cls(
            _free(chosen),
            search.board.folds.get(_free(chosen), {}),
            alternative_candidates(search, chosen, own, groups),
            replace(search.trainer, memory=FoldMemory()),
            search.on_all_rows(*chosen)[0],
        )

    def trees(
        self, rows: Rows, own: TreeSignature, largest: Mapping[int, float], run: Run
    ) -> Iterator[tuple[AlternativeCandidate, Solution, Prepared]]:
        """Alternatives one by one, trained on all rows, until the budget of ``run`` ends.

        ``own`` is the chosen tree, and ``largest`` its largest weight by feature.
        """
        taken = [own]
        for met, without_feature in self._tried(own, largest, rows.groups, run):
            if run.budget.exhausted:  # finding it may have taken the time that was left
                return
            # A problem without the feature leads to the tree, which is one of all features.
            known = rows if without_feature is None else without(rows, without_feature)
            solution = self._trained(met, self.prepared(met.candidate, known), run)
            if run.budget.exhausted:  # it is unfinished
                return
            looks = TreeSignature.of(solution.parameters.weights, rows.groups)
            if looks.features and looks not in taken:
                taken.append(looks)
                yield met, solution, self.prepared(met.candidate, rows)

    def _tried(
        self, own: TreeSignature, largest: Mapping[int, float], groups: Groups, run: Run
    ) -> Iterator[tuple[AlternativeCandidate, int | None]]:
        """Trees of folds in the order of the module's text, each with the feature it does without
        if that was left out."""
        larger = [met for met in self.met if met.looks.features > own.features]
        yield from ((met, None) for met in self.met if met not in larger)
        sizes = dict(largest)
        if (rules := self.trainer.rows.rules) is not None:
            homes = np.arange(len(rules.of)) if groups is None else groups
            required = np.unique(homes[np.isin(rules.of, rules.required)])
            sizes = {f: size for f, size in sizes.items() if f not in required}
        weightiest = sorted(sizes, key=lambda f: (-sizes[f], f))[:LEFT_OUT]
        for feature in run.budget.while_left(weightiest if self.folds else ()):
            alternative = self._without(feature, groups, run)
            if alternative is not None:
                yield alternative, feature
        yield from ((met, None) for met in larger)

    def prepared(self, candidate: Candidate, rows: Rows) -> Prepared:
        """The problem of all rows at the settings of a candidate, taught if it has a teacher."""
        soft_targets = self.trainer.soft_targets
        if soft_targets is not None and candidate.teacher > 0:
            rows = soft_targets.taught(rows, candidate.teacher)
        return prepare(configured(self.trainer.settings, candidate), rows)

    def _trained(self, met: AlternativeCandidate, prepared: Prepared, run: Run) -> Solution:
        """The tree to which one of a fold leads on all rows."""
        run = run.adapted(prepared, self.trainer.check)
        shares = SHARES[met.candidate.scope]
        return refit_from([met.tree], prepared, shares, met.fraction, run, grow=False)

    def _without(self, feature: int, groups: Groups, run: Run) -> AlternativeCandidate | None:
        """The best tree of the folds without a feature, if it is close to the chosen one."""
        rows = without(self.trainer.rows, feature)
        trainer = replace(self.trainer, rows=rows, memory=FoldMemory(), run=run)
        candidate, fraction = self.chosen
        key, chosen = self.chosen, (candidate, -1.0)
        first = min(FIRST_FOLDS, len(trainer.splits))
        board = Scoreboard(first)
        trainer.evaluate([candidate], [fraction], board, range(first))
        board.folds[chosen] = {f: score for f, score in self.folds.items() if f < first}
        if len(board.folds.get(key, {})) < first or len(board.folds[chosen]) < first:
            return None
        if not board.close(key, chosen, CLEARLY_BEHIND):
            return None
        begun, board = board, Scoreboard(len(trainer.splits))
        board.folds[key] = dict(begun.folds[key])
        trainer.evaluate([candidate], [fraction], board, range(first, len(trainer.splits)))
        if len(board.folds.get(key, {})) < len(self.folds):
            return None
        board.folds[chosen] = self.folds
        if not board.close(key, chosen, CLOSE):
            return None
        whole = [s for s in board.folds[key].values() if s.tree.n_groups == len(rows.classes)]
        if not whole:
            return None
        best = max(whole, key=lambda score: score.score)
        looks = TreeSignature.of(best.tree.weights, groups)
        return AlternativeCandidate(
            candidate, self.on_all_rows, best.tree, looks, *board.behind(key, chosen)
        )


def without(rows: Rows, feature: int) -> Rows:
    """Rows in which a feature, or a group of them, says nothing."""
    groups = np.arange(rows.X.shape[1]) if rows.groups is None else rows.groups
    silent = np.flatnonzero(groups == feature)
    X = np.array(rows.X)
    X[:, silent] = 0.0
    known = tuple(one for one in rows.shared if one.first not in silent)
    return replace(rows, X=X, shared=known)
