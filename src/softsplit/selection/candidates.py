"""Which candidates of a cross-validation are compared, and in which order.

A grid of all settings would cost their product. Instead one setting after the other is varied
around the best candidate so far, at a few strengths only: scaling, penalty, scope, then depth for
as long as a deeper tree is clearly better, then steepness. The best one or two candidates are then
judged at all strengths. Where elimination gives the trees of all strengths at once, every other
strength is judged. What is varied, and when a candidate is dropped, is part of the formulation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from softsplit.selection.cross_validation import FoldTrainer
from softsplit.selection.paths import nearest_strength
from softsplit.selection.scoreboard import Candidate, Scoreboard
from softsplit.training.observer import Observer
from softsplit.tree.parameters import TreeParameters

SCREENED = 3
"""Strengths at which candidates are compared before the best of them get all the others."""


@dataclass
class CandidateSearch:
    """Coordinate-wise search over candidates.

    Parameters
    ----------
    trainer : FoldTrainer
    board : Scoreboard
        Collects the scores.
    fractions : tuple of float
        The whole grid of strengths, in ascending order.
    observer : Observer
    n_rows : int
        Rows that the chosen tree is trained on; 0 to keep the strength as it was chosen.
    seen : set of Candidate
        Candidates that were scored.
    """

    trainer: FoldTrainer
    board: Scoreboard
    fractions: tuple[float, ...]
    observer: Observer
    n_rows: int
    seen: set[Candidate] = field(default_factory=set)

    def run(self, axes: dict[str, Sequence[Any]]) -> None:
        """Compare candidates until the search ends by itself, by its budget or by Ctrl-C.

        What the board has by then counts, wherever an interruption falls.
        """
        with self.trainer.run.budget.interruptible():
            self._compare(axes)

    def _compare(self, axes: dict[str, Sequence[Any]]) -> None:
        """Vary one setting after the other around the best candidate so far."""
        first = Candidate(**{name: values[0] for name, values in axes.items()})
        choice = first.formulation.choice
        for name in ("scale", "penalty", "scope"):
            self._vary(first, name, axes[name])
        self._deepen(first, axes["depth"])
        for name in choice.varied:
            self._vary(first, name, axes[name])
        for candidate in self.board.leaders(choice.finalists):
            self._complete(candidate)

    def on_all_rows(
        self, candidate: Candidate, fraction: float
    ) -> tuple[float, dict[int, TreeParameters]]:
        """Return the strength for all rows, and the trees of the folds to start from.

        Where candidates were compared on fewer rows, the strength changes with their number
        (``Formulation.on_more_rows``).
        """
        compared = len(self.trainer.rows.labels)
        fraction = candidate.formulation.on_more_rows(fraction, compared, self.n_rows)
        known = {f: row for (one, f), row in self.board.folds.items() if one == candidate}
        row = known[nearest_strength(known, fraction)] if known else {}
        return fraction, {fold: score.tree for fold, score in sorted(row.items())}

    def _complete(self, candidate: Candidate) -> None:
        """Score a candidate at the strengths that it lacks."""
        missing = [f for f in self.fractions if (candidate, f) not in self.board.folds]
        self._evaluate([candidate], tuple(missing))

    def _leader(self, first: Candidate) -> Candidate:
        leaders = self.board.leaders(1)
        return leaders[0] if leaders else first

    def _vary(self, first: Candidate, name: str, values: Sequence[Any]) -> None:
        leader = self._leader(first)
        variants = [leader._replace(**{name: value}) for value in values]
        new = [candidate for candidate in variants if candidate not in self.seen]
        one_by_one = leader.formulation.choice.one_by_one
        for some in [[one] for one in new] if one_by_one else [new]:
            self._evaluate(some, self._screen(some))

    def _screen(self, candidates: Sequence[Candidate]) -> tuple[float, ...]:
        """A few strengths from the middle; every other where one elimination serves them all."""
        if all(candidate.penalty == "count" for candidate in candidates):
            return self.fractions[::2]
        return _screen(self.fractions)

    def _deepen(self, first: Candidate, depths: Sequence[int]) -> None:
        """Try one depth after the other, as long as the last one was clearly better."""
        for shallow, deep in pairwise(depths):
            leader = self._leader(first)
            if leader.depth != shallow or not self._pays(leader):
                return
            deeper = [leader._replace(depth=deep)]
            self._evaluate(deeper, self._screen(deeper))

    def _pays(self, leader: Candidate) -> bool:
        """Whether a depth is clearly better than the ones before it."""
        before = [key for key in self.board.rows() if key[0].depth < leader.depth]
        if not before:
            return True
        best = self.board.best([key for key in self.board.rows() if key[0] == leader])
        errors = leader.formulation.choice.deeper_errors
        return not self.board.close(self.board.best(before), best, errors)

    def _evaluate(self, candidates: Sequence[Candidate], fractions: tuple[float, ...]) -> None:
        if not candidates or not fractions or self.trainer.run.budget.exhausted:
            return
        choice = candidates[0].formulation.choice
        if self.seen and choice.one_by_one:
            count = min(choice.first_folds, self.board.n_folds)
            self.trainer.evaluate(candidates, fractions, self.board, range(count))
            hopeful = [c for c in candidates if self.board.hopeful(c, count)]
            rest = range(count, self.board.n_folds)
            if not self.trainer.run.budget.exhausted:
                self.trainer.evaluate(hopeful, fractions, self.board, rest)
        else:
            self.trainer.evaluate(candidates, fractions, self.board)
        for candidate in candidates:
            keys = [key for key in self.board.folds if key[0] == candidate]
            if keys:
                best = self.board.best(keys)
                again = ", at all strengths" if candidate in self.seen else ""
                if len(self.board.folds[best]) < self.board.n_folds:
                    again += ", on the first folds"
                self.seen.add(candidate)
                self.tell(candidate.label + again, best)
        self.trainer.memory.keep_only(self._leader(candidates[0]))

    def tell(self, label: str, key: tuple[Candidate, float]) -> None:
        """Report score and number of features of a row of the board to the observer."""
        self.observer.candidate_judged(
            label, self.board.mean(key), self.board.mean(key, "n_features")
        )


def _screen(fractions: tuple[float, ...]) -> tuple[float, ...]:
    """A few strengths from the middle of the grid, in the same order."""
    if len(fractions) <= SCREENED:
        return fractions
    inner = np.linspace(0, len(fractions) - 1, SCREENED + 2)[1:-1]
    return tuple(fractions[i] for i in np.unique(np.rint(inner).astype(int)))
