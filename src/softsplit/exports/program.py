"""The program that all languages print: definitions, each of names that come before it.

c   cells of the columns in use                       x   coded columns
z   ranks, under the quantile scaling                 s   log-odds of left, steepness z_t
e   exp(-s), s cut at ``saturation``                  l, r   gates: 1 / (1 + e) and e / (1 + e)
m   mixture of the leaves, by class                   v   votes, where they are not the mixture
f   functions of the leaves of a tree for numbers     p   probabilities, consistent with k
k   position of the predicted class, or the predicted number (n, mixed over the leaves)
q   reasons: what a variable adds to the log-odds of a question
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from softsplit.exports.columns import coded
from softsplit.exports.expressions import (
    Column,
    Expression,
    Interpolate,
    Name,
    Op,
    Read,
    first_largest,
    if_,
    minus,
    names_in,
    picked,
    times,
    total,
)
from softsplit.fitted.leaf_numbers import LeafNumbers
from softsplit.fitted.leaf_shares import BELOW
from softsplit.fitted.model import TreeModel
from softsplit.fitted.walk import TIE, Walk
from softsplit.reading.outline import outline
from softsplit.support.arrays import FloatArray
from softsplit.support.version import __version__
from softsplit.tree.leaf_families import LARGEST_LOG
from softsplit.tree.scaling import QuantileScaling

# Log-odds are cut here: exp overflows beyond, and the gate is shut long before.
SATURATION = 700.0

# Leaves whose shares add up to one within this are not divided by their sum.
SHARES_OFF = 1e-12


class Reason(NamedTuple):
    """What one variable adds to the log-odds of one question; ``base`` is those of a mean row."""

    question: int
    variable: str
    value: Name
    base: float


@dataclass(frozen=True)
class TreeProgram:
    """A tree as definitions.

    Attributes
    ----------
    columns : tuple of Column
        Those in use.
    n_columns : int
        All of the table.
    definitions : dict
        Expressions by name, in an order in which they can be computed.
    classes : list
        Labels as plain Python values; empty where a number is predicted.
    predicted : Expression
        Position of the predicted class, or the predicted number.
    probabilities : tuple of Expression
    reasons : tuple of Reason
    """

    columns: tuple[Column, ...]
    n_columns: int
    definitions: dict[str, Expression]
    classes: list[Any]
    predicted: Expression
    probabilities: tuple[Expression, ...]
    reasons: tuple[Reason, ...] = ()

    def needed_for(self, wanted: Iterable[Expression]) -> dict[str, Expression]:
        """The definitions that these expressions need, in their order."""
        needed = {name for expression in wanted for name in names_in(expression)}
        for name, expression in reversed(self.definitions.items()):
            if name in needed:
                needed.update(names_in(expression))
        return {name: self.definitions[name] for name in self.definitions if name in needed}

    @property
    def header(self) -> str:
        """What wrote the program, in a line."""
        kind = "classification" if self.classes else "regression"
        return f"Written by softsplit {__version__}: a {kind} tree. Nothing else is needed."

    @property
    def answers(self) -> tuple[Expression, ...]:
        """What ``predict`` and ``predict_proba`` return."""
        return (self.predicted, *self.probabilities)

    def used(self) -> TreeProgram:
        """The program without what nothing uses: branches that decide nothing."""
        needed = self.needed_for([*self.answers, *(reason.value for reason in self.reasons)])
        read = tuple(cell.column for cell in needed.values() if isinstance(cell, Read))
        return replace(self, definitions=needed, columns=read)

    def levels(self) -> list[dict[str, Expression]]:
        """The definitions in levels: each uses names of the levels before it only."""
        level: dict[str, int] = {}
        levels: list[dict[str, Expression]] = []
        for name, expression in self.definitions.items():
            level[name] = max((level[used] + 1 for used in names_in(expression)), default=0)
            levels += [{}] * (level[name] + 1 - len(levels))
            levels[level[name]] = {**levels[level[name]], name: expression}
        return levels


def program_of(
    model: TreeModel, *, reasons: bool = False, saturation: float | None = None
) -> TreeProgram:
    """The program of a tree; with ``reasons``, what each variable adds to each question."""
    return _Maker(model, SATURATION if saturation is None else saturation).program(reasons)


class _Maker:
    def __init__(self, model: TreeModel, saturation: float) -> None:
        self.model, self.saturation = model, saturation
        self.definitions: dict[str, Expression] = {}
        self.columns: list[Column] = []
        self.used = np.flatnonzero(model.columns_in_use).tolist()

    def program(self, reasons: bool) -> TreeProgram:
        model = self.model
        labels = checked_labels(model.classes)
        self._code()
        if isinstance(model.scaling, QuantileScaling):
            self._ranks(model.scaling)
        self._gates()
        predicted, probabilities = (
            self._called() if model.numbers is None else (self._number(model.numbers), [])
        )
        program = TreeProgram(
            columns=tuple(self.columns),
            n_columns=len(model.table_coding.names),
            definitions=self.definitions,
            classes=labels,
            predicted=predicted,
            probabilities=tuple(probabilities),
            reasons=tuple(self._reasons() if reasons else ()),
        )
        return program.used()

    def _define(self, name: str, expression: Expression) -> Expression:
        """A name for the expression, unless it is a number or a name."""
        if isinstance(expression, float | Name):
            return expression
        self.definitions[name] = expression
        return Name(name)

    # --- rows -------------------------------------------------------------------------------------

    def _code(self) -> None:
        coding = self.model.table_coding
        self.x: dict[int, Expression] = {}
        for i in dict.fromkeys(int(coding.homes[j]) for j in self.used):
            columns = coded(coding, i, self._cell, self._define)
            for j, expression in zip(coding.columns_of(i).tolist(), columns, strict=True):
                if j in self.used:
                    self.x[j] = self._define(f"x{j}", expression)

    def _cell(self, column: Column) -> Name:
        """The name of a cell, which several variables may read."""
        name = f"c{column.place}"
        if name not in self.definitions:
            self.columns.append(column)
            self.definitions[name] = Read(column)
        return Name(name)

    def _ranks(self, scaling: QuantileScaling) -> None:
        self.z: dict[int, Expression] = {}
        for j in self.used:
            knots, ranks = scaling.curve(j)
            value = self.x[j]
            if len(knots) == 1 or isinstance(value, float):
                self.z[j] = float(np.interp(value if isinstance(value, float) else 0, knots, ranks))
            else:
                assert isinstance(value, Name)
                curve = Interpolate(value, tuple(knots.tolist()), tuple(ranks.tolist()))
                self.z[j] = self._define(f"z{j}", curve)

    def _term(self, j: int, weight: float, mean: float = 0.0) -> Expression:
        """weight x (scaled value of feature j - mean)."""
        scaling = self.model.scaling
        if isinstance(scaling, QuantileScaling):
            return times(weight, minus(self.z[j], mean))
        arrays = scaling.arrays()
        low, span = float(arrays["low"][j]), float(arrays["span"][j])
        if not np.isfinite(span):  # a constant column is 0 throughout
            return -weight * mean
        return times(weight / span, minus(self.x[j], low + mean * span))

    # --- the mixture ------------------------------------------------------------------------------

    def _gates(self) -> None:
        model = self.model
        self.weights = model.steepness * model.parameters.weights / model.parameters.n_features
        self.left: list[Expression] = []
        self.right: list[Expression] = []
        ends = (-self.saturation, self.saturation)
        for t, threshold in enumerate((model.steepness * model.parameters.thresholds).tolist()):
            terms = [self._term(j, float(self.weights[j, t])) for j in self.used]
            score = self._define(f"s{t}", total([*terms, -threshold]))
            if isinstance(score, float):
                odds = float(np.exp(-np.clip(score, *ends)))
                self.left.append(1.0 / (1.0 + odds))
                self.right.append(odds / (1.0 + odds))
                continue
            cut = Op("min", (Op("max", (score, ends[0])), ends[1]))
            e = self._define(f"e{t}", Op("exp", (Op("negative", (cut,)),)))
            below = Op("sum", (1.0, e))
            self.left.append(self._define(f"l{t}", Op("divide", (1.0, below))))
            self.right.append(self._define(f"r{t}", Op("divide", (e, below))))

    def _mixed(self, prefix: str, leaves: Sequence[Sequence[Expression]]) -> list[Expression]:
        """The mixture of the leaves for each answer, V_t = l_t V_left + r_t V_right."""
        n_branches = self.model.topology.n_branches

        def mixed(node: int, values: Sequence[Expression]) -> Expression:
            if node >= n_branches:
                return values[node - n_branches]
            left, right = (mixed(2 * node + side, values) for side in (1, 2))
            if left == right:
                return left
            return total([times(self.left[node], left), times(self.right[node], right)])

        return [self._define(f"{prefix}{k}", mixed(0, values)) for k, values in enumerate(leaves)]

    def _divided(self, mixture: list[Expression]) -> list[Expression]:
        sums = self.model.leaf_shares.sum(axis=0)
        if np.all(np.abs(sums - 1.0) <= SHARES_OFF):
            return mixture
        whole = self._define("mixed", total(mixture))
        return [self._define(f"d{k}", Op("divide", (m, whole))) for k, m in enumerate(mixture)]

    # --- the class --------------------------------------------------------------------------------

    def _called(self) -> tuple[Expression, list[Expression]]:
        """Position of the predicted class, and the probabilities."""
        model = self.model
        mixture = self._mixed("m", model.leaf_shares.tolist())
        if model.walk is not None:
            classes = [float(k) for k in model.walk.classes]
            predicted = self._define("k", self._walked(model.walk, classes))
        else:
            votes = mixture
            if model.leaf_votes is not model.leaf_shares:
                votes = self._mixed("v", model.leaf_votes.tolist())
            predicted = self._define("k", first_largest(votes))
        probabilities = self._divided(mixture)
        if model.class_factors is not None:
            probabilities = self._consistent(probabilities, predicted, model.class_factors)
        return predicted, probabilities

    def _walked(self, walk: Walk, leaves: Sequence[Expression], node: int = 0) -> Expression:
        """What the leaf says at which the walk arrives, as ``Walk.holds`` goes."""
        n_branches = self.model.topology.n_branches
        if node >= n_branches:
            return leaves[node - n_branches]
        ways = (self._walked(walk, leaves, 2 * node + side) for side in (1, 2))
        return if_(self._holds(walk, node), *ways)

    def _holds(self, walk: Walk, t: int) -> Op | bool:
        features = np.flatnonzero(walk.coefficients[t]).tolist()
        if not features:
            return bool(walk.holds(t, np.zeros((1, walk.coefficients.shape[1])))[0])
        values = self.z if walk.ranked[t] else self.x
        threshold = float(walk.thresholds[t])
        pairs = [(float(walk.coefficients[t, j]), values[j]) for j in features]
        above = minus(total([times(c, value) for c, value in pairs]), threshold)
        sizes = [times(abs(c), _size(value)) for c, value in pairs]
        least = times(TIE, total([abs(threshold), *sizes]))
        if isinstance(above, float):
            assert isinstance(least, float)
            return (above if walk.upwards[t] else -above) > least
        return Op("greater", (above if walk.upwards[t] else Op("negative", (above,)), least))

    def _consistent(
        self, proba: list[Expression], predicted: Expression, factors: FloatArray
    ) -> list[Expression]:
        """As ``consistent_with``: classes above the predicted one are lowered to it."""
        f, known = factors.tolist(), isinstance(predicted, float)
        weighed = [
            self._define(f"w{k}", times(f[k], p)) if f[k] != 1.0 else p for k, p in enumerate(proba)
        ]
        tiny = float(np.finfo(float).tiny)
        own = self._define("own", Op("max", (picked(predicted, weighed), tiny)))
        cap = times(BELOW, own)
        lead = self._define("lead", first_largest(weighed))
        lowered = []
        for k, w in enumerate(weighed):
            chosen: Op | bool = predicted == k if known else Op("equal", (predicted, float(k)))
            below = if_(chosen, own, Op("min", (w, cap)))
            lowered.append(self._define(f"o{k}", times(1.0 / f[k], below)))
        whole = self._define("lowered", total(lowered))
        agreed: Op | bool = Op("equal", (lead, predicted))
        if known and isinstance(lead, float):
            agreed = lead == predicted
        return [
            self._define(f"p{k}", if_(agreed, p, Op("divide", (low, whole))))
            for k, (p, low) in enumerate(zip(proba, lowered, strict=True))
        ]

    # --- the number -------------------------------------------------------------------------------

    def _number(self, numbers: LeafNumbers) -> Expression:
        """The number of the leaf at which the walk arrives, or the mixture over all leaves."""
        leaves = [self._leaf(numbers, leaf) for leaf in range(numbers.functions.n_leaves)]
        if self.model.walk is not None:
            return self._define("k", self._walked(self.model.walk, leaves))
        return self._mixed("n", [leaves])[0]

    def _leaf(self, numbers: LeafNumbers, leaf: int) -> Expression:
        """What a leaf predicts: a_l + u_l . x within its bounds, by the link of its family."""
        functions, logs = numbers.functions, numbers.family.log_link
        slopes = functions.slopes[:, leaf]
        terms = [times(float(slopes[j]), self.x[j]) for j in np.flatnonzero(slopes).tolist()]
        score = total([float(functions.constants[leaf]), *terms])
        ends = np.array([functions.low[leaf], functions.high[leaf]])
        low, high = (np.clip(ends, -LARGEST_LOG, LARGEST_LOG) if logs else ends).tolist()
        if isinstance(score, float):
            return float(numbers.family.prediction(np.clip(score, low, high)))
        score = Op("min", (Op("max", (score, low)), high))
        return self._define(f"f{leaf}", Op("exp", (score,)) if logs else score)

    # --- reasons ----------------------------------------------------------------------------------

    def _reasons(self) -> list[Reason]:
        model, coding = self.model, self.model.table_coding
        means = model.summary.scaled_mean
        reasons = []
        for question in outline(model).questions():
            t = question.node
            features = [j for j in model.used(t).tolist() if j in self.used]
            at_mean = float(self.weights[features, t] @ means[features])
            base = at_mean - model.steepness * float(model.parameters.thresholds[t])
            homes = sorted({int(coding.homes[j]) for j in features})
            for i in homes:
                own = [j for j in features if coding.homes[j] == i]
                terms = [self._term(j, float(self.weights[j, t]), float(means[j])) for j in own]
                name = f"q{question.number}_{i}"
                self.definitions[name] = total(terms)
                variable = coding.variables[i].name
                reasons.append(Reason(question.number, variable, Name(name), base))
        return reasons


def _size(value: Expression) -> Expression:
    return abs(value) if isinstance(value, float) else Op("abs", (value,))


def checked_labels(classes: Any) -> list[Any]:
    """Labels as plain values of a type that every language has."""
    labels = list(classes.tolist())
    if not all(isinstance(label, str | int | float | bool) for label in labels):
        raise ValueError(
            f"class labels of type {classes.dtype} cannot be exported; "
            "use strings, integers, booleans or floats."
        )
    return labels
