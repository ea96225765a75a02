"""Which settings a cross-validation chooses from, and in which order it compares candidates.

A grid of all settings would cost their product. Instead one setting after the other is varied
around the best candidate so far, at a few strengths only: scaling, penalty, scope, then depth for
as long as a deeper tree is clearly better, then steepness or ridge. The best one or two candidates
are then judged at all strengths. Where elimination gives the trees of all strengths at once, every
other strength is judged. Of thousands of rows settings compete on the first folds alone, the best
of them is judged on all, and of the default grid at the strengths around its best ones. Trees in
whole points are judged at the end. What is varied, and when a candidate is dropped, is part of the
formulation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from softsplit.formulations import ChoiceRules
from softsplit.selection.cross_validation import FIRST_FOLDS, FoldTrainer
from softsplit.selection.fold_paths import nearest_strength
from softsplit.selection.scoreboard import LOOKED_UP, PRICES, Candidate, Key, Scoreboard
from softsplit.training.observer import JudgedCandidate, Observer
from softsplit.tree.parameters import TreeParameters

DEEPER_GAIN, LEAST_GAIN = 0.02, 0.0035
"""Of many rows the last depth must have lowered the held-out log-loss by this part, and by this
much (half a per cent of log 2): a further level doubles the training time and the number of
questions, and usually gains less than the level before."""

SMALL_LOSS = 0.07
"""A tenth of log 2. Trees below it are right on about 99 of 100 rows. There, of many rows, ridges
are compared before the next level, and a level that does not pay is dropped."""

ON_ALL_FOLDS = 2
"""Candidates that are judged on all folds, where settings compete on the first ones. The better of
two by two folds has been lucky more often than not: with one, trees of magic had up to 1.7 points
less on new rows."""

SCREENED = 3
"""Strengths at which candidates are compared before the best of them get all the others; a grid of
no more is compared as a whole."""


DEAR = 0.01
"""Held-out log-loss per row that points may cost beside weights before finer ones are tried."""

READABLE_COLUMNS = 7
"""Features that a reader holds in mind (Miller 1956)."""


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
    selection : str
        How the tree will be chosen among those compared.
    given : bool
        Whether the user named the strengths or their number: the best candidate is judged at all.
    seen : set of Candidate
        Candidates that were scored.
    dropped : set of Candidate
        Candidates that were behind on the first folds, and not judged on the others.
    levelled : FoldTrainer, optional
        Trains on the same rows with levels in place of whole numbers of few values.
    """

    trainer: FoldTrainer
    board: Scoreboard
    fractions: tuple[float, ...]
    observer: Observer
    n_rows: int
    selection: str = "best"
    given: bool = False
    seen: set[Candidate] = field(default_factory=set)
    dropped: set[Candidate] = field(default_factory=set)
    levelled: FoldTrainer | None = None

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
        self._grow(first, axes)
        if self._levels_are_ahead(first, axes["depth"]):
            assert self.levelled is not None
            self.trainer, known = self.levelled, self.board
            self.board = Scoreboard(known.n_folds, known.unit)
            self.seen.clear()
            self._grow(first, axes)
        for name in choice.varied:
            self._vary(first, name, axes[name])
        self._vary(first, "teacher", axes.get("teacher", (0.0,)))
        for candidate in self._leaders(choice.finalists):
            self._complete(candidate)
        if self._halves(choice):
            for candidate in self._leaders(ON_ALL_FOLDS):
                self._finish(candidate)
        if self.trainer.pointed and self.board.folds:
            self._point()

    def _grow(self, first: Candidate, axes: dict[str, Sequence[Any]]) -> None:
        """Vary scaling, penalty, scope and depth."""
        for name in ("scale", "penalty", "scope"):
            self._vary(first, name, axes[name])
        self._deepen(first, axes["depth"], axes["ridge"])

    def _levels_are_ahead(self, first: Candidate, depths: Sequence[int]) -> bool:
        """Whether trees on levels in place of numbers are clearly better on the first folds.

        They have a level more than the smallest trees: codes often act together.
        """
        choice, known = first.formulation.choice, self.board.rows()
        judged = choice.scores_rows and self.trainer.scoring.samplewise and known
        if self.levelled is None or not judged or self.trainer.run.budget.exhausted:
            return False
        leader = self._leader(first)
        deep = leader._replace(depth=max(leader.depth, depths[min(1, len(depths) - 1)]))
        folds = range(min(FIRST_FOLDS, self.board.n_folds))
        board, numbers = Scoreboard(len(folds), self.board.unit), (leader, -1.0)
        self.observer.working("comparing numbers as levels", len(folds))
        self.levelled.evaluate([deep], self._screen([deep]), board, folds)
        if not board.rows():
            return False
        levels = board.best(price=PRICES[self.selection])
        whole = self.board.folds[self.board.best(known, PRICES[self.selection])]
        board.folds[numbers] = {fold: whole[fold] for fold in folds if fold in whole}
        return not board.close(numbers, levels)

    def _point(self) -> None:
        """Judge trees of the chosen row in whole points, finer points where those cost too much,
        and trees of a sparser row if those are large.

        Large are trees of more than ``READABLE_COLUMNS`` features, or with questions of more terms
        than are read at a glance. Points come near to the weights at most: those of trees whose
        weights are no better than the first points at their size are not judged.
        """
        board, form = self.board, self.trainer.settings.points
        key = board.traded(self.selection)
        own = self._pointed(key, form)
        if own is None or form == "fine":
            return
        price = LOOKED_UP * PRICES[self.selection]
        known = board.net(own, price)
        dear = self.selection == "best" or board.worth(key) - board.worth(own) > DEAR
        if dear and board.net(key, price) > known:
            self._pointed(key, "fine")
        large = board.mean(own, "n_features") > READABLE_COLUMNS
        large |= bool(np.rint(board.mean(own, "long_terms")) > 0)
        sparse = board.traded("sparse")
        large &= sparse != key and self.selection != "best"
        if large and board.net(sparse, price) > known:
            self._pointed(sparse, form)

    def _pointed(self, key: Key, form: bool | str) -> Key | None:
        """Judge the trees of a row in points; None where the time does not last for it."""
        if self.trainer.run.budget.exhausted:
            return None
        self.observer.working("judging trees in whole points", len(self.board.folds[key]))
        self.trainer.judge_points(key, self.board, form)
        own = key[0]._replace(points=form), key[1]
        return own if own in self.board.folds else None

    def _leaders(self, count: int) -> list[Candidate]:
        return self.board.leaders(count, PRICES[self.selection])

    def _halves(self, choice: ChoiceRules) -> bool:
        """Whether settings compete on the first folds alone (``RowBudgets.halved``)."""
        fewer = self.board.n_folds > FIRST_FOLDS
        return (
            self.trainer.many and fewer and choice.scores_rows and self.trainer.scoring.samplewise
        )

    def _folds(self, choice: ChoiceRules) -> range:
        """The folds on which settings are compared."""
        return range(FIRST_FOLDS if self._halves(choice) else self.board.n_folds)

    def _finish(self, candidate: Candidate) -> None:
        """Judge a candidate on the other folds, at the better half of its strengths."""
        if not self.board.folds or self.trainer.run.budget.exhausted:
            return
        n_known = sum(key[0] == candidate for key in self.board.folds)
        fractions = self._best_strengths(candidate, n_known)
        rest = range(FIRST_FOLDS, self.board.n_folds)
        if self.trainer.large:
            self.trainer.memory.clear()
        self.observer.working(f"comparing {candidate.label} on the other folds", len(rest))
        self.trainer.evaluate([candidate], fractions, self.board, rest)
        self._tell_best(candidate, again=False)

    def on_all_rows(
        self, candidate: Candidate, fraction: float
    ) -> tuple[float, dict[int, TreeParameters]]:
        """Return the strength for all rows, and the trees of the folds to start from.

        Where candidates were compared on fewer rows, the strength changes with their number
        (``Formulation.on_more_rows``).
        """
        compared = len(self.trainer.rows.labels)
        fraction = candidate.formulation.on_more_rows(fraction, compared, self.n_rows)
        own = candidate._replace(points=False)
        known = {f: row for (one, f), row in self.board.folds.items() if one == own}
        row = known[nearest_strength(known, fraction)] if known else {}
        return fraction, {fold: score.tree for fold, score in sorted(row.items())}

    def _complete(self, candidate: Candidate) -> None:
        """Score a candidate at the strengths that it lacks, until no neighbour of the best does."""
        tried: set[float] = set()  # at some there may be no tree
        while missing := tuple(f for f in self._lacking(candidate) if f not in tried):
            self._evaluate([candidate], missing)
            tried.update(missing)

    def _lacking(self, candidate: Candidate) -> list[float]:
        """The strengths at which a candidate is to be scored still.

        Of many rows and the default grid they reach from the next weaker than its best strengths
        to the next stronger.
        """
        wanted = self.fractions
        if (
            self._halves(candidate.formulation.choice)
            and candidate.penalty == "count"
            and not self.given
        ):
            best = self._best_strengths(candidate, len(self.fractions[::2]))
            weakest, strongest = self.fractions.index(best[0]), self.fractions.index(best[-1])
            wanted = self.fractions[max(weakest - 1, 0) : strongest + 2]
        return [f for f in wanted if (candidate, f) not in self.board.folds]

    def _leader(self, first: Candidate) -> Candidate:
        """The best candidate so far; where settings compete on the first folds, with its size."""
        halves = self._halves(first.formulation.choice)
        leaders = self.board.leaders(1, PRICES[self.selection] if halves else 0.0)
        return leaders[0] if leaders else first

    def _vary(self, first: Candidate, name: str, values: Sequence[Any]) -> None:
        leader = self._leader(first)
        variants = [leader._replace(**{name: value}) for value in values]
        new = [candidate for candidate in variants if candidate not in self.seen]
        choice = leader.formulation.choice
        together = [new] if new else []
        default = name == "ridge" and tuple(values) == tuple(choice.axes["ridges"])
        for some in [[one] for one in new] if choice.scores_rows else together:
            if default and self._halves(choice) and self._is_beyond_worse(some[0]):
                continue
            self._evaluate(some, self._screen(some))

    def _is_beyond_worse(self, candidate: Candidate) -> bool:
        """Whether a ridge between that of ``candidate`` and the best one was worse than the best.

        The held-out log-loss first falls and then rises with the ridge.
        """
        best, ridge = self._leader(candidate).ridge, candidate.ridge
        compared = {one.ridge for one in self.seen if one._replace(ridge=ridge) == candidate}
        return any(min(best, ridge) < one < max(best, ridge) for one in compared)

    def _screen(self, candidates: Sequence[Candidate]) -> tuple[float, ...]:
        """A few strengths from the middle; every other where one elimination serves them all."""
        few = len(self.fractions) <= SCREENED
        if few or not all(candidate.penalty == "count" for candidate in candidates):
            return _screen(self.fractions)
        some, choice = self.fractions[::2], candidates[0].formulation.choice
        if not self._halves(choice) or not self.board.folds:
            return some
        strongest = self._best_strengths(self._leader(candidates[0]), len(some))[-1]
        return tuple(fraction for fraction in some if fraction <= strongest)

    def _best_strengths(self, candidate: Candidate, count: int) -> tuple[float, ...]:
        """The best strengths of a candidate, half of ``count``, in ascending order."""
        known = [key for key in self.board.folds if key[0] == candidate]
        known.sort(key=lambda key: -self.board.net(key, PRICES[self.selection]))
        return tuple(sorted(key[1] for key in known[: (count + 1) // 2]))

    def _deepen(self, first: Candidate, depths: Sequence[int], ridges: Sequence[float]) -> None:
        """Try one depth after the other, as long as the last one was clearly better.

        Where trees of many rows are nearly always right (``SMALL_LOSS``), ridges are
        compared first: under too strong a ridge a further level would look better than it is. A
        level that is not clearly better is then left out: the simplest tree within a standard error
        of the best (Breiman, Friedman, Olshen and Stone 1984, section 3.4.3).
        """
        small = False
        for shallow, deep in pairwise(depths):
            if not small and self._nearly_right(first):
                small = True
                self._vary(first, "ridge", ridges)
            leader = self._leader(first)
            if leader.depth != shallow or not self._pays(leader):
                break
            deeper = [leader._replace(depth=deep)]
            self._evaluate(deeper, self._screen(deeper), keep=True)
            if small and deeper[0] == self._leader(first) and not self._pays(deeper[0]):
                self.board.not_deeper.update(deeper)
            self.trainer.memory.keep_only(self._leader(first))

    def _nearly_right(self, first: Candidate) -> bool:
        """Whether settings compete on the first folds, and the best has a small log-loss."""
        if not self._halves(first.formulation.choice) or not self.board.rows():
            return False
        return -self.board.worth(self.board.best()) < SMALL_LOSS

    def _pays(self, leader: Candidate) -> bool:
        """Whether a depth is clearly better than the ones before it."""
        before = [key for key in self.board.rows() if key[0].depth < leader.depth]
        if not before:
            return True
        best = self.board.best([key for key in self.board.rows() if key[0] == leader])
        choice = leader.formulation.choice
        judged = len(self._folds(choice)) / self.board.n_folds
        errors = judged**0.5  # as large a difference as on all folds
        other = self.board.best(before)
        if self._halves(choice):
            loss = -self.board.worth(other)
            least = max(DEEPER_GAIN * loss, LEAST_GAIN)
            if self.board.worth(best) + loss < least:
                return False
        return not self.board.close(other, best, errors)

    def _evaluate(
        self,
        candidates: Sequence[Candidate],
        fractions: tuple[float, ...],
        *,
        keep: bool = False,
    ) -> None:
        """Train and score candidates; only the paths of the leader stay, unless ``keep``."""
        if not candidates or not fractions or self.trainer.run.budget.exhausted:
            return
        choice = candidates[0].formulation.choice
        names = list(dict.fromkeys(candidate.label for candidate in candidates))
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        families = len({candidate._replace(ridge=0.0) for candidate in candidates})
        self.observer.working(f"comparing {names[0]}{more}", families * len(self._folds(choice)))
        # 1. First folds, after which those that are behind are dropped.
        first, hopeful = 0, list(candidates)
        if not self._halves(choice) and self.seen and choice.scores_rows:
            first = min(FIRST_FOLDS, self.board.n_folds)
        if first:
            self.trainer.evaluate(candidates, fractions, self.board, range(first))
            price = PRICES[self.selection] if candidates[0].teacher > 0 else 0.0
            hopeful = self._hopeful(candidates, first, price)
        # 2. The other folds.
        if not first or not self.trainer.run.budget.exhausted:
            self.trainer.evaluate(hopeful, fractions, self.board, self._folds(choice)[first:])
        # 3. What is told and kept.
        for candidate in candidates:
            self._tell_best(candidate, again=candidate in self.seen)
        if not keep:
            self.trainer.memory.keep_only(self._leader(candidates[0]))

    def _hopeful(
        self, candidates: Sequence[Candidate], n_folds: int, price: float
    ) -> list[Candidate]:
        """Those that are not behind on the first folds; the others are dropped."""
        hopeful = [c for c in candidates if self.board.hopeful(c, n_folds, price)]
        self.dropped.update(set(candidates) - set(hopeful))
        return hopeful

    def _tell_best(self, candidate: Candidate, *, again: bool) -> None:
        """Report the best row of a candidate, if it has any."""
        keys = [key for key in self.board.folds if key[0] == candidate]
        if keys:
            self.seen.add(candidate)
            self.tell(self.board.best(keys, PRICES[self.selection]), again=again)

    def tell(
        self, key: tuple[Candidate, float], *, again: bool = False, chosen: bool = False
    ) -> None:
        """Report what is compared of a row of the board, and its score, to the observer."""
        board = self.board
        worth, net = board.worth(key), board.net(key, PRICES[self.selection])
        fewer = len(board.folds[key]) < len(self._folds(key[0].formulation.choice))
        cut = key[0] not in self.dropped and self.trainer.run.budget.exhausted
        self.observer.candidate_judged(
            JudgedCandidate(
                label=key[0].label,
                score=board.mean(key),
                accuracy=self.trainer.scoring.scorer is None,
                n_features=board.mean(key, "n_features"),
                log_loss=(-worth, -net) if board.valued(key) else None,
                folds=len(board.folds[key]),
                n_folds=board.n_folds,
                dropped=fewer and not cut,
                unfinished=fewer and cut,
                again=again,
                chosen=chosen,
            )
        )


def _screen(fractions: tuple[float, ...]) -> tuple[float, ...]:
    """A few strengths from the middle of the grid, in the same order."""
    if len(fractions) <= SCREENED:
        return fractions
    inner = np.linspace(0, len(fractions) - 1, SCREENED + 2)[1:-1]
    return tuple(fractions[i] for i in np.unique(np.rint(inner).astype(int)))
