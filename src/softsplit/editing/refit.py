"""A fitted tree trained again: its questions and their features stay, numbers move.

    minimise  loss + prior + ridge  over the numbers that are not held

from the tree as it is, by L-BFGS. The weights a_t and the threshold mu_t of a question are linear
in factors x of its terms, which begin at 1:

    a_jt = a_jt(now) x_k,     j a term of group k

Each term is a group by itself, but coefficients c_j that are held as printed, which share the
factor of the term in whose units they are printed, and the terms of a number that bends and has a
monotone effect. A held threshold keeps the centre of the gate at its place in the units of the
data, by mu_t = s x_k centre - sum_j a_jt low_j / (span_j p), s the slope of the gate and k the
group of held terms; else mu_t is free.
Leaves that hold distributions have log-odds; leaves of one class are assigned again after each
descent. The tree is then rounded and gets its walk as after training, with the held parts as they
were.

A tree that was trained for monotone effects keeps them: factors of monotone terms are not negative,
leaves in the wrong order get their mean, and a tree whose effects are not proved afterwards is not
taken.

A refit that raises the training loss is not taken: then the leaves alone are fitted, and where
that raises it too the tree stays as it is, with its rows counted anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from softsplit.editing.edit import changed_model
from softsplit.editing.points import is_pointed
from softsplit.editing.printed import read_gate
from softsplit.engines.outer import IDENTITY
from softsplit.engines.registry import make_engine, make_samples
from softsplit.fitted.edits import NO_EDITS, Edits
from softsplit.fitted.importance import feature_importances
from softsplit.fitted.model import TreeModel, used_shares
from softsplit.fitted.monotone import required_effects
from softsplit.fitted.summary import FeatureSummary
from softsplit.fitted.walk_choice import FixedParts
from softsplit.formulations import formulation_of
from softsplit.formulations.model_settings import ModelSettings
from softsplit.formulations.settings import SIZE_LIMITS
from softsplit.problem.bounds import Bounds
from softsplit.problem.leaves import RATE_SLACK, ClassAssignment, InfeasibleLeafStep
from softsplit.problem.problem import TrainingProblem
from softsplit.reading.outline import outline
from softsplit.support.arrays import FloatArray
from softsplit.support.row_budgets import ROWS
from softsplit.training.fitted_tree import fitted_walk, leaf_shares, ordered_tree
from softsplit.training.preparation import Prepared, prepare
from softsplit.training.rows import EngineRows, Rows
from softsplit.tree.parameters import Block, TreeParameters
from softsplit.tree.scaling import LinearScaling

STEPS = 300
"""Steps of L-BFGS; trees have tens of free numbers, and most end after fifty."""

ROUNDS = 3
"""Times that leaves of one class are assigned again after a descent of the questions."""

SLOPES = 0.02, 50.0
"""Factors between which the steepness of a question with held parts may change: beyond, a gate is
open or shut for all rows."""

SOFTER = 1.0, 0.3
"""Further starts have their gates half open in the middle of the rows, and this part as steep:
gates that an edit has shut for all rows have no slope to descend along."""

LEAST_SHARE = 1e-9
"""Smaller class shares of a leaf count as this much where log-odds are made of them."""


def placed_rows(settings: ModelSettings, model: TreeModel, rows: Rows) -> Prepared:
    """The training problem of a tree on new rows, in the units of the tree."""
    rows = rows.counted()
    missing = [str(rows.classes[k]) for k in np.flatnonzero(~rows.present())]
    if missing:
        raise ValueError(
            f"y has no row of class {missing[0]!r}, which the tree knows; a refit needs rows of "
            "every class."
        )
    kind = model.scaling.kind
    unlimited: dict[str, Any] = dict.fromkeys(SIZE_LIMITS)
    settings = replace(
        settings,
        depth=model.topology.depth,
        scale="none" if kind == "identity" else kind,
        **unlimited,
    )
    weight, single = rows.training_weight(settings), str(rows.X.dtype).endswith("float32")
    samples = make_samples(
        rows.X, rows.labels, len(rows.classes), weight, model.scaling,
        device=settings.device, stay_single=formulation_of(settings.loss).keeps_single,
    )  # fmt: skip
    engine = make_engine(settings.engine, settings.device, single=single)(samples)
    summary = FeatureSummary.of(rows.X, rows.weight, samples.mean)
    known = EngineRows(model.scaling, engine, summary, class_factors=rows.class_factors(settings))
    prepared = prepare(settings, rows, known)
    problem = replace(prepared.problem, steepness=model.steepness)
    return replace(prepared, problem=problem, monotone=model.monotone)


def refitted(prepared: Prepared, model: TreeModel, rows: Rows, *, keep_edited: bool) -> TreeModel:
    """The tree with its free numbers fitted to the rows; its training loss is not higher."""
    fixed = model.edits if keep_edited else NO_EDITS
    plans = [(True, fixed), (False, fixed)]
    if model.edits and not keep_edited:  # what is good with the held parts is good without them
        plans.insert(1, (True, model.edits))
    best, least = None, training_loss(prepared, model, rows)
    for with_questions, edits in plans:
        if best is not None and not with_questions:
            break
        parameters = descended(prepared.problem, model, edits, with_questions=with_questions)
        candidate = _fitted(prepared, model, parameters, edits)
        loss = training_loss(prepared, candidate, rows)
        if loss <= least and _feasible(prepared, model, candidate):
            best, least = candidate, loss
    if best is not None:
        return best
    same = changed_model(model, summary=_summary(prepared, model))
    same = replace(same, monotone=model.monotone)
    if model.walk is None:
        return same
    walk = model.walk.counted(prepared.arriving(), model.scaling, None, prepared.class_factors)
    return replace(same, walk=walk)


def _summary(prepared: Prepared, model: TreeModel) -> FeatureSummary:
    """What is known of the rows; of a tree in points values have the ranges of its training."""
    if not is_pointed(model):
        return prepared.summary
    return replace(model.summary, scaled_mean=prepared.summary.scaled_mean)


def training_loss(prepared: Prepared, model: TreeModel, rows: Rows) -> float:
    """Mean log-loss of the probabilities of the rows by their training weights; of a tree trained
    for costs the expected cost."""
    weight = rows.training_weight(prepared.settings)
    if model.distributions is not None:
        called = model.leaf_proba(rows.X) @ model.parameters.leaf_values.T
        costs = prepared.problem.loss.table(np.eye(len(model.classes)))[rows.labels]
        return float(weight @ np.sum(called * costs, axis=1) / weight.sum())
    proba = model.predict_proba(rows.X)[np.arange(len(rows.labels)), rows.labels]
    return float(-weight @ np.log(np.maximum(proba, np.finfo(float).tiny)) / weight.sum())


def _feasible(prepared: Prepared, before: TreeModel, after: TreeModel) -> bool:
    problem = prepared.problem
    if not all(effect.proved for effect in required_effects(after)):
        return False
    if not problem.rated:
        return True
    allowed = max(RATE_SLACK, problem.violation(before.parameters).largest)
    return bool(problem.violation(after.parameters).largest <= allowed)


# --- free numbers ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class FreeQuestion:
    """A question as a linear function of its free numbers x.

    Attributes
    ----------
    branch : int
    used : array of int, shape (n_terms,)
    matrix : array of shape (n_terms + 1, n_free)
        ``matrix @ x`` are the weights of ``used`` and the threshold.
    start, low, high : arrays of shape (n_free,)
        x of the tree as it is, and bounds.
    free_threshold : bool
        Whether the last number is the threshold; all others are factors.
    """

    branch: int
    used: NDArray[np.intp]
    matrix: FloatArray
    start: FloatArray
    low: FloatArray
    high: FloatArray
    free_threshold: bool

    @classmethod
    def of(cls, bounds: Bounds, model: TreeModel, branch: int, edits: Edits) -> FreeQuestion:
        tree = model.parameters
        used = np.flatnonzero(tree.weights[:, branch])
        weights = tree.weights[used, branch]
        # 1. Terms that share a factor have one number in ``group``.
        monotone = () if model.monotone is None else model.monotone.columns
        blocks = [np.flatnonzero(np.isin(used, columns)) for columns in monotone]
        group = np.arange(len(used))
        for block in blocks:
            group[block] = block[:1]
        held = np.isin(used, [j for t, j in edits.weights if t == branch])
        held |= is_pointed(model)  # whole points stay
        fixed = branch in edits.thresholds
        whole = np.zeros(len(used), dtype=bool)
        if fixed or np.any(held):
            gate = read_gate(model, branch)
            whole = np.isin(group, group[held | (used == lead_of(gate.coefficients))])
            group[whole] = group[whole].min()
        # 2. Weights as products of these factors, within signs and bounds.
        member = group == np.unique(group)[:, None]  # (n_factors, n_terms)
        signed = np.isin(np.arange(len(used)), np.concatenate([np.zeros(0), *blocks]))
        ends = np.array([bounds.low[used, branch], bounds.high[used, branch]]) / weights
        below, above = np.where(signed, 0.0, -np.inf), np.full(len(used), np.inf)
        below, above = np.maximum(below, ends.min(axis=0)), np.minimum(above, ends.max(axis=0))
        below[whole], above[whole] = np.maximum(below[whole], SLOPES[0]), SLOPES[1]
        matrix = np.vstack([(member * weights).T, np.zeros(len(member))])
        low = np.max(np.where(member, below, -np.inf), axis=1)
        high = np.min(np.where(member, above, np.inf), axis=1)
        start = np.ones(len(member))
        # 3. The threshold: free, or at the same place of the data.
        if fixed:
            matrix[-1] = np.any(member & whole, axis=1) * gate.slope * gate.centre
            if isinstance(model.scaling, LinearScaling):
                scaling, p = model.scaling, tree.n_features
                matrix[-1] -= (scaling.low[used] / (scaling.span[used] * p)) @ matrix[:-1]
        else:
            matrix = np.column_stack([matrix, np.append(np.zeros(len(used)), 1.0)])
            start = np.append(start, tree.thresholds[branch])
            low, high = np.append(low, -np.inf), np.append(high, np.inf)
        return cls(branch, used, matrix, start, low, high, not fixed)

    def softened(self, model: TreeModel, part: float) -> FloatArray:
        """x of a gate that is half open at the training means, and ``part`` as steep.

        After an edit a gate may be shut for all rows, and no descent opens it. A held threshold
        stays.
        """
        start = part * self.start
        if self.free_threshold:
            weights = part * model.parameters.weights[self.used, self.branch]
            middle = float(weights @ model.summary.scaled_mean[self.used])
            start[-1] = middle / model.parameters.n_features
        return np.clip(start, self.low, self.high)


def lead_of(coefficients: FloatArray) -> int:
    """The feature in whose units a question is written: that of coefficient 1, or the largest."""
    ones = np.flatnonzero(coefficients == 1.0)
    return int(ones[0] if len(ones) else np.argmax(np.abs(coefficients)))


def free_leaves(model: TreeModel, edits: Edits) -> list[list[int]]:
    """Leaves that are free, those together that are printed as one."""
    shares = model.parameters.leaf_values
    groups = [[leaf] for leaf in range(model.topology.n_leaves)]
    if model.walk is not None:
        groups = []
        for end in outline(model).ends():
            below = list(end.leaves)
            same = np.all(shares[:, below] == shares[:, below[:1]])
            groups += [below] if same else [[leaf] for leaf in below]
    return [group for group in groups if not set(group) & set(edits.leaves)]


# --- descents -------------------------------------------------------------------------------------


def descended(
    problem: TrainingProblem, model: TreeModel, edits: Edits, *, with_questions: bool
) -> TreeParameters:
    """The best tree at the end of the descents; with the leaves alone, or with its questions."""
    tree, leaves = model.parameters, free_leaves(model, edits)
    branches = np.flatnonzero(np.any(tree.weights, axis=0) & with_questions).tolist()
    questions = [FreeQuestion.of(problem.bounds, model, t, edits) for t in branches]
    starts = [[q.start for q in questions]]
    starts += [[q.softened(model, part) for q in questions] for part in SOFTER]
    descend = _assigned if isinstance(problem.loss.leaf_rule, ClassAssignment) else _descent
    ends = [descend(problem, tree, questions, start, leaves)[0] for start in starts]
    return min(ends, key=lambda end: problem.evaluate_cost(end).value)


Numbers = list[FloatArray]
"""The free numbers of each question."""


def _assigned(
    problem: TrainingProblem,
    tree: TreeParameters,
    questions: Sequence[FreeQuestion],
    start: Numbers,
    leaves: Sequence[list[int]],
) -> tuple[TreeParameters, Numbers]:
    """Descents of the questions in turn with assignments of a class to each free leaf."""
    free = Block(
        tuple(range(len(tree.thresholds))), tuple(leaf for group in leaves for leaf in group)
    )
    for _ in range(ROUNDS):
        after, start = _descent(problem, tree, questions, start, [])
        if free.leaves:
            try:
                after = problem.restrict(free, after).best_leaves(after)
            except InfeasibleLeafStep:
                break
        if not problem.cost(after) < problem.cost(tree):
            break
        tree = after
    return tree, start


def _descent(
    problem: TrainingProblem,
    tree: TreeParameters,
    questions: Sequence[FreeQuestion],
    start: Numbers,
    leaves: Sequence[list[int]],
) -> tuple[TreeParameters, Numbers]:
    """L-BFGS over the free numbers; the end is the start where nothing was gained."""
    odds = [np.log(np.maximum(tree.leaf_values[:, group[0]], LEAST_SHARE)) for group in leaves]
    begin = np.concatenate([*start, *odds, np.zeros(0)])
    if not len(begin):
        return tree, start
    open_ends = np.full(sum(map(len, odds)), np.inf)
    low = np.concatenate([*(q.low for q in questions), -open_ends])
    high = np.concatenate([*(q.high for q in questions), open_ends])
    cuts = np.cumsum([len(part) for part in (*start, *odds)])[:-1]

    def at(x: FloatArray) -> TreeParameters:
        parts = np.split(x, cuts)
        weights, thresholds = tree.weights.copy(), tree.thresholds.copy()
        for q, own in zip(questions, parts, strict=False):
            *weights[q.used, q.branch], thresholds[q.branch] = q.matrix @ own
        shares = tree.leaf_values.copy()
        for group, own in zip(leaves, parts[len(questions) :], strict=True):
            share = np.exp(own - own.max())
            shares[:, group] = (share / share.sum())[:, None]
        return TreeParameters(weights, thresholds, shares)

    def value(x: FloatArray) -> tuple[float, FloatArray]:
        there = at(x)
        cost, slopes = problem.evaluate_cost(there), []
        for q in questions:
            by_number = np.append(cost.weights[q.used, q.branch], cost.thresholds[q.branch])
            slopes.append(q.matrix.T @ by_number)
        for group in leaves:
            share, by_share = (
                there.leaf_values[:, group[0]],
                cost.leaf_values[:, group].sum(axis=1),
            )
            slopes.append(share * (by_share - share @ by_share))
        return cost.value, np.concatenate(slopes)

    end = minimize(
        value, np.clip(begin, low, high), jac=True, method="L-BFGS-B",
        bounds=list(zip(low, high, strict=True)), options={"maxiter": STEPS},
    )  # fmt: skip
    if not np.all(np.isfinite(end.x)) or not end.fun < problem.evaluate_cost(tree).value:
        return tree, start
    return at(end.x), np.split(end.x, cuts)[: len(questions)]


# --- the fitted tree ------------------------------------------------------------------------------


def _fitted(prepared: Prepared, model: TreeModel, tree: TreeParameters, edits: Edits) -> TreeModel:
    """The tree with these parameters, rounded where it predicts by its walk."""
    shares, walk, costs, problem = None, None, model.call_costs, prepared.problem
    rows, steepness = problem.rows, problem.steepness
    mass = rows.evaluate(tree.splits, tree.leaf_values, IDENTITY, steepness).mass.sum(axis=0)
    if model.distributions is not None:
        shares = leaf_shares(prepared, tree)
        kept = list(edits.leaves)
        shares[:, kept] = model.distributions[:, kept]
    tree, shares = ordered_tree(prepared, tree, shares, mass, rounded=False)
    if model.walk is not None:
        fixed = fixed_parts(model, tree, edits)
        tree, walk, costs = fitted_walk(prepared, tree, costs, model.zero_threshold, fixed)
        tree, shares = ordered_tree(prepared, tree, shares, mass, rounded=True)
    samples = problem.rows.sample(ROWS.importances)
    weighed = feature_importances(tree, problem.steepness, samples.features, samples.weights)
    return replace(
        model,
        parameters=tree,
        distributions=shares,
        walk=walk,
        call_costs=costs,
        summary=_summary(prepared, model),
        importances=used_shares(weighed, tree.weights),
        objective=problem.objective(tree),
        n_iter=1,
        held_out=None,
    )


def fixed_parts(model: TreeModel, tree: TreeParameters, edits: Edits) -> FixedParts | None:
    """What the walk of ``tree`` keeps of that of the tree before; None if nothing."""
    walk = model.walk
    if walk is None or not (edits.weights or edits.thresholds or edits.leaves):
        return None
    n_branches = model.topology.n_branches
    coefficients = np.full(walk.coefficients.shape, np.nan)
    thresholds, centres, cuts = np.full((3, n_branches), np.nan)
    for t, j in edits.weights:
        if walk.coefficients[t, j]:
            coefficients[t, j] = walk.coefficients[t, j]
    after = replace(model, parameters=tree)
    for t in np.flatnonzero(np.any(walk.coefficients, axis=1)).tolist():
        if t not in edits.thresholds and np.all(np.isnan(coefficients[t])):
            continue
        lead = lead_of(walk.coefficients[t])
        coefficients[t, lead] = walk.coefficients[t, lead]
        if t in edits.thresholds:
            gate, moved = read_gate(model, t), read_gate(after, t)
            bound = float(walk.thresholds[t])
            if not model.scaling.linear and not walk.ranked[t]:
                row = np.zeros((1, model.parameters.n_features))
                row[0, lead] = bound
                bound = float(model.scaling.transform(row)[0, lead])
            thresholds[t], centres[t] = walk.thresholds[t], gate.centre
            cuts[t] = moved.slope * (bound - gate.centre)
    classes = np.full(n_branches + 1, -1, dtype=np.intp)
    classes[list(edits.leaves)] = walk.classes[list(edits.leaves)]
    return FixedParts(coefficients, thresholds, centres, cuts, walk.ranked, classes)
