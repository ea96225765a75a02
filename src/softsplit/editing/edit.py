"""Changes of a fitted tree by hand, in the units and with the numbers of its printed text.

What is printed is what is predicted: the walk compares with c and b, the mixture uses the gate on
the same sum, and where b moves the centre moves with it. How many training rows arrive in the
leaves below a question that has changed is not known any more (NaN); ``counted`` or a refit counts
rows again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.editing.points import is_pointed, refuse_weight, whole, with_points
from softsplit.editing.printed import (
    GatedSum,
    find_columns,
    find_question,
    find_term,
    read_gate,
    with_gate,
)
from softsplit.fitted.leaf_shares import decision_gains
from softsplit.fitted.model import TreeModel, used_shares
from softsplit.fitted.pruning import pruned_model
from softsplit.fitted.walk import CENTRE_STEP, Arriving
from softsplit.fitted.walk_rounding import rounded_shares, shortest, significant
from softsplit.reading.outline import outline
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown, unfit
from softsplit.support.numbers import number


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise unfit(name, value, "must be a number")
    number = float(value)
    if not abs(number) <= 1e300:
        raise unfit(name, value, "must be a finite number")
    return number


# --- questions -----------------------------------------------------------------------------------


def set_threshold(model: TreeModel, question: Any, value: Any) -> TreeModel:
    """The tree with ``value`` as the threshold of a question; its gate moves by as much.

    Of a question in whole points it is the fewest points at which the question holds.
    """
    node, value = find_question(model, question), _number("value", value)
    assert node.split is not None
    if node.split.lefts is not None:
        raise ValueError(
            f"question {node.number} asks whether {node.split.names[0]!r} holds and has no "
            "threshold; set_weight, prune and set_leaf change what follows from it."
        )
    t, gate, walk = node.node, read_gate(model, node.node), model.walk
    if is_pointed(model):
        value = whole("value", value) - 1.0  # so many points, or more
    single = not model.scaling.linear and not (
        node.split.ranked if walk is None else bool(walk.ranked[t])
    )
    at = float(value)
    if single:  # printed in the units of the data, while the gate is one of ranks
        at = _rank(model, node.split.features[0], value)
    if walk is None:
        return _questioned(model, t, gate._replace(centre=at), None, thresholds=[t])
    before = float(walk.thresholds[t])
    before = _rank(model, node.split.features[0], before) if single else before
    centre = float(f"{gate.centre + at - before:.12g}")
    return _questioned(model, t, gate._replace(centre=centre), value, thresholds=[t])


def set_weight(model: TreeModel, question: Any, feature: Any, value: Any) -> TreeModel:
    """The tree with ``value`` as the coefficient of a feature in a question; 0 removes the term."""
    node, value = find_question(model, question), _number("value", value)
    t, gate, j = node.node, read_gate(model, node.node), find_term(model, node, feature)
    if is_pointed(model):
        refuse_weight(node.number, value)
    c = gate.coefficients.copy()
    c[j] = value
    if not np.any(c):
        raise ValueError(f"question {node.number} has no other term; use prune({node.number}).")
    return _questioned(_in_ranks(model, t, c), t, gate._replace(coefficients=c), weights=[(t, j)])


def set_points(model: TreeModel, question: Any, feature: Any, value: Any, points: Any) -> TreeModel:
    """The tree with other ``points`` for a value of a feature in a question; None: if missing."""
    node = find_question(model, question)
    if not is_pointed(model):
        raise ValueError("the questions of this tree have weights and no points; use set_weight.")
    t, j = node.node, find_term(model, node, feature)
    changed = with_points(model, j, value, points)
    return replace(
        _questioned(model, t, read_gate(model, t), weights=[(t, j)]), coding=changed.coding
    )


def round_weights(model: TreeModel, digits: Any, question: Any = None) -> TreeModel:
    """The tree with coefficients of so many significant digits, in one question or in all.

    Threshold and centre move by what the sum changes at the training means.
    """
    if (
        isinstance(digits, bool)
        or not isinstance(digits, int | np.integer)
        or not 1 <= digits <= 15
    ):
        raise unfit("digits", digits, "must be an integer from 1 to 15")
    if is_pointed(model):
        raise ValueError("the questions of this tree are sums of whole points: nothing to round.")
    if question is None:
        listed = [q for q in outline(model).questions() if q.split and q.split.features]
    else:
        listed = [find_question(model, question)]
    for node in listed:
        t, gate = node.node, read_gate(model, node.node)
        c = _rounded(model, t, gate.coefficients, int(digits))
        held = [(t, int(j)) for j in np.flatnonzero(c)]
        model = _levelled(model, t, gate, c, held)
    return model


def _rounded(model: TreeModel, t: int, coefficients: FloatArray, digits: int) -> FloatArray:
    """Coefficients of so many digits.

    The sum of a mixture is printed in units of its weightiest term: no other may be rounded up to
    more, for all would then be divided by it.
    """
    c = np.array([significant(value, digits) for value in coefficients])
    if model.walk is not None:
        return c
    size, used = np.abs(model.parameters.weights[:, t]), model.used(t)
    for j in used[1:]:
        now = size[j] * abs(c[j] / coefficients[j])
        if abs(c[j]) > abs(coefficients[j]) and now > size[used[0]] * (1 - 1e-9):
            step = 10.0 ** (np.floor(np.log10(abs(coefficients[j]))) - digits + 1)
            c[j] = significant(c[j] - np.sign(c[j]) * step, digits)
    return c


def drop_feature(model: TreeModel, feature: Any) -> tuple[TreeModel, tuple[int, ...]]:
    """The tree without a feature, which counts as its training mean.

    A question that has no other term is pruned: to one leaf if its sides are leaves, else to the
    side that the mean takes. The second result says where each branch was before (-1: padding).
    """
    out = find_columns(model, feature, whole=True)
    if not set(out) & set(model.selected_features.tolist()):
        raise ValueError(f"the tree does not use {shown(feature)}.")
    origins = tuple(range(model.topology.n_branches))
    while True:
        # 1. The next question that uses the feature.
        asking = [q for q in outline(model).questions() if q.split and q.split.features]
        node = next((q for q in asking if set(q.split.features) & set(out)), None)  # type: ignore[union-attr]
        if node is None:
            return model, origins
        # 2. If it has other terms, the feature counts as its mean there.
        t, gate = node.node, read_gate(model, node.node)
        c = gate.coefficients.copy()
        c[out] = 0.0
        if np.any(c):
            model = _levelled(model, t, gate, c)
            continue
        # 3. Else the question goes: to one leaf, or to the side that the mean takes.
        if all(child.split is None for child in node.children):
            model, branches = _as_leaf(model, t)
        else:
            model, branches = _without_side(model, t, 2 - int(_holds_at_mean(model, t, gate)))
        origins = tuple(origins[was] if was >= 0 else -1 for was in branches)


def moved_thresholds(
    before: TreeModel, after: TreeModel, origins: Sequence[int] | None = None
) -> str:
    """What an edit did to the printed thresholds of questions that it kept; "" for nothing.

    Questions have the numbers from before the edit. ``origins`` says where each branch was before;
    by default all are where they were.
    """
    asked = {q.node: q for q in outline(before).questions()}
    changes = []
    for now in outline(after).questions():
        was = asked.get(now.node if origins is None else origins[now.node])
        pair = [q.split for q in (was, now) if q and q.split and q.split.features]
        if len(pair) == 2 and all(split.lefts is None for split in pair):
            more = float(is_pointed(before))  # in points: the fewest at which it holds
            old, new = (number(split.threshold + more, split.digits) for split in pair)
            if was is not None and old != new:
                changes.append(f"threshold of question {was.number}: {old} to {new}")
    return ", ".join(changes)


def _holds_at_mean(model: TreeModel, t: int, gate: GatedSum) -> bool:
    if model.walk is None:
        return bool(gate.slope * (gate.coefficients @ _means(model, t) - gate.centre) > 0)
    means = _means(model, t)[None, :]
    return bool(model.walk.holds(t, means)[0])


def _means(model: TreeModel, branch: int) -> FloatArray:
    """Training means of all features in the units of a question."""
    scaled = model.summary.scaled_mean
    ranked = not model.scaling.linear if model.walk is None else model.walk.ranked[branch]
    if ranked:
        return scaled
    return np.array([model.scaling.to_original(j, float(mean)) for j, mean in enumerate(scaled)])


def _levelled(
    model: TreeModel, t: int, gate: GatedSum, c: FloatArray, held: Sequence[tuple[int, int]] = ()
) -> TreeModel:
    """The tree with other coefficients in a question, whose sum keeps its level at the means."""
    changed = np.flatnonzero(c != gate.coefficients)
    if not len(changed):
        return replace(model, edits=model.edits.holding(weights=held))
    means = _means(model, t)
    shift = float((c - gate.coefficients)[changed] @ means[changed])
    step = CENTRE_STEP * gate.width(model)

    def short(value: float) -> float:
        return shortest(value + shift, value + shift - step, value + shift + step)

    moved = GatedSum(c, gate.slope, short(gate.centre))
    bound = None if model.walk is None else short(float(model.walk.thresholds[t]))
    if bound is not None and is_pointed(model):
        bound = float(np.floor(bound))
    return _questioned(model, t, moved, bound, weights=held)


def _rank(model: TreeModel, feature: int, value: float) -> float:
    row = np.zeros((1, model.parameters.n_features))
    row[0, feature] = value
    used = np.arange(model.parameters.n_features) == feature
    return float(model.scaling.transform(row, used)[0, feature])


def _in_ranks(model: TreeModel, t: int, c: FloatArray) -> TreeModel:
    """The tree with a question in ranks, if it is to have several features under that scaling."""
    walk = model.walk
    if walk is None or model.scaling.linear or walk.ranked[t] or np.count_nonzero(c) < 2:
        return model
    feature = int(np.flatnonzero(walk.coefficients[t])[0])
    ranked, thresholds = walk.ranked.copy(), walk.thresholds.copy()
    ranked[t] = True
    thresholds[t] = float(f"{_rank(model, feature, float(thresholds[t])):.12g}")
    return replace(model, walk=replace(walk, ranked=ranked, thresholds=thresholds))


def _questioned(
    model: TreeModel,
    t: int,
    gate: GatedSum,
    threshold: float | None = None,
    *,
    weights: Sequence[tuple[int, int]] = (),
    thresholds: Sequence[int] = (),
) -> TreeModel:
    """The tree with another question at a branch; the rows below it are not counted any more."""
    parameters, walk = with_gate(model, t, gate), model.walk
    if walk is not None:
        coefficients, bounds, counts = (
            walk.coefficients.copy(), walk.thresholds.copy(), walk.counts.copy()
        )  # fmt: skip
        coefficients[t] = gate.coefficients
        bounds[t] = walk.thresholds[t] if threshold is None else threshold
        counts[:, list(model.topology.leaves_below(t))] = np.nan
        walk = replace(walk, coefficients=coefficients, thresholds=bounds, counts=counts)
    edits = model.edits.holding(weights, thresholds)
    return changed_model(model, parameters=parameters, walk=walk, edits=edits)


def changed_model(model: TreeModel, **changes: Any) -> TreeModel:
    """The tree with other parts.

    How training ended, what held-out rows said and whether effects are monotone is not known of it.
    """
    unknown: dict[str, Any] = dict.fromkeys(("objective", "n_iter", "held_out", "monotone"))
    profile = None if model.profile is None else model.profile.of_another_tree()
    changed = replace(model, **unknown | {"profile": profile} | changes)
    if changed.importances is None:
        return changed
    return replace(
        changed, importances=used_shares(changed.importances, changed.parameters.weights)
    )


def gains_of(model: TreeModel) -> FloatArray:
    """What predicting a class (column) is worth for a row of a class."""
    if model.call_costs is None or model.distributions is not None:
        return np.eye(len(model.classes))
    return decision_gains(model.call_costs)


# --- structure -----------------------------------------------------------------------------------


def prune(model: TreeModel, question: Any, answer: Any = None) -> TreeModel:
    """The tree without a question: one leaf in its place, or what follows from one answer to it."""
    node = find_question(model, question)
    sides = {"yes": 1, "no": 2, True: 1, False: 2}
    if answer is not None and (not isinstance(answer, str | bool) or answer not in sides):
        raise unfit("answer", answer, "must be 'yes', 'no' or None")
    if answer is not None:
        return _without_side(model, node.node, sides[answer])[0]
    return _as_leaf(model, node.node)[0]


def _as_leaf(model: TreeModel, t: int) -> tuple[TreeModel, tuple[int, ...]]:
    """The tree with one leaf in the place of a branch, and where its branches were."""
    leaves = list(model.topology.leaves_below(t))
    rows = np.ones(len(leaves))
    walk = model.walk
    if walk is not None:
        counts = walk.counts[:, leaves]
        rows = counts.sum(axis=0) if np.nansum(counts) > 0 and np.all(counts >= 0) else rows
    rows = rows / rows.sum()
    shares = model.leaf_shares[:, leaves] @ rows
    best = int(np.argmax(gains_of(model).T @ shares))
    if walk is not None:
        shares = rounded_shares(shares[:, None])[:, 0]
        known = walk.counts[:, leaves].sum(axis=1)
        worth = gains_of(model).T @ (known if np.nansum(known) > 0 else shares)
        best = int(np.argmax(worth))
    elif model.distributions is not None:
        best = int(np.argmax(model.parameters.leaf_values[:, leaves] @ rows))
    pruned, branches = pruned_model(model, t, leaf=(shares, best))
    return changed_model(pruned), branches


def _without_side(model: TreeModel, t: int, side: int) -> tuple[TreeModel, tuple[int, ...]]:
    """The tree with one side of a branch in its place, and where its branches were."""
    walk = model.walk
    if walk is not None:  # rows of the other side arrive here too
        counts = walk.counts.copy()
        counts[:, list(model.topology.leaves_below(t))] = np.nan
        model = replace(model, walk=replace(walk, counts=counts))
    pruned, branches = pruned_model(model, t, side=side)
    return changed_model(pruned), branches


# --- rows ----------------------------------------------------------------------------------------


def counted(model: TreeModel, X: FloatArray, labels: NDArray[np.int64]) -> TreeModel:
    """The tree with the rows that arrive in its leaves; X in original units, labels positions."""
    if model.walk is None:
        return model
    rows = Arriving(model.scaled(X).T, labels, np.ones(len(X)))
    return replace(model, walk=model.walk.counted(rows, model.scaling, None))
