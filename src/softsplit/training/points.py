"""A trained tree in whole points: training rows in cells, the search, and the tree on look-ups.

1. The variables of some training rows in cells, and what each adds to the scores of each question.
2. The search (``softsplit.points.tree``) among the variables of the tree, or all of a narrow table.
3. A tree whose columns are the look-ups: weight slope / steepness for each, a gate for each
   question (``PointedParts``).
4. Its walk, with whole thresholds, without questions and terms that decide nothing; without these
   the others are searched again.
5. The same tree on the columns of a coding of all variables (``on_all_columns``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from softsplit.fitted.monotone import order_directions
from softsplit.fitted.walk import Arriving
from softsplit.points.cells import CellColumn, cells_of
from softsplit.points.question import DEFAULTS, FINE, Effect, SearchOptions
from softsplit.points.tree import ROUNDS, PointedTree, SoftQuestion, lengthy, pointed, without_terms
from softsplit.problem.size_limits import NO_LIMITS
from softsplit.training.pointed_parts import PointedParts, decoded
from softsplit.training.pointed_walk import decisive_walk, log_loss, shorter_tree, worth_of_terms
from softsplit.training.preparation import Prepared
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import mixed_values, split_scores
from softsplit.variables import Coding
from softsplit.variables.lookup import Lookup
from softsplit.variables.variable import DATE, NUMBER

# Rows on which points are searched, fewer where these are more rows times classes; variables of a
# table that are all tried as further look-ups.
SEARCHED_ROWS, SEARCHED_SHARES, FEWEST_ROWS = 10_000, 60_000, 2_000
TRIED_VARIABLES = 40


def wanted(prepared: Prepared) -> bool:
    """Whether the fitted tree is to be in points."""
    settings = prepared.settings
    return bool(settings.points and settings.decision == "walk" and not prepared.assigned)


def in_points(
    prepared: Prepared,
    tree: TreeParameters,
    rounds: int = ROUNDS,
    stop: Callable[[], bool] = lambda: False,
) -> PointedParts | None:
    """Return a tree in whole points; None if it asks no question, or none that is allowed.

    ``rounds`` are those of the search, which ends where ``stop`` says so; a lengthy tree is None
    then. Limits of size that the tree meets without them change nothing: they narrow the search
    only where its result is too large.
    """
    problem = prepared.problem
    if problem.limits and prepared.rules is None:
        free = replace(prepared, problem=replace(problem, limits=NO_LIMITS))
        parts = _searched(free, tree, rounds, stop)
        if parts is None or allowed(prepared, parts, parts.parameters):
            return parts
    return _searched(prepared, tree, rounds, stop)


def _searched(
    prepared: Prepared, tree: TreeParameters, rounds: int, stop: Callable[[], bool]
) -> PointedParts | None:
    """As ``in_points``, within the limits from the start."""
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
    most = max(FEWEST_ROWS, min(SEARCHED_ROWS, SEARCHED_SHARES // len(prepared.classes)))
    rows = prepared.arriving(most, read)
    variables = list(range(len(coding.variables))) if tried else homes.tolist()
    columns = [
        cells_of(coding.variables[i], decoded(prepared.scaling, coding, rows, i)) for i in variables
    ]
    places = {i: n for n, i in enumerate(variables)}
    scores = split_scores(tree, rows.features) * prepared.problem.steepness
    soft = [
        SoftQuestion(score, _effects(prepared, coding, rows, columns, places, tree, t))
        for t, score in enumerate(scores)
    ]
    if lengthy(soft) and stop():
        return None
    # 2. The search, again without questions that decide nothing.
    options = _options(prepared, max(len(question.effects) for question in soft))
    # The soft tree has seen the labels of all rows, of which these are a part.
    taught = (1.0 - options.distilled) * min(1.0, len(rows.labels) / prepared.n_rows)
    options = replace(options, distilled=1.0 - taught)
    given = (
        columns, soft, np.array(tree.leaf_values), np.asarray(rows.labels, dtype=np.intp),
        rows.weights, options, _directions(prepared, coding, tree, places),
    )  # fmt: skip
    solution, idle = pointed(*given, rounds, stop=stop), set[int]()
    if lengthy(soft) and stop():
        return None
    while any(question.terms for question in solution.questions):
        # 3. The tree on look-ups.
        parts = _parts(prepared, coding, solution, variables).under(prepared.monotone)
        more = _idle(prepared, parts, rows)
        if not more:
            dropped = [] if prepared.rules else _idle_terms(prepared, parts, rows, stop)
            if dropped:  # what is left takes their part over
                shorter = without_terms(solution, [(places[i], t) for i, t in dropped])
                closed = replace(options, closed=True)
                solution = pointed(*given[:5], closed, given[6], 1, shorter, idle, stop)
                parts = _parts(prepared, coding, solution, variables).under(prepared.monotone)
            return parts if allowed(prepared, parts, parts.parameters) else None
        idle |= more
        solution = pointed(*given, 1, solution, idle, stop)
    return None


def _idle_terms(
    prepared: Prepared, parts: PointedParts, rows: Arriving, stop: Callable[[], bool]
) -> list[tuple[int, int]]:
    """The terms that decide nothing, one after the other: (variable, question) each."""
    gains, steepness = np.eye(len(prepared.classes)), prepared.problem.steepness
    rows, dropped = parts.values(prepared.scaling, rows), list[tuple[int, int]]()
    said = mixed_values(parts.parameters, rows.features, steepness)
    known = min(1.0, len(rows.labels) / prepared.n_rows)
    most = log_loss(rows, said[rows.labels, np.arange(len(rows.labels))])
    most += known * worth_of_terms(rows)
    while not stop():
        walk = decisive_walk(parts, rows, steepness, gains)[1]
        tree = shorter_tree(parts.parameters, walk, rows, steepness, most)
        if tree is None:
            break
        gone = np.argwhere((parts.parameters.weights != 0) & (tree.weights == 0))
        dropped += [(parts.lookups[j][0], t) for j, t in gone.tolist()]
        rows = rows._replace(features=rows.features[np.any(tree.weights, axis=1)])
        parts = parts.shortened(tree).under(prepared.monotone)
    return dropped


def _idle(prepared: Prepared, parts: PointedParts, rows: Arriving) -> set[int]:
    """The questions of a tree that its walk does not ask."""
    gains, steepness = np.eye(len(prepared.classes)), prepared.problem.steepness
    walk = decisive_walk(parts, parts.values(prepared.scaling, rows), steepness, gains)[1]
    asked = np.any(parts.parameters.weights, axis=0)
    return set(np.flatnonzero(asked & ~np.any(walk.coefficients, axis=1)).tolist())


def _options(prepared: Prepared, longest: int) -> SearchOptions:
    """How questions are searched: look-ups no more than are allowed, and than the ``longest``
    question of the soft tree has, if those are many."""
    options = FINE if prepared.settings.points == "fine" else DEFAULTS
    problem, prices = prepared.problem, options.prices
    most = max(prices.most_terms, longest)
    most = min(problem.limits.terms or most, most)
    ridge = options.shrinkage * problem.ridge / problem.row_unit
    return replace(options, ridge=ridge, prices=prices._replace(most_terms=most))


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
