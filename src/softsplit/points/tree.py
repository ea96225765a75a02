"""The questions of a soft tree in whole points, and its leaves refitted.

1. Every row gets class shares: its class, mixed with what the soft tree says about it, whose
   experience of slopes and of other rows it keeps (distillation, Hinton et al. 2015).
2. Question by question from the root, the others as they are: points by question.py.
3. Leaves by expectation maximisation with all gates as they are.
4. Steps 2 and 3 once more, from the points that each question has; again without questions that
   turn out to decide nothing, so that the others tell what they told.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from softsplit.points.cells import CellColumn
from softsplit.points.likelihood import Gate, GateRows
from softsplit.points.question import (
    DEFAULTS,
    Effect,
    Question,
    QuestionSearch,
    SearchOptions,
    sums_of,
)
from softsplit.support.arrays import FloatArray
from softsplit.tree.routing import node_reach

ROUNDS = 2
EM_STEPS = 30

# Trees of more terms than these take seconds to put into points, also without a search.
MANY_EFFECTS = 200


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
    directions: Sequence[Mapping[int, int]] = (),
    rounds: int = ROUNDS,
    start: PointedTree | None = None,
    idle: Collection[int] = (),
    stop: Callable[[], bool] = lambda: False,
) -> PointedTree:
    """Return a soft tree in whole points.

    ``soft`` are its questions in heap order, ``leaves`` (n_classes, n_leaves) its class shares,
    ``labels`` positions of classes. ``directions`` says by question of variables whether their
    points may only grow (1) or fall (-1) with the value; those of missing values are free. Of
    ``rounds`` those after the first find a little more. They go on from ``start``, if it is given,
    with the same answer for all rows to the questions ``idle``. Questions are left at their starts
    where ``stop`` says so, and those of a lengthy tree without points.
    """
    gates = expit(np.array([question.scores for question in soft]))
    # 1. Classes mixed with what the soft tree says.
    shares = options.distilled * node_answers(gates, leaves)[0]
    shares[np.arange(len(labels)), labels] += 1.0 - options.distilled
    means = [float(np.average(question.scores, weights=weights)) for question in soft]
    nowhere = np.zeros(len(labels))
    questions = [Question({}, Gate(mean, 0.0, np.inf), nowhere) for mean in means]
    if start is not None:
        leaves = start.leaves
        for t, asked_before in enumerate(start.questions):
            mean = float(np.average(expit(asked_before.scores), weights=weights))
            alike = Question({}, Gate(float(logit(mean)), 0.0, np.inf), nowhere)
            questions[t] = alike if t in idle else asked_before
            gates[t] = expit(questions[t].scores)
    own = frozenset().union(*(question.effects for question in soft))
    for number in range(rounds):
        if number and stop():
            break
        # 2. Questions, from the root.
        for t, question in enumerate(soft):
            if lengthy(soft) and stop():
                break
            if not question.effects or t in idle:
                continue
            answers, reach = node_answers(gates, leaves), node_reach(gates, 1.0 - gates)
            gain = reach[t][:, None] * (answers[2 * t + 1] - answers[2 * t + 2])
            rows = GateRows(answers[0] - gates[t][:, None] * gain, gain, shares, weights)
            soft_sums = np.sum(
                [e.cells[columns[v].codes] for v, e in question.effects.items()], axis=0
            )
            centre = float(np.average(question.scores - soft_sums, weights=weights))
            asked = directions[t] if directions else {}
            search = QuestionSearch(columns, rows, options, asked, own, stop)
            known = questions[t] if questions[t].terms else None
            best = search.best(question.effects, centre, known)
            if best is not None:
                questions[t] = best
            gates[t] = expit(questions[t].scores)
        # 3. Leaves.
        leaves = refitted_leaves(gates, leaves, shares, weights, options.prior_rows)
    return PointedTree(tuple(from_zero(question) for question in questions), leaves)


def without_terms(solution: PointedTree, dropped: Collection[tuple[int, int]]) -> PointedTree:
    """Return a tree without some terms, (variable, question) each: their mean takes their place."""
    questions = list(solution.questions)
    for variable, t in dropped:
        question = questions[t]
        terms = {v: term for v, term in question.terms.items() if v != variable}
        mean = float(question.terms[variable].points.mean())
        gate = question.gate._replace(centre=question.gate.centre + question.gate.slope * mean)
        questions[t] = Question(terms, gate, sums_of(terms))
    return PointedTree(tuple(questions), solution.leaves)


def lengthy(soft: Sequence[SoftQuestion]) -> bool:
    """Whether a tree has so many terms that it stays in weights where no time is left."""
    return sum(len(question.effects) for question in soft) > MANY_EFFECTS


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
    gates: FloatArray,
    leaves: FloatArray,
    shares: FloatArray,
    weights: FloatArray,
    prior_rows: float,
) -> FloatArray:
    """Class shares of the leaves after ``EM_STEPS`` steps of expectation maximisation."""
    reach = node_reach(gates, 1.0 - gates)[len(gates) :]
    expected = shares * weights[:, None]
    prior = prior_rows * expected.sum(axis=0) / expected.sum()
    for _ in range(EM_STEPS):
        says = reach.T @ leaves.T
        counts = leaves * ((expected / np.maximum(says, 1e-12)).T @ reach.T)
        leaves = (counts + prior[:, None]) / (counts.sum(axis=0) + prior.sum())
    return leaves


def from_zero(question: Question) -> Question:
    """Return the same question with the lowest points of each table 0, without a common factor.

    The gate takes up the difference. Slopes stay as they are, and then the factor too.
    """
    tables, shift, common = {}, 0.0, 0
    for variable, term in question.terms.items():
        own = term.cells[: len(term.cells) - (not term.column.has_missing)]
        lowest = 0.0 if term.slopes else float(own.min())
        tables[variable] = term.cells - lowest
        shift += lowest
        common = 1 if term.slopes else gcd(common, *(own - lowest).astype(int).tolist())
    common = max(common, 1)
    terms = {v: replace(question.terms[v], cells=cells / common) for v, cells in tables.items()}
    gate = question.gate
    gate = gate._replace(centre=gate.centre + gate.slope * shift, slope=gate.slope * common)
    return Question(terms, gate, sums_of(terms) if terms else question.sums)
