"""Trees of all sizes from one: what is worth least goes first, and the rest is fitted again.

The size of a tree is the number of its coefficients plus four times that of its features. One
round takes away what costs least for the size it saves (prices.py), until a part of the size is
gone, and refits what is left. Moves are single coefficients, whole features, and branches, which
are replaced by one of their children; so is a branch that has lost its last coefficient.

The trees make a path: with a price of ``local`` for a coefficient and ``global_`` for a feature the
best of them is the one with the least

    value + local x coefficients + global_ x features

which is the objective under the "count" penalty at these strengths. As the strength grows the best
size falls; the tree without features, the last of the path, wins in the end. Features of a group
(the columns of one variable of a table) count as one, and may go together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.solvers.elimination.deletion_costs import (
    FEATURE,
    FEATURE_SIZE,
    branch_rises,
    coefficient_rises,
    routed,
)
from softsplit.solvers.elimination.descent import Field, Smoothing
from softsplit.solvers.elimination.race import Descents, OutOfBudget
from softsplit.solvers.elimination.support_tree import Draft, below, lost_with
from softsplit.support.arrays import FloatArray

SHARE, LARGE_SHARE, LARGE = 0.13, 0.25, 90
"""Part of the size that goes in a round, and that of trees larger than LARGE."""

RIDGE = 0.3
"""While features are weighed against one another."""

REFIT_STEPS, REFIT_DECREASE = 6, 1e-5

NEGLIGIBLE = 0.02
"""Weights below this, in log-odds per unit, are left out before the first round."""

SMALLEST = 1.0 + FEATURE_SIZE
"""Size of a tree of one coefficient."""

EXACT, MORE = 3.0, 12
"""Exact prices are worked out for this many times the moves that a round needs, and a few more."""


@dataclass(frozen=True)
class Stage:
    """A tree of the path and the value of the log-loss with prior and ridge there."""

    draft: Draft
    value: float

    @cached_property
    def counts(self) -> tuple[int, int]:
        """Coefficients and features."""
        return self.draft.n_coefficients, self.draft.n_features

    @cached_property
    def square(self) -> float:
        """Sum of its squared weights, which a ridge weighs."""
        return float(np.sum(self.draft.splits[:, :-1] ** 2))

    def price(self, local: float, global_: float) -> float:
        """Its objective at two strengths of the count."""
        return self.value + local * self.counts[0] + global_ * self.counts[1]


Price = Callable[[Stage], float]

GROUP = -2
"""In the place of a branch: all columns of a group, whose number stands for the column."""


class Move(NamedTuple):
    """What may go, and what that costs for the size it saves: one coefficient, with the branch
    FEATURE all those of a column, with GROUP those of a group, with a negative column a branch, of
    which ``fewer`` coefficients and the size ``saved`` go."""

    price: float
    branch: int
    column: int = -1
    goes_left: bool = False
    fewer: int = 0
    saved: float = 0.0


class Stages:
    """The path from a draft down to the tree without features, walked as far as it is asked for.

    Attributes
    ----------
    found : list of Stage
        The trees so far; the one without features comes last, once the path is at its end.
    """

    def __init__(self, descents: Descents, draft: Draft, shares: FloatArray) -> None:
        self.found: list[Stage] = []
        value = featureless_value(descents.field, shares, len(draft.splits))
        self._empty = Stage(draft.featureless(shares), value)
        self._rest = _walk(descents, draft)
        self._ended = False

    def all(self) -> list[Stage]:
        """The whole path; it is shorter, and has no tree without features, if the budget ends."""
        while not self._ended:
            self._next()
        return self._known()

    def up_to(self, price: Price, floor: Price) -> list[Stage]:
        """The trees that may be the cheapest, in the order of their prices.

        ``floor`` is a price that no tree after a stage falls below: where another tree costs less
        than that, the path need not be walked further.
        """
        prices = list(map(price, self.found))
        least = min([*prices, price(self._empty)])
        while not self._ended and not (self.found and floor(self.found[-1]) > least):
            self._next()
            prices += map(price, self.found[len(prices) :])
            least = min([least, *prices[-1:]])
        stages = self._known()
        if not self._ended:
            stages, prices = [*stages, self._empty], [*prices, price(self._empty)]
        return [stages[n] for n in sorted(range(len(stages)), key=prices.__getitem__)]

    def _next(self) -> None:
        """Walk on by one tree; one that was cut short is not taken up again."""
        self._ended = True
        try:
            self.found.append(next(self._rest))
        except StopIteration:
            self.found.append(self._empty)
        except OutOfBudget:
            pass
        else:
            self._ended = False

    def _known(self) -> list[Stage]:
        if not self.found:
            raise OutOfBudget
        return self.found


def _walk(descents: Descents, draft: Draft) -> Iterator[Stage]:
    """The trees of the path, but for the one without features."""
    ridge = Smoothing(RIDGE * descents.unit)
    draft = without_negligible(replace(draft, groups=descents.problem.groups))
    while draft.n_coefficients:
        draft = close_idle(descents, draft).compact()
        if not draft.n_coefficients:
            return
        rows = descents.on(draft)
        draft, value, _ = descents.descend(draft, ridge, REFIT_STEPS, REFIT_DECREASE, rows=rows)
        yield Stage(draft, value)
        if draft.size <= SMALLEST:
            return
        lighter = lightened(draft, rows, ridge.ridge)
        if lighter is draft:
            return
        draft = lighter


def featureless_value(field: Field, shares: FloatArray, n_branches: int) -> float:
    """Log-loss and prior of the tree that gives all rows the class shares."""
    totals = np.add.reduceat(field.weights, field.starts[:-1])
    return -float((totals + (n_branches + 1) * field.pseudo) @ np.log(shares))


def without_negligible(draft: Draft) -> Draft:
    """Less the coefficients that are next to nothing; at least one stays."""
    sizes = np.abs(draft.splits[:, :-1]) * draft.kept
    return draft.with_kept(sizes > min(NEGLIGIBLE, 0.999 * float(sizes.max(initial=0.0))))


def close_idle(descents: Descents, draft: Draft) -> Draft:
    """Replace every branch without coefficients by the child that serves the rows better."""
    while np.any(idle := draft.open & ~draft.kept.any(axis=1)):
        branch = int(np.argmax(idle))
        below_it = below(branch, len(draft.splits))[1:]
        goes_left = draft.splits[branch, -1] > 0
        if draft.kept[below_it].any():
            rises = branch_rises(draft.vector, descents.on(draft), draft.shape)[branch]
            goes_left = bool(rises[0] <= rises[1])
        draft = draft.closed(branch, bool(goes_left))
    return draft


def lightened(draft: Draft, rows: Field, ridge: float) -> Draft:
    """Less what costs least, until a part of the size is gone.

    A branch goes first or not at all: prices are of single moves, and after others it may be a
    different one altogether.
    """
    share = LARGE_SHARE if draft.size > LARGE else SHARE
    wanted, gone = max(1.0, share * draft.size), 0.0
    kept, in_group = draft.kept.copy(), _by_group(draft, draft.kept.sum(axis=0))
    for move in moves(draft, rows, ridge, int(EXACT * wanted) + MORE):
        left = int(in_group.sum())
        if move.column < 0:
            saved = move.saved
            if gone or move.fewer == left:
                continue
            draft = draft.closed(move.branch, move.goes_left)
            kept, in_group = draft.kept.copy(), _by_group(draft, draft.kept.sum(axis=0))
        else:
            which = slice(None) if move.branch < 0 else move.branch
            columns: Any = move.column
            home = draft.homes[move.column] if move.branch != GROUP else move.column
            if move.branch == GROUP:
                columns = draft.homes == home
            fewer = int(np.count_nonzero(kept[which, columns]))
            saved = fewer + FEATURE_SIZE * (fewer == in_group[home])
            if gone and gone + saved > 2 * wanted:
                if draft.groups is None or fewer == 0:
                    continue
                break  # whole groups are large: what is left is dearer than the next round's first
            if fewer in (0, left):
                continue
            kept[which, columns] = False
            in_group[home] -= fewer
        gone += saved
        if gone >= wanted:
            break
    return draft.with_kept(kept) if gone else draft


def _by_group(draft: Draft, counts: NDArray[Any]) -> NDArray[Any]:
    """Counts of the columns of a draft, added up by groups."""
    if draft.groups is None:
        return counts
    return np.bincount(draft.homes, counts).astype(counts.dtype)


def _branch_moves(draft: Draft, rises: FloatArray) -> list[Move]:
    """Each open branch may go with all that lies on its right or left; with what that saves."""
    kept = draft.kept.astype(float)
    lost, totals = lost_with(len(kept)) @ kept, kept.sum(axis=0)  # by feature
    if draft.groups is not None:
        members = np.eye(draft.homes.max(initial=-1) + 1)[draft.homes]
        lost, totals = lost @ members, totals @ members
    fewer = lost.sum(axis=1)
    saved = fewer + FEATURE_SIZE * np.count_nonzero((lost > 0) & (lost == totals), axis=1)
    told = zip(rises.ravel().tolist(), fewer.tolist(), saved.tolist(), strict=True)
    sides = [(t, goes_left) for t in range(len(kept)) for goes_left in (True, False)]
    return [
        Move(rise / size, t, goes_left=goes_left, fewer=int(count), saved=size)
        for (t, goes_left), (rise, count, size) in zip(sides, told, strict=True)
        if draft.open[t] and size > 0
    ]


def moves(draft: Draft, rows: Field, ridge: float, n_exact: int) -> Sequence[Move]:
    """All that may go, the cheapest first."""
    vector, shape = draft.vector, draft.shape
    joint = _joint(draft)
    # Which moves get exact prices is decided as if all features were alone: more of them.
    more = int(draft.kept[:, np.isin(draft.homes, joint)].sum()) if len(joint) else 0
    known = routed(vector, rows, shape)
    branches, columns, rises, saved = coefficient_rises(
        vector, rows, shape, np.ascontiguousarray(draft.kept), ridge, n_exact + 2 * more, known
    )
    if len(joint):
        saved = _saved_in_groups(draft, branches, columns)
    exact = np.isfinite(rises)
    prices = rises[exact] / saved[exact]
    found = list(map(Move, prices.tolist(), branches[exact].tolist(), columns[exact].tolist()))
    found += [_whole_group(draft, rows, ridge, int(group)) for group in joint]
    if draft.open.sum() > 1:
        found += _branch_moves(draft, branch_rises(vector, rows, shape, known))
    return sorted(found, key=lambda move: move.price)


def _joint(draft: Draft) -> NDArray[np.intp]:
    """Groups of which more than one column is left."""
    if draft.groups is None:
        return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(np.bincount(draft.homes[draft.kept.any(axis=0)]) > 1)


def _saved_in_groups(
    draft: Draft, branches: NDArray[np.intp], columns: NDArray[np.intp]
) -> FloatArray:
    """What goes of the size with each coefficient, or with all of a column."""
    in_column = draft.kept.sum(axis=0)
    in_group = _by_group(draft, in_column)[draft.homes]
    fewer = np.where(branches == FEATURE, in_column[columns], 1)
    return fewer + FEATURE_SIZE * (fewer == in_group[columns])


def _whole_group(draft: Draft, rows: Field, ridge: float, group: int) -> Move:
    """The move that takes away all columns of a group, with its exact price."""
    out = draft.homes == group
    fewer = int(draft.kept[:, out].sum())
    before, after = (
        routed(one.vector, rows, one.shape)[3]
        for one in (draft, draft.with_kept(draft.kept & ~out))
    )
    rise = float(rows.weights @ np.log(before / after))
    rise -= 0.5 * ridge * float(np.sum(draft.splits[:, :-1][:, out] ** 2))
    return Move(rise / (fewer + FEATURE_SIZE), GROUP, group)
