"""A fitted tree trained again: its questions and their features stay, numbers move.

    minimise  loss + prior + ridge  over the numbers that are not held

from the tree as it is. The weights a_t and the threshold mu_t of a question are linear in its free
numbers. Where nothing of it is held these are a_jt of its features and mu_t. Where coefficients
c_j are held as printed, they move together as s c_j, s > 0, with the steepness s of the gate;
where the threshold is held,

    mu_t = s centre - sum_j a_jt low_j / (span_j p)

keeps the centre of the gate at its place in the units of the data. Leaves that hold distributions
have log-odds; leaves of one class are assigned again after each descent. The tree is then rounded
and gets its walk as after training, with the held parts as they were.

A tree that was trained for monotone effects keeps them: the weight of a monotone feature keeps its
sign, those of one that bends move together, leaves in the wrong order get their mean, and a tree
whose effects are not proved afterwards is not taken.

A refit that raises the training loss is not taken: then the leaves alone are fitted, and where
that raises it too the tree stays as it is, with its rows counted anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from softsplit.editing.edit import changed_model, read_gate
from softsplit.engines.outer import IDENTITY
from softsplit.engines.registry import make_engine, make_samples
from softsplit.fitted.edits import NO_EDITS, Edits
from softsplit.fitted.importance import feature_importances
from softsplit.fitted.model import TreeModel, used_shares
from softsplit.fitted.monotone import required_effects
from softsplit.fitted.summary import FeatureSummary
from softsplit.fitted.walk_choice import Held
from softsplit.formulations import formulation_of
from softsplit.formulations.model_settings import ModelSettings
from softsplit.problem.leaves import RATE_SLACK, ClassAssignment, InfeasibleLeafStep
from softsplit.problem.problem import TrainingProblem
from softsplit.reading.outline import outline
from softsplit.support.arrays import FloatArray
from softsplit.support.row_budgets import ROWS
from softsplit.training.preparation import Prepared, prepare
from softsplit.training.rows import Placed, Rows
from softsplit.tree.parameters import Block, TreeParameters
from softsplit.tree.scaling import LinearScaling


@dataclass(frozen=True)
class RefitOptions:
    """How a tree is trained again."""

    max_iter: int = 300
    """Steps of L-BFGS; trees have tens of free numbers, and most end after fifty."""

    rounds: int = 3
    """Times that leaves of one class are assigned again after a descent of the questions."""

    slope: tuple[float, float] = (0.02, 50.0)
    """Factors between which the steepness of a question with held parts may change: beyond, a gate
    is open or shut for all rows."""

    soft: tuple[float, ...] = (1.0, 0.3)
    """Further starts have their gates half open in the middle of the rows, and this part as steep:
    gates that an edit has shut for all rows have no slope to descend along."""

    least_share: float = 1e-9
    """Smaller class shares of a leaf count as this much where log-odds are made of them."""


OPTIONS = RefitOptions()


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
    settings = replace(
        settings,
        depth=model.topology.depth,
        scale="none" if kind == "identity" else kind,
        max_features=None,
        max_terms=None,
        max_questions=None,
    )
    weight, single = rows.training_weight(settings), str(rows.X.dtype).endswith("float32")
    samples = make_samples(
        rows.X, rows.labels, len(rows.classes), weight, model.scaling,
        device=settings.device, stay_single=formulation_of(settings.loss).keeps_single,
    )  # fmt: skip
    engine = make_engine(settings.engine, settings.device, single=single)(samples)
    summary = FeatureSummary.of(rows.X, rows.weight, samples.mean)
    known = Placed(model.scaling, engine, summary, class_factors=rows.class_factors(settings))
    prepared = prepare(settings, rows, known)
    problem = replace(prepared.problem, steepness=model.steepness)
    return replace(prepared, problem=problem, monotone=model.monotone)


def refitted(prepared: Prepared, model: TreeModel, rows: Rows, *, keep_edited: bool) -> TreeModel:
    """The tree with its free numbers fitted to the rows; its training loss is not higher."""
    held = model.edits if keep_edited else NO_EDITS
    plans = [(True, held), (False, held)]
    if model.edits and not keep_edited:  # what is good with the held parts is good without them
        plans.insert(1, (True, model.edits))
    best, least = None, training_loss(prepared, model, rows)
    for with_questions, edits in plans:
        if best is not None and not with_questions:
            break
        found = descended(prepared.problem, model, edits, with_questions=with_questions)
        made = _made(prepared, model, found, edits)
        loss = training_loss(prepared, made, rows)
        if loss <= least and _feasible(prepared, model, made):
            best, least = made, loss
    if best is not None:
        return best
    same = replace(changed_model(model, summary=prepared.summary), monotone=model.monotone)
    if model.walk is None:
        return same
    walk = model.walk.counted(prepared.arriving(), model.scaling, None, prepared.class_factors)
    return replace(same, walk=walk)


def training_loss(prepared: Prepared, model: TreeModel, rows: Rows) -> float:
    """Mean log-loss of the probabilities of the rows by their training weights; of a tree trained
    for costs the expected cost."""
    weight = rows.training_weight(prepared.settings)
    if model.distributions is not None:
        called = model.leaf_proba(rows.X) @ model.parameters.leaf_classes.T
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


class FreeQuestion(NamedTuple):
    """A question as a linear function of its free numbers: (weights of ``used``, threshold).

    ``matrix`` has a column for each free number, ``start`` their values, ``low`` and ``high`` the
    bounds.
    """

    branch: int
    used: NDArray[np.intp]
    matrix: FloatArray
    start: FloatArray
    low: FloatArray
    high: FloatArray


def free_question(model: TreeModel, branch: int, edits: Edits) -> FreeQuestion:
    """The free numbers of a question."""
    weights = model.parameters.weights[:, branch]
    used = np.flatnonzero(weights)
    held = {j for t, j in edits.weights if t == branch} & set(used.tolist())
    threshold_held = branch in edits.thresholds
    start = np.append(weights[used], model.parameters.thresholds[branch])
    n = len(used)
    signs = np.where(_monotone(model)[used], np.sign(weights[used]), 0.0)
    if not held and not threshold_held and not np.any(signs):
        free = np.full(n + 1, np.inf)
        return FreeQuestion(branch, used, np.eye(n + 1), start, -free, free)
    if not held and not threshold_held:
        return _signed_question(model, branch, used, signs, start)
    gate, scaling = read_gate(model, branch), model.scaling
    together = held | {_lead(gate.coefficients)} | set(used[signs != 0].tolist())
    offsets = np.zeros(n)
    if isinstance(scaling, LinearScaling):
        offsets = scaling.low[used] / (scaling.span[used] * model.parameters.n_features)
    moving = np.array([j in together for j in used.tolist()])
    columns = [np.append(np.where(moving, weights[used], 0.0), 0.0)]
    columns += [np.eye(n + 1)[i] for i in np.flatnonzero(~moving)]
    if threshold_held:
        columns[0][-1] = gate.slope * gate.centre
        for column in columns:
            column[-1] -= float(column[:-1] @ offsets)
    else:
        columns.append(np.eye(n + 1)[n])
    begin = np.concatenate(
        [[1.0], weights[used][~moving], *([] if threshold_held else [start[-1:]])]
    )
    low, high = np.full(len(begin), -np.inf), np.full(len(begin), np.inf)
    low[0], high[0] = OPTIONS.slope
    return FreeQuestion(branch, used, np.array(columns).T, begin, low, high)


def _monotone(model: TreeModel) -> NDArray[np.bool_]:
    """Which features belong to a variable whose effect must be monotone."""
    found = np.zeros(model.parameters.n_features, dtype=bool)
    for columns in () if model.monotone is None else model.monotone.columns:
        found[list(columns)] = True
    return found


def _signed_question(
    model: TreeModel,
    branch: int,
    used: NDArray[np.intp],
    signs: FloatArray,
    start: FloatArray,
) -> FreeQuestion:
    """A question with monotone features: each variable keeps the signs of all of its slopes."""
    assert model.monotone is not None
    n, numbers = len(used), start
    blocks = [np.flatnonzero(np.isin(used, columns)) for columns in model.monotone.columns]
    blocks = [block for block in blocks if len(block) > 1]
    bent = {int(i) for block in blocks for i in block}
    single = [i for i in range(n + 1) if i not in bent]
    columns = [np.eye(n + 1)[i] for i in single]
    columns[-1:-1] = [np.where(np.isin(np.arange(n + 1), block), numbers, 0.0) for block in blocks]
    signs = np.concatenate([signs[single[:-1]], np.ones(len(blocks)), [0.0]])
    begin = np.concatenate([numbers[single[:-1]], np.ones(len(blocks)), numbers[-1:]])
    low, high = np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf)
    return FreeQuestion(branch, used, np.array(columns).T, begin, low, high)


def _lead(coefficients: FloatArray) -> int:
    """The feature in whose units a question is written: that of coefficient 1, or the largest."""
    sizes = np.abs(coefficients)
    ones = np.flatnonzero(coefficients == 1.0)
    return int(ones[0] if len(ones) else np.argmax(sizes))


def free_leaves(model: TreeModel, edits: Edits) -> list[list[int]]:
    """Leaves that are free, those together that are printed as one."""
    shares = model.parameters.leaf_classes
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
    """The tree at the end of the descents; with the leaves alone, or with its questions."""
    tree = model.parameters
    branches = np.flatnonzero(np.any(tree.weights, axis=0) & with_questions)
    questions = [free_question(model, int(t), edits) for t in branches]
    leaves = free_leaves(model, edits)
    starts = [questions, *([_centred(q, model, part) for q in questions] for part in OPTIONS.soft)]
    if isinstance(problem.loss.leaf_rule, ClassAssignment):
        ends = [_assigned(problem, tree, start, leaves) for start in starts]
    else:
        ends = [_descent(problem, tree, start, leaves) for start in starts]
    return min(ends, key=lambda end: problem.evaluate_cost(end).value)


def _assigned(
    problem: TrainingProblem,
    tree: TreeParameters,
    questions: Sequence[FreeQuestion],
    leaves: Sequence[Sequence[int]],
) -> TreeParameters:
    """Descents of the questions in turn with assignments of a class to each free leaf."""
    best = tree
    free = tuple(leaf for group in leaves for leaf in group)
    whole = tuple(range(len(tree.thresholds)))
    for _ in range(OPTIONS.rounds):
        found = _descent(problem, best, questions, []) if questions else best
        if free:
            block = problem.restrict(Block(whole, free), found)
            try:
                found = block.best_leaves(found)
            except InfeasibleLeafStep:
                return best
        if not problem.cost(found) < problem.cost(best):
            return best
        best = found
        questions = [replace_start(q, found) for q in questions]
    return best


def replace_start(question: FreeQuestion, tree: TreeParameters) -> FreeQuestion:
    """The question with the free numbers that it has in another tree."""
    there = np.append(tree.weights[question.used, question.branch],
                      tree.thresholds[question.branch])  # fmt: skip
    start = np.linalg.lstsq(question.matrix, there, rcond=None)[0]
    return question._replace(start=np.clip(start, question.low, question.high))


def _centred(question: FreeQuestion, model: TreeModel, part: float) -> FreeQuestion:
    """The question with its gate half open at the training means, and ``part`` as steep.

    After an edit a gate may be shut for all rows, and no descent opens it. A held threshold stays.
    """
    start = question.start.copy()
    free = np.flatnonzero(question.matrix[-1] == 1.0)
    if len(free) != 1 or np.any(question.matrix[:-1, free[0]]):
        start *= part
    else:
        start *= part
        weights = part * model.parameters.weights[question.used, question.branch]
        middle = float(weights @ model.summary.scaled_mean[question.used])
        start[free[0]] = middle / model.parameters.n_features
    return question._replace(start=np.clip(start, question.low, question.high))


def _descent(
    problem: TrainingProblem,
    tree: TreeParameters,
    questions: Sequence[FreeQuestion],
    leaves: Sequence[Sequence[int]],
) -> TreeParameters:
    """L-BFGS over the free numbers; the end is the start where nothing was gained."""
    n_classes = len(tree.leaf_classes)
    odds = [
        np.log(np.maximum(tree.leaf_classes[:, group[0]], OPTIONS.least_share)) for group in leaves
    ]
    start = np.concatenate([*(q.start for q in questions), *odds, np.zeros(0)])
    if not len(start):
        return tree
    bounds = problem.bounds
    low = np.concatenate([*(_low(q, bounds.low) for q in questions),
                          np.full(n_classes * len(leaves), -np.inf)])  # fmt: skip
    high = np.concatenate([*(_high(q, bounds.high) for q in questions),
                           np.full(n_classes * len(leaves), np.inf)])  # fmt: skip

    def made(theta: FloatArray) -> TreeParameters:
        weights, thresholds = tree.weights.copy(), tree.thresholds.copy()
        shares, at = tree.leaf_classes.copy(), 0
        for q in questions:
            numbers = q.matrix @ theta[at : at + len(q.start)]
            weights[q.used, q.branch], thresholds[q.branch] = numbers[:-1], numbers[-1]
            at += len(q.start)
        for group in leaves:
            share = np.exp(theta[at : at + n_classes] - theta[at : at + n_classes].max())
            shares[:, list(group)] = (share / share.sum())[:, None]
            at += n_classes
        return TreeParameters(weights, thresholds, shares)

    def value(theta: FloatArray) -> tuple[float, FloatArray]:
        found = made(theta)
        there = problem.evaluate_cost(found)
        parts = []
        for q in questions:
            slope = np.append(there.weights[q.used, q.branch], there.thresholds[q.branch])
            parts.append(q.matrix.T @ slope)
        for group in leaves:
            share = found.leaf_classes[:, group[0]]
            slope = there.leaf_classes[:, list(group)].sum(axis=1)
            parts.append(share * (slope - share @ slope))
        return there.value, np.concatenate(parts)

    begin = problem.evaluate_cost(tree).value
    end = minimize(
        value, np.clip(start, low, high), jac=True, method="L-BFGS-B",
        bounds=list(zip(low, high, strict=True)), options={"maxiter": OPTIONS.max_iter},
    )  # fmt: skip
    return made(end.x) if np.all(np.isfinite(end.x)) and end.fun < begin else tree


def _low(question: FreeQuestion, low: FloatArray) -> FloatArray:
    """Bounds of the free numbers: those of single weights where each is free by itself."""
    if not np.array_equal(question.matrix, np.eye(len(question.used) + 1)):
        return question.low
    own = np.append(low[question.used, question.branch], -np.inf)
    return np.asarray(np.maximum(question.low, own))


def _high(question: FreeQuestion, high: FloatArray) -> FloatArray:
    return -_low(question._replace(low=-question.high), -high)


# --- the fitted tree ------------------------------------------------------------------------------


def _made(prepared: Prepared, model: TreeModel, found: TreeParameters, edits: Edits) -> TreeModel:
    """The tree with these parameters, rounded where it predicts by its walk."""
    shares, walk, costs, problem = None, None, model.call_costs, prepared.problem
    rows, steepness = problem.rows, problem.steepness
    mass = rows.evaluate(found.splits, found.leaf_classes, IDENTITY, steepness).mass.sum(axis=0)
    if model.distributions is not None:
        shares = prepared.leaf_shares(found)
        kept = list(edits.leaves)
        shares[:, kept] = model.distributions[:, kept]
    found, shares = prepared.ordered(found, shares, mass, rounded=False)
    if model.walk is not None:
        held = held_parts(model, found, edits)
        found, walk, costs = prepared.walk(found, costs, model.zero_threshold, held)
        found, shares = prepared.ordered(found, shares, mass, rounded=True)
    samples = problem.rows.sample(ROWS.importances)
    weighed = feature_importances(found, problem.steepness, samples.features, samples.weights)
    return replace(
        model,
        parameters=found,
        distributions=shares,
        walk=walk,
        call_costs=costs,
        summary=prepared.summary,
        importances=used_shares(weighed, found.weights),
        objective=problem.objective(found),
        n_iter=1,
        held_out=None,
    )


def held_parts(model: TreeModel, found: TreeParameters, edits: Edits) -> Held | None:
    """What the walk of ``found`` keeps of that of the tree before; None if nothing."""
    walk = model.walk
    if walk is None or not (edits.weights or edits.thresholds or edits.leaves):
        return None
    n_branches = model.topology.n_branches
    coefficients = np.full(walk.coefficients.shape, np.nan)
    thresholds, centres, cuts = np.full((3, n_branches), np.nan)
    for t, j in edits.weights:
        if walk.coefficients[t, j]:
            coefficients[t, j] = walk.coefficients[t, j]
    after = replace(model, parameters=found)
    for t in np.flatnonzero(np.any(walk.coefficients, axis=1)).tolist():
        if t not in edits.thresholds and np.all(np.isnan(coefficients[t])):
            continue
        lead = _lead(walk.coefficients[t])
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
    return Held(coefficients, thresholds, centres, cuts, walk.ranked, classes)
