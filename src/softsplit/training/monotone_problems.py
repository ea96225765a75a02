"""Problems under monotone effects: their order, and the classes on leaves that are fixed."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, permutations, product

import numpy as np

from softsplit.formulations.model_settings import ModelSettings
from softsplit.problem.order import MonotoneOrder
from softsplit.problem.penalties import PenaltyPair
from softsplit.problem.problem import TrainingProblem
from softsplit.training.rows import Rows, TrainingRows
from softsplit.tree.parameters import Block, TreeParameters
from softsplit.tree.scaling import LinearScaling, Scaling
from softsplit.variables import MonotoneEffects

STRUCTURES = 6
"""Most ways to put the classes on the leaves that are tried under monotone effects."""


def monotone_order(effects: MonotoneEffects, scaling: Scaling) -> MonotoneOrder:
    """Return the effects in terms of the columns of a problem."""
    units = scaling.span if isinstance(scaling, LinearScaling) else np.ones(scaling.n_features)
    return MonotoneOrder(
        tuple(np.array(columns, dtype=np.intp) for columns in effects.columns),
        tuple(sign for _, sign in effects.signs),
        np.where(np.isfinite(units), units, 1.0),
        np.array(effects.levels, dtype=np.intp),
    )


def ordered_structures(problem: TrainingProblem, order: MonotoneOrder) -> list[TrainingProblem]:
    """Return problems with the classes on fixed leaves, in order of their levels.

    Every class has a leaf. In the first problem the others go where most rows for each leaf are,
    and classes of one level stand as they come; the next ones have them otherwise.
    """
    totals, n_leaves = problem.rows.group_totals, problem.topology.n_leaves
    neutral = TreeParameters.neutral(problem.n_features, len(totals), problem.topology)
    whole = Block(tuple(range(problem.topology.n_branches)), ())
    counts = np.ones(len(totals), dtype=int)
    for _ in range(n_leaves - len(totals)):
        counts[int(np.argmax(totals / counts))] += 1
    shapes = [counts]
    for giver, taker in permutations(range(len(totals)), 2):
        if counts[giver] > 1:
            shapes.append(counts.copy())
            shapes[-1][[giver, taker]] += (-1, 1)
    members = [np.flatnonzero(order.levels == level) for level in np.unique(order.levels)]
    ways = list(islice(product(*(permutations(own.tolist()) for own in members)), STRUCTURES))
    pairs = sorted(product(range(len(ways)), range(len(shapes))), key=sum)[:STRUCTURES]
    problems = []
    for way, shape in pairs:
        classes = np.array([k for own in ways[way] for k in own])
        leaves = np.eye(len(totals))[:, np.repeat(classes, shapes[shape][classes])]
        problems.append(problem.restrict(whole, replace(neutral, leaf_values=leaves)))
    return problems


def refuse_beside_monotone(settings: ModelSettings, rows: TrainingRows) -> None:
    """Raise ValueError, in one sentence, for what does not go together with monotone effects."""
    if not isinstance(settings.loss, str):
        raise ValueError(
            "monotone is for loss='log' and loss='cost'; leave it out for other losses."
        )
    if isinstance(rows, Rows) and not rows.dense:
        raise ValueError(
            "monotone is for tables and dense matrices; make X dense, or leave monotone out."
        )


def refuse_penalty(penalties: PenaltyPair) -> None:
    """Raise ValueError for a penalty under which no tree is led in the coordinates of an order."""
    strength = penalties.local.strength + penalties.global_.strength
    if strength > 0 and not penalties.counts:
        raise ValueError(
            "monotone with loss='log' needs penalty='count' or no penalty at all; leave penalty "
            "at 'auto'."
        )
