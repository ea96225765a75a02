"""A trained tree in whole points: training rows in cells, the search, and the tree on look-ups.

1. The variables of some training rows in cells, and what each adds to the scores of each question.
2. The search (``softsplit.points.tree``) among the variables of the tree, or all of a narrow table.
3. A tree whose columns are the look-ups: weight slope / steepness for each, a gate for each
   question (``PointedParts``).
4. Its walk, with whole thresholds, without questions and terms that decide nothing; without such a
   question the others are searched again.
5. The same tree on the columns of a coding of all variables (``on_all_columns``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from softsplit.engines.samples import Samples
from softsplit.fitted.monotone import order_directions, ordered_leaves, ordered_walk
from softsplit.fitted.summary import INTEGER, FeatureSummary
from softsplit.fitted.walk import Arriving, Walk, arrivals
from softsplit.fitted.walk_choice import classes_below, reached
from softsplit.fitted.walk_rounding import rounded_shares, whole_walk
from softsplit.points.cells import CellColumn, cells_of, known_numbers
from softsplit.points.question import DEFAULTS, Effect, SearchOptions
from softsplit.points.tree import ROUNDS, PointedTree, SoftQuestion, pointed
from softsplit.support.arrays import FloatArray
from softsplit.training.preparation import Prepared
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import gate_probabilities, node_reach, node_values, split_scores
from softsplit.tree.scaling import LinearScaling, Scaling
from softsplit.variables import Coding, MonotoneEffects
from softsplit.variables.lookup import Lookup, LookupColumn
from softsplit.variables.variable import CATEGORY, DATE, NUMBER, Cells

# Rows on which points are searched; variables of a table that are all tried as further look-ups.
SEARCHED_ROWS = 10_000
TRIED_VARIABLES = 40

# A question whose smaller side has less than these parts of the rows that reach it, and of the rows
# of every class, divides hardly anybody.
LEAST_SIDE, LEAST_OF_CLASS = 0.01, 0.1


# A term goes whose removal changes the class of so few rows, and the likelihood by so small a part
# of that without features.
CHANGED, WORTH = 0.01, 0.005


@dataclass(frozen=True)
class PointedParts:
    """A tree in points on its look-ups alone.

    Attributes
    ----------
    coding : Coding
        Of all variables; the columns of those in use are their look-ups.
    parameters : TreeParameters
        With a feature for each look-up.
    lookups : tuple of (int, Lookup)
        Each with its variable, in the order of the columns.
    trained : Coding
        The coding of training.
    monotone : MonotoneEffects, optional
        Required effects, on the look-ups.
    """

    coding: Coding
    parameters: TreeParameters
    lookups: tuple[tuple[int, Lookup], ...]
    trained: Coding
    monotone: MonotoneEffects | None = None

    @property
    def scaling(self) -> LinearScaling:
        """Points as they are."""
        return identity(len(self.lookups))

    def values(self, scaling: Scaling, rows: Arriving) -> Arriving:
        """Return training rows, scaled so, with their points as features."""
        coding, home = self.trained, -1
        points = np.empty((len(self.lookups), len(rows.labels)))
        for line, (i, own) in zip(points, self.lookups, strict=True):
            if i != home:  # look-ups of a variable follow one another
                cells = _decoded(scaling, coding, rows, i)
                home, known = i, known_numbers(coding.variables[i], cells)
            line[:] = own.values(*known)
        return rows._replace(features=points)

    def arriving(self, scaling: Scaling, walk: Walk, samples: Samples) -> FloatArray:
        """Weight of each class that arrives in each leaf of a walk."""
        rows = Arriving(samples.features, samples.labels, samples.weights)
        return walk.arriving(self.values(scaling, rows), self.scaling)

    @property
    def of_numbers(self) -> list[LookupColumn] | None:
        """The look-ups with the columns that they read; None if one is of levels."""
        columns, variables = [], self.trained.variables
        for i, lookup in self.lookups:
            if variables[i].kind not in (NUMBER, DATE):
                return None
            own = self.trained.columns_of(i)
            unknown = int(own[-1]) if variables[i].has_missing else None
            columns.append(LookupColumn(lookup, int(own[0]), unknown))
        return columns

    def on_all_columns(self, tree: TreeParameters, walk: Walk) -> tuple[TreeParameters, Walk]:
        """Return a tree on the look-ups, and its walk, on the columns of the coding."""
        own, n_columns = self.columns, len(self.coding.homes)
        weights = np.zeros((n_columns, tree.weights.shape[1]))
        weights[own] = tree.weights * (n_columns / len(own))
        asked = np.zeros((len(walk.thresholds), n_columns))
        asked[:, own] = walk.coefficients
        return replace(tree, weights=weights), replace(walk, coefficients=asked)

    def under(self, effects: MonotoneEffects | None) -> PointedParts:
        """Return the parts under required effects."""
        if effects is None:
            return self
        effects, own = effects.on(self.coding), self.columns
        places = [np.searchsorted(own, sorted({*columns} & {*own})) for columns in effects.columns]
        return replace(
            self, monotone=replace(effects, columns=tuple(tuple(at.tolist()) for at in places))
        )

    def shortened(self, tree: TreeParameters) -> PointedParts:
        """Return the parts of a tree that uses some of the look-ups."""
        kept = np.any(tree.weights, axis=1)
        lookups = tuple(own for own, used in zip(self.lookups, kept, strict=True) if used)
        by_variable: dict[int, list[Lookup]] = {}
        for i, lookup in lookups:
            by_variable.setdefault(i, []).append(lookup)
        weights = tree.weights[kept] * (len(lookups) / len(self.lookups))
        return PointedParts(
            self.trained.with_lookups(by_variable), replace(tree, weights=weights), lookups,
            self.trained,
        )  # fmt: skip

    def in_order(
        self, tree: TreeParameters, walk: Walk, gains: FloatArray
    ) -> tuple[TreeParameters, Walk]:
        """Return a tree and its walk, which knows its rows, in the order of required effects."""
        if self.monotone is None:
            return tree, walk
        mass, direction = walk.counts.sum(axis=0), order_directions(self.monotone, tree.weights.T)
        leaves = ordered_leaves(tree.leaf_values, mass, direction, self.monotone, rounded_shares)
        walk = ordered_walk(walk, self.monotone, gains, gains.T @ leaves)
        return replace(tree, leaf_values=leaves), walk

    def marks(self, used: Any) -> FloatArray:
        """Return numbers of look-ups (n_lookups, n_branches) on the columns of training.

        Each stands at the first column of its variable.
        """
        marks = np.zeros((len(self.trained.homes), used.shape[1]))
        for (i, _), line in zip(self.lookups, np.asarray(used, dtype=float), strict=True):
            marks[self.trained.firsts[i]] += np.abs(line)
        return marks

    @property
    def columns(self) -> NDArray[np.intp]:
        """Columns of the coding that are look-ups."""
        pointed = np.array([bool(variable.lookups) for variable in self.coding.variables])
        return np.flatnonzero(pointed[self.coding.homes])

    def summary(self, prepared: Prepared, rows: Arriving) -> FeatureSummary:
        """Return the summary of all columns: of look-ups the means of points, in the rows, and the
        range of the values, which for levels are their places."""
        own, scaling, known = self.columns, prepared.scaling, prepared.summary
        homes, variables = self.coding.homes, self.coding.variables
        kept = np.flatnonzero(~self.trained.hinges)  # other columns are as in training
        kept = kept[~np.isin(self.trained.homes[kept], homes[own])]
        others = np.setdiff1d(np.arange(len(homes)), own)
        # 1. Ranges.
        source = np.array(self.trained.firsts)[homes]
        source[others] = kept
        lows, highs, kinds = known.low[source], known.high[source], known.kinds[source]
        for j in own:
            variable = variables[homes[j]]
            if variable.kind == CATEGORY:
                lows[j], highs[j] = 0.0, len(variable.levels) + variable.places_others - 1.0
                kinds[j] = INTEGER
        # 2. Means.
        means = np.zeros(len(homes))
        means[own] = np.average(rows.features, axis=1, weights=rows.weights)
        means[others] = [scaling.to_original(int(j), float(known.scaled_mean[j])) for j in kept]
        return FeatureSummary(lows, highs, means, kinds)


def identity(n_columns: int) -> LinearScaling:
    """Return the scaling of columns that are taken as they are."""
    return LinearScaling(np.zeros(n_columns), np.ones(n_columns), "identity")


def wanted(prepared: Prepared) -> bool:
    """Whether the fitted tree is to be in points."""
    settings = prepared.settings
    return bool(settings.points and settings.decision == "walk" and not prepared.assigned)


def in_points(
    prepared: Prepared, tree: TreeParameters, rounds: int = ROUNDS
) -> PointedParts | None:
    """Return a tree in whole points; None if it asks no question, or none that is allowed.

    ``rounds`` are those of the search.
    """
    coding = prepared.coding
    if coding is None:
        middles = [
            prepared.scaling.to_original(j, float(mean))
            for j, mean in enumerate(prepared.summary.scaled_mean)
        ]
        coding = Coding.of_numbers(
            prepared.feature_names, np.array(middles), named=prepared.names is not None
        )
    # 1. Cells, and effects of the soft tree in them.
    used = np.any(tree.weights, axis=1)
    homes = np.unique(coding.homes[used])
    if not len(homes):
        return None
    limited = bool(prepared.problem.limits) or prepared.rules is not None
    tried = len(coding.variables) <= TRIED_VARIABLES and not limited
    read = np.ones(len(used), dtype=bool) if tried else np.isin(coding.homes, homes)
    rows = prepared.arriving(SEARCHED_ROWS, read)
    variables = list(range(len(coding.variables))) if tried else homes.tolist()
    columns = [
        cells_of(coding.variables[i], _decoded(prepared.scaling, coding, rows, i))
        for i in variables
    ]
    places = {i: n for n, i in enumerate(variables)}
    scores = split_scores(tree, rows.features) * prepared.problem.steepness
    soft = [
        SoftQuestion(score, _effects(prepared, coding, rows, columns, places, tree, t))
        for t, score in enumerate(scores)
    ]
    # 2. The search, again without questions that decide nothing.
    options = _options(prepared, max(len(question.effects) for question in soft))
    given = (
        columns, soft, np.array(tree.leaf_values), np.asarray(rows.labels, dtype=np.intp),
        rows.weights, options, _directions(prepared, coding, tree, places),
    )  # fmt: skip
    solution, idle = pointed(*given, rounds), set[int]()
    while any(question.terms for question in solution.questions):
        # 3. The tree on look-ups.
        parts = _parts(prepared, coding, solution, variables).under(prepared.monotone)
        more = _idle(prepared, parts, rows)
        if not more:
            parts = parts if prepared.rules else _trimmed(prepared, parts, rows)
            return parts if allowed(prepared, parts, parts.parameters) else None
        idle |= more
        solution = pointed(*given, 1, solution, idle)
    return None


def _trimmed(prepared: Prepared, parts: PointedParts, rows: Arriving) -> PointedParts:
    """Return the tree without terms that decide nothing, one after the other."""
    gains, steepness = np.eye(len(prepared.classes)), prepared.problem.steepness
    rows = parts.values(prepared.scaling, rows)
    while True:
        walk = decisive_walk(parts, rows, steepness, gains)[1]
        tree = shorter_tree(parts.parameters, walk, rows, steepness)
        if tree is None:
            return parts
        rows = rows._replace(features=rows.features[np.any(tree.weights, axis=1)])
        parts = parts.shortened(tree).under(prepared.monotone)


def _idle(prepared: Prepared, parts: PointedParts, rows: Arriving) -> set[int]:
    """The questions of a tree that its walk does not ask."""
    gains, steepness = np.eye(len(prepared.classes)), prepared.problem.steepness
    walk = decisive_walk(parts, parts.values(prepared.scaling, rows), steepness, gains)[1]
    asked = np.any(parts.parameters.weights, axis=0)
    return set(np.flatnonzero(asked & ~np.any(walk.coefficients, axis=1)).tolist())


def _options(prepared: Prepared, longest: int) -> SearchOptions:
    """The ridge of training, and look-ups of a question: no more than are allowed, and than the
    ``longest`` question of the soft tree has, if those are many."""
    problem, prices = prepared.problem, DEFAULTS.prices
    most = max(prices.most_terms, longest)
    most = min(problem.limits.terms or most, most)
    ridge = problem.ridge / problem.row_unit
    return replace(DEFAULTS, ridge=ridge, prices=prices._replace(most_terms=most))


def _directions(
    prepared: Prepared, coding: Coding, tree: TreeParameters, places: dict[int, int]
) -> list[dict[int, int]]:
    """Which way points may go under required effects, by question and variable.

    The side of higher levels of the classes is that of the soft question, or without an effect in
    it that of the leaves.
    """
    effects = prepared.monotone
    if effects is None:
        return []
    sides = order_directions(effects, prepared.scaling.splits(tree)[0])
    levels, directions = effects.at_least(tree.leaf_values).sum(axis=0), []
    for t, side in enumerate(sides.tolist()):
        if side not in (1, -1):
            below = [list(tree.topology.leaves_below(2 * t + n)) for n in (1, 2)]
            side = 1 if levels[below[0]].mean() >= levels[below[1]].mean() else -1
        homes = {coding.places.index(at): sign for at, sign in effects.signs if at in coding.places}
        directions.append({places[i]: side * sign for i, sign in homes.items() if i in places})
    return directions


def allowed(prepared: Prepared, parts: PointedParts, tree: TreeParameters) -> bool:
    """Whether a tree on the look-ups is within limits and rules, which speak of columns of
    training."""
    return prepared.problem.allows(replace(tree, weights=parts.marks(tree.weights)))


def decisive_walk(
    parts: PointedParts, rows: Arriving, steepness: float, gains: FloatArray
) -> tuple[TreeParameters, Walk]:
    """Return the tree and its walk without questions that decide nothing, on the look-ups.

    1. The walk of the tree, with whole thresholds.
    2. The lowest question whose sides predict one class, or that divides hardly anybody; without
       one, or where it is the only question, the walk is complete.
    3. The question becomes the same for all rows: its leaves are mixed, or all go to one side.

    An only question is kept for its probabilities; see ``_dividing``.
    """
    tree = parts.parameters
    while True:
        # 1. the walk
        rounded, walk = whole_walk(tree, steepness, rows, gains)
        if parts.monotone is not None:
            walk = walk.counted(rows, parts.scaling, gains)
            rounded, walk = parts.in_order(rounded, walk, gains)
        # 2. a question that decides nothing
        dead = _undecided(walk, rows)
        if dead is None:
            return rounded, _dividing(walk, rows)
        # 3. the same for all rows
        branch, share = dead
        weights, thresholds = tree.weights.copy(), tree.thresholds.copy()
        weights[:, branch] = 0.0
        share = float(np.clip(share, 1e-9, 1.0 - 1e-9))
        thresholds[branch] = -np.log(share / (1.0 - share)) / steepness
        tree = TreeParameters(weights, thresholds, tree.leaf_values)


def shorter_tree(
    tree: TreeParameters, walk: Walk, rows: Arriving, steepness: float
) -> TreeParameters | None:
    """The tree without the term that is missed least; None where every term decides something.

    In place of a term its mean in the rows is added. It decides nothing where fewer than
    ``CHANGED`` of the rows get another class, and the log-loss rises by less than ``WORTH`` of what
    it is where nothing is known.

    1. Whether questions hold, the class on either side, and what the leaves give a row's label.
    2. Of a question: rows that get another class by another answer, and with gate p the
       probability of the label, V_root + (p' - p) reach (V_left - V_right), if it becomes p'.
    3. Of its terms: the sums without them; the term that is missed least.
    """
    total, labels = rows.weights.sum(), rows.labels
    counts = np.bincount(labels, rows.weights)
    worth = -WORTH * float(xlogy(counts, counts / total).sum())
    # 1. all questions
    holds = np.array([walk.holds(t, rows.features.T) for t in range(len(walk.thresholds))])
    ends = classes_below(holds, walk.classes)
    scores = split_scores(tree, rows.features)
    left, right = gate_probabilities(scores, steepness)
    reach, values = node_reach(left, right), node_values(left, right, tree.leaf_values[labels].T)

    def loss(likely: FloatArray) -> float:
        return -float(rows.weights @ np.log(np.maximum(likely, 1e-12)))

    least, best, known = np.inf, None, loss(values[0])
    for t in np.flatnonzero(np.count_nonzero(tree.weights, axis=0) > 1).tolist():
        # 2. one question
        moves = np.where(reached(holds, t) & (ends[2 * t + 1] != ends[2 * t + 2]), rows.weights, 0)
        gain = reach[t] * (values[2 * t + 1] - values[2 * t + 2])
        sums = walk.coefficients[t] @ rows.features
        for j in np.flatnonzero(tree.weights[:, t]).tolist():
            # 3. one term
            mean = float(np.average(rows.features[j], weights=rows.weights))
            held = sums - rows.features[j] + mean > walk.thresholds[t]
            if moves @ (held != holds[t]) >= CHANGED * total:
                continue
            weight = tree.weights[j, t] / tree.n_features
            moved = gate_probabilities(scores[t] - weight * (rows.features[j] - mean), steepness)[0]
            lost = loss(values[0] + (moved - left[t]) * gain) - known
            if lost < min(worth, least):
                least, best = lost, (j, t, weight * mean)
    if best is None:
        return None
    j, t, shift = best
    weights, thresholds = tree.weights.copy(), tree.thresholds.copy()
    weights[j, t] = 0.0
    thresholds[t] -= shift
    return TreeParameters(weights, thresholds, tree.leaf_values)


def _undecided(walk: Walk, rows: Arriving) -> tuple[int, float] | None:
    """The lowest question that decides nothing, and which share of rows is to go left there."""
    n_branches = len(walk.thresholds)
    asked = np.flatnonzero(np.any(walk.coefficients, axis=1))
    if len(asked) == 1:
        return None
    holds = np.array([walk.holds(t, rows.features.T) for t in range(n_branches)])
    nodes = _node_rows(holds, rows, len(walk.counts))
    sizes = nodes.sum(axis=1)
    for t in asked[::-1].tolist():
        left, right = sizes[2 * t + 1], sizes[2 * t + 2]
        leaves = list(walk.topology.leaves_below(t))
        arrived = [leaf for leaf in leaves if sizes[n_branches + leaf] > 0]
        smaller = nodes[2 * t + 1 + int(right < left)]
        of_classes = np.divide(smaller, nodes[0], out=np.zeros(len(smaller)), where=nodes[0] > 0)
        if min(left, right) <= LEAST_SIDE * (left + right) and of_classes.max() < LEAST_OF_CLASS:
            return t, float(left > right)
        if len(set(walk.classes[arrived].tolist())) == 1:
            return t, left / (left + right)
    return None


def _dividing(walk: Walk, rows: Arriving) -> Walk:
    """Return a walk whose only question has rows on both sides.

    Where one class is the most probable at all sums of points, any threshold decides alike: that
    whose sides tell most about the classes is kept (the cut of largest information gain, Quinlan
    1986).
    """
    asked = np.flatnonzero(np.any(walk.coefficients, axis=1))
    if len(asked) != 1:
        return walk
    sums = walk.coefficients[asked[0]] @ rows.features
    above = sums > walk.thresholds[asked[0]]
    if np.any(above) and not np.all(above):
        return walk
    totals = np.bincount(rows.labels, rows.weights, len(walk.counts))

    def likelihood(cut: float) -> float:
        part = np.bincount(rows.labels, rows.weights * (sums > cut), len(totals))
        sides = np.array([part, np.maximum(totals - part, 0.0)])
        sizes = np.maximum(sides.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        return float(xlogy(sides, sides / sizes).sum())

    cuts = np.unique(np.floor(sums))[:-1]
    if not len(cuts):
        return walk
    thresholds = walk.thresholds.copy()
    thresholds[asked[0]] = max(cuts.tolist(), key=likelihood)
    return replace(walk, thresholds=thresholds)


def _node_rows(holds: NDArray[np.bool_], rows: Arriving, n_classes: int) -> FloatArray:
    """Weight of the rows of each class that get to each node by answers, (n_nodes, n_classes)."""
    n_branches = len(holds)
    mass = np.zeros((2 * n_branches + 1, n_classes))
    np.add.at(mass, (n_branches + arrivals(holds), rows.labels), rows.weights)
    for t in range(n_branches - 1, -1, -1):
        mass[t] = mass[2 * t + 1] + mass[2 * t + 2]
    return mass


def _decoded(scaling: Scaling, coding: Coding, rows: Arriving, i: int) -> Cells:
    """Return a variable of training rows."""
    own = coding.columns_of(i)
    if coding.variables[i].kind in (NUMBER, DATE):  # hinges say nothing more
        own = own[[0, -1]] if coding.variables[i].has_missing else own[:1]
    columns = [scaling.restored(int(j), rows.features[j]) for j in own]
    return coding.variables[i].decoded(np.column_stack(columns))


def _effects(
    prepared: Prepared,
    coding: Coding,
    rows: Arriving,
    columns: list[CellColumn],
    places: dict[int, int],
    tree: TreeParameters,
    t: int,
) -> dict[int, Effect]:
    """Return what each variable adds to the scores of question ``t``, cell by cell."""
    effects, steepness = {}, prepared.problem.steepness
    weights = tree.weights[:, t] * (steepness / tree.n_features)
    slopes = prepared.scaling.splits(tree)[0][t] * steepness
    for i in np.unique(coding.homes[np.flatnonzero(weights)]).tolist():
        variable, own, column = coding.variables[i], coding.columns_of(i), columns[places[i]]
        added = weights[own] @ rows.features[own]
        counts = np.bincount(column.codes, minlength=column.n_cells + 1)
        cells = np.where(counts, column.sums(added) / np.maximum(counts, 1), added.mean())
        known = np.flatnonzero(counts[:-1])
        if not column.has_levels and len(known):
            cells[:-1] = np.interp(np.arange(column.n_cells), known, cells[known])
        bends, unknown = np.zeros(0), 0.0
        if variable.kind in (NUMBER, DATE) and prepared.scaling.linear:
            bends = slopes[own[: 1 + variable.n_hinges]]
            unknown = float(slopes[own[-1]]) if variable.has_missing else 0.0
        effects[places[i]] = Effect(cells, variable.knots, bends, unknown)
    return effects


def _parts(
    prepared: Prepared,
    coding: Coding,
    solution: PointedTree,
    variables: list[int],
) -> PointedParts:
    """Return the tree whose columns are the look-ups of a solution."""
    placed = sorted(
        (
            (variables[n], t, lookup)
            for t, question in enumerate(solution.questions)
            for n, lookup in question.lookups.items()
        ),
        key=lambda place: place[:2],
    )
    steepness = prepared.problem.steepness
    weights = np.zeros((len(placed), len(solution.questions)))
    by_variable: dict[int, list[Lookup]] = {}
    gates = np.array([(q.gate.centre, q.gate.slope) for q in solution.questions]).T
    for j, (i, t, lookup) in enumerate(placed):
        weights[j, t] = gates[1, t] * len(placed) / steepness
        by_variable.setdefault(i, []).append(lookup)
    return PointedParts(
        coding.with_lookups(by_variable),
        TreeParameters(weights, -gates[0] / steepness, solution.leaves),
        tuple((i, lookup) for i, _, lookup in placed),
        coding,
    )
