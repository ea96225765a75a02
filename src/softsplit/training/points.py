"""A trained tree in whole points: training rows in cells, the search, and the tree on look-ups.

1. The variables of some training rows in cells, and what each adds to the scores of each question.
2. The search (``softsplit.points.tree``) among the variables of the tree, or all of a narrow table.
3. A tree whose columns are the look-ups: weight slope / steepness for each, a gate for each
   question. It is rounded and read like any other: its columns are whole numbers already.

Groundwork: ``in_points`` is tested, and no estimator asks for it yet.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softsplit.fitted.summary import FeatureSummary
from softsplit.fitted.walk import Arriving
from softsplit.points.cells import CellColumn, cells_of
from softsplit.points.question import Effect
from softsplit.points.tree import PointedTree, SoftQuestion, pointed
from softsplit.support.arrays import FloatArray
from softsplit.training.preparation import Prepared
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import split_scores
from softsplit.tree.scaling import LinearScaling
from softsplit.variables import Coding
from softsplit.variables.lookup import Lookup
from softsplit.variables.variable import DATE, NUMBER

# Rows on which points are searched; variables of a table that are all tried as further look-ups.
SEARCHED_ROWS = 10_000
TRIED_VARIABLES = 40


@dataclass(frozen=True)
class PointedParts:
    """What a fitted tree in points has in place of the parts of the soft tree.

    Attributes
    ----------
    coding : Coding
        Its columns are the look-ups.
    parameters : TreeParameters
    scaling : LinearScaling
    lookups : tuple of (int, Lookup)
        The look-up of each column, and its variable in the coding of training.
    trained : Coding
        The coding of training.
    """

    coding: Coding
    parameters: TreeParameters
    scaling: LinearScaling
    lookups: tuple[tuple[int, Lookup], ...]
    trained: Coding

    def values(self, prepared: Prepared, rows: Arriving) -> Arriving:
        """Return training rows on the columns of the tree in points."""
        columns = _decoded(prepared, self.trained, rows, sorted({i for i, _ in self.lookups}))
        values = [own.values(columns[i].numbers, columns[i].missing) for i, own in self.lookups]
        return rows._replace(features=np.array(values))

    def summary(self, rows: Arriving) -> FeatureSummary:
        """Return the summary of the columns from rows on them."""
        mean = np.average(rows.features, axis=1, weights=rows.weights)
        return FeatureSummary.of(rows.features.T, rows.weights, mean)


def in_points(prepared: Prepared, tree: TreeParameters) -> PointedParts | None:
    """Return a tree in whole points; None if it asks no question."""
    coding = prepared.coding
    if coding is None:
        middles = [
            prepared.scaling.to_original(j, float(mean))
            for j, mean in enumerate(prepared.summary.scaled_mean)
        ]
        coding = Coding.of_numbers(prepared.feature_names, np.array(middles))
    # 1. Cells, and effects of the soft tree in them.
    used = np.any(tree.weights, axis=1)
    homes = np.unique(coding.homes[used])
    if not len(homes):
        return None
    tried = len(coding.variables) <= TRIED_VARIABLES
    read = np.ones(len(used), dtype=bool) if tried else np.isin(coding.homes, homes)
    rows = prepared.arriving(SEARCHED_ROWS, read)
    variables = list(range(len(coding.variables))) if tried else homes.tolist()
    columns = list(_decoded(prepared, coding, rows, variables).values())
    places = {i: n for n, i in enumerate(variables)}
    scores = split_scores(tree, rows.features) * prepared.problem.steepness
    soft = [
        SoftQuestion(score, _effects(prepared, coding, rows, columns, places, tree, t))
        for t, score in enumerate(scores)
    ]
    # 2. The search.
    labels = np.asarray(rows.labels, dtype=np.intp)
    solution = pointed(columns, soft, np.array(tree.leaf_values), labels, rows.weights)
    if not any(question.terms for question in solution.questions):
        return None
    # 3. The tree on look-ups.
    return _parts(prepared, coding, solution, variables)


def _decoded(
    prepared: Prepared, coding: Coding, rows: Arriving, variables: list[int]
) -> dict[int, CellColumn]:
    """Return the cells of some variables of training rows."""
    return {
        i: cells_of(
            coding.variables[i],
            coding.variables[i].decoded(_restored(prepared, rows, coding.columns_of(i))),
        )
        for i in variables
    }


def _restored(prepared: Prepared, rows: Arriving, own: NDArray[np.intp]) -> FloatArray:
    """Return columns of training rows in original units, (n_rows, n_own)."""
    return np.column_stack([prepared.scaling.restored(int(j), rows.features[j]) for j in own])


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
    for j, (i, t, lookup) in enumerate(placed):
        weights[j, t] = solution.questions[t].gate.slope * len(placed) / steepness
        by_variable.setdefault(i, []).append(lookup)
    thresholds = -np.array([question.gate.centre for question in solution.questions]) / steepness
    scaling = LinearScaling(np.zeros(len(placed)), np.ones(len(placed)), "identity")
    return PointedParts(
        coding.with_lookups(by_variable),
        TreeParameters(weights, thresholds, solution.leaves),
        scaling,
        tuple((i, lookup) for i, _, lookup in placed),
        coding,
    )
