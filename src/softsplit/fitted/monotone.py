"""Monotone effects of a fitted tree: what is proved for all inputs, and what keeps it so.

For a column x_j of the table, levels of the classes (variables/monotone.py) and a sign, with
V = P(level >= i) of what is below a node,

    d P(level >= i) / d x_j = sum_t slope_jt g_t R_t (V_left - V_right),        g_t, R_t >= 0

is of the sign for all rows if every term is. Slopes are piecewise constant, between the knots of a
number that bends; of a look-up they are the changes of its points from range to range.
``MonotoneEffect.proved`` asks for this with the ranges of V over the leaves below; a tree that was
trained for it holds it. Its walk holds it if the levels of the classes of its leaves are in the
same order wherever a question asks for the column.

``ordered_leaves`` and ``ordered_classes`` keep a tree in order after its numbers were rounded, its
shares were counted or its leaves got classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.fitted.leaf_shares import decision_gains
from softsplit.fitted.model import TreeModel
from softsplit.fitted.walk import Walk
from softsplit.support.arrays import FloatArray
from softsplit.tree.leaf_functions import LeafFunctions, proves_monotone
from softsplit.tree.parameters import Topology
from softsplit.variables import MonotoneEffects, effect_changes, effect_columns
from softsplit.variables.columns import listed_columns

LEVEL = 1e-9
"""Slopes up to this part of the coefficients, and differences of probabilities up to this, count as
none: rounding."""


Changes = Sequence[tuple[int, int]]


def slopes_at(
    coefficients: FloatArray, columns: NDArray[np.intp], changes: Changes = ()
) -> FloatArray:
    """Slopes of a variable before, between and after its knots, (n_branches, 1 + n_knots).

    Of look-ups, whose ``changes`` are given: the largest and the smallest slope of each,
    (n_branches, 2 n_lookups).
    """
    own = coefficients[:, columns]
    if len(changes):
        return (own[:, :, None] * np.array(changes, dtype=float)).reshape(len(own), -1)
    slopes = np.cumsum(own, axis=1)
    size = np.abs(own).max(axis=1, initial=0.0)[:, None]
    return np.where(np.abs(slopes) <= LEVEL * size, 0.0, slopes)


def directions(slopes: FloatArray) -> NDArray[np.intp]:
    """For each branch 1 if it goes left more often as the variable rises, -1 less often, 0 if it
    does not ask for it, 2 if it does both."""
    up, down = np.any(slopes > 0, axis=1), np.any(slopes < 0, axis=1)
    return np.where(up & down, 2, up.astype(int) - down.astype(int))


def in_order(
    values: FloatArray, direction: NDArray[np.intp], sign: int, slack: float = 0.0
) -> bool:
    """Whether leaf values (n_values, n_leaves) are in order at every branch of a direction."""
    return not any(True for _ in _breaches(values, direction, sign, slack))


def _breaches(values: FloatArray, direction: NDArray[np.intp], sign: int, slack: float) -> Any:
    """Pairs of leaves, the one that should be lower first, that are the wrong way round."""
    n_branches = len(direction)
    topology = Topology.with_branches(n_branches)
    for t in np.flatnonzero(direction):
        left, right = (list(topology.leaves_below(2 * int(t) + side)) for side in (1, 2))
        sides = [(right, left)] if direction[t] * sign > 0 else [(left, right)]
        if direction[t] == 2:
            sides = [(left, right), (right, left)]
        for low, high in sides:
            excess = values[:, low].max(axis=1) - values[:, high].min(axis=1)
            worst = int(np.argmax(excess))
            if excess[worst] > slack:
                yield (
                    low[int(np.argmax(values[worst, low]))],
                    high[int(np.argmin(values[worst, high]))],
                )


@dataclass(frozen=True)
class MonotoneEffect:
    """The effect of one column on the levels of the classes.

    Attributes
    ----------
    model : TreeModel
    place : int
        Column of the table.
    sign : int
        1 where P(level >= i) must not fall, -1 where it must not rise.
    levels : MonotoneEffects
        The levels of the classes.
    """

    model: TreeModel
    place: int
    sign: int
    levels: MonotoneEffects

    @cached_property
    def columns(self) -> NDArray[np.intp]:
        """Features by which the column acts."""
        return effect_columns(self.model.coding, self.place)

    @cached_property
    def slopes(self) -> FloatArray:
        """Of the gates in original units, as of ``slopes_at``."""
        return slopes_at(self.model.splits[0], self.columns, self.changes)

    @property
    def changes(self) -> Changes:
        """Of look-ups: how their points change with the value."""
        return effect_changes(self.model.coding, self.place)

    @property
    def used(self) -> bool:
        """Whether any gate or question asks for the column."""
        walk = self.model.walk
        asked = walk is not None and np.any(walk.coefficients[:, self.columns])
        return bool(np.any(self.slopes) or asked)

    @property
    def proba_proved(self) -> bool:
        """Whether leaf ranges prove the effect on the mixture."""
        shares = self.levels.at_least(self.model.leaf_shares)
        return in_order(shares, directions(self.slopes), self.sign, LEVEL)

    @property
    def decides(self) -> bool:
        """Whether the effect speaks of predicted classes: of walks, and of two classes."""
        return self.model.walk is not None or len(self.model.classes) == 2

    @property
    def classes_proved(self) -> bool:
        """Whether leaf ranges prove the effect on the predicted class."""
        model, walk = self.model, self.model.walk
        if walk is not None:
            effects = walk_directions(walk, self.columns, self.changes)
            levels = np.array(self.levels.levels)[walk.classes].astype(float)
            return in_order(levels[None], effects, self.sign)
        votes = model.leaf_votes
        ahead = votes[1] - votes[0] if self.levels.levels[1] else votes[0] - votes[1]
        return in_order(ahead[None], directions(self.slopes), self.sign, LEVEL)

    @property
    def classes_follow(self) -> bool:
        """Whether the predicted class follows from the mixture: that of two classes, by a threshold
        of their probability."""
        model = self.model
        if model.walk is not None or model.distributions is not None or len(model.classes) != 2:
            return False
        votes = np.eye(2) if model.call_costs is None else decision_gains(model.call_costs).T
        return bool(votes[1, 1] - votes[0, 1] >= votes[1, 0] - votes[0, 0])

    @property
    def adjusted(self) -> bool:
        """Whether probabilities of several classes are lowered to that of the predicted one, which
        is no mixture of leaves any more."""
        return self.model.class_factors is not None and len(self.model.classes) > 2

    @property
    def proved(self) -> bool:
        """Whether leaf ranges prove the effect on all that the tree says."""
        return (
            self.proba_proved
            and (not self.decides or self.classes_proved)
            and not (self.adjusted and self.used)
        )

    @property
    def sentence(self) -> str:
        """The effect in words."""
        name = self.model.column_names[self.place]
        never = self.levels.outcome(self.place, self.sign, self.model.labels)
        return f"{never} when {name} rises"


def walk_directions(
    walk: Walk, columns: NDArray[np.intp], changes: Changes = ()
) -> NDArray[np.intp]:
    """As ``directions``, of the questions of a walk."""
    sides = directions(slopes_at(walk.coefficients, columns, changes))
    turned = np.where(walk.upwards, sides, -sides)
    return np.where(sides == 2, 2, turned)


def required_effects(model: TreeModel) -> list[MonotoneEffect]:
    """The effects that the tree was trained for."""
    known = model.monotone
    if known is None:
        return []
    there = [(place, sign) for place, sign in known.signs if place < len(model.column_names)]
    return [MonotoneEffect(model, place, sign, known) for place, sign in there]


def monotone_lines(model: TreeModel) -> list[str]:
    """A line about each required effect of a column in use, and one about all other columns."""
    if model.numbers is not None:
        return _number_lines(model, model.numbers.functions)
    lines, unused = [], []
    for effect in required_effects(model):
        if effect.used:
            state = "proved for all inputs" if effect.proved else "not proved"
            lines.append(f"{effect.sentence} ({state})")
        else:
            unused.append(model.column_names[effect.place])
    if unused:
        holds = "requirement holds" if len(unused) == 1 else "requirements hold"
        lines.append(f"{listed_columns(unused)}: not used, so the {holds}")
    return lines


def _number_lines(model: TreeModel, functions: LeafFunctions) -> list[str]:
    """The same of a tree that predicts a number."""
    lines = []
    effects = model.monotone
    for (place, sign), columns in (
        () if effects is None else zip(effects.signs, effects.columns, strict=True)
    ):
        features = np.array(columns, dtype=np.intp)
        proved = proves_monotone(model.parameters.weights, functions, features, sign)
        lines.append(
            f"{model.answers[0]} never {'falls' if sign > 0 else 'rises'} when "
            f"{model.column_names[place]} rises ({'' if proved else 'not '}proved"
            f"{' for all inputs' if proved else ''})"
        )
    return lines


# --- keeping a tree in order ----------------------------------------------------------------------


def order_directions(effects: MonotoneEffects, coefficients: FloatArray) -> NDArray[np.intp]:
    """For each branch 1 if higher levels must be on its left, -1 on its right, 0 for no order, 2
    where two effects contradict each other, so that both sides must say the same."""
    sides = np.zeros(len(coefficients), dtype=np.intp)
    for sign, columns, changes in effects.features:
        own = directions(slopes_at(coefficients, columns, changes))
        own = np.where(own == 2, 2, sign * own)
        clash = (sides != 0) & (own != 0) & (sides != own)
        sides = np.where(clash, 2, np.where(sides == 0, own, sides))
    return sides


def ordered_leaves(
    shares: FloatArray,
    weights: FloatArray,
    direction: NDArray[np.intp],
    effects: MonotoneEffects,
    rounded: Callable[[FloatArray], FloatArray] = lambda shares: shares,
) -> FloatArray:
    """Class shares in order: leaves that are the wrong way round get the same, their mean.

    Parameters
    ----------
    shares : array of shape (n_classes, n_leaves)
    weights : array of shape (n_leaves,)
        What each leaf counts in a mean.
    direction : array of int, shape (n_branches,)
        As of ``order_directions``.
    rounded : callable
        How means are rounded.
    """
    group, levelled = np.arange(shares.shape[1]), shares.copy()
    weights = np.maximum(weights, 1e-12 * max(float(weights.max()), 1e-300))
    while True:
        pair = next(_breaches(effects.at_least(levelled), direction, 1, LEVEL), None)
        if pair is None:
            return levelled
        one, other = group[pair[0]], group[pair[1]]
        group[group == other] = one
        members = group == one
        mean = shares[:, members] @ weights[members] / weights[members].sum()
        levelled[:, members] = rounded(mean[:, None])


def ordered_classes(
    worth: FloatArray,
    current: NDArray[np.intp],
    direction: NDArray[np.intp],
    levels: tuple[int, ...],
) -> NDArray[np.intp]:
    """Classes of leaves whose levels are in order, with the largest sum of ``worth``.

    ``worth`` (n_classes, n_leaves) is what each class is worth in each leaf. Classes that are in
    order stay. Otherwise the sum is maximised exactly: below a branch with an order, all levels of
    the low side are up to some level, and all of the high side from it on.
    """
    level = np.array(levels)
    if in_order(level[current][None].astype(float), direction, 1):
        return current
    n_branches, top = len(direction), int(level.max())

    @cache
    def best(node: int, low: int, high: int) -> tuple[float, tuple[int, ...]]:
        if node >= n_branches:
            leaf = node - n_branches
            allowed = np.flatnonzero((level >= low) & (level <= high))
            k = int(allowed[np.argmax(worth[allowed, leaf])])
            return float(worth[k, leaf]), (k,)
        left, right, at = 2 * node + 1, 2 * node + 2, direction[node]
        if at == 0:
            cuts = [((low, high), (low, high))]
        elif at == 2:
            cuts = [((i, i), (i, i)) for i in range(low, high + 1)]
        elif at > 0:
            cuts = [((i, high), (low, i)) for i in range(low, high + 1)]
        else:
            cuts = [((low, i), (i, high)) for i in range(low, high + 1)]
        pairs = [(best(left, *a), best(right, *b)) for a, b in cuts]
        chosen = max(pairs, key=lambda pair: pair[0][0] + pair[1][0])
        return chosen[0][0] + chosen[1][0], chosen[0][1] + chosen[1][1]

    return np.array(best(0, 0, top)[1], dtype=np.intp)


def walk_order(walk: Walk, effects: MonotoneEffects) -> NDArray[np.intp]:
    """As ``order_directions``, of the questions of a walk."""
    direction = order_directions(effects, walk.coefficients)
    return np.where((direction == 2) | walk.upwards, direction, -direction)


def ordered_walk(
    walk: Walk,
    effects: MonotoneEffects,
    gains: FloatArray,
    votes: FloatArray,
) -> Walk:
    """A walk whose leaf classes are in order.

    ``gains`` as of ``fit_walk``; ``votes`` (n_classes, n_leaves) decide where few rows arrive.
    """
    direction = walk_order(walk, effects)
    unit = 1e-6 * max(float(walk.counts.sum()), 1.0)
    worth = gains.T @ walk.counts + unit * votes / max(float(votes.max()), 1e-300)
    return replace(walk, classes=ordered_classes(worth, walk.classes, direction, effects.levels))
