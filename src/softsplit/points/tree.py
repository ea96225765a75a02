"""The questions of a soft tree in whole points, and its leaves refitted.

1. Every row gets class shares: its class, mixed with what the soft tree says about it, whose
   experience of slopes and of other rows it keeps (distillation, Hinton et al. 2015).
2. Question by question from the root, the others as they are: points by question.py.
3. Leaves by expectation maximisation with all gates as they are.
4. Steps 2 and 3 once more, from the points that each question has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from softsplit.points.cells import CellColumn
from softsplit.points.likelihood import Gate, Rows
from softsplit.points.question import DEFAULTS, Effect, Question, QuestionSearch, SearchOptions
from softsplit.points.terms import term_of
from softsplit.support.arrays import FloatArray
from softsplit.tree.routing import node_reach
from softsplit.variables.lookup import Lookup

# Share of the soft tree's probabilities in the classes that points are fitted to.
DISTILLED = 0.5

ROUNDS = 2
EM_STEPS = 30

# Rows of the class shares of all rows that a leaf has beside its own.
PRIOR_ROWS = 1.0


@dataclass(frozen=True)
class SoftQuestion:
    """A question of the soft tree: its scores z (n_rows,) and the effects that they are made of."""

    scores: FloatArray
    effects: dict[int, Effect]


@dataclass(frozen=True)
class PointedTree:
    """Questions in points by branch, and the leaves.

    A question without look-ups has the same gate for all rows. ``leaves`` (n_classes, n_leaves) are
    class shares.
    """

    questions: tuple[Question, ...]
    leaves: FloatArray


def pointed(
    columns: Sequence[CellColumn],
    soft: Sequence[SoftQuestion],
    leaves: FloatArray,
    labels: NDArray[np.intp],
    weights: FloatArray,
    options: SearchOptions = DEFAULTS,
) -> PointedTree:
    """Return a soft tree in whole points.

    ``soft`` are its questions in heap order, ``leaves`` (n_classes, n_leaves) its class shares,
    ``labels`` positions of classes.
    """
    gates = expit(np.array([question.scores for question in soft]))
    # 1. Classes mixed with what the soft tree says.
    shares = DISTILLED * node_answers(gates, leaves)[0]
    shares[np.arange(len(labels)), labels] += 1.0 - DISTILLED
    means = [float(np.average(question.scores, weights=weights)) for question in soft]
    questions = [Question({}, Gate(mean, 0.0, np.inf)) for mean in means]
    for _ in range(ROUNDS):
        # 2. Questions, from the root.
        for t, question in enumerate(soft):
            if not question.effects:
                continue
            answers, reach = node_answers(gates, leaves), node_reach(gates, 1.0 - gates)
            gain = reach[t][:, None] * (answers[2 * t + 1] - answers[2 * t + 2])
            rows = Rows(answers[0] - gates[t][:, None] * gain, gain, shares, weights)
            soft_sums = np.sum(
                [e.cells[columns[v].codes] for v, e in question.effects.items()], axis=0
            )
            centre = float(np.average(question.scores - soft_sums, weights=weights))
            search = QuestionSearch(columns, rows, options)
            known = questions[t] if questions[t].terms else None
            best = search.best(question.effects, centre, known)
            if best is not None:
                questions[t] = best
            gates[t] = expit(questions[t].scores)
        # 3. Leaves.
        leaves = refitted_leaves(gates, leaves, shares, weights)
    positive = [in_positive_points(question, columns, options) for question in questions]
    return PointedTree(tuple(positive), leaves)


def node_answers(gates: FloatArray, leaves: FloatArray) -> list[FloatArray]:
    """Class shares that each row gets from each node on, (n_rows, n_classes) by node."""
    n_branches, n_rows = gates.shape
    answers = [np.zeros((0, 0))] * n_branches
    answers += [np.tile(leaf, (n_rows, 1)) for leaf in leaves.T]
    for t in range(n_branches - 1, -1, -1):
        left, right = answers[2 * t + 1], answers[2 * t + 2]
        answers[t] = right + gates[t][:, None] * (left - right)
    return answers


def refitted_leaves(
    gates: FloatArray, leaves: FloatArray, shares: FloatArray, weights: FloatArray
) -> FloatArray:
    """Class shares of the leaves after ``EM_STEPS`` steps of expectation maximisation."""
    reach = node_reach(gates, 1.0 - gates)[len(gates) :]
    expected = shares * weights[:, None]
    prior = PRIOR_ROWS * expected.sum(axis=0) / expected.sum()
    for _ in range(EM_STEPS):
        says = reach.T @ leaves.T
        counts = leaves * ((expected / np.maximum(says, 1e-12)).T @ reach.T)
        leaves = (counts + prior[:, None]) / (counts.sum(axis=0) + prior.sum())
    return leaves


def in_positive_points(
    question: Question, columns: Sequence[CellColumn], options: SearchOptions
) -> Question:
    """Return the same question with points from 0 on that speak for yes.

    A gate that falls with the points is turned: all points are negated. Then the lowest points of
    each table become 0, and the centre of the gate takes up the difference.
    """
    sign = 1 if question.gate.slope >= 0 else -1
    terms, shift = {}, 0
    for variable, term in question.terms.items():
        lookup, column = turned(term.lookup, sign), columns[variable]
        lowest = 0 if lookup.slopes else min(lookup.all_points)
        shift += lowest
        raised = replace(
            lookup,
            points=tuple(p - lowest for p in lookup.points),
            unknown=None if lookup.unknown is None else lookup.unknown - lowest,
        )
        terms[variable] = term_of(column, raised, options.prices)
    slope = sign * question.gate.slope
    gate = question.gate._replace(centre=question.gate.centre + slope * shift, slope=slope)
    return Question(terms, gate)


def turned(lookup: Lookup, sign: int) -> Lookup:
    """Return the look-up with all points times ``sign``."""
    return replace(
        lookup,
        points=tuple(sign * p for p in lookup.points),
        slopes=tuple(sign * s for s in lookup.slopes),
        unknown=None if lookup.unknown is None else sign * lookup.unknown,
    )
