"""Changes of a fitted tree by hand, in the units and with the numbers of its printed text.

Question t reads sum_j c_j v_j > b, v_j the value of a feature (its rank in a question on ranks).
Its gate is p = F(steepness slope (sum - centre)), so that a change of the printed c_j or b is a
change of the gate on the same sum:

    scaled weights   a_j = slope c_j span_j p,   a_j = slope c_j p under the quantile scaling
    threshold        mu  = slope (centre - sum_j c_j low_j),   slope centre

What is printed is what is predicted: the walk compares with c and b, the mixture uses the gate on
the same sum, and where b moves the centre moves with it. How many training rows arrive in the
leaves below a question that has changed is not known any more (NaN); ``counted`` or a refit counts
rows again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.editing.points import is_pointed, refuse_weight, whole, with_points
from softsplit.fitted.leaf_shares import consistent_with, decision_gains
from softsplit.fitted.model import TreeModel, used_shares
from softsplit.fitted.pruning import pruned_model
from softsplit.fitted.walk import CENTRE_STEP, Arriving
from softsplit.fitted.walk_rounding import rounded_shares, shortest, significant
from softsplit.reading.outline import OutlineNode, outline
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown, unfit
from softsplit.support.numbers import number
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.scaling import LinearScaling

SHARE_ERROR = 1e-6
"""Probabilities of a leaf that are given by hand may miss one by this much; they are divided."""


class GatedSum(NamedTuple):
    """The sum of a question, and how its gate depends on it.

    Attributes
    ----------
    coefficients : array of shape (n_features,)
        c, as printed.
    slope : float
        Change of the score z for a unit of the sum; negative for "<".
    centre : float
        Sum at which the gate is half open.
    """

    coefficients: FloatArray
    slope: float
    centre: float

    def width(self, model: TreeModel) -> float:
        """Width of the gate, as printed."""
        return 1.0 / (model.steepness * abs(self.slope))


def read_gate(model: TreeModel, branch: int) -> GatedSum:
    """The gate of a question that looks at features."""
    coef, intercept = model.splits
    row = coef[branch]
    used = [int(j) for j in model.used(branch) if row[j] != 0]
    if model.walk is not None:
        coefficients = model.walk.coefficients[branch]
        used = [j for j in used if coefficients[j] != 0]
    else:
        unit = row[used[0]]
        coefficients = np.zeros(len(row))
        coefficients[used] = row[used] / unit
    slope = float(row[used[0]] / coefficients[used[0]])
    return GatedSum(coefficients.copy(), slope, float(f"{-intercept[branch] / slope:.12g}"))


def with_gate(model: TreeModel, branch: int, gate: GatedSum) -> TreeParameters:
    """The parameters of the tree with another gate."""
    weights, thresholds = model.parameters.weights.copy(), model.parameters.thresholds.copy()
    c, p = gate.coefficients, model.parameters.n_features
    used, scaling = np.flatnonzero(c), model.scaling
    weights[:, branch] = 0.0
    if isinstance(scaling, LinearScaling):
        for j in used:
            if not np.isfinite(scaling.span[j]):
                raise ValueError(
                    f"{model.feature_names[j]} had one value in training and can have no weight."
                )
        weights[used, branch] = gate.slope * c[used] * scaling.span[used] * p
        thresholds[branch] = gate.slope * (gate.centre - float(c[used] @ scaling.low[used]))
    else:
        weights[used, branch] = gate.slope * c[used] * p
        thresholds[branch] = gate.slope * gate.centre
    return replace(model.parameters, weights=weights, thresholds=thresholds)


# --- what the printed text numbers and names -----------------------------------------------------


def find_question(model: TreeModel, number: Any) -> OutlineNode:
    """The question with this number in the printed text."""
    questions = outline(model).questions()
    asking = [q for q in questions if q.split is not None and q.split.features]
    if not isinstance(number, int | np.integer) or isinstance(number, bool):
        raise unfit("question", number, "must be the number of a question")
    if not 1 <= number <= len(questions) or questions[number - 1] not in asking:
        size = f"has questions 1 to {len(questions)}" if questions else "is one leaf"
        raise ValueError(f"there is no question {number}; the tree {size}.")
    return questions[number - 1]


def find_leaf(model: TreeModel, number: Any) -> OutlineNode:
    """The end with this number, counted from the top of the printed text."""
    ends = outline(model).ends()
    if not isinstance(number, int | np.integer) or isinstance(number, bool):
        raise unfit("leaf", number, "must be the number of a leaf")
    if not 1 <= number <= len(ends):
        raise ValueError(f"there is no leaf {number}; the tree has leaves 1 to {len(ends)}.")
    return ends[number - 1]


def find_columns(model: TreeModel, feature: Any, *, whole: bool = False) -> list[int]:
    """The columns of a feature: a term as it is printed, or all of a column of the table.

    A name of both is that of the term, or with ``whole`` that of the column. A number is the
    position of a column of the table.
    """
    names, table = list(model.feature_names), model.table_coding
    term = isinstance(feature, str) and names.count(feature) == 1
    if term and not (whole and feature in table.names):
        return [names.index(feature)]
    called = [i for i, variable in enumerate(table.variables) if variable.name == feature]
    if called and table.pointed and not (whole and feature in table.names):
        return [int(j) for j in table.columns_of(called[0])]
    place = None
    if isinstance(feature, int | np.integer) and not isinstance(feature, bool):
        place = int(feature) if 0 <= feature < len(table.names) else None
    elif feature in table.names:
        place = table.names.index(feature)
    if place is not None:
        variables = [i for i, at in enumerate(table.places) if at == place]
        return [int(j) for i in variables for j in table.columns_of(i)]
    if table.pointed:
        names = [table.variables[i].name for i in table.homes]
    used = ", ".join(dict.fromkeys(names[j] for j in model.selected_features))
    raise ValueError(f"there is no feature {shown(feature)}; those in use are: {used or 'none'}.")


def find_column(model: TreeModel, feature: Any) -> int:
    """The one column of a feature, as it is printed."""
    columns = find_columns(model, feature)
    if len(columns) > 1:
        listed = ", ".join(shown(model.feature_names[j]) for j in columns)
        raise ValueError(f"{shown(feature)} has several terms; name one as printed: {listed}.")
    return columns[0]


def find_term(model: TreeModel, node: OutlineNode, feature: Any) -> int:
    """The column of a feature, of several look-ups that of a question."""
    if not is_pointed(model):
        return find_column(model, feature)
    assert node.split is not None
    own = [j for j in find_columns(model, feature) if j in node.split.features]
    if len(own) == 1:
        return own[0]
    coding = model.table_coding
    used = [coding.variables[coding.homes[j]].name for j in node.split.features]
    raise ValueError(
        f"question {node.number} has no points of {shown(feature)} alone; it has those of "
        f"{', '.join(map(shown, used))}."
    )


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


# --- leaves --------------------------------------------------------------------------------------


def set_leaf(model: TreeModel, leaf: Any, value: Any) -> TreeModel:
    """The tree with another class, or other class probabilities, in a leaf.

    Given a class, classes that are more probable there are lowered to it. Given probabilities (by
    class, or in the order of the classes), the leaf predicts what is best by them.
    """
    end = find_leaf(model, leaf)
    shares = model.leaf_shares[:, end.leaf].copy()
    if _is_class(model, value):
        k = model.labels.index(value)
        shares = _with_class(model, shares, k)
    else:
        shares = _probabilities(model, value)
        k = int(np.argmax(_gains(model).T @ shares))
    places = list(end.leaves)
    leaf_values = model.parameters.leaf_values.copy()
    distributions, walk = model.distributions, model.walk
    if distributions is not None:
        distributions = distributions.copy()
        distributions[:, places] = shares[:, None]
        leaf_values[:, places] = np.eye(len(shares))[:, [k]]
    else:
        leaf_values[:, places] = shares[:, None]
    if walk is not None:
        classes = walk.classes.copy()
        classes[places] = k
        walk = replace(walk, classes=classes)
    return changed_model(
        model,
        parameters=replace(model.parameters, leaf_values=leaf_values),
        distributions=distributions,
        walk=walk,
        edits=model.edits.holding(leaves=places),
    )


def _is_class(model: TreeModel, value: Any) -> bool:
    plain = isinstance(value, str | int | float | bool | np.generic)
    if plain and value not in model.labels:
        raise ValueError(f"there is no class {shown(value)}; the classes are {model.labels}.")
    return plain


def _gains(model: TreeModel) -> FloatArray:
    """What predicting a class (column) is worth for a row of a class."""
    if model.call_costs is None or model.distributions is not None:
        return np.eye(len(model.classes))
    return decision_gains(model.call_costs)


def _with_class(model: TreeModel, shares: FloatArray, k: int) -> FloatArray:
    """Probabilities of a leaf by which class k is best."""
    gains, factors = _gains(model), model.class_factors
    if int(np.argmax(gains.T @ shares)) == k:
        return shares
    lowered = consistent_with(shares[None, :], np.array([k]), factors)[0]
    if model.walk is not None:
        return rounded_shares(lowered[:, None])[:, 0]
    if int(np.argmax(gains.T @ lowered)) != k:
        raise ValueError(
            f"under its costs a leaf with these probabilities does not predict {model.labels[k]!r};"
            " give the probabilities instead of the class."
        )
    return lowered


def _probabilities(model: TreeModel, value: Any) -> FloatArray:
    labels = model.labels
    if isinstance(value, Mapping):
        for name in value:
            if name not in labels:
                raise ValueError(f"there is no class {shown(name)}; the classes are {labels}.")
        value = [value.get(label, 0.0) for label in labels]
    try:
        given = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"a leaf takes a class or one probability for each class, got {shown(value)}."
        ) from None
    if given.shape != (len(labels),):
        raise ValueError(f"a leaf needs one probability for each of the {len(labels)} classes.")
    if not np.all(given >= 0) or not abs(given.sum() - 1) <= SHARE_ERROR:
        raise ValueError(f"probabilities must be >= 0 and add up to 1, got {given.tolist()}.")
    return given / given.sum() if given.sum() != 1.0 else given


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
    best = int(np.argmax(_gains(model).T @ shares))
    if walk is not None:
        shares = rounded_shares(shares[:, None])[:, 0]
        known = walk.counts[:, leaves].sum(axis=1)
        worth = _gains(model).T @ (known if np.nansum(known) > 0 else shares)
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


# --- names ---------------------------------------------------------------------------------------


def rename(
    model: TreeModel,
    features: Mapping[str, str] | None = None,
    classes: Mapping[Any, Any] | None = None,
) -> TreeModel:
    """The tree with other names for columns of its table, for classes, or for both."""
    if not features and not classes:
        raise ValueError("rename needs features={'old': 'new'}, classes={'old': 'new'} or both.")
    if features:
        model = _renamed_columns(model, features)
    return _renamed_classes(model, classes) if classes else model


def _renamed_columns(model: TreeModel, features: Mapping[str, str]) -> TreeModel:
    names = model.column_names
    for old, new in features.items():
        if old not in names:
            raise ValueError(f"there is no column {shown(old)} to rename.")
        if not isinstance(new, str) or not new:
            raise ValueError(f"the new name of {shown(old)} must be a text, got {shown(new)}.")
    called = [features.get(name, name) for name in names]
    if len(set(called)) < len(called):
        twice = next(name for name in called if called.count(name) > 1)
        raise ValueError(f"two columns would have the name {shown(twice)}.")
    if model.coding is None:
        return replace(model, feature_names=tuple(called))
    coding = replace(model.coding.renamed(called), named=True)
    return replace(model, coding=coding, feature_names=coding.column_names)


def _renamed_classes(model: TreeModel, names: Mapping[Any, Any]) -> TreeModel:
    for old in names:
        if old not in model.labels:
            raise ValueError(f"there is no class {shown(old)}; the classes are {model.labels}.")
    called = [names.get(label, label) for label in model.labels]
    if len({type(name) for name in called}) > 1:
        raise ValueError("all classes must be of one type; rename all of them or use that type.")
    if len(set(called)) < len(called):
        raise ValueError("two classes would have the same name.")
    order = sorted(range(len(called)), key=called.__getitem__)
    texts = isinstance(called[0], str)
    kind = object if texts and model.classes.dtype.kind == "O" else None
    place = np.argsort(order)
    walk, costs, coding = model.walk, model.call_costs, model.coding
    if walk is not None:
        walk = replace(walk, counts=walk.counts[order], classes=place[walk.classes])
    if coding is not None:
        known = {str(old): str(new) for old, new in zip(model.labels, called, strict=True)}
        variables = tuple(
            replace(v, classes=tuple(known.get(k, k) for k in v.classes)) if v.classes else v
            for v in coding.variables
        )
        coding = replace(coding, variables=variables)
    leaves = model.parameters.leaf_values[order]
    return replace(
        model,
        held_out=None,
        monotone=None,
        profile=None if model.profile is None else model.profile.with_classes(order),
        classes=np.array([called[k] for k in order], dtype=kind),
        parameters=replace(model.parameters, leaf_values=leaves),
        distributions=None if model.distributions is None else model.distributions[order],
        call_costs=None if costs is None else costs[np.ix_(order, order)],
        walk=walk,
        coding=coding,
        feature_names=model.feature_names if coding is None else coding.column_names,
    )


# --- rows ----------------------------------------------------------------------------------------


def counted(model: TreeModel, X: FloatArray, labels: NDArray[np.int64]) -> TreeModel:
    """The tree with the rows that arrive in its leaves; X in original units, labels positions."""
    if model.walk is None:
        return model
    rows = Arriving(model.scaled(X).T, labels, np.ones(len(X)))
    return replace(model, walk=model.walk.counted(rows, model.scaling, None))
