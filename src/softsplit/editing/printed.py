"""What the printed text of a tree numbers and names, and the gate behind a printed question.

Question t reads sum_j c_j v_j > b, v_j the value of a feature (its rank in a question on ranks).
Its gate is p = F(steepness slope (sum - centre)), so that a change of the printed c_j or b is a
change of the gate on the same sum:

    scaled weights   a_j = slope c_j span_j p,   a_j = slope c_j p under the quantile scaling
    threshold        mu  = slope (centre - sum_j c_j low_j),   slope centre
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from softsplit.editing.points import is_pointed
from softsplit.fitted.model import TreeModel
from softsplit.reading.outline import OutlineNode, outline
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown, unfit
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.scaling import LinearScaling


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
