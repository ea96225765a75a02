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

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from softsplit.selection.candidates import CandidateSearch
from softsplit.selection.cross_validation import FoldMemory, FoldTrainer, configured, refit_from
from softsplit.selection.scoreboard import Candidate, FoldScore, Key, Scoreboard
from softsplit.selection.strengths import SHARES
from softsplit.solvers.base import Solution
from softsplit.support.arrays import FloatArray
from softsplit.training.preparation import Prepared, prepare
from softsplit.training.rows import Rows
from softsplit.training.run import Run
from softsplit.tree.parameters import TreeParameters


@dataclass(frozen=True)
class AlternativeOptions:
    """Which trees count as alternatives."""

    errors: float = 1.0
    """Standard errors by which a row may be worse than the chosen one on the same held-out rows."""

    growth: float = 1.5
    """An alternative has at most this multiple of the features of the chosen tree, and ``more``: a
    reader who wants more of them asks for another ``selection``."""

    more: int = 2
    """A tree of one feature has alternatives of up to three."""

    large: int = 1
    """Trees with more features than the chosen one and so many come after all others."""

    left_out: int = 6
    """Features of the chosen tree that are left out at most: all folds are trained for each."""

    first_folds: int = 2
    """Folds after which a tree without a feature is dropped if it is ``clearly`` behind there."""

    clearly: float = 2.0
    """Standard errors that are clearly behind."""

    kept: int = 24
    """Trees that are remembered; some become equal once they are trained on all rows."""


OPTIONS = AlternativeOptions()

Groups = NDArray[np.intp] | None


@dataclass(frozen=True)
class Looks:
    """What a reader tells trees apart by: the features in use, and the number of questions."""

    features: frozenset[int]
    n_questions: int

    @classmethod
    def of(cls, weights: FloatArray, groups: Groups) -> Looks:
        """Of weights (n_features, n_branches); features of a group count as one."""
        used = np.flatnonzero(np.any(weights != 0, axis=1))
        homes = used if groups is None else groups[used]
        return cls(frozenset(homes.tolist()), int(np.count_nonzero(np.any(weights != 0, axis=0))))

    def distance(self, other: Looks) -> float:
        """Jaccard distance of features; a little more than 0 for another number of questions."""
        every = self.features | other.features
        apart = 1.0 - len(self.features & other.features) / len(every) if every else 0.0
        return apart if apart or self.n_questions == other.n_questions else 1e-6


@dataclass(frozen=True, eq=False)
class Met:
    """A tree of a fold that may be an alternative.

    Attributes
    ----------
    candidate : Candidate
    fraction : float
        Its strength on all rows.
    tree : TreeParameters
    looks : Looks
    behind, error : float
        How much worse its row is than the chosen one on held-out rows, and the standard error.
    """

    candidate: Candidate
    fraction: float
    tree: TreeParameters
    looks: Looks
    behind: float
    error: float


def met_trees(search: CandidateSearch, chosen: Key, own: Looks, groups: Groups) -> list[Met]:
    """Return trees of rows close to ``chosen``, least alike first; at most ``OPTIONS.kept``.

    ``own`` is the chosen tree as it was trained on all rows, and ``groups`` (n_features,) are the
    groups of features, if there are any.
    """
    board = search.board
    if chosen not in board.folds:
        return []
    most = OPTIONS.growth * len(own.features) + OPTIONS.more
    pool: dict[Looks, Met] = {}
    for key in board.rows():
        if not np.isfinite(board.worth(key)) or not board.close(key, chosen, OPTIONS.errors):
            continue
        behind, error = board.behind(key, chosen)
        for tree in board.trees(key):
            if tree.n_groups < len(search.trainer.rows.classes):
                continue  # a class was absent from the fold
            looks = Looks.of(tree.weights, groups)
            known = pool.get(looks)
            if (
                looks != own
                and 0 < len(looks.features) <= most
                and (known is None or behind < known.behind)
            ):
                fraction, _ = search.on_all_rows(*key)
                pool[looks] = Met(key[0], fraction, tree, looks, behind, error)
    taken: list[Met] = []
    seen = [own]
    while pool and len(taken) < OPTIONS.kept:
        looks = max(
            pool,
            key=lambda one: (
                not one.features > own.features,
                len(one.features) <= len(own.features) + OPTIONS.large,
                min(one.distance(other) for other in seen),
                -pool[one].behind,
            ),
        )
        taken.append(pool.pop(looks))
        seen.append(looks)
    return taken


@dataclass(frozen=True)
class Compared:
    """What is remembered of a choice.

    Attributes
    ----------
    chosen : (Candidate, float)
        The chosen row of the board.
    folds : dict of FoldScore
        Its trees.
    met : list of Met
    trainer : FoldTrainer
    on_all_rows : float
        The chosen strength on all rows.
    """

    chosen: Key
    folds: dict[int, FoldScore]
    met: list[Met]
    trainer: FoldTrainer
    on_all_rows: float

    @classmethod
    def of(cls, search: CandidateSearch, chosen: Key, own: Looks, groups: Groups) -> Compared:
        """Remember a search; rows and problems of its folds are dropped."""
        return cls(
            chosen,
            search.board.folds.get(chosen, {}),
            met_trees(search, chosen, own, groups),
            replace(search.trainer, memory=FoldMemory()),
            search.on_all_rows(*chosen)[0],
        )

    def trees(
        self, rows: Rows, weights: FloatArray, run: Run
    ) -> Iterator[tuple[Met, Solution, Prepared]]:
        """Alternatives one by one, trained on all rows, until the budget of ``run`` ends.

        ``weights`` (n_features, n_branches) are those of the chosen tree.
        """
        own = Looks.of(weights, rows.groups)
        taken = [own]
        for met, without_feature in self._tried(own, weights, rows.groups, run):
            if run.budget.exhausted:
                return
            # A problem without the feature leads to the tree, which is one of all features.
            known = rows if without_feature is None else without(rows, without_feature)
            solution = self._trained(met, self.prepared(met.candidate, known), run)
            if run.budget.exhausted:  # it is unfinished
                return
            looks = Looks.of(solution.parameters.weights, rows.groups)
            if looks.features and looks not in taken:
                taken.append(looks)
                yield met, solution, self.prepared(met.candidate, rows)

    def _tried(
        self, own: Looks, weights: FloatArray, groups: Groups, run: Run
    ) -> Iterator[tuple[Met, int | None]]:
        """Trees of folds in the order of the module's text, each with the feature it does without
        if that was left out."""
        larger = [met for met in self.met if met.looks.features > own.features]
        yield from ((met, None) for met in self.met if met not in larger)
        homes = np.arange(len(weights)) if groups is None else groups
        sizes = {f: float(np.abs(weights[homes == f]).max()) for f in own.features}
        if (rules := self.trainer.rows.rules) is not None:
            required = np.unique(homes[np.isin(rules.of, rules.required)])
            sizes = {f: size for f, size in sizes.items() if f not in required}
        weightiest = sorted(sizes, key=lambda f: (-sizes[f], f))[: OPTIONS.left_out]
        for feature in weightiest if self.folds else ():
            if run.budget.exhausted:
                return
            found = self._without(feature, groups, run)
            if found is not None:
                yield found, feature
        yield from ((met, None) for met in larger)

    def prepared(self, candidate: Candidate, rows: Rows) -> Prepared:
        """The problem of all rows at the settings of a candidate, taught if it has a teacher."""
        lessons = self.trainer.lessons
        if lessons is not None and candidate.teacher > 0:
            rows = lessons.taught(rows, candidate.teacher)
        return prepare(configured(self.trainer.settings, candidate), rows)

    def _trained(self, met: Met, prepared: Prepared, run: Run) -> Solution:
        """The tree to which one of a fold leads on all rows."""
        run = run.adapted(prepared, self.trainer.check)
        shares = SHARES[met.candidate.scope]
        return refit_from([met.tree], prepared, shares, met.fraction, run, grow=False)

    def _without(self, feature: int, groups: Groups, run: Run) -> Met | None:
        """The best tree of the folds without a feature, if it is close to the chosen one."""
        rows = without(self.trainer.rows, feature)
        trainer = replace(self.trainer, rows=rows, memory=FoldMemory(), run=run)
        candidate, fraction = self.chosen
        key, chosen = self.chosen, (candidate, -1.0)
        first = min(OPTIONS.first_folds, len(trainer.splits))
        board = Scoreboard(first)
        trainer.evaluate([candidate], [fraction], board, range(first))
        board.folds[chosen] = {f: score for f, score in self.folds.items() if f < first}
        if len(board.folds.get(key, {})) < first or len(board.folds[chosen]) < first:
            return None
        if not board.close(key, chosen, OPTIONS.clearly):
            return None
        begun, board = board, Scoreboard(len(trainer.splits))
        board.folds[key] = dict(begun.folds[key])
        trainer.evaluate([candidate], [fraction], board, range(first, len(trainer.splits)))
        if len(board.folds.get(key, {})) < len(self.folds):
            return None
        board.folds[chosen] = self.folds
        if not board.close(key, chosen, OPTIONS.errors):
            return None
        whole = [s for s in board.folds[key].values() if s.tree.n_groups == len(rows.classes)]
        if not whole:
            return None
        best = max(whole, key=lambda score: score.score)
        looks = Looks.of(best.tree.weights, groups)
        return Met(candidate, self.on_all_rows, best.tree, looks, *board.behind(key, chosen))


def without(rows: Rows, feature: int) -> Rows:
    """Rows in which a feature, or a group of them, says nothing."""
    groups = np.arange(rows.X.shape[1]) if rows.groups is None else rows.groups
    silent = np.flatnonzero(groups == feature)
    X = np.array(rows.X)
    X[:, silent] = 0.0
    known = tuple(one for one in rows.shared if one.first not in silent)
    return replace(rows, X=X, shared=known)
